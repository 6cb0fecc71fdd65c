"""Nearest neighbours in ONNX operators.

One matrix product estimates the distances from all training rows, but loses digits if distances are
small. So it only selects k + 16 candidates. The neighbours are then selected by sums of squared
differences, like in the model. If distances are equal, the first training row wins.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from spinney.export._onnx_graph import Graph
from spinney.models.neighbor_rows import NeighborModel

__all__ = ["add_neighbor_scores"]

_SPARE = 16  # number of additional candidates


def add_neighbor_scores(graph: Graph, rows: str, scores: NeighborModel) -> str:
    """Add the weighted sums over neighbours, (n_rows, n_scores)."""
    train_rows, k = scores.rows, scores.k
    n_candidates = min(len(train_rows), k + _SPARE)
    center = train_rows.mean(axis=0)
    centred_train = train_rows - center
    centred = graph.add("Sub", rows, graph.constant(center))
    products = graph.add("MatMul", centred, graph.constant(-2 * centred_train.T))
    squares = graph.constant((centred_train**2).sum(axis=1))
    _, candidates = _least(graph, graph.add("Add", products, squares), n_candidates)
    in_order = graph.cast(candidates, TensorProto.DOUBLE)
    in_order, _ = _least(graph, in_order, n_candidates)
    candidates = graph.cast(in_order, TensorProto.INT64)

    values = graph.add(
        "Gather", graph.constant(train_rows), candidates
    )  # (rows, candidates, columns)
    differences = graph.add("Sub", graph.unsqueeze(rows), values)
    distances = graph.sum(graph.add("Mul", differences, differences), axis=2)
    distances, positions = _least(graph, distances, k)
    nearest = graph.add("GatherElements", candidates, positions, axis=1)
    targets = graph.add("Gather", graph.constant(scores.values), nearest)  # (rows, k, scores)
    if not scores.by_distance:
        return graph.add("ReduceMean", targets, graph.constant(np.array([1])), keepdims=0)
    weights = _inverse(graph, graph.add("Sqrt", distances))
    share = graph.add("Div", weights, graph.sum(weights, keepdims=1))
    return graph.sum(graph.add("Mul", graph.unsqueeze(share, 2), targets))


def _least(graph: Graph, values: str, k: int) -> list[str]:
    """Add the k smallest values of each row and their positions."""
    return graph.add_many("TopK", 2, values, graph.constant(np.array([k])), axis=1, largest=0)


def _inverse(graph: Graph, distances: str) -> str:
    """Add weights 1 / distance; zero distances, if any, get all the weight."""
    is_same = graph.add("Equal", distances, graph.number(0.0))
    same = graph.cast(is_same, TensorProto.DOUBLE)
    any_same = graph.add("Greater", graph.sum(same, keepdims=1), graph.number(0.0))
    inverse = graph.add("Reciprocal", distances)
    return graph.add("Where", any_same, same, inverse)
