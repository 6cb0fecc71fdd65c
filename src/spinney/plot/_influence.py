"""Influence plot of a linear model: residuals against leverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney import inspection
from spinney.plot._style import ACCENT, GREY, legend, mark_points, styled

__all__ = ["influence"]


def influence(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    n_named: int = 5,
    ax: Any = None,
) -> Any:
    """Draw residuals against leverage, with lines of equal Cook's distance.

    Parameters
    ----------
    model : fitted LinearRegression, Ridge, RidgeCV or LogisticRegression
        The model; see `spinney.inspection.influence`.
    X : array-like or frame of shape (n_rows, n_features)
        The training rows.
    y : array-like of shape (n_rows,)
        Their targets.
    sample_weight : array-like of shape (n_rows,), default=None
        The weights that `fit` was called with.
    n_named : int, default=5
        The number of rows that are labelled: those with the largest Cook's distance.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import plot
    >>> from spinney.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> axes = plot.influence(LinearRegression().fit(X, y), X, y)
    >>> axes.get_xlabel()
    'leverage'
    """
    if n_named < 0:
        raise ValueError(f"n_named: expected 0 or more, got {n_named}")
    measured = inspection.influence(model, X, y, sample_weight)
    ax = styled(ax)
    mark_points(ax, measured.leverage, measured.standardised, ACCENT, alpha=0.6)
    known = np.isfinite(measured.standardised)
    tallest = float(np.abs(measured.standardised[known]).max(initial=1.0)) * 1.1
    widest = min(float(measured.leverage.max()) * 1.05, 0.999)
    # Cook's distance D is constant where standardised residual² = D · p · (1 − h) / h.
    at = np.linspace(widest / 200, widest, 200)
    for distance, style in ((0.5, "--"), (1.0, "-")):
        height = np.sqrt(distance * measured.n_parameters * (1 - at) / at)
        inside = height <= tallest
        if inside.any():
            label = f"Cook's distance {distance:g}"
            ax.plot(at[inside], height[inside], color=GREY, ls=style, lw=1, label=label)
            ax.plot(at[inside], -height[inside], color=GREY, ls=style, lw=1)
    for row in measured.largest(n_named):
        if np.isfinite(measured.cooks_distance[row]):
            position = (measured.leverage[row], measured.standardised[row])
            ax.annotate(str(row), position, xytext=(4, 4), textcoords="offset points", fontsize=8)
    ax.axhline(0, color=GREY, lw=0.8)
    ax.set_xlim(0, widest)
    ax.set_ylim(-tallest, tallest)
    ax.set_xlabel("leverage")
    ax.set_ylabel("standardised residual")
    if ax.get_legend_handles_labels()[1]:
        legend(ax)
    return ax
