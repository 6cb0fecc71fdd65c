"""Local regression for any table: numbers scaled, categories as indicators, gaps at the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spinney._table import Table, fit_table, read_table
from spinney.neighbors import LocalClassifier, LocalRegression
from spinney.report.rows import take_rows

__all__ = ["ScaledLocalClassifier", "ScaledLocalRegressor"]

_MOST_INDICATORS = 20  # of a column: its commonest categories
_MOST_SLOPES = 60  # beyond so many columns the fits are constants: slopes would cost too much


class _ScaledLocal(BaseEstimator):  # type: ignore[misc]
    """A plane at each place, with a little ridge, over rows weighted by tricube.

    Parameters are those that were good on most of a dozen tables; `LocalRegression` has them all.
    """

    _local_class: type[Any]

    def __init__(
        self,
        *,
        max_rows: int = 20_000,
        random_state: int | None = None,
        n_jobs: int | None = None,
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.max_rows = max_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.categorical_features = categorical_features

    def fit(self, X: Any, y: Any) -> Any:
        """Keep the rows, or some drawn by chance where there are more than `max_rows`."""
        y = np.asarray(y)
        if len(y) > self.max_rows:
            random = np.random.default_rng(self.random_state)
            rows = np.sort(random.choice(len(y), self.max_rows, replace=False))
            X, y = take_rows(X, rows), y[rows]
        table, self._schema = fit_table(self, X, y, categorical_features=self.categorical_features)
        self._learn_scales(table)
        points = self._points(table)
        n_columns = points.shape[1]
        self.estimator_ = self._local_class(
            degree=1 if n_columns <= _MOST_SLOPES else 0,
            kernel="tricube",
            n_neighbors=min(len(y), max(50, 3 * (n_columns + 1))),
            alpha=1.0,
            n_jobs=self.n_jobs,
        ).fit(points, y)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _learn_scales(self, table: Table) -> None:
        self._scales: list[Any] = []
        for f, column in enumerate(_columns(table)):
            if self._schema.categories[f] is not None:
                counts = np.bincount(column[column >= 0], minlength=1)
                common = np.argsort(-counts, kind="stable")[:_MOST_INDICATORS]
                self._scales.append(np.sort(common))
                continue
            known = column[~np.isnan(column)].astype(np.float64)
            mean = float(known.mean()) if len(known) else 0.0
            spread = float(known.std()) if len(known) else 0.0
            self._scales.append((mean, spread if spread > 0 else 1.0))

    def _points(self, table: Table) -> NDArray[np.float64]:
        parts = []
        for scale, column in zip(self._scales, _columns(table), strict=True):
            if isinstance(scale, tuple):
                mean, spread = scale
                parts.append(np.nan_to_num((column.astype(np.float64) - mean) / spread)[:, None])
            else:
                parts.append((column[:, None] == scale[None, :]).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def _read(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._points(read_table(self, X, self._schema))

    def predict(self, X: Any) -> Any:
        """Predict from a fit at each place."""
        points = self._read(X)
        return self.estimator_.predict(points)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _columns(table: Table) -> list[Any]:
    if table.columns is not None:
        return list(table.columns)
    return list(table.to_matrix().T)


class ScaledLocalClassifier(ClassifierMixin, _ScaledLocal):  # type: ignore[misc]
    """A `spinney.neighbors.LocalClassifier` for tables as they come.

    Parameters
    ----------
    max_rows : int, default=20_000
        Of more rows than that so many are drawn and kept.
    random_state : int or None, default=None
        Seed of that draw.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Which columns hold categories.

    Attributes
    ----------
    estimator_ : LocalClassifier
        What fits at each place.
    """

    _local_class = LocalClassifier

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes."""
        points = self._read(X)
        return self.estimator_.predict_proba(points)


class ScaledLocalRegressor(RegressorMixin, _ScaledLocal):  # type: ignore[misc]
    """A `spinney.neighbors.LocalRegression` for tables as they come.

    Parameters
    ----------
    max_rows : int, default=20_000
        Of more rows than that so many are drawn and kept.
    random_state : int or None, default=None
        Seed of that draw.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Which columns hold categories.

    Attributes
    ----------
    estimator_ : LocalRegression
        What fits at each place.
    """

    _local_class = LocalRegression
