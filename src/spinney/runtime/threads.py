"""The number of threads that estimators use."""

from __future__ import annotations

from numbers import Integral
from typing import Any

__all__ = ["effective_n_jobs", "get_num_threads", "set_num_threads"]


def set_num_threads(n_threads: int) -> None:
    """Set the number of threads that ``n_jobs=None`` uses.

    Parameters
    ----------
    n_threads : int
        At least 1. The value holds for this process, until it is set again.

    See Also
    --------
    get_num_threads : The present value.

    Examples
    --------
    >>> import spinney
    >>> spinney.set_num_threads(2)
    >>> spinney.get_num_threads()
    2
    """
    value = _as_int("n_threads", n_threads)
    if value < 1:
        raise ValueError(f"n_threads must be at least 1, got {value}")
    # Imported here for start-up time.
    from spinney import _core

    _core.set_num_threads(value)


def get_num_threads() -> int:
    """Return the number of threads that ``n_jobs=None`` uses.

    Before `set_num_threads` is called this is the smallest of the CPUs the process may run on
    (its affinity), the quota of its cgroup and ``OMP_NUM_THREADS``.

    Returns
    -------
    int
        At least 1.
    """
    # Imported here for start-up time.
    from spinney import _core

    return int(_core.get_num_threads())


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for a value of the parameter ``n_jobs``.

    Parameters
    ----------
    n_jobs : int or None
        ``None`` means `get_num_threads`, -1 all CPUs that the process may run on, -2 all but one,
        and so on (at least 1). A positive number is returned unchanged.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is None:
        return get_num_threads()
    value = _as_int("n_jobs", n_jobs)
    if value == 0:
        raise ValueError(
            "n_jobs must be None, a positive number or a negative one "
            "(-1: every CPU, -2: all but one), got 0"
        )
    if value < 0:
        # Imported here for start-up time.
        from spinney import _core

        return max(1, int(_core.available_cpus()) + 1 + value)
    return value


def _as_int(name: str, value: Any) -> int:
    # True is an Integral, but not a valid number of threads.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    return int(value)
