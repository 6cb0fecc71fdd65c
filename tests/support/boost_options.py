"""Options of a booster in the core."""

from __future__ import annotations

from typing import Any

from spinney import _core


def boost_options(**changes: Any) -> Any:
    """Return valid options of a booster, with some of them changed."""
    options = {
        "loss": "squared_error",
        "loss_parameter": 0.0,
        "n_scores": 1,
        "n_targets": 1,
        "levels": [],
        "group_starts": [],
        "growth": "best_first",
        "max_leaf_nodes": None,
        "max_depth": None,
        "max_features_tree": 1.0,
        "max_features_level": 1.0,
        "max_features": 1.0,
        "interaction_cst": [],
        "seed": 0,
        "l2_regularization": 0.0,
        "l1_regularization": 0.0,
        "min_split_gain": 0.0,
        "min_hessian_leaf": 0.0,
        "min_samples_leaf": 1,
        "monotonic_cst": [],
        "learning_rate": 0.1,
        "subsample": 1.0,
        "sampling": "uniform",
        "row_ranges": [],
    }
    return _core.BoostOptions(**{**options, **changes})
