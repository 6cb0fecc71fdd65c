"""Predict with mutated golden files: ``mutation_run.py N SEED [NAME ...]``.

It is a separate program, because the faults that it detects would end the test run: crashes,
endless loops and unlimited memory. It prints every fault and then exits with 1. After a crash,
the last line of the output names the mutation.
"""

from __future__ import annotations

import faulthandler
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import spinney
from golden.queries import rows_for
from support.model_mutations import mutants, read_contents, write_contents

GOLDEN = Path(__file__).parents[1] / "golden"  # names are relative to it, as "v2/Ridge"
TIMEOUT = 20  # seconds per mutant; a valid one takes milliseconds
EXTRA_MEMORY = 1 << 30  # bytes in addition to those in use after the imports
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
METHODS += ("apply", "kneighbors", "decision_path", "query", "predict_interval", "predict_set")


def rows_to_predict(name: str) -> list[Any]:
    """Return the golden rows of a model, and unusual rows."""
    name = name.partition("/")[2]
    rows = rows_for(name)
    if name.startswith(("table-", "words-", "ID3")):
        indices = np.arange(300) % len(rows)
        many = rows.iloc[indices] if hasattr(rows, "iloc") else np.asarray(rows)[indices]
        return [rows, many, np.zeros((2, 2))]
    if name.startswith("sparse-"):
        return [rows, rows.toarray(), rows[:, :2]]
    unusual = rows.copy()
    unusual[0], unusual[1, 0], unusual[2] = np.nan, np.inf, 1e300
    many = np.tile(unusual, (60, 1))  # large tables may use another algorithm
    return [rows, unusual, many, -rows[:, :2], np.zeros((1, 40))]


def faults(name: str, n: int, seed: int, folder: Path) -> Iterator[str]:
    """Yield the faults of mutants of one file."""
    rng = np.random.default_rng([seed, *name.encode()])
    contents = read_contents(GOLDEN / f"{name}.spinney")
    for index, (change, changed) in enumerate(mutants(contents, n, rng)):
        print(f"{name} {index}: {change}", flush=True)
        faulthandler.dump_traceback_later(TIMEOUT, exit=True)
        path = folder / "mutant.spinney"
        write_contents(changed, path)
        try:
            model = spinney.load(path)
        except (ValueError, OSError):
            continue
        except Exception as error:
            yield f"{name} {index} ({change}): load raised {type(error).__name__}: {error}"
            continue
        for rows in rows_to_predict(name):
            for method in METHODS:
                try:
                    getattr(model, method)(rows)
                except MemoryError as error:
                    yield f"{name} {index} ({change}): {method} ran out of memory: {error}"
                except Exception:
                    pass  # an invalid model may raise
        try:
            model.feature_importances_  # noqa: B018
        except MemoryError as error:
            yield f"{name} {index} ({change}): importances ran out of memory: {error}"
        except Exception:
            pass
    faulthandler.cancel_dump_traceback_later()


def main() -> int:
    """Return 1 if there were faults."""
    n, seed, *names = sys.argv[1:]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    files = sorted(GOLDEN.glob("v*/*.spinney"))
    names = names or [f"{path.parent.name}/{path.stem}" for path in files]
    for name in names:  # imports the modules that the models need
        spinney.load(GOLDEN / f"{name}.spinney")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_MEMORY, used + EXTRA_MEMORY))
    found_faults = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found_faults += faults(name, int(n), int(seed), Path(folder))
    print("\n".join(found_faults))
    return 1 if found_faults else 0


if __name__ == "__main__":
    sys.exit(main())
