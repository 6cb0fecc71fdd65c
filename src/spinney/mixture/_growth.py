"""Deterministic growth of mixtures, one component at a time, with BIC to stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.mixture._starts import components_of_labels
from spinney.mixture.em import (
    Components,
    EmResult,
    Prior,
    WeightedRows,
    core_mixture,
    run_em,
    sum_moments,
)

__all__ = ["GrownMixture", "count_parameters", "grow_mixture"]

Labels = NDArray[np.int32]

_PATIENCE = 2  # growth stops after this many further components without a better BIC


@dataclass(frozen=True)
class GrownMixture:
    """A mixture with its BIC: −2 log-likelihood + n_parameters · log(n_rows)."""

    result: EmResult
    bic: float


def count_parameters(components: Components, total: float, prior: Prior) -> float:
    """Return the number of free parameters of a mixture.

    The parameters of a covariance are weighted by the share of the rows, as opposed to the prior,
    in its estimate. Otherwise BIC would choose "diag" even if full matrices with the prior are
    better.
    """
    n_components, n_features = components.means.shape
    matrix = n_features * (n_features + 1) / 2
    n_per_matrix = {"full": matrix, "tied": matrix, "diag": n_features, "spherical": 1}[
        components.kind
    ]
    weights = np.ones(1) if components.kind == "tied" else components.weights
    shares = weights * total / (weights * total + prior.n_rows)
    return float(n_per_matrix * shares.sum()) + n_components * n_features + n_components - 1


def grow_mixture(
    rows: WeightedRows,
    kind: str,
    prior: Prior,
    *,
    n_components: int | None,
    most: int,
    tol: float,
    max_iter: int,
) -> GrownMixture:
    """Fit one component, split the widest one, fit again, and so on.

    Return the mixture with `n_components`, or if it is None, the mixture with the best BIC of at
    most `most` components.
    """
    labels: Labels | None = np.zeros(len(rows.X), dtype=np.int32)
    largest_size = most if n_components is None else n_components
    best: GrownMixture | None = None
    n_worse = 0
    for size in range(1, largest_size + 1):
        if labels is None:  # the rows of the widest component are equal: it cannot be split
            break
        start = components_of_labels(
            rows, kind, labels, n_components=size, reg_covar=0.0, prior=prior
        )
        result = run_em(rows, start, tol=tol, max_iter=max_iter, reg_covar=0.0, prior=prior)
        n_parameters = count_parameters(result.components, rows.total, prior)
        # Smaller is better.
        bic = -2 * result.lower_bound * rows.total + n_parameters * np.log(rows.total)
        grown = GrownMixture(result, bic)
        if best is None or n_components is not None or bic < best.bic:
            best, n_worse = grown, 0
        else:
            n_worse += 1
            if n_worse == _PATIENCE:
                break
        if size < largest_size:
            labels = split_widest(rows, result.components, prior)
    assert best is not None
    return best


def split_widest(rows: WeightedRows, components: Components, prior: Prior) -> Labels | None:
    """Return labels of rows by component, with the widest component split in two.

    The split is at its mean, across its principal axis. The width of a component is its scatter
    along that axis, with features in units of the prior's standard deviations. Return None if the
    rows of the widest component are equal.
    """
    n_components = len(components.weights)
    found = np.empty(len(rows.X), dtype=np.int64)
    core_mixture(components, rows.shift).score(rows.X, None, None, found, rows.n_threads)
    labels = found.astype(np.int32)
    full = Components("full", components.weights, components.means, None, None)
    moments = sum_moments(rows, full, labels=labels)
    counts = np.maximum(moments.counts, 1e-300)
    steps = moments.sums / counts[:, None]
    mean_shifts = moments.counts[:, None, None] * steps[:, :, None] * steps[:, None, :]
    units = np.sqrt(np.diag(prior.covariance))
    scatter = (moments.products - mean_shifts) / np.outer(units, units)
    values, vectors = np.linalg.eigh(scatter)
    widest = int(values[:, -1].argmax())
    middle = rows.shift + components.means[widest] + steps[widest]
    members = np.flatnonzero(labels == widest)
    # A fixed order of summation: that of a library's product may differ between machines.
    position = np.zeros(len(members))
    for f, slope in enumerate(vectors[widest][:, -1] / units):
        position += (rows.X[members, f] - middle[f]) * slope
    above = position > 0
    spread = np.abs(position).max(initial=0.0)
    if not above.any() or above.all() or spread < 1e-9:
        return None
    labels[members[above]] = n_components
    return labels
