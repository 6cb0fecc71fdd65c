"""Conversion of fitted scikit-learn models."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney.data.sklearn_versions import penalty_as_ratio
from spinney.importing._sklearn_trees import (
    read_booster,
    read_forest,
    read_hist_booster,
    read_tree,
    shared_params,
)
from spinney.importing._source_file import kind_of

__all__ = ["from_sklearn"]

_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)
_FORESTS = (
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)
_BOOSTERS = ("GradientBoostingClassifier", "GradientBoostingRegressor")
_HIST_BOOSTERS = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
# The Spinney classes are subclasses of scikit-learn's; fitted attributes can be copied.
_SAME_STATE = {
    "LinearRegression": "linear_model",
    "LogisticRegression": "linear_model",
    "Perceptron": "linear_model",
    "Ridge": "linear_model",
    "RidgeCV": "linear_model",
    "GaussianMixture": "mixture",
}
_NEIGHBORS = (
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "NearestNeighbors",
)


def from_sklearn(model: Any) -> Any:
    """Convert a fitted scikit-learn model to a Spinney estimator.

    Parameters
    ----------
    model : scikit-learn estimator
        A fitted tree, forest, gradient booster (of either kind), `LinearRegression`, `Ridge`,
        `RidgeCV`, `LogisticRegression`, `Perceptron`, `GaussianMixture` or nearest-neighbour
        estimator.

    Returns
    -------
    estimator
        The Spinney class of the same name (`GradientBoosting*` for `HistGradientBoosting*`), with
        the parameters that both have. Its predictions are the same for every row: thresholds are
        adjusted such that rows in double precision take the path that they take after
        scikit-learn's rounding. For nearest-neighbour estimators, the training rows are indexed
        again.

    Raises
    ------
    TypeError
        For other estimators.
    ValueError
        For boosters that start from another model (`init`), or with unsupported losses.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = RandomForestClassifier(random_state=0).fit(X, y)
    >>> ours = spinney.from_sklearn(theirs)
    >>> bool((ours.predict(X) == theirs.predict(X)).all())
    True
    """
    names = kind_of(model, "sklearn")
    if type(model).__module__.split(".")[0] == "spinney":
        return model
    check_is_fitted(model)

    def class_of(module: str, known: Any) -> Any:
        name = next((n for n in known if n in names), None)
        return name and getattr(importlib.import_module(f"spinney.{module}"), name)

    target = class_of("ensemble", _FORESTS)
    if target is not None:
        return read_forest(model, target)
    target = class_of("tree", [type(model).__name__, *_TREES] if names & set(_TREES) else ())
    if target is not None:
        return read_tree(model, target)
    if names & set(_BOOSTERS):
        return read_booster(model)
    if names & set(_HIST_BOOSTERS):
        return read_hist_booster(model)
    for name, module in _SAME_STATE.items():
        if name in names:
            return _with_state(model, class_of(module, [name]))
    target = class_of("neighbors", _NEIGHBORS)
    if target is not None:
        return _refitted(model, target)
    raise TypeError(
        "model: expected one of scikit-learn's "
        f"{', '.join((*_TREES, *_FORESTS, *_BOOSTERS, *_HIST_BOOSTERS))}, "
        f"{', '.join((*_SAME_STATE, *_NEIGHBORS))}, got {type(model).__name__}"
    )


def _with_state(source: Any, target: type) -> Any:
    """Return a Spinney estimator with copies of the fitted attributes."""
    params = source.get_params(deep=False)
    shared = shared_params(source, target)
    if target.__name__ == "LogisticRegression":
        # Versions before 1.8 may fit one class against the rest.
        by_class = params.get("multi_class") == "ovr" or params["solver"] == "liblinear"
        if by_class and len(source.classes_) > 2:
            raise ValueError(
                "model: expected a LogisticRegression with one model of all classes, got one class "
                "against the rest (solver='liblinear' or multi_class='ovr')"
            )
        shared = penalty_as_ratio(shared)
    model: Any = target(**shared)
    vars(model).update({k: copy.deepcopy(v) for k, v in vars(source).items() if k not in params})
    return model


def _refitted(source: Any, target: type) -> Any:
    """Return a Spinney nearest-neighbour estimator fitted to the same rows."""
    model: Any = target(**shared_params(source, target))
    X = source._fit_X
    y = None
    if hasattr(source, "classes_"):
        if isinstance(source.classes_, list):
            columns = zip(source.classes_, source._y.T, strict=True)
            y = np.stack([classes[codes] for classes, codes in columns], axis=1)
        else:
            y = source.classes_[np.ravel(source._y)]
    elif hasattr(source, "_y"):
        y = source._y
    model = model.fit(X) if y is None else model.fit(X, y)
    if hasattr(source, "feature_names_in_"):
        model.feature_names_in_ = source.feature_names_in_
    return model
