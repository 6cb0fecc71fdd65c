"""Intervals for any regressor."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from spinney.calibration._wrapper import Wrapper, fit_on, group_codes
from spinney.conformal.group_scale import GroupScale, learn_group_scale
from spinney.conformal.mixins import HeldOut
from spinney.conformal.rules import Floats, check_coverage
from spinney.data.table import check_rows, read_categories

__all__ = ["ConformalRegressor"]

_METHODS = ("auto", "split", "cross", "oob", "quantile")
_PAIRS = 4_000_000  # of new rows and rows held out that are looked at together
_ROUNDING = 1e-9


class ConformalRegressor(RegressorMixin, Wrapper):  # type: ignore[misc]
    """Intervals around the predictions of any regressor, with the coverage that is asked for.

    The errors on rows that a model did not learn from say how far an interval must reach. That is
    right for any model and any noise, as long as new rows are like those of fit; the better the
    model, the shorter the intervals.

    Parameters
    ----------
    estimator : estimator, default=None
        The regressor, Spinney's or scikit-learn's; None is a `GradientBoostingRegressor`.
    method : {"auto", "split", "cross", "oob", "quantile"}, default="auto"
        "split": learn from some rows, and take the errors on the rest. "cross": each row's error
        is by models that learned from other folds, and intervals put together what all of these
        say (CV+; with one row a fold the jackknife+). "oob": the model is fitted once, and knows
        its errors on rows it held out by itself: those out of the bag of forests and bagging, of
        early stopping, or left out of linear models and neighbours. "quantile": conformalised
        quantiles, for models of quantiles; intervals are wide where the noise is. "auto" is "oob"
        where the model can, else "cross".
    cv : int, splitter or iterable, default=5
        Folds of "cross"; as many as rows, or `sklearn.model_selection.LeaveOneOut`, make it the
        jackknife+.
    test_size : float or int, default=0.25
        Rows that "split" and "quantile" take their errors from.
    groups : str, int or None, default="auto"
        "auto": in each column of categories of a frame, intervals are as long as its rows' errors
        are large, all columns together; models that hold out rows by themselves see to it, or not.
        A column, by name or place: each of its categories gets intervals from the errors of its own
        rows alone, so that none of them falls short. Categories with too few rows to tell, and new
        ones, get those of all. None: all rows are alike.
    quantiles : tuple of float, default=(0.05, 0.95)
        Levels that "quantile" fits; best near (1 ± coverage) / 2, and right for any coverage.
    random_state : int, RandomState instance or None, default=None
        Divides the rows.

    Attributes
    ----------
    estimator_ : estimator
        What predicts: fitted on all rows, or with "split" and "quantile" on those to learn from.
    estimators_ : list of estimators
        With "cross" the models of the folds.
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
        from spinney.ensemble import GradientBoostingRegressor

        return GradientBoostingRegressor(random_state=0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConformalRegressor:
        """Fit the model, and see what it says about rows that it did not learn from.

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
        """Return the column that `groups` names, if it does."""
        return None if isinstance(self.groups, str) and self.groups == "auto" else self.groups

    def _learn_groups(self, X: Any) -> None:
        """Learn how large errors are for each category of each column."""
        held = self._held_out
        table, self._schema = read_categories(X)
        if held.rows is None or not self._schema.has_categories:
            return
        sizes = np.abs(held.truth - held.told)
        learned = learn_group_scale(table.take(held.rows), self._schema, sizes)
        if learned is not None:
            self._group_scale, own = learned
            self._held_out = replace(held, scale=own)

    def _hold_out_folds(self, X: Any, y: Any, weights: Any) -> None:
        folds = self._folds(X, y)
        told, self._fold_of = np.empty(len(y)), np.empty(len(y), dtype=np.intp)
        self.estimators_ = []
        for number, (learned, asked) in enumerate(folds):
            model = fit_on(self._model(), X, y, weights, learned)
            told[asked] = np.ravel(model.predict(_safe_indexing(X, asked)))
            self._fold_of[asked] = number
            self.estimators_.append(model)
        source = f"rows of {len(folds)} folds"
        self._held_out = HeldOut(source, y, told, weights=weights, rows=np.arange(len(y)))

    def _hold_out_once(self, X: Any, y: Any, weights: Any, quantiles: bool) -> None:
        learned, asked = self._split(X, y)
        base = self._model()
        if quantiles:
            low, high = self._levels()
            base = _QuantileModels.of(base, low, high)
            self.estimator_ = base.fit(X, y, weights, learned)
        else:
            self.estimator_ = fit_on(base, X, y, weights, learned)
        rows = _safe_indexing(X, asked)
        told = self.estimator_.both(rows) if quantiles else np.ravel(self.estimator_.predict(rows))
        own = None if weights is None else weights[asked]
        self._held_out = HeldOut(
            "rows that were set aside", y[asked], np.asarray(told, dtype=np.float64), None, own,
            quantiles, asked,
        )  # fmt: skip

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
        """What intervals are made from, in words."""
        check_is_fitted(self)
        held = self._held_out
        words = {"cross": "cross-conformal (CV+)", "quantile": "conformalised quantiles"}
        within = "" if self._column() is None else f", within {self.groups!r}"
        groups = vars(self).get("_group_scale")
        if groups is not None:
            n = len(groups.columns)
            within = f", in units of {n} column{'' if n == 1 else 's'} of categories"
        return f"{words.get(self.method_, 'conformal')}, {len(held):,} {held.source}{within}"

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
            Lower and upper ends; infinite where there are too few rows to tell.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        told, scale = self._told(X)
        groups = vars(self).get("_group_scale")
        if groups is not None:
            scale = groups.of(read_categories(X, self._schema)[0])
        every = np.ones(len(self._held_out), dtype=bool)
        ends = self._ends(told, scale, every, coverage)
        if self._codes is None:
            return ends
        asked, _ = group_codes(X, self.groups, self._known_groups)
        for code in np.unique(asked[asked >= 0]):
            mine = asked == code
            part = None if scale is None else scale[mine]
            own = self._ends(told[mine], part, self._codes == code, coverage)
            ends[mine] = np.where(np.isfinite(own), own, ends[mine])
        return ends

    def _told(self, X: Any) -> tuple[Any, Any]:
        """What is said about new rows: by each fold's model, (n_rows, n_folds), or once."""
        if self.method_ == "cross":
            said = [np.ravel(model.predict(X)) for model in self.estimators_]
            return np.column_stack(said).astype(np.float64), None
        if self.method_ == "oob":
            told, scale = self.estimator_._told_and_scale(X)
            return told, scale
        if self.method_ == "quantile":
            return self.estimator_.both(X), None
        return np.asarray(self.estimator_.predict(X), dtype=np.float64).ravel(), None

    def _ends(self, told: Any, scale: Any, chosen: Any, coverage: float) -> Floats:
        held = self._held_out.take(chosen)
        if self.method_ != "cross":
            return held.interval(told, scale, coverage)
        ends = np.full((len(told), 2), [-np.inf, np.inf])
        n, tail = len(held), (1 - coverage) / 2
        low = math.floor((n + 1) * tail + _ROUNDING)
        if low < 1:
            return ends
        errors, fold = held.truth - held.told, self._fold_of[chosen]
        if held.scale is not None:
            errors = errors / held.scale
        step = max(1, _PAIRS // max(n, 1))
        for first in range(0, len(told), step):
            some = slice(first, first + step)
            reached = told[some][:, fold]
            reached = reached + (errors if scale is None else errors * scale[some][:, None])
            if held.weights is None:
                places = [low - 1, n - low]
                ends[some] = np.partition(reached, places, axis=1)[:, places]
            else:
                ends[some] = [_weighted_ends(row, held.weights, coverage) for row in reached]
        return ends


def _weighted_ends(reached: Floats, weights: Floats, coverage: float) -> tuple[float, float]:
    from spinney.conformal.rules import smallest_and_largest_error

    return smallest_and_largest_error(reached, coverage, weights)


class _QuantileModels:
    """Two quantiles by one model that has several, or by two models."""

    def __init__(self, models: list[Any], levels: tuple[float, float]) -> None:
        self.models = models
        self.levels = levels

    @classmethod
    def of(cls, base: Any, low: float, high: float) -> _QuantileModels:
        """Say how this model is asked for quantiles."""
        names = base.get_params(deep=False)
        if hasattr(base, "predict_quantiles"):
            return cls([clone(base)], (low, high))
        loss = {"loss": "quantile"} if "loss" in names else {}
        # Beside a level, alpha is a penalty: scikit-learn's QuantileRegressor has both.
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
        """Fit the models on some of the rows."""
        self.models = [fit_on(model, X, y, weights, rows) for model in self.models]
        return self

    def both(self, X: Any) -> Floats:
        """Return both quantiles, (n_rows, 2), which do not cross."""
        if len(self.models) == 1:
            told = self.models[0].predict_quantiles(X, list(self.levels))
        else:
            told = np.column_stack([np.ravel(model.predict(X)) for model in self.models])
        return np.sort(np.asarray(told, dtype=np.float64), axis=1)

    def predict(self, X: Any) -> Floats:
        """Return the middle of both."""
        return self.both(X).mean(axis=1)
