"""A graph of ONNX operators under construction."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

__all__ = ["ML", "Graph", "tensor_of"]

ML = "ai.onnx.ml"  # the domain of trees and label encoders
_STRING_KINDS = "UO"


def tensor_of(values: Any, name: str = "") -> Any:
    """Return an array of a numeric type, booleans or strings as a tensor."""
    values = np.asarray(values)
    if values.dtype.kind in _STRING_KINDS:
        texts: Any = [str(value).encode() for value in values.ravel().tolist()]
        return helper.make_tensor(name, TensorProto.STRING, values.shape, texts)
    return numpy_helper.from_array(np.asarray(values, order="C"), name)


class Graph:
    """A graph under construction, which assigns names to results and constants.

    Attributes
    ----------
    nodes, constants, inputs, outputs : list
        The elements of the graph; nodes are in the order of execution.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._taken: set[str] = set()

    def name(self, wanted: str) -> str:
        """Return an unused name: the wanted one, if possible."""
        name, n = wanted, 1
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name)
        return name

    def constant(self, values: Any) -> str:
        """Add a constant array, and return its name."""
        name = self.name("constant")
        self.constants.append(tensor_of(values, name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one result, and return the result's name."""
        return self.add_many(operator, 1, *inputs, domain=domain, **attributes)[0]

    def add_many(
        self, operator: str, n_results: int, *inputs: str, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add an operator with several results, and return their names."""
        results = [self.name(operator.lower()) for _ in range(n_results)]
        self.nodes.append(
            helper.make_node(operator, list(inputs), results, domain=domain, **attributes)
        )
        return results

    def cast(self, value: str, kind: int) -> str:
        """Convert the type of a tensor."""
        return self.add("Cast", value, to=kind)

    def number(self, value: float) -> str:
        """Add a scalar constant in double precision."""
        return self.constant(np.array(value, dtype=np.float64))

    def squeeze(self, value: str) -> str:
        """Drop the second axis, which has one entry."""
        return self.add("Squeeze", value, self.constant(np.array([1])))

    def unsqueeze(self, value: str, axis: int = 1) -> str:
        """Insert an axis."""
        return self.add("Unsqueeze", value, self.constant(np.array([axis])))

    def column(self, value: str, index: int) -> str:
        """Take a column of a matrix, as a vector."""
        return self.add("Gather", value, self.constant(np.array(index)), axis=1)

    def sum(self, value: str, axis: int = 1, keepdims: int = 0) -> str:
        """Sum along an axis."""
        return self.add("ReduceSum", value, self.constant(np.array([axis])), keepdims=keepdims)

    def add_input(self, name: str, kind: int, width: int) -> str:
        """Declare an input of any number of rows."""
        name = self.name(name)
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["n_rows", width]))
        return name

    def add_output(self, name: str, value: str, kind: int, width: int | None) -> None:
        """Declare an output: a vector if `width` is None, otherwise a matrix."""
        name = self.name(name)
        shape: list[Any] = ["n_rows"] if width is None else ["n_rows", width]
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))
