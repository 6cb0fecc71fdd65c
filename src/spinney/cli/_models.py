"""Models by their names in the shell: class names in snake case, without the task.

The families of `spinney compare` come first, with the same estimators. All other public learners
follow, with their default parameters. Estimators are imported only when a model is created, so that
``--help`` and completion are fast.
"""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import Any

from spinney.cli._error_messages import UserError
from spinney.comparison.families import FAMILIES
from spinney.data.task import Task

__all__ = ["MODEL_NAMES", "create_model", "model_titles"]

# Name: module, classifier, regressor.
_OTHERS: dict[str, tuple[str, str | None, str | None]] = {
    "any_boost": ("spinney.ensemble", "AnyBoostClassifier", "AnyBoostRegressor"),
    "c45": ("spinney.tree", "C45Classifier", None),
    "c45_rules": ("spinney.tree", "C45Rules", None),
    "comparison_forest": (
        "spinney.ensemble",
        "ComparisonForestClassifier",
        "ComparisonForestRegressor",
    ),
    "comparison_tree": ("spinney.tree", "ComparisonTreeClassifier", "ComparisonTreeRegressor"),
    "extra_tree": ("spinney.tree", "ExtraTreeClassifier", "ExtraTreeRegressor"),
    "halfspace": ("spinney.linear_model", "HalfspaceClassifier", None),
    "hist_gradient_boosting": (
        "spinney.ensemble",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
    ),
    "id3": ("spinney.tree", "ID3Classifier", None),
    "lad": ("spinney.linear_model", None, "LADRegressor"),
    "partition": ("spinney.tree", "PartitionClassifier", "PartitionRegressor"),
    "plug_in": ("spinney.mixture", "PlugInClassifier", None),
    "polynomial_regression": ("spinney.linear_model", None, "PolynomialRegression"),
    "quad_tree": ("spinney.tree", "QuadTreeClassifier", "QuadTreeRegressor"),
    "radius_neighbors": (
        "spinney.neighbors",
        "RadiusNeighborsClassifier",
        "RadiusNeighborsRegressor",
    ),
    "ridge_cv": ("spinney.linear_model", None, "RidgeCV"),
}
_FAMILIES = {family.name: family for family in FAMILIES}
_TASKS: tuple[Task, Task] = ("classification", "regression")

MODEL_NAMES: tuple[str, ...] = (*_FAMILIES, *_OTHERS)


def model_titles() -> dict[str, str]:
    """Return the title of each model, for completion."""
    titles = {name: family.title for name, family in _FAMILIES.items()}
    for name, (module, *classes) in _OTHERS.items():
        titles[name] = f"{module}." + "/".join(kind for kind in classes if kind)
    return titles


def check_model_name(name: str) -> None:
    """Raise a UserError if no model has this name."""
    if name not in MODEL_NAMES:
        close = get_close_matches(name, MODEL_NAMES, n=1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"expected one of: {', '.join(MODEL_NAMES)}"
        )
        raise UserError(f"--model: no model {name!r}; {hint}")


def create_model(name: str, task: Task, seed: int | None, jobs: int | None) -> Any:
    """Create the model of this name for a task; raise a UserError if there is none."""
    check_model_name(name)
    if name in _FAMILIES:
        family = _FAMILIES[name]
        if task not in family.tasks:
            raise _wrong_task(name, task)
        return family.make(task, seed, jobs)
    module, *classes = _OTHERS[name]
    chosen = dict(zip(_TASKS, classes, strict=True))[task]
    if chosen is None:
        raise _wrong_task(name, task)
    model = getattr(importlib.import_module(module), chosen)()
    common = {"random_state": seed, "n_jobs": jobs}
    known = model.get_params(deep=False)
    return model.set_params(**{key: common[key] for key in common if key in known})


def _wrong_task(name: str, task: Task) -> UserError:
    other = _TASKS[1 - _TASKS.index(task)]
    return UserError(f"--model: {name!r} is for {other}, but the task is {task} (see --task)")
