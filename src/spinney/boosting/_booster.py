"""Boosters in training, and trials: one booster per fold, with equal settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.boosting._bins import Bins
from spinney.boosting._fit_plan import Fold
from spinney.boosting._settings import Settings
from spinney.distributed.workers import LOCAL, NO_CHECKPOINTS, Checkpoints, Workers
from spinney.models.forest_store import ForestStore

__all__ = ["Booster", "Trial", "best_round"]


@dataclass(kw_only=True)
class Booster:
    """A booster in training on the rows of one fold.

    Parameters
    ----------
    bins : Bins
        The rows.
    fold : Fold
        Training and validation rows.
    validation : _core.BoostValidation or None
        The validation rows for the core, of the table or of eval_set.
    targets : ndarray of shape (n_targets * n_rows,)
        Targets of all rows, one output after another.
    weights : ndarray of shape (n_rows,) or None
        Weights of all rows.
    scores : ndarray of shape (n_scores, n_rows)
        Present raw scores; updated in place.
    eval_set_scores : ndarray of shape (n_scores, n_rows_of_eval_set) or None
        Present raw scores of the rows of eval_set; updated in place.
    baseline : ndarray of shape (n_scores,)
        Raw scores before the first round.
    options : _core.BoostOptions
        Settings of the core.
    n_threads : int
        Number of threads.
    n_rounds : int
        Number of rounds so far.
    store : ForestStore
        Receives the trees.
    custom_derivatives : callable or None
        Derivatives of a user-defined loss.
    number : int
        Index among all boosters of a fit.
    workers : Workers
        The workers.
    checkpoints : Checkpoints
        A callback after each round.
    train_losses, validation_losses : ndarray of shape (n_rounds,)
        Losses after each round. With a scorer, the negative score replaces the loss of the
        validation rows, or that of the training rows if there are no validation rows.
    score : callable or None
        Return the present score of the validation rows by `scoring`.
    """

    bins: Bins
    fold: Fold
    validation: Any
    targets: Any
    weights: Any
    scores: Any
    eval_set_scores: Any
    baseline: Any
    options: Any
    n_threads: int
    n_rounds: int
    store: ForestStore
    custom_derivatives: Callable[[], Any] | None = None
    number: int = 0
    workers: Workers = LOCAL
    checkpoints: Checkpoints = NO_CHECKPOINTS
    train_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    validation_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    score: Callable[[], float] | None = None

    def run(self, n_rounds: int) -> None:
        """Add rounds."""
        if self.score is None:
            self._record(*self._boost(n_rounds))
            return
        for _ in range(n_rounds):
            train, validation = self._boost(1)
            negative_score = np.array([-self.score()])
            if self.validation is None:
                self._record(negative_score, validation)
            else:
                self._record(train, negative_score)

    def _record(self, train: Any, validation: Any) -> None:
        self.train_losses = np.concatenate([self.train_losses, train])
        self.validation_losses = np.concatenate([self.validation_losses, validation])

    def _boost(self, n_rounds: int) -> tuple[Any, Any]:
        train, validation = _core.boost(
            self.bins.matrix,
            self.fold.train_rows,
            self.targets,
            self.weights,
            self.scores,
            self.validation,
            self.options,
            self.store.core,
            first_round=self.n_rounds,
            n_rounds=n_rounds,
            n_threads=self.n_threads,
            custom_derivatives=self.custom_derivatives,
            exchange=self.workers.totals.exchange,
            after_round=None if self.checkpoints.after_round is None else self._after_round,
        )
        self.n_rounds += n_rounds
        return train, validation

    def _after_round(self, number: int) -> None:
        assert self.checkpoints.after_round is not None
        self.checkpoints.after_round(number + 1, self.store, self.number)

    def replay(self, n_rounds: int, tables: list[tuple[Any, Any]], trees_per_round: int) -> None:
        """Restore scores and losses of rounds whose trees are in the store.

        Parameters
        ----------
        n_rounds : int
            Number of rounds.
        tables : list of (_core.Table or callable, ndarray of shape (n_scores, n_rows))
            Rows, or a function that reads them, and their scores, which are updated in place.
        trees_per_round : int
            Number of trees of a round.
        """
        for number in range(n_rounds):
            for rows, scores in tables:
                # One round at a time, as in training: the same order of sums has the same bits.
                updated = np.ascontiguousarray(scores.T)
                _core.add_rounds(
                    self.store.core,
                    rows() if callable(rows) else rows,
                    trees_per_round,
                    number,
                    number + 1,
                    self.n_threads,
                    updated,
                )
                scores[:] = updated.T
            self._record(*self._boost(0))

    def validation_scores(self) -> NDArray[np.float64]:
        """Return raw scores of the validation rows, else of all rows, (n_rows, n_scores)."""
        if self.eval_set_scores is not None:
            return np.asarray(self.eval_set_scores.T)
        if self.fold.validation_rows is not None:
            return np.asarray(self.scores[:, self.fold.validation_rows].T)
        return np.asarray(self.scores.T)

    def fingerprint(self) -> bytes:
        """Return a hash that is the same if a continued fit has the same rows."""
        hashed = hashlib.blake2b(self.targets.tobytes())
        for statistic in self.bins.statistics:
            hashed.update(statistic.of_row.tobytes())
        return hashed.digest()


def best_round(losses: Any, patience: int, tolerance: float) -> tuple[int, int | None]:
    """Return the round with the lowest loss, and the round at which training stops.

    Parameters
    ----------
    losses : array of shape (n_rounds,)
        The loss after each round.
    patience : int
        Number of rounds without improvement after which training stops.
    tolerance : float
        Smallest improvement, relative to the first loss.

    Returns
    -------
    best : int
        Number of rounds up to the best one.
    end : int or None
        Number of rounds after which training stops; None if it does not.
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
    """Boosters with equal settings, one for each fold, trained in lockstep.

    Parameters
    ----------
    settings : Settings
        The settings of all of them.
    boosters : list of Booster
        Each has the same number of rounds.
    find_best : callable
        Return the best round, and the round at which training stops or None, from the validation
        losses; see `best_round`.
    stops : bool
        Whether early stopping is on.
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
        # With several workers, existing rounds are from an interrupted part of this fit.
        workers = boosters[0].workers
        self.first_round = 0 if workers.share_rows else boosters[0].n_rounds

    @property
    def train_losses(self) -> NDArray[np.float64]:
        """Mean loss of the training rows after each round."""
        return _mean_losses([booster.train_losses for booster in self.boosters])

    @property
    def validation_losses(self) -> NDArray[np.float64]:
        """Mean loss of the validation rows; folds differ by at most one row."""
        return _mean_losses([booster.validation_losses for booster in self.boosters])

    @property
    def deciding_losses(self) -> NDArray[np.float64]:
        """Losses of the validation rows, or of the training rows if there are none."""
        has_validation = self.boosters[0].validation is not None
        return self.validation_losses if has_validation else self.train_losses

    @property
    def n_rounds(self) -> int:
        """Number of rounds that all boosters have so far."""
        return min(booster.n_rounds for booster in self.boosters)

    def best(self) -> tuple[int, int | None]:
        """Return the number of rounds to keep, and the last round (None: continue)."""
        losses = self.deciding_losses
        if not self.stops or len(losses) < self.n_rounds:
            return self.n_rounds, None
        best, end = self.find_best(losses)
        return max(best, self.first_round, 1), end

    @property
    def loss(self) -> float:
        """The deciding loss after the best round."""
        losses = self.deciding_losses
        return float(losses[self.best()[0] - 1]) if len(losses) else np.nan

    def run(self, n_rounds: int, n_threads: int, report: Any = None) -> None:
        """Add rounds.

        Boosters of an interrupted fit may have some rounds already, one more than others.

        Parameters
        ----------
        n_rounds : int
            Largest number of rounds, counted from the first round of the fit.
        n_threads : int
            Number of threads of all boosters together; it does not change the result.
        report : callable or None
            Called at intervals with the number of rounds added and the last loss; if it returns
            True, training stops.
        """
        done = self.n_rounds - self.first_round
        if not self.stops and report is None and len(self.boosters) == 1:
            self.boosters[0].run(n_rounds - done)
            return
        # All workers must train the same booster at the same time.
        one_by_one = self.boosters[0].workers.share_rows
        threads = 1 if one_by_one else min(n_threads, len(self.boosters))
        for booster in self.boosters:
            booster.n_threads = max(1, n_threads // threads)
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
                last = self.deciding_losses[-1:]
                if report is not None and report(done, last[0] if len(last) else np.nan):
                    break


def _run_to(booster: Booster, n_rounds: int) -> None:
    if n_rounds > booster.n_rounds:
        booster.run(n_rounds - booster.n_rounds)


def _mean_losses(losses: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Average the losses of boosters over the rounds that all of them have."""
    n_rounds = min(len(one) for one in losses)
    return np.asarray(np.mean([one[:n_rounds] for one in losses], axis=0))
