"""What all boosters share: bins, rounds, early stopping, raw scores."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)

from spinney import _core
from spinney._progress import progress_hook
from spinney._table import Schema, fit_table, read_table
from spinney._threads import effective_n_jobs
from spinney.ensemble._forest import ForestStore, all_or_nothing, check_same_columns, read_for_core
from spinney.tree._base import core_table

__all__ = ["BaseBoosting"]

_MAX_BINS = 255


class BaseBoosting(BaseEstimator, metaclass=ABCMeta):
    """Base class of the boosters; not to be used directly."""

    n_features_in_: int
    categories_: list[Any]
    _schema: Schema
    _store: ForestStore
    _baseline: NDArray[np.float64]

    _parameter_constraints: dict[str, Any] = {
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "growth": [StrOptions({"best_first", "level_wise"})],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "min_hessian_leaf": [Interval(Real, 0.0, None, closed="left")],
        "min_split_gain": [Interval(Real, 0.0, None, closed="left")],
        "l2_regularization": [Interval(Real, 0.0, None, closed="left")],
        "l1_regularization": [Interval(Real, 0.0, None, closed="left")],
        "subsample": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_features": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_features_tree": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_features_level": [Interval(Real, 0.0, 1.0, closed="right")],
        "max_bins": [Interval(Integral, 2, _MAX_BINS, closed="both")],
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
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
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
    ) -> Any:
        """Boost.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. Missing values and columns of categories need no preparation.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Rows to watch instead of a part of X: early stopping looks at them.
        init_score : array-like of shape (n_rows,) or (n_rows, n_classes), default=None
            Raw scores to start from instead of a constant. They are not part of the model: add
            those of new rows to `decision_function` or the raw prediction yourself.

        Returns
        -------
        estimator
            Itself.
        """
        with all_or_nothing(self):
            if sample_weight is not None:
                X, y, sample_weight, init_score = _without_weightless(
                    X, y, sample_weight, init_score
                )
            return self._fit(X, y, sample_weight, eval_set, init_score)

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, init_score: Any) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        goes_on = self.warm_start and "_store" in vars(self)
        table, schema = fit_table(self, X, y, categorical_features=self.categorical_features)
        n_rows = table.n_rows
        if n_rows >= 2**30:
            raise ValueError(f"X: expected fewer than 2**30 rows, got {n_rows}")
        if goes_on:
            check_same_columns(self._schema, schema)
        self._schema = schema
        self.categories_ = list(schema.categories)
        targets = self._encode_targets(y)
        check_consistent_length(np.empty((n_rows, 0)), targets)
        weights = self._weights(sample_weight, targets, n_rows)
        if not goes_on:
            self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            self._n_rounds = 0
            self.train_score_ = np.empty(0)
            self.validation_score_ = np.empty(0)
        n_wanted = self._n_wanted()
        n_more = n_wanted - self._n_rounds
        if n_more < 0:
            raise ValueError(
                f"n_estimators={n_wanted} must be larger or equal to the "
                f"{self._n_rounds} rounds so far when warm_start==True"
            )
        stops = self._stops_early(n_rows, eval_set)
        learned, watched = None, None
        if stops and eval_set is None and self.validation_fraction is not None:
            learned, watched = self._part(n_rows, targets)
        rows = slice(None) if learned is None else learned
        if weights is not None and not weights[rows].sum() > 0:
            raise ValueError("sample_weight leaves no row of positive weight")
        if not goes_on:
            own = None if weights is None else weights[rows]
            self._prepare_loss(targets[rows], own)
            self._baseline = (
                np.zeros(self._n_scores)
                if init_score is not None
                else self._find_baseline(targets[rows], own)
            )
            self._store = ForestStore(
                *("squared_error", [], 1, True),
                [0 if v is None else len(v) for v in self.categories_],
            )
        core_rows = core_table(table, schema)
        matrix = _core.bin_table(core_rows, self.max_bins, n_threads)
        scores = self._start_scores(core_rows, n_rows, init_score)
        options = self._options(n_more, n_threads, stops)
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        validation = None
        if watched is not None:
            validation = _core.BoostValidation(matrix, watched, targets, weights, scores)
        elif eval_set is not None:
            validation = self._read_eval_set(eval_set, matrix, n_threads)
        self._n_rounds, self.train_score_, self.validation_score_ = _core.boost(
            matrix,
            learned,
            targets,
            weights,
            scores,
            validation,
            options,
            self._store.core,
            self.train_score_,
            self.validation_score_,
            self._own_gradients(targets, scores),
            progress_hook(self),
        )
        return self

    def _n_wanted(self) -> int:
        return int(self.n_estimators)

    # ------------------------------------------------------------------ what a loss needs

    _loss_name: str
    _loss_parameter: float
    _n_scores: int

    @abstractmethod
    def _encode_targets(self, y: Any) -> NDArray[np.float64]:
        """Targets as numbers, (n_rows,)."""

    @abstractmethod
    def _prepare_loss(self, targets: Any, weights: Any) -> None:
        """Set `_loss_name`, `_loss_parameter` and `_n_scores`."""

    @abstractmethod
    def _find_baseline(self, targets: Any, weights: Any) -> NDArray[np.float64]:
        """Raw scores that a constant model would have."""

    def _own_gradients(self, targets: Any, scores: Any) -> Any:
        """Make the function that the core asks for derivatives of a loss of the user's, or None."""
        loss = getattr(self, "loss", None)
        if not callable(loss):
            return None

        def derivatives() -> tuple[Any, Any]:
            told = loss(targets, scores[0])
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
        return _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )

    def _stops_early(self, n_rows: int, eval_set: Any) -> bool:
        if self.early_stopping == "auto":
            return eval_set is not None or n_rows > 10_000
        return bool(self.early_stopping)

    def _part(self, n_rows: int, targets: Any) -> tuple[Any, Any]:
        """Rows to learn from and rows to watch, both ascending."""
        stratify = targets if is_classifier(self) else None
        if stratify is not None and np.bincount(targets.astype(np.intp)).min() < 2:
            stratify = None
        learned, watched = train_test_split(
            np.arange(n_rows, dtype=np.uint32),
            test_size=self.validation_fraction,
            stratify=stratify,
            random_state=self._seed,
        )
        return np.sort(learned), np.sort(watched)

    def _read_eval_set(self, eval_set: Any, matrix: Any, n_threads: int) -> Any:
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set: expected (X, y) or (X, y, sample_weight)")
        rows = core_table(read_table(self, eval_set[0], self._schema), self._schema)
        targets = np.ascontiguousarray(self._read_targets(eval_set[1]), dtype=np.float64)
        if len(targets) != rows.n_rows:
            raise ValueError(f"eval_set: X has {rows.n_rows} rows, y has {len(targets)}")
        weights = None
        if len(eval_set) == 3 and eval_set[2] is not None:
            weights = _check_sample_weight(
                eval_set[2],
                np.empty((rows.n_rows, 0)),
                dtype=np.float64,
                ensure_non_negative=True,
            )
        return _core.BoostValidation(
            _core.bin_like(rows, matrix, n_threads),
            np.arange(rows.n_rows, dtype=np.uint32),
            targets,
            weights,
            self._start_scores(rows, rows.n_rows, None),
        )

    def _read_targets(self, y: Any) -> Any:
        """Targets of other rows than those of fit."""
        return self._encode_targets(y)

    def _start_scores(self, rows: Any, n_rows: int, init_score: Any) -> Any:
        """Raw scores before the next round, (n_scores, n_rows)."""
        scores = np.empty((n_rows, self._n_scores))
        scores[:] = self._baseline
        if init_score is not None:
            given = np.asarray(init_score, dtype=np.float64).reshape(n_rows, -1)
            if given.shape != scores.shape:
                raise ValueError(
                    f"init_score: expected shape {scores.shape}, got {np.shape(init_score)}"
                )
            scores += given
        if self._n_rounds > 0:
            _core.add_rounds(
                *(self._store.core, rows, self._n_scores, 0, self._n_rounds),
                *(effective_n_jobs(self.n_jobs), scores),
            )
        return np.ascontiguousarray(scores.T)

    def _options(self, n_more: int, n_threads: int, stops: bool) -> Any:
        options = _core.BoostOptions()
        options.set_loss(self._loss_name, self._loss_parameter, self._n_scores)
        options.set_growth(self.growth)
        options.learning_rate = float(self.learning_rate)
        options.n_rounds = int(n_more)
        options.first_round = self._n_rounds
        options.subsample = float(self.subsample)
        options.patience = int(self.n_iter_no_change) if stops else 0
        options.tolerance = float(self.tol)
        options.n_threads = n_threads
        limit = np.iinfo(np.int32).max
        options.max_leaves = limit if self.max_leaf_nodes is None else int(self.max_leaf_nodes)
        options.max_depth = limit if self.max_depth is None else int(self.max_depth)
        options.tree_columns = float(self.max_features_tree)
        options.level_columns = float(self.max_features_level)
        options.node_columns = float(self.max_features)
        options.seed = self._seed
        options.l2 = float(self.l2_regularization)
        options.l1 = float(self.l1_regularization)
        options.min_gain = float(self.min_split_gain)
        options.min_hessian = float(self.min_hessian_leaf)
        options.min_rows = int(self.min_samples_leaf)
        options.monotonic = self._monotonic()
        options.interactions = self._interactions()
        return options

    def _monotonic(self) -> list[int]:
        given = self.monotonic_cst
        if given is None:
            return []
        n = self.n_features_in_
        if isinstance(given, dict):
            names = getattr(self, "feature_names_in_", None)
            if names is None:
                raise ValueError("monotonic_cst: a dict names columns, but X has no names")
            unknown = set(given) - set(names)
            if unknown:
                raise ValueError(f"monotonic_cst: X has no column {sorted(unknown)[0]!r}")
            signs = np.array([given.get(name, 0) for name in names])
        else:
            signs = np.asarray(given)
        if signs.shape != (n,):
            raise ValueError(
                f"monotonic_cst has shape {signs.shape} but the input data X has {n} features."
            )
        if not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError("monotonic_cst must be an array-like of -1, 0 or 1.")
        if any(sign and self.categories_[f] is not None for f, sign in enumerate(signs)):
            raise ValueError("Categorical features cannot have monotonic constraints.")
        if is_classifier(self) and self._n_scores > 1 and signs.any():
            raise ValueError("monotonic constraints are not supported for multiclass targets.")
        return [int(sign) for sign in signs] if signs.any() else []

    def _interactions(self) -> list[list[int]]:
        given = self.interaction_cst
        n = self.n_features_in_
        if given is None:
            return []
        if given == "no_interactions":
            return [[f] for f in range(n)]
        if given == "pairwise":
            return [[f, g] for f in range(n) for g in range(f + 1, n)] or [[0]]
        sets = []
        for members in given:
            columns = sorted({int(f) for f in members})
            if any(f < 0 or f >= n for f in columns):
                raise ValueError(f"interaction_cst: expected columns 0 to {n - 1}, got {members}")
            sets.append(columns)
        rest = sorted(set(range(n)) - {f for members in sets for f in members})
        return [*sets, rest] if rest else sets

    # ------------------------------------------------------------------ predictions

    @property
    def n_estimators_(self) -> int:
        """Rounds that the model has: those up to the best one if it stopped early."""
        check_is_fitted(self)
        return self._n_rounds

    @property
    def n_iter_(self) -> int:
        """The same as `n_estimators_`."""
        return self.n_estimators_

    @property
    def init_raw_(self) -> NDArray[np.float64]:
        """Raw scores before the first round."""
        check_is_fitted(self)
        return self._baseline

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in vars(self) and self._n_rounds > 0

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        return read_for_core(self, X, self._schema)

    def _raw(self, X: Any) -> Any:
        """Raw scores, (n_rows, n_scores)."""
        rows = self._read(X)
        scores = np.empty((rows.n_rows, self._n_scores))
        scores[:] = self._baseline
        _core.add_rounds(
            *(self._store.core, rows, self._n_scores, 0, self._n_rounds),
            *(effective_n_jobs(self.n_jobs), scores),
        )
        return scores

    def _staged_raw(self, X: Any) -> Iterator[Any]:
        rows = self._read(X)
        scores = np.empty((rows.n_rows, self._n_scores))
        scores[:] = self._baseline
        for t in range(self._n_rounds):
            _core.add_rounds(
                *(self._store.core, rows, self._n_scores, t, t + 1),
                *(effective_n_jobs(self.n_jobs), scores),
            )
            yield scores.copy()

    @abstractmethod
    def _link(self) -> str:
        """Name of the way from raw scores to predictions."""

    def scorer(self) -> Any:
        """Prepare the model for one row at a time, at a few microseconds each.

        Returns
        -------
        callable
            Takes one row, a contiguous float64 array of shape (n_features_in_,) with NaN for what
            is missing; nothing else about it is checked. Returns an array: the class probabilities,
            or the one number that is predicted.
        """
        check_is_fitted(self)
        if self._schema.has_categories:
            raise ValueError("scorer: expected a model of numbers only, got one with categories")
        return _core.RowScorer(
            self._store.core, self._baseline.tolist(), self._n_rounds, self._link()
        )

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the leaf that each row falls into, in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_estimators), or (n_rows, n_estimators, n_classes)
            Indices of nodes; the last axis only with more than two classes.
        """
        rows = self._read(X)
        out = np.empty((rows.n_rows, len(self._store)), dtype=np.int64)
        self._store.core.apply(rows, effective_n_jobs(self.n_jobs), out)
        return out if self._n_scores == 1 else out.reshape(len(out), -1, self._n_scores)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in what all questions took off the objective."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for t in range(len(self._store)):
            tree = self._store.tree(t)
            gain = tree.compute_feature_importances(normalize=False)  # by unit of weight
            total += gain * tree.weighted_n_node_samples[0]
        return total / total.sum() if total.sum() > 0 else total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _without_weightless(X: Any, y: Any, sample_weight: Any, init_score: Any) -> Any:
    """Drop rows of weight zero: they must not even have a say in where bins begin."""
    weights = np.asarray(sample_weight)
    if weights.ndim != 1 or weights.dtype.kind not in "biuf" or not (weights == 0).any():
        return X, y, sample_weight, init_score
    if weights.shape[0] != _num_samples(X) or not (weights > 0).any():
        return X, y, sample_weight, init_score
    kept = np.flatnonzero(weights)
    X, y = indexable(X, y)
    start = None if init_score is None else np.asarray(init_score)[kept]
    return _safe_indexing(X, kept), _safe_indexing(y, kept), weights[kept], start
