"""What all estimators of `spinney.dask` share: answers that Dask computes, and the way back."""

from __future__ import annotations

import os
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.dask._rows import as_collection, is_dask, is_path, need_dask, read_rows

__all__ = ["NO_ROWS", "DaskModel", "DecisionMixin", "ProbabilitiesMixin"]

Local = TypeVar("Local")

NO_ROWS = (
    "{}: models fitted on several workers hold out no rows to tell their errors from; give some as "
    "calibration=(X, y)"
)
_SHARES = ("predict_proba", "predict_log_proba")


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
        from spinney.io._model_file import save

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

    def _answer(self, method: str, X: Any) -> Any:
        """Ask the local model about rows, later if they are Dask's."""
        local: Any = self.to_local()
        if is_path(X) or is_dask(X):
            X = as_collection(X, known=getattr(self, "feature_names_in_", None))
        else:
            return getattr(local, method)(X)
        dtype = self._answer_dtype(method)
        if method in _SHARES and getattr(self, "n_outputs_", 1) > 1:
            return self._answer_outputs(method, X, local)
        return lazy_answer(X, local, method, self._n_answers(method), dtype, self._labels(method))

    def _answer_outputs(self, method: str, X: Any, local: Any) -> list[Any]:
        """Give what is said about each output: rows walk through the trees once for all."""
        sizes = [len(classes) for classes in self.classes_]  # type: ignore[attr-defined]
        width = sum(sizes)
        joined = lazy_answer(X, local, method, width, np.dtype(np.float64), list(range(width)))
        out = []
        for k, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
            columns = list(range(end - size, end))
            if hasattr(X, "columns"):
                names = dict(zip(columns, self.classes_[k], strict=True))  # type: ignore[attr-defined]
                out.append(joined[columns].rename(columns=names))
            else:
                out.append(joined[:, columns[0] : columns[-1] + 1])
        return out

    def _n_answers(self, method: str) -> int | None:
        """Columns of an answer; None for one number a row."""
        if method in _SHARES:
            return len(self.classes_)  # type: ignore[attr-defined]
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
        return np.dtype(np.float64)

    def _labels(self, method: str) -> Any:
        if method in _SHARES:
            return list(self.classes_)  # type: ignore[attr-defined]
        return None

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
        from sklearn.metrics import accuracy_score, r2_score

        local: Any = self.to_local()
        told = read_rows(X, y, sample_weight).ask(_predict_beside, local)
        told = [one for one in told if one is not None]
        if not told:
            raise ValueError("X: expected at least one row, got none")
        right, predicted = (np.concatenate([one[k] for one in told]) for k in (0, 1))
        weights = None if told[0][2] is None else np.concatenate([one[2] for one in told])
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(right, predicted, sample_weight=weights))


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


def _predict_beside(part: Any, model: Any) -> Any:
    return (part.y, model.predict(part.X), part.weights) if part.n_rows else None


def lazy_answer(X: Any, model: Any, method: str, width: Any, dtype: Any, labels: Any) -> Any:
    """Make the collection that has a model's answers about each partition of X."""
    dask = need_dask()
    shared = dask.delayed(model, pure=False)  # in the graph once, not once for each partition
    if not hasattr(X, "columns"):
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"X: expected rows and columns, got {getattr(X, 'ndim', 0)} axes")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        form: dict[str, Any] = (
            {"drop_axis": 1} if width is None else {"chunks": (X.chunks[0], width)}
        )
        meta = np.empty((0,) if width is None else (0, width), dtype=dtype)
        return X.map_blocks(
            answer_block, shared, method, width, dtype, None, dtype=dtype, meta=meta, **form
        )
    import pandas as pd

    empty = np.empty((0,) if width is None else (0, width), dtype=dtype)
    index = X._meta.index
    meta = (
        pd.Series(empty, index=index, name=method)
        if width is None
        else pd.DataFrame(empty, index=index, columns=labels)
    )
    return X.map_partitions(answer_block, shared, method, width, dtype, labels, meta=meta)


def answer_block(X: Any, model: Any, method: str, width: Any, dtype: Any, labels: Any) -> Any:
    """Ask a model about one partition, which may be empty."""
    if X.shape[0] == 0:
        out = np.empty((0,) if width is None else (0, width), dtype=dtype)
    else:
        told = getattr(model, method)(X)
        told = np.hstack(told) if isinstance(told, list) else np.asarray(told)
        out = told.astype(dtype, copy=False)
    if not hasattr(X, "columns"):
        return out
    import pandas as pd

    if width is None:
        return pd.Series(out, index=X.index, name=method)
    return pd.DataFrame(out, index=X.index, columns=labels)
