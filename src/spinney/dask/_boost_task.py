"""What each worker of a boosting fit runs: its own rows, the same loop as all others."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from spinney.dask._rows import Part, join_parts
from spinney.ensemble._distributed import fit_shard
from spinney.ensemble._exchange import Exchange, ExchangeError, SocketExchange
from spinney.ensemble._parted_rows import PartedRows
from spinney.ensemble._totals import Totals

__all__ = [
    "METRIC",
    "TOPIC",
    "LoadedPart",
    "Outcome",
    "Plan",
    "boost_rows",
    "load_part",
    "open_listener",
    "stop_fit",
]

TOPIC = "spinney-boosting"  # of the scheduler's events
METRIC = "boosting rounds"  # of a worker, in the dashboard's table of workers
_SEND_EVERY = 0.5  # seconds between messages with new trees

_listeners: dict[tuple[str, int], socket.socket] = {}
_stopped: set[str] = set()


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
        Names the fit, and is the secret of its workers.
    is_ranker : bool
        Whether rows come in groups.
    start : bytes or None
        Trees of the first rounds, a pickled ForestStore.
    """

    estimator: Any
    seed: int
    token: str
    is_ranker: bool
    start: bytes | None = None


@dataclass(frozen=True)
class Outcome:
    """What a worker came to.

    Parameters
    ----------
    model : estimator or None
        The fitted model, from the first worker only.
    n_rounds : int
        Rounds that were finished, where another worker was lost.
    trees : bytes or None
        Their trees.
    report : dict
        Rows, bytes sent, exchanges and seconds of this worker.
    """

    model: Any = None
    n_rounds: int = 0
    trees: bytes | None = None
    report: dict[str, Any] | None = None
    is_broken: bool = False


@dataclass(frozen=True)
class LoadedPart:
    """A partition at its worker: what belongs to its rows, and the rows or the file that has them.

    Parameters
    ----------
    part : Part
        Without rows if these are in a file.
    n_rows : int
        Number of rows.
    file : str or None
        Where the rows are.
    """

    part: Part
    n_rows: int
    file: str | None = None

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


def load_part(part: Part, name: str) -> LoadedPart:
    """Have a worker keep a partition; with a name the rows go to a file of it."""
    part = _without_weightless(part)
    n_rows = part.n_rows
    if not name:
        return LoadedPart(part, n_rows)
    from distributed import get_worker

    file = Path(get_worker().local_directory) / f"spinney-{name}.rows"
    with open(file, "wb") as out:
        pickle.dump(part.X, out, protocol=5)
    # Copies: a column of a frame may be a view of all of it, which would stay.
    beside = [None if of is None else of.copy() for of in (part.y, part.weights, part.group)]
    return LoadedPart(Part(np.empty((n_rows, 0)), *beside), n_rows, str(file))


def open_listener(token: str, rank: int) -> tuple[str, int]:
    """Open the place where the other workers will reach this one."""
    from distributed import get_worker

    host = urlsplit(get_worker().address).hostname or ""
    if not host or not host.replace(".", "").replace(":", "").isalnum() or "/" in host:
        host = "127.0.0.1"
    try:
        listener = SocketExchange.listen(host)
    except OSError:  # workers that are threads have addresses of no machine
        listener = SocketExchange.listen()
    listener.settimeout(None)
    _listeners[token, rank] = listener
    return (str(listener.getsockname()[0]), int(listener.getsockname()[1]))


def stop_fit(token: str) -> None:
    """Have a fit end after the rounds under way."""
    _stopped.add(token)


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
    listener = _listeners.pop((plan.token, rank))
    exchange = SocketExchange(listener, rank, addresses, plan.token.encode())
    send = (lambda message: worker.log_event(TOPIC, message)) if rank == 0 else None
    estimator = plan.estimator
    estimator.n_jobs = int(worker.state.nthreads)
    diary = _Diary(plan, estimator, send)
    worker.metrics[METRIC] = lambda _: diary.n_rounds
    try:
        return _boost(plan, diary, exchange, parts, watched)
    finally:
        worker.metrics.pop(METRIC, None)
        for part in parts:
            part.discard()
        exchange.close()
        _stopped.discard(plan.token)


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
        rows = PartedRows([one.read for one in parts], [one.n_rows for one in parts])
        part = join_parts([one.beside() for one in parts])
        totals = Totals(exchange)
        n_before = sum(totals.gather(part.n_rows)[: exchange.rank])
        if plan.is_ranker:
            _check_groups(part.group, totals)
        fit_shard(
            *(estimator, rows, part.y),
            exchange=exchange,
            stretches=[(0, n_before)],
            seed=plan.seed,
            sample_weight=part.weights,
            group=part.group,
            eval_set=_eval_set(watched, plan.is_ranker),
            start=None if plan.start is None else pickle.loads(plan.start),
            after_round=diary.after_round,
        )
    except ExchangeError:
        return Outcome(is_broken=True, n_rounds=diary.n_rounds, trees=diary.trees(0, diary.n_trees))
    finally:
        estimator.callbacks = None
    report = {
        "rows": part.n_rows,
        "bytes_sent": exchange.bytes_sent,
        "exchanges": exchange.n_exchanges,
        "seconds": time.perf_counter() - began,
        "peak_memory": _peak_memory(),
    }
    return Outcome(model=estimator if exchange.rank == 0 else None, report=report)


class _Diary:
    """Keeps track of the rounds, and sends new trees to whoever asked for the fit."""

    def __init__(
        self, plan: Plan, estimator: Any, send: Callable[[dict[str, Any]], Any] | None
    ) -> None:
        self._plan, self._estimator, self._send = plan, estimator, send
        self.n_rounds = self.n_trees = 0
        self._store: Any = None
        self._n_sent, self._last = 0, 0.0
        if plan.start is not None:
            self._n_sent = len(pickle.loads(plan.start))
        self._n_before = self._n_sent

    @property
    def sends(self) -> bool:
        """Whether anybody is told."""
        return self._send is not None

    def after_round(self, n_rounds: int, store: Any) -> None:
        self.n_rounds, self.n_trees, self._store = n_rounds, len(store), store
        now = time.monotonic()
        if self._send is None or now - self._last < _SEND_EVERY:
            return
        message = {"token": self._plan.token, "rounds": n_rounds, "first": self._n_sent}
        message["trees"] = self.trees(self._n_sent, self.n_trees)
        if self._last == 0.0:  # what the trees are about, once
            state = {**vars(self._estimator), "callbacks": None}
            state = {k: v for k, v in state.items() if k not in ("_shard", "_totals")}
            message["state"] = pickle.dumps(state)
        self._n_sent, self._last = self.n_trees, now
        self._send(message)

    def trees(self, first: int, last: int) -> bytes | None:
        """Pickle some of the trees."""
        return None if self._store is None else pickle.dumps(self._store.part(first, last))

    def report(self, done: int, total: int, score: float) -> bool:
        """Tell how far the fit is; True ends it."""
        done += self._n_before // self._estimator._trees_per_round
        message = {"token": self._plan.token, "done": done, "total": total, "score": float(score)}
        if self._send is not None:
            self._send(message)
        return self._plan.token in _stopped


def _without_weightless(part: Part) -> Part:
    """Drop rows of weight zero, as the local booster does."""
    if part.weights is None or part.weights.dtype.kind not in "biuf":
        return part
    if not (part.weights == 0).any():
        return part
    kept = np.flatnonzero(part.weights)
    X = part.X.iloc[kept] if hasattr(part.X, "iloc") else part.X[kept]
    group = None if part.group is None else part.group[kept]
    return Part(X, part.y[kept], part.weights[kept], group)


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


def _peak_memory() -> int:
    """Most bytes that this process had in memory so far, or 0 where that is not known."""
    try:
        import resource
        import sys
    except ImportError:  # pragma: no cover - Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
