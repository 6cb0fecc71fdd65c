"""Isolation forests: rows that are parted early from the others are outliers."""

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
from spinney.data.table import Schema
from spinney.data.warm_start import check_same_columns
from spinney.forest.base import ForestShare, by_trees, draw_seed, learn_table
from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import ExtraTreeRegressor
from spinney.tree.base import BaseTree

__all__ = ["IsolationForest"]


class IsolationForest(OutlierMixin, ModelMethods, BaseEstimator):
    """Finds outliers by how few random questions part them from the other rows.

    Each tree asks at random, a random column at a random place, until the rows of a small sample
    are alone or the tree is as deep as the logarithm of the sample. Rows whose leaves lie near
    the roots are outliers. Parameters and attributes are those of scikit-learn's class of the
    same name; what is added is marked *new*.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : "auto", int or float, default="auto"
        Rows drawn for each tree: a number, or a share of all rows; "auto" is 256, or all if there
        are fewer.
    contamination : "auto" or float, default="auto"
        Share of outliers among the rows of fit, which sets the threshold of `predict`; "auto"
        takes the threshold of the original paper.
    max_features : int or float, default=1.0
        Columns drawn for each tree: a number, or a share.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    n_jobs : int, default=None
        Threads; None means the value of `spinney.set_num_threads`. The result has the same bits
        for any number.
    random_state : int, RandomState instance or None, default=None
        Decides all draws. Tree t is the same whatever `n_estimators` is.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether fit goes on with the trees that are there, up to `n_estimators`.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" takes a frame's string and category
        columns; or a boolean mask, indices, or names; None means that all are numeric.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (trees done, all trees); an exception ends it.

    Attributes
    ----------
    estimator_ : ExtraTreeRegressor
        A tree with the parameters of all.
    estimators_ : sequence of ExtraTreeRegressor
        The trees, each made when it is first asked for.
    estimators_features_ : list of ndarray
        The columns that each tree uses.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    max_samples_ : int
        Rows drawn for each tree.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are all strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.

    Notes
    -----
    Missing values go left or right by the toss of a coin where the rows of a node have them, as
    one more value; categories are divided at random. A category that fit did not see, and a
    missing value where fit saw none, goes to the larger side.

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
    _schema: Schema
    _store: ForestStore
    _share: ForestShare | None = None  # while several workers grow one forest

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
            Itself.
        """
        with all_or_nothing(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> IsolationForest:
        n_threads = effective_n_jobs(self.n_jobs)
        before = self.__dict__.get("_store") if self.warm_start else None
        if before is None:
            for name in ("_store", "_estimators"):
                self.__dict__.pop(name, None)
        table, schema = learn_table(self, X)
        n_rows = table.n_rows
        if before is not None:
            check_same_columns(self._schema, schema)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, n_rows)
            if not weights.sum() > 0:
                raise ValueError("sample_weight leaves no row of positive weight")
        n_drawn = self._n_rows_drawn(n_rows)
        if not self.bootstrap and weights is not None and np.count_nonzero(weights) < n_drawn:
            raise ValueError(
                f"max_samples: expected at most {np.count_nonzero(weights)}, the number of rows of "
                f"positive sample_weight, to draw without replacement, got {n_drawn}"
            )
        n_before = 0 if before is None else len(before)
        n_more = self.n_estimators - n_before
        if n_more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n_before} when warm_start==True"
            )
        if n_more == 0:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=2,
            )
        if before is None:
            self._seed = draw_seed(self)
            self.estimators_features_ = []
        self._schema = schema
        self.categories_ = list(schema.categories)
        self.max_samples_ = n_drawn
        self._n_samples = n_rows
        self._sample_weight = weights
        self._max_samples = n_drawn
        max_depth = int(np.ceil(np.log2(max(n_drawn, 2))))
        self.estimator_ = ExtraTreeRegressor(max_depth=max_depth, max_features=1)
        store = before
        if store is None:
            n_categories = [0 if v is None else len(v) for v in self.categories_]
            store = ForestStore("squared_error", [], 1, False, n_categories)
        first_tree = n_before + (0 if self._share is None else self._share.first_tree)
        features = self._draw_features(first_tree, n_more)
        options = _core.ForestOptions()
        tree = _core.GrowOptions()
        tree.criterion = "squared_error"
        tree.random_splits = True
        tree.max_depth = max_depth
        tree.max_features = 1
        tree.seed = self._seed
        tree.narrow_thresholds = True
        options.tree = tree
        options.first_tree = first_tree
        options.n_trees = n_more
        options.n_threads = n_threads
        options.bootstrap = True
        options.replace = bool(self.bootstrap)
        options.n_drawn = n_drawn
        rows = core_table(table, schema)
        if n_more > 0:
            # Targets that are all different: no node is pure before its rows are alone.
            targets = np.random.default_rng(self._seed).permutation(n_rows).astype(np.float64)
            store.core.grow(
                _core.PreparedTable(rows, True, n_threads, True),
                core_targets(targets[:, None], [], None),
                options,
                weights,
                None,
                features,
                _core.OutOfBag(),
                by_trees(progress_hook(self), n_more),
            )
        self._store = store
        made = vars(self).get("_estimators")
        self._estimators = None if made is None else made.extended(len(store))
        self.offset_ = -0.5
        if self.contamination != "auto":
            scores = self._score_table(rows)
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

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
        """Columns of each new tree, or None for all; adds to ``estimators_features_``."""
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
            np.random.default_rng([self._seed, t]).permutation(n_features)[:n_drawn]
            for t in range(first, first + n_trees)
        ]
        self.estimators_features_ = self.estimators_features_ + drawn
        return np.array(drawn, dtype=np.int32).reshape(n_trees, n_drawn)

    @property
    def estimators_(self) -> Any:
        """The trees as estimators; each is made when it is first asked for."""
        if "_store" not in vars(self):
            raise AttributeError("IsolationForest is not fitted: it has no estimators_")
        if self.__dict__.get("_estimators") is None:
            self._estimators = LazyTrees(len(self._store), self._make_fitted_tree)
        return self._estimators

    def _make_fitted_tree(self, index: int) -> Any:
        tree = ExtraTreeRegressor(**self.estimator_.get_params(deep=False))
        tree.random_state = _core.seed_of_tree(self._seed, index)
        return tree_of_subset(
            tree, self._store.tree(index), self.estimators_features_[index], self._schema
        )

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """Rows that each tree was grown from, drawn again when asked for."""
        check_is_fitted(self)
        return [
            _core.draw_bag(
                self._n_samples,
                self._max_samples,
                bool(self.bootstrap),
                self._sample_weight,
                self._seed,
                t,
            )
            for t in range(len(self._store))
        ]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in vars(self)

    def _score_table(self, table: Any) -> NDArray[np.float64]:
        depths = np.empty(table.n_rows)
        self._store.core.path_lengths(table, effective_n_jobs(self.n_jobs), depths)
        usual = len(self._store) * _core.mean_path_length(float(self.max_samples_))
        scores = 2.0 ** -(depths / usual) if usual > 0 else np.full_like(depths, 0.5)
        return -scores

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the opposite of the anomaly score: near -1 for outliers, near 0 for others.

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
        return self._score_table(read_for_core(self, X, self._schema))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how far each row is on the side of the usual.

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
        """Tell outliers from the others.

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
