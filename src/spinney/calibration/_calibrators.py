"""Ways from a model's probabilities to calibrated ones, learned from rows held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

from spinney.conformal.rules import Floats

__all__ = ["CALIBRATIONS", "Calibrator"]

CALIBRATIONS = ("temperature", "sigmoid", "isotonic")
_LEAST = 1e-5  # a forest's probability of zero is not to be taken at its word
_PER_CLASS = 500  # rows of the rarest class from which on isotonic steps are no noise


class Calibrator:
    """A fitted way: `method`, and the arrays that it needs.

    Parameters
    ----------
    method : {"auto", "temperature", "sigmoid", "isotonic"}
        "temperature": logarithms of the probabilities times one number. "sigmoid": Platt's
        logistic function of each class's log-odds, which does not fall. "isotonic": any function of
        each class's probability that does not fall. "auto" is "isotonic" with 500 rows of each
        class, else "temperature".
    """

    def __init__(self, method: str) -> None:
        self.method = method

    def fit(self, shares: Floats, codes: Any, weights: Any = None) -> Calibrator:
        """Learn from probabilities (n_rows, n_classes) and the codes of the right classes."""
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
        told = np.column_stack(
            [self._one(way, shares[:, k]) for k, way in zip(columns, self.ways, strict=True)]
        )
        if shares.shape[1] == 2:
            return np.column_stack([1 - told[:, 0], told[:, 0]])
        total = told.sum(axis=1, keepdims=True)
        # Where every class is thought impossible, what the model said stays.
        return np.where(total > 0, told / np.where(total > 0, total, 1), shares)

    def _one(self, way: Any, share: Floats) -> Any:
        if self.method == "sigmoid":
            return expit(way[0] * _odds(share, *way[2:]) + way[1])
        return np.interp(share, way[0], way[1])


def _logs(shares: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(shares, _LEAST)))


def _odds(share: Floats, least: float = _LEAST) -> Floats:
    inside = np.clip(share, least, 1 - least)
    return np.asarray(np.log(inside / (1 - inside)))


def _find_temperature(shares: Floats, codes: Any, weights: Floats) -> float:
    logs = _logs(shares)
    own = logs[np.arange(len(codes)), codes]

    def loss(log_temperature: float) -> float:
        t = np.exp(log_temperature)
        return float(weights @ (logsumexp(logs / t, axis=1) - own / t))

    return float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))


def _fit_sigmoid(share: Floats, is_class: Floats, weights: Floats) -> Floats:
    """Slope and intercept by Newton steps, with Platt's targets, which are never 0 or 1.

    The third number is the least share: none is more extreme than that of one row beside all
    others, as otherwise a few shares of zero decide about the slope.
    """
    least = 1 / (len(share) + 2)
    n_in, n_out = weights @ is_class, weights @ (1 - is_class)
    target = np.where(is_class > 0, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
    columns = np.column_stack([_odds(share, least), np.ones(len(share))])

    def loss(at: Floats) -> float:
        z = columns @ at
        return float(weights @ (np.logaddexp(0, z) - target * z))

    level = np.array([0.0, np.log((n_in + 1) / (n_out + 1))])
    way = level
    for _ in range(100):
        told = expit(columns @ way)
        gradient = columns.T @ (weights * (told - target))
        curvature = (columns * (weights * told * (1 - told))[:, None]).T @ columns
        step = np.linalg.solve(curvature + 1e-10 * np.eye(2), gradient)
        size = 1.0
        while loss(way - size * step) > loss(way) and size > 1e-8:
            size /= 2
        way = way - size * step
        if np.abs(size * step).max() < 1e-10:
            break
    # A falling function would call rows likelier the less likely the model thinks them. That is
    # noise, of few rows of a rare class, and all that is known is how rare it is.
    return np.append(way if way[0] >= 0 else level, least)


def _fit_steps(share: Floats, is_class: Floats, weights: Floats) -> tuple[Floats, Floats]:
    from sklearn.isotonic import IsotonicRegression

    steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    fitted = steps.fit_transform(share, is_class, sample_weight=weights)
    values = np.array(steps.y_thresholds_, dtype=np.float64)
    # That none of some rows, or all, were of the class does not make it impossible, or certain:
    # the rule of succession, as far as the neighbouring steps allow.
    never, always = values <= 0, values >= 1
    if not never.all() and not always.all():
        low = 1 / (weights[fitted <= 0].sum() + 2)
        high = 1 - 1 / (weights[fitted >= 1].sum() + 2)
        rest = values[~never & ~always]
        values[never] = min(low, rest.min(initial=0.5))
        values[always] = max(high, rest.max(initial=0.5))
    return np.asarray(steps.X_thresholds_, dtype=np.float64), values
