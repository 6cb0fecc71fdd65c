"""Plot of the distribution of classification margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spinney.plot._style import GREY, class_colours, legend, shortened, styled
from spinney.plot.calculate_scores import calculate_margins

__all__ = ["margins"]


def margins(models: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """Draw the cumulative distribution of the margins of rows.

    A row's margin is the score of its own class minus the largest score of another class. It is
    calculated by the `margins` method of an `AdaBoostClassifier`, otherwise from probabilities or,
    if there are none, from the decision function. If it is negative, the prediction is wrong.

    Parameters
    ----------
    models : classifier or dict of str to classifier
        Fitted classifiers.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,)
        Their classes.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from spinney import plot
    >>> from spinney.ensemble import AdaBoostClassifier
    >>> X, y = make_moons(200, noise=0.25, random_state=0)
    >>> rounds = {f"{n} rounds": AdaBoostClassifier(n_estimators=n).fit(X, y) for n in (5, 50)}
    >>> axes = plot.margins(rounds, X, y)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['5 rounds', '50 rounds']
    """
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise ValueError("models: expected one or more models, got an empty dict")
    margins_of = {
        str(name): np.sort(calculate_margins(model, X, y)) for name, model in named.items()
    }
    ax = styled(ax)
    for (name, values), colour in zip(
        margins_of.items(), class_colours(len(margins_of)), strict=True
    ):
        share = np.arange(1, len(values) + 1) / len(values)
        ax.step(
            np.r_[values[0], values],
            np.r_[0.0, share],
            where="post",  # language: allow (a value of matplotlib)
            color=colour,
            lw=1.5,
            label=shortened(name) if name else None,
        )
    ax.axvline(0, color=GREY, lw=1, ls="--", zorder=1)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("margin")
    ax.set_ylabel("share of rows at or below")
    legend(ax, loc="upper left")
    return ax
