"""Intervals and sets from rows of a file that the model did not learn from."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from spinney.cli._errors import UserError

if TYPE_CHECKING:
    from spinney.data.task import Task

__all__ = ["CalibrationRows", "read_targets"]


class CalibrationRows:
    """Rows with their targets.

    Parameters
    ----------
    X : table
        The rows, as the model takes them.
    y : array
        Their targets.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = X, y

    @property
    def said(self) -> str:
        """What intervals and sets are made from, in words."""
        return f"conformal, {len(self._y):,} rows of calibration"

    def intervals(self, model: Any, X: Any, coverage: float) -> Any:
        """Return lower and upper ends, (n_rows, 2)."""
        if _takes_rows(model, "predict_interval"):
            return model.predict_interval(X, coverage, calibration=(self._X, self._y))
        from spinney.conformal.mixins import HeldOut

        held = HeldOut(self.said, self._y, model.predict(self._X))
        return held.interval(model.predict(X), None, coverage)

    def sets(self, model: Any, X: Any, coverage: float) -> Any:
        """Return whether each class is in the set of each row, (n_rows, n_classes)."""
        if _takes_rows(model, "predict_set"):
            return model.predict_set(X, coverage, calibration=(self._X, self._y))
        import numpy as np

        from spinney.calibration.probabilities import held_out_shares, unit_of_margins
        from spinney.conformal.mixins import HeldOut
        from spinney.conformal.rules import class_scores, sets_within

        places = {label: code for code, label in enumerate(model.classes_.tolist())}
        unknown = [label for label in self._y.tolist() if label not in places]
        if unknown:
            raise ValueError(f"calibration: its y has {unknown[0]!r}, which is not a class")
        codes = np.array([places[label] for label in self._y.tolist()])
        unit = unit_of_margins(model, self._X)
        own, asked = (held_out_shares(model, rows, model.classes_, unit) for rows in (self._X, X))
        limit = HeldOut(self.said, codes, own).limit("aps", coverage)
        return sets_within(class_scores(asked, "aps"), limit)


def read_targets(table: Any, target: str, task: Task) -> tuple[Any, Any]:
    """Return the rows of a table that have a target, and the targets."""
    import numpy as np
    import pyarrow as pa

    from spinney.data.target import missing_rows, read_target

    column = table[target].combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    alone = pa.table({target: column})
    known = np.logical_not(missing_rows(alone))
    if not known.any():
        raise UserError(f"--calibration: {target!r} has no value in any row")
    y, _ = read_target(alone.filter(pa.array(known)), task, to_learn=False)
    return table.filter(pa.array(known)), y


def _takes_rows(model: Any, method: str) -> bool:
    return hasattr(model, method) and "calibration" in signature(getattr(model, method)).parameters
