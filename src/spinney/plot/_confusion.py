"""Plot of a confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.plot._style import blues, label_categories, styled, value_scale
from spinney.plot.calculate_scores import calculate_confusion

__all__ = ["confusion"]

_MOST_NUMBERS = 12  # with more classes, cells are too small for labels


def confusion(
    model: Any, X: Any = None, y: Any = None, *, normalize: bool = False, ax: Any = None
) -> Any:
    """Draw the confusion matrix of a classifier.

    Rows of the matrix are true classes, columns are predicted classes. Colours are shares of the
    true class, so that rare classes are as visible as frequent ones.

    Parameters
    ----------
    model : classifier or array-like of shape (n_rows,)
        A fitted classifier, or predictions.
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Held-out rows. Not needed with predictions.
    y : array-like of shape (n_rows,)
        The true classes.
    normalize : bool, default=False
        Whether the numbers are per cent of the true class rather than counts.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. With more than 12 classes, a colour scale replaces the numbers.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.confusion(["a", "b", "b", "b"], y=["a", "a", "b", "b"])
    >>> [text.get_text() for text in axes.texts]
    ['1', '1', '0', '2']
    """
    if y is None:
        raise ValueError("y: expected the true classes, got None")
    matrix = calculate_confusion(model, X, y)
    n = len(matrix.classes)
    side = float(np.clip(1.4 + 0.16 * n, 4.4, 12.0))
    ax = styled(ax, (side + (0.4 if n <= _MOST_NUMBERS else 1.0), side), grid="none")
    shares = matrix.shares
    drawn = ax.imshow(shares, cmap=blues(), vmin=0, vmax=1, aspect="auto")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if n <= _MOST_NUMBERS:
        size = 9 if n <= 8 else 7
        for row, column in np.ndindex(n, n):
            share, count = shares[row, column], matrix.counts[row, column]
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
        label_categories(ax, which, matrix.classes)
    ax.tick_params(length=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax
