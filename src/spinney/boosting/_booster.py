"""One boosted model under way: its bins, its scores, its trees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.boosting._settings import Settings
from spinney.boosting._target_statistics import Statistic, ordered_statistics
from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table
from spinney.distributed.shard import Shard, agree_on_bins
from spinney.distributed.totals import Totals
from spinney.models.forest_store import ForestStore

__all__ = ["Bins", "Booster", "Trial", "best_round", "statistics_of"]


class Bins:
    """The rows of a fit as codes, and how other rows become codes.

    Parameters
    ----------
    table : Table
        The rows.
    schema : Schema
        Their columns.
    statistics : list of Statistic
        Columns made from columns of categories, whose place they take.
    max_bins : int or None
        Bins of a column at most; None: every value is kept.
    n_threads : int
        Threads.
    among : ndarray of uint32 or None
        Rows that decide where bins begin; None: all.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows: bin edges are quantiles of the weighted rows. None: all alike.
    totals : Totals or None
        The other workers that have rows, if there are any.
    """

    def __init__(
        self,
        table: Table,
        schema: Schema,
        statistics: list[Statistic],
        max_bins: int | None,
        n_threads: int,
        among: Any = None,
        weights: Any = None,
        totals: Totals | None = None,
    ) -> None:
        self.schema = schema
        self.statistics = statistics
        self.n_threads = n_threads
        if totals is not None and totals.shared:
            assert max_bins is not None
            assert not statistics
            self.matrix: Any = agree_on_bins(
                table, schema, max_bins, among, weights, totals, n_threads
            )
            return
        made = [statistic.of_row for statistic in statistics]
        rows = self._with(table, made)
        self.matrix = (
            _core.exact_table(rows, True, n_threads)
            if max_bins is None
            else _core.bin_table(rows, max_bins, n_threads, among, weights)
        )
        for place, statistic in enumerate(statistics, schema.n_features):
            self.matrix.derive(place, statistic.source, statistic.of_category.tolist())

    def code(self, table: Table) -> Any:
        """Make codes of other rows."""
        made = [s.look_up(table.columns[s.source]) for s in self.statistics]  # type: ignore[index]
        rows = self._with(table, made)
        if isinstance(self.matrix, _core.ExactMatrix):
            return _core.exact_table(rows, False, self.n_threads)
        return _core.bin_like(rows, self.matrix, self.n_threads)

    def _with(self, table: Table, made: list[Any]) -> Any:
        if not made:
            return core_table(table, self.schema)
        assert table.columns is not None
        replaced = {statistic.source for statistic in self.statistics}
        counts = [-1 if values is None else len(values) for values in self.schema.categories]
        columns = list(table.columns)
        for source in replaced:  # a constant column costs nothing
            columns[source], counts[source] = np.zeros(table.n_rows), -1
        return _core.Table.from_columns([*columns, *made], counts + [-1] * len(made))

    def extend_signs(self, signs: list[int]) -> list[int]:
        """Give the columns that were made no sign of their own."""
        return signs + [0] * len(self.statistics) if signs else []

    def extend_sets(self, sets: list[list[int]]) -> list[list[int]]:
        """Put the columns that were made where their columns of categories are."""
        places = list(enumerate(self.statistics, self.schema.n_features))
        return [[*of, *(place for place, s in places if s.source in of)] for of in sets]


def statistics_of(
    table: Table,
    schema: Schema,
    most: int | None,
    targets: Any,
    weights: Any,
    learned: Any,
    seed: int,
) -> list[Statistic]:
    """Make numbers of all columns with more than so many categories."""
    made: list[Statistic] = []
    for f, values in enumerate(schema.categories):
        if most is None or values is None or len(values) <= most:
            continue
        codes = table.columns[f]  # type: ignore[index]
        made += ordered_statistics(f, codes, len(values), targets, weights, learned, seed)
    return made


class Booster:
    """A model that learns from some of the rows of a table and watches others.

    Parameters
    ----------
    bins : Bins
        The rows.
    learned : ndarray of uint32 or None
        Rows to learn from; None: all.
    validation : _core.BoostValidation or None
        Rows to watch.
    targets, weights : ndarray of shape (n_rows,)
        Of all rows; weights may be None.
    scores : ndarray of shape (n_scores, n_rows)
        Raw scores before the next round; written to.
    options : _core.BoostOptions
        How to learn.
    store : ForestStore
        Where the trees go.
    own_gradients : callable or None
        Derivatives of a loss of the user's.
    """

    def __init__(
        self,
        bins: Bins,
        learned: Any,
        validation: Any,
        targets: Any,
        weights: Any,
        scores: Any,
        options: Any,
        store: ForestStore,
        own_gradients: Any = None,
    ) -> None:
        self.bins = bins
        self.learned = learned
        self.validation = validation
        self.targets = targets
        self.weights = weights
        self.scores = scores
        self.options = options
        self.store = store
        self.own_gradients = own_gradients
        self.train: NDArray[np.float64] = np.empty(0)
        self.watched: NDArray[np.float64] = np.empty(0)
        self.judge: Callable[[], float] | None = None
        self.watched_rows: Any = None  # of the table; None: all, or none of them
        self.baseline: Any = None  # raw scores before the first round
        self.other_scores: Any = None  # of rows to watch that are not in the table
        self.shard: Shard | None = None  # where other workers have rows, too
        self.number = 0  # among all boosters of a fit

    @property
    def n_run(self) -> int:
        """Rounds so far."""
        return int(self.options.first_round)

    def run(self, n_rounds: int) -> None:
        """Add rounds.

        With a judge, what it says after each takes the place of the loss that is followed: of the
        rows to watch, or of those learned from if there are none.
        """
        if self.judge is None:
            train, watched = self._add(n_rounds)
            self.train = np.concatenate([self.train, train])
            self.watched = np.concatenate([self.watched, watched])
            return
        for _ in range(n_rounds):
            train, watched = self._add(1)
            verdict = np.array([self.judge()])
            if self.validation is None:
                self.train = np.concatenate([self.train, verdict])
            else:
                self.train = np.concatenate([self.train, train])
                self.watched = np.concatenate([self.watched, verdict])

    def _add(self, n_rounds: int) -> tuple[Any, Any]:
        self.options.n_rounds = n_rounds
        exchange = after_round = None
        if self.shard is not None:
            exchange = self.shard.totals.exchange
            if self.shard.after_round is not None:
                after_round = self._after_round
        train, watched = _core.boost(
            self.bins.matrix,
            self.learned,
            self.targets,
            self.weights,
            self.scores,
            self.validation,
            self.options,
            self.store.core,
            self.own_gradients,
            None,
            exchange,
            after_round,
        )
        self.options.first_round += n_rounds
        return train, watched

    def _after_round(self, number: int) -> None:
        assert self.shard is not None
        assert self.shard.after_round is not None
        self.shard.after_round(number + 1, self.store, self.number)

    def replay(self, n_rounds: int, tables: list[tuple[Any, Any]], trees_per_round: int) -> None:
        """Bring scores and losses to where they were after so many rounds that the store has.

        Parameters
        ----------
        n_rounds : int
            Rounds.
        tables : list of (_core.Table or callable, ndarray of shape (n_scores, n_rows))
            Rows, or what reads them, and their scores, which are written to.
        trees_per_round : int
            Trees of a round.
        """
        for number in range(n_rounds):
            for rows, scores in tables:
                # Tree by tree, as they were added when they were grown.
                now = np.ascontiguousarray(scores.T)
                _core.add_rounds(
                    self.store.core,
                    rows() if callable(rows) else rows,
                    trees_per_round,
                    number,
                    number + 1,
                    self.options.n_threads,
                    now,
                )
                scores[:] = now.T
            train, watched = self._add(0)
            self.train = np.concatenate([self.train, train])
            self.watched = np.concatenate([self.watched, watched])

    def watched_scores(self) -> NDArray[np.float64]:
        """Raw scores of the rows to watch, or of all if there are none, (n_rows, n_scores)."""
        if self.other_scores is not None:
            return np.asarray(self.other_scores.T)
        if self.watched_rows is not None:
            return np.asarray(self.scores[:, self.watched_rows].T)
        return np.asarray(self.scores.T)

    def fingerprint(self) -> bytes:
        """Tell whether a continued fit is about the same rows."""
        hashed = hashlib.blake2b(self.targets.tobytes())
        for statistic in self.bins.statistics:
            hashed.update(statistic.of_row.tobytes())
        return hashed.digest()


def best_round(losses: Any, patience: int, tolerance: float) -> tuple[int, int | None]:
    """Find the round after which the loss no longer fell.

    Parameters
    ----------
    losses : array of shape (n_rounds,)
        After each round.
    patience : int
        Rounds without a better loss before one gives up.
    tolerance : float
        What counts as better, as a part of the first loss.

    Returns
    -------
    best : int
        Rounds up to the best one.
    end : int or None
        Rounds after which patience ran out; None if it did not.
    """
    best, lowest = 0, np.inf
    least = tolerance * abs(losses[0]) if len(losses) else 0.0
    for i, loss in enumerate(losses):
        if loss < lowest - least:
            best, lowest = i + 1, loss
        elif i + 1 - best >= patience:
            return best, i + 1
    return best, None


class Trial:
    """Boosters with the same settings, one for each part of the rows, that go on together.

    Parameters
    ----------
    settings : Settings
        What they have in common.
    boosters : list of Booster
        Each with as many rounds as the others.
    find_best : callable
        Tells from the losses that are followed how many rounds to keep, and after how many patience
        ran out (None: it did not); as `best_round`.
    stops : bool
        Whether to stop when the loss no longer falls.
    """

    def __init__(
        self,
        settings: Settings,
        boosters: list[Booster],
        find_best: Callable[[Any], tuple[int, int | None]],
        stops: bool,
    ) -> None:
        self.settings = settings
        self.boosters = boosters
        self.find_best = find_best
        self.stops = stops
        self.first_round = boosters[0].n_run

    @property
    def train(self) -> NDArray[np.float64]:
        """Mean loss of what is learned from, after each round."""
        return _mean_losses([booster.train for booster in self.boosters])

    @property
    def watched(self) -> NDArray[np.float64]:
        """Mean loss of what is watched; parts are of the same size, but for a row."""
        return _mean_losses([booster.watched for booster in self.boosters])

    @property
    def followed(self) -> NDArray[np.float64]:
        """The loss that decides."""
        return self.watched if self.boosters[0].validation is not None else self.train

    @property
    def n_run(self) -> int:
        """Rounds that all boosters have so far."""
        return min(booster.n_run for booster in self.boosters)

    def best(self) -> tuple[int, int | None]:
        """Rounds to keep, and after which ones patience ran out."""
        followed = self.followed
        if not self.stops or len(followed) < self.n_run:
            return self.n_run, None
        best, end = self.find_best(followed)
        return max(best, self.first_round, 1), end

    @property
    def loss(self) -> float:
        """Loss after the best round."""
        followed = self.followed
        return float(followed[self.best()[0] - 1]) if len(followed) else np.nan

    def run(self, n_rounds: int, n_threads: int, report: Any = None) -> None:
        """Add rounds.

        Boosters that went on from an earlier fit may have some already, one more than another.

        Parameters
        ----------
        n_rounds : int
            How many, at most, counted from the first round of the fit.
        n_threads : int
            Threads of all boosters together; they do not change the result.
        report : callable or None
            Called now and then with the number of rounds added and the last loss; True ends it.
        """
        done = self.n_run - self.first_round
        if not self.stops and report is None and len(self.boosters) == 1:
            self.boosters[0].run(n_rounds - done)
            return
        # All workers must run the same booster at the same time.
        shared = self.boosters[0].shard is not None
        threads = 1 if shared else min(n_threads, len(self.boosters))
        for booster in self.boosters:
            booster.options.n_threads = max(1, n_threads // threads)
        step = min(int(self.settings.n_iter_no_change), 25) if self.stops else 10
        with ThreadPoolExecutor(threads) as pool:
            while done < n_rounds:
                if done and self.best()[1] is not None:
                    break
                done = min(done + step, n_rounds)
                advance = partial(_run_to, n_rounds=self.first_round + done)
                if threads == 1:
                    for booster in self.boosters:
                        advance(booster)
                else:
                    list(pool.map(advance, self.boosters))
                last = self.followed[-1:]
                if report is not None and report(done, last[0] if len(last) else np.nan):
                    break


def _run_to(booster: Booster, n_rounds: int) -> None:
    if n_rounds > booster.n_run:
        booster.run(n_rounds - booster.n_run)


def _mean_losses(losses: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Average the losses of boosters over the rounds that all of them have."""
    n_rounds = min(len(one) for one in losses)
    return np.asarray(np.mean([one[:n_rounds] for one in losses], axis=0))
