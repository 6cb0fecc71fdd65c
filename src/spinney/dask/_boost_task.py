"""The tasks of a boosting fit: each worker fits the same model on its own rows."""

from __future__ import annotations

import math
import pickle
import socket
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from spinney import __version__
from spinney.boosting.distributed import FitInput, fit_partition
from spinney.dask._rows import Part, join_partitions, join_row_values
from spinney.distributed.exchange import Exchange, ExchangeError, SocketExchange
from spinney.distributed.partitioned_rows import PartitionedRows
from spinney.distributed.totals import RowNumbers, Totals
from spinney.distributed.workers import Checkpoints, Workers
from spinney.runtime.memory import release_memory

__all__ = [
    "METRIC",
    "TOPIC",
    "BoostTaskPlan",
    "LoadedPartition",
    "Outcome",
    "boost_rows",
    "empty_partition",
    "end_fit",
    "load_partition",
    "load_validation_partition",
    "open_listener",
    "stop_fit",
]

TOPIC = "spinney-boosting"  # of the scheduler's events about all fits
METRIC = "boosting rounds"  # of a worker, in the dashboard's table of workers
_SEND_EVERY = 0.5  # seconds between messages with new trees


@dataclass
class _FitState:
    """Sockets and files of an attempt in this process, which `end_fit` removes.

    Workers may be threads of one process. They then have one state.
    """

    listeners: dict[int, socket.socket] = field(default_factory=dict)  # by rank
    files: list[Path] = field(default_factory=list)
    is_stopped: bool = False  # the fit ends after the active round, and keeps its trees
    is_ended: bool = False  # the driver has ended the attempt


_fit_states: dict[str, _FitState] = {}  # by the token of the attempt
_ended: deque[str] = deque(maxlen=100)  # tokens of ended attempts, whose late tasks must clean up


@dataclass(frozen=True)
class BoostTaskPlan:
    """Settings of a fit that are the same for all workers.

    Parameters
    ----------
    estimator : estimator
        Local, not fitted.
    seed : int
        Seed of all random draws.
    token : str
        Name of the attempt, and the secret that its workers share.
    is_ranker : bool
        Whether rows have groups.
    start : bytes or None
        Trees of the first rounds of each booster, a pickled list of ForestStore.
    topic : str
        Topic of the scheduler's events about this fit alone.
    expected_rows : dict or None
        Sums over the rows of the fit that saved `start`, empty if unknown; None without a
        checkpoint.
    """

    estimator: Any
    seed: int
    token: str
    is_ranker: bool
    start: bytes | None = None
    topic: str = TOPIC
    expected_rows: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of one worker.

    Parameters
    ----------
    model : estimator or None
        The fitted model, from the first worker only.
    n_rounds : int
        Finished rounds of all boosters, if another worker was lost.
    trees : bytes or None
        Trees of these rounds, a pickled list of ForestStore.
    report : dict
        Rows, bytes sent, exchanges, seconds and peak memory of this worker.
    n_messages : int
        Number of progress messages that were sent.
    lost_worker : bool
        Whether another worker was lost.
    connect_error : str
        Why the workers could not connect to each other, or "".
    """

    model: Any = None
    n_rounds: int = 0
    trees: bytes | None = None
    report: dict[str, Any] | None = None
    n_messages: int = 0
    lost_worker: bool = False
    connect_error: str = ""


@dataclass(frozen=True)
class LoadedPartition:
    """A partition on its worker, whose X may be in a file.

    Parameters
    ----------
    part : Part
        The partition; its X has no columns if X is in a file.
    n_rows : int
        Number of rows.
    n_columns : int
        Number of columns of X.
    file : str or None
        Path of the file with X; None means that X is in memory.
    labels : ndarray or None
        Distinct targets of the rows of weight zero, which were dropped.
    """

    part: Part
    n_rows: int
    n_columns: int
    file: str | None = None
    labels: Any = None

    def read(self) -> Any:
        """Return X."""
        if self.file is None:
            return self.part.X
        with open(self.file, "rb") as file:
            return pickle.load(file)  # written by this worker

    def without_columns(self) -> Part:
        """Return targets, weights and groups, with an X without columns."""
        return Part(np.empty((self.n_rows, 0)), self.part.y, self.part.weights, self.part.group)

    def discard(self) -> None:
        """Delete the file."""
        if self.file is not None:
            Path(self.file).unlink(missing_ok=True)


def load_validation_partition(part: Part) -> Part:
    """Return a partition unchanged; a task of its own can be pinned to a worker."""
    return part


def empty_partition(part: Part) -> Part:
    """Return a partition without rows, for a worker that has no validation rows."""
    row_values = (part.y, part.weights, part.group)
    return Part(part.X[:0], *[None if values is None else values[:0] for values in row_values])


def load_partition(part: Part, index: int, token: str) -> LoadedPartition:
    """Load a partition on its worker; if a token is given, write X to a file."""
    part, labels = _drop_weightless(part)
    n_rows, n_columns = part.X.shape
    if not token:
        return LoadedPartition(part, n_rows, n_columns, labels=labels)
    file = Path(_this_worker().local_directory) / f"spinney-{token[:12]}-{index}.rows"
    _fit_states.setdefault(token, _FitState()).files.append(file)
    with open(file, "wb") as out:
        pickle.dump(part.X, out, protocol=5)
    release_memory()  # of reading this partition and the previous one
    if token in _ended:
        end_fit(token)
    # Copies: a column of a frame may be a view, which would keep the whole frame in memory.
    row_values = (part.y, part.weights, part.group)
    copies = [None if values is None else values.copy() for values in row_values]
    return LoadedPartition(
        Part(np.empty((n_rows, 0)), *copies), n_rows, n_columns, str(file), labels
    )


def open_listener(token: str, rank: int, version: str) -> tuple[str, int]:
    """Open the socket where the other workers connect, and return its address."""
    address = _this_worker().address
    if version != __version__:
        raise RuntimeError(
            f"worker {address} has Spinney {__version__}, expected {version}, the version of the "
            "client; install the same version everywhere"
        )
    host = urlsplit(address).hostname or ""
    if not host or not host.replace(".", "").replace(":", "").isalnum() or "/" in host:
        host = "127.0.0.1"
    try:
        listener = SocketExchange.listen(host)
    except OSError:  # workers that are threads do not have an address of a machine
        listener = SocketExchange.listen()
    listener.settimeout(None)
    _fit_states.setdefault(token, _FitState()).listeners[rank] = listener
    if token in _ended:
        end_fit(token)
    return (str(listener.getsockname()[0]), int(listener.getsockname()[1]))


def _this_worker() -> Any:
    """Return the Dask worker that runs this task."""
    from distributed import get_worker  # optional dependency

    return get_worker()


def stop_fit(token: str) -> None:
    """End a fit after the active round; its trees so far are the model."""
    if token in _fit_states:
        _fit_states[token].is_stopped = True


def end_fit(token: str) -> None:
    """Stop the tasks of an attempt in this process, and delete its sockets and files."""
    _ended.append(token)
    state = _fit_states.pop(token, None)
    if state is None:
        return
    state.is_ended = True
    for listener in state.listeners.values():
        listener.close()
    for file in state.files:
        file.unlink(missing_ok=True)


def boost_rows(
    plan: BoostTaskPlan,
    rank: int,
    addresses: list[tuple[str, int]],
    parts: list[LoadedPartition],
    validation: list[Part] | None,
) -> Outcome:
    """Fit one model together with the other workers."""
    worker = _this_worker()
    state = _fit_states.get(plan.token, _FitState(is_ended=True))
    listener = state.listeners.pop(rank, None)
    if state.is_ended or listener is None:
        return Outcome(lost_worker=True)
    try:
        exchange = SocketExchange(listener, rank, addresses, plan.token.encode())
    except ExchangeError as error:
        return Outcome(lost_worker=True, connect_error=str(error))
    estimator = plan.estimator
    estimator.n_jobs = int(worker.state.nthreads)
    tracker = _RoundTracker(plan, estimator, state, worker.log_event if rank == 0 else None)
    worker.metrics[METRIC] = lambda _: tracker.n_rounds
    release_memory()  # of reading the partitions
    try:
        return _boost(plan, tracker, exchange, parts, validation)
    finally:
        worker.metrics.pop(METRIC, None)
        for part in parts:
            part.discard()
        exchange.close()


def _boost(
    plan: BoostTaskPlan,
    tracker: _RoundTracker,
    exchange: Exchange,
    parts: list[LoadedPartition],
    validation: list[Part] | None,
) -> Outcome:
    began = time.perf_counter()
    estimator = plan.estimator
    if tracker.sends:
        estimator.callbacks = tracker.report
    try:
        in_memory = all(one.file is None and isinstance(one.part.X, np.ndarray) for one in parts)
        rows = PartitionedRows(
            [one.read for one in parts], [one.n_rows for one in parts], in_memory
        )
        row_values = [one.without_columns() for one in parts]
        weights, group = (join_row_values(name, row_values) for name in ("weights", "group"))
        # Joined on demand: no reference is kept to them once the fit has coded them.
        targets = partial(join_row_values, "y", row_values)
        totals = Totals(exchange)
        sizes = totals.gather(len(rows))
        if weights is not None and not any(sizes):
            raise ValueError("sample_weight leaves no row of positive weight")
        n_before = sum(sizes[: exchange.rank])
        if plan.is_ranker:
            _check_groups(group, totals)
        if plan.expected_rows is not None:
            about = _sum_rows(len(rows), parts[0].n_columns, targets(), weights, totals=totals)
            _check_rows(plan.expected_rows, about)
            estimator._checkpoint_rows = about
        fit_partition(
            estimator,
            FitInput(
                rows,
                targets,
                sample_weight=weights,
                eval_set=_eval_set(validation, plan.is_ranker),
                zero_weight_labels=_join_labels([one.labels for one in parts]),
            ),
            Workers(totals, RowNumbers([(0, n_before)]), plan.seed),
            group=group,
            checkpoints=Checkpoints(
                () if plan.start is None else pickle.loads(plan.start), tracker.after_round
            ),
        )
    except ExchangeError:
        return Outcome(lost_worker=True, n_rounds=tracker.n_rounds, trees=tracker.trees())
    finally:
        estimator.callbacks = None
    report = {
        "rows": len(rows),
        "bytes_sent": exchange.bytes_sent,
        "exchanges": exchange.n_exchanges,
        "seconds": time.perf_counter() - began,
        "peak_memory": _peak_memory(),
    }
    model = estimator if exchange.rank == 0 else None
    return Outcome(model=model, report=report, n_messages=tracker.n_messages)


@dataclass
class _BoosterTrees:
    """The trees of a booster: how many are of finished rounds, and how many were sent."""

    store: Any
    n_trees: int
    n_sent: int = 0


class _RoundTracker:
    """Counts the finished rounds, and sends new trees and the progress to the driver."""

    def __init__(
        self,
        plan: BoostTaskPlan,
        estimator: Any,
        state: _FitState,
        send: Callable[[Any, Any], Any] | None,
    ) -> None:
        self._plan, self._estimator, self._state, self._send = plan, estimator, state, send
        self.n_rounds = self.n_messages = 0
        self._last_sent = 0.0
        start = [] if plan.start is None else pickle.loads(plan.start)
        self._boosters = [_BoosterTrees(store, len(store), len(store)) for store in start]

    @property
    def sends(self) -> bool:
        """Whether this worker sends trees and progress; only the first one does."""
        return self._send is not None

    def after_round(self, n_rounds: int, store: Any, booster: int) -> None:
        """Count a finished round, and send new trees from time to time."""
        if self._state.is_ended:  # for the other workers, this one is lost
            raise ExchangeError("the fit was ended")
        if booster == len(self._boosters):  # boosters start in their order
            self._boosters.append(_BoosterTrees(store, 0))
        current = self._boosters[booster]
        current.store, current.n_trees = store, len(store)
        n_trees = sum(of_booster.n_trees for of_booster in self._boosters)
        self.n_rounds = n_trees // (len(store) // n_rounds)
        now = time.monotonic()
        if self._send is None or now - self._last_sent < _SEND_EVERY:
            return
        message = {"token": self._plan.token, "rounds": self.n_rounds, "trees": self._new_trees()}
        if self._last_sent == 0.0:  # all other attributes of the model, once
            state = {**vars(self._estimator), "callbacks": None}
            message["state"] = pickle.dumps(state)
        self._last_sent = now
        self._send(self._plan.topic, message)

    def _new_trees(self) -> bytes:
        """Pickle the trees that were not sent yet, and count them as sent."""
        new = [
            (k, booster.n_sent, booster.store.part(booster.n_sent, booster.n_trees))
            for k, booster in enumerate(self._boosters)
            if booster.n_trees > booster.n_sent
        ]
        for booster in self._boosters:
            booster.n_sent = booster.n_trees
        return pickle.dumps(new)

    def trees(self) -> bytes | None:
        """Pickle the trees of finished rounds of each booster."""
        if not self._boosters:
            return None
        return pickle.dumps([booster.store.part(0, booster.n_trees) for booster in self._boosters])

    def report(self, done: int, total: int, score: float) -> bool:
        """Send the progress, and return whether the fit must stop."""
        message = {"token": self._plan.token, "done": done, "total": total, "score": float(score)}
        if self._send is not None:
            self.n_messages += 1
            self._send(self._plan.topic, message)
            self._send(TOPIC, {name: message[name] for name in ("done", "total", "score")})
        return self._state.is_stopped


def _drop_weightless(part: Part) -> tuple[Part, Any]:
    """Check weights, drop rows of weight zero, and return their distinct targets, too."""
    if part.weights is None:
        return part, None
    part = replace(part, weights=_check_weights(part.weights))
    if not (part.weights == 0).any():
        return part, None
    labels = np.unique(part.y[part.weights == 0])
    kept = np.flatnonzero(part.weights)
    X = part.X.iloc[kept] if hasattr(part.X, "iloc") else part.X[kept]
    group = None if part.group is None else part.group[kept]
    return Part(X, part.y[kept], part.weights[kept], group), labels


def _join_labels(labels: list[Any]) -> Any:
    """Concatenate labels; None if there are none."""
    found = [of_part for of_part in labels if of_part is not None]
    return np.concatenate(found) if found else None


def _check_weights(weights: Any) -> Any:
    """Return the weights of one partition as finite numbers of at least 0."""
    if weights.ndim != 1:
        raise ValueError(f"sample_weight: expected one axis, got {weights.ndim}")
    if weights.dtype.kind not in "biuf":
        try:
            weights = weights.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight: expected numbers: {error}") from None
    if not np.isfinite(weights).all() or (weights < 0).any():
        wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"sample_weight: expected finite numbers of at least 0, got {wrong}")
    return weights


def _eval_set(validation: list[Part] | None, is_ranker: bool) -> Any:
    """Return the validation rows as the eval_set of the local estimator."""
    if validation is None:
        return None
    part = join_partitions(validation)
    if is_ranker:
        return part.X, part.y, part.group
    return (part.X, part.y) if part.weights is None else (part.X, part.y, part.weights)


def _check_groups(group: Any, totals: Totals) -> None:
    """Raise an error if a group has rows on several workers."""
    by_worker = totals.gather(np.unique(group))
    groups = np.concatenate([ids for ids in by_worker if len(ids)] or [np.empty(0)])
    if len(np.unique(groups)) < len(groups):
        raise ValueError("group: expected the rows of each group in one partition")


def _sum_rows(
    n_rows: int, n_columns: int, y: Any, weights: Any, *, totals: Totals
) -> dict[str, Any]:
    """Return sums over all rows, which identify the rows of a checkpoint."""
    by_worker = totals.gather((n_rows, _sum(y), _sum(weights)))
    return {
        "n_rows": sum(n for n, _, _ in by_worker),
        "n_columns": n_columns,
        "sum of y": math.fsum(of_y for _, of_y, _ in by_worker),
        "sum of sample_weight": math.fsum(of_weights for _, _, of_weights in by_worker),
    }


def _sum(values: Any) -> float:
    """Sum numbers; labels are replaced by checksums of their names."""
    if values is None:
        return 0.0
    if values.dtype.kind in "biuf":
        return float(np.sum(values, dtype=np.float64))
    labels, counts = np.unique(values.astype(str), return_counts=True)
    numbers = [zlib.crc32(label.encode()) for label in labels.tolist()]
    return float(np.dot(numbers, counts)) if numbers else 0.0


def _check_rows(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Raise an error if the rows are not those of the checkpoint.

    The tolerance allows for another rounding of the sums with other workers.
    """
    for name, value in expected.items():
        if not np.isclose(found[name], value, rtol=1e-9, atol=1e-9):
            raise ValueError(
                f"checkpoint: expected the rows of the fit that saved it, with {name} {value!r}, "
                f"got {found[name]!r}; delete the file to start from scratch"
            )


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes, or 0 if it is unknown."""
    try:
        import resource  # not on Windows
    except ImportError:  # pragma: no cover - Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
