"""CART trees and extremely randomised trees for classification and regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from spinney.conformal.mixins import IntervalsOnRequest, SetsOnRequest
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.base import BaseTree, renamed_criterion

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
]


class DecisionTreeClassifier(SetsOnRequest, ClassifierMixin, BaseTree):
    """A classification tree (CART), exact and fast.

    Each node has one split: ``x <= threshold`` on a numeric column, or ``x in C`` on a categorical
    one. It is the split with the largest decrease of the impurity, over all columns, all thresholds
    and (where that is feasible) all sets of categories. Parameters and attributes are those of
    scikit-learn's class of the same name; additions are marked *new*.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
        The impurity. "entropy" and "log_loss" are the same. *New*: "misclassification", the share
        of rows outside the majority class; Gini breaks its frequent ties.
    splitter : {"best", "random"}, default="best"
        "random" draws one threshold (or one set of categories) per column and uses the best of
        these splits.
    max_depth : int, default=None
        Largest depth; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that each child must have.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn at random at each node; None means all of them.
    random_state : int, RandomState instance or None, default=None
        Seed for the draws of columns and thresholds, and for ties between columns. With
        ``splitter="best"`` and all columns it only breaks ties, and None is deterministic.
    max_leaf_nodes : int, default=None
        Largest number of leaves; None means no limit. With a limit, growth is best-first: the node
        with the largest decrease is split next.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    class_weight : dict, list of dict or "balanced", default=None
        Weights of the classes.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning by impurity with this alpha. See also `prune`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the probability of the second class must not decrease as the feature increases; -1: must
        not increase; 0: no constraint. For two classes.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" selects a frame's string and category
        columns; otherwise a boolean mask, indices, or names; None means that all are numeric.
    n_jobs : int, default=None
        *New*. Number of threads; None means the value of `spinney.set_num_threads`. The result
        does not depend on it.
    verbose : int, default=0
        *New*. 1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (rows in finished leaves, all rows); an exception stops the
        fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        The classes; a list with several outputs.
    n_classes_ : int or ndarray
        The number of classes.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names, if all of them are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Columns of y.
    max_features_ : int
        Columns drawn at each node.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the total decrease of the impurity.
    tree_ : Tree
        The nodes, as parallel arrays with scikit-learn's names.

    See Also
    --------
    spinney.tree.export_text, spinney.tree.export_rules, spinney.tree.export_svg : Read the tree.

    Notes
    -----
    Missing values (NaN, None, null) need no preparation. Each node learns a default direction for
    them; if its training rows had no missing values in the split column, they go to the larger
    child. In a categorical column, missing is one more category. A category unseen in fit is
    treated as missing; one unseen only in the node's rows goes to the larger child.

    The best set of categories is found exactly for two classes, and for more classes while at most
    ten categories are present in the node. Beyond that the categories are ordered by the
    probability of each class in turn, and by the first principal component of the class
    probabilities (Coppersmith, Hong and Hosking 1999), and the best cut of these orders is used.
    If `min_samples_leaf` or `min_weight_fraction_leaf` forbid some sets, the best allowed cut of
    the order is used, which need not be the best allowed set.

    float64 columns are split exactly; nothing is rounded to float32.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X_test, y_test = load_spam(return_X_y=True, split="test")
    >>> tree = DecisionTreeClassifier().fit(X, y)
    >>> pruned = tree.prune(X, y, cv=5)
    >>> pruned.get_n_leaves() < tree.get_n_leaves()
    True
    >>> pruned.score(X_test, y_test) > 0.9
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseTree._parameter_constraints,
        "criterion": [StrOptions({"gini", "entropy", "log_loss", "misclassification"})],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows: NumPy, pandas, Polars, Arrow or SciPy sparse.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative row weights; None means equal weights. Rows of weight zero are ignored.
        check_input : bool, default=True
            False skips the validation of X, which must then be a float32 or float64 array.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, check_input)

    def predict(self, X: Any, check_input: bool = True) -> NDArray[Any]:
        """Predict the class of each row: the majority class of its leaf.

        Ties go to the first class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        check_input : bool, default=True
            False skips the validation of a float32 or float64 array.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
        """
        table = self._read(X, check_input)
        n_threads = effective_n_jobs(self.n_jobs)
        labels = self.tree_.labels
        if self.n_outputs_ == 1:
            out = np.empty(table.n_rows, dtype=np.int64)
            self.tree_.reader.predict_labels(table, n_threads, labels[0], out)
            return np.asarray(self.classes_.take(out))
        leaves = self.tree_.apply_table(table, n_threads)
        predictions = np.zeros((len(leaves), self.n_outputs_), dtype=self.classes_[0].dtype)
        for k, classes in enumerate(self.classes_):
            predictions[:, k] = classes.take(labels[k, leaves])
        return predictions

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Predict the probability of each class: its share in the row's leaf.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        check_input : bool, default=True
            False skips the validation of a float32 or float64 array.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or a list of them
        """
        table = self._read(X, check_input)
        values = self.tree_.predict_table(table, effective_n_jobs(self.n_jobs))
        if self.n_outputs_ == 1:
            return values[:, 0, : self.n_classes_]
        return [values[:, k, : self.n_classes_[k]] for k in range(self.n_outputs_)]

    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or a list of them
        """
        proba = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(proba) if self.n_outputs_ == 1 else [np.log(p) for p in proba]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class DecisionTreeRegressor(IntervalsOnRequest, RegressorMixin, BaseTree):
    """A regression tree (CART), exact and fast.

    Each node has one split: ``x <= threshold`` on a numeric column, or ``x in C`` on a categorical
    one. It is the split with the largest decrease of the impurity. Parameters and attributes are
    those of scikit-learn's class of the same name; additions are marked *new*.

    Parameters
    ----------
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        The impurity: variance around the mean, mean absolute deviation from the median, or half
        the Poisson deviance. "friedman_mse" is deprecated and means "squared_error".
    splitter : {"best", "random"}, default="best"
        "random" draws one threshold (or one set of categories) per column and uses the best of
        these splits.
    max_depth : int, default=None
        Largest depth; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of the total weight that each child must have.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn at random at each node; None means all of them.
    random_state : int, RandomState instance or None, default=None
        Seed for the draws of columns and thresholds, and for ties between columns. With
        ``splitter="best"`` and all columns it only breaks ties, and None is deterministic.
    max_leaf_nodes : int, default=None
        Largest number of leaves; None means no limit. With a limit, growth is best-first: the node
        with the largest decrease is split next.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning with this alpha. See also `prune`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the prediction must not decrease as the feature increases; -1: must not increase; 0: no
        constraint.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" selects a frame's string and category
        columns; otherwise a boolean mask, indices, or names; None means that all are numeric.
    n_jobs : int, default=None
        *New*. Number of threads; None means the value of `spinney.set_num_threads`. The result
        does not depend on it.
    verbose : int, default=0
        *New*. 1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (rows in finished leaves, all rows); an exception stops the
        fit.

    Attributes
    ----------
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names, if all of them are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Columns of y.
    max_features_ : int
        Columns drawn at each node.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the total decrease of the impurity.
    tree_ : Tree
        The nodes, as parallel arrays with scikit-learn's names.

    Notes
    -----
    Missing values and unseen categories are treated as in `DecisionTreeClassifier`. With one
    output and squared error or Poisson deviance the best set of categories is found exactly, by
    ordering them by their means (Fisher 1958); with absolute error they are ordered by their
    medians, with several outputs by each mean and by the first principal component of the means,
    which is a heuristic.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = np.array([1, 1, 1, 1, 5, 5, 5, 5.0])
    >>> tree = DecisionTreeRegressor().fit(X, y)
    >>> tree.predict([[0.0], [7.0]])
    array([1., 5.])
    >>> float(tree.tree_.threshold[0])
    3.5
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseTree._parameter_constraints,
        "criterion": [StrOptions({"squared_error", "absolute_error", "poisson"})],
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.criterion = renamed_criterion(criterion)
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows: NumPy, pandas, Polars, Arrow or SciPy sparse.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            The numbers to predict.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative row weights; None means equal weights. Rows of weight zero are ignored.
        check_input : bool, default=True
            False skips the validation of X, which must then be a float32 or float64 array.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, check_input)

    def predict(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Predict the value of each row: the mean (or median) of its leaf.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        check_input : bool, default=True
            False skips the validation of a float32 or float64 array.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
        """
        table = self._read(X, check_input)
        values = self.tree_.predict_table(table, effective_n_jobs(self.n_jobs))
        return values[:, 0, 0] if self.n_outputs_ == 1 else values[:, :, 0]


class ExtraTreeClassifier(DecisionTreeClassifier):
    """An extremely randomised classification tree.

    Each node draws one threshold (or one set of categories) for each of `max_features` columns and
    uses the best of these splits. Intended for ensembles. The parameters are those
    of `DecisionTreeClassifier`, with ``splitter="random"`` and ``max_features="sqrt"`` as defaults.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> from spinney.tree import ExtraTreeClassifier
    >>> X, y = load_spam(return_X_y=True)
    >>> ExtraTreeClassifier(random_state=0).fit(X, y).score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            criterion=criterion,
            splitter=splitter,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            random_state=random_state,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            class_weight=class_weight,
            ccp_alpha=ccp_alpha,
            monotonic_cst=monotonic_cst,
            categorical_features=categorical_features,
            n_jobs=n_jobs,
            verbose=verbose,
            callbacks=callbacks,
        )


class ExtraTreeRegressor(DecisionTreeRegressor):
    """An extremely randomised regression tree.

    Each node draws one threshold (or one set of categories) for each of `max_features` columns and
    uses the best of these splits. Intended for ensembles. The parameters are those
    of `DecisionTreeRegressor`, with ``splitter="random"`` and ``max_features=1.0`` as defaults.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.tree import ExtraTreeRegressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> ExtraTreeRegressor(random_state=0).fit(X, X[:, 0]).predict([[3.0]])
    array([3.])
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        random_state: Any = None,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            criterion=criterion,
            splitter=splitter,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            random_state=random_state,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            ccp_alpha=ccp_alpha,
            monotonic_cst=monotonic_cst,
            categorical_features=categorical_features,
            n_jobs=n_jobs,
            verbose=verbose,
            callbacks=callbacks,
        )
