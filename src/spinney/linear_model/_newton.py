"""Minimisation of a logistic objective by Newton's method or L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize

from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model.design import Floats

__all__ = [
    "GRADIENT_ROUNDING",
    "HIDDEN_GAIN",
    "Minimum",
    "add_common_curvature",
    "choose_solver",
    "largest_gain",
    "minimise_by_lbfgs",
    "minimise_by_newton",
]

_NEWTON_STEPS, _LBFGS_STEPS = 10, 150  # typical numbers of steps, to compare the costs
HIDDEN_GAIN = 1e-11  # gains up to this share of the loss are hidden by rounding errors
GRADIENT_ROUNDING = 1e-6  # share of the first gradient that may be rounding errors at the end
_MOST_PARAMETERS = 2_000  # Newton's method with Cholesky is used up to this number
_EPS = float(np.finfo(np.float64).eps)
_ZERO_LOSS = 1e-20  # lower limit of the loss as a unit: the loss of one class alone is zero
_CG_SHARE = 0.03  # conjugate gradients stop at this share of the first residual
# Gradients that conjugate gradients may compute per step of max_iter: few if the Hessian is small
# enough for Cholesky, which is the alternative.
_CG_PASSES, _MOST_CG_PASSES = 10, 50
_CG_CHANGE = 1e-6  # change of the scores for finite differences


def largest_gain(tol: float) -> float:
    """Return the relative gain of a step at which a search ends."""
    return 0.01 * min(tol, 1e-2) ** 2


@dataclass
class Minimum:
    """The end of a search.

    Parameters
    ----------
    w : ndarray
        Parameters of the centred columns.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the gradient is at most tol and the gain of the next step is negligible.
    is_separated : bool
        Whether the search ended because all rows are classified correctly and there is no penalty:
        then the loss has no minimum.
    """

    w: Floats
    n_iter: int
    converged: bool
    is_separated: bool = False


def choose_solver(objective: LogisticObjective) -> str:
    """Return "newton-cholesky" or "lbfgs", whichever has the lower expected cost."""
    design, n_scores = objective.design, objective.n_scores
    n_parameters = n_scores * (design.n_features + 1)
    if n_parameters > _MOST_PARAMETERS:
        return "lbfgs"
    n_rows, width = float(design.n_rows), float(design.n_features + 1)
    n_pairs = n_scores * (n_scores + 1) / 2
    if design.is_sparse:
        stored = design.X.nnz / max(1.0, n_rows)
        newton, lbfgs = n_rows * stored * (4 + stored), n_rows * stored * 6
        if n_scores > 1:  # SciPy computes one product per pair of classes
            newton = n_pairs * (3e5 + n_rows * (stored + 1) * (10 + 6 * stored))
            lbfgs *= n_scores
    else:
        newton = n_rows * width * (1 + n_pairs * (1 + 0.1 * width))
        lbfgs = n_rows * width * (1 + 0.6 * n_scores)
    newton += 0.3 * n_parameters**3
    lbfgs += 200_000  # SciPy's overhead per step
    return "newton-cholesky" if newton * _NEWTON_STEPS < lbfgs * _LBFGS_STEPS else "lbfgs"


def minimise_by_newton(
    objective: LogisticObjective, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """Minimise by Newton's method with a line search and Cholesky."""
    free = objective.free()

    def find_direction(w: Floats, loss: float, gradient: Floats, hessian: Floats) -> Floats:
        return _solve(objective, hessian, gradient, free)

    return _descend(objective, start, tol, max_iter, find_direction=find_direction, second=True)


def _descend(
    objective: LogisticObjective,
    start: Floats,
    tol: float,
    max_iter: int,
    *,
    find_direction: Callable[[Floats, float, Floats, Floats], Floats | None],
    second: bool,
) -> Minimum:
    """Step until the gradient is small and the next gain is negligible.

    A last step follows from the point where both hold. Newton's method converges quadratically: the
    step doubles the number of correct digits of the coefficients.
    """
    w = start.copy()
    loss, gradient, hessian = objective.measure(w, second=second)
    if not (np.isfinite(loss) and np.isfinite(hessian if second else gradient).all()):
        return Minimum(np.full_like(w, np.nan), 0, False)
    may_separate = objective.alpha == 0
    small = max(tol, GRADIENT_ROUNDING * float(np.abs(gradient).max(initial=0.0)))
    for step in range(max_iter + 1):
        if may_separate and objective.is_separated(loss):
            return Minimum(w, step, False, is_separated=True)
        direction = find_direction(w, loss, gradient, hessian)
        if direction is None:
            return Minimum(w, step, False)
        slope = float(np.vdot(direction, gradient))
        if np.isnan(slope):
            return Minimum(np.full_like(w, np.nan), step, False)
        worst = float(np.abs(gradient).max(initial=0.0))
        # Without a descent direction, a small gradient consists of rounding errors.
        is_flat = worst <= small
        if not slope < 0:
            return Minimum(w, step, is_flat)
        size = max(abs(loss), _ZERO_LOSS)
        is_last = worst <= tol and -slope <= largest_gain(tol) * size
        if step == max_iter or (is_last and -slope <= _EPS * size):
            return Minimum(w, step, is_last)
        length = 1.0
        # Compute second derivatives, too: nearly all full steps are accepted.
        tried = objective.measure(w + direction, second=second and not is_last)
        if is_last or -slope <= HIDDEN_GAIN * abs(loss):
            # Rounding errors hide the gain in the loss, but not in the gradient.
            is_better = bool(np.abs(tried[1]).max() < worst)
            if is_better:
                w, (loss, gradient, hessian) = w + direction, tried
            if is_last or not is_better:
                return Minimum(w, step + is_better, is_last or is_flat)
            continue
        while not tried[0] <= loss + 1e-4 * length * slope:
            if not -slope * length > 1e-14 * abs(loss):
                return Minimum(w, step, is_flat)
            length *= 0.5
            tried = objective.measure(w + length * direction, second=False)
            if second and tried[0] <= loss + 1e-4 * length * slope:
                tried = objective.measure(w + length * direction, second=True)
        w = w + length * direction
        loss, gradient, hessian = tried
    return Minimum(w, max_iter, False)


def _solve(objective: LogisticObjective, hessian: Floats, gradient: Floats, free: Any) -> Floats:
    """Return Newton's direction, -H⁻¹ gradient, from a Hessian with scaled columns."""
    n_common = objective.shape[1] if objective.alpha == 0 else 1
    hessian = add_common_curvature(objective, hessian, n_common)
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
        # Columns depend on each other, or probabilities are 0 or 1: use the shortest direction.
        values, vectors = linalg.eigh(matrix)
        kept = values > 1e-13 * values[-1]
        rotated = vectors[:, kept].T @ (right / scale)
        solved = vectors[:, kept] @ (rotated / values[kept])
    direction[free] = solved / scale
    return direction.reshape(gradient.shape)


def add_common_curvature(objective: LogisticObjective, hessian: Floats, n_last: int) -> Floats:
    """Return the Hessian with added curvature along shifts common to all classes.

    It is added for the last `n_last` parameters of each class. Adding the same number to a
    parameter of all classes changes no probability. Without a penalty, second derivatives along
    this shift are zero and the Hessian is singular. The added curvature is that of the parameter
    itself, so that it does not depend on the units of the column.
    """
    n_classes, width = objective.shape
    if n_classes == 1:
        return hessian
    weights = np.diagonal(hessian).reshape(n_classes, width).max(axis=0)
    weights[: width - n_last] = 0.0
    return hessian + np.kron(np.ones((n_classes, n_classes)), np.diag(weights))


def minimise_by_lbfgs(
    objective: LogisticObjective, start: Floats, tol: float, max_iter: int
) -> Minimum:
    """Minimise by SciPy's L-BFGS, then by Newton's method with conjugate gradients.

    L-BFGS comes near the optimum in few passes but then converges slowly. It takes at most half of
    the steps; Newton's method, which needs only a few, takes the rest. Columns are scaled to
    similar sizes.
    """
    if max_iter == 0:
        return Minimum(start.copy(), 0, False)
    loss, gradient, _ = objective.measure(start, second=False)
    if not np.isfinite(loss + float(np.vdot(gradient, gradient))):
        return Minimum(np.full_like(start, np.nan), 0, False)

    scale = objective.scale()
    if not np.isfinite(scale).all():
        return Minimum(np.full_like(start, np.nan), 0, False)

    def measure(scaled: Floats) -> tuple[float, Floats]:
        w = (scaled / scale).reshape(objective.shape)
        loss, gradient, _ = objective.measure(w, second=False)
        return loss, gradient.ravel() / scale

    near = optimize.minimize(
        measure,
        start.ravel() * scale,
        method="L-BFGS-B",
        jac=True,
        options={
            "maxiter": max(1, max_iter // 2),
            "gtol": tol,
            "ftol": 64 * _EPS,
            "maxls": 50,
        },
    )
    n_steps = min(int(near.nit), max_iter)
    w = (near.x / scale).reshape(objective.shape)
    is_small = w.size <= _MOST_PARAMETERS
    solver = _ConjugateGradients(
        objective,
        lambda g: near.hess_inv.matvec(g / scale) / scale,
        (_CG_PASSES if is_small else _MOST_CG_PASSES) * max_iter,
    )
    found = _descend(
        objective,
        w,
        tol,
        max_iter - n_steps,
        find_direction=solver.find_direction,
        second=False,
    )
    found.n_iter += n_steps
    if found.converged or found.is_separated or not is_small:
        return found
    # Columns have very different sizes, or are nearly dependent.
    exact = minimise_by_newton(objective, found.w, tol, max_iter - found.n_iter)
    exact.n_iter += found.n_iter
    return exact


class _ConjugateGradients:
    """Newton directions by conjugate gradients, without the Hessian.

    Its products with vectors are finite differences of gradients.

    Parameters
    ----------
    objective : LogisticObjective
        Loss and penalty.
    precondition : callable
        Multiplication by an approximate inverse of the Hessian, symmetric and positive definite.
    n_passes : int
        Maximum number of gradients.
    """

    def __init__(
        self, objective: LogisticObjective, precondition: Callable[[Any], Any], n_passes: int
    ) -> None:
        self.objective = objective
        self.precondition = precondition
        self.n_passes = n_passes

    def find_direction(self, w: Floats, loss: float, gradient: Floats, _: Floats) -> Floats | None:
        """Return -H⁻¹ gradient approximately, or None if that takes too many passes."""
        slopes = self.objective.measure_loss(w, second=False)[1].ravel()
        direction = np.zeros(w.size)
        residual = -gradient.ravel()
        step = self.precondition(residual)
        size = first = float(residual @ step)
        ahead = step
        while size > _CG_SHARE**2 * first:
            if self.n_passes == 0:
                return None
            self.n_passes -= 1
            product = self._multiply(w, slopes, ahead, _CG_CHANGE * np.sqrt(loss / size))
            curvature = float(ahead @ product)
            if not curvature > 0:  # by rounding errors
                break
            direction += size / curvature * ahead
            residual -= size / curvature * product
            step = self.precondition(residual)
            size, before = float(residual @ step), size
            ahead = step + size / before * ahead
        return (direction if direction.any() else ahead).reshape(w.shape)

    def _multiply(self, w: Floats, slopes: Floats, vector: Floats, change: float) -> Floats:
        """Return the Hessian times a vector."""
        objective = self.objective
        vector = vector.reshape(w.shape)
        moved = objective.measure_loss(w + change * vector, second=False)[1].ravel()
        penalty = objective.alpha / objective.total * vector
        penalty[:, -1] = 0.0
        return (moved - slopes) / change + penalty.ravel()
