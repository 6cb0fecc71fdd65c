"""Mixtures that grow a component at a time, without chance, until BIC says stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.mixture._starts import start_from_labels
from spinney.mixture.em import (
    Ascent,
    Components,
    Prior,
    Rows,
    climb,
    core_mixture,
    sum_moments,
)

__all__ = ["GrownMixture", "count_parameters", "grow_mixture"]

Labels = NDArray[np.int32]

_PATIENCE = 2  # so many components more without a better BIC end the growth


@dataclass(frozen=True)
class GrownMixture:
    """A mixture with its BIC: −2 log-likelihood + parameters · log(rows); smaller is better."""

    ascent: Ascent
    bic: float


def count_parameters(components: Components, total: float, prior: Prior) -> float:
    """Free parameters of a mixture; of covariances by the share that rows, not the prior, have.

    Counted whole, BIC would choose variances where matrices that lean on the prior are better.
    """
    n_components, n_features = components.means.shape
    matrix = n_features * (n_features + 1) / 2
    a_matrix = {"full": matrix, "tied": matrix, "diag": n_features, "spherical": 1}[components.kind]
    weights = np.ones(1) if components.kind == "tied" else components.weights
    shares = weights * total / (weights * total + prior.n_rows)
    return float(a_matrix * shares.sum()) + n_components * n_features + n_components - 1


def grow_mixture(
    rows: Rows,
    kind: str,
    prior: Prior,
    *,
    n_components: int | None,
    most: int,
    tol: float,
    max_iter: int,
) -> GrownMixture:
    """Fit a component, divide the widest in two, fit again, and so on.

    Ends at `n_components`; for None where BIC is best, at `most` components or fewer.
    """
    labels: Labels | None = np.zeros(len(rows.X), dtype=np.int32)
    goal = most if n_components is None else n_components
    best: GrownMixture | None = None
    worse = 0
    for size in range(1, goal + 1):
        if labels is None:  # all rows of each component are the same: nothing to divide
            break
        start = start_from_labels(rows, kind, labels, size, 0.0, prior)
        ascent = climb(rows, start, tol=tol, max_iter=max_iter, reg_covar=0.0, prior=prior)
        n_parameters = count_parameters(ascent.components, rows.total, prior)
        bic = -2 * ascent.lower_bound * rows.total + n_parameters * np.log(rows.total)
        grown = GrownMixture(ascent, bic)
        if best is None or n_components is not None or bic < best.bic:
            best, worse = grown, 0
        else:
            worse += 1
            if worse == _PATIENCE:
                break
        if size < goal:
            labels = divide_widest(rows, ascent.components, prior)
    assert best is not None
    return best


def divide_widest(rows: Rows, components: Components, prior: Prior) -> Labels | None:
    """Label rows by component, those of the widest cut in two across its longest axis.

    Width is the scatter along that axis, features measured in units of the prior's deviations.
    """
    n_components = len(components.weights)
    found = np.empty(len(rows.X), dtype=np.int64)
    core_mixture(components, rows.shift).score(rows.X, None, None, found, rows.n_threads)
    labels = found.astype(np.int32)
    plain = Components("full", components.weights, components.means, None, None)
    moments = sum_moments(rows, plain, labels=labels)
    counts = np.maximum(moments.counts, 1e-300)
    steps = moments.sums / counts[:, None]
    moved = moments.counts[:, None, None] * steps[:, :, None] * steps[:, None, :]
    units = np.sqrt(np.diag(prior.covariance))
    scatter = (moments.products - moved) / np.outer(units, units)
    values, vectors = np.linalg.eigh(scatter)
    widest = int(values[:, -1].argmax())
    middle = rows.shift + components.means[widest] + steps[widest]
    own = np.flatnonzero(labels == widest)
    # Added feature by feature, in an order that no library chooses.
    along = np.zeros(len(own))
    for f, slope in enumerate(vectors[widest][:, -1] / units):
        along += (rows.X[own, f] - middle[f]) * slope
    above = along > 0
    spread = np.abs(along).max(initial=0.0)
    if not above.any() or above.all() or spread < 1e-9:
        return None
    labels[own[above]] = n_components
    return labels
