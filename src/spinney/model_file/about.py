"""Metadata of a model file, which can be read without loading the model."""

from __future__ import annotations

import inspect
import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

__all__ = ["about_model", "changed_parameters"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_MOST_CLASSES = 1000  # a longer list of classes is cut off


def about_model(model: Any, training: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of a model: plain values for JSON."""
    # Here, because `spinney` imports this package.
    from spinney import __version__
    from spinney.model_file.allowed_classes import name_of_class

    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    classes = getattr(model, "classes_", None)
    if not (isinstance(classes, np.ndarray) and classes.ndim == 1):
        classes = None  # several outputs
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": name_of_class(type(model)) or _public_name(type(model)),
        "parameters": {name: _shown(value) for name, value in parameters.items()},
        "changed": changed_parameters(model),
        "n_features": _int_or_none(getattr(model, "n_features_in_", None)),
        "features": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else [str(c) for c in classes[:_MOST_CLASSES]],
        "n_classes": None if classes is None else len(classes),
        "compaction": getattr(model, "compaction_", None),
        "versions": {
            "spinney": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "training": None if training is None else _plain(dict(training), "training"),
    }


def _public_name(kind: type[Any]) -> str:
    """Return the name, without private modules, of a class that files cannot have."""
    packages = [part for part in kind.__module__.split(".") if not part.startswith("_")]
    return ".".join([*packages, kind.__qualname__])


def changed_parameters(model: Any) -> list[str]:
    """Return the names of the parameters that are not at their defaults."""
    if not hasattr(model, "get_params"):
        return []
    defaults = inspect.signature(type(model).__init__).parameters
    changed = []
    for name, value in model.get_params(deep=False).items():
        default = defaults[name].default if name in defaults else inspect.Parameter.empty
        if _shown(value) != _shown(default):
            changed.append(name)
    return changed


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _plain(value: Any, location: str) -> Any:
    """Convert a value to plain JSON types, with null for NaN and infinity."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {
            _key(key, location): _plain(item, f"{location}[{key!r}]") for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{location}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{location}: expected a JSON value, got a {type(value).__name__}")


def _key(key: Any, location: str) -> Any:
    key = key.item() if isinstance(key, np.generic) else key
    if key is None or isinstance(key, str | int | float):
        return key
    raise TypeError(f"{location}: expected strings as keys, got a {type(key).__name__}")


def _int_or_none(value: Any) -> int | None:
    return None if value is None else int(value)
