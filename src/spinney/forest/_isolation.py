"""Isolation forest: rows that random splits isolate early are outliers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import check_weights
from spinney.data.warm_start import check_same_columns
from spinney.distributed.workers import LOCAL, Workers
from spinney.forest.base import make_training_table, tree_progress
from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.forest.sampling import TreeSamples, draw_seed
from spinney.forest.upgrade import upgrade_isolation_forest
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods
from spinney.models.tree_ensembles import IsolationTrees
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import ExtraTreeRegressor
from spinney.tree.base import BaseTree

__all__ = ["IsolationForest"]


class IsolationForest(OutlierMixin, ModelMethods, BaseEstimator):
    """Outlier detection by the number of random splits that isolate a row.

    Each tree splits a small sample of the rows at random thresholds of random columns, until each
    leaf has one row or the depth is the logarithm of the sample size. Rows with leaves near the
    root are outliers. Parameters and attributes are those of scikit-learn's class of the same
    name; additions are marked *new*.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : "auto", int or float, default="auto"
        Rows drawn for each tree: a number, or a fraction of all rows. "auto" is 256, or all rows
        if there are fewer.
    contamination : "auto" or float, default="auto"
        Fraction of outliers among the training rows, which determines the threshold of `predict`;
        "auto" is the threshold of the original paper.
    max_features : int or float, default=1.0
        Columns drawn for each tree: a number, or a fraction.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    n_jobs : int, default=None
        Number of threads; None means the value of `spinney.set_num_threads`. The result has the
        same bits for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws. Tree t does not depend on `n_estimators`.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds more, up to `n_estimators`.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Categorical columns: "from_dtype" means string and category columns of frames; or a
        boolean mask, indices, or names. None means that all columns are numeric.
    callbacks : callable or list of callables, default=None
        *New*. Called during the fit with (trees grown, number of trees); an exception ends the
        fit.

    Attributes
    ----------
    estimator_ : ExtraTreeRegressor
        An unfitted tree with the parameters of all trees.
    estimators_ : sequence of ExtraTreeRegressor
        The trees; each is created on first access.
    estimators_features_ : list of ndarray
        The columns that each tree uses.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    max_samples_ : int
        Rows drawn for each tree.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None for a numeric one.

    Notes
    -----
    If a node has missing values, they go to a random side, like one more value. Categories are
    split at random. Categories that were not in the training rows, and missing values in nodes
    without missing training values, go to the larger child.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.ensemble import IsolationForest
    >>> X = np.array([[-1.1], [0.3], [0.5], [100.0]])
    >>> IsolationForest(random_state=0).fit_predict(X)
    array([ 1,  1,  1, -1])
    """

    estimators_features_: list[NDArray[np.int64]]
    n_features_in_: int
    categories_: list[Any]
    _model: IsolationTrees
    _samples: TreeSamples
    estimator_: ExtraTreeRegressor

    _parameter_constraints: dict[str, Any] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "max_features": [
            Integral,
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "categorical_features": BaseTree._parameter_constraints["categorical_features"],
        "callbacks": BaseTree._parameter_constraints["callbacks"],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: Any = "auto",
        contamination: Any = "auto",
        max_features: int | float = 1.0,
        bootstrap: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: Any = "from_dtype",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.contamination = contamination
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.callbacks = callbacks

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IsolationForest:
        """Grow the forest.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. Missing values and columns of categories need no preparation.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_rows,), default=None
            Rows are drawn in proportion to these.

        Returns
        -------
        IsolationForest
            The fitted estimator.
        """
        with all_or_nothing(self):
            return self._fit(X, sample_weight)

    def grow_trees(self, X: Any, y: Any, sample_weight: Any, workers: Workers) -> IsolationForest:
        """Grow some trees of a forest that several workers grow together.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        workers : Workers
            The seed of the forest, and the number of the first tree of this worker.

        Returns
        -------
        IsolationForest
            The estimator, with the trees of this worker.
        """
        self._validate_params()
        return self._fit(X, sample_weight, workers)

    def _fit(self, X: Any, sample_weight: Any, workers: Workers = LOCAL) -> IsolationForest:
        before: IsolationTrees | None = vars(self).get("_model") if self.warm_start else None
        if before is None:
            for name in ("_model", "_samples", "_estimators"):
                self.__dict__.pop(name, None)
        table, schema = make_training_table(self, X, "no_validation", workers)
        if before is not None:
            check_same_columns(before.schema, schema)
        weights = self._check_weights(sample_weight, table.n_rows)
        n_drawn = self._n_rows_drawn(table.n_rows)
        if not self.bootstrap and weights is not None and np.count_nonzero(weights) < n_drawn:
            raise ValueError(
                f"max_samples: expected at most {np.count_nonzero(weights)}, the number of rows of "
                f"positive sample_weight, to draw without replacement, got {n_drawn}"
            )
        n_before = 0 if before is None else before.n_trees
        n_more = self._n_trees_to_grow(n_before)
        if before is None:
            seed = draw_seed(self.random_state, workers)
            self.estimators_features_ = []
        else:
            seed = self._samples.seed
        self.categories_ = list(schema.categories)
        self.max_samples_ = n_drawn
        self._samples = TreeSamples(seed, table.n_rows, n_drawn, bool(self.bootstrap), weights)
        max_depth = int(np.ceil(np.log2(max(n_drawn, 2))))
        self.estimator_ = ExtraTreeRegressor(max_depth=max_depth, max_features=1)
        if before is None:
            store = ForestStore("squared_error", [], 1, False, schema.n_categories)
        else:
            store = before.store
        rows = core_table(table, schema)
        if n_more > 0:
            self._grow(rows, store, n_before + workers.first_tree, n_more)
        self._model = IsolationTrees(store, schema, n_drawn)
        created = vars(self).get("_estimators")
        self._estimators = None if created is None else created.extended(len(store))
        self.offset_ = -0.5
        if self.contamination != "auto":
            scores = self._score_rows(rows)
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

    def _check_weights(self, sample_weight: Any, n_rows: int) -> Any:
        if sample_weight is None:
            return None
        weights = check_weights(sample_weight, n_rows)
        if not weights.sum() > 0:
            raise ValueError("sample_weight leaves no row of positive weight")
        return weights

    def _n_trees_to_grow(self, n_before: int) -> int:
        n_more = self.n_estimators - n_before
        if n_more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n_before} when warm_start==True"
            )
        if n_more == 0:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=5,
            )
        return n_more

    def _grow(self, rows: Any, store: ForestStore, first_tree: int, n_trees: int) -> None:
        """Append trees to the store."""
        n_threads = effective_n_jobs(self.n_jobs)
        features = self._draw_features(first_tree, n_trees)
        options = _core.ForestOptions(
            tree=_core.GrowOptions(
                criterion="squared_error",
                random_splits=True,
                max_depth=int(self.estimator_.max_depth or 1),
                max_features=1,
                seed=self._samples.seed,
                narrow_thresholds=True,
            ),
            first_tree=first_tree,
            n_trees=n_trees,
            n_threads=n_threads,
            bootstrap=True,
            replace=bool(self.bootstrap),
            n_drawn=int(self._samples.n_drawn or 0),
        )
        # All targets differ, so no node with several rows is pure.
        n_rows = self._samples.n_rows
        targets = np.random.default_rng(self._samples.seed).permutation(n_rows).astype(np.float64)
        _core.grow_forest(
            store.core,
            _core.PreparedTable(rows, True, n_threads, True),
            core_targets(targets[:, None], [], None),
            options,
            self._samples.weights,
            None,
            features,
            _core.OutOfBag(),
            tree_progress(progress_hook(self), n_trees),
        )

    @property
    def _max_samples(self) -> int:
        return int(self.max_samples_)  # a private name of scikit-learn, which its tests read

    def _n_rows_drawn(self, n_rows: int) -> int:
        if isinstance(self.max_samples, str):
            return min(256, n_rows)
        if isinstance(self.max_samples, Integral):
            if int(self.max_samples) > n_rows:
                warn(
                    f"max_samples ({self.max_samples}) is greater than the total number of samples "
                    f"({n_rows}). max_samples will be set to n_samples for estimation.",
                    stacklevel=3,
                )
            return min(int(self.max_samples), n_rows)
        return max(1, int(self.max_samples * n_rows))

    def _draw_features(self, first: int, n_trees: int) -> Any:
        """Return the columns of each new tree, or None for all columns."""
        n_features = self.n_features_in_
        wanted = self.max_features
        n_drawn = int(wanted) if isinstance(wanted, Integral) else int(wanted * n_features)
        if n_drawn > n_features:
            raise ValueError("max_features must be <= n_features")
        n_drawn = max(1, n_drawn)
        if n_drawn == n_features:
            drawn = [np.arange(n_features) for _ in range(n_trees)]
            self.estimators_features_ = self.estimators_features_ + drawn
            return None
        drawn = [
            np.random.default_rng([self._samples.seed, t]).permutation(n_features)[:n_drawn]
            for t in range(first, first + n_trees)
        ]
        self.estimators_features_ = self.estimators_features_ + drawn
        return np.array(drawn, dtype=np.int32).reshape(n_trees, n_drawn)

    @property
    def estimators_(self) -> Any:
        """The trees as estimators; each is created on first access."""
        if "_model" not in vars(self):
            raise AttributeError("IsolationForest is not fitted: it has no estimators_")
        if self.__dict__.get("_estimators") is None:
            self._estimators = LazyTrees(self._model.n_trees, self._make_fitted_tree)
        return self._estimators

    def _make_fitted_tree(self, index: int) -> Any:
        tree = ExtraTreeRegressor(**self.estimator_.get_params(deep=False))
        tree.random_state = self._samples.seed_of_tree(index)
        return tree_of_subset(
            tree,
            self._model.store.tree(index),
            self.estimators_features_[index],
            self._model.schema,
        )

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """Training rows of each tree, drawn again on access."""
        check_is_fitted(self)
        return [self._samples.rows_of_tree(t) for t in range(self._model.n_trees)]

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        return upgrade_isolation_forest(state)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    def _score_rows(self, rows: Any) -> NDArray[np.float64]:
        lengths = self._model.raw_scores(rows, effective_n_jobs(self.n_jobs))[:, 0]
        usual = self._model.usual_length
        scores = 2.0 ** -(lengths / usual) if usual > 0 else np.full_like(lengths, 0.5)
        return -scores

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the negated anomaly score: near -1 for outliers, near 0 for others.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The lower, the more abnormal.
        """
        check_is_fitted(self)
        return self._score_rows(read_for_core(self, X, self._model.schema))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row relative to the threshold of `predict`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Classify rows as outliers or inliers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            -1 for outliers, 1 for others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
