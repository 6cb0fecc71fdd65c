"""What all estimators of `spinney.dask` share: answers that Dask computes, and the way back."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.rules import check_coverage
from spinney.dask._rows import (
    Part,
    Rows,
    as_collection,
    is_dask,
    is_path,
    join_parts,
    need_dask,
    read_rows,
)

__all__ = [
    "NO_ROWS",
    "DaskModel",
    "DecisionMixin",
    "HereMixin",
    "IntervalsMixin",
    "LeavesMixin",
    "LogProbabilitiesMixin",
    "ProbabilitiesMixin",
    "QuantilesMixin",
    "SetsMixin",
    "answer_block",
    "bring",
    "frame_answer",
    "lazy_answer",
]

Local = TypeVar("Local")

NO_ROWS = (
    "{}: models fitted on several workers hold out no rows to tell their errors from; give some as "
    "calibration=(X, y)"
)
_SHARES = ("predict_proba", "predict_log_proba")
_ENDS = ("predict_interval", "predict_quantiles")

Width: TypeAlias = int | tuple[int, int] | None


class DaskModel(Generic[Local]):
    """An estimator whose rows may be Dask collections; stands before the local class.

    It has the parameters and, once fitted, the attributes of the local class. Predictions for Dask
    collections are Dask collections, computed when they are asked for; for anything else they are
    what the local estimator gives.
    """

    _local_class: Any

    def to_local(self) -> Local:
        """Return the fitted model as an estimator that knows nothing of Dask.

        Returns
        -------
        estimator
            Of the class of the same name outside `spinney.dask`.
        """
        check_is_fitted(self)
        local = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        vars(local).update({k: v for k, v in vars(self).items() if not k.startswith("_dask")})
        return local  # type: ignore[no-any-return]

    def _held_out_rows(self) -> Any:
        """Give the rows that tell how large errors are, or say why there are none."""
        try:
            return super()._held_out_rows()  # type: ignore[misc]
        except ValueError:
            raise ValueError(NO_ROWS.format(type(self).__name__)) from None

    def _take_over(self, local: Any) -> None:
        """Become what a fitted local estimator is, but for the parameters."""
        mine = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name in [name for name in vars(self) if name not in mine]:
            delattr(self, name)
        for name, value in vars(local).items():
            if name not in mine:
                setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the local model to a file, as `spinney.save` does.

        Parameters
        ----------
        path : str or path
            The file; an existing one is replaced when all is written.
        """
        from spinney.model_file.files import save

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
            As the local estimator predicts; not computed yet for Dask collections.
        """
        return self._answer("predict", X)

    def _answer(self, method: str, X: Any, *more: Any) -> Any:
        """Ask the local model about rows, later if they are Dask's."""
        local: Any = self.to_local()
        if is_path(X) or is_dask(X):
            X = as_collection(X, known=getattr(self, "feature_names_in_", None))
        else:
            return getattr(local, method)(X, *more)
        dtype = self._answer_dtype(method)
        if method in _SHARES and getattr(self, "n_outputs_", 1) > 1:
            return self._answer_outputs(method, X, local)
        width, labels = self._n_answers(method, *more), self._labels(method, *more)
        ask = partial(_ask, local, method, more)
        return lazy_answer(X, ask, method, width, dtype, labels, self._answers_of(method))

    def _answer_outputs(self, method: str, X: Any, local: Any) -> list[Any]:
        """Give what is said about each output: rows walk through the trees once for all."""
        sizes = [len(classes) for classes in self.classes_]  # type: ignore[attr-defined]
        width = sum(sizes)
        ask = partial(_ask, local, method, ())
        labels = list(range(width))
        joined = lazy_answer(X, ask, method, width, np.dtype(np.float64), labels)
        out = []
        for k, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
            columns = list(range(end - size, end))
            if hasattr(X, "columns"):
                names = dict(zip(columns, self.classes_[k], strict=True))  # type: ignore[attr-defined]
                out.append(joined[columns].rename(columns=names))
            else:
                out.append(joined[:, columns[0] : columns[-1] + 1])
        return out

    def _n_answers(self, method: str, *more: Any) -> Width:
        """Columns of an answer; None for one number a row, a pair for a table a row."""
        if method in _SHARES or method == "predict_set":
            return len(self.classes_)  # type: ignore[attr-defined]
        if method == "apply":
            n_trees = len(vars(self)["_model"].store)
            n_each = getattr(vars(self)["_model"], "trees_per_round", 1)
            return n_trees if n_each == 1 else (n_trees // n_each, n_each)
        levels = getattr(
            vars(self).get("_model"), "levels", ()
        )  # of a booster of several quantiles
        if method in _ENDS:
            n_ends = 2 if method == "predict_interval" else len(np.atleast_1d(more[0]))
            n_outputs = None if levels else self._n_answers("predict")
            return n_ends if n_outputs is None else (int(n_outputs), n_ends)  # type: ignore[arg-type]
        if levels and method == "predict":
            return len(levels)
        if method == "decision_function" and is_classifier(self):
            n_classes = len(self.classes_)  # type: ignore[attr-defined]
            return n_classes if n_classes > 2 else None
        n_outputs = getattr(self, "n_outputs_", 1)
        coef = getattr(self, "coef_", None)
        if coef is not None and not is_classifier(self) and np.ndim(coef) == 2:
            return len(coef)
        return n_outputs if n_outputs > 1 else None

    def _answer_dtype(self, method: str) -> Any:
        if method == "predict" and is_classifier(self):
            classes: Any = self.classes_  # type: ignore[attr-defined]
            # Of several outputs each has its own; the local model answers in the type of the first.
            return (classes[0] if isinstance(classes, list) else classes).dtype
        kinds: dict[str, Any] = {"predict_set": np.bool_, "apply": np.int64}
        return np.dtype(kinds.get(method, np.float64))

    def _answers_of(self, method: str) -> Any:
        """What answers are taken from: classes, or None for numbers."""
        if method != "predict" or not is_classifier(self):
            return None
        classes: Any = self.classes_  # type: ignore[attr-defined]
        return np.concatenate(classes) if isinstance(classes, list) else classes

    def _labels(self, method: str, *more: Any) -> Any:
        """Names of the columns of an answer about a frame; None: their numbers."""
        if method in _SHARES or method == "predict_set":
            return list(self.classes_)  # type: ignore[attr-defined]
        if method == "predict_interval":
            return ["lower", "upper"]
        return np.atleast_1d(more[0]).tolist() if method == "predict_quantiles" else None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions as the local estimator does: accuracy, or R².

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            What is right.
        sample_weight : as y, default=None
            Weights of rows.

        Returns
        -------
        float
            The score.
        """
        told = self._predict_parts(read_rows(X, y, sample_weight))
        local: Any = self.to_local()
        local.predict = lambda _: told.X
        return float(local.score(told.X, told.y, told.weights))

    def _predict_parts(self, rows: Rows) -> Part:
        """Bring predictions here, in the place of rows, and what lies beside these."""
        told = rows.ask(_predict_part, self.to_local())
        if not any(part.n_rows for part in told):
            raise ValueError("X: expected at least one row, got none")
        return join_parts(told)


class ProbabilitiesMixin:
    """Class probabilities that Dask computes."""

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            A column for each of ``classes_``; not computed yet for Dask collections. A list with
            several outputs.
        """
        return self._answer("predict_proba", X)  # type: ignore[attr-defined]


class LogProbabilitiesMixin(ProbabilitiesMixin):
    """Class probabilities and their logarithms, computed by Dask."""

    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            A column for each of ``classes_``; not computed yet for Dask collections. A list with
            several outputs.
        """
        return self._answer("predict_log_proba", X)  # type: ignore[attr-defined]


class DecisionMixin:
    """Scores that Dask computes."""

    def decision_function(self, X: Any) -> Any:
        """Give scores.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array, series or data frame, or ndarray
            As the local estimator gives them; not computed yet for Dask collections.
        """
        return self._answer("decision_function", X)  # type: ignore[attr-defined]


class LeavesMixin:
    """Leaves of rows that Dask computes."""

    def apply(self, X: Any) -> Any:
        """Return the index of the leaf that each row falls into, in each tree.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.

        Returns
        -------
        Dask array or data frame, or ndarray
            As the local estimator gives them; not computed yet for Dask collections.
        """
        return self._answer("apply", X)  # type: ignore[attr-defined]


class IntervalsMixin:
    """Intervals that Dask computes."""

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Any:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        coverage, method : object
            As of the local estimator.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their targets: their errors are taken. Dask collections
            are brought here; some hundred rows suffice.

        Returns
        -------
        Dask array or data frame, or ndarray
            Lower and upper ends; not computed yet for Dask collections.
        """
        calibration = bring(calibration)
        if not (is_path(X) or is_dask(X)):
            return super().predict_interval(X, coverage, method, calibration)  # type: ignore[misc]
        check_coverage(coverage)
        if calibration is None and not hasattr(self, "predict_quantiles"):
            self._held_out_rows()  # type: ignore[attr-defined]
        return self._answer(  # type: ignore[attr-defined]
            "predict_interval", X, coverage, method, calibration
        )


class SetsMixin:
    """Sets of classes that Dask computes."""

    def predict_set(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Any:
        """Predict a set of classes that holds the right one with the given probability.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        coverage, method : object
            As of the local estimator.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their classes: the limit is theirs. Dask collections are
            brought here; some hundred rows suffice.

        Returns
        -------
        Dask array or data frame, or ndarray
            Whether each of ``classes_`` is in the set; not computed yet for Dask collections.
        """
        calibration = bring(calibration)
        if not (is_path(X) or is_dask(X)):
            return super().predict_set(X, coverage, method, calibration)  # type: ignore[misc]
        check_coverage(coverage)
        if calibration is None:
            self._held_out_rows()  # type: ignore[attr-defined]
        return self._answer(  # type: ignore[attr-defined]
            "predict_set", X, coverage, method, calibration
        )


class QuantilesMixin:
    """Quantiles that Dask computes."""

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
            A column for each level; not computed yet for Dask collections.
        """
        return self._answer("predict_quantiles", X, q)  # type: ignore[attr-defined]


class HereMixin:
    """A model of trees whose other answers, about paths or rounds, are for rows in memory."""

    def _read(self, X: Any) -> Any:
        if is_path(X) or is_dask(X):
            raise TypeError(
                f"{type(self).__name__}: expected rows in memory for this, got "
                f"{type(X).__name__}; to_local() with X.compute() answers"
            )
        return super()._read(X)  # type: ignore[misc]


def bring(calibration: Any) -> Any:
    """Bring calibration=(X, y) here if Dask has it; columns keep their names."""
    if not isinstance(calibration, tuple | list) or len(calibration) != 2:
        return calibration
    X, y = calibration
    if is_dask(X) or is_path(X):
        part = read_rows(X, y).gather()
        return part.X, part.y
    return X, y.compute() if is_dask(y) else y


def _ask(model: Any, method: str, more: tuple[Any, ...], X: Any) -> Any:
    return getattr(model, method)(X, *more)


def _predict_part(part: Part, model: Any) -> Part:
    told = model.predict(part.X) if part.n_rows else np.empty(0)
    return Part(told, part.y, part.weights, part.group)


def lazy_answer(
    X: Any, ask: Any, name: str, width: Width, dtype: Any, labels: Any, classes: Any = None
) -> Any:
    """Make the collection that has a model's answers about each partition of X.

    Parameters
    ----------
    X : Dask array or Dask data frame
        The rows.
    ask : callable
        Gives the answers about rows.
    name : str
        Of the series, where X is a frame.
    width : int, pair of int, or None
        What the answer about a row is: so many numbers, a table, or one number.
    dtype : dtype
        Of the answers.
    labels : list or None
        Names of the columns, where X is a frame.
    classes : ndarray or None
        What answers are taken from: tells pandas their type.
    """
    dask = need_dask()
    shared = dask.delayed(ask, pure=False)  # in the graph once, not once for each partition
    tail = _tail(width)
    if not hasattr(X, "columns"):
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"X: expected rows and columns, got {getattr(X, 'ndim', 0)} axes")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        form: dict[str, Any] = {"chunks": (X.chunks[0], *tail)} if tail else {"drop_axis": 1}
        if len(tail) == 2:
            form["new_axis"] = 2
        meta = np.empty((0, *tail), dtype=dtype)
        return X.map_blocks(answer_block, shared, tail, dtype, dtype=dtype, meta=meta, **form)
    names = list(X.columns)
    if len(tail) == 2:  # no frame holds this
        import dask.array as da

        answer = dask.delayed(answer_block, pure=False)
        blocks = [answer(part, shared, tail, dtype, names) for part in X.to_delayed()]
        return da.concatenate(
            [da.from_delayed(block, (np.nan, *tail), dtype=dtype) for block in blocks],
            allow_unknown_chunksizes=True,
        )
    meta = frame_answer(np.empty((0, *tail), dtype), X._meta.index, name, labels, classes)
    return X.map_partitions(
        _answer_frame, shared, tail, dtype, names, name, labels, classes, meta=meta
    )


def _tail(width: Width) -> tuple[int, ...]:
    """Shape of the answer about one row."""
    if width is None:
        return ()
    return width if isinstance(width, tuple) else (width,)


def answer_block(X: Any, ask: Any, tail: Any, dtype: Any, names: Any = None) -> Any:
    """Ask about one partition, which may be empty, or have its columns in another order."""
    if X.shape[0] == 0:
        return np.empty((0, *tail), dtype=dtype)
    if names is not None and list(X.columns) != names and set(X.columns) == set(names):
        X = X[names]
    told = ask(X)
    told = np.hstack(told) if isinstance(told, list) else np.asarray(told)
    return told.astype(dtype, copy=False)


def _answer_frame(
    X: Any, ask: Any, tail: Any, dtype: Any, names: Any, name: str, labels: Any, classes: Any
) -> Any:
    out = answer_block(X, ask, tail, dtype, names)
    return frame_answer(out, X.index, name, labels, classes)


def frame_answer(out: Any, index: Any, name: str, labels: Any, classes: Any) -> Any:
    """Make a series or a frame of answers. Its type does not depend on how many there are."""
    import pandas as pd

    kind = out.dtype if classes is None else pd.Series(classes).dtype
    if out.ndim == 1:
        return pd.Series(out, index=index, name=name, dtype=kind)
    return pd.DataFrame(out, index=index, columns=labels, dtype=kind)
