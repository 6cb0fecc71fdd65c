"""The rules of conformal prediction: how far errors go on rows that a model did not learn from.

A *score* says how badly a target fits what was predicted. Of n scores of rows that are
exchangeable with a new one, the new one is at most the k-th smallest with probability k / (n + 1)
or more: so the k-th is the limit for a coverage of k / (n + 1), whatever the model is worth. Where
that takes more rows than there are, the limit is infinite.
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

_ROUNDING = 1e-9  # 10 * 0.9 must not become a little more than 9
SET_METHODS = ("aps", "lac", "raps")
_RAPS_FREE, _RAPS_PENALTY = 2, 0.05  # ranks without a penalty, and the penalty for each beyond


def check_coverage(coverage: Any, name: str = "coverage") -> float:
    """Return the coverage as a float, or say what was expected."""
    is_number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not is_number or not 0 < float(coverage) < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {coverage!r}")
    return float(coverage)


def largest_score(scores: Floats, coverage: float, weights: Floats | None = None) -> float:
    """Return the limit that a new score stays within with this probability.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of rows that the model did not learn from.
    coverage : float
        Between 0 and 1.
    weights : ndarray of shape (n,) or None
        What each row counts; the new one counts as much as their mean.

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
    place = int(np.searchsorted(counted, needed))
    return math.inf if place == len(order) else float(scores[kept][order[place]])


def smallest_and_largest_error(
    errors: Floats, coverage: float, weights: Floats | None = None
) -> tuple[float, float]:
    """Return limits below and above which a new error lies with probability (1 - coverage) / 2."""
    inside = 1 - (1 - coverage) / 2
    return -largest_score(-errors, inside, weights), largest_score(errors, inside, weights)


def class_scores(shares: Floats, method: str, part: Any = 0.5) -> Floats:
    """Return how badly each class fits: small for those that belong into a set.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Probabilities.
    method : {"aps", "lac", "raps"}
        "lac": one less the probability, which makes the smallest sets. "aps": the probability of
        all likelier classes and a part of its own, so that the sets of rows that are hard to tell
        grow. "raps": the same with a penalty on classes beyond the second, so that sets with very
        many classes stay short.
    part : float or ndarray of shape (n_rows, 1), default=0.5
        The part of a class's own probability that "aps" and "raps" count. Drawn by chance it makes
        the coverage exact where probabilities are tied; a half is as good otherwise.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The scores. The likeliest class of a row scores minus infinity, as no set is without it:
        a limit that counted it among those to be let in would hold more than was asked for.
    """
    shares = np.asarray(shares, dtype=np.float64)
    if method == "lac":
        return _with_best(1 - shares)
    order = np.argsort(-shares, axis=1, kind="stable")
    sorted_shares = np.take_along_axis(shares, order, axis=1)
    scores = np.cumsum(sorted_shares, axis=1) - (1 - part) * sorted_shares
    if method == "raps":
        scores += _RAPS_PENALTY * np.maximum(np.arange(shares.shape[1]) + 1 - _RAPS_FREE, 0)
    out = np.empty_like(scores)
    np.put_along_axis(out, order, scores, axis=1)
    return _with_best(out)


def _with_best(scores: Floats) -> Floats:
    scores[np.arange(len(scores)), scores.argmin(axis=1)] = -math.inf
    return scores


def sets_within(scores: Floats, limit: Any) -> NDArray[np.bool_]:
    """Return which classes score within the limit, of each row at least the likeliest."""
    return np.asarray(scores <= limit)
