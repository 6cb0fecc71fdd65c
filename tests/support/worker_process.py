"""A worker that is a separate process; a new process can import this module."""

from __future__ import annotations

import os

from spinney.distributed.exchange import ExchangeError, SocketExchange
from spinney.ensemble import GradientBoostingRegressor
from support.waiting import LIMIT
from support.workers import fit_worker, row_ranges_of


def fit_in_process(rank, pipe):
    """Fit twice as worker `rank`; in the second fit, worker 1 kills its process."""
    for killed in (False, True):
        listener = SocketExchange.listen()
        pipe.send(listener.getsockname())
        addresses, X, y, rows = pipe.recv()
        exchange = SocketExchange(listener, rank, addresses, b"0123456789abcdef", timeout=LIMIT)

        def after_round(n_rounds, store, booster, killed=killed):
            if killed and rank == 1 and n_rounds == 3:
                os.kill(os.getpid(), 9)

        try:
            model = fit_worker(
                GradientBoostingRegressor(n_estimators=6, n_jobs=1),
                X[rows],
                y[rows],
                exchange=exchange,
                row_ranges=row_ranges_of(rows),
                after_round=after_round,
            )
            pipe.send(model)
        except ExchangeError as error:
            pipe.send(str(error))
