"""The inputs of an ONNX graph, and their conversion to a numeric matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from spinney.export._onnx_graph import ML, Graph, tensor_of
from spinney.export._onnx_trees import FIRST_CODE
from spinney.models.form import Form, NotExpressible

__all__ = ["add_rows"]


def add_rows(graph: Graph, form: Form, kind: int) -> str:
    """Declare the inputs; return a double precision matrix, (n_rows, n_features).

    Without categories, the input is one matrix. With categories, every column is an input, named as
    in the fit. Categories are converted to codes, NaN for missing values and unseen categories.
    """
    if not form.has_categories:
        rows = graph.add_input("X", kind, form.n_features)
        return _as_double(graph, rows, kind)
    # Inputs are declared before the first operator, so that they get their names.
    kinds = [kind if c is None else _input_kind(form, f) for f, c in enumerate(form.categories)]
    names = [
        graph.add_input(form.column_name(f) or f"x{f}", of_column, 1)
        for f, of_column in enumerate(kinds)
    ]
    columns = []
    for name, of_column, categories in zip(names, kinds, form.categories, strict=True):
        if categories is None:
            columns.append(_as_double(graph, name, of_column))
        else:
            columns.append(_add_codes(graph, name, of_column, np.asarray(categories)))
    return graph.add("Concat", *columns, axis=1)


def _as_double(graph: Graph, value: str, kind: int) -> str:
    return value if kind == TensorProto.DOUBLE else graph.cast(value, TensorProto.DOUBLE)


def _input_kind(form: Form, feature: int) -> int:
    """Return the tensor type of a column of categories."""
    values = np.asarray(form.categories[feature]).tolist()
    types = {type(value) for value in values}
    if types <= {str}:
        return TensorProto.STRING
    if types <= {bool}:
        return TensorProto.BOOL
    if types <= {int} and all(-(2**63) <= value < 2**63 for value in values):
        return TensorProto.INT64
    if types <= {float, int, bool} and all(float(value) == value for value in values):
        return TensorProto.DOUBLE
    found = ", ".join(sorted(t.__name__ for t in types))
    raise NotExpressible(
        f"column {form.column_name(feature)!r} has categories of type {found}; expected strings, "
        "or numbers that int64 or double can represent"
    )


def _add_codes(graph: Graph, name: str, kind: int, categories: Any) -> str:
    """Convert a column of categories to codes, NaN for other values."""
    codes = np.arange(len(categories)) + float(FIRST_CODE)
    if len(categories) == 0:  # all training values were missing
        categories, codes = np.array([""]), np.array([np.nan])
    dtype = np.float32  # the type of codes: LabelEncoder supports few pairs of types
    if kind == TensorProto.STRING:
        keys = categories.astype(object)
        if len(keys) == 1:  # onnxruntime 1.25 and 1.26 cannot load a single string
            keys = np.array([keys[0], keys[0] + "?"], dtype=object)
            codes = np.append(codes, np.nan)
    elif kind == TensorProto.DOUBLE:
        keys, dtype = categories.astype(np.float64), np.float64  # type: ignore[assignment]
    else:
        keys = categories.astype(np.int64)
        name = graph.cast(name, TensorProto.INT64) if kind == TensorProto.BOOL else name
    encoded = graph.add(
        "LabelEncoder",
        name,
        domain=ML,
        keys_tensor=tensor_of(keys),
        values_tensor=tensor_of(codes.astype(dtype)),
        default_tensor=tensor_of(np.array([np.nan], dtype=dtype)),
    )
    return _as_double(graph, encoded, kind)
