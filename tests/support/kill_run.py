"""Kill a program that saves, again and again: ``kill_run.py N SEED``.

Two models take turns in one file. Whenever the writer is killed, the file is one of the two, whole,
and what else there is has a name that says so.
Ends with 1 otherwise; prints how often each was found.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import spinney
from spinney.neighbors import NearestNeighbors


def save_for_ever(path: Path, models: list[NearestNeighbors]) -> None:
    """Write each in turn, until killed."""
    while True:
        for model in models:
            spinney.save(model, path)


def main() -> int:
    """Return 1 if a file was not whole."""
    n, seed = int(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    rows = np.random.default_rng(seed).normal(size=(4_000, 4))
    models = [NearestNeighbors().fit(rows[:k]) for k in (4_000, 3_000)]
    found = dict.fromkeys((4_000, 3_000), 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spinney"
        start = time.perf_counter()
        for model in models:
            spinney.save(model, path)
        while_saving = time.perf_counter() - start
        for _ in range(n):
            child = os.fork()
            if child == 0:
                save_for_ever(path, models)
            time.sleep(chance.uniform(0.05, 1.1) * while_saving)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found[spinney.load(path).n_samples_fit_] += 1
            for left in Path(folder).glob(".model*"):
                left.unlink()  # what the killed one had begun
            if os.listdir(folder) != [path.name]:
                print(os.listdir(folder))
                return 1
    print(found)
    return 0 if min(found.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
