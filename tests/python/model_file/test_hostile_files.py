"""Files whose checksums are right and whose contents are not, and writers that are killed."""

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
from spinney.model_file._description import describe
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


def changed_state(model: Any, array: str, place: int, value: float) -> Any:
    """Rebuild a forest of which one number is another."""
    state = model.fitted_model().store.__getstate__()
    state["arrays"][array] = state["arrays"][array].copy()
    state["arrays"][array][place] = value
    store = object.__new__(type(model.fitted_model().store))
    store.__setstate__(state)
    return store


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [
        ("nodes", 2, 2),  # the left child of the root is the right one too, or out of order
        ("nodes", 2, 2**31 - 1),
        ("nodes", 2, 2**32 - 1),  # leaf 0, which another node leads to
        ("nodes", 2, 2**31),  # a leaf that there is not
        ("nodes", 1, 3),  # column 3 of 3
        ("nodes", 1, 2**30),  # a question about categories of a column of numbers
        ("nodes", 0, 0x7FC00000),  # NaN as a threshold
        ("leaf_class", 0, 2**32 - 1),
        ("sizes", 0, 2**62),
        ("sizes", 0, 0),
    ],
)
def test_forests_that_point_beyond_their_ends(array: str, place: int, value: int) -> None:
    model = RandomForestClassifier(2, random_state=0).fit(X, CLASSES)
    with pytest.raises(ValueError, match="forest"):
        changed_state(model, array, place, value)


def test_mixed_leaves_of_one_class() -> None:
    model = RandomForestClassifier(1, max_depth=1, random_state=0).fit(X, np.zeros(90))
    state = model.fitted_model().store.__getstate__()
    state["arrays"]["leaf_class"] = state["arrays"]["leaf_class"] + np.uint32(1)
    state["arrays"]["mixed_counts"] = np.array([90.0], dtype=np.float32)
    state["arrays"]["sizes"][6] = 1  # of mixed_counts
    model.fitted_model().store.__setstate__(state)
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((90, 1)))


def test_ways_without_end_are_refused() -> None:
    comparisons = ComparisonTreeRegressor(random_state=0).fit(X, NUMBERS)
    comparisons._nodes.left[3] = comparisons._nodes.right[3] = 0
    quadrants = QuadTreeRegressor().fit(X, NUMBERS)
    quadrants.tree_._slots[0] = 0
    for model in (comparisons, quadrants):
        description = describe(model)
        with pytest.raises(ValueError, match="child"):
            rebuild(description.nodes, description.tensors)


def test_trees_of_many_branches_that_lead_back_or_out() -> None:
    """The core would refuse them when it predicts; pictures and importances walk without it."""

    def rebuilt(name: str, place: Any, value: Any) -> None:
        model = C45Classifier().fit(X, CLASSES)
        tree = model.tree_
        if place is None:
            setattr(tree, name, value)
        else:
            getattr(tree, name)[place] = value
        description = describe(model)
        rebuild(description.nodes, description.tensors)

    n = C45Classifier().fit(X, CLASSES).tree_.node_count
    with pytest.raises(ValueError, match="does not follow"):
        rebuilt("children", -1, 0)
    with pytest.raises(ValueError, match="does not follow"):
        rebuilt("children", 0, n)
    with pytest.raises(ValueError, match="child of two"):
        rebuilt("children", 0, 2)
    with pytest.raises(ValueError, match="lists end"):
        rebuilt("child_start", 1, 2**40)
    with pytest.raises(ValueError, match="column out of range"):
        rebuilt("feature", 0, 3)
    with pytest.raises(ValueError, match="other columns"):
        rebuilt("n_features", None, 10**12)
    with pytest.raises(ValueError, match="differ in length"):
        rebuilt("weight", None, np.ones(n + 1))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("indptr", {-1: -(2**31)}),  # SciPy would look no further, and the process would end
        ("indptr", {2: -1, -1: -(2**31)}),
        ("indptr", {0: 1}),
        ("indptr", {-1: 0}),
        ("indptr", {1: 2**31 - 1}),
        ("indptr", {-1: 2**31 - 1}),
        ("indices", {0: -1}),
        ("indices", {0: 8}),
    ],
)
def test_sparse_rows_that_end_elsewhere(kind: Any, part: str, changes: dict[int, int]) -> None:
    matrix = kind(sp.random(8, 8, density=0.4, random_state=0, format="csr"))
    array = getattr(matrix, part)
    for place, value in changes.items():
        array[place] = value
    description = describe(matrix)
    with pytest.raises(ValueError, match="a sparse matrix"):
        rebuild(description.nodes, description.tensors)


def test_sparse_rows_of_strange_shapes() -> None:
    matrix = sp.csr_matrix(np.eye(3))
    description = describe(matrix)
    again = rebuild(deepcopy(description.nodes), dict(description.tensors))
    assert (again != matrix).nnz == 0
    for shape in ([2**40, 3], [3, -1], [3, 2], [4, 3], [True, 3]):
        nodes = deepcopy(description.nodes)
        next(node for node in nodes if node["kind"] == "tuple")["items"] = shape
        with pytest.raises(ValueError, match="a sparse matrix"):
            rebuild(nodes, dict(description.tensors))


def test_codes_of_classes_that_there_are_not() -> None:
    near = KNeighborsClassifier().fit(X, CLASSES)
    near._y[3] = 2**40
    vote = VotingClassifier([("a", DecisionTreeClassifier(max_depth=2))]).fit(X, CLASSES)
    vote.estimators_[0].classes_ = np.array([0, 2**63 - 1])
    for model in (near, vote):
        description = describe(model)
        with pytest.raises(ValueError, match="classes"):
            rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize(
    ("change", "complaint"),
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
def test_texts_that_ask_for_too_much(change: dict[str, Any], complaint: str) -> None:
    description = describe(np.array(["yes", "no"]))
    description.nodes[0] |= change
    with pytest.raises(ValueError, match=complaint):
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
def test_values_that_ask_for_too_much(node: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"type|that is|range"):
        rebuild([node], {})


@pytest.mark.parametrize("last", ["list", "set", "dict"])
def test_parts_that_refer_to_each_other_without_end(last: str) -> None:
    nodes: list[dict[str, Any]] = [{"kind": "tuple", "items": []}]
    nodes += [{"kind": "tuple", "items": [{"ref": i}] * 10} for i in range(40)]
    key = {"ref": 40}  # a hash of it would take longer than the world has been there
    nodes.append({"kind": last, "items": [[key, 1]] if last == "dict" else [key]})
    with pytest.raises(ValueError, match="again and again"):
        rebuild(nodes, {})


def test_what_is_shared_by_many_parts() -> None:
    schema = [{"column": i} for i in range(1000)]
    description = describe([{"schema": schema} for _ in range(2000)])
    again = rebuild(description.nodes, description.tensors)
    assert len(again) == 2000
    assert again[0]["schema"] is again[-1]["schema"]


def test_wide_texts_that_are_short() -> None:
    array = np.full(10_000, "no", dtype="U2000")  # 80 MB: its file could not ask for that
    description = describe(array)
    again = rebuild(description.nodes, description.tensors)
    assert again.dtype == "<U2"
    assert np.array_equal(again, array)


@pytest.mark.parametrize("kind", [KDTree, BallTree])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", np.where(X > 1.5, np.nan, X)),  # divided for ever, with leaves of one row
        ("data", np.where(X > 1.5, np.inf, X)),
        ("data", X[:0]),
        ("data", X[:, 0]),
        ("leaf_size", 0),
        ("leaf_size", -(2**40)),
        ("leaf_size", 1.5),
    ],
)
def test_trees_of_points_that_cannot_be_grown(kind: Any, name: str, value: Any) -> None:
    state = kind(X, leaf_size=1).__getstate__() | {name: value}
    with pytest.raises(ValueError, match=rf"{name}|0 sample"):
        object.__new__(kind).__setstate__(state)


def test_rows_of_local_regression_that_are_no_numbers() -> None:
    rows = RowTree(X, "euclidean", 1)
    with pytest.raises(ValueError, match="data"):
        object.__new__(RowTree).__setstate__(rows.__getstate__() | {"data": X * np.nan})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
def test_a_kill_leaves_the_old_file_or_the_new() -> None:
    script = TESTS / "support" / "kill_run.py"
    done = subprocess.run(
        [sys.executable, script, "100", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
