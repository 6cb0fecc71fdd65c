"""Tables, outputs and comparisons for the contract tests of all estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from support.registry import ENTRIES, Entry

__all__ = [
    "ANY_CLASSES",
    "ANY_TARGET",
    "METHODS",
    "all_entries",
    "assert_close",
    "assert_same",
    "entries_with",
    "entries_without",
    "fit",
    "make_queries",
    "make_table",
    "make_target",
    "outputs",
    "own_entries",
    "quiet",
]

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
CLASSES = np.array(["high", "low", "medium"])

Table = tuple[Any, Any]


def make_table(entry: Entry, n_rows: int = 60, seed: int = 0) -> Table:
    """Return a table of three columns and a target of the kind that the entry needs."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    return X, make_target(entry, X, seed)


def make_target(entry: Entry, X: Any, seed: int = 0) -> Any:
    """Return a noisy target of the kind that the entry needs; None for no target."""
    noise = np.random.default_rng(seed + 1000).normal(size=len(X))
    y = X[:, 0] - 0.5 * X[:, 1] + 0.3 * noise
    kind = entry.target
    if kind == "classes":
        return CLASSES[np.digitize(y, [-0.5, 0.5])]
    if kind == "two classes":
        return np.array(["no", "yes"])[(y > 0).astype(int)]
    if kind == "grades":
        return np.digitize(y, [-0.5, 0.5])
    return y if kind == "numbers" else None


def make_queries(n_rows: int = 20) -> Any:
    """Return rows to predict that are not in the training table."""
    return np.random.default_rng(77).normal(size=(n_rows, 3))


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings, such as those of convergence on tiny tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fit(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Fit without warnings; return the model."""
    arguments = {} if weights is None else {"sample_weight": weights}
    with quiet():
        return model.fit(X, **arguments) if y is None else model.fit(X, y, **arguments)


def outputs(model: Any, X: Any) -> dict[str, Any]:
    """Return the outputs of all methods that predict, as dense arrays by the method's name."""
    found: dict[str, Any] = {}
    with quiet():
        for name in METHODS:
            method = getattr(model, name, None)
            if callable(method):
                found[name] = method(X)
        if hasattr(model, "kneighbors"):
            found["distances"], found["neighbors"] = model.kneighbors(X)
        if hasattr(model, "query"):
            found["distances"], found["neighbors"] = model.query(X, 3)
    assert found
    return {name: _dense(output) for name, output in found.items()}


def _dense(output: Any) -> Any:
    if isinstance(output, list):
        return np.stack([np.asarray(part) for part in output], axis=1)
    return output.toarray() if sp.issparse(output) else np.asarray(output)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that outputs are the same to the bit."""
    assert found.keys() == expected.keys()
    for name, output in expected.items():
        np.testing.assert_array_equal(found[name], output, err_msg=name, strict=True)


def assert_close(
    found: dict[str, Any], expected: dict[str, Any], *, rtol: float = 1e-6, atol: float = 1e-6
) -> None:
    """Check that outputs differ by rounding only; of classes and neighbors, 95% must agree."""
    assert found.keys() == expected.keys()
    for name, output in expected.items():
        if output.dtype.kind in "fc":
            np.testing.assert_allclose(found[name], output, rtol=rtol, atol=atol, err_msg=name)
        else:
            assert found[name].shape == output.shape
            assert np.mean(found[name] == output) >= 0.95, name


ANY_CLASSES = ("classes", "two classes")
ANY_TARGET = (*ANY_CLASSES, "numbers", "grades")
ANY = (*ANY_TARGET, "none")


def _parametrize(entries: list[Entry], targets: tuple[str, ...]) -> Callable[[Any], Any]:
    chosen = [entry for entry in entries if entry.target in targets]
    return pytest.mark.parametrize("entry", chosen, ids=[entry.name for entry in chosen])


def all_entries(targets: tuple[str, ...] = ANY) -> Callable[[Any], Any]:
    """Parametrize a test over all entries with these kinds of targets."""
    return _parametrize(ENTRIES, targets)


def entries_with(capability: str, targets: tuple[str, ...] = ANY) -> Callable[[Any], Any]:
    """Parametrize a test over the entries that have a capability."""
    return _parametrize([entry for entry in ENTRIES if entry.has(capability)], targets)


def entries_without(capability: str, targets: tuple[str, ...] = ANY) -> Callable[[Any], Any]:
    """Parametrize a test over the entries that lack a capability."""
    return _parametrize([entry for entry in ENTRIES if not entry.has(capability)], targets)


def own_entries() -> Callable[[Any], Any]:
    """Parametrize a test over the entries whose class is Spinney's, not scikit-learn's."""
    return _parametrize([entry for entry in ENTRIES if entry.is_own], ANY)
