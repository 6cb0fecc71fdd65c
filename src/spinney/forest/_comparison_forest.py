"""Forests of comparison trees."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted

from spinney.forest.sampling import n_rows_drawn
from spinney.runtime.progress import progress_hook
from spinney.tree.triplet.base import (
    PARAMETERS,
    BaseComparison,
    ComparisonClassifier,
    ComparisonRegressor,
)
from spinney.tree.triplet.tree import Closer, ComparisonTree, Indices, Targets

__all__ = ["ComparisonForestClassifier", "ComparisonForestRegressor"]

_OWN = """bootstrap : bool, default=False
        Whether each tree has rows drawn with replacement, in proportion to their weights.
    max_samples : int or float, default=None
        Rows drawn for each tree, as a number or a share; without `bootstrap` no row is drawn twice.
        None means as many as there are.
    random_state : int, RandomState instance or None, default=None
        Seed of pivots and samples; tree t does not depend on the number of trees.
    n_jobs : int, default=None
        Threads; they do not change the result. None means the value of `spinney.set_num_threads`.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callable or list of callables, default=None
        Called with (trees done, trees in all)."""


class _Forest:
    """Parameters and methods of both comparison forests."""

    _parameter_constraints: dict[str, Any] = {
        **BaseComparison._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_samples": [
            None,
            Interval(RealNotInt, 0.0, None, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "verbose": ["verbose"],
        "callbacks": [None, callable, list, tuple],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        metric: Any = "auto",
        oracle: Any = None,
        leaf_size: int = 1,
        max_depth: int | None = None,
        bootstrap: bool = False,
        max_samples: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.metric = metric
        self.oracle = oracle
        self.leaf_size = leaf_size
        self.max_depth = max_depth
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def _grow(
        self: Any, closer: Closer, targets: Targets, rows: Indices, weights: NDArray[np.float64]
    ) -> list[tuple[ComparisonTree, int]]:
        hook = progress_hook(self)
        own = weights[rows]
        n_drawn = n_rows_drawn(
            len(rows), self.max_samples, own if self.bootstrap and (own != 1).any() else None
        )
        if not self.bootstrap and n_drawn > len(rows):
            raise ValueError(
                f"max_samples: expected at most {len(rows)} rows without bootstrap, got {n_drawn}"
            )
        trees = []
        for t, seed in enumerate(self._seeds(self.n_estimators)):
            rng = np.random.default_rng(seed)
            tree_rows, tree_weights = rows, weights
            if self.bootstrap:
                drawn = rng.choice(len(rows), n_drawn, p=own / own.sum())
                counts = np.bincount(drawn, minlength=len(rows))
                tree_rows = rows[counts > 0]
                tree_weights = np.zeros(len(weights))
                tree_weights[rows] = counts
            elif n_drawn < len(rows):
                tree_rows = rows[np.sort(rng.choice(len(rows), n_drawn, replace=False))]
            trees.append(self._grow_one(closer, targets, tree_rows, tree_weights, rng))
            if hook is not None:
                hook(t + 1, self.n_estimators)
        return trees

    @property
    def trees_(self: Any) -> list[ComparisonTree]:
        """The trees, each as parallel arrays."""
        check_is_fitted(self)
        return [self._part(tree) for tree in range(len(self._starts) - 1)]

    def __len__(self: Any) -> int:
        """Return the number of trees."""
        return len(self._starts) - 1

    def apply(self: Any, X: Any) -> Indices:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows, n_estimators)
            Nodes of each tree in `trees_`.
        """
        return np.array(list(self._leaves(X))).T - self._starts[:-1]


class ComparisonForestClassifier(_Forest, ComparisonClassifier):
    __doc__ = f"""A forest classifier that splits on which of two training rows is closer.

    It works on anything that can be compared: vectors with any metric, distance matrices, strings,
    or objects for which only an oracle "is x closer to a than to b?" is available.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    {PARAMETERS}
    {_OWN}

    Attributes
    ----------
    trees_ : list of ComparisonTree
        The trees, each as parallel arrays: `left`, `right`, `pivot_a`, `pivot_b` (training rows),
        `value`, `n_node_samples`, `weighted_n_node_samples`, `depth`.
    n_comparisons_ : int
        Number of comparisons that `fit` requested.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of columns in fit, for vectors and matrices.

    See Also
    --------
    spinney.tree.ComparisonTreeClassifier : One of the trees, and how it is grown.

    References
    ----------
    S. Haghiri, D. Garreau, U. von Luxburg, "Comparison-Based Random Forests", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from spinney.ensemble import ComparisonForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = ComparisonForestClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> bool(forest.score(X[1200:], y[1200:]) > 0.93)
    True
    """


class ComparisonForestRegressor(_Forest, ComparisonRegressor):
    __doc__ = f"""A forest regressor that splits on which of two training rows is closer.

    It works on anything that can be compared: vectors with any metric, distance matrices, strings,
    or objects for which only an oracle "is x closer to a than to b?" is available.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    {PARAMETERS}
    {_OWN}

    Attributes
    ----------
    trees_ : list of ComparisonTree
        The trees, each as parallel arrays: `left`, `right`, `pivot_a`, `pivot_b` (training rows),
        `value`, `n_node_samples`, `weighted_n_node_samples`, `depth`.
    n_comparisons_ : int
        Number of comparisons that `fit` requested.
    n_features_in_ : int
        Number of columns in fit, for vectors and matrices.

    See Also
    --------
    spinney.tree.ComparisonTreeRegressor : One of the trees, and how it is grown.

    References
    ----------
    S. Haghiri, D. Garreau, U. von Luxburg, "Comparison-Based Random Forests", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import ComparisonForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ComparisonForestRegressor(leaf_size=5, random_state=0).fit(X[:300], y[:300])
    >>> bool(forest.score(X[300:], y[300:]) > 0.3)
    True
    """
