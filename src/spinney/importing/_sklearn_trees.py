"""Conversion of scikit-learn trees, forests and boosters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from spinney.data.table import Schema, set_columns, set_schema
from spinney.forest.sampling import TreeSamples
from spinney.importing._booster import BoosterSource, make_booster
from spinney.importing._rounding import last_at_most
from spinney.importing._trees import SourceTree
from spinney.models.forest_store import ForestStore
from spinney.models.tree import Tree
from spinney.models.tree_ensembles import AveragedTrees

__all__ = ["read_booster", "read_forest", "read_hist_booster", "read_tree", "shared_params"]

_HIST_LOSSES = {"log_loss", "squared_error", "absolute_error", "gamma", "poisson", "quantile"}


def shared_params(model: Any, target: type) -> dict[str, Any]:
    """Return the model's parameters that the Spinney class also has."""
    known = target()._get_param_names()  # type: ignore[attr-defined]
    params = {k: v for k, v in model.get_params(deep=False).items() if k in known}
    if params.get("criterion") == "friedman_mse":
        params["criterion"] = "squared_error"  # the equivalent criterion
    return params


def _tree_arrays(tree: Any) -> dict[str, Any]:
    """Return the arrays of scikit-learn's ``tree_`` under Spinney's names.

    scikit-learn rounds rows to float32 before it compares them. The thresholds are adjusted for
    that.
    """
    n = tree.node_count
    inner = tree.children_left >= 0
    return {
        "children_left": tree.children_left.astype(np.int64),
        "children_right": tree.children_right.astype(np.int64),
        "feature": tree.feature.astype(np.int64),
        "threshold": np.where(inner, _double_thresholds(tree), -2.0),
        "missing_go_to_left": (inner & (tree.missing_go_to_left != 0)).astype(np.uint8),
        "impurity": tree.impurity.astype(np.float64),
        "n_node_samples": tree.n_node_samples.astype(np.int64),
        "weighted_n_node_samples": tree.weighted_n_node_samples.astype(np.float64),
        "value": np.ascontiguousarray(tree.value, dtype=np.float64).ravel(),
        "category_start": np.full(n, -1, dtype=np.int64),
        "category_bits": np.empty(0, dtype=np.uint32),
        "max_depth": int(tree.max_depth),
    }


def _double_thresholds(tree: Any) -> Any:
    """Return thresholds for rows in double precision."""
    return np.where(np.isinf(tree.threshold), tree.threshold, last_at_most(tree.threshold))


def _numeric_schema(source: Any) -> Schema:
    """Return the schema of a model of scikit-learn, which has numeric columns only."""
    names = getattr(source, "feature_names_in_", None)
    return Schema(names, (None,) * source.n_features_in_)


def read_tree(source: Any, target: type) -> Any:
    """Convert a fitted tree to a Spinney tree."""
    model: Any = target(**shared_params(source, target))
    set_schema(model, _numeric_schema(source))
    model.n_outputs_ = source.n_outputs_
    model.max_features_ = source.max_features_
    n_classes: Any = np.ones(source.n_outputs_, dtype=np.intp)
    if hasattr(source, "classes_"):
        model.classes_, model.n_classes_ = source.classes_, source.n_classes_
        n_classes = np.atleast_1d(source.n_classes_)
    model.tree_ = Tree.from_arrays(
        _tree_arrays(source.tree_),
        n_features=source.n_features_in_,
        n_classes=n_classes,
        n_categories=np.zeros(source.n_features_in_, dtype=np.int32),
    )
    return model


def read_forest(source: Any, target: type) -> Any:
    """Convert a fitted forest to a Spinney forest."""
    params = shared_params(source, target)
    model: Any = target(**{**params, "warm_start": False, "oob_score": False})
    schema = _numeric_schema(source)
    set_columns(model, schema)
    model.n_outputs_ = source.n_outputs_
    n_classes: Any = []
    if hasattr(source, "classes_"):
        model.classes_, model.n_classes_ = source.classes_, source.n_classes_
        n_classes = np.atleast_1d(source.n_classes_)
    store = ForestStore(
        model.criterion,
        n_classes,
        source.n_outputs_,
        not len(n_classes),
        schema.n_categories,
    )
    for tree in source.estimators_:
        store.core.append(_tree_arrays(tree.tree_))
    n_rows = int(source.estimators_[0].tree_.n_node_samples[0])
    model.set_fitted_model(
        AveragedTrees(store, schema, getattr(model, "classes_", None)),
        TreeSamples(0, n_rows, n_rows if source.bootstrap else None),
    )
    return model


def read_booster(source: Any) -> Any:
    """Convert scikit-learn's `GradientBoosting*` to a Spinney booster."""
    if not (isinstance(source.init_, DummyClassifier | DummyRegressor) or source.init_ == "zero"):
        raise ValueError(
            f"model: expected constant initial scores, got init={type(source.init_).__name__}"
        )
    n = source.n_features_in_
    baseline = source._raw_predict_init(np.zeros((1, n), dtype=np.float32))[0]
    trees = [
        [_booster_tree(tree.tree_, source.learning_rate) for tree in source.estimators_[:, k]]
        for k in range(source.estimators_.shape[1])
    ]
    params = {"learning_rate": source.learning_rate}
    if source.loss in ("quantile", "huber"):
        params["alpha"] = source.alpha
    names = getattr(source, "feature_names_in_", None)
    return make_booster(
        BoosterSource(
            "classify" if hasattr(source, "classes_") else "regress",
            source.loss,
            trees,
            baseline.tolist(),
            n,
            names,
            classes=getattr(source, "classes_", None),
            params=params,
        )
    )


def _booster_tree(tree: Any, learning_rate: float) -> SourceTree:
    weight = tree.weighted_n_node_samples
    total = weight * tree.impurity
    left, right = tree.children_left, tree.children_right
    return SourceTree(
        left,
        right,
        tree.feature,
        np.where(left < 0, 0.0, _double_thresholds(tree)),
        tree.missing_go_to_left != 0,
        learning_rate * tree.value[:, 0, :1],
        weight,
        tree.n_node_samples,
        np.where(left < 0, 0.0, total - total[left] - total[right]),
    )


def read_hist_booster(source: Any) -> Any:
    """Convert scikit-learn's `HistGradientBoosting*` to a Spinney booster."""
    if source.loss not in _HIST_LOSSES:
        raise ValueError(
            f"model: expected a loss among {sorted(_HIST_LOSSES)}, got {source.loss!r}"
        )
    n = source.n_features_in_
    categories: list[Any] = [None] * n
    column = np.arange(
        n
    )  # from the trees' column order, where categories come first, to the table's
    if source._preprocessor is not None:
        is_categorical = np.asarray(source.is_categorical_)
        column = np.concatenate([np.flatnonzero(is_categorical), np.flatnonzero(~is_categorical)])
        encoder = source._preprocessor.named_transformers_["encoder"]
        for f, values in zip(column, encoder.categories_, strict=False):
            known = [v for v in values.tolist() if v is not None and v == v]
            categories[f] = np.array(known, dtype=values.dtype)
    n_scores = len(source._predictors[0])
    trees = [
        [_hist_tree(of_round[k], column, categories) for of_round in source._predictors]
        for k in range(n_scores)
    ]
    params = {"learning_rate": source.learning_rate}
    if source.loss == "quantile":
        params["alpha"] = source.quantile
    return make_booster(
        BoosterSource(
            "classify" if hasattr(source, "classes_") else "regress",
            source.loss,
            trees,
            np.ravel(source._baseline_prediction).tolist(),
            n,
            getattr(source, "feature_names_in_", None),
            categories,
            classes=getattr(source, "classes_", None),
            params=params,
        )
    )


def _hist_tree(predictor: Any, column: Any, categories: list[Any]) -> SourceTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    feature = np.where(leaf, -2, column[np.where(leaf, 0, nodes["feature_idx"])])
    listed = {}
    for node in np.flatnonzero(~leaf & (nodes["is_categorical"] != 0)).tolist():
        words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]].astype(np.uint32)
        bits = (words[:, np.newaxis] >> np.arange(32, dtype=np.uint32)) & 1
        codes = np.flatnonzero(bits)
        listed[node] = codes[codes < len(categories[feature[node]])]
    return SourceTree(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        feature,
        nodes["num_threshold"],
        nodes["missing_go_to_left"] != 0,
        nodes["value"][:, np.newaxis],
        nodes["count"].astype(np.float64),
        nodes["count"].astype(np.int64),
        np.where(leaf, 0.0, nodes["gain"]),
        left_categories=listed,
    )
