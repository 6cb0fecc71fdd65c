"""Cost-complexity pruning and reduced-error pruning.

The nested sequence of subtrees is stored as one number per node: the smallest alpha at which the
node is a leaf. One pass of the validation rows through the full tree gives the validation error of
every subtree, so no subtree is refitted.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import Bunch
from sklearn.utils.validation import _num_samples, check_is_fitted

from spinney import _core
from spinney.data.sample_weights import check_weights
from spinney.data.sklearn_versions import safe_indexing
from spinney.models.tree import Tree

__all__ = ["by_cross_validation", "by_reduced_error", "link_alphas"]

Floats = NDArray[np.float64]


def node_risk(tree: Tree, by: str) -> Floats:
    """Return the training risk of each node as a leaf, times its share of the rows."""
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    if by == "impurity":
        return share * tree.impurity
    wrong = 1.0 - tree.value.max(axis=2)
    risk: Floats = share * wrong.mean(axis=1)
    return risk


def link_alphas(tree: Tree, by: str) -> tuple[Floats, Floats, Floats]:
    """Return the alphas, the risk of each subtree, and the alpha of each node.

    This is weakest-link (cost-complexity) pruning.
    """
    alphas, risks, node_alpha = _core.weakest_links(
        tree.children_left, tree.children_right, node_risk(tree, by)
    )
    return alphas, risks, node_alpha


def row_losses(tree: Tree, rows: Any, nodes: Any, y: Any, loss: str) -> Floats:
    """Return the loss of row ``rows[i]`` if node ``nodes[i]`` predicts it.

    y has one column per output.
    """
    if loss == "error":
        predicted = tree.value.argmax(axis=2)
        return np.mean(predicted[nodes] != y[rows], axis=1)
    predicted = tree.value[:, :, 0][nodes]
    target = y[rows]
    if loss == "absolute_error":
        return np.mean(np.abs(target - predicted), axis=1)
    if loss == "poisson":
        # Half the deviance; a target of zero contributes only the prediction.
        ratio = np.where(target > 0, target / predicted, 1.0)
        return np.mean(target * np.log(ratio) - target + predicted, axis=1)
    return np.mean((target - predicted) ** 2, axis=1)


def path_losses(
    tree: Tree, path: Any, y: Any, *, weight: Floats, node_alpha: Floats, loss: str
) -> tuple[Floats, Floats]:
    """Return the validation loss of every subtree of the nested sequence.

    Parameters
    ----------
    tree : Tree
        The full tree.
    path : csr_matrix
        Decision paths of the validation rows.
    y, weight : ndarray
        Targets of these rows (class codes or numbers, one column per output) and their weights.
    node_alpha : ndarray
        The smallest alpha at which each node is a leaf.
    loss : {"error", "squared_error", "absolute_error", "poisson"}
        Loss of a row; other names mean squared error.

    Returns
    -------
    alphas, losses : ndarray
        ``losses[i]`` is the total loss for any alpha in ``[alphas[i], alphas[i+1])``.
    """
    rows = np.repeat(np.arange(path.shape[0]), np.diff(path.indptr))
    nodes = path.indices
    at_node = row_losses(tree, rows, nodes, y, loss) * weight[rows]
    last = np.zeros(len(nodes), dtype=bool)
    last[path.indptr[1:] - 1] = True
    full = at_node[last].sum()
    # If a node becomes a leaf, the loss of a row changes from that of the next node on its path.
    # Alphas decrease along a path, so the changes telescope.
    inner = np.flatnonzero(~last)
    change = np.bincount(
        nodes[inner], weights=at_node[inner] - at_node[inner + 1], minlength=tree.node_count
    )
    internal = np.flatnonzero(tree.children_left >= 0)
    order = internal[np.argsort(node_alpha[internal], kind="stable")]
    alphas = np.concatenate([[0.0], node_alpha[order]])
    losses = np.concatenate([[full], full + np.cumsum(change[order])])
    # Nodes with equal alphas become leaves together, so only the last cumulative sum is valid.
    keep = np.append(alphas[1:] != alphas[:-1], True)
    return alphas[keep], losses[keep]


def reduced_error_leaves(tree: Tree, path: Any, y: Any, weight: Floats, loss: str) -> Any:
    """Return a mask of the nodes that reduced-error pruning turns into leaves.

    From the bottom up, a node becomes a leaf if that does not increase the validation loss.
    A node that no validation row reaches therefore becomes a leaf.
    """
    rows = np.repeat(np.arange(path.shape[0]), np.diff(path.indptr))
    losses = row_losses(tree, rows, path.indices, y, loss) * weight[rows]
    as_leaf = np.bincount(path.indices, weights=losses, minlength=tree.node_count)
    best = as_leaf.copy()
    is_leaf = tree.children_left < 0
    slack = 1e-12 * max(1.0, float(as_leaf[0]))  # rounding depends on the order of summation
    for node in _bottom_up(tree):
        below = best[tree.children_left[node]] + best[tree.children_right[node]]
        if as_leaf[node] <= below + slack:
            is_leaf[node] = True
        else:
            best[node] = below
    return is_leaf


def _bottom_up(tree: Tree) -> Any:
    """Return the internal nodes, children before their parents."""
    depths = tree.compute_node_depths()
    internal = np.flatnonzero(tree.children_left >= 0)
    return internal[np.argsort(-depths[internal], kind="stable")]


def _loss(estimator: Any) -> str:
    """Return the validation loss: "error" for classifiers, else the criterion."""
    return "error" if is_classifier(estimator) else str(estimator.criterion)


def _codes(estimator: Any, y: Any) -> NDArray[Any]:
    """Return class codes (-1 if unseen in fit) or regression targets, one row each."""
    y = np.reshape(np.asarray(y), (_num_samples(y), -1))
    if y.shape[1] != estimator.n_outputs_:
        raise ValueError(f"y must have {estimator.n_outputs_} outputs as in fit, got {y.shape[1]}")
    if not is_classifier(estimator):
        return y.astype(np.float64)
    classes = [estimator.classes_] if estimator.n_outputs_ == 1 else estimator.classes_
    codes = np.empty(y.shape, dtype=np.int64)
    for k, known in enumerate(classes):
        at = np.minimum(np.searchsorted(known, y[:, k]), len(known) - 1)
        codes[:, k] = np.where(known[at] == y[:, k], at, -1)
    return codes


def _weights(X: Any, sample_weight: Any) -> Floats:
    return check_weights(sample_weight, _num_samples(X))


def _splitter(estimator: Any, y: Any, cv: Any) -> Any:
    """Return the cross-validation splitter for the parameter `cv`.

    An int means shuffled folds, because folds of sorted rows would not be comparable. The seed is
    `random_state`, or 0 if that is None.
    """
    # Imported here because sklearn.model_selection slows down start-up.
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    if isinstance(cv, Integral) and isinstance(splitter, (KFold, StratifiedKFold)):
        seed = 0 if estimator.random_state is None else estimator.random_state
        splitter = type(splitter)(cv, shuffle=True, random_state=seed)
    return splitter


def by_reduced_error(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a copy of a fitted estimator, pruned by its error on validation rows."""
    check_is_fitted(estimator)
    weight, codes, loss = _weights(X, sample_weight), _codes(estimator, y), _loss(estimator)
    if len(codes) != len(weight):
        raise ValueError(
            f"X and y must have the same number of rows; got {len(weight)} and {len(codes)}"
        )
    leaves = reduced_error_leaves(estimator.tree_, estimator.decision_path(X), codes, weight, loss)
    pruned = estimator._with_tree(estimator.tree_.collapse(leaves))
    before, after = (
        float(
            np.average(
                row_losses(model.tree_, np.arange(len(codes)), model.apply(X), codes, loss),
                weights=weight,
            )
        )
        for model in (estimator, pruned)
    )
    pruned.pruning_ = Bunch(error_before=before, error=after)
    return pruned


def by_cross_validation(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any,
    sample_weight: Any,
    by: str,
    one_standard_error: bool,
) -> Any:
    """Choose alpha by cross-validation and prune the tree grown on all rows with it."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()  # other sparse formats cannot select rows
    whole = estimator
    if not hasattr(estimator, "tree_") or estimator.ccp_alpha > 0.0:
        whole = clone(estimator).set_params(ccp_alpha=0.0)
        whole.fit(X, y, sample_weight=sample_weight)
    weight = _weights(X, sample_weight)
    _, _, node_alpha = link_alphas(whole.tree_, by)
    internal = whole.tree_.children_left >= 0
    alphas = np.unique(np.append(node_alpha[internal], 0.0))
    # A subtree is optimal between two neighbouring alphas; evaluate at their geometric mean.
    probes = np.append(np.sqrt(alphas[:-1] * alphas[1:]), np.inf)
    n_leaves = 1 + np.array([np.count_nonzero(internal & (node_alpha > alpha)) for alpha in alphas])

    folds = list(_splitter(estimator, y, cv).split(np.empty(_num_samples(y)), y))
    losses = np.zeros((len(folds), len(alphas)))
    totals = np.zeros(len(folds))
    for fold, (train, test) in enumerate(folds):
        weights = {} if sample_weight is None else {"sample_weight": weight[train]}
        grown = clone(whole).fit(safe_indexing(X, train), safe_indexing(y, train), **weights)
        steps, fold_losses = path_losses(
            grown.tree_,
            grown.decision_path(safe_indexing(X, test)),
            _codes(grown, safe_indexing(y, test)),
            weight=weight[test],
            node_alpha=link_alphas(grown.tree_, by)[2],
            loss=_loss(grown),
        )
        losses[fold] = fold_losses[np.searchsorted(steps, probes, side="right") - 1]
        totals[fold] = weight[test].sum()
    errors = losses.sum(axis=0) / totals.sum()
    spread = losses / totals[:, None] - errors
    standard_errors = np.sqrt(np.mean(spread**2, axis=0) / max(1, len(folds) - 1))

    # Ties go to the smallest tree.
    chosen = int(np.flatnonzero(errors <= errors.min() * (1 + 1e-12))[-1])
    if one_standard_error:
        chosen = int(np.flatnonzero(errors <= errors[chosen] + standard_errors[chosen])[-1])
    alpha = float(alphas[chosen])
    pruned = whole._with_tree(whole.tree_.collapse(node_alpha <= alpha))
    pruned.pruning_ = Bunch(
        alpha=alpha,
        alphas=alphas,
        n_leaves=n_leaves,
        errors=errors,
        standard_errors=standard_errors,
        chosen=chosen,
    )
    return pruned
