"""Intervals and sets from calibration rows: rows of a file with their targets."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.calibration.probabilities import held_out_shares, unit_of_margins
from spinney.cli._error_messages import UserError
from spinney.conformal.mixins import HeldOut
from spinney.conformal.rules import class_scores, sets_within
from spinney.data.target import missing_rows, read_target
from spinney.data.task import Task

__all__ = ["CalibrationRows", "read_targets"]


class CalibrationRows:
    """Calibration rows of a model, with their targets.

    Parameters
    ----------
    X : table
        The rows, prepared for the model.
    y : array
        Their targets.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = X, y

    @property
    def description(self) -> str:
        """A description of the source of intervals and sets."""
        return f"conformal, {len(self._y):,} calibration rows"

    def intervals(self, model: Any, X: Any, coverage: float) -> Any:
        """Return intervals as an array of shape (n_rows, 2)."""
        if _takes_rows(model, "predict_interval"):
            return model.predict_interval(X, coverage, calibration=(self._X, self._y))
        held = HeldOut(self.description, self._y, model.predict(self._X))
        return held.interval(model.predict(X), None, coverage)

    def sets(self, model: Any, X: Any, coverage: float) -> Any:
        """Return prediction sets as a boolean array of shape (n_rows, n_classes)."""
        if _takes_rows(model, "predict_set"):
            return model.predict_set(X, coverage, calibration=(self._X, self._y))
        code_of = {label: code for code, label in enumerate(model.classes_.tolist())}
        unknown = [label for label in self._y.tolist() if label not in code_of]
        if unknown:
            raise ValueError(f"calibration: y has class {unknown[0]!r}, which was not in training")
        codes = np.array([code_of[label] for label in self._y.tolist()])
        unit = unit_of_margins(model, self._X)
        calibration_shares, shares = (
            held_out_shares(model, rows, model.classes_, unit) for rows in (self._X, X)
        )
        limit = HeldOut(self.description, codes, calibration_shares).limit("aps", coverage)
        return sets_within(class_scores(shares, "aps"), limit)


def read_targets(table: Any, target: str, task: Task) -> tuple[Any, Any]:
    """Return the rows of a table that have a target, and the targets."""
    column = table[target].combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    targets = pa.table({target: column})
    known = np.logical_not(missing_rows(targets))
    if not known.any():
        raise UserError(f"--calibration: {target!r} has no value in any row")
    y, _ = read_target(targets.filter(pa.array(known)), task, to_learn=False)
    return table.filter(pa.array(known)), y


def _takes_rows(model: Any, method: str) -> bool:
    """Return whether the method has a parameter for calibration rows."""
    return hasattr(model, method) and "calibration" in signature(getattr(model, method)).parameters
