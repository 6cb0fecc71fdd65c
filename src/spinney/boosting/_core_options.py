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
    options = _core.BoostOptions()
    options.set_loss(plan.loss.name, plan.loss.parameter, plan.loss.n_scores)
    options.set_growth(settings.growth)
    options.groups = list(plan.data.given.group_starts)
    options.stretches = plan.data.workers.numbers.ranges
    options.learning_rate = float(settings.learning_rate)
    options.first_round = plan.n_rounds_before
    options.subsample = float(settings.subsample)
    options.by_gradient = estimator.sampling == "gradient"
    options.levels = list(plan.loss.levels)
    options.n_targets = plan.loss.n_targets
    options.n_threads = plan.n_threads
    unlimited = np.iinfo(np.int32).max
    leaves = settings.max_leaf_nodes
    options.max_leaves = unlimited if leaves is None else int(leaves)
    options.max_depth = unlimited if estimator.max_depth is None else int(estimator.max_depth)
    options.tree_columns = float(estimator.max_features_tree)
    options.level_columns = float(estimator.max_features_level)
    options.node_columns = float(settings.max_features)
    options.seed = seed
    # The core compares these with sums of weighted derivatives: divide them like the weights.
    options.l2 = _scaled(settings.l2_regularization, weight_exponent)
    options.l1 = _scaled(estimator.l1_regularization, weight_exponent)
    options.min_gain = _scaled(estimator.min_split_gain, weight_exponent)
    options.min_hessian = _scaled(estimator.min_hessian_leaf, weight_exponent)
    options.min_rows = int(settings.min_samples_leaf)
    options.monotonic = bins.extend_signs(_monotonic_signs(estimator, plan))
    options.interactions = bins.extend_sets(
        interaction_sets(estimator.interaction_cst, estimator.n_features_in_)
    )
    return options


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
