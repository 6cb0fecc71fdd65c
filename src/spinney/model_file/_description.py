"""A fitted model as data: a list of nodes and the arrays that they refer to.

A *value* is plain JSON (null, true, a number, a string), or ``{"ref": i}`` for node i, or
``{"float": "nan"}`` for a float that JSON lacks. A *node* is a record with a `kind`: a list, a
dict, an array, an object of a class in `allowed_classes`. Nodes refer only to earlier nodes, so
that they can be built one after another. The last node is the model. A shared object is one node.

The state of an object is what pickle would store (``__reduce_ex__``), but a file contains only
data. For a function, an open file or a foreign class an error is raised, with its location in the
model. The only exceptions are scikit-learn's score functions for feature selection, stored by name.
"""

from __future__ import annotations

import copyreg
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinney.data.sklearn_versions import plain_columns
from spinney.model_file._array_parts import Record, is_plain_array, record_of_array
from spinney.model_file._search_trees import is_search_tree, parts_of_search_tree
from spinney.model_file.allowed_classes import name_of_class, name_of_score_function

__all__ = ["Description", "describe_state"]

_COLLECTIONS: dict[type[Any], str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
}
_MANY = 64  # lists of at least this many values are stored as an array
_SPARSE = {
    (sp.csr_matrix, "csr_matrix"),
    (sp.csc_matrix, "csc_matrix"),
    (sp.csr_array, "csr_array"),
    (sp.csc_array, "csc_array"),
}


class Description:
    """The nodes and tensors of a model, filled while the model is described."""

    def __init__(self) -> None:
        self.nodes: list[Record] = []
        self.tensors: dict[str, NDArray[Any]] = {}
        self._known: dict[int, int] = {}
        self._in_progress: set[int] = set()
        self._kept_alive: list[Any] = []  # Python may reuse the id of a deleted object

    def value(self, thing: Any, location: str) -> Any:
        """Return the value of an object; `location` is its path in the model, for errors."""
        if thing is None or type(thing) in (bool, int, str):
            return thing
        if type(thing) is float:
            return thing if math.isfinite(thing) else {"float": str(thing)}
        number = self._known.get(id(thing))
        if number is None:
            if id(thing) in self._in_progress:
                raise TypeError(f"{location} refers back to what it is part of")
            self._in_progress.add(id(thing))
            node = self._node(thing, location)
            self._in_progress.remove(id(thing))
            number = len(self.nodes)
            self.nodes.append(node)
            self._known[id(thing)] = number
            self._kept_alive.append(thing)
        return {"ref": number}

    def _node(self, thing: Any, location: str) -> Record:
        thing = plain_columns(thing)
        kind = type(thing)
        if kind in _COLLECTIONS:
            items = sorted(thing, key=repr) if kind in (set, frozenset) else thing
            packed = _as_plain_array(items)
            if packed is not None:
                record = record_of_array(packed, self._store)
                return {"kind": _COLLECTIONS[kind], "packed": record}
            values = [self.value(item, f"{location}[{i}]") for i, item in enumerate(items)]
            return {"kind": _COLLECTIONS[kind], "items": values}
        if kind is dict:
            return {"kind": "dict", "items": self._pairs(thing, location)}
        if kind in (np.ndarray, np.memmap):
            return self._array(thing, location)
        if isinstance(thing, np.generic):
            return self._scalar(thing, location)
        if kind is bytes:
            return {"kind": "bytes", "numbers": self._store(np.frombuffer(thing, dtype=np.uint8))}
        if kind is complex:
            parts = [self.value(thing.real, location), self.value(thing.imag, location)]
            return {"kind": "complex", "items": parts}
        if kind in (slice, range):
            parts = [self.value(part, location) for part in (thing.start, thing.stop, thing.step)]
            return {"kind": kind.__name__, "items": parts}
        if isinstance(thing, np.dtype) and thing.names is None:
            return {"kind": "dtype", "name": thing.str}
        if isinstance(thing, type) and issubclass(thing, np.generic):
            return {"kind": "numpy_type", "name": thing.__name__}
        if kind is np.random.RandomState:
            state = self.value(thing.get_state(legacy=False), location)
            return {"kind": "random_state", "state": state}
        for matrix, name in _SPARSE:
            if kind is matrix:
                arrays = {key: getattr(thing, key) for key in ("data", "indices", "indptr")}
                shape = tuple(int(length) for length in thing.shape)
                return {"kind": name, "parts": self.value({**arrays, "shape": shape}, location)}
        if kind is np.polynomial.Polynomial:
            parts = [np.asarray(part) for part in (thing.coef, thing.domain, thing.window)]
            return {"kind": "polynomial", "parts": self.value([*parts, thing.symbol], location)}
        if is_search_tree(thing):
            return {
                "kind": "search_tree",
                "parts": self.value(parts_of_search_tree(thing), location),
            }
        return self._object(thing, location)

    def _array(self, array: NDArray[Any], location: str) -> Record:
        if is_plain_array(array):
            return {"kind": "array", **record_of_array(array, self._store)}
        if array.dtype != object:
            raise TypeError(
                f"{location} is an array of {array.dtype}, which a model file cannot hold"
            )
        items = [self.value(item, f"{location}[{i}]") for i, item in enumerate(array.flat)]
        return {"kind": "objects", "shape": list(array.shape), "items": items}

    def _scalar(self, scalar: np.generic, location: str) -> Record:
        array = np.asarray(scalar)
        if array.dtype.kind not in "biufmMUS" or array.dtype.char == "g":
            raise TypeError(f"{location} is a {array.dtype}, which a model file cannot hold")
        is_time = array.dtype.kind in "mM"  # stored as its number of time units
        value = array.view(np.int64).item() if is_time else scalar.item()
        return {
            "kind": "scalar",
            "dtype": array.dtype.newbyteorder("=").str,
            "value": self.value(value, location),
        }

    def _object(self, thing: Any, location: str) -> Record:
        name = name_of_class(type(thing))
        if name is None:
            raise TypeError(_refusal(thing, location))
        function, arguments, state, _, entries = (*thing.__reduce_ex__(2), *[None] * 3)[:5]
        if function is copyreg.__newobj__:  # type: ignore[attr-defined]
            arguments = arguments[1:]
        elif function is not type(thing):
            raise TypeError(_refusal(thing, location))
        node: Record = {"kind": "object", "class": name}
        if arguments:
            node["arguments"] = [self.value(a, f"{location}({i})") for i, a in enumerate(arguments)]
        if name == "sklearn.preprocessing.FunctionTransformer":
            for key in ("func", "inverse_func"):  # loading refuses even NumPy's types here
                if state[key] is not None:
                    raise TypeError(_refusal(state[key], f"{location}.{key}"))
        if name == "sklearn.feature_selection.SelectKBest":
            score_function = name_of_score_function(state["score_func"])
            if score_function is not None:  # for any other function `_pairs` raises the error
                node["score_function"] = score_function
                state = {key: item for key, item in state.items() if key != "score_func"}
        if type(state) is dict:
            node["state"] = self._pairs(state, location)
        elif state is not None:
            raise TypeError(_refusal(thing, location))
        if entries is not None:
            node["entries"] = self._pairs(dict(entries), location)
        return node

    def _pairs(self, mapping: dict[Any, Any], location: str) -> list[Any]:
        return [
            [self.value(key, f"{location} key {key!r}"), self.value(item, f"{location}.{key}")]
            for key, item in mapping.items()
        ]

    def _store(self, tensor: NDArray[Any]) -> str:
        name = str(len(self.tensors))
        self.tensors[name] = tensor
        return name


def describe_state(model: Any) -> Description:
    """Describe a model; raise a TypeError if a part of it is not data."""
    description = Description()
    description.value(model, type(model).__name__)
    return description


def _as_plain_array(items: Sequence[Any]) -> NDArray[Any] | None:
    """Return a long list of one type as an array (smaller than JSON), else None."""
    if len(items) < _MANY:
        return None
    kinds = {type(item) for item in items}
    if kinds == {str}:
        return np.array(items, dtype=object)
    if kinds == {float}:
        return np.array(items, dtype=np.float64)
    if kinds == {int} and max(map(abs, items)) < 2**63:
        return np.array(items, dtype=np.int64)
    return None


def _refusal(thing: Any, location: str) -> str:
    kind = type(thing)
    if callable(thing) and hasattr(thing, "__qualname__"):
        label = f"the function {thing.__module__}.{thing.__qualname__}"
        if isinstance(thing, type):
            label = f"the class {thing.__module__}.{thing.__qualname__}"
    else:
        label = f"a {kind.__module__}.{kind.__qualname__}"
    if kind.__name__.endswith("SearchCV"):
        return f"{location} is {label}, which a model file cannot hold: save its best_estimator_"
    return f"{location} is {label}: a model file holds only data of known classes, no code"
