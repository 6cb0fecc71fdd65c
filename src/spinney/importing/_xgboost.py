"""Models of XGBoost: its objects, and the JSON and UBJSON files that they are saved as."""

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

# XGBoost's objectives by the loss whose predictions follow from scores in the same way; those that
# Spinney has no loss for, but whose scores are predictions, come as squared error.
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
# Beyond these a file is taken for damaged, so that it is refused before it takes memory.
_MOST_FEATURES = 1 << 20
_MOST_CATEGORIES = 1 << 18
_TWO_CLASSES = ("binary:logistic", "binary:logitraw")
_CLASSES = ("multi:softprob", "multi:softmax")
_RANKING = {"rank:ndcg": "ndcg", "rank:map": "ndcg", "rank:pairwise": "pairwise"}


def from_xgboost(model: Any) -> Any:
    """Make a model of Spinney's of one that XGBoost fitted.

    Parameters
    ----------
    model : xgboost.Booster, XGBClassifier, XGBRegressor, XGBRanker, XGBRF*, str or path
        A fitted model, or a JSON or UBJSON file as `save_model` writes it. XGBoost need not be
        there to read a file. After early stopping the rounds up to the best one are taken of the
        estimators and of their files, as they do in predictions; of a `Booster` all are.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        It says the same of every row up to the rounding of XGBoost's sums, which are in single
        precision. Thresholds are such that a row in double precision goes where it goes after
        XGBoost rounded it. Categories that the model does not know go where missing values do.

    Raises
    ------
    ValueError
        For linear models, objectives without an equal, estimators with another `missing` than NaN,
        and files that are not what XGBoost writes.

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
                "model: expected an xgboost.Booster, one of XGBoost's estimators or a path, got "
                f"{type(model).__name__}"
            )
        if "XGBModel" in names:
            if model.missing is not None and not np.isnan(model.missing):
                raise ValueError(
                    f"model: expected missing=NaN, got missing={model.missing}; Spinney reads "
                    "NaN alone as missing"
                )
            only_best = True
            model = model.get_booster()
        content = bytes(model.save_raw("json"))
    if content[:1] == b"{" and content[1:2] in (b'"', b" ", b"\n", b"\r", b"\t", b"}"):
        try:
            document = json.loads(content)
        except ValueError as error:
            raise ValueError(f"model: expected JSON of XGBoost's: {error}") from None
    else:
        document = read_ubjson(content)
    try:
        source = _read_model(document["learner"], only_best)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"model: not what XGBoost writes ({error!r})") from None
    return make_booster(source)


def _read_model(learner: Any, only_best: bool) -> BoosterSource:
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
        raise ValueError(f"model: expected fewer than {n_features} columns or {n_scores} scores")
    names = list(learner.get("feature_names", [])) or None
    types = list(learner.get("feature_types", [])) or [""] * n_features
    trees, of_score = list(forest["trees"]), [int(k) for k in forest["tree_info"]]
    if len(types) != n_features or len(trees) != len(of_score):
        raise ValueError("model: expected a type of each column and a class of each tree")
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
    asked: list[set[int]] = [set() for _ in range(n_features)]
    source.trees = [[] for _ in range(n_scores)]
    for t, (tree, score) in enumerate(zip(trees, of_score, strict=True)):
        for k, read in enumerate(_read_tree(tree, n_scores, scale[t], f"tree {t}", asked)):
            if not 0 <= score + k < n_scores:
                raise ValueError(f"tree {t}: expected a class below {n_scores}, got {score}")
            source.trees[score + k].append(read)
    known = _read_categories(forest.get("cats", {}), n_features)
    source.categories = [_values_of(known[f], types[f] == "c", asked[f]) for f in range(n_features)]
    for read in (tree for trees in source.trees for tree in trees):
        for node, codes in read.left_categories.items():
            # What XGBoost lists goes right, and every other code left.
            is_left = np.ones(len(source.categories[int(read.feature[node])]), dtype=bool)
            if (codes >= len(is_left)).any():
                raise ValueError("model: asks about categories that its column has not")
            is_left[codes] = False
            read.left_categories[node] = np.flatnonzero(is_left)
    return source


def _n_trees(forest: Any, n_rounds: int, n_scores: int) -> int:
    starts = forest.get("iteration_indptr")
    if starts is not None and 0 <= n_rounds < len(starts):
        return int(starts[n_rounds])
    return n_rounds * n_scores * int(forest["gbtree_model_param"].get("num_parallel_tree", 1))


def _read_objective(objective: Any, shape: Any, n_scores: int) -> BoosterSource:
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
            "score is above 0.5; the imported model does where it is above 0 (a probability of "
            "0.5). For XGBoost's labels use classes_[(decision_function(X) > 0.5).astype(int)].",
            UserWarning,
            stacklevel=4,
        )
    if name in _TWO_CLASSES and n_scores > 1:
        raise ValueError(
            f"model: several outputs of XGBoost's objective {name!r} have no equal here; "
            f"expected one, got {n_scores}"
        )
    if not loss:
        known = (*_TWO_CLASSES, *_CLASSES, *_REGRESSION, *_RANKING)
        raise ValueError(
            f"model: XGBoost's objective {name!r} has no equal here; expected one of "
            f"{', '.join(known)}"
        )
    if loss == "quantile":
        levels = _list_of(objective["quantile_loss_param"]["quantile_alpha"])
        if len(levels) == 1:
            params["alpha"] = levels[0]
        else:
            loss = "squared_error"  # several quantiles of Spinney's are put in order; these are not
    if loss == "tweedie":
        power = objective.get("tweedie_regression_param", {}).get("tweedie_variance_power", 1.5)
        params["tweedie_power"] = float(power)
    start = np.array(_list_of(shape["base_score"]), dtype=np.float32).astype(np.float64)
    if loss in ("poisson", "gamma", "tweedie"):
        start = np.log(start)
    elif name in ("binary:logistic", "reg:logistic"):
        start = np.log(start) - np.log1p(-start)
    if len(start) == 1:
        start = np.repeat(start, n_scores)
    return BoosterSource(
        task, loss, [], start.tolist(), 0, classes=classes, params=params, cover="weight"
    )


def _list_of(text: Any) -> list[float]:
    """Numbers that XGBoost wrote as one, or as a list in brackets, in a string."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
        return [float(v) for v in np.ravel(value)]
    except ValueError:
        raise ValueError(f"model: expected numbers, got {text!r}") from None


def _read_categories(cats: Any, n_features: int) -> list[Any]:
    """Values of each column's categories, where the model has them."""
    encoded = list(cats.get("enc", []))
    if not encoded:
        return [None] * n_features
    if len(encoded) != n_features:
        raise ValueError(f"model: expected categories of {n_features} columns")
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


def _values_of(known: Any, is_categorical: bool, asked: set[int]) -> Any:
    if not is_categorical and not asked:
        return None
    if known is not None:
        return known
    return np.arange(max(asked, default=0) + 1)  # codes are values


def _read_tree(
    tree: Any, n_scores: int, scale: float, label: str, asked: list[set[int]]
) -> list[SourceTree]:
    """Read a tree; of one whose leaves have several values, one tree for each."""

    def array(key: str, dtype: Any) -> NDArray[Any]:
        return np.asarray(tree[key]).astype(dtype)

    left, right = array("left_children", np.int64), array("right_children", np.int64)
    feature = array("split_indices", np.int64)
    condition = array("split_conditions", np.float32)
    if not len(left) == len(right) == len(feature) == len(condition):
        raise ValueError(f"{label}: expected arrays of one length")
    is_leaf = left < 0
    values = condition[:, np.newaxis].astype(np.float64)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        weights = array("leaf_weights", np.float64).reshape(-1, n_scores)
        values = weights[np.where(is_leaf, right, 0)]
    listed: dict[int, NDArray[Any]] = {}
    sets = array("categories", np.int64)
    starts, sizes = array("categories_segments", np.int64), array("categories_sizes", np.int64)
    for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True):
        if not 0 <= node < len(left) or not 0 <= feature[node] < len(asked):
            raise ValueError(f"{label}: asks about categories of no column")
        codes = sets[start : start + size]
        if (
            start < 0
            or len(codes) != size
            or (codes < 0).any()
            or (codes >= _MOST_CATEGORIES).any()
        ):
            raise ValueError(f"{label}: expected categories from 0 to {_MOST_CATEGORIES - 1}")
        listed[int(node)] = codes
        asked[int(feature[node])] |= set(codes.tolist())
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
