"""Fitted models in a common form, from which exporters generate code and files.

A row has *scores*: from trees, from its neighbours, or from a linear function (`models.linear`). An
*outcome* (`models.outcomes`) converts scores to predictions. Every formula matches the `predict` of
the model, in the same order, so that exports in double precision are bit-identical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.models.tree import Tree

__all__ = ["Form", "NotExpressible", "TreeScores"]

Floats = NDArray[np.float64]


class NotExpressible(Exception):
    """A model has no form, or a form cannot be exported; the message gives the reason."""


@dataclass(frozen=True)
class TreeScores:
    """Scores that are sums of leaf values over trees, plus a start value.

    Parameters
    ----------
    trees : list of Tree
        The splits of the trees, in the order of summation.
    values : list of ndarray of shape (n_nodes, n_scores) or (n_nodes, 1)
        The value that each node of each tree adds; only leaves are used.
    adds_to : list of (int or None)
        The score that a tree adds to; None means all scores.
    start : ndarray of shape (n_scores,)
        The scores before the first tree.
    """

    trees: list[Tree]
    values: list[Floats]
    adds_to: list[int | None]
    start: Floats


@dataclass(frozen=True)
class Form:
    """The form of a model for export.

    Parameters
    ----------
    model : str
        Name of the model's class.
    names : list of str or None
        Names of the columns; None if the training data had none.
    categories : list of (ndarray or None)
        The categories of each categorical column, in the order of their codes; None for a numeric
        column.
    scores : TreeScores, NeighborModel, LinearModel or PolynomialModel
        The scores of a row.
    outcome
        An instance of a class of `spinney.models.outcomes`.
    """

    model: str
    names: list[str] | None
    categories: list[Any]
    scores: Any
    outcome: Any

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.categories)

    @property
    def has_categories(self) -> bool:
        """Whether any column has categories."""
        return any(values is not None for values in self.categories)

    def column_name(self, feature: int) -> str:
        """Return the name of a column; a generic name if the columns have none."""
        return f"x{feature}" if self.names is None else self.names[feature]
