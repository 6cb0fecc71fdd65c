"""Repeatedly kill a process that saves models: ``kill_run.py N SEED``.

The process saves two models to the same file in turn. After each kill, the file must contain
one complete model, and all other files must have the names of temporary files. The program
prints how often it found each model. It exits with 1 if a file is incomplete.
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


def save_until_killed(path: Path, models: list[NearestNeighbors]) -> None:
    """Save the models in turn until the process is killed."""
    while True:
        for model in models:
            spinney.save(model, path)


def main() -> int:
    """Return 1 if a file was incomplete or unexpected."""
    n, seed = int(sys.argv[1]), int(sys.argv[2])
    random_delay = random.Random(seed)
    rows = np.random.default_rng(seed).normal(size=(4_000, 4))
    models = [NearestNeighbors().fit(rows[:k]) for k in (4_000, 3_000)]
    found = dict.fromkeys((4_000, 3_000), 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spinney"
        start = time.perf_counter()
        for model in models:
            spinney.save(model, path)
        save_seconds = time.perf_counter() - start
        for _ in range(n):
            child = os.fork()
            if child == 0:
                save_until_killed(path, models)
            time.sleep(random_delay.uniform(0.05, 1.1) * save_seconds)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found[spinney.load(path).n_samples_fit_] += 1
            for temporary in Path(folder).glob(".model*"):
                temporary.unlink()  # temporary file of the killed process
            if os.listdir(folder) != [path.name]:
                print(os.listdir(folder))
                return 1
    print(found)
    return 0 if min(found.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
