"""Fuzz `spinney.load` by coverage: ``fuzz_model_file.py FOLDER [libFuzzer's options]``.

Needs atheris, which instruments Spinney's Python code, installed but not as editable (that has a
loader of its own, and nothing would guide the fuzzer). It begins with the golden files and changes
them as `model_mutations` does (a number, a node, a name, with the checksums made right again) or as
bytes. A file is refused by a ValueError or an OSError, or gives a model that answers questions or
refuses them; another error from `load`, a crash, ten seconds or two gigabytes is a finding, which
is kept in FOLDER beside the files that reached new code.
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


def ask(data: bytes) -> None:
    """Load a file of these bytes, and ask the model about some rows."""
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
        for asked in (rows, rows[:1]):
            try:
                getattr(model, method)(asked)
            except MemoryError:
                raise
            except Exception:  # a model that was made wrong may say so
                pass


def change(data: bytes, max_size: int, seed: int) -> bytes:
    """Change one thing in a file, mostly such that its checksums stay right."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.1:
        return bytes(atheris.Mutate(data, max_size))
    MODEL.write_bytes(data)
    try:
        _, changed = next(mutants(read_contents(MODEL), 1, rng))
        write_contents(changed, MODEL)
    except Exception:  # it is no model file any more
        return bytes(atheris.Mutate(data, max_size))
    return MODEL.read_bytes()[:max_size]


def main() -> None:
    """Run until libFuzzer's options say to stop."""
    folder, *options = sys.argv[1:]
    kept = Path(folder) / "model_file"
    kept.mkdir(parents=True, exist_ok=True)
    for path in (TESTS / "golden" / "v1").glob("*.spinney"):
        shutil.copy(path, kept / path.stem)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    joblib.parallel_config("sequential")  # a file may ask for processes: slow, and no finding
    limits = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=2048", "-len_control=0"]
    arguments = [sys.argv[0], *limits, f"-artifact_prefix={folder}/", *options, str(kept)]
    atheris.Setup(arguments, ask, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
