"""Exact test for strict linear separability, in integer arithmetic.

For a finite set of points z_i, either some w has ⟨w, z_i⟩ > 0 for all of them, or zero is a convex
combination of them (Gordan's theorem), never both. The first phase of the simplex method, on λ >= 0
with Σ λ_i z_i = 0 and Σ λ_i = 1, finds one or the other. Floating-point numbers are integers times
powers of two, and fraction-free pivots (Edmonds) keep the tableau an integer matrix: nothing is
rounded. This is slow, and is used only where rounding errors leave a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["convex_combination", "exact_sign"]

Floats = NDArray[np.float64]
Integers = NDArray[Any]  # of Python's unlimited integers

# Degenerate pivots per equation before the rule that prevents cycles.
MOST_DEGENERATE = 5


def as_integers(column: Floats) -> Integers:
    """Return a column times a power of two that makes all values integers."""
    ratios = [float(value).as_integer_ratio() for value in column]
    largest = max((denominator for _, denominator in ratios), default=1)
    return np.array([n * (largest // d) for n, d in ratios], dtype=object)


def exact_sign(row: Floats, w: Iterable[Any]) -> int:
    """Return the sign of ⟨row, w⟩, without rounding."""
    total = sum((Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True)), Fraction(0))
    return (total > 0) - (total < 0)


def convex_combination(Z: Floats) -> tuple[bool, list[Fraction]]:
    """Return multipliers that combine the rows of `Z` to zero, or a separating w.

    Returns
    -------
    combined : bool
        Whether there are such multipliers.
    numbers : list of Fraction
        The multipliers of the rows, or w.
    """
    n_rows, n_columns = Z.shape
    n_equations = n_columns + 1
    factors = []
    tableau: Integers = np.zeros((n_equations + 1, n_rows + n_equations + 1), dtype=object)
    for j in range(n_columns):
        tableau[j, :n_rows] = as_integers(Z[:, j])
        filled = np.flatnonzero(Z[:, j])
        # The factor of equation j, which also applies to w_j.
        factors.append(
            Fraction(tableau[j, filled[0]]) / Fraction(float(Z[filled[0], j]))
            if len(filled)
            else Fraction(1)
        )
    tableau[n_columns, :n_rows] = 1
    tableau[n_columns, -1] = 1
    for i in range(n_equations):
        tableau[i, n_rows + i] = 1
    # The last row has the reduced costs; the cost is the sum of the artificial variables.
    tableau[-1] = -tableau[:n_equations].sum(axis=0)
    tableau[-1, n_rows:-1] = 0
    basis = list(range(n_rows, n_rows + n_equations))
    denominator = 1
    n_degenerate = 0
    while tableau[-1, -1] != 0:
        falling = [j for j in range(n_rows) if tableau[-1, j] < 0]
        if not falling:
            # The dual, costs (one) minus reduced costs, separates the points.
            dual = [1 - Fraction(tableau[-1, n_rows + i], denominator) for i in range(n_columns)]
            return False, [-d * f for d, f in zip(dual, factors, strict=True)]
        # The steepest column is fast; the first one (Bland's rule) never cycles.
        cautious = n_degenerate > MOST_DEGENERATE * n_equations
        entering = falling[0] if cautious else min(falling, key=lambda j: tableau[-1, j])
        rows = [i for i in range(n_equations) if tableau[i, entering] > 0]
        ratios = [(Fraction(tableau[i, -1], tableau[i, entering]), basis[i], i) for i in rows]
        leaving = min(ratios)[2]
        pivot = tableau[leaving, entering]
        n_degenerate = n_degenerate + 1 if tableau[leaving, -1] == 0 else 0
        for i in range(n_equations + 1):
            if i != leaving:
                factor = tableau[i, entering]
                tableau[i] = (tableau[i] * pivot - tableau[leaving] * factor) // denominator
        denominator = pivot
        basis[leaving] = entering
    numbers = [Fraction(0)] * n_rows
    for i, j in enumerate(basis):
        if j < n_rows:
            numbers[j] = Fraction(tableau[i, -1], denominator)
    return True, numbers
