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
from spinney.inspection.shap.trees import ShapResult, TreeSum, explain_trees, read_sum
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
        The contributions; `base` plus their sum is the output.
    base : ndarray of shape (n_rows,)
        The mean output over the background.
    about : str
        The explained output: "prediction", "log-odds of yes" and so on.
    method : str
        A description of the method.
    by_row : bool
        Whether each row's output is that of its own predicted class.
    output : str
        The kind of output without a class: "prediction", "log-odds".
    """

    values: Floats
    base: Floats
    about: str
    method: str
    by_row: bool
    output: str


class ModelExplainer:
    """Calculates contributions of columns to predictions, for the rows of many tables.

    Trees, sums of trees and linear models are explained exactly, others by sampling. The features
    are the columns of the table, even if the model scales or encodes them first.

    Parameters
    ----------
    model : fitted estimator
        The model.

    Attributes
    ----------
    exact : bool
        Whether the contributions are exact; sampling needs many predictions.
    compares : bool
        Whether `explain` needs a background.
    n_leaves : int
        Leaves of all trees; the time per row is proportional to it. 0 without trees.
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
        is_linear = isinstance(model, LINEAR_MODELS)
        self.exact = is_linear or self._scaled or self._sum is not None
        self.compares = is_linear or not self.exact

    def explain(
        self, X: Any, predicted: Any, background: Any = None, *, max_background: int = 100
    ) -> Amounts:
        """Return the contributions of the columns to one output of each row.

        The output is the only one of the model, the one of the second of two classes, or the one
        of the predicted class.

        Parameters
        ----------
        X : table
            The rows.
        predicted : array
            The model's predictions for them.
        background : table or None, default=None
            Rows to compare with; not used by trees. By default, linear models with scaled columns
            use the means of their training rows.
        max_background : int, default=100
            The number of these rows that sampling uses.
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
            index_of = {name: index for index, name in enumerate(names)}
            chosen = np.array([index_of[str(label)] for label in predicted], dtype=np.intp)
            about, by_row = f"{about} of the predicted class", True
        amounts = values[rows, :, chosen]
        return Amounts(amounts, base[chosen], about, parts.method, by_row, parts.output)

    def _parts(self, X: Any, background: Any, max_background: int) -> ShapResult:
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
            return _explain_scaled_linear(model, X, background)
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


def _explain_scaled_linear(model: Any, X: Any, background: Any) -> ShapResult:
    # A column of categories has several coefficients: its contribution is their sum.
    widths, numeric = model.column_widths(), model.is_numeric()
    if background is None:
        # Scaled columns have mean zero. The model does not store the shares of categories, so that
        # each category gets the same weight.
        means = [
            np.zeros(1) if is_numeric else np.full(width, 1 / width)
            for is_numeric, width in zip(numeric, widths, strict=True)
        ]
        reference = np.concatenate(means)[np.newaxis]
        method = "linear, against the means of the training rows"
        if not all(numeric):
            method += ", categories counting once each"
    else:
        reference, method = model.scaled_columns(background), ""
    parts = explain_linear(model.estimator_, model.scaled_columns(X), reference, interactions=False)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
    values = np.add.reduceat(parts.values, starts, axis=1)
    return ShapResult(values, parts.base, parts.output, parts.output_names, method or parts.method)
