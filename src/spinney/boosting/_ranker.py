"""Gradient boosting for ranking."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import ndcg_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_array, column_or_1d

from spinney.boosting._fit_plan import FitInput, TrainingData
from spinney.boosting._loss import Loss
from spinney.boosting.base import BaseBoosting
from spinney.data.sklearn_versions import safe_indexing
from spinney.distributed.workers import LOCAL, NO_CHECKPOINTS, Checkpoints, Workers

__all__ = ["GradientBoostingRanker"]

_MIN_GROUPS = 10  # early_stopping="auto" needs at least this many groups


class GradientBoostingRanker(BaseBoosting):
    """Gradient boosting for ranking.

    Rows have groups, such as the documents found for a query, and the model learns to order the
    rows of a group. The loss of a pair of rows with different relevance is the logistic loss of the
    difference of their scores. LambdaMART weights each pair by the change of NDCG if the two rows
    were swapped. Trees, categories, missing values, constraints and early stopping are those of
    `GradientBoostingRegressor`.

    Parameters
    ----------
    loss : {"ndcg", "pairwise"}, default="ndcg"
        "ndcg": LambdaMART. "pairwise": all pairs have the same weight.
    ndcg_at : int, default=30
        Number of top ranks of a group that count: the loss has the pairs with a row among them, and
        `train_score_` and `validation_score_` have NDCG at this rank.
    learning_rate, n_estimators, growth, max_leaf_nodes, max_depth, min_samples_leaf
        As in `GradientBoostingRegressor`.
    min_hessian_leaf, min_split_gain, l2_regularization, l1_regularization
        As in `GradientBoostingRegressor`.
    subsample, sampling, max_features, max_features_tree, max_features_level, max_bins
        As in `GradientBoostingRegressor`.
    max_set_categories
        As in `GradientBoostingRegressor`.
    categorical_features, monotonic_cst, interaction_cst
        As in `GradientBoostingRegressor`.
    early_stopping, n_folds, validation_fraction, n_iter_no_change, tol
        As in `GradientBoostingRegressor`; groups are not split. "auto" also requires at least 10
        groups if `fit` gets no `eval_set`.
    warm_start, random_state, n_jobs, verbose, callbacks
        As in `GradientBoostingRegressor`.

    Attributes
    ----------
    n_estimators_ : int
        Number of rounds of the model.
    growth_ : str
        Growth of the trees: "best_first", "level_wise" or "oblivious".
    train_score_, validation_score_ : ndarray of shape (n_rounds,)
        1 - NDCG, or the mean loss of a pair, after each round: the mean over the groups with rows
        of different relevance.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the decrease of the objective by all splits.
    categories_ : list of (ndarray or None)
        Categories of each column; None for a numeric one.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.ensemble import GradientBoostingRanker
    >>> rng = np.random.default_rng(0)
    >>> X, query = rng.normal(size=(1000, 3)), np.repeat(np.arange(100), 10)
    >>> relevance = np.digitize(X[:, 0] + 0.3 * rng.normal(size=1000), [0, 1, 2])
    >>> model = GradientBoostingRanker(n_estimators=20, random_state=0)
    >>> model = model.fit(X, relevance, group=query)
    >>> print(f"{model.score(X, relevance, group=query):.2f}")
    0.99
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions({"ndcg", "pairwise"})],
        "ndcg_at": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        loss: str = "ndcg",
        ndcg_at: int = 30,
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
        self.ndcg_at = ndcg_at
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
        self.n_folds = n_folds
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        eval_set: Any = None,
        init_score: Any = None,
    ) -> GradientBoostingRanker:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The training rows. Missing values and categorical columns need no preparation.
        y : array-like of shape (n_rows,)
            Relevance of the rows, from 0 to 60. A row of relevance r has the gain 2^r - 1.
        group : array-like of shape (n_rows,) or (n_groups,), default=None
            The group of each row, in any order; or the sizes of contiguous groups. None: one group.
        eval_set : tuple (X, y, group), default=None
            Validation rows for early stopping, instead of rows of X.
        init_score : array-like of shape (n_rows,), default=None
            Raw scores before the first round. They are not part of the model.

        Returns
        -------
        GradientBoostingRanker
            The fitted estimator.
        """
        ids = _group_ids(group, _num_samples(X))
        return super().fit(  # type: ignore[no-any-return]
            X, y, None, eval_set=eval_set, init_score=init_score, groups=ids
        )

    def _fit(
        self,
        given: FitInput,
        workers: Workers = LOCAL,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Any:
        order, starts = _contiguous(given.groups)
        if order is not None and workers.share_rows:
            raise ValueError("group: expected the rows of each group to be contiguous")
        if order is not None and _num_samples(given.y) == len(order):
            X, y, init_score = (
                None if values is None else safe_indexing(values, order)
                for values in (given.X, given.y, given.init_score)
            )
            given = replace(given, X=X, y=y, init_score=init_score, groups=given.groups[order])
        return super()._fit(replace(given, group_starts=starts), workers, checkpoints)

    def _stops_early(self, data: TrainingData) -> bool:
        n_groups = data.workers.totals.count(len(data.given.group_starts) - 1)
        if self.early_stopping == "auto" and n_groups < _MIN_GROUPS:
            return data.given.eval_set is not None
        return super()._stops_early(data)

    def _eval_set_parts(self, eval_set: Any) -> tuple[Any, Any, Any, list[int]]:
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 3:
            raise ValueError("eval_set: expected a tuple (X, y, group)")
        X, y, group = eval_set
        order, starts = _contiguous(_group_ids(group, _num_samples(X)))
        if order is not None:
            X, y = safe_indexing(X, order), safe_indexing(y, order)
        return X, y, None, starts

    def _encode_targets(self, y: Any, labels: Any, workers: Workers) -> NDArray[np.float64]:
        y = check_array(
            y,
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
            estimator=self,
            ensure_min_samples=0 if workers.share_rows else 1,
        )
        y = column_or_1d(y, warn=True)
        low, high = (float(end[0]) for end in workers.totals.extremes(y))
        if low < 0 or high > 60:
            raise ValueError(f"y: expected relevances from 0 to 60, got {low:.6g} to {high:.6g}")
        return y

    def _make_loss(self, targets: Any, weights: Any, workers: Workers) -> Loss:
        return Loss(self.loss, parameter=float(self.ndcg_at))

    def _find_baseline(
        self, targets: Any, weights: Any, loss: Loss, workers: Workers
    ) -> NDArray[np.float64]:
        return np.zeros(1)

    def _link(self, loss: Loss) -> str:
        return "identity"

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows; a higher score means a better rank in the group.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores.
        """
        return self._raw(X)[:, 0]

    def score(self, X: Any, y: Any, *, group: Any = None, k: int | None = None) -> float:
        """Return the mean NDCG over the groups that have a relevant row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Relevance of the rows.
        group : array-like of shape (n_rows,) or (n_groups,), default=None
            As in `fit`.
        k : int or None, default=None
            Number of top ranks that count; None: all.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted, y = self.predict(X), np.asarray(y, dtype=np.float64)
        ids = _group_ids(group, len(predicted))
        gains = np.exp2(y) - 1
        scores = []
        for g in np.unique(ids):
            rows = np.flatnonzero(ids == g)
            if gains[rows].max() > 0:
                scores.append(
                    1.0 if len(rows) == 1 else ndcg_score([gains[rows]], [predicted[rows]], k=k)
                )
        return float(np.mean(scores)) if scores else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags


def _group_ids(group: Any, n_rows: int) -> Any:
    """Return the index of the group of each row."""
    if group is None:
        return np.zeros(n_rows, dtype=np.intp)
    group = np.asarray(group)
    if group.ndim != 1:
        raise ValueError(f"group: expected one axis, got {group.ndim} axes")
    if len(group) == n_rows:
        return np.unique(group, return_inverse=True)[1]
    sizes = group
    if sizes.dtype.kind not in "iu" or (sizes < 0).any() or sizes.sum() != n_rows:
        raise ValueError(
            f"group: expected a group for each of {n_rows} rows, or sizes that add up to them, "
            f"got {len(group)} values"
        )
    return np.repeat(np.arange(len(sizes)), sizes)


def _contiguous(ids: Any) -> tuple[Any, list[int]]:
    """Return an order in which groups are contiguous, and where they start.

    The order is None if the groups are contiguous already.
    """
    if len(ids) == 0:  # a worker may have no rows
        return None, [0]
    order = None
    starts = _group_starts(ids)
    if len(starts) > len(np.unique(ids)):
        order = np.argsort(ids, kind="stable")
        starts = _group_starts(ids[order])
    return order, [*starts.tolist(), len(ids)]


def _group_starts(ids: Any) -> Any:
    return np.flatnonzero(np.r_[True, np.diff(ids) != 0])
