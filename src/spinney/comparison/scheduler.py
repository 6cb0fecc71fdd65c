"""Schedule the fits of a cross-validation within a time limit.

All models run on a fold before any runs on the next. If the run ends early, at the time limit or
at Ctrl-C, the models can still be compared on the same folds.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.deadline import TimeUp, deadline
from spinney.comparison.families import MAIN_MODEL, Family
from spinney.comparison.measure import Measure, class_probabilities
from spinney.comparison.number_format import shown_time
from spinney.comparison.outcomes import EndedBy, Failure, Skip, SkipReason, Stage
from spinney.comparison.progress import Step
from spinney.comparison.sample import FEWEST_DRAWN
from spinney.data.rows import take_rows

__all__ = ["FoldResult", "MainModelTooSlow", "Runner", "Scheduler"]

Rows = NDArray[np.intp]

_WORTH_FOLDS = 5  # slow models are skipped if fewer folds than this fit into the limit
_LARGEST_SHARE = 8  # a first fold may take at least 1 / this of the time limit
_NEGLIGIBLE = 0.02  # share of the main model's time; quicker models always stay
_SLOW_PREDICTION = 2.0  # seconds; slower models predict no probabilities in addition
_LONGEST_FAILURE = 300  # characters; some errors quote all rows
_MOST_PROBABILITIES = 4_000_000  # rows × classes of a model; more are not kept
_LARGEST_KEPT = 16_000_000  # bytes; larger fitted models are not kept


class MainModelTooSlow(Exception):
    """The main model exceeds its time on the first fold; fewer rows are needed."""


class _NoProbabilities(Exception):
    """A model has no predict_proba, which the metric needs."""


class _NotMeasured(Exception):
    """A model was fitted, but the calculation of the metric failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True)
class FoldResult:
    """The score, times and predictions of a model on a fold.

    The first fold's result also has the size of the fitted model in bytes and, unless it is large,
    the model itself: the report uses it, and another fit may take long.
    """

    score: float
    fit_seconds: float
    predict_seconds: float
    size: int | None
    predicted: NDArray[Any]
    probabilities: NDArray[np.float32] | None
    model: Any = None

    @property
    def seconds(self) -> float:
        """Seconds of fit and prediction."""
        return self.fit_seconds + self.predict_seconds


@dataclass
class Runner:
    """A model, and its results so far."""

    family: Family
    make: Callable[[], Any]
    trials: list[FoldResult] = field(default_factory=list)
    failure: Failure | None = None
    skipped: Skip | None = None

    @property
    def runs(self) -> bool:
        """Whether it has neither failed nor been skipped."""
        return self.failure is None and self.skipped is None

    @property
    def fold_seconds(self) -> float:
        """Mean seconds of a fold, over the folds that have run."""
        return sum(trial.seconds for trial in self.trials) / max(len(self.trials), 1)


@dataclass
class Scheduler:
    """Runs models over folds within a time limit.

    Attributes
    ----------
    runners : list of Runner
        The models, in their order on the first fold; later the quickest comes first.
    X, y, classes : table, array, array or None
        The data; the sorted classes, or None for regression.
    folds : list of (train, test)
        Row numbers of each fold.
    measure : Measure
        The metric of the ranking.
    seconds : float or None
        The time limit; None means unlimited.
    on_step : callable
        Called with a `Step` before every fit and at the end.
    may_draw : bool
        Whether `MainModelTooSlow` may be raised, so that the caller samples fewer rows.
    ended_by : EndedBy or None
        The reason for an end before the last fold.
    clock : callable
        Returns the time in seconds, from any start; replaced in tests.
    limit : callable
        ``limit(seconds)`` is a context manager that raises `TimeUp` in its body after that time.
    """

    runners: list[Runner]
    X: Any
    y: NDArray[Any]
    classes: NDArray[Any] | None
    folds: list[tuple[Rows, Rows]]
    measure: Measure
    seconds: float | None
    on_step: Callable[[Step], None]
    may_draw: bool = True
    ended_by: EndedBy | None = None
    clock: Callable[[], float] = perf_counter
    limit: Callable[[float | None], AbstractContextManager[None]] = deadline

    def run(self) -> int:
        """Run all folds; return the number of folds that all remaining models completed."""
        self._start = self.clock()
        number = 0
        try:
            for number in range(len(self.folds)):
                if number > 0 and not self._has_time_for(number):
                    self.ended_by = EndedBy.TIME_LIMIT
                    break
                self._run_fold(number)
        except KeyboardInterrupt:
            self.ended_by = EndedBy.INTERRUPT
        except TimeUp:
            self.ended_by = EndedBy.TIME_LIMIT
        total = len(self.folds) * len(self.runners)
        self.on_step(Step("", total, total, 0.0))
        if self.ended_by and number == 0:
            for runner in self.runners:
                if runner.runs and not runner.trials:
                    text = f"not reached before {self.ended_by.value}"
                    runner.skipped = Skip(SkipReason.NOT_REACHED, text)
        return min((len(r.trials) for r in self.runners if r.runs), default=0)

    def _run_fold(self, number: int) -> None:
        train, test = self.folds[number]
        X_train, X_test = take_rows(self.X, train), take_rows(self.X, test)
        shortened = []
        for index, runner in enumerate(r for r in list(self.runners) if r.runs):
            self._report_step(runner, number, index)
            allowed = self._allowed(runner, number)
            in_time = self._run_model(runner, number, allowed, X_train, X_test)
            if not in_time and allowed is not None and allowed < self._share():
                shortened.append(runner)
        for runner in shortened:
            # It had less than its share, because time was reserved for the main model.
            if (self._left() or 0.0) * 2 > (self.seconds or 0.0):
                runner.skipped = None
                self._report_step(runner, number, 0)
                self._run_model(runner, number, self._allowed(runner, number), X_train, X_test)

    def _run_model(
        self, runner: Runner, number: int, allowed: float | None, X_train: Any, X_test: Any
    ) -> bool:
        """Run a model on a fold; return False if it exceeded its time."""
        if allowed is not None and allowed <= 0:
            raise TimeUp
        try:
            with self.limit(allowed):
                result = self._run_once(runner, number, X_train, X_test)
            runner.trials.append(result)
        except TimeUp:
            if number > 0 or (self._left() or 0.0) < 0.05:
                raise
            if runner.family.name == MAIN_MODEL and self._could_draw():
                raise MainModelTooSlow from None
            text = f"a fold takes more than {shown_time(allowed or 0)} of the time limit"
            runner.skipped = Skip(SkipReason.TOO_SLOW, text)
            return False
        except _NoProbabilities:
            text = f"it has no predict_proba, which {self.measure.name} needs"
            runner.skipped = Skip(SkipReason.NO_PROBABILITIES, text)
        except _NotMeasured as error:
            runner.failure = error.failure
        except MemoryError:
            runner.failure = Failure(Stage.FIT, "MemoryError", "not enough memory")
        except Exception as error:  # one model's failure does not stop the others
            runner.failure = Failure(Stage.FIT, *_type_and_message(error))
        return True

    def _run_once(self, runner: Runner, number: int, X_train: Any, X_test: Any) -> FoldResult:
        train, test = self.folds[number]
        start = self.clock()
        model = runner.make().fit(X_train, self.y[train])
        fitted = self.clock()
        predicted = np.asarray(model.predict(X_test)).reshape(len(test))
        predict_seconds = self.clock() - fitted
        probabilities = None
        wanted = self.measure.needs == "probabilities"
        if self.classes is not None and hasattr(model, "predict_proba"):
            few = len(self.y) * len(self.classes) <= _MOST_PROBABILITIES
            if wanted or (few and predict_seconds < _SLOW_PREDICTION):
                probabilities = class_probabilities(model, X_test, self.classes)
        elif wanted:
            raise _NoProbabilities
        y_test = self.y[test]
        try:
            if self.measure.needs == "model":
                score = float(self.measure.calculate(model, X_test, y_test))
            elif wanted:
                score = self.measure.calculate(y_test, probabilities, self.classes)
            else:
                score = self.measure.calculate(y_test, predicted)
        except MemoryError:
            raise
        except Exception as error:
            failure = Failure(Stage.MEASURE, *_type_and_message(error), self.measure.name)
            raise _NotMeasured(failure) from error
        size = _size_of(model) if number == 0 else None
        return FoldResult(
            score,
            fitted - start,
            predict_seconds,
            size,
            predicted,
            None if probabilities is None else probabilities.astype(np.float32),
            model if size is not None and size <= _LARGEST_KEPT else None,
        )

    def _left(self) -> float | None:
        if self.seconds is None:
            return None
        return self.seconds - (self.clock() - self._start)

    def _allowed(self, runner: Runner, number: int) -> float | None:
        """Return the time limit of a model; on the first fold a share of the whole limit."""
        left = self._left()
        if left is None or self.seconds is None or number > 0:
            return left
        if runner.family.name == MAIN_MODEL:
            # If it takes longer, half of the time is left to start again with fewer rows.
            return min(left, self.seconds / 3) if self._could_draw() else 0.8 * left
        waiting = any(r.family.name == MAIN_MODEL and not r.trials and r.runs for r in self.runners)
        # Models that run before the main model share a sixth of the time.
        return min(self._share(), max(0.5, left - self.seconds * 5 / 6) if waiting else left)

    def _could_draw(self) -> bool:
        """Whether the caller may start again with fewer rows."""
        return self.may_draw and len(self.y) > FEWEST_DRAWN

    def _share(self) -> float:
        """Return the seconds that a model may take for its first fold."""
        if self.seconds is None:
            return math.inf
        return self.seconds / max(3, min(len(self.runners), _LARGEST_SHARE))

    def _fold_seconds(self) -> float:
        """Estimate the seconds of a fold from all folds so far; the first may have been slow."""
        return sum(r.fold_seconds for r in self.runners if r.runs)

    def _has_time_for(self, number: int) -> bool:
        left = self._left()
        if number == 1:
            self.runners.sort(key=lambda r: r.trials[0].seconds if r.trials else 0.0)
            if left is not None:
                self._skip_slow_models(left)
        return left is None or self._fold_seconds() <= left

    def _skip_slow_models(self, left: float) -> None:
        """Skip the slowest models until several folds fit into the remaining time.

        The main model and the best model so far stay. So does a model that takes at most its share
        of the time, or a small fraction of the main model's. If the other models leave no time
        for a second fold, no model is skipped.
        """
        folds = min(_WORTH_FOLDS, len(self.folds)) - 1
        share = left / folds / len(self.runners) if folds else left
        tried = [r for r in self.runners if r.trials]
        # Models are sorted by time, so ties go to the quickest.
        leader = min(tried, key=lambda r: self.measure.sign * r.trials[0].score, default=None)
        for runner in tried:
            if runner.family.name == MAIN_MODEL:
                share = max(share, _NEGLIGIBLE * runner.trials[0].seconds)
        slow = [
            r
            for r in tried
            if r.runs
            and r is not leader
            and r.family.name != MAIN_MODEL
            and r.trials[0].seconds > share
        ]
        if self._fold_seconds() - sum(r.trials[0].seconds for r in slow) > left:
            return
        for runner in reversed(slow):
            if self._fold_seconds() * folds <= left:
                return
            seconds = shown_time(runner.trials[0].seconds)
            text = f"a fold takes {seconds}, too much for the time limit"
            runner.skipped = Skip(SkipReason.TOO_SLOW, text)

    def _report_step(self, runner: Runner, number: int, index: int) -> None:
        running = [r for r in self.runners if r.runs]
        left = None
        if number > 0:
            known = [r.fold_seconds for r in running]
            left = sum(known[index:]) + sum(known) * (len(self.folds) - number - 1)
            limit = self._left()
            left = left if limit is None else min(left, max(limit, 0.0))
        done = sum(len(r.trials) for r in self.runners if r.runs)
        out = len(self.runners) - len(running)
        total = len(running) * len(self.folds) + out
        self.on_step(Step(runner.family.name, done + out, total, left))


def _size_of(model: Any) -> int | None:
    """Return the size of a model's pickle in bytes, or None if it cannot be pickled."""

    class Counter:
        written = 0

        def write(self, data: Any) -> int:
            size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
            self.written += size
            return size

    counter = Counter()
    try:
        pickle.Pickler(counter, protocol=5).dump(model)
    except Exception:  # pickling may raise anything
        return None
    return counter.written


def _type_and_message(error: Exception) -> tuple[str, str]:
    """Return the class of an error, and its message in one line of limited length."""
    text = " ".join(str(error).split())
    text = text if len(text) <= _LONGEST_FAILURE else text[: _LONGEST_FAILURE - 1] + "…"
    return type(error).__name__, text
