"""Conformal intervals for any regressor."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from spinney.calibration._wrapper import Wrapper, fit_on, group_codes
from spinney.conformal.group_scale import GroupScale, learn_group_scale
from spinney.conformal.mixins import HeldOut, predict_with_scale
from spinney.conformal.rules import Floats, check_coverage, smallest_and_largest_error
from spinney.data.sklearn_versions import safe_indexing
from spinney.data.table import check_rows, read_categories

__all__ = ["ConformalRegressor"]

_METHODS = ("auto", "split", "cross", "oob", "quantile")
_PAIRS = 4_000_000  # largest number of pairs of a new and a held-out row in memory at once
_ROUNDING = 1e-9


class ConformalRegressor(RegressorMixin, Wrapper):  # type: ignore[misc]
    """Conformal intervals with the requested coverage, for any regressor.

    The errors on held-out rows determine how far an interval reaches. The coverage holds for any
    model and any noise, as long as new rows are distributed like the training rows. The better
    the model, the shorter the intervals.

    Parameters
    ----------
    estimator : estimator, default=None
        The regressor, Spinney's or scikit-learn's; None is a `GradientBoostingRegressor`.
    method : {"auto", "split", "cross", "oob", "quantile"}, default="auto"
        "split": the model is fitted on some rows, and its errors on the others are used. "cross":
        out-of-fold errors of all rows, and intervals that combine the predictions of all folds'
        models (CV+; with one row per fold the jackknife+). "oob": the model is fitted once, and
        its errors on rows that it held out by itself are used: out of the bag of forests and
        bagging, for early stopping, or leave-one-out of linear models and neighbors. "quantile":
        conformalized quantile regression, for quantile models; intervals are wide where the noise
        is large. "auto" is "oob" if the model holds rows out, else "cross".
    cv : int, splitter or iterable, default=5
        Folds of "cross". As many folds as rows, or `sklearn.model_selection.LeaveOneOut`, give the
        jackknife+.
    test_size : float or int, default=0.25
        Number or share of the rows that "split" and "quantile" hold out.
    groups : str, int or None, default="auto"
        "auto": in a frame with categorical columns, the length of intervals is proportional to
        the errors in the row's categories, with "split" and "cross"; with "oob" the model itself
        decides. The name or index of one column: each of its categories gets intervals from the
        errors of its own rows, and so the requested coverage. Unknown categories, and those with
        too few rows, get the intervals of all rows. None: categories have no effect.
    quantiles : tuple of float, default=(0.05, 0.95)
        Levels that "quantile" fits. Levels near (1 ± coverage) / 2 give the shortest intervals;
        any levels give the requested coverage.
    random_state : int, RandomState instance or None, default=None
        Seed of the partition of the rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model: on all rows, or with "split" and "quantile" on the training rows.
    estimators_ : list of estimators
        The models of the folds (with "cross" only).
    method_ : str
        The method that was used.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of str
        Their names, if X had names that are all strings.

    References
    ----------
    Barber, Candès, Ramdas, Tibshirani, "Predictive inference with the jackknife+", 2021. Romano,
    Patterson, Candès, "Conformalized quantile regression", 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.calibration import ConformalRegressor
    >>> from spinney.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConformalRegressor(DecisionTreeRegressor(max_depth=3), random_state=0)
    >>> low, high = model.fit(X[:300], y[:300]).predict_interval(X[300:], coverage=0.8).T
    >>> model.method_
    'cross'
    >>> bool(((low <= y[300:]) & (y[300:] <= high)).mean() > 0.7)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "auto",
        cv: Any = 5,
        test_size: Any = 0.25,
        groups: Any = "auto",
        quantiles: Any = (0.05, 0.95),
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.test_size = test_size
        self.groups = groups
        self.quantiles = quantiles
        self.random_state = random_state

    def _model(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Imported late, as only the default estimator needs it.
        from spinney.ensemble import GradientBoostingRegressor

        return GradientBoostingRegressor(random_state=0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConformalRegressor:
        """Fit the model, and predict held-out rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, for the model and for the coverage.

        Returns
        -------
        ConformalRegressor
            Itself.
        """
        self._check_method(_METHODS)
        X, y, weights = self._read(X, y, sample_weight)
        y = column_or_1d(
            check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self),
            warn=True,
        )
        self.__dict__.pop("estimators_", None)
        self._fold_of: Any = None
        method = self.method
        if method in ("auto", "oob"):
            self.estimator_, held = self._own_rows(X, y, weights)
            if held is not None and (self._column() is None or held.rows is not None):
                self._held_out, method = held, "oob"
            elif method == "oob":
                raise ValueError(
                    f"method='oob': {type(self.estimator_).__name__} holds out no rows by itself"
                )
            else:
                method = "cross"
        elif method == "cross":
            self.estimator_ = fit_on(self._model(), X, y, weights)
        if method == "cross":
            self._hold_out_folds(X, y, weights)
        elif method in ("split", "quantile"):
            self._hold_out_once(X, y, weights, method == "quantile")
        self.method_ = method
        self._known_groups = self._codes = None
        self._group_scale: GroupScale | None = None
        if self._column() is not None:
            codes, self._known_groups = group_codes(X, self.groups)
            self._codes = codes[self._held_out.rows]
        elif self.groups is not None and method in ("split", "cross"):
            self._learn_groups(X)
        return self

    def _column(self) -> Any:
        """Return the column that `groups` names, or None for "auto" and None."""
        return None if isinstance(self.groups, str) and self.groups == "auto" else self.groups

    def _learn_groups(self, X: Any) -> None:
        """Estimate the error factors of the categories of each column."""
        held = self._held_out
        table, self._schema = read_categories(X)
        if held.rows is None or not self._schema.has_categories:
            return
        sizes = np.abs(held.truth - held.predicted)
        fitted = learn_group_scale(table.take(held.rows), self._schema, sizes)
        if fitted is not None:
            self._group_scale, own = fitted
            self._held_out = replace(held, scale=own)

    def _hold_out_folds(self, X: Any, y: Any, weights: Any) -> None:
        folds = self._folds(X, y)
        predicted, self._fold_of = np.empty(len(y)), np.empty(len(y), dtype=np.intp)
        self.estimators_ = []
        for number, (train, test) in enumerate(folds):
            model = fit_on(self._model(), X, y, weights, train)
            predicted[test] = np.ravel(model.predict(safe_indexing(X, test)))
            self._fold_of[test] = number
            self.estimators_.append(model)
        source = f"rows of {len(folds)} folds"
        self._held_out = HeldOut(source, y, predicted, weights=weights, rows=np.arange(len(y)))

    def _hold_out_once(self, X: Any, y: Any, weights: Any, quantiles: bool) -> None:
        train, held = self._split(X, y)
        base = self._model()
        if quantiles:
            low, high = self._levels()
            base = _QuantileModels.from_regressor(base, low, high)
            self.estimator_ = base.fit(X, y, weights, train)
        else:
            self.estimator_ = fit_on(base, X, y, weights, train)
        rows = safe_indexing(X, held)
        predicted = (
            self.estimator_.predict_pair(rows)
            if quantiles
            else np.ravel(self.estimator_.predict(rows))
        )
        self._held_out = HeldOut(
            "rows that were set aside",
            y[held],
            np.asarray(predicted, dtype=np.float64),
            weights=None if weights is None else weights[held],
            quantiles=quantiles,
            rows=held,
        )

    def _levels(self) -> tuple[float, float]:
        try:
            low, high = (float(level) for level in self.quantiles)
        except (TypeError, ValueError):
            low = high = math.nan
        if not 0 < low < high < 1:
            raise ValueError(
                f"quantiles: expected two ascending levels between 0 and 1, got {self.quantiles!r}"
            )
        return low, high

    @property
    def interval_method_(self) -> str:
        """Description of how intervals are made, and from which rows."""
        check_is_fitted(self)
        held = self._held_out
        labels = {"cross": "cross-conformal (CV+)", "quantile": "conformalised quantiles"}
        within = "" if self._column() is None else f", within {self.groups!r}"
        groups = vars(self).get("_group_scale")
        if groups is not None:
            n = len(groups.columns)
            within = f", in units of {n} column{'' if n == 1 else 's'} of categories"
        return f"{labels.get(self.method_, 'conformal')}, {len(held):,} {held.source}{within}"

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends; infinite if there are too few held-out rows.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        predicted, scale = self._predict_for_intervals(X)
        groups = vars(self).get("_group_scale")
        if groups is not None:
            scale = groups.of(read_categories(X, self._schema)[0])
        all_rows = np.ones(len(self._held_out), dtype=bool)
        ends = self._ends(predicted, scale, all_rows, coverage)
        if self._codes is None:
            return ends
        codes, _ = group_codes(X, self.groups, self._known_groups)
        for code in np.unique(codes[codes >= 0]):
            in_category = codes == code
            category_scale = None if scale is None else scale[in_category]
            own = self._ends(predicted[in_category], category_scale, self._codes == code, coverage)
            ends[in_category] = np.where(np.isfinite(own), own, ends[in_category])
        return ends

    def _predict_for_intervals(self, X: Any) -> tuple[Any, Any]:
        """Return predictions of new rows, or those of each fold's model, and their scale."""
        if self.method_ == "cross":
            by_model = [np.ravel(model.predict(X)) for model in self.estimators_]
            return np.column_stack(by_model).astype(np.float64), None
        if self.method_ == "oob":
            predicted, scale = predict_with_scale(self.estimator_, X)
            return predicted, scale
        if self.method_ == "quantile":
            return self.estimator_.predict_pair(X), None
        return np.asarray(self.estimator_.predict(X), dtype=np.float64).ravel(), None

    def _ends(self, predicted: Any, scale: Any, chosen: Any, coverage: float) -> Floats:
        held = self._held_out.take(chosen)
        if self.method_ != "cross":
            return held.interval(predicted, scale, coverage)
        ends = np.full((len(predicted), 2), [-np.inf, np.inf])
        n, tail = len(held), (1 - coverage) / 2
        low = math.floor((n + 1) * tail + _ROUNDING)
        if low < 1:
            return ends
        errors, fold = held.truth - held.predicted, self._fold_of[chosen]
        if held.scale is not None:
            errors = errors / held.scale
        step = max(1, _PAIRS // max(n, 1))
        for first in range(0, len(predicted), step):
            block = slice(first, first + step)
            shifted = predicted[block][:, fold]
            shifted = shifted + (errors if scale is None else errors * scale[block][:, None])
            if held.weights is None:
                order = [low - 1, n - low]
                ends[block] = np.partition(shifted, order, axis=1)[:, order]
            else:
                ends[block] = [
                    smallest_and_largest_error(row, coverage, held.weights) for row in shifted
                ]
        return ends


class _QuantileModels:
    """Two quantiles: of one model that predicts several, or of two models."""

    def __init__(self, models: list[Any], levels: tuple[float, float]) -> None:
        self.models = models
        self.levels = levels

    @classmethod
    def from_regressor(cls, base: Any, low: float, high: float) -> _QuantileModels:
        """Return unfitted models for both levels; raise a ValueError if there are none."""
        names = base.get_params(deep=False)
        if hasattr(base, "predict_quantiles"):
            return cls([clone(base)], (low, high))
        loss = {"loss": "quantile"} if "loss" in names else {}
        # In scikit-learn's QuantileRegressor, which has both, alpha is a penalty.
        level = "quantile" if "quantile" in names else "alpha"
        if level not in names or (level == "alpha" and not loss):
            raise ValueError(
                f"method='quantile': {type(base).__name__} has no quantiles; expected a model with "
                "predict_quantiles, a parameter quantile, or loss='quantile' and alpha"
            )
        try:
            models = [clone(base).set_params(**loss, **{level: q}) for q in (low, high)]
        except ValueError as error:
            raise ValueError(f"method='quantile': {error}") from error
        return cls(models, (low, high))

    def fit(self, X: Any, y: Any, weights: Any, rows: Any) -> _QuantileModels:
        """Fit the models on a selection of the rows."""
        self.models = [fit_on(model, X, y, weights, rows) for model in self.models]
        return self

    def predict_pair(self, X: Any) -> Floats:
        """Predict both quantiles, (n_rows, 2), sorted so that they do not cross."""
        if len(self.models) == 1:
            predicted = self.models[0].predict_quantiles(X, list(self.levels))
        else:
            predicted = np.column_stack([np.ravel(model.predict(X)) for model in self.models])
        return np.sort(np.asarray(predicted, dtype=np.float64), axis=1)

    def predict(self, X: Any) -> Floats:
        """Predict the mean of both quantiles."""
        return self.predict_pair(X).mean(axis=1)
