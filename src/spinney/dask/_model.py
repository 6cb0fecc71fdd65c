"""The base class of all estimators on Dask: lazy predictions and conversion to local models."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.rules import check_coverage
from spinney.dask._cluster import import_dask
from spinney.dask._rows import (
    DaskRows,
    Part,
    as_collection,
    is_dask,
    is_path,
    join_partitions,
    read_rows,
)
from spinney.model_file.files import save

__all__ = [
    "NO_HELD_OUT_ROWS",
    "DaskModel",
    "DecisionMixin",
    "InMemoryMixin",
    "IntervalsMixin",
    "LeavesMixin",
    "LogProbabilitiesMixin",
    "OutputForm",
    "ProbabilitiesMixin",
    "QuantilesMixin",
    "SetsMixin",
    "gather_calibration",
    "lazy_predictions",
    "predict_block",
    "to_pandas",
]

Local = TypeVar("Local")

NO_HELD_OUT_ROWS = (
    "{}: models fitted on several workers hold out no rows to estimate their errors from; pass "
    "held-out rows as calibration=(X, y)"
)
_PROBABILITY_METHODS = ("predict_proba", "predict_log_proba")
_INTERVAL_METHODS = ("predict_interval", "predict_quantiles")

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class OutputForm:
    """The form of a method's predictions.

    Parameters
    ----------
    method : str
        The method; also the name of a series of predictions.
    shape : tuple of int
        Shape of the prediction for one row: () for one number.
    dtype : dtype
        Type of the predictions.
    columns : list or None, default=None
        Column names of a frame of predictions; None means numbers.
    classes : ndarray or None, default=None
        The classes that predictions are taken from, which determine the pandas type.
    """

    method: str
    shape: Shape
    dtype: Any
    columns: list[Any] | None = None
    classes: Any = None


class DaskModel(Generic[Local]):
    """The base class of estimators on Dask, to be listed before the local class.

    An estimator has the parameters and, once fitted, the attributes of the local class. Predictions
    for Dask collections are lazy Dask collections. For other rows they are those of the local
    estimator.
    """

    _local_class: Any

    def to_local(self) -> Local:
        """Return the fitted model as an estimator that does not use Dask.

        Returns
        -------
        estimator
            An instance of the class with the same name outside `spinney.dask`.
        """
        check_is_fitted(self)
        local = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        vars(local).update({k: v for k, v in vars(self).items() if not k.startswith("_dask")})
        return local  # type: ignore[no-any-return]

    def _held_out_rows(self) -> Any:
        """Return the held-out rows, or raise an error that asks for calibration rows."""
        try:
            return super()._held_out_rows()  # type: ignore[misc]
        except ValueError:
            raise ValueError(NO_HELD_OUT_ROWS.format(type(self).__name__)) from None

    def _copy_fitted_state(self, local: Any) -> None:
        """Replace the fitted attributes by those of a local estimator."""
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name in [name for name in vars(self) if name not in parameters]:
            delattr(self, name)
        for name, value in vars(local).items():
            if name not in parameters:
                setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the local model to a file, as `spinney.save` does.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced when all is written.
        """
        save(self.to_local(), path)

    def predict(self, X: Any) -> Any:
        """Predict.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or series, or ndarray
            Predictions of the local estimator; lazy for Dask collections.
        """
        return self._call_local("predict", X)

    def _call_local(self, method: str, X: Any, *arguments: Any) -> Any:
        """Call a method of the local model, lazily if X is a Dask collection or a path."""
        local: Any = self.to_local()
        if not (is_path(X) or is_dask(X)):
            return getattr(local, method)(X, *arguments)
        X = as_collection(X, known_columns=getattr(self, "feature_names_in_", None))
        if method in _PROBABILITY_METHODS and getattr(self, "n_outputs_", 1) > 1:
            return self._predict_outputs(method, X, local)
        predict = partial(_call_method, local, method, arguments)
        return lazy_predictions(X, predict, self._output_form(method, *arguments))

    def _predict_outputs(self, method: str, X: Any, local: Any) -> list[Any]:
        """Return the probabilities of each output, from one pass through the trees."""
        sizes = [len(classes) for classes in self.classes_]  # type: ignore[attr-defined]
        width = sum(sizes)
        predict = partial(_call_method, local, method, ())
        form = OutputForm(method, (width,), np.dtype(np.float64), list(range(width)))
        joined = lazy_predictions(X, predict, form)
        outputs = []
        for k, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
            columns = list(range(end - size, end))
            if hasattr(X, "columns"):
                names = dict(zip(columns, self.classes_[k], strict=True))  # type: ignore[attr-defined]
                outputs.append(joined[columns].rename(columns=names))
            else:
                outputs.append(joined[:, columns[0] : columns[-1] + 1])
        return outputs

    def _output_form(self, method: str, *arguments: Any) -> OutputForm:
        """Return the form of the predictions of a method with these arguments."""
        return OutputForm(
            method,
            shape=self._output_shape(method, *arguments),
            dtype=self._output_dtype(method),
            columns=self._output_columns(method, *arguments),
            classes=self._output_classes(method),
        )

    def _output_shape(self, method: str, *arguments: Any) -> Shape:
        """Return the shape of the prediction for one row."""
        if method in _PROBABILITY_METHODS or method == "predict_set":
            return (len(self.classes_),)  # type: ignore[attr-defined]
        if method == "apply":
            n_trees = len(vars(self)["_model"].store)
            n_each = getattr(vars(self)["_model"], "trees_per_round", 1)
            return (n_trees,) if n_each == 1 else (n_trees // n_each, n_each)
        levels = getattr(vars(self).get("_model"), "levels", ())  # several quantiles
        if method in _INTERVAL_METHODS:
            n_ends = 2 if method == "predict_interval" else len(np.atleast_1d(arguments[0]))
            return (n_ends,) if levels else (*self._output_shape("predict"), n_ends)
        if levels and method == "predict":
            return (len(levels),)
        if method == "decision_function" and is_classifier(self):
            n_classes = len(self.classes_)  # type: ignore[attr-defined]
            return (n_classes,) if n_classes > 2 else ()
        n_outputs = getattr(self, "n_outputs_", 1)
        coef = getattr(self, "coef_", None)
        if coef is not None and not is_classifier(self) and np.ndim(coef) == 2:
            return (len(coef),)
        return (n_outputs,) if n_outputs > 1 else ()

    def _output_dtype(self, method: str) -> Any:
        if method == "predict" and is_classifier(self):
            classes: Any = self.classes_  # type: ignore[attr-defined]
            # Several outputs have a type each; the local model predicts in that of the first.
            return (classes[0] if isinstance(classes, list) else classes).dtype
        dtypes: dict[str, Any] = {"predict_set": np.bool_, "apply": np.int64}
        return np.dtype(dtypes.get(method, np.float64))

    def _output_classes(self, method: str) -> Any:
        """Return the classes that predictions are taken from; None for regression."""
        if method != "predict" or not is_classifier(self):
            return None
        classes: Any = self.classes_  # type: ignore[attr-defined]
        return np.concatenate(classes) if isinstance(classes, list) else classes

    def _output_columns(self, method: str, *arguments: Any) -> list[Any] | None:
        """Return the column names of a frame of predictions; None means numbers."""
        if method in _PROBABILITY_METHODS or method == "predict_set":
            return list(self.classes_)  # type: ignore[attr-defined]
        if method == "predict_interval":
            return ["lower", "upper"]
        return np.atleast_1d(arguments[0]).tolist() if method == "predict_quantiles" else None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions as the local estimator does: accuracy, or R².

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            True targets or classes.
        sample_weight : like y, default=None
            Weights of rows.

        Returns
        -------
        float
            The score.
        """
        predicted = self._predict_partitions(read_rows(X, y, sample_weight))
        local: Any = self.to_local()
        local.predict = lambda _: predicted.X
        return float(local.score(predicted.X, predicted.y, predicted.weights))

    def _predict_partitions(self, rows: DaskRows) -> Part:
        """Gather predictions instead of X, with targets, weights and groups."""
        predicted = rows.compute(_predict_partition, self.to_local())
        if not any(part.n_rows for part in predicted):
            raise ValueError("X: expected at least one row, got none")
        return join_partitions(predicted)


class ProbabilitiesMixin:
    """Lazy class probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            One column for each of ``classes_``; lazy for Dask collections. A list if there are
            several outputs.
        """
        return self._call_local("predict_proba", X)  # type: ignore[attr-defined]


class LogProbabilitiesMixin(ProbabilitiesMixin):
    """Lazy class probabilities and their logarithms."""

    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            One column for each of ``classes_``; lazy for Dask collections. A list if there are
            several outputs.
        """
        return self._call_local("predict_log_proba", X)  # type: ignore[attr-defined]


class DecisionMixin:
    """Lazy decision functions."""

    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the local estimator.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array, series or data frame, or ndarray
            Like those of the local estimator; lazy for Dask collections.
        """
        return self._call_local("decision_function", X)  # type: ignore[attr-defined]


class LeavesMixin:
    """Lazy leaf indices."""

    def apply(self, X: Any) -> Any:
        """Return the index of the leaf that each row falls into, in each tree.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            Like those of the local estimator; lazy for Dask collections.
        """
        return self._call_local("apply", X)  # type: ignore[attr-defined]


class IntervalsMixin:
    """Lazy prediction intervals."""

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Any:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        coverage, method : object
            Like those of the local estimator.
        calibration : tuple (X, y), default=None
            Held-out rows and their targets, whose errors determine the intervals. Some hundred
            rows suffice; Dask collections are gathered in this process.

        Returns
        -------
        Dask array or data frame, or ndarray
            Lower and upper ends; lazy for Dask collections.
        """
        calibration = gather_calibration(calibration)
        if not (is_path(X) or is_dask(X)):
            return super().predict_interval(X, coverage, method, calibration)  # type: ignore[misc]
        check_coverage(coverage)
        if calibration is None and not hasattr(self, "predict_quantiles"):
            self._held_out_rows()  # type: ignore[attr-defined]
        return self._call_local(  # type: ignore[attr-defined]
            "predict_interval", X, coverage, method, calibration
        )


class SetsMixin:
    """Lazy prediction sets."""

    def predict_set(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Any:
        """Predict a set of classes that holds the right one with the given probability.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        coverage, method : object
            Like those of the local estimator.
        calibration : tuple (X, y), default=None
            Held-out rows and their classes, which determine the sets. Some hundred rows suffice;
            Dask collections are gathered in this process.

        Returns
        -------
        Dask array or data frame, or ndarray
            Whether each of ``classes_`` is in the set; lazy for Dask collections.
        """
        calibration = gather_calibration(calibration)
        if not (is_path(X) or is_dask(X)):
            return super().predict_set(X, coverage, method, calibration)  # type: ignore[misc]
        check_coverage(coverage)
        if calibration is None:
            self._held_out_rows()  # type: ignore[attr-defined]
        return self._call_local(  # type: ignore[attr-defined]
            "predict_set", X, coverage, method, calibration
        )


class QuantilesMixin:
    """Lazy quantiles."""

    def predict_quantiles(self, X: Any, q: Any = (0.05, 0.5, 0.95)) -> Any:
        """Predict quantiles of the target, given the row.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        q : float or array-like of float, default=(0.05, 0.5, 0.95)
            Levels between 0 and 1.

        Returns
        -------
        Dask array or data frame, or ndarray
            One column for each level; lazy for Dask collections.
        """
        return self._call_local("predict_quantiles", X, q)  # type: ignore[attr-defined]


class InMemoryMixin:
    """Tree models whose methods about paths and rounds accept only rows in memory."""

    def _read_rows(self, X: Any) -> Any:
        if is_path(X) or is_dask(X):
            raise TypeError(
                f"{type(self).__name__}: this method expects rows in memory, got "
                f"{type(X).__name__}; call the method of to_local() with X.compute()"
            )
        return super()._read_rows(X)  # type: ignore[misc]


def gather_calibration(calibration: Any) -> Any:
    """Compute calibration=(X, y) if it is on Dask; columns keep their names."""
    if not isinstance(calibration, tuple | list) or len(calibration) != 2:
        return calibration
    X, y = calibration
    if is_dask(X) or is_path(X):
        part = read_rows(X, y).gather()
        return part.X, part.y
    return X, y.compute() if is_dask(y) else y


def _call_method(model: Any, method: str, arguments: tuple[Any, ...], X: Any) -> Any:
    return getattr(model, method)(X, *arguments)


def _predict_partition(part: Part, model: Any) -> Part:
    predicted = model.predict(part.X) if part.n_rows else np.empty(0)
    return Part(predicted, part.y, part.weights, part.group)


def lazy_predictions(X: Any, predict: Callable[[Any], Any], form: OutputForm) -> Any:
    """Return a lazy collection of predictions for each partition of X.

    Parameters
    ----------
    X : Dask array or Dask data frame
        The rows.
    predict : callable
        Predicts for rows in memory.
    form : OutputForm
        Shape, type and names of the predictions.
    """
    dask = import_dask()
    shared = dask.delayed(predict, pure=False)  # in the graph once, not once for each partition
    shape, dtype = form.shape, form.dtype
    if not hasattr(X, "columns"):
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"X: expected rows and columns, got {getattr(X, 'ndim', 0)} axes")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        axes: dict[str, Any] = {"chunks": (X.chunks[0], *shape)} if shape else {"drop_axis": 1}
        if len(shape) == 2:
            axes["new_axis"] = 2
        meta = np.empty((0, *shape), dtype=dtype)
        return X.map_blocks(predict_block, shared, form, dtype=dtype, meta=meta, **axes)
    names = list(X.columns)
    if len(shape) == 2:  # a frame cannot hold a table for each row
        import dask.array as da  # optional dependency

        predict_later = dask.delayed(predict_block, pure=False)
        blocks = [predict_later(part, shared, form, names) for part in X.to_delayed()]
        return da.concatenate(
            [da.from_delayed(block, (np.nan, *shape), dtype=dtype) for block in blocks],
            allow_unknown_chunksizes=True,
        )
    meta = to_pandas(np.empty((0, *shape), dtype), X._meta.index, form)
    return X.map_partitions(_predict_frame, shared, form, names, meta=meta)


def predict_block(
    X: Any, predict: Callable[[Any], Any], form: OutputForm, names: list[Any] | None = None
) -> Any:
    """Predict for a partition, which may be empty or have reordered columns."""
    if X.shape[0] == 0:
        return np.empty((0, *form.shape), dtype=form.dtype)
    if names is not None and list(X.columns) != names and set(X.columns) == set(names):
        X = X[names]
    predicted = predict(X)
    predicted = np.hstack(predicted) if isinstance(predicted, list) else np.asarray(predicted)
    return predicted.astype(form.dtype, copy=False)


def _predict_frame(
    X: Any, predict: Callable[[Any], Any], form: OutputForm, names: list[Any]
) -> Any:
    return to_pandas(predict_block(X, predict, form, names), X.index, form)


def to_pandas(predicted: Any, index: Any, form: OutputForm) -> Any:
    """Convert predictions to a series or frame of a type that ignores the values."""
    import pandas as pd  # optional dependency

    dtype = predicted.dtype if form.classes is None else pd.Series(form.classes).dtype
    if predicted.ndim == 1:
        return pd.Series(predicted, index=index, name=form.method, dtype=dtype)
    return pd.DataFrame(predicted, index=index, columns=form.columns, dtype=dtype)
