"""Comparisons under a time limit, and interrupted by Ctrl-C."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import spinney
from spinney.comparison import families
from spinney.comparison.deadline import TimeUp, deadline
from spinney.comparison.families import MAIN_MODEL, Family
from spinney.comparison.measure import find_measure
from spinney.comparison.outcomes import EndedBy, Failure, Stage
from spinney.comparison.sample import affordable_rows
from spinney.comparison.scheduler import FoldResult, Runner, Scheduler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=90) > 0, "yes", "no")


class FakeTime:
    """A clock that moves only when a model spends time, with limits that follow it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends: list[float] = []

    def clock(self) -> float:
        return self.now

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        self.ends.append(math.inf if seconds is None else self.now + seconds)
        try:
            yield
        finally:
            self.ends.pop()

    def advance(self, seconds: float) -> None:
        """Move the clock; raise TimeUp when it reaches the first limit."""
        end = min(self.ends, default=math.inf)
        self.now = min(self.now + seconds, end)
        if self.now == end:
            raise TimeUp


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """Replace the clock and the deadline of `compare`."""
    fake = FakeTime()
    monkeypatch.setattr("spinney.comparison.compare.perf_counter", fake.clock)
    monkeypatch.setattr("spinney.comparison.compare.deadline", fake.limit)
    return fake


class Slow:
    """Predict "yes" after a fit that takes some seconds of fake time; count the fits."""

    fits = 0

    def __init__(
        self, seconds: Callable[[int], float] = lambda n: 0.0, time: FakeTime | None = None
    ) -> None:
        self.seconds, self.time = seconds, time

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any) -> Any:
        type(self).fits += 1
        if self.time is not None:
            self.time.advance(self.seconds(len(y)))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), "yes")


def use_families(
    monkeypatch: pytest.MonkeyPatch, time: FakeTime, **seconds: Callable[[int], float]
) -> None:
    """Keep the baseline; add models with the given fit times, by number of rows."""

    def family(name: str, takes: Callable[[int], float]) -> Family:
        return Family(name, name, lambda *arguments: Slow(takes, time))

    new_families = tuple(family(name, takes) for name, takes in seconds.items())
    monkeypatch.setattr(families, "FAMILIES", (families.FAMILIES[0], *new_families))
    Slow.fits = 0


def run_forever() -> None:
    while True:
        pass


def test_deadline_raises_and_resets_the_timer() -> None:
    with deadline(None):
        pass
    with pytest.raises(TimeUp), deadline(0.05):
        run_forever()
    with deadline(10):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_deadline_interrupts_a_fit() -> None:
    from spinney.ensemble import RandomForestClassifier

    with pytest.raises(TimeUp), deadline(0.2):
        RandomForestClassifier(n_estimators=1_000_000).fit(X, Y)


def test_slow_models_are_skipped(monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime) -> None:
    use_families(monkeypatch, fake_time, slow=lambda n: 30.0, quick=lambda n: 0.0)
    result = spinney.compare(X, Y, cv=5, time_limit=1.0)
    assert fake_time.now <= 1.0
    assert result["slow"].estimate is None
    assert "of the time limit" in (result["slow"].skipped or "")
    assert result["quick"].estimate is not None
    assert len(result["quick"].estimate.folds) == 5
    assert "slow skipped: a fold takes more than" in str(result)
    assert result.best is not None


def test_slow_models_are_skipped_after_the_first_fold(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    use_families(monkeypatch, fake_time, slow=lambda n: 0.4, **{MAIN_MODEL: lambda n: 0.1})
    result = spinney.compare(X, Y, cv=5, time_limit=1.6)
    assert "a fold takes 0.4" in (result["slow"].skipped or "")
    assert (result["slow"].skipped or "").endswith(" s, too much for the time limit")
    assert result[MAIN_MODEL].estimate is not None
    assert result["baseline"].estimate is not None
    assert result.n_folds == 5


def test_slowest_models_are_skipped_first() -> None:
    def runner_of(seconds: float) -> Runner:
        family = Family(MAIN_MODEL if seconds == 10 else f"takes {seconds}", "", Slow)
        return Runner(family, Slow, [FoldResult(seconds, seconds, 0.0, None, Y, None)])

    runners = [runner_of(seconds) for seconds in (*[0.01] * 16, 0.19, 0.3, 4.0, 10.0)]
    measure = find_measure("classification", "error")
    folds = [(np.arange(90), np.arange(90))] * 10
    scheduler = Scheduler(runners, X, Y, None, folds, measure, 100.0, lambda step: None)
    scheduler._skip_slow_models(11.0)
    assert [r.family.name for r in runners if r.skipped] == ["takes 0.3", "takes 4.0"]
    for runner in runners:
        runner.skipped = None
    scheduler._skip_slow_models(9.0)  # no second fold fits, even without slow models
    assert not any(runner.skipped for runner in runners)


def test_models_before_the_main_model_get_a_second_chance(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    # Models before the main model share a sixth of the limit, at least half a second.
    use_families(monkeypatch, fake_time, first=lambda n: 0.7, **{MAIN_MODEL: lambda n: 0.0})
    result = spinney.compare(X, Y, cv=2, time_limit=3.0)
    assert result["first"].skipped is None
    assert Slow.fits >= 4  # main model: 2; first: 1 interrupted, 2 complete
    use_families(monkeypatch, fake_time, first=lambda n: 30.0, **{MAIN_MODEL: lambda n: 0.0})
    result = spinney.compare(X, Y, cv=2, time_limit=3.0)
    assert "a fold takes more than 1 s" in (result["first"].skipped or "")


def test_short_time_limit_gives_fewer_folds(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    use_families(monkeypatch, fake_time, **{MAIN_MODEL: lambda n: 0.2})
    result = spinney.compare(X, Y, cv=10, time_limit=0.9)
    assert result.n_folds == 4
    assert result.n_folds_requested == 10
    assert result.ended_by is EndedBy.TIME_LIMIT
    for r in result.results:
        assert r.estimate is not None
        assert len(r.estimate.folds) == result.n_folds
    assert f"ended by the time limit after {result.n_folds} of 10 folds" in result.notes
    assert f"{result.n_folds} of 10 stratified folds" in str(result)


def test_rows_are_sampled_if_the_main_model_is_too_slow(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    use_families(monkeypatch, fake_time, **{MAIN_MODEL: lambda n: 30.0 if n > 2000 else 0.0})
    X_tall, y_tall = np.tile(X, (50, 1)), np.tile(Y, 50)
    result = spinney.compare(X_tall, y_tall, cv=3, time_limit=2.0)
    assert result.n_rows == 1125
    assert result.notes[0].startswith("1,125 of 4,500 rows were drawn")
    assert result[MAIN_MODEL].estimate is not None


def test_main_model_is_not_skipped_if_rows_cannot_be_sampled(
    monkeypatch: pytest.MonkeyPatch,
    fake_time: FakeTime,
) -> None:
    # A fit of the main model takes more than a third of the limit.
    use_families(monkeypatch, fake_time, **{MAIN_MODEL: lambda n: 1.0})
    result = spinney.compare(X, Y, cv=5, time_limit=2.0)
    assert result[MAIN_MODEL].skipped is None
    assert result[MAIN_MODEL].estimate is not None


def test_small_tables_are_not_sampled(monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime) -> None:
    use_families(monkeypatch, fake_time, **{MAIN_MODEL: lambda n: 30.0})
    result = spinney.compare(X, Y, cv=3, time_limit=1.0)
    assert result.n_rows == 90
    assert result[MAIN_MODEL].skipped
    assert result["baseline"].estimate is not None


def test_affordable_rows_decrease_with_columns_and_outputs() -> None:
    assert affordable_rows(100, 10, 1) > affordable_rows(100, 100, 1) > affordable_rows(100, 100, 9)
    assert affordable_rows(1e-9, 10, 1) == 1_000


def test_max_rows_and_max_folds_limit_the_run() -> None:
    result = spinney.compare(X, Y, cv=6, models=["decision_tree"], max_rows=60, max_folds=2)
    assert (result.n_rows, result.n_folds, result.n_folds_requested) == (60, 2, 6)
    invalid_arguments: list[dict[str, Any]] = [{"max_rows": 0}, {"max_folds": 0}, {"time_limit": 0}]
    invalid_arguments += [
        {"max_rows": 1},
        {"max_rows": 2.5},
        {"time_limit": "1"},
        {"cv": 2.5},
        {"cv": "5"},
    ]
    for arguments in invalid_arguments:
        with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
            spinney.compare(X, Y, **arguments)


class Interrupting(Slow):
    """Raise KeyboardInterrupt at the third fit."""

    def fit(self, X: Any, y: Any) -> Any:
        type(self).fits += 1
        if type(self).fits == 3:
            raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("n_models", [1, 3])
def test_ctrl_c_keeps_complete_folds(monkeypatch: pytest.MonkeyPatch, n_models: int) -> None:
    new_families = tuple(
        Family(f"model_{n}", "", lambda *arguments: Interrupting(), effort=n)
        for n in range(n_models)
    )
    monkeypatch.setattr(families, "FAMILIES", (families.FAMILIES[0], *new_families))
    Interrupting.fits = 0
    result = spinney.compare(X, Y, cv=5)
    # One model: in its third fold. Three models: the last model, in the first fold.
    n_folds = 2 if n_models == 1 else 1
    assert result.n_folds == n_folds
    assert f"ended by Ctrl-C after {n_folds} of 5 folds" in result.notes
    assert result.ended_by is EndedBy.INTERRUPT
    assert "ended_by" not in result.to_dict()
    done = [r for r in result.results if r.estimate is not None]
    assert {len(r.estimate.folds) for r in done if r.estimate} == {n_folds}
    if n_models == 3:
        assert result["model_2"].skipped == "not reached before Ctrl-C"
        assert len(done) == 3


def test_ctrl_c_before_the_first_fold_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family("model", "", lambda *arguments: Interrupting())
    monkeypatch.setattr(families, "FAMILIES", (family,))
    Interrupting.fits = 2
    with pytest.raises(KeyboardInterrupt):
        spinney.compare(X, Y, cv=5)


def test_failed_measure_is_not_a_failed_fit() -> None:
    def failing_scorer(model: Any, X: Any, y: Any) -> float:
        raise ZeroDivisionError("no rows")

    result = spinney.compare(X, Y, cv=3, scoring=failing_scorer, models=["baseline"])
    failure = result["baseline"].failure
    assert failure == "failing_scorer failed: ZeroDivisionError: no rows"
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.error_type) == (Stage.MEASURE, "ZeroDivisionError")


def test_r2_is_shown_once() -> None:
    result = spinney.compare(X, X[:, 0], cv=3, scoring="r2", models=["baseline"])
    assert str(result).count("R²") == 1


def test_measures_of_probabilities_skip_models_without_them() -> None:
    result = spinney.compare(
        X, Y, cv=3, scoring="roc_auc", models=["logistic_regression", "perceptron", "baseline"]
    )
    assert result.greater_is_better
    assert result.results[0].name == "logistic_regression"
    assert result["baseline"].estimate is not None
    assert result["baseline"].estimate.mean == 0.5
    assert "has no predict_proba, which roc_auc needs" in (result["perceptron"].skipped or "")


def test_groups_and_time_define_the_folds() -> None:
    groups = np.repeat(np.arange(9), 10)
    result = spinney.compare(X, Y, cv=3, models=["decision_tree"], groups=groups)
    assert "3 folds of whole groups" in str(result)
    result = spinney.compare(X, Y, cv=3, models=["decision_tree"], time=np.arange(90))
    predictions = result.predictions()
    assert [value is None for value in predictions[:23]] == [True] * 22 + [False]
    with pytest.raises(ValueError, match="X has 90 rows, groups has 5"):
        spinney.compare(X, Y, groups=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="time is missing in 1 of 90 rows"):
        spinney.compare(X, Y, time=[None, *range(89)])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_groups_and_time_are_named_by_column(library: str) -> None:
    library = pytest.importorskip(library)
    groups = [f"g{row % 9}" for row in range(90)]
    dates = np.arange("2024-01-01", "2024-03-31", dtype="datetime64[D]").astype("datetime64[us]")
    frame = library.DataFrame({"a": X[:, 0], "who": groups, "when": dates, "step": np.arange(90)})
    options: dict[str, Any] = {"models": ["baseline", "decision_tree"], "cv": 3}
    with_who, with_step = frame[["a", "who"]], frame[["a", "step"]]
    named = spinney.compare(with_who, Y, groups="who", **options)
    assert named.n_features == 1
    assert named.results[0].estimate == (
        spinney.compare(frame[["a"]], Y, groups=groups, **options).results[0].estimate
    )
    assert named.compared is not None
    assert named.compared.given == {"groups": "'who'"}
    assert spinney.compare(frame[["a", "when"]], Y, time="when", **options).n_features == 1
    assert spinney.compare(with_step, Y, time="step", **options).n_features == 2
    with pytest.raises(
        ValueError, match=r"no column 'whom' in X \(given as groups\); did you mean"
    ):
        spinney.compare(with_who, Y, groups="whom", **options)
    with pytest.raises(ValueError, match="time: expected values, got the name 'when'"):
        spinney.compare(X, Y, time="when", **options)


def test_slow_first_fold_does_not_end_the_run() -> None:
    """The remaining time is compared with all folds, not with the first one alone."""
    trials = [FoldResult(0.1, seconds, 0.0, None, Y, None) for seconds in (40.0, 1.0, 1.0)]
    runner = Runner(Family("slow at first", "", Slow), Slow, trials)
    folds = [(np.arange(90), np.arange(90))] * 10
    measure = find_measure("classification", "error")
    scheduler = Scheduler(
        [runner], X, Y, None, folds, measure, 72.0, lambda step: None, clock=lambda: 42.0
    )
    scheduler._start = 0.0
    assert scheduler._has_time_for(3)


def test_result_has_models_fits_and_predictions() -> None:
    result = spinney.compare(X, Y, cv=3, models=["decision_tree", "logistic_regression"])
    best = result.best
    assert best is not None
    assert result[best.name] is best
    model = result.fit()
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    assert not hasattr(result.make("decision_tree"), "tree_")
    predictions = result.predictions("decision_tree")
    estimate = result["decision_tree"].estimate
    assert estimate is not None
    assert np.mean(predictions != Y) == pytest.approx(estimate.mean)
    with pytest.raises(KeyError, match="expected one of: "):
        result.fit("forest")


# Undefined measures, custom splits, alarms of other code


def test_folds_with_one_class_are_skipped() -> None:
    """The last folds in time have one class only; their ROC curve is undefined."""
    y_late = np.where(np.arange(90) < 60, Y, "no")
    result = spinney.compare(
        X, y_late, cv=5, scoring="roc_auc", time=np.arange(90), models=["baseline", "random_forest"]
    )
    assert result.n_folds == 3
    assert "roc_auc is undefined on 2 of 5 folds" in result.notes
    assert result.results[0].name == "random_forest"
    y_never = np.where(np.arange(90) < 10, Y, "no")
    with pytest.raises(
        ValueError, match="roc_auc is undefined on every fold; does each test fold lack a class"
    ):
        spinney.compare(
            X, y_never, cv=5, scoring="roc_auc", time=np.arange(90), models=["baseline"]
        )


def test_one_fold_has_no_p_values() -> None:
    result = spinney.compare(X, Y, cv=3, max_folds=1, models=["baseline", "decision_tree"])
    assert [r.p_value for r in result.results] == [None, None]
    assert not any(r.tied for r in result.results)


def test_splits_as_masks_and_as_a_generator() -> None:
    rows = np.arange(90)
    by_index = [(rows[rows >= 45], rows[rows < 45]), (rows[rows < 45], rows[rows >= 45])]
    expected = spinney.compare(X, Y, cv=by_index, models=["decision_tree"]).results[0].estimate
    masks = [(np.isin(rows, train), np.isin(rows, test)) for train, test in by_index]
    for cv in (masks, iter(by_index)):
        result = spinney.compare(X, Y, cv=cv, models=["decision_tree"], time_limit=60)
        assert result.results[0].estimate == expected
    with pytest.raises(ValueError, match="max_rows cannot be given together with cv as splits"):
        spinney.compare(X, Y, cv=by_index, max_rows=50)
    with pytest.raises(ValueError, match="row numbers below 90, got 900"):
        spinney.compare(X, Y, cv=[(rows, rows * 10 + 10)])


def test_given_splits_are_never_sampled(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    use_families(monkeypatch, fake_time, **{MAIN_MODEL: lambda n: 30.0})
    X_tall, y_tall = np.tile(X, (20, 1)), np.tile(Y, 20)
    cv = [(np.arange(900), np.arange(900, 1800)), (np.arange(900, 1800), np.arange(900))]
    result = spinney.compare(X_tall, y_tall, cv=cv, time_limit=1.0)
    assert result.n_rows == 1800
    assert result[MAIN_MODEL].skipped


def test_alarms_of_other_code_ring_when_due() -> None:
    rang: list[int] = []
    fake = FakeTime()
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))

    def raise_alarms_after(*times: float) -> None:
        for seconds in times:
            fake.now += seconds
            signal.raise_signal(signal.SIGALRM)

    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        with deadline(3000, fake.clock):
            raise_alarms_after(1001.0)
        assert rang == [signal.SIGALRM]
        signal.setitimer(signal.ITIMER_REAL, 1000)
        with pytest.raises(TimeUp), deadline(3000, fake.clock):
            raise_alarms_after(1001.0, 2000.0)
        assert rang == [signal.SIGALRM] * 2
        signal.setitimer(signal.ITIMER_REAL, 5000)
        with pytest.raises(TimeUp), deadline(3000, fake.clock):
            raise_alarms_after(3001.0)
        assert rang == [signal.SIGALRM] * 2
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1999
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_infinite_time_limits() -> None:
    options = {"cv": 2, "models": ["baseline"]}
    for limit in (None, np.inf, 1e300):
        assert spinney.compare(X, Y, time_limit=limit, **options).best is not None
    with pytest.raises(ValueError, match="time_limit must be"):
        spinney.compare(X, Y, time_limit=np.nan, **options)


def test_compare_in_a_thread() -> None:
    with ThreadPoolExecutor() as pool:
        future = pool.submit(spinney.compare, X, Y, cv=2, models=["decision_tree"], time_limit=60)
        assert future.result().best is not None


# Kinds of tables and targets


def test_lists_with_text_and_invalid_frames() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [[label, float(number)] for number, label in enumerate(Y)]
    result = spinney.compare(rows, Y, cv=3, models=["decision_tree"])
    assert result["decision_tree"].estimate is not None
    assert result["decision_tree"].estimate.mean == 0
    duplicated = pd.DataFrame(X, columns=["a", "a"])
    with pytest.raises(ValueError, match="distinct column names, got 'a' twice"):
        spinney.compare(duplicated, Y)
    with pytest.raises(ValueError, match="collect"):
        spinney.compare(pl.DataFrame(X).lazy(), Y)


def test_unusual_targets() -> None:
    pd = pytest.importorskip("pandas")
    options = {"cv": 2, "models": ["baseline"]}
    declared = pd.Series(pd.Categorical(np.repeat(np.arange(30), 3)))
    assert spinney.compare(X, declared, **options).task == "classification"
    assert spinney.compare(X, declared.astype(int), **options).task == "regression"
    assert (
        spinney.compare(X, [2**70 * (1 + row) for row in range(90)], **options).task == "regression"
    )
    with pytest.raises(ValueError, match="infinite"):
        spinney.compare(X, np.where(np.arange(90) % 2, 0.0, np.inf), **options)


def test_overflowing_errors_raise() -> None:
    with (
        pytest.raises(
            ValueError, match=r"rmse is undefined on every fold; are targets too large\?"
        ),
        np.errstate(all="ignore"),
    ):
        spinney.compare(X, X[:, 0] * 1e200, models=["baseline"], cv=3)


def test_skipped_model_has_no_predictions(
    monkeypatch: pytest.MonkeyPatch, fake_time: FakeTime
) -> None:
    use_families(monkeypatch, fake_time, slow=lambda n: 30.0)
    result = spinney.compare(X, Y, cv=3, time_limit=1.0)
    with pytest.raises(ValueError, match="slow was not run on all folds"):
        result.predictions("slow")
