"""Random forests and extremely randomised trees: classifiers and regressors."""

from __future__ import annotations

from typing import Any

from spinney.forest.classifier import ForestClassifier
from spinney.forest.regressor import ForestRegressor
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from spinney.tree.base import renamed_criterion

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]


class RandomForestClassifier(ForestClassifier):
    """A random forest classifier.

    Trees grown from bootstrap samples, each node from a random subset of the columns (√d of them);
    the forest predicts the mean of the trees' class probabilities. Parameters and attributes
    are those of scikit-learn's class of the same name; additions are marked *new*.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
        The impurity.
    max_depth : int, default=None
        Largest depth of a tree; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of a tree's weight that each child must have.
    max_features : {"sqrt", "log2", None}, int or float, default="sqrt"
        Columns drawn at random at each node; None or 1.0 means all of them.
    max_leaf_nodes : int, default=None
        Largest number of leaves of a tree. The node with the largest decrease is then split first.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    bootstrap : bool, default=True
        Whether each tree is grown from rows drawn with replacement; otherwise from all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score: the accuracy, or
        ``oob_score(y_true, y_pred)``. Needs `bootstrap`.
    n_jobs : int, default=None
        Threads; None means the value of `spinney.set_num_threads`. The result has the same bits
        for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples of rows and columns. Tree t does not depend on `n_estimators`.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds trees up to `n_estimators`.
    class_weight : dict, list of dict, "balanced" or "balanced_subsample", default=None
        Weights of the classes; "balanced_subsample" balances them in each tree's sample.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning of each tree with this alpha.
    max_samples : int or float, default=None
        Rows drawn for each tree: a number, or a fraction of all rows; None means as many
        rows as X has. Needs `bootstrap`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the probability of the second class may not fall as the feature rises; -1: not
        rise; 0: free.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" takes a frame's string and category
        columns; or a boolean mask, indices, or names; None means that all are numeric.
    importance_type : {"impurity", "corrected", "permutation"}, default="impurity"
        *New*. The measure of ``feature_importances_``. "impurity": share in the decrease of the
        impurity on the training rows, which favours columns of many values. "corrected": the
        decrease on the out-of-bag rows, where a useless column gains nothing. "permutation":
        how much worse the trees are on the out-of-bag rows if the column is shuffled. The
        latter two need `bootstrap`.
    voting : {"soft", "hard"}, default="soft"
        *New*. "soft" averages the trees' class probabilities; "hard" counts each tree's vote.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (trees done, all trees); an exception ends it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        The classes; a list with several outputs.
    n_classes_ : int or ndarray
        Number of classes.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all names are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Number of columns of y.
    estimator_ : DecisionTreeClassifier
        An unfitted tree with the parameters of all trees.
    estimators_ : sequence of DecisionTreeClassifier
        The trees; each is created from the compact store on first access.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each column; see `importance_type`.
    oob_score_ : float
        Score on the out-of-bag rows, if `oob_score`.
    oob_decision_function_ : ndarray of shape (n_rows, n_classes)
        Out-of-bag class probabilities of each row, if `oob_score`.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag accuracy after 1, 2, … trees, if `oob_score`.

    See Also
    --------
    ExtraTreesClassifier : Random thresholds, too.
    BaggingClassifier : Any learner on bootstrap samples.

    Notes
    -----
    Large nodes are cut where counts in at most 256 cells of a column are best, and then exactly
    among the values of the two cells beside that cut; nodes of up to 256 rows are searched
    exactly.

    The forest stores only splits as nodes; a pure leaf is stored as its class or value. It takes a
    quarter to a tenth of scikit-learn's memory.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> from spinney.ensemble import RandomForestClassifier
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X_test, y_test = load_spam(return_X_y=True, split="test")
    >>> forest = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> forest.score(X_test, y_test) > 0.94
    True
    >>> abs(forest.oob_score_ - forest.score(X_test, y_test)) < 0.02
    True
    >>> len(forest.oob_curve_)
    100
    """

    _tree_class = DecisionTreeClassifier

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        importance_type: str = "impurity",
        voting: str = "soft",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.importance_type = importance_type
        self.voting = voting
        self.callbacks = callbacks


class RandomForestRegressor(ForestRegressor):
    """A random forest regressor, with quantiles and intervals.

    Trees grown from bootstrap samples; the forest predicts the mean of the trees. Parameters
    and attributes are those of scikit-learn's class of the same name; what is added is marked
    *new*, as are `predict_quantiles` and `predict_interval`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "absolute_error", "friedman_mse", "poisson"}, \
            default="squared_error"
        The impurity. "friedman_mse" is deprecated and means "squared_error".
    max_depth : int, default=None
        Largest depth of a tree; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of a tree's weight that each child must have.
    max_features : {"sqrt", "log2", None}, int or float, default=1.0
        Columns drawn at random at each node; None or 1.0 means all of them.
    max_leaf_nodes : int, default=None
        Largest number of leaves of a tree. The node with the largest decrease is then split first.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    bootstrap : bool, default=True
        Whether each tree is grown from rows drawn with replacement; otherwise from all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score: R², or ``oob_score(y_true, y_pred)``. Needs
        `bootstrap`.
    n_jobs : int, default=None
        Threads; None means the value of `spinney.set_num_threads`. The result has the same bits
        for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples of rows and columns. Tree t does not depend on `n_estimators`.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds trees up to `n_estimators`.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning of each tree with this alpha.
    max_samples : int or float, default=None
        Rows drawn for each tree: a number, or a fraction of all rows; None means as many
        rows as X has. Needs `bootstrap`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the prediction may not fall as the feature rises; -1: not
        rise; 0: free.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" takes a frame's string and category
        columns; or a boolean mask, indices, or names; None means that all are numeric.
    importance_type : {"impurity", "corrected", "permutation"}, default="impurity"
        *New*. The measure of ``feature_importances_``. "impurity": share in the decrease of the
        impurity on the training rows, which favours columns of many values. "corrected": the
        decrease on the out-of-bag rows, where a useless column gains nothing. "permutation":
        how much worse the trees are on the out-of-bag rows if the column is shuffled. The
        latter two need `bootstrap`.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (trees done, all trees); an exception ends it.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all names are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Number of columns of y.
    estimator_ : DecisionTreeRegressor
        An unfitted tree with the parameters of all trees.
    estimators_ : sequence of DecisionTreeRegressor
        The trees; each is created from the compact store on first access.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each column; see `importance_type`.
    oob_score_ : float
        Score on the out-of-bag rows, if `oob_score`.
    oob_prediction_ : ndarray of shape (n_rows,)
        Out-of-bag prediction of each row, if `oob_score`.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag R² after 1, 2, … trees, if `oob_score`.

    See Also
    --------
    ExtraTreesRegressor : Random thresholds, too.
    BaggingRegressor : Any learner on bootstrap samples.

    Notes
    -----
    Large nodes are cut where counts in at most 256 cells of a column are best, and then exactly
    among the values of the two cells beside that cut; nodes of up to 256 rows are searched
    exactly.

    The forest stores only splits as nodes; a pure leaf is stored as its class or value. It takes a
    quarter to a tenth of scikit-learn's memory.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(random_state=0).fit(X[:300], y[:300])
    >>> forest.predict(X[300:]).shape
    (142,)
    >>> interval = forest.predict_interval(X[300:], coverage=0.9)
    >>> covered = (interval[:, 0] <= y[300:]) & (y[300:] <= interval[:, 1])
    >>> bool(covered.mean() > 0.8)
    True
    """

    _tree_class = DecisionTreeRegressor

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        importance_type: str = "impurity",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = renamed_criterion(criterion)
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.importance_type = importance_type
        self.callbacks = callbacks


class ExtraTreesClassifier(ForestClassifier):
    """An extremely randomised trees classifier.

    Each node draws a subset of the columns (√d of them) and one threshold for each, and takes the
    best of these. Parameters and attributes are those of scikit-learn's class of the same name;
    additions are marked *new*.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss", "misclassification"}, default="gini"
        The impurity.
    max_depth : int, default=None
        Largest depth of a tree; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of a tree's weight that each child must have.
    max_features : {"sqrt", "log2", None}, int or float, default="sqrt"
        Columns drawn at random at each node; None or 1.0 means all of them.
    max_leaf_nodes : int, default=None
        Largest number of leaves of a tree. The node with the largest decrease is then split first.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    bootstrap : bool, default=False
        Whether each tree is grown from rows drawn with replacement; otherwise from all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score: the accuracy, or
        ``oob_score(y_true, y_pred)``. Needs `bootstrap`.
    n_jobs : int, default=None
        Threads; None means the value of `spinney.set_num_threads`. The result has the same bits
        for any number.
    random_state : int, RandomState instance or None, default=None
        Decides the samples of rows and the draws of columns and thresholds. Tree t is the same
        for any `n_estimators`.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds trees up to `n_estimators`.
    class_weight : dict, list of dict, "balanced" or "balanced_subsample", default=None
        Weights of the classes; "balanced_subsample" balances them in each tree's sample.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning of each tree with this alpha.
    max_samples : int or float, default=None
        Rows drawn for each tree: a number, or a fraction of all rows; None means as many
        rows as X has. Needs `bootstrap`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the probability of the second class may not fall as the feature rises; -1: not
        rise; 0: free.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" takes a frame's string and category
        columns; or a boolean mask, indices, or names; None means that all are numeric.
    importance_type : {"impurity", "corrected", "permutation"}, default="impurity"
        *New*. The measure of ``feature_importances_``. "impurity": share in the decrease of the
        impurity on the training rows, which favours columns of many values. "corrected": the
        decrease on the out-of-bag rows, where a useless column gains nothing. "permutation":
        how much worse the trees are on the out-of-bag rows if the column is shuffled. The
        latter two need `bootstrap`.
    voting : {"soft", "hard"}, default="soft"
        *New*. "soft" averages the trees' class probabilities; "hard" counts each tree's vote.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (trees done, all trees); an exception ends it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        The classes; a list with several outputs.
    n_classes_ : int or ndarray
        Number of classes.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all names are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Number of columns of y.
    estimator_ : ExtraTreeClassifier
        An unfitted tree with the parameters of all trees.
    estimators_ : sequence of ExtraTreeClassifier
        The trees; each is created from the compact store on first access.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each column; see `importance_type`.
    oob_score_ : float
        Score on the out-of-bag rows, if `oob_score`.
    oob_decision_function_ : ndarray of shape (n_rows, n_classes)
        Out-of-bag class probabilities of each row, if `oob_score`.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag accuracy after 1, 2, … trees, if `oob_score`.

    See Also
    --------
    RandomForestClassifier : Best thresholds on bootstrap samples.

    Notes
    -----
    The forest stores only splits as nodes; a pure leaf is stored as its class or value. It takes a
    quarter to a tenth of scikit-learn's memory.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> from spinney.ensemble import ExtraTreesClassifier
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X_test, y_test = load_spam(return_X_y=True, split="test")
    >>> forest = ExtraTreesClassifier(random_state=0).fit(X, y)
    >>> forest.score(X_test, y_test) > 0.94
    True
    """

    _tree_class = ExtraTreeClassifier

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        importance_type: str = "impurity",
        voting: str = "soft",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.importance_type = importance_type
        self.voting = voting
        self.callbacks = callbacks


class ExtraTreesRegressor(ForestRegressor):
    """An extremely randomised trees regressor, with quantiles and intervals.

    Each node draws one threshold for each column and takes the best of these. Parameters and
    attributes are those of scikit-learn's class of the same name; additions are marked *new*,
    as are `predict_quantiles` and `predict_interval`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "absolute_error", "friedman_mse", "poisson"}, \
            default="squared_error"
        The impurity. "friedman_mse" is deprecated and means "squared_error".
    max_depth : int, default=None
        Largest depth of a tree; None means no limit.
    min_samples_split : int or float, default=2
        Rows that a node needs to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Rows that each child must have; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Share of a tree's weight that each child must have.
    max_features : {"sqrt", "log2", None}, int or float, default=1.0
        Columns drawn at random at each node; None or 1.0 means all of them.
    max_leaf_nodes : int, default=None
        Largest number of leaves of a tree. The node with the largest decrease is then split first.
    min_impurity_decrease : float, default=0.0
        Weighted decrease of the impurity that a split must reach.
    bootstrap : bool, default=False
        Whether each tree is grown from rows drawn with replacement; otherwise from all rows.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score: R², or ``oob_score(y_true, y_pred)``. Needs
        `bootstrap`.
    n_jobs : int, default=None
        Threads; None means the value of `spinney.set_num_threads`. The result has the same bits
        for any number.
    random_state : int, RandomState instance or None, default=None
        Decides the samples of rows and the draws of columns and thresholds. Tree t is the same
        for any `n_estimators`.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds trees up to `n_estimators`.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning of each tree with this alpha.
    max_samples : int or float, default=None
        Rows drawn for each tree: a number, or a fraction of all rows; None means as many
        rows as X has. Needs `bootstrap`.
    monotonic_cst : array-like of int of shape (n_features,), default=None
        1: the prediction may not fall as the feature rises; -1: not
        rise; 0: free.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. Columns that hold categories: "from_dtype" takes a frame's string and category
        columns; or a boolean mask, indices, or names; None means that all are numeric.
    importance_type : {"impurity", "corrected", "permutation"}, default="impurity"
        *New*. The measure of ``feature_importances_``. "impurity": share in the decrease of the
        impurity on the training rows, which favours columns of many values. "corrected": the
        decrease on the out-of-bag rows, where a useless column gains nothing. "permutation":
        how much worse the trees are on the out-of-bag rows if the column is shuffled. The
        latter two need `bootstrap`.
    callbacks : callable or list of callables, default=None
        *New*. Called during fit with (trees done, all trees); an exception ends it.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all names are strings.
    categories_ : list of (ndarray or None)
        *New*. The categories of each column, None where it is numeric.
    n_outputs_ : int
        Number of columns of y.
    estimator_ : ExtraTreeRegressor
        An unfitted tree with the parameters of all trees.
    estimators_ : sequence of ExtraTreeRegressor
        The trees; each is created from the compact store on first access.
    estimators_samples_ : list of ndarray
        The rows that each tree was grown from.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each column; see `importance_type`.
    oob_score_ : float
        Score on the out-of-bag rows, if `oob_score`.
    oob_prediction_ : ndarray of shape (n_rows,)
        Out-of-bag prediction of each row, if `oob_score`.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag R² after 1, 2, … trees, if `oob_score`.

    See Also
    --------
    RandomForestRegressor : Best thresholds on bootstrap samples.

    Notes
    -----
    The forest stores only splits as nodes; a pure leaf is stored as its class or value. It takes a
    quarter to a tenth of scikit-learn's memory.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = ExtraTreesRegressor(random_state=0).fit(X[:300], y[:300])
    >>> forest.predict_quantiles(X[300:], [0.1, 0.5, 0.9]).shape
    (142, 3)
    """

    _tree_class = ExtraTreeRegressor

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        max_samples: Any = None,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        importance_type: str = "impurity",
        callbacks: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = renamed_criterion(criterion)
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.importance_type = importance_type
        self.callbacks = callbacks
