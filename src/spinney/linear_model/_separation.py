"""A halfspace with all points strictly inside, or a proof that there is none.

Points are z_i = y_i (x_i, 1). A linear program proposes: w in a box that makes the least ⟨w, z_i⟩
largest, and multipliers λ of its rows, which combine the points to zero if that is the best.
Neither is believed: w is checked at every point by a bound of rounding (and where that leaves a
doubt without rounding), λ by an enclosure of the true multipliers. Where both checks fail,
`convex_combination` decides without rounding.

The program has few of the points at first; those that its w does not have inside are added. A
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
# Points that the linear program has at first, for each column and at least.
POINTS_A_COLUMN = 30
LEAST_POINTS = 1000
# Points whose multipliers are below this do not take part in a combination.
LEAST_MULTIPLIER = 1e-9


@dataclass(frozen=True)
class Points:
    """The points, exactly, and in coordinates that suit a linear program.

    Attributes
    ----------
    exact : ndarray or sparse matrix of shape (n_points, n_columns)
        At most one in size.
    centers, scales : ndarray of shape (n_columns,)
        The program's column j is `(exact[:, j] - centers[j] * exact[:, -1]) / scales[j]`; centers
        are zero where there is no constant column. They need not be precise.
    """

    exact: Any
    centers: Floats
    scales: Floats

    def some(self, rows: Indices) -> Floats:
        part = self.exact[rows]
        return np.asarray(part.toarray() if sparse.issparse(part) else part)

    def proposed(self, rows: Indices) -> Floats:
        """Some points, in the program's coordinates."""
        part = self.some(rows)
        return (part - part[:, -1:] * self.centers) / self.scales

    def back(self, w: Floats) -> Floats:
        """The normal for exact points of one in the program's coordinates."""
        normal = w / self.scales
        normal[-1] -= self.centers @ normal
        largest = np.abs(normal).max(initial=0.0)
        return normal / largest if largest > 0 else normal


@dataclass
class Separation:
    """What was decided.

    Attributes
    ----------
    normal : ndarray or None
        Such that ⟨normal, z_i⟩ > 0 for all points, if there is one.
    multipliers : ndarray or None
        Otherwise: one for each point, >= 0, with sum one, that combine the points to zero.
    safe : bool
        Whether products in float64, in any order, have the right sign, too.
    exact : bool
        Whether whole numbers had to decide.
    """

    normal: Floats | None
    multipliers: Floats | None
    safe: bool = True
    exact: bool = False


def inside(points: Points, normal: Floats) -> tuple[NDArray[np.bool_], bool]:
    """Which points are strictly inside, for certain; and whether rounding leaves no doubt."""
    scores = np.asarray(points.exact @ normal)
    # No coordinate is larger than one.
    doubt = 2 * (len(normal) + 2) * EPS * np.abs(normal).sum()
    certain = scores > doubt
    doubtful = np.flatnonzero(np.abs(scores) <= doubt)
    # A normal that leaves many points in doubt (zero, above all) is not worth the time.
    for row in doubtful if len(doubtful) <= 10 * len(normal) + 100 else ():
        certain[row] = exact_sign(points.some(np.array([row]))[0], normal) > 0
    return certain, len(doubtful) == 0


def separate(points: Points) -> Separation:
    """Decide whether a halfspace through the origin has all points strictly inside."""
    rows = _first_points(points)
    while True:
        w, multipliers = propose(points.proposed(rows))
        normal = points.back(w)
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
    """Points for the first program: those that least squares has farthest on the wrong side.

    If they contradict each other they do so at once; if not, they are near the border.
    """
    n_points, n_columns = points.exact.shape
    n_first = max(LEAST_POINTS, POINTS_A_COLUMN * n_columns)
    if n_points <= n_first:
        return np.arange(n_points)
    evenly = np.linspace(0, n_points - 1, n_first).astype(np.intp)
    if sparse.issparse(points.exact):
        normal = lsqr(points.exact, np.ones(n_points))[0]
        scores = points.exact @ normal
    else:
        Z = points.proposed(np.arange(n_points))
        scores = Z @ np.linalg.lstsq(Z.T @ Z, Z.sum(axis=0), rcond=None)[0]
    worst = np.argsort(scores, kind="stable")[: n_first // 2]
    return np.union1d(worst, evenly[::2])


def propose(Z: Floats) -> tuple[Floats, Floats]:
    """Solve the linear program: w and multipliers."""
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
    """Multipliers of all points that are proven to be near true ones, or None."""
    used = np.flatnonzero(multipliers > LEAST_MULTIPLIER)
    Z = points.some(rows[used])
    numbers = _enclosed(Z)
    if numbers is None and len(used) <= points.exact.shape[1]:
        combined, fractions = convex_combination(Z)
        numbers = np.array([float(f) for f in fractions]) if combined else None
    if numbers is None:
        return None
    out = np.zeros(points.exact.shape[0])
    out[rows[used]] = numbers
    return out


def _enclosed(Z: Floats) -> Floats | None:
    """Solve Σ λ_i z_i = 0, Σ λ_i = 1 for as many points as equations, if λ > 0 is proven.

    With R near the inverse of the matrix M and α >= ‖I − R M‖, α < 1, the true solution is within
    ‖R (M λ − e)‖ / (1 − α) of λ. Bounds of rounding are doubled, which covers their own.
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
    slips = rounding * (np.abs(M) @ np.abs(numbers) + 1.0)
    away = (np.abs(R) @ (np.abs(residual) + slips)).max() / (1 - alpha)
    return numbers if numbers.min() > 2 * away else None


def _decide_exactly(
    points: Points, rows: Indices, multipliers: Floats, normal: Floats
) -> Separation:
    n_columns = len(normal)
    scores = points.some(rows) @ normal
    near = rows[np.argsort(scores, kind="stable")[: 2 * n_columns + 2]]
    chosen = np.union1d(near, rows[multipliers > LEAST_MULTIPLIER])
    while True:
        combined, numbers = convex_combination(points.some(chosen))
        if combined:
            out = np.zeros(points.exact.shape[0])
            out[chosen] = [float(number) for number in numbers]
            return Separation(None, out, exact=True)
        largest = max(abs(number) for number in numbers)
        normal = np.array([float(number / largest) for number in numbers])
        outside, scores = _outside_exactly(points, normal, numbers)
        if len(outside) == 0:
            within, safe = inside(points, normal)
            # The normal in float64 is a rounding of the true one, and may have lost points.
            return Separation(normal, None, safe=safe and bool(within.all()), exact=True)
        worst = outside[np.argsort(scores[outside], kind="stable")]
        chosen = np.union1d(chosen, worst[: 2 * n_columns + 2])


def _outside_exactly(
    points: Points, normal: Floats, numbers: list[Fraction]
) -> tuple[Indices, Floats]:
    """Points not strictly inside for a normal in fractions, of which `normal` is the rounding."""
    scores = np.asarray(points.exact @ normal)
    doubt = 4 * (len(normal) + 2) * EPS * np.abs(normal).sum()
    outside = np.flatnonzero(scores < -doubt)
    if len(outside) == 0:
        doubtful = np.flatnonzero(scores <= doubt)
        signs = [exact_sign(points.some(np.array([row]))[0], numbers) for row in doubtful]
        outside = doubtful[np.array(signs, dtype=int) <= 0]
    return outside, scores
