"""Learning curves and validation curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from spinney.plot._calculate_curves import (
    ScoreCurve,
    calculate_learning_curve,
    calculate_validation_curve,
)
from spinney.plot._style import band, class_colours, label_categories, legend, shortened, styled

__all__ = ["learning_curve", "validation_curve"]


def learning_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sizes: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    ax: Any = None,
) -> Any:
    """Draw the score of one model or several against the number of training rows.

    Solid lines are scores on held-out rows, dashed lines on training rows; bands are plus and
    minus one standard error over the folds. Rows are shuffled first.

    Parameters
    ----------
    model : estimator or dict of str to estimator
        The model, or several models by name. They are cloned, not fitted.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,)
        Their targets.
    sizes : array-like, default=None
        Numbers of training rows, or shares of the largest possible number. None: eight numbers from
        a tenth to all.
    cv : int, splitter or iterable of splits, default=5
        The folds; a number means shuffled folds, stratified for classifiers.
    scoring : str or callable, default=None
        The score; None means accuracy, or R² for regressors.
    random_state : int, RandomState or None, default=0
        Seed of the shuffles.
    n_jobs : int or None, default=None
        The number of processes of scikit-learn's loop, besides the threads of Spinney models.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import plot
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> axes = plot.learning_curve(DecisionTreeClassifier(), X, y, sizes=[30, 60, 120])
    >>> axes.get_ylabel()
    'accuracy'
    """
    models = dict(model) if isinstance(model, Mapping) else {"": model}
    if not models:
        raise ValueError("model: expected one or more models, got an empty dict")
    ax = styled(ax)
    for (name, one), colour in zip(models.items(), class_colours(len(models)), strict=True):
        curve = calculate_learning_curve(
            one, X, y, sizes=sizes, cv=cv, scoring=scoring, random_state=random_state, n_jobs=n_jobs
        )
        _draw(ax, curve, curve.values, str(name), colour)
    ax.set_xlabel("training rows")
    ax.set_ylabel(curve.score)
    legend(ax)
    return ax


def validation_curve(
    model: Any,
    X: Any,
    y: Any,
    param: str,
    values: Sequence[Any],
    *,
    cv: Any = 5,
    scoring: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    log: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw the score of a model against the values of one of its parameters.

    The solid line is the score on held-out rows, the dashed line on training rows; bands are plus
    and minus one standard error over the folds.

    Parameters
    ----------
    model : estimator
        The model. It is cloned, not fitted.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,)
        Their targets.
    param : str
        The parameter's name in `get_params` (``"step__param"`` in a pipeline).
    values : sequence
        Its values: numbers, or other objects, which become labels of the axis.
    cv, scoring, random_state, n_jobs
        As in `learning_curve`.
    log : bool or None, default=None
        Whether a numeric axis is logarithmic. None: if all values are positive and the largest is
        at least fifty times the smallest.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import plot
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> axes = plot.validation_curve(DecisionTreeClassifier(), X, y, "max_depth", [1, 2, 3])
    >>> axes.get_xlabel()
    'max_depth'
    """
    curve = calculate_validation_curve(
        model, X, y, param, values, cv=cv, scoring=scoring, random_state=random_state, n_jobs=n_jobs
    )
    ax = styled(ax)
    parameter_values = curve.values
    if all(isinstance(value, Real) and not isinstance(value, bool) for value in parameter_values):
        positions = np.array(parameter_values, dtype=np.float64)
        if log is None:
            log = bool(positions.min() > 0 and positions.max() >= 50 * positions.min())
        if log:
            ax.set_xscale("log")
        order = np.argsort(positions, kind="stable")
        curve = ScoreCurve(parameter_values, curve.train[order], curve.test[order], curve.score)
        _draw(ax, curve, positions[order], "", class_colours(1)[0])
    else:
        _draw(ax, curve, np.arange(len(parameter_values)), "", class_colours(1)[0])
        label_categories(ax, "x", parameter_values)
    ax.set_xlabel(param)
    ax.set_ylabel(curve.score)
    legend(ax)
    return ax


def _draw(ax: Any, curve: ScoreCurve, positions: Any, name: str, colour: str) -> None:
    label = shortened(name) if name else "held-out rows"
    band(
        ax,
        positions,
        curve.mean("test"),
        curve.standard_error("test"),
        colour=colour,
        label=label,
        dashed=False,
    )
    band(
        ax,
        positions,
        curve.mean("train"),
        curve.standard_error("train"),
        colour=colour,
        label=None if name else "training rows",
        dashed=True,
    )
