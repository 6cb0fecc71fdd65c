"""Forests that tell numbers, their quantiles and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions

from spinney._threads import effective_n_jobs
from spinney.ensemble._forest import BaseForest

__all__ = ["ForestRegressor"]


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
        out = np.empty((table.n_rows, self.n_outputs_, len(levels)))
        weights = None if self.bootstrap else self._sample_weight
        self._store.core.quantiles(
            table, self._targets, weights, levels, effective_n_jobs(self.n_jobs), out
        )
        return out[:, 0] if self.n_outputs_ == 1 else out

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto"
    ) -> NDArray[np.float64]:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval.
        method : {"auto", "conformal", "quantile"}, default="auto"
            "conformal" looks at the errors of the rows out of the bag, in units of the trees'
            disagreement about the row, and takes the interval that held `coverage` of them: its
            coverage is right on rows like those of fit, whatever the forest is worth. It needs
            ``bootstrap=True``. "quantile" is between two quantiles of `predict_quantiles`: it
            follows the shape of the distribution, but nothing corrects its coverage. "auto" is
            "conformal" where that is possible.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_outputs, 2)
            Lower and upper ends.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage: expected a number between 0 and 1, got {coverage!r}")
        if method not in ("auto", "conformal", "quantile"):
            raise ValueError(f"method: expected 'auto', 'conformal' or 'quantile', got {method!r}")
        table_read = self._read(X)
        has_out_of_bag = "_oob_sums" in vars(self)
        if method == "conformal" and not has_out_of_bag:
            raise ValueError(
                "method='conformal' needs rows out of the bag: fit with bootstrap=True"
            )
        tail = (1 - coverage) / 2
        if method == "quantile" or not has_out_of_bag:
            return self.predict_quantiles(X, [tail, 1 - tail])
        sums = np.empty((table_read.n_rows, self.n_outputs_))
        squares = np.empty_like(sums)
        self._store.core.moments(
            table_read, self._centre, effective_n_jobs(self.n_jobs), sums, squares
        )
        n_trees = np.full((len(sums), 1), float(len(self._store)))
        mean, spread = _mean_and_spread(sums, squares, n_trees, self._centre)
        out = np.empty((len(sums), self.n_outputs_, 2))
        for k in range(self.n_outputs_):
            lower, upper, floor = self._conformal_scores(k, tail)
            out[:, k, 0] = mean[:, k] + lower * (spread[:, k] + floor)
            out[:, k, 1] = mean[:, k] + upper * (spread[:, k] + floor)
        return out[:, 0] if self.n_outputs_ == 1 else out

    def _conformal_scores(self, output: int, tail: float) -> tuple[float, float, float]:
        """Ends of the interval in units of the spread, and what is added to the spread."""
        seen = self._oob_n_trees > 1
        if seen.sum() < 2:
            raise ValueError(
                "predict_interval: too few trees, no two of them left out the same rows; "
                "increase n_estimators"
            )
        n_trees = self._oob_n_trees[seen].astype(np.float64)[:, None]
        squares = self._oob_squares.reshape(self._oob_sums.shape)[seen]
        mean, spread = _mean_and_spread(self._oob_sums[seen], squares, n_trees, self._centre)
        errors = self._targets[output, seen] - mean[:, output]
        # Where all trees agree the spread says nothing: a little of the usual error is added.
        floor = 0.1 * float(np.sqrt(np.mean(errors**2))) + np.finfo(np.float64).tiny
        scores = np.sort(errors / (spread[:, output] + floor))
        n = len(scores)
        # The ranks that hold on average over samples; beyond the sample the ends stay finite.
        low = int(np.floor((n + 1) * tail)) - 1
        high = int(np.ceil((n + 1) * (1 - tail))) - 1
        return float(scores[max(low, 0)]), float(scores[min(high, n - 1)]), floor


def _mean_and_spread(sums: Any, squares: Any, n_trees: Any, centre: Any) -> tuple[Any, Any]:
    """Mean over trees, and their standard deviation around it, from squares around a centre."""
    mean = sums / n_trees
    variance = np.maximum(squares / n_trees - (mean - centre) ** 2, 0.0)
    return mean, np.sqrt(variance * n_trees / np.maximum(n_trees - 1, 1))
