"""Gradient boosting: formulas, constraints, losses, stopping, input of all kinds."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import sklearn.ensemble
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reference import slow_booster
from spinney import _core
from spinney.datasets import load_spam
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

# ---------------------------------------------------------------------------------------- losses

LOSSES = {
    "squared_error": 0.0,
    "huber": 0.7,
    "poisson": 0.0,
    "gamma": 0.0,
    "tweedie": 1.3,
    "log_loss": 0.0,
    "exponential": 0.0,
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_loss(name):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=40) * 2
    targets = rng.gamma(2.0, size=40)
    if name == "log_loss":
        targets = rng.random(40)
    if name == "exponential":
        targets = (targets > 1).astype(float)
    if name == "huber":  # away from the corners, where it has no second derivative
        targets = scores + np.where(np.arange(40) % 2, 0.3, 2.0)
    parameter = LOSSES[name]

    def value(i, f):
        return _core.loss_derivatives(name, parameter, 1, targets[i : i + 1], np.array([f]))[2]

    first, second, total = _core.loss_derivatives(name, parameter, 1, targets, scores)
    assert total == pytest.approx(sum(value(i, f) for i, f in enumerate(scores)))
    e = 1e-4
    for i, f in enumerate(scores):
        assert first[i] == pytest.approx((value(i, f + e) - value(i, f - e)) / (2 * e), rel=1e-4)
        if name != "huber":
            curve = (value(i, f + e) - 2 * value(i, f) + value(i, f - e)) / e**2
            assert second[i] == pytest.approx(curve, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(("name", "parameter"), [("absolute_error", 0.0), ("quantile", 0.3)])
def test_derivatives_of_losses_with_corners(name, parameter):
    targets, scores = np.array([1.0, 1.0, 1.0]), np.array([0.0, 1.0, 3.0])
    first, second, total = _core.loss_derivatives(name, parameter, 1, targets, scores)
    if name == "quantile":
        np.testing.assert_allclose(first, [-0.3, 0.0, 0.7], rtol=1e-6)
        assert total == pytest.approx(0.3 * 1 + 0.7 * 2)
    else:
        np.testing.assert_array_equal(first, [-1, 0, 1])
        assert total == 3
    np.testing.assert_array_equal(second, 1)


def test_derivatives_of_softmax():
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 4, 30).astype(float)
    scores = rng.normal(size=(4, 30))
    first, second, total = _core.loss_derivatives("softmax", 0.0, 4, targets, scores.ravel())
    p = np.exp(scores) / np.exp(scores).sum(axis=0)
    hot = np.arange(4)[:, None] == targets
    np.testing.assert_allclose(first.reshape(4, 30), p - hot, atol=1e-6)
    np.testing.assert_allclose(second.reshape(4, 30), p * (1 - p), atol=1e-6)
    assert total == pytest.approx(-np.log(p[hot.argmax(axis=0), np.arange(30)]).sum())


# ------------------------------------------------------------------------ trees by the formulas


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_same_as_the_slow_twin(seed, classes, missing):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=60)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    if classes:
        y = (y > 0).astype(float)
    rules = {"l2": 0.7, "l1": 0.1 * (seed % 2), "gamma": 0.05, "max_depth": 4, "max_leaves": 6}
    weights = rng.uniform(0.5, 2, 60) if seed >= 2 else None
    limits = dict(rules, min_rows=4)
    loss = slow_booster.log_loss if classes else slow_booster.squared_error
    slow = slow_booster.boost(X, y, loss, n_rounds=4, learning_rate=0.3, w=weights, **limits)
    make = GradientBoostingClassifier if classes else GradientBoostingRegressor
    model = make(
        n_estimators=4,
        learning_rate=0.3,
        max_leaf_nodes=6,
        max_depth=4,
        min_samples_leaf=4,
        min_hessian_leaf=0,
        min_split_gain=0.05,
        l2_regularization=0.7,
        l1_regularization=rules["l1"],
    ).fit(X, y, sample_weight=weights)
    staged = model.staged_decision_function(X) if classes else model.staged_predict(X)
    for ours, theirs in zip(staged, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_one_hot_columns_are_the_slow_twins():
    rng = np.random.default_rng(0)
    kind, other = rng.integers(0, 9, 400), rng.integers(0, 7, 400)
    hot = (kind[:, None] == np.arange(9)).astype(float)
    cold = 3.0 - (other[:, None] == np.arange(7))  # the commonest value is the larger one
    hot[rng.random(400) < 0.05, 2] = np.nan
    X = np.column_stack(
        [hot[:, :5], np.full(400, 7.0), cold, hot[:, 5:], rng.integers(0, 200, 400)]
    )
    y = rng.normal(size=9)[kind] + rng.normal(size=7)[other] + X[:, -1] / 50 + rng.normal(size=400)
    limits = {"l2": 1.0, "l1": 0.0, "gamma": 0.0, "max_depth": 9, "max_leaves": 12, "min_rows": 8}
    slow = slow_booster.boost(
        X, y, slow_booster.squared_error, n_rounds=3, learning_rate=0.5, **limits
    )
    model = GradientBoostingRegressor(
        n_estimators=3, learning_rate=0.5, max_leaf_nodes=12, min_samples_leaf=8
    ).fit(X, y)
    for ours, theirs in zip(model.staged_predict(X), slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    wide = np.zeros((5000, 300))
    wide[np.arange(5000), rng.integers(0, 300, 5000)] = 1
    target = wide @ rng.normal(size=300) + 0.1 * rng.normal(size=5000)
    model = GradientBoostingRegressor(min_samples_leaf=2, n_estimators=300).fit(wide, target)
    assert model.score(wide, target) > 0.9


def test_scikit_learns_names_for_the_same_model():
    X, y = load_diabetes(return_X_y=True)
    ours = GradientBoostingRegressor(
        loss="quantile", alpha=0.7, n_estimators=15, l2_regularization=0
    ).fit(X, y)
    theirs = HistGradientBoostingRegressor(loss="quantile", quantile=0.7, max_iter=15).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="needs a quantile"):
        HistGradientBoostingRegressor(loss="quantile").fit(X, y)
    parameters = inspect.signature(sklearn.ensemble.HistGradientBoostingRegressor).parameters
    assert list(HistGradientBoostingRegressor().get_params()) == sorted(parameters)
    classifier = HistGradientBoostingClassifier()
    parameters = inspect.signature(sklearn.ensemble.HistGradientBoostingClassifier).parameters
    assert list(classifier.get_params()) == sorted(parameters)
    assert classifier.fit(*load_iris(return_X_y=True)).n_trees_per_iteration_ == 3


def test_importances_are_shares_of_the_gain():
    X, y = make_friedman1(500, n_features=8, random_state=0)
    model = GradientBoostingRegressor(n_estimators=30).fit(X, y)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert shares[:5].sum() > 0.95


@pytest.mark.parametrize("factor", [1e-20, 1.0])
def test_importances_by_hand(factor):
    X, y = make_friedman1(500, n_features=8, random_state=0)
    model = GradientBoostingRegressor(n_estimators=5, min_samples_leaf=1).fit(X, y * factor)
    gains = np.zeros(8)
    for t in range(5):
        tree = model._store.tree(t)
        below = tree.weighted_n_node_samples + 1.0  # H + λ
        gradient = tree.value.ravel() / 0.1 * below
        score = gradient**2 / below / 2
        for node in np.flatnonzero(tree.children_left >= 0):
            left, right = tree.children_left[node], tree.children_right[node]
            gains[tree.feature[node]] += score[left] + score[right] - score[node]
    np.testing.assert_allclose(
        model.feature_importances_, gains / gains.sum(), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("growth", ["best_first", "level_wise"])
def test_limits_of_trees(growth):
    X, y = make_friedman1(1000, random_state=0)
    model = GradientBoostingRegressor(
        n_estimators=5, growth=growth, max_leaf_nodes=11, max_depth=4, min_samples_leaf=30
    ).fit(X, y)
    for t in range(5):
        tree = model._store.tree(t)
        leaves = tree.children_left < 0
        assert leaves.sum() <= 11
        assert tree.n_node_samples[leaves].min() >= 30
        assert tree.max_depth <= 4


def test_rows_of_leaves_are_counted_where_hessians_differ():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(min_samples_leaf=15, min_hessian_leaf=0).fit(X, y)
    for t in range(100):
        tree = model._store.tree(t)
        assert tree.n_node_samples[tree.children_left < 0].min() >= 15


# ------------------------------------------------------------------ the same bits, going on


@pytest.mark.parametrize("n_classes", [2, 4])
def test_threads_do_not_change_a_bit(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 12))
    y = np.digitize(X[:, 0] * X[:, 1] + rng.normal(size=20_000), np.linspace(-1, 1, n_classes - 1))
    params = {"n_estimators": 6, "subsample": 0.7, "max_features": 0.5, "random_state": 3}
    first = GradientBoostingClassifier(n_jobs=1, **params).fit(X, y)
    for n_jobs in (2, 3):
        other = GradientBoostingClassifier(n_jobs=n_jobs, **params).fit(X, y)
        np.testing.assert_array_equal(first.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(first.train_score_, other.train_score_)
        np.testing.assert_array_equal(first.validation_score_, other.validation_score_)


@pytest.mark.parametrize("params", [{}, {"subsample": 0.5, "max_features_tree": 0.5}])
def test_warm_start_goes_on_to_the_same_bits(params):
    X, y = make_friedman1(600, random_state=0)
    whole = GradientBoostingRegressor(n_estimators=20, random_state=1, **params).fit(X, y)
    parts = GradientBoostingRegressor(n_estimators=7, random_state=1, warm_start=True, **params)
    parts.fit(X, y).set_params(n_estimators=20).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), parts.predict(X))
    np.testing.assert_array_equal(whole.train_score_, parts.train_score_)
    with pytest.raises(ValueError, match="n_estimators=5 must be larger"):
        parts.set_params(n_estimators=5).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), parts.predict(X))


def test_stages_end_at_the_model():
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=8, min_samples_leaf=5).fit(X, y)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == 8
    np.testing.assert_array_equal(stages[-1], model.predict_proba(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    losses = [log_loss(y, p) for p in stages]
    np.testing.assert_allclose(losses, model.train_score_, rtol=1e-6)
    assert model.apply(X).shape == (150, 8, 3)


def test_one_row_at_a_time():
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    for classes in (y, y > 0):
        for loss in ("log_loss", "exponential")[: 1 if classes is y else 2]:
            model = GradientBoostingClassifier(loss=loss, n_estimators=9).fit(X, classes)
            score = model.scorer()
            rows = np.array([score(row) for row in X])
            np.testing.assert_allclose(rows, model.predict_proba(X), rtol=1e-12)
    for loss in ("squared_error", "poisson"):
        regressor = GradientBoostingRegressor(loss=loss, n_estimators=9).fit(X, y)
        score = regressor.scorer()
        rows = np.array([score(row)[0] for row in X])
        np.testing.assert_allclose(rows, regressor.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="row: expected 4 values, got 3"):
        score(np.zeros(3))
    del model, regressor
    assert np.isfinite(score(X[0])).all()


def test_pickles_clones_and_pipelines():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=10, loss="huber").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert "_store" not in vars(clone(model))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=5)),
        {"gradientboostingregressor__max_leaf_nodes": [2, 4]},
        cv=2,
    )
    assert search.fit(X, y).best_score_ > 0


# --------------------------------------------------------------------------- stopping early


def test_early_stopping_keeps_the_best_round():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = X[:, 0] + rng.normal(size=2000)
    model = GradientBoostingRegressor(
        n_estimators=500, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    watched = model.validation_score_
    assert model.n_estimators_ == watched.argmin() + 1 < len(watched) < 500
    assert len(watched) == model.n_estimators_ + 5
    assert len(list(model.staged_predict(X[:3]))) == model.n_estimators_


def test_eval_set_is_what_is_watched():
    X, y = make_friedman1(3000, noise=3, random_state=0)
    model = GradientBoostingRegressor(n_estimators=300, learning_rate=0.2, n_iter_no_change=5)
    model.fit(X[:1000], y[:1000], eval_set=(X[1000:], y[1000:]))
    stages = list(model.staged_predict(X[1000:]))
    losses = [0.5 * np.mean((p - y[1000:]) ** 2) for p in stages]
    np.testing.assert_allclose(losses, model.validation_score_[: len(losses)], rtol=1e-9)
    assert len(losses) < 300
    with pytest.raises(ValueError, match="eval_set: expected"):
        model.fit(X, y, eval_set=X)
    classifier = GradientBoostingClassifier()
    with pytest.raises(ValueError, match="classes that the y of fit has not"):
        classifier.fit(X[:99], y[:99] > 14, eval_set=(X[:9], np.arange(9)))


def test_training_loss_can_be_watched():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(
        n_estimators=300, early_stopping=True, validation_fraction=None, tol=5.0
    ).fit(X, y)
    assert len(model.validation_score_) == 0
    assert model.n_estimators_ < 300


# ----------------------------------------------------------------------------------- losses


def test_leaves_are_refitted_to_medians_and_quantiles():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 1)).astype(float)
    y = X[:, 0] * 3 + rng.standard_cauchy(300)
    for loss, level in (("absolute_error", 0.5), ("quantile", 0.8)):
        model = GradientBoostingRegressor(
            loss=loss, alpha=level, learning_rate=1.0, n_estimators=1, max_leaf_nodes=2
        ).fit(X, y)
        for side in (0.0, 1.0):
            inside = y[X[:, 0] == side]
            below = np.mean(inside <= model.predict([[side]])[0])
            assert abs(below - level) <= 1 / len(inside)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_are_calibrated(level):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (8000, 2))
    y = X[:, 0] ** 2 + (0.3 + np.abs(X[:, 1])) * rng.normal(size=8000)
    model = GradientBoostingRegressor(loss="quantile", alpha=level, max_leaf_nodes=6)
    model.fit(X[:4000], y[:4000])
    assert abs(np.mean(y[4000:] <= model.predict(X[4000:])) - level) < 0.03


def test_outliers_do_not_pull_robust_losses():
    X, y = make_friedman1(2000, random_state=0)
    spoiled = y.copy()
    spoiled[::50] += 1000
    errors = {}
    for loss in ("squared_error", "absolute_error", "huber"):
        model = GradientBoostingRegressor(loss=loss).fit(X[:1500], spoiled[:1500])
        errors[loss] = np.median(np.abs(model.predict(X[1500:]) - y[1500:]))
    assert max(errors["absolute_error"], errors["huber"]) < 0.5 * errors["squared_error"]


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_positive_means(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (5000, 3))
    mean = np.exp(1 + 2 * X[:, 0] - X[:, 1])
    y = rng.poisson(mean) if loss != "gamma" else rng.gamma(2, mean / 2)
    model = GradientBoostingRegressor(loss=loss, min_samples_leaf=200, n_estimators=50).fit(X, y)
    predicted = model.predict(X)
    assert predicted.min() > 0
    assert np.mean(np.abs(predicted / mean - 1)) < 0.1
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.02)


def test_probabilities_as_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    p = 1 / (1 + np.exp(-X[:, 0]))
    model = GradientBoostingRegressor(loss="cross_entropy", n_estimators=60).fit(X, p)
    assert np.abs(model.predict(X) - p).mean() < 0.01


def test_a_loss_of_ones_own():
    X, y = load_diabetes(return_X_y=True)
    given = GradientBoostingRegressor(n_estimators=20).fit(X, y - y.mean())
    own = GradientBoostingRegressor(loss=lambda y, f: (f - y, np.ones_like(f)), n_estimators=20)
    np.testing.assert_allclose(own.fit(X, y - y.mean()).predict(X), given.predict(X), atol=1e-4)
    with pytest.raises(ValueError, match="loss: expected a gradient of shape"):
        GradientBoostingRegressor(loss=lambda y, f: (f[:3], f)).fit(X, y)
    with pytest.raises(ValueError, match="returns \\(gradient, hessian\\)"):
        GradientBoostingRegressor(loss=lambda y, f: f).fit(X, y)
    with pytest.raises(ValueError, match="its hessian is negative"):
        GradientBoostingRegressor(loss=lambda y, f: (f, f - 1)).fit(X, y)
    with pytest.raises(ZeroDivisionError):
        GradientBoostingRegressor(loss=lambda y, f: 1 / 0).fit(X, y)


def test_exponential_loss_gives_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(loss="exponential").fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * model.decision_function(X)))
    )
    with pytest.raises(ValueError, match="is for 2 classes"):
        GradientBoostingClassifier(loss="exponential").fit(*load_iris(return_X_y=True))


def test_init_scores_are_where_it_starts():
    X, y = make_friedman1(500, random_state=0)
    start = 10 * X[:, 3]
    booster = GradientBoostingRegressor(n_estimators=100, l2_regularization=0)
    model = clone(booster).fit(X, y, init_score=start)
    rest = clone(booster).fit(X, y - start - np.mean(y - start))
    np.testing.assert_allclose(model.predict(X), rest.predict(X) + np.mean(y - start), atol=0.5)
    with pytest.raises(ValueError, match="init_score: expected shape"):
        model.fit(X, y, init_score=np.zeros((500, 2)))


# ------------------------------------------------------------------------------ constraints


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_monotone_constraints_hold(sign, loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 0] + rng.normal(size=2000) * 0.3
    model = GradientBoostingRegressor(monotonic_cst=[sign, 0, 0], loss=loss, min_samples_leaf=5)
    model.fit(X, y)
    grid = np.linspace(-1.2, 1.2, 200)
    for other in rng.uniform(-1, 1, (30, 2)):
        line = np.column_stack([grid, np.full(200, other[0]), np.full(200, other[1])])
        steps = sign * np.diff(model.predict(line))
        assert steps.min() >= 0
    assert model.score(X, y) > 0


def test_interactions_are_kept_apart():
    X, y = make_friedman1(2000, random_state=0)
    model = GradientBoostingRegressor(interaction_cst=[{0, 1}, {2}]).fit(X, y)
    for t in range(100):
        tree = model._store.tree(t)
        stack = [(0, frozenset())]
        while stack:
            node, path = stack.pop()
            if tree.children_left[node] < 0:
                assert path <= {0, 1} or path <= {2} or path <= set(range(3, 10))
                continue
            path = path | {int(tree.feature[node])}
            stack += [(tree.children_left[node], path), (tree.children_right[node], path)]
    alone = GradientBoostingRegressor(interaction_cst="no_interactions").fit(X, y)
    # Without interactions the prediction is a sum of functions of one column each.
    a, b = X[0].copy(), X[1].copy()
    mixed_a, mixed_b = a.copy(), b.copy()
    mixed_a[:5], mixed_b[:5] = b[:5], a[:5]
    both = alone.predict([a, b]).sum()
    assert alone.predict([mixed_a, mixed_b]).sum() == pytest.approx(both)


def test_constraints_that_make_no_sense():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="monotonic_cst has shape"):
        GradientBoostingRegressor(monotonic_cst=[1]).fit(X, y)
    with pytest.raises(ValueError, match="array-like of -1, 0 or 1"):
        GradientBoostingRegressor(monotonic_cst=[2] * 10).fit(X, y)
    with pytest.raises(ValueError, match="not fitted on data with feature names"):
        GradientBoostingRegressor(monotonic_cst={"a": 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"integer indices in .* = \[0, 9\]"):
        GradientBoostingRegressor(interaction_cst=[{0, 99}]).fit(X, y)
    with pytest.raises(ValueError, match="not supported for multiclass"):
        GradientBoostingClassifier(monotonic_cst=[1, 0, 0, 0]).fit(*load_iris(return_X_y=True))


# ---------------------------------------------------------- categories, missing values, input


@pytest.mark.parametrize("n_categories", [6, 400])
def test_categories(n_categories):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_categories, 6000)
    effect = rng.permutation(n_categories) % 2
    names = np.array([f"c{i}" for i in range(n_categories)])
    frame = pd.DataFrame({"c": pd.Categorical(names[codes]), "x": rng.normal(size=6000)})
    y = effect[codes] + 0.3 * rng.normal(size=6000)
    model = GradientBoostingRegressor().fit(frame[:4000], y[:4000])
    assert model.score(frame[4000:], y[4000:]) > (0.6 if n_categories == 6 else 0.3)
    assert list(model.categories_[0]) == sorted(names)
    odd = frame[:3].assign(c=["c0", "never seen", None])
    predicted = model.predict(odd)
    assert predicted[1] == predicted[2] or frame["x"][1] != frame["x"][2]
    assert np.isfinite(predicted).all()


def test_missing_values_find_their_side():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    gone = rng.random(2000) < 0.3
    y = np.where(gone, 2.0, np.sign(X[:, 0])) + 0.1 * rng.normal(size=2000)
    X[gone, 0] = np.nan
    model = GradientBoostingRegressor().fit(X, y)
    assert model.predict([[np.nan, 0.0]])[0] == pytest.approx(2.0, abs=0.1)
    assert model.predict([[-1.0, 0.0]])[0] == pytest.approx(-1.0, abs=0.1)
    # Where fit saw none, they go with the many.
    whole = GradientBoostingRegressor(n_estimators=1, max_leaf_nodes=2, min_samples_leaf=1)
    whole.fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 0.0, 0.0, 5.0])
    assert whole.predict([[np.nan]]) == whole.predict([[0.0]])


def test_input_of_all_kinds_is_the_same_table():
    pd = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    expected = GradientBoostingClassifier(n_estimators=5).fit(X, y).predict_proba(X)
    kinds = [X.astype(np.float64), np.asfortranarray(X), sparse.csr_array(X), X[::-1][::-1]]
    for kind in kinds:
        model = GradientBoostingClassifier(n_estimators=5).fit(kind, y)
        np.testing.assert_array_equal(model.predict_proba(kind), expected)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    model = GradientBoostingClassifier(n_estimators=5).fit(frame, y)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)


@pytest.mark.parametrize("value", [1e-300, 1.0, 1e300])
def test_huge_and_tiny_values(value):
    X, y = load_diabetes(return_X_y=True)
    base = GradientBoostingRegressor(n_estimators=10).fit(X, y).predict(X)
    scaled = GradientBoostingRegressor(n_estimators=10).fit(X * value, y)
    np.testing.assert_allclose(scaled.predict(X * value), base)
    constant = GradientBoostingRegressor(n_estimators=3).fit(np.full((50, 2), value), y[:50])
    np.testing.assert_allclose(constant.predict([[value, value]]), y[:50].mean())


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_targets_of_any_usual_size(factor):
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=10)
    base = clone(model).fit(X, y).predict(X)
    np.testing.assert_allclose(clone(model).fit(X, y * factor).predict(X), base * factor, rtol=1e-5)


def test_bad_input_is_named():
    X, y = load_diabetes(return_X_y=True)
    for factor in (1e200, 1e-200):
        with pytest.raises(ValueError, match="y: expected values up to 1e30"):
            GradientBoostingRegressor().fit(X, y * factor)
    with pytest.raises(ValueError, match="infinity"):
        GradientBoostingRegressor().fit(np.where(X > 0.1, np.inf, X), y)
    with pytest.raises(ValueError, match="loss='gamma' requires strictly positive y"):
        GradientBoostingRegressor(loss="gamma").fit(X, y - y.mean())
    with pytest.raises(ValueError, match="requires non-negative y"):
        GradientBoostingRegressor(loss="poisson").fit(X, y - y.mean())
    with pytest.raises(ValueError, match="expected y between 0 and 1"):
        GradientBoostingRegressor(loss="cross_entropy").fit(X, y)
    with pytest.raises(ValueError, match="at least one non-zero"):
        GradientBoostingRegressor().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="y contains NaN"):
        GradientBoostingRegressor().fit(X, np.where(y > 300, np.nan, y))
    with pytest.raises(ValueError, match="'max_bins' parameter"):
        GradientBoostingRegressor(max_bins=1000).fit(X, y)
    with pytest.raises(NotFittedError):
        GradientBoostingRegressor().predict(X)


def test_callbacks_end_a_fit():
    def stop(done, total):
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50_000, 10)), rng.normal(size=50_000)
    with pytest.raises(KeyboardInterrupt):
        GradientBoostingRegressor(n_estimators=10_000, early_stopping=False, callbacks=stop).fit(
            X, y
        )


# ------------------------------------------------------------------------------------- spam


@pytest.mark.parametrize(("leaves", "wanted"), [(2, 0.047), (5, 0.045)])
def test_spam(leaves, wanted):
    X, y = load_spam(return_X_y=True, split="train")
    model = GradientBoostingClassifier(
        max_leaf_nodes=leaves, n_estimators=1500 if leaves == 2 else 400, early_stopping=False
    ).fit(X, y)
    X, y = load_spam(return_X_y=True, split="test")
    error = 1 - model.score(X, y)
    assert error < wanted + 2 * np.sqrt(wanted * (1 - wanted) / len(y))


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor])
def test_histogram_boosters_watch_given_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = kind(max_iter=200, n_iter_no_change=5).fit(
        X[:300], y[:300], X_val=X[300:], y_val=y[300:]
    )
    losses = model.validation_score_
    ends = [
        end
        for end in range(6, len(losses) + 1)
        if losses[end - 5 : end].min() >= losses[end - 6] - 1e-7
    ]
    assert model.n_iter_ == len(losses) == ends[0] < 200
    assert model.is_categorical_ is None
    with pytest.raises(ValueError, match="y_val was not provided"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X_val was not provided"):
        model.fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="early_stopping is False"):
        model.set_params(early_stopping=False).fit(X, y, X_val=X, y_val=y)
    marked = kind(max_iter=2, categorical_features=[1]).fit(np.abs(np.round(X)), y)
    assert marked.is_categorical_.tolist() == [False, True, False, False]
