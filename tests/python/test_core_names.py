"""The core raises errors for unknown names of every parameter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spinney import _core
from spinney.ensemble import AdaBoostClassifier, GradientBoostingRegressor
from spinney.linear_model import Perceptron
from support.boost_options import boost_options

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10) % 2


def _row_scorer(name: str) -> None:
    model = GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
    _core.RowScorer(model.fitted_model().store.core, [0.0], 2, name)


def _criterion(name: str) -> None:
    _core.GrowOptions(criterion=name)


def _importance(name: str) -> None:
    _core.ForestOptions(tree=_core.GrowOptions(criterion="gini"), importance=name)


def _algorithm(name: str) -> None:
    model = AdaBoostClassifier(n_estimators=2)
    model._validate_params = lambda: None  # skip the Python check to reach the check of the core
    model.set_params(algorithm=name).fit(X, Y)


def _variant(name: str) -> None:
    model = Perceptron(variant=name)
    model._validate_params = lambda: None
    model.fit(X, Y)


def _closer(name: str) -> None:
    index = np.zeros(1, dtype=np.int64)
    _core.closer_vectors(name, X, X, index, index, index, 1, np.zeros(1, dtype=bool))


def _string_distances(name: str) -> None:
    strings = _core.Strings(np.array([1], dtype=np.uint32), np.array([0, 1], dtype=np.int64))
    _core.string_distances(name, strings, strings, 1, np.zeros((1, 1)))


def _hnsw(name: str) -> None:
    _core.Hnsw(2, metric=name, M=4, ef_construction=8, has_codes=False, seed=0)


PARAMETERS: dict[str, tuple[Callable[[str], None], str]] = {
    "growth": (lambda name: boost_options(growth=name), "best_first"),
    "loss": (lambda name: boost_options(loss=name), "log_loss"),
    "sampling": (lambda name: boost_options(sampling=name), "gradient"),
    "link": (_row_scorer, "identity"),
    "criterion": (_criterion, "gini"),
    "importance": (_importance, "impurity"),
    "algorithm": (_algorithm, "SAMME"),
    "variant": (_variant, "last"),
    "kernel": (
        lambda name: _core.LocalModel(X, X, np.ones(10), name, 1, 0.0, False),
        "uniform",
    ),
    "covariance_type": (
        lambda name: _core.Mixture(name, np.zeros(1), X[:1], np.eye(2).ravel(), np.zeros(2)),
        "full",
    ),
    "metric (vectors)": (_closer, "euclidean"),
    "metric (strings)": (_string_distances, "edit"),
    "metric (HNSW)": (_hnsw, "cosine"),
    "metric (ball tree)": (
        lambda name: _core.BallTree(X, name, 2.0, [], None, 4),
        "minkowski",
    ),
}


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", ["unknown", "", "Best_First"])
def test_unknown_names_raise(parameter, name):
    set_parameter, allowed = PARAMETERS[parameter]
    set_parameter(allowed)
    message = rf"{parameter.split()[0]} must be one of .*'{allowed}'.*; got '{name}'"
    with pytest.raises(ValueError, match=message):
        set_parameter(name)


@pytest.mark.parametrize("option", ["n_trees", "n_threads"])
def test_options_of_a_forest_are_checked(option: str) -> None:
    tree = _core.GrowOptions(criterion="gini")
    with pytest.raises(ValueError, match=f"{option} must be at least 1; got 0"):
        _core.ForestOptions(tree=tree, **{option: 0})
