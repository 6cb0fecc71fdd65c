"""Shapley values of predictions, for every model of `compare` and `fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.scaled_table import ScaledTable
from spinney.export.linear_models import LINEAR_MODELS
from spinney.inspection.shap.linear import explain_linear
from spinney.inspection.shap.sampling import explain_by_sampling
from spinney.inspection.shap.trees import Parts, TreeSum, explain_trees, read_sum
from spinney.models.form import NotExpressible
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.pruned_tree import PrunedTreeClassifier, PrunedTreeRegressor

__all__ = ["Amounts", "ModelExplainer"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Amounts:
    """Contributions of the columns to one output for each row.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        The amounts; with `base` they add up to the answer.
    base : ndarray of shape (n_rows,)
        The answer when nothing is known of a row.
    about : str
        What the answer is: "prediction", "log-odds of yes" and so on.
    method : str
        How the amounts were found, in words.
    by_row : bool
        Whether the answer is about the predicted class, which differs from row to row.
    output : str
        The kind of the answer without a class: "prediction", "log-odds".
    """

    values: Floats
    base: Floats
    about: str
    method: str
    by_row: bool
    output: str


class ModelExplainer:
    """Explains a fitted model: reads it once, and explains the rows of many tables.

    Trees, sums of trees and linear models are explained exactly, others by sampling. Models that
    prepare a table for another learner are explained by the columns of the table, not by what they
    made of them.

    Parameters
    ----------
    model : fitted estimator
        The model.

    Attributes
    ----------
    exact : bool
        Whether nothing is sampled; sampling takes many predictions.
    compares : bool
        Whether rows to compare with have to be given.
    n_leaves : int
        Leaves of all trees, which the time for a row grows with; 0 without trees.
    """

    def __init__(self, model: Any) -> None:
        if isinstance(model, PrunedTreeClassifier | PrunedTreeRegressor):
            model = model.estimator_
        self._model = model
        self._scaled = isinstance(model, ScaledTable) and isinstance(
            model.estimator_, LINEAR_MODELS
        )
        self._sum = None if self._scaled else _tree_sum(model)
        trees = [] if self._sum is None else self._sum.scores.trees
        self.n_leaves = sum((tree.node_count + 1) // 2 for tree in trees)
        is_line = isinstance(model, LINEAR_MODELS)
        self.exact = is_line or self._scaled or self._sum is not None
        self.compares = is_line or not self.exact

    def explain(
        self, X: Any, predicted: Any, background: Any = None, *, max_background: int = 100
    ) -> Amounts:
        """Return the contributions of the columns to one output of each row.

        It is the only answer that there is, the one about the second of two classes, or the one
        about the class that is predicted.

        Parameters
        ----------
        X : table
            The rows.
        predicted : array
            What the model predicts for them.
        background : table or None, default=None
            Rows that others than trees are compared with. A line on scaled columns is compared with
            the means that it remembers where there are none.
        max_background : int, default=100
            How many of them are drawn for sampling.
        """
        parts = self._parts(X, background, max_background)
        values, base, about, by_row = parts.values, parts.base, parts.output, False
        names = parts.output_names
        rows = np.arange(len(values))
        if values.shape[2] == 1:
            chosen = np.zeros(len(values), dtype=np.intp)
        elif not names or np.ndim(predicted) != 1:
            raise ValueError(f"model: expected one output, got {values.shape[2]}")
        elif len(names) == 2:
            chosen = np.ones(len(values), dtype=np.intp)
            about = f"{about} of {names[1]}"
        else:
            place = {name: number for number, name in enumerate(names)}
            chosen = np.array([place[str(label)] for label in predicted], dtype=np.intp)
            about, by_row = f"{about} of the predicted class", True
        amounts = values[rows, :, chosen]
        return Amounts(amounts, base[chosen], about, parts.method, by_row, parts.output)

    def _parts(self, X: Any, background: Any, max_background: int) -> Parts:
        model = self._model
        if self._sum is not None:
            return explain_trees(
                model,
                self._sum,
                X,
                None,
                cover="auto",
                interactions=False,
                n_threads=effective_n_jobs(None),
            )
        if self._scaled:
            return _explain_scaled_line(model, X, background)
        if isinstance(model, LINEAR_MODELS):
            return explain_linear(model, X, background, interactions=False)
        return explain_by_sampling(
            model,
            X,
            background,
            n_permutations=1,
            max_background=max_background,
            random_state=0,
        )


def _tree_sum(model: Any) -> TreeSum | None:
    if not type(model).__module__.startswith("spinney.") or isinstance(model, LINEAR_MODELS):
        return None
    try:
        return read_sum(model)
    except NotExpressible:
        return None


def _explain_scaled_line(model: Any, X: Any, background: Any) -> Parts:
    # A column of categories is several numbers to the line: what they add belongs to the column.
    widths = [1 if isinstance(scale, tuple) else len(scale) for scale in model._scales]
    if background is None:
        # Scaled numbers have the mean zero; shares of categories are not kept: each counts once.
        means = [
            np.zeros(1) if isinstance(scale, tuple) else np.full(width, 1 / width)
            for scale, width in zip(model._scales, widths, strict=True)
        ]
        reference = np.concatenate(means)[np.newaxis]
        method = "linear, against the means of the training rows"
        if not all(isinstance(scale, tuple) for scale in model._scales):
            method += ", categories counting once each"
    else:
        reference, method = model._read(background), ""
    parts = explain_linear(model.estimator_, model._read(X), reference, interactions=False)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
    values = np.add.reduceat(parts.values, starts, axis=1)
    return Parts(values, parts.base, parts.output, parts.output_names, method or parts.method)
