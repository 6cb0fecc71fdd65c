"""Strict separation of classes by a halfspace, or a proof that there is none.

The points are z_i = y_i (x_i, 1). A linear program maximises the minimum of ⟨w, z_i⟩ over w in a
box. Its dual gives multipliers λ of the points, which combine them to zero if no w separates them.
Both results are verified: w by bounds of rounding errors at every point (and by exact arithmetic
where they leave a doubt), λ by an enclosure of the true multipliers. If both checks fail,
`convex_combination` decides in exact arithmetic.

The program starts with some of the points and adds points that its w does not separate. A convex
combination of some points is one of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import lsqr

from spinney.linear_model._exact_separation import convex_combination, exact_sign

__all__ = ["Points", "Separation", "separate"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

EPS = float(np.finfo(np.float64).eps)
# Points of the first linear program: per column, and at least.
POINTS_PER_COLUMN = 30
FEWEST_POINTS = 1000
# Points with smaller multipliers are not part of a combination.
LEAST_MULTIPLIER = 1e-9


@dataclass(frozen=True)
class Points:
    """Points in exact coordinates, and in scaled ones for a linear program.

    Attributes
    ----------
    exact : ndarray or sparse matrix of shape (n_points, n_columns)
        The points; values are at most one in size.
    centers, scales : ndarray of shape (n_columns,)
        Column j of the program is `(exact[:, j] - centers[j] * exact[:, -1]) / scales[j]`. Centers
        are zero if there is no constant column. Rounding errors of both are harmless.
    """

    exact: Any
    centers: Floats
    scales: Floats

    def take(self, rows: Indices) -> Floats:
        """Return some points as a dense matrix."""
        chosen = self.exact[rows]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen)

    def take_scaled(self, rows: Indices) -> Floats:
        """Return some points in the coordinates of the program."""
        chosen = self.take(rows)
        return (chosen - chosen[:, -1:] * self.centers) / self.scales

    def exact_normal(self, w: Floats) -> Floats:
        """Convert a normal from the coordinates of the program to exact ones."""
        normal = w / self.scales
        normal[-1] -= self.centers @ normal
        largest = np.abs(normal).max(initial=0.0)
        return normal / largest if largest > 0 else normal


@dataclass
class Separation:
    """Result of the test: a normal or multipliers.

    Attributes
    ----------
    normal : ndarray or None
        If the classes are separable: ⟨normal, z_i⟩ > 0 for all points.
    multipliers : ndarray or None
        Otherwise: nonnegative numbers with sum one that combine the points to zero.
    safe : bool
        Whether products in float64 have the right sign for any order of summation.
    exact : bool
        Whether exact arithmetic was necessary.
    """

    normal: Floats | None
    multipliers: Floats | None
    safe: bool = True
    exact: bool = False


def inside(points: Points, normal: Floats) -> tuple[NDArray[np.bool_], bool]:
    """Return which points are proven to be inside, and whether none was in doubt."""
    scores = np.asarray(points.exact @ normal)
    # A bound of the rounding error; no coordinate is larger than one.
    doubt = 2 * (len(normal) + 2) * EPS * np.abs(normal).sum()
    certain = scores > doubt
    doubtful = np.flatnonzero(np.abs(scores) <= doubt)
    # Exact arithmetic is slow: skip it for normals with many doubtful points, such as zero.
    for row in doubtful if len(doubtful) <= 10 * len(normal) + 100 else ():
        certain[row] = exact_sign(points.take(np.array([row]))[0], normal) > 0
    return certain, len(doubtful) == 0


def separate(points: Points) -> Separation:
    """Decide whether a halfspace through the origin has all points strictly inside."""
    rows = _first_points(points)
    while True:
        w, multipliers = propose(points.take_scaled(rows))
        normal = points.exact_normal(w)
        within, safe = inside(points, normal)
        if within.all():
            return Separation(normal, None, safe)
        if not within[rows].all():
            found = _combination(points, rows, multipliers)
            if found is None:
                return _decide_exactly(points, rows, multipliers, normal)
            return Separation(None, found)
        outside = np.flatnonzero(~within)
        worst = outside[np.argsort(np.asarray(points.exact @ normal)[outside], kind="stable")]
        rows = np.union1d(rows, worst[: len(rows)])


def _first_points(points: Points) -> Indices:
    """Return the points of the first program.

    Half of them have the lowest scores of a least squares fit. Points that contradict each other
    are among these, or else points near the boundary.
    """
    n_points, n_columns = points.exact.shape
    n_first = max(FEWEST_POINTS, POINTS_PER_COLUMN * n_columns)
    if n_points <= n_first:
        return np.arange(n_points)
    evenly = np.linspace(0, n_points - 1, n_first).astype(np.intp)
    if sparse.issparse(points.exact):
        normal = lsqr(points.exact, np.ones(n_points))[0]
        scores = points.exact @ normal
    else:
        Z = points.take_scaled(np.arange(n_points))
        scores = Z @ np.linalg.lstsq(Z.T @ Z, Z.sum(axis=0), rcond=None)[0]
    worst = np.argsort(scores, kind="stable")[: n_first // 2]
    return np.union1d(worst, evenly[::2])


def propose(Z: Floats) -> tuple[Floats, Floats]:
    """Solve the linear program; return w and the multipliers."""
    n_points, n_columns = Z.shape
    solved = linprog(
        np.r_[np.zeros(n_columns), -1.0],
        A_ub=np.column_stack([-Z, np.ones(n_points)]),
        b_ub=np.zeros(n_points),
        bounds=[(-1.0, 1.0)] * n_columns + [(None, None)],
        method="highs",
    )
    if solved.x is None:
        return np.zeros(n_columns), np.full(n_points, 1.0 / n_points)
    return solved.x[:-1], np.maximum(-solved.ineqlin.marginals, 0.0)


def _combination(points: Points, rows: Indices, multipliers: Floats) -> Floats | None:
    """Return multipliers of all points that are proven to be near true ones, or None."""
    used = np.flatnonzero(multipliers > LEAST_MULTIPLIER)
    Z = points.take(rows[used])
    numbers = _enclose(Z)
    if numbers is None and len(used) <= points.exact.shape[1]:
        combined, fractions = convex_combination(Z)
        numbers = np.array([float(f) for f in fractions]) if combined else None
    if numbers is None:
        return None
    out = np.zeros(points.exact.shape[0])
    out[rows[used]] = numbers
    return out


def _enclose(Z: Floats) -> Floats | None:
    """Solve Σ λ_i z_i = 0, Σ λ_i = 1 (a square system); None unless proven λ > 0.

    With R near the inverse of the matrix M and α >= ‖I − R M‖, α < 1, the true solution is within
    ‖R (M λ − e)‖ / (1 − α) of λ. Bounds of rounding errors are doubled, to cover the rounding of
    the bounds themselves.
    """
    M = np.vstack([Z.T, np.ones(len(Z))])
    n = len(M)
    if n != len(Z):
        return None
    try:
        R = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return None
    rounding = 2 * (n + 2) * EPS
    size = np.abs(R) @ np.abs(M)
    alpha = np.abs(np.eye(n) - R @ M).sum(axis=1).max() + rounding * size.sum(axis=1).max()
    if not alpha < 0.5:
        return None
    numbers = R[:, -1]
    residual = M @ numbers
    residual[-1] -= 1.0
    residual_error = rounding * (np.abs(M) @ np.abs(numbers) + 1.0)
    distance = (np.abs(R) @ (np.abs(residual) + residual_error)).max() / (1 - alpha)
    return numbers if numbers.min() > 2 * distance else None


def _decide_exactly(
    points: Points, rows: Indices, multipliers: Floats, normal: Floats
) -> Separation:
    """Decide in exact arithmetic, on points added until the result holds for all."""
    n_columns = len(normal)
    scores = points.take(rows) @ normal
    near = rows[np.argsort(scores, kind="stable")[: 2 * n_columns + 2]]
    chosen = np.union1d(near, rows[multipliers > LEAST_MULTIPLIER])
    while True:
        combined, numbers = convex_combination(points.take(chosen))
        if combined:
            out = np.zeros(points.exact.shape[0])
            out[chosen] = [float(number) for number in numbers]
            return Separation(None, out, exact=True)
        largest = max(abs(number) for number in numbers)
        normal = np.array([float(number / largest) for number in numbers])
        outside, scores = _outside_exactly(points, normal, numbers)
        if len(outside) == 0:
            within, safe = inside(points, normal)
            # Rounding the normal to float64 may put points on the wrong side.
            return Separation(normal, None, safe=safe and bool(within.all()), exact=True)
        worst = outside[np.argsort(scores[outside], kind="stable")]
        chosen = np.union1d(chosen, worst[: 2 * n_columns + 2])


def _outside_exactly(
    points: Points, normal: Floats, numbers: list[Fraction]
) -> tuple[Indices, Floats]:
    """Return points not inside for the exact normal `numbers`, and all scores.

    `normal` is the exact normal rounded to float64.
    """
    scores = np.asarray(points.exact @ normal)
    doubt = 4 * (len(normal) + 2) * EPS * np.abs(normal).sum()
    outside = np.flatnonzero(scores < -doubt)
    if len(outside) == 0:
        doubtful = np.flatnonzero(scores <= doubt)
        signs = [exact_sign(points.take(np.array([row]))[0], numbers) for row in doubtful]
        outside = doubtful[np.array(signs, dtype=int) <= 0]
    return outside, scores
