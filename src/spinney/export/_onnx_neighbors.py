"""Nearest neighbours in ONNX operators: candidates by products, then true distances.

Products of all rows with all rows of fit cost one matrix product, but lose digits where distances
are small. So they only choose some more candidates than are needed; the distances that decide are
sums of squared differences, as the model has them. Of equally far rows the first of fit wins.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from spinney.export._onnx_graph import Graph
from spinney.models.form import NeighborScores

__all__ = ["add_neighbor_scores"]

_SPARE = 16  # candidates beyond k


def add_neighbor_scores(graph: Graph, rows: str, scores: NeighborScores) -> str:
    """Add the weighted sums over neighbours, (n_rows, n_scores)."""
    known, k = scores.rows, scores.k
    n_candidates = min(len(known), k + _SPARE)
    center = known.mean(axis=0)
    near_origin = known - center
    moved = graph.add("Sub", rows, graph.constant(center))
    products = graph.add("MatMul", moved, graph.constant(-2 * near_origin.T))
    squares = graph.constant((near_origin**2).sum(axis=1))
    _, candidates = _least(graph, graph.add("Add", products, squares), n_candidates)
    in_order = graph.cast(candidates, TensorProto.DOUBLE)
    in_order, _ = _least(graph, in_order, n_candidates)
    candidates = graph.cast(in_order, TensorProto.INT64)

    values = graph.add("Gather", graph.constant(known), candidates)  # (rows, candidates, columns)
    differences = graph.add("Sub", graph.unsqueeze(rows), values)
    distances = graph.sum(graph.add("Mul", differences, differences), axis=2)
    distances, places = _least(graph, distances, k)
    nearest = graph.add("GatherElements", candidates, places, axis=1)
    targets = graph.add("Gather", graph.constant(scores.values), nearest)  # (rows, k, scores)
    if not scores.by_distance:
        return graph.add("ReduceMean", targets, graph.constant(np.array([1])), keepdims=0)
    weights = _inverse(graph, graph.add("Sqrt", distances))
    share = graph.add("Div", weights, graph.sum(weights, keepdims=1))
    return graph.sum(graph.add("Mul", graph.unsqueeze(share, 2), targets))


def _least(graph: Graph, values: str, k: int) -> list[str]:
    return graph.add_many("TopK", 2, values, graph.constant(np.array([k])), axis=1, largest=0)


def _inverse(graph: Graph, distances: str) -> str:
    """One over the distance; where some are zero, these alone count."""
    is_same = graph.add("Equal", distances, graph.number(0.0))
    same = graph.cast(is_same, TensorProto.DOUBLE)
    any_same = graph.add("Greater", graph.sum(same, keepdims=1), graph.number(0.0))
    inverse = graph.add("Reciprocal", distances)
    return graph.add("Where", any_same, same, inverse)
