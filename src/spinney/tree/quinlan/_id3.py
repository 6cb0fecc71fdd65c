"""ID3: multiway trees on categories, split by information gain."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import HasMethods, Interval

from spinney import _core
from spinney.data.table import Schema, Table
from spinney.tree.export.describe import format_short
from spinney.tree.quinlan._quinlan import QuinlanTree

__all__ = ["ID3Classifier"]


class ID3Classifier(QuinlanTree):
    """Quinlan's ID3, a simple tree for teaching.

    Each node splits on the categorical column with the largest information gain and has a branch
    for each category. A path splits on a column at most once. A branch without rows predicts as
    its parent. There is no pruning: the tree grows until its leaves are pure or all columns are
    used.

    Parameters
    ----------
    discretizer : int, transformer or None, default=None
        How numeric columns become categories. An int: the number of intervals, with about equally
        many rows each. A transformer (such as scikit-learn's ``KBinsDiscretizer`` with
        ``encode="ordinal"``): it transforms the numeric columns to one column for each. None:
        numeric columns raise an error.
    max_depth : int, default=None
        Largest depth; None means no limit.
    min_gain : float, default=0.0
        Smallest information gain of a split, in bits. With 0, columns without any gain are used
        too, which is necessary to learn a parity function.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns: "from_dtype" selects columns of strings or of a categorical dtype;
        otherwise a mask, indices or names.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        Called during fit with (rows in finished leaves, all rows).

    Attributes
    ----------
    tree_ : MultiwayTree
        The nodes.
    categories_ : list of ndarray
        The categories of each column; intervals as text where it was numeric.
    classes_, n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total information gain.

    See Also
    --------
    C45Classifier : The successor of ID3, with numeric columns, missing values and pruning.
    information_gain : The gains of all columns.

    Notes
    -----
    A missing value is one more category. For a category unseen in fit, the node that splits on
    the column predicts.

    References
    ----------
    Quinlan, Induction of decision trees, Machine Learning 1, 1986.

    Examples
    --------
    >>> from spinney.datasets import load_play_tennis
    >>> from spinney.tree import ID3Classifier
    >>> tennis = load_play_tennis(as_frame=True)
    >>> model = ID3Classifier().fit(tennis.data, tennis.target)
    >>> model.feature_names_in_[model.tree_.feature[0]]
    'outlook'
    >>> bool(model.score(tennis.data, tennis.target) == 1.0)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **QuinlanTree._parameter_constraints,
        "discretizer": [
            None,
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["fit", "transform"]),
        ],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_gain": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        discretizer: Any = None,
        max_depth: int | None = None,
        min_gain: float = 0.0,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.discretizer = discretizer
        self.max_depth = max_depth
        self.min_gain = min_gain
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def _options(self, n_threads: int = 1) -> Any:
        return _core.QuinlanOptions(
            gain_ratio=False,
            missing_is_category=True,
            min_samples_branch=0.0,
            min_gain=float(self.min_gain),
            collapse=False,
            prune=False,
            max_depth=0 if self.max_depth is None else int(self.max_depth),
            n_threads=n_threads,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ID3Classifier:
        """Grow the tree.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: categories, or numbers with a `discretizer`.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights. A weight of 2 equals repeating the row.

        Returns
        -------
        ID3Classifier
            Itself.
        """
        self._fit(X, y, sample_weight)
        return self

    def _numbers(
        self, table: Table, schema: Schema
    ) -> tuple[list[int], list[Any], NDArray[np.float64]]:
        """Return the indices of the numeric columns, all columns, and the numeric matrix."""
        numeric = [f for f, values in enumerate(schema.categories) if values is None]
        if numeric and self.discretizer is None:
            name = numeric[0] if schema.names is None else schema.names[numeric[0]]
            raise ValueError(
                f"column {name!r}: expected categories, got numbers; set the discretizer of "
                "ID3Classifier or add the column to categorical_features"
            )
        columns = list(table.columns or ()) if table.matrix is None else list(table.matrix.T)
        matrix = np.empty((table.n_rows, len(numeric)))
        for j, f in enumerate(numeric):
            matrix[:, j] = columns[f]
        return numeric, columns, matrix

    def _fit_discretizer(self, table: Table, schema: Schema, weights: Any) -> None:
        """Choose the intervals of numeric columns."""
        _, _, numbers = self._numbers(table, schema)
        self._edges: list[Any] = []
        self._intervals: list[Any] = []
        if weights is None:
            weights = np.ones(len(numbers))
        if numbers.shape[1] == 0:
            return
        if not isinstance(self.discretizer, Integral):
            self.discretizer_ = clone(self.discretizer).fit(numbers[weights > 0])
            for column in self._transformed(numbers).T:
                known = np.unique(column[~np.isnan(column)])
                self._edges.append(known)
                self._intervals.append(np.array([f"bin {format_short(v)}" for v in known]))
            return
        for column in numbers.T:
            edges = _quantiles(column, weights, int(self.discretizer))
            self._edges.append(edges)
            ends = [format_short(edge) for edge in edges]
            if len(set(ends)) < len(ends):
                ends = [repr(float(edge)) for edge in edges]
            names = [f"{a} to {b}" for a, b in pairwise(ends)]
            named = [f"<= {ends[0]}", *names, f"> {ends[-1]}"] if ends else ["any number"]
            self._intervals.append(np.array(named))

    def _discretize(self, table: Table, schema: Schema) -> tuple[Table, Schema]:
        """Replace numeric columns by the codes of their intervals."""
        numeric, columns, numbers = self._numbers(table, schema)
        if not numeric:
            return table, schema
        codes = self._transform(numbers)
        categories: list[Any] = list(schema.categories)
        for j, f in enumerate(numeric):
            columns[f] = codes[j]
            categories[f] = self._intervals[j]
        coded = Table(table.n_rows, table.n_features, columns=columns)
        return coded, Schema(schema.names, tuple(categories))

    def _transformed(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.asarray(self.discretizer_.transform(numbers), dtype=np.float64)
        if out.shape != numbers.shape:
            raise ValueError(
                f"discretizer: expected one column for each of {numbers.shape[1]}, got an array of "
                f"shape {out.shape}"
            )
        return out

    def _transform(self, numbers: NDArray[np.float64]) -> list[NDArray[np.int32]]:
        codes = []
        if not isinstance(self.discretizer, Integral):
            for column, known in zip(self._transformed(numbers).T, self._edges, strict=True):
                at = np.minimum(np.searchsorted(known, column), max(len(known) - 1, 0))
                hit = (known[at] == column) if len(known) else np.zeros(len(column), dtype=bool)
                codes.append(np.where(hit, at, -1).astype(np.int32))
            return codes
        for column, edges in zip(numbers.T, self._edges, strict=True):
            at = np.searchsorted(edges, column, side="left")
            codes.append(np.where(np.isnan(column), -1, at).astype(np.int32))
        return codes


def _quantiles(column: Any, weights: Any, n_parts: int) -> NDArray[np.float64]:
    """Return the edges that divide a column into intervals of about equal weight."""
    known = ~np.isnan(column) & (weights > 0)
    order = np.argsort(column[known], kind="stable")
    values, sums = column[known][order], np.cumsum(weights[known][order])
    if len(values) == 0:
        return np.empty(0)
    shares = np.arange(1, n_parts) / n_parts
    at = np.searchsorted(sums, shares * sums[-1] * (1 - 1e-12))
    edges = np.unique(values[np.minimum(at, len(values) - 1)])
    return np.asarray(edges[edges < values[-1]])
