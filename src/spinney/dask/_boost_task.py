"""What each worker of a boosting fit runs: its own rows, the same loop as all others."""

from __future__ import annotations

import math
import pickle
import socket
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
from spinney.dask._rows import Part, join_beside, join_parts
from spinney.distributed.exchange import Exchange, ExchangeError, SocketExchange
from spinney.distributed.partitioned_rows import PartedRows
from spinney.distributed.totals import RowNumbers, Totals
from spinney.distributed.workers import Checkpoints, Workers
from spinney.runtime.memory import release_memory

__all__ = [
    "METRIC",
    "TOPIC",
    "LoadedPart",
    "Outcome",
    "Plan",
    "boost_rows",
    "keep_part",
    "leave_fit",
    "load_part",
    "no_rows",
    "open_listener",
    "stop_fit",
]

TOPIC = "spinney-boosting"  # of the scheduler's events about all fits
METRIC = "boosting rounds"  # of a worker, in the dashboard's table of workers
_SEND_EVERY = 0.5  # seconds between messages with new trees


@dataclass
class _Share:
    """What this process has of a fit, so that nothing of it stays behind.

    Workers may be threads of one process: then they have one share.
    """

    listeners: dict[int, socket.socket] = field(default_factory=dict)  # by rank
    files: list[Path] = field(default_factory=list)
    is_stopped: bool = False  # the fit is to end after the rounds under way
    is_left: bool = False  # whoever asked for the fit does not wait for it any more


_shares: dict[str, _Share] = {}  # by the token of the fit
_left: deque[str] = deque(maxlen=100)  # fits that are over: what comes late must not stay


@dataclass(frozen=True)
class Plan:
    """What all workers know about a fit.

    Parameters
    ----------
    estimator : estimator
        Local, not fitted.
    seed : int
        Of all draws.
    token : str
        Names the attempt, and is the secret of its workers.
    is_ranker : bool
        Whether rows come in groups.
    start : bytes or None
        Trees of the first rounds of each booster, a pickled list of ForestStore.
    topic : str
        Of the scheduler's events about this fit alone.
    expected : dict or None
        What is known of the rows of the fit that left `start`; None where no checkpoint is kept.
    """

    estimator: Any
    seed: int
    token: str
    is_ranker: bool
    start: bytes | None = None
    topic: str = TOPIC
    expected: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a worker came to.

    Parameters
    ----------
    model : estimator or None
        The fitted model, from the first worker only.
    n_rounds : int
        Rounds of all boosters that were finished, where another worker was lost.
    trees : bytes or None
        Their trees, a pickled list of ForestStore.
    report : dict
        Rows, bytes sent, exchanges and seconds of this worker.
    n_told : int
        How often progress was told.
    is_broken : bool
        Whether another worker was lost.
    not_met : str
        Why the workers could not connect to each other, or nothing.
    """

    model: Any = None
    n_rounds: int = 0
    trees: bytes | None = None
    report: dict[str, Any] | None = None
    n_told: int = 0
    is_broken: bool = False
    not_met: str = ""


@dataclass(frozen=True)
class LoadedPart:
    """A partition at its worker: what belongs to its rows, and the rows or the file that has them.

    Parameters
    ----------
    part : Part
        Without rows if these are in a file.
    n_rows : int
        Number of rows.
    n_columns : int
        Number of columns.
    file : str or None
        Where the rows are.
    labels : ndarray or None
        Distinct targets of the rows of weight zero, which were dropped.
    """

    part: Part
    n_rows: int
    n_columns: int
    file: str | None = None
    labels: Any = None

    def read(self) -> Any:
        """Give the rows."""
        if self.file is None:
            return self.part.X
        with open(self.file, "rb") as file:
            return pickle.load(file)  # written by this worker

    def beside(self) -> Part:
        """Give targets, weights and groups, with rows of no columns."""
        return Part(np.empty((self.n_rows, 0)), self.part.y, self.part.weights, self.part.group)

    def discard(self) -> None:
        """Delete the file."""
        if self.file is not None:
            Path(self.file).unlink(missing_ok=True)


def keep_part(part: Part) -> Part:
    """Return a part as it is, as a task of its own."""
    return part


def no_rows(part: Part) -> Part:
    """Give a part without rows, for a worker that has none."""
    beside = [None if of is None else of[:0] for of in (part.y, part.weights, part.group)]
    return Part(part.X[:0], *beside)


def load_part(part: Part, number: int, token: str) -> LoadedPart:
    """Have a worker keep a partition; with the token of a fit the rows go to a file of it."""
    part, labels = _without_weightless(part)
    n_rows, n_columns = part.X.shape
    if not token:
        return LoadedPart(part, n_rows, n_columns, labels=labels)
    from distributed import get_worker

    file = Path(get_worker().local_directory) / f"spinney-{token[:12]}-{number}.rows"
    _shares.setdefault(token, _Share()).files.append(file)
    with open(file, "wb") as out:
        pickle.dump(part.X, out, protocol=5)
    release_memory()  # what it took to read this partition and the one before
    if token in _left:
        leave_fit(token)
    # Copies: a column of a frame may be a view of all of it, which would stay.
    beside = [None if of is None else of.copy() for of in (part.y, part.weights, part.group)]
    return LoadedPart(Part(np.empty((n_rows, 0)), *beside), n_rows, n_columns, str(file), labels)


def open_listener(token: str, rank: int, version: str) -> tuple[str, int]:
    """Open the place where the other workers will reach this one."""
    from distributed import get_worker

    if version != __version__:
        raise RuntimeError(
            f"worker {get_worker().address} has Spinney {__version__}, expected {version} as where "
            "the fit was asked for"
        )
    host = urlsplit(get_worker().address).hostname or ""
    if not host or not host.replace(".", "").replace(":", "").isalnum() or "/" in host:
        host = "127.0.0.1"
    try:
        listener = SocketExchange.listen(host)
    except OSError:  # workers that are threads have addresses of no machine
        listener = SocketExchange.listen()
    listener.settimeout(None)
    _shares.setdefault(token, _Share()).listeners[rank] = listener
    if token in _left:
        leave_fit(token)
    return (str(listener.getsockname()[0]), int(listener.getsockname()[1]))


def stop_fit(token: str) -> None:
    """Have a fit end after the rounds under way."""
    if token in _shares:
        _shares[token].is_stopped = True


def leave_fit(token: str) -> None:
    """Break off what is under way here of a fit, and delete what it has left."""
    _left.append(token)
    share = _shares.pop(token, None)
    if share is None:
        return
    share.is_left = True
    for listener in share.listeners.values():
        listener.close()
    for file in share.files:
        file.unlink(missing_ok=True)


def boost_rows(
    plan: Plan,
    rank: int,
    addresses: list[tuple[str, int]],
    parts: list[LoadedPart],
    watched: list[Part] | None,
) -> Outcome:
    """Fit one model together with the other workers."""
    from distributed import get_worker

    worker = get_worker()
    share = _shares.get(plan.token, _Share(is_left=True))
    listener = share.listeners.pop(rank, None)
    if share.is_left or listener is None:
        return Outcome(is_broken=True)
    try:
        exchange = SocketExchange(listener, rank, addresses, plan.token.encode())
    except ExchangeError as error:
        return Outcome(is_broken=True, not_met=str(error))
    estimator = plan.estimator
    estimator.n_jobs = int(worker.state.nthreads)
    diary = _Diary(plan, estimator, share, worker.log_event if rank == 0 else None)
    worker.metrics[METRIC] = lambda _: diary.n_rounds
    release_memory()  # what reading took
    try:
        return _boost(plan, diary, exchange, parts, watched)
    finally:
        worker.metrics.pop(METRIC, None)
        for part in parts:
            part.discard()
        exchange.close()


def _boost(
    plan: Plan,
    diary: _Diary,
    exchange: Exchange,
    parts: list[LoadedPart],
    watched: list[Part] | None,
) -> Outcome:
    began = time.perf_counter()
    estimator = plan.estimator
    if diary.sends:
        estimator.callbacks = diary.report
    try:
        are_here = all(one.file is None and isinstance(one.part.X, np.ndarray) for one in parts)
        rows = PartedRows([one.read for one in parts], [one.n_rows for one in parts], are_here)
        beside = [one.beside() for one in parts]
        weights, group = (join_beside(name, beside) for name in ("weights", "group"))
        # Read when they are needed: once they are coded nobody is to hold them.
        targets = partial(join_beside, "y", beside)
        totals = Totals(exchange)
        sizes = totals.gather(len(rows))
        if weights is not None and not any(sizes):
            raise ValueError("sample_weight leaves no row of positive weight")
        n_before = sum(sizes[: exchange.rank])
        if plan.is_ranker:
            _check_groups(group, totals)
        if plan.expected is not None:
            about = _about_rows(len(rows), parts[0].n_columns, targets(), weights, totals)
            _check_rows(plan.expected, about)
            estimator._checkpoint_rows = about
        fit_partition(
            estimator,
            FitInput(
                rows,
                targets,
                sample_weight=weights,
                eval_set=_eval_set(watched, plan.is_ranker),
                zero_weight_labels=_join_labels([one.labels for one in parts]),
            ),
            Workers(totals, RowNumbers([(0, n_before)]), plan.seed),
            group=group,
            checkpoints=Checkpoints(
                () if plan.start is None else pickle.loads(plan.start), diary.after_round
            ),
        )
    except ExchangeError:
        return Outcome(is_broken=True, n_rounds=diary.n_rounds, trees=diary.trees())
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
    return Outcome(model=model, report=report, n_told=diary.n_told)


@dataclass
class _Progress:
    """What a booster came to: its trees, how many are of finished rounds, how many were sent."""

    store: Any
    n_trees: int
    n_sent: int = 0


class _Diary:
    """Keeps track of the rounds, and sends new trees to whoever asked for the fit."""

    def __init__(
        self, plan: Plan, estimator: Any, share: _Share, send: Callable[[Any, Any], Any] | None
    ) -> None:
        self._plan, self._estimator, self._share, self._send = plan, estimator, share, send
        self.n_rounds = self.n_told = 0
        self._last = 0.0
        start = [] if plan.start is None else pickle.loads(plan.start)
        self._boosters = [_Progress(store, len(store), len(store)) for store in start]

    @property
    def sends(self) -> bool:
        """Whether anybody is told."""
        return self._send is not None

    def after_round(self, n_rounds: int, store: Any, booster: int) -> None:
        if self._share.is_left:  # the others are told, as if this worker were lost
            raise ExchangeError("the fit was given up")
        if booster == len(self._boosters):  # boosters begin in their order
            self._boosters.append(_Progress(store, 0))
        progress = self._boosters[booster]
        progress.store, progress.n_trees = store, len(store)
        n_trees = sum(one.n_trees for one in self._boosters)
        self.n_rounds = n_trees // (len(store) // n_rounds)
        now = time.monotonic()
        if self._send is None or now - self._last < _SEND_EVERY:
            return
        new = [
            (k, one.n_sent, one.store.part(one.n_sent, one.n_trees))
            for k, one in enumerate(self._boosters)
            if one.n_trees > one.n_sent
        ]
        message = {"token": self._plan.token, "rounds": self.n_rounds, "trees": pickle.dumps(new)}
        if self._last == 0.0:  # what the trees are about, once
            state = {**vars(self._estimator), "callbacks": None}
            message["state"] = pickle.dumps(state)
        for one in self._boosters:
            one.n_sent = one.n_trees
        self._last = now
        self._send(self._plan.topic, message)

    def trees(self) -> bytes | None:
        """Pickle the trees of finished rounds of each booster."""
        if not self._boosters:
            return None
        return pickle.dumps([one.store.part(0, one.n_trees) for one in self._boosters])

    def report(self, done: int, total: int, score: float) -> bool:
        """Tell how far the fit is; True ends it."""
        message = {"token": self._plan.token, "done": done, "total": total, "score": float(score)}
        if self._send is not None:
            self.n_told += 1
            self._send(self._plan.topic, message)
            self._send(TOPIC, {name: message[name] for name in ("done", "total", "score")})
        return self._share.is_stopped


def _without_weightless(part: Part) -> tuple[Part, Any]:
    """Check weights, and drop rows of weight zero; return their distinct targets, too."""
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
    """Give all labels that there are, or None."""
    found = [one for one in labels if one is not None]
    return np.concatenate(found) if found else None


def _check_weights(weights: Any) -> Any:
    """Give weights as numbers, or say what is wrong with them."""
    if weights.ndim != 1:
        raise ValueError(f"sample_weight: expected one axis, got {weights.ndim}")
    if weights.dtype.kind not in "biuf":
        try:
            weights = weights.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight: expected numbers: {error}") from None
    if not np.isfinite(weights).all() or (weights < 0).any():
        wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"sample_weight: expected finite numbers from 0 on, got {wrong}")
    return weights


def _eval_set(watched: list[Part] | None, is_ranker: bool) -> Any:
    if watched is None:
        return None
    part = join_parts(watched)
    if is_ranker:
        return part.X, part.y, part.group
    return (part.X, part.y) if part.weights is None else (part.X, part.y, part.weights)


def _check_groups(group: Any, totals: Totals) -> None:
    """Refuse groups that workers would have to share."""
    told = totals.gather(np.unique(group))
    everywhere = np.concatenate([one for one in told if len(one)] or [np.empty(0)])
    if len(np.unique(everywhere)) < len(everywhere):
        raise ValueError("group: expected the rows of each group in one partition")


def _about_rows(
    n_rows: int, n_columns: int, y: Any, weights: Any, totals: Totals
) -> dict[str, Any]:
    """Tell what rows of all workers are, so that a checkpoint of others is noticed."""
    told = totals.gather((n_rows, _sum(y), _sum(weights)))
    return {
        "n_rows": sum(one[0] for one in told),
        "n_columns": n_columns,
        "sum of y": math.fsum(one[1] for one in told),
        "sum of sample_weight": math.fsum(one[2] for one in told),
    }


def _sum(values: Any) -> float:
    """Sum numbers; of labels, numbers that follow from their names."""
    if values is None:
        return 0.0
    if values.dtype.kind in "biuf":
        return float(np.sum(values, dtype=np.float64))
    labels, counts = np.unique(values.astype(str), return_counts=True)
    numbers = [zlib.crc32(label.encode()) for label in labels.tolist()]
    return float(np.dot(numbers, counts)) if numbers else 0.0


def _check_rows(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuse to go on with other rows. Sums may be rounded otherwise with other workers."""
    for name, value in expected.items():
        if not np.isclose(found[name], value, rtol=1e-9, atol=1e-9):
            raise ValueError(
                f"checkpoint: expected the rows of the fit that left it, with {name} {value!r}, "
                f"got {found[name]!r}; delete the file to begin anew"
            )


def _peak_memory() -> int:
    """Most bytes that this process had in memory so far, or 0 where that is not known."""
    try:
        import resource
        import sys
    except ImportError:  # pragma: no cover - Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
