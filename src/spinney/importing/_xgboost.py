"""Conversion of XGBoost models: its objects, and its JSON and UBJSON files."""

from __future__ import annotations

import itertools
import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.importing._booster import BoosterSource, make_booster
from spinney.importing._rounding import last_below
from spinney.importing._source_file import kind_of, read_bytes
from spinney.importing._trees import SourceTree
from spinney.importing._ubjson import read_ubjson

__all__ = ["from_xgboost"]

# Maps XGBoost's objectives to losses with the same function from scores to predictions. Objectives
# without a Spinney loss whose scores are predictions map to squared error.
_REGRESSION = {
    "reg:squarederror": "squared_error",
    "reg:linear": "squared_error",
    "reg:squaredlogerror": "squared_error",
    "reg:pseudohubererror": "squared_error",
    "reg:absoluteerror": "absolute_error",
    "reg:quantileerror": "quantile",
    "reg:logistic": "cross_entropy",
    "count:poisson": "poisson",
    "reg:gamma": "gamma",
    "reg:tweedie": "tweedie",
}
# Files with larger numbers are rejected as malformed before memory is allocated.
_MOST_FEATURES = 1 << 20
_MOST_CATEGORIES = 1 << 18
_TWO_CLASSES = ("binary:logistic", "binary:logitraw")
_CLASSES = ("multi:softprob", "multi:softmax")
_RANKING = {"rank:ndcg": "ndcg", "rank:map": "ndcg", "rank:pairwise": "pairwise"}


def from_xgboost(model: Any) -> Any:
    """Convert a fitted XGBoost model to a Spinney estimator.

    Parameters
    ----------
    model : xgboost.Booster, XGBClassifier, XGBRegressor, XGBRanker, XGBRF*, str or path
        A fitted model, or a JSON or UBJSON file written by `save_model`. Reading a file does not
        require XGBoost. After early stopping, estimators and their files are converted up to the
        best round, which XGBoost uses for predictions; a `Booster` is converted completely.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        Its predictions are the same for every row up to the rounding of XGBoost's sums, which are
        in single precision. Thresholds are adjusted such that rows in double precision take the
        path that they take after XGBoost's rounding. Unknown categories follow the missing values.

    Raises
    ------
    ValueError
        For linear models, unsupported objectives, estimators with `missing` other than NaN, and
        files that XGBoost did not write.

    Warns
    -----
    UserWarning
        For ``binary:logitraw``: `XGBClassifier.predict` returns class 1 where the raw score is
        above 0.5, Spinney where it is above 0, which is a probability of 0.5.

    Notes
    -----
    A clone can be fitted again. Objectives without a counterpart among Spinney's losses, and models
    of several quantiles, are imported with ``loss="squared_error"``; a new fit minimizes that.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.from_xgboost("model.json")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    content = read_bytes(model)
    only_best = False
    if content is None:
        names = kind_of(model, "xgboost")
        if not names & {"Booster", "XGBModel"}:
            raise TypeError(
                "model: expected an xgboost.Booster, an XGBoost estimator or a path, got "
                f"{type(model).__name__}"
            )
        if "XGBModel" in names:
            if model.missing is not None and not np.isnan(model.missing):
                raise ValueError(
                    f"model: expected missing=NaN, got missing={model.missing}; Spinney treats "
                    "only NaN as missing"
                )
            only_best = True
            model = model.get_booster()
        content = bytes(model.save_raw("json"))
    if content[:1] == b"{" and content[1:2] in (b'"', b" ", b"\n", b"\r", b"\t", b"}"):
        try:
            document = json.loads(content)
        except ValueError as error:
            raise ValueError(f"model: expected a JSON file of XGBoost: {error}") from None
    else:
        document = read_ubjson(content)
    try:
        source = _read_model(document["learner"], only_best)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"model: expected a file written by XGBoost, got another structure ({error!r})"
        ) from None
    return make_booster(source)


def _read_model(learner: Any, only_best: bool) -> BoosterSource:
    """Read the "learner" of a document; `only_best` drops rounds after the best one."""
    booster = learner["gradient_booster"]
    drops = booster.get("weight_drop")
    if booster["name"] == "dart":
        booster = booster["gbtree"]
    elif booster["name"] != "gbtree":
        raise ValueError(f"model: expected trees, got booster={booster['name']!r}")
    forest = booster["model"]
    shape = learner["learner_model_param"]
    n_features = int(shape["num_feature"])
    n_scores = max(int(shape["num_class"]), int(shape.get("num_target", 1)), 1)
    if not (1 <= n_features <= _MOST_FEATURES and n_scores <= len(forest["trees"]) * 256):
        raise ValueError(
            f"model: expected 1 to {_MOST_FEATURES} columns and trees for every score, got "
            f"{n_features} columns and {n_scores} scores"
        )
    names = list(learner.get("feature_names", [])) or None
    types = list(learner.get("feature_types", [])) or [""] * n_features
    trees, of_score = list(forest["trees"]), [int(k) for k in forest["tree_info"]]
    if len(types) != n_features or len(trees) != len(of_score):
        raise ValueError(
            f"model: expected {n_features} feature_types and a tree_info for each of "
            f"{len(trees)} trees, got {len(types)} and {len(of_score)}"
        )
    scale = np.ones(len(trees)) if drops is None else np.asarray(drops, dtype=np.float32)
    if len(scale) != len(trees):
        raise ValueError(f"model: expected {len(trees)} values of weight_drop, got {len(scale)}")
    attributes = learner.get("attributes", {})
    if "best_iteration" in attributes and (only_best or "scikit_learn" in attributes):
        n_kept = _n_trees(forest, int(attributes["best_iteration"]) + 1, n_scores)
        trees, of_score = trees[:n_kept], of_score[:n_kept]
    source = _read_objective(learner["objective"], shape, n_scores)
    source.n_features = n_features
    source.names = names
    split_codes: list[set[int]] = [set() for _ in range(n_features)]
    source.trees = [[] for _ in range(n_scores)]
    for t, (tree, score) in enumerate(zip(trees, of_score, strict=True)):
        for k, read in enumerate(_read_tree(tree, n_scores, scale[t], f"tree {t}", split_codes)):
            if not 0 <= score + k < n_scores:
                raise ValueError(f"tree {t}: expected a tree_info below {n_scores}, got {score}")
            source.trees[score + k].append(read)
    known = _read_categories(forest.get("cats", {}), n_features)
    source.categories = [
        _category_values(known[f], types[f] == "c", split_codes[f]) for f in range(n_features)
    ]
    for read in (tree for trees in source.trees for tree in trees):
        for node, codes in read.left_categories.items():
            # XGBoost lists the codes that go right; all other codes go left.
            is_left = np.ones(len(source.categories[int(read.feature[node])]), dtype=bool)
            if (codes >= len(is_left)).any():
                raise ValueError(
                    f"model: expected category codes below {len(is_left)} in a split, "
                    f"got {codes.max()}"
                )
            is_left[codes] = False
            read.left_categories[node] = np.flatnonzero(is_left)
    return source


def _n_trees(forest: Any, n_rounds: int, n_scores: int) -> int:
    """Return the number of trees in the first `n_rounds` rounds."""
    starts = forest.get("iteration_indptr")
    if starts is not None and 0 <= n_rounds < len(starts):
        return int(starts[n_rounds])
    return n_rounds * n_scores * int(forest["gbtree_model_param"].get("num_parallel_tree", 1))


def _read_objective(objective: Any, shape: Any, n_scores: int) -> BoosterSource:
    """Return task, loss and initial scores, without trees and columns."""
    name = objective["name"]
    params: dict[str, Any] = {}
    classes = None
    task, loss = "regress", _REGRESSION.get(name, "")
    if name in _TWO_CLASSES and n_scores == 1:
        task, loss, classes = "classify", "log_loss", np.arange(2)
    elif name in _CLASSES:
        task, loss, classes = "classify", "log_loss", np.arange(n_scores)
    elif name in _RANKING:
        task, loss = "rank", _RANKING[name]
    if name == "binary:logitraw":
        warnings.warn(
            "XGBClassifier.predict with objective 'binary:logitraw' returns class 1 where the raw "
            "score is above 0.5; the imported model returns it where the score is above 0 (a "
            "probability of 0.5). For XGBoost's labels use "
            "classes_[(decision_function(X) > 0.5).astype(int)].",
            UserWarning,
            stacklevel=4,
        )
    if name in _TWO_CLASSES and n_scores > 1:
        raise ValueError(
            f"model: several outputs of XGBoost's objective {name!r} are not supported; "
            f"expected one, got {n_scores}"
        )
    if not loss:
        known = (*_TWO_CLASSES, *_CLASSES, *_REGRESSION, *_RANKING)
        raise ValueError(
            f"model: XGBoost's objective {name!r} is not supported; expected one of "
            f"{', '.join(known)}"
        )
    if loss == "quantile":
        levels = _read_numbers(objective["quantile_loss_param"]["quantile_alpha"])
        if len(levels) == 1:
            params["alpha"] = levels[0]
        else:
            loss = (
                "squared_error"  # Spinney sorts the predictions of several quantiles, XGBoost not
            )
    if loss == "tweedie":
        power = objective.get("tweedie_regression_param", {}).get("tweedie_variance_power", 1.5)
        params["tweedie_power"] = float(power)
    start = np.array(_read_numbers(shape["base_score"]), dtype=np.float32).astype(np.float64)
    if loss in ("poisson", "gamma", "tweedie"):
        start = np.log(start)
    elif name in ("binary:logistic", "reg:logistic"):
        start = np.log(start) - np.log1p(-start)
    if len(start) == 1:
        start = np.repeat(start, n_scores)
    return BoosterSource(
        task, loss, [], start.tolist(), 0, classes=classes, params=params, cover="weight"
    )


def _read_numbers(text: Any) -> list[float]:
    """Parse a string with a number or a bracketed list."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
        return [float(v) for v in np.ravel(value)]
    except ValueError:
        raise ValueError(f"model: expected numbers, got {text!r}") from None


def _read_categories(cats: Any, n_features: int) -> list[Any]:
    """Return the values of each column's categories, or None if the model has none."""
    encoded = list(cats.get("enc", []))
    if not encoded:
        return [None] * n_features
    if len(encoded) != n_features:
        raise ValueError(f"model: expected categories of {n_features} columns, got {len(encoded)}")
    out: list[Any] = []
    for of in encoded:
        values = np.asarray(of["values"])
        if "offsets" in of:
            bounds = np.asarray(of["offsets"], dtype=np.int64)
            raw = values.astype(np.uint8).tobytes()
            texts = [raw[a:b].decode() for a, b in itertools.pairwise(bounds)]
            values = np.array(texts, dtype=object)
        out.append(values if len(values) else None)
    return out


def _category_values(known: Any, is_categorical: bool, split_codes: set[int]) -> Any:
    """Return the categories of a column; None for a numeric column."""
    if not is_categorical and not split_codes:
        return None
    if known is not None:
        return known
    return np.arange(
        max(split_codes, default=0) + 1
    )  # without stored values, the codes are the values


def _read_tree(
    tree: Any, n_scores: int, scale: float, label: str, split_codes: list[set[int]]
) -> list[SourceTree]:
    """Read a tree; if its leaves have several values, return one tree for each value.

    The category codes that occur in splits are added to `split_codes`, by column.
    """

    def array(key: str, dtype: Any) -> NDArray[Any]:
        return np.asarray(tree[key]).astype(dtype)

    left, right = array("left_children", np.int64), array("right_children", np.int64)
    feature = array("split_indices", np.int64)
    condition = array("split_conditions", np.float32)
    if not len(left) == len(right) == len(feature) == len(condition):
        raise ValueError(f"{label}: expected arrays of equal length, got different lengths")
    is_leaf = left < 0
    values = condition[:, np.newaxis].astype(np.float64)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        weights = array("leaf_weights", np.float64).reshape(-1, n_scores)
        values = weights[np.where(is_leaf, right, 0)]
    listed: dict[int, NDArray[Any]] = {}
    sets = array("categories", np.int64)
    starts, sizes = array("categories_segments", np.int64), array("categories_sizes", np.int64)
    for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True):
        if not 0 <= node < len(left) or not 0 <= feature[node] < len(split_codes):
            raise ValueError(
                f"{label}: expected categories_nodes that are nodes with a column, got node {node}"
            )
        codes = sets[start : start + size]
        if (
            start < 0
            or len(codes) != size
            or (codes < 0).any()
            or (codes >= _MOST_CATEGORIES).any()
        ):
            raise ValueError(
                f"{label}: expected categories from 0 to {_MOST_CATEGORIES - 1} in each segment, "
                "got others"
            )
        listed[int(node)] = codes
        split_codes[int(feature[node])] |= set(codes.tolist())
    hessian = array("sum_hessian", np.float64)
    rows = np.rint(np.clip(np.nan_to_num(hessian), 1, 2**31 - 1)).astype(np.int64)
    with np.errstate(invalid="ignore"):
        threshold = last_below(np.where(is_leaf, np.float32(0), condition))
    missing_left = array("default_left", bool)
    gain = array("loss_changes", np.float64)
    return [
        SourceTree(
            left,
            np.where(is_leaf, -1, right),
            feature,
            threshold,
            missing_left,
            values[:, [k]] * scale,
            hessian,
            rows,
            gain,
            dict(listed),
        )
        for k in range(values.shape[1])
    ]
