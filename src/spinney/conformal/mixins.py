"""Conformal intervals and prediction sets of fitted models, from held-out rows."""

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
from spinney.data.table import read_table, schema_of

__all__ = [
    "MOST_ROWS",
    "HeldOut",
    "IntervalMixin",
    "IntervalsOnRequest",
    "MarginSets",
    "SetMixin",
    "SetsOnRequest",
    "check_method",
    "find_held_out_rows",
    "numeric_targets",
    "predict_with_scale",
    "read_calibration",
    "subsample_rows",
]

MOST_ROWS = 20_000  # held-out rows to keep: they fix the coverage up to 0.25 percentage points


@dataclass(frozen=True)
class HeldOut:
    """Predictions and targets of held-out rows.

    Parameters
    ----------
    source : str
        The origin of the rows, for reports: "rows out of the bag".
    truth : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Their targets; classes as codes.
    predicted : ndarray
        Predictions of the shape of `truth`; quantiles (n_rows, n_levels) with `quantiles`;
        probabilities (n_rows, n_classes) of a classifier.
    scale : ndarray of the shape of `truth`, or None
        Expected size of the error of each row, in any unit.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    quantiles : bool
        Whether `predicted` has quantiles, the lowest first.
    rows : ndarray of shape (n_rows,) or None
        Their indexes among the training rows, or None if unknown.
    categories : RowCategories or None
        Their categories, on which the limits of prediction sets may depend.
    """

    source: str
    truth: NDArray[Any]
    predicted: NDArray[np.float64]
    scale: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    quantiles: bool = False
    rows: NDArray[np.intp] | None = None
    categories: RowCategories | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "told" in state:  # version 1 of model files and pickles; language: allow
            state = dict(state)
            state["predicted"] = state.pop("told")  # language: allow
        vars(self).update(state)

    def take(self, chosen: Any) -> HeldOut:
        """Return a selection of the rows."""
        return replace(
            self,
            truth=self.truth[chosen],
            predicted=self.predicted[chosen],
            scale=None if self.scale is None else self.scale[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            rows=None if self.rows is None else self.rows[chosen],
            categories=None if self.categories is None else self.categories.take(chosen),
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.truth)

    def interval(self, predicted: Floats, scale: Any, coverage: float) -> Floats:
        """Return intervals around predictions of new rows, (…, 2).

        Parameters
        ----------
        predicted : ndarray
            The model's predictions of the new rows, in the form of `HeldOut.predicted`.
        scale : ndarray or None
            Expected sizes of their errors, in the unit of `HeldOut.scale`.
        coverage : float
            The requested coverage, between 0 and 1.
        """
        if self.quantiles:
            # Conformalized quantile regression (Romano, Patterson and Candès 2019).
            beyond = np.maximum(
                self.predicted[:, 0] - self.truth, self.truth - self.predicted[:, -1]
            )
            more = largest_score(beyond, coverage, self.weights)
            ends = np.stack([predicted[:, 0] - more, predicted[:, -1] + more], axis=1)
            # A negative limit exchanges the ends of narrow intervals: replace both by their middle.
            crossed = ends[:, 0] > ends[:, 1]
            ends[crossed] = ends[crossed].mean(axis=1, keepdims=True)
            return ends
        errors = np.asarray(self.truth - self.predicted, dtype=np.float64)
        if self.scale is not None:
            errors = errors / self.scale
        # reshape(len(errors), -1) would fail for zero rows.
        columns = errors.reshape(len(errors), math.prod(errors.shape[1:])).T
        limits = [smallest_and_largest_error(column, coverage, self.weights) for column in columns]
        flat = predicted.reshape(len(predicted), -1)
        width: Any = 1.0 if scale is None else scale.reshape(len(predicted), -1)
        low, high = np.array(limits).T
        ends = np.stack([flat + low * width, flat + high * width], axis=-1)
        return ends.reshape(*predicted.shape, 2)

    def limit(self, method: str, coverage: float, own_share: Any = 0.5) -> float:
        """Return the largest score that a class of a prediction set may have."""
        return largest_score(self._own_scores(method, own_share), coverage, self.weights)

    def limits(
        self,
        method: str,
        coverage: float,
        categories: RowCategories | None,
        own_share: Any = 0.5,
    ) -> Any:
        """Return the limits of new rows by category, (n_new, 1), or one limit without any.

        Categories whose coverage the common limit leaves too low have a higher limit.
        """
        limit = self.limit(method, coverage, own_share)
        if categories is None or self.categories is None:
            return limit
        own = self._own_scores(method, own_share)
        return raised_limits(
            own, limit, coverage, weights=self.weights, held=self.categories, new=categories
        )

    def _own_scores(self, method: str, own_share: Any) -> Floats:
        scores = class_scores(self.predicted, method, own_share)
        return np.asarray(scores[np.arange(len(self)), self.truth.astype(np.intp)])


def subsample_rows(n_rows: int, most: int = MOST_ROWS) -> Any:
    """Return an index of all rows, or of a sample of `most` (with a fixed seed)."""
    if n_rows <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def check_method(method: Any, known: tuple[str, ...]) -> str:
    """Return the method, or raise a ValueError that lists the known ones."""
    if not isinstance(method, str) or method not in known:
        raise ValueError(f"method: expected one of {', '.join(map(repr, known))}, got {method!r}")
    return method


def read_calibration(calibration: Any) -> tuple[Any, NDArray[Any]]:
    """Return the rows and targets of a calibration set; raise a ValueError if invalid."""
    if not isinstance(calibration, tuple | list) or len(calibration) != 2:
        raise ValueError(f"calibration: expected (X, y), got {type(calibration).__name__}")
    X, y = calibration
    truth = np.asarray(y)
    n_rows = _num_samples(X)
    if truth.ndim not in (1, 2) or len(truth) != n_rows:
        raise ValueError(
            f"calibration: expected one target for each of its {n_rows} rows; got y of shape "
            f"{truth.shape}"
        )
    if n_rows == 0:
        raise ValueError("calibration: expected at least 1 row, got none")
    return X, truth


def numeric_targets(truth: NDArray[Any]) -> Floats:
    """Return calibration targets as floats, or raise a ValueError if they are invalid."""
    try:
        numbers = truth.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"calibration: y must be numeric: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError("calibration: y contains NaN or infinity")
    return np.asarray(numbers)


def _reason(model: Any) -> str:
    """Return the model's own explanation of why it held out no rows, or ''."""
    # Not a default of the mixins: these precede the base classes that define the method.
    reason = getattr(model, "_reason_without_rows", None)
    return "" if reason is None else str(reason())


def find_held_out_rows(model: Any) -> HeldOut | None:
    """Return the rows that a fitted model held out by itself, or None."""
    find = getattr(model, "_held_out_rows", None)
    if find is None:
        return None
    try:
        held: HeldOut = find()
    except ValueError:
        return None
    return held


def predict_with_scale(model: IntervalMixin, X: Any) -> tuple[Floats, Any]:
    """Return predictions and their expected errors, in the form of `HeldOut`."""
    return model._predict_with_scale(X)


def _own_rows(model: Any) -> HeldOut:
    """Return the held-out rows, or raise an AttributeError, as properties must."""
    try:
        held: HeldOut = model._held_out_rows()
    except ValueError as error:
        raise AttributeError(str(error)) from error
    return held


class IntervalMixin:
    """`predict_interval` of a regressor that keeps its errors on held-out rows."""

    _holds_out_rows = True

    def _held_out_rows(self) -> HeldOut:
        """Return the held-out rows, or raise a ValueError that explains why not."""
        held = vars(self).get("_held_out")
        if held is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without held-out rows to estimate its errors"
                f"{_reason(self)}; use spinney.calibration.ConformalRegressor, which adds "
                "intervals to any regressor, or pass held-out rows as calibration=(X, y)"
            )
        return held  # type: ignore[no-any-return]

    def _held_on(self, calibration: Any) -> HeldOut:
        """Predict the rows of the caller's calibration set, (X, y)."""
        X, truth = read_calibration(calibration)
        predicted, scale = self._predict_with_scale(X)
        quantiles = predicted.ndim > truth.ndim
        truth = numeric_targets(truth)
        if not quantiles and truth.shape != predicted.shape:
            if truth.size != predicted.size:
                raise ValueError(
                    f"calibration: expected y of shape {predicted.shape}, got {truth.shape}"
                )
            truth = truth.reshape(predicted.shape)
        return HeldOut("calibration rows", truth, predicted, scale, quantiles=quantiles)

    def _predict_with_scale(self, X: Any) -> tuple[Floats, Any]:
        """Return predictions and their expected errors, in the form of `HeldOut`."""
        return np.asarray(self.predict(X), dtype=np.float64), None  # type: ignore[attr-defined]

    def _clip(self, ends: Floats) -> Floats:
        """Clip interval ends to the range of possible targets."""
        return ends

    @property
    def interval_method_(self) -> str:
        """Description of how ``method="auto"`` makes intervals, and from which rows."""
        check_is_fitted(self)
        held = _own_rows(self)
        kind = "conformalised quantiles" if held.quantiles else "conformal"
        return f"{kind}, {len(held):,} {held.source}"

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Floats:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval. It holds on
            average over rows distributed like the training rows, not for every subgroup of them.
        method : {"auto", "conformal"}, default="auto"
            Both are the same: the errors on rows that fit held out determine how far an interval
            reaches below and above the prediction. `interval_method_` names these rows.
        calibration : tuple (X, y), default=None
            Held-out rows and their targets, whose errors are used instead. A model that holds out
            no rows by itself gets intervals this way without a further fit; a few hundred rows
            suffice.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_outputs, 2)
            Lower and upper ends; infinite if there are too few held-out rows.
        """
        coverage = check_coverage(coverage)
        check_method(method, ("auto", "conformal"))
        check_is_fitted(self)
        held = self._held_out_rows() if calibration is None else self._held_on(calibration)
        return self._clip(held.interval(*self._predict_with_scale(X), coverage))


class IntervalsOnRequest(IntervalMixin):
    """Intervals of a regressor that holds out no rows: `calibration` is required."""

    _holds_out_rows = False


class SetMixin:
    """`predict_set` of a classifier that keeps its probabilities for held-out rows."""

    _holds_out_rows = True

    def _held_out_rows(self) -> HeldOut:
        """Return the held-out rows, or raise a ValueError that explains why not."""
        held = vars(self).get("_held_out")
        if held is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without held-out rows to estimate its errors"
                f"{_reason(self)}; use spinney.calibration.ConformalClassifier, which adds "
                "prediction sets to any classifier with probabilities or margins, or pass "
                "held-out rows as calibration=(X, y)"
            )
        return held  # type: ignore[no-any-return]

    def _set_shares(self, X: Any) -> Floats:
        """Return the probabilities from which the scores of classes are computed."""
        shares = self.predict_proba(X)  # type: ignore[attr-defined]
        if isinstance(shares, list):
            raise ValueError("predict_set: expected a model with one output; got several outputs")
        return np.asarray(shares, dtype=np.float64)

    def _categories_of(self, X: Any) -> RowCategories | None:
        """Return the categories of rows, or None without categorical columns."""
        schema = schema_of(self)
        if schema is None or not schema.has_categories:
            return None
        return categories_of(read_table(self, X, schema), schema)

    def _held_on(self, calibration: Any) -> HeldOut:
        """Predict the rows of the caller's calibration set, (X, y)."""
        X, truth = read_calibration(calibration)
        shares, classes = self._set_shares(X), np.asarray(self.classes_)  # type: ignore[attr-defined]
        truth = truth.ravel()
        if len(truth) != len(shares):
            raise ValueError(
                f"calibration: expected one class for each of its {len(shares)} rows; got "
                f"{len(truth)}"
            )
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([code_of.get(label, -1) for label in truth.tolist()], dtype=np.int32)
        if (codes < 0).any():
            unknown = truth.tolist()[codes.argmin()]
            raise ValueError(f"calibration: y has class {unknown!r}, which was not in training")
        return HeldOut("calibration rows", codes, shares, categories=self._categories_of(X))

    @property
    def set_method_(self) -> str:
        """Description of how ``method="auto"`` makes prediction sets, and from which rows."""
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
            Share of rows, between 0 and 1, whose class is to be in its set. Sets are never empty:
            if the most probable class is right more often than that, the coverage is higher.
        method : {"auto", "aps", "lac", "raps"}, default="auto"
            "aps" (adaptive): classes from the most probable on, until their probabilities add up
            to a limit. "lac": all classes of at least some probability, the smallest sets. "raps":
            "aps" with a penalty on large sets of improbable classes. The limit comes from the rows
            that fit held out. "auto": "aps" with a higher limit for categories, of any column,
            whose share of missed rows would otherwise exceed 1.6 times the requested one.
        calibration : tuple (X, y), default=None
            Held-out rows and their classes, from which the limit is computed instead. A model that
            holds out no rows by itself gets prediction sets this way without a further fit; a few
            hundred rows suffice.

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
        by_category = method == "auto" and held.categories is not None
        categories = self._categories_of(X) if by_category else None
        return sets_within(scores, held.limits(chosen, coverage, categories))


class SetsOnRequest(SetMixin):
    """Sets of a classifier that holds out no rows: `calibration` is required."""

    _holds_out_rows = False


class MarginSets(SetsOnRequest):
    """Prediction sets of a classifier that has margins instead of probabilities."""

    def _set_shares(self, X: Any) -> Floats:
        # The coverage holds for any function of the margins. This one is strictly increasing and
        # stays below 1, so that large margins remain distinct.
        margins = np.asarray(self.decision_function(X), dtype=np.float64)  # type: ignore[attr-defined]
        if margins.ndim == 1:
            margins = np.column_stack([-margins, margins])
        rising = 0.5 + 0.5 * margins / (1 + np.abs(margins))
        return np.asarray(rising / rising.sum(axis=1, keepdims=True))
