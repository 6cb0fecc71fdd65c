"""ONNX operators that convert scores to predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from onnx import TensorProto

from spinney.export._onnx_graph import Graph
from spinney.models import outcomes as _outcomes
from spinney.models.form import NotExpressible

__all__ = ["add_outcome"]

Outputs = list[tuple[str, str, int | None]]  # name, value, width (None: a vector)


def add_outcome(graph: Graph, scores: str, n_scores: int, outcome: Any, kind: int) -> None:
    """Add the predictions as outputs; the label or number is the first.

    Parameters
    ----------
    graph : Graph
        The graph.
    scores : str
        A matrix in double precision, (n_rows, n_scores).
    n_scores : int
        The number of scores.
    outcome : object
        How predictions follow from scores: a class of `spinney.models.outcomes`.
    kind : int
        The tensor type of numeric outputs.
    """
    if isinstance(outcome, _outcomes.SeveralShares):
        _add_several(graph, scores, outcome, kind)
        return
    result = _predict(outcome, graph, scores, n_scores)
    if isinstance(result, _Labelled):
        isolated = isinstance(outcome, _outcomes.Isolation)
        labels = _label_values(np.array([-1, 1]) if isolated else outcome.classes)
        label = graph.add("Gather", graph.constant(labels), result.index)
        graph.add_output("label", label, _label_kind(labels), None)
        width = len(labels) if result.wide else None
        graph.add_output(result.name, _narrowed(graph, result.value, kind), kind, width)
        return
    value = graph.squeeze(result) if outcome.flat else result
    width = None if outcome.flat else n_scores
    graph.add_output("prediction", _narrowed(graph, value, kind), kind, width)


@dataclass(frozen=True)
class _Labelled:
    """Indices of labels, and a second output: one column for each class if `wide`."""

    index: str
    name: str
    value: str
    wide: bool


def _narrowed(graph: Graph, value: str, kind: int) -> str:
    return value if kind == TensorProto.DOUBLE else graph.cast(value, kind)


def _add_several(graph: Graph, scores: str, outcome: _outcomes.SeveralShares, kind: int) -> None:
    """Add a matrix of labels, and the probabilities for each of its columns."""
    labels = _label_values(np.concatenate([np.asarray(c, dtype=object) for c in outcome.classes]))
    shares = graph.add("Div", scores, graph.number(outcome.divisor))
    columns, of_outputs = [], []
    start = 0
    for classes in outcome.classes:
        indices = np.arange(start, start + len(classes))
        chosen = graph.constant(indices)
        index = _largest(graph, graph.add("Gather", scores, chosen, axis=1))
        label = graph.add("Gather", graph.constant(labels[indices]), index)
        columns.append(graph.unsqueeze(label))
        of_outputs.append(graph.add("Gather", shares, chosen, axis=1))
        start += len(classes)
    matrix = graph.add("Concat", *columns, axis=1)
    graph.add_output("label", matrix, _label_kind(labels), len(columns))
    for k, (value, classes) in enumerate(zip(of_outputs, outcome.classes, strict=True)):
        narrowed = _narrowed(graph, value, kind)
        graph.add_output(f"probabilities_{k}", narrowed, kind, len(classes))


def _label_values(classes: Any) -> Any:
    """Return the classes in a type that a tensor can have."""
    classes = np.asarray(classes)
    types = {type(value) for value in classes.tolist()}
    if types <= {str}:
        return classes.astype(object)
    for accepted, dtype in (({bool}, np.bool_), ({int, bool}, np.int64), ({float}, np.float64)):
        if types <= accepted:
            return classes.astype(dtype)
    found = ", ".join(sorted(t.__name__ for t in types))
    raise NotExpressible(f"its classes are of type {found}; expected strings or numbers")


def _label_kind(labels: Any) -> int:
    kinds = {"O": TensorProto.STRING, "b": TensorProto.BOOL, "i": TensorProto.INT64}
    return kinds.get(labels.dtype.kind, TensorProto.DOUBLE)


def _largest(graph: Graph, scores: str) -> str:
    return graph.add("ArgMax", scores, axis=1, keepdims=0)  # the first of equal scores


def _is_positive(graph: Graph, score: str) -> str:
    positive = graph.add("Greater", score, graph.number(0.0))
    return graph.cast(positive, TensorProto.INT64)


@singledispatch
def _predict(outcome: Any, graph: Graph, scores: str, n_scores: int) -> Any:
    raise NotExpressible(f"export to ONNX does not support the outcome {type(outcome).__name__}")


@_predict.register
def _(outcome: _outcomes.Numbers, graph: Graph, scores: str, n_scores: int) -> Any:
    if outcome.divisor == 1:
        return scores
    return graph.add("Div", scores, graph.number(outcome.divisor))


@_predict.register
def _(outcome: _outcomes.Exponential, graph: Graph, scores: str, n_scores: int) -> Any:
    return graph.add("Exp", scores)


@_predict.register
def _(outcome: _outcomes.Logistic, graph: Graph, scores: str, n_scores: int) -> Any:
    return graph.add("Sigmoid", scores)


@_predict.register
def _(outcome: _outcomes.SortedQuantiles, graph: Graph, scores: str, n_scores: int) -> Any:
    k = graph.constant(np.array([n_scores]))
    ordered, _ = graph.add_many("TopK", 2, scores, k, axis=1, largest=0)
    positions = graph.constant(np.array(outcome.positions))
    return graph.add("Gather", ordered, positions, axis=1)


@_predict.register
def _(outcome: _outcomes.WeightedMedian, graph: Graph, scores: str, n_scores: int) -> Any:
    k = graph.constant(np.array([n_scores]))
    ordered, order = graph.add_many("TopK", 2, scores, k, axis=1, largest=0)
    weights = graph.add("Gather", graph.constant(outcome.weights), order)
    below = graph.add("CumSum", weights, graph.constant(np.array(1)))
    half = graph.add("Mul", graph.number(0.5), graph.unsqueeze(graph.column(below, n_scores - 1)))
    enough = graph.cast(graph.add("GreaterOrEqual", below, half), TensorProto.INT64)
    index = graph.add("ArgMax", enough, axis=1, keepdims=1)
    return graph.add("GatherElements", ordered, index, axis=1)


@_predict.register
def _(outcome: _outcomes.Isolation, graph: Graph, scores: str, n_scores: int) -> Any:
    lengths = graph.squeeze(scores)
    if outcome.usual > 0:
        share = graph.add("Neg", graph.add("Div", lengths, graph.number(outcome.usual)))
        abnormality = graph.add("Pow", graph.number(2.0), share)
    else:
        nothing = graph.add("Mul", lengths, graph.number(0.0))
        abnormality = graph.add("Add", nothing, graph.number(0.5))
    decision = graph.add("Sub", graph.add("Neg", abnormality), graph.number(outcome.offset))
    inside = graph.add("GreaterOrEqual", decision, graph.number(0.0))
    return _Labelled(graph.cast(inside, TensorProto.INT64), "scores", decision, False)


@_predict.register
def _(outcome: _outcomes.Shares, graph: Graph, scores: str, n_scores: int) -> Any:
    shares = graph.add("Div", scores, graph.number(outcome.divisor))
    return _Labelled(_largest(graph, scores), "probabilities", shares, True)


@_predict.register
def _(outcome: _outcomes.TwoClasses, graph: Graph, scores: str, n_scores: int) -> Any:
    odds = scores
    if outcome.factor != 1:
        odds = graph.add("Mul", scores, graph.number(outcome.factor))
    both = graph.add("Concat", graph.add("Neg", odds), odds, axis=1)
    index = _is_positive(graph, graph.squeeze(scores))
    return _Labelled(index, "probabilities", graph.add("Sigmoid", both), True)


@_predict.register
def _(outcome: _outcomes.Softmax, graph: Graph, scores: str, n_scores: int) -> Any:
    shares = graph.add("Softmax", scores, axis=1)
    return _Labelled(_largest(graph, scores), "probabilities", shares, True)


@_predict.register
def _(outcome: _outcomes.BoostedVotes, graph: Graph, scores: str, n_scores: int) -> Any:
    n = len(outcome.classes)
    votes = graph.add("Div", scores, graph.number(outcome.total))
    if not outcome.real:  # a vote that is not for a class is against it
        against = graph.add("Sub", graph.number(1.0), votes)
        against = graph.add("Div", against, graph.number(n - 1.0))
        votes = graph.add("Sub", votes, against)
    if n > 2:
        index = _largest(graph, votes)
        logits = graph.add("Div", votes, graph.number(n - 1.0))
    else:
        decision = graph.add("Sub", graph.column(votes, 1), graph.column(votes, 0))
        index = _is_positive(graph, decision)
        half = graph.unsqueeze(graph.add("Div", decision, graph.number(2.0)))
        logits = graph.add("Concat", graph.add("Neg", half), half, axis=1)
    return _Labelled(index, "probabilities", graph.add("Softmax", logits, axis=1), True)


@_predict.register
def _(outcome: _outcomes.Sides, graph: Graph, scores: str, n_scores: int) -> Any:
    score = graph.squeeze(scores)
    return _Labelled(_is_positive(graph, score), "scores", score, False)


@_predict.register
def _(outcome: _outcomes.LargestScore, graph: Graph, scores: str, n_scores: int) -> Any:
    return _Labelled(_largest(graph, scores), "scores", scores, True)


@_predict.register
def _(outcome: _outcomes.OneClass, graph: Graph, scores: str, n_scores: int) -> Any:
    nothing = graph.add("Mul", graph.unsqueeze(graph.column(scores, 0)), graph.number(0.0))
    ones = graph.add("Add", nothing, graph.number(1.0))
    return _Labelled(_largest(graph, ones), "probabilities", ones, True)
