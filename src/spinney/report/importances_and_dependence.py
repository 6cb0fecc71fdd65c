"""Permutation importances of columns, and dependence of predictions on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.comparison.comparison_data import ComparisonData
from spinney.comparison.sample import draw_rows
from spinney.data.rows import take_rows
from spinney.inspection.accumulated import accumulated_local_effects
from spinney.inspection.dependence import partial_dependence
from spinney.inspection.permutation import permutation_importance
from spinney.inspection.table_view import TableView
from spinney.report.evidence import ColumnImportances, DependenceCurve
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["FittedOnFold", "dependence_curves", "measure_importances"]

_REPEATS = 5
_MOST_ROWS = 2_000
_ROWS_OF_CURVES = 300
# scikit-learn's scorers for metrics that are means over rows, or roots of such means. Their
# importances have standard errors over rows and shuffles, not only over shuffles.
_MEANS = {
    "error": "accuracy",
    "accuracy": "accuracy",
    "mae": "neg_mean_absolute_error",
    "rmse": "neg_root_mean_squared_error",
    "r2": "r2",
}


class FittedOnFold:
    """A model fitted on the first fold's training rows, with (some of) its test rows.

    Parameters
    ----------
    compared : ComparisonData
        The comparison.
    name : str
        The model.
    """

    def __init__(self, compared: ComparisonData, name: str) -> None:
        train, test = compared.splits[0]
        self.train = train
        self.name = name
        self.compared = compared
        self.model = compared.trials[name][0].model
        if self.model is None:
            self.model = compared.make(name).fit(take_rows(compared.X, train), compared.y[train])
        if len(test) > _MOST_ROWS:
            test = test[draw_rows(compared.y[test], _MOST_ROWS, 0)]
        self.rows = test
        self.X = take_rows(compared.X, test)
        self.y = compared.y[test]
        share = len(test) / len(compared.splits[0][1])
        self.predict_seconds = compared.trials[name][0].predict_seconds * share


def measure_importances(fitted: FittedOnFold, seconds: float) -> ColumnImportances | None:
    """Return permutation importances, measured on the test rows of a fold.

    If all columns would take longer than `seconds`, only the most important ones by the model's
    own importances, or by those of a decision tree, are measured. Returns None if the time is too
    short for one column.
    """
    compared, measure = fitted.compared, fitted.compared.measure
    n_columns = fitted.X.shape[1]
    # The second term is the time to copy the shuffled table.
    seconds_per_column = _REPEATS * (
        fitted.predict_seconds + 1e-7 * n_columns * len(fitted.y) + 1e-3
    )
    n_most = int(seconds / seconds_per_column)
    if n_most == 0:
        return None
    columns = None if n_most >= n_columns else _likely_columns(fitted, n_most)

    def score(model: Any, X: Any, y: Any) -> float:
        return -measure.sign * measure.of(model, X, y, compared.classes)

    found = permutation_importance(
        fitted.model,
        fitted.X,
        fitted.y,
        n_repeats=_REPEATS,
        scoring=_MEANS.get(measure.name, score) if measure.needs == "predictions" else score,
        columns=columns,
    )
    order = found.largest(len(found.mean))
    return ColumnImportances(
        fitted.name,
        measure.name,
        [found.names[j] for j in order],
        [float(found.mean[j]) for j in order],
        [float(found.error[j]) for j in order],
    )


def dependence_curves(
    fitted: FittedOnFold, columns: list[str], target: str
) -> list[DependenceCurve]:
    """Return partial dependence and accumulated local effects of single columns."""
    compared = fitted.compared
    about, label = target, None
    if compared.classes is not None:
        counts = np.bincount(np.searchsorted(compared.classes, compared.y))
        code = 1 if len(compared.classes) == 2 else int(np.argmax(counts))
        label = compared.classes[code]
        about = f"probability of {label}"
        if not hasattr(fitted.model, "predict_proba"):
            return []
    found = []
    for column in columns:
        partial = partial_dependence(
            fitted.model,
            fitted.X,
            column,
            target=label,
            n_values=24,
            individual=True,
            max_rows=_ROWS_OF_CURVES,
        )
        assert partial.individual is not None
        grid = partial.grids[0]
        n_values = len(grid.values)
        single = partial.individual[0][:, :n_values]
        low, high = np.quantile(single, [0.1, 0.9], axis=0)
        accumulated = _accumulated(fitted, column, label)
        if label is not None:  # remove rounding errors of probabilities
            accumulated = [(value, round(level, 9)) for value, level in accumulated]
        found.append(
            DependenceCurve(
                fitted.name,
                column,
                about,
                list(grid.values) if isinstance(grid.values, list) else [*map(float, grid.values)],
                [float(v) for v in partial.average[0][:n_values]],
                [float(v) for v in low],
                [float(v) for v in high],
                _weights(fitted, column, grid.values, partial.observed[0]),
                accumulated,
            )
        )
    return found


def _accumulated(fitted: FittedOnFold, column: str, label: Any) -> list[tuple[float | str, float]]:
    """Return the accumulated local effects, starting at the mean prediction."""
    try:
        effects = accumulated_local_effects(
            fitted.model, fitted.X, column, target=label, n_intervals=24
        )
    except ValueError:  # no row has a value
        return []
    grid = effects.grids[0].values
    values = grid if isinstance(grid, list) else [float(value) for value in grid]
    levels = [float(effect + effects.mean[0]) for effect in effects.effect[0]]
    return list(zip(values, levels, strict=True))


def _weights(fitted: FittedOnFold, column: str, values: Any, observed: Any) -> list[float]:
    """Return the share of rows near each value; `observed` has the rows' numbers."""
    if isinstance(values, list):
        view = TableView(fitted.X, fitted.model)
        levels = view.levels(view.find(column, "column"))
        rows = dict(zip(levels.labels, levels.counts, strict=True))
        return [float(rows.get(value, 0)) / view.n_rows for value in values]
    present = observed[~np.isnan(observed)]
    middles = (np.asarray(values)[1:] + np.asarray(values)[:-1]) / 2
    counts = np.bincount(np.searchsorted(middles, present), minlength=len(values))
    return [float(count) / len(observed) for count in counts]


def _likely_columns(fitted: FittedOnFold, n_most: int) -> list[int]:
    """Return the most important columns by impurity, of the model or of a tree."""
    own = getattr(fitted.model, "feature_importances_", None)
    if own is None or len(own) != fitted.X.shape[1]:
        classes = fitted.compared.classes
        tree_class = DecisionTreeRegressor if classes is None else DecisionTreeClassifier
        own = tree_class(max_depth=8, random_state=0).fit(fitted.X, fitted.y).feature_importances_
    return [int(j) for j in np.argsort(-np.asarray(own), kind="stable")[:n_most]]
