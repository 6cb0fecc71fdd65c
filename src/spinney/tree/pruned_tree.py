"""Decision trees with pruning as one estimator, for use in cross-validation."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spinney.models.methods import ModelMethods
from spinney.models.nested_params import LearnerParams
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["PrunedTreeClassifier", "PrunedTreeRegressor"]


class _PrunedTree(LearnerParams, ModelMethods, BaseEstimator):  # type: ignore[misc]
    """Base class: `fit` calls ``prune(X, y, cv=…)``; the pruned tree predicts."""

    def __init__(
        self,
        *,
        cv: int = 5,
        random_state: int | None = None,
        n_jobs: int | None = None,
        categorical_features: Any = "from_dtype",
        **learner_params: Any,
    ) -> None:
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.categorical_features = categorical_features
        self._keep_learner_params(learner_params)

    def _unfitted_tree(self) -> Any:
        return self._learner_class(
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            categorical_features=self.categorical_features,
            **self._learner_params(),
        )

    def fit(self, X: Any, y: Any) -> Any:
        """Grow a tree on X and y and prune it by cross-validation."""
        self.estimator_ = self._unfitted_tree().prune(X, y, cv=self.cv)
        self._copy_fitted_attributes(self.estimator_)
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the pruned tree."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner_tags = self._unfitted_tree().__sklearn_tags__()
        tags.input_tags = learner_tags.input_tags
        tags.target_tags.multi_output = learner_tags.target_tags.multi_output
        return tags


class PrunedTreeClassifier(ClassifierMixin, _PrunedTree):  # type: ignore[misc]
    """A `spinney.tree.DecisionTreeClassifier` pruned by cross-validation.

    Parameters
    ----------
    cv : int, default=5
        Number of folds for the choice of the pruning strength.
    random_state : int or None, default=None
        Seed of the tree.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Columns that hold categories, as in `spinney.tree.DecisionTreeClassifier`.

    Attributes
    ----------
    estimator_ : DecisionTreeClassifier
        The pruned tree.
    """

    _learner_class = DecisionTreeClassifier

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities with the pruned tree."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


class PrunedTreeRegressor(RegressorMixin, _PrunedTree):  # type: ignore[misc]
    """A `spinney.tree.DecisionTreeRegressor` pruned by cross-validation.

    Parameters and attributes are those of `PrunedTreeClassifier`.
    """

    _learner_class = DecisionTreeRegressor
