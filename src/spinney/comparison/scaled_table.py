"""Numeric learners for any table.

Numbers are scaled, categories become indicators, and missing values are set to the mean.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spinney.data.rows import take_rows
from spinney.data.table import Table, fit_table, read_table
from spinney.models.methods import ModelMethods
from spinney.models.nested_params import LearnerIntervals, LearnerParams

__all__ = ["ScaledTable", "target_array"]

_MOST_INDICATORS = 20  # per column, for its most frequent categories


def target_array(y: Any) -> NDArray[Any]:
    """Return the target as an array; raise ValueError if it is None."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    return np.asarray(y)


class ScaledTable(LearnerParams, ModelMethods, BaseEstimator):  # type: ignore[misc]
    """Base class of learners on scaled columns; not for direct use."""

    def __init__(
        self,
        *,
        max_rows: int = 20_000,
        random_state: int | None = None,
        n_jobs: int | None = None,
        categorical_features: Any = "from_dtype",
        **learner_params: Any,
    ) -> None:
        self.max_rows = max_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.categorical_features = categorical_features
        self._keep_learner_params(learner_params)

    @abstractmethod
    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        """Create the learner."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the rows, or a random sample of `max_rows` of them."""
        y = target_array(y)
        if len(y) > self.max_rows:
            random = np.random.default_rng(self.random_state)
            rows = np.sort(random.choice(len(y), self.max_rows, replace=False))
            X, y = take_rows(X, rows), y[rows]
        table, self._schema = fit_table(self, X, y, categorical_features=self.categorical_features)
        self._learn_scales(table)
        points = self._points(table)
        learner = self._unfitted(*points.shape).set_params(**self._learner_params())
        self.estimator_ = self._fit_learner(learner, points, y)
        if isinstance(self, LearnerIntervals):
            self._fit_group_scale(table, self._schema)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _fit_learner(self, learner: Any, points: NDArray[np.float64], y: Any) -> Any:
        return learner.fit(points, y)

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

    def point_names(self) -> list[str]:
        """Return the names of the scaled columns: a column, or ``column=category``."""
        check_is_fitted(self)
        names = self._schema.names
        out: list[str] = []
        for f, scale in enumerate(self._scales):
            name = f"column {f}" if names is None else str(names[f])
            categories = self._schema.categories[f]
            if categories is None:
                out.append(name)
            else:
                known = [code for code in scale if code < len(categories)]
                out += [f"{name}={categories[code]}" for code in known]
                out += [f"{name}=?"] * (len(scale) - len(known))  # a column without a value
        return out

    def scaled_columns(self, X: Any) -> NDArray[np.float64]:
        """Return rows in the form that the learner expects: scaled numbers and indicators."""
        check_is_fitted(self)
        return self._points(read_table(self, X, self._schema))

    def column_widths(self) -> list[int]:
        """Return the number of scaled columns of each column."""
        return [1 if isinstance(scale, tuple) else len(scale) for scale in self._scales]

    def is_numeric(self) -> list[bool]:
        """Return for each column whether it is numeric, not categorical."""
        return [isinstance(scale, tuple) for scale in self._scales]

    def _points_of(self, X: Any) -> NDArray[np.float64]:
        return self.scaled_columns(X)

    def predict(self, X: Any) -> Any:
        """Predict from the scaled table."""
        points = self.scaled_columns(X)
        return self.estimator_.predict(points)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        learner_tags = self._learner_class().__sklearn_tags__()
        tags.target_tags.multi_output = learner_tags.target_tags.multi_output
        return tags


def _columns(table: Table) -> list[Any]:
    if table.columns is not None:
        return list(table.columns)
    return list(table.to_matrix().T)
