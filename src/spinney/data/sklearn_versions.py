"""Differences between the supported versions of scikit-learn.

No other module compares versions, so raising the minimum version removes code only here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn import utils
from sklearn.utils import _safe_indexing, validation
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "SKLEARN_VERSION",
    "HtmlMixin",
    "check_sample_weight",
    "compute_class_weight",
    "liblinear_penalty",
    "mixture_options",
    "penalty_as_ratio",
    "plain_columns",
    "safe_indexing",
    "validate_data",
]

SKLEARN_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


class HtmlMixin:
    """Base class of estimators that change `_html_repr`, which scikit-learn calls since 1.7."""

    if SKLEARN_VERSION < (1, 7):

        def _html_repr(self) -> str:
            return str(utils.estimator_html_repr(self))

        def _repr_html_inner(self) -> str:
            return self._html_repr()

        def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
            bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
            if "text/html" in bundle:
                bundle["text/html"] = self._html_repr()
            return bundle


def check_sample_weight(
    sample_weight: Any, X: Any, *, allow_all_zero_weights: bool = False, **options: Any
) -> NDArray[Any]:
    """Check sample weights; scikit-learn rejects weights that are all zero only since 1.9."""
    if SKLEARN_VERSION >= (1, 9):
        options["allow_all_zero_weights"] = allow_all_zero_weights
    weights = _check_sample_weight(sample_weight, X, **options)
    if not allow_all_zero_weights and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights  # type: ignore[no-any-return]


def compute_class_weight(
    class_weight: Any, *, classes: Any, y: Any, sample_weight: Any = None
) -> NDArray[Any]:
    """Return the weight of each class; scikit-learn uses `sample_weight` only since 1.7."""
    if sample_weight is None or not isinstance(class_weight, str):
        return utils.compute_class_weight(class_weight, classes=classes, y=y)  # type: ignore[no-any-return]
    if SKLEARN_VERSION >= (1, 7):
        return utils.compute_class_weight(  # type: ignore[no-any-return]
            class_weight, classes=classes, y=y, sample_weight=sample_weight
        )
    weights = check_sample_weight(sample_weight, y)
    totals = np.bincount(np.searchsorted(classes, y), weights, minlength=len(classes))
    with np.errstate(divide="ignore"):
        return totals.sum() / (len(classes) * totals)  # type: ignore[no-any-return]


@contextmanager
def liblinear_penalty(model: Any) -> Iterator[None]:
    """Let scikit-learn before 1.8 fit a LogisticRegression without `penalty` by liblinear."""
    if SKLEARN_VERSION >= (1, 8):
        yield
        return
    given = model.penalty, model.l1_ratio
    if model.penalty == "deprecated":
        model.penalty = {0: "l2", None: "l2", 1: "l1"}.get(model.l1_ratio, "elasticnet")
    model.l1_ratio = None
    try:
        yield
    finally:
        model.penalty, model.l1_ratio = given


def penalty_as_ratio(params: dict[str, Any]) -> dict[str, Any]:
    """Replace `penalty` of a LogisticRegression, deprecated since 1.8, by `C` and `l1_ratio`."""
    penalty = params.get("penalty", "deprecated")
    if penalty == "deprecated":
        return params
    C = np.inf if penalty is None else params["C"]
    ratio = params["l1_ratio"] if penalty == "elasticnet" else float(penalty == "l1")
    return {**params, "penalty": "deprecated", "C": C, "l1_ratio": ratio}


def mixture_options() -> dict[str, Any]:
    """Return the extra arguments of scikit-learn's Gaussian mixtures (`xp` since 1.8)."""
    if SKLEARN_VERSION < (1, 8):
        return {}
    return {"xp": get_namespace(np.empty(0))[0]}


def plain_columns(columns: Any) -> Any:
    """Return a ColumnTransformer's remainder columns as a list; scikit-learn 1.6 wraps them."""
    return columns.data if type(columns).__name__ == "_RemainderColsList" else columns


def safe_indexing(X: Any, rows: Any) -> Any:
    """Select rows; scikit-learn selects rows of Arrow data only since 1.7."""
    if type(X).__module__.partition(".")[0] != "pyarrow":
        return _safe_indexing(X, rows)
    rows = np.asarray(rows)
    return X.take(np.flatnonzero(rows) if rows.dtype == bool else rows)


class _NamedColumns:
    """A frame with the names of columns where scikit-learn before 1.9 looks for them."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.shape = frame.shape

    def __len__(self) -> int:
        return len(self._frame)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self._frame, dtype=dtype)

    def __dataframe__(self) -> _NamedColumns:
        return self

    def column_names(self) -> list[str]:
        return list(self._frame.columns)


def validate_data(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
    """Validate rows; before 1.9, scikit-learn does not support all frames of Polars 2 and pandas 3.

    It does not read the names of Polars 2, and does not convert the strings of pandas 3.
    """
    if SKLEARN_VERSION < (1, 9):
        polars, pandas = sys.modules.get("polars"), sys.modules.get("pandas")
        if polars is not None and isinstance(X, polars.DataFrame):
            X = _NamedColumns(X)
        elif pandas is not None and isinstance(X, pandas.DataFrame):
            has_strings = any(isinstance(dtype, pandas.StringDtype) for dtype in X.dtypes)
            X = X.astype(object) if has_strings else X
    return validation.validate_data(estimator, X, *args, **options)
