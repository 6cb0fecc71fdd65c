"""A logistic objective with a penalty on absolute values: most coefficients become zero.

Newton steps, each of them a quadratic with the penalty, solved by coordinate descent in the core,
over a working set: the columns whose coefficient is not zero, and of the others those that most
want to leave zero. All columns are looked at before the search ends, so that none is missed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from spinney import _core
from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model._newton import NOTHING, ROUNDED, Minimum, hold_common
from spinney.linear_model.design import Floats

__all__ = ["minimise_with_absolute"]

_FINE = 1e-4  # share of tol and of the penalty by which derivatives may be off at the end
_SMALLEST_SET = 32  # columns of a working set, where there are as many
_SWEEPS = 5  # of coordinate descent, before equations are solved
_MOST_ROUNDS = 100


def minimise_with_absolute(
    objective: LogisticObjective, absolute: float, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """Minimise objective + absolute * |coefficients|₁, both over the sum of weights.

    Parameters
    ----------
    objective : LogisticObjective
        Loss and penalty on squares.
    absolute : float
        The penalty on absolute values.
    start : ndarray
        Parameters to begin with.
    tol : float
        How far derivatives may be from zero. Newton's steps go on until they are 10,000 times as
        near to it, or as near as rounding allows.
    max_iter : int
        Newton steps at most.

    Returns
    -------
    Minimum
        Where the search ended.
    """
    w = start.copy()
    n_columns = objective.design.n_features
    weight = absolute / objective.total
    steps = 0
    loss, gradient, _ = objective.measure(w, second=False)
    if not (np.isfinite(loss) and np.isfinite(gradient).all()):
        return Minimum(np.full_like(w, np.nan), 0, False)
    small = max(tol, ROUNDED * _worst(w, gradient, weight))
    fine = _FINE * min(tol, weight)
    while True:
        violation = _violations(w, gradient, weight)
        worst = _worst(w, gradient, weight)
        if worst <= fine:
            return Minimum(w, steps, True)
        if steps >= max_iter:
            return Minimum(w, steps, False)
        used = np.flatnonzero((w[:, :-1] != 0).any(axis=0))
        n_set = min(n_columns, max(_SMALLEST_SET, 2 * len(used)))
        wanted = violation.copy()
        wanted[used] = np.inf
        chosen = np.sort(np.argsort(-wanted, kind="stable")[:n_set])
        whole = len(chosen) == n_columns
        part = objective if whole else objective.take_columns(chosen)
        at = np.append(chosen, n_columns)
        # A working set need not be solved to the end before the others were looked at.
        goal = fine if whole or worst <= tol else max(fine, 0.1 * worst)
        w[:, at], n_steps, gradient = _solve_set(part, weight, w[:, at], goal, max_iter - steps)
        steps += n_steps
        if not np.isfinite(w).all():
            return Minimum(w, steps, False)
        if n_steps == 0:  # the worst columns are in the set, and only rounding is left
            return Minimum(w, steps, worst <= small)
        if not whole:
            _, gradient, _ = objective.measure(w, second=False)


def _violations(w: Floats, gradient: Floats, weight: float) -> Floats:
    """By how much the derivatives of a column's coefficients miss zero."""
    slopes, at = gradient[:, :-1], w[:, :-1]
    missed = np.where(
        at == 0,
        np.maximum(np.abs(slopes) - weight, 0.0),
        np.abs(slopes + weight * np.sign(at)),
    )
    return np.asarray(missed.max(axis=0)) if missed.shape[1] else np.zeros(0)


def _worst(w: Floats, gradient: Floats, weight: float) -> float:
    """The largest by which a derivative misses zero, of intercepts too."""
    missed = _violations(w, gradient, weight).max(initial=0.0)
    return float(max(missed, np.abs(gradient[:, -1]).max()))


def _solve_set(
    objective: LogisticObjective, weight: float, w: Floats, goal: float, max_iter: int
) -> tuple[Floats, int, Floats]:
    """Newton steps over all columns of an objective; also the gradient where they end."""
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
            np.ascontiguousarray(hold_common(objective, hessian, 1)[np.ix_(free, free)]),
            gradient.ravel()[free],
            absolute.ravel()[free],
            w.ravel()[free],
            goal_of_step,
        )
        target = w.ravel().copy()
        target[free] = moved
        direction = target.reshape(w.shape) - w
        before, after = _size(w, weight), _size(w + direction, weight)
        slope = float(np.vdot(direction, gradient)) + after - before
        if np.isnan(slope):
            return np.full_like(w, np.nan), 0, gradient
        length, value = 1.0, loss + before
        is_hidden = abs(slope) <= NOTHING * abs(value)
        if not (slope < 0 or is_hidden):
            return w, step, gradient
        tried = objective.measure(w + direction, second=True)
        if is_hidden:
            # Rounding hides what the objective would gain, and may turn its sign; the derivatives
            # still show it.
            if not _worst(w + direction, tried[1], weight) < worst:
                return w, step, gradient
            w, (loss, gradient, hessian) = w + direction, tried
            continue
        while not tried[0] + _size(w + length * direction, weight) <= value + 1e-4 * length * slope:
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
    """The minimum of a quadratic about `w` with the penalty.

    Coordinate descent finds which coefficients are not zero and their signs; where columns are
    alike it is slow to find their values, which a system of equations has at once.
    """
    at = w.copy()
    nothing = np.zeros_like(at)  # the objective has the penalty on squares already
    for _ in range(_MOST_ROUNDS):
        slopes = gradient + hessian @ (at - w)
        _, violation = _core.descend_by_matrix(
            hessian, slopes, absolute, nothing, goal, _SWEEPS, at
        )
        if violation <= goal:
            break
        slopes = gradient + hessian @ (at - w)
        at = _jump(hessian, slopes, absolute, at)
    return at


def _jump(hessian: Floats, slopes: Floats, absolute: Floats, at: Floats) -> Floats:
    """Newton's step among coefficients that are not zero; those that would change sign stop there.

    It is shortened until the quadratic with the penalty becomes smaller.
    """
    used = np.flatnonzero((at != 0) | (absolute == 0))
    signs = np.sign(at[used])
    right = -(slopes[used] + absolute[used] * signs)
    matrix = hessian[np.ix_(used, used)]
    try:
        factor = linalg.cho_factor(matrix, check_finite=False)
    except linalg.LinAlgError:
        return at
    step = linalg.cho_solve(factor, right, check_finite=False)
    penalised = absolute[used] > 0
    length = 1.0
    while length > 1e-3:
        target = at[used] + length * step
        target[penalised & (np.sign(target) != signs)] = 0.0
        moved = target - at[used]
        change = moved @ (slopes[used] + 0.5 * (matrix @ moved))
        change += absolute[used] @ (np.abs(target) - np.abs(at[used]))
        if change < 0:
            at = at.copy()
            at[used] = target
            return at
        length *= 0.5
    return at


def _size(w: NDArray[np.float64], weight: float) -> float:
    return weight * float(np.abs(w[:, :-1]).sum())
