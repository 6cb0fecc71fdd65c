"""Data classes with the numbers of a report; `spinney.report.page` draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spinney.comparison.number_format import shown_moment
from spinney.data.task import Task

__all__ = [
    "CalibrationCurve",
    "ColumnImportances",
    "ColumnProfile",
    "ConfusionMatrix",
    "Contributions",
    "Curve",
    "DependenceCurve",
    "Evidence",
    "ExplainedRow",
    "Histogram",
    "LearningCurve",
    "OwnCoverage",
    "PredictedRow",
    "Predictions",
    "ResidualSummary",
    "TargetProfile",
    "date_writer",
]


@dataclass(frozen=True)
class Histogram:
    """Counts of values between edges; one more edge than counts."""

    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class TargetProfile:
    """The column to predict.

    Attributes
    ----------
    name : str
        The column.
    task : {"classification", "regression"}
        Classes or numeric values.
    classes : list of str
        The classes, most frequent first (classification).
    counts : list of int
        Rows of each class.
    histogram : Histogram or None
        The distribution (regression).
    low, mean, high, spread : float or None
        Minimum, mean, maximum and standard deviation (regression).
    """

    name: str
    task: Task
    classes: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    histogram: Histogram | None = None
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class ColumnProfile:
    """One column of the table.

    Attributes
    ----------
    name, kind : str
        Its name and kind: "number", "category", "date", "text", "identifier", "constant" or
        "dropped".
    used : bool
        Whether models use it.
    reason : str
        The reason for the kind, if it is not obvious ("" otherwise).
    flags : list of str
        Warnings, such as "alone it predicts the target".
    missing, distinct : int
        Number of missing values; number of distinct values.
    low, mean, high : float or None
        Minimum, mean and maximum (numeric columns).
    histogram : Histogram or None
        The distribution (numeric columns and dates).
    common : list of (str, int)
        The most frequent values and their numbers of rows (categories), at most eight.
    has_times_of_day : bool
        Whether dates are times without a day.
    """

    name: str
    kind: str
    used: bool
    reason: str = ""
    flags: list[str] = field(default_factory=list)
    missing: int = 0
    distinct: int = 0
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    histogram: Histogram | None = None
    common: list[tuple[str, int]] = field(default_factory=list)
    has_times_of_day: bool = False


def date_writer(column: ColumnProfile) -> Callable[[float], str] | None:
    """Return the function that formats a date column's days since 1970; else None."""
    if column.kind != "date":
        return None
    return partial(shown_moment, of_day=column.has_times_of_day)


@dataclass(frozen=True)
class LearningCurve:
    """The metric of a model by the number of training rows; `ses` may be NaN."""

    model: str
    sizes: list[int]
    means: list[float]
    ses: list[float]


@dataclass(frozen=True)
class ConfusionMatrix:
    """Rows by true class (first index) and class predicted out of fold."""

    model: str
    classes: list[str]
    counts: list[list[int]]


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted probabilities against observed shares, in bins of equal numbers of rows.

    `error` is the mean absolute difference, weighted by rows. With more than two classes, the
    probability is that of the predicted class. `about` describes the event.
    """

    model: str
    about: str
    predicted: list[float]
    observed: list[float]
    counts: list[int]
    error: float


@dataclass(frozen=True)
class Curve:
    """A ROC curve, or precision over recall; `area` is the area under it.

    `about` is the positive class; `floor` is the area of random predictions.
    """

    model: str
    about: str
    x: list[float]
    y: list[float]
    area: float
    floor: float


@dataclass(frozen=True)
class ResidualSummary:
    """Out-of-fold predictions of some rows with actual values; the residuals of all rows."""

    model: str
    predicted: list[float]
    actual: list[float]
    histogram: Histogram
    bias: float
    median_absolute: float
    within_90: float


@dataclass(frozen=True)
class ColumnImportances:
    """Permutation importances: the loss in the metric per shuffled column, largest first."""

    model: str
    measure: str
    columns: list[str]
    means: list[float]
    ses: list[float]


@dataclass(frozen=True)
class DependenceCurve:
    """Partial dependence of predictions on one column, and accumulated local effects.

    Attributes
    ----------
    model, column, about : str
        The model, the column, and what is predicted ("probability of spam", or the target).
    values : list of float or list of str
        Values of the column; text for categories.
    means : list of float
        The mean prediction at each value.
    lows, highs : list of float
        The 10 % and 90 % quantiles of the single rows' predictions.
    weights : list of float
        The share of rows near each value.
    accumulated : list of (float or str, float)
        Values and predictions by accumulated local effects: the changes among the rows near each
        value, summed and added to the mean prediction.
    """

    model: str
    column: str
    about: str
    values: list[float] | list[str]
    means: list[float]
    lows: list[float]
    highs: list[float]
    weights: list[float]
    accumulated: list[tuple[float | str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class PredictedRow:
    """A row's out-of-fold prediction; `row` counts from 1 in the table.

    In regression, `low` and `high` bound an interval, and `actual_value` and `predicted_value` are
    `actual` and `predicted` as numbers. In classification, `prediction_set` lists the classes of
    the prediction set, and `probability` is that of the predicted class.
    """

    row: int
    actual: str
    predicted: str
    right: bool
    probability: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_set: list[str] = field(default_factory=list)
    actual_value: float | None = None
    predicted_value: float | None = None


@dataclass(frozen=True)
class Predictions:
    """Out-of-fold predictions with intervals (regression) or sets (classification).

    Attributes
    ----------
    model : str
        The model.
    coverage, reached : float
        The requested and the observed coverage of the intervals or sets.
    width : float
        Median width of the intervals, or mean number of classes per set.
    method : str
        A sentence on how the intervals or sets were calculated.
    typical, worst : list of PredictedRow
        A random sample of rows, and the rows with the largest errors.
    """

    model: str
    coverage: float
    reached: float
    width: float
    method: str
    typical: list[PredictedRow]
    worst: list[PredictedRow]


@dataclass(frozen=True)
class OwnCoverage:
    """Coverage of a model's own ``predict_interval`` or ``predict_set`` on held-out rows.

    `method` is the model's `interval_method_` or `set_method_`. `width` is the median width of the
    intervals, or the mean number of classes per set.
    """

    model: str
    method: str
    coverage: float
    reached: float
    n_rows: int
    width: float


@dataclass(frozen=True)
class ExplainedRow:
    """A row, and the columns that contribute most to its prediction.

    Attributes
    ----------
    title : str
        Why this row is shown, such as "Most wrong".
    prediction : PredictedRow
        The prediction, with its interval or set.
    base, output : float
        The mean output of the model, and the output for this row.
    parts : list of (str, str, float)
        Columns, the row's values, and their contributions; the largest contribution first.
    rest : float
        The sum of the contributions of all other columns.
    n_rest : int
        The number of other columns.
    """

    title: str
    prediction: PredictedRow
    base: float
    output: float
    parts: list[tuple[str, str, float]]
    rest: float = 0.0
    n_rest: int = 0


@dataclass(frozen=True)
class Contributions:
    """Contributions of columns to predictions of held-out rows (Shapley values).

    Attributes
    ----------
    model : str
        The model.
    about : str
        The explained output: "prediction", "log-odds of spam", and so on.
    method : str
        A description of the method.
    by_row : bool
        Whether each row's output is that of its own predicted class.
    n_rows : int
        The number of explained rows.
    columns : list of str
        The columns, the largest mean first.
    means : list of float
        The mean absolute contribution of each column.
    amounts : list of list of float
        The contributions of the first columns for some rows.
    ranks : list of list of (float or None)
        The ranks of these rows' values in the column: 0 for the lowest, 1 for the highest; None
        for categories and missing values.
    examples : list of ExplainedRow
        Single rows.
    output : str
        The kind of output without a class: "prediction", "log-odds".
    """

    model: str
    about: str
    method: str
    by_row: bool
    n_rows: int
    columns: list[str]
    means: list[float]
    amounts: list[list[float]]
    ranks: list[list[float | None]]
    examples: list[ExplainedRow] = field(default_factory=list)
    output: str = ""

    def about_row(self, predicted: str) -> str:
        """Return the name of the explained output for a row with this prediction."""
        return f"{self.output} of {predicted}" if self.by_row else self.about


@dataclass(frozen=True)
class Evidence:
    """Everything in a report except the ranking.

    Attributes
    ----------
    title : str
        The table and the target, such as ``"shop.csv: bought"``.
    target : TargetProfile
    columns : list of ColumnProfile
    learning_curves : list of LearningCurve
        For the best models.
    confusion : ConfusionMatrix or None
        For the best model (classification).
    calibrations : list of CalibrationCurve
        For the best models (classification).
    rocs, precision_recalls : list of Curve
        Two classes: curves of the best models. More classes: one curve per class of the best model.
    residuals : ResidualSummary or None
        For the best model (regression).
    importances : list of ColumnImportances
        For the best models.
    dependences : list of DependenceCurve
        For the best model and its most important columns.
    contributions : Contributions or None
        For the best model.
    own_coverage : OwnCoverage or None
        For the best model, if it has intervals or prediction sets of its own.
    tree_svg : str or None
        The pruned tree as SVG.
    tree_text : str
        Number of leaves and depth of the tree.
    predictions : Predictions or None
        For the best model.
    code : str
        Python code that reproduces the numbers.
    settings : dict of str to str
        Folds, seed, threads, versions and so on, in the order to show them.
    not_shown : list of str
        The parts that are missing, each with the reason.
    """

    title: str
    target: TargetProfile
    columns: list[ColumnProfile]
    learning_curves: list[LearningCurve] = field(default_factory=list)
    confusion: ConfusionMatrix | None = None
    calibrations: list[CalibrationCurve] = field(default_factory=list)
    rocs: list[Curve] = field(default_factory=list)
    precision_recalls: list[Curve] = field(default_factory=list)
    residuals: ResidualSummary | None = None
    importances: list[ColumnImportances] = field(default_factory=list)
    dependences: list[DependenceCurve] = field(default_factory=list)
    contributions: Contributions | None = None
    own_coverage: OwnCoverage | None = None
    tree_svg: str | None = None
    tree_text: str = ""
    predictions: Predictions | None = None
    code: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    not_shown: list[str] = field(default_factory=list)
