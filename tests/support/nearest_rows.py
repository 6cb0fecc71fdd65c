"""Random rows and a reference implementation of nearest neighbours."""

import numpy as np

from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor

PREDICTORS = [KNeighborsClassifier, KNeighborsRegressor]
ALGORITHMS = ["brute", "kd_tree", "ball_tree"]


def nearest(distances, k):
    """Return distances and indices of the k nearest rows; ties go to the smaller index."""
    distances = np.asarray(distances)
    rows = np.lexsort((np.broadcast_to(np.arange(distances.shape[1]), distances.shape), distances))
    rows = rows[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows


def random_rows(seed, n=60, n_queries=15, d=3):
    """Return training rows and queries."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n_queries, d))
