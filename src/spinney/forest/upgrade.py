"""Conversion of the version-1 state of forests, from model files and pickles."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.forest.out_of_bag import OutOfBag
from spinney.forest.sampling import TreeSamples
from spinney.models.tree_ensembles import AveragedTrees, IsolationTrees

__all__ = ["upgrade_forest", "upgrade_isolation_forest"]

_RENAMED = {"_centre": "_center", "_oob_factors": "_group_factors"}


def upgrade_forest(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of version 2 of a random forest.

    Estimators that are not fitted have the same attributes in both versions.
    """
    if "_store" not in state:
        return state
    state = {_RENAMED.get(name, name): value for name, value in state.items()}
    for name in ("_n_classes", "_share"):
        state.pop(name, None)
    store = state.pop("_store")
    state["_model"] = AveragedTrees(store, state.pop("_schema"), state.get("classes_"))
    state["_samples"] = TreeSamples(
        state.pop("_seed"),
        state.pop("_n_samples"),
        state.pop("_n_samples_bootstrap", None),
        True,
        state.pop("_sample_weight", None),
    )
    state["_out_of_bag"] = _out_of_bag(state, store.width)
    return state


def _out_of_bag(state: dict[str, Any], width: int) -> OutOfBag | None:
    names = ("_oob_sums", "_oob_squares", "_oob_n_trees", "_oob_curve", "_oob_importances")
    values = {name: state.pop(name, np.empty(0)) for name in names}
    if not len(values["_oob_sums"]):
        return None
    values["_oob_squares"] = values["_oob_squares"].reshape(-1, width)
    return OutOfBag(*values.values())


def upgrade_isolation_forest(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of version 2 of an isolation forest."""
    if "_store" not in state:
        return state
    state = dict(state)
    n_drawn = state.pop("_max_samples")
    state["_model"] = IsolationTrees(state.pop("_store"), state.pop("_schema"), n_drawn)
    state["_samples"] = TreeSamples(
        state.pop("_seed"),
        state.pop("_n_samples"),
        n_drawn,
        bool(state["bootstrap"]),
        state.pop("_sample_weight", None),
    )
    state.pop("_share", None)
    return state
