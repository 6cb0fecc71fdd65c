"""Conformal prediction sets for any classifier with probabilities or margins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from spinney.calibration._wrapper import Wrapper, fit_on, group_codes
from spinney.calibration.probabilities import (
    all_classes,
    columns_of,
    fold_shares,
    held_out_shares,
    read_classes,
    unit_of_margins,
)
from spinney.conformal.group_limits import categories_of
from spinney.conformal.mixins import HeldOut
from spinney.conformal.rules import SET_METHODS, Floats, check_coverage, class_scores, sets_within
from spinney.data.sklearn_versions import safe_indexing
from spinney.data.table import Schema, check_rows, read_categories

__all__ = ["ConformalClassifier"]

_METHODS = ("auto", "split", "cross", "oob")


def _has_probabilities(wrapper: Any) -> bool:
    return hasattr(vars(wrapper).get("estimator_", wrapper._model()), "predict_proba")


class ConformalClassifier(ClassifierMixin, Wrapper):  # type: ignore[misc]
    """Conformal prediction sets with the requested coverage, for any classifier.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier with `predict_proba`, or with the margins of a `decision_function`, Spinney's
        or scikit-learn's; None is a `GradientBoostingClassifier`.
    sets : {"aps", "lac", "raps"}, default="aps"
        The rule that selects the classes of a set. "aps": classes from the most probable on, until
        their probabilities add up to a limit, so that uncertain rows get more classes. "lac": all
        classes of at least some probability, the smallest sets. "raps": "aps" with a penalty on
        large sets.
    method : {"auto", "split", "cross", "oob"}, default="auto"
        The calibration rows, from which the limit is computed. "split": some rows are held out.
        "cross": all rows, with out-of-fold probabilities. "oob": the rows that the model held out
        by itself (out of the bag, or for early stopping), without a further fit. "auto" is "oob"
        if the model holds rows out, else "cross".
    cv : int, splitter or iterable, default=5
        Folds of "cross".
    test_size : float or int, default=0.25
        Number or share of the rows that "split" holds out.
    groups : str, int or None, default="auto"
        "auto": in a frame with categorical columns, categories get a higher limit if their share
        of missed rows would otherwise exceed 1.6 times the requested one. The name or index of
        one column: each of its categories gets a limit from its own rows, and so the requested
        coverage. Unknown categories, and those with too few rows, get the common limit. None: one
        limit for all rows.
    randomize : bool, default=False
        Whether "aps" and "raps" add a random share of a class's own probability instead of half
        of it. The coverage is then exact even if many probabilities are tied, but the sets differ
        from call to call unless `random_state` is an integer.
    random_state : int, RandomState instance or None, default=None
        Seed of the partition of the rows, and of the shares with `randomize`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model: on all rows, or with "split" on the training rows.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    method_ : str
        The method that was used.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of str
        Their names, if X had names that are all strings.

    References
    ----------
    Romano, Sesia, Candès, "Classification with valid and adaptive coverage", 2020. Angelopoulos,
    Bates, Malik, Jordan, "Uncertainty sets for image classifiers using conformal prediction", 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from spinney.calibration import ConformalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[::2], y[::2])
    >>> sets = model.predict_set(X[1::2], coverage=0.95)
    >>> sets.shape, model.method_
    ((75, 3), 'cross')
    >>> bool(sets[range(75), y[1::2]].mean() > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        sets: str = "aps",
        method: str = "auto",
        cv: Any = 5,
        test_size: Any = 0.25,
        groups: Any = "auto",
        randomize: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.sets = sets
        self.method = method
        self.cv = cv
        self.test_size = test_size
        self.groups = groups
        self.randomize = randomize
        self.random_state = random_state

    def _model(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Imported late, as only the default estimator needs it.
        from spinney.ensemble import GradientBoostingClassifier

        return GradientBoostingClassifier(random_state=0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConformalClassifier:
        """Fit the model, and predict held-out rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, for the model and for the coverage.

        Returns
        -------
        ConformalClassifier
            Itself.
        """
        self._check_method(_METHODS)
        if not isinstance(self.sets, str) or self.sets not in SET_METHODS:
            names = ", ".join(map(repr, SET_METHODS))
            raise ValueError(f"sets: expected one of {names}, got {self.sets!r}")
        y_all = y
        X, y, weights = self._read(X, y, sample_weight)
        y, self._known, codes = read_classes(self, y)
        self.classes_ = all_classes(self, y_all, y, self._known)
        if self.method == "split":
            train, held = self._split(X, y)
            self.estimator_ = fit_on(self._model(), X, y, weights, train)
            rows = safe_indexing(X, held)
            self._unit = unit_of_margins(self.estimator_, rows)
            shares = held_out_shares(self.estimator_, rows, self._known, self._unit)
            own = None if weights is None else weights[held]
            self._held_out = HeldOut(
                "rows that were set aside", codes[held], shares, weights=own, rows=held
            )
            self.method_ = "split"
        else:
            self._hold_out(X, y, codes, weights)
        self._known_groups = self._codes = None
        self._schema: Schema | None = None
        own = None  # replaces the categories that the model itself stores: `groups` decides
        if self._column() is not None:
            all_codes, self._known_groups = group_codes(X, self.groups)
            self._codes = all_codes[self._held_out.rows]
        elif self.groups is not None and self._held_out.rows is not None:
            table, self._schema = read_categories(X)
            own = categories_of(table.take(self._held_out.rows), self._schema)
        self._held_out = replace(self._held_out, categories=own)
        return self

    def _column(self) -> Any:
        """Return the column that `groups` names, or None for "auto" and None."""
        return None if isinstance(self.groups, str) and self.groups == "auto" else self.groups

    def _hold_out(self, X: Any, y: Any, codes: Any, weights: Any) -> None:
        self.estimator_, held = self._own_rows(X, y, weights)
        self._unit = unit_of_margins(self.estimator_, X)
        usable = held is not None and (self._column() is None or held.rows is not None)
        if held is not None and usable and self.method != "cross":
            self._held_out, self.method_ = held, "oob"
            return
        if self.method == "oob":
            raise ValueError(
                f"method='oob': {type(self.estimator_).__name__} holds out no rows by itself"
            )
        shares = self._fold_shares(X, y, weights, self._known)
        self._held_out = HeldOut(
            "rows of folds", codes, shares, weights=weights, rows=np.arange(len(y))
        )
        self.method_ = "cross"

    def _fold_shares(self, X: Any, y: Any, weights: Any, classes: Any) -> Floats:
        folds = self._folds(X, y)
        return fold_shares(
            self._model(), X, y, weights=weights, classes=classes, folds=folds, unit=self._unit
        )

    @property
    def set_method_(self) -> str:
        """Description of how prediction sets are made, and from which rows."""
        check_is_fitted(self)
        held = self._held_out
        within = "" if self._column() is None else f", within {self.groups!r}"
        if held.categories is not None:
            within = ", more for categories that would fall short"
        return f"conformal sets ({self.sets}), {len(held):,} {held.source}{within}"

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Predict class probabilities with the model inside.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Its probabilities, as they are.
        """
        shares, known = self._shares(X)
        return np.asarray(columns_of(self.classes_, shares, known))

    def _shares(self, X: Any) -> tuple[Floats, Any]:
        """Return probabilities of the classes with weighted rows, and these classes."""
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        unit = vars(self).get("_unit", 1.0)
        known = vars(self).get("_known", self.classes_)
        return held_out_shares(self.estimator_, X, known, unit), known

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Predict a set of classes that holds the right one with the given probability.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose class is to be in its set. Sets are never empty:
            if the most probable class is right more often than that, the coverage is higher.

        Returns
        -------
        ndarray of bool, of shape (n_rows, n_classes)
            Whether each class, in the order of `classes_`, is in the set of the row.
        """
        coverage = check_coverage(coverage)
        shares, known = self._shares(X)
        held = self._held_out
        part: Any = 0.5
        new_share: Any = 0.5
        if self.randomize:
            random = check_random_state(self.random_state)
            part = random.uniform(size=(len(held), 1))
            new_share = random.uniform(size=(len(shares), 1))
        schema = vars(self).get("_schema")
        new_categories = None
        if held.categories is not None and schema is not None:
            new_categories = categories_of(read_categories(X, schema)[0], schema)
        limits = np.full((len(shares), 1), held.limits(self.sets, coverage, new_categories, part))
        if self._codes is not None:
            codes, _ = group_codes(X, self.groups, self._known_groups)
            for code in np.unique(codes[codes >= 0]):
                in_category = self._codes == code
                own = part[in_category] if self.randomize else part
                limit = held.take(in_category).limit(self.sets, coverage, own)
                if limit < np.inf:  # minus infinity if the most probable class alone suffices
                    limits[codes == code] = limit
        sets = sets_within(class_scores(shares, self.sets, new_share), limits)
        return np.asarray(columns_of(self.classes_, sets, known))
