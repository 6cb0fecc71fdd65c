"""Plot of the scores of compared models, best on top."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spinney.plot._style import ACCENT, GREY, label_categories, note, styled

__all__ = ["comparison"]


def comparison(result: Any, *, ax: Any = None) -> Any:
    """Draw the scores of models in a comparison, plus and minus their standard errors.

    Parameters
    ----------
    result : Comparison
        The result of `spinney.compare`.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes: the best model is on top, in colour, with a vertical line at its mean; faint dots
        are folds. A model that failed has no dot and is labelled "(failed)".

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = spinney.compare(X, y, models=["baseline", "decision_tree"], cv=3)
    >>> axes = spinney.plot.comparison(result)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['decision_tree', 'baseline']
    """
    models = getattr(result, "results", None)
    if not models:
        raise TypeError(
            f"result: expected the result of spinney.compare, got {type(result).__name__}"
        )
    ax = styled(ax, (5.6, max(1.6, 0.9 + 0.22 * len(models))), grid="x")
    scale = 100.0 if result.metric == "error" else 1.0
    labels = []
    spreads = [scale * model.estimate.se for model in models if model.estimate is not None]
    decimals = _decimals(spreads)
    best = next((model.estimate.mean for model in models if model.estimate is not None), None)
    for position, model in enumerate(models):
        if model.estimate is None:
            labels.append(f"{model.name} (failed)")
            continue
        labels.append(model.name)
        colour = ACCENT if position == 0 else GREY
        folds = scale * np.asarray(model.estimate.folds)
        ax.plot(folds, np.full(len(folds), position), ".", color=colour, ms=4, alpha=0.3)
        spread = None if math.isnan(model.estimate.se) else scale * model.estimate.se
        ax.errorbar(
            scale * model.estimate.mean,
            position,
            xerr=spread,
            color=colour,
            marker="o",
            ms=5,
            elinewidth=1.5,
            capsize=2,
        )
        text = f"{scale * model.estimate.mean:.{decimals}f}"
        text += "" if spread is None else f" ± {spread:.{decimals}f}"
        beside = ax.get_yaxis_transform()
        ax.text(1.02, position, text, transform=beside, va="center", fontsize=8, color=colour)
    if best is not None:
        ax.axvline(scale * best, color=ACCENT, lw=0.8, ls=":", zorder=0.5)
    ax.set_ylim(len(models) - 0.4, -0.6)
    label_categories(ax, "y", labels)
    ax.tick_params(axis="y", length=0)
    titles = {"error": "error (%)", "rmse": "root mean squared error"}
    better = "" if not result.greater_is_better else " (more is better)"
    ax.set_xlabel(titles.get(result.metric, result.metric.replace("_", " ") + better))
    note(ax, f"± standard error over {result.n_folds} folds")
    return ax


def _decimals(spreads: list[float]) -> int:
    """Return the decimals for two digits of the first nonzero standard error."""
    spread = next((spread for spread in spreads if spread > 0), 0.01)
    return min(6, max(0, 1 - math.floor(math.log10(spread))))
