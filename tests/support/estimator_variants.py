"""Further parameters of the estimators, for which only scikit-learn's checks run."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

from spinney import calibration, ensemble, linear_model, mixture, neighbors, preprocessing, tree
from spinney.linear_model import LinearRegression, Ridge
from support.registry import WEIGHT_CHECKS, WIDE_CHECK, Entry, cell_by_sign

__all__ = ["VARIANTS"]


def _smooth_decay(u: Any) -> Any:
    return np.exp(-u)


def _describe(parameters: dict[str, Any]) -> str:
    """Return the parameters as text that is the same in every process."""
    texts = (f"{name}={getattr(value, '__name__', value)}" for name, value in parameters.items())
    return ", ".join(texts) or "default"


def _variants(
    classes: type[Any] | list[type[Any]],
    *parameters: dict[str, Any],
    failed_checks: dict[str, str] | None = None,
) -> list[Entry]:
    """Return an entry for each class and each set of parameters."""
    classes = classes if isinstance(classes, list) else [classes]
    return [
        Entry(one, given, failed_checks=failed_checks or {}, variant=_describe(given))
        for one in classes
        for given in parameters
    ]


_FOREST = ensemble.RandomForestClassifier(10, random_state=0)
_STEPS = {"tol": 1e-10, "max_iter": 500}
# With weights of 1000 and 0.0001 the average still has the steps before the last correction of the
# heavy class.
_HEAVY_CLASS = {"check_class_weight_classifiers": "the average has all steps"}

VARIANTS = [
    *_variants(
        tree.DecisionTreeClassifier, {"criterion": "misclassification", "max_features": "sqrt"}
    ),
    *_variants(tree.DecisionTreeRegressor, {"criterion": "absolute_error", "max_leaf_nodes": 7}),
    *_variants(
        [tree.PartitionClassifier, tree.PartitionRegressor], {"cells": 3, "empty": "nearest"}
    ),
    *_variants(
        tree.PartitionRegressor,
        {"cells": cell_by_sign},
        failed_checks={"check_regressors_train": "cells of a function need not fit the data"},
    ),
    *_variants(
        [tree.QuadTreeClassifier, tree.QuadTreeRegressor],
        {"split": "point"},
        failed_checks=WIDE_CHECK,
    ),
    *_variants(
        [tree.ComparisonTreeClassifier, tree.ComparisonTreeRegressor],
        {"metric": "cosine"},
        {"metric": "precomputed"},
    ),
    *_variants(
        [ensemble.ComparisonForestClassifier, ensemble.ComparisonForestRegressor],
        {"n_estimators": 5, "metric": "precomputed"},
    ),
    *_variants(
        ensemble.RandomForestRegressor,
        {"n_estimators": 5, "oob_score": True},
        failed_checks=WEIGHT_CHECKS,
    ),
    *_variants(
        ensemble.AdaBoostClassifier,
        {
            "n_estimators": 5,
            "algorithm": "M1",
            "estimator": tree.DecisionTreeClassifier(max_depth=3),
        },
    ),
    *_variants([ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor], {}),
    *_variants(
        linear_model.Ridge,
        {"fit_intercept": False},
        {"alpha": 1e-6},
    ),
    *_variants(linear_model.RidgeCV, {"alphas": [2.0]}),
    *_variants(
        linear_model.LADRegressor,
        {"quantile": 0.2},
        {"quantile": 0.6},
        {"fit_intercept": False},
    ),
    *_variants(linear_model.PolynomialRegression, {"degree": 2}, {"cv": 3}),
    *_variants(
        linear_model.LogisticRegression,
        {"solver": "newton-cholesky", "C": 10.0, "tol": 1e-9},
        {"l1_ratio": 1.0, **_STEPS},
        {"l1_ratio": 0.5, **_STEPS},
    ),
    *_variants(linear_model.Perceptron, {"variant": "last"}, failed_checks=WEIGHT_CHECKS),
    *_variants(linear_model.Perceptron, {"variant": "pocket"}, failed_checks=WEIGHT_CHECKS),
    *_variants(
        linear_model.Perceptron,
        {"variant": "average"},
        failed_checks=WEIGHT_CHECKS | _HEAVY_CLASS,
    ),
    *_variants(linear_model.HalfspaceClassifier, {"fit_intercept": False}),
    *_variants(mixture.PlugInClassifier, {"regressor": Ridge()}),
    *_variants(
        [neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor],
        {"metric": "gower"},
        {"weights": "tricube"},
        {"algorithm": "brute"},
        {"algorithm": "kd_tree"},
    ),
    *_variants(
        [neighbors.LocalClassifier, neighbors.LocalRegression],
        {"degree": 0, "kernel": "uniform", "n_neighbors": 5},
        {"degree": 2, "n_neighbors": 0.5, "alpha": 0.1},
        {"bandwidth": 2.0, "kernel": "gaussian"},
        {"n_neighbors": "cv"},
        {"bandwidth": "cv", "kernel": "epanechnikov", "metric": "manhattan"},
        {"kernel": _smooth_decay},
    ),
    *_variants(neighbors.LocalClassifier, {"link": "logit", "alpha": 0.1}),
    *_variants(neighbors.LocalRegression, {"robust": 2}),
    *_variants(
        preprocessing.Whitener,
        *({"method": name} for name in ("zca", "pca", "cholesky", "standard", "center")),
    ),
    *_variants(
        calibration.CalibratedClassifier,
        {"estimator": GaussianNB()},
        {"estimator": _FOREST},
        failed_checks=WEIGHT_CHECKS,
    ),
    *_variants(
        calibration.ConformalClassifier,
        {"estimator": GaussianNB()},
        {"estimator": _FOREST},
        failed_checks=WEIGHT_CHECKS,
    ),
    *_variants(
        calibration.ConformalRegressor,
        {"estimator": LinearRegression()},
        {"estimator": LinearRegression(), "method": "split"},
        failed_checks=WEIGHT_CHECKS,
    ),
]
