"""The learners of `compare`.

To add one, write a function that creates the estimator and add a `Family` to `FAMILIES`, simpler
families first. The shell's help, ``--models`` and the tables use this list. Import inside the
function, so that listing the families loads no estimator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import chain, count
from typing import Any

from spinney.data.task import Task

__all__ = ["FAMILIES", "MAIN_MODEL", "Family", "select_families"]


@dataclass(frozen=True)
class Family:
    """A learner that `compare` can run.

    Attributes
    ----------
    name : str
        The class name in snake case without the task, for the shell.
    title : str
        A short description.
    make : callable
        ``make(task, random_state, n_jobs)`` returns an unfitted estimator.
    tasks : tuple of {"classification", "regression"}
        The supported tasks.
    effort : int
        Rank of the time for a fit; models with less effort run first.
    complexity : int
        Rank of the complexity: 0 constants, 1 linear models, 2 single trees, 3 densities and
        neighbourhoods, 4 sums of stumps, 5 hundreds of trees.
    is_own : bool
        Whether the caller passed the estimator.
    """

    name: str
    title: str
    make: Callable[[Task, int | None, int | None], Any]
    tasks: tuple[Task, ...] = ("classification", "regression")
    effort: int = 3
    complexity: int = 5
    is_own: bool = False


def _baseline(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, for start-up time.
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyClassifier(strategy="prior") if task == "classification" else DummyRegressor()


def _k_neighbors(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_neighbors import (
        ScaledNeighborsClassifier,
        ScaledNeighborsRegressor,
    )

    kind = ScaledNeighborsClassifier if task == "classification" else ScaledNeighborsRegressor
    return kind(random_state=random_state, n_jobs=n_jobs)


def _local_regression(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_local import ScaledLocalClassifier, ScaledLocalRegressor

    kind = ScaledLocalClassifier if task == "classification" else ScaledLocalRegressor
    return kind(random_state=random_state, n_jobs=n_jobs)


def _mixture(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_mixture import ScaledMixtureClassifier

    return ScaledMixtureClassifier(random_state=random_state, n_jobs=n_jobs)


def _linear_regression(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_linear import ScaledLinearRegression

    return ScaledLinearRegression(random_state=random_state, n_jobs=n_jobs)


def _ridge(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_linear import ScaledRidge

    return ScaledRidge(random_state=random_state, n_jobs=n_jobs)


def _logistic_regression(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_linear import ScaledLogisticRegression

    return ScaledLogisticRegression(random_state=random_state, n_jobs=n_jobs)


def _perceptron(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.comparison.scaled_linear import ScaledPerceptron

    return ScaledPerceptron(random_state=random_state, n_jobs=n_jobs)


def _decision_tree(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return tree(random_state=random_state, n_jobs=n_jobs)


def _decision_tree_pruned(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.tree.pruned_tree import PrunedTreeClassifier, PrunedTreeRegressor

    tree = PrunedTreeClassifier if task == "classification" else PrunedTreeRegressor
    return tree(random_state=random_state, n_jobs=n_jobs)


def _bagging(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.ensemble import BaggingClassifier, BaggingRegressor

    bagging = BaggingClassifier if task == "classification" else BaggingRegressor
    return bagging(n_estimators=100, random_state=random_state, n_jobs=n_jobs)


def _random_forest(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return forest(random_state=random_state, n_jobs=n_jobs)


def _extra_trees(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    forest = ExtraTreesClassifier if task == "classification" else ExtraTreesRegressor
    return forest(random_state=random_state, n_jobs=n_jobs)


def _boosting(task: Task, random_state: int | None, n_jobs: int | None, **params: Any) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    boosting = GradientBoostingClassifier if task == "classification" else GradientBoostingRegressor
    return boosting(random_state=random_state, n_jobs=n_jobs, **params)


def _boosted_stumps(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    return _boosting(task, random_state, n_jobs, max_leaf_nodes=2, n_estimators=1000)


def _boosted_small_trees(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    return _boosting(task, random_state, n_jobs, max_leaf_nodes=5, n_estimators=300)


def _ada_boost(task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, as listing the families must not load them.
    from spinney.ensemble import AdaBoostClassifier, AdaBoostRegressor

    kind = AdaBoostClassifier if task == "classification" else AdaBoostRegressor
    return kind(n_estimators=200, random_state=random_state, n_jobs=n_jobs)


# The reference of all other models: a time limit skips it last.
MAIN_MODEL = "gradient_boosting"

FAMILIES: tuple[Family, ...] = (
    Family("baseline", "the most frequent class, or the mean", _baseline, effort=0, complexity=0),
    Family(
        "linear_regression",
        "least squares, columns scaled",
        _linear_regression,
        ("regression",),
        effort=1,
        complexity=1,
    ),
    Family(
        "ridge",
        "least squares, shrunk by leave-one-out",
        _ridge,
        ("regression",),
        effort=1,
        complexity=1,
    ),
    Family(
        "logistic_regression",
        "linear log-odds, columns scaled",
        _logistic_regression,
        ("classification",),
        effort=2,
        complexity=1,
    ),
    Family(
        "perceptron",
        "averaged perceptron",
        _perceptron,
        ("classification",),
        effort=1,
        complexity=1,
    ),
    Family(
        "decision_tree_pruned",
        "CART pruned by cross-validation",
        _decision_tree_pruned,
        effort=2,
        complexity=2,
    ),
    Family("decision_tree", "fully grown CART", _decision_tree, effort=1, complexity=2),
    Family(
        "k_neighbors",
        "15 nearest of at most 50,000 rows, columns scaled",
        _k_neighbors,
        effort=5,
        complexity=3,
    ),
    Family(
        "mixture",
        "Gaussian mixtures and Bayes' rule",
        _mixture,
        ("classification",),
        effort=5,
        complexity=3,
    ),
    Family(
        "local_regression",
        "locally linear, from at most 20,000 rows",
        _local_regression,
        effort=6,
        complexity=3,
    ),
    Family(
        "ada_boost",
        "200 weighted stumps; regression: the median of small trees",
        _ada_boost,
        effort=2,
        complexity=4,
    ),
    Family(
        "boosted_stumps",
        "1,000 boosted stumps",
        _boosted_stumps,
        effort=4,
        complexity=4,
    ),
    Family(
        "boosted_small_trees",
        "300 trees of five leaves, boosted",
        _boosted_small_trees,
        effort=4,
        complexity=5,
    ),
    Family(
        "random_forest",
        "100 trees, some columns at each node",
        _random_forest,
        effort=2,
        complexity=5,
    ),
    Family("extra_trees", "100 trees, random thresholds", _extra_trees, effort=2, complexity=5),
    Family("bagging", "100 trees on bootstrap samples", _bagging, effort=5, complexity=5),
    Family(MAIN_MODEL, "boosted trees", _boosting, effort=3, complexity=5),
)


def select_families(models: Any, task: Task) -> list[Family]:
    """Return the families of these models, in this order; None is all families for `task`.

    A model is a name, an estimator, or a pair of both; a dictionary has estimators by name.
    """
    # Imported late, for the start-up time of the shell.
    from spinney.data.errors import ParameterError
    from spinney.data.messages import Parameter

    if models is None:
        return [family for family in FAMILIES if task in family.tasks]
    if isinstance(models, str) or hasattr(models, "fit"):
        models = [models]
    if isinstance(models, Mapping):
        models = models.items()
    by_name = {family.name: family for family in FAMILIES}
    selected: dict[str, Family] = {}
    for model in models:
        if hasattr(model, "fit") or (isinstance(model, tuple) and len(model) == 2):
            family = _own_family(model, task, {*by_name, *selected})
            selected[family.name] = family
            continue
        if model not in by_name:
            close = get_close_matches(str(model), by_name, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"expected one of: {', '.join(by_name)}"
            )
            raise ParameterError(Parameter("models"), f" has no {model!r}; {hint}")
        if task not in by_name[model].tasks:
            raise ParameterError(Parameter("models"), f": {model!r} does not support {task}")
        selected[model] = by_name[model]
    if not selected:
        raise ParameterError(
            Parameter("models"), f" is empty; expected some of: {', '.join(by_name)}"
        )
    return list(selected.values())


def _own_family(model: Any, task: Task, taken: Collection[str]) -> Family:
    """Return the family of an estimator, or of a pair of a name and an estimator."""
    # Imported late, for start-up time.
    from sklearn.base import is_classifier, is_regressor

    name, estimator = model if isinstance(model, tuple) else (None, model)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise ValueError(f"models: expected an estimator for {name!r}, got {estimator!r}")
    if isinstance(estimator, type):
        raise ValueError(f"models: expected an estimator, got the class {estimator.__name__}")
    kind = type(estimator).__name__
    other = is_regressor if task == "classification" else is_classifier
    if other(estimator):
        raise ValueError(f"models: {name or kind} does not support {task}")
    if name is None:
        camel = re.sub(r"(Classifier|Regressor)$", "", kind) or kind
        first = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", camel).lower()
        numbered = (f"{first}_{number}" for number in count(2))
        name = next(name for name in chain([first], numbered) if name not in taken)
    elif name in taken or not isinstance(name, str):
        raise ValueError(f"models: expected a new name, got {name!r}")
    return Family(name, kind, partial(_clone, estimator), (task,), is_own=True)


def _clone(estimator: Any, task: Task, random_state: int | None, n_jobs: int | None) -> Any:
    # Imported late, for start-up time.
    from sklearn.base import clone

    return clone(estimator, safe=False)
