"""Prediction intervals and sets: their rules and their coverage."""

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
from sklearn.linear_model import LinearRegression as SklearnLinearRegression
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
    """Create a regression problem with uneven, skewed noise."""
    random = np.random.default_rng(seed)
    X = random.uniform(-2, 2, (n, 3))
    noise = random.exponential(size=n) - 1
    return X, X[:, 0] ** 2 + X[:, 1] + (0.2 + np.abs(X[:, 1])) * noise


def classes(n: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    probabilities = np.exp(X)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return X, (probabilities.cumsum(axis=1) > random.uniform(size=(n, 1))).argmax(axis=1)


def are_covered(ends: Any, y: Any) -> Any:
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
    ConformalRegressor(SklearnLinearRegression(), random_state=0),
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


def test_largest_score_has_the_exact_rank() -> None:
    scores = np.array([3.0, 1.0, 2.0, 9.0, 5.0, 4.0, 7.0, 8.0, 6.0])
    assert largest_score(scores, 0.9) == 9.0  # the ninth of nine scores
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
def test_largest_score_is_the_smallest_valid_limit(scores: list[float], coverage: float) -> None:
    # A new score is equally likely to have each of the n + 1 ranks among the others.
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
def test_equal_weights_equal_no_weights(scores: list[float], coverage: float) -> None:
    plain = largest_score(np.array(scores), coverage)
    assert largest_score(np.array(scores), coverage, np.full(len(scores), 2.5)) == plain


def test_coverage_over_all_orders_is_exact() -> None:
    # On average over calibration samples, rank k of n covers k / (n + 1) of the new scores.
    random = np.random.default_rng(0)
    n, draws = 19, 20_000
    scores = random.normal(size=(draws, n + 1))
    covered = [row[-1] <= largest_score(row[:-1], 0.8) for row in scores]
    assert abs(np.mean(covered) - 0.8) < 4 * math.sqrt(0.16 / draws)


def test_class_scores_and_sets_by_hand() -> None:
    probabilities = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_allclose(class_scores(probabilities, "lac"), [[0.8, -np.inf, 0.7]])
    np.testing.assert_allclose(class_scores(probabilities, "aps"), [[0.9, -np.inf, 0.65]])
    np.testing.assert_allclose(class_scores(probabilities, "aps", 1.0), [[1.0, -np.inf, 0.8]])
    np.testing.assert_allclose(class_scores(probabilities, "raps"), [[0.95, -np.inf, 0.65]])
    np.testing.assert_array_equal(sets_within(class_scores(probabilities, "aps"), 0.7), [[0, 1, 1]])
    np.testing.assert_array_equal(sets_within(class_scores(probabilities, "aps"), 0.0), [[0, 1, 0]])
    np.testing.assert_array_equal(
        sets_within(class_scores(probabilities, "aps"), -np.inf), [[0, 1, 0]]
    )


def test_narrowed_quantiles_do_not_cross() -> None:
    held_out = HeldOut("rows", np.zeros(50), np.tile([-5.0, 5.0], (50, 1)), quantiles=True)
    intervals = held_out.interval(np.array([[0.0, 1.0], [-9.0, 9.0]]), None, 0.9)
    np.testing.assert_allclose(intervals, [[0.5, 0.5], [-4.0, 4.0]])


# ----- coverage


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: f"{type(m).__name__}-{m!r}"[:60])
def test_intervals_have_the_requested_coverage(model: Any) -> None:
    covered, n_fits, n_rows = [], 4, 500
    for seed in range(n_fits):
        X, y = numbers(n_rows, seed)
        X_new, y_new = numbers(500, 1000 + seed)
        fitted = clone(model).fit(X, y)
        intervals = fitted.predict_interval(X_new, 0.8)
        assert intervals.shape == (500, 2)
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        covered.append(are_covered(intervals, y_new).mean())
    # New rows and calibration rows both vary; "split" calibrates on a quarter of the rows.
    n_calibration = n_rows / 4 if getattr(model, "method", "") in ("split", "quantile") else n_rows
    error = math.sqrt(0.16 / (500 * n_fits) + 0.16 / (n_calibration * n_fits))
    assert 0.8 - 4 * error < np.mean(covered) < 0.8 + 4 * error + 0.03
    assert fitted.interval_method_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_sets_have_the_requested_coverage(model: Any) -> None:
    covered, n_fits, n_rows = [], 4, 500
    for seed in range(n_fits):
        X, y = classes(n_rows, seed)
        X_new, y_new = classes(500, 1000 + seed)
        fitted = clone(model).fit(X, y)
        sets = fitted.predict_set(X_new, 0.8)
        assert sets.shape == (500, 3)
        assert sets.dtype == bool
        assert sets.any(axis=1).all()
        covered.append(sets[np.arange(500), y_new].mean())
    n_calibration = n_rows / 4 if getattr(model, "method", "") == "split" else n_rows
    error = math.sqrt(0.16 / (500 * n_fits) + 0.16 / (n_calibration * n_fits))
    assert 0.8 - 4 * error < np.mean(covered) < 0.8 + 4 * error + 0.04
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
        intervals = fitted.predict_interval(X[:20], coverage)
        if before is not None:
            assert (intervals[:, 0] <= before[:, 0] + 1e-12).all()
            assert (intervals[:, 1] >= before[:, 1] - 1e-12).all()
        before = intervals


# ----- linear models


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_normal_intervals_equal_those_of_statsmodels(fit_intercept: bool, weighted: bool) -> None:
    api = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(0)
    X, X_new = random.normal(3, 1, (60, 4)), random.normal(2, 2, (9, 4))
    y = X @ [1, -2, 0.5, 0] + random.normal(size=60)
    weights = random.integers(1, 4, 60) if weighted else np.ones(60)
    design = (lambda Z: api.add_constant(Z, has_constant="add")) if fit_intercept else np.asarray
    expected = api.WLS(y, design(X), weights=weights).fit().get_prediction(design(X_new))
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weights)
    np.testing.assert_allclose(
        model.predict_interval(X_new, 0.95, "normal"),
        expected.conf_int(obs=True, alpha=0.05),
        rtol=1e-9,
    )


@pytest.mark.parametrize("make", [LinearRegression, lambda: Ridge(3.0)])
def test_out_of_fold_errors_equal_refitting(make: Any) -> None:
    X, y = numbers(40, 3)
    left_out = make().fit(X, y)._errors.left_out.truth[:, 0]
    for i in range(40):
        others = np.arange(40) != i
        model = make().fit(X[others], y[others])
        error = y[i] - model.predict(X[i : i + 1])[0]
        spread = model._errors.spread(X[i : i + 1])[0, 0]
        assert left_out[i] == pytest.approx(error / spread, rel=1e-9)


def test_linearly_dependent_columns_keep_the_intervals() -> None:
    X, y = numbers(100, 0)
    dependent = np.column_stack([X, X[:, 0], np.ones(100)])
    np.testing.assert_allclose(
        LinearRegression().fit(dependent, y).predict_interval(dependent[:9], method="normal"),
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
        "; the t distribution if these are too few for the coverage"
    )
    wide = LinearRegression().fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="more rows than columns"):
        wide.predict_interval(X)


# ----- any regressor


def test_jackknife_plus_intervals_by_hand() -> None:
    X, y = numbers(30, 1)
    model = ConformalRegressor(SklearnLinearRegression(), method="cross", cv=LeaveOneOut())
    intervals = model.fit(X, y).predict_interval(X[:5], 0.8)
    limits = []
    for i in range(30):
        others = np.arange(30) != i
        refitted = SklearnLinearRegression().fit(X[others], y[others])
        limits.append(refitted.predict(X[:5]) + y[i] - refitted.predict(X[i : i + 1]))
    limits = np.sort(np.array(limits), axis=0)
    # 31 ranks, a tenth at each end: the third from below and from above.
    np.testing.assert_allclose(intervals, np.column_stack([limits[2], limits[-3]]))


def test_every_group_reaches_the_coverage() -> None:
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
        covered = are_covered(model.fit(X, y).predict_interval(X_new), y_new)
        assert 0.86 < covered[wild].mean() < 0.95
        assert 0.86 < covered[~wild].mean() < 0.95
    unseen = X_new.assign(kind="new")
    assert np.isfinite(model.predict_interval(unseen)).all()


def test_sets_of_groups_reach_the_coverage() -> None:
    X, y = classes(1500, 0)
    group = np.random.default_rng(0).integers(0, 2, 1500)
    y = np.where(group == 1, np.random.default_rng(1).integers(0, 3, 1500), y)
    table = np.column_stack([X, group])
    model = ConformalClassifier(GaussianNB(), groups=3, random_state=0)
    sets = model.fit(table[:1000], y[:1000]).predict_set(table[1000:])
    covered = sets[np.arange(500), y[1000:]]
    assert all(covered[group[1000:] == g].mean() > 0.84 for g in (0, 1))


def test_sets_of_easy_groups_have_one_class() -> None:
    random = np.random.default_rng(0)
    group = random.integers(0, 2, 3000)
    x = random.normal(size=3000)
    noise = np.where(group == 1, 2.0, 0.02) * random.normal(size=3000)
    y = (x + noise > 0).astype(int)
    table = np.column_stack([x, group])
    # Strong regularization: with a common limit, easy rows would need both classes.
    model = ConformalClassifier(LogisticRegression(C=1e-3), groups=1, random_state=0)
    sets = model.fit(table[:2000], y[:2000]).predict_set(table[2000:])
    easy = group[2000:] == 0
    assert (sets[easy].sum(axis=1) == 1).all()  # a common limit would give more classes
    assert sets[~easy].sum(axis=1).mean() > 1.3


def test_randomized_sets_repeat_with_a_seed() -> None:
    X, y = classes(300, 0)
    model = ConformalClassifier(GaussianNB(), randomize=True, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_set(X), model.predict_set(X))


def test_intervals_use_sample_weights() -> None:
    X, y = numbers(400, 0)
    noisy = np.arange(400) < 200
    y = np.where(noisy, y + 20 * np.random.default_rng(0).normal(size=400), y)
    model = ConformalRegressor(SklearnLinearRegression(), method="split", random_state=0)
    weighted = model.fit(X, y, sample_weight=np.where(noisy, 1e-3, 1.0)).predict_interval(X)
    unweighted = model.fit(X, y).predict_interval(X)
    assert np.ptp(weighted, axis=1).mean() < 0.5 * np.ptp(unweighted, axis=1).mean()


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
def test_coverage_counts_rows_by_weight(model: Any) -> None:
    """Coverage is weighted: here mostly by the rows with little noise."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(3000, 2))
    heavy = random.uniform(size=3000) < 0.5
    noise = np.where(heavy, 0.1, 3.0) * random.normal(size=3000)
    y = X[:, 0] + noise
    is_classifier = hasattr(model, "predict_set")
    if is_classifier:
        y = (y > 0).astype(int)
    weights = np.where(heavy, 4.0, 0.5)
    model = clone(model).fit(X[:1500], y[:1500], sample_weight=weights[:1500])
    if is_classifier:
        covered = model.predict_set(X[1500:], 0.95)[np.arange(1500), y[1500:]]
    else:
        covered = are_covered(model.predict_interval(X[1500:], 0.95), y[1500:])
    assert abs(np.average(covered, weights=weights[1500:]) - 0.95) < 0.02
    assert covered.mean() < 0.9


def test_rows_without_weight_do_not_calibrate() -> None:
    X, y = numbers(400, 0)
    kept = np.arange(400) < 200
    y[~kept] += 1000
    for model in (RandomForestRegressor(50, random_state=0), BaggingRegressor(random_state=0)):
        model.fit(X, y, sample_weight=kept.astype(float))
        assert np.ptp(model.predict_interval(X), axis=1).max() < 100
        assert (model._held_out_rows().rows < 200).all()
    assert largest_score(np.ones(3), 0.5, np.zeros(3)) == math.inf


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_missing_values_and_categories(frame: Any) -> None:
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
        assert are_covered(model.fit(table, y).predict_interval(table), y).mean() > 0.8


# ----- errors


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, "0.9", None, True, float("nan")])
def test_coverage_must_lie_between_zero_and_one(coverage: Any) -> None:
    X, y = numbers(60, 0)
    for model in (LinearRegression(), GradientBoostingRegressor(), ConformalRegressor()):
        with pytest.raises(ValueError, match="coverage: expected a number between 0 and 1"):
            model.fit(X, y).predict_interval(X, coverage)
    y_binary = (y > 0).astype(int)
    with pytest.raises(ValueError, match="coverage: expected"):
        RandomForestClassifier(5).fit(X, y_binary).predict_set(X, coverage)


def test_missing_held_out_rows_and_invalid_options_raise() -> None:
    X, y = numbers(100, 0)
    without_stopping = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping=True"):
        without_stopping.predict_interval(X)
    y_binary = (y > 0).astype(int)
    continued = RandomForestClassifier(5, warm_start=True).fit(X, y_binary)
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


def test_init_score_gives_no_held_out_rows_but_eval_set_does() -> None:
    X, y = numbers(100, 0)
    model = GradientBoostingRegressor(early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match="without held-out rows"):
        model.fit(X, y, init_score=np.zeros(100)).predict_interval(X)
    validation = numbers(80, 1)
    model.fit(X, y, eval_set=validation)
    assert "80 rows of eval_set" in model.interval_method_
    assert are_covered(model.predict_interval(validation[0]), validation[1]).mean() >= 0.9


def test_poisson_intervals_are_not_negative() -> None:
    X, _ = numbers(300, 0)
    y = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
    model = GradientBoostingRegressor(loss="poisson", random_state=0).fit(X, y)
    assert (model.predict_interval(X)[:, 0] >= 0).all()


def test_single_class_is_in_every_set() -> None:
    X, _ = numbers(60, 0)
    for model in (RandomForestClassifier(5), GradientBoostingClassifier(early_stopping=True)):
        assert model.fit(X, np.zeros(60)).predict_set(X).all()


def test_several_outputs_have_their_own_intervals() -> None:
    X, y = numbers(200, 0)
    two_targets = np.column_stack([y, 10 * y])
    for model in (
        BaggingRegressor(random_state=0),
        KNeighborsRegressor(),
        LinearRegression(),
        GradientBoostingRegressor(random_state=0),
    ):
        intervals = model.fit(X, two_targets).predict_interval(X)
        assert intervals.shape == (200, 2, 2)
        assert np.ptp(intervals[:, 1], axis=1).mean() > 5 * np.ptp(intervals[:, 0], axis=1).mean()


# ----- threads, files, refits


def test_number_of_threads_does_not_change_intervals() -> None:
    X, y = numbers(300, 0)
    for estimator in (GradientBoostingRegressor, RandomForestRegressor, BaggingRegressor):
        one_thread, two_threads = (
            estimator(random_state=0, n_jobs=n).fit(X, y).predict_interval(X[:50]) for n in (1, 2)
        )
        np.testing.assert_array_equal(one_thread, two_threads)


@pytest.mark.parametrize(
    "model",
    [*REGRESSORS[3:12], *REGRESSORS[13:15], HistGradientBoostingRegressor(early_stopping=True)],
    ids=lambda m: f"{type(m).__name__}-{m!r}"[:60],
)
def test_saved_models_keep_their_intervals(model: Any, tmp_path: Path) -> None:
    X, y = numbers(120, 0)
    fitted = clone(model).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    loaded = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_interval(X), fitted.predict_interval(X))
    assert loaded.interval_method_ == fitted.interval_method_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_saved_models_keep_their_sets(model: Any, tmp_path: Path) -> None:
    X, y = classes(120, 0)
    fitted = clone(model).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    loaded = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_set(X), fitted.predict_set(X))


def test_model_without_held_out_rows_raises() -> None:
    X, y = numbers(100, 0)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    del model._held_out
    with pytest.raises(ValueError, match="ConformalRegressor"):
        model.predict_interval(X)
    near = KNeighborsRegressor().fit(X, y)
    near.predict_interval(X)
    near.fit(X[:50], y[:50])
    assert len(near._held_out_rows()) == 50


def test_scalar_weight_equals_equal_weights() -> None:
    X, y = numbers(300, 0)
    model = GradientBoostingRegressor(early_stopping=True, random_state=0)
    intervals = [model.fit(X, y, w).predict_interval(X) for w in (2.0, np.full(300, 2.0))]
    np.testing.assert_array_equal(*intervals)
