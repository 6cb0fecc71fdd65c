"""Rank models, test their differences, and find the simplest of the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spinney.comparison.comparison import Estimate, ModelResult

__all__ = ["paired_difference", "rank", "simplest_within_one_error"]

_LEVEL = 0.05


def paired_difference(
    worse: Sequence[float], better: Sequence[float], test_share: float
) -> tuple[Estimate, float | None]:
    """Return the mean difference of two models over the folds, and its p-value.

    The folds' training rows overlap, so the usual standard error is too small. Nadeau and
    Bengio (2003) increase the variance of the mean from s²/k to s² (1/k + test rows / training
    rows); the t test then has approximately its nominal level.

    Parameters
    ----------
    worse, better : sequence of float
        The losses of both models on the same folds.
    test_share : float
        Test rows / training rows of a fold.

    Returns
    -------
    difference : Estimate
        The mean of worse − better, with the corrected standard error.
    p_value : float or None
        Two-sided p-value of no difference; None for a single fold.
    """
    differences = [a - b for a, b in zip(worse, better, strict=True)]
    plain = Estimate.from_folds(differences)
    n_folds = len(differences)
    if n_folds == 1:
        return plain, None
    se = plain.se * math.sqrt(1 + n_folds * test_share)
    difference = Estimate(plain.mean, se, plain.folds)
    if se == 0:
        return difference, 1.0 if plain.mean == 0 else 0.0
    # Imported late, for start-up time.
    from scipy.special import stdtr

    return difference, float(2 * stdtr(n_folds - 1, -abs(plain.mean) / se))


def rank(results: list[ModelResult], sign: float, test_share: float) -> list[ModelResult]:
    """Sort by the metric (times `sign`, less is better) and compare each model with the best.

    Models without an estimate come last; ties keep their order.
    """
    ranked = sorted(
        (r for r in results if r.estimate is not None),
        key=lambda r: sign * r.estimate.mean if r.estimate else math.inf,
    )
    others = [r for r in results if r.estimate is None]
    if not ranked or ranked[0].estimate is None:
        return others
    best = [sign * score for score in ranked[0].estimate.folds]
    compared = [ranked[0]]
    for result in ranked[1:]:
        assert result.estimate is not None
        losses = [sign * score for score in result.estimate.folds]
        behind, p_value = paired_difference(losses, best, test_share)
        tied = p_value is not None and p_value > _LEVEL
        compared.append(replace(result, behind=behind, p_value=p_value, tied=tied))
    return compared + others


def simplest_within_one_error(
    ranked: list[ModelResult], sign: float, complexity: Mapping[str, int]
) -> str | None:
    """Return the simplest model within one standard error of the best, if simpler than it.

    `complexity` maps names to ranks; of equally simple models, the best is returned.
    """
    if not ranked or ranked[0].estimate is None or math.isnan(ranked[0].estimate.se):
        return None
    limit = sign * ranked[0].estimate.mean + ranked[0].estimate.se
    within = [r.name for r in ranked if r.estimate and sign * r.estimate.mean <= limit]
    simplest = min(within, key=lambda name: complexity[name])  # ties: the best
    return simplest if complexity[simplest] < complexity[ranked[0].name] else None
