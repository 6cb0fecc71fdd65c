"""Conversion of LightGBM models: its objects, and its text files."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from spinney.importing._booster import BoosterSource, make_booster, single_leaf
from spinney.importing._source_file import kind_of, read_bytes
from spinney.importing._trees import SourceTree
from spinney.importing._zero_missing import BELOW_ZERO, ZERO, without_zero_missing

__all__ = ["from_lightgbm"]

# Maps LightGBM's objectives to losses with the same function from scores to predictions. Objectives
# without a Spinney loss whose scores are predictions map to squared error.
_REGRESSION = {
    "regression": "squared_error",
    "regression_l1": "absolute_error",
    "huber": "huber",
    "fair": "squared_error",
    "mape": "squared_error",
    "quantile": "quantile",
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": "tweedie",
    "cross_entropy": "cross_entropy",
    "custom": "squared_error",
}
_RANKING = ("lambdarank", "rank_xendcg")
_MOST_FEATURES = 1 << 20  # files with more are rejected as malformed before memory is allocated
_MISSING_ZERO, _MISSING_NAN = 1, 2


def from_lightgbm(model: Any) -> Any:
    """Convert a fitted LightGBM model to a Spinney estimator.

    Parameters
    ----------
    model : lightgbm.Booster, LGBMClassifier, LGBMRegressor, LGBMRanker, str or path
        A fitted model, or a text file written by `save_model`. Reading a file does not require
        LightGBM. After early stopping, only the rounds up to the best one are converted, which
        LightGBM uses for predictions.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        Its predictions are the same for every row: missing values, zeros that are treated as
        missing, and categories take the same paths. LightGBM's random forests (``boosting="rf"``)
        become boosters, too, whose trees add up to the mean.

    Raises
    ------
    ValueError
        For linear trees, one-vs-all and other unsupported objectives, and files that LightGBM did
        not write.

    Examples
    --------
    >>> import spinney
    >>> text = '''tree
    ... num_class=1
    ... num_tree_per_iteration=1
    ... max_feature_idx=0
    ... objective=regression
    ... feature_names=height
    ... feature_infos=[0:2]
    ...
    ... Tree=0
    ... num_leaves=2
    ... num_cat=0
    ... split_feature=0
    ... split_gain=1
    ... threshold=1.5
    ... decision_type=2
    ... left_child=-1
    ... right_child=-2
    ... leaf_value=10 20
    ... leaf_weight=5 5
    ... leaf_count=5 5
    ...
    ... end of trees
    ... '''
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.txt")
    ...     _ = path.write_text(text)
    ...     model = spinney.from_lightgbm(path)
    >>> model.predict(pd.DataFrame({"height": [1.5, 1.6]})).tolist()
    [10.0, 20.0]
    """
    classes = None
    content = read_bytes(model)
    if content is not None:
        text = content.decode("utf-8", errors="replace")
    else:
        names = kind_of(model, "lightgbm")
        if not names & {"Booster", "LGBMModel"}:
            raise TypeError(
                "model: expected a lightgbm.Booster, a LightGBM estimator or a path, got "
                f"{type(model).__name__}"
            )
        if "LGBMModel" in names:
            classes = getattr(model, "classes_", None)
            model = model.booster_
        text = model.model_to_string()
    return make_booster(_read_model(text, classes))


def _read_model(text: str, classes: Any) -> BoosterSource:
    """Read a text file; `classes` are the labels of an LGBMClassifier, else None."""
    text = text.replace("\r\n", "\n")
    if text.split("\n", 1)[0].strip() != "tree":
        raise ValueError("model: expected a text file of LightGBM, which begins with 'tree'")
    sections = re.split(r"^Tree=\d+\n", text.split("\nend of trees", 1)[0], flags=re.MULTILINE)
    header = _pairs(sections[0])
    if "\nend of trees" not in text:
        raise ValueError("model: expected the line 'end of trees', got a truncated file")
    n_features = _read_integer(header, "max_feature_idx") + 1
    n_scores = _read_integer(header, "num_tree_per_iteration")
    if not (1 <= n_features <= _MOST_FEATURES and 1 <= n_scores < len(sections)):
        raise ValueError(
            f"model: expected 1 to {_MOST_FEATURES} columns and at least one tree for each score, "
            f"got {n_features} columns, {n_scores} scores and {len(sections) - 1} trees"
        )
    settings = dict(re.findall(r"^\[(\w+): (.*)\]$", text, flags=re.MULTILINE))
    source = _read_objective(header.get("objective", "custom"), settings, n_scores, classes)
    blocks = [_pairs(section) for section in sections[1:]]
    split_codes: list[set[int]] = [set() for _ in range(n_features)]
    read = [_read_tree(block, f"tree {t}", split_codes) for t, block in enumerate(blocks)]
    inner_blocks = [block for block in blocks if _read_integer(block, "num_leaves") > 1]
    if not all("leaf_count" in block for block in inner_blocks):
        weighed = all("leaf_weight" in block for block in inner_blocks)
        source.cover = "weight" if weighed else "unknown"
    source.n_features = n_features
    source.names = _read_names(header, n_features)
    source.categories, codes = _read_categories(text, header, settings, split_codes)
    scale = 1.0
    if "average_output" in header:
        scale = n_scores / len(read)
    scale *= source.params.pop("sigmoid", 1.0)
    for tree in read:
        tree.value = tree.value * scale
        for node, members in tree.left_categories.items():
            code_of = codes[int(tree.feature[node])]
            tree.left_categories[node] = np.array(
                [code_of[c] for c in members.tolist() if c in code_of], dtype=np.int64
            )
    source.trees = [read[k::n_scores] for k in range(n_scores)]
    if "learning_rate" in settings and float(settings["learning_rate"]) > 0:
        source.params["learning_rate"] = float(settings["learning_rate"])
    return source


def _pairs(block: str) -> dict[str, str]:
    """Parse lines of ``key=value``; a key without a value gets an empty string."""
    return {
        key: value
        for key, _, value in (line.partition("=") for line in block.split("\n"))
        if key.strip()
    }


def _read_integer(pairs: dict[str, str], key: str) -> int:
    """Return an integer value, or raise an error if it is missing or not an integer."""
    try:
        return int(pairs[key])
    except (KeyError, ValueError):
        raise ValueError(
            f"model: expected a line '{key}=' with an integer, got {pairs.get(key)!r}"
        ) from None


def _read_objective(
    line: str, settings: dict[str, str], n_scores: int, classes: Any
) -> BoosterSource:
    """Return task, loss and initial scores, without trees and columns."""
    name, *options = line.split() or ["custom"]
    given = dict(word.split(":", 1) for word in options if ":" in word)
    params: dict[str, Any] = {}
    task, loss = "regress", _REGRESSION.get(name, "")
    if "sqrt" in options:
        loss = ""  # predictions are squares of scores
        name += " with reg_sqrt"
    if name == "quantile":
        params["alpha"] = float(settings.get("alpha", 0.9))
    if name == "tweedie":
        power = float(settings.get("tweedie_variance_power", 1.5))
        if power == 1:  # the deviance of a Poisson variable; Spinney's Tweedie loss starts above 1
            loss = "poisson"
        else:
            params["tweedie_power"] = power
    if name == "binary":
        task, loss = "classify", "log_loss"
        params["sigmoid"] = float(given.get("sigmoid", 1.0))
    elif name in ("multiclass", "softmax"):
        task, loss = "classify", "log_loss"
    elif name in _RANKING:
        task, loss = "rank", "ndcg"
    if not loss or (classes is not None and task != "classify"):
        raise ValueError(
            f"model: LightGBM's objective {name!r} is not supported; expected binary, multiclass, "
            f"{', '.join(_REGRESSION)}, {' or '.join(_RANKING)}"
        )
    if task == "classify" and classes is None:
        classes = np.arange(max(n_scores, 2))
    if task != "classify" and n_scores > 1:
        raise ValueError(f"model: expected one score for the objective {name!r}, got {n_scores}")
    return BoosterSource(task, loss, [], [0.0] * n_scores, 0, classes=classes, params=params)


def _read_names(header: dict[str, str], n_features: int) -> list[str] | None:
    """Return the names of the columns, or None for LightGBM's default names."""
    names = header.get("feature_names", "").split()
    if names == [f"Column_{f}" for f in range(n_features)]:
        return None
    if len(names) != n_features:
        raise ValueError(f"model: expected {n_features} feature_names, got {len(names)}")
    return names


def _read_categories(
    text: str, header: dict[str, str], settings: dict[str, str], split_codes: list[set[int]]
) -> tuple[list[Any], list[dict[int, int]]]:
    """Return the values of each column of categories, and maps from LightGBM's codes."""
    infos = header.get("feature_infos", "").split()
    if infos and len(infos) != len(split_codes):
        raise ValueError(f"model: expected {len(split_codes)} feature_infos, got {len(infos)}")
    known: dict[int, set[int]] = {f: set(codes) for f, codes in enumerate(split_codes) if codes}
    for f, info in enumerate(infos):
        if info != "none" and not info.startswith("["):
            found = {int(code) for code in re.findall(r"-?\d+", info)}
            known[f] = known.get(f, set()) | {code for code in found if code >= 0}
    line = re.search(r"^pandas_categorical:(.*)$", text, flags=re.MULTILINE)
    values: Any = None
    try:
        values = None if line is None else json.loads(line[1])
    except ValueError:
        raise ValueError("model: expected JSON after 'pandas_categorical:'") from None
    of_frame: dict[int, list[Any]] = {}
    if values:
        declared = settings.get("categorical_feature", "")
        columns = [int(f) for f in re.findall(r"\d+", declared)] or sorted(known)
        if len(columns) != len(values) or not set(known) <= set(columns):
            raise ValueError(
                f"model: expected a list in pandas_categorical for each of the {len(columns)} "
                f"columns of categories, got {len(values)} lists"
            )
        of_frame = dict(zip(sorted(columns), values, strict=True))
    categories: list[Any] = [None] * len(split_codes)
    codes: list[dict[int, int]] = [{} for _ in split_codes]
    for f in sorted({*known, *of_frame}):
        if f in of_frame:
            listed = of_frame[f]
            text_like = any(isinstance(value, str) for value in listed)
            categories[f] = np.array(listed, dtype=object if text_like else None)
            codes[f] = {code: code for code in range(len(listed))}
        else:
            listed = sorted(known[f])
            categories[f] = np.array(listed, dtype=np.int64)
            codes[f] = {code: index for index, code in enumerate(listed)}
    return categories, codes


def _beyond_zero(threshold: Any) -> Any:
    """Move a threshold out of the range of values that LightGBM reads as zero."""
    return np.where(threshold >= 0, ZERO, BELOW_ZERO)


def _read_tree(pairs: dict[str, str], label: str, split_codes: list[set[int]]) -> SourceTree:
    """Read a tree; add the category codes in its splits to `split_codes`."""
    if pairs.get("is_linear", "0").strip() == "1":
        raise ValueError("model: linear trees (linear_tree=true) are not supported")
    n_leaves = _read_integer(pairs, "num_leaves")

    def numbers(key: str, n: int, dtype: Any) -> Any:
        try:
            out = np.array(pairs.get(key, "").split(), dtype=np.float64)
        except ValueError:
            raise ValueError(f"{label}: expected numbers after '{key}='") from None
        if len(out) != n:
            raise ValueError(f"{label}: expected {n} numbers after '{key}=', got {len(out)}")
        return out.astype(dtype)

    if n_leaves < 1:
        raise ValueError(f"{label}: expected at least one leaf, got num_leaves={n_leaves}")
    leaf_value = numbers("leaf_value", n_leaves, np.float64)
    if n_leaves == 1:
        return single_leaf(leaf_value[0])
    n = n_leaves - 1
    decision = numbers("decision_type", n, np.int64)
    threshold = numbers("threshold", n, np.float64)
    feature = numbers("split_feature", n, np.int64)
    is_categorical = (decision & 1) > 0
    near_zero = ~is_categorical & (np.abs(threshold) <= ZERO)
    threshold = np.where(near_zero, _beyond_zero(threshold), threshold)
    default_left = (decision & 2) > 0
    missing = (decision >> 2) & 3
    # If NaN is not a missing value, it is read as 0. In splits on categories, it goes right.
    missing_left = np.where(missing == _MISSING_NAN, default_left, threshold >= 0)
    missing_left = np.where(missing == _MISSING_ZERO, default_left, missing_left) & ~is_categorical
    children = []
    for key in ("left_child", "right_child"):
        child = numbers(key, n, np.int64)
        children.append(np.where(child < 0, n + ~child, child))  # leaves follow the inner nodes

    def padded(inner: Any, leaves: Any) -> Any:
        return np.concatenate([inner, np.broadcast_to(leaves, n_leaves)])

    def optional(key: str, n: int, otherwise: float, dtype: Any) -> Any:
        return numbers(key, n, dtype) if key in pairs else np.full(n, otherwise, dtype)

    tree = SourceTree(
        padded(children[0], -1),
        padded(children[1], -1),
        padded(feature, -2),
        padded(threshold, 0.0),
        padded(missing_left, False),
        padded(np.zeros(n), leaf_value)[:, np.newaxis],
        padded(np.zeros(n), optional("leaf_weight", n_leaves, 1.0, np.float64)),
        padded(np.zeros(n, np.int64), optional("leaf_count", n_leaves, 1, np.int64)),
        padded(optional("split_gain", n, 0.0, np.float64), 0.0),
    )
    if is_categorical.any():
        n_sets = _read_integer(pairs, "num_cat")
        bounds = numbers("cat_boundaries", n_sets + 1, np.int64)
        bit_words = numbers("cat_threshold", int(bounds[-1]) if bounds[-1] >= 0 else 0, np.uint32)
        for node in np.flatnonzero(is_categorical).tolist():
            at = int(threshold[node])
            if not (0 <= at < n_sets and 0 <= bounds[at] <= bounds[at + 1] <= len(bit_words)):
                raise ValueError(f"{label}: expected ascending cat_boundaries, got others")
            own = bit_words[bounds[at] : bounds[at + 1]]
            bits = (own[:, np.newaxis] >> np.arange(32, dtype=np.uint32)) & 1
            tree.left_categories[node] = np.flatnonzero(bits)
            if not 0 <= feature[node] < len(split_codes):
                raise ValueError(
                    f"{label}: expected columns from 0 to {len(split_codes) - 1}, "
                    f"got {feature[node]}"
                )
            split_codes[int(feature[node])] |= set(tree.left_categories[node].tolist())
    about_zero = (missing == _MISSING_ZERO) & ~is_categorical
    if about_zero.any():
        tree = without_zero_missing(tree, padded(about_zero, False), label)
    return tree
