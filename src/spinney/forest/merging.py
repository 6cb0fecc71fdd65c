"""Joins the trees that several workers grew into one forest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spinney.forest.out_of_bag import OutOfBag

__all__ = ["merge_forests"]


def merge_forests(forests: list[Any], *, same_rows: bool) -> Any:
    """Join forests into the first one, which is returned.

    Parameters
    ----------
    forests : list of forests
        Estimators of the same class and seed, in the order of their first trees.
    same_rows : bool
        Whether all of them were grown from the same rows. If not, out-of-bag rows and the rows of
        leaves have other numbers in each forest, and are dropped.
    """
    merged = forests[0]
    for forest in forests[1:]:
        merged.fitted_model().store.extend(forest.fitted_model().store)
        if hasattr(merged, "estimators_features_"):
            merged.estimators_features_ = merged.estimators_features_ + forest.estimators_features_
    for name in ("_estimators", "_held_out"):  # they belong to some of the trees
        vars(merged).pop(name, None)
    if "_out_of_bag" not in vars(merged):
        return merged
    if not same_rows:
        merged._out_of_bag = None
        vars(merged).pop("_targets", None)
    elif merged._out_of_bag is not None:
        merged._out_of_bag = _sum([forest._out_of_bag for forest in forests])
    return merged


def _sum(parts: list[OutOfBag]) -> OutOfBag:
    return replace(
        parts[0],
        sums=np.sum([part.sums for part in parts], axis=0),
        squares=np.sum([part.squares for part in parts], axis=0),
        n_trees=np.sum([part.n_trees for part in parts], axis=0),
        curve=np.empty(0),
    )
