"""Local regression for any table: scaled numbers, indicators of categories."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from spinney.comparison.scaled_table import ScaledTable
from spinney.models.nested_params import LearnerIntervals, LearnerSets
from spinney.neighbors import LocalClassifier, LocalRegression

__all__ = ["ScaledLocalClassifier", "ScaledLocalRegressor"]

_MOST_SLOPES = 60  # with more columns the local fits are constants, to save time


class _ScaledLocal(ScaledTable):
    """Local linear regression with a small ridge penalty and tricube weights.

    These parameters were good on most of a dozen tables.
    """

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return self._learner_class(
            degree=1 if n_columns <= _MOST_SLOPES else 0,
            kernel="tricube",
            n_neighbors=min(n_rows, max(50, 3 * (n_columns + 1))),
            alpha=1.0,
            n_jobs=self.n_jobs,
        )


class ScaledLocalClassifier(ClassifierMixin, _ScaledLocal, LearnerSets):  # type: ignore[misc]
    """A `spinney.neighbors.LocalClassifier` for raw tables.

    Parameters
    ----------
    max_rows : int, default=20_000
        If the table has more rows, a random sample of this size is used.
    random_state : int or None, default=None
        Seed of the sample.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        The columns of categories.

    Attributes
    ----------
    estimator_ : LocalClassifier
        The local model.
    """

    _learner_class = LocalClassifier

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities."""
        points = self.scaled_columns(X)
        return self.estimator_.predict_proba(points)


class ScaledLocalRegressor(RegressorMixin, _ScaledLocal, LearnerIntervals):  # type: ignore[misc]
    """A `spinney.neighbors.LocalRegression` for raw tables.

    Parameters
    ----------
    max_rows : int, default=20_000
        If the table has more rows, a random sample of this size is used.
    random_state : int or None, default=None
        Seed of the sample.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        The columns of categories.

    Attributes
    ----------
    estimator_ : LocalRegression
        The local model.
    """

    _learner_class = LocalRegression
