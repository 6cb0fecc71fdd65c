"""The rows of each tree of a forest: seeds, numbers of rows, and samples drawn again on demand."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from spinney import _core
from spinney.distributed.workers import Workers

__all__ = ["TreeSamples", "draw_seed", "n_rows_drawn"]


@dataclass(frozen=True)
class TreeSamples:
    """How the rows of each tree are drawn; the sample of a tree can be drawn again.

    Parameters
    ----------
    seed : int
        Seed of the forest.
    n_rows : int
        Number of training rows.
    n_drawn : int or None
        Number of rows drawn for each tree; None: every tree has all rows.
    replace : bool
        Whether rows are drawn with replacement.
    weights : ndarray of shape (n_rows,) or None
        Rows are drawn in proportion to these weights. Without draws, the weights of the rows.
    """

    seed: int
    n_rows: int
    n_drawn: int | None = None
    replace: bool = True
    weights: NDArray[np.float64] | None = None

    def rows_of_tree(self, tree: int) -> NDArray[np.int64]:
        """Return the rows of a tree in the order of the draws."""
        if self.n_drawn is None:
            return np.arange(self.n_rows)
        return np.asarray(
            _core.draw_bag(self.n_rows, self.n_drawn, self.replace, self.weights, self.seed, tree)
        )

    def seed_of_tree(self, tree: int) -> int:
        """Return the seed of a tree."""
        return int(_core.seed_of_tree(self.seed, tree))

    def is_out_of_bag(self, tree: int, *, without_order_rows: bool) -> NDArray[np.bool_]:
        """Return which rows may be used to evaluate the splits of a tree.

        Parameters
        ----------
        tree : int
            Index of the tree.
        without_order_rows : bool
            Whether to leave out the half of the out-of-bag rows that determined the order of the
            categories in splits on categorical columns.
        """
        out = np.ones(self.n_rows, dtype=bool)
        out[self.rows_of_tree(tree)] = False
        if without_order_rows:
            out &= _core.determines_order(self.seed_of_tree(tree), self.n_rows) == 0
        return out


def draw_seed(random_state: Any, workers: Workers) -> int:
    """Return the seed of the workers, or draw one for a local fit."""
    if workers.seed is not None:
        return int(workers.seed)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def n_rows_drawn(n_rows: int, max_samples: Any, weights: Any, exponent: int = 0) -> int:
    """Return the number of rows to draw for each tree.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    max_samples : int, float or None
        A number of rows, or a fraction of the rows or of their total weight; None means all rows.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows, divided by 2**exponent.
    exponent : int, default=0
        See `weights`.
    """
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, Integral):
        return int(max_samples)
    with np.errstate(over="ignore"):
        total = n_rows if weights is None else float(np.ldexp(weights.sum(), exponent))
    if not max_samples * total < 2**31:
        raise ValueError(
            f"sample_weight: max_samples={max_samples} of their sum, {total:.3g}, must be fewer "
            "than 2**31 rows; give max_samples as an integer, or smaller weights"
        )
    what = "number of samples" if weights is None else "total sum of sample weights"
    drawn = max(int(max_samples * total), 1)
    if drawn < max(10, n_rows ** (1 / 3)):
        warn(
            f"Using the fractional value max_samples={max_samples} when the {what} is {total} "
            f"results in a low number ({drawn}) of bootstrap samples. We recommend passing "
            "`max_samples` as an integer instead.",
            stacklevel=4,
        )
    return drawn
