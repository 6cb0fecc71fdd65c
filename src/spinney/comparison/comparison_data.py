"""What a comparison was made on, and what its models said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.measure import Measure
from spinney.comparison.scheduler import Trial

__all__ = ["ComparisonData"]

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class ComparisonData:
    """The data, the models and their predictions of rows that they had not seen.

    Attributes
    ----------
    X, y : table and array
        What was learned from: rows drawn from the table given where the time limit asked for it.
    rows : array of int or None
        Which rows of the table given they are; None for all.
    classes : array or None
        The classes in order (classification).
    measure : Measure
        What models were ranked by.
    splits : list of (train, test)
        The folds that all models ran on.
    makers : dict of str to callable
        Makes each model, not fitted.
    trials : dict of str to list of Trial
        How each model did, fold by fold.
    random_state : int or None
        Seed of the folds and of the models.
    given : dict of str to str
        Arguments of `compare` that cannot be told from the rest, as Python says them.
    """

    X: Any
    y: NDArray[Any]
    rows: Rows | None
    classes: NDArray[Any] | None
    measure: Measure
    splits: list[tuple[Rows, Rows]]
    makers: dict[str, Callable[[], Any]]
    trials: dict[str, list[Trial]]
    random_state: int | None
    given: dict[str, str] = field(default_factory=dict)

    def make(self, name: str) -> Any:
        """Make a model, not fitted."""
        return self.makers[name]()

    @property
    def tested(self) -> Rows:
        """The rows that were in a test fold, in order."""
        return np.unique(np.concatenate([test for _, test in self.splits]))

    def predictions(self, name: str) -> NDArray[Any]:
        """Return the predictions of all rows; NaN or None for those in no test fold."""
        numbers = self.classes is None
        told = np.full(len(self.y), np.nan) if numbers else np.full(len(self.y), None, object)
        for trial, (_, test) in zip(self._trials(name), self.splits, strict=True):
            told[test] = trial.predicted
        if not numbers and len(self.tested) == len(self.y):
            return told.astype(self.y.dtype)
        return told

    def probabilities(self, name: str) -> NDArray[np.float64] | None:
        """Return the probabilities of all rows and classes, or None if the model gave none."""
        assert self.classes is not None
        told = np.full((len(self.y), len(self.classes)), np.nan)
        for trial, (_, test) in zip(self._trials(name), self.splits, strict=True):
            if trial.probabilities is None:
                return None
            told[test] = trial.probabilities
        return told

    def _trials(self, name: str) -> list[Trial]:
        trials = self.trials[name][: len(self.splits)]
        if len(trials) < len(self.splits):
            raise ValueError(f"{name} was not run to the end, and has predicted some rows only")
        return trials
