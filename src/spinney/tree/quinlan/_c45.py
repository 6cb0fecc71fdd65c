"""C4.5: gain ratio, fractional weights for missing values, pessimistic pruning."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from spinney import _core
from spinney.tree.quinlan._quinlan import QuinlanTree

__all__ = ["C45Classifier"]


class C45Classifier(QuinlanTree):
    """Quinlan's C4.5 (release 8), for trees that are read by people.

    A path splits on a categorical column at most once, with a branch for each category; a numeric
    split has two branches. Splits are chosen by gain ratio, among those of at least average
    information gain. A row with a missing value takes all branches with fractional weights, in
    training and in prediction. The tree is pruned bottom-up by the expected errors of its leaves.

    Parameters
    ----------
    confidence : float or None, default=0.25
        Confidence level of pruning: the expected errors of a leaf are the upper limit that their
        true number exceeds with this probability. Smaller values prune more; None disables pruning.
    min_samples_branch : float, default=2
        Smallest weight of at least two branches of a split. For a numeric split, both sides need a
        tenth of the node's rows per class, if that is more, up to 25.
    group_categories : bool, default=False
        Whether to merge branches of categories pairwise while the gain ratio does not decrease.
    subtree_raising : bool, default=True
        Whether pruning may replace a node by its largest branch.
    collapse : bool, default=True
        Whether to replace subtrees by leaves, before pruning, if that does not increase the
        training errors.
    threshold_cost : bool, default=True
        Whether to subtract log2(number of thresholds) / rows from the gain of a numeric split
        (release 8), which corrects for the choice among thresholds.
    max_depth : int, default=None
        Largest depth; None means no limit.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns: "from_dtype" selects columns of strings or of a categorical dtype;
        otherwise a mask, indices or names.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        Called during fit with (rows in finished leaves, all rows).

    Attributes
    ----------
    tree_ : MultiwayTree
        The nodes.
    classes_, n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    categories_ : list of (ndarray or None)
        The categories of each column, None where it is numeric.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total information gain.

    See Also
    --------
    C45Rules : The tree as an ordered list of rules, simplified.
    DecisionTreeClassifier : CART: two branches, faster, and better in an ensemble.

    Notes
    -----
    As in C4.5, a threshold is the largest value in the data that does not exceed the midpoint
    between two neighbours, and probabilities are plain fractions. The binomial limit uses the exact
    quantile of the normal distribution, where C4.5 interpolates in a small table. A category unseen
    in fit is treated as missing.

    References
    ----------
    Quinlan, C4.5: Programs for Machine Learning, 1993. Quinlan, Improved use of continuous
    attributes in C4.5, JAIR 4, 1996.

    Examples
    --------
    >>> from spinney.datasets import load_play_tennis
    >>> from spinney.tree import C45Classifier, export_text
    >>> tennis = load_play_tennis(as_frame=True)
    >>> print(export_text(C45Classifier().fit(tennis.data, tennis.target)))
    |--- outlook = overcast
    |   |--- class: yes
    |--- outlook = rainy
    |   |--- windy = no
    |   |   |--- class: yes
    |   |--- windy = yes
    |   |   |--- class: no
    |--- outlook = sunny
    |   |--- humidity = high
    |   |   |--- class: no
    |   |--- humidity = normal
    |   |   |--- class: yes
    <BLANKLINE>
    """

    _parameter_constraints: dict[str, Any] = {
        **QuinlanTree._parameter_constraints,
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "min_samples_branch": [Interval(Real, 0.0, None, closed="neither")],
        "group_categories": ["boolean"],
        "subtree_raising": ["boolean"],
        "collapse": ["boolean"],
        "threshold_cost": ["boolean"],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        confidence: float | None = 0.25,
        min_samples_branch: float = 2,
        group_categories: bool = False,
        subtree_raising: bool = True,
        collapse: bool = True,
        threshold_cost: bool = True,
        max_depth: int | None = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.confidence = confidence
        self.min_samples_branch = min_samples_branch
        self.group_categories = group_categories
        self.subtree_raising = subtree_raising
        self.collapse = collapse
        self.threshold_cost = threshold_cost
        self.max_depth = max_depth
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def _options(self, n_threads: int = 1) -> Any:
        return _core.QuinlanOptions(
            prune=self.confidence is not None,
            confidence=0.25 if self.confidence is None else float(self.confidence),
            min_samples_branch=float(self.min_samples_branch),
            group_categories=bool(self.group_categories),
            subtree_raising=bool(self.subtree_raising),
            collapse=bool(self.collapse),
            threshold_cost=bool(self.threshold_cost),
            max_depth=0 if self.max_depth is None else int(self.max_depth),
            n_threads=n_threads,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> C45Classifier:
        """Grow the tree and prune it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows, with categories and missing values as they are.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights. A weight of 2 equals repeating the row.

        Returns
        -------
        C45Classifier
            Itself.
        """
        self._fit(X, y, sample_weight)
        return self
