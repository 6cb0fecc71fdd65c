"""Replacement of scikit-learn's classes by Spinney's in unchanged code.

``python -m spinney.patch script.py arguments…`` runs a script with the replacement.
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

# Classes with the same name and meaning, and functions that read their trees.
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
# Classes with other parameters than scikit-learn's: replaced only if they are named.
_ONLY_BY_NAME = frozenset({"GradientBoostingClassifier", "GradientBoostingRegressor"})

# scikit-learn's functions refuse Spinney's trees, and Spinney's accept both. So they are replaced
# together with any class.
_TREE_READERS = frozenset({"tree.export_graphviz", "tree.export_text", "tree.plot_tree"})

_lock = threading.RLock()
_originals: dict[str, Any] = {}  # replaced objects of scikit-learn by "module.name"
_patches: list[tuple[object, frozenset[str]]] = []  # active patches and the names they replace


def replaceable_names() -> list[str]:
    """Return the names that `patch_sklearn` can replace.

    Returns
    -------
    list of str
        Names such as ``"ensemble.RandomForestClassifier"``.
    """
    return sorted(f"{module}.{name}" for module, names in _NAMES.items() for name in names)


class _Patch:
    """The result of `patch_sklearn`; as a context manager it restores the classes."""

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
            _patches[:] = [patch for patch in _patches if patch[0] is not self]
            _apply()

    def __repr__(self) -> str:
        return f"<scikit-learn patched: {', '.join(self.replaced)}>"


def patch_sklearn(names: Iterable[str] | None = None) -> _Patch:
    """Replace scikit-learn's classes by Spinney's classes of the same name.

    Afterwards ``from sklearn.ensemble import RandomForestClassifier`` imports Spinney's class, in
    all modules of the process, and `export_text`, `export_graphviz` and `plot_tree` of
    ``sklearn.tree`` read its trees. Call this first: names that were imported before do not
    change. Calling it again has no effect.

    Parameters
    ----------
    names : iterable of str, default=None
        Names to replace: ``"RandomForestClassifier"`` or ``"ensemble.RandomForestClassifier"``.
        None: all of `spinney.patch.replaceable_names` except `GradientBoosting*`, whose parameters
        are not scikit-learn's.

    Returns
    -------
    context manager
        In a ``with`` statement the classes are restored at the end of the block; otherwise by
        `unpatch_sklearn`. Its attribute `replaced` lists the replaced names.

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
        _patches.append((patch, wanted | _TREE_READERS if wanted else wanted))
        _apply()
    return patch


def unpatch_sklearn() -> None:
    """Restore all classes of scikit-learn.

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
        _patches.clear()
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
    """Replace and restore classes to match the names of the active patches."""
    wanted = frozenset[str]().union(*(names for _, names in _patches))
    # Import Spinney's modules first: scikit-learn's original classes are their base classes.
    for module in _NAMES if wanted - _originals.keys() else ():
        importlib.import_module(f"spinney.{module}")
    for full in sorted(wanted - _originals.keys()):
        module, name = full.split(".")
        target = importlib.import_module(f"sklearn.{module}")
        ours = getattr(importlib.import_module(f"spinney.{module}"), name)
        _originals[full] = getattr(target, name)
        setattr(target, name, ours)
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
    sys.path[0] = str(script.resolve().parent)  # Python does the same for a script
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    # Run the imported module, not this copy of it (`__main__`): both must share their state.
    sys.exit(importlib.import_module("spinney.patch").main())
