"""Conversion of CatBoost models: its objects, and its JSON files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from spinney.importing._booster import BoosterSource, make_booster
from spinney.importing._rounding import last_at_most
from spinney.importing._source_file import kind_of, read_bytes
from spinney.importing._trees import SourceTree

__all__ = ["from_catboost"]

# Maps CatBoost's losses to losses with the same function from scores to predictions. Losses without
# a Spinney equivalent whose scores are predictions map to squared error.
_REGRESSION = {
    "RMSE": "squared_error",
    "MultiRMSE": "squared_error",
    "MAE": "absolute_error",
    "Quantile": "quantile",
    "Huber": "huber",
    "Poisson": "poisson",
    "Tweedie": "tweedie",
    "MAPE": "squared_error",
    "Expectile": "squared_error",
    "LogCosh": "squared_error",
    "Lq": "squared_error",
}
_CLASSES = ("Logloss", "CrossEntropy", "MultiClass")
_RANKING = (
    "YetiRank",
    "YetiRankPairwise",
    "PairLogit",
    "PairLogitPairwise",
    "QueryRMSE",
    "QuerySoftMax",
    "StochasticRank",
    "LambdaMart",
)
_DEEPEST = 16  # CatBoost's maximum depth


def from_catboost(model: Any) -> Any:
    """Convert a fitted CatBoost model to a Spinney estimator.

    Parameters
    ----------
    model : catboost.CatBoost, CatBoostClassifier, CatBoostRegressor, CatBoostRanker, str or path
        A fitted model with numeric columns, or a JSON file written by
        ``save_model(…, format="json")``. Reading a file does not require CatBoost.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        Its predictions are the same for every row, and so are its importances. Thresholds are
        adjusted such that rows in double precision take the path that they take after CatBoost's
        rounding.

    Raises
    ------
    ValueError
        For models with columns of categories, texts or embeddings, unsupported losses, a
        probability threshold other than 0.5, and files that CatBoost did not write.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.from_catboost("model.json")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    content = read_bytes(model)
    if content is None:
        if "CatBoost" not in kind_of(model, "catboost"):
            raise TypeError(
                "model: expected a CatBoost model or a path, got " + type(model).__name__
            )
        for kind in ("cat", "text", "embedding"):  # CatBoost cannot write texts and embeddings
            find = getattr(model, f"_get_{kind}_feature_indices", None)
            if find is not None and len(find()) > 0:
                raise ValueError(_NO_CATEGORIES)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            model.save_model(str(path), format="json")
            content = path.read_bytes()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(
            "model: expected JSON written by CatBoost with format='json', got another format"
        ) from None
    try:
        source = _read_model(document)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"model: expected a file written by CatBoost, got another structure ({error!r})"
        ) from None
    return make_booster(source)


_NO_CATEGORIES = (
    "model: expected only numeric columns, got columns of categories, texts or embeddings; "
    "CatBoost's encodings of them are not supported"
)


def _read_model(document: Any) -> BoosterSource:
    """Read a JSON document."""
    columns = document["features_info"]
    if any(columns.get(f"{kind}_features") for kind in ("categorical", "text", "embedding")):
        raise ValueError(_NO_CATEGORIES)
    numbers = sorted(columns["float_features"], key=lambda column: column["feature_index"])
    positions = [int(column["flat_feature_index"]) for column in numbers]
    if sorted(positions) != list(range(len(numbers))):
        raise ValueError(
            f"model: expected each of {len(numbers)} columns once in float_features, got "
            f"{positions}"
        )
    missing_left = [column.get("nan_value_treatment") != "AsTrue" for column in numbers]
    names: list[str] = [""] * len(numbers)
    for column, at in zip(numbers, positions, strict=True):
        names[at] = str(column.get("feature_id", ""))
    scale, bias = document["scale_and_bias"]
    baseline = [float(value) for value in np.ravel(bias)]
    source = _read_loss(document["model_info"], baseline)
    source.n_features = len(numbers)
    source.names = names if all(names) else None
    source.trees = [[] for _ in baseline]
    if not all(tree.get("leaf_weights") for tree in document.get("oblivious_trees", ())):
        source.cover = "unknown"
    for t, tree in enumerate(document.get("oblivious_trees", document.get("trees"))):
        label = f"tree {t}"
        nodes = (
            _oblivious_nodes(tree, len(baseline), label)
            if "oblivious_trees" in document
            else _other_nodes(tree)
        )
        for k in range(len(baseline)):
            source.trees[k].append(
                _make_tree(
                    nodes,
                    k,
                    len(baseline),
                    scale=float(scale),
                    positions=positions,
                    missing_left=missing_left,
                    label=label,
                )
            )
    return source


def _read_loss(info: Any, baseline: list[float]) -> BoosterSource:
    """Return task, loss and initial scores of a model, without trees and columns."""
    described = info["params"]["loss_function"]
    name, given = described["type"], described.get("params", {})
    params: dict[str, Any] = {}
    task, loss, classes = "regress", _REGRESSION.get(name, ""), None
    if name in _CLASSES:
        task, loss = "classify", "log_loss"
        names = info.get("class_params", {}).get("class_names")
        classes = np.array(names) if names else np.arange(max(len(baseline), 2))
        limit = float(info.get("binclass_probability_threshold", 0.5))
        if limit != 0.5:
            raise ValueError(
                f"model: expected a probability threshold of 0.5, got {limit:g}; Spinney predicts "
                "the most probable class, so call set_probability_threshold(0.5) first"
            )
    elif name in _RANKING:
        task, loss = "rank", "ndcg"
    if not loss:
        raise ValueError(
            f"model: CatBoost's loss {name!r} is not supported; expected one of "
            f"{', '.join((*_CLASSES, *_REGRESSION, *_RANKING))}"
        )
    if loss == "quantile":
        params["alpha"] = float(given.get("alpha", 0.5))
    if loss == "tweedie":
        params["tweedie_power"] = float(given.get("variance_power", 1.5))
    return BoosterSource(
        task, loss, [], baseline, 0, classes=classes, params=params, cover="weight"
    )


def _oblivious_nodes(tree: Any, n_scores: int, label: str) -> list[dict[str, Any]]:
    """Return the nodes of an oblivious tree; bit i of a leaf number is split i."""
    splits = tree["splits"] or []
    depth = len(splits)
    if depth > _DEEPEST or len(tree["leaf_values"]) != n_scores << depth:
        raise ValueError(
            f"{label}: expected {n_scores} values for each of 2^{depth} leaves and a depth of at "
            f"most {_DEEPEST}, got {len(tree['leaf_values'])} values"
        )
    weights = tree.get("leaf_weights") or [1.0] * (1 << depth)
    values = np.reshape(tree["leaf_values"], (-1, n_scores))
    gains = [_change_by_bit(values, np.asarray(weights, float), bit) for bit in range(depth)]
    nodes = [
        {
            "split": splits[depth - 1 - level],
            "children": (2 * at + 1, 2 * at + 2),
            "gain": gains[depth - 1 - level] / (1 << level),
        }
        for level in range(depth)
        for at in range((1 << level) - 1, (1 << (level + 1)) - 1)
    ]
    return nodes + [{"value": values[i], "weight": weights[i]} for i in range(1 << depth)]


def _change_by_bit(values: Any, weights: Any, bit: int) -> Any:
    """Return CatBoost's PredictionValuesChange of one split of an oblivious tree.

    This is the weighted sum of squared differences between leaves that only this split separates.
    """
    leaves = np.arange(len(values))
    lower = leaves[leaves & (1 << bit) == 0]
    upper = lower | (1 << bit)
    total = weights[lower] + weights[upper]
    share = weights[lower] * weights[upper] / np.where(total > 0, total, 1.0)
    return (share[:, np.newaxis] * (values[lower] - values[upper]) ** 2).sum(axis=0)


def _other_nodes(root: Any) -> list[dict[str, Any]]:
    """Return the nodes of a tree of any shape, with children after their parents."""
    nodes: list[dict[str, Any]] = []
    level = [root]
    while level:
        n_after = len(nodes) + len(level)
        below: list[Any] = []
        for node in level:
            if "split" in node:
                children = (n_after + len(below), n_after + len(below) + 1)
                nodes.append({"split": node["split"], "children": children})
                below += [node["left"], node["right"]]
            else:
                nodes.append({"value": np.ravel(node["value"]), "weight": node.get("weight", 1.0)})
        level = below
    return nodes


def _make_tree(
    nodes: list[dict[str, Any]],
    score: int,
    n_scores: int,
    *,
    scale: float,
    positions: list[int],
    missing_left: list[bool],
    label: str,
) -> SourceTree:
    """Convert nodes to a tree for one of several scores.

    Parameters
    ----------
    nodes : list of dict
        The nodes, with children after their parents.
    score, n_scores : int
        The score whose leaf values are used, and the number of scores.
    scale : float
        The factor of leaf values.
    positions : list of int
        For each numeric column of CatBoost, its index in the table.
    missing_left : list of bool
        For each numeric column of CatBoost, whether missing values go left.
    label : str
        The name of the tree in errors.
    """
    n = len(nodes)
    left, right, feature = np.full(n, -1), np.full(n, -1), np.full(n, -2)
    border, value, gain = np.zeros(n), np.zeros(n), np.zeros(n)
    to_left = np.zeros(n, dtype=bool)
    weight = np.zeros(n)
    for at in range(n - 1, -1, -1):
        node = nodes[at]
        if "children" not in node:
            if len(node["value"]) != n_scores:
                raise ValueError(
                    f"{label}: expected {n_scores} values in a leaf, got {len(node['value'])}"
                )
            value[at], weight[at] = scale * node["value"][score], node["weight"]
            continue
        split = node["split"]
        if split["split_type"] != "FloatFeature":
            raise ValueError(_NO_CATEGORIES)
        column = int(split["float_feature_index"])
        if not 0 <= column < len(positions):
            raise ValueError(
                f"{label}: expected columns from 0 to {len(positions) - 1}, got {column}"
            )
        left[at], right[at] = node["children"]
        feature[at], border[at], to_left[at] = (
            positions[column],
            split["border"],
            missing_left[column],
        )
        a, b = left[at], right[at]
        weight[at] = weight[a] + weight[b]
        if weight[at] > 0:
            # CatBoost's PredictionValuesChange: the weighted variance between both children.
            gain[at] = weight[a] * weight[b] / weight[at] * (value[a] - value[b]) ** 2
            value[at] = (weight[a] * value[a] + weight[b] * value[b]) / weight[at]
        if "gain" in node:
            gain[at] = scale**2 * node["gain"][score]
    rows = np.rint(np.clip(weight, 0, 2**31 - 1)).astype(np.int64)
    limits = last_at_most(border)
    return SourceTree(
        left, right, feature, limits, to_left, value[:, np.newaxis], weight, rows, gain
    )
