"""Boosting for rankings."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from spinney import _core
from spinney.ensemble import GradientBoostingRanker


def queries(n_groups=60, size=12, seed=0):
    rng = np.random.default_rng(seed)
    n = n_groups * size
    X = rng.normal(size=(n, 4))
    group = np.repeat(np.arange(n_groups), size)
    # An effect of the query that must not count, and one of the row that must.
    hidden = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    relevance = np.clip(np.floor(hidden + 1.5), 0, 4)
    return X, relevance, group


def pair_loss(scores, targets):
    return sum(
        np.log1p(np.exp(-(scores[i] - scores[j])))
        for i, j in itertools.product(range(len(scores)), repeat=2)
        if targets[i] > targets[j]
    )


@given(st.integers(0, 10**6), st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_pairwise_derivatives_are_those_of_the_loss(seed, n):
    rng = np.random.default_rng(seed)
    scores, targets = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    first, second, loss = _core.rank_derivatives(False, 30, [0, n], targets, scores)
    step = 1e-4
    for i in range(n):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        a, b, c = (pair_loss(s, targets) for s in (down, scores, up))
        np.testing.assert_allclose(first[i], (c - a) / (2 * step), atol=1e-5)
        np.testing.assert_allclose(second[i], (a - 2 * b + c) / step**2, atol=1e-4)
    n_pairs = (targets[:, None] > targets).sum()
    if n_pairs > 0:
        np.testing.assert_allclose(loss, pair_loss(scores, targets) / n_pairs, rtol=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 15))
@settings(max_examples=60, deadline=None)
def test_lambdas_are_pairs_weighted_by_what_a_swap_changes(seed, n, places):
    rng = np.random.default_rng(seed)
    scores, targets = rng.normal(size=n), rng.integers(0, 4, n).astype(float)
    first, second, loss = _core.rank_derivatives(True, places, [0, n], targets, scores)
    gains = 2**targets - 1
    if gains.max() == 0:
        assert not first.any()
        assert np.isnan(loss)
        return
    ndcg = ndcg_score([gains], [scores], k=places)
    np.testing.assert_allclose(loss, 1 - ndcg, atol=1e-12)
    order = np.argsort(-scores)
    rank = np.empty(n, int)
    rank[order] = np.arange(n)
    discount = 1 / np.log2(rank + 2)
    best = (np.sort(gains)[::-1] / np.log2(np.arange(n) + 2))[:places].sum()
    g, h, size = np.zeros(n), np.zeros(n), 0.0
    for i, j in itertools.product(range(n), repeat=2):
        if targets[i] <= targets[j] or min(rank[i], rank[j]) >= places:
            continue
        change = (gains[i] - gains[j]) * abs(discount[i] - discount[j]) / best
        change /= 0.01 + abs(scores[i] - scores[j])
        p = 1 / (1 + np.exp(scores[i] - scores[j]))
        g[i] -= change * p
        g[j] += change * p
        h[[i, j]] += change * p * (1 - p)
        size += 2 * change * p
    scale = np.log2(1 + size) / size if size > 0 else 1
    np.testing.assert_allclose(first, g * scale, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(second, h * scale, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["ndcg", "pairwise"])
@pytest.mark.parametrize("n_estimators", [60, "auto"])
def test_it_learns_the_order_within_groups(loss, n_estimators):
    X, y, group = queries()
    train = group < 40
    model = GradientBoostingRanker(loss=loss, n_estimators=n_estimators, random_state=0)
    model.fit(X[train], y[train], group=group[train])
    shuffled = np.random.default_rng(0).normal(size=(~train).sum())
    chance = np.mean(
        [
            ndcg_score([2 ** y[group == g] - 1], [shuffled[(group[~train]) == g]])
            for g in range(40, 60)
        ]
    )
    got = model.score(X[~train], y[~train], group=group[~train])
    assert got > 0.9 > chance + 0.1
    assert (np.diff(model.train_score_)[:5] < 0).any()


def test_the_watched_loss_is_that_of_the_watched_groups():
    X, y, group = queries()
    train = group < 40
    model = GradientBoostingRanker(n_estimators=40, n_iter_no_change=100, random_state=0)
    model.fit(
        X[train], y[train], group=group[train], eval_set=(X[~train], y[~train], group[~train])
    )
    losses = []
    for g in range(40, 60):
        rows = group == g
        gains = (2 ** y[rows] - 1)[np.argsort(-model.predict(X[rows]), kind="stable")]
        discounts = 1 / np.log2(np.arange(len(gains)) + 2)
        if gains.max() > 0:
            losses.append(1 - gains @ discounts / (np.sort(gains)[::-1] @ discounts))
    np.testing.assert_allclose(model.validation_score_.min(), np.mean(losses), atol=1e-9)


def test_sizes_identifiers_and_any_order_of_rows_are_the_same():
    X, y, group = queries()
    model = GradientBoostingRanker(n_estimators=20)
    by_id = model.fit(X, y, group=group).predict(X)
    by_size = model.fit(X, y, group=np.full(60, 12)).predict(X)
    names = np.array([f"query {g:03d}" for g in group])
    by_name = model.fit(pd.DataFrame(X), y, group=names).predict(X)
    assert np.array_equal(by_id, by_size)
    assert np.array_equal(by_id, by_name)
    order = np.random.default_rng(0).permutation(len(y))
    by_any = model.fit(X[order], y[order], group=group[order]).predict(X)
    assert np.corrcoef(by_any, by_id)[0, 1] > 0.98  # rows of the same score come in their order
    assert (
        abs(model.score(X, y, group=group) - model.score(X[order], y[order], group=group[order]))
        < 1e-12
    )


def test_same_bits_on_any_threads():
    X, y, group = queries()
    predicted = [
        GradientBoostingRanker(random_state=0, n_jobs=n).fit(X, y, group=group).predict(X)
        for n in (1, 2, 3)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])


def test_groups_are_not_divided(monkeypatch):
    import spinney.ensemble._boosting as boosting

    X, y, group = queries()
    order = np.random.default_rng(0).permutation(len(y))
    original, seen = boosting.split_rows, []
    monkeypatch.setattr(
        boosting, "split_rows", lambda *args: seen.append(original(*args)) or seen[-1]
    )
    GradientBoostingRanker(random_state=0).fit(X[order], y[order], group=group[order])
    in_order = np.sort(group)
    for learned, watched in seen[0]:
        assert not set(in_order[learned]) & set(in_order[watched])


def test_bad_input_is_named():
    X, y, group = queries(20)
    model = GradientBoostingRanker(n_estimators=3)
    with pytest.raises(ValueError, match="group: expected a group for each of 240 rows"):
        model.fit(X, y, group=[100, 100])
    with pytest.raises(ValueError, match="y: expected relevances from 0 to 60"):
        model.fit(X, y - 1, group=group)
    with pytest.raises(ValueError, match=r"eval_set: expected \(X, y, group\)"):
        model.fit(X, y, group=group, eval_set=(X, y))
    with pytest.raises(ValueError, match="group: expected one axis"):
        model.fit(X, y, group=np.zeros((240, 2)))


def test_nothing_to_order():
    X, _, group = queries(20)
    model = GradientBoostingRanker(n_estimators=3).fit(X, np.zeros(240), group=group)
    assert np.array_equal(model.predict(X), np.zeros(240))
    alone = GradientBoostingRanker(n_estimators=3).fit(X, np.arange(240) % 3, group=np.arange(240))
    assert np.array_equal(alone.predict(X), np.zeros(240))


def test_monotone_constraints_hold():
    X, y, group = queries()
    model = GradientBoostingRanker(n_estimators=30, monotonic_cst=[1, 0, 0, 0])
    model.fit(X, y, group=group)
    row = np.repeat(X[:1], 50, axis=0)
    row[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(row)) >= 0).all()


@parametrize_with_checks([GradientBoostingRanker()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
