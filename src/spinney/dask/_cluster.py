"""The Dask cluster in use: its client, its workers and the current task.

Dask is optional and slow to import, so it is imported inside functions.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

__all__ = [
    "await_workers",
    "find_client",
    "get_client_or_none",
    "get_worker_or_none",
    "import_dask",
    "leave_thread_pool",
    "live_workers",
    "workers_of",
]

_FIRST_WORKER_TIMEOUT = 60.0  # seconds to wait for the first worker
_MORE_WORKERS_TIMEOUT = 10.0  # seconds to wait for further workers, such as a replacement


def import_dask() -> Any:
    """Import Dask; if it is missing, the error shows how to install it."""
    try:
        import dask  # optional dependency
    except ImportError as error:  # pragma: no cover - where it is not installed
        raise ImportError("spinney.dask needs Dask: pip install 'spinney[dask]'") from error
    return dask


def find_client() -> Any:
    """Return the client of the cluster; raise an error if boosting cannot use it."""
    try:
        from distributed import get_client  # optional dependency
    except ImportError as error:  # pragma: no cover - where it is not installed
        raise ImportError("spinney.dask needs Dask: pip install 'spinney[dask]'") from error
    leave_thread_pool()
    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "boosting on Dask needs a cluster: expected a dask.distributed.Client, got none; "
            "distributed.Client() starts workers on this machine"
        ) from None
    if client.asynchronous:
        raise ValueError(
            "boosting on Dask blocks until its workers finish: expected a Client that is not "
            "asynchronous; call fit from another thread than that of the event loop, for example "
            "by asyncio.to_thread"
        )
    return client


def get_client_or_none() -> Any:
    """Return the client of the cluster, or None if Dask computes in this process."""
    try:
        from distributed import get_client  # optional dependency

        return get_client()
    except (ImportError, ValueError):
        return None


def get_worker_or_none() -> Any:
    """Return the Dask worker that runs this task, or None outside of tasks."""
    try:
        from distributed import get_worker  # optional dependency

        return get_worker()
    except (ImportError, ValueError):
        return None


def leave_thread_pool() -> None:
    """Leave the worker's thread pool if this is a task.

    The tasks that it waits for then have a thread.
    """
    if get_worker_or_none() is not None:
        from distributed import secede  # optional dependency

        with suppress(KeyError):  # the task has left the pool before
            secede()


def workers_of(client: Any) -> dict[str, Any]:
    """Return the scheduler's information about each worker, by address.

    The client also polls the scheduler in the background, without workers. That response can
    replace this one before it is read, so an incomplete list is requested again.
    """
    while True:
        info = client.scheduler_info(n_workers=-1)
        workers: dict[str, Any] = info["workers"]
        # Older versions of Dask do not report the number, but always list all workers.
        is_complete = len(workers) == info.get("n_workers", len(workers))
        # If the scheduler is lost, a complete response never comes.
        if is_complete or client.status != "running":
            return workers


def live_workers(client: Any) -> set[str]:
    """Return the addresses of the workers."""
    return set(workers_of(client))


def await_workers(client: Any, n_expected: int = 1) -> list[str]:
    """Return the addresses of the workers; wait for the expected number of them."""
    found = live_workers(client)
    until = time.monotonic() + (_MORE_WORKERS_TIMEOUT if found else _FIRST_WORKER_TIMEOUT)
    while len(found) < n_expected and time.monotonic() < until:
        time.sleep(0.1)
        found = live_workers(client)
    if not found:
        raise ValueError(
            "boosting on Dask needs workers: expected at least one within "
            f"{_FIRST_WORKER_TIMEOUT:g} seconds, got none; start workers, or wait for them by "
            "client.wait_for_workers"
        )
    return sorted(found)
