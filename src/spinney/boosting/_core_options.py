"""Options of the core from the settings of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_monotonic_cst

from spinney import _core
from spinney.boosting._bins import Bins
from spinney.boosting._fit_plan import FitPlan
from spinney.boosting._interaction_sets import interaction_sets
from spinney.boosting._settings import Settings

__all__ = ["core_options"]

_LARGEST_PENALTY = 1e100  # with weights of about 1, no split is made and leaf values are zero


def core_options(
    estimator: Any,
    plan: FitPlan,
    settings: Settings,
    bins: Bins,
    *,
    weight_exponent: int,
    seed: int,
) -> Any:
    """Return the core's options of one booster.

    Parameters
    ----------
    estimator : BaseBoosting
        Parameters that are not part of `settings`.
    plan : FitPlan
        The loss, the rows and the number of threads.
    settings : Settings
        Parameters without "auto".
    bins : Bins
        The bins, which may have additional columns.
    weight_exponent : int
        The weights were divided by two to this power.
    seed : int
        The seed of this booster.
    """

    # The core compares penalties with sums of weighted derivatives: divide them like the weights.
    def penalty(number: Any) -> float:
        return _scaled(number, weight_exponent)

    max_leaf_nodes, max_depth = settings.max_leaf_nodes, estimator.max_depth
    return _core.BoostOptions(
        loss=plan.loss.name,
        loss_parameter=plan.loss.parameter,
        n_scores=plan.loss.n_scores,
        n_targets=plan.loss.n_targets,
        levels=list(plan.loss.levels),
        group_starts=list(plan.data.given.group_starts),
        growth=settings.growth,
        max_leaf_nodes=None if max_leaf_nodes is None else int(max_leaf_nodes),
        max_depth=None if max_depth is None else int(max_depth),
        max_features_tree=float(estimator.max_features_tree),
        max_features_level=float(estimator.max_features_level),
        max_features=float(settings.max_features),
        interaction_cst=bins.extend_sets(
            interaction_sets(estimator.interaction_cst, estimator.n_features_in_)
        ),
        seed=seed,
        l2_regularization=penalty(settings.l2_regularization),
        l1_regularization=penalty(estimator.l1_regularization),
        min_split_gain=penalty(estimator.min_split_gain),
        min_hessian_leaf=penalty(estimator.min_hessian_leaf),
        min_samples_leaf=int(settings.min_samples_leaf),
        monotonic_cst=bins.extend_signs(_monotonic_signs(estimator, plan)),
        learning_rate=float(settings.learning_rate),
        subsample=float(settings.subsample),
        sampling=estimator.sampling,
        row_ranges=plan.data.workers.numbers.ranges,
    )


def _monotonic_signs(estimator: Any, plan: FitPlan) -> list[int]:
    """Return the monotonic constraint of each column; an empty list if there are none."""
    if estimator.monotonic_cst is None:
        return []
    signs = _check_monotonic_cst(estimator, estimator.monotonic_cst)
    if signs.ndim != 1:
        raise ValueError(f"monotonic_cst: expected one sign per column, got {signs.ndim} axes")
    categories = plan.data.schema.categories
    if any(sign and categories[column] is not None for column, sign in enumerate(signs)):
        raise ValueError("Categorical features cannot have monotonic constraints.")
    if plan.loss.n_targets > 1 and signs.any():
        raise ValueError("monotonic_cst: expected one output, got several")
    if is_classifier(estimator) and plan.loss.n_scores > 1 and signs.any():
        raise ValueError("monotonic constraints are not supported for multiclass classification")
    return [int(sign) for sign in signs] if signs.any() else []


def _scaled(number: Any, exponent: int) -> float:
    """Divide a number by 2**exponent."""
    if exponent == 0:
        return float(number)
    with np.errstate(over="ignore"):
        return min(float(np.ldexp(float(number), -exponent)), _LARGEST_PENALTY)
