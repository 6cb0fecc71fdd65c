"""Initial components of EM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, kmeans_plusplus

from spinney.mixture.em import Components, Prior, WeightedRows, estimate, sum_moments

__all__ = ["components_of_labels", "initial_components"]

_DRAWN_AT_ONCE = 1 << 16  # rows of random responsibilities in memory at once


def initial_components(
    init_params: str,
    rows: WeightedRows,
    kind: str,
    *,
    n_components: int,
    reg_covar: float,
    random_state: np.random.RandomState,
) -> Components:
    """Return the start by scikit-learn's `init_params`, with the same random numbers."""
    if init_params == "random":
        return _random_components(rows, kind, n_components, reg_covar, random_state)
    if init_params == "kmeans":
        clusters = KMeans(n_components, n_init=1, random_state=random_state)
        labels = clusters.fit(rows.X, sample_weight=rows.weights).labels_.astype(np.int32)
        return components_of_labels(
            rows, kind, labels, n_components=n_components, reg_covar=reg_covar
        )
    if init_params == "k-means++":
        _, chosen = kmeans_plusplus(
            rows.X, n_components, random_state=random_state, sample_weight=rows.weights
        )
    else:
        chosen = random_state.choice(len(rows.X), size=n_components, replace=False)
    labels = np.full(len(rows.X), -1, dtype=np.int32)
    labels[chosen] = np.arange(n_components)
    return components_of_labels(rows, kind, labels, n_components=n_components, reg_covar=reg_covar)


def _random_components(
    rows: WeightedRows,
    kind: str,
    n_components: int,
    reg_covar: float,
    random_state: np.random.RandomState,
) -> Components:
    """Return components of random responsibilities, drawn for blocks of rows."""
    means = np.zeros((n_components, rows.X.shape[1]))
    zero_means = Components(kind, np.ones(n_components), means, None, None)
    block_moments = []
    for first in range(0, len(rows.X), _DRAWN_AT_ONCE):
        block = rows.block(slice(first, first + _DRAWN_AT_ONCE))
        shares = random_state.uniform(size=(len(block.X), n_components))
        shares /= shares.sum(axis=1, keepdims=True)
        block_moments.append(sum_moments(block, zero_means, shares=shares))
    return estimate(sum(block_moments[1:], start=block_moments[0]), zero_means, reg_covar)


def components_of_labels(
    rows: WeightedRows,
    kind: str,
    labels: NDArray[np.int32],
    *,
    n_components: int,
    reg_covar: float,
    prior: Prior | None = None,
) -> Components:
    """Return the components of labeled rows (label -1: unused).

    A first pass computes the means, a second one the covariances about them.
    """
    means = np.zeros((n_components, rows.X.shape[1]))
    zero_means = Components("diag", np.ones(n_components), means, None, None)
    moments = sum_moments(rows, zero_means, labels=labels)
    centred = replace(
        zero_means, kind=kind, means=moments.sums / np.maximum(moments.counts, 1e-300)[:, None]
    )
    moments = sum_moments(rows, centred, labels=labels)
    return estimate(moments, centred, reg_covar, prior)
