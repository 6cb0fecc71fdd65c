"""Forests that tell numbers, their quantiles and intervals."""

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
from spinney.runtime.threads import effective_n_jobs

__all__ = ["ForestRegressor"]

_USUAL_PART = 0.1  # of the trees' variance about a row that is taken to be as everywhere


class ForestRegressor(RegressorMixin, BaseForest):
    """Base class of the forests for numbers; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        **BaseForest._parameter_constraints,
        "criterion": [
            StrOptions({"squared_error", "absolute_error", "friedman_mse", "poisson"}),
        ],
    }

    def _follows_out_of_bag(self) -> bool:
        return True  # intervals need it, and it costs next to nothing

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        predicted = self._oob_values()
        score = self.oob_score if callable(self.oob_score) else r2_score
        if self.n_outputs_ == 1:
            self.oob_score_ = score(y[:, 0], predicted[:, 0])
        else:
            self.oob_score_ = score(y, predicted)

    @property
    def oob_prediction_(self) -> NDArray[np.float64]:
        """Prediction of each row by the trees that did not see it."""
        if "oob_score_" not in vars(self):
            raise AttributeError("oob_prediction_ needs oob_score=True in fit")
        values = self._oob_sums / np.maximum(self._oob_n_trees, 1)[:, None]
        return values[:, 0] if self.n_outputs_ == 1 else values

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict numbers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Mean of the trees' predictions.
        """
        values = self._sum_predictions(X)
        values /= len(self._store)
        return values[:, 0] if self.n_outputs_ == 1 else values

    def predict_quantiles(self, X: Any, q: Any = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Predict quantiles of the target, given the row.

        The distribution is that of the training rows that share leaves with the row, each tree
        counting the same (a quantile regression forest, Meinshausen 2006).

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        q : float or array-like of float, default=(0.05, 0.5, 0.95)
            Levels between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, len(q)), or (n_rows, n_outputs, len(q))
            The quantiles, ascending with `q`.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"q: expected levels between 0 and 1, got {q!r}")
        table = self._read(X)
        if "_targets" not in vars(self):
            raise ValueError(
                "predict_quantiles: expected a forest that knows the targets of its leaves, got "
                "one whose trees were grown from blocks of rows"
            )
        out = np.empty((table.n_rows, self.n_outputs_, len(levels)))
        weights = None if self.bootstrap else self._sample_weight
        self._store.core.quantiles(
            table, self._targets, weights, levels, effective_n_jobs(self.n_jobs), out
        )
        return out[:, 0] if self.n_outputs_ == 1 else out

    @property
    def interval_method_(self) -> str:
        """What intervals are made from, in words; of ``method="auto"``."""
        check_is_fitted(self)
        if "_oob_sums" not in vars(self):
            return "quantiles of the leaves, nothing corrects their coverage"
        n_rows = int(self._left_out().sum())
        return f"conformal, {n_rows:,} rows out of the bag in units of the trees' disagreement"

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> NDArray[np.float64]:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval.
        method : {"auto", "conformal", "quantile"}, default="auto"
            "conformal" looks at the errors on rows that trees did not see, in units of the trees'
            disagreement about the row, and takes the interval that held `coverage` of them: its
            coverage is right on rows like those, whatever the forest is worth. The rows are those
            out of the bag (which needs ``bootstrap=True``), or those of `calibration`. "quantile"
            is between two quantiles of `predict_quantiles`: it follows the shape of the
            distribution, but nothing corrects its coverage. "auto" is "conformal" where that is
            possible, else "quantile" with a warning.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their targets: "conformal" takes these instead of the
            rows out of the bag. This is how a forest without ``bootstrap`` gets intervals whose
            coverage is right; some hundred rows suffice.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_outputs, 2)
            Lower and upper ends; infinite where there are too few rows to tell.
        """
        coverage = check_coverage(coverage)
        check_method(method, ("auto", "conformal", "quantile"))
        if calibration is not None and method == "quantile":
            raise ValueError("calibration: method='quantile' takes none")
        check_is_fitted(self)
        if calibration is not None:
            truth, told, scale, unit = self._errors_on(calibration)
            weights = None
        elif "_oob_sums" in vars(self) and method != "quantile":
            truth, told, scale, unit = self._errors_out_of_bag()
            weights = self._left_out_weights()
        elif method == "conformal":
            raise ValueError(
                "method='conformal' needs rows that trees did not see: fit with bootstrap=True, "
                "or give some as calibration=(X, y)"
            )
        else:
            if method == "auto":
                warn(
                    "predict_interval: the forest has no rows out of the bag, and nothing corrects "
                    "the coverage of quantiles of its leaves, which hold less than is asked for; "
                    "fit with bootstrap=True, give rows that fit did not see as "
                    "calibration=(X, y), or say method='quantile'",
                    UserWarning,
                    stacklevel=2,
                )
            tail = (1 - coverage) / 2
            return self.predict_quantiles(X, [tail, 1 - tail])
        held = HeldOut("", truth, told, scale, weights)
        ends = held.interval(*self._means_and_scale(X, unit), coverage)
        return ends[:, 0] if self.n_outputs_ == 1 else ends

    def _held_out_rows(self) -> HeldOut:
        """Return the rows out of the bag as other models keep them."""
        if "_oob_sums" not in vars(self):
            raise ValueError("a forest without bootstrap=True has no rows out of the bag")
        truth, mean, scale, _ = self._errors_out_of_bag()
        rows, weights = np.flatnonzero(self._left_out()), self._left_out_weights()
        if self.n_outputs_ == 1:
            truth, mean, scale = truth[:, 0], mean[:, 0], scale[:, 0]
        return HeldOut("rows out of the bag", truth, mean, scale, weights, rows=rows)

    def _left_out(self) -> Any:
        """Which rows two trees or more left out, of those that count."""
        seen = self._oob_n_trees > 1
        return seen if self._sample_weight is None else seen & (self._sample_weight > 0)

    def _left_out_weights(self) -> Any:
        return None if self._sample_weight is None else self._sample_weight[self._left_out()]

    def _predict_with_scale(self, X: Any) -> tuple[Any, Any]:
        mean, scale = self._means_and_scale(X, self._errors_out_of_bag()[3])
        return (mean[:, 0], scale[:, 0]) if self.n_outputs_ == 1 else (mean, scale)

    def _means_and_scale(self, X: Any, unit: _Unit) -> tuple[Any, Any]:
        """Means, and how large errors are expected to be, about the rows of X."""
        mean, spread = self._moments(X)
        scale = unit.scale(spread)
        groups = vars(self).get("_group_scale")
        if groups is not None:
            scale *= groups.of(read_table(self, X, self._schema))[:, None]
        return mean, scale

    def _learn_groups(self, table: Table) -> None:
        """Learn how large errors are for each category, from rows out of the bag."""
        self._group_scale: GroupScale | None = None
        self._oob_factors: Any = None
        if "_oob_squares" not in vars(self):
            return
        seen = np.flatnonzero(self._left_out())
        if len(seen) < 2 or self.n_outputs_ > 1 or not np.isfinite(self._oob_squares).all():
            return
        truth, mean, scale, _ = self._errors_out_of_bag()
        sizes = np.abs(truth - mean)[:, 0] / scale[:, 0]
        learned = learn_group_scale(table.take(seen), self._schema, sizes)
        if learned is not None:
            self._group_scale, self._oob_factors = learned

    def _moments(self, X: Any) -> tuple[Any, Any]:
        """Mean over the trees, and their disagreement, about the rows of X."""
        table = self._read(X)
        sums = np.empty((table.n_rows, self.n_outputs_))
        squares = np.empty_like(sums)
        self._store.core.moments(table, self._centre, effective_n_jobs(self.n_jobs), sums, squares)
        n_trees = np.full((len(sums), 1), float(len(self._store)))
        return _mean_and_spread(sums, squares, n_trees, self._centre)

    def _errors_on(self, calibration: Any) -> tuple[Any, Any, Any, _Unit]:
        """Targets, means, scale and its unit for rows given as (X, y)."""
        X, truth = read_calibration(calibration)
        mean, spread = self._moments(X)
        truth = numeric_targets(truth)
        if truth.size != mean.size:
            raise ValueError(f"calibration: expected y of shape {mean.shape}, got {truth.shape}")
        truth = truth.reshape(mean.shape)
        unit = _Unit.of(truth - mean, spread)
        return truth, mean, self._means_and_scale(X, unit)[1], unit

    def _errors_out_of_bag(self) -> tuple[Any, Any, Any, _Unit]:
        """Targets, means, scale and its unit, by the trees that did not see a row."""
        seen, weights = self._left_out(), self._left_out_weights()
        if seen.sum() < 2:
            raise ValueError(
                "predict_interval: expected at least 2 rows that two trees or more left out, got "
                f"{seen.sum()} with {len(seen)} rows and {len(self._store)} trees; fit more rows, "
                "increase n_estimators, or give rows as calibration=(X, y)"
            )
        n_trees = self._oob_n_trees[seen].astype(np.float64)[:, None]
        squares = self._oob_squares.reshape(self._oob_sums.shape)[seen]
        mean, spread = _mean_and_spread(self._oob_sums[seen], squares, n_trees, self._centre)
        truth = self._targets[:, seen].T
        # All trees together vary less than the few that did not see a row: what these are off by
        # for that reason alone is taken out of the errors.
        errors = truth - mean
        more = np.average(spread**2 * (1 / n_trees - 1 / len(self._store)), 0, weights)
        usual = np.average(errors**2, 0, weights)
        share = np.divide(more, usual, out=np.zeros_like(usual), where=usual > 0)
        errors = np.sqrt(np.clip(1 - share, 0.0, 1.0)) * errors
        unit = _Unit.of(errors, spread, weights)
        scale = unit.scale(spread)
        factors = vars(self).get("_oob_factors")
        if factors is not None:
            scale *= factors[:, None]
        return truth, truth - errors, scale, unit


@dataclass(frozen=True)
class _Unit:
    """What is usual among the rows that intervals are made from, for each output."""

    variance: Any
    error: Any

    @classmethod
    def of(cls, errors: Any, spread: Any, weights: Any = None) -> _Unit:
        return cls(np.average(spread**2, 0, weights), np.sqrt(np.average(errors**2, 0, weights)))

    def scale(self, spread: Any) -> Any:
        """Return how large errors are to be expected where trees disagree so much.

        The spread of few trees is itself noise, and more so out of the bag than of all trees: what
        is usual counts a tenth in its square, and a fifth of the usual error is added.
        """
        square = (1 - _USUAL_PART) * spread**2 + _USUAL_PART * self.variance
        return np.sqrt(square) + (0.2 * self.error + np.finfo(np.float64).tiny)


def _mean_and_spread(sums: Any, squares: Any, n_trees: Any, centre: Any) -> tuple[Any, Any]:
    """Mean over trees, and their standard deviation around it, from squares around a centre."""
    mean = sums / n_trees
    with np.errstate(over="ignore", invalid="ignore"):
        variance = np.maximum(squares / n_trees - (mean - centre) ** 2, 0.0)
    if not np.isfinite(variance).all():
        raise ValueError(
            "predict_interval: squares of targets as large as those of fit are no finite numbers; "
            "divide y by a power of ten before fit"
        )
    return mean, np.sqrt(variance * n_trees / np.maximum(n_trees - 1, 1))
