"""Kill a process at every line of code that writes a model file.

A file contains a model, and a child process replaces it by another model. The process is killed
before the first line of that code, then before the second, and so on, until it finishes. After
each kill, the file must contain one complete model, and all other files must have the names of
temporary files. The program prints how often it found each model. It exits with 1 after a fault.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import spinney
from spinney.io import atomic_write
from spinney.model_file import container
from spinney.neighbors import NearestNeighbors

TRACED = (atomic_write.__file__, container.__file__)
OLD, NEW = 4_000, 3_000  # rows of the models


def save_until(line: int, model: NearestNeighbors, path: Path) -> None:
    """Save the model, but kill this process before it executes its traced line number `line`."""
    n_executed = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal n_executed
        if frame.f_code.co_filename not in TRACED:
            return None
        n_executed += event == "line"
        if n_executed == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    spinney.save(model, path)


def main() -> int:
    """Return 1 if a file was incomplete or unexpected."""
    rows = np.random.default_rng(0).normal(size=(OLD, 4))
    new = NearestNeighbors().fit(rows[:NEW])
    found: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spinney"
        spinney.save(NearestNeighbors().fit(rows), path)
        old_bytes = path.read_bytes()
        finished = False
        while not finished:
            path.write_bytes(old_bytes)
            child = os.fork()
            if child == 0:
                save_until(len(found) + 1, new, path)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
                print(f"signal {os.WTERMSIG(status)}")
                return 1
            finished = os.WIFEXITED(status)
            found.append(spinney.load(path).n_samples_fit_)
            for temporary in Path(folder).glob(".model*"):
                temporary.unlink()  # temporary file of the killed process
            if os.listdir(folder) != [path.name]:
                print(os.listdir(folder))
                return 1
    n_old = found.count(OLD)
    print({OLD: n_old, NEW: len(found) - n_old})
    # A few kills leave the old model. The kills after the replacement leave the new one.
    return 0 if n_old > 10 and found == [OLD] * n_old + [NEW] * (len(found) - n_old) else 1


if __name__ == "__main__":
    sys.exit(main())
