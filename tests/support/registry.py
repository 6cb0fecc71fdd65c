"""One entry for each public estimator: small arguments, and the reason for each limit.

To add an estimator, add an `Entry` to `ENTRIES` and run ``pytest tests/python/contract``. Every
estimator is expected to have all `CAPABILITIES`. A capability that it lacks has a reason in
`Entry.limits`; the tests then check that the estimator really lacks it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import spinney
from spinney import calibration, ensemble, linear_model, mixture, neighbors, preprocessing, tree
from spinney.comparison import scaled_linear, scaled_local, scaled_mixture, scaled_neighbors
from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.tree import pruned_tree

__all__ = [
    "CAPABILITIES",
    "ENTRIES",
    "NOT_COVERED",
    "WEIGHT_CHECKS",
    "WIDE_CHECK",
    "Entry",
    "cell_by_sign",
    "find_estimators",
]

CAPABILITIES = {
    "sample_weight": "fit accepts sample_weight",
    "unit_weights": "weights of one change nothing",
    "repeated_rows": "an integer weight equals repeated rows",
    "dropped_rows": "weight zero equals a dropped row",
    "scaled_weights": "only the proportions of weights count",
    "missing_values": "X may contain NaN",
    "categories": "a frame may have columns of strings",
    "sparse": "X may be a sparse matrix, with the outputs of the dense one",
    "multi_output": "y may have several columns",
    "threads": "n_jobs sets the number of threads",
    "layout_bits": "outputs do not depend on the layout of X in memory, to the bit",
    "sparse_bits": "a sparse matrix has the outputs of the dense one, to the bit",
    "float32_bits": "float32 has the outputs of the same values as float64, to the bit",
    "record_batches": "X may be a record batch of Arrow, with the names of its columns",
    "one_row": "one row is enough to fit and to predict it",
    "one_class": "one class is enough to fit",
    "constant_target": "a constant target is predicted",
    "refuses_infinity": "infinite values in X are an error",
    "huge_values": "values up to 1e300 have finite outputs",
    "tiny_values": "values down to 1e-300 have finite outputs",
    "model_file": "the estimator can be saved to a model file",
}

# Classes that the walk over the packages finds and that have no entry, by module or by name.
NOT_COVERED = {
    "spinney.dask": "needs a cluster; tests/python/dask compares it with the classes of this list",
    "ForestClassifier": "base class, without constructor",
    "ForestRegressor": "base class, without constructor",
    "BaseForest": "base class, without constructor",
    "ScaledTable": "base class, without learner",
}


@dataclass(frozen=True)
class Entry:
    """One estimator of the contract.

    Attributes
    ----------
    estimator_class : type
        The class.
    arguments : dict
        Constructor arguments that make it small and fast.
    limits : dict of str
        The reason for each missing one of `CAPABILITIES`.
    failed_checks : dict of str
        The reason for each of scikit-learn's checks that it fails.
    variant : str
        Distinguishes several entries of one class.
    thread_rows : int
        Number of rows that are enough for the core to use several threads.
    """

    estimator_class: type[Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    failed_checks: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    thread_rows: int = 3000

    @property
    def name(self) -> str:
        """Name of the class, with the variant."""
        name = self.estimator_class.__name__
        return f"{name}-{self.variant}" if self.variant else name

    @property
    def is_own(self) -> bool:
        """Whether the class is Spinney's; a few are scikit-learn's, under our names."""
        return self.estimator_class.__module__.startswith("spinney.")

    def create(self, **arguments: Any) -> Any:
        """Create an unfitted estimator; a random_state is 0 unless given."""
        model = clone(self.estimator_class(**self.arguments)).set_params(**arguments)
        if "random_state" in model.get_params(deep=False) and "random_state" not in arguments:
            model.set_params(random_state=0)
        return model

    def has(self, capability: str) -> bool:
        """Whether the estimator is expected to have a capability."""
        assert capability in CAPABILITIES
        return capability not in self.limits

    @cached_property
    def target(self) -> str:
        """Kind of target: "classes", "two classes", "numbers", "grades" or "none"."""
        model = self.create()
        tags = get_tags(model)
        if is_classifier(model):
            return "classes" if tags.classifier_tags.multi_class else "two classes"
        if is_regressor(model):
            return "numbers"
        return "grades" if tags.target_tags.required else "none"

    def detected(self) -> dict[str, bool]:
        """Return the capabilities that tags and signatures declare."""
        model = self.create()
        tags = get_tags(model)
        signature = str(inspect.signature(self.estimator_class.fit))
        return {
            "sample_weight": has_fit_parameter(model, "sample_weight") or "**" in signature,
            "missing_values": tags.input_tags.allow_nan,
            "sparse": tags.input_tags.sparse,
            "multi_output": tags.target_tags.multi_output,
            "threads": "n_jobs" in model.get_params(deep=False),
        }


def find_estimators() -> dict[type[Any], str]:
    """Return each concrete estimator class of the public modules with the module that lists it."""
    found: dict[type[Any], str] = {}
    for info in pkgutil.walk_packages(spinney.__path__, "spinney."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        module = importlib.import_module(info.name)
        for kind in _listed(module):
            if not inspect.isabstract(kind):
                found.setdefault(kind, info.name)
    return found


def _listed(module: Any) -> Iterator[type[Any]]:
    for name in getattr(module, "__all__", ()):
        kind = getattr(module, name)
        if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
            yield kind


def cell_by_sign(X: Any) -> Any:
    """Return the cell of each row for the partition by a function."""
    return (X[:, 0] > 0).astype(int)


def _pair(tree_class: type[Any]) -> list[tuple[str, Any]]:
    """Return estimators for ensembles of named estimators."""
    return [
        ("deep", tree_class(max_depth=6, random_state=0)),
        ("flatter", tree_class(max_depth=4, random_state=0)),
    ]


# Constructor arguments.
_FEW_TREES = {"n_estimators": 5}
_FEW_ROUNDS = {"n_estimators": 5, "min_samples_leaf": 5}
_FEW_ITERATIONS = {"max_iter": 5, "min_samples_leaf": 5}
_CLASSIFIERS = {"estimators": _pair(tree.DecisionTreeClassifier)}
_REGRESSORS = {"estimators": _pair(tree.DecisionTreeRegressor)}
_FLAT_CLASSIFIER = {"estimator": tree.DecisionTreeClassifier(max_depth=2)}
_FLAT_REGRESSOR = {"estimator": tree.DecisionTreeRegressor(max_depth=2)}

# Limits that several estimators share.
_ONE_OUTPUT = {"multi_output": "y must be one column"}
_ONE_THREAD = {"threads": "runs in one thread"}
_DENSE = {"sparse": "needs a dense matrix"}
_RECORDS = {"record_batches": "scikit-learn's validation does not read their names"}
_NUMBERS = {
    **_RECORDS,
    "missing_values": "needs all values of a row",
    "categories": "needs numeric columns",
}
_FLOAT32 = {"float32_bits": "coefficients have the type of X"}
_BLAS = {
    **_FLOAT32,
    "layout_bits": "BLAS rounds differently for rows and columns that are contiguous",
    "sparse_bits": "sums of sparse rows have another order",
}
_TWO_CLASSES = {
    "one_class": "the boundary lies between two classes",
    "one_row": "one row has one class",
}
_DRAWN_ROWS = dict.fromkeys(
    ("repeated_rows", "dropped_rows"), "rows are drawn, so that a weight is a probability"
)
_DRAWN = {**_DRAWN_ROWS, "unit_weights": "weighted rows are drawn with other random numbers"}
_FOLDS = {
    "repeated_rows": "rows are split into folds, and a row is in one fold",
    "one_row": "needs a row for each fold",
}
_PENALTY = {"scaled_weights": "weights are relative to the penalty"}
_NEIGHBORS = {"one_row": "needs n_neighbors rows"}
_OVERFLOW = {"huge_values": "squares overflow"}
_TINY = {"tiny_values": "variances underflow"}


def _no_weights(reason: str) -> dict[str, str]:
    names = ("sample_weight", "unit_weights", "repeated_rows", "dropped_rows", "scaled_weights")
    return dict.fromkeys(names, reason)


_SEARCH = {
    **_no_weights("neighbors are searched, not fitted"),
    **_NUMBERS,
    **_NEIGHBORS,
    **_OVERFLOW,
}
_RADIUS = {key: reason for key, reason in _SEARCH.items() if key != "one_row"}
_GRAPH = {key: reason for key, reason in _RADIUS.items() if key != "huge_values"}
_GOWER = {
    key: reason
    for key, reason in _SEARCH.items()
    if key not in ("missing_values", "categories", "record_batches", "huge_values")
}
_GOWER["sparse"] = "the metric needs a dense table"
_PRODUCTS = {"sparse_bits": "distances of sparse rows come from products"}
_LEARNER = _no_weights("`compare` fits without weights")

# Bagging of learners that are not Spinney's trees.
_OTHER_LEARNERS = {}
if SKLEARN_VERSION < (1, 8):
    _OTHER_LEARNERS = _no_weights("scikit-learn before 1.8 passes weights to the learner")

# Checks of scikit-learn that fail.
WEIGHT_CHECKS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "weights are not repeated rows; see the limits",
)
_NO_WEIGHT_CHECKS = dict.fromkeys(
    (
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_classifiers_one_label_sample_weights",
    ),
    "the learner has no weights",
)
_LEARNER_CHECKS = {
    "check_do_not_raise_errors_in_init_or_set_params": "parameters of the learner are keywords",
    "check_supervised_y_2d": "a column as target is taken without a warning",
}
WIDE_CHECK = {
    "check_sample_weight_equivalence_on_dense_data": "has 30 columns; a node has 2**30 children"
}

_CAPACITY = {"repeated_rows": "leaf_capacity counts rows, not weights"}
_CELLS = {**_NUMBERS, **_ONE_OUTPUT, **_ONE_THREAD, **_DENSE}
_COMPARISONS = {**_NUMBERS, **_ONE_OUTPUT, **_DENSE}
_LINEAR = {**_NUMBERS, **_BLAS}
_NO_INTERCEPT = {"constant_target": "without intercept a constant is not a model"}
_MIXTURE = {**_NUMBERS, **_ONE_OUTPUT, **_DENSE, **_OVERFLOW}
_VALIDATION = {**_PENALTY, "repeated_rows": "the validation rows are drawn"}
_COUNTS = {"scaled_weights": "pruning counts weights as rows"}
_FUNCTION = {"model_file": "a model file cannot hold a function"}
_PRUNED = {"one_row": "needs a row for each fold"}
_INFINITY = {"refuses_infinity": "scikit-learn's class of this name takes infinite values"}
_TWO_ROWS = {"one_row": "needs two rows"}
_AVERAGE = {
    **_no_weights("likelihoods are those of equal rows"),
    **_RECORDS,
    **_ONE_OUTPUT,
    "one_row": "needs a row for each fold",
}
_ABSOLUTE = {
    "sparse_bits": "dense rows are centred first",
    **_NUMBERS,
    **_ONE_OUTPUT,
    **_ONE_THREAD,
}
_PERCEPTRON = {
    **_FLOAT32,
    **_NUMBERS,
    **_ONE_OUTPUT,
    **_TWO_CLASSES,
    "repeated_rows": "a repeated row is visited several times",
    "dropped_rows": "the order of the visits is drawn for all rows",
    "scaled_weights": "steps are as large as weights",
    "huge_values": "sums overflow",
}
_LOCAL = {
    **_NUMBERS,
    **_ONE_OUTPUT,
    **_DENSE,
    "scaled_weights": "a weight is a number of rows",
    "huge_values": "distances overflow",
}
_WRAPPER = {
    **_ONE_OUTPUT,
    **_ONE_THREAD,
    **_RECORDS,
    "one_row": "needs a row for each fold",
}
_STACK = {
    **_ONE_OUTPUT,
    "one_row": "needs a row for each fold",
    **_RECORDS,
    "dropped_rows": "rows are split into folds before rows of weight zero count",
}

ENTRIES = [
    # tree
    Entry(tree.DecisionTreeClassifier),
    Entry(tree.DecisionTreeRegressor),
    Entry(tree.ExtraTreeClassifier),
    Entry(tree.ExtraTreeRegressor),
    Entry(tree.C45Classifier, limits=_ONE_OUTPUT | _DENSE | _COUNTS),
    Entry(tree.C45Rules, limits=_ONE_OUTPUT | _DENSE | _COUNTS),
    Entry(tree.ID3Classifier, {"discretizer": 5}, limits=_ONE_OUTPUT | _DENSE),
    Entry(tree.PartitionClassifier, limits=_CELLS),
    Entry(
        tree.PartitionClassifier,
        {"cells": cell_by_sign},
        limits=_CELLS | _FUNCTION,
        failed_checks={"check_classifiers_train": "cells of a function need not fit the data"},
        variant="function",
    ),
    Entry(tree.PartitionRegressor, limits=_CELLS),
    Entry(tree.QuadTreeClassifier, limits=_CELLS | _CAPACITY, failed_checks=WIDE_CHECK),
    Entry(tree.QuadTreeRegressor, limits=_CELLS | _CAPACITY, failed_checks=WIDE_CHECK),
    Entry(tree.ComparisonTreeClassifier, limits=_COMPARISONS),
    Entry(tree.ComparisonTreeRegressor, limits=_COMPARISONS),
    Entry(
        pruned_tree.PrunedTreeClassifier,
        limits=_LEARNER | _PRUNED,
        failed_checks=_LEARNER_CHECKS
        | {"check_classifier_data_not_an_array": "cross-validation selects rows"},
    ),
    Entry(
        pruned_tree.PrunedTreeRegressor,
        limits=_LEARNER | _PRUNED,
        failed_checks=_LEARNER_CHECKS
        | {"check_regressor_data_not_an_array": "cross-validation selects rows"},
    ),
    # forest
    Entry(ensemble.RandomForestClassifier, _FEW_TREES, limits=_DRAWN, failed_checks=WEIGHT_CHECKS),
    Entry(
        ensemble.RandomForestClassifier,
        {**_FEW_TREES, "oob_score": True, "voting": "hard", "criterion": "entropy"},
        limits=_DRAWN | {"multi_output": "oob_score needs one output of several classes"},
        failed_checks=WEIGHT_CHECKS,
        variant="hard",
    ),
    Entry(ensemble.RandomForestRegressor, _FEW_TREES, limits=_DRAWN, failed_checks=WEIGHT_CHECKS),
    Entry(ensemble.ExtraTreesClassifier, _FEW_TREES),
    Entry(ensemble.ExtraTreesRegressor, _FEW_TREES),
    Entry(
        ensemble.IsolationForest,
        _FEW_TREES,
        limits=_ONE_OUTPUT | _DRAWN_ROWS,
        failed_checks=WEIGHT_CHECKS,
    ),
    Entry(ensemble.RandomTreesEmbedding, _FEW_TREES),
    Entry(ensemble.ComparisonForestClassifier, _FEW_TREES, limits=_COMPARISONS),
    Entry(ensemble.ComparisonForestRegressor, _FEW_TREES, limits=_COMPARISONS),
    # ensemble
    Entry(
        ensemble.BaggingClassifier,
        _FEW_TREES,
        limits=_ONE_OUTPUT | _DRAWN,
        failed_checks=WEIGHT_CHECKS,
    ),
    Entry(
        ensemble.BaggingClassifier,
        {"estimator": neighbors.KNeighborsClassifier(3), "n_estimators": 3},
        limits=_ONE_OUTPUT | _DRAWN | _NUMBERS | _NEIGHBORS | _OVERFLOW | _OTHER_LEARNERS,
        failed_checks=WEIGHT_CHECKS | (_NO_WEIGHT_CHECKS if _OTHER_LEARNERS else {}),
        variant="neighbors",
        thread_rows=300,
    ),
    Entry(ensemble.BaggingRegressor, _FEW_TREES, limits=_DRAWN, failed_checks=WEIGHT_CHECKS),
    Entry(ensemble.AdaBoostClassifier, _FEW_TREES, limits=_ONE_OUTPUT),
    Entry(
        ensemble.AdaBoostClassifier,
        {**_FEW_TREES, "algorithm": "real"},
        limits=_ONE_OUTPUT,
        failed_checks=WEIGHT_CHECKS,
        variant="real",
    ),
    Entry(
        ensemble.AdaBoostRegressor,
        _FEW_TREES,
        limits=_ONE_OUTPUT | _DRAWN_ROWS,
        failed_checks=WEIGHT_CHECKS,
    ),
    Entry(
        ensemble.AnyBoostClassifier,
        _FEW_TREES,
        limits=_ONE_OUTPUT | _ONE_THREAD | _RECORDS | _TWO_CLASSES,
    ),
    Entry(ensemble.AnyBoostRegressor, _FEW_TREES, limits=_ONE_OUTPUT | _ONE_THREAD | _RECORDS),
    Entry(ensemble.GradientBoostingClassifier, _FEW_ROUNDS, limits=_ONE_OUTPUT | _PENALTY),
    Entry(
        ensemble.GradientBoostingClassifier,
        {**_FEW_ROUNDS, "early_stopping": True},
        limits=_ONE_OUTPUT | _VALIDATION | _TWO_ROWS,
        failed_checks=WEIGHT_CHECKS
        | {"check_fit2d_1sample": "the error is about validation_fraction"},
        variant="early_stopping",
    ),
    Entry(ensemble.GradientBoostingRegressor, _FEW_ROUNDS, limits=_PENALTY),
    Entry(
        ensemble.GradientBoostingRanker,
        _FEW_ROUNDS,
        limits=_ONE_OUTPUT | _no_weights("the ranking loss has no weights of rows"),
    ),
    Entry(
        ensemble.HistGradientBoostingClassifier,
        _FEW_ITERATIONS,
        limits=_ONE_OUTPUT | _ONE_THREAD | _INFINITY,
    ),
    Entry(ensemble.HistGradientBoostingRegressor, _FEW_ITERATIONS, limits=_ONE_THREAD | _INFINITY),
    Entry(
        ensemble.StackingClassifier,
        {**_CLASSIFIERS, "cv": 2, "final_estimator": tree.DecisionTreeClassifier(max_depth=2)},
        limits=_STACK,
    ),
    Entry(
        ensemble.StackingRegressor,
        {**_REGRESSORS, "cv": 2, "final_estimator": tree.DecisionTreeRegressor(max_depth=2)},
        limits=_STACK | _FOLDS,
    ),
    Entry(
        ensemble.VotingClassifier,
        {**_CLASSIFIERS, "voting": "soft"},
        limits=_ONE_OUTPUT,
    ),
    Entry(ensemble.VotingRegressor, _REGRESSORS, limits=_ONE_OUTPUT),
    Entry(
        ensemble.BayesianModelAveragingClassifier,
        {**_CLASSIFIERS, "cv": 2},
        limits=_AVERAGE,
    ),
    Entry(
        ensemble.BayesianModelAveragingRegressor,
        {**_REGRESSORS, "cv": 2},
        limits=_AVERAGE,
    ),
    # linear_model
    Entry(linear_model.LinearRegression, limits=_LINEAR),
    Entry(
        linear_model.LinearRegression,
        {"fit_intercept": False},
        limits=_LINEAR | _NO_INTERCEPT,
        variant="no_intercept",
    ),
    Entry(
        linear_model.LinearRegression,
        {"positive": True},
        limits=_LINEAR | {"sparse": "the solver for positive coefficients needs dense rows"},
        variant="positive",
    ),
    Entry(linear_model.Ridge, limits=_LINEAR | _PENALTY),
    Entry(linear_model.RidgeCV, limits=_LINEAR | _PENALTY | _TWO_ROWS),
    Entry(
        linear_model.RidgeCV, {"scoring": "r2"}, limits=_LINEAR | _PENALTY | _TWO_ROWS, variant="r2"
    ),
    Entry(linear_model.LADRegressor, limits=_ABSOLUTE),
    Entry(linear_model.PolynomialRegression, limits=_NUMBERS | _DENSE, thread_rows=500),
    Entry(
        linear_model.LogisticRegression,
        limits=_LINEAR | _ONE_OUTPUT | _TWO_CLASSES | _PENALTY | _OVERFLOW,
    ),
    Entry(linear_model.Perceptron, limits=_PERCEPTRON, failed_checks=WEIGHT_CHECKS),
    Entry(
        linear_model.HalfspaceClassifier,
        limits=_NUMBERS | _ONE_OUTPUT | _ONE_THREAD | _TWO_CLASSES,
    ),
    # mixture
    Entry(mixture.GaussianMixture, limits=_MIXTURE | _TWO_ROWS | _FLOAT32, thread_rows=9000),
    Entry(
        mixture.MixtureClassifier,
        limits=_MIXTURE | _TINY | {"scaled_weights": "the BIC counts weights as rows"},
        thread_rows=6000,
    ),
    Entry(
        mixture.PlugInClassifier,
        limits=_MIXTURE | _ONE_THREAD | {"scaled_weights": "a bandwidth depends on their sum"},
    ),
    # neighbors
    Entry(neighbors.KNeighborsClassifier, {"n_neighbors": 3}, limits=_SEARCH),
    Entry(
        neighbors.KNeighborsClassifier,
        {"n_neighbors": 3, "metric": "gower"},
        limits=_GOWER,
        variant="gower",
    ),
    Entry(neighbors.KNeighborsRegressor, {"n_neighbors": 3}, limits=_SEARCH),
    Entry(
        neighbors.RadiusNeighborsClassifier,
        {"radius": 2.0, "outlier_label": "most_frequent"},
        limits=_GRAPH,
    ),
    Entry(neighbors.RadiusNeighborsRegressor, {"radius": 2.0}, limits=_RADIUS),
    Entry(neighbors.NearestNeighbors, {"n_neighbors": 3}, limits=_SEARCH),
    Entry(neighbors.KNeighborsTransformer, {"n_neighbors": 3}, limits=_SEARCH | _PRODUCTS),
    Entry(neighbors.RadiusNeighborsTransformer, limits=_GRAPH | _PRODUCTS),
    Entry(neighbors.HNSW, limits=_SEARCH | _ONE_OUTPUT | _DENSE),
    Entry(neighbors.LocalClassifier, limits=_LOCAL),
    Entry(neighbors.LocalRegression, limits=_LOCAL),
    # preprocessing and calibration
    Entry(
        preprocessing.Whitener,
        limits=_NUMBERS | _ONE_OUTPUT | _DENSE | _OVERFLOW,
        thread_rows=20_000,
    ),
    Entry(
        calibration.CalibratedClassifier,
        _FLAT_CLASSIFIER,
        limits=_WRAPPER | _FOLDS,
        failed_checks=WEIGHT_CHECKS,
    ),
    Entry(
        calibration.ConformalClassifier,
        _FLAT_CLASSIFIER,
        limits=_WRAPPER,
        failed_checks=WEIGHT_CHECKS,
    ),
    Entry(
        calibration.ConformalRegressor,
        _FLAT_REGRESSOR,
        limits=_WRAPPER,
        failed_checks=WEIGHT_CHECKS,
    ),
    # comparison
    Entry(scaled_linear.ScaledLinearRegression, limits=_LEARNER, failed_checks=_LEARNER_CHECKS),
    Entry(
        scaled_linear.ScaledRidge,
        limits=_LEARNER | _TWO_ROWS,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_linear.ScaledLogisticRegression,
        limits=_LEARNER | _ONE_OUTPUT | _TWO_CLASSES,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_linear.ScaledPerceptron,
        limits=_LEARNER | _ONE_OUTPUT | _TWO_CLASSES,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_local.ScaledLocalClassifier,
        limits=_LEARNER | _ONE_OUTPUT,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_local.ScaledLocalRegressor,
        limits=_LEARNER | _ONE_OUTPUT,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_mixture.ScaledMixtureClassifier,
        limits=_LEARNER | _ONE_OUTPUT | _TINY,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_neighbors.ScaledNeighborsClassifier,
        limits=_LEARNER | _DENSE,
        failed_checks=_LEARNER_CHECKS,
    ),
    Entry(
        scaled_neighbors.ScaledNeighborsRegressor,
        limits=_LEARNER | _DENSE,
        failed_checks=_LEARNER_CHECKS,
    ),
]
