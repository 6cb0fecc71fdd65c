"""Spinney's classes in scikit-learn's place, for code that cannot be changed.

``python -m spinney.patch script.py arguments…`` runs a script that way.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["patch_sklearn", "replaceable_names", "unpatch_sklearn"]

# Classes that mean the same under the same name, and functions that read their trees.
_NAMES = {
    "tree": (
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
        "export_graphviz",
        "export_text",
        "plot_tree",
    ),
    "ensemble": (
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "IsolationForest",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "RandomTreesEmbedding",
    ),
    "linear_model": ("LinearRegression", "LogisticRegression", "Perceptron", "Ridge", "RidgeCV"),
    "neighbors": (
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "KNeighborsTransformer",
        "RadiusNeighborsClassifier",
        "RadiusNeighborsRegressor",
        "RadiusNeighborsTransformer",
        "NearestNeighbors",
    ),
    "mixture": ("GaussianMixture",),
}
# These have other parameters than scikit-learn's, so that they are replaced only if asked for.
_ONLY_BY_NAME = frozenset({"GradientBoostingClassifier", "GradientBoostingRegressor"})

# scikit-learn's refuse trees that are not its own; ours read both. They come with every class.
_READERS = frozenset({"tree.export_graphviz", "tree.export_text", "tree.plot_tree"})

_lock = threading.RLock()
_originals: dict[str, Any] = {}  # by "module.name", while replaced
_layers: list[tuple[object, frozenset[str]]] = []  # who asked for what, in this order


def replaceable_names() -> list[str]:
    """List what `patch_sklearn` can replace.

    Returns
    -------
    list of str
        Such as ``"ensemble.RandomForestClassifier"``.
    """
    return sorted(f"{module}.{name}" for module, names in _NAMES.items() for name in names)


class _Patch:
    """What `patch_sklearn` returns: undone at the end of a ``with`` block."""

    def __init__(self, replaced: list[str]) -> None:
        self.replaced = replaced

    def __enter__(self) -> _Patch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            _layers[:] = [layer for layer in _layers if layer[0] is not self]
            _apply()

    def __repr__(self) -> str:
        return f"<scikit-learn patched: {', '.join(self.replaced)}>"


def patch_sklearn(names: Iterable[str] | None = None) -> _Patch:
    """Put Spinney's classes where scikit-learn has its own of the same name.

    From then on ``from sklearn.ensemble import RandomForestClassifier`` gives Spinney's class, in
    all modules of the process, and `export_text`, `export_graphviz` and `plot_tree` of
    ``sklearn.tree`` read its trees. Names that were imported before stay what they were: call this
    first. Calling it again changes nothing.

    Parameters
    ----------
    names : iterable of str, default=None
        What to replace: ``"RandomForestClassifier"`` or ``"ensemble.RandomForestClassifier"``.
        None: all of `spinney.patch.replaceable_names` but `GradientBoosting*`, whose parameters
        are not scikit-learn's.

    Returns
    -------
    context manager
        In a ``with`` statement the end of the block undoes it; otherwise `unpatch_sklearn` does.
        Its attribute `replaced` lists what it replaces.

    Examples
    --------
    >>> import spinney
    >>> with spinney.patch_sklearn(names=["RandomForestClassifier"]):
    ...     from sklearn.ensemble import RandomForestClassifier
    >>> RandomForestClassifier.__module__.split(".")[0]
    'spinney'
    >>> import sklearn.ensemble
    >>> sklearn.ensemble.RandomForestClassifier.__module__.split(".")[0]
    'sklearn'
    """
    wanted = _chosen(names)
    with _lock:
        patch = _Patch(sorted(wanted))
        _layers.append((patch, wanted | _READERS if wanted else wanted))
        _apply()
    return patch


def unpatch_sklearn() -> None:
    """Give scikit-learn all its classes back.

    Examples
    --------
    >>> import spinney
    >>> _ = spinney.patch_sklearn()
    >>> spinney.unpatch_sklearn()
    >>> import sklearn.tree
    >>> sklearn.tree.DecisionTreeClassifier.__module__.split(".")[0]
    'sklearn'
    """
    with _lock:
        _layers.clear()
        _apply()


def _chosen(names: Iterable[str] | None) -> frozenset[str]:
    known = replaceable_names()
    if names is None:
        return frozenset(name for name in known if name.split(".")[1] not in _ONLY_BY_NAME)
    if isinstance(names, str):
        raise TypeError(f"names: expected a list of names, got the string {names!r}")
    chosen = set()
    for name in names:
        found = [full for full in known if name in (full, full.split(".")[1])]
        if not found:
            raise ValueError(f"names: expected some of {', '.join(known)}, got {name!r}")
        chosen.update(found)
    return frozenset(chosen)


def _apply() -> None:
    """Make scikit-learn's packages what the layers ask for together."""
    wanted = frozenset[str]().union(*(names for _, names in _layers))
    # Ours are imported while scikit-learn's are in place: those are their bases.
    for module in _NAMES if wanted - _originals.keys() else ():
        importlib.import_module(f"spinney.{module}")
    for full in sorted(wanted - _originals.keys()):
        module, name = full.split(".")
        place = importlib.import_module(f"sklearn.{module}")
        ours = getattr(importlib.import_module(f"spinney.{module}"), name)
        _originals[full] = getattr(place, name)
        setattr(place, name, ours)
    for full in sorted(_originals.keys() - wanted):
        module, name = full.split(".")
        setattr(importlib.import_module(f"sklearn.{module}"), name, _originals.pop(full))


def main(arguments: list[str] | None = None) -> int:
    """Run a script with scikit-learn patched."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help"):
        print("usage: python -m spinney.patch script.py [arguments …]")
        return 0 if given else 2
    script = Path(given[0])
    if not script.is_file():
        print(f"spinney.patch: no such script: {script}", file=sys.stderr)
        return 2
    patch_sklearn()
    sys.argv = list(given)
    sys.path[0] = str(script.resolve().parent)  # as Python does for a script
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    # The script and this module must share one state: run as a program, this is a copy.
    sys.exit(importlib.import_module("spinney.patch").main())
