"""Rows in memory and on Dask for the tests on a cluster of processes."""

from __future__ import annotations

import os

import dask
import dask.array as da
import numpy as np
import pandas as pd

from spinney.dask import _boost_task
from support.waiting import wait_until

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
X[::17, 1] = np.nan
FULL = np.nan_to_num(X)
Y = FULL[:, 0] + FULL[:, 1] ** 2 + RNG.normal(size=900)
CLASSES = np.array(["no", "perhaps", "yes"])[np.digitize(Y, [0, 2])]
WEIGHTS = RNG.uniform(0.5, 2, size=900)
# Block sizes differ, and one block is empty.
CHUNKS = ((300, 1, 0, 419, 180), 4)

ROUNDS_8 = {"n_estimators": 8, "random_state": 5, "max_leaf_nodes": 7}
ROUNDS_10 = {"n_estimators": 10, "random_state": 5, "max_leaf_nodes": 7, "early_stopping": False}


def blocks(values):
    """Return a Dask array with blocks of rows."""
    chunks = CHUNKS[:1] if values.ndim == 1 else (CHUNKS[0], values.shape[1])
    return da.from_array(values, chunks=chunks)


def mixed_frame(n=600):
    """Return a data frame with numeric and string columns and the target `y`."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=n), "k": rng.integers(0, 5, n)})
    frame["town"] = np.array(["Ulm", "Bonn", "Trier", "Jena"])[rng.integers(0, 4, n)]
    frame["y"] = frame.a + (frame.town == "Bonn") * 2 + rng.normal(size=n) / 4
    return frame


def delayed_frame(frame):
    """Return a delayed data frame, for a partition."""
    return dask.delayed(lambda: frame)()


def assert_clean(cluster):
    """Check that the workers have no state, files or tasks of fits."""

    # A nested function is pickled by value: the workers cannot import this file.
    def leftovers(dask_worker):
        names = os.listdir(dask_worker.local_directory)
        files = [name for name in names if name.startswith("spinney-")]
        return len(_boost_task._fit_states), files, dask_worker.state.executing_count

    wait_until(
        lambda: all(found == (0, [], 0) for found in cluster.run(leftovers).values()),
        "the workers still have state, files or tasks of fits",
    )


class Interrupt(BaseException):
    """Like KeyboardInterrupt, which pytest handles itself."""
