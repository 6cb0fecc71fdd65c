"""Golden files of every version predict the same; mutated files are safe."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinney
from golden.queries import outputs_of
from spinney.data.sklearn_versions import SKLEARN_VERSION
from support.paths import TESTS

VERSIONS = sorted(path for path in (TESTS / "golden").iterdir() if path.name.startswith("v"))
FILES = [path for version in VERSIONS for path in sorted(version.glob("*.spinney"))]
PACKAGES = (
    *("calibration", "ensemble", "linear_model", "mixture", "neighbors", "preprocessing", "tree"),
)

# These models use matrix products of BLAS, whose rounding depends on the processor: another
# kernel of OpenBLAS changes the last bits. Two models use metrics of SciPy.
PRODUCTS = (
    *("AdaBoostClassifier-logistic", "AnyBoost", "Bayesian", "GaussianMixture", "Halfspace"),
    *("LAD", "Linear", "Local", "Logistic", "Mixture", "Perceptron", "Pipeline", "PlugIn"),
    *("Polynomial", "Ridge", "Stacking", "Whitener", "Calibrated", "Conformal", "Scaled"),
    *("KNeighborsClassifier-canberra", "KNeighborsClassifier-mahalanobis"),
)
# Sums over trees are computed by the core and identical everywhere. `exp` and powers are rounded
# by the C library of the machine.
POWERS = {
    "AdaBoost": ("predict_proba",),
    "GradientBoosting": ("predict_proba",),
    "Hist": ("predict_proba",),
    "IsolationForest": ("decision_function", "score_samples"),
}


ROWS = ("table-", "words-", "several-", "float32-", "sparse-")


def is_rounded(name: str, method: str) -> bool:
    kind = name.partition("-")[2] if name.startswith(ROWS) else name
    if method == "predict_interval":  # means and roots by NumPy
        return True
    powers = any(kind.startswith(start) and method in POWERS[start] for start in POWERS)
    return kind.startswith(PRODUCTS) or powers


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_models_predict_the_stored_outputs(path: Path) -> None:
    if path.stem == "StackingClassifier" and SKLEARN_VERSION < (1, 8):
        pytest.skip("the file has a LogisticRegression of scikit-learn 1.9")
    model = spinney.load(path)
    actual = outputs_of(path.stem, model)
    with np.load(path.parent / "outputs.npz") as stored:
        expected = {
            name.partition(" ")[2]: stored[name]
            for name in stored.files
            if name.partition(" ")[0] == path.stem
        }
    assert expected
    assert set(expected) <= set(actual)
    for method, prediction in expected.items():
        assert actual[method].dtype == prediction.dtype
        if prediction.dtype.kind == "f" and is_rounded(path.stem, method):
            tolerance = 1e-12 if prediction.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(
                actual[method], prediction, rtol=tolerance, atol=tolerance / 100
            )
        else:
            np.testing.assert_array_equal(actual[method], prediction, strict=True)


@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: path.stem)
def test_pickles_predict_the_same(path: Path) -> None:
    model = spinney.load(path)
    expected = outputs_of(path.stem, model)
    actual = outputs_of(path.stem, pickle.loads(pickle.dumps(model)))
    assert expected.keys() == actual.keys()
    for method, prediction in expected.items():
        np.testing.assert_array_equal(actual[method], prediction, strict=True)


def test_every_estimator_has_a_golden_file() -> None:
    import importlib

    names = set()
    for package in PACKAGES:
        module: Any = importlib.import_module(f"spinney.{package}")
        names |= {
            name
            for name in module.__all__
            if hasattr(getattr(module, name), "fit")
            and hasattr(getattr(module, name), "get_params")
        }
    assert names <= {path.stem for path in FILES}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory in use from the system")
@pytest.mark.parametrize(
    ("n_mutants", "seed"),
    [(1, 0), *(pytest.param(12, seed, marks=pytest.mark.long) for seed in (1, 2))],
)
def test_mutated_files_load_or_raise(n_mutants: int, seed: int) -> None:
    """Each mutated file raises ValueError or loads, as `mutation_run.py` defines."""
    process = subprocess.run(
        [sys.executable, TESTS / "support" / "mutation_run.py", str(n_mutants), str(seed)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert process.returncode == 0, (process.stdout + process.stderr)[-3000:]
    assert len(process.stdout.splitlines()) >= n_mutants * len(FILES)
