"""Random trees as an embedding: a row is encoded by its leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, _fit_context
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, _num_samples, check_is_fitted

from spinney.data.table import Schema
from spinney.forest.base import BaseForest
from spinney.models.forest_store import ForestStore
from spinney.models.tree_ensembles import EmbeddingTrees
from spinney.runtime.rollback import all_or_nothing
from spinney.tree import ExtraTreeRegressor

__all__ = ["RandomTreesEmbedding"]


class RandomTreesEmbedding(TransformerMixin, BaseForest):
    """Encodes rows by the leaves of random trees.

    Each tree splits each node at a random threshold of a random column, without any target. The
    encoding has a one for the leaf of the row in each tree, and zeros elsewhere: similar rows have
    common leaves. Parameters and attributes are those of scikit-learn's class of the same name;
    additions are marked *new*.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_depth : int, default=5
        Largest depth of a tree.
    min_samples_split : int or float, default=2
        Minimum number of rows to split a node; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Minimum number of rows of each child; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Minimum fraction of the total weight in each child.
    max_leaf_nodes : int, default=None
        Largest number of leaves of a tree.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of the variance of a random target by a split.
    sparse_output : bool, default=True
        Whether `transform` returns a sparse matrix.
    n_jobs : int, default=None
        Number of threads; None means the value of `spinney.set_num_threads`.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.
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
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.
    n_outputs_ : int
        1.
    one_hot_encoder_ : OneHotEncoder
        The encoder of the leaves.

    Examples
    --------
    >>> from spinney.ensemble import RandomTreesEmbedding
    >>> X = [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]
    >>> embedding = RandomTreesEmbedding(n_estimators=5, random_state=0, max_depth=1).fit(X)
    >>> embedding.transform(X).toarray().sum(axis=1)
    array([5., 5., 5., 5., 5.])
    """

    _tree_class = ExtraTreeRegressor
    # Parameters of the other forests.
    criterion = "squared_error"
    max_features = 1
    bootstrap = False
    oob_score = False
    max_samples = None
    ccp_alpha = 0.0
    monotonic_cst = None
    importance_type = "impurity"

    _parameter_constraints: dict[str, Any] = {
        **{
            name: constraint
            for name, constraint in BaseForest._parameter_constraints.items()
            if name
            not in (
                "max_features",
                "bootstrap",
                "oob_score",
                "max_samples",
                "ccp_alpha",
                "monotonic_cst",
                "importance_type",
            )
        },
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = 5,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        sparse_output: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: Any = "from_dtype",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.callbacks = callbacks

    def _create_model(self, store: ForestStore, schema: Schema) -> EmbeddingTrees:
        return EmbeddingTrees(store, schema)

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        state = super()._upgraded_state(state)
        if "_model" in state:
            state["_model"] = EmbeddingTrees(state["_model"].store, state["_model"].schema)
        return state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RandomTreesEmbedding:
        """Grow the trees.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; rows of weight zero are ignored.

        Returns
        -------
        RandomTreesEmbedding
            The fitted estimator.
        """
        self.fit_transform(X, y, sample_weight=sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow the trees and encode the rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; rows of weight zero are ignored.

        Returns
        -------
        sparse matrix or ndarray of shape (n_rows, n_leaves)
            Ones for the leaves of the row.
        """
        # A random target: it has no information, but no node with several rows is pure.
        target = check_random_state(self.random_state).uniform(size=_num_samples(X))
        with all_or_nothing(self):
            self._fit(X, target, sample_weight)
        self.one_hot_encoder_ = OneHotEncoder(sparse_output=self.sparse_output)
        out = self.one_hot_encoder_.fit_transform(self.apply(X))
        self._n_features_out = out.shape[1]
        return out

    def transform(self, X: Any) -> Any:
        """Encode rows by their leaves.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        sparse matrix or ndarray of shape (n_rows, n_leaves)
            Ones for the leaves of the row.
        """
        check_is_fitted(self)
        return self.one_hot_encoder_.transform(self.apply(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns of the output by tree and leaf.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked against the names seen in fit.

        Returns
        -------
        ndarray of str
            ``randomtreesembedding_{tree}_{leaf}``.
        """
        check_is_fitted(self, "_n_features_out")
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array(
            [
                f"randomtreesembedding_{tree}_{leaf}"
                for tree, leaves in enumerate(self.one_hot_encoder_.categories_)
                for leaf in leaves
            ],
            dtype=object,
        )
