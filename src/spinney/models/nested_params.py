"""Mixins for estimators that expose the parameters of a nested learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.group_scale import GroupScale, learn_group_scale
from spinney.conformal.mixins import HeldOut, find_held_out_rows, predict_with_scale
from spinney.conformal.rules import check_coverage
from spinney.data.table import Schema, Table, read_table

__all__ = ["LearnerIntervals", "LearnerParams", "LearnerSets"]


class LearnerParams:
    """Mixin for estimators with a nested learner: ``ScaledRidge(alphas=[1.0])``.

    Parameters of the learner that the estimator does not have itself are passed on and override
    the estimator's choices. Such a parameter is an ordinary attribute, so `get_params`,
    `set_params`, `clone` and grid search support it. It exists only if it was set. The
    constructor of the estimator must accept ``**learner_params`` and call `_keep_learner_params`.
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

    def _copy_fitted_attributes(self, learner: Any) -> None:
        """Copy the learner's classes and features, and delete those of an earlier fit."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(learner, name):
                setattr(self, name, getattr(learner, name))
            elif name in vars(self):
                delattr(self, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including the learner's parameters that were set."""
        own: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        return {**own, **self._learner_params()}

    def set_params(self, **params: Any) -> Any:
        """Set parameters, including those of the learner."""
        names = self.learner_param_names()
        self._keep_learner_params({name: params[name] for name in params if name in names})
        others = {name: params[name] for name in params if name not in names}
        return super().set_params(**others)  # type: ignore[misc]


class LearnerIntervals:
    """Mixin for prediction intervals from the learner, fitted as ``estimator_``.

    The learner gets numeric columns only. This mixin estimates how the size of the errors depends
    on the categorical columns.
    """

    def _fit_group_scale(self, table: Table, schema: Schema) -> None:
        """Fit the error scales of categories to the learner's held-out rows, if available."""
        self._group_scale: GroupScale | None = None
        self._held_out: HeldOut | None = None
        learner = self.estimator_  # type: ignore[attr-defined]
        if not schema.has_categories or vars(learner).get("_errors") is None:
            return
        held = find_held_out_rows(learner)
        if held is None:
            return
        errors = np.abs(held.truth - held.predicted).reshape(len(held), -1)
        if held.rows is None or errors.shape[1] != 1:
            return
        fitted = learn_group_scale(table.take(held.rows), schema, errors[:, 0])
        if fitted is not None:
            self._group_scale, row_scale = fitted
            self._held_out = replace(held, scale=row_scale.reshape(held.truth.shape))

    def _points_of(self, X: Any) -> Any:
        """Return rows in the form that the learner expects."""
        return X

    @property
    def interval_method_(self) -> str:
        """A description of the method of the intervals."""
        groups, held = (vars(self).get(name) for name in ("_group_scale", "_held_out"))
        if groups is not None and held is not None:
            n_columns = len(groups.columns)
            units = f"in units of {n_columns} column{'' if n_columns == 1 else 's'} of categories"
            return f"conformal, {len(held):,} {held.source}, {units}"
        method: str = self.estimator_.interval_method_  # type: ignore[attr-defined]
        return method

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Any:
        """Predict intervals with the learner, scaled by the categories of a row."""
        check_is_fitted(self)
        points = self._points_of(X)
        learner = self.estimator_  # type: ignore[attr-defined]
        groups, held = (vars(self).get(name) for name in ("_group_scale", "_held_out"))
        if groups is None or held is None or method != "auto":
            return learner.predict_interval(points, coverage, method)
        coverage = check_coverage(coverage)
        predicted, scale = predict_with_scale(learner, points)
        factors = groups.of(read_table(self, X, self._schema))  # type: ignore[attr-defined]
        ends = held.interval(predicted[:, None], (scale * factors)[:, None], coverage)
        return ends.reshape(len(predicted), 2)


class LearnerSets:
    """Mixin for prediction sets from the learner, fitted as ``estimator_``."""

    def _points_of(self, X: Any) -> Any:
        """Return rows in the form that the learner expects."""
        return X

    @property
    def set_method_(self) -> str:
        """A description of the method of the prediction sets."""
        method: str = self.estimator_.set_method_  # type: ignore[attr-defined]
        return method

    def predict_set(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Any:
        """Predict sets of classes with the learner."""
        check_is_fitted(self)
        points = self._points_of(X)
        return self.estimator_.predict_set(points, coverage, method)  # type: ignore[attr-defined]
