"""Load mutants of golden files and ask them about rows: ``mutation_run.py N SEED [NAME ...]``.

A program of its own, since what it looks for would end the one that runs it: a crash, an answer
that never comes, memory without end. It prints what was wrong, and ends with 1 then; after a crash
the last line of its output names the mutation.
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
from golden.questions import rows_for
from support.model_mutations import mutants, read_contents, write_contents

FOLDER = Path(__file__).parents[1] / "golden" / "v1"
PATIENCE = 20  # seconds for one mutant, which takes milliseconds
ROOM = 1 << 30  # bytes beyond what the program has after its imports
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
METHODS += ("apply", "kneighbors", "decision_path", "query", "predict_interval", "predict_set")


def questions(name: str) -> list[Any]:
    """Return the rows that the model was made for, and others."""
    rows = rows_for(name)
    if name.startswith(("table-", "words-", "ID3")):
        places = np.arange(300) % len(rows)
        many = rows.iloc[places] if hasattr(rows, "iloc") else np.asarray(rows)[places]
        return [rows, many, np.zeros((2, 2))]
    if name.startswith("sparse-"):
        return [rows, rows.toarray(), rows[:, :2]]
    strange = rows.copy()
    strange[0], strange[1, 0], strange[2] = np.nan, np.inf, 1e300
    many = np.tile(strange, (60, 1))  # many rows may go other ways than few
    return [rows, strange, many, -rows[:, :2], np.zeros((1, 40))]


def faults(name: str, n: int, seed: int, folder: Path) -> Iterator[str]:
    """Try mutants of one file and tell what went wrong."""
    rng = np.random.default_rng([seed, *name.encode()])
    contents = read_contents(FOLDER / f"{name}.spinney")
    for number, (words, changed) in enumerate(mutants(contents, n, rng)):
        print(f"{name} {number}: {words}", flush=True)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        path = folder / "mutant.spinney"
        write_contents(changed, path)
        try:
            model = spinney.load(path)
        except (ValueError, OSError):
            continue
        except Exception as error:
            yield f"{name} {number} ({words}): load raised {type(error).__name__}: {error}"
            continue
        for rows in questions(name):
            for method in METHODS:
                try:
                    getattr(model, method)(rows)
                except MemoryError as error:
                    yield f"{name} {number} ({words}): {method} asked for memory: {error}"
                except Exception:
                    pass  # a model that was made wrong may say so
        try:
            model.feature_importances_  # noqa: B018
        except MemoryError as error:
            yield f"{name} {number} ({words}): importances asked for memory: {error}"
        except Exception:
            pass
    faulthandler.cancel_dump_traceback_later()


def main() -> int:
    """Return 1 if something was wrong."""
    n, seed, *names = sys.argv[1:]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    names = names or sorted(path.stem for path in FOLDER.glob("*.spinney"))
    for name in names:  # imports what the models need
        spinney.load(FOLDER / f"{name}.spinney")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found += faults(name, int(n), int(seed), Path(folder))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
