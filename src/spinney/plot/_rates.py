"""ROC curves and precision–recall curves."""

from __future__ import annotations

from typing import Any

from spinney.plot._style import GREY, class_colours, legend, shortened, styled
from spinney.plot.calculate_scores import (
    Rates,
    calculate_precision_recall,
    calculate_roc,
    read_scores,
)

__all__ = ["precision_recall", "roc"]

_MOST_CLASSES = 8  # with more classes, all are grey


def roc(models: Any, X: Any = None, y: Any = None, *, positive: Any = None, ax: Any = None) -> Any:
    """Draw the ROC curve: true against false positive rate at all thresholds.

    With more than two classes, and without `positive`, the curve of a model is the mean of the
    one-versus-rest curves of the classes. For a single model, these are drawn, too.

    Parameters
    ----------
    models : classifier, array of scores, or dict of str to either
        Fitted classifiers; or scores, of shape (n_rows,) for the second class or of shape
        (n_rows, n_classes).
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Held-out rows. Not needed with scores.
    y : array-like of shape (n_rows,)
        The true classes.
    positive : object, default=None
        The positive class; None: the second of two.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. The legend shows the area under each curve.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.roc([0.1, 0.6, 0.4, 0.8], y=[0, 0, 1, 1])
    >>> axes.get_legend().get_texts()[0].get_text()
    'AUC 0.750'
    """
    scored, truth = read_scores(models, X, y)
    curves = [calculate_roc(one, truth, positive) for one in scored]
    ax = styled(ax, (4.8, 4.4))
    _draw(ax, curves, "AUC", "default")
    ax.axline((0, 0), (1, 1), color=GREY, lw=1, ls="--", zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    legend(ax, loc="lower right")
    return ax


def precision_recall(
    models: Any, X: Any = None, y: Any = None, *, positive: Any = None, ax: Any = None
) -> Any:
    """Draw precision against recall at all thresholds.

    With more than two classes, and without `positive`, the curve of a model is the mean of the
    one-versus-rest curves of the classes. For a single model, these are drawn, too.

    Parameters
    ----------
    models : classifier, array of scores, or dict of str to either
        Fitted classifiers; or scores, of shape (n_rows,) for the second class or of shape
        (n_rows, n_classes).
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Held-out rows. Not needed with scores.
    y : array-like of shape (n_rows,)
        The true classes.
    positive : object, default=None
        The positive class; None: the second of two.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. The legend shows the average precision; the dashed line is the precision if all
        rows are predicted as positive.

    Examples
    --------
    >>> from spinney import plot
    >>> axes = plot.precision_recall([0.1, 0.6, 0.4, 0.8], y=[0, 0, 1, 1])
    >>> axes.get_legend().get_texts()[0].get_text()
    'AP 0.833'
    """
    scored, truth = read_scores(models, X, y)
    curves = [calculate_precision_recall(one, truth, positive) for one in scored]
    ax = styled(ax, (4.8, 4.4))
    _draw(ax, curves, "AP", "steps-pre")
    ax.axhline(curves[0].share, color=GREY, lw=1, ls="--", zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    legend(ax, loc="lower left")
    return ax


def _draw(ax: Any, curves: list[Rates], area: str, steps: str) -> None:
    single = len(curves) == 1
    for curve, colour in zip(curves, class_colours(len(curves)), strict=True):
        name = curve.name or ("mean" if curve.members else "")
        ax.plot(
            curve.across,
            curve.up,
            color=colour,
            lw=2,
            zorder=3,
            drawstyle=steps,
            label=f"{shortened(name)}  {area} {curve.area:.3f}".strip(),
        )
    if not (single and curves[0].members):
        return
    members = curves[0].members
    named = len(members) <= _MOST_CLASSES
    colours = class_colours(len(members) + 1)[1:] if named else [GREY] * len(members)
    for i, (member, colour) in enumerate(zip(members, colours, strict=True)):
        label = f"{shortened(member.name)}  {area} {member.area:.3f}" if named else None
        if not named and i == 0:
            label = f"each of {len(members)} classes"
        ax.plot(
            member.across,
            member.up,
            color=colour,
            lw=1,
            alpha=1 if named else 0.35,
            drawstyle=steps,
            label=label,
            zorder=2,
        )
