"""Compact forests: smaller files, prediction changes within the reported bound."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

import spinney
from spinney import ensemble, linear_model, neighbors, tree
from spinney.models.packing import ARRAYS, SPLITS, pack, unpack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
X[RNG.random(X.shape) < 0.05] = np.nan
y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + RNG.normal(size=400)
KINDS = np.digitize(y, [-1.0, 0.0, 1.0])
X_TEST = RNG.normal(size=(300, 5))
NO_GRID = np.empty((0, 1, 2))


def models() -> dict[str, Any]:
    small = {"random_state": 0}
    return {
        "forest": ensemble.RandomForestRegressor(8, **small).fit(X, y),
        "outputs": ensemble.ExtraTreesRegressor(4, **small).fit(X, np.column_stack([y, 1e6 * y])),
        "classes": ensemble.RandomForestClassifier(8, min_samples_leaf=4, **small).fit(X, KINDS),
        "weighted": ensemble.RandomForestClassifier(
            4, max_depth=4, class_weight="balanced", **small
        ).fit(X, KINDS),
        "pure": ensemble.ExtraTreesClassifier(4, **small).fit(X, KINDS),
        "booster": ensemble.GradientBoostingRegressor(n_estimators=20, **small).fit(X, y),
        "rounds": ensemble.GradientBoostingClassifier(n_estimators=8, **small).fit(X, KINDS),
        "bag": ensemble.BaggingRegressor(n_estimators=4, **small).fit(X, y),
        "votes": ensemble.AdaBoostClassifier(n_estimators=5, **small).fit(np.nan_to_num(X), y > 0),
        "isolation": ensemble.IsolationForest(n_estimators=8, **small).fit(X),
    }


MODELS = models()


def outputs_of(model: Any) -> Any:
    """Return the outputs that `prediction_change` bounds."""
    if isinstance(model, ensemble.IsolationForest):
        return model.score_samples(X_TEST)
    if isinstance(model, ensemble.GradientBoostingClassifier):
        return model.decision_function(X_TEST)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X_TEST)
    return model.predict(X_TEST)


@pytest.mark.parametrize("bits", [None, 8, 16])
@pytest.mark.parametrize("name", MODELS)
def test_reported_changes_and_sizes_hold(name: str, bits: Any, tmp_path: Path) -> None:
    model = MODELS[name]
    before = outputs_of(model)
    compact = model.compact(bits)
    facts = compact.compaction_
    change = np.abs(outputs_of(compact) - before).max()
    if bits is None:
        assert change == facts["leaf_change"] == facts["prediction_change"] == 0
    elif facts["prediction_change"] is not None:
        assert change <= facts["prediction_change"] * (1 + 1e-9) + 1e-12
    np.testing.assert_array_equal(outputs_of(model), before)  # the model is unchanged
    # Changes of leaves, recomputed from the trees.
    moved = max(
        np.abs(
            compact.fitted_model().store.tree(t).value - model.fitted_model().store.tree(t).value
        )[_leaves(model, t)].max()
        for t in range(len(model.fitted_model().store))
    )
    assert moved == pytest.approx(facts["leaf_change"], rel=1e-9, abs=1e-12)
    # Files.
    model.save(tmp_path / "whole")
    compact.save(tmp_path / "compact")
    assert facts["bytes_after"] < facts["bytes_before"]
    smaller = (tmp_path / "whole").stat().st_size - (tmp_path / "compact").stat().st_size
    assert smaller > 0.8 * (facts["bytes_before"] - facts["bytes_after"]) - 2000
    for loaded in (
        spinney.load(tmp_path / "compact"),
        pickle.loads(pickle.dumps(compact)),
    ):
        np.testing.assert_array_equal(outputs_of(loaded), outputs_of(compact))
        assert loaded.compaction_["bits"] == bits
    assert spinney.describe(tmp_path / "compact")["compaction"] == facts
    assert spinney.describe(tmp_path / "whole")["compaction"] is None


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("offset", [1e8, 1e12, -1e15])
@pytest.mark.parametrize(
    "model",
    [
        ensemble.RandomForestRegressor(50, random_state=0),
        ensemble.ExtraTreesRegressor(50, max_depth=3, random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=50, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_reported_change_includes_rounding_of_sums(model: Any, offset: float, bits: Any) -> None:
    model.fit(X, y + offset)
    compact = model.compact(bits)
    change = np.abs(compact.predict(X_TEST) - model.predict(X_TEST)).max()
    assert change <= compact.compaction_["prediction_change"]


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_relative_change_with_a_log_link(loss: Any) -> None:
    model = ensemble.GradientBoostingRegressor(loss=loss, n_estimators=30, random_state=0)
    model.fit(X, np.exp(y))
    compact = model.compact(8)
    facts = compact.compaction_
    before, after = model.predict(X_TEST), compact.predict(X_TEST)
    relative_change = np.abs(after / before - 1).max()
    assert facts["prediction_change"] < facts["relative_change"]
    assert 0 < relative_change <= facts["relative_change"]
    assert model.compact().compaction_["relative_change"] == 0
    assert MODELS["booster"].compact(8).compaction_["relative_change"] is None


def _leaves(model: Any, number: int) -> Any:
    return model.fitted_model().store.tree(number).children_left < 0


def test_fewer_bits_give_smaller_files_and_larger_changes() -> None:
    forest = MODELS["forest"]
    exact, bits_16, bits_8 = (forest.compact(bits).compaction_ for bits in (None, 16, 8))
    assert exact["bytes_after"] > bits_16["bytes_after"] > bits_8["bytes_after"]
    assert bits_16["leaf_change"] < bits_8["leaf_change"] / 200
    span = max(np.ptp(forest.fitted_model().store.tree(t).value) for t in range(8))
    assert bits_8["leaf_change"] <= span / (2 * 255)


def test_leaves_of_classifiers_share_fractions() -> None:
    model = MODELS["classes"]
    held = model.compact(8).fitted_model().store.core.state()
    fractions = held["values"].reshape(-1, 4)
    np.testing.assert_allclose(fractions.sum(axis=1), 1, rtol=1e-15)
    assert len(held["mixed_counts"]) == 0
    assert len(fractions) < (model.fitted_model().store.core.state()["leaf_class"] >= 4).sum()


def test_refit_and_warm_start_of_compact_forests() -> None:
    X_train, y_train = X[:100], y[:100]
    forest = ensemble.RandomForestRegressor(3, warm_start=True, random_state=0).fit(
        X_train, y_train
    )
    compact = forest.compact(8).set_params(n_estimators=5).fit(X_train, y_train)
    restored = pickle.loads(pickle.dumps(compact))
    np.testing.assert_array_equal(restored.predict(X_TEST), compact.predict(X_TEST))
    fresh = forest.compact(8).set_params(warm_start=False).fit(X_train, y_train)
    assert not hasattr(fresh, "compaction_")
    np.testing.assert_array_equal(fresh.predict(X_TEST[:9]), forest.predict(X_TEST[:9]))


def test_compact_trees_with_a_single_leaf() -> None:
    constant = ensemble.RandomForestRegressor(2, random_state=0).fit(X, np.full(400, 2.5))
    for bits in (None, 8, 16):
        np.testing.assert_array_equal(constant.compact(bits).predict(X_TEST), 2.5)
        assert constant.compact(bits).compaction_["leaf_change"] == 0


def test_unsupported_options_and_models_raise() -> None:
    with pytest.raises(ValueError, match="bits: expected 8, 16 or None, got 4"):
        MODELS["forest"].compact(4)
    with pytest.raises(NotFittedError):
        ensemble.RandomForestRegressor().compact()
    for kind in (neighbors.KNeighborsRegressor, linear_model.Ridge, tree.DecisionTreeRegressor):
        with pytest.raises(TypeError, match=f"{kind.__name__} cannot be made compact"):
            kind().fit(np.nan_to_num(X), y).compact()
    two_outputs = ensemble.RandomForestClassifier(2).fit(X, np.column_stack([KINDS, KINDS > 1]))
    np.testing.assert_array_equal(two_outputs.compact().predict(X), two_outputs.predict(X))
    with pytest.raises(ValueError, match="classifier with 2 outputs, got 8"):
        two_outputs.compact(8)


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(3, 40), elements=st.floats(-1e300, 1e300)),
    st.sampled_from([8, 16]),
)
def test_leaf_change_is_bounded_for_any_targets(targets: Any, bits: Any) -> None:
    rows = np.arange(len(targets), dtype=float)[:, None]
    forest = ensemble.ExtraTreesRegressor(2, random_state=0).fit(rows, targets)
    compact = forest.compact(bits)
    step = (targets.max() / 2 - targets.min() / 2) / (2**bits - 1)
    assert compact.compaction_["leaf_change"] <= step * (1 + 1e-6)
    restored = pickle.loads(pickle.dumps(compact))
    np.testing.assert_array_equal(restored.predict(rows), compact.predict(rows))


@pytest.mark.parametrize("name", MODELS)
def test_packing_is_lossless(name: str) -> None:
    arrays = MODELS[name].fitted_model().store.core.state()
    packed = pack(arrays, NO_GRID)
    assert SPLITS in packed
    unpacked = unpack(packed, NO_GRID)
    assert unpacked.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(unpacked[key], array, strict=True, err_msg=key)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_packed_forests_raise_or_load(data: st.DataObject) -> None:
    """A packed forest with any change raises, or all its trees can be read."""
    store = MODELS["forest"].compact(8).fitted_model().store
    state = store.__getstate__()
    name = data.draw(st.sampled_from([*ARRAYS, "sizes", SPLITS]))
    array = state["packed"][name].copy()
    if not len(array):
        array = np.zeros(3, dtype=array.dtype)
    else:
        position = data.draw(st.integers(0, len(array) - 1))
        array[position] = data.draw(st.integers(0, 255))
        array = array[: data.draw(st.sampled_from([len(array), position]))]
    loaded = object.__new__(type(store))
    try:
        loaded.__setstate__({**state, "packed": {**state["packed"], name: array}})
    except ValueError:
        return
    for number in range(len(loaded)):
        loaded.tree(number)
