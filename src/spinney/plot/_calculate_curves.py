"""Cross-validated scores by number of training rows or value of a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.model_selection import learning_curve as score_by_size
from sklearn.model_selection import validation_curve as score_by_value

from spinney.inspection.importances import score_name
from spinney.inspection.table_view import as_vector

__all__ = ["ScoreCurve", "calculate_learning_curve", "calculate_validation_curve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreCurve:
    """Scores at each value of a curve, in each fold.

    Attributes
    ----------
    values : list
        Numbers of training rows, or values of the parameter.
    train, test : ndarray of shape (n_values, n_folds)
        Scores on training rows and on held-out rows; NaN where a fit failed.
    score : str
        The name of the score.
    """

    values: list[Any]
    train: Floats
    test: Floats
    score: str

    def mean(self, of: str) -> Floats:
        """Return the mean over the folds of "train" or "test"."""
        scores = getattr(self, of)
        n = (~np.isnan(scores)).sum(axis=1)
        return np.where(n > 0, np.nansum(scores, axis=1) / np.maximum(n, 1), math.nan)

    def standard_error(self, of: str) -> Floats:
        """Return the standard error of that mean; NaN with a single fold."""
        scores = getattr(self, of)
        n = (~np.isnan(scores)).sum(axis=1)
        with np.errstate(all="ignore"):
            spread = np.sqrt(np.nansum((scores - self.mean(of)[:, None]) ** 2, axis=1) / (n - 1))
            return np.where(n > 1, spread / np.sqrt(n), math.nan)


def calculate_learning_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sizes: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> ScoreCurve:
    """Cross-validate a model with increasing numbers of training rows."""
    y = as_vector(y)
    sizes = np.linspace(0.1, 1.0, 8) if sizes is None else np.asarray(sizes)
    if sizes.ndim != 1 or not len(sizes):
        raise ValueError(f"sizes: expected numbers or shares of rows, got {sizes.tolist()}")
    n_train, train, test = score_by_size(
        model,
        X,
        y,
        train_sizes=sizes,
        cv=_folds(model, cv, random_state),
        scoring=scoring,
        n_jobs=n_jobs,
        shuffle=True,  # otherwise the first rows of a sorted table would all be of one class
        random_state=random_state,
    )
    return ScoreCurve(
        [int(n) for n in n_train], *_without_failed(train, test), score_name(model, scoring)
    )


def calculate_validation_curve(
    model: Any,
    X: Any,
    y: Any,
    param: str,
    values: Sequence[Any],
    *,
    cv: Any = 5,
    scoring: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> ScoreCurve:
    """Cross-validate a model for each value of a parameter."""
    known = model.get_params()
    if param not in known:
        some = ", ".join(sorted(known)[:8])
        raise ValueError(
            f"param: expected a parameter of {type(model).__name__} ({some}, …), got {param!r}"
        )
    values = list(values)
    if not values:
        raise ValueError("values: expected at least one value of the parameter, got none")
    train, test = score_by_value(
        model,
        X,
        as_vector(y),
        param_name=param,
        param_range=values,
        cv=_folds(model, cv, random_state),
        scoring=scoring,
        n_jobs=n_jobs,
    )
    return ScoreCurve(values, train, test, score_name(model, scoring))


def _folds(model: Any, cv: Any, random_state: Any) -> Any:
    """Return shuffled folds if `cv` is a number, otherwise `cv` itself."""
    if not isinstance(cv, int | np.integer):
        return cv
    kind = StratifiedKFold if is_classifier(model) else KFold
    return kind(int(cv), shuffle=True, random_state=random_state)


def _without_failed(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Set training and test scores to NaN where a fit failed."""
    failed = np.isnan(train) | np.isnan(test)
    return np.where(failed, np.nan, train), np.where(failed, np.nan, test)
