"""Columns of ``spinney predict --explain``: contributions to each prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.cli._error_messages import UserError

__all__ = ["RowExplainer", "read_amount"]

_MOST_NUMBERS = 4_000_000  # in memory: rows × columns × classes
_REFERENCE_ROWS = 1_000  # rows of the first block, as background of models that need one


def read_amount(text: str) -> int | None:
    """Return the number of columns; None for "all"."""
    if text == "all":
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise UserError(f"--explain must be a positive number of columns or 'all', got {text!r}")
    return number


class RowExplainer:
    """Calculates the contributions for all blocks of a table.

    Parameters
    ----------
    model : fitted estimator
        The model.
    name : str
        Its name in messages.
    most : int or None
        The number of columns with the largest contributions per row; None for one output column
        per column of the table.
    names : list of str
        The columns that the model was fitted on.
    """

    def __init__(self, model: Any, name: str, most: int | None, names: list[str]) -> None:
        # Imported late, so that --help and completion start fast.
        from spinney.report.model_explainer import ModelExplainer

        self._explainer = ModelExplainer(model)
        self._name, self._names = name, names
        self._most = None if most is None else min(most, len(names))
        self._reference: Any = None
        classes = getattr(model, "classes_", ())
        if isinstance(classes, list):
            raise UserError(f"--explain: {name} has several columns of classes")
        width = max(1, len(names) * max(1, len(classes)))
        # Sampling limits its memory itself.
        self._rows = max(64, _MOST_NUMBERS // width) if self._explainer.exact else 1_000_000
        self.description = ""

    def columns(self, X: Any, predicted: Any) -> dict[str, Any]:
        """Return the columns to write for some rows."""
        if self._explainer.compares and self._reference is None:
            self._reference = self._spread_rows(X, len(predicted))
        parts = [
            self._explain(_slice(X, first, self._rows), predicted[first : first + self._rows])
            for first in range(0, len(predicted), self._rows)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def no_columns(self) -> dict[str, Any]:
        """Return the columns to write for a table without rows."""
        if self._most is None:
            return {name: np.empty(0) for name in ("base", *map("amount_{}".format, self._names))}
        out: dict[str, Any] = {"base": np.empty(0)}
        for rank in range(1, self._most + 1):
            out[f"column_{rank}"] = np.empty(0, dtype="U1")
            out[f"amount_{rank}"] = np.empty(0)
        return out

    def _spread_rows(self, X: Any, n_rows: int) -> Any:
        """Return evenly spaced rows of the first block, as the file may be sorted."""
        # Imported late, so that --help and completion start fast.
        from spinney.data.rows import take_rows

        if n_rows == 1:
            raise UserError(
                f"--explain: {self._name} is explained by comparing rows; expected at least "
                "2 rows in the first block, got 1"
            )
        n_taken = min(n_rows, _REFERENCE_ROWS)
        return take_rows(X, (np.arange(n_taken) * n_rows) // n_taken)

    def _explain(self, X: Any, predicted: Any) -> dict[str, Any]:
        amounts = self._explainer.explain(X, predicted, self._reference)
        self.description = f"base and amounts add up to the {amounts.about} ({amounts.method})"
        out: dict[str, Any] = {"base": amounts.base}
        if self._most is None:
            for number, name in enumerate(self._names):
                out[f"amount_{name}"] = amounts.values[:, number]
            return out
        order = np.argsort(-np.abs(amounts.values), axis=1, kind="stable")[:, : self._most]
        largest = np.take_along_axis(amounts.values, order, axis=1)
        named = np.asarray(self._names, dtype=object)
        for rank in range(self._most):
            out[f"column_{rank + 1}"] = named[order[:, rank]]
            out[f"amount_{rank + 1}"] = largest[:, rank]
        return out


def _slice(X: Any, first: int, n_rows: int) -> Any:
    return X.slice(first, n_rows) if hasattr(X, "slice") else X[first : first + n_rows]
