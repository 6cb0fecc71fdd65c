"""Intervals and sets of fitted models, from rows that they did not learn from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from spinney.conformal.group_limits import RowCategories, categories_of, raised_limits
from spinney.conformal.rules import (
    SET_METHODS,
    Floats,
    check_coverage,
    class_scores,
    largest_score,
    sets_within,
    smallest_and_largest_error,
)
from spinney.data.table import read_table

__all__ = [
    "MOST_ROWS",
    "HeldOut",
    "IntervalMixin",
    "IntervalsOnRequest",
    "MarginSets",
    "SetMixin",
    "SetsOnRequest",
    "check_method",
    "numbers_of",
    "read_calibration",
    "thinned",
]

MOST_ROWS = 20_000  # that are kept: the coverage they give is within a quarter of a point


@dataclass(frozen=True)
class HeldOut:
    """What a model says about rows that it did not learn from.

    Parameters
    ----------
    source : str
        Where the rows come from, in words: "rows out of the bag".
    truth : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Their targets; classes as codes.
    told : ndarray
        Predictions of the shape of `truth`; quantiles (n_rows, n_levels) with `quantiles`;
        probabilities (n_rows, n_classes) of a classifier.
    scale : ndarray of the shape of `truth`, or None
        How large an error is to be expected, row by row, in any unit.
    weights : ndarray of shape (n_rows,) or None
        What the rows count.
    quantiles : bool
        Whether `told` has quantiles, the lowest first.
    rows : ndarray of shape (n_rows,) or None
        Their places among the rows of fit, where these are known.
    categories : RowCategories or None
        Their categories, by which the limits of sets may differ.
    """

    source: str
    truth: NDArray[Any]
    told: NDArray[np.float64]
    scale: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    quantiles: bool = False
    rows: NDArray[np.intp] | None = None
    categories: RowCategories | None = None

    def take(self, chosen: Any) -> HeldOut:
        """Return some of the rows."""
        return replace(
            self,
            truth=self.truth[chosen],
            told=self.told[chosen],
            scale=None if self.scale is None else self.scale[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            rows=None if self.rows is None else self.rows[chosen],
            categories=None if self.categories is None else self.categories.take(chosen),
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.truth)

    def interval(self, told: Floats, scale: Any, coverage: float) -> Floats:
        """Return intervals around predictions of new rows, (…, 2).

        Parameters
        ----------
        told : ndarray
            What the model says about the rows: as `HeldOut.told`.
        scale : ndarray or None
            As `HeldOut.scale`.
        coverage : float
            Between 0 and 1.
        """
        if self.quantiles:
            # Conformalised quantiles (Romano, Patterson and Candès 2019).
            beyond = np.maximum(self.told[:, 0] - self.truth, self.truth - self.told[:, -1])
            more = largest_score(beyond, coverage, self.weights)
            ends = np.stack([told[:, 0] - more, told[:, -1] + more], axis=1)
            # Where the limit is below zero, an interval that was narrow has its ends exchanged.
            crossed = ends[:, 0] > ends[:, 1]
            ends[crossed] = ends[crossed].mean(axis=1, keepdims=True)
            return ends
        errors = np.asarray(self.truth - self.told, dtype=np.float64)
        if self.scale is not None:
            errors = errors / self.scale
        columns = errors.reshape(len(errors), math.prod(errors.shape[1:])).T  # of no rows, too
        limits = [smallest_and_largest_error(column, coverage, self.weights) for column in columns]
        flat = told.reshape(len(told), -1)
        width: Any = 1.0 if scale is None else scale.reshape(len(told), -1)
        low, high = np.array(limits).T
        ends = np.stack([flat + low * width, flat + high * width], axis=-1)
        return ends.reshape(*told.shape, 2)

    def limit(self, method: str, coverage: float, part: Any = 0.5) -> float:
        """Return the score that classes of a set may have at most."""
        return largest_score(self._own_scores(method, part), coverage, self.weights)

    def limits(
        self, method: str, coverage: float, asked: RowCategories | None, part: Any = 0.5
    ) -> Any:
        """Return the same for rows of these categories, (n_asked, 1); one limit if there are none.

        Where the limit of all would let a category down, that category has a higher one.
        """
        limit = self.limit(method, coverage, part)
        if asked is None or self.categories is None:
            return limit
        own = self._own_scores(method, part)
        return raised_limits(own, limit, coverage, self.weights, self.categories, asked)

    def _own_scores(self, method: str, part: Any) -> Floats:
        scores = class_scores(self.told, method, part)
        return np.asarray(scores[np.arange(len(self)), self.truth.astype(np.intp)])


def thinned(n_rows: int, most: int = MOST_ROWS) -> Any:
    """Return which of so many rows are kept: all, or some drawn by chance, always the same."""
    if n_rows <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def check_method(method: Any, known: tuple[str, ...]) -> str:
    """Return the method, or say which there are."""
    if not isinstance(method, str) or method not in known:
        raise ValueError(f"method: expected one of {', '.join(map(repr, known))}, got {method!r}")
    return method


def read_calibration(calibration: Any) -> tuple[Any, NDArray[Any]]:
    """Return rows that fit did not see, and their targets; or say what was expected."""
    if not isinstance(calibration, tuple | list) or len(calibration) != 2:
        raise ValueError(f"calibration: expected (X, y), got {type(calibration).__name__}")
    X, y = calibration
    truth = np.asarray(y)
    n_rows = _num_samples(X)
    if truth.ndim not in (1, 2) or len(truth) != n_rows:
        raise ValueError(
            f"calibration: expected a target for each of its {n_rows} rows, got y of shape "
            f"{truth.shape}"
        )
    if n_rows == 0:
        raise ValueError("calibration: expected at least 1 row, got none")
    return X, truth


def numbers_of(truth: NDArray[Any]) -> Floats:
    """Return targets of calibration rows as numbers, or say what was expected."""
    try:
        numbers = truth.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"calibration: expected numbers as its y: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError("calibration: its y contains NaN or infinity")
    return np.asarray(numbers)


def _reason(model: Any) -> str:
    """Return what a model adds about how rows are held out."""
    reason: str = model._why_none() if hasattr(model, "_why_none") else ""
    return reason


def _own_rows(model: Any) -> HeldOut:
    """Return the rows for an attribute, which is not there where there are none."""
    try:
        held: HeldOut = model._held_out_rows()
    except ValueError as error:
        raise AttributeError(str(error)) from error
    return held


class IntervalMixin:
    """`predict_interval` of a regressor that knows its errors on rows it did not learn from."""

    _holds_out_rows = True

    def _held_out_rows(self) -> HeldOut:
        """Return the rows, or raise a ValueError that says why there are none."""
        held = vars(self).get("_held_out")
        if held is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without rows to tell its errors from"
                f"{_reason(self)}; spinney.calibration.ConformalRegressor gives intervals to "
                "any regressor, as do rows that fit did not see, given as calibration=(X, y)"
            )
        return held  # type: ignore[no-any-return]

    def _held_on(self, calibration: Any) -> HeldOut:
        """Return what is said about rows that the caller has held out, (X, y)."""
        X, truth = read_calibration(calibration)
        told, scale = self._told_and_scale(X)
        quantiles = told.ndim > truth.ndim
        truth = numbers_of(truth)
        if not quantiles and truth.shape != told.shape:
            if truth.size != told.size:
                raise ValueError(
                    f"calibration: expected y of shape {told.shape}, got {truth.shape}"
                )
            truth = truth.reshape(told.shape)
        return HeldOut("rows of calibration", truth, told, scale, quantiles=quantiles)

    def _told_and_scale(self, X: Any) -> tuple[Floats, Any]:
        """Return predictions and the scale of their errors, as `HeldOut` has them."""
        return np.asarray(self.predict(X), dtype=np.float64), None  # type: ignore[attr-defined]

    def _clip(self, ends: Floats) -> Floats:
        """Cut off what no target can be."""
        return ends

    @property
    def interval_method_(self) -> str:
        """What intervals are made from, in words; of ``method="auto"``."""
        check_is_fitted(self)
        held = _own_rows(self)
        what = "conformalised quantiles" if held.quantiles else "conformal"
        return f"{what}, {len(held):,} {held.source}"

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Floats:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval. It is right
            over all rows like those of fit, not in each corner of them.
        method : {"auto", "conformal"}, default="auto"
            There is one: the errors on rows that fit held out tell how far an interval must
            reach, below and above. `interval_method_` says which rows these are.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their targets: their errors are taken instead. It is how
            a model that holds no rows out by itself gets intervals without a further fit; some
            hundred rows suffice.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_outputs, 2)
            Lower and upper ends; infinite where there are too few rows to tell.
        """
        coverage = check_coverage(coverage)
        check_method(method, ("auto", "conformal"))
        check_is_fitted(self)
        held = self._held_out_rows() if calibration is None else self._held_on(calibration)
        return self._clip(held.interval(*self._told_and_scale(X), coverage))


class IntervalsOnRequest(IntervalMixin):
    """Intervals of a regressor that holds out no rows by itself: they have to be given."""

    _holds_out_rows = False


class SetMixin:
    """`predict_set` of a classifier that knows its doubts about rows it did not learn from."""

    _holds_out_rows = True

    def _held_out_rows(self) -> HeldOut:
        """Return the rows, or raise a ValueError that says why there are none."""
        held = vars(self).get("_held_out")
        if held is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without rows to tell its errors from"
                f"{_reason(self)}; spinney.calibration.ConformalClassifier gives sets to any "
                "classifier with probabilities or margins, as do rows that fit did not see, given "
                "as calibration=(X, y)"
            )
        return held  # type: ignore[no-any-return]

    def _set_shares(self, X: Any) -> Floats:
        """Return what the scores of classes are made from: their probabilities."""
        shares = self.predict_proba(X)  # type: ignore[attr-defined]
        if isinstance(shares, list):
            raise ValueError("predict_set: expected a model of one output, got several")
        return np.asarray(shares, dtype=np.float64)

    def _categories_of(self, X: Any) -> RowCategories | None:
        """Return the categories of rows, if the model has columns of them."""
        schema = vars(self).get("_schema")
        if schema is None or not schema.has_categories:
            return None
        return categories_of(read_table(self, X, schema), schema)

    def _held_on(self, calibration: Any) -> HeldOut:
        """Return what is said about rows that the caller has held out, (X, y)."""
        X, truth = read_calibration(calibration)
        shares, classes = self._set_shares(X), np.asarray(self.classes_)  # type: ignore[attr-defined]
        truth = truth.ravel()
        if len(truth) != len(shares):
            raise ValueError("calibration: expected y with one class for each row")
        places = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([places.get(label, -1) for label in truth.tolist()], dtype=np.int32)
        if (codes < 0).any():
            new = truth.tolist()[codes.argmin()]
            raise ValueError(f"calibration: its y has {new!r}, which is not among the classes")
        return HeldOut("rows of calibration", codes, shares, categories=self._categories_of(X))

    @property
    def set_method_(self) -> str:
        """What sets are made from, in words; of ``method="auto"``."""
        check_is_fitted(self)
        held = _own_rows(self)
        more = "" if held.categories is None else ", more for categories that would fall short"
        return f"adaptive conformal sets (aps), {len(held):,} {held.source}{more}"

    def predict_set(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> NDArray[np.bool_]:
        """Predict a set of classes that holds the right one with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose class is to be in its set. No set is empty: where
            the likeliest class alone is right more often than that, so are the sets.
        method : {"auto", "aps", "lac", "raps"}, default="auto"
            "aps" (adaptive): classes from the likeliest on, until their probabilities add up to a
            limit. "lac": all classes of at least some probability, the smallest sets. "raps":
            "aps" that avoids long sets of unlikely classes. The limit is that of the rows that
            fit held out. "auto": "aps" with a higher limit for categories, of any column, that
            would otherwise miss three fifths more than was asked for.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their classes: the limit is theirs instead. It is how a
            model that holds no rows out by itself gets sets without a further fit; some hundred
            rows suffice.

        Returns
        -------
        ndarray of bool, of shape (n_rows, n_classes)
            Whether each class, in the order of ``classes_``, is in the set of the row.
        """
        coverage = check_coverage(coverage)
        check_method(method, ("auto", *SET_METHODS))
        check_is_fitted(self)
        held = self._held_out_rows() if calibration is None else self._held_on(calibration)
        chosen = "aps" if method == "auto" else method
        scores = class_scores(self._set_shares(X), chosen)
        raises = method == "auto" and held.categories is not None
        categories = self._categories_of(X) if raises else None
        return sets_within(scores, held.limits(chosen, coverage, categories))


class SetsOnRequest(SetMixin):
    """Sets of a classifier that holds out no rows by itself: they have to be given."""

    _holds_out_rows = False


class MarginSets(SetsOnRequest):
    """Sets of a classifier that knows margins and no probabilities."""

    def _set_shares(self, X: Any) -> Floats:
        # Any function of what the model says keeps the coverage: one that rises with the margin,
        # and does not reach 1, lets margins be told apart however large they are.
        margins = np.asarray(self.decision_function(X), dtype=np.float64)  # type: ignore[attr-defined]
        if margins.ndim == 1:
            margins = np.column_stack([-margins, margins])
        rising = 0.5 + 0.5 * margins / (1 + np.abs(margins))
        return np.asarray(rising / rising.sum(axis=1, keepdims=True))
