"""The workers that fit one booster together, watched from where the fit was asked for.

Each worker gets partitions that follow each other and keeps them. If one is lost, the others say
how far they came; those that are left, or that came in its place, go on from the last finished
round. The sums that decide are whole numbers, so the model is the same whoever adds them up.
"""

from __future__ import annotations

import pickle
import queue
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from spinney import __version__
from spinney.boosting.distributed import model_from_trees
from spinney.dask._boost_task import (
    TOPIC,
    Outcome,
    Plan,
    boost_rows,
    keep_part,
    leave_fit,
    load_part,
    no_rows,
    open_listener,
    stop_fit,
)
from spinney.dask._rows import Rows, leave_pool, need_dask, workers_of

__all__ = ["Crew", "await_workers", "find_client"]

_MOST_LOSSES = 10  # one after the other without a new round, after which a fit is given up
_MOST_UNMET = 3  # attempts in which workers did not find each other, likewise
_GRACE = 20.0  # seconds for the others to tell how far they came
_REPLACEMENT = 10.0  # seconds to wait for a worker in the place of a lost one
_ARRIVAL = 60.0  # seconds to wait for the first worker
_SAVE_EVERY = 30.0  # seconds between checkpoints


class _WorkerLost(Exception):
    """A worker has left the cluster, or left the others waiting."""


class _NotMet(_WorkerLost):
    """Workers could not connect to each other."""


class _SchedulerLost(RuntimeError):
    """There is nobody left to ask."""


def find_client() -> Any:
    """Find the client of the cluster in use."""
    try:
        from distributed import get_client
    except ImportError as error:  # pragma: no cover - where it is not installed
        raise ImportError("spinney.dask needs Dask: pip install 'spinney[dask]'") from error
    leave_pool()
    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "boosting on Dask needs a cluster: expected a dask.distributed.Client, got none; "
            "distributed.Client() starts workers on this machine"
        ) from None
    if client.asynchronous:
        raise ValueError(
            "boosting on Dask waits for its workers: expected a Client that is not asynchronous, "
            "or a call from another thread than that of the event loop (asyncio.to_thread)"
        )
    return client


def await_workers(client: Any, wanted: int = 1) -> list[str]:
    """Give the addresses of the workers, as many as are wanted if they come in time."""
    found = _present(client)
    until = time.monotonic() + (_REPLACEMENT if found else _ARRIVAL)
    while len(found) < wanted and time.monotonic() < until:
        time.sleep(0.1)
        found = _present(client)
    if not found:
        raise ValueError(
            f"boosting on Dask needs workers: the cluster has had none for {_ARRIVAL:g} seconds"
        )
    return sorted(found)


def _present(client: Any) -> set[str]:
    return set(workers_of(client))


class Crew:
    """Workers of a fit.

    Parameters
    ----------
    plan : Plan
        What to fit.
    rows : Rows
        What to learn from.
    watched : Rows or None
        What to watch.
    hook : callable or None
        Told the progress: (rounds done, rounds in all, score); True ends the fit.
    checkpoint : path or None
        Where to write the model now and then.
    in_files : bool
        Whether rows stay in files of the workers, of which one partition at a time is read.
    """

    def __init__(
        self,
        plan: Plan,
        rows: Rows,
        watched: Rows | None,
        hook: Any,
        checkpoint: Any,
        in_files: bool,
    ) -> None:
        self.client = find_client()
        self.plan = plan
        self.rows, self.watched = rows, watched
        self.in_files = in_files
        self.hook = hook
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.report: list[dict[str, Any]] = []
        self.n_losses = 0
        self.n_rounds = 0
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stores: list[Any] = [] if plan.start is None else pickle.loads(plan.start)
        self._state: dict[str, Any] | None = None
        self._n_before = 1
        self._saved = time.monotonic()

    def run(self) -> Any:
        """Fit, and return the local model."""
        try:
            with self._turn(), self._news():
                return self._try_on()
        except _SchedulerLost:
            raise
        except Exception as error:
            if self._scheduler_is_lost():
                raise self._farewell() from error
            raise
        finally:
            self.hook = None  # a bar ends with its fit, whoever still knows of the crew

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other fit is under way on the cluster.

        Of two fits each would hold some of the workers' threads and wait for the others.
        """
        from distributed import Lock

        lock = Lock(TOPIC)
        is_ours = False
        try:
            while not is_ours:
                is_ours = lock.acquire(timeout=1.0)
                if self._scheduler_is_lost():
                    raise self._farewell()
            yield
        finally:
            if is_ours and not self._scheduler_is_lost():
                with suppress(OSError):  # if it is lost just now
                    lock.release()
            # It would go on telling the scheduler, lost or not, that the lock is in use.
            if hasattr(lock, "refresh_callback"):
                self.client.loop.add_callback(lock.refresh_callback.stop)

    @contextmanager
    def _news(self) -> Iterator[None]:
        """Hear what the workers tell, on a topic of this fit: a client has one handler for each."""
        topic = self.plan.topic
        self.client.subscribe_topic(topic, self._hear)
        try:
            yield
        finally:
            if not self._scheduler_is_lost():
                self.client.unsubscribe_topic(topic)

                def forget(dask_scheduler: Any) -> None:  # would keep all trees in its log
                    dask_scheduler._broker.truncate(topic)

                # Some versions have no such log, and some schedulers take no functions.
                with suppress(Exception):
                    self.client.run_on_scheduler(forget)

    def _try_on(self) -> Any:
        n_unmet = n_vain = n_rounds = 0
        while True:
            try:
                return self._attempt()
            except _WorkerLost as lost:
                self.n_losses += 1
                n_vain = 1 if self.n_rounds > n_rounds else n_vain + 1
                n_rounds = self.n_rounds
                n_unmet += isinstance(lost, _NotMet)
                if n_unmet >= _MOST_UNMET:
                    raise RuntimeError(
                        f"workers did not find each other {n_unmet} times, but must reach each "
                        f"other over TCP: {lost}"
                    ) from None
                if n_vain > _MOST_LOSSES:
                    raise self._give_up(f"{n_vain} times: {lost}") from None

    def _give_up(self, told: str) -> RuntimeError:
        self.save_checkpoint()
        return RuntimeError(
            f"after {self.n_rounds} finished rounds workers were lost {told}; if they ran out of "
            "memory, out_of_core=True needs less of it, as do smaller partitions and more workers"
        )

    # ------------------------------------------------------------------ one attempt

    def _attempt(self) -> Any:
        token = secrets.token_hex(16)
        try:
            workers = await_workers(self.client, self._n_before)
        except ValueError:
            if not self.n_losses:
                raise
            raise self._give_up("and none came in their place") from None
        self._n_before = len(workers)
        crew = workers[: min(len(workers), len(self.rows.parts))]
        own: list[Any] = []
        read: list[Any] = []
        try:
            return self._run_crew(token, crew, own, read)
        finally:
            # Whatever happened, workers must not go on with it, nor keep anything of it.
            with suppress(OSError):  # if the scheduler is lost just now
                self._leave(token, crew, own, read)

    def _leave(self, token: str, crew: list[str], own: list[Any], read: list[Any]) -> None:
        if self._scheduler_is_lost():
            return
        there = sorted(self._alive() & set(crew))
        if there:
            self.client.run(leave_fit, token, workers=there, on_error="ignore")
        unfinished = [future for future in own if future.status != "finished"]
        if unfinished:
            self.client.cancel(unfinished, force=True)
        for future in read:
            future.release()

    def _run_crew(self, token: str, crew: list[str], own: list[Any], read: list[Any]) -> Any:
        """Fit with these workers; what is submitted is added to `own` and, of rows, to `read`."""
        start = pickle.dumps(self._stores) if self._stores else None
        self._n_heard = 0
        plan = replace(self.plan, token=token, start=start)
        opened = [
            self.client.submit(
                open_listener,
                token,
                rank,
                __version__,
                workers=[address],
                pure=False,
                priority=10,
            )
            for rank, address in enumerate(crew)
        ]
        own += opened
        self._wait(opened, crew)  # whoever cannot take part says so before rows are read
        loaded = self._load(self._loaders(token), crew, read, strictly=self.in_files)
        watched = None
        if self.watched is not None:
            watched = self._load(self._watched_parts(len(crew)), crew, read)
        addresses = [future.result() for future in opened]
        boosted = [
            self.client.submit(
                boost_rows,
                plan,
                rank,
                addresses,
                loaded[rank],
                None if watched is None else watched[rank],
                key=f"boost_rows-{token}-{rank}",
                workers=[address],
                pure=False,
                retries=0,
            )
            for rank, address in enumerate(crew)
        ]
        own += boosted
        try:
            self._wait(boosted, crew, token)
        except _WorkerLost:
            if not self._scheduler_is_lost():
                self._salvage(boosted, crew)
            raise
        outcomes: list[Outcome] = self.client.gather(boosted)
        self.report = [outcome.report or {} for outcome in outcomes]
        return outcomes[0].model

    def _alive(self) -> set[str]:
        return _present(self.client)

    def _loaders(self, token: str) -> list[Any]:
        """Make the tasks that read the rows, anew for every attempt.

        Tasks of the same name may be bound to workers that are there no more.
        """
        load = need_dask().delayed(load_part, pure=False)
        return [
            load(part, i, token if self.in_files else "") for i, part in enumerate(self.rows.parts)
        ]

    def _watched_parts(self, n_workers: int) -> list[Any]:
        """Make tasks, new in every attempt, with at least one validation part for each worker."""
        assert self.watched is not None
        dask = need_dask()
        keep, empty = dask.delayed(keep_part, pure=False), dask.delayed(no_rows, pure=False)
        parts = [keep(part) for part in self.watched.parts]
        return parts + [empty(parts[0]) for _ in range(n_workers - len(parts))]

    def _load(
        self, parts: list[Any], crew: list[str], read: list[Any], strictly: bool = False
    ) -> list[list[Any]]:
        """Have each worker read its partitions, in their order.

        Strictly: nobody else can have them, as files stay where they are.
        """
        shares = np.array_split(np.arange(len(parts)), len(crew))
        # Together, so that a worker ends with one partition before it begins with the next.
        loaded = [
            self.client.compute(
                [parts[i] for i in share], workers=[address], allow_other_workers=not strictly
            )
            for share, address in zip(shares, crew, strict=True)
        ]
        # Whoever has its rows would wait for the others, and holds a thread meanwhile.
        futures = [future for share in loaded for future in share]
        read += futures
        # Also where others may read them: Dask waits for ever if all were lost and replaced.
        self._wait(futures, crew)
        return loaded

    def _wait(self, futures: list[Any], crew: list[str], token: str = "") -> None:
        """Wait for futures while the workers of the crew are there."""
        looked = time.monotonic()
        for future in futures:
            future.add_done_callback(self._wake)
        while True:
            self._listen(token, crew)
            if self._scheduler_is_lost():
                raise self._farewell()
            statuses = [future.status for future in futures]
            for future, status in zip(futures, statuses, strict=True):
                if status == "error":
                    self._raise(futures, future)
                if status in ("cancelled", "lost"):
                    raise _WorkerLost("a task was cancelled")
            done = [f for f, s in zip(futures, statuses, strict=True) if s == "finished"]
            outcomes = [f.result() for f in done] if token else []
            if any(outcome.is_broken for outcome in outcomes):
                self._await_cause(futures)
                for outcome in outcomes:
                    if outcome.not_met:
                        raise _NotMet(outcome.not_met)
                raise _WorkerLost("a worker was lost")
            if len(done) == len(futures):
                self._hear_out(token, crew, outcomes)
                return
            if time.monotonic() - looked > 1.0:
                looked = time.monotonic()
                if crew and not set(crew) <= self._alive():
                    raise _WorkerLost("a worker has left the cluster")

    def _hear_out(self, token: str, crew: list[str], outcomes: list[Any]) -> None:
        """Wait for what was told and is still under way: events may come after results."""
        n_told = max((outcome.n_told for outcome in outcomes), default=0)
        until = time.monotonic() + _GRACE
        while self.hook is not None and self._n_heard < n_told and time.monotonic() < until:
            self._listen(token, crew)

    def _await_cause(self, futures: list[Any]) -> None:
        """Others may know why a worker gave up: an error of theirs is the user's."""
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            for future in futures:
                if future.status == "error":
                    self._raise(futures, future)
            if all(future.status == "finished" for future in futures):
                return
            time.sleep(0.05)

    def _raise(self, futures: list[Any], future: Any) -> None:
        from distributed import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker):
            raise _WorkerLost(str(error))
        raise error

    def _salvage(self, futures: list[Any], crew: list[str]) -> None:
        """Take the trees of the worker that came farthest."""
        until = time.monotonic() + _GRACE
        while not self._scheduler_is_lost():
            self._listen("", [])
            alive = self._alive()
            pending = [
                f
                for f, address in zip(futures, crew, strict=True)
                if f.status == "pending" and address in alive
            ]
            if not pending or time.monotonic() > until:
                break
            time.sleep(0.05)
        for future in futures:
            if future.status != "finished":
                continue
            outcome = future.result()
            if outcome.is_broken and outcome.n_rounds > self.n_rounds and outcome.trees:
                self._stores = pickle.loads(outcome.trees)
                self.n_rounds = outcome.n_rounds

    # ------------------------------------------------------------------ news

    def _wake(self, future: Any) -> None:
        self._messages.put({})

    def _hear(self, event: Any) -> None:
        self._messages.put(event[1])

    def _listen(self, token: str, crew: list[str]) -> None:
        """Take the messages that have come, or wait for one a moment."""
        try:
            message = self._messages.get(timeout=0.1)
        except queue.Empty:
            return
        if token and message.get("token") == token:
            if "done" in message:
                self._n_heard += 1
                told = (message["done"], message["total"], message["score"])
                if self.hook is not None and self.hook(*told) and crew:
                    self.client.run(stop_fit, token, workers=crew[:1])
            else:
                self._keep(message)

    def _keep(self, message: dict[str, Any]) -> None:
        """Add the trees of finished rounds to those that are here."""
        if message.get("state") is not None:
            self._state = pickle.loads(message["state"])
        for booster, first, trees in pickle.loads(message["trees"]):
            if booster == len(self._stores):
                self._stores.append(trees)
            elif len(self._stores[booster]) == first:
                self._stores[booster].extend(trees)
        self.n_rounds = message["rounds"]
        if self.checkpoint is not None and time.monotonic() - self._saved > _SAVE_EVERY:
            self.save_checkpoint()

    # ------------------------------------------------------------------ checkpoints

    def save_checkpoint(self) -> bool:
        """Write the model as far as it is; False if there is nothing to write."""
        self._saved = time.monotonic()
        if self.checkpoint is None or not self._stores or self._state is None:
            return False
        from spinney.model_file.files import save

        model = clone(self.plan.estimator)
        vars(model).update(self._state)
        model_from_trees(model, self._stores)
        model.n_jobs = None
        save(model, self.checkpoint)
        return True

    def _scheduler_is_lost(self) -> bool:
        return str(self.client.status) in ("closed", "closing", "connecting", "newly-created")

    def _farewell(self) -> _SchedulerLost:
        saved = self.save_checkpoint()
        told = "; fit with checkpoint= and a path to have rounds kept"
        if saved:
            told = f"; {self.checkpoint} has them: fit again with this checkpoint to go on"
        return _SchedulerLost(
            f"the scheduler of the cluster was lost after {self.n_rounds} finished rounds{told}"
        )
