"""A fitted model as data: a list of nodes and the arrays they mention.

A *value* is plain JSON (null, true, a number, a text), or ``{"ref": i}``, the node number i, or
``{"float": "nan"}`` for what JSON lacks. A *node* is a record of a `kind`: a list, a dict, an
array, an object of a class from `_classes`. Nodes refer only to nodes before them, so that they can
be made one after another, and the last one is the model. What is shared is one node.

The state of an object is what pickle would take (``__reduce_ex__``), but only data ever gets into a
file: a function, an open file or a class from elsewhere is refused by its place in the model. The
one exception are a few functions of scikit-learn's that select columns, by their names.
"""

from __future__ import annotations

import copyreg
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinney.model_file._array_parts import Record, is_plain_array, record_of_array
from spinney.model_file._search_trees import is_search_tree, parts_of_search_tree
from spinney.model_file.allowed_classes import name_of_class, name_of_score_function

__all__ = ["Description", "describe"]

_COLLECTIONS: dict[type[Any], str] = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
}
_MANY = 64  # values of a list that are kept as an array
_SPARSE = {
    (sp.csr_matrix, "csr_matrix"),
    (sp.csc_matrix, "csc_matrix"),
    (sp.csr_array, "csr_array"),
    (sp.csc_array, "csc_array"),
}


class Description:
    """The nodes and tensors of one model, as far as it is described."""

    def __init__(self) -> None:
        self.nodes: list[Record] = []
        self.tensors: dict[str, NDArray[Any]] = {}
        self._known: dict[int, int] = {}
        self._under_way: set[int] = set()
        self._kept_alive: list[Any] = []  # an id means nothing once its object is gone

    def value(self, thing: Any, place: str) -> Any:
        """Describe anything; `place` is where it was found, for messages."""
        if thing is None or type(thing) in (bool, int, str):
            return thing
        if type(thing) is float:
            return thing if math.isfinite(thing) else {"float": str(thing)}
        number = self._known.get(id(thing))
        if number is None:
            if id(thing) in self._under_way:
                raise TypeError(f"{place} refers back to what it is part of")
            self._under_way.add(id(thing))
            node = self._node(thing, place)
            self._under_way.remove(id(thing))
            number = len(self.nodes)
            self.nodes.append(node)
            self._known[id(thing)] = number
            self._kept_alive.append(thing)
        return {"ref": number}

    def _node(self, thing: Any, place: str) -> Record:
        kind = type(thing)
        if kind in _COLLECTIONS:
            items = sorted(thing, key=repr) if kind in (set, frozenset) else thing
            packed = _as_plain_array(items)
            if packed is not None:
                record = record_of_array(packed, self._store)
                return {"kind": _COLLECTIONS[kind], "packed": record}
            values = [self.value(item, f"{place}[{i}]") for i, item in enumerate(items)]
            return {"kind": _COLLECTIONS[kind], "items": values}
        if kind is dict:
            return {"kind": "dict", "items": self._pairs(thing, place)}
        if kind in (np.ndarray, np.memmap):
            return self._array(thing, place)
        if isinstance(thing, np.generic):
            return self._scalar(thing, place)
        if kind is bytes:
            return {"kind": "bytes", "numbers": self._store(np.frombuffer(thing, dtype=np.uint8))}
        if kind is complex:
            parts = [self.value(thing.real, place), self.value(thing.imag, place)]
            return {"kind": "complex", "items": parts}
        if kind in (slice, range):
            parts = [self.value(part, place) for part in (thing.start, thing.stop, thing.step)]
            return {"kind": kind.__name__, "items": parts}
        if isinstance(thing, np.dtype) and thing.names is None:
            return {"kind": "dtype", "name": thing.str}
        if isinstance(thing, type) and issubclass(thing, np.generic):
            return {"kind": "numpy_type", "name": thing.__name__}
        if kind is np.random.RandomState:
            state = self.value(thing.get_state(legacy=False), place)
            return {"kind": "random_state", "state": state}
        for matrix, name in _SPARSE:
            if kind is matrix:
                arrays = {key: getattr(thing, key) for key in ("data", "indices", "indptr")}
                shape = tuple(int(length) for length in thing.shape)
                return {"kind": name, "parts": self.value({**arrays, "shape": shape}, place)}
        if kind is np.polynomial.Polynomial:
            parts = [np.asarray(part) for part in (thing.coef, thing.domain, thing.window)]
            return {"kind": "polynomial", "parts": self.value([*parts, thing.symbol], place)}
        if is_search_tree(thing):
            return {"kind": "search_tree", "parts": self.value(parts_of_search_tree(thing), place)}
        return self._object(thing, place)

    def _array(self, array: NDArray[Any], place: str) -> Record:
        if is_plain_array(array):
            return {"kind": "array", **record_of_array(array, self._store)}
        if array.dtype != object:
            raise TypeError(f"{place} is an array of {array.dtype}, which a model file cannot hold")
        items = [self.value(item, f"{place}[{i}]") for i, item in enumerate(array.flat)]
        return {"kind": "objects", "shape": list(array.shape), "items": items}

    def _scalar(self, scalar: np.generic, place: str) -> Record:
        array = np.asarray(scalar)
        if array.dtype.kind not in "biufmMUS" or array.dtype.char == "g":
            raise TypeError(f"{place} is a {array.dtype}, which a model file cannot hold")
        is_time = array.dtype.kind in "mM"  # kept as the number of its units
        value = array.view(np.int64).item() if is_time else scalar.item()
        return {
            "kind": "scalar",
            "dtype": array.dtype.newbyteorder("=").str,
            "value": self.value(value, place),
        }

    def _object(self, thing: Any, place: str) -> Record:
        name = name_of_class(type(thing))
        if name is None:
            raise TypeError(_refusal(thing, place))
        function, arguments, state, _, entries = (*thing.__reduce_ex__(2), *[None] * 3)[:5]
        if function is copyreg.__newobj__:  # type: ignore[attr-defined]
            arguments = arguments[1:]
        elif function is not type(thing):
            raise TypeError(_refusal(thing, place))
        node: Record = {"kind": "object", "class": name}
        if arguments:
            node["arguments"] = [self.value(a, f"{place}({i})") for i, a in enumerate(arguments)]
        if name == "sklearn.preprocessing.FunctionTransformer":
            for key in ("func", "inverse_func"):  # NumPy's types are data, but not there
                if state[key] is not None:
                    raise TypeError(_refusal(state[key], f"{place}.{key}"))
        if name == "sklearn.feature_selection.SelectKBest":
            scoring = name_of_score_function(state["score_func"])
            if scoring is not None:  # any other is refused below, by its place
                node["score_function"] = scoring
                state = {key: item for key, item in state.items() if key != "score_func"}
        if type(state) is dict:
            node["state"] = self._pairs(state, place)
        elif state is not None:
            raise TypeError(_refusal(thing, place))
        if entries is not None:
            node["entries"] = self._pairs(dict(entries), place)
        return node

    def _pairs(self, mapping: dict[Any, Any], place: str) -> list[Any]:
        return [
            [self.value(key, f"{place} key {key!r}"), self.value(item, f"{place}.{key}")]
            for key, item in mapping.items()
        ]

    def _store(self, tensor: NDArray[Any]) -> str:
        name = str(len(self.tensors))
        self.tensors[name] = tensor
        return name


def describe(model: Any) -> Description:
    """Describe a model; what cannot be data is a TypeError that says where it is."""
    description = Description()
    description.value(model, type(model).__name__)
    return description


def _as_plain_array(items: Sequence[Any]) -> NDArray[Any] | None:
    """Return many values of one kind as an array, which takes less room than JSON."""
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


def _refusal(thing: Any, place: str) -> str:
    kind = type(thing)
    if callable(thing) and hasattr(thing, "__qualname__"):
        what = f"the function {thing.__module__}.{thing.__qualname__}"
        if isinstance(thing, type):
            what = f"the class {thing.__module__}.{thing.__qualname__}"
    else:
        what = f"a {kind.__module__}.{kind.__qualname__}"
    if kind.__name__.endswith("SearchCV"):
        return f"{place} is {what}, which a model file cannot hold: save its best_estimator_"
    return f"{place} is {what}: a model file holds data of known classes, no code"
