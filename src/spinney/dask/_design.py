"""The design of linear models over partitions, whose sums are added in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from spinney.dask._rows import DaskRows, Part
from spinney.data.sklearn_versions import check_sample_weight
from spinney.linear_model.design import Design, Floats

__all__ = ["PartitionedDesign", "PartitionedTargets", "read_design"]


@dataclass(frozen=True)
class _Summary:
    """Sizes, types and sums of one partition, computed before the other passes."""

    n_rows: int
    n_weighted: int  # rows that have weight
    dtype: Any
    n_dimensions: int  # of y
    n_targets: int
    total: float
    least_weight: float
    centre: Any
    sums: Any  # of the weighted targets


class PartitionedTargets:
    """Columns of targets whose values are in the partitions of the rows.

    Parameters
    ----------
    n_rows : int
        Number of rows of all partitions.
    columns : ndarray of int
        Indices of the targets.
    """

    def __init__(self, n_rows: int, columns: Any) -> None:
        self.columns = columns
        self.shape = (n_rows, len(columns))

    def __getitem__(self, key: tuple[Any, Any]) -> PartitionedTargets:
        assert key[0] == slice(None)
        return PartitionedTargets(self.shape[0], self.columns[key[1]])


class PartitionedDesign(Design):
    """A design whose rows are partitions.

    Parameters
    ----------
    rows : DaskRows
        The partitions, with float X, float y (or labels) and weights.
    summaries : list of _Summary
        One for each partition; none is empty.
    n_features : int
        Number of columns.
    """

    def __init__(self, rows: DaskRows, summaries: list[_Summary], n_features: int) -> None:
        self.rows, self.summaries = rows, summaries
        self.is_sparse = False
        self.weights = None
        self.n_threads = 1
        self.n_rows = sum(part.n_rows for part in summaries)
        self.n_weighted = sum(part.n_weighted for part in summaries)
        self.n_features = n_features
        self.dtype = np.result_type(*[part.dtype for part in summaries])
        self.n_dimensions = summaries[0].n_dimensions

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(sum(part.total for part in self.summaries))

    @property
    def least_weight(self) -> float:
        """The smallest weight that is not zero."""
        return min(part.least_weight for part in self.summaries)

    def targets(self) -> PartitionedTargets:
        """Return all targets."""
        return PartitionedTargets(self.n_rows, np.arange(self.summaries[0].n_targets))

    def average(self, Y: Any) -> Floats:
        """Return the means of targets."""
        sums = _add([part.sums for part in self.summaries])
        return np.asarray(sums[Y.columns] / self.total)

    def centre(self) -> Floats:
        """Return a point near the middle of the rows."""
        return _add([part.n_weighted * part.centre for part in self.summaries]) / self.n_weighted

    def farthest(self, columns: Any, points: Floats) -> Floats:
        """Return the largest distances of the values of columns from points."""
        return np.asarray(np.max(self.rows.compute(_farthest, columns, points), axis=0))

    def squares(self, centre: Floats) -> Floats:
        """Return the sums of squares of the columns about a centre."""
        return np.asarray(_add(self.rows.compute(_squares, centre)))

    def triangle(self, Y: Any, means: Floats, target_means: Floats, lengths: Floats) -> Floats:
        """Reduce each partition to a triangle by QR, then all triangles to one."""
        triangles = self.rows.compute(_triangle, Y.columns, means, target_means, lengths)
        return np.asarray(np.linalg.qr(np.vstack(triangles), mode="r"))

    def check_finite(self, estimator: Any) -> None:
        """Raise scikit-learn's error if a value is not a finite number."""
        self.rows.compute(_check_finite, type(estimator).__name__)

    def moments(self, Y: Any, centre: Floats) -> Floats:
        """Return the sum of w u u' over rows: u = (x, y, 1), with x and y centred."""
        return _add(self.rows.compute(_moments, Y.columns, centre))

    def binary(
        self, targets: Any, coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Return the logistic loss, its gradient and, with `second`, its Hessian."""
        return self._sum("binary", coefficients, centre, second)

    def multinomial(
        self, labels: Any, coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Return the multinomial loss, its gradient and, with `second`, its Hessian."""
        return self._sum("multinomial", coefficients, centre, second)

    def _sum(self, name: str, *arguments: Any) -> tuple[float, Floats, Floats]:
        sums = self.rows.compute(_logistic, name, *arguments)
        loss, gradient, hessian = (_add([of_part[k] for of_part in sums]) for k in range(3))
        return float(loss), gradient, hessian


def read_design(estimator: Any, rows: DaskRows, *, numeric: bool) -> PartitionedDesign:
    """Read numeric partitions, and set the attributes of the features.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_``.
    rows : DaskRows
        The rows.
    numeric : bool
        Whether y must be numeric.
    """
    name = type(estimator).__name__
    rows = rows.map(_read_partition, name, numeric).persist()
    summaries = rows.compute(_summarize, numeric)
    filled = [i for i, part in enumerate(summaries) if part.n_rows]
    if not filled:
        raise ValueError("X: expected at least one row, got none in any partition")
    n_features = len(summaries[filled[0]].centre)
    kept = [summaries[i] for i in filled]
    if len({(part.n_dimensions, part.n_targets) for part in kept}) > 1:
        raise ValueError("y: expected the same number of columns in all partitions")
    estimator.n_features_in_ = n_features
    vars(estimator).pop("feature_names_in_", None)
    if rows.names is not None and all(isinstance(column, str) for column in rows.names):
        estimator.feature_names_in_ = np.asarray(rows.names, dtype=object)
    design = PartitionedDesign(rows.select(filled), kept, n_features)
    if not design.total > 0:
        raise ValueError("sample_weight: expected a positive weight, got zeros only")
    return design


# --------------------------------------------------------------------- tasks of the workers


def _read_partition(part: Part, name: str, numeric: bool) -> Part:
    X = check_array(
        part.X, dtype=(np.float64, np.float32), ensure_all_finite=False, ensure_min_samples=0,
        input_name="X", estimator=name,
    )  # fmt: skip
    y = part.y
    if y is None:
        raise ValueError(f"y: {name} requires targets, got None")
    if numeric:
        y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="y"
        )  # fmt: skip
    weights = part.weights
    if weights is not None and len(X):
        # One partition may have only zero weights, but not all of them; read_design checks that.
        weights = check_sample_weight(
            weights, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=True
        )
    return Part(X, y, weights)


def _matrix(y: Any) -> Any:
    return y.reshape(len(y), -1)


def _summarize(part: Part, numeric: bool) -> _Summary:
    n_rows, n_features = part.X.shape
    if n_rows == 0:
        return _Summary(
            n_rows=0,
            n_weighted=0,
            dtype=part.X.dtype,
            n_dimensions=part.y.ndim,
            n_targets=1,
            total=0.0,
            least_weight=np.inf,
            centre=np.zeros(n_features),
            sums=None,
        )
    design = Design(part.X, part.weights)
    sums = None
    if numeric:
        Y = _matrix(part.y)
        sums = Y.sum(axis=0) if part.weights is None else part.weights @ Y
    weights = np.ones(1) if part.weights is None else part.weights[part.weights > 0]
    return _Summary(
        n_rows=n_rows,
        n_weighted=n_rows if part.weights is None else len(weights),
        dtype=part.X.dtype,
        n_dimensions=part.y.ndim,
        n_targets=_matrix(part.y).shape[1],
        total=design.total,
        least_weight=float(weights.min(initial=np.inf)),
        centre=np.array(design.centre()),
        sums=sums,
    )


def _moments(part: Part, columns: Any, centre: Floats) -> Any:
    return Design(part.X, part.weights).moments(_matrix(part.y)[:, columns], centre)


def _farthest(part: Part, columns: Any, points: Floats) -> Any:
    return Design(part.X, part.weights).farthest(columns, points)


def _squares(part: Part, centre: Floats) -> Any:
    return Design(part.X, part.weights).squares(centre)


def _triangle(part: Part, columns: Any, *arguments: Any) -> Any:
    return Design(part.X, part.weights).triangle(_matrix(part.y)[:, columns], *arguments)


def _check_finite(part: Part, name: str) -> None:
    check_array(part.X, input_name="X", estimator=name)


def _logistic(part: Part, name: str, *arguments: Any) -> Any:
    y = part.y.astype(np.float64 if name == "binary" else np.int32)
    return getattr(Design(part.X, part.weights), name)(y, *arguments)


def _add(arrays: list[Any]) -> Any:
    """Sum in the order of the partitions."""
    total = np.array(arrays[0], dtype=np.float64)
    for array in arrays[1:]:
        total = total + array
    return total
