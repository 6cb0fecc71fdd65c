"""Rebuild a model from nodes and arrays; see `_description` for the nodes.

The functions below build everything from data. The only other code that runs is that of the
classes in `allowed_classes`: their ``__setstate__`` and, for a few, their constructors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinney.model_file._array_parts import Record, array_from_record, dtype_by_name
from spinney.model_file._model_checks import check_model, check_multiway_tree, check_tree
from spinney.model_file._search_trees import search_tree_from_parts
from spinney.model_file.allowed_classes import class_by_name, score_function_by_name

__all__ = ["rebuild"]

_COLLECTIONS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_RANGES = {"slice": slice, "range": range}
_SPARSE = {
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
}
_LONGEST_RANGE = 10_000_000
# Lists that each contain the previous one ten times take few bytes in a file, but hash, repr or a
# copy of the last one would never end. So the size of a node, with everything it refers to counted
# at each reference, is limited. Valid models stay far below the limit.
_REPEATS_BASE, _REPEATS_PER_NODE = 10_000_000, 1000
_WIDEST = 4096  # largest itemsize of a stored dtype, in bytes
_SCALARS: dict[str, tuple[type, ...]] = {  # by kind of dtype
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (float, int),
    "m": (int,),
    "M": (int,),
    "U": (str,),
    "S": (bytes,),
}
_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
# Classes with constructor arguments in a file. Other classes have only state.
_CALLED = frozenset(
    {"spinney.tree.Tree", "spinney.tree.MultiwayTree", "sklearn.linear_model._sgd_fast.Hinge"}
)


def rebuild(nodes: Sequence[Record], tensors: Mapping[str, NDArray[Any]]) -> Any:
    """Return the model of the last node; raise a ValueError if a node is invalid."""
    built: list[Any] = []
    builder = _Builder(built, dict(tensors), _REPEATS_BASE + _REPEATS_PER_NODE * len(nodes))
    for number, node in enumerate(nodes):
        try:
            built.append(builder.build(node))
            builder.finish()
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            raise ValueError(f"node {number} is invalid: {error}") from error
    if not built:
        raise ValueError("the file contains no model")
    return built[-1]


class _Builder:
    """Builds the objects of nodes, and limits their total size."""

    def __init__(
        self, built: list[Any], tensors: dict[str, NDArray[Any]], largest_size: int
    ) -> None:
        self._built = built
        self._sizes: list[int] = []  # sizes of the nodes, including those they refer to
        self._size = 1  # size of the current node so far
        self._largest_size = largest_size
        self._tensors = tensors
        self._n_uses: Counter[int] = Counter()  # by id of an array
        self._sealed: set[int] = set()

    def finish(self) -> None:
        """Record the size of the node that was just built."""
        self._sizes.append(self._size)
        self._size = 1

    def value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "ref" in value:
            if not 0 <= value["ref"] < len(self._built):
                raise ValueError(f"a reference to {value['ref']!r}, which is not an earlier node")
            self._size += self._sizes[value["ref"]]
            if self._size > self._largest_size:
                raise ValueError("nodes that refer to each other again and again")
            thing = self._built[value["ref"]]
            if isinstance(thing, np.ndarray):
                self._n_uses[id(thing)] += 1
                if id(thing) in self._sealed:
                    raise ValueError("an array of a forest that is used elsewhere too")
            return thing
        return _FLOATS[value["float"]]

    def values(self, items: Any) -> list[Any]:
        return [self.value(item) for item in items]

    def pairs(self, items: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(item) for key, item in items}

    def build(self, node: Record) -> Any:
        kind = node["kind"]
        if kind == "object":
            return self._object(node)
        if kind == "array":
            return array_from_record(node, self._tensors)
        if kind in _COLLECTIONS and "packed" in node:
            return _COLLECTIONS[kind](array_from_record(node["packed"], self._tensors).tolist())
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self.values(node["items"]))
        if kind == "dict":
            return self.pairs(node["items"])
        if kind == "objects":
            array = np.empty(len(node["items"]), dtype=object)
            for number, item in enumerate(node["items"]):
                array[number] = self.value(item)
            return array.reshape([int(length) for length in node["shape"]])
        if kind == "scalar":
            return self._scalar(node)
        if kind in _RANGES:
            built = _RANGES[kind](*self.values(node["items"]))
            if isinstance(built, range) and len(built) > _LONGEST_RANGE:
                raise ValueError(f"a range of {len(built)} numbers")
            return built
        if kind in _SPARSE:
            return self._sparse(kind, self.value(node["parts"]))
        return self._rare_value(kind, node)

    def _scalar(self, node: Record) -> Any:
        dtype = dtype_by_name(node["dtype"])
        value = self.value(node["value"])
        if dtype.kind not in _SCALARS or type(value) not in _SCALARS[dtype.kind]:
            raise ValueError(f"a {dtype} that is {type(value).__name__}")
        if dtype.kind in "mM":
            return np.array(value, dtype=np.int64).view(dtype)[()]
        return dtype.type(value)

    def _rare_value(self, kind: str, node: Record) -> Any:
        if kind == "bytes":
            return self._tensors.pop(node["numbers"]).astype(np.uint8, casting="no").tobytes()
        if kind == "complex":
            return complex(*self.values(node["items"]))
        if kind == "dtype":
            dtype = dtype_by_name(node["name"])
            if dtype.itemsize > _WIDEST:
                raise ValueError(f"a dtype of {dtype.itemsize} bytes")
            return dtype
        if kind == "numpy_type":
            found = getattr(np, node["name"])
            if not (isinstance(found, type) and issubclass(found, np.generic)):
                raise ValueError(f"not a NumPy type: {node['name']!r}")
            return found
        if kind == "random_state":
            random = np.random.RandomState()
            random.set_state(self.value(node["state"]))
            return random
        if kind == "polynomial":
            coefficients, domain, window, symbol = self.value(node["parts"])
            return np.polynomial.Polynomial(coefficients, domain, window, symbol)
        if kind == "search_tree":
            return search_tree_from_parts(self.value(node["parts"]))
        raise ValueError(f"an unknown kind of node: {kind!r}")

    def _sparse(self, kind: str, parts: dict[str, Any]) -> Any:
        data, indices, indptr = (parts[name] for name in ("data", "indices", "indptr"))
        rows, columns = parts["shape"]
        by_row = kind.startswith("csr")
        _check_sparse(data, indices, indptr, (rows, columns) if by_row else (columns, rows))
        matrix = _SPARSE[kind]((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
        return matrix

    def _object(self, node: Record) -> Any:
        cls: Any = class_by_name(node["class"])
        if "arguments" in node:
            if node["class"] not in _CALLED:
                raise ValueError(f"arguments for {node['class']}, which does not accept any")
            thing = cls(*self.values(node["arguments"]))
        else:
            thing = cls.__new__(cls)
        if "state" in node:
            state = self.pairs(node["state"])
            if not all(isinstance(name, str) for name in state):
                raise ValueError(f"an attribute name of {node['class']} that is not a string")
            if node["class"] == "spinney.ensemble.ForestStore":
                self._seal(state.get("arrays", {}))
            if hasattr(cls, "__setstate__"):
                thing.__setstate__(state)
            else:
                vars(thing).update(state)
        if "score_function" in node:
            if node["class"] != "sklearn.feature_selection.SelectKBest":
                raise ValueError(f"a score function for {node['class']}; only SelectKBest has one")
            thing.score_func = score_function_by_name(node["score_function"])
        if node["class"] == "spinney.tree.Tree":
            check_tree(thing)
        elif node["class"] == "spinney.tree.MultiwayTree":
            check_multiway_tree(thing)
        check_model(thing)
        if "entries" in node:
            for key, item in self.pairs(node["entries"]).items():
                thing[key] = item
        return thing

    def _seal(self, arrays: dict[str, Any]) -> None:
        """Refuse shared arrays: a forest checks its arrays only once, and then views them."""
        for array in arrays.values():
            if self._n_uses[id(array)] != 1:
                raise ValueError("an array of a forest that is used elsewhere too")
            self._sealed.add(id(array))


def _check_sparse(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> None:
    """Raise a ValueError if the index arrays of a sparse matrix are invalid.

    SciPy's own check stops if the last end is not positive, and its differences can overflow.
    """
    n, width = shape
    if any(type(length) is not int or length < 0 for length in (n, width)):
        raise ValueError(f"a sparse matrix of shape {shape}")
    if any(part.ndim != 1 or part.dtype.kind != "i" for part in (indices, indptr)):
        raise ValueError("a sparse matrix whose indexes are not integers")
    ends = indptr.astype(np.int64)
    if len(ends) != n + 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise ValueError("a sparse matrix whose row ends are not ascending from 0")
    if data.ndim != 1 or len(indices) != len(data) or ends[-1] > len(data):
        raise ValueError("a sparse matrix whose row ends do not match its values")
    if ((indices < 0) | (indices >= width)).any():
        raise ValueError("a sparse matrix with column indexes out of range")
