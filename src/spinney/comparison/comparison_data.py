"""The data of a comparison, its models and their out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.measure import Measure
from spinney.comparison.scheduler import FoldResult

__all__ = ["ComparisonData"]

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class ComparisonData:
    """The data, the models and their out-of-fold predictions.

    Attributes
    ----------
    X, y : table and array
        The rows of the comparison; a sample of the given table if the time limit required it.
    rows : array of int or None
        Their row numbers in the given table; None for all rows.
    classes : array or None
        The classes in order (classification).
    measure : Measure
        The metric of the ranking.
    splits : list of (train, test)
        The folds that all models ran on.
    makers : dict of str to callable
        For each model, a function that returns it unfitted.
    trials : dict of str to list of FoldResult
        The results of each model, fold by fold.
    random_state : int or None
        Seed of the folds and of the models.
    given : dict of str to str
        Further arguments of `compare`, as Python code.
    """

    X: Any
    y: NDArray[Any]
    rows: Rows | None
    classes: NDArray[Any] | None
    measure: Measure
    splits: list[tuple[Rows, Rows]]
    makers: dict[str, Callable[[], Any]]
    trials: dict[str, list[FoldResult]]
    random_state: int | None
    given: dict[str, str] = field(default_factory=dict)

    def make(self, name: str) -> Any:
        """Return an unfitted model."""
        return self.makers[name]()

    @property
    def tested(self) -> Rows:
        """The rows that were in a test fold, in order."""
        return np.unique(np.concatenate([test for _, test in self.splits]))

    def predictions(self, name: str) -> NDArray[Any]:
        """Return out-of-fold predictions; NaN or None for rows in no test fold."""
        is_regression = self.classes is None
        predicted = (
            np.full(len(self.y), np.nan) if is_regression else np.full(len(self.y), None, object)
        )
        for trial, (_, test) in zip(self._trials(name), self.splits, strict=True):
            predicted[test] = trial.predicted
        if not is_regression and len(self.tested) == len(self.y):
            return predicted.astype(self.y.dtype)
        return predicted

    def probabilities(self, name: str) -> NDArray[np.float64] | None:
        """Return out-of-fold class probabilities, or None if the model has none."""
        assert self.classes is not None
        probabilities = np.full((len(self.y), len(self.classes)), np.nan)
        for trial, (_, test) in zip(self._trials(name), self.splits, strict=True):
            if trial.probabilities is None:
                return None
            probabilities[test] = trial.probabilities
        return probabilities

    def _trials(self, name: str) -> list[FoldResult]:
        trials = self.trials[name][: len(self.splits)]
        if len(trials) < len(self.splits):
            raise ValueError(
                f"{name} was not run on all folds and has predictions for some rows only"
            )
        return trials
