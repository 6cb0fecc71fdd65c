"""From nodes and arrays back to a model; `_description` says what nodes are.

Everything is made by the few functions below, from data alone. The only code that runs is that of
the classes on the list in `_classes`: their ``__setstate__`` and, for a few, their constructors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinney.model_file._array_parts import Record, array_from_record, dtype_called
from spinney.model_file._model_checks import check_model, check_multiway_tree, check_tree
from spinney.model_file._search_trees import search_tree_from_parts
from spinney.model_file.allowed_classes import class_called, score_function_called

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
# Lists that each hold the one before ten times take few bytes in a file, and nothing that walks
# through them (hash, repr, a copy) would end. What models share is far from this.
_FEW_REPEATS, _REPEATS = 10_000_000, 1000
_WIDEST = 4096  # bytes of a value whose type alone is kept
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
# Classes that are made by a call; of all others a file has the state and no arguments.
_CALLED = frozenset(
    {"spinney.tree.Tree", "spinney.tree.MultiwayTree", "sklearn.linear_model._sgd_fast.Hinge"}
)


def rebuild(nodes: Sequence[Record], tensors: Mapping[str, NDArray[Any]]) -> Any:
    """Make the model that the last node is; nodes that make no sense are a ValueError."""
    made: list[Any] = []
    maker = _Maker(made, dict(tensors), _FEW_REPEATS + _REPEATS * len(nodes))
    for number, node in enumerate(nodes):
        try:
            made.append(maker.make(node))
            maker.finish()
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            raise ValueError(f"node {number} cannot be made: {error}") from error
    if not made:
        raise ValueError("there is no model in it")
    return made[-1]


class _Maker:
    def __init__(
        self, made: list[Any], tensors: dict[str, NDArray[Any]], largest_size: int
    ) -> None:
        self._made = made
        self._sizes: list[int] = []  # of what was made, counting what is referred to each time
        self._size = 1  # of what is being made
        self._largest_size = largest_size
        self._tensors = tensors
        self._n_uses: Counter[int] = Counter()  # by id of an array
        self._sealed: set[int] = set()

    def finish(self) -> None:
        """Note the size of what was just made."""
        self._sizes.append(self._size)
        self._size = 1

    def value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "ref" in value:
            if not 0 <= value["ref"] < len(self._made):
                raise ValueError(f"a reference to {value['ref']!r}, which is not before it")
            self._size += self._sizes[value["ref"]]
            if self._size > self._largest_size:
                raise ValueError("parts that refer to each other again and again")
            thing = self._made[value["ref"]]
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

    def make(self, node: Record) -> Any:
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
            made = _RANGES[kind](*self.values(node["items"]))
            if isinstance(made, range) and len(made) > _LONGEST_RANGE:
                raise ValueError(f"a range of {len(made)} numbers")
            return made
        if kind in _SPARSE:
            return self._sparse(kind, self.value(node["parts"]))
        return self._rarity(kind, node)

    def _scalar(self, node: Record) -> Any:
        dtype = dtype_called(node["dtype"])
        value = self.value(node["value"])
        if dtype.kind not in _SCALARS or type(value) not in _SCALARS[dtype.kind]:
            raise ValueError(f"a {dtype} that is {type(value).__name__}")
        if dtype.kind in "mM":
            return np.array(value, dtype=np.int64).view(dtype)[()]
        return dtype.type(value)

    def _rarity(self, kind: str, node: Record) -> Any:
        if kind == "bytes":
            return self._tensors.pop(node["numbers"]).astype(np.uint8, casting="no").tobytes()
        if kind == "complex":
            return complex(*self.values(node["items"]))
        if kind == "dtype":
            dtype = dtype_called(node["name"])
            if dtype.itemsize > _WIDEST:
                raise ValueError(f"a type of values that takes {dtype.itemsize} bytes")
            return dtype
        if kind == "numpy_type":
            found = getattr(np, node["name"])
            if not (isinstance(found, type) and issubclass(found, np.generic)):
                raise ValueError(f"no type of NumPy's: {node['name']!r}")
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
        cls: Any = class_called(node["class"])
        if "arguments" in node:
            if node["class"] not in _CALLED:
                raise ValueError(f"arguments for a {node['class']}, which takes none")
            thing = cls(*self.values(node["arguments"]))
        else:
            thing = cls.__new__(cls)
        if "state" in node:
            state = self.pairs(node["state"])
            if not all(isinstance(name, str) for name in state):
                raise ValueError(f"an attribute of a {node['class']} that is not named by text")
            if node["class"] == "spinney.ensemble.ForestStore":
                self._seal(state.get("arrays", {}))
            if hasattr(cls, "__setstate__"):
                thing.__setstate__(state)
            else:
                vars(thing).update(state)
        if "score_function" in node:
            if node["class"] != "sklearn.feature_selection.SelectKBest":
                raise ValueError(f"a function for a {node['class']}, which selects no columns")
            thing.score_func = score_function_called(node["score_function"])
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
        """Refuse arrays that anything but one forest has: it views them, and checks them once."""
        for array in arrays.values():
            if self._n_uses[id(array)] != 1:
                raise ValueError("an array of a forest that is used elsewhere too")
            self._sealed.add(id(array))


def _check_sparse(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> None:
    """Refuse rows (or columns) that end elsewhere than their values: SciPy's check has holes.

    It looks no further where the last end is not positive, and takes differences that overflow.
    """
    n, width = shape
    if any(type(length) is not int or length < 0 for length in (n, width)):
        raise ValueError(f"a sparse matrix of shape {shape}")
    if any(part.ndim != 1 or part.dtype.kind != "i" for part in (indices, indptr)):
        raise ValueError("a sparse matrix whose places are no whole numbers")
    ends = indptr.astype(np.int64)
    if len(ends) != n + 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise ValueError("a sparse matrix with rows that do not follow each other")
    if data.ndim != 1 or len(indices) != len(data) or ends[-1] > len(data):
        raise ValueError("a sparse matrix that ends elsewhere than its values")
    if ((indices < 0) | (indices >= width)).any():
        raise ValueError("a sparse matrix with values beyond its columns")
