"""Local polynomials at many places: neighbourhoods from the tree, fits from the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.neighbors._neighborhoods import (
    Neighborhoods,
    find_closest,
    find_neighbors,
    make_tree,
)

__all__ = ["KERNELS", "Answers", "Smoother", "Width"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# How far each kernel reaches, in bandwidths. Two have no end: they are cut where the weight is
# below 1e-12 of the largest.
KERNELS = {
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
# A row that decides its own answer to this share is left out in truth, not by the formula.
MOST_LEVERAGE = 0.999


@dataclass(frozen=True)
class Width:
    """How far a place looks: the nearest rows of weight k, or a bandwidth."""

    k: float | None = None
    bandwidth: float | None = None


@dataclass
class Answers:
    """What places got. Leverages only of training rows, gradients only on request."""

    values: Floats  # (n_places, n_outputs)
    noise: Floats  # (n_places,)
    leverages: Floats
    gradients: Floats  # (n_places, n_outputs, n_features)
    alone: Array  # (n_places,) places that no row had weight at


class Smoother:
    """The training rows and how they are averaged."""

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
        self.tree = make_tree(self.X, self.metric)
        self.total = float(weights.sum())
        # What counts as k rows; None where every row counts as one.
        self.counted = None if (weights == 1).all() else weights
        # What counts in the fits: robust iterations make less of some rows.
        self.weights = weights

    @property
    def n_rows(self) -> int:
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
    ) -> Answers:
        """Fit a polynomial at each place; where no row has weight, the nearest row answers."""
        n, n_outputs = len(queries), self.targets.shape[1]
        n_features = self.X.shape[1]
        answers = Answers(
            values=np.empty((n, n_outputs)),
            noise=np.empty(n),
            leverages=np.empty(n if own_rows is not None else 0),
            gradients=np.zeros((n if with_gradients else 0, n_outputs, n_features)),
            alone=np.zeros(n, dtype=bool),
        )
        name = self.kernel if isinstance(self.kernel, str) else "uniform"
        model = _core.LocalModel(
            self.X, self.targets, self.weights, name, self.degree, self.alpha, self.logit
        )
        radius = np.inf
        if width.bandwidth is not None and isinstance(self.kernel, str):
            radius = KERNELS[self.kernel] * width.bandwidth
        for near in find_neighbors(
            self.tree,
            queries,
            k=width.k,
            radius=radius,
            bandwidth=width.bandwidth,
            weights=self.counted,
            n_threads=n_threads,
        ):
            own = None if own_rows is None else own_rows[near.places].astype(np.int64)
            values, noise, leverages, gradients = model.fit(
                np.ascontiguousarray(queries[near.places]),
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
            answers.values[near.places] = values.reshape(-1, n_outputs)
            answers.noise[near.places] = noise
            if own is not None:
                answers.leverages[near.places] = leverages
            if with_gradients:
                answers.gradients[near.places] = gradients.reshape(-1, n_outputs, n_features)
        answers.alone = np.isnan(answers.noise)
        self._ask_nearest(queries, answers, n_threads, own_rows if leave_out else None)
        return answers

    def leave_one_out(self, rows: Array, width: Width, n_threads: int) -> Floats:
        """Predict rows from all others, the bandwidths as they are with all.

        A row's answer is a sum over targets, so what it would be without its own follows from the
        share that its own has in it: y − (y − ŷ) / (1 − share).
        """
        if self.logit:  # no sum over targets
            places = self.X[rows]
            return self.smooth(places, width, n_threads, own_rows=rows, leave_out=True).values
        answers = self.smooth(self.X[rows], width, n_threads, own_rows=rows)
        targets = self.targets[rows]
        share = answers.leverages[:, np.newaxis]
        decided = (share[:, 0] > MOST_LEVERAGE) | answers.alone
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.asarray(targets - (targets - answers.values) / (1 - share))
        if decided.any():
            again = rows[decided]
            refits = self.smooth(self.X[again], width, n_threads, own_rows=again, leave_out=True)
            out[decided] = refits.values
        return out

    def _kernel_values(self, near: Neighborhoods) -> Floats | None:
        if isinstance(self.kernel, str):
            return None
        bandwidths = np.repeat(near.bandwidths, np.diff(near.starts))
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(near.distances > 0, near.distances / bandwidths, 0.0)
        values = np.ascontiguousarray(self.kernel(u), dtype=np.float64)
        if values.shape != u.shape:
            raise ValueError(
                f"kernel: expected a function that returns a weight for each of {len(u)} "
                f"distances, got an answer of shape {values.shape}"
            )
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("kernel: expected a function that returns finite weights >= 0")
        return values

    def _ask_nearest(
        self, queries: Floats, answers: Answers, n_threads: int, left_out: Array | None
    ) -> None:
        alone = np.flatnonzero(answers.alone)
        if not len(alone):
            return
        said = np.flatnonzero(self.weights > 0)
        tree = self.tree if len(said) == self.n_rows else make_tree(self.X[said], self.metric)
        closest = said[find_closest(tree, queries[alone], n_threads)]
        nearest = closest[:, 0]
        if left_out is not None:
            nearest = np.where(nearest == left_out[alone], closest[:, -1], nearest)
        answers.values[alone] = self.targets[nearest]
        answers.noise[alone] = 1 / self.weights[nearest]
