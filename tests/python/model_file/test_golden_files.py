"""Files of every version load for ever and say the same; changed ones do no harm."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinney
from golden.questions import answers_of
from support.paths import TESTS

VERSIONS = sorted(path for path in (TESTS / "golden").iterdir() if path.name.startswith("v"))
FILES = [path for version in VERSIONS for path in sorted(version.glob("*.spinney"))]
PACKAGES = (
    *("calibration", "ensemble", "linear_model", "mixture", "neighbors", "preprocessing", "tree"),
)

# Products of matrices are BLAS's in these, which rounds by the processor: with another kernel of
# OpenBLAS eight of their answers differ in the last bits. Metrics are SciPy's in two.
PRODUCTS = (
    *("AdaBoostClassifier-logistic", "AnyBoost", "Bayesian", "GaussianMixture", "Halfspace"),
    *("LAD", "Linear", "Local", "Logistic", "Mixture", "Perceptron", "Pipeline", "PlugIn"),
    *("Polynomial", "Ridge", "Stacking", "Whitener", "Calibrated", "Conformal", "Scaled"),
    *("KNeighborsClassifier-canberra", "KNeighborsClassifier-mahalanobis"),
)
# Sums over trees are the core's and the same to the bit everywhere; what is made of them by `exp`
# and powers is as the C library of the machine rounds these.
POWERS = {
    "AdaBoost": ("predict_proba",),
    "GradientBoosting": ("predict_proba",),
    "Hist": ("predict_proba",),
    "IsolationForest": ("decision_function", "score_samples"),
}


ROWS = ("table-", "words-", "several-", "float32-", "sparse-")


def is_rounded(name: str, method: str) -> bool:
    kind = name.partition("-")[2] if name.startswith(ROWS) else name
    if method == "predict_interval":  # means and roots of NumPy's
        return True
    powers = any(kind.startswith(start) and method in POWERS[start] for start in POWERS)
    return kind.startswith(PRODUCTS) or powers


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_answers_stay_as_they_were(path: Path) -> None:
    model = spinney.load(path)
    got = answers_of(path.stem, model)
    with np.load(path.parent / "answers.npz") as kept:
        expected = {
            name.partition(" ")[2]: kept[name]
            for name in kept.files
            if name.partition(" ")[0] == path.stem
        }
    assert expected
    assert set(expected) <= set(got)
    for method, answer in expected.items():
        assert got[method].dtype == answer.dtype
        if answer.dtype.kind == "f" and is_rounded(path.stem, method):
            digits = 1e-12 if answer.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(got[method], answer, rtol=digits, atol=digits / 100)
        else:
            np.testing.assert_array_equal(got[method], answer, strict=True)


@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: path.stem)
def test_pickles_keep_the_same_state(path: Path) -> None:
    model = spinney.load(path)
    expected = answers_of(path.stem, model)
    got = answers_of(path.stem, pickle.loads(pickle.dumps(model)))
    assert expected.keys() == got.keys()
    for method, answer in expected.items():
        np.testing.assert_array_equal(got[method], answer, strict=True)


def test_every_estimator_has_a_file() -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for the memory in use")
@pytest.mark.parametrize("seed", [1, 2])
def test_mutants_do_no_harm(seed: int) -> None:
    """Each is an error of ours or a model; `mutation_run.py` says what else may happen."""
    done = subprocess.run(
        [sys.executable, TESTS / "support" / "mutation_run.py", "6", str(seed)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert len(done.stdout.splitlines()) >= 6 * len(FILES)  # as many as were asked for
