"""Which classes a model file may name: a list, so that no file can ask for anything else.

A class is written by the public package it belongs to and its own name, never by the private file
that defines it: ``spinney.tree.DecisionTreeClassifier``. Files stay readable when code moves; the
tables here are then what has to follow. Importing this module imports no learner.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

__all__ = ["class_called", "name_of_class", "name_of_score_function", "score_function_called"]

# Everything in `__all__` of these that is a class of Spinney's.
_PUBLIC = frozenset(
    {
        "spinney.calibration",
        "spinney.ensemble",
        "spinney.linear_model",
        "spinney.mixture",
        "spinney.neighbors",
        "spinney.preprocessing",
        "spinney.tree",
    }
)

# Packages and modules whose classes users import from another package.
_PUBLISHED_BY = {
    "spinney.adaboost": "spinney.ensemble",
    "spinney.boosting": "spinney.ensemble",
    "spinney.forest": "spinney.ensemble",
    "spinney.models.tree": "spinney.tree",
}

# Parts of fitted models that users do not import, and where they are defined now.
_PARTS = {
    "spinney.GroupScale": "spinney.conformal.group_scale",
    "spinney.HeldOut": "spinney.conformal.mixins",
    "spinney.RowCategories": "spinney.conformal.group_limits",
    "spinney.Schema": "spinney.data.table",
    "spinney.calibration.Calibrator": "spinney.calibration._calibrators",
    "spinney.calibration.QuantileModels": (
        "spinney.calibration._conformal_regressor:_QuantileModels"
    ),
    "spinney.ensemble.BoostingSettings": "spinney.boosting._settings:Settings",
    "spinney.ensemble.Constant": "spinney.adaboost.anyboost",
    "spinney.ensemble.ForestStore": "spinney.models.forest_store",
    "spinney.ensemble.Statistic": "spinney.boosting._target_statistics",
    "spinney.linear_model.LinearErrors": "spinney.linear_model._errors",
    "spinney.linear_model.Solution": "spinney.linear_model._least_squares",
    "spinney.linear_model.Summary": "spinney.linear_model._summary",
    "spinney.neighbors.BallTreeMetric": "spinney.neighbors._ball_tree:_WithParams",
    "spinney.neighbors.ForeignIndex": "spinney.neighbors._index:_ForeignIndex",
    "spinney.neighbors.GowerIndex": "spinney.neighbors._gower",
    "spinney.neighbors.GraphIndex": "spinney.neighbors._index",
    "spinney.neighbors.MixedRows": "spinney.neighbors._gower",
    "spinney.neighbors.OwnIndex": "spinney.neighbors._index",
    "spinney.neighbors.RowTree": "spinney.neighbors._neighborhoods",
    "spinney.neighbors.Smoother": "spinney.neighbors._smoother",
    "spinney.neighbors.StringIndex": "spinney.neighbors._strings",
    "spinney.neighbors.StringRows": "spinney.neighbors._strings",
    "spinney.neighbors.VectorDistances": "spinney.neighbors._metrics",
    "spinney.neighbors.VectorIndex": "spinney.neighbors._index",
    "spinney.neighbors.Width": "spinney.neighbors._smoother",
    "spinney.report.PrunedTreeClassifier": "spinney.tree.pruned_tree",
    "spinney.report.PrunedTreeRegressor": "spinney.tree.pruned_tree",
    "spinney.report.ScaledLinearRegression": "spinney.comparison.scaled_linear",
    "spinney.report.ScaledLocalClassifier": "spinney.comparison.scaled_local",
    "spinney.report.ScaledLocalRegressor": "spinney.comparison.scaled_local",
    "spinney.report.ScaledLogisticRegression": "spinney.comparison.scaled_linear",
    "spinney.report.ScaledMixtureClassifier": "spinney.comparison.scaled_mixture",
    "spinney.report.ScaledNeighborsClassifier": "spinney.comparison.scaled_neighbors",
    "spinney.report.ScaledNeighborsRegressor": "spinney.comparison.scaled_neighbors",
    "spinney.report.ScaledPerceptron": "spinney.comparison.scaled_linear",
    "spinney.report.ScaledRidge": "spinney.comparison.scaled_linear",
    "spinney.tree.CategoryCondition": "spinney.tree.export._rules",
    "spinney.tree.Grid": "spinney.tree.partition._grid",
    "spinney.tree.MatrixRows": "spinney.tree.triplet.queries",
    "spinney.tree.NumericCondition": "spinney.tree.export._rules",
    "spinney.tree.RuleCandidate": "spinney.tree.quinlan._c45_rules:_Candidate",
    "spinney.tree.RuleTest": "spinney.tree.quinlan._c45_rules:_Test",
    "spinney.tree.StringRows": "spinney.tree.triplet.queries",
    "spinney.tree.VectorRows": "spinney.tree.triplet.queries",
}

# Classes of scikit-learn's whose fitted state is data, by the module that users import them from.
_THEIRS = {
    "sklearn.calibration": (
        "CalibratedClassifierCV",
        "_CalibratedClassifier",  # in every one of the above, as are the next two
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.dummy": ("DummyClassifier", "DummyRegressor"),
    "sklearn.ensemble": (
        "StackingClassifier",
        "StackingRegressor",
        "VotingClassifier",
        "VotingRegressor",
    ),
    "sklearn.feature_selection": ("SelectKBest", "VarianceThreshold"),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.linear_model": (
        "ElasticNet",
        "Lasso",
        "LinearRegression",
        "LogisticRegression",
        "Ridge",
        "RidgeCV",
    ),
    "sklearn.linear_model._sgd_fast": ("Hinge",),  # in every perceptron
    "sklearn.mixture": ("GaussianMixture",),
    "sklearn.multiclass": ("OneVsRestClassifier", "_ConstantPredictor"),
    "sklearn.multioutput": ("MultiOutputClassifier", "MultiOutputRegressor"),
    "sklearn.naive_bayes": ("BernoulliNB", "GaussianNB", "MultinomialNB"),
    "sklearn.neighbors": ("KernelDensity",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",  # of no function: what column transformers pass through
        "KBinsDiscretizer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
        "TargetEncoder",
    ),
    "sklearn.utils": ("Bunch",),
}

# Functions of scikit-learn's that select columns; only selections may name them.
_SCORE_FUNCTIONS = (
    "chi2",
    "f_classif",
    "f_regression",
    "mutual_info_classif",
    "mutual_info_regression",
)


def class_called(name: str) -> type[Any]:
    """Return the class that a file names; one that is not on the list is a ValueError."""
    package, _, attribute = name.rpartition(".")
    if name in _PARTS:
        package, attribute = _place_of_part(name)
    elif attribute not in _listed(package):
        raise ValueError(f"no class that a model file may name: {name!r}")
    found = getattr(importlib.import_module(package), attribute)
    if not isinstance(found, type):
        raise ValueError(f"{name!r} is no class")
    return found


def name_of_class(kind: type[Any]) -> str | None:
    """Return the name of a class in files, or None where files cannot have it."""
    place = (kind.__module__, kind.__qualname__)
    for name in _PARTS:
        if _place_of_part(name) == place:
            return name
    defined_in = kind.__module__
    for owner, public in _PUBLISHED_BY.items():
        if f"{defined_in}.".startswith(f"{owner}."):
            defined_in = public
    packages = _PUBLIC if defined_in.startswith("spinney.") else _THEIRS
    for package in packages:
        within = f"{defined_in}.".startswith(f"{package}.")
        if within and kind.__qualname__ in _listed(package):
            name = f"{package}.{kind.__qualname__}"
            return name if class_called(name) is kind else None
    return None


def score_function_called(name: str) -> Any:
    """Return scikit-learn's function that a file names; any other is a ValueError."""
    if name not in _SCORE_FUNCTIONS:
        raise ValueError(f"no function that selects columns: {name!r}")
    return getattr(importlib.import_module("sklearn.feature_selection"), name)


def name_of_score_function(function: Any) -> str | None:
    """Return the name of a function in files, or None where files cannot have it."""
    for name in _SCORE_FUNCTIONS:
        if function is score_function_called(name):
            return name
    return None


def _place_of_part(name: str) -> tuple[str, str]:
    """Return module and class name of a part, which are the name in files unless it is private."""
    module, _, private = _PARTS[name].partition(":")
    return module, private or name.rpartition(".")[2]


def _listed(package: str) -> Sequence[str]:
    if package in _PUBLIC:
        exported: Sequence[str] = importlib.import_module(package).__all__
        return exported
    return _THEIRS.get(package, ())
