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
    """Gradient boosting for numbers.

    Targets may have several columns: a tree then has a weight for each of them in every leaf.
    Trees are added one after another, each fitted to first and second derivatives of the loss at
    the predictions so far. The objective of a tree is XGBoost's: with sums G and H of the
    derivatives over a leaf its weight is ``-G / (H + l2_regularization)``, and a question is asked
    if it takes more than `min_split_gain` off the objective. Values are binned (at most 255 bins a
    column), so that a question is found in one pass over histograms. The result does not depend on
    the number of threads.

    Parameters
    ----------
    loss : str or callable, default="squared_error"
        "squared_error"; "absolute_error", "huber" and "quantile", which outliers cannot pull (their
        leaves are refitted by line search); "poisson", "gamma" and "tweedie" for counts and
        amounts, with a logarithmic link; "cross_entropy" for targets that are probabilities. Or a
        function of (targets, raw scores) that returns the gradient and the hessian of each row.
    alpha : float or array-like of float, default=0.9
        Level of "quantile", or several: then `predict` returns a column for each, and columns never
        cross: a higher level never has a lower value. For "huber" the share of rows whose error
        from the median counts squared.
    tweedie_power : float, default=1.5
        Power of the variance for "tweedie", between 1 (Poisson) and 2 (gamma).
    learning_rate : float or "auto", default="auto"
        What each tree's values are multiplied by. For what "auto" means, here and below, see Notes.
    n_estimators : int or "auto", default="auto"
        Rounds; early stopping may end sooner. "auto" leaves the number to early stopping.
    growth : {"auto", "best_first", "level_wise", "oblivious"}, default="auto"
        Which leaf is parted next: the one that gains most, or all of a level before the next; or
        all leaves of a level get the same question.
    max_leaf_nodes : int, None or "auto", default="auto"
        Leaves of a tree at most.
    max_depth : int or None, default=None
        Questions on a path at most.
    min_samples_leaf : int or "auto", default="auto"
        Rows of a leaf at least. Weights that are whole numbers count as repeated rows.
    min_hessian_leaf : float, default=1e-3
        Sum of second derivatives of a leaf at least.
    min_split_gain : float, default=0
        What a question must take off the objective (γ).
    l2_regularization : float or "auto", default="auto"
        Penalty on squared leaf weights (λ).
    l1_regularization : float, default=0
        Penalty on absolute leaf weights.
    subsample : float or "auto", default="auto"
        Share of the rows that a round draws: the chance of each of them.
    sampling : {"uniform", "gradient"}, default="uniform"
        Whether all rows are drawn alike, or those with large gradients sooner, the others counting
        the more if they are drawn.
    max_features : float or "auto", default="auto"
        Share of the columns that each node may ask about.
    max_features_tree, max_features_level : float, default=1
        The same for each tree and each level; a node draws from what is left.
    max_bins : int or None, default=255
        Bins of a column at most, with about equal weights. None: every value is kept and every cut
        looked at, which takes longer; not for oblivious trees.
    max_set_categories : int or None, default=64
        A column of up to so many categories is parted into any two sets of them. Of one with more,
        ordered target statistics are used: each row sees the mean target of the category's rows
        that come before it in a random order. None: never; beyond 255 the rarest share a bin.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Columns of categories; by default those that a frame says are.
    monotonic_cst : array-like of {-1, 0, 1} or dict, default=None
        Columns that the prediction must fall (-1) or rise (1) with.
    interaction_cst : {"pairwise", "no_interactions"}, list of sets, default=None
        Columns that may meet on a path; columns in no set form one of their own.
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the loss on rows that are not learned from no longer falls. "auto" does
        if `n_estimators` is "auto" (and there are 50 rows), or if fit gets an `eval_set`.
    scoring : str, callable or None, default=None
        What early stopping looks at instead of the loss: a name or function of scikit-learn's, of
        which more is better, such as "roc_auc".
    n_folds : int or "auto", default="auto"
        Folds for early stopping: each is watched by a booster that learns from the other folds,
        they all stop after the same round, and the model is their mean. 1: one booster, which
        watches `validation_fraction` of the rows.
    validation_fraction : float, int or None, default=0.1
        Rows to watch if there are no folds; None watches the training loss.
    n_iter_no_change : int or "auto", default="auto"
        Rounds without a better score before it stops. The model keeps those up to the best.
    tol : float, default=1e-7
        What counts as better, as a part of the loss after the first round.
    warm_start : bool, default=False
        Whether fit goes on from the earlier one.
    random_state : int, RandomState instance or None, default=None
        For the split and for drawing rows and columns.
    n_jobs : int or None, default=None
        Threads; they do not change the result.
    verbose : int, default=0
        Whether to show a bar.
    callbacks : callable or list of callable, default=None
        Called now and then with (rounds done, rounds in all) or, if it takes three arguments, with
        the latest loss as the third; if it returns True, boosting ends.

    Attributes
    ----------
    n_estimators_ : int
        Rounds that the model has.
    growth_ : str
        How its trees grew.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the training rows after each round.
    validation_score_ : ndarray of shape (n_rounds,)
        Mean loss of the watched rows, if there were any; with `scoring` their score. (Without such
        rows `train_score_` has the score.)
    init_raw_ : ndarray of shape (1,)
        Raw score before the first round.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in what all questions took off the objective.
    categories_ : list of (ndarray or None)
        Categories of each column; None if it is numeric.
    n_features_in_ : int
        Columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.

    Notes
    -----
    What "auto" stands for was chosen over many tables (`benchmarks/defaults.py`). With
    `n_estimators` given, the others are plain: learning rate 0.1, trees of at most 31 leaves grown
    best first, at least 20 rows a leaf, λ = 1, all rows and columns, one booster.

    With `n_estimators="auto"` early stopping finds the number of rounds (at most 1,000, at a
    learning rate of 0.05), in folds: eight, or as many as 60,000 divided by rows and scores. Two
    kinds of trees are tried, of √n/2 leaves (8 to 31) grown best first and oblivious ones of √n
    leaves (16 to 64; not with monotone constraints or an L1 penalty), and the one with the lower
    loss on rows left out is kept. λ is 3, each round
    draws 80 % of the rows (below 3,000 rows 70 %) and each question of the former 70 % of the
    columns (50 % of both kinds below 3,000 rows). With one fold there is one booster, grown best
    first, that watches `validation_fraction` of the rows. Below 3,000 rows, a table of more than
    2,000 columns gets at most 64 bins a column, and each split looks at 25 % of the columns.

    Sample weights count rows: the bin edges are quantiles of the weighted rows, of a sample of
    200,000 if there are more. Whole weights are repeated rows, to the last bit: ``fit(X, y, w)``
    predicts what ``fit(np.repeat(X, w, axis=0), np.repeat(y, w))`` does, if the weights sum to at
    most 200,000, `n_estimators` is a number, no rows are drawn (``subsample=1``, no early
    stopping), and no column has more than `max_set_categories` categories. Beyond 200,000 the two
    models may differ. Rows of weight zero are left out.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(learning_rate=0.05, max_leaf_nodes=4)
    >>> model = model.fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
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
        # Derivatives are float32: beyond these sizes they would be infinite, or all zero.
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
            find = getattr(self.loss, "fit_intercept_only", None)  # scikit-learn's losses have it
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
        """Predict numbers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_outputs) of several outputs or quantiles
            The predictions; with a loss of one's own the raw scores.
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

    def _learn_groups(self, held: HeldOut, table: Table | None) -> HeldOut:
        self._group_scale: GroupScale | None = None
        if table is None or held.quantiles or held.predicted.ndim > 1:
            return held
        errors = np.abs(held.truth - held.predicted)
        sizes = errors if held.scale is None else errors / held.scale
        learned = learn_group_scale(table, self._model.schema, sizes)
        if learned is None:
            return held
        self._group_scale, own = learned
        return replace(held, scale=own if held.scale is None else own * held.scale)

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
        # The variance of counts and amounts grows with their mean, by the power of the loss.
        power = {"poisson": 1.0, "gamma": 2.0}.get(self.loss, float(self.tweedie_power))
        return predicted, np.maximum(predicted, np.finfo(np.float64).tiny) ** (power / 2)

    def _clip(self, ends: Any) -> Any:
        if self.loss in LOG_LINK:
            return np.maximum(ends, 0.0)
        return np.clip(ends, 0.0, 1.0) if self.loss == "cross_entropy" else ends

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination; of several quantiles the mean D² of the pinball loss.

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
            1 for perfect predictions, 0 for those of a constant.
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
        """Predict after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions of the first 1, 2, … rounds.
        """
        for raw in self._staged_raw(X):
            yield self._model.numbers(raw)


def _quantile(values: Any, weights: Any, level: float, workers: Workers) -> float:
    """Return a quantile of the rows of positive weight of all workers."""
    if weights is not None:
        kept = weights > 0
        values, weights = values[kept], weights[kept]
    return workers.totals.quantile(values, weights, level)
