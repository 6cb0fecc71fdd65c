"""Which models can be told apart, and which is the simplest that will do."""

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
    """Compare two models fold by fold.

    The folds' training rows overlap, so that the usual error of the mean is too small. Nadeau and
    Bengio (2003) widen the variance of the mean from s²/k to s² (1/k + rows tested / rows learned
    from); with it a t test has about the level that it claims.

    Parameters
    ----------
    worse, better : sequence of float
        The losses of both on the same folds.
    test_share : float
        Rows of a test fold for each row of its training fold.

    Returns
    -------
    difference : Estimate
        The mean of worse − better, with that error.
    p_value : float or None
        Of the two-sided test that there is none; one fold tells nothing.
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
    from scipy.special import stdtr

    return difference, float(2 * stdtr(n_folds - 1, -abs(plain.mean) / se))


def rank(results: list[ModelResult], sign: float, test_share: float) -> list[ModelResult]:
    """Sort by the measure (times `sign`, less is better) and compare each model with the best.

    Models without an estimate come last; of equals the one listed earlier stays first.
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

    `complexity` has a number for each name; of equally simple models the better one is returned.
    """
    if not ranked or ranked[0].estimate is None or math.isnan(ranked[0].estimate.se):
        return None
    limit = sign * ranked[0].estimate.mean + ranked[0].estimate.se
    within = [r.name for r in ranked if r.estimate and sign * r.estimate.mean <= limit]
    simplest = min(within, key=lambda name: complexity[name])  # the first, so the best, of equals
    return simplest if complexity[simplest] < complexity[ranked[0].name] else None
