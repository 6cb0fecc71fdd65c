"""Every estimator answers `predict_interval` or `predict_set`, or says which class would."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import KBinsDiscretizer

from spinney.calibration import ConformalClassifier, ConformalRegressor
from spinney.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from spinney.linear_model import LADRegressor, LinearRegression, LogisticRegression
from spinney.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor, PartitionRegressor

MODULES = ("calibration", "ensemble", "linear_model", "mixture", "neighbors", "tree")
# scikit-learn's own classes, under our names: the wrappers serve them.
THEIRS = ("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor")
# Its predictions are probabilities that are made right, whose sets are ConformalClassifier's.
OTHERS = ("CalibratedClassifier",)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "AnyBoostClassifier": {"n_estimators": 20},
    "AnyBoostRegressor": {"n_estimators": 20},
    "BayesianModelAveragingClassifier": {
        "estimators": [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]
    },
    "BayesianModelAveragingRegressor": {
        "estimators": [("line", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3))],
        "method": "cv",
    },
    "ComparisonForestClassifier": {"n_estimators": 20},
    "ComparisonForestRegressor": {"n_estimators": 20},
    "ConformalClassifier": {"estimator": LogisticRegression()},
    "ConformalRegressor": {"estimator": LADRegressor()},
    "HistGradientBoostingClassifier": {"early_stopping": True},
    "HistGradientBoostingRegressor": {"early_stopping": True},
    "ID3Classifier": {"discretizer": KBinsDiscretizer(4, encode="ordinal")},
    "PolynomialRegression": {"degree": 2},
    "RadiusNeighborsClassifier": {"radius": 1.5, "outlier_label": 0},
    "RadiusNeighborsRegressor": {"radius": 1.5},
}
# What these hold out follows from fit without another one.
NATIVE = {
    "BaggingClassifier", "BaggingRegressor", "BayesianModelAveragingClassifier",
    "BayesianModelAveragingRegressor", "ConformalClassifier", "ConformalRegressor",
    "GradientBoostingClassifier", "GradientBoostingRegressor", "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor", "KNeighborsClassifier", "KNeighborsRegressor",
    "LADRegressor", "LinearRegression", "LocalClassifier", "LocalRegression",
    "PartitionClassifier", "PartitionRegressor", "PolynomialRegression", "QuadTreeClassifier",
    "QuadTreeRegressor", "RadiusNeighborsClassifier", "RadiusNeighborsRegressor",
    "RandomForestClassifier", "RandomForestRegressor", "Ridge", "RidgeCV",
}  # fmt: skip
# Intervals of leaves without rows that were held out: nothing corrects their coverage.
UNCORRECTED = {"ExtraTreesRegressor"}
COVERAGE = 0.9


def _classes(kind: type) -> list[type]:
    found = []
    for name in MODULES:
        module = importlib.import_module(f"spinney.{name}")
        for public in module.__all__:
            one = getattr(module, public)
            if inspect.isclass(one) and issubclass(one, kind) and public not in THEIRS + OTHERS:
                found.append(one)
    return found


def _make(kind: type) -> Any:
    model = kind(**ARGUMENTS.get(kind.__name__, {}))
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def _table(n: int, seed: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    signal = X[:, 0] + 0.5 * X[:, 1] ** 2
    noise = random.normal(size=n)
    return X, signal + noise, (signal + noise > 0.5).astype(int)


def _is_near(held: Any, n_limit: int) -> None:
    """Check a count of rows held against what the rows of the limit and of the test allow."""
    n = len(held)
    # The coverage of one fit is itself a draw, with the variance of as many rows as made it.
    slack = 4 * np.sqrt(COVERAGE * (1 - COVERAGE) * (1 / n + 1 / n_limit))
    assert abs(held.mean() - COVERAGE) < slack, (held.mean(), slack)


REGRESSORS, CLASSIFIERS = _classes(RegressorMixin), _classes(ClassifierMixin)


def test_all_are_here() -> None:
    known = {one.__name__ for one in REGRESSORS + CLASSIFIERS}
    assert len(known) > 40
    assert known >= NATIVE | UNCORRECTED | set(ARGUMENTS)


@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda one: one.__name__)
def test_every_regressor_has_intervals_or_names_who_has(kind: type) -> None:
    X, y, _ = _table(400, 0)
    rows, truth, _ = _table(600, 1)
    model = _make(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        if kind.__name__ in NATIVE:
            low, high = model.predict_interval(rows, COVERAGE).T
            _is_near((low <= truth) & (truth <= high), len(y))
            assert isinstance(model.interval_method_, str)
        elif kind.__name__ not in UNCORRECTED:
            with pytest.raises(ValueError, match=r"ConformalRegressor.*calibration="):
                model.predict_interval(rows, COVERAGE)
            with pytest.raises(AttributeError, match="ConformalRegressor"):
                model.interval_method_  # noqa: B018
        if kind is not ConformalRegressor:
            held, own, _ = _table(300, 2)
            low, high = model.predict_interval(rows, COVERAGE, calibration=(held, own)).T
            _is_near((low <= truth) & (truth <= high), len(own))


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda one: one.__name__)
def test_every_classifier_has_sets_or_names_who_has(kind: type) -> None:
    X, _, y = _table(400, 0)
    rows, _, truth = _table(600, 1)
    model = _make(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        told = []
        if kind.__name__ in NATIVE:
            told.append(model.predict_set(rows, COVERAGE))
            assert isinstance(model.set_method_, str)
        else:
            with pytest.raises(ValueError, match=r"ConformalClassifier.*calibration="):
                model.predict_set(rows, COVERAGE)
            with pytest.raises(AttributeError, match="ConformalClassifier"):
                model.set_method_  # noqa: B018
        if kind is not ConformalClassifier:
            held, _, own = _table(300, 2)
            told.append(model.predict_set(rows, COVERAGE, calibration=(held, own)))
    for sets in told:
        assert sets.shape == (len(rows), 2)
        assert sets.any(axis=1).all()
        right = sets[np.arange(len(rows)), truth]
        # Ties of coarse probabilities can only make sets hold more than was asked for.
        assert binom.cdf(right.sum(), len(right), COVERAGE - 4 * 0.3 / np.sqrt(300)) > 1e-3


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_lad_left_out_by_formula_is_near_lad_left_out(level: float) -> None:
    sizes = []
    for seed in range(2):
        random = np.random.default_rng(seed)
        X = random.normal(size=(80, 4))
        y = X[:, 0] - X[:, 1] + random.standard_t(3, size=80)
        model = LADRegressor(quantile=level).fit(X, y)
        exact = np.empty(len(y))
        for i in range(len(y)):
            rest = clone(model).fit(np.delete(X, i, 0), np.delete(y, i))
            exact[i] = rest.predict(X[i : i + 1])[0]
        told = (model.predict(X), model._held_out_rows().told, exact)
        sizes.append([np.abs(y - one).mean() for one in told])
    inside, formula, truth = np.mean(sizes, axis=0)
    # How much smaller errors are on rows of fit: the formula has most of it, on average.
    assert 0.6 < (formula - inside) / (truth - inside) < 1.4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["PartitionRegressor", "QuadTreeRegressor"])
def test_cells_left_out_by_formula_are_cells_left_out(name: str, weighted: bool) -> None:
    from spinney import tree

    X, y, _ = _table(80, 3)
    # The rows at the edges decide the range: it is given, so that leaving one out changes nothing.
    X = np.vstack([[-4.0, -4.0], [4.0, 4.0], X])
    y = np.concatenate([[0.0, 1.0], y])
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    arguments = {"cells": 3} if name == "PartitionRegressor" else {"leaf_capacity": 5}
    model = getattr(tree, name)(**arguments).fit(X, y, weights)
    held = model._held_out_rows()
    for i in range(2, len(y)):
        some = np.arange(len(y)) != i
        own = None if weights is None else weights[some]
        exact = clone(model).fit(X[some], y[some], own).predict(X[i : i + 1])[0]
        assert held.told[i] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("calibration", "said"),
    [
        ("no", "calibration: expected"),
        (([[0.0, 1.0]],), "calibration: expected"),
        (([[0.0, 1.0]], [1.0, 2.0]), "calibration: expected one target for each of its 1 rows"),
        (([[0.0, 1.0]], [np.nan]), "calibration: y contains NaN"),
        (([[0.0, 1.0]], ["a"]), "calibration: y must be numeric"),
        (([[0.0, 1.0]], [[1.0, 2.0]]), "calibration: expected y of shape"),
    ],
)
def test_calibration_that_is_none(calibration: Any, said: str) -> None:
    X, y, _ = _table(50, 0)
    model = DecisionTreeRegressor().fit(X, y)
    with pytest.raises(ValueError, match=said):
        model.predict_interval(X, calibration=calibration)


def test_classes_that_are_not_known() -> None:
    X, _, y = _table(50, 0)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="calibration: y has class 7"):
        model.predict_set(X, calibration=(X[:2], [0, 7]))
    several = DecisionTreeClassifier().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="one output"):
        several.predict_set(X, calibration=(X, y))


def test_few_rows_of_calibration_say_nothing() -> None:
    X, y, classes = _table(50, 0)
    model = DecisionTreeRegressor().fit(X, y)
    ends = model.predict_interval(X, calibration=(X[:3], y[:3]))
    assert np.isinf(ends).all()
    sets = DecisionTreeClassifier().fit(X, classes).predict_set(X, calibration=(X[:3], classes[:3]))
    assert sets.all()


def test_places_without_rows_may_hold_anything() -> None:
    X, y, classes = _table(200, 0)
    X = X[:, [0, 0]]  # on the diagonal, so that corners are empty
    far = np.tile([100.0, -100.0], (5, 1))
    for model in (PartitionRegressor(4, empty="nan"), RadiusNeighborsRegressor(1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = model.fit(X, y).predict_interval(np.vstack([far, X[:5]]))
        np.testing.assert_array_equal(ends[:5], [[-np.inf, np.inf]] * 5)
        assert np.isfinite(ends[5:]).all()
    alone = RadiusNeighborsRegressor(1e-9).fit(X, y)
    with pytest.raises(ValueError, match="no training row has a neighbour within the radius"):
        alone.predict_interval(X)
    model = RadiusNeighborsClassifier(1.0, outlier_label=7).fit(X, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.predict_set(far).all()


def test_intervals_that_nothing_corrects_say_so() -> None:
    X, y, _ = _table(200, 0)
    forest = ExtraTreesRegressor(20, random_state=0).fit(X[:150], y[:150])
    with pytest.warns(UserWarning, match="nothing corrects the coverage"):
        told = forest.predict_interval(X[150:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked_for = forest.predict_interval(X[150:], method="quantile")
        forest.predict_interval(X[150:], calibration=(X[150:], y[150:]))
        ExtraTreesRegressor(20, bootstrap=True).fit(X, y).predict_interval(X)
    np.testing.assert_array_equal(told, asked_for)


def test_several_outputs_quantiles_and_rows_of_calibration() -> None:
    X, y, _ = _table(400, 0)
    both = np.column_stack([y, -y])
    several = DecisionTreeRegressor(max_depth=3).fit(X[:200], both[:200])
    ends = several.predict_interval(X, calibration=(X[200:], both[200:]))
    one = DecisionTreeRegressor(max_depth=3).fit(X[:200], both[:200])
    errors = both[200:, 0] - one.predict(X[200:])[:, 0]
    # The 191st of 200 at either end: (200 + 1) times 0.95, rounded up.
    np.testing.assert_allclose(ends[0, 0] - one.predict(X[:1])[0, 0], np.sort(errors)[[9, 190]])
    quantiles = GradientBoostingRegressor(
        loss="quantile", alpha=[0.1, 0.9], n_estimators=10, random_state=0
    ).fit(X[:200], y[:200])
    ends = quantiles.predict_interval(X[200:], 0.8, calibration=(X[200:], y[200:]))
    held = (ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1])
    assert held.sum() == 161  # the rank that the rule asks for, on its own rows


def test_neighbours_without_others_to_ask() -> None:
    X, y, classes = _table(5, 0)
    ends = KNeighborsRegressor(5).fit(X, y).predict_interval(X)
    np.testing.assert_array_equal(ends, [[-np.inf, np.inf]] * 5)
    both = KNeighborsRegressor(5).fit(X, np.column_stack([y, y])).predict_interval(X)
    assert both.shape == (5, 2, 2)
    assert KNeighborsClassifier(5).fit(X, classes).predict_set(X).all()
