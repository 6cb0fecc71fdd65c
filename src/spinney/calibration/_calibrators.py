"""Calibration of probabilities: functions fitted on held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

from spinney.conformal.rules import Floats

__all__ = ["CALIBRATIONS", "Calibrator"]

CALIBRATIONS = ("temperature", "sigmoid", "isotonic")
_LEAST = 1e-5  # a forest's probability of zero does not mean that the class is impossible
_PER_CLASS = 500  # with fewer rows of the rarest class, isotonic steps are mostly noise


class Calibrator:
    """A fitted calibration: its method, and the parameters of the method.

    Parameters
    ----------
    method : {"auto", "temperature", "sigmoid", "isotonic"}
        "temperature": logarithms of the probabilities, divided by one number. "sigmoid": Platt's
        non-decreasing logistic function of the log-odds of each class. "isotonic": any
        non-decreasing function of the probability of each class. "auto": "isotonic" if each class
        has at least 500 rows, else "temperature".
    """

    def __init__(self, method: str) -> None:
        self.method = method

    def fit(self, shares: Floats, codes: Any, weights: Any = None) -> Calibrator:
        """Fit on probabilities (n_rows, n_classes) and the codes of the true classes."""
        n_classes = shares.shape[1]
        weights = np.ones(len(codes)) if weights is None else weights
        if self.method == "auto":
            rarest = np.bincount(codes, minlength=n_classes).min()
            self.method = "isotonic" if rarest >= _PER_CLASS else "temperature"
        if self.method == "temperature":
            self.temperature = _find_temperature(shares, codes, weights)
            return self
        self.ways = []
        for k in range(1 if n_classes == 2 else 0, n_classes):
            is_class = (codes == k).astype(np.float64)
            fit = _fit_sigmoid if self.method == "sigmoid" else _fit_steps
            self.ways.append(fit(shares[:, k], is_class, weights))
        return self

    def apply(self, shares: Floats) -> Floats:
        """Return calibrated probabilities."""
        if shares.shape[1] == 1:
            return np.ones_like(shares)
        if self.method == "temperature":
            return np.asarray(softmax(_logs(shares) / self.temperature, axis=1))
        columns = range(1 if shares.shape[1] == 2 else 0, shares.shape[1])
        calibrated = np.column_stack(
            [self._one(way, shares[:, k]) for k, way in zip(columns, self.ways, strict=True)]
        )
        if shares.shape[1] == 2:
            return np.column_stack([1 - calibrated[:, 0], calibrated[:, 0]])
        total = calibrated.sum(axis=1, keepdims=True)
        # If the calibrated probabilities of a row are all zero, keep those of the model.
        return np.where(total > 0, calibrated / np.where(total > 0, total, 1), shares)

    def _one(self, way: Any, share: Floats) -> Any:
        if self.method == "sigmoid":
            return expit(way[0] * _odds(share, *way[2:]) + way[1])
        return np.interp(share, way[0], way[1])


def _logs(shares: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(shares, _LEAST)))


def _odds(share: Floats, smallest: float = _LEAST) -> Floats:
    inside = np.clip(share, smallest, 1 - smallest)
    return np.asarray(np.log(inside / (1 - inside)))


def _find_temperature(shares: Floats, codes: Any, weights: Floats) -> float:
    logs = _logs(shares)
    own = logs[np.arange(len(codes)), codes]

    def loss(log_temperature: float) -> float:
        t = np.exp(log_temperature)
        return float(weights @ (logsumexp(logs / t, axis=1) - own / t))

    return float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))


def _fit_sigmoid(share: Floats, is_class: Floats, weights: Floats) -> Floats:
    """Return slope, intercept and smallest probability of a logistic function.

    Newton's method finds the slope and the intercept for Platt's targets, which are never 0 or 1.
    Probabilities are clipped at 1 / (n_rows + 2); otherwise a few zeros would determine the slope.
    """
    smallest = 1 / (len(share) + 2)
    n_positive, n_negative = weights @ is_class, weights @ (1 - is_class)
    target = np.where(is_class > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    columns = np.column_stack([_odds(share, smallest), np.ones(len(share))])

    def loss(parameters: Floats) -> float:
        z = columns @ parameters
        return float(weights @ (np.logaddexp(0, z) - target * z))

    level = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    way = level
    for _ in range(100):
        calibrated = expit(columns @ way)
        gradient = columns.T @ (weights * (calibrated - target))
        curvature = (columns * (weights * calibrated * (1 - calibrated))[:, None]).T @ columns
        step = np.linalg.solve(curvature + 1e-10 * np.eye(2), gradient)
        size = 1.0
        while loss(way - size * step) > loss(way) and size > 1e-8:
            size /= 2
        way = way - size * step
        if np.abs(size * step).max() < 1e-10:
            break
    # A negative slope would reverse the model's ranking. It is noise from too few rows of a rare
    # class. The best constant probability is the frequency of the class.
    return np.append(way if way[0] >= 0 else level, smallest)


def _fit_steps(share: Floats, is_class: Floats, weights: Floats) -> tuple[Floats, Floats]:
    # Imported late, for start-up time.
    from sklearn.isotonic import IsotonicRegression

    steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    fitted = steps.fit_transform(share, is_class, sample_weight=weights)
    values = np.array(steps.y_thresholds_, dtype=np.float64)
    # Steps of 0 and 1 come from finite samples: replace them by the rule of succession,
    # (k + 1) / (n + 2), but keep the function non-decreasing.
    is_zero, is_one = values <= 0, values >= 1
    if not is_zero.all() and not is_one.all():
        low = 1 / (weights[fitted <= 0].sum() + 2)
        high = 1 - 1 / (weights[fitted >= 1].sum() + 2)
        rest = values[~is_zero & ~is_one]
        values[is_zero] = min(low, rest.min(initial=0.5))
        values[is_one] = max(high, rest.max(initial=0.5))
    return np.asarray(steps.X_thresholds_, dtype=np.float64), values
