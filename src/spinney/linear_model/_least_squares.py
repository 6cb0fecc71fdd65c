"""Least squares by well-conditioned normal equations, else by QR or SVD."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from spinney.linear_model.design import Design, Floats

__all__ = [
    "Moments",
    "Solution",
    "collect_moments",
    "measure_lengths",
    "reduce_rows",
    "solve_least_squares",
]

_EPS = float(np.finfo(np.float64).eps)
# Smallest reciprocal condition of normal equations; solutions have about ten correct digits.
_SMALLEST_RCOND = 1e-6
_TINY = 1e-140  # lengths up to this have squares that underflow or lose digits
_TARGETS = 64  # targets per pass: at least this many, and at least as many as columns
_MOST_PASSES = 4


@dataclass(frozen=True)
class Moments:
    """Second moments of the rows about their mean; about zero without an intercept.

    Parameters
    ----------
    total : float
        Sum of the weights.
    means : ndarray of shape (n_features,)
        Means of the columns; zeros without an intercept.
    target_means : ndarray of shape (n_targets,)
        Means of the targets; zeros without an intercept.
    diagonal : ndarray of shape (n_features,)
        Sums of squares of the columns.
    xx : ndarray of shape (n_features, n_features), or empty
        Weighted sums of products of columns over rows; empty unless there are more rows than
        columns.
    xy : ndarray of shape (n_features, n_targets), or empty
        Weighted sums of products of columns and targets; may be empty like `xx`.
    yy : ndarray of shape (n_targets,)
        Weighted sums of squares of the targets.
    """

    total: float
    means: Floats
    target_means: Floats
    diagonal: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @property
    def is_finite(self) -> bool:
        """Whether the moments of X are finite: else X has invalid or too large values."""
        parts = (self.means, self.diagonal, self.xx, self.xy)
        return all(bool(np.isfinite(part).all()) for part in parts)

    @property
    def is_extreme(self) -> bool:
        """Whether any sum overflows."""
        parts = (self.total, self.target_means, self.yy)
        return not (self.is_finite and all(bool(np.isfinite(part).all()) for part in parts))


def collect_moments(design: Design, Y: Floats, fit_intercept: bool) -> Moments:
    """Return the moments of the rows.

    One pass suffices unless the centre is far from the means. A pass also sums products of targets
    with each other, which are not needed: many targets are therefore summed in groups.
    """
    if design.n_rows <= design.n_features and not design.is_sparse:
        return _measure_columns(design, Y, fit_intercept)
    step = max(_TARGETS, design.n_features)
    groups = [Y[:, first : first + step] for first in range(0, Y.shape[1], step)]
    moments = [_sum_moments(design, group, fit_intercept) for group in groups]
    return replace(
        moments[0],
        target_means=np.concatenate([one.target_means for one in moments]),
        xy=np.concatenate([one.xy for one in moments], axis=1),
        yy=np.concatenate([one.yy for one in moments]),
    )


def _sum_moments(design: Design, Y: Floats, fit_intercept: bool) -> Moments:
    d = design.n_features
    centre = np.zeros(d + Y.shape[1])
    if not fit_intercept:
        sums = design.moments(Y, centre)
        return _split(sums, centre, sums[:-1, :-1], d)
    centre[:d], centre[d:] = design.centre(), design.average(Y)
    for _ in range(_MOST_PASSES):
        with np.errstate(over="ignore", invalid="ignore"):
            sums = design.moments(Y, centre)
            shift = sums[-1, :-1] / sums[-1, -1]
            about_mean = sums[:-1, :-1] - sums[-1, -1] * np.outer(shift, shift)
            subtracted = sums[-1, -1] * shift**2
            is_near = bool((subtracted <= 100 * np.diagonal(about_mean))[:d].all())
            means = centre + shift
        if is_near or not np.isfinite(shift).all() or (means == centre).all():
            break
        centre = means
    return _split(sums, means, about_mean, d)


def _split(sums: Floats, means: Floats, about: Floats, d: int) -> Moments:
    return Moments(
        total=float(sums[-1, -1]),
        means=means[:d],
        target_means=means[d:],
        diagonal=np.diagonal(about)[:d],
        xx=about[:d, :d],
        xy=about[:d, d:],
        yy=np.diagonal(about)[d:],
    )


def _measure_columns(design: Design, Y: Floats, fit_intercept: bool) -> Moments:
    """Return moments without the products, which few rows do not need."""
    weights = np.ones(design.n_rows) if design.weights is None else design.weights
    rows = np.asarray(design.X, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.zeros(design.n_features)
        target_means = np.zeros(Y.shape[1])
        if fit_intercept:
            means = np.average(rows, axis=0, weights=weights)
            target_means = np.average(Y, axis=0, weights=weights)
        diagonal = weights @ np.square(rows - means)
        yy = weights @ np.square(Y - target_means)
    empty = np.empty((0, 0))
    total = float(weights.sum())
    return Moments(total, means, target_means, diagonal, empty, empty, yy)


@dataclass
class Solution:
    """The solution of a least squares problem.

    Parameters
    ----------
    coef : ndarray of shape (n_features, n_targets)
        Coefficients.
    rank : int
        Rank of the columns, centred if there is an intercept.
    singular : ndarray
        Singular values of the columns.
    condition : float
        Condition number of the columns, scaled to length one; infinite if they are dependent.
    solver : str
        "cholesky", "qr" or "svd".
    residual : ndarray of shape (n_targets,)
        Sums of squared residuals.
    spread : tuple or None
        For standard errors: the diagonal of the inverse of the moments, and m'(inverse)m for the
        means m. None if there is no inverse.
    """

    coef: Floats
    rank: int
    singular: Floats
    condition: float
    solver: str
    residual: Floats
    spread: tuple[Floats, float] | None


def solve_least_squares(design: Design, Y: Floats, moments: Moments) -> Solution:
    """Solve by normal equations if they are well conditioned, else by QR of the rows."""
    if moments.is_finite and design.n_rows > design.n_features:
        solution = _by_normal_equations(moments)
        if solution is not None:
            return solution
    return _by_rows(design, Y, moments)


def column_lengths(moments: Moments) -> Floats:
    """Return the lengths of the columns; zero if a column is constant up to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(moments.diagonal)
        rounding = 8 * _EPS * np.abs(moments.means) * np.sqrt(moments.total)
    return np.where((lengths > rounding) & np.isfinite(lengths), lengths, 0.0)


def measure_lengths(design: Design, moments: Moments) -> Floats:
    """Return lengths of columns; if squares overflow or underflow, the largest values."""
    lengths = column_lengths(moments)
    doubtful = np.flatnonzero((lengths < _TINY) | ~np.isfinite(moments.diagonal))
    if len(doubtful):
        means = moments.means[doubtful]
        largest = design.farthest(doubtful, means)
        lengths[doubtful] = np.where(largest > 8 * _EPS * np.abs(means), largest, 0.0)
    return lengths


def _by_normal_equations(moments: Moments) -> Solution | None:
    """Solve by Cholesky; None if the columns are nearly dependent."""
    lengths = column_lengths(moments)
    if not len(lengths) or not (lengths > _TINY).all():
        return None
    scaled = moments.xx / np.outer(lengths, lengths)
    factor, failed = linalg.lapack.dpotrf(scaled, lower=1)
    if failed:
        return None
    rcond, _ = linalg.lapack.dpocon(factor, np.abs(scaled).sum(axis=0).max(), uplo="L")
    if not rcond > _SMALLEST_RCOND:
        return None
    coef = linalg.cho_solve((factor, True), moments.xy / lengths[:, np.newaxis])
    coef /= lengths[:, np.newaxis]
    residual = moments.yy - np.einsum("ij,ij->j", coef, moments.xy)
    if (residual < 1e-8 * moments.yy).any():
        return None  # the difference has no correct digits: use the rows instead
    inverse = linalg.lapack.dpotri(factor, lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    means = moments.means / lengths
    spread = np.diagonal(inverse) / lengths**2, float(means @ inverse @ means)
    values = np.sqrt(np.maximum(linalg.eigvalsh(moments.xx), 0.0))[::-1]
    condition = float(np.sqrt(np.divide(*linalg.eigvalsh(scaled)[[-1, 0]])))
    return Solution(coef, len(coef), values, condition, "cholesky", residual, spread)


def reduce_rows(design: Design, Y: Floats, moments: Moments, lengths: Floats) -> Floats:
    """Return a triangular matrix with the same moments as (X, Y).

    Columns of X are centred and divided by their lengths.
    """
    return design.triangle(Y, moments.means, moments.target_means, lengths)


def _by_rows(design: Design, Y: Floats, moments: Moments) -> Solution:
    """Solve by QR of the rows; dependent columns get the shortest solution."""
    d = design.n_features
    lengths = measure_lengths(design, moments)
    constant = lengths == 0
    lengths[constant] = 1.0
    triangle = reduce_rows(design, Y, moments, lengths)
    upper, right = triangle[:d, :d], triangle[:d, d:]
    upper[:, constant] = 0.0  # only rounding errors are left in constant columns
    residual = np.square(triangle[d:, d:]).sum(axis=0)
    values = linalg.svdvals(upper, check_finite=False)
    largest = values[0] if len(values) else 0.0
    tolerance = _EPS * max(design.n_rows, d)
    rank = int((values > largest * tolerance).sum())
    singular = linalg.svdvals(upper * lengths)
    if rank == d and d > 0:
        coef = linalg.solve_triangular(upper, right) / lengths[:, np.newaxis]
        inverse = linalg.solve_triangular(upper, np.eye(d))
        scaled = (moments.means / lengths) @ inverse
        with np.errstate(over="ignore"):  # a standard error may be infinite
            diagonal = np.square(inverse / lengths[:, np.newaxis]).sum(axis=1)
        spread = diagonal, float(scaled @ scaled)
        condition = float(values[0] / values[-1])
        return Solution(coef, rank, singular, condition, "qr", residual, spread)
    coef = _shortest(upper, right, lengths, rank, tolerance)
    fitted = upper @ (coef * lengths[:, np.newaxis])
    residual = residual + np.square(right - fitted).sum(axis=0)
    return Solution(coef, rank, singular, np.inf, "svd", residual, None)


def _shortest(upper: Floats, right: Floats, lengths: Floats, rank: int, tolerance: float) -> Floats:
    """Return the shortest of all coefficients with the smallest residual.

    `rank` columns span the others. Rounding errors in the sums that express the others are set to
    zero. Otherwise the units of a column that is not part of the dependence could enlarge them.
    """
    if rank == 0:
        return np.zeros((len(lengths), right.shape[1]))
    q, r, order = linalg.qr(upper, mode="economic", pivoting=True, check_finite=False)
    within = r[:rank, :rank]
    sums = linalg.solve_triangular(within, r[:rank, rank:])
    sums[np.abs(sums) <= tolerance] = 0.0
    spanning = lengths[order[:rank]][:, np.newaxis]
    equations = np.hstack([np.eye(rank), sums * (lengths[order[rank:]] / spanning)])
    constants = linalg.solve_triangular(within, (q.T @ right)[:rank]) / spanning
    # QR keeps the digits of small columns if large columns come first and it may exchange
    # equations. A second step corrects rounding errors.
    by_size = np.argsort(-np.abs(equations).max(axis=0, initial=0.0), kind="stable")
    equations = equations[:, by_size]
    q, r, exchanged = linalg.qr(equations.T, mode="economic", pivoting=True)
    coef = q @ linalg.solve_triangular(r, constants[exchanged], trans="T")
    rest = constants - equations @ coef
    coef += q @ linalg.solve_triangular(r, rest[exchanged], trans="T")
    out = np.empty_like(coef)
    out[order[by_size]] = coef
    return out
