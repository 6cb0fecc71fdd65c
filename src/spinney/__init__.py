"""Spinney: classical supervised learning with scikit-learn's API and a C++ core.

Submodules and names are imported on first use, so that ``import spinney`` is fast. scikit-learn,
SciPy, matplotlib and the data frame libraries are imported only by the modules that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney import (
        calibration,
        dask,
        datasets,
        ensemble,
        export,
        inspection,
        io,
        linear_model,
        mixture,
        model_selection,
        neighbors,
        plot,
        preprocessing,
        report,
        theory,
        tree,
    )
    from spinney.comparison.compare import compare
    from spinney.export._c import export_c
    from spinney.export._onnx import export_onnx
    from spinney.importing._catboost import from_catboost
    from spinney.importing._lightgbm import from_lightgbm
    from spinney.importing._sklearn import from_sklearn
    from spinney.importing._xgboost import from_xgboost
    from spinney.model_file.files import describe, load, save
    from spinney.patch import patch_sklearn, unpatch_sklearn
    from spinney.runtime.threads import get_num_threads, set_num_threads
    from spinney.runtime.versions import show_versions

# pyproject.toml reads the version number from here.
__version__ = "0.2.0"

__all__ = [
    "__version__",
    "calibration",
    "compare",
    "dask",
    "datasets",
    "describe",
    "ensemble",
    "export",
    "export_c",
    "export_onnx",
    "from_catboost",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "get_num_threads",
    "inspection",
    "io",
    "linear_model",
    "load",
    "mixture",
    "model_selection",
    "neighbors",
    "patch_sklearn",
    "plot",
    "preprocessing",
    "report",
    "save",
    "set_num_threads",
    "show_versions",
    "theory",
    "tree",
    "unpatch_sklearn",
]

# Add a new submodule here, and a new top-level function with its module below. Add both also to
# `__all__`, and under TYPE_CHECKING for editors and mypy.
_SUBMODULES = frozenset(
    {
        "calibration",
        "dask",
        "datasets",
        "ensemble",
        "export",
        "inspection",
        "io",
        "linear_model",
        "mixture",
        "model_selection",
        "neighbors",
        "plot",
        "preprocessing",
        "report",
        "theory",
        "tree",
    }
)
_NAMES = {
    "compare": "spinney.comparison.compare",
    "from_catboost": "spinney.importing._catboost",
    "from_lightgbm": "spinney.importing._lightgbm",
    "from_sklearn": "spinney.importing._sklearn",
    "from_xgboost": "spinney.importing._xgboost",
    "export_c": "spinney.export._c",
    "export_onnx": "spinney.export._onnx",
    "get_num_threads": "spinney.runtime.threads",
    "describe": "spinney.model_file.files",
    "load": "spinney.model_file.files",
    "patch_sklearn": "spinney.patch",
    "save": "spinney.model_file.files",
    "set_num_threads": "spinney.runtime.threads",
    "show_versions": "spinney.runtime.versions",
    "unpatch_sklearn": "spinney.patch",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value  # later lookups do not call this function
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
