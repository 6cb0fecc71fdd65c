"""Ranking: paired tests, one-standard-error rule, folds and measures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.comparison.folds import make_folds
from spinney.comparison.measure import MEASURES, find_measure
from spinney.comparison.ranking import paired_difference, rank, simplest_within_one_error
from spinney.comparison.sample import draw_rows


def model_result(name: str, *folds: float) -> ModelResult:
    return ModelResult(name, name, Estimate.from_folds(list(folds)))


# Comparing models


def test_paired_difference_is_the_corrected_t_test() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=10), rng.normal(size=10)
    plain = stats.ttest_rel(a, b)
    difference, p = paired_difference(list(a), list(b), 0.0)
    assert p == pytest.approx(plain.pvalue)
    assert difference.mean == pytest.approx(np.mean(a - b))
    # Nadeau and Bengio: the variance of the mean is s² (1/k + test/train).
    difference, p = paired_difference(list(a), list(b), 1 / 9)
    se = math.sqrt(np.var(a - b, ddof=1) * (1 / 10 + 1 / 9))
    assert difference.se == pytest.approx(se)
    assert p == pytest.approx(2 * stats.t.sf(abs(np.mean(a - b)) / se, 9))


def test_paired_difference_of_constant_and_single_folds() -> None:
    assert paired_difference([1.0, 1.0], [1.0, 1.0], 0.1)[1] == 1.0
    assert paired_difference([2.0, 2.0], [1.0, 1.0], 0.1)[1] == 0.0
    assert paired_difference([2.0], [1.0], 0.1)[1] is None


def test_corrected_test_has_its_level() -> None:
    """Two equal models differ significantly in about 5 % of repetitions, not in 20 %."""
    random = np.random.default_rng(0)
    rejections = plain_rejections = 0
    for _ in range(200):
        x = random.normal(size=(60, 2))
        y = x.sum(axis=1) + random.normal(size=60)
        losses = np.empty((2, 10))
        rows = random.permutation(60)
        for fold in range(10):
            test = rows[fold * 6 : (fold + 1) * 6]
            train = np.setdiff1d(rows, test)
            for model in range(2):  # each uses one of two equally good columns
                design = np.c_[np.ones(54), x[train, model]]
                beta = np.linalg.lstsq(design, y[train], rcond=None)[0]
                predicted = beta[0] + beta[1] * x[test, model]
                losses[model, fold] = np.mean((y[test] - predicted) ** 2)
        rejections += paired_difference(list(losses[0]), list(losses[1]), 1 / 9)[1] < 0.05
        plain_rejections += paired_difference(list(losses[0]), list(losses[1]), 0.0)[1] < 0.05
    assert rejections / 200 <= 0.05
    assert plain_rejections > rejections


def test_rank_sorts_by_mean_and_puts_failures_last() -> None:
    a, b, c = (
        model_result("a", 0.3, 0.31, 0.29),
        model_result("b", 0.1, 0.12, 0.11),
        model_result("c", 0.5, 0.5, 0.5),
    )
    failed = ModelResult("d", "d", failure="no")
    ranked = rank([failed, a, b, c], 1.0, 0.5)
    assert [r.name for r in ranked] == ["b", "a", "c", "d"]
    assert ranked[0].behind is None
    assert ranked[0].p_value is None
    assert ranked[1].behind is not None
    assert ranked[1].behind.mean == pytest.approx(0.19)
    assert not ranked[1].tied
    greater = rank([a, b, c], -1.0, 0.5)
    assert [r.name for r in greater] == ["c", "a", "b"]
    assert greater[1].behind is not None
    assert greater[1].behind.mean == pytest.approx(0.2)
    assert rank([failed], 1.0, 0.5) == [failed]


def test_ties_keep_the_given_order() -> None:
    ranked = rank([model_result("simple", 0.2, 0.4), model_result("other", 0.4, 0.2)], 1.0, 1.0)
    assert [r.name for r in ranked] == ["simple", "other"]
    assert ranked[1].tied
    assert ranked[1].p_value == 1.0


def test_simplest_model_within_one_standard_error() -> None:
    complexity = {"line": 1, "tree": 2, "forest": 5, "boost": 5}
    best = model_result("boost", 0.10, 0.20)  # 0.15 ± 0.05
    ranked = rank(
        [model_result("line", 0.3, 0.3), model_result("tree", 0.19, 0.19), best], 1.0, 1.0
    )
    assert simplest_within_one_error(ranked, 1.0, complexity) == "tree"
    ranked = rank(
        [model_result("line", 0.21, 0.21), best, model_result("forest", 0.16, 0.16)], 1.0, 1.0
    )
    assert simplest_within_one_error(ranked, 1.0, complexity) is None
    one_fold = rank([model_result("line", 0.1), model_result("boost", 0.09)], 1.0, 1.0)
    assert simplest_within_one_error(one_fold, 1.0, complexity) is None
    assert simplest_within_one_error([], 1.0, complexity) is None


# Folds


def folds_of(y: Any, **options: Any) -> Any:
    arguments: dict[str, Any] = {"groups": None, "time": None, "random_state": 0, "notes": []}
    task = options.pop("task", "regression")
    return make_folds(np.asarray(y), task, options.pop("cv", 3), **{**arguments, **options})


@settings(max_examples=50, deadline=None)
@given(
    times=st.lists(st.integers(0, 12), min_size=8, max_size=60),
    n_folds=st.integers(2, 4),
)
def test_time_folds_never_use_the_future(times: list[int], n_folds: int) -> None:
    time = np.array(times)
    if len(np.unique(time)) <= n_folds:
        with pytest.raises(ValueError, match="different times; there are"):
            folds_of(np.zeros(len(time)), time=time, cv=n_folds)
        return
    folds = folds_of(np.zeros(len(time)), time=time, cv=n_folds)
    assert len(folds.splits) == n_folds
    for train, test in folds.splits:
        assert len(train)
        assert len(test)
        assert time[train].max() < time[test].min()
    tested = np.concatenate([test for _, test in folds.splits])
    assert len(np.unique(tested)) == len(tested)
    first = folds.splits[0][0]
    assert len(first) + len(tested) == len(time)


def test_time_folds_have_equal_sizes() -> None:
    folds = folds_of(np.zeros(110), time=np.arange(110)[::-1], cv=10)
    assert [len(test) for _, test in folds.splits] == [10] * 10
    assert [len(train) for train, _ in folds.splits] == list(range(10, 110, 10))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_stay_together(task: Any) -> None:
    groups = np.repeat(np.array(["a", "b", "c", "d", "e", "f"], dtype=object), 10)
    y = np.tile([0, 1], 30)
    folds = folds_of(y, groups=groups, task=task)
    for train, test in folds.splits:
        assert not set(groups[train]) & set(groups[test])
    assert "groups" in folds.kind.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": np.repeat([1, 2], 10)}, "cv=3 folds need as many groups; there are 2"),
        ({"groups": np.arange(20), "time": np.arange(20)}, "cannot be given together"),
        ({"groups": np.arange(20), "cv": [(np.arange(10), np.arange(10, 20))]}, "cv must be a num"),
        ({"cv": []}, "cv has no folds"),
    ],
)
def test_invalid_folds_raise(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        folds_of(np.zeros(20), **change)


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    share=st.floats(0.1, 1.0),
)
def test_sampled_rows_keep_the_class_proportions(counts: list[int], share: float) -> None:
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    n_drawn = max(1, int(share * len(y)))
    rows = draw_rows(y, n_drawn, 0)
    assert len(np.unique(rows)) == n_drawn
    assert (np.diff(rows) > 0).all()
    drawn = np.bincount(y[rows], minlength=len(counts))
    expected = np.array(counts) * n_drawn / len(y)
    assert np.abs(drawn - expected).max() <= 1 + 1e-9


# Measures


def test_measures_equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 60)
    predicted = rng.integers(0, 3, 60)
    probabilities = rng.dirichlet([1, 1, 1], 60)
    classes = np.arange(3)
    measures = {m.name: m for m in MEASURES}
    by_labels = {
        "error": 1 - metrics.accuracy_score(y, predicted),
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "f1": metrics.f1_score(y, predicted, average="macro"),
    }
    for name, value in by_labels.items():
        assert measures[name].calculate(y, predicted) == pytest.approx(value)
    by_probabilities = {
        "log_loss": metrics.log_loss(y, probabilities),
        "brier": np.mean(np.sum((probabilities - np.eye(3)[y]) ** 2, axis=1)),
        "roc_auc": metrics.roc_auc_score(y, probabilities, multi_class="ovr"),
        "average_precision": np.mean(
            [metrics.average_precision_score(y == c, probabilities[:, c]) for c in classes]
        ),
    }
    for name, value in by_probabilities.items():
        assert measures[name].calculate(y, probabilities, classes) == pytest.approx(value)
    numbers, predictions = rng.normal(size=60), rng.normal(size=60)
    by_numbers = {
        "rmse": metrics.root_mean_squared_error(numbers, predictions),
        "mae": metrics.mean_absolute_error(numbers, predictions),
        "median_absolute_error": metrics.median_absolute_error(numbers, predictions),
        "mape": metrics.mean_absolute_percentage_error(numbers, predictions),
        "r2": metrics.r2_score(numbers, predictions),
    }
    for name, value in by_numbers.items():
        assert measures[name].calculate(numbers, predictions) == pytest.approx(value)
    assert {m.name for m in MEASURES} == {*by_labels, *by_probabilities, *by_numbers}


def test_table_has_one_row_per_model() -> None:
    folds = Estimate.from_folds([0.25, 0.75])
    results = [
        ModelResult("good", "", folds, r2=folds, fit_seconds=2.0, predict_seconds=1.0, size=7),
        ModelResult("bad", "", failure="ValueError: no"),
    ]
    comparison = Comparison("regression", "rmse", False, 9, 2, 2, False, results, [])
    good, bad = comparison.table
    assert good["model"] == "good"
    assert (good["rmse"], good["se"], good["r2"], good["size"]) == (0.5, 0.25, 0.5, 7)
    assert list(bad) == list(good)
    assert (bad["failure"], np.isnan(bad["rmse"])) == ("ValueError: no", True)


def test_measures_are_found_by_name_and_task() -> None:
    assert find_measure("classification", None).name == "error"
    assert find_measure("regression", None).name == "rmse"
    with pytest.raises(ValueError, match="'neg_mean_squared_error' is for regression, and this is"):
        find_measure("classification", "neg_mean_squared_error")
    with pytest.raises(ValueError, match="'f1_macro' is for classification"):
        find_measure("regression", "f1_macro")
    with pytest.raises(
        ValueError, match="for two classes, and the target has 3; use 'recall_macro"
    ):
        find_measure("classification", "recall", np.array(["a", "b", "c"]))
    precision = find_measure("classification", "precision", np.array(["a", "b"]))
    truth, predicted = np.array(["a", "b", "b", "a"]), np.array(["b", "b", "a", "a"])
    assert precision.calculate(truth, predicted) == 0.5
    assert precision.note == "precision is that of class 'b'"
    assert find_measure("regression", "neg_mean_poisson_deviance").needs == "model"
    with pytest.raises(ValueError, match="'mae' is for regression, and this is classification"):
        find_measure("classification", "mae")
    with pytest.raises(ValueError, match=r"scoring has no 'roc_acu'; did you mean 'roc_auc'\?"):
        find_measure("classification", "roc_acu")
    with pytest.raises(ValueError, match="must be a name or a callable, got 3"):
        find_measure("classification", 3)  # type: ignore[arg-type]
