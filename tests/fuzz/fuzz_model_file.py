"""Fuzz `spinney.load`: ``fuzz_model_file.py FOLDER [libFuzzer's options]``.

Requires atheris, which instruments Spinney's Python code, and an installation that is not editable
(editable installations have their own loader, which prevents the instrumentation). The fuzzer
starts from the golden files. It changes them as `model_mutations` does, with valid checksums, or
byte by byte.

`load` must raise ValueError or OSError, or return a model. Methods of the model may raise any
exception. The findings are: other errors from `load`, crashes, runs longer than ten seconds and
more than two gigabytes of memory. FOLDER keeps the findings and the files that reached new code.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import atheris
import joblib
import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

with atheris.instrument_imports(
    include=["spinney.model_file", "spinney.models", "spinney.ensemble", "spinney.tree"]
):
    import spinney
    import spinney.ensemble
    import spinney.tree
    from spinney.model_file import _model_checks, _rebuilding, container, files  # noqa: F401

from support.model_mutations import mutants, read_contents, write_contents  # noqa: E402

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
METHODS += ("apply", "kneighbors", "query", "predict_interval", "predict_set")
MODEL = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)) / "model"


def load_and_predict(data: bytes) -> None:
    """Load a file of these bytes, and call the model's methods."""
    MODEL.write_bytes(data)
    try:
        model = spinney.load(MODEL)
    except (ValueError, OSError):
        return
    n_columns = getattr(model, "__dict__", {}).get("n_features_in_")
    n_columns = n_columns if type(n_columns) is int and 0 < n_columns < 100 else 3
    rows = np.linspace(-2, 2, 7 * n_columns).reshape(7, n_columns)
    rows[1, 0], rows[2, -1] = np.nan, np.inf
    for method in METHODS:
        for queries in (rows, rows[:1]):
            try:
                getattr(model, method)(queries)
            except MemoryError:
                raise
            except Exception:  # an invalid model may raise
                pass


def change(data: bytes, max_size: int, seed: int) -> bytes:
    """Change one part of a file, usually with valid checksums."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.1:
        return bytes(atheris.Mutate(data, max_size))
    MODEL.write_bytes(data)
    try:
        _, changed = next(mutants(read_contents(MODEL), 1, rng))
        write_contents(changed, MODEL)
    except Exception:  # it is not a model file anymore
        return bytes(atheris.Mutate(data, max_size))
    return MODEL.read_bytes()[:max_size]


def main() -> None:
    """Run until a limit in libFuzzer's options."""
    folder, *options = sys.argv[1:]
    corpus = Path(folder) / "model_file"
    corpus.mkdir(parents=True, exist_ok=True)
    for path in (TESTS / "golden" / "v1").glob("*.spinney"):
        shutil.copy(path, corpus / path.stem)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    joblib.parallel_config(
        "sequential"
    )  # a file may request processes, which are slow but not a finding
    limits = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=2048", "-len_control=0"]
    arguments = [sys.argv[0], *limits, f"-artifact_prefix={folder}/", *options, str(corpus)]
    atheris.Setup(arguments, load_and_predict, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
