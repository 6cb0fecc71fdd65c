"""The classes that a model file may name; no file can load any other class.

A file names a class by its public package and its own name, never by the private module that
defines it: ``spinney.tree.DecisionTreeClassifier``. When code moves, only the tables here change,
and old files stay readable. Importing this module imports no estimator.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

__all__ = ["class_by_name", "name_of_class", "name_of_score_function", "score_function_by_name"]

# Packages whose classes in `__all__` are allowed.
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

# Private parts of fitted models, and the modules that define them now.
_PARTS = {
    "spinney.GroupScale": "spinney.conformal.group_scale",
    "spinney.HeldOut": "spinney.conformal.mixins",
    "spinney.RowCategories": "spinney.conformal.group_limits",
    "spinney.Schema": "spinney.data.table",
    "spinney.boosting.Continuation": "spinney.boosting._fit_plan",
    "spinney.boosting.Loss": "spinney.boosting._loss",
    "spinney.calibration.Calibrator": "spinney.calibration._calibrators",
    "spinney.calibration.QuantileModels": (
        "spinney.calibration._conformal_regressor:_QuantileModels"
    ),
    "spinney.ensemble.BoostingSettings": "spinney.boosting._settings:Settings",
    "spinney.ensemble.Constant": "spinney.adaboost.anyboost",
    "spinney.ensemble.ForestStore": "spinney.models.forest_store",
    "spinney.ensemble.Statistic": "spinney.boosting._target_statistics",
    "spinney.forest.OutOfBag": "spinney.forest.out_of_bag",
    "spinney.forest.TreeSamples": "spinney.forest.sampling",
    "spinney.linear_model.LinearErrors": "spinney.linear_model._leave_one_out",
    "spinney.linear_model.Solution": "spinney.linear_model._least_squares",
    "spinney.linear_model.Summary": "spinney.linear_model._summary",
    "spinney.models.AveragedTrees": "spinney.models.tree_ensembles",
    "spinney.models.BoostedTrees": "spinney.models.boosted_trees",
    "spinney.models.EmbeddingTrees": "spinney.models.tree_ensembles",
    "spinney.models.IsolationTrees": "spinney.models.tree_ensembles",
    "spinney.models.MedianTrees": "spinney.models.tree_ensembles",
    "spinney.models.VotingTrees": "spinney.models.tree_ensembles",
    "spinney.neighbors.BallTreeMetric": "spinney.neighbors._ball_tree:_WithParams",
    "spinney.neighbors.ForeignIndex": "spinney.neighbors._index:_ForeignIndex",
    "spinney.neighbors.GowerIndex": "spinney.neighbors._gower",
    "spinney.neighbors.GraphIndex": "spinney.neighbors._index",
    "spinney.neighbors.MixedRows": "spinney.neighbors._gower",
    "spinney.neighbors.OwnIndex": "spinney.neighbors._index",
    "spinney.neighbors.RowTree": "spinney.neighbors._neighborhoods",
    "spinney.neighbors.Smoother": "spinney.neighbors._smoother",
    "spinney.neighbors.StringIndex": "spinney.neighbors._strings",
    "spinney.neighbors.StringRows": "spinney.neighbors._strings:StringColumn",
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

# scikit-learn classes whose fitted state is data, by the module that users import them from.
_THEIRS = {
    "sklearn.calibration": (
        "CalibratedClassifierCV",
        "_CalibratedClassifier",  # this and the next two are parts of CalibratedClassifierCV
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
    "sklearn.linear_model._sgd_fast": ("Hinge",),  # part of each Perceptron
    "sklearn.mixture": ("GaussianMixture",),
    "sklearn.multiclass": ("OneVsRestClassifier", "_ConstantPredictor"),
    "sklearn.multioutput": ("MultiOutputClassifier", "MultiOutputRegressor"),
    "sklearn.naive_bayes": ("BernoulliNB", "GaussianNB", "MultinomialNB"),
    "sklearn.neighbors": ("KernelDensity",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",  # only without a function: `passthrough` of ColumnTransformer
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

# scikit-learn's score functions for feature selection; only SelectKBest may name them.
_SCORE_FUNCTIONS = (
    "chi2",
    "f_classif",
    "f_regression",
    "mutual_info_classif",
    "mutual_info_regression",
)


def class_by_name(name: str) -> type[Any]:
    """Return the class of a name in a file; raise a ValueError if it is not allowed."""
    package, _, attribute = name.rpartition(".")
    if name in _PARTS:
        package, attribute = _definition_of_part(name)
    elif attribute not in _listed(package):
        raise ValueError(f"class {name!r} is not allowed in a model file")
    found = getattr(importlib.import_module(package), attribute)
    if not isinstance(found, type):
        raise ValueError(f"{name!r} is not a class")
    return found


def name_of_class(kind: type[Any]) -> str | None:
    """Return the name of a class in files, or None if it is not allowed."""
    definition = (kind.__module__, kind.__qualname__)
    for name in _PARTS:
        if _definition_of_part(name) == definition:
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
            return name if class_by_name(name) is kind else None
    return None


def score_function_by_name(name: str) -> Any:
    """Return the score function with a name; raise a ValueError if it is not allowed."""
    if name not in _SCORE_FUNCTIONS:
        raise ValueError(f"not a score function for feature selection: {name!r}")
    return getattr(importlib.import_module("sklearn.feature_selection"), name)


def name_of_score_function(function: Any) -> str | None:
    """Return the name of a score function in files, or None if it is not allowed."""
    for name in _SCORE_FUNCTIONS:
        if function is score_function_by_name(name):
            return name
    return None


def _definition_of_part(name: str) -> tuple[str, str]:
    """Return the module and the name of the class that a part has in code."""
    module, _, private = _PARTS[name].partition(":")
    return module, private or name.rpartition(".")[2]


def _listed(package: str) -> Sequence[str]:
    if package in _PUBLIC:
        exported: Sequence[str] = importlib.import_module(package).__all__
        return exported
    return _THEIRS.get(package, ())
