"""The fit that all boosters share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_consistent_length

from spinney import _core
from spinney.boosting._bins import make_bins
from spinney.boosting._boosted_model import BoostedModel
from spinney.boosting._booster import Trial, best_round
from spinney.boosting._fit_plan import (
    Continuation,
    FitInput,
    FitPlan,
    Fold,
    TrainingData,
    drop_zero_weights,
)
from spinney.boosting._fit_steps import find_baselines, make_trial, score_rounds, train_trial
from spinney.boosting._loss import Loss
from spinney.boosting._out_of_fold import predict_eval_set, predict_folds
from spinney.boosting._settings import Settings, resolve_settings
from spinney.boosting._upgrade import upgrade_booster
from spinney.boosting._validation_split import split_rows
from spinney.conformal.mixins import HeldOut
from spinney.data.sample_weights import scale_extreme
from spinney.data.sklearn_versions import check_sample_weight
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.data.warm_start import check_same_classes, check_same_columns, check_same_outputs
from spinney.distributed.agreement import agree_on_columns, narrow_targets, read_own_rows
from spinney.distributed.workers import LOCAL, NO_CHECKPOINTS, Checkpoints, Workers
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.forest_store import ForestStore
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs

__all__ = ["BaseBoosting"]

_MAX_BINS = 255
_MOST_ROWS = 2**30
_AUTO = StrOptions({"auto"})


class BaseBoosting(BoostedModel):
    """Base class of the boosters; not to be used directly."""

    categories_: list[Any]
    _continuation: Continuation

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
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The training rows. Missing values and categorical columns need no preparation.
        y : array-like of shape (n_rows,), or (n_rows, n_outputs) for a regressor
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Integers count as repeated rows; see the Notes of the class.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Validation rows for early stopping, instead of rows of X.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes), default=None
            Raw scores before the first round, instead of a constant. They are not part of the
            model: the caller adds those of new rows to the raw scores.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows: all rows of a group are training rows, or all are validation rows.
        time : array-like of shape (n_rows,), default=None
            Times of the rows: the latest rows are the validation rows.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        given = FitInput(
            X,
            y,
            sample_weight=sample_weight,
            eval_set=eval_set,
            init_score=init_score,
            groups=groups,
            time=time,
        )
        with all_or_nothing(self):
            return self._fit(drop_zero_weights(given))

    def _fit(
        self,
        given: FitInput,
        workers: Workers = LOCAL,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Any:
        """Fit the model to rows of positive weight, together with the other workers."""
        before = self._model_to_continue()
        if before is None:
            self.train_score_ = self.validation_score_ = np.empty(0)
        data = self._read(given, before, workers)
        plan = self._plan(data, before, checkpoints)
        # Baselines need a copy of the targets; its memory is free again before bins are created.
        baselines = find_baselines(self, plan)
        self._model = self._model_without_rounds(plan, baselines)
        self._continuation = Continuation(plan.seed, plan.loss)
        if workers.share_rows and not given.group_starts and not self._has_custom_loss():
            plan = replace(plan, data=replace(data, targets=narrow_targets(data.targets)))
        del data, given
        best = self._train(plan, baselines)
        self._set_results(best, plan)
        # init_score is not part of the model, and a continued fit may have trained on any row.
        self._held_out: HeldOut | None = None
        if plan.stops and before is None and plan.data.given.init_score is None:
            self._held_out = self._predict_held_out(best, plan)
        return self

    def set_fitted_model(self, model: BoostedTrees) -> None:
        """Turn this estimator into a fitted one with a model from another library.

        The losses of its rounds are unknown: `train_score_` is NaN.

        Parameters
        ----------
        model : BoostedTrees
            The model. Attributes for its classes and columns must have been set before.
        """
        targets = np.zeros((1, model.n_targets)) if model.n_targets > 1 else np.zeros(1)
        loss = replace(self._make_loss(targets, None, LOCAL), n_scores=model.n_scores)
        if model.link == "softmax":
            loss = replace(loss, name="softmax")
        self._model, self._continuation = model, Continuation(0, loss)
        self.train_score_ = np.full(model.n_rounds, np.nan)
        self.validation_score_ = np.empty(0)
        self.growth_ = "best_first"

    def replace_model(self, model: BoostedTrees) -> None:
        """Replace the fitted model, and drop stored scores of training rows."""
        super().replace_model(model)
        self._continuation = replace(self._continuation, last_scores=None)

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        return upgrade_booster(state)

    # ------------------------------------------------------------------ steps of fit

    def _model_to_continue(self) -> BoostedTrees | None:
        """Return the model that this fit adds rounds to, or None."""
        return self._model if self.warm_start and "_model" in vars(self) else None

    def _read(self, given: FitInput, before: BoostedTrees | None, workers: Workers) -> TrainingData:
        """Read columns, targets and weights; compare them with a continued model."""
        known_classes = vars(self).get("classes_")
        table, schema = self._read_training_table(given.X, given.y, workers)
        n_rows = table.n_rows
        n_rows_of_all = workers.totals.count(n_rows)
        if n_rows_of_all >= _MOST_ROWS:
            raise ValueError(f"X: expected fewer than 2**30 rows, got {n_rows_of_all}")
        if before is not None:
            check_same_columns(before.schema, schema)
        self.categories_ = list(schema.categories)
        y = given.y() if callable(given.y) else given.y
        targets = self._encode_targets(y, given.zero_weight_labels, workers)
        check_consistent_length(np.empty((n_rows, 0)), targets)
        if before is not None and is_classifier(self):
            check_same_classes(known_classes, self.classes_)
        elif before is not None:
            check_same_outputs(before.n_targets, 1 if targets.ndim == 1 else targets.shape[1])
        weights = self._row_weights(given.sample_weight, targets, n_rows, workers)
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        return TrainingData(given, table, schema, targets, weights, n_rows_of_all, workers)

    def _plan(
        self, data: TrainingData, before: BoostedTrees | None, checkpoints: Checkpoints
    ) -> FitPlan:
        """Determine loss, settings, number of rounds, folds and seed."""
        continued = None if before is None else self._continuation
        if continued is not None:
            seed = continued.seed
        elif data.workers.seed is not None:
            seed = data.workers.seed
        else:
            seed = self._draw_seed(check_random_state(self.random_state))
        candidates = self._resolve_settings(data)
        n_rounds_before = 0 if before is None else before.n_rounds
        n_more = candidates[0].n_estimators - n_rounds_before
        if n_more < 0:
            parameter, attribute = self._round_names
            raise ValueError(
                f"{parameter}={candidates[0].n_estimators} must be larger than or equal to "
                f"{attribute}={n_rounds_before} when warm_start==True"
            )
        stops = self._stops_early(data)
        folds = self._split(data, candidates[0].n_folds, seed) if stops else [Fold()]
        self._require_positive_weight(data, folds)
        if continued is None:
            loss = self._make_loss(data.targets, data.scaled_weights()[0], data.workers)
        else:
            loss = continued.loss
        return FitPlan(
            data=data,
            before=before,
            loss=loss,
            candidates=candidates,
            n_more=n_more,
            stops=stops,
            folds=folds,
            seed=seed,
            n_threads=effective_n_jobs(self.n_jobs),
            checkpoints=checkpoints,
            last_scores=None if continued is None else continued.last_scores,
        )

    def _resolve_settings(self, data: TrainingData) -> list[Settings]:
        """Return settings without "auto"; the validation rows decide between several ones."""
        totals = data.workers.totals
        n_rows: Any = data.n_rows_of_all
        if data.weights is not None:
            is_integer = (data.weights == np.floor(data.weights)) & (data.weights < 2**31)
            if not totals.any(not is_integer.all()):
                n_rows = totals.count(data.weights.sum())
        n_scores = 1 if data.targets.ndim == 1 else data.targets.shape[1]
        if is_classifier(self) and self.n_classes_ > 2:
            n_scores = self.n_classes_
        if self.warm_start and self.n_folds not in (1, "auto"):
            raise ValueError(
                f"n_folds must be 1 or 'auto' with warm_start=True; got {self.n_folds}"
            )
        # With constraints, oblivious trees are slow: each threshold is evaluated for each node.
        unconstrained = self.monotonic_cst is None and self.l1_regularization == 0
        return resolve_settings(
            self,
            self._requested_rounds(),
            n_rows=n_rows,
            n_scores=n_scores,
            n_columns=self.n_features_in_,
            oblivious=data.targets.ndim == 1 and self.max_bins is not None and unconstrained,
        )

    def _split(self, data: TrainingData, n_folds: int, seed: int) -> list[Fold]:
        """Split the rows into training and validation rows of each booster."""
        given = data.given
        if given.eval_set is not None or self.validation_fraction is None:
            return [Fold()]
        return split_rows(
            data.row_numbers(),
            n_folds=n_folds,
            fraction=self.validation_fraction,
            classes=data.targets if is_classifier(self) else None,
            groups=given.groups,
            time=given.time,
            seed=seed,
            totals=data.workers.totals,
            as_sklearn=self._splits_as_sklearn and not data.workers.share_rows,
        )

    def _require_positive_weight(self, data: TrainingData, folds: list[Fold]) -> None:
        if data.weights is None:
            return
        for fold in folds:
            rows = slice(None) if fold.train_rows is None else fold.train_rows
            if not data.workers.totals.any((data.weights[rows] > 0).any()):
                raise ValueError("sample_weight leaves no row of positive weight")

    def _model_without_rounds(self, plan: FitPlan, baselines: list[Any]) -> BoostedTrees:
        """Return the model before the first round of this fit."""
        if plan.before is not None:
            return plan.before
        return BoostedTrees(
            link=self._link(plan.loss),
            classes=getattr(self, "classes_", None),
            levels=plan.loss.levels,
            n_targets=plan.loss.n_targets,
            store=self._new_store(plan),
            schema=plan.data.schema,
            baseline=np.mean(baselines, axis=0),
            n_rounds=0,
            n_boosters=len(plan.folds),
        )

    def _train(self, plan: FitPlan, baselines: list[Any]) -> Trial:
        """Train the boosters of all candidates; return the trial with the smallest loss."""
        hook = self._shared_hook(progress_hook(self, scored=True), plan.data.workers)
        targets = self._targets_of_statistics(plan.data.targets)
        bins = make_bins(plan, plan.candidates[0].max_bins, self.max_set_categories, targets)
        trials = []
        for number in range(len(plan.candidates)):
            trial = make_trial(self, plan, number, bins, baselines)
            scorer = self._find_scorer() if plan.stops else None
            if scorer is not None:
                score_rounds(self, scorer, plan, trial.boosters)
            trials.append(train_trial(trial, plan, number, hook))
        return min(trials, key=lambda trial: trial.loss)

    def _shared_hook(self, hook: Any, workers: Workers) -> Any:
        """Return a hook that stops the fit at all workers if one of their hooks does."""
        if not workers.share_rows or not workers.totals.any(hook is not None):
            return hook

        def stops(*state: Any) -> bool:
            return workers.totals.any(hook is not None and bool(hook(*state)))

        return stops

    def _set_results(self, trial: Trial, plan: FitPlan) -> None:
        """Set the model and the scores of each round from the best trial."""
        boosters = trial.boosters
        n_rounds, end = trial.best()
        self.train_score_ = trial.train_losses[:end]
        self.validation_score_ = trial.validation_losses[:end]
        if boosters[0].score is not None:  # boosters record negative scores
            if boosters[0].validation is None:
                self.train_score_ = -self.train_score_
            else:
                self.validation_score_ = -self.validation_score_
        self.growth_ = trial.settings.growth
        trees_per_round = self._model.trees_per_round
        if len(boosters) == 1:
            store = boosters[0].store
            store.core.truncate(n_rounds * trees_per_round)
        else:
            store = self._new_store(plan)
            cores = [booster.store.core for booster in boosters]
            _core.append_mean(cores, n_rounds, trees_per_round, store.core)
        self._model = replace(self._model, store=store, n_rounds=n_rounds)
        last = boosters[0]
        if self.warm_start and last.bins.statistics and last.n_rounds == n_rounds:
            # The statistics of training rows differ from those of new rows, so the trees cannot
            # reproduce the scores of the training rows.
            scores = (last.fingerprint(), last.scores.copy())
            self._continuation = replace(self._continuation, last_scores=scores)

    def _predict_held_out(self, trial: Trial, plan: FitPlan) -> HeldOut | None:
        """Return out-of-fold predictions of the validation rows of all workers."""
        if not self._supports_conformal():
            return None
        data = plan.data
        if data.given.eval_set is not None:
            X, y, weights, _ = self._eval_set_parts(data.given.eval_set)
            truth = np.asarray(self._encode_other_targets(y, data.workers), dtype=np.float64)
            found = predict_eval_set(self, X, truth, weights, data.workers)
            weights = None if found.weights is None else scale_extreme(found.weights)[0]
            held = self._as_held_out("rows of eval_set", found.truth, found.raw, weights)
            return self._add_categories(held, None)
        if trial.boosters[0].fold.validation_rows is None:
            return None
        weights = None
        if data.given.sample_weight is not None:  # a single number is the weight of all rows
            given = np.asarray(data.given.sample_weight, dtype=float)
            weights = np.broadcast_to(given, data.n_rows)
        found = predict_folds(self._model, trial.boosters, data, weights, plan.n_threads)
        several = len(trial.boosters) > 1
        source = "rows of early stopping's folds" if several else "validation rows"
        weights = None if found.weights is None else scale_extreme(found.weights)[0]
        held = self._as_held_out(source, found.truth, found.raw, weights)
        return self._add_categories(replace(held, rows=found.numbers), found.table)

    # ------------------------------------------------------------------ targets and loss

    @abstractmethod
    def _encode_targets(self, y: Any, labels: Any, workers: Workers) -> NDArray[np.float64]:
        """Return targets as numbers; `labels` are those of dropped rows."""

    @abstractmethod
    def _make_loss(self, targets: Any, weights: Any, workers: Workers) -> Loss:
        """Return the loss."""

    @abstractmethod
    def _link(self, loss: Loss) -> str:
        """Return the name of the link from raw scores to predictions; see `BoostedTrees`."""

    @abstractmethod
    def _find_baseline(
        self, targets: Any, weights: Any, loss: Loss, workers: Workers
    ) -> NDArray[np.float64]:
        """Return the raw scores of the best constant model."""

    def _encode_other_targets(self, y: Any, workers: Workers) -> Any:
        """Return targets of other rows than the training rows as numbers."""
        return self._encode_targets(y, None, workers)

    def _targets_of_statistics(self, targets: Any) -> Any:
        """Return the columns that target statistics average, (n_rows, n_targets)."""
        return targets if targets.ndim == 2 else targets[:, np.newaxis]

    def _has_custom_loss(self) -> bool:
        return callable(getattr(self, "loss", None))

    # ------------------------------------------------------------------ hooks for subclasses

    _splits_as_sklearn = False  # whether early stopping draws the validation rows of scikit-learn
    _round_names = ("n_estimators", "n_estimators_")  # parameter and attribute of the rounds
    scoring: Any = None

    def _requested_rounds(self) -> Any:
        return self.n_estimators

    def _draw_seed(self, stream: Any) -> int:
        return int(stream.randint(np.iinfo(np.int32).max))

    def _read_training_table(self, X: Any, y: Any, workers: Workers) -> tuple[Any, Schema]:
        if workers.share_rows:
            return agree_on_columns(self, X, workers.totals, self.categorical_features)
        return fit_table(self, X, y, categorical_features=self.categorical_features)

    def _read_other_table(self, X: Any, schema: Schema, workers: Workers) -> Table:
        read = read_own_rows if workers.share_rows else read_table
        return read(self, X, schema)

    def _eval_set_parts(self, eval_set: Any) -> tuple[Any, Any, Any, list[int]]:
        """Return rows, targets and weights of eval_set, and where its groups start."""
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set: expected a tuple (X, y) or (X, y, sample_weight)")
        return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None, []

    def _row_weights(self, sample_weight: Any, targets: Any, n_rows: int, workers: Workers) -> Any:
        """Return the checked weights of the rows, or None."""
        if sample_weight is None:
            return None
        if n_rows == 0:  # a worker may have no rows
            return np.empty(0)
        return check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )

    def _stops_early(self, data: TrainingData) -> bool:
        has_eval_set = data.given.eval_set is not None
        if self.early_stopping == "auto":
            return has_eval_set or (
                isinstance(self._requested_rounds(), str) and data.n_rows_of_all >= 50
            )
        return bool(self.early_stopping)

    def _find_best(self, settings: Settings, losses: Any, n_before: int) -> tuple[int, int | None]:
        """Return the best round, and the round at which training stops or None."""
        return best_round(losses, int(settings.n_iter_no_change), self.tol)

    def _find_scorer(self) -> Any:
        """Return the scorer that decides when training stops, or None for the loss."""
        return None if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def _supports_conformal(self) -> bool:
        """Whether predictions for validation rows calibrate intervals or prediction sets."""
        return False

    def _as_held_out(self, source: str, truth: Any, raw: Any, weights: Any) -> HeldOut:
        """Return predictions from raw scores of held-out rows."""
        raise NotImplementedError

    def _add_categories(self, held: HeldOut, table: Table | None) -> HeldOut:
        """Return held-out rows with the data that depend on their categories."""
        return held

    def _reason_without_rows(self) -> str:
        return " (early_stopping=True holds rows out)"

    def _new_store(self, plan: FitPlan) -> ForestStore:
        n_values = plan.loss.n_scores if plan.loss.n_targets > 1 else 1
        n_categories = plan.data.schema.n_categories
        return ForestStore("squared_error", [], n_values, True, n_categories)
