"""Calibration plot: predicted probabilities against observed frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.plot._style import GREY, class_colours, legend, shortened, styled
from spinney.plot.calculate_scores import calculate_calibration, read_scores

__all__ = ["calibration"]


def calibration(
    models: Any,
    X: Any = None,
    y: Any = None,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    positive: Any = None,
    ax: Any = None,
) -> Any:
    """Draw observed frequencies against predicted probabilities, in bins.

    The curve of a calibrated model is the diagonal. Vertical lines are 95 % confidence intervals of
    the observed frequencies (Wilson). For a single model, grey bars at the bottom show the number
    of rows in each bin, relative to the largest bin. With more than two classes, and without
    `positive`, the probability is that of the predicted class.

    Parameters
    ----------
    models : classifier, array of probabilities, or dict of str to either
        Fitted classifiers with ``predict_proba``; or probabilities, of shape (n_rows,) for the
        second class or of shape (n_rows, n_classes).
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Held-out rows. Not needed with probabilities.
    y : array-like of shape (n_rows,)
        The true classes.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    positive : object, default=None
        The positive class; None: the second of two.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.calibration([0.1, 0.1, 0.9, 0.9], y=[0, 0, 1, 1], n_bins=2)
    >>> axes.lines[0].get_xydata().tolist()
    [[0.1, 0.0], [0.9, 1.0]]
    """
    scored, truth = read_scores(models, X, y)
    curves = [
        calculate_calibration(one, truth, n_bins=n_bins, strategy=strategy, positive=positive)
        for one in scored
    ]
    ax = styled(ax, (4.8, 4.4))
    for curve, colour in zip(curves, class_colours(len(curves)), strict=True):
        ax.plot(
            curve.predicted,
            curve.observed,
            "o-",
            color=colour,
            lw=1.5,
            ms=4,
            label=f"{shortened(curve.name)}  Brier {curve.brier:.3f}".strip(),
        )
        ax.vlines(curve.predicted, curve.low, curve.high, color=colour, lw=1, alpha=0.6)
    if len(curves) == 1:
        heights = 0.12 * curves[0].counts / curves[0].counts.max()
        width = 0.6 * min([1 / n_bins, *np.diff(np.sort(curves[0].predicted))])
        ax.bar(curves[0].predicted, heights, width, color=GREY, alpha=0.35, zorder=0.5)
    ax.axline((0, 0), (1, 1), color=GREY, lw=1, ls="--", zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_xlabel(f"predicted probability of {shortened(curves[0].event)}")
    ax.set_ylabel("observed frequency")
    legend(ax, loc="upper left")
    return ax
