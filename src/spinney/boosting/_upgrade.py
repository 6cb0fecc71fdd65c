"""Conversion of the version-1 state of boosters, from model files and pickles."""

from __future__ import annotations

from typing import Any

from spinney.boosting._fit_plan import Continuation
from spinney.boosting._loss import Loss
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.outcomes import LOG_LINK

__all__ = ["upgrade_booster"]

_OBSOLETE = ("_n_before", "_n_groups", "_group_starts")


def upgrade_booster(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of version 2.

    Estimators that are not fitted have the same attributes in both versions.
    """
    state = {name: value for name, value in state.items() if name not in _OBSOLETE}
    if "_store" not in state:
        return state
    n_scores = state.pop("_n_scores")
    n_targets = state.pop("_n_targets", 1)
    levels = tuple(state.pop("_levels", ()))
    state["_model"] = BoostedTrees(
        link=_link(state, n_scores),
        classes=state.get("classes_"),
        levels=levels,
        n_targets=n_targets,
        store=state.pop("_store"),
        schema=state.pop("_schema"),
        baseline=state.pop("_baseline"),
        n_rounds=state.pop("_n_rounds"),
        n_boosters=state.pop("_n_boosters", 1),
        cover=state.pop("_cover", "rows"),
    )
    loss = Loss(state.pop("_loss_name"), state.pop("_loss_parameter"), n_scores, n_targets, levels)
    state["_continuation"] = Continuation(state.pop("_seed"), loss, state.pop("_last_scores", None))
    return state


def _link(state: dict[str, Any], n_scores: int) -> str:
    loss = state.get("loss")
    if "classes_" in state:
        if len(state["classes_"]) == 1:
            return "constant"
        if n_scores > 1:
            return "softmax"
        return "twice_logistic" if loss == "exponential" else "logistic"
    if isinstance(loss, str) and loss in LOG_LINK:
        return "exponential"
    return "probability" if loss == "cross_entropy" else "identity"
