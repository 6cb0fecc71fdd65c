"""ONNX graphs in onnxruntime against the models that they export, row by row."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import spinney
from spinney import export_onnx
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRanker,
    RandomForestClassifier,
)
from spinney.linear_model import LinearRegression
from spinney.neighbors import KNeighborsClassifier
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.export_models import (
    all_models,
    fit_on_missing,
    models_of_several_classes,
    rows_with_missing,
    table,
    table_models,
    takes_missing,
    targets,
    unsupported,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


def inputs_of(session: Any, X: Any) -> dict[str, Any]:
    """Prepare a matrix, or a table with missing strings as empty strings."""
    if not isinstance(X, pd.DataFrame):
        (graph_input,) = session.get_inputs()
        assert graph_input.name == "X"
        return {"X": X.astype(_DTYPES[graph_input.type])}
    columns = {}
    for graph_input in session.get_inputs():
        values = X[graph_input.name]
        if graph_input.type == "tensor(string)":
            columns[graph_input.name] = values.astype(object).fillna("").to_numpy()[:, None]
        else:
            columns[graph_input.name] = values.to_numpy(dtype=_DTYPES[graph_input.type])[:, None]
    return columns


def run(proto: Any, X: Any) -> list[Any]:
    """Run a graph with onnxruntime."""
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, inputs_of(session, X))


def check(model: Any, X: Any, *, dtype: str = "float32", mostly_clear: bool = True) -> None:
    """Compare all outputs; labels may differ only where classes tie up to rounding."""
    outputs = run(export_onnx(model, dtype=dtype), X)
    predicted = model.predict(X)
    tolerance = (
        {"rtol": 1e-6, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    )
    if len(outputs) == 1:
        assert outputs[0].dtype == dtype
        assert outputs[0].shape == predicted.shape
        np.testing.assert_allclose(outputs[0], predicted, **tolerance)
        return
    label, value = outputs
    assert value.dtype == dtype
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
        best_two = np.sort(expected, axis=1)[:, -2:]
        is_clear = (best_two[:, -1] - best_two[:, 0] > 1e-12) | (expected.shape[1] == 1)
    else:
        expected = model.decision_function(X)
        tolerance = {"rtol": 1e-5, "atol": 1e-5}  # the model itself may work in float32
        is_clear = np.ones(len(expected), dtype=bool)
    assert is_clear.mean() > 0.5 or not mostly_clear
    np.testing.assert_array_equal(label[is_clear], predicted[is_clear])
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, **tolerance)


def name(case: Any) -> str:
    return f"{type(case[0]).__name__}-{case[1]}"


@pytest.mark.parametrize("case", all_models(), ids=name)
def test_every_model_predicts_the_same(case: Any) -> None:
    model = fit_on_missing(*case)
    X = rows_with_missing(500, seed=5, missing=0.3 if takes_missing(model) else 0.0)
    check(model, X)
    check(model, X[:1], mostly_clear=False)


@pytest.mark.parametrize("case", all_models()[::3], ids=name)
def test_double_precision_predicts_the_same(case: Any) -> None:
    model = fit_on_missing(*case, dtype=np.float64)
    X = np.random.default_rng(3).normal(size=(300, 5))  # not representable as float32
    check(model, X, dtype="float64")


@pytest.mark.parametrize("model", table_models(), ids=lambda model: type(model).__name__)
def test_tables_with_categories_predict_the_same(model: Any) -> None:
    check(model, table(1000, unseen=True, seed=9))


@pytest.mark.parametrize("model", table_models(), ids=lambda model: type(model).__name__)
def test_reference_runtime_predicts_the_same(model: Any) -> None:
    X = table(60, unseen=True, seed=2)
    proto = export_onnx(model)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    columns = inputs_of(session, X)
    reference_columns = {k: v.astype(str) if v.dtype == object else v for k, v in columns.items()}
    expected = session.run(None, columns)
    for ours, theirs in zip(
        ReferenceEvaluator(proto).run(None, reference_columns), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_columns_may_be_named_like_operators_or_outputs() -> None:
    frame = table(200)[["x", "colour", "town"]].set_axis(["cast", "labelencoder", "label"], axis=1)
    model = DecisionTreeRegressor(max_depth=4).fit(frame, np.arange(200.0))
    check(model, frame)


def test_graph_inputs_are_the_columns_of_a_table() -> None:
    proto = export_onnx(table_models()[0])
    assert [value.name for value in proto.graph.input] == list(table(1).columns)
    assert [value.name for value in proto.graph.output] == ["label", "probabilities"]


def test_columns_of_an_array_get_names() -> None:
    X = np.array([[0, 1.5], [1, 2.5], [2, 3.5], [0, 0.5]] * 3)
    model = DecisionTreeClassifier(categorical_features=[0]).fit(X, X[:, 0] == 1)
    proto = export_onnx(model)
    assert [value.name for value in proto.graph.input] == ["x0", "x1"]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    label = session.run(None, {"x0": X[:, :1], "x1": X[:, 1:].astype(np.float32)})[0]
    np.testing.assert_array_equal(label, model.predict(X))


def test_column_names_are_in_the_metadata() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b ü": [3.0, 1.0, 2.0]})
    model = LinearRegression().fit(frame, [1.0, 2.0, 3.0])
    (entry,) = export_onnx(model).metadata_props
    assert entry.key == "columns"
    assert json.loads(entry.value) == ["a", "b ü"]
    assert len(export_onnx(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])).metadata_props) == 0


def test_column_of_missing_categories() -> None:
    frame = pd.DataFrame({"a": pd.Series([None] * 6, dtype="category"), "b": np.arange(6.0)})
    model = DecisionTreeRegressor().fit(frame, np.arange(6.0))
    check(model, frame)


def test_column_of_one_category() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", None] * 3, dtype="category"), "b": np.arange(6.0)})
    model = DecisionTreeRegressor(max_depth=1).fit(frame, [0.0, 1.0] * 3)
    assert model.tree_.feature[0] == 0
    check(model, frame)
    (encoder,) = (n for n in export_onnx(model).graph.node if n.op_type == "LabelEncoder")
    keys = next(a.t for a in encoder.attribute if a.name == "keys_tensor")
    assert len(keys.string_data) == 2  # some runtimes cannot load one


def test_leaf_numbers_differ_from_the_node_next_to_them() -> None:
    # onnxruntime up to 1.23 treats such a node as a leaf.
    X = rows_with_missing()
    y = targets(X)
    for model in (
        DecisionTreeRegressor(max_leaf_nodes=3),
        RandomForestClassifier(20, max_leaf_nodes=4, random_state=0),
        GradientBoostingClassifier(n_estimators=20, max_leaf_nodes=3, random_state=0),
    ):
        model.fit(X, y["number"] if isinstance(model, DecisionTreeRegressor) else y["two"])
        check(model, X)
        for node in export_onnx(model).graph.node:
            if node.op_type != "TreeEnsemble":
                continue
            attributes = {a.name: np.array(a.ints) for a in node.attribute}
            same = attributes["nodes_truenodeids"] == attributes["nodes_falsenodeids"]
            assert not same.any()


@pytest.mark.parametrize(
    "classes",
    [
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array([-(2**40), 3]),
        np.array([1.0, 2.0]),
    ],
    ids=lambda classes: classes.dtype.name,
)
def test_classes_of_every_type_keep_their_type(classes: Any) -> None:
    X = rows_with_missing(80)
    y = classes[(X[:, 0] > 0).astype(int)]
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    label = run(export_onnx(model), X)[0]
    assert label.dtype.kind == ("O" if classes.dtype.kind == "U" else classes.dtype.kind)
    np.testing.assert_array_equal(label, model.predict(X))


def test_thresholds_that_are_not_float32() -> None:
    X = np.array([[0.1], [0.1 + 1e-12], [0.2]])
    model = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0])
    check(model, X, dtype="float64")


@pytest.mark.parametrize("model", models_of_several_classes(), ids=lambda m: type(m).__name__)
def test_several_outputs_of_classes_predict_the_same(model: Any) -> None:
    X = rows_with_missing(200, seed=5, missing=0.3 if takes_missing(model) else 0.0)
    label, *probabilities = run(export_onnx(model), X)
    np.testing.assert_array_equal(label, model.predict(X))
    for actual, expected in zip(probabilities, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_rankers_predict_the_same() -> None:
    X = rows_with_missing(120)
    relevance = np.digitize(np.nan_to_num(X[:, 0]), [-0.5, 0.5])
    model = GradientBoostingRanker(n_estimators=5, random_state=0)
    check(model.fit(X, relevance, group=np.repeat(np.arange(12), 10)), X)


def test_neighbours_far_from_the_origin_predict_the_same() -> None:
    # Scalar products alone would lose all digits of these distances.
    rng = np.random.default_rng(0)
    X = (1e6 + rng.integers(0, 40, size=(200, 2)) / 8).astype(np.float32)
    y = rng.integers(0, 3, size=200)
    for weights in ("uniform", "distance"):
        check(KNeighborsClassifier(4, weights=weights).fit(X, y), X)


def test_forests_with_single_leaves_predict_the_same() -> None:
    X = np.array([[np.nan], [np.nan], [-1e30], [np.nan], [np.nan]], dtype=np.float32)
    model = RandomForestClassifier(3, random_state=0).fit(X, [0, 0, 0, 1, 0])
    assert {tree.tree_.node_count for tree in model.estimators_} >= {1}
    check(model, X)
    (node,) = (n for n in export_onnx(model).graph.node if n.op_type == "TreeEnsemble")
    attributes = {a.name: list(a.ints) for a in node.attribute}
    leaf_references = [
        leaf_reference
        for side in ("true", "false")
        for leaf_reference, is_leaf in zip(
            attributes[f"nodes_{side}nodeids"], attributes[f"nodes_{side}leafs"], strict=True
        )
        if is_leaf
    ]
    # Each leaf has one parent.
    assert sorted(leaf_references) == list(range(len(attributes["leaf_targetids"])))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_small_random_trees_predict_the_same(data: Any) -> None:
    cell = st.sampled_from([np.nan, -1e30, -1.0, -0.0, 0.0, 1e-38, 0.1, 1.0, 1.0000001, 3e38])
    n = data.draw(st.integers(2, 12))
    X = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=n, max_size=n)), np.float32)
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    X_test = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=1)), np.float32)
    for model in (
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(3, random_state=0),
        DecisionTreeRegressor(random_state=0),
    ):
        check(model.fit(X, y), X_test, mostly_clear=False)


@pytest.mark.parametrize("case", unsupported(), ids=name)
def test_unsupported_models_raise_and_are_named(case: Any) -> None:
    model, message = case
    with pytest.raises(TypeError, match=f"export_onnx: cannot write {type(model).__name__}: "):
        export_onnx(model)
    with pytest.raises(TypeError, match=message):
        export_onnx(model)


def test_models_of_others_and_unfitted_models_raise() -> None:
    import sklearn.linear_model

    with pytest.raises(TypeError, match="expected a fitted Spinney model"):
        export_onnx(sklearn.linear_model.LinearRegression())
    with pytest.raises(TypeError, match="cannot write str"):
        export_onnx("model")
    with pytest.raises(NotFittedError):
        export_onnx(GradientBoostingClassifier())
    with pytest.raises(NotFittedError):
        export_onnx(LinearRegression())
    with pytest.raises(ValueError, match="dtype: expected 'float32' or 'float64', got 'half'"):
        export_onnx(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]), dtype="half")


def test_exported_bytes_are_reproducible() -> None:
    model = fit_on_missing(RandomForestClassifier(5, random_state=0), "three")
    assert export_onnx(model).SerializeToString() == export_onnx(model).SerializeToString()
    assert export_onnx(model).producer_version == spinney.__version__
