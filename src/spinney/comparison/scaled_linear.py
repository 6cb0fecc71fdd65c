"""Linear models for any table: scaled numbers, indicators of categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from threadpoolctl import threadpool_limits

from spinney.comparison.scaled_table import ScaledTable
from spinney.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeCV
from spinney.models.nested_params import LearnerIntervals

__all__ = [
    "ScaledLinearRegression",
    "ScaledLogisticRegression",
    "ScaledPerceptron",
    "ScaledRidge",
]


_SOME_COLUMNS = 100  # with fewer columns, the change to one thread costs more than it saves
_FEW_PRODUCTS = 5e9  # rows times squared columns: about a second on one thread


class _ScaledLinear(ScaledTable):
    """A linear model on scaled columns.

    Parameters
    ----------
    max_rows : int, default=1_000_000
        If the table has more rows, a random sample of this size is used.
    random_state : int or None, default=None
        Seed of the sample and of the model.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        The columns of categories.

    Attributes
    ----------
    estimator_ : object
        The linear model.
    """

    def __init__(
        self,
        *,
        max_rows: int = 1_000_000,
        random_state: int | None = None,
        n_jobs: int | None = None,
        categorical_features: Any = "from_dtype",
        **learner_params: Any,
    ) -> None:
        super().__init__(
            max_rows=max_rows,
            random_state=random_state,
            n_jobs=n_jobs,
            categorical_features=categorical_features,
            **learner_params,
        )

    def _fit_learner(self, learner: Any, points: Any, y: Any) -> Any:
        # Factorisations of some hundred columns hardly profit from BLAS threads. These wait in busy
        # loops: next to other work the fit takes ten times as long.
        n_rows, n_columns = points.shape
        if n_columns < _SOME_COLUMNS or n_rows * float(n_columns) ** 2 > _FEW_PRODUCTS:
            return learner.fit(points, y)
        with threadpool_limits(limits=1, user_api="blas"):
            return learner.fit(points, y)


class ScaledLinearRegression(RegressorMixin, _ScaledLinear, LearnerIntervals):  # type: ignore[misc]
    """Least squares for raw tables."""

    _learner_class = LinearRegression

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return LinearRegression(n_jobs=self.n_jobs)


class ScaledRidge(RegressorMixin, _ScaledLinear, LearnerIntervals):  # type: ignore[misc]
    """Ridge regression for raw tables, the penalty chosen by leave-one-out."""

    _learner_class = RidgeCV

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return RidgeCV(alphas=np.logspace(-3, 5, 17), n_jobs=self.n_jobs)


class ScaledLogisticRegression(ClassifierMixin, _ScaledLinear):  # type: ignore[misc]
    """Logistic regression for raw tables."""

    _learner_class = LogisticRegression

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return LogisticRegression(max_iter=1000, n_jobs=self.n_jobs)

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities."""
        points = self.scaled_columns(X)
        return self.estimator_.predict_proba(points)


class ScaledPerceptron(ClassifierMixin, _ScaledLinear):  # type: ignore[misc]
    """The averaged perceptron for raw tables."""

    _learner_class = Perceptron

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return Perceptron(variant="average", random_state=self.random_state, n_jobs=self.n_jobs)
