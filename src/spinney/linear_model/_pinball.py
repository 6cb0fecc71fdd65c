"""Minimisation of sums of pinball losses: an optimal vertex, proven by the dual.

The problem is to minimise Σ max(low·r_i, high·r_i) with r = y − X β and low <= 0 <= high: absolute
deviations for (−1, 1), quantiles for (q − 1, q). The dual maximises y·a subject to Xᵀa = 0
and low <= a <= high, with one multiplier a_i per row. The multiplier is `high` for rows above the
fit, `low` for rows below it, and between both for the rows that the fit goes through.

1. `approach` finds a starting point by an interior point method: Mehrotra's method on the dual,
   which Portnoy and Koenker use for quantiles.
2. `descend` moves from vertex to vertex, like the algorithm of Barrodale and Roberts. A vertex is a
   fit through as many rows as there are coefficients. Each step follows the steepest edge to the
   weighted median of the points where residuals change sign. The last vertex has all multipliers
   within the bounds, which proves that it is optimal.

Tied rows (such as integers) make many vertices coincide, so that a step may have length zero, and
several fits may be equally good. `descend` therefore starts with slightly perturbed targets and
weights, which depend only on the values of each row. Then only one fit is optimal. It does not
depend on the order of the rows, and a repeated row is equivalent to one with twice the weight.
`descend` continues with the true weights, and the duality gap is computed from the true targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr
from scipy.optimize import linprog

from spinney.linear_model._distinct_rows import Perturbation

__all__ = ["Vertex", "minimise"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_INTERIOR_STEPS = 60
# The interior point method stops at this duality gap, relative to the loss: few vertices are left.
CLOSE = 1e-7
# Sizes of the perturbations, tried in turn: of targets, relative to the largest, and of weights.
# The latter are far above SLACK, so that rounding errors do not determine the result.
PERTURBATIONS = ((1e-10, 1e-7), (1e-13, 0.0), (0.0, 0.0))
# Distance beyond its bound, relative to high - low, up to which a multiplier counts as within it.
SLACK = 1e-10
# Duality gap that counts as rounding error: relative to the loss, and to the size of the targets.
GAP = 1e-10
ROUNDING = 1e-13
# Sums Xᵀa that count as rounding errors, relative to the sums of the absolute terms.
INFEASIBLE = 1e-9


@dataclass
class Vertex:
    """An optimal fit through some of the rows.

    Attributes
    ----------
    rows : ndarray of int
        The rows with residual zero, as many as there are columns.
    dual : ndarray
        Multipliers of all rows, within the bounds.
    gap : float
        The duality gap: the loss minus the value of the dual, a sum of nonnegative terms.
    n_steps : int
        Number of vertices and interior points.
    proven : bool
        Whether the gap is within rounding errors: the fit is optimal.
    """

    rows: Indices
    dual: Floats
    gap: float
    n_steps: int
    proven: bool


def minimise(X: Floats, y: Floats, low: float, high: float, perturbation: Perturbation) -> Vertex:
    """Return an optimal vertex for an `X` of full column rank.

    The tolerances assume that the columns of `X` are nearly orthogonal and of similar size, and
    that the largest values of `y` are about one.
    """
    residuals, n_steps = approach(X, y, low, high)
    rows = independent_rows(X, residuals)
    vertex = _try_perturbations(X, y, low, high, rows=rows, perturbation=perturbation)
    vertex.n_steps += n_steps
    if not vertex.proven:
        no_sums = np.zeros(X.shape[1])
        bounds = (low, high)
        solved = linprog(-y, A_eq=X.T, b_eq=no_sums, bounds=bounds, method="highs")
        if solved.status == 0:
            rows = independent_rows(X, y + X @ solved.eqlin.marginals)
            other = _try_perturbations(X, y, low, high, rows=rows, perturbation=perturbation)
            other.n_steps += vertex.n_steps
            if other.gap < vertex.gap:
                vertex = other
    return vertex


def _try_perturbations(
    X: Floats, y: Floats, low: float, high: float, *, rows: Indices, perturbation: Perturbation
) -> Vertex:
    """Descend with decreasing perturbations until a vertex is proven optimal."""
    size = np.abs(y).max(initial=0.0)
    best = None
    n_steps = 0
    for of_targets, of_weights in PERTURBATIONS:
        perturbed = y + of_targets * (size or 1.0) * perturbation.targets
        if of_weights:
            weights = 1 + of_weights * perturbation.weights
            rows, _, n_more = descend(X * weights[:, None], perturbed * weights, low, high, rows)
            n_steps += n_more
        rows, dual, n_more = descend(X, perturbed, low, high, rows)
        n_steps += n_more
        residuals = y - X @ np.linalg.solve(X[rows], y[rows])
        residuals[rows] = 0.0
        losses = np.maximum(low * residuals, high * residuals)
        gap = float(np.sum(losses - dual * residuals))
        infeasible = float(np.abs(dual @ X).max(initial=0.0))
        reach = float(np.abs(dual) @ np.abs(X).max(axis=1, initial=0.0))
        proven = gap <= GAP * losses.sum() + ROUNDING * size * len(y)
        proven = proven and infeasible <= INFEASIBLE * (reach + (high - low) * np.abs(X).max())
        if best is None or proven or gap < best.gap:
            best = Vertex(rows, dual, gap, n_steps, proven)
        if proven:
            break
    assert best is not None
    best.n_steps = n_steps
    return best


def approach(X: Floats, y: Floats, low: float, high: float) -> tuple[Floats, int]:
    """Return residuals of a nearly optimal fit, and the number of steps."""
    n_rows = len(y)
    width = high - low
    beta = np.linalg.solve(X.T @ X, y @ X)
    residuals = y - X @ beta
    size = np.abs(residuals).mean()
    if size <= 1e-14 * np.abs(y).max(initial=0.0):
        return residuals, 0
    # a = low + s and s + q = width; u and v are the positive and negative parts of residuals.
    s = np.full(n_rows, -low if low < 0 < high else width / 2)
    b = -low * X.sum(axis=0)
    u = np.maximum(residuals, 0) + 0.1 * size
    v = np.maximum(-residuals, 0) + 0.1 * size
    steps = 0
    with np.errstate(all="ignore"):
        for steps in range(1, MOST_INTERIOR_STEPS + 1):  # noqa: B007 (returned)
            q = width - s
            missing = b - s @ X
            residuals = y - X @ beta
            mismatch = residuals - u + v
            gap = float(s @ v + q @ u)
            if gap <= CLOSE * float(np.maximum(low * residuals, high * residuals).sum()):
                break
            theta = 1.0 / (u / q + v / s)
            try:
                factor = cho_factor((X * theta[:, None]).T @ X, check_finite=False)
            except (LinAlgError, ValueError):
                break

            g = mismatch + u - v
            ds = theta * (g - X @ cho_solve(factor, (theta * g) @ X - missing, check_finite=False))
            du, dv = u * ds / q - u, -v * ds / s - v
            primal = _longest_step(s, ds, q, -ds)
            dual = _longest_step(u, du, v, dv)
            after = float((s + primal * ds) @ (v + dual * dv))
            after += float((q - primal * ds) @ (u + dual * du))
            target = gap / (2 * n_rows) * min(1.0, after / gap) ** 3
            of_s, of_q = target - s * v - ds * dv, target - q * u + ds * du
            g = mismatch - of_q / q + of_s / s
            move = cho_solve(factor, (theta * g) @ X - missing, check_finite=False)
            ds = theta * (g - X @ move)
            du, dv = (of_q + u * ds) / q, (of_s - v * ds) / s
            primal = min(1.0, 0.9995 * _longest_step(s, ds, q, -ds))
            dual = min(1.0, 0.9995 * _longest_step(u, du, v, dv))
            if not (np.isfinite(primal * dual) and np.isfinite(move).all()):
                break
            s = s + primal * ds
            beta, u, v = beta + dual * move, u + dual * du, v + dual * dv
    return residuals, steps


def _longest_step(a: Floats, da: Floats, b: Floats, db: Floats) -> float:
    """Return the largest step, at most 1e3, before a value becomes negative."""
    fastest = max(float(np.max(-da / a)), float(np.max(-db / b)), 1e-3)
    return 1.0 / fastest


def independent_rows(X: Floats, residuals: Floats) -> Indices:
    """Return rows that determine a fit, preferably with small residuals."""
    n_rows, n_columns = X.shape
    sizes = np.abs(residuals)
    order = np.argsort(sizes, kind="stable")
    n_candidates = min(n_rows, 4 * n_columns)
    while True:
        candidates = order[:n_candidates]
        # Rows with small residuals get large weights, so that pivoting prefers them.
        close = sizes[candidates] + sizes[order[n_columns - 1]] * 1e-3 + 1e-300
        _, R, pivots = qr(
            (X[candidates] * (close.min() / close)[:, None]).T, mode="economic", pivoting=True
        )
        chosen = candidates[pivots[:n_columns]]
        diagonal = np.abs(np.diag(R))
        if n_candidates == n_rows or diagonal[-1] > 1e-8 * diagonal[0]:
            if diagonal[-1] <= 1e-12 * diagonal[0]:
                # No candidates determine a fit: ignore the residuals.
                chosen = qr(X.T, mode="r", pivoting=True)[1][:n_columns]
            return np.sort(chosen)
        n_candidates = min(n_rows, 8 * n_candidates)


def descend(
    X: Floats, y: Floats, low: float, high: float, rows: Indices
) -> tuple[Indices, Floats, int]:
    """Descend from vertex to vertex; return rows, multipliers and the number of steps.

    The multipliers are within the bounds if the last vertex is optimal. After too many steps they
    are clipped to the bounds, and the duality gap shows that the vertex is not optimal.
    """
    n_columns = X.shape[1]
    width = high - low
    rows = rows.copy()
    most_steps = 50 * n_columns + 200
    for step in range(most_steps + 1):
        inverse = np.linalg.inv(X[rows])
        residuals = y - X @ (inverse @ y[rows])
        residuals[rows] = 0.0
        dual = np.where(residuals > 0, high, low)
        dual[rows] = 0.0
        own = -(dual @ X) @ inverse
        beyond = np.maximum(own - high, low - own)
        steepness = beyond / np.sqrt(np.einsum("ij,ij->j", inverse, inverse))
        leaving = int(np.argmax(np.where(beyond > SLACK * width, steepness, -np.inf)))
        if beyond[leaving] <= SLACK * width or step == most_steps:
            break
        direction = inverse[:, leaving] * (-1.0 if own[leaving] > high else 1.0)
        along = X @ direction
        along[rows] = 0.0
        entering = _crossing(residuals, along, width, beyond[leaving])
        if entering < 0:
            break
        rows[leaving] = entering
        rows.sort()
    dual[rows] = np.clip(own, low, high)
    return rows, dual, step


def _crossing(residuals: Floats, along: Floats, width: float, fall: float) -> int:
    """Return the row at which the loss along an edge stops falling, or -1.

    The slope is -`fall` at first. Each row whose residual changes sign adds `width` times the
    change of its residual per unit of the edge.
    """
    # If the loss is flat on one side (slacks), all changes may sum to `fall`, up to rounding.
    fall *= 1 - 1e-10
    smallest = 1e-11 * np.abs(along).max(initial=0.0)
    ahead = np.flatnonzero((residuals * along > 0) & (np.abs(along) > smallest))
    distances = residuals[ahead] / along[ahead]
    n_near = 512
    while len(ahead):
        near = np.arange(len(ahead))
        if n_near < len(ahead):
            near = np.argpartition(distances, n_near)[:n_near]
        near = near[np.argsort(distances[near], kind="stable")]
        slope_changes = np.cumsum(np.abs(along[ahead[near]])) * width
        if slope_changes[-1] >= fall:
            return int(ahead[near[np.searchsorted(slope_changes, fall)]])
        if n_near >= len(ahead):
            break
        n_near *= 8
    return -1
