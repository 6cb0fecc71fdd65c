"""Gradient boosting for regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, column_or_1d

from spinney.boosting._loss import Loss
from spinney.boosting.base import BaseBoosting
from spinney.conformal.group_scale import GroupScale, learn_group_scale
from spinney.conformal.mixins import HeldOut, IntervalMixin
from spinney.data.table import Table, read_table
from spinney.distributed.workers import Workers
from spinney.models.outcomes import LOG_LINK

__all__ = ["GradientBoostingRegressor"]

_IN_UNITS_OF_Y = ("squared_error", "absolute_error", "huber", "quantile")


class GradientBoostingRegressor(IntervalMixin, RegressorMixin, BaseBoosting):
    """Gradient boosting for regression.

    Each round adds a tree that is fitted to the first and second derivatives of the loss at the
    present predictions. The objective is that of XGBoost: with the sums G and H of the derivatives
    over a leaf, its value is ``-G / (H + l2_regularization)``. A node is split if that decreases
    the objective by more than `min_split_gain`.

    Columns are binned (at most 255 bins), so splits are found from histograms. If y has several
    columns, each leaf has one value per column. The result does not depend on the number of
    threads.

    Parameters
    ----------
    loss : str or callable, default="squared_error"
        "squared_error". "absolute_error", "huber" and "quantile" are robust to outliers; their
        leaves are refitted by line search. "poisson", "gamma" and "tweedie" are for counts and
        amounts, with a logarithmic link. "cross_entropy" is for targets that are probabilities. A
        function takes (targets, raw scores) and returns the gradient and the hessian of each row.
    alpha : float or array-like of float, default=0.9
        Level of "quantile", between 0 and 1. With several levels, `predict` returns a sorted column
        for each, so that quantiles do not cross. For "huber": share of the rows whose distance from
        the median has a quadratic loss.
    tweedie_power : float, default=1.5
        Power of the variance for "tweedie", above 1 (Poisson) and below 2 (gamma).
    learning_rate : float or "auto", default="auto"
        Factor of the leaf values of each tree. The Notes describe "auto", here and below.
    n_estimators : int or "auto", default="auto"
        Number of rounds; early stopping may use fewer. "auto" means early stopping within at most
        1,000 rounds.
    growth : {"auto", "best_first", "level_wise", "oblivious"}, default="auto"
        Order in which leaves are split. "best_first": the leaf with the largest gain is next.
        "level_wise": all leaves of a level are split before the next level. "oblivious": all leaves
        of a level use the same split.
    max_leaf_nodes : int, None or "auto", default="auto"
        Largest number of leaves of a tree; None: unlimited.
    max_depth : int or None, default=None
        Largest depth of a tree; None: unlimited.
    min_samples_leaf : int or "auto", default="auto"
        Smallest number of rows in a leaf. Integer weights count as repeated rows.
    min_hessian_leaf : float, default=1e-3
        Smallest sum of second derivatives in a leaf.
    min_split_gain : float, default=0
        Smallest decrease of the objective by a split (γ).
    l2_regularization : float or "auto", default="auto"
        Penalty on squared leaf values (λ).
    l1_regularization : float, default=0
        Penalty on absolute leaf values (α).
    subsample : float or "auto", default="auto"
        Probability with which a round draws each row, without replacement.
    sampling : {"uniform", "gradient"}, default="uniform"
        "uniform": all rows have the same probability. "gradient": the probability is proportional
        to the size of the derivatives, and drawn rows are weighted by its inverse (minimal variance
        sampling).
    max_features : float or "auto", default="auto"
        Share of the columns that are candidates for the split of a node.
    max_features_tree, max_features_level : float, default=1
        Shares of the columns that are drawn for a tree, and from these for a level. Nodes draw from
        the columns of their level.
    max_bins : int or None, default=255
        Largest number of bins of a column, from 2 to 255; bins have about equal weights. None:
        every distinct value is a candidate threshold, which is slower; not for oblivious trees.
    max_set_categories : int or None, default=64
        A column of at most this many categories is split into any two sets of categories. A column
        with more categories is replaced by ordered target statistics: for each row, the mean target
        of the earlier rows of its category in a random order. None: sets for all columns; beyond
        255 categories, the rarest share a bin.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns: a boolean mask, indices or names. "from_dtype" uses the column types of
        a frame; None means that no column is categorical.
    monotonic_cst : array-like of {-1, 0, 1} or dict, default=None
        Columns in which the prediction must rise (1) or fall (-1), or neither (0).
    interaction_cst : {"pairwise", "no_interactions"}, list of sets, default=None
        Sets of columns that may be split on in the same branch. Columns in no set form another set.
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the loss of the validation rows no longer falls. "auto" means True if
        `fit` gets an `eval_set`, or if `n_estimators` is "auto" and there are at least 50 rows.
    scoring : str, callable or None, default=None
        Score that early stopping uses instead of the loss: the name of a scikit-learn scorer, such
        as "r2", or a function like one. Larger is better.
    n_folds : int or "auto", default="auto"
        Number of folds of early stopping. Each fold has a booster that is trained on the other
        folds and validated on this one. All boosters stop after the same round, and the model is
        their average. 1: one booster, validated on `validation_fraction` of the rows.
    validation_fraction : float, int or None, default=0.1
        Share or number of validation rows if there are no folds. None: early stopping uses the
        training loss.
    n_iter_no_change : int or "auto", default="auto"
        Training stops after this many rounds without improvement. The model keeps the rounds up to
        the best one.
    tol : float, default=1e-7
        Smallest improvement, relative to the loss after the first round.
    warm_start : bool, default=False
        Whether `fit` adds rounds to the previous fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the validation split and of the draws of rows and columns.
    n_jobs : int or None, default=None
        Number of threads; it does not change the result. None: see `spinney.set_num_threads`.
    verbose : int, default=0
        Whether to show a progress bar.
    callbacks : callable or list of callable, default=None
        Called at intervals with (rounds done, total rounds) or, if it accepts three arguments, also
        with the last loss. Training stops if it returns True.

    Attributes
    ----------
    n_estimators_ : int
        Number of rounds of the model.
    growth_ : str
        Growth of the trees: "best_first", "level_wise" or "oblivious".
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the training rows after each round. With `scoring` and without validation rows,
        their score.
    validation_score_ : ndarray of shape (n_rounds,)
        Mean loss of the validation rows after each round; with `scoring`, their score. Empty
        without validation rows.
    init_raw_ : ndarray of shape (1,), (n_outputs,) or (n_levels,)
        Raw scores before the first round.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the decrease of the objective by all splits.
    categories_ : list of (ndarray or None)
        Categories of each column; None for a numeric one.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.

    Notes
    -----
    The values of "auto" were chosen on many tables (`benchmarks/defaults.py`). If `n_estimators` is
    a number, they are: learning rate 0.1, best-first trees of at most 31 leaves, at least 20 rows
    in a leaf, λ = 1, all rows and columns, one booster.

    With ``n_estimators="auto"``, the learning rate is 0.05, λ is 3, and early stopping waits for 50
    rounds. It uses 8 folds, or 60,000 / (rows · scores) folds if that is less. Two kinds of trees
    are trained, and the kind with the lower validation loss is kept: best-first trees of √n/2
    leaves (8 to 31) and oblivious trees of √n leaves (16 to 64). Oblivious trees are not tried with
    monotonic constraints, an L1 penalty, several outputs or ``max_bins=None``.

    Each round then draws 80 % of the rows, and each split of a best-first tree 70 % of the columns.
    Below 3,000 rows, these shares are 70 % and, for both kinds, 50 %; a table with more than 2,000
    columns gets at most 64 bins per column, and 25 % of the columns per split. With one fold, there
    is one booster of best-first trees, validated on `validation_fraction` of the rows. Below 50
    rows, there is no early stopping.

    Sample weights count rows: bin edges are quantiles of the weighted rows, or of a sample of
    200,000 of them. Integer weights equal repeated rows to the last bit: ``fit(X, y, w)`` gives the
    predictions of ``fit(np.repeat(X, w, axis=0), np.repeat(y, w))``. This requires that the weights
    sum to at most 200,000, `n_estimators` is a number, all rows are used (``subsample=1``, no early
    stopping), and no column has more than `max_set_categories` categories. Beyond 200,000, the two
    models may differ. Rows of weight zero are ignored.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(learning_rate=0.05, max_leaf_nodes=4, random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> print(f"{model.score(X[300:], y[300:]):.2f}")
    0.48
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseBoosting._parameter_constraints,
        "loss": [
            StrOptions(
                {
                    "squared_error",
                    "absolute_error",
                    "huber",
                    "quantile",
                    "cross_entropy",
                    *LOG_LINK,
                }
            ),
            callable,
        ],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "alpha": [Interval(Real, 0.0, 1.0, closed="neither"), "array-like"],
        "tweedie_power": [Interval(Real, 1.0, 2.0, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        alpha: Any = 0.9,
        tweedie_power: float = 1.5,
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        growth: str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int | str = "auto",
        min_hessian_leaf: float = 1e-3,
        min_split_gain: float = 0.0,
        l2_regularization: float | str = "auto",
        l1_regularization: float = 0.0,
        subsample: float | str = "auto",
        sampling: str = "uniform",
        max_features: float | str = "auto",
        max_features_tree: float = 1.0,
        max_features_level: float = 1.0,
        max_bins: int | None = 255,
        max_set_categories: int | None = 64,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        early_stopping: Any = "auto",
        scoring: Any = None,
        n_folds: int | str = "auto",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int | str = "auto",
        tol: float = 1e-7,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.tweedie_power = tweedie_power
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.growth = growth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian_leaf = min_hessian_leaf
        self.min_split_gain = min_split_gain
        self.l2_regularization = l2_regularization
        self.l1_regularization = l1_regularization
        self.subsample = subsample
        self.sampling = sampling
        self.max_features = max_features
        self.max_features_tree = max_features_tree
        self.max_features_level = max_features_level
        self.max_bins = max_bins
        self.max_set_categories = max_set_categories
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.n_folds = n_folds
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode_targets(self, y: Any, labels: Any, workers: Workers) -> NDArray[np.float64]:
        y = check_array(
            y,
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
            estimator=self,
            ensure_min_samples=0 if workers.share_rows else 1,
        )
        if y.ndim != 2 or y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        elif self.loss in ("absolute_error", "huber", "quantile"):
            raise ValueError(f"loss={self.loss!r}: expected one output, got {y.shape[1]}")
        # Derivatives are float32. Beyond these limits they would be infinite, or all zero.
        low, high = workers.totals.extremes(y)  # of each output
        largest, spread = np.maximum(np.abs(low), np.abs(high)).max(), high.max() - low.min()
        if largest > 1e30 or (0 < spread < 1e-30 and self.loss in _IN_UNITS_OF_Y):
            raise ValueError(
                "y: expected values up to 1e30 and a spread of 1e-30 or more, got "
                f"{largest:.3g} and {spread:.3g}; rescale y"
            )
        if self.loss == "gamma" and not low.min() > 0:
            raise ValueError("loss='gamma' requires strictly positive y; got other values")
        if self.loss in ("poisson", "tweedie") and not (low.min() >= 0 and high.min() > 0):
            raise ValueError(
                f"loss={self.loss!r} requires non-negative y and sum(y) > 0; got other values"
            )
        if self.loss == "cross_entropy" and not (low.min() >= 0 and high.max() <= 1):
            raise ValueError("loss='cross_entropy': expected y between 0 and 1; got values outside")
        return y

    def _make_loss(self, targets: Any, weights: Any, workers: Workers) -> Loss:
        n_targets = 1 if targets.ndim == 1 else targets.shape[1]
        if callable(self.loss):
            return Loss("squared_error", n_scores=n_targets, n_targets=n_targets)
        name = "log_loss" if self.loss == "cross_entropy" else self.loss
        loss = Loss(name, n_scores=n_targets, n_targets=n_targets)
        if self.loss == "quantile" and np.ndim(self._level()) == 1:
            levels = tuple(float(level) for level in self._level())
            return replace(loss, levels=levels, n_scores=len(levels))
        if self.loss == "quantile":
            return replace(loss, parameter=self._level())
        if self.loss == "tweedie":
            return replace(loss, parameter=float(self.tweedie_power))
        if self.loss == "huber":
            errors = np.abs(targets - _quantile(targets, weights, 0.5, workers))
            delta = _quantile(errors, weights, self._level(), workers)
            return replace(loss, parameter=float(delta) if delta > 0 else 1.0)
        return loss

    def _find_baseline(
        self, targets: Any, weights: Any, loss: Loss, workers: Workers
    ) -> NDArray[np.float64]:
        if callable(self.loss):
            # Loss objects of scikit-learn have this method.
            find = getattr(self.loss, "fit_intercept_only", None)
            start = 0.0 if find is None else float(find(targets, weights))
            return np.full(loss.n_scores, start)
        if self.loss in ("absolute_error", "huber"):
            return np.array([_quantile(targets, weights, 0.5, workers)])
        if self.loss == "quantile":
            levels = np.atleast_1d(self._level())
            return np.array([_quantile(targets, weights, level, workers) for level in levels])
        mean = workers.totals.mean(targets, weights)
        if self.loss in LOG_LINK:
            return np.log(mean)
        if self.loss == "cross_entropy":
            inside = np.clip(mean, 1e-15, 1 - 1e-15)
            return np.log(inside / (1 - inside))
        return mean

    def _level(self) -> Any:
        if np.ndim(self.alpha) == 0:
            return float(self.alpha)
        levels = np.asarray(self.alpha, dtype=np.float64)
        if self.loss != "quantile":
            raise ValueError(f"alpha: expected one number for loss={self.loss!r}, got several")
        if levels.ndim != 1 or len(levels) == 0 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"alpha: expected levels between 0 and 1, got {self.alpha!r}")
        return levels

    def _link(self, loss: Loss) -> str:
        if self.loss in LOG_LINK:
            return "exponential"
        return "probability" if self.loss == "cross_entropy" else "identity"

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the targets.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,), (n_rows, n_outputs) or (n_rows, n_levels)
            The predictions; raw scores if `loss` is a function.
        """
        raw = self._raw(X)
        return self._model.numbers(raw)

    def _supports_conformal(self) -> bool:
        return True

    def _as_held_out(self, source: str, truth: Any, raw: Any, weights: Any) -> HeldOut:
        predicted, scale = self._with_error_scale(raw)
        return HeldOut(
            source, np.asarray(truth), predicted, scale, weights, bool(self._model.levels)
        )

    def _add_categories(self, held: HeldOut, table: Table | None) -> HeldOut:
        self._group_scale: GroupScale | None = None
        if table is None or held.quantiles or held.predicted.ndim > 1:
            return held
        errors = np.abs(held.truth - held.predicted)
        sizes = errors if held.scale is None else errors / held.scale
        fitted = learn_group_scale(table, self._model.schema, sizes)
        if fitted is None:
            return held
        self._group_scale, factors = fitted
        return replace(held, scale=factors if held.scale is None else factors * held.scale)

    def _predict_with_scale(self, X: Any) -> tuple[Any, Any]:
        predicted, scale = self._with_error_scale(self._raw(X))
        groups = vars(self).get("_group_scale")
        if groups is None:
            return predicted, scale
        factors = groups.of(read_table(self, X, self._model.schema))
        return predicted, factors if scale is None else factors * scale

    def _with_error_scale(self, raw: Any) -> tuple[Any, Any]:
        """Return predictions and the expected size of their errors, which may be None.

        If the model predicts several quantiles, these are the lowest and the highest one.
        """
        predicted = np.asarray(self._model.numbers(raw))
        if self._model.levels:
            return np.column_stack([predicted.min(axis=1), predicted.max(axis=1)]), None
        if self.loss not in LOG_LINK:
            return predicted, None
        # The variance of counts and amounts is a power of their mean: 1 for poisson, 2 for gamma.
        power = {"poisson": 1.0, "gamma": 2.0}.get(self.loss, float(self.tweedie_power))
        return predicted, np.maximum(predicted, np.finfo(np.float64).tiny) ** (power / 2)

    def _clip(self, ends: Any) -> Any:
        if self.loss in LOG_LINK:
            return np.maximum(ends, 0.0)
        return np.clip(ends, 0.0, 1.0) if self.loss == "cross_entropy" else ends

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², or for several quantiles the mean D² of the pinball loss.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        float
            1 for perfect predictions, 0 for the best constant.
        """
        levels = vars(self)["_model"].levels if "_model" in vars(self) else ()
        if not levels:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        return float(
            np.mean(
                [
                    d2_pinball_score(y, predicted[:, k], sample_weight=sample_weight, alpha=level)
                    for k, level in enumerate(levels)
                ]
            )
        )

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict the targets after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions after 1, 2, … rounds.
        """
        for raw in self._staged_raw(X):
            yield self._model.numbers(raw)


def _quantile(values: Any, weights: Any, level: float, workers: Workers) -> float:
    """Return a quantile of the rows of positive weight of all workers."""
    if weights is not None:
        kept = weights > 0
        values, weights = values[kept], weights[kept]
    return workers.totals.quantile(values, weights, level)
