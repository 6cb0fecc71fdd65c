"""The public behaviour of the decision tree estimators."""

from __future__ import annotations

import _thread
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import tree as sklearn_tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import spinney
from spinney.datasets import load_spam
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    Tree,
    _prune,
)
from support.waiting import LIMIT

CLASSIFIERS = [DecisionTreeClassifier, ExtraTreeClassifier]
REGRESSORS = [DecisionTreeRegressor, ExtraTreeRegressor]
ALL = [*CLASSIFIERS, *REGRESSORS]
ARRAYS = [
    "children_left",
    "children_right",
    "feature",
    "threshold",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
    "value",
    "category_start",
    "category_bits",
]


def assert_same_tree(a: Tree, b: Tree) -> None:
    for name in ARRAYS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name


def mixed_table(n=400, seed=0):
    """Return two numeric and two categorical columns with NaN, and a target."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey", "black"], n).astype(object)
    size = rng.choice(["S", "M", "L"], n).astype(object)
    x = rng.normal(size=n)
    z = rng.integers(0, 5, n).astype(float)
    y = np.isin(colour, ["red", "grey"]) * 2.0 + (x > 0.3) + (size == "M") * 0.5
    colour[rng.random(n) < 0.1] = None
    x[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"colour": colour, "x": x, "size": size, "z": z}), y


# --------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda f: f])
def test_frame_types_give_the_same_tree(convert):
    frame, y = mixed_table()
    expected = DecisionTreeRegressor().fit(frame, y)
    assert any(expected.tree_.category_start >= 0)
    model = DecisionTreeRegressor().fit(convert(frame), y)
    assert_same_tree(model.tree_, expected.tree_)
    np.testing.assert_array_equal(model.predict(convert(frame)), expected.predict(frame))
    assert list(model.categories_[0]) == ["black", "blue", "green", "grey", "red"]
    assert model.categories_[1] is None


def test_order_of_category_codes_does_not_matter():
    frame, y = mixed_table()
    model = DecisionTreeRegressor().fit(frame, y)
    other = frame.copy()
    other["colour"] = pd.Categorical(
        frame["colour"], categories=["unused", "red", "grey", "green", "blue", "black"]
    )
    np.testing.assert_array_equal(model.predict(other), model.predict(frame))
    assert_same_tree(DecisionTreeRegressor().fit(other, y).tree_, model.tree_)


def test_column_names_and_dtypes_are_validated():
    frame, y = mixed_table()
    model = DecisionTreeRegressor().fit(frame, y)
    assert list(model.feature_names_in_) == ["colour", "x", "size", "z"]
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["x", "colour", "size", "z"]])
    with pytest.raises(ValueError, match="x"):
        model.predict(frame.assign(x="text"))
    with pytest.raises(ValueError, match="colour"):
        model.predict(frame.assign(colour=1.5))


@pytest.mark.parametrize("chosen", [[0], ["c"], [True, False]])
def test_categorical_features_in_numeric_columns(chosen):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 12, 500)
    y = np.isin(code, [1, 4, 7, 10]).astype(int)
    X = np.column_stack([code, rng.normal(size=500)]).astype(float)
    if chosen == ["c"]:
        X = pd.DataFrame(X, columns=["c", "d"])
    model = DecisionTreeClassifier(categorical_features=chosen, max_depth=1).fit(X, y)
    assert model.score(X, y) == 1.0
    assert set(model.tree_.left_categories(0)) | set(model.tree_.right_categories(0)) == set(
        range(12)
    )
    assert np.isnan(model.tree_.threshold[0])


def test_integers_beyond_float64_are_valid_categories():
    first = 2**60
    ids = np.array([first, first + 1, first + 2, first + 3] * 10)
    y = np.array([0, 1, 0, 1] * 10)
    X = pd.DataFrame({"id": ids})
    with pytest.raises(ValueError, match=r"2\*\*53"):
        DecisionTreeClassifier().fit(X, y)
    model = DecisionTreeClassifier(categorical_features=["id"]).fit(X, y)
    assert model.score(X, y) == 1.0


def test_thousands_of_categories():
    rng = np.random.default_rng(0)
    effect = rng.normal(size=3000)
    code = rng.integers(0, 3000, 20_000)
    y = effect[code]
    X = pd.DataFrame({"c": [f"k{c}" for c in code]})
    model = DecisionTreeRegressor(max_depth=8).fit(X, y)
    # The best subset explains a fraction 2/pi of the variance of normal effects.
    stump = DecisionTreeRegressor(max_depth=1).fit(X, y)
    assert stump.score(X, y) == pytest.approx(2 / np.pi, abs=0.03)
    assert model.score(X, y) > 0.99


def test_unseen_categories_follow_the_missing_values():
    frame, y = mixed_table()
    model = DecisionTreeRegressor(min_samples_leaf=5).fit(frame, y)
    unseen = frame.assign(colour="purple")
    missing = frame.assign(colour=None)
    np.testing.assert_array_equal(model.apply(unseen), model.apply(missing))


def test_missing_only_at_predict_follows_the_larger_child():
    X = np.arange(10.0).reshape(-1, 1)
    y = (X[:, 0] >= 3).astype(int)
    model = DecisionTreeClassifier().fit(X, y)
    assert model.predict([[np.nan]]) == [1]
    model = DecisionTreeClassifier().fit(-X, y)
    assert model.predict([[np.nan]]) == [1]


def test_split_between_missing_and_present_values():
    rng = np.random.default_rng(0)
    X = np.full((100, 2), np.nan)
    y = rng.integers(0, 2, 100)
    X[y == 1, 1] = rng.normal(size=(y == 1).sum())
    for tree in (DecisionTreeClassifier(), DecisionTreeClassifier(max_features=1, random_state=0)):
        model = tree.fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.tree_.threshold[0] == np.inf
        assert model.tree_.node_count == 3


# --------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("to_sparse", [sparse.csc_matrix, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_sparse_equals_dense(to_sparse, criterion):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 4, (200, 30)) * (rng.random((200, 30)) < 0.2).astype(float)
    y = X @ rng.normal(size=30)
    for cls in (DecisionTreeRegressor, ExtraTreeRegressor):
        dense = cls(criterion=criterion, random_state=0).fit(X, y)
        from_sparse = cls(criterion=criterion, random_state=0).fit(to_sparse(X), y)
        assert_same_tree(dense.tree_, from_sparse.tree_)
        np.testing.assert_array_equal(dense.predict(X), from_sparse.predict(to_sparse(X)))


def test_wide_sparse_matrix_stays_sparse():
    # A dense matrix would need 80 GB.
    rng = np.random.default_rng(0)
    X = sparse.random(10_000, 1_000_000, density=1e-6, random_state=rng, format="csc")
    y = rng.integers(0, 2, 10_000)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert model.get_depth() == 2


# ------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("cls", ALL)
def test_number_of_threads_changes_no_bit(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = rng.integers(0, 4, 20_000)
    trees = [cls(n_jobs=n, random_state=0).fit(X, y).tree_ for n in (1, 2, 7)]
    assert_same_tree(trees[0], trees[1])
    assert_same_tree(trees[0], trees[2])


def test_concurrent_predictions_agree():
    X, y = load_spam(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))  # the first prediction creates its reader
    expected = model.predict_proba(X)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: unpickled.predict_proba(X), range(32)))
    for result in results:
        assert result.tobytes() == expected.tobytes()


def _fit_in_child(queue):
    X, y = load_spam(return_X_y=True)
    queue.put(DecisionTreeClassifier(n_jobs=2).fit(X, y).tree_.node_count)


def test_fit_works_after_fork():
    X, y = load_spam(return_X_y=True)
    expected = DecisionTreeClassifier(n_jobs=2).fit(X, y).tree_.node_count  # starts the pool
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fit_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=LIMIT) == expected
    child.join(LIMIT)
    assert child.exitcode == 0
    assert DecisionTreeClassifier(n_jobs=2).fit(X, y).tree_.node_count == expected


def test_global_number_of_threads():
    previous = spinney.get_num_threads()
    try:
        spinney.set_num_threads(1)
        assert spinney.get_num_threads() == 1
    finally:
        spinney.set_num_threads(previous)
    with pytest.raises(ValueError, match="n_jobs"):
        DecisionTreeClassifier(n_jobs=0).fit([[0.0], [1.0]], [0, 1])


# -------------------------------------------------------------------- callbacks and interrupts


def long_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300_000, 20))
    return X, rng.normal(size=len(X))


@pytest.mark.usefixtures("sigint_handler")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_ends_a_fit(n_jobs):
    X, y = long_fit()
    model = DecisionTreeRegressor(criterion="absolute_error", n_jobs=n_jobs)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    timer.cancel()
    with pytest.raises(NotFittedError):
        model.predict(X[:1])


def test_callbacks_receive_progress_and_can_stop():
    X, y = long_fit()
    calls = []
    DecisionTreeRegressor(callbacks=lambda done, total: calls.append((done, total))).fit(X, y)
    assert len(calls) > 2
    assert all(0 <= done <= total == len(X) for done, total in calls)
    assert [d for d, _ in calls] == sorted(d for d, _ in calls)

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        DecisionTreeRegressor(callbacks=[stop]).fit(X, y)
    with pytest.raises(TypeError, match="callbacks"):
        DecisionTreeRegressor(callbacks=[3]).fit(X[:10], y[:10])


# -------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.empty((0, 3)), [], "0 sample"),
        (np.empty((3, 0)), [0, 1, 0], "0 feature"),
        ([[np.inf], [1.0]], [0, 1], "infinity"),
        ([[1.0], [2.0]], [0, np.nan], "NaN"),
        ([[1.0], [2.0]], [0, 1, 2], "samples"),
        ([1.0, 2.0], [0, 1], "2D"),
        ([["a"], ["b"]], [0, 1], "could not convert"),
        ([[1 + 2j], [2.0]], [0, 1], "[Cc]omplex"),
    ],
)
def test_invalid_data_raises(cls, X, y, message):
    with pytest.raises(ValueError, match=message):
        cls().fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_depth", 0),
        ("min_samples_split", 1),
        ("min_samples_leaf", 0),
        ("max_features", 0),
        ("max_features", "all"),
        ("criterion", "nonsense"),
        ("max_leaf_nodes", 1),
        ("ccp_alpha", -1.0),
        ("categorical_features", "all"),
        ("n_jobs", "two"),
        ("callbacks", 3),
    ],
)
def test_invalid_parameters_raise(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        DecisionTreeClassifier(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("cls", ALL)
def test_degenerate_data(cls):
    one = cls().fit([[3.0]], [1])
    assert one.tree_.node_count == 1
    assert one.predict([[5.0]]) == [1]
    constant = cls().fit(np.ones((5, 2)), [0, 1, 0, 1, 1])
    assert constant.tree_.node_count == 1
    same_y = cls().fit(np.arange(5.0).reshape(-1, 1), [2] * 5)
    assert same_y.tree_.node_count == 1
    huge = cls(random_state=0).fit([[-1.7e308], [1.7e308], [5e-324], [0.0]], [0, 1, 2, 3])
    np.testing.assert_array_equal(
        huge.predict([[-1.7e308], [1.7e308], [5e-324], [0.0]]), [0, 1, 2, 3]
    )


def test_neighbouring_float64_values_are_separated():
    base = 1.0
    X = np.array([base, np.nextafter(base, 2), np.nextafter(np.nextafter(base, 2), 2)])[:, None]
    y = [0, 1, 0]
    model = DecisionTreeClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_large_offset_of_y_keeps_the_accuracy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=500)
    without_offset = DecisionTreeRegressor(max_depth=4).fit(X, y)
    with_offset = DecisionTreeRegressor(max_depth=4).fit(X, y + 2.0**40)
    np.testing.assert_array_equal(without_offset.apply(X), with_offset.apply(X))
    np.testing.assert_allclose(
        with_offset.predict(X) - 2.0**40, without_offset.predict(X), atol=1e-3
    )
    np.testing.assert_allclose(
        with_offset.tree_.impurity, without_offset.tree_.impurity, rtol=1e-2, atol=1e-6
    )


# ------------------------------------------------------------------------------------ behaviour


def test_several_outputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([X[:, 0] > 0, np.digitize(X[:, 1], [0.5, 1.0])]).astype(int)
    model = DecisionTreeClassifier().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), Y)
    proba = model.predict_proba(X)
    assert [p.shape for p in proba] == [(300, 2), (300, 3)]
    assert len(model.predict_log_proba(X)) == 2
    Z = np.column_stack([X[:, 0], X[:, 1] - X[:, 2]])
    for criterion in ("squared_error", "absolute_error"):
        np.testing.assert_allclose(
            DecisionTreeRegressor(criterion=criterion).fit(X, Z).predict(X), Z
        )


def test_class_weight_equals_sample_weight():
    X, y = load_iris(return_X_y=True)
    by_class = DecisionTreeClassifier(class_weight={0: 1, 1: 3, 2: 2}, max_depth=3).fit(X, y)
    by_row = DecisionTreeClassifier(max_depth=3).fit(X, y, sample_weight=np.array([1, 3, 2])[y])
    assert_same_tree(by_class.tree_, by_row.tree_)


def test_string_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = DecisionTreeClassifier().fit(X, names)
    np.testing.assert_array_equal(model.predict(X), names)


def test_misclassification_splits_without_immediate_gain():
    # No single split reduces the error, but two levels separate the classes.
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=float)
    y = np.array([0, 1, 1, 0] * 5)
    model = DecisionTreeClassifier(criterion="misclassification").fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize(
    ("criterion", "expected"), [("gini", 4 / 7), ("entropy", 1.3788), ("misclassification", 3 / 7)]
)
def test_impurity_of_the_lecture_example(criterion, expected):
    model = DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(
        np.zeros((7, 1)), [0] * 4 + [1] * 2 + [2]
    )
    assert model.tree_.impurity[0] == pytest.approx(expected, abs=1e-4)


# -------------------------------------------------------------------------------------- pruning


def test_pruning_path_equals_scikit_learn():
    X, y = load_spam(return_X_y=True, split="train")
    rng = np.random.default_rng(0)
    X = X + 1e-3 * rng.normal(size=X.shape).astype(np.float32)  # no ties
    X = X.astype(np.float32)
    path = DecisionTreeClassifier(max_depth=6).cost_complexity_pruning_path(X, y)
    expected = sklearn_tree.DecisionTreeClassifier(
        max_depth=6, random_state=0
    ).cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, atol=1e-12)
    np.testing.assert_allclose(path.impurities, expected.impurities, atol=1e-12)


@pytest.mark.parametrize("by", ["error", "impurity"])
def test_pruned_trees_are_optimal(by):
    """Each subtree of the sequence minimises risk + alpha * leaves over all subtrees."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    tree = DecisionTreeClassifier(max_depth=4).fit(X, y).tree_
    risk = _prune.node_risk(tree, by)
    alphas, _, node_alpha = _prune.link_alphas(tree, by)

    def subtrees(node):
        """Return (risk, leaves) of every pruned form of the subtree."""
        forms = [(risk[node], 1)]
        if tree.children_left[node] >= 0:
            for a in subtrees(tree.children_left[node]):
                for b in subtrees(tree.children_right[node]):
                    forms.append((a[0] + b[0], a[1] + b[1]))
        return list(dict.fromkeys(forms))

    forms = subtrees(0)
    for alpha in [*alphas, *(alphas[:-1] + alphas[1:]) / 2]:
        pruned = tree.collapse(node_alpha <= alpha)
        leaves = pruned.children_left < 0
        reached = _prune.node_risk(pruned, by)[leaves].sum() + alpha * leaves.sum()
        best = min(r + alpha * n for r, n in forms)
        assert reached == pytest.approx(best, abs=1e-12)


def test_prune_fits_each_fold_once(monkeypatch):
    X, y = load_spam(return_X_y=True, split="train")
    model = DecisionTreeClassifier().fit(X, y)
    fits = []
    original = DecisionTreeClassifier.fit
    monkeypatch.setattr(
        DecisionTreeClassifier,
        "fit",
        lambda self, *a, **k: fits.append(1) or original(self, *a, **k),
    )
    pruned = model.prune(X, y, cv=5)
    assert len(fits) == 5
    assert model.tree_.node_count > pruned.tree_.node_count
    assert pruned is not model
    result = pruned.pruning_
    assert result.n_leaves[result.chosen] == pruned.get_n_leaves()
    assert result.errors[result.chosen] == result.errors.min()
    assert np.all(np.diff(result.n_leaves) < 0)
    simpler = model.prune(X, y, cv=5, one_standard_error=True)
    assert simpler.get_n_leaves() < pruned.get_n_leaves()


def test_cross_validated_errors_equal_those_of_refitted_trees():
    """The derived curve equals fitting and pruning on every fold, for every alpha."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + rng.normal(size=150)
    folds = KFold(3)
    pruned = DecisionTreeRegressor().prune(X, y, cv=folds)
    alphas = pruned.pruning_.alphas
    probes = np.append(np.sqrt(alphas[:-1] * alphas[1:]), 1e9)
    for i in range(0, len(alphas), 7):
        total = 0.0
        for train, test in folds.split(X):
            model = DecisionTreeRegressor(ccp_alpha=probes[i]).fit(X[train], y[train])
            total += np.sum((model.predict(X[test]) - y[test]) ** 2)
        assert pruned.pruning_.errors[i] == pytest.approx(total / 150, rel=1e-9)


def test_pruned_cart_on_spam_reaches_the_published_error():
    X, y = load_spam(return_X_y=True, split="train")
    X_test, y_test = load_spam(return_X_y=True, split="test")
    pruned = DecisionTreeClassifier().prune(X, y, cv=10)
    error = 1 - pruned.score(X_test, y_test)
    assert abs(error - 0.087) <= 2 * 0.007


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_reduced_error_pruning(cls):
    """Turning any further node into a leaf increases the validation error."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    X_val, y_val = X[:300], y[:300]
    model = cls().fit(X[300:], y[300:])

    def error(m):
        predicted = m.predict(X_val)
        if cls is DecisionTreeClassifier:
            return np.mean(predicted != y_val)
        return np.mean((predicted - y_val) ** 2)

    pruned = model.prune(X_val, y_val)
    assert pruned.pruning_.error == pytest.approx(error(pruned))
    assert pruned.pruning_.error_before == pytest.approx(error(model))
    assert error(pruned) < error(model)
    for node in np.flatnonzero(pruned.tree_.children_left >= 0):
        mark = np.zeros(pruned.tree_.node_count, dtype=bool)
        mark[node] = True
        assert error(pruned._with_tree(pruned.tree_.collapse(mark))) > error(pruned)


def test_invalid_arguments_of_prune_raise():
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    with pytest.raises(ValueError, match="by must be"):
        model.prune(X, y, cv=3, by="error")
    with pytest.raises(NotFittedError):
        DecisionTreeRegressor().prune(X, y)
    with pytest.raises(ValueError, match="rows"):
        model.prune(X, y[:-1])


def test_pruning_keeps_categories_and_names():
    frame, y = mixed_table()
    labels = np.where(y > 1, "high", "low")
    pruned = DecisionTreeClassifier().prune(frame, labels, cv=4)
    assert list(pruned.feature_names_in_) == list(frame.columns)
    unpickled = pickle.loads(pickle.dumps(pruned))
    np.testing.assert_array_equal(unpickled.predict(frame), pruned.predict(frame))


def test_notebooks_show_the_tree():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier()
    assert "<svg xmlns" not in model._repr_mimebundle_()["text/html"]
    html = model.fit(X, y)._repr_mimebundle_()["text/html"]
    assert "<svg xmlns" in html
    assert "DecisionTreeClassifier" in html


# ------------------------------------------------------------------------------ edge cases


def test_large_integer_weights_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    for y in ((X[:, 0] + 0.5 * rng.normal(size=100) > 0).astype(int), rng.integers(0, 4, 100)):
        w = rng.integers(1, 5, 100).astype(float)
        expected = DecisionTreeClassifier().fit(X, y, w).apply(X)
        for power in (20, 28, 32, 45):
            model = DecisionTreeClassifier().fit(X, y, w * 2.0**power)
            np.testing.assert_array_equal(model.apply(X), expected)


def test_poisson_treats_rounded_zeros_as_zero():
    rng = np.random.default_rng(0)
    for _ in range(200):
        X = rng.permutation(8)[:, None].astype(float)
        y = rng.choice([0.0, 0.0, 0.3, 0.5, 0.9, 1.0], 8)
        if y.sum() == 0:
            continue
        tree = DecisionTreeRegressor(criterion="poisson", max_depth=1).fit(X, y)
        reference = sklearn_tree.DecisionTreeRegressor(criterion="poisson", max_depth=1).fit(X, y)
        improved = reference.tree_.node_count > 1
        assert (tree.tree_.node_count > 1) >= improved
    with pytest.raises(ValueError, match="positive"):
        DecisionTreeRegressor(criterion="poisson").fit(
            [[0.0], [1.0], [2.0]], [0, 0, 5], sample_weight=[1, 1, 0]
        )


def test_children_with_negligible_weight_are_not_split_off():
    X = np.arange(6.0)[:, None]
    model = DecisionTreeClassifier(max_depth=1).fit(
        X, [0, 0, 0, 1, 1, 5], sample_weight=[1, 1, 1, 1, 1, 1e-20]
    )
    assert model.tree_.threshold[0] == 2.5


def test_threads_agree_on_ties_of_absolute_error():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=30_000)
        X = np.column_stack([x, -x, x**3, -np.exp(x)])
        y = rng.random(30_000) + (x > 0)
        trees = [
            DecisionTreeRegressor(criterion="absolute_error", max_depth=2, n_jobs=n).fit(X, y).tree_
            for n in (1, 2)
        ]
        assert_same_tree(*trees)


def test_unknown_codes_are_safe_without_input_checks():
    X = np.array([[10.0, 1], [20, 2], [30, 3]] * 10)
    y = [0, 1, 0] * 10
    model = DecisionTreeClassifier(categorical_features=[0]).fit(X, y)
    np.testing.assert_array_equal(model.predict(X, check_input=False), model.predict(X))
    assert model.predict(np.array([[1e13, 1.0]]), check_input=False).shape == (1,)
    with pytest.raises(ValueError, match="categories"):
        model.tree_.apply(X)


def test_tree_apply_checks_the_number_of_columns():
    model = DecisionTreeClassifier().fit(np.random.default_rng(0).random((50, 30)), [0, 1] * 25)
    for X in (np.zeros((1, 0)), np.zeros((3, 1)), np.zeros(30)):
        with pytest.raises(ValueError, match="30 columns"):
            model.tree_.apply(X)


def test_failed_refit_leaves_the_model_unfitted():
    model = DecisionTreeRegressor().fit(np.zeros((3, 5)), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="samples"):
        model.fit(np.ones((3, 1)), [1.0, 2.0])
    with pytest.raises(NotFittedError):
        model.predict(np.ones((1, 1)))


def test_wide_sparse_prediction_stays_sparse():
    # A dense block of rows would need 8 GB.
    rng = np.random.default_rng(0)
    X = sparse.random(1_000, 1_000_000, density=1e-5, random_state=rng, format="csc")
    y = rng.integers(0, 2, 1_000)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    leaves = model.apply(X)
    assert np.bincount(leaves)[leaves[0]] == model.tree_.n_node_samples[leaves[0]]


def test_pruning_alphas_are_valid_parameters():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.integers(0, 6, (80, 3)).astype(float), rng.integers(0, 3, 80)
        alphas = DecisionTreeClassifier().cost_complexity_pruning_path(X, y).ccp_alphas
        assert np.all(np.diff(alphas) >= 0)
        DecisionTreeClassifier(ccp_alpha=alphas[1]).fit(X, y)


def test_huge_limits_mean_no_limit():
    X, y = load_iris(return_X_y=True)
    expected = DecisionTreeClassifier().fit(X, y)
    model = DecisionTreeClassifier(max_depth=10**30, max_features=10**30).fit(X, y)
    assert_same_tree(model.tree_, expected.tree_)
    assert DecisionTreeClassifier(min_samples_split=10**30).fit(X, y).get_n_leaves() == 1
    assert DecisionTreeClassifier(max_leaf_nodes=10**30).fit(X, y).score(X, y) == 1.0
