"""Minimising a logistic objective: Newton's method, or L-BFGS where that is less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize

from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model.design import Floats

__all__ = [
    "NOTHING",
    "ROUNDED",
    "Minimum",
    "choose_solver",
    "hold_common",
    "minimise_by_lbfgs",
    "minimise_by_newton",
]

_NEWTON_STEPS, _LBFGS_STEPS = 8, 60  # that a fit takes, about
NOTHING = 1e-11  # share of the loss that is too little to be told from rounding
ROUNDED = 1e-6  # share of the first gradient that may be rounding at the end
_MOST_PARAMETERS = 2_000  # whose matrix is made and solved


@dataclass
class Minimum:
    """Where a search ended.

    Parameters
    ----------
    w : ndarray
        Parameters, for columns about the centre.
    n_iter : int
        Steps made.
    converged : bool
        Whether the gradient is as small as was asked for.
    is_separated : bool
        Whether the search ended because every row was on its side without a penalty, so that
        there is no optimum.
    """

    w: Floats
    n_iter: int
    converged: bool
    is_separated: bool = False


def choose_solver(objective: LogisticObjective) -> str:
    """ "newton-cholesky" or "lbfgs", by what they are expected to cost."""
    design, n_scores = objective.design, objective.n_scores
    n_parameters = n_scores * (design.n_features + 1)
    if n_parameters > _MOST_PARAMETERS or (design.is_sparse and n_scores > 1):
        return "lbfgs"
    n_rows, width = float(design.n_rows), float(design.n_features + 1)
    n_pairs = n_scores * (n_scores + 1) / 2
    if design.is_sparse:
        stored = design.X.nnz / max(1.0, n_rows)
        newton, lbfgs = n_rows * stored * (4 + stored), n_rows * stored * 6
    else:
        newton = n_rows * width * (1 + n_pairs * (1 + 0.1 * width))
        lbfgs = n_rows * width * (1 + 0.6 * n_scores)
    newton += 0.3 * n_parameters**3
    lbfgs += 200_000  # of SciPy, a step
    return "newton-cholesky" if newton * _NEWTON_STEPS < lbfgs * _LBFGS_STEPS else "lbfgs"


def minimise_by_newton(
    objective: LogisticObjective, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """Newton's method with a search along the line where a whole step is too long."""
    w = start.copy()
    free = objective.free()
    loss, gradient, hessian = objective.measure(w, second=True)
    if not (np.isfinite(loss) and np.isfinite(hessian).all()):
        return Minimum(np.full_like(w, np.nan), 0, False)
    may_separate = objective.alpha == 0 and objective.n_scores == 1
    small = max(tol, ROUNDED * float(np.abs(gradient).max(initial=0.0)))
    for step in range(max_iter + 1):
        if np.abs(gradient).max(initial=0.0) <= tol:
            return Minimum(w, step, True)
        if may_separate and objective.is_separated(loss):
            return Minimum(w, step, False, is_separated=True)
        if step == max_iter:
            break
        direction = _solve(objective, hessian, gradient, free)
        slope = float(np.vdot(direction, gradient))
        if np.isnan(slope):
            return Minimum(np.full_like(w, np.nan), step, False)
        # Where nothing leads down only rounding is left, unless the gradient is still large.
        at_rest = bool(np.abs(gradient).max() <= small)
        if not slope < 0:
            return Minimum(w, step, at_rest)
        length = 1.0
        # Second derivatives at once: nearly every whole step is taken.
        tried = objective.measure(w + direction, second=True)
        if -slope <= NOTHING * abs(loss):
            # Rounding hides what the loss would gain; the gradient still shows it.
            if not np.abs(tried[1]).max() < np.abs(gradient).max():
                return Minimum(w, step, at_rest)
            w, (loss, gradient, hessian) = w + direction, tried
            continue
        while not tried[0] <= loss + 1e-4 * length * slope:
            if not -slope * length > 1e-14 * abs(loss):
                return Minimum(w, step, at_rest)
            length *= 0.5
            tried = objective.measure(w + length * direction, second=False)
            if tried[0] <= loss + 1e-4 * length * slope:
                tried = objective.measure(w + length * direction, second=True)
        w = w + length * direction
        loss, gradient, hessian = tried
    return Minimum(w, max_iter, False)


def _solve(objective: LogisticObjective, hessian: Floats, gradient: Floats, free: Any) -> Floats:
    """Newton's direction, -(matrix)⁻¹ gradient; columns are brought to the same scale first."""
    held = objective.shape[1] if objective.alpha == 0 else 1
    hessian = hold_common(objective, hessian, held)
    matrix = hessian[np.ix_(free, free)]
    right = -gradient.ravel()[free]
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    matrix = matrix / np.outer(scale, scale)
    direction = np.zeros(len(free))
    try:
        factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        solved = linalg.cho_solve(factor, right / scale, check_finite=False)
        if np.diagonal(factor[0]).min() < 1e-7:
            raise linalg.LinAlgError
    except linalg.LinAlgError:
        # Columns depend on each other, or rows are sure of their class: the shortest direction.
        values, vectors = linalg.eigh(matrix)
        kept = values > 1e-13 * values[-1]
        turned = vectors[:, kept].T @ (right / scale)
        solved = vectors[:, kept] @ (turned / values[kept])
    direction[free] = solved / scale
    return direction.reshape(gradient.shape)


def hold_common(objective: LogisticObjective, hessian: Floats, n_held: int) -> Floats:
    """Hold where it is what several classes have in common, for the last `n_held` parameters.

    Adding the same to all classes changes no probability: where nothing penalises it, second
    derivatives along it are zero. They become as large as those of the parameter itself, whatever
    the units of its column.
    """
    n_classes, width = objective.shape
    if n_classes == 1:
        return hessian
    weights = np.diagonal(hessian).reshape(n_classes, width).max(axis=0)
    weights[: width - n_held] = 0.0
    return hessian + np.kron(np.ones((n_classes, n_classes)), np.diag(weights))


def minimise_by_lbfgs(
    objective: LogisticObjective, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """SciPy's L-BFGS."""
    if max_iter == 0:
        return Minimum(start.copy(), 0, False)
    loss, gradient, _ = objective.measure(start, second=False)
    if not np.isfinite(loss + float(np.vdot(gradient, gradient))):
        return Minimum(np.full_like(start, np.nan), 0, False)

    def measure(flat: Floats) -> tuple[float, Floats]:
        loss, gradient, _ = objective.measure(flat.reshape(objective.shape), second=False)
        return loss, gradient.ravel()

    told = optimize.minimize(
        measure,
        start.ravel(),
        method="L-BFGS-B",
        jac=True,
        options={"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50},
    )
    w = told.x.reshape(objective.shape)
    separated = False
    if objective.alpha == 0 and objective.n_scores == 1:
        separated = objective.is_separated(float(told.fun))
    return Minimum(w, min(int(told.nit), max_iter), bool(told.success), separated)
