"""Files with correct checksums and invalid contents, and writers that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from spinney.ensemble import RandomForestClassifier, VotingClassifier
from spinney.model_file._description import describe_state
from spinney.model_file._rebuilding import rebuild
from spinney.neighbors import BallTree, KDTree, KNeighborsClassifier
from spinney.neighbors._neighborhoods import RowTree
from spinney.tree import (
    C45Classifier,
    ComparisonTreeRegressor,
    DecisionTreeClassifier,
    QuadTreeRegressor,
)
from support.paths import TESTS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
NUMBERS = 2 * X[:, 0] - X[:, 1] + RNG.normal(size=90)
CLASSES = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")


def changed_state(model: Any, array: str, index: int, value: float) -> Any:
    """Return a forest with one changed number."""
    state = model.fitted_model().store.__getstate__()
    state["arrays"][array] = state["arrays"][array].copy()
    state["arrays"][array][index] = value
    store = object.__new__(type(model.fitted_model().store))
    store.__setstate__(state)
    return store


@pytest.mark.parametrize(
    ("array", "index", "value"),
    [
        ("nodes", 2, 2),  # left child of the root = right child, or out of order
        ("nodes", 2, 2**31 - 1),
        ("nodes", 2, 2**32 - 1),  # leaf 0, which has another parent
        ("nodes", 2, 2**31),  # a leaf out of range
        ("nodes", 1, 3),  # column 3 of 3
        ("nodes", 1, 2**30),  # a split on categories of a numeric column
        ("nodes", 0, 0x7FC00000),  # NaN as a threshold
        ("leaf_class", 0, 2**32 - 1),
        ("sizes", 0, 2**62),
        ("sizes", 0, 0),
    ],
)
def test_forests_with_invalid_arrays_raise(array: str, index: int, value: int) -> None:
    model = RandomForestClassifier(2, random_state=0).fit(X, CLASSES)
    with pytest.raises(ValueError, match="forest"):
        changed_state(model, array, index, value)


def test_mixed_leaves_of_a_single_class() -> None:
    model = RandomForestClassifier(1, max_depth=1, random_state=0).fit(X, np.zeros(90))
    state = model.fitted_model().store.__getstate__()
    state["arrays"]["leaf_class"] = state["arrays"]["leaf_class"] + np.uint32(1)
    state["arrays"]["mixed_counts"] = np.array([90.0], dtype=np.float32)
    state["arrays"]["sizes"][6] = 1  # of mixed_counts
    model.fitted_model().store.__setstate__(state)
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((90, 1)))


def test_cycles_in_trees_raise() -> None:
    comparisons = ComparisonTreeRegressor(random_state=0).fit(X, NUMBERS)
    comparisons._nodes.left[3] = comparisons._nodes.right[3] = 0
    quadrants = QuadTreeRegressor().fit(X, NUMBERS)
    quadrants.tree_._slots[0] = 0
    for model in (comparisons, quadrants):
        description = describe_state(model)
        with pytest.raises(ValueError, match="child"):
            rebuild(description.nodes, description.tensors)


def test_multiway_trees_with_invalid_arrays_raise() -> None:
    """Export and importances traverse these trees without the checks of the core."""

    def rebuild_with(name: str, index: Any, value: Any) -> None:
        model = C45Classifier().fit(X, CLASSES)
        tree = model.tree_
        if index is None:
            setattr(tree, name, value)
        else:
            getattr(tree, name)[index] = value
        description = describe_state(model)
        rebuild(description.nodes, description.tensors)

    n = C45Classifier().fit(X, CLASSES).tree_.node_count
    with pytest.raises(ValueError, match="must follow its parent"):
        rebuild_with("children", -1, 0)
    with pytest.raises(ValueError, match="must follow its parent"):
        rebuild_with("children", 0, n)
    with pytest.raises(ValueError, match="must not have two parents"):
        rebuild_with("children", 0, 2)
    with pytest.raises(ValueError, match="offsets of the tree or rules exceed"):
        rebuild_with("child_start", 1, 2**40)
    with pytest.raises(ValueError, match="column out of range"):
        rebuild_with("feature", 0, 3)
    with pytest.raises(ValueError, match="other columns"):
        rebuild_with("n_features", None, 10**12)
    with pytest.raises(ValueError, match="differ in length"):
        rebuild_with("weight", None, np.ones(n + 1))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("attribute", "changes"),
    [
        ("indptr", {-1: -(2**31)}),  # SciPy would not check it, and crash
        ("indptr", {2: -1, -1: -(2**31)}),
        ("indptr", {0: 1}),
        ("indptr", {-1: 0}),
        ("indptr", {1: 2**31 - 1}),
        ("indptr", {-1: 2**31 - 1}),
        ("indices", {0: -1}),
        ("indices", {0: 8}),
    ],
)
def test_sparse_matrices_with_invalid_indices_raise(
    kind: Any, attribute: str, changes: dict[int, int]
) -> None:
    matrix = kind(sp.random(8, 8, density=0.4, random_state=0, format="csr"))
    array = getattr(matrix, attribute)
    for index, value in changes.items():
        array[index] = value
    description = describe_state(matrix)
    with pytest.raises(ValueError, match="a sparse matrix"):
        rebuild(description.nodes, description.tensors)


def test_sparse_matrices_with_invalid_shapes_raise() -> None:
    matrix = sp.csr_matrix(np.eye(3))
    description = describe_state(matrix)
    rebuilt = rebuild(deepcopy(description.nodes), dict(description.tensors))
    assert (rebuilt != matrix).nnz == 0
    for shape in ([2**40, 3], [3, -1], [3, 2], [4, 3], [True, 3]):
        nodes = deepcopy(description.nodes)
        next(node for node in nodes if node["kind"] == "tuple")["items"] = shape
        with pytest.raises(ValueError, match="a sparse matrix"):
            rebuild(nodes, dict(description.tensors))


def test_invalid_class_codes_raise() -> None:
    near = KNeighborsClassifier().fit(X, CLASSES)
    near._y[3] = 2**40
    voting = VotingClassifier([("a", DecisionTreeClassifier(max_depth=2))]).fit(X, CLASSES)
    voting.estimators_[0].classes_ = np.array([0, 2**63 - 1])
    for model in (near, voting):
        description = describe_state(model)
        with pytest.raises(ValueError, match="classes"):
            rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "<U100000000"}, "far too short"),
        ({"dtype": "<U1"}, "longer than"),
        ({"dtype": "|V8"}, "dtype"),
        ({"dtype": "i4,i4"}, "dtype"),
        ({"dtype": {"names": ["a"], "formats": ["O"]}}, "dtype"),
        ({"order": "K"}, "order 'C' or 'F', got 'K'"),
        ({"shape": [2**40]}, "reshape"),
        ({"shape": [-1]}, "of shape"),
    ],
)
def test_text_arrays_with_invalid_types_raise(change: dict[str, Any], message: str) -> None:
    description = describe_state(np.array(["yes", "no"]))
    description.nodes[0] |= change
    with pytest.raises(ValueError, match=message):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "dtype", "name": "<U1000000000"},
        {"kind": "scalar", "dtype": "|V99999999999", "value": 3},
        {"kind": "scalar", "dtype": "<i8", "value": "3"},
        {"kind": "range", "items": [0, 2**60, 1]},
    ],
)
def test_oversized_and_invalid_values_raise(node: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"type|that is|range"):
        rebuild([node], {})


@pytest.mark.parametrize("kind", ["list", "set", "dict"])
def test_exponential_references_raise(kind: str) -> None:
    nodes: list[dict[str, Any]] = [{"kind": "tuple", "items": []}]
    nodes += [{"kind": "tuple", "items": [{"ref": i}] * 10} for i in range(40)]
    key = {"ref": 40}  # its hash would take exponential time
    nodes.append({"kind": kind, "items": [[key, 1]] if kind == "dict" else [key]})
    with pytest.raises(ValueError, match="again and again"):
        rebuild(nodes, {})


def test_values_shared_by_many_nodes() -> None:
    schema = [{"column": i} for i in range(1000)]
    description = describe_state([{"schema": schema} for _ in range(2000)])
    rebuilt = rebuild(description.nodes, description.tensors)
    assert len(rebuilt) == 2000
    assert rebuilt[0]["schema"] is rebuilt[-1]["schema"]


def test_short_texts_of_a_wide_type() -> None:
    array = np.full(10_000, "no", dtype="U2000")  # 80 MB in memory, more than its file may allocate
    description = describe_state(array)
    rebuilt = rebuild(description.nodes, description.tensors)
    assert rebuilt.dtype == "<U2"
    assert np.array_equal(rebuilt, array)


@pytest.mark.parametrize("kind", [KDTree, BallTree])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", np.where(X > 1.5, np.nan, X)),  # would split forever, with leaves of one row
        ("data", np.where(X > 1.5, np.inf, X)),
        ("data", X[:0]),
        ("data", X[:, 0]),
        ("leaf_size", 0),
        ("leaf_size", -(2**40)),
        ("leaf_size", 1.5),
    ],
)
def test_search_trees_with_invalid_state_raise(kind: Any, name: str, value: Any) -> None:
    state = kind(X, leaf_size=1).__getstate__() | {name: value}
    with pytest.raises(ValueError, match=rf"{name}|0 sample"):
        object.__new__(kind).__setstate__(state)


def test_rows_of_local_regression_with_nan_raise() -> None:
    rows = RowTree(X, "euclidean", 1)
    with pytest.raises(ValueError, match="data"):
        object.__new__(RowTree).__setstate__(rows.__getstate__() | {"data": X * np.nan})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
def test_killed_writer_leaves_the_old_or_the_new_file() -> None:
    script = TESTS / "support" / "kill_run.py"
    process = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
