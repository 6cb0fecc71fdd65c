"""The objective of logistic regression over the rows: two classes or several, in one shape.

Parameters are (n_scores, n_features + 1), the intercept last: one line for two classes, one for
each class otherwise. Inside, columns are about a centre, which only moves the intercept; outside,
they are as they came.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.linear_model.design import Design, Floats

__all__ = ["LogisticObjective"]


class LogisticObjective:
    """Mean loss and a penalty on squares, with its derivatives.

    Parameters
    ----------
    design : Design
        Rows and weights.
    labels : ndarray of int32 of shape (n_rows,)
        Classes by number.
    n_classes : int
        How many there are.
    alpha : float
        The penalty: ``alpha / 2 * |coefficients|²``, over the sum of weights like the loss.
    fit_intercept : bool
        Whether there is an intercept; else it stays zero.
    """

    def __init__(
        self,
        design: Design,
        labels: NDArray[np.int32],
        n_classes: int,
        alpha: float,
        fit_intercept: bool,
    ) -> None:
        self.design, self.labels, self.n_classes = design, labels, n_classes
        self.n_scores = 1 if n_classes == 2 else n_classes
        self.fit_intercept = fit_intercept
        self.centre = design.centre() if fit_intercept else np.zeros(design.n_features)
        self.total = design.total
        self.alpha = alpha
        self._targets = labels.astype(np.float64) if self.n_scores == 1 else np.empty(0)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters."""
        return self.n_scores, self.design.n_features + 1

    def measure(self, w: Floats, second: bool) -> tuple[float, Floats, Floats]:
        """Objective, gradient (shaped as w) and, if asked for, the matrix of second derivatives."""
        loss, gradient, hessian = self.measure_loss(w, second)
        slopes = w[:, :-1]
        loss += 0.5 * self.alpha / self.total * float(np.vdot(slopes, slopes))
        gradient[:, :-1] += self.alpha / self.total * slopes
        if second:
            penalty = np.full(self.shape, self.alpha / self.total)
            penalty[:, -1] = 0.0
            hessian[np.diag_indices_from(hessian)] += penalty.ravel()
        return loss, gradient, hessian

    def measure_loss(self, w: Floats, second: bool) -> tuple[float, Floats, Floats]:
        """The same without the penalty."""
        if self.n_scores == 1:
            loss, gradient, hessian = self.design.binary(
                self._targets, np.ascontiguousarray(w[0]), self.centre, second
            )
            gradient = gradient[np.newaxis]
        else:
            loss, gradient, hessian = self.design.multinomial(self.labels, w, self.centre, second)
        gradient = gradient / self.total
        if not self.fit_intercept:
            gradient[:, -1] = 0.0
        return loss / self.total, gradient, hessian / self.total if second else hessian

    def scale(self) -> Floats:
        """Roots of the second derivatives by each parameter at zero, flat."""
        share = 1 / max(2, self.n_classes)
        diagonal = np.full(self.shape, share * (1 - share))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.design.squares(self.centre)
            diagonal[:, :-1] = (diagonal[:, :-1] * squares + self.alpha) / self.total
        return np.sqrt(np.where(diagonal == 0, 1.0, diagonal)).ravel()

    def free(self) -> NDArray[np.bool_]:
        """Which parameters may change, flat."""
        mask = np.ones(self.shape, dtype=bool)
        mask[:, -1] = self.fit_intercept
        return mask.ravel()

    def inside(self, w: Floats) -> Floats:
        """Parameters for columns as they came become those for columns about the centre."""
        moved = np.array(w, dtype=np.float64)
        moved[:, -1] += w[:, :-1] @ self.centre
        return moved

    def outside(self, w: Floats) -> Floats:
        """… and back."""
        moved = np.array(w)
        moved[:, -1] -= w[:, :-1] @ self.centre
        return moved

    def is_separated(self, loss: float) -> bool:
        """Whether a loss (without penalty) is so small that every row is on its side."""
        return loss * self.total < self.design.least_weight * float(np.log(2.0))

    def take_columns(self, columns: Any) -> LogisticObjective:
        """The same for some of the columns."""
        part = LogisticObjective.__new__(LogisticObjective)
        part.__dict__.update(self.__dict__)
        part.design = self.design.take_columns(columns)
        part.centre = self.centre[columns]
        return part
