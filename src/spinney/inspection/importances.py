"""Importances of columns with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.inspection.table_view import TableView

__all__ = ["Importances", "own_importances", "score_name"]

Floats = NDArray[np.float64]

_LABELS = {  # of a forest's `importance_type`
    "impurity": "share in the decrease of the impurity",
    "corrected": "decrease of the impurity in out-of-bag rows",
    "permutation": "decrease of the out-of-bag score when shuffled",
}


@dataclass(frozen=True)
class Importances:
    """Importances of columns, or of groups of columns, in the requested order.

    Attributes
    ----------
    names : list of str
        The columns.
    mean : ndarray of shape (n_columns,)
        The importance.
    error : ndarray of shape (n_columns,)
        Its standard error; NaN if it is unknown.
    kind : str
        A description of the kind of importance.
    each : ndarray of shape (n_columns, n_times)
        The importance by repeat, tree or fold; empty if there are none.
    """

    names: list[str]
    mean: Floats
    error: Floats
    kind: str
    each: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def spread(self) -> Floats:
        """The standard deviation over repeats, trees or folds; NaN if there are none."""
        if self.each.size == 0:
            return np.full(len(self.mean), np.nan)
        return self.each.std(axis=1)

    def largest(self, n: int) -> NDArray[np.intp]:
        """Return the n most important columns, the most important one first."""
        return np.argsort(-self.mean, kind="stable")[:n]

    def interval(self, coverage: float = 0.95) -> tuple[Floats, Floats]:
        """Return lower and upper ends of normal confidence intervals.

        Parameters
        ----------
        coverage : float, default=0.95
            The confidence level, between 0 and 1.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage: expected a number between 0 and 1, got {coverage}")
        half = float(ndtri(0.5 + coverage / 2)) * self.error
        return self.mean - half, self.mean + half


def own_importances(model: Any, X: Any = None) -> Importances:
    """Return ``feature_importances_``, for forests with standard errors."""
    check_is_fitted(model)
    mean = getattr(model, "feature_importances_", None)
    if mean is None:
        raise ValueError(
            f"model: expected one with feature_importances_, got {type(model).__name__}; "
            "give X and y to calculate permutation importances, which every model has"
        )
    mean = np.asarray(mean, dtype=np.float64)
    names = getattr(model, "feature_names_in_", None)
    if names is None and X is not None:
        names = TableView(X, model).names
    if names is None:
        names = [f"column {j}" for j in range(len(mean))]
    each = np.empty((0, 0))
    kind = getattr(model, "importance_type", "impurity")
    members = getattr(model, "estimators_", None)
    if members is not None and not isinstance(members, np.ndarray) and len(members) > 1:
        of_members = [getattr(member, "feature_importances_", None) for member in members]
        if all(one is not None and len(one) == len(mean) for one in of_members):
            shares = np.array(of_members)
            # True for forests. The trees of boosting, for example, have different weights.
            if np.allclose(shares.mean(axis=0), mean, atol=1e-3):
                each = shares.T
    error = standard_errors(each) if each.size else np.full(len(mean), np.nan)
    return Importances([str(name) for name in names], mean, error, _LABELS.get(kind, kind), each)


def standard_errors(each: Floats) -> Floats:
    """Return standard errors of the rows' means; columns are independent samples."""
    if each.shape[1] < 2:
        return np.full(len(each), np.nan)
    return each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])


def score_name(model: Any, scoring: Any) -> str:
    """Return the name of a score for labels."""
    if scoring is None:
        return "accuracy" if is_classifier(model) else "R²"
    if isinstance(scoring, str):
        return "R²" if scoring == "r2" else scoring.replace("_", " ")
    return str(getattr(scoring, "__name__", "score")).replace("_", " ")
