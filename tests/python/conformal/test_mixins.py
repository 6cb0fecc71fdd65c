"""Intervals and sets: the rules behind them, and how often they hold the truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression as TheirLinearRegression
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import LeaveOneOut
from sklearn.naive_bayes import GaussianNB

import spinney
from spinney.calibration import ConformalClassifier, ConformalRegressor
from spinney.conformal.mixins import HeldOut
from spinney.conformal.rules import (
    class_scores,
    largest_score,
    sets_within,
    smallest_and_largest_error,
)
from spinney.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.linear_model import (
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PolynomialRegression,
    Ridge,
    RidgeCV,
)
from spinney.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    LocalClassifier,
    LocalRegression,
)
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor


def numbers(n: int, seed: int) -> tuple[Any, Any]:
    """Uneven and skewed noise."""
    random = np.random.default_rng(seed)
    X = random.uniform(-2, 2, (n, 3))
    noise = random.exponential(size=n) - 1
    return X, X[:, 0] ** 2 + X[:, 1] + (0.2 + np.abs(X[:, 1])) * noise


def classes(n: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    shares = np.exp(X)
    shares /= shares.sum(axis=1, keepdims=True)
    return X, (shares.cumsum(axis=1) > random.uniform(size=(n, 1))).argmax(axis=1)


def inside(ends: Any, y: Any) -> Any:
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


REGRESSORS = [
    RandomForestRegressor(50, random_state=0),
    ExtraTreesRegressor(50, bootstrap=True, random_state=0),
    BaggingRegressor(n_estimators=50, random_state=0),
    GradientBoostingRegressor(random_state=0),
    GradientBoostingRegressor(loss="quantile", alpha=[0.05, 0.95], random_state=0),
    LinearRegression(),
    Ridge(10.0),
    RidgeCV(),
    PolynomialRegression(2),
    KNeighborsRegressor(15),
    KNeighborsRegressor(15, weights="triangular"),
    LocalRegression(n_neighbors=60),
    ConformalRegressor(DecisionTreeRegressor(max_depth=4), method="split", random_state=0),
    ConformalRegressor(DecisionTreeRegressor(max_depth=4), random_state=0),
    ConformalRegressor(LADRegressor(), method="quantile", random_state=0),
    ConformalRegressor(QuantileRegressor(alpha=0.0), method="quantile", random_state=0),
    ConformalRegressor(
        RandomForestRegressor(30, random_state=0), method="quantile", random_state=0
    ),
    ConformalRegressor(TheirLinearRegression(), random_state=0),
]
CLASSIFIERS = [
    RandomForestClassifier(50, random_state=0),
    BaggingClassifier(n_estimators=50, random_state=0),
    GradientBoostingClassifier(random_state=0),
    KNeighborsClassifier(15),
    LocalClassifier(n_neighbors=60),
    ConformalClassifier(GaussianNB(), method="split", random_state=0),
    ConformalClassifier(GaussianNB(), random_state=0),
    ConformalClassifier(Perceptron(random_state=0), random_state=0),
    ConformalClassifier(Perceptron(random_state=0), method="split", random_state=0),
]


# ----- rules


def test_the_rank_that_holds_exactly() -> None:
    scores = np.array([3.0, 1.0, 2.0, 9.0, 5.0, 4.0, 7.0, 8.0, 6.0])
    assert largest_score(scores, 0.9) == 9.0  # the ninth of nine: ten would be too many
    assert largest_score(scores, 0.8) == 8.0
    assert largest_score(scores, 0.81) == 9.0
    assert largest_score(scores, 0.91) == math.inf
    assert largest_score(np.empty(0), 0.5) == math.inf
    low, high = smallest_and_largest_error(np.arange(1.0, 20.0), 0.9)
    assert (low, high) == (1.0, 19.0)
    assert smallest_and_largest_error(np.arange(1.0, 19.0), 0.9) == (-math.inf, math.inf)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-5, 5).map(lambda x: round(x, 2)), min_size=1, max_size=40),
    st.floats(0.01, 0.99),
)
def test_the_limit_by_counting(scores: list[float], coverage: float) -> None:
    # A new score is equally likely to take any of the n + 1 places among the others.
    limit = largest_score(np.array(scores), coverage)
    below = sum(score <= limit for score in scores)
    n = len(scores)
    if math.isinf(limit):
        assert n / (n + 1) < coverage + 1e-6
    else:
        assert below / (n + 1) >= coverage - 1e-6
        smaller = sum(score < limit for score in scores)
        assert smaller / (n + 1) < coverage + 1e-6


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.floats(0.05, 0.95))
def test_equal_weights_are_none(scores: list[float], coverage: float) -> None:
    plain = largest_score(np.array(scores), coverage)
    assert largest_score(np.array(scores), coverage, np.full(len(scores), 2.5)) == plain


def test_coverage_over_all_orders_is_exact() -> None:
    # Averaged over calibration samples, rank k of n holds k / (n + 1) of new scores.
    random = np.random.default_rng(0)
    n, draws = 19, 20_000
    scores = random.normal(size=(draws, n + 1))
    held = [row[-1] <= largest_score(row[:-1], 0.8) for row in scores]
    assert abs(np.mean(held) - 0.8) < 4 * math.sqrt(0.16 / draws)


def test_scores_by_hand() -> None:
    shares = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_allclose(class_scores(shares, "lac"), [[0.8, -np.inf, 0.7]])
    np.testing.assert_allclose(class_scores(shares, "aps"), [[0.9, -np.inf, 0.65]])
    np.testing.assert_allclose(class_scores(shares, "aps", 1.0), [[1.0, -np.inf, 0.8]])
    np.testing.assert_allclose(class_scores(shares, "raps"), [[0.95, -np.inf, 0.65]])
    np.testing.assert_array_equal(sets_within(class_scores(shares, "aps"), 0.7), [[0, 1, 1]])
    np.testing.assert_array_equal(sets_within(class_scores(shares, "aps"), 0.0), [[0, 1, 0]])
    np.testing.assert_array_equal(sets_within(class_scores(shares, "aps"), -np.inf), [[0, 1, 0]])


def test_quantiles_do_not_cross_when_they_are_narrowed() -> None:
    held = HeldOut("rows", np.zeros(50), np.tile([-5.0, 5.0], (50, 1)), quantiles=True)
    ends = held.interval(np.array([[0.0, 1.0], [-9.0, 9.0]]), None, 0.9)
    np.testing.assert_allclose(ends, [[0.5, 0.5], [-4.0, 4.0]])


# ----- coverage


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: f"{type(m).__name__}-{m!r}"[:60])
def test_intervals_hold_what_they_promise(model: Any) -> None:
    held, n_fits, n_rows = [], 4, 500
    for seed in range(n_fits):
        X, y = numbers(n_rows, seed)
        X_new, y_new = numbers(500, 1000 + seed)
        fitted = clone(model).fit(X, y)
        ends = fitted.predict_interval(X_new, 0.8)
        assert ends.shape == (500, 2)
        assert (ends[:, 0] <= ends[:, 1]).all()
        held.append(inside(ends, y_new).mean())
    # New rows and those that set the limit both vary; "split" has a quarter of them.
    n_set = n_rows / 4 if getattr(model, "method", "") in ("split", "quantile") else n_rows
    error = math.sqrt(0.16 / (500 * n_fits) + 0.16 / (n_set * n_fits))
    assert 0.8 - 4 * error < np.mean(held) < 0.8 + 4 * error + 0.03
    assert fitted.interval_method_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_sets_hold_what_they_promise(model: Any) -> None:
    held, n_fits, n_rows = [], 4, 500
    for seed in range(n_fits):
        X, y = classes(n_rows, seed)
        X_new, y_new = classes(500, 1000 + seed)
        fitted = clone(model).fit(X, y)
        sets = fitted.predict_set(X_new, 0.8)
        assert sets.shape == (500, 3)
        assert sets.dtype == bool
        assert sets.any(axis=1).all()
        held.append(sets[np.arange(500), y_new].mean())
    n_set = n_rows / 4 if getattr(model, "method", "") == "split" else n_rows
    error = math.sqrt(0.16 / (500 * n_fits) + 0.16 / (n_set * n_fits))
    assert 0.8 - 4 * error < np.mean(held) < 0.8 + 4 * error + 0.04
    assert fitted.set_method_


@pytest.mark.parametrize("kind", ["aps", "lac", "raps"])
def test_more_coverage_makes_larger_sets(kind: str) -> None:
    X, y = classes(400, 0)
    model = RandomForestClassifier(30, random_state=0).fit(X, y)
    before = np.zeros((100, 3), dtype=bool)
    for coverage in (0.3, 0.5, 0.7, 0.9, 0.99):
        sets = model.predict_set(classes(100, 1)[0], coverage, kind)
        assert (sets | ~before).all()
        before = sets


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: f"{type(m).__name__}-{m!r}"[:60])
def test_more_coverage_makes_longer_intervals(model: Any) -> None:
    X, y = numbers(200, 0)
    fitted = clone(model).fit(X, y)
    before = None
    for coverage in (0.5, 0.8, 0.9):
        ends = fitted.predict_interval(X[:20], coverage)
        if before is not None:
            assert (ends[:, 0] <= before[:, 0] + 1e-12).all()
            assert (ends[:, 1] >= before[:, 1] - 1e-12).all()
        before = ends


# ----- linear models


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_normal_intervals_are_those_of_statsmodels(fit_intercept: bool, weighted: bool) -> None:
    api = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(0)
    X, new = random.normal(3, 1, (60, 4)), random.normal(2, 2, (9, 4))
    y = X @ [1, -2, 0.5, 0] + random.normal(size=60)
    weights = random.integers(1, 4, 60) if weighted else np.ones(60)
    design = (lambda Z: api.add_constant(Z, has_constant="add")) if fit_intercept else np.asarray
    theirs = api.WLS(y, design(X), weights=weights).fit().get_prediction(design(new))
    ours = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weights)
    np.testing.assert_allclose(
        ours.predict_interval(new, 0.95, "normal"), theirs.conf_int(obs=True, alpha=0.05), rtol=1e-9
    )


@pytest.mark.parametrize("make", [LinearRegression, lambda: Ridge(3.0)])
def test_rows_left_out_are_left_out(make: Any) -> None:
    X, y = numbers(40, 3)
    left_out = make().fit(X, y)._errors.left_out.truth[:, 0]
    for i in range(40):
        others = np.arange(40) != i
        model = make().fit(X[others], y[others])
        error = y[i] - model.predict(X[i : i + 1])[0]
        spread = model._errors.spread(X[i : i + 1])[0, 0]
        assert left_out[i] == pytest.approx(error / spread, rel=1e-9)


def test_columns_that_depend_on_each_other() -> None:
    X, y = numbers(100, 0)
    twice = np.column_stack([X, X[:, 0], np.ones(100)])
    np.testing.assert_allclose(
        LinearRegression().fit(twice, y).predict_interval(twice[:9], method="normal"),
        LinearRegression().fit(X, y).predict_interval(X[:9], method="normal"),
        rtol=1e-7,
    )


def test_few_rows_fall_back_to_the_normal_distribution() -> None:
    X, y = numbers(12, 0)
    model = LinearRegression().fit(X, y)
    np.testing.assert_array_equal(
        model.predict_interval(X), model.predict_interval(X, method="normal")
    )
    assert np.isinf(model.predict_interval(X, method="conformal")).all()
    assert model.interval_method_.endswith(
        "; the t distribution for coverages that these are too few for"
    )
    wide = LinearRegression().fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="more rows than columns"):
        wide.predict_interval(X)


# ----- any regressor


def test_jackknife_plus_by_hand() -> None:
    X, y = numbers(30, 1)
    model = ConformalRegressor(TheirLinearRegression(), method="cross", cv=LeaveOneOut())
    ends = model.fit(X, y).predict_interval(X[:5], 0.8)
    reached = []
    for i in range(30):
        others = np.arange(30) != i
        one = TheirLinearRegression().fit(X[others], y[others])
        reached.append(one.predict(X[:5]) + y[i] - one.predict(X[i : i + 1]))
    reached = np.sort(np.array(reached), axis=0)
    # Of 31 places a tenth at each end: the third from below and from above.
    np.testing.assert_allclose(ends, np.column_stack([reached[2], reached[-3]]))


def test_no_group_falls_short() -> None:
    random = np.random.default_rng(0)

    def draw(n: int) -> tuple[Any, Any]:
        kind = random.choice(["calm", "wild"], n, p=[0.8, 0.2])
        x = random.normal(size=n)
        noise = np.where(kind == "calm", 0.2, 3.0) * random.normal(size=n)
        return pd.DataFrame({"x": x, "kind": kind}), x + noise

    (X, y), (X_new, y_new) = draw(2000), draw(4000)
    wild = (X_new["kind"] == "wild").to_numpy()
    forest = RandomForestRegressor(20, max_depth=2, max_features=1, random_state=0)
    for method in ("oob", "cross", "split"):
        model = ConformalRegressor(forest, method=method, groups="kind", random_state=0)
        held = inside(model.fit(X, y).predict_interval(X_new), y_new)
        assert 0.86 < held[wild].mean() < 0.95
        assert 0.86 < held[~wild].mean() < 0.95
    unknown = X_new.assign(kind="new")
    assert np.isfinite(model.predict_interval(unknown)).all()


def test_sets_within_groups() -> None:
    X, y = classes(1500, 0)
    group = np.random.default_rng(0).integers(0, 2, 1500)
    y = np.where(group == 1, np.random.default_rng(1).integers(0, 3, 1500), y)
    table = np.column_stack([X, group])
    model = ConformalClassifier(GaussianNB(), groups=3, random_state=0)
    sets = model.fit(table[:1000], y[:1000]).predict_set(table[1000:])
    held = sets[np.arange(500), y[1000:]]
    assert all(held[group[1000:] == g].mean() > 0.84 for g in (0, 1))


def test_groups_that_are_easily_told_need_one_class() -> None:
    random = np.random.default_rng(0)
    group = random.integers(0, 2, 3000)
    x = random.normal(size=3000)
    noise = np.where(group == 1, 2.0, 0.02) * random.normal(size=3000)
    y = (x + noise > 0).astype(int)
    table = np.column_stack([x, group])
    # Timid about all rows: those of the easy group look as if they needed both classes.
    model = ConformalClassifier(LogisticRegression(C=1e-3), groups=1, random_state=0)
    sets = model.fit(table[:2000], y[:2000]).predict_set(table[2000:])
    easy = group[2000:] == 0
    assert (sets[easy].sum(axis=1) == 1).all()  # the limit of all rows would name more
    assert sets[~easy].sum(axis=1).mean() > 1.3


def test_random_parts_are_the_same_with_a_seed() -> None:
    X, y = classes(300, 0)
    model = ConformalClassifier(GaussianNB(), randomize=True, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_set(X), model.predict_set(X))


def test_weights_count() -> None:
    X, y = numbers(400, 0)
    noisy = np.arange(400) < 200
    y = np.where(noisy, y + 20 * np.random.default_rng(0).normal(size=400), y)
    model = ConformalRegressor(TheirLinearRegression(), method="split", random_state=0)
    calm = model.fit(X, y, sample_weight=np.where(noisy, 1e-3, 1.0)).predict_interval(X)
    all_alike = model.fit(X, y).predict_interval(X)
    assert np.ptp(calm, axis=1).mean() < 0.5 * np.ptp(all_alike, axis=1).mean()


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(300, min_samples_leaf=20, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(min_samples_leaf=20), 300, random_state=0),
        GradientBoostingRegressor(random_state=0),
        LinearRegression(),
        RandomForestClassifier(300, min_samples_leaf=20, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(min_samples_leaf=20), 300, random_state=0),
        GradientBoostingClassifier(random_state=0),
    ],
)
def test_rows_of_weight_four_count_as_four(model: Any) -> None:
    """Coverage is that of rows drawn as often as they weigh: here the calm half, mostly."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(3000, 2))
    heavy = random.uniform(size=3000) < 0.5
    noise = np.where(heavy, 0.1, 3.0) * random.normal(size=3000)
    y = X[:, 0] + noise
    classify = hasattr(model, "predict_set")
    if classify:
        y = (y > 0).astype(int)
    weights = np.where(heavy, 4.0, 0.5)
    model = clone(model).fit(X[:1500], y[:1500], sample_weight=weights[:1500])
    if classify:
        held = model.predict_set(X[1500:], 0.95)[np.arange(1500), y[1500:]]
    else:
        held = inside(model.predict_interval(X[1500:], 0.95), y[1500:])
    assert abs(np.average(held, weights=weights[1500:]) - 0.95) < 0.02
    assert held.mean() < 0.9


def test_rows_without_weight_say_nothing() -> None:
    X, y = numbers(400, 0)
    kept = np.arange(400) < 200
    y[~kept] += 1000
    for model in (RandomForestRegressor(50, random_state=0), BaggingRegressor(random_state=0)):
        model.fit(X, y, sample_weight=kept.astype(float))
        assert np.ptp(model.predict_interval(X), axis=1).max() < 100
        assert (model._held_out_rows().rows < 200).all()
    assert largest_score(np.ones(3), 0.5, np.zeros(3)) == math.inf


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_gaps_and_categories(frame: Any) -> None:
    X, y = numbers(300, 0)
    columns: dict[str, Any] = {f"c{i}": X[:, i] for i in range(3)}
    columns["c0"] = np.where(np.arange(300) % 7 == 0, np.nan, columns["c0"])
    columns["city"] = np.where(np.arange(300) % 2 == 0, "Bath", "York")
    table = frame(columns)
    for model in (
        GradientBoostingRegressor(random_state=0),
        ConformalRegressor(RandomForestRegressor(20, random_state=0), groups="city"),
        ConformalRegressor(DecisionTreeRegressor(max_depth=3), method="cross", random_state=0),
    ):
        assert inside(model.fit(table, y).predict_interval(table), y).mean() > 0.8


# ----- what cannot be


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, "0.9", None, True, float("nan")])
def test_coverage_must_lie_between_zero_and_one(coverage: Any) -> None:
    X, y = numbers(60, 0)
    for model in (LinearRegression(), GradientBoostingRegressor(), ConformalRegressor()):
        with pytest.raises(ValueError, match="coverage: expected a number between 0 and 1"):
            model.fit(X, y).predict_interval(X, coverage)
    labels = (y > 0).astype(int)
    with pytest.raises(ValueError, match="coverage: expected"):
        RandomForestClassifier(5).fit(X, labels).predict_set(X, coverage)


def test_what_was_not_held_out_is_said() -> None:
    X, y = numbers(100, 0)
    fixed = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping=True"):
        fixed.predict_interval(X)
    labels = (y > 0).astype(int)
    continued = RandomForestClassifier(5, warm_start=True).fit(X, labels)
    with pytest.raises(ValueError, match="ConformalClassifier"):
        continued.predict_set(X)
    with pytest.raises(ValueError, match="holds out no rows by itself"):
        ConformalRegressor(DecisionTreeRegressor(), method="oob").fit(X, y)
    with pytest.raises(ValueError, match="has no quantiles"):
        ConformalRegressor(DecisionTreeRegressor(), method="quantile").fit(X, y)
    with pytest.raises(ValueError, match="two ascending levels"):
        ConformalRegressor(LADRegressor(), method="quantile", quantiles=(0.9, 0.1)).fit(X, y)
    with pytest.raises(ValueError, match="method: expected one of"):
        LinearRegression().fit(X, y).predict_interval(X, method="magic")
    with pytest.raises(ValueError, match="no column 'town'"):
        ConformalRegressor(groups="town").fit(pd.DataFrame(X, columns=list("abc")), y)


def test_rows_that_start_scores_or_an_earlier_fit_saw_are_not_held_out() -> None:
    X, y = numbers(100, 0)
    model = GradientBoostingRegressor(early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match="without held-out rows"):
        model.fit(X, y, init_score=np.zeros(100)).predict_interval(X)
    watched = numbers(80, 1)
    model.fit(X, y, eval_set=watched)
    assert "80 rows of eval_set" in model.interval_method_
    assert inside(model.predict_interval(watched[0]), watched[1]).mean() >= 0.9


def test_counts_have_no_negative_ends() -> None:
    X, _ = numbers(300, 0)
    y = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
    model = GradientBoostingRegressor(loss="poisson", random_state=0).fit(X, y)
    assert (model.predict_interval(X)[:, 0] >= 0).all()


def test_one_class_is_the_set() -> None:
    X, _ = numbers(60, 0)
    for model in (RandomForestClassifier(5), GradientBoostingClassifier(early_stopping=True)):
        assert model.fit(X, np.zeros(60)).predict_set(X).all()


def test_several_outputs() -> None:
    X, y = numbers(200, 0)
    both = np.column_stack([y, 10 * y])
    for model in (
        BaggingRegressor(random_state=0),
        KNeighborsRegressor(),
        LinearRegression(),
        GradientBoostingRegressor(random_state=0),
    ):
        ends = model.fit(X, both).predict_interval(X)
        assert ends.shape == (200, 2, 2)
        assert np.ptp(ends[:, 1], axis=1).mean() > 5 * np.ptp(ends[:, 0], axis=1).mean()


# ----- threads, files, fits again


def test_threads_change_nothing() -> None:
    X, y = numbers(300, 0)
    for kind in (GradientBoostingRegressor, RandomForestRegressor, BaggingRegressor):
        one, two = (
            kind(random_state=0, n_jobs=n).fit(X, y).predict_interval(X[:50]) for n in (1, 2)
        )
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "model",
    [*REGRESSORS[3:12], *REGRESSORS[13:15], HistGradientBoostingRegressor(early_stopping=True)],
    ids=lambda m: f"{type(m).__name__}-{m!r}"[:60],
)
def test_files_keep_intervals(model: Any, tmp_path: Path) -> None:
    X, y = numbers(120, 0)
    fitted = clone(model).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
    assert again.interval_method_ == fitted.interval_method_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_files_keep_sets(model: Any, tmp_path: Path) -> None:
    X, y = classes(120, 0)
    fitted = clone(model).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_set(X), fitted.predict_set(X))


def test_a_model_from_before_says_what_it_lacks() -> None:
    X, y = numbers(100, 0)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    del model._held_out
    with pytest.raises(ValueError, match="ConformalRegressor"):
        model.predict_interval(X)
    near = KNeighborsRegressor().fit(X, y)
    near.predict_interval(X)
    near.fit(X[:50], y[:50])
    assert len(near._held_out_rows()) == 50


def test_one_weight_for_all_rows() -> None:
    X, y = numbers(300, 0)
    model = GradientBoostingRegressor(early_stopping=True, random_state=0)
    ends = [model.fit(X, y, w).predict_interval(X) for w in (2.0, np.full(300, 2.0))]
    np.testing.assert_array_equal(*ends)
