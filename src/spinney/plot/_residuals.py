"""Plot of the residuals of a regressor against its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.plot._calculate_residuals import calculate_residuals
from spinney.plot._style import ACCENT, GREY, legend, mark_points, note, styled
from spinney.tree.export.colors import DOTS

__all__ = ["residuals"]

_MOST_POINTS = 5000


def residuals(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw residuals (target minus prediction) against predictions.

    The residuals of a good model scatter around zero without a pattern. The line joins the means of
    ten groups of rows with similar predictions; its bars are plus and minus one standard error.

    Parameters
    ----------
    model : regressor or array-like of shape (n_rows,)
        A fitted regressor, or predictions.
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Held-out rows. Not needed with predictions.
    y : array-like of shape (n_rows,)
        Their targets.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. At most 5,000 rows are drawn as points; the means use all rows.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.residuals([1.0, 2.0, 3.0], y=[1.5, 2.0, 2.5])
    >>> axes.collections[0].get_offsets().tolist()
    [[1.0, 0.5], [2.0, 0.0], [3.0, -0.5]]
    """
    if y is None:
        raise ValueError("y: expected the targets, got None")
    calculated = calculate_residuals(model, X, y)
    ax = styled(ax)
    rows = np.arange(len(calculated.predicted))
    if len(rows) > _MOST_POINTS:
        rows = np.linspace(0, len(rows) - 1, _MOST_POINTS).astype(int)
    mark_points(ax, calculated.predicted[rows], calculated.residual[rows], ACCENT, alpha=0.5)
    ax.axhline(0, color=GREY, lw=1, ls="--")
    ax.errorbar(
        calculated.middle,
        calculated.mean,
        np.nan_to_num(calculated.standard_error),
        color=DOTS[1],
        marker="o",
        ms=4,
        lw=1.5,
        elinewidth=1.2,
        label="mean ± standard error",
        zorder=3,
    )
    ax.set_xlabel("prediction")
    ax.set_ylabel("target − prediction")
    if np.isfinite(calculated.r2):
        note(ax, f"R² {calculated.r2:.3f}")
    legend(ax)
    return ax
