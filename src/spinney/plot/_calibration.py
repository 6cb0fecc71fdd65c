"""Do predicted probabilities come true?"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.plot._style import GREY, class_colours, legend, shortened, styled
from spinney.plot.calculate_scores import calculate_calibration, read_told

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
    """Draw how often predicted probabilities come true, in bins of the prediction.

    A calibrated model stays on the diagonal. Lines up and down are 95 % intervals of the shares
    observed (Wilson's). For a single model, grey bars at the bottom say how many rows each bin
    has, against the largest. With several classes, and without `positive`, the probability is
    that of the predicted class.

    Parameters
    ----------
    models : classifier, array of probabilities, or dict of str to either
        Fitted classifiers with ``predict_proba``; or probabilities, of shape (n_rows,) for the
        second class or of shape (n_rows, n_classes).
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Rows that the models have not seen. Not needed with probabilities.
    y : array-like of shape (n_rows,)
        The true classes.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    positive : object, default=None
        The class to look at; None: the second of two.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

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
    told, truth = read_told(models, X, y)
    curves = [
        calculate_calibration(one, truth, n_bins=n_bins, strategy=strategy, positive=positive)
        for one in told
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
    ax.set_ylabel("share that came true")
    legend(ax, loc="upper left")
    return ax
