"""Gradient boosting: losses, trees, constraints, early stopping, kinds of input."""

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
from spinney.datasets import load_spam
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

# ------------------------------------------------------------------------ trees by hand


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_trees_equal_those_of_the_slow_reference(seed, binary, missing):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=60)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    if binary:
        y = (y > 0).astype(float)
    rules = {"l2": 0.7, "l1": 0.1 * (seed % 2), "gamma": 0.05, "max_depth": 4, "max_leaves": 6}
    weights = rng.uniform(0.5, 2, 60) if seed >= 2 else None
    limits = dict(rules, min_rows=4)
    loss = slow_booster.log_loss if binary else slow_booster.squared_error
    expected_stages = slow_booster.boost(
        X, y, loss, n_rounds=4, learning_rate=0.3, w=weights, **limits
    )
    create = GradientBoostingClassifier if binary else GradientBoostingRegressor
    model = create(
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
    staged = model.staged_decision_function(X) if binary else model.staged_predict(X)
    for stage, expected in zip(staged, expected_stages, strict=True):
        np.testing.assert_allclose(stage, expected, rtol=1e-5, atol=1e-6)


def test_one_hot_columns_equal_those_of_the_slow_reference():
    rng = np.random.default_rng(0)
    kind, other = rng.integers(0, 9, 400), rng.integers(0, 7, 400)
    one_hot = (kind[:, None] == np.arange(9)).astype(float)
    one_cold = 3.0 - (other[:, None] == np.arange(7))  # the more frequent value is the larger one
    one_hot[rng.random(400) < 0.05, 2] = np.nan
    X = np.column_stack(
        [one_hot[:, :5], np.full(400, 7.0), one_cold, one_hot[:, 5:], rng.integers(0, 200, 400)]
    )
    y = rng.normal(size=9)[kind] + rng.normal(size=7)[other] + X[:, -1] / 50 + rng.normal(size=400)
    limits = {"l2": 1.0, "l1": 0.0, "gamma": 0.0, "max_depth": 9, "max_leaves": 12, "min_rows": 8}
    expected_stages = slow_booster.boost(
        X, y, slow_booster.squared_error, n_rounds=3, learning_rate=0.5, **limits
    )
    model = GradientBoostingRegressor(
        n_estimators=3, learning_rate=0.5, max_leaf_nodes=12, min_samples_leaf=8
    ).fit(X, y)
    for stage, expected in zip(model.staged_predict(X), expected_stages, strict=True):
        np.testing.assert_allclose(stage, expected, rtol=1e-5, atol=1e-6)
    wide = np.zeros((5000, 300))
    wide[np.arange(5000), rng.integers(0, 300, 5000)] = 1
    target = wide @ rng.normal(size=300) + 0.1 * rng.normal(size=5000)
    model = GradientBoostingRegressor(min_samples_leaf=2, n_estimators=300).fit(wide, target)
    assert model.score(wide, target) > 0.9


def test_histogram_booster_has_scikit_learns_parameters():
    X, y = load_diabetes(return_X_y=True)
    ours = GradientBoostingRegressor(
        loss="quantile", alpha=0.7, n_estimators=15, l2_regularization=0
    ).fit(X, y)
    theirs = HistGradientBoostingRegressor(loss="quantile", quantile=0.7, max_iter=15).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="quantile must be a number"):
        HistGradientBoostingRegressor(loss="quantile").fit(X, y)
    parameters = inspect.signature(sklearn.ensemble.HistGradientBoostingRegressor).parameters
    assert list(HistGradientBoostingRegressor().get_params()) == sorted(parameters)
    classifier = HistGradientBoostingClassifier()
    parameters = inspect.signature(sklearn.ensemble.HistGradientBoostingClassifier).parameters
    assert list(classifier.get_params()) == sorted(parameters)
    assert classifier.fit(*load_iris(return_X_y=True)).n_trees_per_iteration_ == 3


def test_importances_sum_to_one():
    X, y = make_friedman1(500, n_features=8, random_state=0)
    model = GradientBoostingRegressor(n_estimators=30).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[:5].sum() > 0.95


@pytest.mark.parametrize("factor", [1e-20, 1.0])
def test_importances_by_hand(factor):
    X, y = make_friedman1(500, n_features=8, random_state=0)
    model = GradientBoostingRegressor(n_estimators=5, min_samples_leaf=1).fit(X, y * factor)
    gains = np.zeros(8)
    for t in range(5):
        tree = model.fitted_model().store.tree(t)
        hessian = tree.weighted_n_node_samples + 1.0  # H + λ
        gradient = tree.value.ravel() / 0.1 * hessian
        score = gradient**2 / hessian / 2
        for node in np.flatnonzero(tree.children_left >= 0):
            left, right = tree.children_left[node], tree.children_right[node]
            gains[tree.feature[node]] += score[left] + score[right] - score[node]
    np.testing.assert_allclose(
        model.feature_importances_, gains / gains.sum(), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("growth", ["best_first", "level_wise"])
def test_trees_respect_their_limits(growth):
    X, y = make_friedman1(1000, random_state=0)
    model = GradientBoostingRegressor(
        n_estimators=5, growth=growth, max_leaf_nodes=11, max_depth=4, min_samples_leaf=30
    ).fit(X, y)
    for t in range(5):
        tree = model.fitted_model().store.tree(t)
        leaves = tree.children_left < 0
        assert leaves.sum() <= 11
        assert tree.n_node_samples[leaves].min() >= 30
        assert tree.max_depth <= 4


def test_min_samples_leaf_counts_rows_not_hessians():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(min_samples_leaf=15, min_hessian_leaf=0).fit(X, y)
    for t in range(100):
        tree = model.fitted_model().store.tree(t)
        assert tree.n_node_samples[tree.children_left < 0].min() >= 15


# ------------------------------------------------------------------ same bits, warm start


@pytest.mark.parametrize("n_classes", [2, 4])
def test_number_of_threads_does_not_change_predictions(n_classes):
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
def test_warm_start_equals_one_fit(params):
    X, y = make_friedman1(600, random_state=0)
    one_fit = GradientBoostingRegressor(n_estimators=20, random_state=1, **params).fit(X, y)
    continued = GradientBoostingRegressor(n_estimators=7, random_state=1, warm_start=True, **params)
    continued.fit(X, y).set_params(n_estimators=20).fit(X, y)
    np.testing.assert_array_equal(one_fit.predict(X), continued.predict(X))
    np.testing.assert_array_equal(one_fit.train_score_, continued.train_score_)
    with pytest.raises(ValueError, match="n_estimators=5 must be larger"):
        continued.set_params(n_estimators=5).fit(X, y)
    np.testing.assert_array_equal(one_fit.predict(X), continued.predict(X))


def test_last_stage_equals_the_model():
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=8, min_samples_leaf=5).fit(X, y)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == 8
    np.testing.assert_array_equal(stages[-1], model.predict_proba(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    losses = [log_loss(y, p) for p in stages]
    np.testing.assert_allclose(losses, model.train_score_, rtol=1e-6)
    assert model.apply(X).shape == (150, 8, 3)


def test_scorer_of_one_row_equals_predict():
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    for classes in (y, y > 0):
        for loss in ("log_loss", "exponential")[: 1 if classes is y else 2]:
            model = GradientBoostingClassifier(loss=loss, n_estimators=9).fit(X, classes)
            score = model.scorer()
            predicted = np.array([score(row) for row in X])
            np.testing.assert_allclose(predicted, model.predict_proba(X), rtol=1e-12)
    for loss in ("squared_error", "poisson"):
        regressor = GradientBoostingRegressor(loss=loss, n_estimators=9).fit(X, y)
        score = regressor.scorer()
        predicted = np.array([score(row)[0] for row in X])
        np.testing.assert_allclose(predicted, regressor.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="row: expected 4 values, got 3"):
        score(np.zeros(3))
    del model, regressor
    assert np.isfinite(score(X[0])).all()


def test_boosters_can_be_pickled_cloned_and_used_in_pipelines():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=10, loss="huber").fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), restored.predict(X))
    assert "_model" not in vars(clone(model))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=5)),
        {"gradientboostingregressor__max_leaf_nodes": [2, 4]},
        cv=2,
    )
    assert search.fit(X, y).best_score_ > 0


# --------------------------------------------------------------------------- early stopping


def test_early_stopping_keeps_the_best_round():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = X[:, 0] + rng.normal(size=2000)
    model = GradientBoostingRegressor(
        n_estimators=500, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    scores = model.validation_score_
    assert model.n_estimators_ == scores.argmin() + 1 < len(scores) < 500
    assert len(scores) == model.n_estimators_ + 5
    assert len(list(model.staged_predict(X[:3]))) == model.n_estimators_


def test_eval_set_is_the_validation_set():
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
    with pytest.raises(ValueError, match="only classes of the training rows"):
        classifier.fit(X[:99], y[:99] > 14, eval_set=(X[:9], np.arange(9)))


def test_early_stopping_by_training_loss():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(
        n_estimators=300, early_stopping=True, validation_fraction=None, tol=5.0
    ).fit(X, y)
    assert len(model.validation_score_) == 0
    assert model.n_estimators_ < 300


# ----------------------------------------------------------------------------------- losses


def test_leaf_values_are_medians_and_quantiles():
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
def test_quantiles_have_their_level(level):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (8000, 2))
    y = X[:, 0] ** 2 + (0.3 + np.abs(X[:, 1])) * rng.normal(size=8000)
    model = GradientBoostingRegressor(loss="quantile", alpha=level, max_leaf_nodes=6)
    model.fit(X[:4000], y[:4000])
    assert abs(np.mean(y[4000:] <= model.predict(X[4000:])) - level) < 0.03


def test_robust_losses_ignore_outliers():
    X, y = make_friedman1(2000, random_state=0)
    spoiled = y.copy()
    spoiled[::50] += 1000
    errors = {}
    for loss in ("squared_error", "absolute_error", "huber"):
        model = GradientBoostingRegressor(loss=loss).fit(X[:1500], spoiled[:1500])
        errors[loss] = np.median(np.abs(model.predict(X[1500:]) - y[1500:]))
    assert max(errors["absolute_error"], errors["huber"]) < 0.5 * errors["squared_error"]


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_log_link_losses_predict_positive_means(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (5000, 3))
    mean = np.exp(1 + 2 * X[:, 0] - X[:, 1])
    y = rng.poisson(mean) if loss != "gamma" else rng.gamma(2, mean / 2)
    model = GradientBoostingRegressor(loss=loss, min_samples_leaf=200, n_estimators=50).fit(X, y)
    predicted = model.predict(X)
    assert predicted.min() > 0
    assert np.mean(np.abs(predicted / mean - 1)) < 0.1
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.02)


def test_cross_entropy_accepts_probabilities_as_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    p = 1 / (1 + np.exp(-X[:, 0]))
    model = GradientBoostingRegressor(loss="cross_entropy", n_estimators=60).fit(X, p)
    assert np.abs(model.predict(X) - p).mean() < 0.01


def test_custom_loss():
    X, y = load_diabetes(return_X_y=True)
    built_in = GradientBoostingRegressor(n_estimators=20).fit(X, y - y.mean())
    custom = GradientBoostingRegressor(loss=lambda y, f: (f - y, np.ones_like(f)), n_estimators=20)
    np.testing.assert_allclose(
        custom.fit(X, y - y.mean()).predict(X), built_in.predict(X), atol=1e-4
    )
    with pytest.raises(ValueError, match="loss: expected a gradient of shape"):
        GradientBoostingRegressor(loss=lambda y, f: (f[:3], f)).fit(X, y)
    with pytest.raises(ValueError, match="returns \\(gradient, hessian\\)"):
        GradientBoostingRegressor(loss=lambda y, f: f).fit(X, y)
    with pytest.raises(ValueError, match="its hessian has negative values"):
        GradientBoostingRegressor(loss=lambda y, f: (f, f - 1)).fit(X, y)
    with pytest.raises(ZeroDivisionError):
        GradientBoostingRegressor(loss=lambda y, f: 1 / 0).fit(X, y)


def test_exponential_loss_predicts_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(loss="exponential").fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * model.decision_function(X)))
    )
    with pytest.raises(ValueError, match="needs 2 classes"):
        GradientBoostingClassifier(loss="exponential").fit(*load_iris(return_X_y=True))


def test_init_score_is_the_start_of_boosting():
    X, y = make_friedman1(500, random_state=0)
    start = 10 * X[:, 3]
    booster = GradientBoostingRegressor(n_estimators=100, l2_regularization=0)
    model = clone(booster).fit(X, y, init_score=start)
    of_residuals = clone(booster).fit(X, y - start - np.mean(y - start))
    np.testing.assert_allclose(
        model.predict(X), of_residuals.predict(X) + np.mean(y - start), atol=0.5
    )
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


def test_interaction_constraints_hold():
    X, y = make_friedman1(2000, random_state=0)
    model = GradientBoostingRegressor(interaction_cst=[{0, 1}, {2}]).fit(X, y)
    for t in range(100):
        tree = model.fitted_model().store.tree(t)
        stack = [(0, frozenset())]
        while stack:
            node, path = stack.pop()
            if tree.children_left[node] < 0:
                assert path <= {0, 1} or path <= {2} or path <= set(range(3, 10))
                continue
            path = path | {int(tree.feature[node])}
            stack += [(tree.children_left[node], path), (tree.children_right[node], path)]
    additive = GradientBoostingRegressor(interaction_cst="no_interactions").fit(X, y)
    # Without interactions the prediction is a sum of functions of one column each.
    first_row, second_row = X[0].copy(), X[1].copy()
    first_mixed, second_mixed = first_row.copy(), second_row.copy()
    first_mixed[:5], second_mixed[:5] = second_row[:5], first_row[:5]
    summed = additive.predict([first_row, second_row]).sum()
    assert additive.predict([first_mixed, second_mixed]).sum() == pytest.approx(summed)


def test_invalid_constraints_raise():
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
def test_categories_are_split_on(n_categories):
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
    with_unseen = frame[:3].assign(c=["c0", "never seen", None])
    predicted = model.predict(with_unseen)
    assert predicted[1] == predicted[2] or frame["x"][1] != frame["x"][2]
    assert np.isfinite(predicted).all()


def test_missing_values_have_a_learned_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    missing = rng.random(2000) < 0.3
    y = np.where(missing, 2.0, np.sign(X[:, 0])) + 0.1 * rng.normal(size=2000)
    X[missing, 0] = np.nan
    model = GradientBoostingRegressor().fit(X, y)
    assert model.predict([[np.nan, 0.0]])[0] == pytest.approx(2.0, abs=0.1)
    assert model.predict([[-1.0, 0.0]])[0] == pytest.approx(-1.0, abs=0.1)
    # If fit saw no missing values, they follow the majority.
    without_missing = GradientBoostingRegressor(
        n_estimators=1, max_leaf_nodes=2, min_samples_leaf=1
    )
    without_missing.fit([[0.0], [1.0], [2.0], [9.0]], [0.0, 0.0, 0.0, 5.0])
    assert without_missing.predict([[np.nan]]) == without_missing.predict([[0.0]])


def test_kinds_of_input_give_the_same_model():
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
def test_huge_and_tiny_feature_values(value):
    X, y = load_diabetes(return_X_y=True)
    base = GradientBoostingRegressor(n_estimators=10).fit(X, y).predict(X)
    scaled = GradientBoostingRegressor(n_estimators=10).fit(X * value, y)
    np.testing.assert_allclose(scaled.predict(X * value), base)
    constant = GradientBoostingRegressor(n_estimators=3).fit(np.full((50, 2), value), y[:50])
    np.testing.assert_allclose(constant.predict([[value, value]]), y[:50].mean())


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_scale_of_targets_scales_predictions(factor):
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=10)
    base = clone(model).fit(X, y).predict(X)
    np.testing.assert_allclose(clone(model).fit(X, y * factor).predict(X), base * factor, rtol=1e-5)


def test_invalid_input_raises():
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


def test_callback_can_interrupt_fit():
    def stop(done, total):
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50_000, 10)), rng.normal(size=50_000)
    with pytest.raises(KeyboardInterrupt):
        GradientBoostingRegressor(n_estimators=10_000, early_stopping=False, callbacks=stop).fit(
            X, y
        )


# ------------------------------------------------------------------------------------- spam


@pytest.mark.parametrize(("leaves", "expected"), [(2, 0.047), (5, 0.045)])
def test_error_on_spam(leaves, expected):
    X, y = load_spam(return_X_y=True, split="train")
    model = GradientBoostingClassifier(
        max_leaf_nodes=leaves, n_estimators=1500 if leaves == 2 else 400, early_stopping=False
    ).fit(X, y)
    X, y = load_spam(return_X_y=True, split="test")
    error = 1 - model.score(X, y)
    assert error < expected + 2 * np.sqrt(expected * (1 - expected) / len(y))


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor])
def test_histogram_boosters_use_the_given_validation_set(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = kind(max_iter=200, n_iter_no_change=5).fit(
        X[:300], y[:300], X_val=X[300:], y_val=y[300:]
    )
    losses = model.validation_score_
    candidates = [
        round_number
        for round_number in range(6, len(losses) + 1)
        if losses[round_number - 5 : round_number].min() >= losses[round_number - 6] - 1e-7
    ]
    assert model.n_iter_ == len(losses) == candidates[0] < 200
    assert model.is_categorical_ is None
    with pytest.raises(ValueError, match="y_val was not provided"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X_val was not provided"):
        model.fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="early_stopping is False"):
        model.set_params(early_stopping=False).fit(X, y, X_val=X, y_val=y)
    marked = kind(max_iter=2, categorical_features=[1]).fit(np.abs(np.round(X)), y)
    assert marked.is_categorical_.tolist() == [False, True, False, False]
