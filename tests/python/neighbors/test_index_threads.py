"""Concurrent searches in one index, and the number of threads of a search."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from spinney.neighbors import HNSW, BallTree, BruteForce, KDTree, NearestNeighbors


class _FixedThreads:
    """Mixin that raises an error if `n_jobs` is set after the construction."""

    def __setattr__(self, name, value):
        if name == "n_jobs" and "n_jobs" in vars(self):
            raise AttributeError("a search must not set n_jobs of an index")
        super().__setattr__(name, value)


class _FixedKDTree(_FixedThreads, KDTree):
    pass


class _FixedBallTree(_FixedThreads, BallTree):
    pass


class _FixedBruteForce(_FixedThreads, BruteForce):
    pass


class _FixedHNSW(_FixedThreads, HNSW):
    pass


def _fixed_search(kind, X, n_jobs):
    """Return a search whose index cannot be changed, and that index."""
    search = NearestNeighbors(n_neighbors=6, radius=1.5, n_jobs=n_jobs)
    if kind is not _FixedHNSW:
        index = kind(X, n_jobs=3)
        return search.fit(index), index
    search.set_params(algorithm="hnsw").fit(X)
    search._index.graph = _FixedHNSW(n_jobs=3, target_recall=0.98).fit(X)
    return search, search._index.graph


@pytest.mark.parametrize("kind", [_FixedKDTree, _FixedBallTree, _FixedBruteForce, _FixedHNSW])
def test_searches_do_not_change_the_index(kind):
    # Enough queries for the core to use several threads.
    X = np.random.default_rng(8).normal(size=(3000, 4))
    search, index = _fixed_search(kind, X, None)
    expected = search.kneighbors(X)
    within = None if kind is _FixedHNSW else search.radius_neighbors(X[:300], sort_results=True)

    def search_with(n_jobs):
        other = clone(search).set_params(n_jobs=n_jobs)
        vars(other).update({k: v for k, v in vars(search).items() if k != "n_jobs"})
        return [
            other.kneighbors(X),
            None if within is None else other.radius_neighbors(X[:300], sort_results=True),
        ]

    with ThreadPoolExecutor(8) as pool:
        for near, radial in pool.map(search_with, [1, 2, 3, 4, None, -1, 1, 2] * 2):
            np.testing.assert_array_equal(near[0], expected[0])
            np.testing.assert_array_equal(near[1], expected[1])
            for i in range(0 if within is None else 300):
                np.testing.assert_array_equal(radial[0][i], within[0][i])
                np.testing.assert_array_equal(radial[1][i], within[1][i])
    assert index.n_jobs == 3


@pytest.mark.parametrize("make", [KDTree, BallTree, BruteForce, lambda X: HNSW().fit(X)])
def test_number_of_threads_of_one_query(make):
    X = np.random.default_rng(9).normal(size=(500, 3))
    index = make(X)
    expected = index.query(X, k=4)
    for n_jobs in (1, 3, -1):
        for found, same in zip(index.query(X, k=4, n_jobs=n_jobs), expected, strict=True):
            np.testing.assert_array_equal(found, same)
    assert index.n_jobs is None
    with pytest.raises(ValueError, match="n_jobs must be None"):
        index.query(X, k=4, n_jobs=0)


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_core_uses_the_threads_of_the_estimator(algorithm, n_jobs):
    X = np.random.default_rng(10).normal(size=(50, 3))
    search = NearestNeighbors(algorithm=algorithm, n_jobs=n_jobs).fit(X)
    used = []
    index = search._index.tree
    if algorithm == "brute":
        original = index._by_products
        index._by_products = lambda Q, k, n: (used.append(n), original(Q, k, n))[1]
    else:
        core = index._tree
        index._tree = _Recorder(core, used)
    search.kneighbors(X)
    if algorithm != "brute":
        search.radius_neighbors(X)
    assert set(used) == {n_jobs}


class _Recorder:
    """Forward calls to the core's tree; record their last argument, the number of threads."""

    def __init__(self, core, used):
        self.core, self.used = core, used

    def __getattr__(self, name):
        def call(*args):
            self.used.append(args[-1])
            return getattr(self.core, name)(*args)

        return call
