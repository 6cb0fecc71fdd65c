"""The passes of linear models over partitions: each sums its own rows, sums are added in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array

from spinney.dask._rows import Part, Rows
from spinney.linear_model.design import Design, Floats

__all__ = ["PartitionedDesign", "PartitionedTargets", "read_design"]


@dataclass(frozen=True)
class _Facts:
    """What the workers tell about a part before anything is summed."""

    n_rows: int
    n_weighted: int  # rows that have weight
    dtype: Any
    n_dimensions: int  # of y
    n_targets: int
    total: float
    least_weight: float
    centre: Any
    sums: Any  # of the targets, each times its weight


class PartitionedTargets:
    """Some columns of targets that lie beside partitions of rows.

    Parameters
    ----------
    n_rows : int
        Of all partitions.
    columns : ndarray of int
        Which targets.
    """

    def __init__(self, n_rows: int, columns: Any) -> None:
        self.columns = columns
        self.shape = (n_rows, len(columns))

    def __getitem__(self, where: tuple[Any, Any]) -> PartitionedTargets:
        assert where[0] == slice(None)
        return PartitionedTargets(self.shape[0], self.columns[where[1]])


class PartitionedDesign(Design):
    """A design whose rows are partitions.

    Parameters
    ----------
    rows : Rows
        The parts, with float X, float y of two axes (or labels) and weights.
    facts : list of _Facts
        Of each part; none is empty.
    n_features : int
        Columns.
    """

    def __init__(self, rows: Rows, facts: list[_Facts], n_features: int) -> None:
        self.rows, self.facts = rows, facts
        self.is_sparse = False
        self.weights = None
        self.n_threads = 1
        self.n_rows = sum(one.n_rows for one in facts)
        self.n_weighted = sum(one.n_weighted for one in facts)
        self.n_features = n_features
        self.dtype = np.result_type(*[one.dtype for one in facts])
        self.n_dimensions = facts[0].n_dimensions

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(sum(one.total for one in self.facts))

    @property
    def least_weight(self) -> float:
        """The smallest weight that is not zero."""
        return min(one.least_weight for one in self.facts)

    def targets(self) -> PartitionedTargets:
        """All targets."""
        return PartitionedTargets(self.n_rows, np.arange(self.facts[0].n_targets))

    def average(self, Y: Any) -> Floats:
        """Means of targets."""
        sums = _add([one.sums for one in self.facts])
        return np.asarray(sums[Y.columns] / self.total)

    def centre(self) -> Floats:
        """A point in the middle of the rows, roughly."""
        return _add([one.n_weighted * one.centre for one in self.facts]) / self.n_weighted

    def farthest(self, columns: Any, points: Floats) -> Floats:
        """How far the values of some columns are from a point at most."""
        return np.asarray(np.max(self.rows.ask(_farthest, columns, points), axis=0))

    def squares(self, centre: Floats) -> Floats:
        """Sums of squares of the columns about a centre."""
        return np.asarray(_add(self.rows.ask(_squares, centre)))

    def triangle(self, Y: Any, means: Floats, target_means: Floats, lengths: Floats) -> Floats:
        """Reduce the rows of each part to a triangle, then all triangles to one."""
        told = self.rows.ask(_triangle, Y.columns, means, target_means, lengths)
        return np.asarray(np.linalg.qr(np.vstack(told), mode="r"))

    def check_finite(self, estimator: Any) -> None:
        """Raise scikit-learn's error if there is something that is not a finite number."""
        self.rows.ask(_check_finite, type(estimator).__name__)

    def moments(self, Y: Any, centre: Floats) -> Floats:
        """Sums of w u u' over rows, u = (x, y, 1), x and y less their centre."""
        return _add(self.rows.ask(_moments, Y.columns, centre))

    def binary(
        self, targets: Any, coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Logistic loss, its gradient and, if asked for, its second derivatives."""
        return self._sum("binary", coefficients, centre, second)

    def multinomial(
        self, labels: Any, coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Multinomial loss."""
        return self._sum("multinomial", coefficients, centre, second)

    def _sum(self, name: str, *arguments: Any) -> tuple[float, Floats, Floats]:
        told = self.rows.ask(_logistic, name, *arguments)
        loss, gradient, hessian = (_add([one[k] for one in told]) for k in range(3))
        return float(loss), gradient, hessian


def read_design(estimator: Any, rows: Rows, *, numeric: bool) -> PartitionedDesign:
    """Read partitions of numbers, and set what scikit-learn sets.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_``.
    rows : Rows
        The rows.
    numeric : bool
        Whether y must be numbers.
    """
    name = type(estimator).__name__
    rows = rows.change(_read_part, name, numeric).keep()
    facts = rows.ask(_facts, numeric)
    filled = [i for i, one in enumerate(facts) if one.n_rows]
    if not filled:
        raise ValueError("X: expected at least one row, got none in any partition")
    n_features = len(facts[filled[0]].centre)
    kept = [facts[i] for i in filled]
    if len({(one.n_dimensions, one.n_targets) for one in kept}) > 1:
        raise ValueError("y: expected the same number of columns in all partitions")
    estimator.n_features_in_ = n_features
    vars(estimator).pop("feature_names_in_", None)
    if rows.names is not None and all(isinstance(column, str) for column in rows.names):
        estimator.feature_names_in_ = np.asarray(rows.names, dtype=object)
    design = PartitionedDesign(rows.take(filled), kept, n_features)
    if not design.total > 0:
        raise ValueError("sample_weight: expected a positive weight, got zeros only")
    return design


# --------------------------------------------------------------------- what workers are asked


def _read_part(part: Part, name: str, numeric: bool) -> Part:
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
        # Weights of one partition may all be zero, those of all partitions may not.
        weights = _check_sample_weight(
            weights, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=True
        )
    return Part(X, y, weights)


def _matrix(y: Any) -> Any:
    return y.reshape(len(y), -1)


def _facts(part: Part, numeric: bool) -> _Facts:
    n_rows, n_features = part.X.shape
    if n_rows == 0:
        return _Facts(0, 0, part.X.dtype, part.y.ndim, 1, 0.0, np.inf, np.zeros(n_features), None)
    design = Design(part.X, part.weights)
    sums = None
    if numeric:
        Y = _matrix(part.y)
        sums = Y.sum(axis=0) if part.weights is None else part.weights @ Y
    weights = np.ones(1) if part.weights is None else part.weights[part.weights > 0]
    return _Facts(
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


def _triangle(part: Part, columns: Any, *more: Any) -> Any:
    return Design(part.X, part.weights).triangle(_matrix(part.y)[:, columns], *more)


def _check_finite(part: Part, name: str) -> None:
    check_array(part.X, input_name="X", estimator=name)


def _logistic(part: Part, name: str, *arguments: Any) -> Any:
    y = part.y.astype(np.float64 if name == "binary" else np.int32)
    return getattr(Design(part.X, part.weights), name)(y, *arguments)


def _add(arrays: list[Any]) -> Any:
    """Sum in the order of the parts."""
    total = np.array(arrays[0], dtype=np.float64)
    for array in arrays[1:]:
        total = total + array
    return total
