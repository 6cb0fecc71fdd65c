"""Cross-validate all models on the same folds of a table, and rank them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.comparison.comparison_data import ComparisonData
from spinney.comparison.deadline import deadline
from spinney.comparison.families import MAIN_MODEL, Family, select_families
from spinney.comparison.folds import FoldKind, Folds, make_folds, most_folds
from spinney.comparison.measure import Measure, find_measure, r_squared
from spinney.comparison.outcomes import EndedBy, Failure, Stage
from spinney.comparison.progress import ComparisonBar, Step
from spinney.comparison.ranking import rank, simplest_within_one_error
from spinney.comparison.sample import FEWEST_DRAWN, affordable_rows, draw_rows
from spinney.comparison.scheduler import MainModelTooSlow, Runner, Scheduler
from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter
from spinney.data.notes import Note, NoteKind
from spinney.data.rows import take_rows
from spinney.data.target import (
    as_column,
    check_classes,
    is_declared_category,
    missing_rows,
    notes_on_classes,
    read_target,
)
from spinney.data.task import Task

__all__ = ["compare"]

_MOST_CLASSES = 1_000
_NO_ERROR = 1e-9  # relative to the error of the baseline: rounding errors


def compare(
    X: Any,
    y: Any,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    models: Any = None,
    cv: Any = 10,
    scoring: str | Callable[..., float] | None = None,
    groups: Any = None,
    time: Any = None,
    time_limit: float | None = None,
    max_rows: int | None = None,
    max_folds: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    categorical_features: Any = "from_dtype",
    verbose: bool = False,
    callbacks: Iterable[Callable[[Step], object]] | None = None,
) -> Comparison:
    """Cross-validate Spinney's learners on a table and rank them.

    All models run on the same folds. A model that fails is listed with its error, and the others
    continue. Ctrl-C ends the comparison and keeps the completed folds.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
        The feature columns: NumPy, pandas, Polars or Arrow.
    y : array-like or series of shape (n_rows,), or str
        The target, without missing values; or the name of a column of the data frame `X`, which is
        then not a feature.
    task : {"auto", "classification", "regression"}, default="auto"
        With "auto", the task is classification if the target holds text, categories, booleans, or
        integers with at most 20 different values. It is regression for other numbers. (Decimal
        numbers with only two different values, both integers, are classes.) Texts such as
        "1,234 €", with units, signs or thousands separators, raise an error, unless the numbers
        would be classes.
    models : iterable of str or estimators, dict, or None, default=None
        The models to run: names from `spinney.comparison.families`, estimators, pairs of a name and
        an estimator, or a dictionary of these. None runs all of `spinney.comparison.families`.
    cv : int, splitter or iterable of splits, default=10
        The number of folds (stratified for classification, shuffled with `random_state`), or any
        ``cv`` of scikit-learn.
    scoring : str, callable or None, default=None
        The metric of the ranking. Classification: "error" (the default), "accuracy",
        "balanced_accuracy", "f1" (mean over the classes), "log_loss", "brier", "roc_auc",
        "average_precision". Regression: "rmse" (the default), "mae", "median_absolute_error",
        "mape", "r2". Or a scorer of scikit-learn, greater being better.
    groups : array-like of shape (n_rows,), str or None, default=None
        Group of each row; a fold has all rows of a group or none. Or the name of a column of the
        data frame `X`, which is then not a feature.
    time : array-like of shape (n_rows,), str or None, default=None
        Time of each row, of any sortable type; or the name of a column of the data frame `X`, which
        stays a feature if it holds numbers. The training rows of every fold are then earlier than
        its test rows; the first rows are never test rows.
    time_limit : float or None, default=None
        Approximate limit in seconds. Models that take too long are skipped, then folds. If the
        table is too large for the default booster, a sample of its rows is used. The result lists
        skipped models and folds. (A running fit is only stopped in the main thread, and not on
        Windows.)
    max_rows : int or None, default=None
        If the table has more rows, a stratified sample of this size is used.
    max_folds : int or None, default=None
        Run at most this many folds.
    random_state : int or None, default=0
        Seed of the folds and of the models.
    n_jobs : int or None, default=None
        Number of threads of each model; None is the value of `spinney.set_num_threads`. Models
        run one after another, so that their times can be compared.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        The columns of categories, for the models that handle them.
    verbose : bool, default=False
        Show a progress bar on the standard error.
    callbacks : iterable of callables or None, default=None
        Each is called with a `spinney.comparison.progress.Step` before every fit and at the end.

    Returns
    -------
    Comparison
        The results, best first. It prints as a table.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_spam(return_X_y=True)
    >>> result = spinney.compare(X, y, models=["baseline"], cv=5)
    >>> result.best.name, round(result.best.estimate.mean, 3)
    ('baseline', 0.394)
    """
    X = _as_table(X)
    named = {
        name: repr(value)
        for name, value in (("groups", groups), ("time", time))
        if isinstance(value, str)
    }
    X, y, groups, time = _take_named_columns(X, y, groups, time)
    n_rows, n_features = X.shape
    if n_rows == 0 or n_features == 0:
        raise ValueError(f"X is empty: {n_rows:,} rows × {n_features:,} columns")
    y, task, classes = _read_target(y, task, n_rows)
    if time_limit == math.inf:
        time_limit = None
    _check_limits(time_limit, max_rows, max_folds)
    cv = _check_cv(cv, n_rows, max_rows)
    families = select_families(models, task)
    given = _given(groups, time, categorical_features, cv, scoring) | named
    if any(family.is_own for family in families):
        given["models"] = "models"
    validation = _CrossValidation(
        families=families,
        task=task,
        measure=find_measure(task, scoring, classes),
        cv=cv,
        random_state=random_state,
        n_jobs=n_jobs,
        categorical_features=categorical_features,
        time_limit=time_limit,
        max_folds=max_folds,
        given=given,
    )
    table = _SampledTable(
        X, y, _marks(groups, "groups", n_rows), _marks(time, "time", n_rows), None
    )
    with ExitStack() as stack:
        listeners = list(callbacks or [])
        if verbose:
            listeners.append(stack.enter_context(ComparisonBar()))

        def report_step(step: Step) -> None:
            for listener in listeners:
                listener(step)

        n_most = validation.most_rows(y, n_features)
        if max_rows is not None:
            n_most = max_rows if n_most is None else min(n_most, max_rows)
        start = perf_counter()
        while True:
            rows = table.draw(n_most, random_state)
            left = None if time_limit is None else time_limit - (perf_counter() - start)
            try:
                return validation.run(rows, report_step, n_rows, left)
            except MainModelTooSlow:
                n_most = max(FEWEST_DRAWN, len(rows.y) // 4)
                validation = replace(validation, starts_again=True)


def _take_named_columns(X: Any, y: Any, groups: Any, time: Any) -> tuple[Any, Any, Any, Any]:
    """Replace names of columns of X by these columns, and return X without them.

    A numeric column of times stays in X, too.
    """
    if isinstance(y, str):
        X, y = _take_out(X, y, "y")
    if isinstance(groups, str):
        X, groups = _take_out(X, groups, "groups")
    if isinstance(time, str):
        rest, time = _take_out(X, time, "time")
        X = X if as_column(time)[0].dtype.kind in "iuf" else rest
    return X, y, groups, time


def _read_target(
    y: Any, task: Literal["auto", "classification", "regression"], n_rows: int
) -> tuple[NDArray[Any], Task, NDArray[Any] | None]:
    """Return the target, the task and, for classification, the classes in order."""
    task_is_given = task != "auto" or is_declared_category(y)
    name = as_column(y)[1]
    y, chosen = read_target(y, task)
    if chosen == "classification" and not task_is_given:
        check_classes(y, name)
    if len(y) != n_rows:
        raise ValueError(f"X has {n_rows:,} rows, y has {len(y):,}")
    classes = np.unique(y) if chosen == "classification" else None
    if classes is not None and len(classes) > _MOST_CLASSES:
        raise ParameterError(
            f"the target has {len(classes):,} classes; expected at most {_MOST_CLASSES:,}. "
            "Is it an identifier? If it is a quantity, set ",
            Parameter("task", "regression"),
        )
    return y, chosen, classes


def _check_limits(time_limit: float | None, max_rows: int | None, max_folds: int | None) -> None:
    """Raise a ParameterError if a limit is invalid."""
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ParameterError(
            Parameter("time_limit"), f" must be a number of seconds above 0, got {time_limit!r}"
        )
    for name, most, least in (("max_rows", max_rows, 2), ("max_folds", max_folds, 1)):
        if most is not None and not (isinstance(most, Integral) and most >= least):
            raise ParameterError(
                Parameter(name), f" must be an integer of at least {least}, got {most!r}"
            )


def _check_cv(cv: Any, n_rows: int, max_rows: int | None) -> Any:
    """Return cv; splits as a list of row numbers."""
    if isinstance(cv, str) or not (isinstance(cv, Integral | Iterable) or hasattr(cv, "split")):
        raise ParameterError(
            Parameter("cv"),
            f" must be a number of folds, a splitter or a list of splits, got {cv!r}",
        )
    if isinstance(cv, Integral) or hasattr(cv, "split"):
        return cv
    splits = [(_row_numbers(train, n_rows), _row_numbers(test, n_rows)) for train, test in cv]
    if max_rows is not None and max_rows < n_rows:
        raise ValueError("max_rows cannot be given together with cv as splits of all rows")
    return splits


@dataclass(frozen=True)
class _SampledTable:
    """The table, or a sample of its rows."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    drawn: NDArray[np.intp] | None

    def draw(self, n_most: int | None, random_state: int | None) -> _SampledTable:
        if n_most is None or n_most >= len(self.y):
            return self
        drawn = draw_rows(self.y, n_most, random_state)
        groups, time = (None if m is None else m[drawn] for m in (self.groups, self.time))
        return _SampledTable(take_rows(self.X, drawn), self.y[drawn], groups, time, drawn)


@dataclass(frozen=True)
class _CrossValidation:
    """The settings of a cross-validation of all models, without the rows."""

    families: list[Family]
    task: Task
    measure: Measure
    cv: Any
    random_state: int | None
    n_jobs: int | None
    categorical_features: Any
    time_limit: float | None
    max_folds: int | None
    given: dict[str, str]
    starts_again: bool = False

    @property
    def may_draw(self) -> bool:
        """Whether rows may be sampled; not if the splits are given as row numbers."""
        return isinstance(self.cv, Integral) or hasattr(self.cv, "split")

    def most_rows(self, y: NDArray[Any], n_features: int) -> int | None:
        """Return the number of rows that the main model can fit several times in the limit."""
        runs_main_model = any(family.name == MAIN_MODEL for family in self.families)
        if self.time_limit is None or not runs_main_model or not self.may_draw:
            return None
        n_outputs = len(np.unique(y)) if self.task == "classification" else 1
        n_outputs = 1 if n_outputs == 2 else n_outputs
        return affordable_rows(self.time_limit / 3, n_features, n_outputs)

    def run(
        self,
        rows: _SampledTable,
        on_step: Callable[[Step], None],
        n_given: int,
        seconds: float | None,
    ) -> Comparison:
        """Run all models on these rows within a number of seconds."""
        notes: list[Note] = [self.measure.note] if self.measure.note else []
        if self.task == "classification":
            notes += notes_on_classes(rows.y)
        if rows.drawn is not None:
            text = f"{len(rows.y):,} of {n_given:,} rows were drawn"
            if self.time_limit is not None:
                text += f", so that several folds fit into {self.time_limit:.0f} s"
            notes.append(Note(text, kind=NoteKind.SAMPLED_ROWS))
        cv = self.cv
        if rows.drawn is not None and isinstance(cv, Integral):
            cv = min(cv, most_folds(rows.y, self.task))
        folds = make_folds(
            rows.y,
            self.task,
            cv,
            groups=rows.groups,
            time=rows.time,
            random_state=self.random_state,
            notes=notes,
        )
        runners = [
            Runner(family, partial(self._make, family))
            for family in sorted(self.families, key=self._priority)
        ]
        classes = np.unique(rows.y) if self.task == "classification" else None
        splits = folds.splits[: self.max_folds]
        scheduler = Scheduler(
            runners,
            rows.X,
            rows.y,
            classes,
            splits,
            self.measure,
            seconds,
            on_step,
            may_draw=self.may_draw and not self.starts_again,
            clock=perf_counter,
            limit=deadline,
        )
        n_folds = scheduler.run()
        if scheduler.ended_by is EndedBy.INTERRUPT and n_folds == 0:
            raise KeyboardInterrupt
        _raise_common_failure(scheduler)
        if scheduler.ended_by is not None:
            text = (
                f"ended by {scheduler.ended_by.value} after {n_folds} of {len(folds.splits)} folds"
            )
            notes.append(Note(text, kind=NoteKind.ENDED_EARLY))
        return self._summarise(rows, folds, scheduler, n_folds, notes)

    def _priority(self, family: Family) -> int:
        """Return the sort key of a family: cheap ones first, after a restart the main model."""
        return -1 if self.starts_again and family.name == MAIN_MODEL else family.effort

    def _make(self, family: Family) -> Any:
        model = family.make(self.task, self.random_state, self.n_jobs)
        # The baseline uses no columns and does not have this parameter.
        if not family.is_own and "categorical_features" in model.get_params():
            model.set_params(categorical_features=self.categorical_features)
        return model

    def _summarise(
        self,
        rows: _SampledTable,
        folds: Folds,
        scheduler: Scheduler,
        n_folds: int,
        notes: list[Note],
    ) -> Comparison:
        splits = _measured_folds(scheduler, folds.splits[:n_folds], self.measure, notes)
        n_folds = len(splits)
        order = {family.name: index for index, family in enumerate(self.families)}
        runners = sorted(scheduler.runners, key=lambda runner: order[runner.family.name])
        results = [_result(runner, self.task, rows.y, splits) for runner in runners]
        sign = self.measure.sign
        test_share = float(np.mean([len(test) / len(train) for train, test in splits] or [0.0]))
        ranked = rank(results, sign, test_share)
        notes.extend(_note_perfect_fit(ranked, self.task, self.measure))
        return Comparison(
            task=self.task,
            metric=self.measure.name,
            greater_is_better=self.measure.greater_is_better,
            n_rows=len(rows.y),
            n_features=rows.X.shape[1],
            n_folds=n_folds,
            stratified=folds.kind is FoldKind.STRATIFIED,
            results=ranked,
            notes=[*notes],
            folds=folds.kind.value,
            n_folds_requested=len(folds.splits) if n_folds < len(folds.splits) else None,
            simpler=simplest_within_one_error(
                ranked, sign, {family.name: family.complexity for family in self.families}
            ),
            ended_by=scheduler.ended_by,
            compared=ComparisonData(
                X=rows.X,
                y=rows.y,
                rows=rows.drawn,
                classes=scheduler.classes,
                measure=self.measure,
                splits=splits,
                makers={runner.family.name: runner.make for runner in runners},
                trials={runner.family.name: runner.trials for runner in runners},
                random_state=self.random_state,
                given=self.given,
            ),
        )


def _raise_common_failure(scheduler: Scheduler) -> None:
    """Raise an error if all models that read columns failed with the same one."""
    failures = [runner.failure for runner in scheduler.runners if runner.family.complexity > 0]
    if len(failures) < 2 or len(set(failures)) > 1:
        return
    failure = failures[0]
    if failure is None or failure.error_type not in ("ValueError", "TypeError"):
        return
    hint = ""
    if _has_dates(scheduler.X):
        hint = "; spinney.io.decide_kinds(X).prepare(X) converts dates to numbers"
    raise ValueError(f"no model can be fitted: {failure.message}{hint}")


def _has_dates(X: Any) -> bool:
    """Return whether a column of a data frame holds dates, times or durations."""
    # Imported late, for start-up time.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return isinstance(frame, nw.DataFrame) and any(
        dtype.is_temporal() for dtype in frame.schema.values()
    )


def _note_perfect_fit(ranked: list[ModelResult], task: Task, measure: Measure) -> list[Note]:
    """Return a note if a regression makes no error: columns may contain the target."""
    named = {model.name: model.estimate for model in ranked}
    best, baseline = ranked[0].estimate if ranked else None, named.get("baseline")
    if task != "regression" or measure.greater_is_better or best is None or baseline is None:
        return []
    if not best.mean < _NO_ERROR * baseline.mean:
        return []
    text = (
        f"{ranked[0].name} makes no error: the target seems to be a function of columns "
        "that may be unknown at the time of the prediction"
    )
    return [Note(text, kind=NoteKind.NO_ERROR)]


def _measured_folds(
    scheduler: Scheduler, splits: list[tuple[Any, Any]], measure: Measure, notes: list[Note]
) -> list[tuple[Any, Any]]:
    """Drop folds with an undefined metric; models with infinite or NaN scores fail."""
    running = [runner for runner in scheduler.runners if runner.runs]
    measured = [
        number
        for number in range(len(splits))
        if any(np.isfinite(runner.trials[number].score) for runner in running)
    ]
    if running and not measured:
        why = "does each test fold lack a class?"
        if scheduler.classes is None:
            why = "are targets too large?"
        raise ValueError(f"{measure.name} is undefined on every fold; {why}")
    if len(measured) < len(splits) and running:
        n_undefined = len(splits) - len(measured)
        text = f"{measure.name} is undefined on {n_undefined} of {len(splits)} folds"
        notes.append(Note(text, kind=NoteKind.UNDEFINED_FOLDS))
    for runner in running:
        runner.trials = [runner.trials[number] for number in measured]
        if not all(np.isfinite(trial.score) for trial in runner.trials):
            message = "a fold has a score that is not finite"
            runner.failure = Failure(Stage.MEASURE, "", message, measure.name)
    return [splits[number] for number in measured]


def _result(
    runner: Runner, task: Task, y: NDArray[Any], splits: list[tuple[Any, Any]]
) -> ModelResult:
    family, trials = runner.family, runner.trials[: len(splits)]
    size = trials[0].size if trials else None
    if not runner.runs or not trials:
        return ModelResult(
            family.name, family.title, size=size, failure=runner.failure, skipped=runner.skipped
        )
    r2 = None
    if task == "regression":
        shares = [
            r_squared(y[test], t.predicted) for t, (_, test) in zip(trials, splits, strict=True)
        ]
        r2 = Estimate.from_folds(shares) if np.isfinite(shares).all() else None
    return ModelResult(
        family.name,
        family.title,
        estimate=Estimate.from_folds([trial.score for trial in trials]),
        r2=r2,
        fit_seconds=float(np.mean([trial.fit_seconds for trial in trials])),
        predict_seconds=float(np.mean([trial.predict_seconds for trial in trials])),
        size=size,
    )


def _given(
    groups: Any, time: Any, categorical_features: Any, cv: Any, scoring: Any
) -> dict[str, str]:
    """Return the arguments that are not part of a result, as Python code."""
    given = {}
    if not isinstance(cv, Integral):
        given["cv"] = "cv"
    if scoring is not None and not isinstance(scoring, str):
        given["scoring"] = "scoring"
    given |= {
        name: name for name, value in (("groups", groups), ("time", time)) if value is not None
    }
    if not (isinstance(categorical_features, str) and categorical_features == "from_dtype"):
        plain = isinstance(categorical_features, list) and len(categorical_features) <= 20
        code = repr(categorical_features) if plain else "categorical_features"
        given["categorical_features"] = code
    return given


def _marks(marks: Any, name: str, n_rows: int) -> NDArray[Any] | None:
    """Return groups or times as an array without missing values, one per row."""
    if marks is None:
        return None
    missing = missing_rows(marks)
    if len(missing) != n_rows:
        raise ValueError(f"X has {n_rows:,} rows, {name} has {len(missing):,}")
    if missing.any():
        raise ValueError(f"{name} is missing in {missing.sum():,} of {n_rows:,} rows")
    return as_column(marks)[0]


def _row_numbers(rows: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the rows of a split as row numbers; they may be given as a mask."""
    rows = np.asarray(rows)
    if rows.dtype == np.bool_:
        if len(rows) != n_rows:
            raise ValueError(f"cv has a mask of {len(rows):,} rows, X has {n_rows:,}")
        rows = np.flatnonzero(rows)
    if not len(rows) or rows.dtype.kind not in "iu":
        raise ValueError("cv: expected pairs of training and test rows, both not empty")
    if rows.min() < -n_rows or rows.max() >= n_rows:
        raise ValueError(f"cv: expected row numbers below {n_rows:,}, got {rows.max():,}")
    return rows % n_rows


def _take_out(X: Any, name: str, argument: str) -> tuple[Any, Any]:
    """Split a data frame into the other columns and the column named by an argument."""
    # Imported late, for start-up time.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(
            f"{argument}: expected values, got the name {name!r}, and X is not a data frame with "
            "column names"
        )
    if name not in frame.columns:
        # Imported late, for start-up time.
        from spinney.io.table_file import unknown_column

        raise unknown_column(
            name, [str(column) for column in frame.columns], f"X (given as {argument})"
        )
    return frame.drop(name).to_native(), frame[name].to_native()


def _as_table(X: Any) -> Any:
    """Return X; a list of rows as an array or, with texts, as a table."""
    if isinstance(X, str | PathLike):
        raise ValueError(
            f"X: expected a table, got the path {str(X)!r}; read it with "
            "data = spinney.io.read_training_table(path, target), and compare data.X and data.y"
        )
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X: expected a data frame, got a lazy one; collect() it first")
    if not hasattr(X, "shape"):
        rows = X
        X = np.asarray(rows)
        if X.dtype.kind == "U":  # NumPy has converted all values to text; keep the types
            # Imported late, for start-up time.
            import pyarrow as pa

            columns = zip(*rows, strict=True)
            X = pa.table({f"x{number}": list(values) for number, values in enumerate(columns)})
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, got shape {tuple(X.shape)}")
    names = list(getattr(X, "columns", [])) if not hasattr(X, "column_names") else X.column_names
    if len(set(map(str, names))) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X: expected distinct column names, got {twice!r} twice")
    return X
