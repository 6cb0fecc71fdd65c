"""Numbers of examples that Hypothesis draws in normal and in long runs."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_NORMAL = 100  # examples of the profiles of normal runs


def examples(n_examples: int, **options: Any) -> settings:
    """Return settings that draw this number of examples, and several times as many with `--long`.

    For tests whose examples are expensive. `options` are other settings of Hypothesis.
    """
    factor = settings.default.max_examples / _NORMAL
    return settings(max_examples=max(1, round(n_examples * factor)), deadline=None, **options)
