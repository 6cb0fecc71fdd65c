"""Cross-validate every learner on one table, on the same folds, and rank them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.report.comparison import Comparison, Estimate, ModelResult
from spinney.report.families import Family, Task, select_families
from spinney.report.progress import Bar, Step
from spinney.report.rows import take_rows
from spinney.report.target import read_target

__all__ = ["compare"]

Rows = NDArray[np.intp]


def compare(
    X: Any,
    y: Any,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    models: Iterable[str] | None = None,
    cv: Any = 10,
    scoring: str | Callable[..., float] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    categorical_features: Any = "from_dtype",
    verbose: bool = False,
    callbacks: Iterable[Callable[[Step], object]] | None = None,
) -> Comparison:
    """Cross-validate Spinney's learners on a table and rank them.

    Every model sees the same folds. A model that fails is shown with its error, and the others go
    on.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_features)
        The columns to learn from: NumPy, pandas, Polars or Arrow.
    y : array-like or series of shape (n_rows,)
        The column to predict, without missing values.
    task : {"auto", "classification", "regression"}, default="auto"
        With "auto", text, categories and booleans are classes, and so are whole numbers with at
        most 20 different values; other numbers are quantities. (Decimal numbers are quantities,
        unless they are two whole numbers only.)
    models : iterable of str or None, default=None
        Names of the models to run, as `spinney.report.families` lists them; None runs all.
    cv : int, splitter or iterable of splits, default=10
        The number of folds (stratified for classification, shuffled with `random_state`), or
        anything that scikit-learn takes as ``cv``.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn to rank by, greater being better. None ranks by the share of
        wrong classes, or by the root mean squared error.
    random_state : int or None, default=0
        Seed of the folds and of the models.
    n_jobs : int or None, default=None
        Number of threads of each model; None is the value of `spinney.set_num_threads`. Models
        run one after another, so that their times can be compared.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Which columns hold categories, for the models that handle them.
    verbose : bool, default=False
        Show a progress bar on the standard error.
    callbacks : iterable of callables or None, default=None
        Each is called with a `spinney.report.progress.Step` before every fit and at the end.

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
    n_rows, n_features = X.shape
    if n_rows == 0 or n_features == 0:
        raise ValueError(f"X is empty: {n_rows:,} rows × {n_features:,} columns")
    y, task = read_target(y, task)
    if len(y) != n_rows:
        raise ValueError(f"X has {n_rows:,} rows, y has {len(y):,}")
    families = select_families(models, task)
    notes: list[str] = []
    folds = _folds(y, task, cv, random_state, notes)
    measure = _Measure.of(task, scoring)

    total, results = len(families) * len(folds), []
    with ExitStack() as stack:
        watchers = list(callbacks or [])
        if verbose:
            watchers.append(stack.enter_context(Bar()))

        def tell(model: str, before: int, fold: int = 0) -> None:
            for watcher in watchers:
                watcher(Step(model, before + fold, total))

        for number, family in enumerate(families):
            tell_fold = partial(tell, family.name, number * len(folds))
            make = _factory(family, task, random_state, n_jobs, categorical_features)
            try:
                result = _run(family, make, X, y, folds, measure, tell_fold)
            except Exception as error:  # whatever goes wrong in one model, the others go on
                result = ModelResult(family.name, family.title, failure=_one_line(error))
            results.append(result)
        tell("", total)

    sign = -1.0 if measure.greater_is_better else 1.0
    results.sort(
        key=lambda r: (True, 0.0) if r.estimate is None else (False, sign * r.estimate.mean)
    )  # stable: of equals the simpler one, listed earlier, stays first
    return Comparison(
        task=task,
        metric=measure.name,
        greater_is_better=measure.greater_is_better,
        n_rows=n_rows,
        n_features=n_features,
        n_folds=len(folds),
        stratified=task == "classification" and isinstance(cv, Integral),
        results=results,
        notes=notes,
    )


@dataclass(frozen=True)
class _Measure:
    """What models are ranked by."""

    name: str
    greater_is_better: bool
    scorer: Callable[..., float] | None

    @classmethod
    def of(cls, task: Task, scoring: Any) -> _Measure:
        if scoring is None:
            return cls("error" if task == "classification" else "rmse", False, None)
        from sklearn.metrics import get_scorer

        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
        return cls(name, True, get_scorer(scoring))


def _run(
    family: Family,
    make: Callable[[], Any],
    X: Any,
    y: NDArray[Any],
    folds: list[tuple[Rows, Rows]],
    measure: _Measure,
    tell: Callable[[int], None],
) -> ModelResult:
    """Fit and test one model on every fold."""
    scores: list[float] = []
    r2: list[float] = []
    fit_seconds = predict_seconds = 0.0
    for number, (train, test) in enumerate(folds):
        tell(number)
        X_train, X_test, y_test = take_rows(X, train), take_rows(X, test), y[test]
        start = perf_counter()
        model = make().fit(X_train, y[train])
        fitted = perf_counter()
        predicted = np.asarray(model.predict(X_test)).reshape(len(test))
        predict_seconds += perf_counter() - fitted
        fit_seconds += fitted - start
        if measure.scorer is not None:
            scores.append(float(measure.scorer(model, X_test, y_test)))
        elif measure.name == "error":
            scores.append(float(np.mean(predicted != y_test)))
        else:
            squares = np.mean((predicted - y_test) ** 2)
            spread = np.mean((y_test - y_test.mean()) ** 2)
            scores.append(float(np.sqrt(squares)))
            r2.append(float(1 - squares / spread) if spread > 0 else float("nan"))
    return ModelResult(
        family.name,
        family.title,
        estimate=Estimate.from_folds(scores),
        r2=Estimate.from_folds(r2) if r2 else None,
        fit_seconds=fit_seconds / len(folds),
        predict_seconds=predict_seconds / len(folds),
    )


def _factory(
    family: Family,
    task: Task,
    random_state: int | None,
    n_jobs: int | None,
    categorical_features: Any,
) -> Callable[[], Any]:
    def make() -> Any:
        model = family.make(task, random_state, n_jobs)
        # The baseline looks at no column, so it does not need to be told about them.
        if "categorical_features" in model.get_params():
            model.set_params(categorical_features=categorical_features)
        return model

    return make


def _folds(
    y: NDArray[Any], task: Task, cv: Any, random_state: int | None, notes: list[str]
) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    if isinstance(cv, Integral):
        n_folds = int(cv)
        if not 2 <= n_folds <= len(y):
            raise ValueError(f"cv must be between 2 and the number of rows ({len(y)}), got {cv}")
        if task == "classification":
            _, counts = np.unique(y, return_counts=True)
            if counts.max() < n_folds:
                raise ValueError(
                    f"cv={cv} folds need a class of {cv} rows or more; "
                    f"the largest class has {counts.max()}"
                )
            if counts.min() < n_folds:
                notes.append(
                    f"the rarest class has {counts.min()} rows, fewer than the {n_folds} folds"
                )
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        else:
            splitter = KFold(n_folds, shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=task == "classification")
    with warnings.catch_warnings():
        # The note above says the same.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = list(splitter.split(np.zeros((len(y), 1)), y))
    return [(np.asarray(train), np.asarray(test)) for train, test in folds]


def _as_table(X: Any) -> Any:
    """Return X itself if it has rows and columns, and a list of rows as an array."""
    if not hasattr(X, "shape"):
        rows = X
        X = np.asarray(rows)
        if X.dtype.kind == "U":  # beside text NumPy makes text of numbers, too: keep them apart
            X = np.asarray(rows, dtype=object)
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, got shape {tuple(X.shape)}")
    return X


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
