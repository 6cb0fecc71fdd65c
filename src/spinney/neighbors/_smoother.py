"""Fits of local polynomials at many points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.neighbors._neighborhoods import (
    Neighborhoods,
    RowTree,
    find_closest,
    find_neighbors,
)

__all__ = ["KERNEL_SUPPORTS", "LocalFits", "Smoother", "Width"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Radius of the support of each kernel, in bandwidths. The unbounded kernels "gaussian" and
# "logistic" are cut off where their value is below 1e-12 of the largest.
KERNEL_SUPPORTS = {
    "uniform": 1.0,
    "triangular": 1.0,
    "epanechnikov": 1.0,
    "biweight": 1.0,
    "triweight": 1.0,
    "tricube": 1.0,
    "gaussian": float(np.sqrt(24 * np.log(10))),
    "cosine": 1.0,
    "logistic": float(12 * np.log(10) + np.log(4)),
}
# If a row has a larger leverage, its leave-one-out prediction needs a new fit.
_MAX_LEVERAGE = 0.999


@dataclass(frozen=True)
class Width:
    """Width of neighbourhoods: a total weight k of nearest rows, or a bandwidth."""

    k: float | None = None
    bandwidth: float | None = None


@dataclass
class LocalFits:
    """Fits at points; leverages and gradients only on request."""

    values: Floats  # (n_points, n_outputs)
    noise: Floats  # (n_points,) variance of the values relative to that of the noise
    leverages: Floats  # (n_points,) only at training rows
    gradients: Floats  # (n_points, n_outputs, n_features)
    is_isolated: Array  # (n_points,) whether no row has weight


class Smoother:
    """Training rows and the settings of the local polynomials."""

    def __init__(
        self,
        X: Floats,
        targets: Floats,
        weights: Floats,
        *,
        kernel: str | Callable[[Floats], Any],
        degree: int,
        alpha: float,
        metric: str,
        logit: bool = False,
    ) -> None:
        self.X = np.ascontiguousarray(X)
        self.targets = np.ascontiguousarray(targets)
        self.kernel = kernel
        self.degree = degree
        self.alpha = alpha
        self.metric = metric
        self.logit = logit
        self.tree = RowTree(self.X, self.metric)
        self.total = float(weights.sum())
        # Sample weights, which determine the k nearest rows; None if all are 1.
        self.counted = None if (weights == 1).all() else weights
        # Weights of the fits. Robust iterations change them.
        self.weights = weights

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.X)

    def smooth(
        self,
        queries: Floats,
        width: Width,
        n_threads: int,
        *,
        own_rows: Array | None = None,
        leave_out: bool = False,
        with_gradients: bool = False,
    ) -> LocalFits:
        """Fit a polynomial at each point; if no row has weight, return the nearest target."""
        n, n_outputs = len(queries), self.targets.shape[1]
        n_features = self.X.shape[1]
        fits = LocalFits(
            values=np.empty((n, n_outputs)),
            noise=np.empty(n),
            leverages=np.empty(n if own_rows is not None else 0),
            gradients=np.zeros((n if with_gradients else 0, n_outputs, n_features)),
            is_isolated=np.zeros(n, dtype=bool),
        )
        name = self.kernel if isinstance(self.kernel, str) else "uniform"
        model = _core.LocalModel(
            self.X, self.targets, self.weights, name, self.degree, self.alpha, self.logit
        )
        radius = np.inf
        if width.bandwidth is not None and isinstance(self.kernel, str):
            radius = KERNEL_SUPPORTS[self.kernel] * width.bandwidth
        for near in find_neighbors(
            self.tree,
            queries,
            k=width.k,
            radius=radius,
            bandwidth=width.bandwidth,
            weights=self.counted,
            n_threads=n_threads,
        ):
            own = None if own_rows is None else own_rows[near.points].astype(np.int64)
            values, noise, leverages, gradients = model.fit(
                np.ascontiguousarray(queries[near.points]),
                near.starts,
                near.rows,
                near.distances,
                near.bandwidths,
                self._kernel_values(near),
                own,
                leave_out,
                with_gradients,
                n_threads,
            )
            fits.values[near.points] = values.reshape(-1, n_outputs)
            fits.noise[near.points] = noise
            if own is not None:
                fits.leverages[near.points] = leverages
            if with_gradients:
                fits.gradients[near.points] = gradients.reshape(-1, n_outputs, n_features)
        fits.is_isolated = np.isnan(fits.noise)
        self._use_nearest_row(queries, fits, n_threads, own_rows if leave_out else None)
        return fits

    def leave_one_out(self, rows: Array, width: Width, n_threads: int) -> Floats:
        """Predict training rows from all others, with the bandwidths of all rows.

        A fit is linear in the targets. So the leave-one-out prediction follows from the row's own
        leverage: y − (y − ŷ) / (1 − leverage).
        """
        if self.logit:  # a fit is not linear in the targets
            points = self.X[rows]
            return self.smooth(points, width, n_threads, own_rows=rows, leave_out=True).values
        fits = self.smooth(self.X[rows], width, n_threads, own_rows=rows)
        targets = self.targets[rows]
        leverages = fits.leverages[:, np.newaxis]
        needs_refit = (leverages[:, 0] > _MAX_LEVERAGE) | fits.is_isolated
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.asarray(targets - (targets - fits.values) / (1 - leverages))
        if needs_refit.any():
            again = rows[needs_refit]
            refits = self.smooth(self.X[again], width, n_threads, own_rows=again, leave_out=True)
            out[needs_refit] = refits.values
        return out

    def _kernel_values(self, near: Neighborhoods) -> Floats | None:
        """Return the values of a kernel function; None for kernels of the core."""
        if isinstance(self.kernel, str):
            return None
        bandwidths = np.repeat(near.bandwidths, np.diff(near.starts))
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(near.distances > 0, near.distances / bandwidths, 0.0)
        values = np.ascontiguousarray(self.kernel(u), dtype=np.float64)
        if values.shape != u.shape:
            raise ValueError(
                f"kernel: expected a function that returns an array of shape {u.shape}, one weight "
                f"for each distance, got shape {values.shape}"
            )
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                "kernel: expected a function that returns finite weights >= 0, got negative, "
                "infinite or NaN weights"
            )
        return values

    def _use_nearest_row(
        self, queries: Floats, fits: LocalFits, n_threads: int, left_out: Array | None
    ) -> None:
        """Set the values of isolated points to the targets of their nearest rows."""
        isolated = np.flatnonzero(fits.is_isolated)
        if not len(isolated):
            return
        with_weight = np.flatnonzero(self.weights > 0)
        has_all = len(with_weight) == self.n_rows
        tree = self.tree if has_all else RowTree(self.X[with_weight], self.metric)
        closest = with_weight[find_closest(tree, queries[isolated], n_threads)]
        nearest = closest[:, 0]
        if left_out is not None:
            nearest = np.where(nearest == left_out[isolated], closest[:, -1], nearest)
        fits.values[isolated] = self.targets[nearest]
        fits.noise[isolated] = 1 / self.weights[nearest]
