"""Counterfactuals: the nearest row about which an ensemble of trees says something else."""

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

from spinney.export.tree_models import read_trees
from spinney.inspection._given_row import with_row
from spinney.inspection._tree_sums import TreeSum, read_tree_sum
from spinney.inspection.counterfactuals._leaf_boxes import LeafBoxes, find_cuts
from spinney.inspection.counterfactuals._nearest_flip import Goal, NearestFlip, Point
from spinney.inspection.table_view import TableView
from spinney.models import form as _form

__all__ = ["Counterfactual", "counterfactual"]

Floats = NDArray[np.float64]
_MOST_CANDIDATES = 20


@dataclass(frozen=True)
class Counterfactual:
    """A row near another one, about which the model says something else.

    Attributes
    ----------
    status : {"optimal", "found", "impossible", "unknown"}
        "optimal": no nearer row exists within the bounds. "found": a row, and nearer ones may
        exist, but none nearer than `lower_bound`. "impossible": there is none within the bounds.
        "unknown": none was found, and none was ruled out.
    row : table of one row, or None
        The new row, of the kind of X.
    changes : dict of str to tuple
        For each column that changed its old and its new value.
    cost : float
        The distance: over the changed columns the sum of the cost times the change, in median
        absolute deviations of the column; a change of a category counts one.
    lower_bound : float
        No row that does it costs less.
    prediction : object
        What the model says about the new row.
    n_boxes : int
        How many boxes were opened.
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
    """Find the least change of a row that changes what a tree or an ensemble of trees says.

    Between the thresholds of its trees the model is constant, so there are finitely many cells to
    choose from. They are searched by branch and bound: the answer of a single tree or a small
    ensemble is exact, that of a large one is the best found within `max_boxes`, with a bound of how
    much better another could be.

    Parameters
    ----------
    model : fitted tree, forest, bagging, booster or AdaBoost classifier of Spinney's
        The model, of one target.
    x : int, table of one row, array, dict or Series
        The number of a row of X, or a row: its values in the order of X's columns, or by name.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        Rows that say what is usual: scales (median absolute deviations), ranges, which columns hold
        whole numbers alone (they stay whole), categories. Values that are missing in the row stay.
    target : object, default=None
        The class that is wanted. None: any other than the model's answer.
    at_least, at_most : float, default=None
        For a regressor: where the prediction shall be.
    fixed : list of str or int, default=()
        Columns that may not change, by name or number.
    bounds : dict of column to (low, high), default=None
        Where a column of numbers may go, None for no bound of its own, which leaves the range of X.
        The row's own value has to lie there.
    costs : dict of column to float, default=None
        What a change of a column by its scale costs; one if it is not told.
    max_boxes : int, default=20_000
        How long to search.

    Returns
    -------
    Counterfactual
        The new row, and whether it is the nearest one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.inspection import counterfactual
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> told = counterfactual(tree, 60, X, target=2)
    >>> told.status, int(told.prediction)
    ('optimal', 2)
    """
    check_is_fitted(model)
    if max_boxes < 1:
        raise ValueError(f"max_boxes: expected a positive number, got {max_boxes}")
    tree_sum = read_tree_sum(model)
    if tree_sum is None:
        raise ValueError(
            "model: expected a tree, a forest, bagging, boosting or AdaBoost's classifier of "
            f"Spinney's, with one target, got {type(model).__name__}"
        )
    table, row, n_usual = with_row(X, x)
    view = TableView(table, model)
    task = _Task(model, tree_sum, view, n_usual, row, fixed, bounds or {}, costs or {})
    goals = task.goals(target, at_least, at_most)
    found = [task.search(goal, wanted, max_boxes) for goal, wanted in goals]
    best = min(found, key=lambda one: one.cost)
    bound = min(one.bound for one in found)
    n_boxes = sum(one.n_boxes for one in found)
    if best.point is None:
        status = "impossible" if np.isinf(bound) else "unknown"
        return Counterfactual(status, None, {}, np.inf, bound, None, n_boxes)
    status = "optimal" if bound >= best.cost else "found"
    made, changes = task.make(best.point)
    prediction = np.asarray(model.predict(made)).reshape(-1)[0]
    return Counterfactual(status, made, changes, best.cost, bound, prediction, n_boxes)


class _Task:
    """A row, what it may become, and what that costs."""

    def __init__(
        self,
        model: Any,
        tree_sum: TreeSum,
        view: TableView,
        n_usual: int,
        row: int,
        fixed: Any,
        bounds: Mapping[Any, Any],
        costs: Mapping[Any, float],
    ) -> None:
        self._model, self._view, self._row = model, view, row
        self._scores, self._outcome = read_trees(model)
        everything = list(range(view.n_columns))
        self._seen = tree_sum.values(view.make(None, {}), everything)
        self._usual = self._seen[:n_usual]  # without a row that was given beside them
        still = {view.find(column, "fixed") for column in fixed}
        limits = {view.find(column, "bounds"): ends for column, ends in bounds.items()}
        for j in limits:
            if model._schema.categories[j] is not None:
                raise ValueError(
                    f"bounds: expected columns of numbers, got {view.names[j]!r}, which holds "
                    "categories; columns that may not change are named in fixed"
                )
        prices = {view.find(column, "costs"): float(cost) for column, cost in costs.items()}
        if any(not cost > 0 for cost in prices.values()):
            raise ValueError("costs: expected positive numbers; name columns that stay in fixed")
        self.costs: dict[int, Floats] = {}
        self._places: dict[int, Any] = {}  # what `TableView.make` takes for each option
        cuts, categories = {}, {}
        for j in everything:
            if j in still or np.isnan(self._seen[row, j]):
                continue
            price = prices.get(j, 1.0)
            if model._schema.categories[j] is not None:
                categories[j] = len(model._schema.categories[j])
                self._set_categories(j, categories[j], price)
            else:
                cuts[j] = find_cuts(self._scores, j)
                self._set_numbers(j, cuts[j], price, limits.get(j, (None, None)))
        self.leaves = LeafBoxes(self._scores, self._seen[row], cuts, categories)

    def _set_categories(self, j: int, n: int, price: float) -> None:
        codes = self._usual[:, j]
        rows = np.full(n, -1)
        known = ~np.isnan(codes)
        rows[codes[known].astype(np.int64)] = np.flatnonzero(known)
        costs = np.where(rows >= 0, price, np.inf)  # categories that X has
        costs[int(self._seen[self._row, j])] = 0.0
        self.costs[j], self._places[j] = costs, rows

    def _set_numbers(self, j: int, cuts: Floats, price: float, ends: Any) -> None:
        values = self._usual[:, j]
        values = values[~np.isnan(values)]
        if len(values) == 0:  # nothing is usual: the value stays
            values = self._seen[self._row, j : j + 1]
        own = float(self._seen[self._row, j])
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
                f"bounds: expected an interval that holds the row's own value of column "
                f"{self._view.names[j]!r}, which is {own:g}, got {ends!r}"
            )
        if self._view.is_bool(j):  # nothing lies beyond True and False
            low, high = max(low, float(values.min())), min(high, float(values.max()))
        middle = np.median(values)
        scale = float(np.median(np.abs(values - middle)))
        scale = scale or float(np.mean(np.abs(values - middle))) or 1.0
        # The cell of option k reaches from just above one threshold to the next one.
        lows = np.concatenate([[-np.inf], np.nextafter(cuts, np.inf)])
        highs = np.concatenate([cuts, [np.inf]])
        lows, highs = np.maximum(lows, low), np.minimum(highs, high)
        if np.array_equal(values, np.floor(values)):
            lows, highs = np.ceil(lows), np.floor(highs)
        # As it is, the row may stay, even beyond what is usual.
        places = np.clip(own, lows, np.maximum(lows, highs))
        costs = np.where(lows <= highs, price * np.abs(places - own) / scale, np.inf)
        stays = int(np.searchsorted(cuts, own))
        places[stays], costs[stays] = own, 0.0
        self.costs[j], self._places[j] = costs, places

    def goals(self, target: Any, at_least: Any, at_most: Any) -> list[tuple[Goal, Any]]:
        """Return margins that must be positive, one set for each answer that would do."""
        if is_classifier(self._model):
            if at_least is not None or at_most is not None:
                raise ValueError("at_least, at_most: expected None for a classifier; see target")
            return self._class_goals(target)
        if target is not None:
            raise ValueError(f"target: expected None for a regressor, got {target!r}")
        if at_least is None and at_most is None:
            raise ValueError("at_least, at_most: expected at least one of them, got none")
        for name, value in (("at_least", at_least), ("at_most", at_most)):
            if value is not None and (not isinstance(value, Real) or value != value):
                raise ValueError(f"{name}: expected a number, got {value!r}")
        if at_least is not None and at_most is not None and at_least > at_most:
            raise ValueError(f"at_least: expected up to at_most={at_most}, got {at_least}")
        factors, offsets = [], []
        for value, sign in ((at_least, 1.0), (at_most, -1.0)):
            if value is not None:
                factors.append(sign)
                offsets.append(-sign * self._score_of(float(value)))
        goal = Goal(np.array([factors]), np.array(offsets))

        def reached(told: Any) -> bool:
            return (at_least is None or told >= at_least) and (at_most is None or told <= at_most)

        return [(goal, reached)]

    def _score_of(self, value: float) -> float:
        """Return the score at which the prediction is this value."""
        if isinstance(self._outcome, _form.Numbers):
            return value * self._outcome.divisor
        with np.errstate(divide="ignore", invalid="ignore"):
            score = logit(value) if isinstance(self._outcome, _form.Logistic) else np.log(value)
        if np.isnan(score):
            raise ValueError(f"at_least, at_most: expected values of predictions, got {value}")
        return float(score)

    def _class_goals(self, target: Any) -> list[tuple[Goal, Any]]:
        classes = list(self._model.classes_)
        now = self._model.predict(self._view.make(np.array([self._row]), {}))[0]
        if target is not None and target not in classes:
            shown = ", ".join(repr(one) for one in np.asarray(classes)[:8].tolist())
            raise ValueError(f"target: expected a class of the model ({shown}), got {target!r}")
        wanted = [one for one in classes if one != now] if target is None else [target]
        if not wanted:
            raise ValueError("model: expected two classes or more, got one")
        goals = []
        for one in wanted:
            place = classes.index(one)
            if len(self._scores.start) == 1:  # one score, positive for the second class
                factors = np.array([[1.0 if place == 1 else -1.0]])
            else:
                others = [k for k in range(len(classes)) if k != place]
                factors = np.zeros((len(classes), len(others)))
                factors[place] = 1.0
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
        numbers = [
            int(np.searchsorted(self.leaves._cuts[j], self._seen[row, j]))
            for j in self.leaves.numbers
        ]
        classes = {j: int(self._seen[row, j]) for j in self.leaves.classes}
        return np.array(numbers, dtype=np.int64), classes

    def _candidates(self, reached: Any) -> list[Point]:
        """Return points of rows of X that have the wanted answer, the nearest ones first."""
        told = np.asarray(self._model.predict(self._view.make(None, {}))).reshape(-1)
        columns = [*self.leaves.numbers, *self.leaves.classes]
        free = ~np.isnan(self._usual[:, columns]).any(axis=1)
        rows = [i for i in np.flatnonzero(free) if reached(told[i])]
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
        """Return the row that a point stands for, and what is changed."""
        numbers, classes = point
        set_to: dict[int, NDArray[Any]] = {}
        changes: dict[str, tuple[Any, Any]] = {}
        for j, option in zip(self.leaves.numbers, numbers, strict=True):
            if self.costs[j][option] > 0:
                value, own = float(self._places[j][option]), float(self._seen[self._row, j])
                set_to[j] = np.array([value])
                if self._view.is_bool(j):
                    # Another row's value keeps the column's type; ranges are those of X's rows.
                    set_to[j] = np.flatnonzero(self._seen[:, j] == value)[:1]
                    own, value = bool(own), bool(value)
                changes[self._view.names[j]] = (own, value)
        for j, option in classes.items():
            if self.costs[j][option] > 0:
                values = self._model._schema.categories[j]
                set_to[j] = np.array([self._places[j][option]])
                own = values[int(self._seen[self._row, j])]
                changes[self._view.names[j]] = (own, values[option])
        return self._view.make(np.array([self._row]), set_to), changes


def _is(wanted: Any) -> Any:
    return lambda told: told == wanted
