"""Automatic settings of boosting: folds, kinds of trees, target statistics."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

import spinney.boosting.base as boosting
from spinney.boosting import _bins as boosting_bins
from spinney.boosting._bins import Bins
from spinney.boosting._booster import best_round
from spinney.boosting._fit_plan import Fold
from spinney.boosting._settings import resolve_settings
from spinney.boosting._target_statistics import ordered_statistics
from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from support.workers import split_rows


def waves(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


# ------------------------------------------------------------------------------------ rules


def test_given_number_of_rounds_uses_plain_settings():
    (plain,) = resolve_settings(
        GradientBoostingRegressor(n_estimators=7), 7, n_rows=10_000, n_scores=1
    )
    assert plain.n_estimators == 7
    assert plain.learning_rate == 0.1
    assert plain.subsample == 1
    assert plain.growth == "best_first"
    assert plain.n_folds == 1


def test_given_parameters_are_kept():
    model = GradientBoostingRegressor(learning_rate=0.02, max_leaf_nodes=None, n_folds=3)
    for chosen in resolve_settings(model, "auto", n_rows=1000, n_scores=1):
        assert chosen.learning_rate == 0.02
        assert chosen.max_leaf_nodes is None
        assert chosen.n_folds == 3


def test_number_of_folds_decreases_with_rows():
    model = GradientBoostingRegressor()
    folds = [
        resolve_settings(model, "auto", n_rows=n, n_scores=1)[0].n_folds
        for n in (100, 10_000, 30_000, 10**6)
    ]
    assert folds[0] == 8
    assert folds[-1] == 1
    assert folds == sorted(folds, reverse=True)
    assert len(resolve_settings(model, "auto", n_rows=10**6, n_scores=1)) == 1
    assert resolve_settings(model, "auto", n_rows=10_000, n_scores=26)[0].n_folds == 1


def test_wide_tables_use_fewer_bins_and_columns():
    model = GradientBoostingClassifier()
    for n_rows, n_columns, share, bins in (
        (200, 2000, 0.5, 255),
        (200, 2001, 0.25, 64),
        (2999, 10_000, 0.25, 64),
    ):
        for chosen in resolve_settings(
            model, "auto", n_rows=n_rows, n_scores=1, n_columns=n_columns
        ):
            assert (chosen.max_features, chosen.max_bins) == (share, bins)
    for narrow, wide in zip(
        resolve_settings(model, "auto", n_rows=3000, n_scores=1),
        resolve_settings(model, "auto", n_rows=3000, n_scores=1, n_columns=9999),
        strict=True,
    ):
        assert narrow == wide
    assert resolve_settings(model, 100, n_rows=200, n_scores=1, n_columns=9999)[0].max_bins == 255
    assert resolve_settings(model, "auto", n_rows=20, n_scores=1, n_columns=9999)[0].max_bins == 255
    given = GradientBoostingClassifier(max_features=0.9, max_bins=20)
    for chosen in resolve_settings(given, "auto", n_rows=200, n_scores=1, n_columns=9999):
        assert (chosen.max_features, chosen.max_bins) == (0.9, 20)
    exact = GradientBoostingClassifier(max_bins=None)
    assert (
        resolve_settings(exact, "auto", n_rows=200, n_scores=1, oblivious=False, n_columns=9999)[
            0
        ].max_bins
        is None
    )


@pytest.mark.parametrize(("n_columns", "bins"), [(50, 255), (2500, 64)])
def test_wide_tables_have_few_codes(monkeypatch, n_columns, bins):
    code_counts = []

    class RecordingBins(Bins):
        def __init__(self, *args):
            super().__init__(*args)
            code_counts.append(self.matrix.n_codes / n_columns)

    monkeypatch.setattr(boosting_bins, "Bins", RecordingBins)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, n_columns))
    y = (X[:, 0] > 0).astype(int)
    model = GradientBoostingClassifier(n_iter_no_change=3, n_folds=2, random_state=0).fit(X, y)
    assert code_counts == [min(bins, 100)]
    assert model.predict_proba(X).shape == (100, 2)


def test_few_rows_have_no_validation_set():
    X, y = waves(30)
    model = GradientBoostingRegressor().fit(X, y)
    assert model.n_estimators_ == 100
    assert len(model.validation_score_) == 0


# ------------------------------------------------------------------------------------ folds


def test_automatic_settings_beat_plain_settings():
    X, y = waves(1200)
    score = {}
    for name, model in {
        "auto": GradientBoostingRegressor(random_state=0),
        "plain": GradientBoostingRegressor(n_estimators=100),
    }.items():
        score[name] = model.fit(X[:800], y[:800]).score(X[800:], y[800:])
    assert score["auto"] > score["plain"] + 0.02


@pytest.mark.parametrize("growth", ["best_first", "oblivious"])
def test_model_is_the_average_of_its_boosters(growth, monkeypatch):
    X, y = waves(300)
    model = GradientBoostingRegressor(n_folds=3, growth=growth, random_state=4).fit(X, y)
    parts = split_rows(300, 3, 0.1, seed=model._continuation.seed)
    raw = 0
    for number, (train_rows, validation_rows) in enumerate(parts):
        one = clone(model).set_params(
            n_folds=1,
            n_estimators=model.n_estimators_,
            learning_rate=0.05,
            max_leaf_nodes=16 if growth == "oblivious" else 8,
            min_samples_leaf=1 if growth == "oblivious" else 2,
            l2_regularization=3,
            subsample=0.7,
            max_features=0.5,
            early_stopping=True,
        )
        one.random_state = FixedSeed(model._continuation.seed + number)
        with monkeypatch.context() as patch:  # one fold, with the bins of all rows
            fold = Fold(train_rows, validation_rows)
            patch.setattr(boosting, "split_rows", lambda *_, fold=fold, **__: [fold])
            patch.setattr(boosting_bins, "Bins", lambda *given: Bins(*given[:3], None))
            patch.setattr(boosting.Trial, "best", lambda trial: (trial.n_rounds, None))
            held = one.fit(X, y)
        raw = raw + held._raw(X) / 3
        assert len(validation_rows) == 100
    np.testing.assert_allclose(raw, model._raw(X), rtol=1e-12)


class FixedSeed(np.random.RandomState):
    """Random state that always returns the same seed."""

    def __init__(self, seed):
        super().__init__(0)
        self.seed_given = seed

    def randint(self, *args, **kwargs):
        return self.seed_given


def test_number_of_threads_does_not_change_predictions():
    X, y = waves(400)
    predicted = [
        GradientBoostingRegressor(random_state=0, n_jobs=n).fit(X, y).predict(X) for n in (1, 2, 5)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])
    classes = np.digitize(y, [-0.5, 0.5])
    predicted = [
        GradientBoostingClassifier(random_state=0, n_jobs=n).fit(X, classes).predict_proba(X)
        for n in (1, 2, 3)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])


def test_scale_of_the_target_does_not_matter():
    X, y = waves(300)
    model = GradientBoostingRegressor(random_state=0)
    large, small = clone(model).fit(X, y * 1e6), clone(model).fit(X, y * 1e-6)
    assert large.n_estimators_ == small.n_estimators_ > 20
    np.testing.assert_allclose(large.predict(X) * 1e-12, small.predict(X), rtol=1e-6)


def test_better_kind_of_tree_is_kept():
    X, y = waves(400)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    lowest = {}
    for growth in ("best_first", "oblivious"):
        single_kind = clone(model).set_params(growth=growth).fit(X, y)
        lowest[growth] = single_kind.validation_score_.min()
        if growth == model.growth_:
            assert np.array_equal(single_kind.predict(X), model.predict(X))
    assert model.growth_ == min(lowest, key=lowest.get)


def test_constraints_use_best_first_trees():
    X, y = waves(300)
    model = GradientBoostingRegressor(random_state=0, monotonic_cst=[0, 1, 0, 0, 0]).fit(X, y)
    assert model.growth_ == "best_first"
    line = np.repeat(X[:1], 50, axis=0)
    line[:, 1] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(line)) >= 0).all()


def test_best_round_with_patience_and_tolerance():
    assert best_round([3, 2, 2.5, 2.6, 1], 2, 0) == (2, 4)
    assert best_round([3, 2, 2.5, 1, 1], 2, 0) == (4, None)
    assert best_round([1.0, 0.9999, 0.9], 5, 0.01) == (3, None)
    assert best_round([], 5, 0.01) == (0, None)


# ------------------------------------------------------------------------------------ row splits


def test_every_row_is_validated_once():
    splits = split_rows(103, 4, 0.1, classes=np.arange(103) % 3)
    assert np.array_equal(
        np.sort(np.concatenate([validation for _, validation in splits])), np.arange(103)
    )
    for train_rows, validation_rows in splits:
        assert np.array_equal(
            np.sort(np.concatenate([train_rows, validation_rows])), np.arange(103)
        )
        assert np.ptp(np.bincount(validation_rows % 3)) <= 1


@pytest.mark.parametrize("n_folds", [1, 3])
def test_groups_stay_together(n_folds):
    groups = np.repeat(np.arange(20), 5)[np.random.default_rng(0).permutation(100)]
    for train_rows, validation_rows in split_rows(100, n_folds, 0.2, groups=groups):
        assert not set(groups[train_rows]) & set(groups[validation_rows])
        assert len(train_rows) + len(validation_rows) == 100


def test_validation_rows_are_the_latest():
    time = np.random.default_rng(0).integers(0, 30, 100)
    ((train_rows, validation_rows),) = split_rows(100, 5, 0.2, time=time)
    assert time[train_rows].max() < time[validation_rows].min()
    assert len(validation_rows) >= 20


def test_invalid_groups_and_times_raise():
    X, y = waves(100)
    model = GradientBoostingRegressor()
    with pytest.raises(ValueError, match="groups: expected at least 2"):
        model.fit(X, y, groups=np.zeros(100))
    with pytest.raises(ValueError, match="time: expected at least two distinct values"):
        model.fit(X, y, time=np.zeros(100))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X, y, groups=np.zeros(99))
    with pytest.raises(ValueError, match="expected one of them"):
        model.fit(X, y, groups=np.arange(100), time=np.arange(100))


def test_groups_in_fit_prevent_optimistic_validation_scores():
    # The target depends on the group only, and a column identifies the group. Only validation
    # rows from other groups show that the model cannot generalize.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    X = np.c_[groups, rng.normal(size=600)]
    y = rng.normal(size=60)[groups]
    with_groups = GradientBoostingRegressor(random_state=0).fit(X, y, groups=groups)
    without_groups = GradientBoostingRegressor(random_state=0).fit(X, y)
    assert with_groups.validation_score_.min() > 5 * without_groups.validation_score_.min()


# ------------------------------------------------------------------------------------ oblivious


def splits_by_depth(tree):
    nodes_at = {0: [0]}
    for depth in itertools.count():
        nodes = nodes_at[depth]
        inner = [i for i in nodes if tree.children_left[i] >= 0]
        if not inner:
            return
        yield [(int(tree.feature[i]), float(tree.threshold[i])) for i in inner]
        nodes_at[depth + 1] = [
            c for i in inner for c in (tree.children_left[i], tree.children_right[i])
        ]


def test_oblivious_trees_have_one_split_per_level():
    X, y = waves(500)
    model = GradientBoostingRegressor(
        n_estimators=20, growth="oblivious", max_leaf_nodes=16, min_samples_leaf=1
    ).fit(X, y)
    for t in range(20):
        # A node skips a split with an empty side, so depths can differ from levels.
        splits = {
            split
            for level in splits_by_depth(model.fitted_model().store.tree(t))
            for split in level
        }
        assert len(splits) <= 4
        assert 4 < (model.fitted_model().store.tree(t).children_left < 0).sum() <= 16


def test_oblivious_tree_is_optimal():
    # Two levels, by hand: all pairs of splits; the second one applies to both sides.
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(60, 3)), 1)
    y = rng.normal(size=60) + X[:, 0] * X[:, 1]
    model = GradientBoostingRegressor(
        n_estimators=1,
        growth="oblivious",
        max_leaf_nodes=4,
        min_samples_leaf=1,
        learning_rate=1,
        l2_regularization=0.5,
    ).fit(X, y)
    g = y.mean() - y

    def gain(rows, left):
        def half(mask):
            return g[mask].sum() ** 2 / (mask.sum() + 0.5) / 2

        if not (rows & left).any() or not (rows & ~left).any():
            return 0.0
        return half(rows & left) + half(rows & ~left) - half(rows)

    def best(sides):
        candidates = []
        for f in range(3):
            for value in np.unique(X[:, f])[:-1]:
                left = X[:, f] <= value
                candidates.append((sum(gain(rows, left) for rows in sides), f, value))
        return max(candidates)

    _, f, value = best([np.ones(60, bool)])
    first = X[:, f] <= value
    _total, f2, value2 = best([first, ~first])
    levels = list(splits_by_depth(model.fitted_model().store.tree(0)))
    assert levels[0][0][0] == f
    assert value <= levels[0][0][1] < value + 0.11
    assert levels[1][0][0] == f2
    assert value2 <= levels[1][0][1] < value2 + 0.11
    second = X[:, f2] <= value2
    expected = np.empty(60)
    for a, b in itertools.product((first, ~first), (second, ~second)):
        rows = a & b
        expected[rows] = y.mean() - g[rows].sum() / (rows.sum() + 0.5)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)


def test_oblivious_trees_with_missing_values_categories_and_constraints():
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "b": pd.Categorical(rng.choice(list("uvwxyz"), n)),
            "c": rng.normal(size=n),
        }
    )
    y = np.nan_to_num(frame["a"], nan=2) + frame["b"].isin(["u", "x"]) * 2 + frame["c"]
    model = GradientBoostingRegressor(
        n_estimators=60,
        growth="oblivious",
        max_leaf_nodes=32,
        min_samples_leaf=5,
        monotonic_cst={"c": 1},
    ).fit(frame, y)
    assert model.score(frame, y) > 0.95
    rising = frame.iloc[:50].copy()
    previous = None
    for c in np.linspace(-3, 3, 40):
        rising["c"] = c
        predicted = model.predict(rising)
        assert previous is None or (predicted >= previous - 1e-12).all()
        previous = predicted
    for t in range(10):
        tree = model.fitted_model().store.tree(t)
        leaves = tree.children_left < 0
        assert tree.n_node_samples[leaves].min() >= 5


# ------------------------------------------------------------------------------------ statistics


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_ordered_statistics_use_preceding_rows_only(seed, n, n_categories, weighted):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, n_categories, n).astype(np.int32)
    y = rng.normal(size=n)
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    train_rows = np.sort(rng.choice(n, size=max(1, n * 2 // 3), replace=False)).astype(np.uint32)
    mean_of, count = ordered_statistics(
        2,
        codes,
        n_categories=n_categories,
        targets=y[:, np.newaxis],
        weights=weights,
        train_rows=train_rows,
        seed=seed,
    )
    w = np.ones(n) if weights is None else weights
    mean = np.average(y[train_rows], weights=w[train_rows])
    order = np.random.default_rng([seed, 2]).permutation(train_rows)
    for position, row in enumerate(order):
        before = [r for r in order[:position] if codes[r] == codes[row]]
        expected = (w[before] @ y[before] + mean) / (w[before].sum() + 1)
        np.testing.assert_allclose(mean_of.of_row[row], expected, rtol=1e-9, atol=1e-12)
    for code in range(-1, n_categories):
        rows = [r for r in train_rows if codes[r] == code]
        expected = (w[rows] @ y[rows] + mean) / (w[rows].sum() + 1)
        np.testing.assert_allclose(mean_of.of_category[code], expected, rtol=1e-9, atol=1e-12)
        assert count.of_category[code] == w[rows].sum()
    others = np.setdiff1d(np.arange(n), train_rows)
    np.testing.assert_array_equal(mean_of.of_row[others], mean_of.of_category[codes[others]])


def many_categories(n=3000, n_categories=400, seed=0):
    rng = np.random.default_rng(seed)
    effect = rng.normal(size=n_categories)
    code = rng.integers(0, n_categories, n)
    frame = pd.DataFrame({"shop": pd.Categorical(code.astype(str)), "x": rng.normal(size=n)})
    return frame, effect[code] + 0.5 * frame["x"].to_numpy() + rng.normal(size=n)


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_many_categories_do_not_overfit(kind):
    X, y = many_categories()
    if kind == "number":
        model = GradientBoostingRegressor(random_state=0, n_estimators=150)
    else:
        y = np.digitize(y, [0] if kind == "two" else [-0.7, 0.7])
        model = GradientBoostingClassifier(random_state=0, n_estimators=60)
    by_statistics = clone(model).fit(X[:2000], y[:2000])
    by_sets = clone(model).set_params(max_set_categories=None).fit(X[:2000], y[:2000])
    # With statistics the training score is near the test score; with sets of categories it is not.
    differences = [
        fitted.score(X[:2000], y[:2000]) - fitted.score(X[2000:], y[2000:])
        for fitted in (by_statistics, by_sets)
    ]
    assert by_statistics.score(X[2000:], y[2000:]) > by_sets.score(X[2000:], y[2000:])
    assert differences[0] < differences[1] + 0.05


def test_splits_on_statistics_are_splits_on_categories():
    X, y = many_categories()
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, y)
    same = X.iloc[:200].copy()
    same["x"] = 0.0
    predicted = pd.Series(model.predict(same)).groupby(same["shop"].to_numpy()).nunique()
    assert (predicted == 1).all()
    tree = model.fitted_model().store.tree(0)
    assert set(tree.feature[tree.children_left >= 0]) <= {0, 1}
    assert model.feature_importances_.shape == (2,)
    assert model.feature_importances_[0] > 0.3
    unseen = same.iloc[:1].assign(shop="not a shop")
    missing = same.iloc[:1].assign(shop=None)
    assert np.isfinite(model.predict(unseen))
    assert model.predict(unseen) == model.predict(missing)


def test_warm_start_with_statistics_equals_one_fit():
    X, y = many_categories(800, 100)
    one_fit = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, y)
    continued = GradientBoostingRegressor(n_estimators=15, random_state=0, warm_start=True).fit(
        X, y
    )
    continued.set_params(n_estimators=40).fit(X, y)
    assert np.array_equal(one_fit.predict(X), continued.predict(X))
    np.testing.assert_array_equal(one_fit.train_score_, continued.train_score_)


def test_statistics_with_constraints_and_an_eval_set():
    X, y = many_categories(1500, 150)
    model = GradientBoostingRegressor(
        n_estimators=200,
        interaction_cst=[[0], [1]],
        monotonic_cst={"x": 1},
        n_iter_no_change=20,
        random_state=0,
    ).fit(X[:1000], y[:1000], eval_set=(X[1000:], y[1000:]))
    loss = np.mean((model.predict(X[1000:]) - y[1000:]) ** 2)
    np.testing.assert_allclose(loss / 2, model.validation_score_.min(), rtol=1e-6)
    for t in range(model.n_estimators_):
        tree = model.fitted_model().store.tree(t)
        assert len(set(tree.feature[tree.children_left >= 0])) <= 1


# ------------------------------------------------------------------------------------ callbacks


def test_callbacks_receive_scores_and_can_stop():
    X, y = waves(500)
    calls = []

    def record(done, total, score):
        calls.append((done, total, score))
        return done >= 20

    model = GradientBoostingRegressor(n_estimators=100, callbacks=record).fit(X, y)
    assert [done for done, _, _ in calls] == [10, 20]
    assert model.n_estimators_ == 20
    np.testing.assert_allclose([score for _, _, score in calls], model.train_score_[[9, 19]])
    counted = []
    GradientBoostingRegressor(
        n_estimators=30, callbacks=[lambda done, total: counted.append((done, total))]
    ).fit(X, y)
    assert counted == [(10, 30), (20, 30), (30, 30)]


def test_callbacks_with_folds_count_both_kinds_of_trees():
    X, y = waves(300)
    calls = []
    GradientBoostingRegressor(
        random_state=0, callbacks=lambda done, total, score: calls.append((done, total, score))
    ).fit(X, y)
    assert {total for _, total, _ in calls} == {2000}
    assert any(done > 1000 for done, _, _ in calls)
    assert all(np.isfinite(s) for _, _, s in calls)


def test_cross_validated_score_equals_the_test_score():
    # The loss on validation rows predicts the loss on new rows.
    X, y = waves(3000, seed=5)
    validation_losses, test_losses = [], []
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        model = GradientBoostingRegressor(random_state=0).fit(X[train], y[train])
        validation_losses.append(2 * model.validation_score_.min())
        test_losses.append(np.mean((model.predict(X[test]) - y[test]) ** 2))
    assert np.mean(test_losses) < np.mean(validation_losses) * 1.05
