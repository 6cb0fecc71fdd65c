"""Rules of conformal prediction: limits from the scores of held-out rows.

A *score* (nonconformity score) measures how badly a target fits its prediction. Let n held-out
rows be exchangeable with a new row. Then the score of the new row is at most the k-th smallest of
their scores with probability k / (n + 1) or more. So the k-th smallest score is the limit for a
coverage of k / (n + 1), for any model. If k is larger than n, the limit is infinite.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SET_METHODS",
    "Floats",
    "check_coverage",
    "class_scores",
    "largest_score",
    "sets_within",
    "smallest_and_largest_error",
]

Floats = NDArray[np.float64]

_ROUNDING = 1e-9  # the product 10 * 0.9 must not be rounded up to more than 9
SET_METHODS = ("aps", "lac", "raps")
_RAPS_FREE, _RAPS_PENALTY = 2, 0.05  # ranks without a penalty, and the penalty per further rank


def check_coverage(coverage: Any, name: str = "coverage") -> float:
    """Return the coverage as a float, or raise a ValueError if it is invalid."""
    is_number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not is_number or not 0 < float(coverage) < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {coverage!r}")
    return float(coverage)


def largest_score(scores: Floats, coverage: float, weights: Floats | None = None) -> float:
    """Return the limit that a new score stays within with this probability.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of held-out rows.
    coverage : float
        The probability, between 0 and 1.
    weights : ndarray of shape (n,) or None
        Weights of the rows; the new row gets their mean.

    Returns
    -------
    float
        The ⌈(n + 1) coverage⌉-th smallest score; infinity if there are fewer.
    """
    if len(scores) == 0:
        return math.inf
    if weights is None:
        rank = math.ceil((len(scores) + 1) * coverage - _ROUNDING)
        if rank > len(scores):
            return math.inf
        return float(np.partition(scores, rank - 1)[rank - 1])
    kept = weights > 0
    if not kept.any():
        return math.inf
    order = np.argsort(scores[kept], kind="stable")
    counted = np.cumsum(weights[kept][order])
    needed = (counted[-1] + weights[kept].mean()) * coverage * (1 - _ROUNDING)
    index = int(np.searchsorted(counted, needed))
    return math.inf if index == len(order) else float(scores[kept][order[index]])


def smallest_and_largest_error(
    errors: Floats, coverage: float, weights: Floats | None = None
) -> tuple[float, float]:
    """Return limits that a new error exceeds with probability (1 - coverage) / 2 each."""
    inside = 1 - (1 - coverage) / 2
    return -largest_score(-errors, inside, weights), largest_score(errors, inside, weights)


def class_scores(probabilities: Floats, method: str, own_share: Any = 0.5) -> Floats:
    """Return the scores of classes: a set consists of the classes with small scores.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Class probabilities.
    method : {"aps", "lac", "raps"}
        "lac": one minus the probability; its sets are the smallest. "aps": the sum of the
        probabilities of all more probable classes and a share of its own; rows with an uncertain
        class get larger sets. "raps": like "aps", plus a penalty for each class beyond the
        second, which keeps sets small if there are very many classes.
    own_share : float or ndarray of shape (n_rows, 1), default=0.5
        The share of a class's own probability that "aps" and "raps" add. With random shares the
        coverage is exact even if probabilities are tied; otherwise 0.5 is as good.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The scores. The most probable class of a row scores minus infinity because every set
        contains it. With its usual score the limit, and so the coverage, would be too high.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if method == "lac":
        return _with_best(1 - probabilities)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    descending = np.take_along_axis(probabilities, order, axis=1)
    scores = np.cumsum(descending, axis=1) - (1 - own_share) * descending
    if method == "raps":
        scores += _RAPS_PENALTY * np.maximum(np.arange(probabilities.shape[1]) + 1 - _RAPS_FREE, 0)
    out = np.empty_like(scores)
    np.put_along_axis(out, order, scores, axis=1)
    return _with_best(out)


def _with_best(scores: Floats) -> Floats:
    scores[np.arange(len(scores)), scores.argmin(axis=1)] = -math.inf
    return scores


def sets_within(scores: Floats, limit: Any) -> NDArray[np.bool_]:
    """Return which classes score at most the limit; each row's most probable one does."""
    return np.asarray(scores <= limit)
