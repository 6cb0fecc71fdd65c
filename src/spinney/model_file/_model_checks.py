"""Checks of models from files, as the core and the estimators trust their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.models.boosted_trees import LINKS

__all__ = ["check_model", "check_multiway_tree", "check_tree"]

_NODE_ARRAYS = (
    "children_right",
    "feature",
    "threshold",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
    "category_start",
    "value",
)

# Ensembles whose trees split the table's columns. Those of others may use a subset of the columns,
# or derived columns.
_WHOLE_TABLE = frozenset(
    {
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
    }
)

# Fitted ensembles of trees; see `spinney.models.tree_ensembles`.
_TREE_ENSEMBLES = frozenset(
    {"AveragedTrees", "EmbeddingTrees", "IsolationTrees", "MedianTrees", "VotingTrees"}
)

# Attributes with the number of outputs per row: they determine the size of allocated arrays.
_WIDTHS = (
    "n_outputs_",
    "n_outputs",
    "n_classes_",
    "n_classes",
    "_n_classes",
    "_n_scores",
    "n_scores",
    "_n_targets",
    "_n_features_out",
    "n_components",
    "n_components_",
    "_trees_per_round",
)
_WIDEST = 1 << 20
_MOST_ROWS = 1 << 31
_MOST_COLUMNS = 1 << 24  # a name is generated for each column of a table

# Neighbors classifiers that store the codes of classes in `_y`.
_VOTING = frozenset({"KNeighborsClassifier", "RadiusNeighborsClassifier"})


def check_tree(tree: Any) -> None:
    """Raise a ValueError if a `spinney.tree.Tree` has indexes that are out of range."""
    n = tree.node_count
    if any(len(getattr(tree, name)) != n for name in _NODE_ARRAYS) or n == 0:
        raise ValueError("a tree whose arrays differ in length")
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = np.flatnonzero(left >= 0)
    if not np.array_equal(inner, np.flatnonzero(right >= 0)):
        raise ValueError("a tree with a node of one child")
    children = np.concatenate([left[inner], right[inner]])
    if not np.array_equal(np.sort(children), np.arange(1, n)):
        raise ValueError("a tree whose nodes are not each the child of one node")
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        raise ValueError("a tree with a child before its parent")
    if ((feature[inner] < 0) | (feature[inner] >= tree.n_features)).any():
        raise ValueError("a tree that splits on a column out of range")
    if tree.n_categories.shape != (tree.n_features,) or (tree.n_categories < 0).any():
        raise ValueError("a tree without the number of categories of each column")
    categorical = inner[tree.category_start[inner] >= 0]
    n_words = (tree.n_categories[feature[categorical]].astype(np.int64) + 31) // 32
    most = len(tree.category_bits) - 2 * n_words
    if (n_words == 0).any() or (tree.category_start[categorical] > most).any():
        raise ValueError("a tree that splits on categories out of range")


def check_multiway_tree(tree: Any) -> None:
    """Raise a ValueError if a `spinney.tree.MultiwayTree` is inconsistent."""
    n = tree.node_count
    if any(len(getattr(tree, name)) != n for name in ("counts", "fractions", "weight", "n_rows")):
        raise ValueError("a tree whose arrays differ in length")
    tree.reader  # noqa: B018 (the core checks the children)
    split_features = tree.feature[np.diff(tree.child_start) > 0]
    if not _are_codes(split_features, tree.n_features):
        raise ValueError("a tree that splits on a column out of range")


def check_model(model: Any) -> None:
    """Raise a ValueError if parts of a model contradict each other.

    Only what the methods of the model rely on is checked.
    """
    _check_widths(model)
    name = type(model).__name__
    if name == "BoostedTrees":
        _check_boosted_trees(model)
    elif name in _TREE_ENSEMBLES:
        _check_tree_ensemble(model)
    elif name == "TreeSamples":
        _check_tree_samples(model)
    elif name == "ComparisonTree":
        _check_comparisons(model)
    elif name == "QuadTree":
        _check_quadrants(model)
    elif name == "PolynomialRegression":
        _check_degree(model)
    elif name == "FunctionTransformer":
        _check_identity(model)
    else:
        _check_trees(model)
        _check_classes(model)


def _check_identity(transformer: Any) -> None:
    """Refuse functions: `save` writes only transformers that pass columns through."""
    for name in ("func", "inverse_func"):
        if vars(transformer).get(name) is not None:
            raise ValueError(f"a FunctionTransformer with a {name}")


def _check_widths(model: Any) -> None:
    """Refuse more outputs or columns than any model has."""
    attributes = getattr(model, "__dict__", {})
    for name in _WIDTHS:
        for width in np.ravel(attributes.get(name, 0)).tolist():
            if isinstance(width, int | float) and not 0 <= width <= _WIDEST:
                raise ValueError(f"{name} = {width}, expected at most {_WIDEST:,}")
    n_columns = attributes.get("n_features_in_", 0)
    if isinstance(n_columns, int | float) and not 0 <= n_columns <= _MOST_COLUMNS:
        raise ValueError(f"{n_columns} columns, expected at most {_MOST_COLUMNS:,}")


def _check_boosted_trees(model: Any) -> None:
    """Refuse a booster whose parts contradict each other."""
    baseline = model.baseline
    if not isinstance(baseline, np.ndarray) or baseline.ndim != 1 or baseline.dtype != np.float64:
        raise ValueError("a booster whose baseline is not a float64 vector")
    if model.link not in LINKS:
        raise ValueError(f"a booster with an unknown link {model.link!r}")
    counts = (model.n_rounds, model.n_boosters, model.n_targets)
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("a booster whose number of rounds, boosters or targets is not an integer")
    if not 0 < model.n_scores <= _WIDEST or model.n_targets > _WIDEST:
        raise ValueError(f"{model.n_scores} scores, expected 1 to {_WIDEST:,}")
    if model.n_targets > 1 and model.n_targets != model.n_scores:
        raise ValueError("a booster whose baseline has another number of scores")
    if model.store.width != (model.n_scores if model.n_targets > 1 else 1):
        raise ValueError("a booster whose leaves have another number of values than its scores")
    if model.n_trees > len(model.store):
        raise ValueError("a booster with fewer trees than its rounds have")
    if model.schema.n_categories != model.store.shape[4]:
        raise ValueError("a booster that was trained on other columns than its schema has")


def _check_tree_ensemble(model: Any) -> None:
    """Refuse an ensemble of trees whose parts contradict each other."""
    n_classes = model.store.shape[1]
    classes = getattr(model, "classes", None)
    if classes is not None:
        labels = classes if isinstance(classes, list) else [classes]
        if [len(of_output) for of_output in labels] != n_classes:
            raise ValueError("a forest whose number of classes is not that of its model")
    weights = getattr(model, "weights", None)
    if weights is not None and (
        not isinstance(weights, np.ndarray)
        or weights.ndim != 1
        or weights.dtype != np.float64
        or len(weights) < len(model.store)
    ):
        raise ValueError("an ensemble whose weights are not a float64 vector, one for each tree")
    n_rows = getattr(model, "max_samples", 1)
    if type(n_rows) is not int or not 1 <= n_rows < _MOST_ROWS:
        raise ValueError(f"max_samples = {n_rows!r}, expected 1 to {_MOST_ROWS:,}")


def _check_tree_samples(samples: Any) -> None:
    """Refuse samples of rows that cannot be drawn again."""
    counts = (samples.n_rows, 1 if samples.n_drawn is None else samples.n_drawn)
    if any(type(count) is not int or not 1 <= count < _MOST_ROWS for count in counts):
        raise ValueError(f"samples of {counts} rows, expected 1 to {_MOST_ROWS:,}")
    weights = samples.weights
    if weights is not None and np.shape(weights) != (samples.n_rows,):
        raise ValueError("a forest with another number of weights than of rows")


def _check_degree(model: Any) -> None:
    """Refuse a degree above that of all terms, as predict computes all powers."""
    degree, exponents = vars(model).get("degree_"), vars(model).get("exponents_")
    if degree is None:
        return
    # Each column has a term of each degree.
    if type(degree) is not int or not 0 <= degree < len(exponents):
        raise ValueError("a polynomial of another degree than its terms have")
    if not _are_codes(exponents, degree + 1):
        raise ValueError("a term of a higher degree than its polynomial has")


def _check_comparisons(tree: Any) -> None:
    """Refuse comparison trees, one or several in a row, with invalid children."""
    n = tree.node_count
    for name in ("right", "pivot_a", "pivot_b", "value", "n_node_samples", "depth"):
        if len(getattr(tree, name)) != n:
            raise ValueError("a comparison tree whose arrays differ in length")
    inner = np.flatnonzero(tree.left >= 0)
    if not np.array_equal(inner, np.flatnonzero(tree.right >= 0)):
        raise ValueError("a comparison tree with a node of one child")
    _check_children(np.tile(inner, 2), np.concatenate([tree.left[inner], tree.right[inner]]), n)


def _check_quadrants(tree: Any) -> None:
    """Refuse a quad tree with invalid children."""
    n = tree.n_nodes
    for name in ("low", "high", "center", "value", "impurity", "internal_index"):
        if len(getattr(tree, name)) != n:
            raise ValueError("a quad tree whose arrays differ in length")
    slots = tree.child_slots
    inner = np.flatnonzero(tree.internal_index >= 0)
    numbers = tree.internal_index[inner]
    if slots.ndim != 2 or not np.array_equal(numbers, np.arange(len(inner))):
        raise ValueError("a quad tree whose inner nodes lack children")
    if slots.shape[1] != 2 ** tree.center.shape[1]:
        raise ValueError("a quad tree whose number of quadrants is not 2 ** n_columns")
    if len(slots) != len(inner):
        raise ValueError("a quad tree with children that have no parent")
    exists = slots >= 0
    parents = np.repeat(inner, slots.shape[1]).reshape(slots.shape)
    _check_children(parents[exists], slots[exists], n)


def _check_children(parents: Any, children: Any, n: int) -> None:
    """Refuse children before their parents or with two parents, as in cycles."""
    if (children >= n).any() or (children <= parents).any():
        raise ValueError("a tree with a child before its parent")
    if len(np.unique(children)) != len(children):
        raise ValueError("a tree with a node that is the child of two others")


def _check_classes(model: Any) -> None:
    """Refuse class codes out of range: arrays are allocated for the largest code."""
    attributes = getattr(model, "__dict__", {})
    classes: Any = attributes.get("classes_")
    if classes is None:
        return
    lists = classes if isinstance(classes, list) else [classes]
    n_classes = [len(names) for names in lists]
    n_stated: Any = attributes.get("n_classes_")
    if n_stated is not None and np.ravel(n_stated).tolist() != n_classes:
        raise ValueError("a model whose n_classes_ does not match its classes_")
    store: Any = _store_of(attributes)
    if store is not None and store.shape[1] and store.shape[1] != n_classes:
        raise ValueError("a forest whose number of classes is not that of its model")
    if type(model).__name__ == "VotingClassifier":
        # Its members predict codes of classes, which are counted.
        for member in attributes.get("estimators_", ()):
            member_classes = np.asarray(getattr(member, "classes_", ()))
            if member_classes.size and (
                member_classes.dtype.kind not in "iu"
                or not _are_codes(member_classes, n_classes[0])
            ):
                raise ValueError("a vote whose members have other classes")
    codes: Any = attributes.get("_y")
    if type(model).__name__ in _VOTING and codes is not None:
        columns = codes.reshape(len(codes), -1)
        if columns.dtype.kind not in "iu" or columns.shape[1] != len(lists):
            raise ValueError("neighbors without codes of their classes")
        if not _are_codes(columns, np.array(n_classes)):
            raise ValueError("neighbors with codes of classes out of range")


def _store_of(attributes: dict[str, Any]) -> Any:
    return getattr(attributes.get("_model"), "store", attributes.get("_store"))


def _are_codes(values: Any, n: Any) -> bool:
    return not bool(((values < 0) | (values >= n)).any())


def _check_trees(model: Any) -> None:
    """Refuse a model whose trees were grown on other columns than its schema has."""
    attributes = getattr(model, "__dict__", {})
    schema: Any = attributes.get("_schema", getattr(attributes.get("_model"), "schema", None))
    tree: Any = attributes.get("tree_")
    store: Any = _store_of(attributes)
    if store is not None and len(store) == 0 and store.width > 1:
        raise ValueError("a forest without trees")
    if schema is None:
        return
    expected = [0 if values is None else len(values) for values in schema.categories]
    if type(tree).__name__ == "Tree" and tree.n_categories.tolist() != expected:
        raise ValueError("a tree that was grown on other columns than its model has")
    if type(tree).__name__ == "MultiwayTree" and tree.n_features != len(expected):
        raise ValueError("a tree that was grown on other columns than its model has")
    if store is not None and type(model).__name__ in _WHOLE_TABLE and store.shape[4] != expected:
        raise ValueError("a forest that was grown on other columns than its model has")
