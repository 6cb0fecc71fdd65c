"""What trees say that did not see a row, as if all of them had been asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_of_all", "grows_whole", "means_of_all"]

Floats = NDArray[np.float64]

_WHOLE = 0.95  # of the rows, in which every tree voted for one class
_ROUNDING = 1e-6
_FEWEST_PRIOR, _MOST_PRIOR = 1e-6, 1e6  # votes that a row has from its class beside its own


def grows_whole(tree: Any) -> bool:
    """Return whether nothing stops a tree, or the trees of a forest, before leaves are pure."""
    whole = (tree.max_depth, tree.max_leaf_nodes) == (None, None)
    fine = tree.min_samples_leaf == 1 and tree.min_samples_split == 2
    forgoes = tree.min_impurity_decrease == 0 and tree.ccp_alpha == 0
    return bool(whole and fine and forgoes and tree.min_weight_fraction_leaf == 0)


def as_of_all(shares: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Return shares of the votes of some trees that vary as if all had voted.

    A third of the trees did not see a row. Their shares vary more than those of all trees, by which
    new rows are judged, and of few trees they have other values: a share of three votes is no
    share of ten.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Of the votes of those trees that did not see a row.
    codes : ndarray of shape (n_rows,)
        The classes of the rows.
    n_trees : ndarray of shape (n_rows,)
        How many trees voted, one or more.
    n_all : int
        How many trees there are.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Shares whose distribution, given a row's class, is that of all trees. They say nothing more
        about a single row.
    """
    votes = shares * n_trees[:, None]
    whole = np.abs(votes - np.rint(votes)).max(axis=1) < _ROUNDING
    if whole.mean() < _WHOLE:
        return _less_variable(shares, codes, n_trees, n_all)
    return _with_more_votes(votes, codes, n_trees, n_all)


def _with_more_votes(votes: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Draw the votes of the trees that saw a row, as they would be had they not seen it.

    Each row has its own probabilities of votes. Over the rows of a class these follow a Dirichlet
    distribution around the class's mean; how narrow it is follows from how often two trees agree
    about a row. What a row's votes leave open is drawn, always the same.
    """
    middle = np.zeros((codes.max() + 1, votes.shape[1]))
    np.add.at(middle, codes, votes)
    middle /= np.maximum(middle.sum(axis=1, keepdims=True), 1.0)
    agree, by_chance = 0.0, 0.0
    several = n_trees > 1
    if several.any():
        some, n = votes[several], n_trees[several].astype(np.float64)
        agree = float(np.mean((some * (some - 1)).sum(axis=1) / (n * (n - 1))))
        by_chance = float(np.mean((middle[codes[several]] ** 2).sum(axis=1)))
    more = agree - by_chance
    prior = min((1 - agree) / more, _MOST_PRIOR) if more > 0 else _MOST_PRIOR
    random = np.random.default_rng(0)
    drawn = random.standard_gamma(max(prior, _FEWEST_PRIOR) * middle[codes] + np.maximum(votes, 0))
    drawn /= drawn.sum(axis=1, keepdims=True)
    others = random.multinomial(n_all - n_trees.astype(np.int64), drawn)
    return np.asarray((votes + others) / n_all)


def _less_variable(shares: Floats, codes: Any, n_trees: Any, n_all: int) -> Floats:
    """Take out of the variance what is due to fewer trees, where leaves hold several classes.

    Of n trees a share p has the variance p (1 - p) / n, or less. What that is more than with all
    trees goes out of the variance of the rows of each class around their mean.
    """
    middle = np.zeros((codes.max() + 1, shares.shape[1]))
    np.add.at(middle, codes, shares)
    count = np.bincount(codes, minlength=len(middle))
    around = (middle / np.maximum(count, 1)[:, None])[codes]
    noise = np.mean((shares * (1 - shares)).sum(axis=1) * (1 / n_trees - 1 / n_all))
    within = np.mean(((shares - around) ** 2).sum(axis=1))
    kept = np.sqrt(max(0.0, 1 - noise / within)) if within > 0 else 1.0
    return np.asarray(around + kept * (shares - around))


def means_of_all(
    told: Floats, truth: Floats, variance: Floats, n_trees: Any, n_all: int, weights: Any = None
) -> Floats:
    """Return means over some trees that are off the truth as those over all trees would be.

    What the mean of few trees is off by for that reason alone is their variance over their number.

    Parameters
    ----------
    told, truth : ndarray of shape (n_rows, n_outputs)
        Means over the trees that did not see a row, and targets.
    variance : ndarray of the same shape
        Of these trees around their mean.
    n_trees : ndarray of shape (n_rows,)
        How many there are, one or more.
    n_all : int
        How many trees there are.
    weights : ndarray of shape (n_rows,) or None
        What rows count.
    """
    several = n_trees > 1
    if not several.any() or not np.isfinite(variance[several]).all():
        return told
    n = n_trees[:, None].astype(np.float64)
    of_one = np.maximum(variance, 0.0) * n / np.maximum(n - 1, 1.0)
    of_one[~several] = of_one[several].mean(axis=0)  # a tree alone does not say how trees vary
    errors = truth - told
    more = np.average(of_one * (1 / n - 1 / n_all), axis=0, weights=weights)
    usual = np.average(errors**2, axis=0, weights=weights)
    share = np.divide(more, usual, out=np.zeros_like(usual), where=usual > 0)
    return np.asarray(truth - np.sqrt(np.clip(1 - share, 0.0, 1.0)) * errors)
