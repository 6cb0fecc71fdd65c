"""``--set param=value``: parameters of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from spinney.cli._error_messages import UserError

__all__ = ["apply_settings", "parse_settings"]

_CONSTANTS = {"True": True, "False": False, "None": None}


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parse ``name=value`` texts.

    Values are parsed as JSON (``3``, ``0.1``, ``true``, ``null``, ``[1, 2]``) or as Python's
    ``True``, ``False`` and ``None``; all other values are plain text.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UserError(f"--set: expected param=value, got {text!r}")
        settings[name.strip()] = _parse(value.strip())
    return settings


def apply_settings(model: Any, settings: dict[str, Any], name: str) -> Any:
    """Set parameters of a model; raise a UserError for unknown parameters."""
    known = {*model.get_params(), *getattr(model, "learner_param_names", list)()}
    for setting in settings:
        if setting not in known:
            close = get_close_matches(setting, known, n=1)
            listed = f"it has: {', '.join(sorted(known)) or 'none'}"
            hint = f"did you mean {close[0]!r}? ({listed})" if close else listed
            raise UserError(f"--set: {name} has no parameter {setting!r}; {hint}")
    return model.set_params(**settings)


def _parse(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text
