"""The common style of all plots: sizes, colours, axes, error bands, labels."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spinney.tree.export.colors import DOTS, FILLS

__all__ = [
    "ACCENT",
    "GREY",
    "LEGEND_ROOM",
    "band",
    "blues",
    "class_colours",
    "class_key",
    "fills",
    "label_categories",
    "label_missing",
    "legend",
    "mark_points",
    "note",
    "shortened",
    "styled",
    "value_scale",
]

ACCENT = DOTS[0]
GREY = "#8a8a8a"
LEGEND_ROOM = 10  # maximum number of entries of a legend; more get a scale beside the axes
_TEXT = 9.0  # points
_SMALL = 8.0
_TINY = 5.0
_LINE = 1.4  # height of a line of text in units of its size
_LONGEST = 28  # maximum number of characters of a label
_NOTE = "spinney-note"
_TICKS = 20  # maximum number of ticks of a scale of classes


def styled(ax: Any, size: tuple[float, float] = (5.6, 3.8), grid: str = "both") -> Any:
    """Apply Spinney's style to axes, or to those of a new figure, and return them.

    Parameters
    ----------
    ax : matplotlib Axes or None
        The axes; None makes a figure. Only then is pyplot imported.
    size : (float, float), default=(5.6, 3.8)
        Width and height of a new figure in inches.
    grid : {"both", "x", "y", "none"}, default="both"
        The axes that get grid lines.
    """
    if ax is None:
        ax = _pyplot().subplots(figsize=size, layout="constrained")[1]
    elif not (hasattr(ax, "add_collection") and hasattr(ax, "get_figure")):
        raise TypeError(f"ax: expected matplotlib Axes or None, got {type(ax).__name__}")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(labelsize=_SMALL, color=GREY, length=3, width=0.8)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(_TEXT)
    ax.title.set_size(_TEXT + 1)
    ax.set_axisbelow(True)
    if grid != "none":
        ax.grid(True, axis=grid, color=GREY, alpha=0.2, linewidth=0.6)
    return ax


def _pyplot() -> Any:
    """Import pyplot, or raise an error that names the package to install."""
    try:
        import matplotlib.pyplot as plt  # an optional dependency
    except ImportError as error:
        raise ImportError(
            "spinney.plot needs matplotlib, which is not installed; install it with "
            "pip install 'spinney[plot]'"
        ) from error
    return plt


def class_colours(n: int) -> list[str]:
    """Return n colours: from the palette, or hues around the circle if n is larger."""
    if n <= len(DOTS):
        return list(DOTS[:n])
    colours = []
    for i in range(n):
        # Neighbours on the circle differ in lightness, too.
        lightness, saturation = ((0.36, 0.75), (0.52, 0.55), (0.44, 0.9))[i % 3]
        red, green, blue = colorsys.hls_to_rgb(0.58 + i / n, lightness, saturation)
        colours.append(f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}")
    return colours


def fills(n: int) -> list[str]:
    """Return n light colours that match `class_colours`."""
    if n <= len(FILLS):
        return list(FILLS[:n])
    return [_mixed(colour, 0.7) for colour in class_colours(n)]


def _mixed(colour: str, white: float) -> str:
    """Return the colour mixed with a share of white."""
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(one + (255 - one) * white):02x}" for one in channels)


def blues() -> Any:
    """Return the colour map of shares and counts: white to the first colour."""
    from matplotlib.colors import LinearSegmentedColormap  # an optional dependency

    return LinearSegmentedColormap.from_list("spinney", ["#ffffff", FILLS[0], ACCENT])


def band(
    ax: Any, x: Any, middle: Any, spread: Any, *, colour: str, label: str | None, dashed: bool
) -> None:
    """Draw a line with dots, and a band of ± the spread around it."""
    low, high = np.subtract(middle, spread), np.add(middle, spread)
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(
        x, middle, "--" if dashed else "-", marker="o", ms=3.5, lw=1.5, color=colour, label=label
    )


def mark_points(ax: Any, x: Any, y: Any, colours: Any, **style: Any) -> Any:
    """Draw rows as dots, which are smaller if there are many."""
    size = float(np.clip(4000 / max(len(x), 1), 4, 18))
    style = {"s": size, "linewidths": 0.3, "edgecolors": "white", "zorder": 2} | style
    return ax.scatter(x, y, c=colours, **style)


def legend(ax: Any, **where: Any) -> None:
    """Add a legend if any element has a label."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        ax.legend(
            handles,
            labels,
            fontsize=_SMALL,
            frameon=True,
            framealpha=0.8,
            edgecolor="none",
            borderpad=0.3,
            handlelength=1.6,
            **where,
        )


def class_key(ax: Any, names: Sequence[str], colours: Sequence[str]) -> None:
    """Label the colours of classes by a legend, or by a scale for many classes."""
    if len(names) <= LEGEND_ROOM:
        for name, colour in zip(names, colours, strict=True):
            ax.scatter([], [], c=colour, s=18, label=shortened(name))
        legend(ax, loc="best")
        return
    from matplotlib.cm import ScalarMappable  # an optional dependency
    from matplotlib.colors import BoundaryNorm, ListedColormap

    n = len(names)
    scale = ScalarMappable(BoundaryNorm(np.arange(n + 1) - 0.5, n), ListedColormap(list(colours)))
    shown = np.unique(np.linspace(0, n - 1, min(n, _TICKS)).round().astype(int))
    bar = ax.get_figure().colorbar(scale, ax=ax, ticks=shown, pad=0.02)
    bar.ax.set_yticklabels([shortened(names[i], 16) for i in shown], fontsize=_SMALL)
    bar.ax.tick_params(length=0)
    bar.outline.set_visible(False)


def value_scale(ax: Any, drawn: Any, title: str) -> None:
    """Add a colour bar beside the axes."""
    bar = ax.get_figure().colorbar(drawn, ax=ax, pad=0.02)
    bar.set_label(title, fontsize=_TEXT)
    bar.ax.tick_params(labelsize=_SMALL, length=2)
    bar.outline.set_visible(False)


def shortened(name: Any, longest: int = _LONGEST) -> str:
    """Return a label without its middle if it is long, and with `$` escaped."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        tail = longest // 3
        text = text[: longest - 1 - tail] + "…" + text[-tail:]
    return text.replace("$", r"\$")


def label_categories(ax: Any, which: str, labels: Iterable[Any]) -> None:
    """Label the ticks 0, 1, … of an axis, in the size that the space allows.

    If the space is too small even for small letters, only every second (third, …) tick is labelled.
    """
    texts = [shortened(label) for label in labels]
    box = ax.get_window_extent()
    points = 72 / ax.get_figure().dpi
    room = (box.height if which == "y" else box.width) * points / max(len(texts), 1)
    widest = max((len(text) for text in texts), default=0) * 0.62 * _SMALL
    upright = which == "y" or widest < 0.9 * room
    size = _SMALL
    if which == "y" or not upright:
        size = float(np.clip(room / _LINE, _TINY, _SMALL))
    step = 1 if which == "x" and upright else max(1, int(np.ceil(_TINY * _LINE / room)))
    positions = np.arange(0, len(texts), step)
    texts = texts[::step]
    if which == "y":
        ax.set_yticks(positions, texts, fontsize=size)
    else:
        ax.set_xticks(positions, texts, fontsize=size, rotation=0 if upright else 90)


def label_missing(ax: Any, which: str, low: float, high: float, position: float) -> None:
    """Add a tick for missing values to a numeric axis, above the highest value."""
    ticks = getattr(ax, f"{which}axis").get_major_locator().tick_values(low, high)
    room = 0.08 * (position - low)  # space for the label "missing"
    ticks = [tick for tick in ticks if low <= tick <= min(high, position - room)]
    labels = [*(f"{tick:g}" for tick in ticks), "missing"]
    getattr(ax, f"set_{which}ticks")([*ticks, position], labels)


def note(ax: Any, text: str) -> None:
    """Write a remark above the axes, right-aligned, after earlier remarks."""
    for earlier in ax.texts:
        if earlier.get_gid() == _NOTE:
            earlier.set_text(f"{earlier.get_text()} · {text}")
            return
    ax.text(
        1.0,
        1.01,
        text,
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=7,
        color=GREY,
        gid=_NOTE,
    )
