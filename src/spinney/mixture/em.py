"""The EM algorithm, with passes over the rows in the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture._gaussian_mixture import (
    _compute_log_det_cholesky,
    _compute_precision_cholesky,
)

from spinney import _core

__all__ = [
    "ComponentMoments",
    "Components",
    "EmResult",
    "Prior",
    "WeightedRows",
    "core_mixture",
    "estimate",
    "run_em",
    "sum_moments",
]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# A component with at most this share of the total weight counts as empty.
_EMPTY = 1e-12
# A difference of squares is treated as zero up to this share of the squares.
_NOISE = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class WeightedRows:
    """Rows with weights, and a shift that avoids the loss of digits by large offsets.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float32 or float64
        The rows, with any strides.
    weights : ndarray of shape (n_rows,) or None
        Positive weights; None: all one.
    shift : ndarray of shape (n_features,)
        Subtracted from each row; means of components are relative to it.
    n_threads : int
        Number of threads of a pass.
    """

    X: Array
    weights: Floats | None
    shift: Floats
    n_threads: int

    @classmethod
    def about_their_mean(cls, X: Array, weights: Floats | None, n_threads: int) -> WeightedRows:
        """Return rows with their mean as the shift."""
        rows = cls(X, weights, np.array(X[0], dtype=np.float64), n_threads)
        n_rows, n_features = X.shape
        zero_mean = Components("diag", np.ones(1), np.zeros((1, n_features)), None, None)
        labels = np.zeros(n_rows, dtype=np.int32)
        # Compute the mean relative to the first row, then relative to that mean: the second pass
        # loses few digits for any offset.
        for _ in range(2):
            moments = sum_moments(rows, zero_mean, labels=labels)
            rows = replace(rows, shift=rows.shift + moments.sums[0] / moments.counts[0])
        return rows

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(len(self.X) if self.weights is None else self.weights.sum())

    def block(self, rows: slice) -> WeightedRows:
        """Return a block of the rows, with the same shift."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], weights=weights)


@dataclass(frozen=True)
class Components:
    """Parameters of a mixture; the means are relative to the shift of the rows.

    Attributes
    ----------
    kind : {"full", "tied", "diag", "spherical"}
        The covariance type.
    weights, means, covariances, factors : ndarray
        In scikit-learn's shapes; the factors are its Cholesky factors of the precisions.
    collapsed : tuple of int
        Components whose covariance was singular after the last step, and was not updated.
    """

    kind: str
    weights: Floats
    means: Floats
    covariances: Any
    factors: Any
    collapsed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prior:
    """Prior of the covariances: pseudo-rows with a given covariance.

    Attributes
    ----------
    n_rows : float
        Number of pseudo-rows in each component.
    covariance : ndarray of shape (n_features, n_features)
        Their covariance; positive definite.
    ignored : ndarray of shape (n_features,), bool
        Features without effect: their variance is always that of the prior.
    """

    n_rows: float
    covariance: Floats
    ignored: NDArray[np.bool_]


@dataclass(frozen=True)
class ComponentMoments:
    """Sums over rows relative to the means of components.

    `cpp/spinney/mixture/passes.h` defines them.
    """

    log_likelihood: float
    counts: Floats
    sums: Floats
    products: Floats
    overlaps: Floats

    def __add__(self, other: ComponentMoments) -> ComponentMoments:
        """Return the moments of two sets of rows relative to the same means."""
        return ComponentMoments(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        )


@dataclass(frozen=True)
class EmResult:
    """Result of EM: components, mean log-likelihood before each step, and convergence."""

    components: Components
    lower_bounds: list[float]
    converged: bool

    @property
    def lower_bound(self) -> float:
        """Mean log-likelihood before the last step."""
        return self.lower_bounds[-1]


def core_mixture(components: Components, shift: Floats) -> Any:
    """Convert components to a mixture of the core."""
    n_components, n_features = components.means.shape
    kind, factors = components.kind, components.factors
    if factors is None:
        offsets, factors = np.zeros(n_components), np.zeros(0)
    else:
        log_det = _compute_log_det_cholesky(factors, kind, n_features)
        with np.errstate(divide="ignore"):
            log_weights = np.log(components.weights)
        offsets = log_weights + log_det - 0.5 * n_features * np.log(2 * np.pi)
        if kind == "spherical":
            factors = np.repeat(factors, n_features)
    return _core.Mixture(
        "diag" if kind == "spherical" else kind,
        np.ascontiguousarray(offsets, dtype=np.float64),
        np.ascontiguousarray(components.means, dtype=np.float64),
        np.ascontiguousarray(factors, dtype=np.float64).ravel(),
        np.ascontiguousarray(shift, dtype=np.float64),
    )


def sum_moments(
    rows: WeightedRows,
    components: Components,
    *,
    labels: NDArray[np.int32] | None = None,
    shares: Floats | None = None,
) -> ComponentMoments:
    """Return sums over all rows; given `labels` or `shares` are responsibilities."""
    sums_of_core = core_mixture(components, rows.shift).sum_moments(
        rows.X, rows.weights, labels, shares, rows.n_threads
    )
    log_likelihood, counts, sums, products, overlaps = sums_of_core
    n_components, n_features = components.means.shape
    shapes = {
        "full": (n_components, n_features, n_features),
        "tied": (n_features, n_features),
    }
    return ComponentMoments(
        log_likelihood,
        counts,
        sums.reshape(n_components, n_features),
        products.reshape(shapes.get(components.kind, (n_components, n_features))),
        overlaps.reshape(n_components, n_components) if overlaps.size else overlaps,
    )


def estimate(
    moments: ComponentMoments, before: Components, reg_covar: float, prior: Prior | None = None
) -> Components:
    """Return the components after an M step.

    The moments are relative to the means of `before`. An empty component keeps its mean and gets
    weight zero. A component with a singular covariance keeps the covariance of `before`; if
    `before` has none, a ValueError is raised.
    """
    if not np.isfinite(moments.products).all():
        raise ValueError("X: expected numbers whose squares are finite, got larger ones; scale X")
    counts, kind = moments.counts, before.kind
    empty = counts <= _EMPTY * counts.sum()
    sizes = np.where(empty, 1.0, counts)
    steps = np.where(empty[:, None], 0.0, moments.sums / sizes[:, None])
    weights = np.where(empty, 0.0, counts)
    n_features = before.means.shape[1]
    n_prior = prior.n_rows if prior else 0.0
    prior_scatter = n_prior * prior.covariance if prior else np.zeros((n_features, n_features))
    if kind == "tied":
        a, b = np.tril_indices(len(counts), -1)
        differences = before.means[a] - before.means[b]
        between = np.einsum("p,pi,pj->ij", moments.overlaps[a, b], differences, differences)
        mean_shifts = np.einsum("k,ki,kj->ij", counts, steps, steps)
        scatter = _without_noise(moments.products + between - mean_shifts, moments.products)
        covariances = (scatter + prior_scatter) / (counts.sum() + n_prior)
        covariances += reg_covar * np.eye(n_features)
    elif kind == "full":
        mean_shifts = sizes[:, None, None] * steps[:, :, None] * steps[:, None, :]
        scatter = _without_noise(moments.products - mean_shifts, moments.products)
        covariances = (scatter + prior_scatter) / (sizes + n_prior)[:, None, None]
        covariances += reg_covar * np.eye(n_features)
    else:
        scatter = moments.products - sizes[:, None] * steps**2
        scatter = np.where(scatter > _NOISE * moments.products, scatter, 0.0)
        covariances = (scatter + np.diag(prior_scatter)) / (sizes + n_prior)[:, None] + reg_covar
    if prior is not None and prior.ignored.any():
        _reset_ignored(covariances, kind, prior)
    if kind == "spherical":
        covariances = covariances.mean(axis=1)
    if kind != "tied" and empty.any():
        unit = np.eye(n_features) if kind == "full" else 1.0
        start = (reg_covar or 1.0) * unit
        covariances[empty] = start if before.covariances is None else before.covariances[empty]
    factors, collapsed = _factor(covariances, before)
    means = before.means + steps
    return Components(kind, weights / weights.sum(), means, covariances, factors, collapsed)


def _without_noise(scatter: Floats, products: Floats) -> Floats:
    """Set variances to zero that are only rounding errors of a difference."""
    d = np.arange(scatter.shape[-1])
    kept = scatter[..., d, d]
    scatter[..., d, d] = np.where(kept > _NOISE * products[..., d, d], kept, 0.0)
    return scatter


def _reset_ignored(covariances: Floats, kind: str, prior: Prior) -> None:
    """Set the covariances of ignored features to those of the prior, in place."""
    ignored = np.flatnonzero(prior.ignored)
    fixed = np.diag(prior.covariance)[ignored]
    if kind in ("diag", "spherical"):
        covariances[:, ignored] = fixed
        return
    covariances[..., ignored, :] = 0.0
    covariances[..., :, ignored] = 0.0
    covariances[..., ignored, ignored] = fixed


def _factor(covariances: Floats, before: Components) -> tuple[Floats, tuple[int, ...]]:
    """Return factors of the precisions; singular covariances are replaced by old ones."""
    kind = before.kind
    try:
        return _compute_precision_cholesky(covariances, kind), ()
    except ValueError:
        if before.covariances is None:
            raise
    if kind == "tied":
        covariances[:] = before.covariances
        return before.factors, tuple(range(len(before.weights)))
    collapsed = []
    for k in range(len(covariances)):
        try:
            _compute_precision_cholesky(covariances[k : k + 1], kind)
        except ValueError:
            covariances[k] = before.covariances[k]
            collapsed.append(k)
    return _compute_precision_cholesky(covariances, kind), tuple(collapsed)


def run_em(
    rows: WeightedRows,
    start: Components,
    *,
    tol: float,
    max_iter: int,
    reg_covar: float,
    prior: Prior | None = None,
    lower_bound: float = -np.inf,
    on_step: Callable[[int, float], None] | None = None,
) -> EmResult:
    """Repeat E and M steps until the mean log-likelihood changes by less than `tol`."""
    components, bounds, converged = start, [], False
    for step in range(1, max_iter + 1):
        moments = sum_moments(rows, components)
        components = estimate(moments, components, reg_covar, prior)
        before, lower_bound = lower_bound, moments.log_likelihood / rows.total
        bounds.append(lower_bound)
        if on_step is not None:
            on_step(step, lower_bound - before)
        if abs(lower_bound - before) < tol:
            converged = True
            break
    return EmResult(components, bounds, converged)
