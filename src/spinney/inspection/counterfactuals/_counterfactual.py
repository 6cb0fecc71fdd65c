"""Counterfactuals: the nearest row with another prediction of a tree ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.data.table import schema_of
from spinney.export.tree_models import read_trees
from spinney.inspection._given_row import with_row
from spinney.inspection._tree_sums import StoredSum, read_tree_sum
from spinney.inspection.counterfactuals._leaf_boxes import LeafBoxes, find_cuts
from spinney.inspection.counterfactuals._nearest_flip import Goal, NearestFlip, Point
from spinney.inspection.table_view import TableView
from spinney.models import outcomes as _outcomes

__all__ = ["Counterfactual", "counterfactual"]

Floats = NDArray[np.float64]
_MOST_CANDIDATES = 20


@dataclass(frozen=True)
class Counterfactual:
    """A row near another one with a different prediction.

    Attributes
    ----------
    status : {"optimal", "found", "impossible", "unknown"}
        "optimal": no nearer row exists within the bounds. "found": nearer rows may exist, but none
        nearer than `lower_bound`. "impossible": no such row exists within the bounds. "unknown":
        no row was found within `max_boxes`, but one may exist.
    row : table of one row, or None
        The new row, of the same type as X.
    changes : dict of str to tuple
        The old and the new value of each changed column.
    cost : float
        The distance: the sum over the changed columns of the column's cost times the change, in
        median absolute deviations of the column; the change of a category is one.
    lower_bound : float
        A lower bound of the cost of any row with a wanted prediction.
    prediction : object
        The model's prediction for the new row.
    n_boxes : int
        The number of boxes that the search opened.
    """

    status: str
    row: Any
    changes: dict[str, tuple[Any, Any]]
    cost: float
    lower_bound: float
    prediction: Any
    n_boxes: int


def counterfactual(
    model: Any,
    x: Any,
    X: Any,
    *,
    target: Any = None,
    at_least: float | None = None,
    at_most: float | None = None,
    fixed: Any = (),
    bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
    costs: Mapping[Any, float] | None = None,
    max_boxes: int = 20_000,
) -> Counterfactual:
    """Find the smallest change of a row that changes a tree ensemble's prediction.

    Between the thresholds of its trees the model is constant, so there are finitely many cells to
    choose from. A branch-and-bound search examines them. The result is exact for a single tree or a
    small ensemble. For a large one it is the best row found within `max_boxes`, with a lower bound
    of the cost.

    Parameters
    ----------
    model : fitted Spinney tree, forest, bagging, booster or AdaBoost classifier
        The model; it must have one target.
    x : int, table of one row, array, dict or Series
        The number of a row of X, or a row: its values in the order of X's columns, or by name.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        Reference rows: they define scales (median absolute deviations), ranges, categories, and
        columns that hold only integers (these stay integers). Missing values of the row stay
        missing.
    target : object, default=None
        The wanted class. None: any class except the predicted one.
    at_least, at_most : float, default=None
        For a regressor: the wanted range of the prediction.
    fixed : list of str or int, default=()
        Columns that may not change, by name or number.
    bounds : dict of column to (low, high), default=None
        The range in which a numeric column may change; None at an end means the range of X. The
        range must contain the row's own value.
    costs : dict of column to float, default=None
        The cost of changing a column by its scale; 1 for columns that are not given.
    max_boxes : int, default=20_000
        The maximum number of boxes that the search opens.

    Returns
    -------
    Counterfactual
        The new row, and whether it is optimal.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.inspection import counterfactual
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> nearest = counterfactual(tree, 60, X, target=2)
    >>> nearest.status, int(nearest.prediction)
    ('optimal', 2)
    """
    check_is_fitted(model)
    if max_boxes < 1:
        raise ValueError(f"max_boxes: expected a positive number, got {max_boxes}")
    tree_sum = read_tree_sum(model)
    if tree_sum is None:
        raise ValueError(
            "model: expected a Spinney tree, forest, bagging, boosting or AdaBoost classifier with "
            f"one target, got {type(model).__name__}"
        )
    table, row, n_reference = with_row(X, x)
    view = TableView(table, model)
    problem = _Problem(
        model,
        tree_sum,
        view,
        n_reference=n_reference,
        row=row,
        fixed=fixed,
        bounds=bounds or {},
        costs=costs or {},
    )
    goals = problem.goals(target, at_least, at_most)
    found = [problem.search(goal, wanted, max_boxes) for goal, wanted in goals]
    best = min(found, key=lambda one: one.cost)
    bound = min(one.bound for one in found)
    n_boxes = sum(one.n_boxes for one in found)
    if best.point is None:
        status = "impossible" if np.isinf(bound) else "unknown"
        return Counterfactual(status, None, {}, np.inf, bound, None, n_boxes)
    status = "optimal" if bound >= best.cost else "found"
    new_row, changes = problem.make(best.point)
    prediction = np.asarray(model.predict(new_row)).reshape(-1)[0]
    return Counterfactual(status, new_row, changes, best.cost, bound, prediction, n_boxes)


class _Problem:
    """A row, its allowed changes and their costs.

    Parameters
    ----------
    model : estimator
        The model.
    tree_sum : StoredSum
        The model as a sum over trees.
    view : TableView
        The reference rows, and the row itself after them if it is not one of them.
    n_reference : int
        The number of reference rows.
    row : int
        The number of the row in the table.
    fixed, bounds, costs
        As in `counterfactual`.
    """

    def __init__(
        self,
        model: Any,
        tree_sum: StoredSum,
        view: TableView,
        *,
        n_reference: int,
        row: int,
        fixed: Any,
        bounds: Mapping[Any, Any],
        costs: Mapping[Any, float],
    ) -> None:
        self._model, self._view, self._row = model, view, row
        self._scores, self._outcome = read_trees(model)
        everything = list(range(view.n_columns))
        self._tree_values = tree_sum.values(view.make(None, {}), everything)
        self._reference = self._tree_values[
            :n_reference
        ]  # without the row, unless it is a row of X
        fixed_columns = {view.find(column, "fixed") for column in fixed}
        limits = {view.find(column, "bounds"): ends for column, ends in bounds.items()}
        for j in limits:
            if schema_of(model).categories[j] is not None:
                raise ValueError(
                    f"bounds: expected numeric columns, got {view.names[j]!r}, which holds "
                    "categories; use fixed for columns that may not change"
                )
        cost_factors = {view.find(column, "costs"): float(cost) for column, cost in costs.items()}
        wrong = [cost for cost in cost_factors.values() if not cost > 0]
        if wrong:
            raise ValueError(
                f"costs: expected positive numbers, got {wrong[0]:g}; use fixed for columns that "
                "may not change"
            )
        self.costs: dict[int, Floats] = {}
        self._settings: dict[int, Any] = {}  # for each option, its value for `TableView.make`
        cuts, categories = {}, {}
        for j in everything:
            if j in fixed_columns or np.isnan(self._tree_values[row, j]):
                continue
            cost_factor = cost_factors.get(j, 1.0)
            if schema_of(model).categories[j] is not None:
                categories[j] = len(schema_of(model).categories[j])
                self._set_categories(j, categories[j], cost_factor)
            else:
                cuts[j] = find_cuts(self._scores, j)
                self._set_numbers(j, cuts[j], cost_factor, limits.get(j, (None, None)))
        self.leaves = LeafBoxes(self._scores, self._tree_values[row], cuts, categories)

    def _set_categories(self, j: int, n: int, cost_factor: float) -> None:
        codes = self._reference[:, j]
        rows = np.full(n, -1)
        known = ~np.isnan(codes)
        rows[codes[known].astype(np.int64)] = np.flatnonzero(known)
        costs = np.where(rows >= 0, cost_factor, np.inf)  # only categories that occur in X
        costs[int(self._tree_values[self._row, j])] = 0.0
        self.costs[j], self._settings[j] = costs, rows

    def _set_numbers(self, j: int, cuts: Floats, cost_factor: float, ends: Any) -> None:
        values = self._reference[:, j]
        values = values[~np.isnan(values)]
        if len(values) == 0:  # no reference values: the row's own value is the range
            values = self._tree_values[self._row, j : j + 1]
        own = float(self._tree_values[self._row, j])
        low, high = float(values.min()), float(values.max())
        try:
            given_low, given_high = ends
        except (TypeError, ValueError):
            raise ValueError(f"bounds: expected (low, high), got {ends!r}") from None
        low = low if given_low is None else float(given_low)
        high = high if given_high is None else float(given_high)
        if not low <= high:
            raise ValueError(f"bounds: expected low <= high, got {ends!r}")
        inside = (given_low is None or own >= low) and (given_high is None or own <= high)
        if not inside:
            raise ValueError(
                f"bounds: expected an interval that contains the row's own value of column "
                f"{self._view.names[j]!r}, which is {own:g}, got {ends!r}"
            )
        if self._view.is_bool(j):  # only False and True are possible
            low, high = max(low, float(values.min())), min(high, float(values.max()))
        middle = np.median(values)
        scale = float(np.median(np.abs(values - middle)))
        scale = scale or float(np.mean(np.abs(values - middle))) or 1.0
        # Option k is the cell from just above a threshold up to the next one: (cut, next cut].
        lows = np.concatenate([[-np.inf], np.nextafter(cuts, np.inf)])
        highs = np.concatenate([cuts, [np.inf]])
        lows, highs = np.maximum(lows, low), np.minimum(highs, high)
        if np.array_equal(values, np.floor(values)):
            lows, highs = np.ceil(lows), np.floor(highs)
        options = np.clip(own, lows, np.maximum(lows, highs))
        costs = np.where(lows <= highs, cost_factor * np.abs(options - own) / scale, np.inf)
        # The row's own value is always allowed, even outside the range of X.
        unchanged = int(np.searchsorted(cuts, own))
        options[unchanged], costs[unchanged] = own, 0.0
        self.costs[j], self._settings[j] = costs, options

    def goals(self, target: Any, at_least: Any, at_most: Any) -> list[tuple[Goal, Any]]:
        """Return pairs (goal, test of a prediction), one for each wanted prediction."""
        if is_classifier(self._model):
            if at_least is not None or at_most is not None:
                raise ValueError(
                    "at_least, at_most: expected None for a classifier, got a number; use target "
                    "instead"
                )
            return self._class_goals(target)
        if target is not None:
            raise ValueError(f"target: expected None for a regressor, got {target!r}")
        if at_least is None and at_most is None:
            raise ValueError(
                "at_least, at_most: expected at least one of them for a regressor, got none"
            )
        for name, value in (("at_least", at_least), ("at_most", at_most)):
            if value is not None and (not isinstance(value, Real) or value != value):
                raise ValueError(f"{name}: expected a number, got {value!r}")
        if at_least is not None and at_most is not None and at_least > at_most:
            raise ValueError(f"at_least: expected at most at_most={at_most}, got {at_least}")
        factors, offsets = [], []
        for value, sign in ((at_least, 1.0), (at_most, -1.0)):
            if value is not None:
                factors.append(sign)
                offsets.append(-sign * self._score_for(float(value)))
        goal = Goal(np.array([factors]), np.array(offsets))

        def reached(predicted: Any) -> bool:
            return (at_least is None or predicted >= at_least) and (
                at_most is None or predicted <= at_most
            )

        return [(goal, reached)]

    def _score_for(self, value: float) -> float:
        """Return the score for which the model predicts this value."""
        if isinstance(self._outcome, _outcomes.Numbers):
            return value * self._outcome.divisor
        with np.errstate(divide="ignore", invalid="ignore"):
            score = logit(value) if isinstance(self._outcome, _outcomes.Logistic) else np.log(value)
        if np.isnan(score):
            raise ValueError(
                f"at_least, at_most: expected values that the model can predict, got {value}"
            )
        return float(score)

    def _class_goals(self, target: Any) -> list[tuple[Goal, Any]]:
        """Return one goal for each wanted class: its score must exceed all others."""
        classes = list(self._model.classes_)
        now = self._model.predict(self._view.make(np.array([self._row]), {}))[0]
        if target is not None and target not in classes:
            shown = ", ".join(repr(one) for one in np.asarray(classes)[:8].tolist())
            raise ValueError(f"target: expected a class of the model ({shown}), got {target!r}")
        wanted = [one for one in classes if one != now] if target is None else [target]
        if not wanted:
            raise ValueError("model: expected at least two classes, got one")
        goals = []
        for one in wanted:
            index = classes.index(one)
            if len(self._scores.start) == 1:  # one score, positive for the second class
                factors = np.array([[1.0 if index == 1 else -1.0]])
            else:
                others = [k for k in range(len(classes)) if k != index]
                factors = np.zeros((len(classes), len(others)))
                factors[index] = 1.0
                factors[others, np.arange(len(others))] = -1.0
            goals.append((Goal(factors, np.zeros(factors.shape[1])), _is(one)))
        return goals

    def search(self, goal: Goal, reached: Any, max_boxes: int) -> Any:
        """Find the cheapest point for one goal."""

        def confirm(point: Point) -> bool:
            return bool(
                reached(np.asarray(self._model.predict(self.make(point)[0])).reshape(-1)[0])
            )

        flip = NearestFlip(self.leaves, goal, self.costs, confirm)
        return flip.search(self._start(self._row), self._candidates(reached), max_boxes)

    def _start(self, row: int) -> Point:
        """Return the point of a row of the table."""
        numbers = [
            int(np.searchsorted(self.leaves._cuts[j], self._tree_values[row, j]))
            for j in self.leaves.numbers
        ]
        classes = {j: int(self._tree_values[row, j]) for j in self.leaves.classes}
        return np.array(numbers, dtype=np.int64), classes

    def _candidates(self, reached: Any) -> list[Point]:
        """Return points of rows of X with a wanted prediction, the nearest first."""
        predicted = np.asarray(self._model.predict(self._view.make(None, {}))).reshape(-1)
        columns = [*self.leaves.numbers, *self.leaves.classes]
        complete = ~np.isnan(self._reference[:, columns]).any(axis=1)
        rows = [i for i in np.flatnonzero(complete) if reached(predicted[i])]
        points = []
        for i in rows:
            point = self._start(int(i))
            options = [*zip(self.leaves.numbers, point[0], strict=True), *point[1].items()]
            cost = sum(self.costs[j][option] for j, option in options)
            if np.isfinite(cost):
                points.append((float(cost), int(i), point))
        points.sort(key=lambda one: one[:2])
        return [point for _, _, point in points[:_MOST_CANDIDATES]]

    def make(self, point: Point) -> tuple[Any, dict[str, tuple[Any, Any]]]:
        """Return the row of a point, and its changed values."""
        numbers, classes = point
        set_to: dict[int, NDArray[Any]] = {}
        changes: dict[str, tuple[Any, Any]] = {}
        for j, option in zip(self.leaves.numbers, numbers, strict=True):
            if self.costs[j][option] > 0:
                value, own = (
                    float(self._settings[j][option]),
                    float(self._tree_values[self._row, j]),
                )
                set_to[j] = np.array([value])
                if self._view.is_bool(j):
                    # Copying the value of another row keeps the column's type.
                    set_to[j] = np.flatnonzero(self._tree_values[:, j] == value)[:1]
                    own, value = bool(own), bool(value)
                changes[self._view.names[j]] = (own, value)
        for j, option in classes.items():
            if self.costs[j][option] > 0:
                values = schema_of(self._model).categories[j]
                set_to[j] = np.array([self._settings[j][option]])
                own = values[int(self._tree_values[self._row, j])]
                changes[self._view.names[j]] = (own, values[option])
        return self._view.make(np.array([self._row]), set_to), changes


def _is(wanted: Any) -> Any:
    return lambda predicted: predicted == wanted
