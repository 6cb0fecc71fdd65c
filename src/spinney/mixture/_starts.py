"""Where EM starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, kmeans_plusplus

from spinney.mixture.em import Components, Prior, Rows, estimate, sum_moments

__all__ = ["start_by", "start_from_labels"]

_DRAWN_AT_ONCE = 1 << 16  # rows of random responsibilities


def start_by(
    way: str,
    rows: Rows,
    kind: str,
    n_components: int,
    reg_covar: float,
    random_state: np.random.RandomState,
) -> Components:
    """Start as scikit-learn's `init_params` says, with the same draws."""
    if way == "random":
        return _start_by_chance(rows, kind, n_components, reg_covar, random_state)
    if way == "kmeans":
        clusters = KMeans(n_components, n_init=1, random_state=random_state)
        labels = clusters.fit(rows.X, sample_weight=rows.weights).labels_.astype(np.int32)
        return start_from_labels(rows, kind, labels, n_components, reg_covar)
    if way == "k-means++":
        _, chosen = kmeans_plusplus(
            rows.X, n_components, random_state=random_state, sample_weight=rows.weights
        )
    else:
        chosen = random_state.choice(len(rows.X), size=n_components, replace=False)
    labels = np.full(len(rows.X), -1, dtype=np.int32)
    labels[chosen] = np.arange(n_components)
    return start_from_labels(rows, kind, labels, n_components, reg_covar)


def _start_by_chance(
    rows: Rows,
    kind: str,
    n_components: int,
    reg_covar: float,
    random_state: np.random.RandomState,
) -> Components:
    """Responsibilities by chance, some rows at a time, about the mean of all."""
    means = np.zeros((n_components, rows.X.shape[1]))
    middle = Components(kind, np.ones(n_components), means, None, None)
    parts = []
    for first in range(0, len(rows.X), _DRAWN_AT_ONCE):
        some = rows.some(slice(first, first + _DRAWN_AT_ONCE))
        shares = random_state.uniform(size=(len(some.X), n_components))
        shares /= shares.sum(axis=1, keepdims=True)
        parts.append(sum_moments(some, middle, shares=shares))
    return estimate(sum(parts[1:], start=parts[0]), middle, reg_covar)


def start_from_labels(
    rows: Rows,
    kind: str,
    labels: NDArray[np.int32],
    n_components: int,
    reg_covar: float,
    prior: Prior | None = None,
) -> Components:
    """Components of rows that are divided already: their means first, then about those the rest."""
    means = np.zeros((n_components, rows.X.shape[1]))
    rough = Components("diag", np.ones(n_components), means, None, None)
    moments = sum_moments(rows, rough, labels=labels)
    centred = replace(
        rough, kind=kind, means=moments.sums / np.maximum(moments.counts, 1e-300)[:, None]
    )
    moments = sum_moments(rows, centred, labels=labels)
    return estimate(moments, centred, reg_covar, prior)
