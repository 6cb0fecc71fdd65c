"""Minimisation of a logistic objective with an l1 penalty.

Each Newton step minimises a quadratic function plus the penalty, by coordinate descent in the core.
It changes only a working set of columns: those with nonzero coefficients, and those whose
derivatives violate the optimality conditions most. The search ends when no column violates them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from spinney import _core
from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model._newton import (
    GRADIENT_ROUNDING,
    HIDDEN_GAIN,
    Minimum,
    add_common_curvature,
)
from spinney.linear_model.design import Floats

__all__ = ["minimise_with_absolute"]

_FINE = 1e-4  # largest violation at the end, as a share of tol and of the penalty
_SMALLEST_SET = 32  # columns of a working set, at least
_SWEEPS = 5  # sweeps of coordinate descent before a system of equations is solved
_MOST_ROUNDS = 100


def minimise_with_absolute(
    objective: LogisticObjective, absolute: float, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """Minimise objective + absolute * |coefficients|₁ / (sum of weights).

    Parameters
    ----------
    objective : LogisticObjective
        Loss and l2 penalty.
    absolute : float
        The l1 penalty.
    start : ndarray
        Initial parameters.
    tol : float
        Tolerance for violations of the optimality conditions. Newton steps continue until these
        are below a 10,000th of it, or until only rounding errors are left.
    max_iter : int
        Maximum number of Newton steps.

    Returns
    -------
    Minimum
        The end of the search.
    """
    w = start.copy()
    n_columns = objective.design.n_features
    weight = absolute / objective.total
    steps = 0
    loss, gradient, _ = objective.measure(w, second=False)
    if not (np.isfinite(loss) and np.isfinite(gradient).all()):
        return Minimum(np.full_like(w, np.nan), 0, False)
    small = max(tol, GRADIENT_ROUNDING * _worst(w, gradient, weight))
    fine = _FINE * min(tol, weight)
    while True:
        violation = _violations(w, gradient, weight)
        worst = _worst(w, gradient, weight)
        if worst <= fine:
            return Minimum(w, steps, True)
        if steps >= max_iter:
            return Minimum(w, steps, False)
        nonzero = np.flatnonzero((w[:, :-1] != 0).any(axis=0))
        n_set = min(n_columns, max(_SMALLEST_SET, 2 * len(nonzero)))
        priority = violation.copy()
        priority[nonzero] = np.inf
        chosen = np.sort(np.argsort(-priority, kind="stable")[:n_set])
        has_all = len(chosen) == n_columns
        restricted = objective if has_all else objective.take_columns(chosen)
        at = np.append(chosen, n_columns)
        # Precise solutions are needed only for the last working set.
        goal = fine if has_all or worst <= tol else max(fine, 0.1 * worst)
        w[:, at], n_steps, gradient = _solve_set(
            restricted, weight, w[:, at], goal, max_iter - steps
        )
        steps += n_steps
        if not np.isfinite(w).all():
            return Minimum(w, steps, False)
        if n_steps == 0:  # the set has the worst columns, and only rounding errors are left
            return Minimum(w, steps, worst <= small)
        if not has_all:
            _, gradient, _ = objective.measure(w, second=False)


def _violations(w: Floats, gradient: Floats, weight: float) -> Floats:
    """Return the violation of the optimality conditions by each column."""
    slopes, at = gradient[:, :-1], w[:, :-1]
    violations = np.where(
        at == 0,
        np.maximum(np.abs(slopes) - weight, 0.0),
        np.abs(slopes + weight * np.sign(at)),
    )
    return np.asarray(violations.max(axis=0)) if violations.shape[1] else np.zeros(0)


def _worst(w: Floats, gradient: Floats, weight: float) -> float:
    """Return the largest violation of the optimality conditions, by intercepts too."""
    violations = _violations(w, gradient, weight).max(initial=0.0)
    return float(max(violations, np.abs(gradient[:, -1]).max()))


def _solve_set(
    objective: LogisticObjective, weight: float, w: Floats, goal: float, max_iter: int
) -> tuple[Floats, int, Floats]:
    """Minimise over all columns; return parameters, number of steps and gradient."""
    absolute = np.full(objective.shape, weight)
    absolute[:, -1] = 0.0
    free = objective.free()
    w = w.copy()
    loss, gradient, hessian = objective.measure(w, second=True)
    if not np.isfinite(hessian).all():
        return np.full_like(w, np.nan), 0, gradient
    for step in range(max_iter):
        worst = _worst(w, gradient, weight)
        if worst <= goal:
            return w, step, gradient
        goal_of_step = max(0.05 * worst * min(1.0, worst / weight if weight else 1.0), 0.1 * goal)
        moved = _minimise_quadratic(
            np.ascontiguousarray(add_common_curvature(objective, hessian, 1)[np.ix_(free, free)]),
            gradient.ravel()[free],
            absolute.ravel()[free],
            w.ravel()[free],
            goal_of_step,
        )
        target = w.ravel().copy()
        target[free] = moved
        direction = target.reshape(w.shape) - w
        before, after = _penalty(w, weight), _penalty(w + direction, weight)
        slope = float(np.vdot(direction, gradient)) + after - before
        if np.isnan(slope):
            return np.full_like(w, np.nan), 0, gradient
        length, value = 1.0, loss + before
        is_hidden = abs(slope) <= HIDDEN_GAIN * abs(value)
        if not (slope < 0 or is_hidden):
            return w, step, gradient
        tried = objective.measure(w + direction, second=True)
        if is_hidden:
            # Rounding errors hide the gain in the objective, and may change its sign; the
            # derivatives still show it.
            if not _worst(w + direction, tried[1], weight) < worst:
                return w, step, gradient
            w, (loss, gradient, hessian) = w + direction, tried
            continue
        while (
            not tried[0] + _penalty(w + length * direction, weight) <= value + 1e-4 * length * slope
        ):
            if not -slope * length > 1e-15 * abs(value):
                return w, step, gradient
            length *= 0.5
            tried = objective.measure(w + length * direction, second=True)
        w = w + length * direction
        loss, gradient, hessian = tried
    return w, max_iter, gradient


def _minimise_quadratic(
    hessian: Floats, gradient: Floats, absolute: Floats, w: Floats, goal: float
) -> Floats:
    """Return the minimum of a quadratic function about `w` plus the penalty.

    Coordinate descent quickly finds the signs of the coefficients. With correlated columns it is
    slow to find the values, for which a system of equations is solved.
    """
    at = w.copy()
    no_penalty = np.zeros_like(at)  # the Hessian already has the l2 penalty
    for _ in range(_MOST_ROUNDS):
        slopes = gradient + hessian @ (at - w)
        _, violation = _core.descend_by_matrix(
            hessian, slopes, absolute, no_penalty, goal, _SWEEPS, at
        )
        if violation <= goal:
            break
        slopes = gradient + hessian @ (at - w)
        at = _jump(hessian, slopes, absolute, at)
    return at


def _jump(hessian: Floats, slopes: Floats, absolute: Floats, at: Floats) -> Floats:
    """Return `at` after a Newton step of its nonzero coefficients.

    Coefficients that would change sign become zero. The step is halved until the quadratic function
    plus the penalty decreases.
    """
    chosen = np.flatnonzero((at != 0) | (absolute == 0))
    signs = np.sign(at[chosen])
    right = -(slopes[chosen] + absolute[chosen] * signs)
    matrix = hessian[np.ix_(chosen, chosen)]
    try:
        factor = linalg.cho_factor(matrix, check_finite=False)
    except linalg.LinAlgError:
        return at
    step = linalg.cho_solve(factor, right, check_finite=False)
    penalised = absolute[chosen] > 0
    length = 1.0
    while length > 1e-3:
        target = at[chosen] + length * step
        target[penalised & (np.sign(target) != signs)] = 0.0
        moved = target - at[chosen]
        change = moved @ (slopes[chosen] + 0.5 * (matrix @ moved))
        change += absolute[chosen] @ (np.abs(target) - np.abs(at[chosen]))
        if change < 0:
            at = at.copy()
            at[chosen] = target
            return at
        length *= 0.5
    return at


def _penalty(w: NDArray[np.float64], weight: float) -> float:
    return weight * float(np.abs(w[:, :-1]).sum())
