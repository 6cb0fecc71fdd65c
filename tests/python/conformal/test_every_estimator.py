"""Intervals or sets of every estimator, or an error that names a wrapper."""

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
# scikit-learn's own classes under our names: the wrappers support them.
THEIRS = ("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor")
# It calibrates probabilities; the sets are those of ConformalClassifier.
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
# Estimators whose fit computes out-of-fold predictions without another fit.
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
# Intervals from leaves, without held-out rows: their coverage is not corrected.
UNCORRECTED = {"ExtraTreesRegressor"}
COVERAGE = 0.9


def _public_classes(kind: type) -> list[type]:
    classes_found = []
    for name in MODULES:
        module = importlib.import_module(f"spinney.{name}")
        for public in module.__all__:
            candidate = getattr(module, public)
            if (
                inspect.isclass(candidate)
                and issubclass(candidate, kind)
                and public not in THEIRS + OTHERS
            ):
                classes_found.append(candidate)
    return classes_found


def _create(kind: type) -> Any:
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


def _assert_near_coverage(covered: Any, n_limit: int) -> None:
    """Check the share of covered rows, given the number of rows that set the limit."""
    n = len(covered)
    # The coverage of one fit varies, too, with the variance of its number of calibration rows.
    slack = 4 * np.sqrt(COVERAGE * (1 - COVERAGE) * (1 / n + 1 / n_limit))
    assert abs(covered.mean() - COVERAGE) < slack, (covered.mean(), slack)


REGRESSORS, CLASSIFIERS = _public_classes(RegressorMixin), _public_classes(ClassifierMixin)


def test_all_public_estimators_are_found() -> None:
    names = {estimator.__name__ for estimator in REGRESSORS + CLASSIFIERS}
    assert len(names) > 40
    assert names >= NATIVE | UNCORRECTED | set(ARGUMENTS)


@pytest.mark.parametrize("kind", REGRESSORS, ids=lambda one: one.__name__)
def test_every_regressor_has_intervals_or_names_the_wrapper(kind: type) -> None:
    X, y, _ = _table(400, 0)
    X_test, y_test, _ = _table(600, 1)
    model = _create(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        if kind.__name__ in NATIVE:
            low, high = model.predict_interval(X_test, COVERAGE).T
            _assert_near_coverage((low <= y_test) & (y_test <= high), len(y))
            assert isinstance(model.interval_method_, str)
        elif kind.__name__ not in UNCORRECTED:
            with pytest.raises(ValueError, match=r"ConformalRegressor.*calibration="):
                model.predict_interval(X_test, COVERAGE)
            with pytest.raises(AttributeError, match="ConformalRegressor"):
                model.interval_method_  # noqa: B018
        if kind is not ConformalRegressor:
            X_calibration, y_calibration, _ = _table(300, 2)
            low, high = model.predict_interval(
                X_test, COVERAGE, calibration=(X_calibration, y_calibration)
            ).T
            _assert_near_coverage((low <= y_test) & (y_test <= high), len(y_calibration))


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda one: one.__name__)
def test_every_classifier_has_sets_or_names_the_wrapper(kind: type) -> None:
    X, _, y = _table(400, 0)
    X_test, _, y_test = _table(600, 1)
    model = _create(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        all_sets = []
        if kind.__name__ in NATIVE:
            all_sets.append(model.predict_set(X_test, COVERAGE))
            assert isinstance(model.set_method_, str)
        else:
            with pytest.raises(ValueError, match=r"ConformalClassifier.*calibration="):
                model.predict_set(X_test, COVERAGE)
            with pytest.raises(AttributeError, match="ConformalClassifier"):
                model.set_method_  # noqa: B018
        if kind is not ConformalClassifier:
            X_calibration, _, y_calibration = _table(300, 2)
            all_sets.append(
                model.predict_set(X_test, COVERAGE, calibration=(X_calibration, y_calibration))
            )
    for sets in all_sets:
        assert sets.shape == (len(X_test), 2)
        assert sets.any(axis=1).all()
        covered = sets[np.arange(len(X_test)), y_test]
        # Ties of coarse probabilities can only increase the coverage.
        assert binom.cdf(covered.sum(), len(covered), COVERAGE - 4 * 0.3 / np.sqrt(300)) > 1e-3


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_lad_out_of_fold_formula_is_near_refitting(level: float) -> None:
    errors = []
    for seed in range(2):
        random = np.random.default_rng(seed)
        X = random.normal(size=(80, 4))
        y = X[:, 0] - X[:, 1] + random.standard_t(3, size=80)
        model = LADRegressor(quantile=level).fit(X, y)
        exact = np.empty(len(y))
        for i in range(len(y)):
            refitted = clone(model).fit(np.delete(X, i, 0), np.delete(y, i))
            exact[i] = refitted.predict(X[i : i + 1])[0]
        predictions = (model.predict(X), model._held_out_rows().predicted, exact)
        errors.append([np.abs(y - predicted).mean() for predicted in predictions])
    training, formula, exact = np.mean(errors, axis=0)
    # The formula explains most of the gap between training errors and out-of-fold errors.
    assert 0.6 < (formula - training) / (exact - training) < 1.4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["PartitionRegressor", "QuadTreeRegressor"])
def test_out_of_fold_formula_of_cells_equals_refitting(name: str, weighted: bool) -> None:
    from spinney import tree

    X, y, _ = _table(80, 3)
    # The outermost rows set the range. Two fixed rows set it, so that no omitted row changes it.
    X = np.vstack([[-4.0, -4.0], [4.0, 4.0], X])
    y = np.concatenate([[0.0, 1.0], y])
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    arguments = {"cells": 3} if name == "PartitionRegressor" else {"leaf_capacity": 5}
    model = getattr(tree, name)(**arguments).fit(X, y, weights)
    held = model._held_out_rows()
    for i in range(2, len(y)):
        others = np.arange(len(y)) != i
        other_weights = None if weights is None else weights[others]
        exact = clone(model).fit(X[others], y[others], other_weights).predict(X[i : i + 1])[0]
        assert held.predicted[i] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ("no", "calibration: expected"),
        (([[0.0, 1.0]],), "calibration: expected"),
        (([[0.0, 1.0]], [1.0, 2.0]), "calibration: expected one target for each of its 1 rows"),
        (([[0.0, 1.0]], [np.nan]), "calibration: y contains NaN"),
        (([[0.0, 1.0]], ["a"]), "calibration: y must be numeric"),
        (([[0.0, 1.0]], [[1.0, 2.0]]), "calibration: expected y of shape"),
    ],
)
def test_invalid_calibration_raises(calibration: Any, message: str) -> None:
    X, y, _ = _table(50, 0)
    model = DecisionTreeRegressor().fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X, calibration=calibration)


def test_calibration_with_unknown_classes_or_several_outputs_raises() -> None:
    X, _, y = _table(50, 0)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="calibration: y has class 7"):
        model.predict_set(X, calibration=(X[:2], [0, 7]))
    two_outputs = DecisionTreeClassifier().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="one output"):
        two_outputs.predict_set(X, calibration=(X, y))


def test_too_few_calibration_rows_give_infinite_intervals_and_full_sets() -> None:
    X, y, classes = _table(50, 0)
    model = DecisionTreeRegressor().fit(X, y)
    intervals = model.predict_interval(X, calibration=(X[:3], y[:3]))
    assert np.isinf(intervals).all()
    sets = DecisionTreeClassifier().fit(X, classes).predict_set(X, calibration=(X[:3], classes[:3]))
    assert sets.all()


def test_regions_without_rows_give_infinite_intervals_and_full_sets() -> None:
    X, y, classes = _table(200, 0)
    X = X[:, [0, 0]]  # on the diagonal, so that two corners are empty
    far_rows = np.tile([100.0, -100.0], (5, 1))
    for model in (PartitionRegressor(4, empty="nan"), RadiusNeighborsRegressor(1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            intervals = model.fit(X, y).predict_interval(np.vstack([far_rows, X[:5]]))
        np.testing.assert_array_equal(intervals[:5], [[-np.inf, np.inf]] * 5)
        assert np.isfinite(intervals[5:]).all()
    without_neighbors = RadiusNeighborsRegressor(1e-9).fit(X, y)
    with pytest.raises(ValueError, match="no training row has a neighbour within the radius"):
        without_neighbors.predict_interval(X)
    model = RadiusNeighborsClassifier(1.0, outlier_label=7).fit(X, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.predict_set(far_rows).all()


def test_uncorrected_intervals_warn() -> None:
    X, y, _ = _table(200, 0)
    forest = ExtraTreesRegressor(20, random_state=0).fit(X[:150], y[:150])
    with pytest.warns(UserWarning, match="coverage is lower than requested"):
        intervals = forest.predict_interval(X[150:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        requested = forest.predict_interval(X[150:], method="quantile")
        forest.predict_interval(X[150:], calibration=(X[150:], y[150:]))
        ExtraTreesRegressor(20, bootstrap=True).fit(X, y).predict_interval(X)
    np.testing.assert_array_equal(intervals, requested)


def test_calibration_with_several_outputs_and_with_quantiles() -> None:
    X, y, _ = _table(400, 0)
    two_targets = np.column_stack([y, -y])
    two_outputs = DecisionTreeRegressor(max_depth=3).fit(X[:200], two_targets[:200])
    intervals = two_outputs.predict_interval(X, calibration=(X[200:], two_targets[200:]))
    same_tree = DecisionTreeRegressor(max_depth=3).fit(X[:200], two_targets[:200])
    errors = two_targets[200:, 0] - same_tree.predict(X[200:])[:, 0]
    # The 191st of 200 at either end: (200 + 1) * 0.95, rounded up.
    np.testing.assert_allclose(
        intervals[0, 0] - same_tree.predict(X[:1])[0, 0], np.sort(errors)[[9, 190]]
    )
    quantiles = GradientBoostingRegressor(
        loss="quantile", alpha=[0.1, 0.9], n_estimators=10, random_state=0
    ).fit(X[:200], y[:200])
    intervals = quantiles.predict_interval(X[200:], 0.8, calibration=(X[200:], y[200:]))
    covered = (intervals[:, 0] <= y[200:]) & (y[200:] <= intervals[:, 1])
    assert covered.sum() == 161  # the rank of the rule, on its own rows


def test_neighbours_without_other_rows_give_infinite_intervals_and_full_sets() -> None:
    X, y, classes = _table(5, 0)
    intervals = KNeighborsRegressor(5).fit(X, y).predict_interval(X)
    np.testing.assert_array_equal(intervals, [[-np.inf, np.inf]] * 5)
    two_outputs = KNeighborsRegressor(5).fit(X, np.column_stack([y, y])).predict_interval(X)
    assert two_outputs.shape == (5, 2, 2)
    assert KNeighborsClassifier(5).fit(X, classes).predict_set(X).all()
