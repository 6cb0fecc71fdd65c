"""Linear models whose rows are Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from spinney import linear_model
from spinney.dask._design import read_design
from spinney.dask._model import (
    NO_HELD_OUT_ROWS,
    DaskModel,
    DecisionMixin,
    IntervalsMixin,
    LogProbabilitiesMixin,
    SetsMixin,
)
from spinney.dask._rows import Part, read_rows
from spinney.data.sklearn_versions import compute_class_weight
from spinney.linear_model.penalty import read_penalty

__all__ = ["LinearRegression", "LogisticRegression", "Ridge"]


class _NoLeaveOneOutErrors:
    """Linear models without leave-one-out errors: the rows are not in this process."""

    def _linear_errors(self) -> Any:
        if vars(self).get("_errors") is None:
            raise ValueError(NO_HELD_OUT_ROWS.format(type(self).__name__))
        return vars(self)["_errors"]


class LinearRegression(  # type: ignore[misc]
    IntervalsMixin,
    _NoLeaveOneOutErrors,
    DaskModel[linear_model.LinearRegression],
    linear_model.LinearRegression,
):
    """Least squares on rows in partitions.

    Workers sum the moments of their partitions, one number for each pair of columns. The sums are
    added in the order of the partitions. If columns are nearly collinear, each partition is
    reduced to a triangle by QR, and the triangles to one. The coefficients are therefore those of
    the local model up to rounding, and do not depend on the workers.

    Parameters and attributes are those of `spinney.linear_model.LinearRegression`, except that
    ``positive=True`` is refused.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from spinney.dask import LinearRegression
    >>> X = da.from_array(np.arange(12.0).reshape(6, 2) ** 2, chunks=(2, 2))
    >>> model = LinearRegression().fit(X, 1 + X @ np.array([0.5, -0.25]))
    >>> model.coef_.round(6)
    array([ 0.5 , -0.25])
    >>> model.predict(X).compute().round(2)[:2]
    array([0.75, 0.75])
    """

    _local_class = linear_model.LinearRegression

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets.
        sample_weight : like y, default=None
            Weights of rows.

        Returns
        -------
        LinearRegression
            The estimator.
        """
        self._validate_params()
        if self.positive:
            raise ValueError("positive=True: expected False for rows in partitions")
        design = read_design(self, read_rows(X, y, sample_weight), numeric=True)
        if design.n_rows <= design.n_features:
            self._copy_fitted_state(_fit_locally(self, design))
            return self
        self._fit_design(
            design, design.targets(), design.n_dimensions, design.dtype, design.n_weighted
        )
        return self


class Ridge(  # type: ignore[misc]
    IntervalsMixin, _NoLeaveOneOutErrors, DaskModel[linear_model.Ridge], linear_model.Ridge
):
    """Least squares with a penalty on squared coefficients, on rows in partitions.

    The computation is that of `spinney.dask.LinearRegression`. Parameters and attributes are those
    of `spinney.linear_model.Ridge`; `solver` must be "auto" or "cholesky", `positive` False.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.dask import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1).fit(da.from_array(X, chunks=(100, 10)), y)
    >>> round(model.score(X, y), 3)
    0.513
    """

    _local_class = linear_model.Ridge

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets.
        sample_weight : like y, default=None
            Weights of rows.

        Returns
        -------
        Ridge
            The estimator.
        """
        self._validate_params()
        if self.positive or self.solver not in ("auto", "cholesky"):
            raise ValueError(
                f"solver={self.solver!r}, positive={self.positive}: expected 'auto' or 'cholesky', "
                "and False, for rows in partitions"
            )
        design = read_design(self, read_rows(X, y, sample_weight), numeric=True)
        if design.n_rows <= design.n_features:
            self._copy_fitted_state(_fit_locally(self, design))
            return self
        self._fit_design(design, design.targets(), design.n_dimensions, design.dtype)
        return self


class LogisticRegression(  # type: ignore[misc]
    LogProbabilitiesMixin,
    DecisionMixin,
    SetsMixin,
    DaskModel[linear_model.LogisticRegression],
    linear_model.LogisticRegression,
):
    """Logistic regression on rows in partitions.

    Each step of Newton's method, or of L-BFGS if there are many columns, sums the loss, gradient
    and second derivatives over the partitions, in their order. The steps are those of the local
    model up to rounding.

    Parameters and attributes are those of `spinney.linear_model.LogisticRegression`; `l1_ratio`
    must be 0, and "liblinear" is not available. Without a penalty, classes that are separable
    except for rows on the boundary are not detected.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from spinney.dask import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = da.from_array(scale(X), chunks=(100, 30))
    >>> round(LogisticRegression().fit(X, y).score(X, y), 3)
    0.988
    """

    _local_class = linear_model.LogisticRegression

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Classes. A partition may lack some of them.
        sample_weight : like y, default=None
            Weights of rows.

        Returns
        -------
        LogisticRegression
            The estimator.
        """
        self._validate_params()
        self._spread: Any = None
        self.is_separated_ = False
        penalty, share = read_penalty(self)
        if share * penalty > 0 or self.solver == "liblinear" or self.dual:
            raise ValueError(
                f"l1_ratio={self.l1_ratio}, solver={self.solver!r}, dual={self.dual}: expected "
                "l1_ratio=0, a solver other than 'liblinear', and dual=False, for rows in "
                "partitions"
            )
        design = read_design(self, read_rows(X, y, sample_weight), numeric=False)
        if design.n_dimensions != 1:
            raise ValueError(f"y: expected one axis, got {design.n_dimensions}")
        self.classes_, class_totals = merge_classes(design.rows.compute(count_classes))
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        weights = None
        if self.class_weight is not None:
            weights = compute_class_weight(
                self.class_weight,
                classes=self.classes_,
                y=self.classes_,
                sample_weight=class_totals,
            )
            weights = np.where(np.isfinite(weights), weights, 0.0)
        rows = design.rows.map(encode_partition_classes, self.classes_, weights).persist()
        design = read_design(self, rows, numeric=False)
        self._fit_design(design, np.empty(0, np.int32), penalty, share, design.dtype)
        return self

    def _look_for_separation(self, objective: Any, found: Any) -> None:
        """Skip the check: it needs all rows in one process."""


def _fit_locally(estimator: Any, design: Any) -> Any:
    """Fit the local estimator in this process, for designs with few rows."""
    part = design.rows.gather()
    local = estimator._local_class(**estimator.get_params(deep=False))
    local.fit(part.X, part.y, part.weights)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in vars(estimator):
            setattr(local, name, getattr(estimator, name))
    return local


def count_classes(part: Part) -> tuple[Any, Any]:
    """Return the classes of a partition and their total weights."""
    if part.n_rows == 0:
        return None, None
    check_classification_targets(part.y)
    classes, codes = np.unique(part.y, return_inverse=True)
    return classes, np.bincount(codes.ravel(), part.weights, minlength=len(classes))


def merge_classes(counts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the classes of all partitions and their total weights."""
    counts = [of_part for of_part in counts if of_part[0] is not None]
    if not counts:
        raise ValueError("y: expected at least one row, got none in any partition")
    if len({classes.dtype.kind in "OUS" for classes, _ in counts}) > 1:
        raise ValueError("y: expected labels of one kind in all partitions, got several")
    classes = np.unique(np.concatenate([classes for classes, _ in counts]))
    totals = np.zeros(len(classes))
    for names, weights in counts:
        totals[np.searchsorted(classes, names)] += weights
    return classes, totals


def encode_partition_classes(part: Part, classes: Any, class_weights: Any) -> Part:
    """Replace labels by codes, and multiply row weights by class weights."""
    codes = np.searchsorted(classes, part.y).astype(np.int32)
    weights = part.weights
    if class_weights is not None:
        weights = class_weights[codes] if weights is None else weights * class_weights[codes]
    return Part(part.X, codes, weights, part.group)
