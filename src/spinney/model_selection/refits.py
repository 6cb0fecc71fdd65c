"""Repeated fits of a model, on several threads, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from spinney.runtime.progress import progress_hook
from spinney.runtime.threads import effective_n_jobs

__all__ = ["fit_again", "seeds_for"]


def seeds_for(random_state: Any, n: int) -> Any:
    """Draw a seed for each refit, so that the result does not depend on threads."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def fit_again(
    title: str,
    estimator: Any,
    n: int,
    use: Callable[[int, Any], Any],
    *,
    n_jobs: int | None,
    verbose: int,
    callbacks: Any,
) -> Iterator[Any]:
    """Yield the results of ``use(i, clone)`` for i in 0 … n-1, in this order.

    Parameters
    ----------
    title : str
        The title of the progress bar.
    estimator : estimator
        Cloned for each fit.
    n : int
        Number of fits.
    use : callable
        Fits the clone and returns a result.
    n_jobs : int or None
        Number of threads.
    verbose : int
        1 shows a progress bar.
    callbacks : callable, list of callables or None
        Called with (done, n).
    """
    listener = type(title, (SimpleNamespace,), {})(verbose=verbose, callbacks=callbacks)
    hook = progress_hook(listener)
    n_threads = min(n, effective_n_jobs(n_jobs))

    def run(i: int) -> Any:
        return use(i, clone(estimator))

    with ThreadPoolExecutor(n_threads) as pool:
        for done, result in enumerate(pool.map(run, range(n)), 1):
            if hook is not None:
                hook(done, n)
            yield result
