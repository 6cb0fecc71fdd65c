"""Colours of classes in plots."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DOTS", "FILLS", "label_colours"]

FILLS = ("#c9dcef", "#f6d5c3", "#d3e8cd", "#e3d4ec", "#f3e6b8", "#d9d9d9", "#f4ccd8", "#cfeaea")
DOTS = ("#1f5a94", "#b4511f", "#3b7d2c", "#6f3f8c", "#97791a", "#555555", "#a83259", "#2b7f7f")


def label_colours(palette: tuple[str, ...], classes: Any, labels: Any) -> list[str]:
    """Return the colour of each label; `classes` are sorted and the palette repeats."""
    return [palette[index % len(palette)] for index in np.searchsorted(classes, labels)]
