"""Boosters of other libraries, read from stored files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney.importing._ubjson import read_ubjson
from support.imported_models import FOLDER, predict_like_source, read_expected

ROWS, EXPECTED = read_expected()
READERS = {
    "catboost": spinney.from_catboost,
    "lightgbm": spinney.from_lightgbm,
    "xgboost": spinney.from_xgboost,
}


def _read(name):
    return READERS[name.split("_")[0]](FOLDER / name)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_file_predicts_like_its_library(name):
    """Sums in single precision (XGBoost) are equal up to rounding, others exactly."""
    model = _read(name)
    rounding = 2e-6 if name.startswith("xgboost") else 1e-12
    for X in (ROWS, ROWS.astype(np.float32), np.asfortranarray(ROWS), ROWS[:1]):
        expected = EXPECTED[name][: len(X)]
        actual = predict_like_source(model, X, expected)
        np.testing.assert_allclose(actual, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_imported_model_is_complete(name, tmp_path):
    """Saving, pickling, stages, trees and importances work like for a fitted model."""
    model = _read(name)
    raw = model._raw(ROWS)
    spinney.save(model, tmp_path / "model.spinney")
    np.testing.assert_array_equal(spinney.load(tmp_path / "model.spinney")._raw(ROWS), raw)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))._raw(ROWS), raw)
    *_, last = model._staged_raw(ROWS)
    np.testing.assert_allclose(last, raw, rtol=1e-12, atol=1e-12)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.apply(ROWS).shape[0] == len(ROWS)
    tree = model.fitted_model().store.tree(0)
    assert tree.n_node_samples[0] > 0
    assert tree.max_depth <= 10


def test_unseen_categories_go_right():
    model = _read("lightgbm_binary.txt")
    rows = np.repeat(ROWS[:1], 3, axis=0)
    rows[:, 4] = [99, -1, np.nan]
    raw = model.decision_function(rows)
    assert raw[0] == raw[1] == raw[2]


def test_parameters_and_loss_are_imported():
    model = _read("lightgbm_zero.txt")
    assert (model.loss, model.alpha, model.n_estimators) == ("quantile", 0.3, 3)
    assert model.learning_rate == 0.1
    assert _read("xgboost_dart.json").loss == "gamma"
    assert _read("lightgbm_multiclass.txt").classes_.tolist() == [0, 1, 2]


def test_boosting_continues_from_an_imported_model():
    model = _read("lightgbm_binary.txt")
    before = model.decision_function(ROWS)
    y = ROWS[:, 4] > 5
    model.set_params(warm_start=True, n_estimators=4, categorical_features=[4])
    X = ROWS.copy()
    X[:12, 4] = np.arange(12)
    model.fit(X, y)
    assert model.n_estimators_ == 4
    *stages, _ = model.staged_decision_function(ROWS)
    np.testing.assert_allclose(stages[-1], before, rtol=1e-12)


# ---------------------------------------------------------------- invalid files


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tree\n", "forest\n", "begins with 'tree'"),
        ("end of trees", "", "truncated"),
        ("max_feature_idx=4", "max_feature_idx=4.5", "max_feature_idx"),
        ("max_feature_idx=4", "max_feature_idx=1", "columns from 0 to 1"),
        ("objective=binary", "objective=multiclassova", "not supported"),
        ("left_child=1", "left_child=0", "child of more than one"),
        ("left_child=1", "left_child=77", "children"),
        ("left_child=1 ", "left_child=", "left_child"),
        ("split_feature=", "split_feature=9", "columns|expected"),
        ("is_linear=0", "is_linear=1", "linear trees"),
        ("leaf_value=", "leaf_value=x", "leaf_value"),
        ("leaf_value=", "leaf_value=nan ", "leaf_value"),
        ("num_leaves=6", "num_leaves=0", "num_leaves"),
        ("cat_boundaries=0 ", "cat_boundaries=9 ", "cat_boundaries"),
        ("pandas_categorical:null", "pandas_categorical:[", "JSON"),
    ],
)
def test_invalid_lightgbm_file_raises(tmp_path, old, new, message):
    text = (FOLDER / "lightgbm_binary.txt").read_text()
    assert old in text
    path = tmp_path / "model.txt"
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        spinney.from_lightgbm(path)


def _change(document, change):
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    change(document["learner"], tree)
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: t.update(left_children=[0, *t["left_children"][1:]]), "more than one"),
        (lambda m, t: t.update(left_children=t["left_children"][:-1]), "equal length"),
        (lambda m, t: t.update(right_children=[999, *t["right_children"][1:]]), "children"),
        (lambda m, t: t.update(split_indices=[50, *t["split_indices"][1:]]), "column"),
        (lambda m, t: t.update(categories_sizes=[10**6] * len(t["categories_sizes"])), "categor"),
        (lambda m, t: t.pop("default_left"), "default_left"),
        (lambda m, t: t.update(split_conditions=[None] * len(t["left_children"])), "finite values"),
        (lambda m, t: m["objective"].update(name="survival:cox"), "not supported"),
        (lambda m, t: m["gradient_booster"].update(name="gblinear"), "expected trees"),
        (lambda m, t: m.pop("learner_model_param"), "learner_model_param"),
        (lambda m, t: m["learner_model_param"].update(base_score="[nan]"), "numbers"),
    ],
)
def test_invalid_xgboost_file_raises(tmp_path, change, message):
    document = json.loads((FOLDER / "xgboost_binary.json").read_text())
    path = tmp_path / "model.json"
    path.write_text(json.dumps(_change(document, change)))
    with pytest.raises(ValueError, match=message):
        spinney.from_xgboost(path)


@pytest.mark.parametrize(
    "name",
    ["catboost_binary.json", "lightgbm_binary.txt", "xgboost_binary.json", "xgboost_classes.ubj"],
)
def test_truncated_or_changed_files_raise_or_predict(tmp_path, name):
    """Any file content raises ValueError or gives a model that predicts."""
    content = (FOLDER / name).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / name
    n_errors = 0
    for trial in range(150):
        changed = bytearray(content)
        if trial % 3 == 0:
            del changed[rng.integers(len(content)) :]
        else:
            for position in rng.integers(0, len(content), 1 + trial % 4):
                changed[position] = rng.integers(32, 127)
        path.write_bytes(bytes(changed))
        try:
            model = READERS[name.split("_")[0]](path)
        except ValueError:
            n_errors += 1
            continue
        if model.n_features_in_ == ROWS.shape[1] and not hasattr(model, "feature_names_in_"):
            model.predict(ROWS)
    assert n_errors >= 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["features_info"].update(categorical_features=[{}]), "only numeric columns"),
        (
            lambda m: m["oblivious_trees"][0]["splits"][0].update(split_type="OneHot"),
            "numeric columns",
        ),
        (lambda m: m["oblivious_trees"][0]["splits"][0].update(float_feature_index=9), "columns"),
        (lambda m: m["oblivious_trees"][0]["leaf_values"].pop(), "leaves"),
        (lambda m: m["oblivious_trees"][0].update(leaf_values=[np.nan] * 8), "finite"),
        (
            lambda m: m["model_info"]["params"]["loss_function"].update(type="Focal"),
            "not supported",
        ),
        (
            lambda m: m["model_info"].update(binclass_probability_threshold="0.8"),
            "probability threshold of 0.5, got 0.8",
        ),
        (lambda m: m.pop("scale_and_bias"), "scale_and_bias"),
        (lambda m: m.update(scale_and_bias=[1, [0, 0]]), "leaves"),
    ],
)
def test_invalid_catboost_file_raises(tmp_path, change, message):
    document = json.loads((FOLDER / "catboost_binary.json").read_text())
    change(document)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message):
        spinney.from_catboost(path)


def test_missing_files_and_other_types_raise(tmp_path):
    with pytest.raises(FileNotFoundError):
        spinney.from_lightgbm(tmp_path / "none.txt")
    for reader in READERS.values():
        with pytest.raises(TypeError, match="expected"):
            reader(pd.DataFrame())


def test_ubjson_values_of_every_type():
    content = (
        b"{U\x01a[Zi\xffU\xffI\x01\x00TFCx]U\x01bSU\x02hi"
        b"U\x01c[$l#U\x02\x00\x00\x00\x01\xff\xff\xff\xffU\x01d[#U\x01D\x3f\xf0\0\0\0\0\0\0}"
    )
    values = read_ubjson(content)
    assert values["a"] == [None, -1, 255, 256, True, False, "x"]
    assert values["b"] == "hi"
    assert values["c"].tolist() == [1, -1]
    assert values["d"] == [1.0]
    for end in range(len(content)):
        with pytest.raises(ValueError, match="UBJSON"):
            read_ubjson(content[:end])
