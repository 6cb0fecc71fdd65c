"""Least sums of two-sided linear losses, to an optimal vertex that its dual proves.

The problem is to minimise Σ max(low·r_i, high·r_i) with r = y − X β and low <= 0 <= high: absolute
deviations for (−1, 1), quantiles for (q − 1, q). Its dual is to maximise y·a subject to Xᵀa = 0 and
low <= a <= high, one multiplier for each row: `high` above the fit, `low` below it, and between
both only for the rows that the fit goes through.

1. `approach` comes close to the optimum from inside (Mehrotra's method on the dual, as Portnoy and
   Koenker do for quantiles). What it says is only a place to start.
2. `descend` goes from vertex to vertex, as Barrodale and Roberts do: a fit through as many rows as
   there are coefficients is left along the edge that falls most steeply, up to the weighted median
   of the places where residuals change sign. It ends where all multipliers are within bounds: this
   is the proof.

Where rows are tied (whole numbers) many vertices are one point, and a step may lead nowhere; and
several fits may be equally good. So `descend` first moves on targets and weights that are disturbed
by a little, each row by what its own values say: one fit is best then, whatever the order of the
rows, and whether a row is there twice or has twice the weight. It goes on with the true weights,
and the gap to the dual is measured on the true targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr
from scipy.optimize import linprog

from spinney.linear_model._distinct_rows import Disturbance

__all__ = ["Vertex", "minimise"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_APPROACHES = 60
# Relative to the loss: below this the vertices near by are few.
CLOSE = 1e-7
# Sizes of the disturbances, tried in turn: of targets, in units of the largest, and of weights. The
# latter are far above SLACK, so that they decide where rounding would.
DISTURBANCES = ((1e-10, 1e-7), (1e-13, 0.0), (0.0, 0.0))
# How far a multiplier may be beyond its bound, in units of the bounds' distance: rounding.
SLACK = 1e-10
# The gap that is taken for rounding, relative to the loss, and to the size of the targets.
GAP = 1e-10
ROUNDING = 1e-13
# Sums Xᵀa that are taken for rounding, in units of what the sizes of the terms add up to.
INFEASIBLE = 1e-9


@dataclass
class Vertex:
    """An optimal fit through some of the rows.

    Attributes
    ----------
    rows : ndarray of int
        The rows that it goes through, as many as there are columns.
    dual : ndarray
        Multipliers of all rows, within the bounds.
    gap : float
        The loss less the dual's value, a sum of terms that are not negative.
    n_steps : int
        Vertices and inner points that were visited.
    proven : bool
        Whether the gap is within rounding.
    """

    rows: Indices
    dual: Floats
    gap: float
    n_steps: int
    proven: bool


def minimise(X: Floats, y: Floats, low: float, high: float, disturbed: Disturbance) -> Vertex:
    """Find an optimal vertex for `X` of full column rank, no fewer rows than columns.

    `X` should have nearly orthogonal columns of like size, and `y` values of about one: bounds of
    rounding count on it.
    """
    residuals, n_steps = approach(X, y, low, high)
    rows = independent_rows(X, residuals)
    vertex = _try_disturbances(X, y, low, high, rows, disturbed)
    vertex.n_steps += n_steps
    if not vertex.proven:
        no_sums = np.zeros(X.shape[1])
        bounds = (low, high)
        solved = linprog(-y, A_eq=X.T, b_eq=no_sums, bounds=bounds, method="highs")
        if solved.status == 0:
            rows = independent_rows(X, y + X @ solved.eqlin.marginals)
            other = _try_disturbances(X, y, low, high, rows, disturbed)
            other.n_steps += vertex.n_steps
            if other.gap < vertex.gap:
                vertex = other
    return vertex


def _try_disturbances(
    X: Floats, y: Floats, low: float, high: float, rows: Indices, disturbed: Disturbance
) -> Vertex:
    size = np.abs(y).max(initial=0.0)
    best = None
    n_steps = 0
    for of_targets, of_weights in DISTURBANCES:
        moved = y + of_targets * (size or 1.0) * disturbed.targets
        if of_weights:
            weights = 1 + of_weights * disturbed.weights
            rows, _, taken = descend(X * weights[:, None], moved * weights, low, high, rows)
            n_steps += taken
        rows, dual, taken = descend(X, moved, low, high, rows)
        n_steps += taken
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
    """Return residuals near those of an optimal fit, and the number of steps."""
    n_rows = len(y)
    width = high - low
    beta = np.linalg.solve(X.T @ X, y @ X)
    residuals = y - X @ beta
    size = np.abs(residuals).mean()
    if size <= 1e-14 * np.abs(y).max(initial=0.0):
        return residuals, 0
    # a = low + s, and s + q = width; u and v are the residuals above and below the fit.
    s = np.full(n_rows, -low if low < 0 < high else width / 2)
    b = -low * X.sum(axis=0)
    u = np.maximum(residuals, 0) + 0.1 * size
    v = np.maximum(-residuals, 0) + 0.1 * size
    steps = 0
    with np.errstate(all="ignore"):
        for steps in range(1, MOST_APPROACHES + 1):  # noqa: B007 (told to the caller)
            q = width - s
            missing = b - s @ X
            residuals = y - X @ beta
            apart = residuals - u + v
            gap = float(s @ v + q @ u)
            if gap <= CLOSE * float(np.maximum(low * residuals, high * residuals).sum()):
                break
            theta = 1.0 / (u / q + v / s)
            try:
                factor = cho_factor((X * theta[:, None]).T @ X, check_finite=False)
            except (LinAlgError, ValueError):
                break

            g = apart + u - v
            ds = theta * (g - X @ cho_solve(factor, (theta * g) @ X - missing, check_finite=False))
            du, dv = u * ds / q - u, -v * ds / s - v
            primal = _longest(s, ds, q, -ds)
            dual = _longest(u, du, v, dv)
            after = float((s + primal * ds) @ (v + dual * dv))
            after += float((q - primal * ds) @ (u + dual * du))
            target = gap / (2 * n_rows) * min(1.0, after / gap) ** 3
            of_s, of_q = target - s * v - ds * dv, target - q * u + ds * du
            g = apart - of_q / q + of_s / s
            move = cho_solve(factor, (theta * g) @ X - missing, check_finite=False)
            ds = theta * (g - X @ move)
            du, dv = (of_q + u * ds) / q, (of_s - v * ds) / s
            primal = min(1.0, 0.9995 * _longest(s, ds, q, -ds))
            dual = min(1.0, 0.9995 * _longest(u, du, v, dv))
            if not (np.isfinite(primal * dual) and np.isfinite(move).all()):
                break
            s = s + primal * ds
            beta, u, v = beta + dual * move, u + dual * du, v + dual * dv
    return residuals, steps


def _longest(a: Floats, da: Floats, b: Floats, db: Floats) -> float:
    """How far one can go, at most 1e3, before a value becomes negative."""
    fastest = max(float(np.max(-da / a)), float(np.max(-db / b)), 1e-3)
    return 1.0 / fastest


def independent_rows(X: Floats, residuals: Floats) -> Indices:
    """Choose rows that determine a fit, those with the least residuals first."""
    n_rows, n_columns = X.shape
    sizes = np.abs(residuals)
    order = np.argsort(sizes, kind="stable")
    n_candidates = min(n_rows, 4 * n_columns)
    while True:
        candidates = order[:n_candidates]
        # Large among the candidates is what is close to the fit.
        close = sizes[candidates] + sizes[order[n_columns - 1]] * 1e-3 + 1e-300
        _, R, pivots = qr(
            (X[candidates] * (close.min() / close)[:, None]).T, mode="economic", pivoting=True
        )
        chosen = candidates[pivots[:n_columns]]
        diagonal = np.abs(np.diag(R))
        if n_candidates == n_rows or diagonal[-1] > 1e-8 * diagonal[0]:
            if diagonal[-1] <= 1e-12 * diagonal[0]:
                # What is close counts less than that a fit is determined.
                chosen = qr(X.T, mode="r", pivoting=True)[1][:n_columns]
            return np.sort(chosen)
        n_candidates = min(n_rows, 8 * n_candidates)


def descend(
    X: Floats, y: Floats, low: float, high: float, rows: Indices
) -> tuple[Indices, Floats, int]:
    """Go down from vertex to vertex; return rows, multipliers and the number of steps.

    The multipliers are within the bounds only if the last vertex is optimal; otherwise (after very
    many steps) they are cut off there, and the gap tells.
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

    It falls at the rate `fall`, and each row whose residual changes sign takes away what it moves.
    """
    # Losses that end in a plain (slacks) take away all of it and no more, but for rounding.
    fall *= 1 - 1e-10
    least = 1e-11 * np.abs(along).max(initial=0.0)
    ahead = np.flatnonzero((residuals * along > 0) & (np.abs(along) > least))
    places = residuals[ahead] / along[ahead]
    n_near = 512
    while len(ahead):
        near = np.arange(len(ahead))
        if n_near < len(ahead):
            near = np.argpartition(places, n_near)[:n_near]
        near = near[np.argsort(places[near], kind="stable")]
        taken = np.cumsum(np.abs(along[ahead[near]])) * width
        if taken[-1] >= fall:
            return int(ahead[near[np.searchsorted(taken, fall)]])
        if n_near >= len(ahead):
            break
        n_near *= 8
    return -1
