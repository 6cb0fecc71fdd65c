"""Gradient boosting for classification."""

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
    """Gradient boosting for classification.

    For two classes, each round adds one tree; for more classes, one tree per class. The trees are
    those of `GradientBoostingRegressor`.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or callable, default="log_loss"
        "log_loss": logistic loss for two classes, softmax loss for more. "exponential": the loss of
        AdaBoost, for two classes. A function, for two classes, takes (targets 0 or 1, raw scores)
        and returns the gradient and the hessian of each row; probabilities are the logistic
        function of the scores.
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
        Columns in which the score must rise (1) or fall (-1), or neither (0); only for two
        classes.
    interaction_cst : {"pairwise", "no_interactions"}, list of sets, default=None
        Sets of columns that may be split on in the same branch. Columns in no set form another set.
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the loss of the validation rows no longer falls. "auto" means True if
        `fit` gets an `eval_set`, or if `n_estimators` is "auto" and there are at least 50 rows.
    scoring : str, callable or None, default=None
        Score that early stopping uses instead of the loss: the name of a scikit-learn scorer, such
        as "roc_auc", or a function like one. Larger is better.
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
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to their frequencies.
    warm_start : bool, default=False
        Whether `fit` adds rounds to the previous fit, which must have had the same classes.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, ascending.
    n_classes_ : int
        Number of classes.
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
    init_raw_ : ndarray of shape (1,) or (n_classes,)
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
    monotonic constraints, an L1 penalty or ``max_bins=None``.

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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from spinney.ensemble import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GradientBoostingClassifier(random_state=0).fit(X[:400], y[:400])
    >>> print(f"{model.score(X[400:], y[400:]):.2f}")
    0.98
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
        all_labels = y
        if labels is not None:
            all_labels = np.concatenate([y, self._checked_labels(labels, workers)])
        if not workers.share_rows:
            self.classes_, codes = encode_labels(all_labels)
            codes = codes[: len(y)]
        else:
            self.classes_ = agree_on_labels(all_labels, workers.totals)
            codes = np.searchsorted(self.classes_, y)
        self.n_classes_ = len(self.classes_)
        if self.loss == "exponential" and self.n_classes_ > 2:
            raise ValueError(f"loss='exponential' needs 2 classes; y has {self.n_classes_}")
        if callable(self.loss) and self.n_classes_ != 2:
            raise ValueError(f"loss: a function needs 2 classes; y has {self.n_classes_}")
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
            raise ValueError("eval_set: y must have only classes of the training rows; got others")
        return codes

    def _row_weights(self, sample_weight: Any, targets: Any, n_rows: int, workers: Workers) -> Any:
        weights = super()._row_weights(sample_weight, targets, n_rows, workers)
        if self.class_weight is None:
            return weights
        codes = targets.astype(np.intp)
        if isinstance(self.class_weight, str):  # "balanced"
            counts = workers.totals.class_weights(codes, None, self.n_classes_)
            n_present = np.count_nonzero(counts)  # classes with rows of positive weight
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

    def _add_categories(self, held: HeldOut, table: Table | None) -> HeldOut:
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
            The most probable class; the first one if several are equal.
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
            Predictions after 1, 2, … rounds.
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
            Probabilities after 1, 2, … rounds.
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
            Raw scores after 1, 2, … rounds.
        """
        for raw in self._staged_raw(X):
            yield raw[:, 0] if raw.shape[1] == 1 else raw
