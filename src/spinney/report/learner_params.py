"""Parameters of a learner inside another estimator, set as if they were that estimator's own."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

__all__ = ["LearnerIntervals", "LearnerParams", "LearnerSets"]


class LearnerParams:
    """Mixin of estimators that prepare a table for one learner: ``ScaledRidge(alphas=[1.0])``.

    What the learner takes and the estimator itself does not goes through to the learner, over the
    values that the estimator would choose. Such a parameter is an attribute as every other, so that
    `get_params`, `set_params`, `clone` and a grid search treat it as one; it is there only where it
    was set. The estimator's constructor takes ``**learner_params`` and hands them to
    `_keep_learner_params`.
    """

    _learner_class: type[Any]

    def learner_param_names(self) -> list[str]:
        """Return the names of the learner's parameters that can be set here."""
        own = type(self)._get_param_names()  # type: ignore[attr-defined]
        names = self._learner_class._get_param_names()
        return [name for name in names if name not in own]

    def _keep_learner_params(self, params: dict[str, Any]) -> None:
        names = self.learner_param_names()
        for name, value in params.items():
            if name not in names:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, value)

    def _learner_params(self) -> dict[str, Any]:
        kept = vars(self)
        return {name: kept[name] for name in self.learner_param_names() if name in kept}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and those of the learner that were set."""
        own: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        return {**own, **self._learner_params()}

    def set_params(self, **params: Any) -> Any:
        """Set parameters, the learner's included."""
        names = self.learner_param_names()
        self._keep_learner_params({name: params[name] for name in params if name in names})
        others = {name: params[name] for name in params if name not in names}
        return super().set_params(**others)  # type: ignore[misc]


class LearnerIntervals:
    """Intervals of an estimator whose learner, fitted as ``estimator_``, has them."""

    def _points_of(self, X: Any) -> Any:
        """Return rows as the learner takes them."""
        return X

    @property
    def interval_method_(self) -> str:
        """What intervals are made from, in words."""
        method: str = self.estimator_.interval_method_  # type: ignore[attr-defined]
        return method

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Any:
        """Predict intervals with the learner."""
        check_is_fitted(self)
        points = self._points_of(X)
        return self.estimator_.predict_interval(points, coverage, method)  # type: ignore[attr-defined]


class LearnerSets:
    """Sets of classes of an estimator whose learner, fitted as ``estimator_``, has them."""

    def _points_of(self, X: Any) -> Any:
        """Return rows as the learner takes them."""
        return X

    @property
    def set_method_(self) -> str:
        """What sets are made from, in words."""
        method: str = self.estimator_.set_method_  # type: ignore[attr-defined]
        return method

    def predict_set(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Any:
        """Predict sets of classes with the learner."""
        check_is_fitted(self)
        points = self._points_of(X)
        return self.estimator_.predict_set(points, coverage, method)  # type: ignore[attr-defined]
