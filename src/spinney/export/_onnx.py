"""Export of fitted models to ONNX graphs."""

from __future__ import annotations

import json
from typing import Any

from spinney import __version__
from spinney.export.reading import read_form
from spinney.models.form import Form, NotExpressible, TreeScores
from spinney.models.linear import LinearModel, PolynomialModel
from spinney.models.outcomes import Shares

__all__ = ["export_onnx"]

_OPSETS = {"": 18, "ai.onnx.ml": 5}
_IR_VERSION = 10  # the first version with these operator sets
_LARGEST = 2**31 - 1  # maximum number of bytes of a protobuf message


def export_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Convert a fitted model to an ONNX graph, for onnxruntime and similar runtimes.

    Parameters
    ----------
    model : estimator
        A fitted linear model, decision tree, extra tree, forest or isolation forest, bagging,
        AdaBoost or gradient boosting of Spinney trees, or k-neighbours classifier or regressor with
        Euclidean distance.
    dtype : {"float32", "float64"}, default="float32"
        The type of numeric inputs and outputs. The graph computes in double precision. With
        "float64", thresholds are exact; with "float32", they are exact for rows that are float32
        already, while other rows are rounded when the caller converts them.

    Returns
    -------
    onnx.ModelProto
        Save it with ``onnx.save``, or pass ``SerializeToString()`` to onnxruntime (1.24 or later:
        earlier versions are slow to load sets of many categories).
        A model without categories has one input, ``X`` of shape (n_rows, n_features). A model with
        categories has one input of shape (n_rows, 1) for each column, named as in the fit: string,
        int64, bool or double, like the categories. The first output is ``label`` or ``prediction``;
        classifiers also have ``probabilities`` (or ``scores`` without `predict_proba`). The names
        of the columns are in the metadata, as JSON under "columns".

    Raises
    ------
    TypeError
        If ONNX cannot express the model; the message states the reason.

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
        from onnx import TensorProto  # an optional dependency
    except ImportError as error:
        needed = (
            "export_onnx needs the package onnx, which is not installed; install it with "
            "pip install 'spinney[onnx]'"
        )
        raise ImportError(needed) from error
    kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    if not isinstance(dtype, str) or dtype not in kinds:
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {dtype!r}")
    try:
        return _write(read_form(model), kinds[dtype])
    except NotExpressible as error:
        raise TypeError(f"export_onnx: cannot write {type(model).__name__}: {error}") from None


def _write(form: Form, kind: int) -> Any:
    """Return the graph of a form; `kind` is the type of numeric inputs and outputs."""
    from onnx import helper  # an optional dependency, also of the modules below

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
        raise NotExpressible(
            f"an ONNX file has at most 2 GB, the model takes {proto.ByteSize()} bytes"
        )
    return proto


def _add_scores(graph: Any, rows: str, form: Form) -> tuple[str, int]:
    """Add the scores of a form to the graph, and return their name and number."""
    # These modules import onnx, an optional dependency.
    from spinney.export._onnx_neighbors import add_neighbor_scores
    from spinney.export._onnx_trees import add_tree_scores

    scores = form.scores
    if isinstance(scores, TreeScores):
        sums_to = form.outcome.divisor if isinstance(form.outcome, Shares) else None
        return add_tree_scores(graph, rows, scores, sums_to), len(scores.start)
    if isinstance(scores, LinearModel):
        if scores.center is not None:
            rows = graph.add("Sub", rows, graph.constant(scores.center))
        products = graph.add("MatMul", rows, graph.constant(scores.coef.T))
        return graph.add("Add", products, graph.constant(scores.intercept)), len(scores.coef)
    if isinstance(scores, PolynomialModel):
        return _add_polynomial(graph, rows, scores), len(scores.coef)
    return add_neighbor_scores(graph, rows, scores), scores.values.shape[1]


def _add_polynomial(graph: Any, rows: str, scores: PolynomialModel) -> str:
    """Add the sums of the terms, which are products of Legendre polynomials."""
    from_middle = graph.add("Sub", rows, graph.constant(scores.middle))
    x = graph.add("Div", from_middle, graph.constant(scores.half))
    powers = [graph.add("Add", graph.add("Mul", x, graph.number(0.0)), graph.number(1.0)), x]
    for i in range(2, scores.degree + 1):  # Bonnet's recursion for Legendre polynomials
        longer = graph.add("Mul", graph.add("Mul", powers[-1], x), graph.number(2 * i - 1))
        shorter = graph.add("Mul", powers[-2], graph.number(i - 1))
        powers.append(graph.add("Div", graph.add("Sub", longer, shorter), graph.number(i)))
    every = graph.add("Concat", *powers, axis=1)
    terms = ""
    for factor in scores.factors().T:  # one Gather for each factor of a term
        chosen = graph.add("Gather", every, graph.constant(factor), axis=1)
        terms = graph.add("Mul", terms, chosen) if terms else chosen
    return str(graph.add("MatMul", terms, graph.constant(scores.coef.T)))
