"""Models of scikit-learn and the imported Spinney models predict the same."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble, linear_model, mixture, neighbors, tree
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import spinney
from spinney.importing._rounding import last_at_most, last_below

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
SCORE = X[:, 0] + np.sin(3 * X[:, 1])
TWO = np.array(["b", "a"])[(SCORE > 0).astype(int)]
THREE = np.digitize(SCORE, [-0.5, 0.5])
X_MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


def _near_thresholds(model):
    """Return rows at thresholds and so close to them that rounding to float32 matters."""
    rng = np.random.default_rng(2)
    members = np.ravel(model.estimators_) if hasattr(model, "estimators_") else [model]
    thresholds = np.concatenate([member.tree_.threshold for member in members])
    rows = rng.choice(thresholds, X.shape)
    rows[:150] *= 1 + rng.integers(-3, 4, (150, 4)) * 2e-8
    return rows


def _check(model, *tables):
    ours = pickle.loads(pickle.dumps(spinney.from_sklearn(model)))
    assert type(ours).__module__.startswith("spinney.")
    for rows in tables:
        for name in ("predict", "predict_proba", "decision_function", "score_samples"):
            if not hasattr(model, name):
                continue
            expected, actual = getattr(model, name)(rows), getattr(ours, name)(rows)
            if isinstance(expected, list):  # one array for each output
                expected, actual = np.hstack(expected), np.hstack(actual)
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)
            else:
                np.testing.assert_array_equal(actual, expected)
    if hasattr(model, "feature_importances_"):
        np.testing.assert_allclose(
            ours.feature_importances_, model.feature_importances_, atol=1e-10
        )
    return ours


@pytest.mark.parametrize("y", [TWO, THREE, np.c_[THREE, THREE > 1]], ids=["two", "three", "both"])
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(max_depth=5),
        tree.ExtraTreeClassifier(criterion="log_loss"),
        ensemble.RandomForestClassifier(n_estimators=5),
        ensemble.ExtraTreesClassifier(n_estimators=5, criterion="entropy"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_of_trees_predict_the_same(model, y):
    rng = np.random.default_rng(2)
    model.set_params(random_state=0).fit(X, y)
    _check(model, X, _near_thresholds(model), X.astype(np.float32), X * 1e12)
    model.fit(X_MISSING, y, sample_weight=rng.random(len(X)))
    _check(model, X_MISSING)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeRegressor(max_depth=5),
        tree.ExtraTreeRegressor(),
        ensemble.RandomForestRegressor(n_estimators=5, max_depth=5),
        ensemble.ExtraTreesRegressor(n_estimators=5, max_depth=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressors_of_trees_predict_the_same(model, criterion):
    model.set_params(random_state=0, criterion=criterion)
    for y in (SCORE + 5, np.c_[SCORE + 5, 2 * SCORE + 9]):
        model.fit(X, y)
        _check(model, X, _near_thresholds(model), X.astype(np.float32))


def test_imported_forest_has_readable_trees(tmp_path):
    theirs = ensemble.RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0)
    ours = spinney.from_sklearn(theirs.fit(X, TWO))
    assert ours.apply(X).shape == (len(X), 3)
    for our_tree, their_tree in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_allclose(our_tree.predict_proba(X), their_tree.predict_proba(X))
    assert "class:" in spinney.tree.export_text(ours.estimators_[0])
    spinney.save(ours, tmp_path / "forest.spinney")
    loaded = spinney.load(tmp_path / "forest.spinney")
    np.testing.assert_array_equal(loaded.predict_proba(X), ours.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ensemble.GradientBoostingClassifier(loss="exponential"), TWO),
        (ensemble.GradientBoostingClassifier(), TWO),
        (ensemble.GradientBoostingClassifier(init="zero"), THREE),
        (ensemble.GradientBoostingRegressor(), SCORE),
        (ensemble.GradientBoostingRegressor(loss="huber"), SCORE),
        (ensemble.GradientBoostingRegressor(loss="quantile", alpha=0.2), SCORE),
    ],
)
def test_gradient_boosting_predicts_the_same(model, y):
    rng = np.random.default_rng(2)
    model.set_params(n_estimators=6, random_state=0).fit(X, y)
    members = model.estimators_
    model_ours = spinney.from_sklearn(model)
    assert model_ours.n_estimators_ == len(members)
    near_thresholds = rng.choice(
        np.concatenate([t.tree_.threshold for t in members.ravel()]), X.shape
    )
    for table in (X, near_thresholds, X.astype(np.float32)):
        np.testing.assert_allclose(
            model_ours._raw(table), model._raw_predict(table.astype(np.float32)), rtol=1e-10
        )
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(model_ours.predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize(
    "model",
    [
        ensemble.HistGradientBoostingClassifier(),
        ensemble.HistGradientBoostingRegressor(loss="gamma"),
        ensemble.HistGradientBoostingRegressor(loss="quantile", quantile=0.3),
    ],
)
@threadpool_limits.wrap(limits=1)  # OpenMP threads wait for each other on a busy machine
def test_histogram_boosting_predicts_the_same(model):
    rng = np.random.default_rng(2)
    y = THREE if hasattr(model, "classes_") or "Classifier" in type(model).__name__ else None
    y = np.exp(SCORE) if y is None else y
    model.set_params(max_iter=6, min_samples_leaf=3, max_leaf_nodes=9)
    _check(model.fit(X_MISSING, y), X_MISSING, X, X.astype(np.float32))
    frame = pd.DataFrame(X_MISSING, columns=list("abcd"))
    frame["c"] = pd.Categorical(rng.choice(np.array(["x", "y", "z", None], object), len(X)))
    frame["a"] = rng.integers(0, 30, len(X))
    other = frame.assign(a=rng.integers(0, 40, len(X)))
    other["c"] = pd.Categorical(rng.choice(np.array(["x", "new", None], object), len(X)))
    model.set_params(categorical_features=["a", "c"]).fit(frame, y)
    _check(model, frame, other)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression().fit(X, SCORE),
        linear_model.Ridge().fit(X, SCORE),
        linear_model.RidgeCV().fit(X, SCORE),
        linear_model.LogisticRegression().fit(X, THREE),
        linear_model.Perceptron().fit(X, TWO),
        mixture.GaussianMixture(2, random_state=0).fit(X),
        neighbors.KNeighborsClassifier().fit(X, TWO),
        neighbors.KNeighborsRegressor(weights="distance").fit(X, SCORE),
        neighbors.RadiusNeighborsRegressor(3.0).fit(X, SCORE),
    ],
    ids=lambda model: type(model).__name__,
)
def test_linear_models_mixtures_and_neighbours_predict_the_same(model):
    _check(model, X)


def test_unsupported_and_unfitted_models_raise():
    with pytest.raises(TypeError, match="got SVC"):
        spinney.from_sklearn(SVC().fit(X, TWO))
    with_init = ensemble.GradientBoostingRegressor(init=linear_model.Ridge(), n_estimators=2)
    with pytest.raises(ValueError, match="init=Ridge"):
        spinney.from_sklearn(with_init.fit(X, SCORE))
    with pytest.raises(ValueError, match="not fitted"):
        spinney.from_sklearn(tree.DecisionTreeClassifier())


@settings(deadline=None, max_examples=300)
@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, max_value=2.0**127, min_value=-(2.0**127)
    ),
    st.integers(-3, 3),
)
def test_limits_round_like_single_precision(threshold, steps):
    """The limits are the largest doubles that go left after rounding."""
    for limit, is_left in (
        (last_at_most(threshold), np.less_equal),
        (last_below(threshold), np.less),
    ):
        assert is_left(np.float32(limit), np.float32(threshold))
        beyond = np.nextafter(limit, np.inf)
        assert not is_left(np.float32(beyond), np.float32(threshold))
    between = np.nextafter(np.float64(threshold), steps)  # a threshold that is not a float32
    limit = last_at_most(between)
    assert np.float64(np.float32(limit)) <= between
    assert np.float64(np.float32(np.nextafter(limit, np.inf))) > between
