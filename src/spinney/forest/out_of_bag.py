"""Out-of-bag predictions, rescaled to the variance of the predictions of the whole forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OutOfBag", "grows_whole", "mean_of_all_trees", "votes_of_all_trees"]

Floats = NDArray[np.float64]

_MIN_WHOLE_VOTES = 0.95  # fraction of rows in which every tree voted for one class
_ROUNDING = 1e-6
_MIN_PRIOR, _MAX_PRIOR = 1e-6, 1e6  # prior votes of a row from the mean of its class


@dataclass(frozen=True)
class OutOfBag:
    """Sums of the predictions of the training rows over their out-of-bag trees.

    Parameters
    ----------
    sums : ndarray of shape (n_rows, width)
        Sums of the predictions.
    squares : ndarray of shape (n_rows, width) or (0, width)
        Sums of the squares of the centred predictions; empty for classifiers.
    n_trees : ndarray of shape (n_rows,)
        Number of out-of-bag trees of each row.
    curve : ndarray of shape (n_trees_of_forest,) or (0,)
        Out-of-bag score of the first 1, 2, … trees.
    importances : ndarray
        Importances of each tree on its out-of-bag rows, flattened; empty unless requested.
    """

    sums: Floats
    squares: Floats
    n_trees: NDArray[np.uint32]
    curve: Floats
    importances: Floats

    def means(self) -> Floats:
        """Return the means over the out-of-bag trees; 0 for rows without such trees."""
        return np.asarray(self.sums / np.maximum(self.n_trees.astype(np.float64), 1)[:, None])


def grows_whole(tree: Any) -> bool:
    """Return whether a tree, or the trees of a forest, grow until all leaves are pure."""
    unlimited = (tree.max_depth, tree.max_leaf_nodes) == (None, None)
    no_row_limits = tree.min_samples_leaf == 1 and tree.min_samples_split == 2
    unpruned = tree.min_impurity_decrease == 0 and tree.ccp_alpha == 0
    return bool(unlimited and no_row_limits and unpruned and tree.min_weight_fraction_leaf == 0)


def votes_of_all_trees(shares: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Rescale out-of-bag vote shares to the variance of the votes of all trees.

    About a third of the trees are out-of-bag trees of a row. Their shares vary more than those of
    all trees, which predict new rows. Shares of few trees also have other values: a share of three
    votes is never a tenth.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Vote shares of the out-of-bag trees of each row.
    codes : ndarray of shape (n_rows,)
        Classes of the rows.
    n_trees : ndarray of shape (n_rows,)
        Number of out-of-bag trees, at least one.
    n_all : int
        Number of all trees.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Shares whose distribution within each class is that of all trees. A single row gains no
        information.
    """
    votes = shares * n_trees[:, None]
    has_whole_votes = np.abs(votes - np.rint(votes)).max(axis=1) < _ROUNDING
    if has_whole_votes.mean() < _MIN_WHOLE_VOTES:
        return _less_variable(shares, codes, n_trees, n_all)
    return _with_more_votes(votes, codes, n_trees, n_all)


def _with_more_votes(votes: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Draw the votes of the other trees as if the row had been out of their bags, too.

    Each row has its own vote probabilities. Within a class, these have a Dirichlet distribution
    around the mean of the class. Its concentration follows from the rate at which two trees agree
    about a row. The draws use a fixed seed.
    """
    class_means = np.zeros((codes.max() + 1, votes.shape[1]))
    np.add.at(class_means, codes, votes)
    class_means /= np.maximum(class_means.sum(axis=1, keepdims=True), 1.0)
    agreement, chance_agreement = 0.0, 0.0
    several = n_trees > 1
    if several.any():
        several_votes, n = votes[several], n_trees[several].astype(np.float64)
        pairs = (several_votes * (several_votes - 1)).sum(axis=1)
        agreement = float(np.mean(pairs / (n * (n - 1))))
        chance_agreement = float(np.mean((class_means[codes[several]] ** 2).sum(axis=1)))
    excess = agreement - chance_agreement
    prior = min((1 - agreement) / excess, _MAX_PRIOR) if excess > 0 else _MAX_PRIOR
    random = np.random.default_rng(0)
    shape = max(prior, _MIN_PRIOR) * class_means[codes] + np.maximum(votes, 0)
    probabilities = random.standard_gamma(shape)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    other_votes = random.multinomial(n_all - n_trees.astype(np.int64), probabilities)
    return np.asarray((votes + other_votes) / n_all)


def _less_variable(shares: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Reduce the variance to that of all trees, for leaves with several classes.

    The variance of a share p of n trees is at most p (1 - p) / n. The difference to all trees is
    subtracted from the variance of the rows of each class around their mean.
    """
    class_means = np.zeros((codes.max() + 1, shares.shape[1]))
    np.add.at(class_means, codes, shares)
    n_rows_of_class = np.bincount(codes, minlength=len(class_means))
    means = (class_means / np.maximum(n_rows_of_class, 1)[:, None])[codes]
    noise = np.mean((shares * (1 - shares)).sum(axis=1) * (1 / n_trees - 1 / n_all))
    variance = np.mean(((shares - means) ** 2).sum(axis=1))
    factor = np.sqrt(max(0.0, 1 - noise / variance)) if variance > 0 else 1.0
    return np.asarray(means + factor * (shares - means))


def mean_of_all_trees(
    predicted: Floats,
    truth: Floats,
    variance: Floats,
    n_trees: Any,
    n_all: int,
    *,
    weights: Any = None,
) -> Floats:
    """Rescale the errors of out-of-bag means to those of the means of all trees.

    The mean of few trees has an additional error: the variance of the trees over their number.

    Parameters
    ----------
    predicted, truth : ndarray of shape (n_rows, n_outputs)
        Means over the out-of-bag trees, and targets.
    variance : ndarray of shape (n_rows, n_outputs)
        Variance of these trees around their mean.
    n_trees : ndarray of shape (n_rows,)
        Number of out-of-bag trees, at least one.
    n_all : int
        Number of all trees.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    """
    several = n_trees > 1
    if not several.any() or not np.isfinite(variance[several]).all():
        return predicted
    n = n_trees[:, None].astype(np.float64)
    variance_of_tree = np.maximum(variance, 0.0) * n / np.maximum(n - 1, 1.0)
    # A single tree has no variance: use the mean of the other rows.
    variance_of_tree[~several] = variance_of_tree[several].mean(axis=0)
    errors = truth - predicted
    excess = np.average(variance_of_tree * (1 / n - 1 / n_all), axis=0, weights=weights)
    total = np.average(errors**2, axis=0, weights=weights)
    fraction = np.divide(excess, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(truth - np.sqrt(np.clip(1 - fraction, 0.0, 1.0)) * errors)
