"""AdaBoost against its theory, scikit-learn and a plain loop."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble as sk
import sklearn.tree as sk_tree
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils._test_common.instance_generator import _get_expected_failed_checks

import spinney.ensemble
from spinney.ensemble import AdaBoostClassifier, AdaBoostRegressor
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

ALGORITHMS = ["SAMME", "M1", "real"]


# scikit-learn exempts the same checks for both classes: R2 samples rows, and with probabilities the
# last bit of a weight decides between equally good splits. Votes are exact sums.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def test_expected_failures_equal_those_of_scikit_learn():
    for kind in (sk.AdaBoostClassifier, sk.AdaBoostRegressor):
        assert set(_get_expected_failed_checks(kind())) == EXPECTED_FAILURES


# -------------------------------------------------------------------------------- identities


def weights_by_round(model, X, y, start):
    """Yield the weights of each round, from predictions and estimator weights alone."""
    weights = start / start.sum()
    for estimator, alpha in zip(model.estimators_, model.estimator_weights_, strict=False):
        yield weights, estimator.predict(X) != y
        weights = weights * np.exp(alpha * (estimator.predict(X) != y))
        weights = weights / weights.sum()
    yield weights, None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(20, 120), st.integers(1, 3), st.booleans())
def test_errors_margins_and_bound_follow_the_theory(seed, n, depth, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)
    y[:2] = [0, 1]
    start = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=20)
    model.fit(X, y, start)
    stages = list(weights_by_round(model, X, y, start))
    bound = model.training_error_bound_
    product = 1.0
    for t, accuracy in enumerate(model.staged_score(X, y, start)):
        (weights, is_wrong), (next_weights, _) = stages[t], stages[t + 1]
        error = weights[is_wrong].sum()
        np.testing.assert_allclose(model.estimator_errors_[t], error, atol=1e-9)
        np.testing.assert_allclose(model.gammas_[t], 0.5 - error, atol=1e-9)
        if error > 1e-9:
            np.testing.assert_allclose(next_weights[is_wrong].sum(), 0.5, atol=1e-6)
            product *= 2 * np.sqrt(error * (1 - error))
            np.testing.assert_allclose(bound[t], product, rtol=1e-6)
            assert bound[t] <= np.exp(-2 * np.sum(model.gammas_[: t + 1] ** 2)) * (1 + 1e-9)
        assert 1 - accuracy <= bound[t] + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_adaboost_is_stagewise_fitting_of_the_exponential_loss(seed):
    """Each weight minimizes Σ exp(−y (F + α h)), and no stump has a lower minimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)).round(1)
    y = (X.sum(axis=1) + rng.normal(size=40) > 0).astype(int)
    y[:2] = [0, 1]
    sign = 2 * y - 1
    stump = DecisionTreeClassifier(max_depth=1, criterion="misclassification")
    model = AdaBoostClassifier(stump, n_estimators=6).fit(X, y)
    F = np.zeros(len(y))
    for estimator, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        h = 2.0 * estimator.predict(X) - 1
        weights = np.exp(-sign * F)
        slope = np.sum(-sign * h * weights * np.exp(-sign * h * weight / 2))
        if (h != sign).any():
            np.testing.assert_allclose(slope, 0, atol=1e-6 * weights.sum())
            # The smallest error under these weights among all stumps, in both orientations.
            lowest = min(
                min(error, weights.sum() - error)
                for column in range(2)
                for threshold in np.unique(X[:, column])[:-1]
                for error in [weights[(X[:, column] > threshold) != (sign > 0)].sum()]
            )
            lowest = min(lowest, weights[sign > 0].sum(), weights[sign < 0].sum())
            np.testing.assert_allclose(weights[h != sign].sum(), lowest, rtol=1e-6)
        F += weight / 2 * h


def test_margins_by_hand():
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = AdaBoostClassifier(n_estimators=60).fit(X, y)
    margins = model.margins(X, y)
    sign = 2 * y - 1
    h = np.array([2 * e.predict(X) - 1 for e in model.estimators_])
    alpha = model.estimator_weights_[: len(h)]
    np.testing.assert_allclose(margins, sign * (alpha @ h) / alpha.sum())
    assert np.array_equal(margins > 0, model.predict(X) == y)
    several = AdaBoostClassifier(n_estimators=20).fit(*load_iris(return_X_y=True))
    several_margins = several.margins(*load_iris(return_X_y=True))
    assert -1 <= several_margins.min() < 0 < several_margins.max() <= 1
    with pytest.raises(ValueError, match="y: expected a class of the training data"):
        model.margins(X, y + 5)


# ---------------------------------------------------------------------- against a plain loop


def plain_loop(X, y, depth, n_rounds, learning_rate, algorithm):
    """Reference implementation of AdaBoost as in the papers, one tree at a time."""
    classes, codes = np.unique(y, return_inverse=True)
    n, K = len(y), len(classes)
    weights, trees, alphas = np.full(n, 1 / n), [], []
    seeds = np.random.RandomState(0)
    for _ in range(n_rounds):
        tree = DecisionTreeClassifier(max_depth=depth, random_state=seeds.randint(2**31 - 1))
        tree.fit(X, y, sample_weight=weights)
        is_wrong = tree.predict(X) != y
        error = weights[is_wrong].sum() / weights.sum()
        trees.append(tree)
        if algorithm == "real":
            alphas.append(1.0)
            probabilities = np.maximum(tree.predict_proba(X), np.finfo(float).eps)
            class_code = np.where(codes[:, None] == np.arange(K), 1, -1 / (K - 1))
            weights = weights * np.exp(
                -learning_rate * (K - 1) / K * (class_code * np.log(probabilities)).sum(axis=1)
            )
        else:
            class_term = np.log(K - 1) if algorithm == "SAMME" else 0
            alphas.append(learning_rate * (np.log((1 - error) / error) + class_term))
            weights = weights * np.exp(alphas[-1] * is_wrong)
        weights /= weights.sum()
    return trees, np.array(alphas)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("data", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
def test_boosting_in_the_core_equals_a_plain_loop(algorithm, data, learning_rate):
    X, y = data(return_X_y=True)
    depth = 1 if data is load_breast_cancer else 2
    model = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=depth),
        n_estimators=12,
        learning_rate=learning_rate,
        algorithm=algorithm,
        random_state=0,
    ).fit(X, y)
    trees, alphas = plain_loop(X, y, depth, 12, learning_rate, algorithm)
    np.testing.assert_allclose(model.estimator_weights_, alphas, rtol=1e-6)
    for ours, theirs in zip(model.estimators_, trees, strict=True):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        if data is load_breast_cancer:  # iris has columns with equally good splits
            np.testing.assert_array_equal(ours.tree_.feature, theirs.tree_.feature)
            np.testing.assert_allclose(ours.tree_.threshold, theirs.tree_.threshold, rtol=1e-6)
    # Other base estimators use Python code, with a similar result.
    other = AdaBoostClassifier(
        sk_tree.DecisionTreeClassifier(max_depth=depth, random_state=0),
        n_estimators=12,
        learning_rate=learning_rate,
        algorithm=algorithm,
    ).fit(X, y)
    assert abs(other.score(X, y) - model.score(X, y)) < 0.02


def column_of(rng, kind, n):
    values = rng.normal(size=n)
    if kind == "few":
        return rng.integers(0, 5, n).astype(float)
    if kind == "common":
        return np.where(rng.random(n) < 0.8, 0.0, values)
    if kind == "missing":
        return np.where(rng.random(n) < 0.3, np.nan, np.round(values, 1))
    if kind == "missing or one":
        return np.where(rng.random(n) < 0.4, np.nan, 1.0)
    if kind == "categories":
        return pd.Categorical(rng.choice(list("abcdefgh"), n))
    if kind == "categories and missing":
        return pd.Categorical(rng.choice(["a", "b", "c", None], n), categories=list("cabx"))
    return values


@pytest.mark.filterwarnings("ignore:X has feature names")
@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kinds=st.lists(
        st.sampled_from(
            [
                "any",
                "few",
                "common",
                "missing",
                "missing or one",
                "categories",
                "categories and missing",
            ]
        ),
        min_size=1,
        max_size=5,
    ),
    n_classes=st.integers(2, 4),
    limits=st.fixed_dictionaries(
        {
            "max_depth": st.integers(1, 4),
            "min_samples_leaf": st.sampled_from([1, 1, 7]),
            "min_samples_split": st.sampled_from([2, 30]),
            "min_weight_fraction_leaf": st.sampled_from([0.0, 0.05]),
            "min_impurity_decrease": st.sampled_from([0.0, 0.01]),
        }
    ),
    n_jobs=st.integers(1, 2),
)
def test_trees_of_each_round_equal_single_trees(seed, kinds, n_classes, limits, n_jobs):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    frame = pd.DataFrame({f"x{i}": column_of(rng, kind, n) for i, kind in enumerate(kinds)})
    y = rng.integers(0, n_classes, n)
    start = rng.exponential(size=n) * (rng.random(n) < 0.9)
    start[0] = 1.0
    base = DecisionTreeClassifier(**limits)
    model = AdaBoostClassifier(base, n_estimators=4, random_state=seed, n_jobs=n_jobs)
    try:
        model.fit(frame, y, start)
    except ValueError as error:
        if "worse than random" not in str(error):
            raise
        return
    weights = start / start.sum()
    for ours, alpha in zip(model.estimators_, model.estimator_weights_, strict=False):
        theirs = clone(base).fit(frame, y, weights)
        has_weight = weights > 0
        predicted = ours.predict(frame)
        np.testing.assert_array_equal(predicted[has_weight], theirs.predict(frame)[has_weight])
        for tree in (ours.tree_, theirs.tree_):
            leaf = tree.children_left < 0
            assert tree.n_node_samples[leaf].sum() == has_weight.sum()
        np.testing.assert_allclose(
            *(
                (t.impurity * t.weighted_n_node_samples)[t.children_left < 0].sum()
                for t in (ours.tree_, theirs.tree_)
            ),
            atol=1e-9,
        )
        weights = weights * np.exp(alpha * (predicted != y))
        weights /= weights.sum()


def test_trees_of_scikit_learn_give_its_ensembles():
    X, y = load_iris(return_X_y=True)
    base = sk_tree.DecisionTreeClassifier(max_depth=2)
    ours = AdaBoostClassifier(base, n_estimators=20, random_state=3).fit(X, y)
    theirs = sk.AdaBoostClassifier(base, n_estimators=20, random_state=3).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    for our_stage, their_stage in zip(
        ours.staged_predict(X), theirs.staged_predict(X), strict=True
    ):
        np.testing.assert_array_equal(our_stage, their_stage)


def test_last_stage_equals_the_model():
    for data in (load_breast_cancer, load_iris):
        X, y = data(return_X_y=True)
        for algorithm in ALGORITHMS:
            model = AdaBoostClassifier(n_estimators=10, algorithm=algorithm).fit(X, y)
            *_, scores = model.staged_decision_function(X)
            np.testing.assert_allclose(scores, model.decision_function(X))
            *_, probabilities = model.staged_predict_proba(X)
            np.testing.assert_allclose(probabilities, model.predict_proba(X))
            assert list(model.staged_score(X, y))[-1] == model.score(X, y)


# ------------------------------------------------------------------------------ special cases


def test_perfect_learner_is_the_last():
    X = np.arange(20.0)[:, np.newaxis]
    y = (X[:, 0] > 7).astype(int)
    model = AdaBoostClassifier().fit(X, y)
    assert len(model.estimators_) == 1
    assert model.estimator_weights_[0] == 1
    assert model.estimator_errors_[0] == 0
    assert model.training_error_bound_.tolist() == [0.0]
    assert model.score(X, y) == 1


def test_useless_learner_raises():
    X = np.zeros((40, 1))
    y = np.arange(40) % 2
    for base in (None, sk_tree.DecisionTreeClassifier(max_depth=1)):
        with pytest.raises(ValueError, match="worse than random"):
            AdaBoostClassifier(base).fit(X, y)
    # Three classes of equal size: an error of one half is too large for M1, not for SAMME.
    X, y = np.repeat([0.0, 1.0, 2.0], 10)[:, np.newaxis], np.repeat([0, 1, 2], 10)
    assert len(AdaBoostClassifier(n_estimators=3).fit(X, y).estimators_) == 3
    X[:] = 0
    with pytest.raises(ValueError, match="worse than random"):
        AdaBoostClassifier(algorithm="M1").fit(X, y)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_single_class_is_always_predicted(algorithm):
    X, _ = load_iris(return_X_y=True)
    model = AdaBoostClassifier(algorithm=algorithm).fit(X, np.full(len(X), "a"))
    assert set(model.predict(X)) == {"a"}
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)


def test_rows_without_weight_are_ignored():
    X, y = load_breast_cancer(return_X_y=True)
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    kept = weights > 0
    for depth in (1, 2):
        base = DecisionTreeClassifier(max_depth=depth)
        model = AdaBoostClassifier(base, n_estimators=15, random_state=0)
        weighted = clone(model).fit(X, np.where(kept, y, 1 - y), weights)
        without_rows = clone(model).fit(X[kept], y[kept])
        np.testing.assert_allclose(weighted.decision_function(X), without_rows.decision_function(X))
    with pytest.raises(ValueError, match=r"zero|positive"):
        AdaBoostClassifier().fit(X, y, np.zeros(len(y)))


def test_base_estimators_without_weights_use_resampling():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = AdaBoostClassifier(KNeighborsClassifier(3), n_estimators=5, random_state=0)
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        model.fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        refitted = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refitted.predict(X))


def test_other_base_estimators():
    X, y = make_moons(300, noise=0.2, random_state=0)
    for algorithm in ALGORITHMS:
        model = AdaBoostClassifier(LogisticRegression(), algorithm=algorithm, n_estimators=10)
        assert model.fit(X, y).score(X, y) > 0.8
    with pytest.raises(TypeError, match="expected an estimator with predict_proba"):
        AdaBoostClassifier(LinearSVC(), algorithm="real").fit(X, y)


def test_classifier_with_categories_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"c": rng.choice(list("abcdef"), 500), "x": np.where(rng.random(500) < 0.2, np.nan, 1.0)}
    )
    frame["x"] *= rng.normal(size=500)
    y = np.isin(frame["c"], list("ace")) ^ (frame["x"] > 0.5)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=20).fit(frame, y)
    assert model.score(frame, y) > 0.95
    assert list(model.feature_names_in_) == ["c", "x"]
    assert model.feature_importances_.shape == (2,)
    unseen = frame[:2].assign(c=["never seen", None])
    assert len(model.predict(unseen)) == 2


@pytest.mark.parametrize(
    "base",
    [
        DecisionTreeClassifier(max_depth=2, max_features=3),
        ExtraTreeClassifier(max_depth=2),
        DecisionTreeClassifier(max_leaf_nodes=4),
    ],
)
def test_number_of_threads_does_not_change_bits(base):
    X, y = load_breast_cancer(return_X_y=True)
    one_thread = AdaBoostClassifier(base, n_estimators=15, random_state=1, n_jobs=1).fit(X, y)
    two_threads = AdaBoostClassifier(base, n_estimators=15, random_state=1, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one_thread.decision_function(X), two_threads.decision_function(X))
    restored = pickle.loads(pickle.dumps(two_threads))
    np.testing.assert_array_equal(restored.decision_function(X), two_threads.decision_function(X))
    assert restored.estimators_[3].tree_.node_count == two_threads.estimators_[3].tree_.node_count


def test_bound_is_undefined_for_several_classes_with_samme():
    X, y = load_iris(return_X_y=True)
    assert (
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), algorithm="M1")
        .fit(X, y)
        .training_error_bound_[-1]
        < 1
    )
    with pytest.raises(AttributeError, match="for two classes and for algorithm='M1'"):
        getattr(AdaBoostClassifier().fit(X, y), "training_error_bound_")  # noqa: B009


# ------------------------------------------------------------------------------- regression


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_trees_of_scikit_learn_give_its_regressors(loss):
    X, y = make_friedman1(300, random_state=0)
    base = sk_tree.DecisionTreeRegressor(max_depth=3)
    options = {"n_estimators": 20, "loss": loss, "random_state": 3}
    ours = AdaBoostRegressor(base, **options).fit(X, y)
    theirs = sk.AdaBoostRegressor(base, **options).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    for our_stage, their_stage in zip(
        ours.staged_predict(X), theirs.staged_predict(X), strict=True
    ):
        np.testing.assert_allclose(our_stage, their_stage)
    # Spinney's trees use the same samples; only equally good splits may differ.
    native = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), **options).fit(X, y)
    np.testing.assert_allclose(native.estimator_weights_[:3], theirs.estimator_weights_[:3])
    np.testing.assert_allclose(native.estimators_[0].predict(X), theirs.estimators_[0].predict(X))
    assert abs(native.score(X, y) - theirs.score(X, y)) < 0.05


def test_regressor_with_categories_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(list("abcdef"), 500), "x": rng.normal(size=500)})
    y = frame["c"].map(dict(zip("abcdef", range(6), strict=True))).to_numpy() + frame["x"] ** 2
    frame.loc[::9, "x"] = np.nan
    model = AdaBoostRegressor(random_state=0, n_estimators=30).fit(frame, y)
    assert model.score(frame, y) > 0.7
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(frame), model.predict(frame))
    assert len(restored.estimators_) == len(model.estimators_)
    assert list(model.staged_score(frame, y))[-1] == model.score(frame, y)


def test_perfect_regressor_is_the_last():
    X = np.repeat([0.0, 1.0], 20)[:, np.newaxis]
    model = AdaBoostRegressor(random_state=0).fit(X, X[:, 0])
    assert len(model.estimators_) == 1
    np.testing.assert_array_equal(model.predict(X), X[:, 0])


@pytest.mark.parametrize("kind", ["AdaBoost", "Bagging"])
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
def test_categories_equal_those_of_the_trees(kind, task):
    frame = pd.DataFrame({"a": np.arange(12.0), "b": pd.Categorical(list("xyzxyzxyzxyz"))})
    model = getattr(spinney.ensemble, kind + task)(n_estimators=3, random_state=0)
    with pytest.raises(AttributeError, match="categories_"):
        model.categories_  # noqa: B018
    y = np.arange(12) % 2
    numbers, letters = model.fit(frame, y).categories_
    assert numbers is None
    assert letters.tolist() == ["x", "y", "z"]
    other = getattr(sk_tree, f"DecisionTree{task}")()
    assert not hasattr(model.set_params(estimator=other).fit(frame[["a"]], y), "categories_")
