"""The objective of logistic regression for two or more classes.

Parameters have shape (n_scores, n_features + 1) with the intercepts last; two classes have one
score, others one score per class. Internally the columns are centred, which changes only the
intercepts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.linear_model.design import Design, Floats

__all__ = ["LogisticObjective"]


class LogisticObjective:
    """Mean logistic loss plus an l2 penalty, with derivatives.

    Parameters
    ----------
    design : Design
        Rows and weights.
    labels : ndarray of int32 of shape (n_rows,)
        Class codes.
    n_classes : int
        Number of classes.
    alpha : float
        The penalty ``alpha / 2 * |coefficients|²``, divided by the sum of weights like the loss.
    fit_intercept : bool
        Whether to fit intercepts; otherwise they stay zero.
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
        """Return the objective, its gradient and, if `second`, its Hessian."""
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
        """Return the loss without the penalty, with its derivatives, as `measure` does."""
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
        """Return the roots of the diagonal of the Hessian at zero, flat."""
        p = 1 / max(2, self.n_classes)
        diagonal = np.full(self.shape, p * (1 - p))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.design.squares(self.centre)
            diagonal[:, :-1] = (diagonal[:, :-1] * squares + self.alpha) / self.total
        return np.sqrt(np.where(diagonal == 0, 1.0, diagonal)).ravel()

    def free(self) -> NDArray[np.bool_]:
        """Return which parameters may change, flat."""
        mask = np.ones(self.shape, dtype=bool)
        mask[:, -1] = self.fit_intercept
        return mask.ravel()

    def centre_parameters(self, w: Floats) -> Floats:
        """Convert parameters of the given columns to parameters of the centred columns."""
        moved = np.array(w, dtype=np.float64)
        moved[:, -1] += w[:, :-1] @ self.centre
        return moved

    def uncentre_parameters(self, w: Floats) -> Floats:
        """Convert parameters of the centred columns to parameters of the given columns."""
        moved = np.array(w)
        moved[:, -1] -= w[:, :-1] @ self.centre
        return moved

    def is_separated(self, loss: float) -> bool:
        """Return whether a loss without penalty proves that no row is misclassified."""
        return loss * self.total < self.design.least_weight * float(np.log(2.0))

    def take_columns(self, columns: Any) -> LogisticObjective:
        """Return the objective of some of the columns."""
        part = LogisticObjective.__new__(LogisticObjective)
        part.__dict__.update(self.__dict__)
        part.design = self.design.take_columns(columns)
        part.centre = self.centre[columns]
        return part
