"""Models as ONNX graphs."""

from __future__ import annotations

import json
from typing import Any

from spinney.export.reading import read_form
from spinney.models.form import (
    Form,
    LinearScores,
    NotExpressible,
    PolynomialScores,
    Shares,
    TreeScores,
)

__all__ = ["export_onnx"]

_OPSETS = {"": 18, "ai.onnx.ml": 5}
_IR_VERSION = 10  # the first with these operators
_LARGEST = 2**31 - 1  # bytes of a protobuf message


def export_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Write a fitted model as an ONNX graph, for onnxruntime and its like.

    Parameters
    ----------
    model : estimator
        A fitted decision tree, extra tree, forest, isolation forest, bagging, AdaBoost or gradient
        boosting of Spinney's trees, linear model, or k-neighbours classifier or regressor with
        Euclidean distance.
    dtype : {"float32", "float64"}, default="float32"
        The type of the numbers that go in and come out. Inside all is in double precision, so that
        with "float64" thresholds are met exactly; with "float32" they are for rows that are
        float32 themselves, while other rows are rounded by whoever makes them float32.

    Returns
    -------
    onnx.ModelProto
        Save it with ``onnx.save``, or hand ``SerializeToString()`` to onnxruntime (1.24 or later:
        earlier ones are slow to load sets of many categories).
        A model of numbers has one input, ``X`` of shape (n_rows, n_features); one with categories
        has an input of shape (n_rows, 1) for each column, named as in fit: strings, int64, bool or
        double, as the categories are. The first output is ``label`` or ``prediction``; classifiers
        have ``probabilities`` (or ``scores``, where `predict_proba` is missing) beside it. The
        names of the columns are in the metadata, as JSON under "columns".

    Raises
    ------
    TypeError
        If ONNX cannot say what the model does; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import export_onnx
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> proto = export_onnx(DecisionTreeClassifier(max_depth=3).fit(X, y))
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities']
    """
    try:
        from onnx import TensorProto
    except ImportError as error:
        needed = "export_onnx needs the package onnx: pip install 'spinney[onnx]'"
        raise ImportError(needed) from error
    kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    if not isinstance(dtype, str) or dtype not in kinds:
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {dtype!r}")
    try:
        return _write(read_form(model), kinds[dtype])
    except NotExpressible as error:
        raise TypeError(f"export_onnx: cannot write {type(model).__name__}: {error}") from None


def _write(form: Form, kind: int) -> Any:
    from onnx import helper

    from spinney import __version__
    from spinney.export._onnx_graph import Graph
    from spinney.export._onnx_outcomes import add_outcome
    from spinney.export._onnx_rows import add_rows

    graph = Graph()
    rows = add_rows(graph, form, kind)
    scores, n_scores = _add_scores(graph, rows, form)
    add_outcome(graph, scores, n_scores, form.outcome, kind)
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes, form.model, graph.inputs, graph.outputs, initializer=graph.constants
        ),
        producer_name="spinney",
        producer_version=__version__,
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid(*opset) for opset in _OPSETS.items()],
    )
    if form.names is not None:
        helper.set_model_props(proto, {"columns": json.dumps(form.names)})
    if proto.ByteSize() > _LARGEST:
        raise NotExpressible("it takes more than the 2 GB that an ONNX file can have")
    return proto


def _add_scores(graph: Any, rows: str, form: Form) -> tuple[str, int]:
    from spinney.export._onnx_neighbors import add_neighbor_scores
    from spinney.export._onnx_trees import add_tree_scores

    scores = form.scores
    if isinstance(scores, TreeScores):
        sums_to = form.outcome.divisor if isinstance(form.outcome, Shares) else None
        return add_tree_scores(graph, rows, scores, sums_to), len(scores.start)
    if isinstance(scores, LinearScores):
        if scores.center is not None:
            rows = graph.add("Sub", rows, graph.constant(scores.center))
        products = graph.add("MatMul", rows, graph.constant(scores.coef.T))
        return graph.add("Add", products, graph.constant(scores.intercept)), len(scores.coef)
    if isinstance(scores, PolynomialScores):
        return _add_polynomial(graph, rows, scores), len(scores.coef)
    return add_neighbor_scores(graph, rows, scores), scores.values.shape[1]


def _add_polynomial(graph: Any, rows: str, scores: PolynomialScores) -> str:
    from_middle = graph.add("Sub", rows, graph.constant(scores.middle))
    x = graph.add("Div", from_middle, graph.constant(scores.half))
    powers = [graph.add("Add", graph.add("Mul", x, graph.number(0.0)), graph.number(1.0)), x]
    for i in range(2, scores.degree + 1):  # Legendre's, each from the two before it
        longer = graph.add("Mul", graph.add("Mul", powers[-1], x), graph.number(2 * i - 1))
        shorter = graph.add("Mul", powers[-2], graph.number(i - 1))
        powers.append(graph.add("Div", graph.add("Sub", longer, shorter), graph.number(i)))
    every = graph.add("Concat", *powers, axis=1)
    terms = ""
    for factor in scores.factors().T:  # as many gathers as a term can have factors
        chosen = graph.add("Gather", every, graph.constant(factor), axis=1)
        terms = graph.add("Mul", terms, chosen) if terms else chosen
    return str(graph.add("MatMul", terms, graph.constant(scores.coef.T)))
