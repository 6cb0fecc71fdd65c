"""Mixtures of Gaussians for any table: columns scaled, categories as indicators."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from spinney.comparison.scaled_table import ScaledTable
from spinney.mixture import MixtureClassifier

__all__ = ["ScaledMixtureClassifier"]

_MOST_MATRICES = 100  # with more columns the covariances are diagonal, to save time
_MOST_COMPONENTS = 6


class ScaledMixtureClassifier(ClassifierMixin, ScaledTable):  # type: ignore[misc]
    """A `spinney.mixture.MixtureClassifier` for raw tables.

    Parameters
    ----------
    max_rows : int, default=200_000
        If the table has more rows, a random sample of this size is used.
    random_state : int or None, default=None
        Seed of the sample.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        The columns of categories.

    Attributes
    ----------
    estimator_ : MixtureClassifier
        The mixtures.
    """

    def __init__(
        self,
        *,
        max_rows: int = 200_000,
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

    _learner_class = MixtureClassifier

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return MixtureClassifier(
            covariance_type="bic" if n_columns <= _MOST_MATRICES else "diag",
            max_components=_MOST_COMPONENTS,
            n_jobs=self.n_jobs,
        )

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities."""
        points = self.scaled_columns(X)
        return self.estimator_.predict_proba(points)
