"""Boosting for classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import get_scorer_names
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from spinney.boosting._loss import Loss
from spinney.boosting.base import BaseBoosting
from spinney.conformal.group_limits import categories_of
from spinney.conformal.mixins import HeldOut, SetMixin
from spinney.data.labels import encode_labels
from spinney.data.sample_weights import times_class_weights
from spinney.data.table import Table
from spinney.distributed.agreement import agree_on_labels
from spinney.distributed.workers import Workers

__all__ = ["GradientBoostingClassifier"]


class GradientBoostingClassifier(SetMixin, ClassifierMixin, BaseBoosting):
    """Gradient boosting for classes.

    Two classes are told apart by one tree a round, more classes by one tree for each. All else is
    as in `GradientBoostingRegressor`.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or callable, default="log_loss"
        Logistic or softmax loss; "exponential" (AdaBoost's) for two classes. Or, for two classes, a
        function of (targets that are 0 or 1, raw scores) that returns the gradient and the hessian
        of each row; probabilities are the logistic function of the scores.
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
        Columns that the score must fall (-1) or rise (1) with; two classes only.
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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    warm_start : bool, default=False
        Whether fit adds rounds to the earlier fit, which must have had the same classes.
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
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_classes_ : int
        How many.
    n_estimators_ : int
        Rounds that the model has.
    growth_ : str
        How its trees grew.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the training rows after each round.
    validation_score_ : ndarray of shape (n_rounds,)
        Mean loss of the watched rows, if there were any; with `scoring` their score. (Without such
        rows `train_score_` has the score.)
    init_raw_ : ndarray of shape (1,) or (n_classes,)
        Raw scores before the first round.
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from spinney.ensemble import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier().fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions({"log_loss", "exponential"}), callable],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        loss: Any = "log_loss",
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
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
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
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def _encode_targets(self, y: Any, labels: Any, workers: Workers) -> NDArray[np.float64]:
        y = self._checked_labels(y, workers)
        # A class remains even if all of its rows have weight zero.
        every = y if labels is None else np.concatenate([y, self._checked_labels(labels, workers)])
        if not workers.share_rows:
            self.classes_, codes = encode_labels(every)
            codes = codes[: len(y)]
        else:
            self.classes_ = agree_on_labels(every, workers.totals)
            codes = np.searchsorted(self.classes_, y)
        self.n_classes_ = len(self.classes_)
        if self.loss == "exponential" and self.n_classes_ > 2:
            raise ValueError(f"loss='exponential' is for 2 classes, but y has {self.n_classes_}")
        if callable(self.loss) and self.n_classes_ != 2:
            raise ValueError(f"loss: a function is for 2 classes, but y has {self.n_classes_}")
        return codes.astype(np.float64)

    def _checked_labels(self, y: Any, workers: Workers) -> Any:
        y = column_or_1d(y, warn=True)
        if workers.share_rows and len(y) == 0:
            return y
        y = check_array(
            y,
            ensure_2d=False,
            dtype=None,
            ensure_all_finite=False,
            input_name="y",
            estimator=self,
        )
        if y.dtype.kind in "fc":
            check_array(y, ensure_2d=False, input_name="y", estimator=self)
        check_classification_targets(y)
        return y

    def _encode_other_targets(self, y: Any, workers: Workers) -> Any:
        y = self._checked_labels(y, workers)
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, self.n_classes_ - 1)
        if not np.array_equal(self.classes_[codes], y):
            raise ValueError("eval_set: y must have only classes of the training data; got others")
        return codes

    def _row_weights(self, sample_weight: Any, targets: Any, n_rows: int, workers: Workers) -> Any:
        weights = super()._row_weights(sample_weight, targets, n_rows, workers)
        if self.class_weight is None:
            return weights
        codes = targets.astype(np.intp)
        if isinstance(self.class_weight, str):  # "balanced"
            counts = workers.totals.class_weights(codes, None, self.n_classes_)
            n_present = np.count_nonzero(counts)  # the others have no row of positive weight
            of_class = (counts.sum() / (n_present * np.maximum(counts, 1)))[codes]
        else:
            chosen = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[codes]
            )
            of_class = chosen[codes]
        return times_class_weights(weights, of_class)

    def _make_loss(self, targets: Any, weights: Any, workers: Workers) -> Loss:
        if self.n_classes_ > 2:
            return Loss("softmax", n_scores=self.n_classes_)
        if self.n_classes_ == 1:  # no error to reduce: every derivative is 0
            return Loss("squared_error")
        return Loss("log_loss" if callable(self.loss) else self.loss)

    def _link(self, loss: Loss) -> str:
        if self.n_classes_ == 1:
            return "constant"
        if loss.n_scores > 1:
            return "softmax"
        return "twice_logistic" if loss.name == "exponential" else "logistic"

    def _targets_of_statistics(self, targets: Any) -> Any:
        if self.n_classes_ <= 2:
            return super()._targets_of_statistics(targets)
        return (targets[:, np.newaxis] == np.arange(self.n_classes_)).astype(np.float64)

    def _find_baseline(
        self, targets: Any, weights: Any, loss: Loss, workers: Workers
    ) -> NDArray[np.float64]:
        if self.n_classes_ == 1:
            return np.zeros(1)
        codes = targets.astype(np.intp)
        share = workers.totals.class_weights(codes, weights, self.n_classes_)
        share = np.clip(share / share.sum(), 1e-15, 1 - 1e-15)
        if self.n_classes_ > 2:
            raw = np.log(share)
            return raw - raw.mean()
        odds = np.log(share[1] / share[0])
        return np.array([odds / 2 if loss.name == "exponential" else odds])

    def _supports_conformal(self) -> bool:
        return not callable(self.loss)  # its scores may not be log-odds

    def _as_held_out(self, source: str, truth: Any, raw: Any, weights: Any) -> HeldOut:
        codes = np.asarray(truth).astype(np.int32)
        return HeldOut(source, codes, self._model.probabilities(raw), weights=weights)

    def _learn_groups(self, held: HeldOut, table: Table | None) -> HeldOut:
        if table is None:
            return held
        return replace(held, categories=categories_of(table, self._model.schema))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The most probable class; of equals the first.
        """
        raw = self._raw(X)
        return self._model.labels(raw)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities.
        """
        raw = self._raw(X)
        return self._model.probabilities(raw)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithm of `predict_proba`.
        """
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return raw scores.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Log-odds of the second class (half of them with "exponential"), or one score for each of
            several classes.
        """
        raw = self._raw(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict classes after each round.

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
            yield self._model.labels(raw)

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict class probabilities after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows, n_classes)
            Probabilities by the first 1, 2, … rounds.
        """
        for raw in self._staged_raw(X):
            yield self._model.probabilities(raw)

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Return raw scores after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Raw scores of the first 1, 2, … rounds.
        """
        for raw in self._staged_raw(X):
            yield raw[:, 0] if raw.shape[1] == 1 else raw
