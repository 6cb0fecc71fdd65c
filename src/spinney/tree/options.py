"""Growth options of a tree in an ensemble, whose columns and targets the ensemble has read."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from spinney.data.table import Schema

__all__ = ["n_features_drawn", "tree_options"]


def n_features_drawn(max_features: Any, n_features: int) -> int:
    """Return `max_features` as a number of features.

    Parameters
    ----------
    max_features : int, float, {"sqrt", "log2"} or None
        The parameter of the tree; a float is a share of the features, None means all.
    n_features : int
        Number of features of the table.
    """
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        root = np.sqrt(n_features) if max_features == "sqrt" else np.log2(n_features)
        return max(1, int(root))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(max_features * n_features))


def tree_options(
    learner: Any,
    schema: Schema,
    n_rows: int,
    *,
    n_outputs: int,
    n_classes: Any = None,
    **others: Any,
) -> Any:
    """Return the core's growth options of an unfitted tree, and leave the tree as it is.

    Parameters
    ----------
    learner : DecisionTreeClassifier, DecisionTreeRegressor or a subclass
        The tree with valid parameters.
    schema : Schema
        Columns of the training table.
    n_rows : int
        Number of training rows; each has weight 1 / `n_rows`.
    n_outputs : int
        Number of targets.
    n_classes : int or array, default=None
        Number of classes of each target; None for regression.
    **others
        Further options of the core; they replace those of the parameters.
    """
    # A copy of the attributes: the constructor and `get_params` take longer than a small fit.
    tree: Any = object.__new__(type(learner))
    vars(tree).update(vars(learner))
    tree.n_features_in_ = len(schema.categories)
    tree.categories_ = list(schema.categories)
    tree.n_outputs_ = n_outputs
    if n_classes is not None:
        tree.n_classes_ = n_classes
    return tree._grow_options(n_rows, 1.0, **others)
