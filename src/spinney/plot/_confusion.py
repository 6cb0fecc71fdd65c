"""Which classes are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.plot._style import blues, label_categories, styled, value_scale
from spinney.plot.calculate_scores import calculate_confusion

__all__ = ["confusion"]

_MOST_NUMBERS = 12  # classes beyond which cells are too small for numbers


def confusion(
    model: Any, X: Any = None, y: Any = None, *, normalize: bool = False, ax: Any = None
) -> Any:
    """Draw how many rows of each class are taken for which.

    Rows of the picture are true classes, columns predicted ones. Colours are shares of the true
    class, so that rare classes are as visible as frequent ones.

    Parameters
    ----------
    model : classifier or array-like of shape (n_rows,)
        A fitted classifier, or predictions.
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Rows that the model has not seen. Not needed with predictions.
    y : array-like of shape (n_rows,)
        The true classes.
    normalize : bool, default=False
        Whether the numbers are per cent of the true class rather than counts.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Beyond 12 classes there are no numbers, and a scale instead.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.confusion(["a", "b", "b", "b"], y=["a", "a", "b", "b"])
    >>> [text.get_text() for text in axes.texts]
    ['1', '1', '0', '2']
    """
    if y is None:
        raise ValueError("y: expected the true classes, got None")
    told = calculate_confusion(model, X, y)
    n = len(told.classes)
    side = float(np.clip(1.4 + 0.16 * n, 4.4, 12.0))
    ax = styled(ax, (side + (0.4 if n <= _MOST_NUMBERS else 1.0), side), grid="none")
    shares = told.shares
    drawn = ax.imshow(shares, cmap=blues(), vmin=0, vmax=1, aspect="auto")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if n <= _MOST_NUMBERS:
        size = 9 if n <= 8 else 7
        for row, column in np.ndindex(n, n):
            share, count = shares[row, column], told.counts[row, column]
            ink = "white" if share > 0.6 else "#333333" if count else "#aaaaaa"
            ax.text(
                column,
                row,
                f"{100 * share:.0f} %" if normalize else f"{count:,}",
                ha="center",
                va="center",
                fontsize=size,
                color=ink,
            )
    else:
        value_scale(ax, drawn, "share of the true class")
    for which in "xy":
        label_categories(ax, which, told.classes)
    ax.tick_params(length=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax
