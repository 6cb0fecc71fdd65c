"""The inputs of an ONNX graph, and the matrix of numbers that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from spinney.export._form import Form, NotExpressible
from spinney.export._onnx_graph import ML, Graph, tensor_of
from spinney.export._onnx_trees import FIRST_CODE

__all__ = ["add_rows"]


def add_rows(graph: Graph, form: Form, kind: int) -> str:
    """Declare the inputs and return a matrix in double precision, (n_rows, n_features).

    Numbers alone come as one matrix. With categories, every column is an input of its own, named
    as in fit; codes come out of them, NaN for what is missing or was not seen in fit.
    """
    if not form.has_categories:
        rows = graph.add_input("X", kind, form.n_features)
        return _as_double(graph, rows, kind)
    columns = []
    for feature, categories in enumerate(form.categories):
        name = form.column_name(feature)
        if categories is None:
            columns.append(_as_double(graph, graph.add_input(name, kind, 1), kind))
        else:
            columns.append(_add_codes(graph, name, np.asarray(categories)))
    return graph.add("Concat", *columns, axis=1)


def _as_double(graph: Graph, value: str, kind: int) -> str:
    return value if kind == TensorProto.DOUBLE else graph.cast(value, TensorProto.DOUBLE)


def _add_codes(graph: Graph, name: str, categories: Any) -> str:
    codes = np.arange(len(categories)) + float(FIRST_CODE)
    types = {type(value) for value in categories.tolist()}
    encode: dict[str, Any] = {
        "domain": ML,
        "values_tensor": tensor_of(codes.astype(np.float32)),
        "default_tensor": tensor_of(np.array([np.nan], dtype=np.float32)),
    }
    if types <= {str}:
        value = graph.add_input(name, TensorProto.STRING, 1)
        keys, codes = (categories, codes) if types else (np.array([""]), np.array([np.nan]))
        encode["values_tensor"] = tensor_of(codes.astype(np.float32))
        encode["keys_tensor"] = tensor_of(np.asarray(keys, dtype=object))
    elif types <= {bool}:
        given = graph.add_input(name, TensorProto.BOOL, 1)
        value = graph.cast(given, TensorProto.INT64)
        encode["keys_tensor"] = tensor_of(categories.astype(np.int64))
    elif types <= {int} and all(-(2**63) <= v < 2**63 for v in categories.tolist()):
        value = graph.add_input(name, TensorProto.INT64, 1)
        encode["keys_tensor"] = tensor_of(categories.astype(np.int64))
    elif types <= {float, int}:
        value = graph.add_input(name, TensorProto.DOUBLE, 1)
        encode["keys_tensor"] = tensor_of(categories.astype(np.float64))
        encode["values_tensor"] = tensor_of(codes)
        encode["default_tensor"] = tensor_of(np.array([np.nan]))
    else:
        found = ", ".join(sorted(t.__name__ for t in types))
        raise NotExpressible(
            f"column {name!r} has categories of type {found}; expected strings, or numbers"
        )
    return graph.cast(graph.add("LabelEncoder", value, **encode), TensorProto.DOUBLE)
