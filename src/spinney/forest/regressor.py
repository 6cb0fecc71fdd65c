"""Base class of the regression forests, with their quantiles and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.group_scale import GroupScale, learn_group_scale
from spinney.conformal.mixins import HeldOut, check_method, numeric_targets, read_calibration
from spinney.conformal.rules import check_coverage
from spinney.data.table import Table, read_table
from spinney.forest.base import BaseForest
from spinney.forest.out_of_bag import OutOfBag
from spinney.runtime.threads import effective_n_jobs

__all__ = ["ForestRegressor"]

_MEAN_WEIGHT = 0.1  # weight of the mean variance of all rows in the variance of a row


class ForestRegressor(RegressorMixin, BaseForest):
    """Base class of the regression forests; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        **BaseForest._parameter_constraints,
        "criterion": [
            StrOptions({"squared_error", "absolute_error", "friedman_mse", "poisson"}),
        ],
    }

    def _needs_out_of_bag(self) -> bool:
        return True  # for intervals, at almost no cost

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        predicted = self._oob_means()
        score = self.oob_score if callable(self.oob_score) else r2_score
        if self.n_outputs_ == 1:
            self.oob_score_ = score(y[:, 0], predicted[:, 0])
        else:
            self.oob_score_ = score(y, predicted)

    @property
    def oob_prediction_(self) -> NDArray[np.float64]:
        """Mean prediction of each training row by its out-of-bag trees."""
        if "oob_score_" not in vars(self) or self._out_of_bag is None:
            raise AttributeError("oob_prediction_ needs oob_score=True in fit")
        values = self._out_of_bag.means()
        return values[:, 0] if self.n_outputs_ == 1 else values

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the targets.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Mean of the trees' predictions.
        """
        values = self._mean_scores(X)
        return values[:, 0] if self.n_outputs_ == 1 else values

    def predict_quantiles(self, X: Any, q: Any = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Predict quantiles of the target, given the row.

        The distribution is that of the training rows in the same leaves as the row, with equal
        weights of all trees (a quantile regression forest, Meinshausen 2006).

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        q : float or array-like of float, default=(0.05, 0.5, 0.95)
            Levels between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, len(q)), or (n_rows, n_outputs, len(q))
            The quantiles, in the order of `q`.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"q: expected levels between 0 and 1, got {q!r}")
        rows = self._read_rows(X)
        if "_targets" not in vars(self):
            raise ValueError(
                "predict_quantiles: expected a forest that stores the targets of its training "
                "rows, got one that was imported or grown from blocks of rows"
            )
        out = np.empty((rows.n_rows, self.n_outputs_, len(levels)))
        weights = None if self.bootstrap else self._samples.weights
        self._model.store.core.quantiles(
            rows, self._targets, weights, levels, effective_n_jobs(self.n_jobs), out
        )
        return out[:, 0] if self.n_outputs_ == 1 else out

    @property
    def interval_method_(self) -> str:
        """Description of the intervals of ``method="auto"``."""
        check_is_fitted(self)
        if self._out_of_bag is None:
            return "quantiles of the leaves, without correction of their coverage"
        n_rows = int(self._has_oob_error(self._out_of_bag).sum())
        return f"conformal, {n_rows:,} out-of-bag rows, scaled by the spread of the trees"

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> NDArray[np.float64]:
        """Predict an interval that contains the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Fraction of rows, between 0 and 1, whose interval contains the target.
        method : {"auto", "conformal", "quantile"}, default="auto"
            "conformal" uses the errors on rows that the trees were not grown from, divided by the
            spread of the trees' predictions. The interval is the one that contained `coverage` of
            these rows, so its coverage is correct on similar rows even if the forest is inaccurate.
            The rows are the out-of-bag rows (with ``bootstrap=True``), or those of `calibration`.
            "quantile" is the range between two quantiles of `predict_quantiles`: it has the shape
            of the distribution, but its coverage is not corrected. "auto" is "conformal" if that
            is possible, else "quantile" with a warning.
        calibration : tuple (X, y), default=None
            Rows that were not used in the fit, and their targets. "conformal" uses them instead of
            the out-of-bag rows, so a forest without ``bootstrap`` can have intervals with correct
            coverage. A few hundred rows are enough.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_outputs, 2)
            Lower and upper ends; infinite if there are too few rows for the coverage.
        """
        coverage = check_coverage(coverage)
        check_method(method, ("auto", "conformal", "quantile"))
        if calibration is not None and method == "quantile":
            raise ValueError("calibration: method='quantile' takes none")
        check_is_fitted(self)
        if calibration is not None:
            truth, predicted, scale, unit = self._errors_on(calibration)
            weights = None
        elif self._out_of_bag is not None and method != "quantile":
            truth, predicted, scale, unit = self._oob_errors(self._out_of_bag)
            weights = self._oob_weights(self._out_of_bag)
        elif method == "conformal":
            raise ValueError(
                "method='conformal' needs rows that the trees were not grown from: fit with "
                "bootstrap=True, or pass rows as calibration=(X, y)"
            )
        else:
            if method == "auto":
                warn(
                    "predict_interval: the forest has no out-of-bag rows, so the intervals are "
                    "quantiles of the leaves, and their coverage is lower than requested; fit with "
                    "bootstrap=True, pass rows that were not used in the fit as "
                    "calibration=(X, y), or set method='quantile'",
                    UserWarning,
                    stacklevel=2,
                )
            tail = (1 - coverage) / 2
            return self.predict_quantiles(X, [tail, 1 - tail])
        held_out = HeldOut("", truth, predicted, scale, weights)
        ends = held_out.interval(*self._means_and_scale(X, unit), coverage)
        return ends[:, 0] if self.n_outputs_ == 1 else ends

    def _held_out_rows(self) -> HeldOut:
        """Return the out-of-bag rows in the form that other models keep them."""
        kept = self._out_of_bag
        if kept is None:
            raise ValueError("a forest without bootstrap=True has no out-of-bag rows")
        truth, mean, scale, _ = self._oob_errors(kept)
        rows, weights = np.flatnonzero(self._has_oob_error(kept)), self._oob_weights(kept)
        if self.n_outputs_ == 1:
            truth, mean, scale = truth[:, 0], mean[:, 0], scale[:, 0]
        return HeldOut("rows out of the bag", truth, mean, scale, weights, rows=rows)

    def _has_oob_error(self, kept: OutOfBag) -> Any:
        """Return which rows have positive weight and at least two out-of-bag trees."""
        weights = self._samples.weights
        several = kept.n_trees > 1
        return several if weights is None else several & (weights > 0)

    def _oob_weights(self, kept: OutOfBag) -> Any:
        weights = self._samples.weights
        return None if weights is None else weights[self._has_oob_error(kept)]

    def _predict_with_scale(self, X: Any) -> tuple[Any, Any]:
        assert self._out_of_bag is not None
        mean, scale = self._means_and_scale(X, self._oob_errors(self._out_of_bag)[3])
        return (mean[:, 0], scale[:, 0]) if self.n_outputs_ == 1 else (mean, scale)

    def _means_and_scale(self, X: Any, unit: _Unit) -> tuple[Any, Any]:
        """Return the means, and the expected size of the errors, for the rows of X."""
        mean, spread = self._mean_and_spread(X)
        scale = unit.scale(spread)
        groups = vars(self).get("_group_scale")
        if groups is not None:
            scale *= groups.of(read_table(self, X, self._model.schema))[:, None]
        return mean, scale

    def _fit_groups(self, table: Table) -> None:
        """Learn the size of the errors of each category from out-of-bag rows."""
        self._group_scale: GroupScale | None = None
        self._group_factors: Any = None
        kept = self._out_of_bag
        if kept is None:
            return
        rows = np.flatnonzero(self._has_oob_error(kept))
        if len(rows) < 2 or self.n_outputs_ > 1 or not np.isfinite(kept.squares).all():
            return
        truth, mean, scale, _ = self._oob_errors(kept)
        sizes = np.abs(truth - mean)[:, 0] / scale[:, 0]
        fitted = learn_group_scale(table.take(rows), self._model.schema, sizes)
        if fitted is not None:
            self._group_scale, self._group_factors = fitted

    def _mean_and_spread(self, X: Any) -> tuple[Any, Any]:
        """Return the mean and the standard deviation of the trees' predictions."""
        rows = self._read_rows(X)
        sums = np.empty((rows.n_rows, self.n_outputs_))
        squares = np.empty_like(sums)
        core = self._model.store.core
        core.moments(rows, self._center, effective_n_jobs(self.n_jobs), sums, squares)
        n_trees = np.full((len(sums), 1), float(self._model.n_trees))
        return _mean_and_spread(sums, squares, n_trees, self._center)

    def _errors_on(self, calibration: Any) -> tuple[Any, Any, Any, _Unit]:
        """Return targets, means, scale and its unit for calibration rows (X, y)."""
        X, truth = read_calibration(calibration)
        mean, spread = self._mean_and_spread(X)
        truth = numeric_targets(truth)
        if truth.size != mean.size:
            raise ValueError(f"calibration: expected y of shape {mean.shape}, got {truth.shape}")
        truth = truth.reshape(mean.shape)
        unit = _Unit.from_errors(truth - mean, spread)
        return truth, mean, self._means_and_scale(X, unit)[1], unit

    def _oob_errors(self, kept: OutOfBag) -> tuple[Any, Any, Any, _Unit]:
        """Return targets, means, scale and its unit for the out-of-bag rows."""
        is_used, weights = self._has_oob_error(kept), self._oob_weights(kept)
        n_all = self._model.n_trees
        if is_used.sum() < 2:
            raise ValueError(
                "predict_interval: expected at least 2 rows with two or more out-of-bag trees, got "
                f"{is_used.sum()} with {len(is_used)} rows and {n_all} trees; fit more rows, "
                "increase n_estimators, or pass rows as calibration=(X, y)"
            )
        n_trees = kept.n_trees[is_used].astype(np.float64)[:, None]
        mean, spread = _mean_and_spread(
            kept.sums[is_used], kept.squares[is_used], n_trees, self._center
        )
        truth = self._targets[:, is_used].T
        # The mean of few out-of-bag trees varies more than the mean of all trees. The part of the
        # errors that is due to that is removed.
        errors = truth - mean
        excess = np.average(spread**2 * (1 / n_trees - 1 / n_all), 0, weights)
        total = np.average(errors**2, 0, weights)
        fraction = np.divide(excess, total, out=np.zeros_like(total), where=total > 0)
        errors = np.sqrt(np.clip(1 - fraction, 0.0, 1.0)) * errors
        unit = _Unit.from_errors(errors, spread, weights)
        scale = unit.scale(spread)
        factors = vars(self).get("_group_factors")
        if factors is not None:
            scale *= factors[:, None]
        return truth, truth - errors, scale, unit


@dataclass(frozen=True)
class _Unit:
    """Means over the rows that intervals are calibrated on, for each output.

    Parameters
    ----------
    variance : ndarray of shape (n_outputs,)
        Mean variance of the trees' predictions.
    error : ndarray of shape (n_outputs,)
        Root of the mean squared error.
    """

    variance: Any
    error: Any

    @classmethod
    def from_errors(cls, errors: Any, spread: Any, weights: Any = None) -> _Unit:
        return cls(np.average(spread**2, 0, weights), np.sqrt(np.average(errors**2, 0, weights)))

    def scale(self, spread: Any) -> Any:
        """Return the expected size of the errors for a spread of the trees' predictions.

        The spread of few trees is noisy, and noisier for out-of-bag trees than for all trees.
        Therefore the mean variance has a weight of a tenth, and a fifth of the mean error is added.
        """
        variance = (1 - _MEAN_WEIGHT) * spread**2 + _MEAN_WEIGHT * self.variance
        return np.sqrt(variance) + (0.2 * self.error + np.finfo(np.float64).tiny)


def _mean_and_spread(sums: Any, squares: Any, n_trees: Any, center: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation from sums, and from squares around a center."""
    mean = sums / n_trees
    with np.errstate(over="ignore", invalid="ignore"):
        variance = np.maximum(squares / n_trees - (mean - center) ** 2, 0.0)
    if not np.isfinite(variance).all():
        raise ValueError(
            "predict_interval: squares of targets as large as those of the fit overflow; divide y "
            "by a power of ten before the fit"
        )
    return mean, np.sqrt(variance * n_trees / np.maximum(n_trees - 1, 1))
