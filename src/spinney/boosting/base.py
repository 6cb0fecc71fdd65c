"""What all boosters share: bins, rounds, early stopping, raw scores."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import (
    _check_monotonic_cst,
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
)

from spinney import _core
from spinney.boosting._boosted_model import BoostedModel
from spinney.boosting._booster import Bins, Booster, Trial, best_round, statistics_of
from spinney.boosting._interaction_sets import interaction_sets
from spinney.boosting._out_of_fold import predict_eval_set, predict_folds
from spinney.boosting._settings import Settings, settle
from spinney.boosting._validation_split import split_rows
from spinney.conformal.mixins import HeldOut
from spinney.data.core_table import core_table
from spinney.data.sample_weights import scale_extreme
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.data.warm_start import check_same_classes, check_same_columns, check_same_outputs
from spinney.distributed.partitioned_rows import PartedTable
from spinney.distributed.shard import Shard, agree_on_columns, narrow_targets, read_part
from spinney.distributed.totals import RowNumbers, Totals
from spinney.models.forest_store import ForestStore
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs

__all__ = ["BaseBoosting"]

_MAX_BINS = 255
_AUTO = StrOptions({"auto"})
_LARGEST_PENALTY = 1e100  # beside weights of about 1: no split, and leaves of zero


class BaseBoosting(BoostedModel):
    """Base class of the boosters; not to be used directly."""

    categories_: list[Any]
    _n_before: int  # rounds of the fit that this one continues
    _seed: int
    _last_scores: tuple[bytes, NDArray[np.float64]] | None

    _parameter_constraints: dict[str, Any] = {
        "learning_rate": [Interval(Real, 0.0, None, closed="neither"), _AUTO],
        "n_estimators": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "growth": [StrOptions({"auto", "best_first", "level_wise", "oblivious"})],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), _AUTO, None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "min_hessian_leaf": [Interval(Real, 0.0, None, closed="left")],
        "min_split_gain": [Interval(Real, 0.0, None, closed="left")],
        "l2_regularization": [Interval(Real, 0.0, None, closed="left"), _AUTO],
        "l1_regularization": [Interval(Real, 0.0, None, closed="left")],
        "subsample": [Interval(Real, 0.0, 1.0, closed="right"), _AUTO],
        "sampling": [StrOptions({"uniform", "gradient"})],
        "max_features": [Interval(Real, 0.0, 1.0, closed="right"), _AUTO],
        "max_features_tree": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_features_level": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_bins": [Interval(Integral, 2, _MAX_BINS, closed="both"), None],
        "max_set_categories": [Interval(Integral, 1, None, closed="left"), None],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [
            list,
            tuple,
            StrOptions({"pairwise", "no_interactions"}),
            None,
        ],
        "early_stopping": [StrOptions({"auto"}), "boolean"],
        "validation_fraction": [
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "n_folds": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "callbacks": [None, callable, "array-like"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        init_score: Any = None,
        groups: Any = None,
        time: Any = None,
    ) -> Any:
        """Boost.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. Missing values and columns of categories need no preparation.
        y : array-like of shape (n_rows,), or (n_rows, n_outputs) for a regressor
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Whole numbers are repeated rows; see the Notes of the class.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Rows to watch instead of a part of X: early stopping looks at them.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes), default=None
            Raw scores to start from instead of a constant. They are not part of the model: add
            those of new rows to `decision_function` or the raw prediction yourself.
        groups : array-like of shape (n_rows,), default=None
            Rows of a group are not divided between those to learn from and those to watch.
        time : array-like of shape (n_rows,), default=None
            The latest rows are watched, and all that is learned from lies before them.

        Returns
        -------
        estimator
            Itself.
        """
        with all_or_nothing(self):
            labels = None
            if sample_weight is not None:
                labels, X, y, sample_weight, init_score, groups, time = _without_weightless(
                    X, y, sample_weight, init_score, groups, time
                )
            return self._fit(X, y, sample_weight, eval_set, init_score, groups, time, labels)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        init_score: Any,
        groups: Any,
        time: Any,
        labels: Any = None,
    ) -> Any:
        """Fit to rows of positive weight; labels: the targets of the others."""
        n_threads = effective_n_jobs(self.n_jobs)
        goes_on = self.warm_start and "_store" in vars(self)
        self._n_before = self._n_rounds if goes_on else 0
        self.__dict__.pop("_cover", None)  # set by an importer; a new fit replaces it
        table, schema = self._learn_table(X, y)
        n_rows = table.n_rows
        n_all = self._totals.count(n_rows)
        if n_all >= 2**30:
            raise ValueError(f"X: expected fewer than 2**30 rows, got {n_all}")
        if goes_on:
            check_same_columns(self._schema, schema)
        self._schema = schema
        self.categories_ = list(schema.categories)
        known = vars(self).get("classes_")
        targets = self._encode_targets(y() if callable(y) else y, labels)
        check_consistent_length(np.empty((n_rows, 0)), targets)
        if goes_on and is_classifier(self):
            check_same_classes(known, self.classes_)
        elif goes_on:
            check_same_outputs(self._n_targets, 1 if targets.ndim == 1 else targets.shape[1])
        weights = self._weights(sample_weight, targets, n_rows)
        if not goes_on:
            self._seed = self._draw_seed(check_random_state(self.random_state))
            self._n_rounds = 0
            self._n_boosters = 1
            self.train_score_ = np.empty(0)
            self.validation_score_ = np.empty(0)
        candidates = self._settle(targets, weights)
        n_more = candidates[0].n_estimators - self._n_rounds
        if n_more < 0:
            wanted, so_far = self._names_of_rounds
            raise ValueError(
                f"{wanted}={candidates[0].n_estimators} must be larger than or equal to "
                f"{so_far}={self._n_rounds} when warm_start==True"
            )
        stops = self._stops_early(n_all, eval_set)
        parts: list[tuple[Any, Any]] = [(None, None)]
        if stops and eval_set is None and self.validation_fraction is not None:
            parts = split_rows(
                n_rows,
                candidates[0].n_folds,
                self.validation_fraction,
                targets if is_classifier(self) else None,
                groups,
                time,
                self._seed,
                None if self._shard is None else self._row_numbers(n_rows),
                self._totals,
                self._splits_as_sklearn,
            )
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        if weights is not None and any(
            not self._totals.any((weights[slice(None) if learned is None else learned] > 0).any())
            for learned, _ in parts
        ):
            raise ValueError("sample_weight leaves no row of positive weight")
        if not goes_on:
            self._prepare_loss(targets, self._scale_weights(weights)[0])
            self._n_boosters = len(parts)
        # Before there are codes: finding them takes memory that is given back then.
        baselines = self._find_baselines(parts, targets, weights, init_score)
        if self._shard is not None and not self._group_starts and not self._has_own_loss():
            targets = narrow_targets(targets)
        max_bins = candidates[0].max_bins
        bins = self._make_bins(table, parts, targets, weights, max_bins, n_threads)
        trials = []
        hook = self._agreed(progress_hook(self, scored=True))
        for number, settings in enumerate(candidates):
            boosters = self._make_boosters(
                table,
                parts,
                bins,
                baselines,
                targets,
                weights,
                init_score,
                eval_set,
                settings,
                n_threads,
                number * len(parts),
            )
            if stops:
                self._appoint_judges(boosters, X, y, sample_weight, eval_set)
            trial = Trial(settings, boosters, partial(self._find_best, settings), stops)
            report = None
            if hook is not None:
                report = partial(_report, hook, number * n_more, len(candidates) * n_more)
            if self._shard is not None:
                trial.first_round = 0  # the rounds of a fit that was broken off are its own
            trial.run(n_more, n_threads, report)
            trials.append(trial)
        best = min(trials, key=lambda trial: trial.loss)
        self._take(best)
        # Raw scores to start from are no part of the model, and rows that an earlier fit saw are
        # not held out.
        self._held_out: HeldOut | None = None
        if stops and not goes_on and init_score is None:
            self._held_out = self._hold_out(best, table, targets, sample_weight, eval_set)
        return self

    def _settle(self, targets: Any, weights: Any) -> list[Settings]:
        n_rows = self._totals.count(len(targets))
        if weights is not None:
            counts = (weights == np.floor(weights)) & (weights < 2**31)
            if not self._totals.any(not counts.all()):
                n_rows = self._totals.count(weights.sum())
        n_scores = 1 if targets.ndim == 1 else targets.shape[1]
        if is_classifier(self) and self.n_classes_ > 2:
            n_scores = self.n_classes_
        if self.warm_start and self.n_folds not in (1, "auto"):
            raise ValueError("warm_start goes on with one model; expected n_folds=1")
        # Constraints cost oblivious trees much: every cut is looked at node by node.
        free = self.monotonic_cst is None and self.l1_regularization == 0
        oblivious = targets.ndim == 1 and self.max_bins is not None and free
        return settle(
            self, self._n_wanted(), n_rows, n_scores, oblivious, n_columns=self.n_features_in_
        )

    # Set while several workers fit one model, each with a part of the rows.
    _shard: Shard | None = None
    _totals: Totals = Totals()
    _splits_as_sklearn = False  # whether early stopping watches the rows that scikit-learn draws

    def _agreed(self, hook: Any) -> Any:
        """Let all workers end where the hook of one of them says so."""
        if self._shard is None or not self._totals.any(hook is not None):
            return hook

        def ask(*state: Any) -> bool:
            return self._totals.any(hook is not None and bool(hook(*state)))

        return ask

    def _take(self, trial: Trial) -> None:
        """Make the model what a trial came to."""
        boosters = trial.boosters
        self._n_rounds, end = trial.best()
        self.train_score_, self.validation_score_ = trial.train[:end], trial.watched[:end]
        if boosters[0].judge is not None:  # scores, of which more is better
            if boosters[0].validation is None:
                self.train_score_ = -self.train_score_
            else:
                self.validation_score_ = -self.validation_score_
        self.growth_ = trial.settings.growth
        if len(boosters) == 1:
            self._store = boosters[0].store
            self._store.core.truncate(self._n_rounds * self._trees_per_round)
        else:
            self._store = self._new_store()
            cores = [booster.store.core for booster in boosters]
            _core.append_mean(cores, self._n_rounds, self._trees_per_round, self._store.core)
        if self.warm_start:
            self._keep_scores(boosters[0])

    def _hold_out(
        self,
        trial: Trial,
        table: Table | PartedTable,
        targets: Any,
        sample_weight: Any,
        eval_set: Any,
    ) -> HeldOut | None:
        """Return the predictions of each booster for its validation rows, those of all workers."""
        if not self._knows_its_errors():
            return None
        if eval_set is not None:
            X, y, weights, _ = self._eval_parts(eval_set)
            truth = np.asarray(self._read_targets(y), dtype=np.float64)
            of_set = predict_eval_set(self, X, truth, weights, self._totals)
            weights = None if of_set.weights is None else scale_extreme(of_set.weights)[0]
            held = self._as_held_out("rows of eval_set", of_set.truth, of_set.raw, weights)
            return self._scale_groups(held, None)
        if trial.boosters[0].watched_rows is None:
            return None
        weights = None
        if sample_weight is not None:  # one number is the weight of all rows
            weights = np.broadcast_to(np.asarray(sample_weight, dtype=float), table.n_rows)
        found = predict_folds(self, trial.boosters, table, targets, weights)
        many = len(trial.boosters) > 1
        source = "rows of early stopping's folds" if many else "rows that early stopping watched"
        weights = None if found.weights is None else scale_extreme(found.weights)[0]
        held = self._as_held_out(source, found.truth, found.raw, weights)
        return self._scale_groups(replace(held, rows=found.numbers), found.table)

    def _row_numbers(self, n_rows: int) -> NDArray[np.uint64]:
        """Return the numbers of the rows of fit in the whole table."""
        return (RowNumbers() if self._shard is None else self._shard.numbers).of(n_rows)

    def _scale_groups(self, held: HeldOut, table: Table | None) -> HeldOut:
        """Learn how large errors are for each category, from the table of these rows."""
        return held

    def _knows_its_errors(self) -> bool:
        """Whether predictions for validation rows tell how large errors are."""
        return False

    def _as_held_out(self, source: str, truth: Any, raw: Any, weights: Any) -> HeldOut:
        """Make predictions of raw scores."""
        raise NotImplementedError

    def _why_none(self) -> str:
        return " (early stopping holds some out: early_stopping=True)"

    def _keep_scores(self, booster: Booster) -> None:
        """Remember where a continued fit has to go on.

        Rows of fit saw other statistics of their categories than new rows do, so their scores are
        not what the trees say about them.
        """
        self._last_scores = None
        if booster.bins.statistics and booster.options.first_round == self._n_rounds:
            self._last_scores = (booster.fingerprint(), booster.scores.copy())

    @property
    def _trees_per_round(self) -> int:
        return 1 if self._n_targets > 1 else self._n_scores

    _names_of_rounds = ("n_estimators", "n_estimators_")

    def _n_wanted(self) -> Any:
        return self.n_estimators

    def _draw_seed(self, stream: Any) -> int:
        if self._shard is not None:
            return self._shard.seed
        return int(stream.randint(np.iinfo(np.int32).max))

    def _learn_table(self, X: Any, y: Any) -> tuple[Table, Schema]:
        if self._shard is not None:
            return agree_on_columns(self, X, self._totals, self.categorical_features)
        return fit_table(self, X, y, categorical_features=self.categorical_features)

    def _find_best(self, settings: Settings, followed: Any) -> tuple[int, int | None]:
        return best_round(followed, int(settings.n_iter_no_change), self.tol)

    scoring: Any = None

    def _find_scorer(self) -> Any:
        """Find the function that judges instead of the loss, or None."""
        return None if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def _appoint_judges(
        self, boosters: list[Booster], X: Any, y: Any, sample_weight: Any, eval_set: Any
    ) -> None:
        """Let `scoring` decide when to stop: each booster is judged by the rows that it watches."""
        scorer = self._find_scorer()
        if scorer is None:
            return
        if eval_set is not None:
            X, y, sample_weight, _ = self._eval_parts(eval_set)
        for booster in boosters:
            seen = [X, y, sample_weight]
            if booster.watched_rows is not None:
                X, y = indexable(X, y)
                seen = [X, y, sample_weight]
                seen = [v if v is None else _safe_indexing(v, booster.watched_rows) for v in seen]
            booster.judge = self._judge(scorer, booster, *seen)
            # What continues an earlier fit goes on in losses.
            if booster.validation is None:
                booster.train = -booster.train
            else:
                booster.watched = -booster.watched

    def _judge(self, scorer: Any, booster: Booster, X: Any, y: Any, sample_weight: Any) -> Any:
        """Make the function that scores what a booster says now about its rows."""
        stage = copy.copy(self)  # a fitted model, as far as a scorer can tell
        stage._store, stage._n_rounds = booster.store, 1
        weighted = {}
        if sample_weight is not None:
            weighted = {"sample_weight": scale_extreme(np.asarray(sample_weight, dtype=float))[0]}

        def judge() -> float:
            stage.__dict__["_raw"] = lambda X: booster.watched_scores()
            return -float(scorer(stage, X, y, **weighted))

        return judge

    def _new_store(self) -> ForestStore:
        return ForestStore(
            "squared_error",
            [],
            self._n_scores if self._n_targets > 1 else 1,
            True,
            [0 if v is None else len(v) for v in self.categories_],
        )

    def _make_bins(
        self,
        table: Table,
        parts: list[Any],
        targets: Any,
        weights: Any,
        max_bins: int | None,
        n_threads: int,
    ) -> list[Bins]:
        """Code the rows, for each part that learns from other ones; most often that is the same."""
        made: list[Bins] = []
        if self._shard is not None:
            self._refuse_statistics()
        for number, (learned, _) in enumerate(parts):
            statistics = []
            if self._shard is None:
                statistics = statistics_of(
                    table,
                    self._schema,
                    self.max_set_categories,
                    self._averaged(targets),
                    self._scale_weights(weights, learned)[0],
                    learned,
                    self._seed + number,
                )
            if made and not statistics:
                made.append(made[0])
                continue
            # Folds share their bins; with one division rows to watch have no say in them.
            among = learned if len(parts) == 1 else None
            made.append(
                Bins(
                    table,
                    self._schema,
                    statistics,
                    max_bins,
                    n_threads,
                    among,
                    weights,
                    self._totals,
                )
            )
        return made

    def _refuse_statistics(self) -> None:
        most = self.max_set_categories
        for f, values in enumerate(self.categories_):
            if most is not None and values is not None and len(values) > most:
                raise ValueError(
                    f"max_set_categories={most}: expected None where several workers fit one "
                    f"model and a column has more categories, got {len(values)} in column {f}"
                )

    def _find_baselines(
        self, parts: list[Any], targets: Any, weights: Any, init_score: Any
    ) -> list[NDArray[np.float64]]:
        """Find the raw scores that each part begins with."""
        if self._n_rounds > 0:
            return [self._baseline] * len(parts)
        if init_score is not None:
            return [np.zeros(self._n_scores)] * len(parts)
        found = []
        for learned, _ in parts:
            rows = slice(None) if learned is None else learned
            own, _ = self._scale_weights(weights, learned)
            found.append(self._find_baseline(targets[rows], None if own is None else own[rows]))
        return found

    def _make_boosters(
        self,
        table: Table,
        parts: list[Any],
        bins: list[Bins],
        baselines: list[Any],
        targets: Any,
        weights: Any,
        init_score: Any,
        eval_set: Any,
        settings: Settings,
        n_threads: int,
        first: int,
    ) -> list[Booster]:
        boosters: list[Booster] = []
        goes_on = self._n_rounds > 0
        for_core = np.ascontiguousarray(targets.T).ravel()
        for number, (learned, watched) in enumerate(parts):
            scores = self._start_scores(table, baselines[number], init_score)
            own, exponent = self._scale_weights(weights, learned)
            validation = others = None
            if watched is not None:
                of_watched, _ = self._scale_weights(weights, watched)
                validation = _core.BoostValidation(
                    bins[number].matrix,
                    watched,
                    for_core,
                    of_watched,
                    scores,
                    self._group_starts,
                )
            elif eval_set is not None:
                validation, others = self._read_eval_set(eval_set, bins[number], baselines[number])
            booster = Booster(
                bins[number],
                learned,
                validation,
                for_core,
                own,
                scores,
                self._options(settings, bins[number], self._seed + number, n_threads, exponent),
                self._store if goes_on else self._new_store(),
                self._own_gradients(targets, scores),
            )
            booster.watched_rows, booster.other_scores = watched, others
            booster.baseline = baselines[number]
            booster.shard, booster.number = self._shard, first + number
            booster.train, booster.watched = self.train_score_, self.validation_score_
            if self._shard is not None and booster.number < len(self._shard.start):
                self._go_on(booster, table, eval_set)
            if goes_on and booster.bins.statistics and self._last_scores is not None:
                fingerprint, last = self._last_scores
                if fingerprint == booster.fingerprint():
                    scores[:] = last
            boosters.append(booster)
        self._baseline = np.mean(baselines, axis=0)
        return boosters

    def _go_on(self, booster: Booster, table: Table | PartedTable, eval_set: Any) -> None:
        """Take the trees of a fit that was broken off, and be where it was."""
        assert self._shard is not None
        booster.store.extend(self._shard.start[booster.number])
        tables: list[tuple[Any, Any]]
        if isinstance(table, PartedTable):
            readers = table.readers(self._schema)
            tables = [(read, booster.scores[:, place]) for read, place in readers]
        else:
            tables = [(core_table(table, self._schema), booster.scores)]
        if booster.other_scores is not None:
            watched = self._read_more(self._eval_parts(eval_set)[0])
            tables.append((core_table(watched, self._schema), booster.other_scores))
        n_rounds = len(booster.store) // self._trees_per_round
        booster.replay(n_rounds, tables, self._trees_per_round)
        booster.options.first_round = n_rounds

    # ------------------------------------------------------------------ what a loss needs

    _loss_name: str
    _loss_parameter: float
    _n_scores: int
    _levels: list[float] = []  # of several quantiles at once
    _n_targets: int = 1  # more than one: leaves have a weight for each
    _group_starts: list[int] = []  # of a ranking: where each group begins, then the number of rows

    @abstractmethod
    def _encode_targets(self, y: Any, labels: Any = None) -> NDArray[np.float64]:
        """Targets as numbers, (n_rows,); labels: those of rows of weight zero."""

    @abstractmethod
    def _prepare_loss(self, targets: Any, weights: Any) -> None:
        """Set `_loss_name`, `_loss_parameter` and `_n_scores`."""

    def _averaged(self, targets: Any) -> Any:
        """Give what statistics of categories are about, (n_rows, n_targets)."""
        return targets if targets.ndim == 2 else targets[:, np.newaxis]

    @abstractmethod
    def _find_baseline(self, targets: Any, weights: Any) -> NDArray[np.float64]:
        """Raw scores that a constant model would have."""

    def _has_own_loss(self) -> bool:
        return callable(getattr(self, "loss", None))

    def _own_gradients(self, targets: Any, scores: Any) -> Any:
        """Make the function that the core asks for derivatives of a loss of the user's, or None."""
        if not self._has_own_loss():
            return None
        loss: Any = self.loss  # type: ignore[attr-defined]
        if self._n_targets > 1:
            raise ValueError("loss: a function is for one output, but y has several")

        # scikit-learn's losses are callable, too, but that is not what tells derivatives.
        differentiate = getattr(loss, "gradient_hessian", loss)

        def derivatives() -> tuple[Any, Any]:
            told = differentiate(targets, scores[0])
            if not isinstance(told, tuple) or len(told) != 2:
                raise ValueError("loss: expected a function that returns (gradient, hessian)")
            gradient, hessian = (np.asarray(d, dtype=np.float64) for d in told)
            for name, values in (("gradient", gradient), ("hessian", hessian)):
                if values.shape != targets.shape:
                    raise ValueError(
                        f"loss: expected a {name} of shape {targets.shape}, got {values.shape}"
                    )
                if not np.isfinite(values).all():
                    raise ValueError(f"loss: its {name} contains NaN or infinity")
            if (hessian < 0).any():
                raise ValueError("loss: its hessian is negative somewhere")
            return np.ascontiguousarray(gradient), np.ascontiguousarray(hessian)

        return derivatives

    # ------------------------------------------------------------------ parts of fit

    def _weights(self, sample_weight: Any, targets: Any, n_rows: int) -> Any:
        if sample_weight is None:
            return None
        if n_rows == 0:  # of a worker that has no rows
            return np.empty(0)
        return _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )

    def _scale_weights(self, weights: Any, rows: Any = None) -> tuple[Any, int]:
        """Divide weights by a power of two if those of some rows are very large or small."""
        if weights is None:
            return None, 0
        own = weights if rows is None else weights[rows]
        return scale_extreme(weights, float(self._totals.largest(own.max(initial=0.0))[0]))

    def _stops_early(self, n_rows: int, eval_set: Any) -> bool:
        if self.early_stopping == "auto":
            open_ended = isinstance(self._n_wanted(), str) and n_rows >= 50
            return eval_set is not None or open_ended
        return bool(self.early_stopping)

    def _read_eval_set(self, eval_set: Any, bins: Bins, baseline: Any) -> Any:
        X, y, sample_weight, starts = self._eval_parts(eval_set)
        table = self._read_more(X)
        n_rows = table.n_rows
        targets = np.ascontiguousarray(self._read_targets(y), dtype=np.float64)
        if len(targets) != n_rows:
            raise ValueError(f"eval_set: X has {n_rows} rows, y has {len(targets)}")
        weights = None
        if sample_weight is not None and n_rows == 0:
            weights = np.empty(0)
        elif sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight,
                np.empty((n_rows, 0)),
                dtype=np.float64,
                ensure_non_negative=True,
            )
        weights, _ = self._scale_weights(weights)  # only their mean loss counts
        scores = self._start_scores(table, baseline, None)
        validation = _core.BoostValidation(
            bins.code(table),
            np.arange(n_rows, dtype=np.uint32),
            np.ascontiguousarray(targets.T).ravel(),
            weights,
            scores,
            starts,
        )
        return validation, scores

    def _read_more(self, X: Any) -> Table:
        read = read_table if self._shard is None else read_part
        return read(self, X, self._schema)

    def _eval_parts(self, eval_set: Any) -> tuple[Any, Any, Any, list[int]]:
        """Rows to watch, their targets, weights, and where groups begin."""
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set: expected (X, y) or (X, y, sample_weight)")
        return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None, []

    def _read_targets(self, y: Any) -> Any:
        """Targets of other rows than those of fit."""
        return self._encode_targets(y)

    def _start_scores(self, table: Table, baseline: Any, init_score: Any) -> Any:
        """Raw scores before the next round, (n_scores, n_rows)."""
        scores = np.empty((table.n_rows, self._n_scores))
        scores[:] = baseline
        if init_score is not None:
            given = np.asarray(init_score, dtype=np.float64).reshape(table.n_rows, -1)
            if given.shape != scores.shape:
                raise ValueError(
                    f"init_score: expected shape {scores.shape}, got {np.shape(init_score)}"
                )
            scores += given
        if self._n_rounds > 0:
            _core.add_rounds(
                self._store.core,
                core_table(table, self._schema),
                self._trees_per_round,
                0,
                self._n_rounds,
                effective_n_jobs(self.n_jobs),
                scores,
            )
        return np.ascontiguousarray(scores.T)

    def _options(
        self, settings: Settings, bins: Bins, seed: int, n_threads: int, weight_exponent: int
    ) -> Any:
        options = _core.BoostOptions()
        options.set_loss(self._loss_name, self._loss_parameter, self._n_scores)
        options.set_growth(settings.growth)
        options.groups = self._group_starts
        if self._shard is not None:
            options.stretches = self._shard.numbers.stretches
        options.learning_rate = float(settings.learning_rate)
        options.first_round = self._n_rounds
        options.subsample = float(settings.subsample)
        options.by_gradient = self.sampling == "gradient"
        options.levels = self._levels
        options.many_targets = self._n_targets > 1
        options.n_threads = n_threads
        limit = np.iinfo(np.int32).max
        leaves = settings.max_leaf_nodes
        options.max_leaves = limit if leaves is None else int(leaves)
        options.max_depth = limit if self.max_depth is None else int(self.max_depth)
        options.tree_columns = float(self.max_features_tree)
        options.level_columns = float(self.max_features_level)
        options.node_columns = float(settings.max_features)
        options.seed = seed
        # What sums of weighted derivatives are compared with is divided as the weights were.
        options.l2 = _scaled(settings.l2_regularization, weight_exponent)
        options.l1 = _scaled(self.l1_regularization, weight_exponent)
        options.min_gain = _scaled(self.min_split_gain, weight_exponent)
        options.min_hessian = _scaled(self.min_hessian_leaf, weight_exponent)
        options.min_rows = int(settings.min_samples_leaf)
        options.monotonic = bins.extend_signs(self._monotonic())
        options.interactions = bins.extend_sets(
            interaction_sets(self.interaction_cst, self.n_features_in_)
        )
        return options

    def _monotonic(self) -> list[int]:
        if self.monotonic_cst is None:
            return []
        signs = _check_monotonic_cst(self, self.monotonic_cst)
        if signs.ndim != 1:
            raise ValueError(f"monotonic_cst: expected one sign a column, got {signs.ndim} axes")
        if any(sign and self.categories_[f] is not None for f, sign in enumerate(signs)):
            raise ValueError("Categorical features cannot have monotonic constraints.")
        if self._n_targets > 1 and signs.any():
            raise ValueError("monotonic_cst: expected one output, got several")
        if is_classifier(self) and self._n_scores > 1 and signs.any():
            raise ValueError(
                "monotonic constraints are not supported for multiclass classification"
            )
        return [int(sign) for sign in signs] if signs.any() else []


def _scaled(number: Any, exponent: int) -> float:
    """Divide a number by 2^exponent."""
    if exponent == 0:
        return float(number)
    with np.errstate(over="ignore"):
        return min(float(np.ldexp(float(number), -exponent)), _LARGEST_PENALTY)


def _report(hook: Any, before: int, total: int, done: int, score: float) -> bool:
    return bool(hook(before + done, total, score))


def _without_weightless(X: Any, y: Any, sample_weight: Any, *others: Any) -> Any:
    """Drop rows of weight zero, which must not even change the bins; return their targets first."""
    weights = np.asarray(sample_weight)
    if weights.ndim != 1 or weights.dtype.kind not in "biuf" or not (weights == 0).any():
        return None, X, y, sample_weight, *others
    if weights.shape[0] != _num_samples(X) or not (weights > 0).any():
        return None, X, y, sample_weight, *others
    kept = np.flatnonzero(weights)
    X, y = indexable(X, y)
    rest = [None if other is None else np.asarray(other)[kept] for other in others]
    labels = _safe_indexing(y, np.flatnonzero(weights == 0))
    return labels, _safe_indexing(X, kept), _safe_indexing(y, kept), weights[kept], *rest
