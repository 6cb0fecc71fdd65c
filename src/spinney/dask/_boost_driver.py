"""The driver of a boosting fit: it runs in the process that called fit.

Each worker gets consecutive partitions and keeps them. If a worker is lost, the other workers stop
and report their finished rounds. The driver then starts another attempt from these rounds, on the
remaining and the new workers. All sums that determine a split are sums of integers, so the model
does not depend on which workers compute them.
"""

from __future__ import annotations

import pickle
import queue
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from spinney import __version__
from spinney.boosting.distributed import model_from_trees
from spinney.dask._boost_task import (
    TOPIC,
    BoostTaskPlan,
    Outcome,
    boost_rows,
    empty_partition,
    end_fit,
    load_partition,
    load_validation_partition,
    open_listener,
    stop_fit,
)
from spinney.dask._cluster import await_workers, find_client, import_dask, live_workers
from spinney.dask._rows import DaskRows
from spinney.model_file.files import save

__all__ = ["BoostDriver"]

_MAX_LOSSES = 10  # lost attempts in a row without a new round, after which the fit fails
_MAX_CONNECT_FAILURES = 3  # attempts in which workers could not connect, after which it fails
_REPORT_TIMEOUT = 20.0  # seconds to wait for the reports of the other workers
_SAVE_EVERY = 30.0  # seconds between checkpoints


class _WorkerLost(Exception):
    """A worker has left the cluster, or does not respond to the others."""


class _ConnectError(_WorkerLost):
    """Workers could not connect to each other."""


class _SchedulerLost(RuntimeError):
    """The scheduler of the cluster cannot be reached."""


@dataclass
class _Attempt:
    """One attempt to fit, on a fixed list of workers.

    Parameters
    ----------
    token : str
        Name of the attempt, and the secret that its workers share.
    workers : list of str
        Addresses, by rank.
    """

    token: str
    workers: list[str]
    task_futures: list[Any] = field(default_factory=list)
    partition_futures: list[Any] = field(default_factory=list)


class BoostDriver:
    """The driver of a fit.

    Parameters
    ----------
    plan : BoostTaskPlan
        Settings of the fit.
    rows : DaskRows
        Training rows.
    validation : DaskRows or None
        Validation rows.
    hook : callable or None
        Called with the progress: (finished rounds, all rounds, score). True ends the fit.
    checkpoint : path or None
        File that the model is written to from time to time.
    in_files : bool
        Whether rows stay in files of the workers, which read one partition at a time.
    """

    def __init__(
        self,
        plan: BoostTaskPlan,
        rows: DaskRows,
        validation: DaskRows | None,
        *,
        hook: Any,
        checkpoint: Any,
        in_files: bool,
    ) -> None:
        self.client = find_client()
        self.plan = plan
        self.rows, self.validation = rows, validation
        self.in_files = in_files
        self.hook = hook
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.report: list[dict[str, Any]] = []
        self.n_losses = 0
        self.n_rounds = 0
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._n_received = 0
        self._stores: list[Any] = [] if plan.start is None else pickle.loads(plan.start)
        self._state: dict[str, Any] | None = None
        self._n_workers = 1
        self._last_saved = time.monotonic()

    def run(self) -> Any:
        """Fit, and return the local model."""
        try:
            with self._lock_cluster(), self._subscribe():
                return self._fit_with_retries()
        except _SchedulerLost:
            raise
        except Exception as error:
            if self._scheduler_is_lost():
                raise self._scheduler_error() from error
            raise
        finally:
            self.hook = None  # a progress bar ends with its fit, not with the last reference

    @contextmanager
    def _lock_cluster(self) -> Iterator[None]:
        """Wait until no other fit is active on the cluster.

        Two fits would each hold some of the workers' threads and wait for the rest of them.
        """
        from distributed import Lock  # optional dependency

        lock = Lock(TOPIC)
        is_acquired = False
        try:
            while not is_acquired:
                is_acquired = lock.acquire(timeout=1.0)
                if self._scheduler_is_lost():
                    raise self._scheduler_error()
            yield
        finally:
            if is_acquired and not self._scheduler_is_lost():
                with suppress(OSError):  # the scheduler may be lost at this moment
                    lock.release()
            # The lock would keep renewing its lease, even if the scheduler is lost.
            if hasattr(lock, "refresh_callback"):
                self.client.loop.add_callback(lock.refresh_callback.stop)

    @contextmanager
    def _subscribe(self) -> Iterator[None]:
        """Receive the messages of the workers.

        Each fit has its own topic, because a client has only one handler for each topic.
        """
        topic = self.plan.topic
        self.client.subscribe_topic(topic, self._receive)
        try:
            yield
        finally:
            if not self._scheduler_is_lost():
                self.client.unsubscribe_topic(topic)

                def forget(dask_scheduler: Any) -> None:  # its log would keep all trees
                    dask_scheduler._broker.truncate(topic)

                # Some versions have no such log, and some schedulers accept no functions.
                with suppress(Exception):
                    self.client.run_on_scheduler(forget)

    def _fit_with_retries(self) -> Any:
        n_connect_failures = n_fruitless = n_rounds = 0
        while True:
            try:
                return self._attempt()
            except _WorkerLost as lost:
                self.n_losses += 1
                n_fruitless = 1 if self.n_rounds > n_rounds else n_fruitless + 1
                n_rounds = self.n_rounds
                n_connect_failures += isinstance(lost, _ConnectError)
                if n_connect_failures >= _MAX_CONNECT_FAILURES:
                    raise RuntimeError(
                        f"workers could not connect to each other {n_connect_failures} times; "
                        f"they must reach each other over TCP: {lost}"
                    ) from None
                if n_fruitless > _MAX_LOSSES:
                    raise self._workers_lost_error(f"{n_fruitless} times: {lost}") from None

    def _workers_lost_error(self, reason: str) -> RuntimeError:
        self.save_checkpoint()
        return RuntimeError(
            f"after {self.n_rounds} finished rounds workers were lost {reason}; if they ran out of "
            "memory, use out_of_core=True, smaller partitions or more workers"
        )

    # ------------------------------------------------------------------ one attempt

    def _attempt(self) -> Any:
        """Fit once with the available workers; raise `_WorkerLost` if one of them is lost."""
        token = secrets.token_hex(16)
        try:
            workers = await_workers(self.client, self._n_workers)
        except ValueError:
            if not self.n_losses:
                raise
            raise self._workers_lost_error("and not replaced") from None
        self._n_workers = len(workers)
        attempt = _Attempt(token, workers[: min(len(workers), len(self.rows.parts))])
        try:
            return self._fit_once(attempt)
        finally:
            # In any case, the workers must stop and keep nothing of the attempt.
            with suppress(OSError):  # the scheduler may be lost at this moment
                self._end_attempt(attempt)

    def _end_attempt(self, attempt: _Attempt) -> None:
        if self._scheduler_is_lost():
            return
        live = sorted(live_workers(self.client) & set(attempt.workers))
        if live:
            self.client.run(end_fit, attempt.token, workers=live, on_error="ignore")
        unfinished = [f for f in attempt.task_futures if f.status != "finished"]
        if unfinished:
            self.client.cancel(unfinished, force=True)
        for future in attempt.partition_futures:
            future.release()

    def _fit_once(self, attempt: _Attempt) -> Any:
        """Run the tasks of an attempt, and return the model."""
        start = pickle.dumps(self._stores) if self._stores else None
        self._n_received = 0
        plan = replace(self.plan, token=attempt.token, start=start)
        addresses = self._open_listeners(attempt)
        tasks = self._load_tasks(attempt.token)
        loaded = self._load(tasks, attempt, strictly=self.in_files)
        validation: list[Any] = [None] * len(attempt.workers)
        if self.validation is not None:
            validation = self._load(self._validation_tasks(len(attempt.workers)), attempt)
        boosted = [
            self.client.submit(
                boost_rows,
                plan,
                rank,
                addresses,
                loaded[rank],
                validation[rank],
                key=f"boost_rows-{attempt.token}-{rank}",
                workers=[worker],
                pure=False,
                retries=0,
            )
            for rank, worker in enumerate(attempt.workers)
        ]
        attempt.task_futures += boosted
        try:
            self._wait(boosted, attempt, is_boosting=True)
        except _WorkerLost:
            if not self._scheduler_is_lost():
                self._recover_trees(boosted, attempt)
            raise
        outcomes: list[Outcome] = self.client.gather(boosted)
        self.report = [outcome.report or {} for outcome in outcomes]
        return outcomes[0].model

    def _open_listeners(self, attempt: _Attempt) -> list[tuple[str, int]]:
        """Open a socket on each worker, and return their addresses by rank."""
        opened = [
            self.client.submit(
                open_listener,
                attempt.token,
                rank,
                __version__,
                workers=[worker],
                pure=False,
                priority=10,
            )
            for rank, worker in enumerate(attempt.workers)
        ]
        attempt.task_futures += opened
        self._wait(opened, attempt)  # unsuitable workers raise their errors before rows are read
        return [future.result() for future in opened]

    def _load_tasks(self, token: str) -> list[Any]:
        """Create the tasks that load the partitions, with new keys for each attempt.

        Tasks with old keys may be bound to lost workers.
        """
        load = import_dask().delayed(load_partition, pure=False)
        return [
            load(part, i, token if self.in_files else "") for i, part in enumerate(self.rows.parts)
        ]

    def _validation_tasks(self, n_workers: int) -> list[Any]:
        """Create tasks, new in each attempt, with validation partitions for each worker."""
        assert self.validation is not None
        dask = import_dask()
        load = dask.delayed(load_validation_partition, pure=False)
        empty = dask.delayed(empty_partition, pure=False)
        parts = [load(part) for part in self.validation.parts]
        return parts + [empty(parts[0]) for _ in range(n_workers - len(parts))]

    def _load(
        self, tasks: list[Any], attempt: _Attempt, *, strictly: bool = False
    ) -> list[list[Any]]:
        """Load consecutive partitions on each worker, and return their futures by rank.

        With `strictly` only this worker may load them: files are not sent to other workers.
        """
        blocks = np.array_split(np.arange(len(tasks)), len(attempt.workers))
        # One call for each worker, which then finishes a partition before it starts the next.
        loaded = [
            self.client.compute(
                [tasks[i] for i in block], workers=[worker], allow_other_workers=not strictly
            )
            for block, worker in zip(blocks, attempt.workers, strict=True)
        ]
        futures = [future for of_worker in loaded for future in of_worker]
        attempt.partition_futures += futures
        # A boosting task would hold a thread while it waits for the partitions of other workers.
        # Without `strictly`, too: Dask waits forever if all workers were lost and replaced.
        self._wait(futures, attempt)
        return loaded

    def _wait(self, futures: list[Any], attempt: _Attempt, *, is_boosting: bool = False) -> None:
        """Wait for futures, and raise `_WorkerLost` if a worker of the attempt is lost."""
        last_check = time.monotonic()
        for future in futures:
            future.add_done_callback(self._wake)
        while True:
            self._process_message(attempt if is_boosting else None)
            if self._scheduler_is_lost():
                raise self._scheduler_error()
            statuses = [future.status for future in futures]
            for future, status in zip(futures, statuses, strict=True):
                if status == "error":
                    self._raise_error(future)
                if status in ("cancelled", "lost"):
                    raise _WorkerLost("a task was cancelled")
            done = [f for f, s in zip(futures, statuses, strict=True) if s == "finished"]
            outcomes = [f.result() for f in done] if is_boosting else []
            if any(outcome.lost_worker for outcome in outcomes):
                self._raise_lost(futures, outcomes)
            if len(done) == len(futures):
                self._await_messages(attempt, outcomes)
                return
            if time.monotonic() - last_check > 1.0:
                last_check = time.monotonic()
                if not set(attempt.workers) <= live_workers(self.client):
                    raise _WorkerLost("a worker has left the cluster")

    def _await_messages(self, attempt: _Attempt, outcomes: list[Outcome]) -> None:
        """Wait for the rest of the progress messages, which may arrive after the results."""
        n_sent = max((outcome.n_messages for outcome in outcomes), default=0)
        until = time.monotonic() + _REPORT_TIMEOUT
        while self.hook is not None and self._n_received < n_sent and time.monotonic() < until:
            self._process_message(attempt)

    def _raise_lost(self, futures: list[Any], outcomes: list[Outcome]) -> None:
        """Raise the error behind the loss of a worker, if another worker reports it soon."""
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            for future in futures:
                if future.status == "error":
                    self._raise_error(future)
            if all(future.status == "finished" for future in futures):
                break
            time.sleep(0.05)
        for outcome in outcomes:
            if outcome.connect_error:
                raise _ConnectError(outcome.connect_error)
        raise _WorkerLost("a worker was lost")

    def _raise_error(self, future: Any) -> None:
        """Raise the error of a task; `_WorkerLost` if the task ended its worker."""
        from distributed import KilledWorker  # optional dependency

        error = future.exception()
        if isinstance(error, KilledWorker):
            raise _WorkerLost(str(error))
        raise error

    def _recover_trees(self, futures: list[Any], attempt: _Attempt) -> None:
        """Take over the trees of the worker with the most finished rounds."""
        until = time.monotonic() + _REPORT_TIMEOUT
        while not self._scheduler_is_lost():
            self._process_message(None)
            live = live_workers(self.client)
            is_pending = any(
                future.status == "pending" and worker in live
                for future, worker in zip(futures, attempt.workers, strict=True)
            )
            if not is_pending or time.monotonic() > until:
                break
            time.sleep(0.05)
        for future in futures:
            if future.status != "finished":
                continue
            outcome = future.result()
            if outcome.lost_worker and outcome.n_rounds > self.n_rounds and outcome.trees:
                self._stores = pickle.loads(outcome.trees)
                self.n_rounds = outcome.n_rounds

    # ------------------------------------------------------------------ messages of the workers

    def _wake(self, future: Any) -> None:
        self._messages.put({})

    def _receive(self, event: Any) -> None:
        self._messages.put(event[1])

    def _process_message(self, attempt: _Attempt | None) -> None:
        """Wait at most 0.1 s for a message, and process it if it is of this attempt."""
        try:
            message = self._messages.get(timeout=0.1)
        except queue.Empty:
            return
        if attempt is None or message.get("token") != attempt.token:
            return
        if "done" not in message:
            self._add_trees(message)
            return
        self._n_received += 1
        if self.hook is not None and self.hook(message["done"], message["total"], message["score"]):
            self.client.run(stop_fit, attempt.token, workers=attempt.workers[:1])

    def _add_trees(self, message: dict[str, Any]) -> None:
        """Append the trees of newly finished rounds."""
        if message.get("state") is not None:
            self._state = pickle.loads(message["state"])
        for booster, first, trees in pickle.loads(message["trees"]):
            if booster == len(self._stores):
                self._stores.append(trees)
            elif len(self._stores[booster]) == first:
                self._stores[booster].extend(trees)
        self.n_rounds = message["rounds"]
        if self.checkpoint is not None and time.monotonic() - self._last_saved > _SAVE_EVERY:
            self.save_checkpoint()

    # ------------------------------------------------------------------ checkpoints

    def save_checkpoint(self) -> bool:
        """Write the model of the finished rounds; return False if there is none."""
        self._last_saved = time.monotonic()
        if self.checkpoint is None or not self._stores or self._state is None:
            return False
        model = clone(self.plan.estimator)
        vars(model).update(self._state)
        model_from_trees(model, self._stores)
        model.n_jobs = None
        save(model, self.checkpoint)
        return True

    def _scheduler_is_lost(self) -> bool:
        return str(self.client.status) in ("closed", "closing", "connecting", "newly-created")

    def _scheduler_error(self) -> _SchedulerLost:
        if self.save_checkpoint():
            advice = f"{self.checkpoint} has their trees: fit again with it to continue"
        else:
            advice = "pass a path as checkpoint= to keep the finished rounds"
        return _SchedulerLost(
            f"the scheduler of the cluster was lost after {self.n_rounds} finished rounds; {advice}"
        )
