"""The numbers of a report beside the ranking; drawing is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from spinney.comparison.number_format import shown_moment
from spinney.data.task import Task

__all__ = [
    "Calibration",
    "ColumnProfile",
    "Confusion",
    "Contributions",
    "Curve",
    "Dependence",
    "Evidence",
    "ExplainedRow",
    "Histogram",
    "Importances",
    "LearningCurve",
    "OwnCoverage",
    "PredictedRow",
    "Predictions",
    "Residuals",
    "TargetProfile",
    "date_writer",
]


@dataclass(frozen=True)
class Histogram:
    """Counts of numbers between edges; one edge more than counts."""

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
        Whether it holds classes or numbers.
    classes : list of str
        The classes, most frequent first (classification).
    counts : list of int
        Rows of each class.
    histogram : Histogram or None
        The numbers (regression).
    low, mean, high, spread : float or None
        Least, mean and greatest number, and their standard deviation (regression).
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
        The column, and how it is taken: "number", "category", "date", "text", "identifier",
        "constant" or "dropped".
    used : bool
        Whether models learn from it.
    reason : str
        Why it is taken that way, where that is not plain ("" otherwise).
    flags : list of str
        What a reader should know, such as "alone it predicts the target".
    missing, distinct : int
        Rows without a value; different values.
    low, mean, high : float or None
        Least, mean and greatest (numbers).
    histogram : Histogram or None
        Of numbers and dates.
    common : list of (str, int)
        The most frequent values and their rows (categories), at most eight.
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
    """Return how the days since 1970 of a column of dates are written; None for other columns."""
    if column.kind != "date":
        return None
    return partial(shown_moment, of_day=column.has_times_of_day)


@dataclass(frozen=True)
class LearningCurve:
    """The measure of a model by the number of rows learned from; `se` may be NaN."""

    model: str
    sizes: list[int]
    means: list[float]
    ses: list[float]


@dataclass(frozen=True)
class Confusion:
    """Rows by true class (first index) and predicted class, in cross-validation."""

    model: str
    classes: list[str]
    counts: list[list[int]]


@dataclass(frozen=True)
class Calibration:
    """Probabilities against shares, in bins of equal numbers of rows.

    `error` is the mean distance of both, weighted by rows. With more than two classes it is about
    the probability of the class that was predicted.
    """

    model: str
    about: str
    predicted: list[float]
    observed: list[float]
    counts: list[int]
    error: float


@dataclass(frozen=True)
class Curve:
    """A curve from (0, ·) to (1, ·): ROC, or precision over recall; `area` is what lies under it.

    `about` is the positive class; `floor` is the area of random predictions.
    """

    model: str
    about: str
    x: list[float]
    y: list[float]
    area: float
    floor: float


@dataclass(frozen=True)
class Residuals:
    """Cross-validated predictions of some rows against the truth, and the residuals of all."""

    model: str
    predicted: list[float]
    actual: list[float]
    histogram: Histogram
    bias: float
    median_absolute: float
    within_90: float


@dataclass(frozen=True)
class Importances:
    """By how much the measure gets worse when a column is shuffled; greatest first."""

    model: str
    measure: str
    columns: list[str]
    means: list[float]
    ses: list[float]


@dataclass(frozen=True)
class Dependence:
    """The mean prediction as one column goes through its values, the other columns as they are.

    Attributes
    ----------
    model, column, about : str
        The model, the column, and what is predicted ("probability of spam", or the target).
    places : list of float or list of str
        Values of the column; text for categories.
    means : list of float
        The mean prediction there.
    lows, highs : list of float
        Between them lie 80 % of the single rows' predictions.
    weights : list of float
        The share of rows near each place.
    accumulated : list of (float or str, float)
        Places and predictions by accumulated local effects: the changes among the rows near each
        place, added up from the mean prediction on.
    """

    model: str
    column: str
    about: str
    places: list[float] | list[str]
    means: list[float]
    lows: list[float]
    highs: list[float]
    weights: list[float]
    accumulated: list[tuple[float | str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class PredictedRow:
    """A row's cross-validated prediction; `row` counts from 1 in the table.

    In regression `low` and `high` bound an interval; `actual_value` and `predicted_value` are the
    numbers behind the texts. In classification `prediction_set` lists the
    classes of the prediction set, and `probability` is that of the predicted class.
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
    """Cross-validated predictions with intervals (numbers) or sets (classes).

    Attributes
    ----------
    model : str
        The model.
    coverage, reached : float
        The share of rows whose truth the interval or set shall hold, and does hold.
    width : float
        Median width of the intervals, or mean number of classes in a set.
    method : str
        How the intervals were made, in a sentence.
    typical, worst : list of PredictedRow
        Some rows drawn by chance, and those that the model got most wrong.
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

    `method` is the model's own word for how it makes them; `width` the median width of the
    intervals, or the mean number of classes in a set.
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
    base, answer : float
        The answer when nothing is known of the row, and when all is.
    parts : list of (str, str, float)
        Columns, the row's values in them, and by how much they moved the answer; the most first.
    rest : float
        By how much all other columns moved it.
    n_rest : int
        How many these are.
    """

    title: str
    prediction: PredictedRow
    base: float
    answer: float
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
        What is moved: "prediction", "log-odds of spam", and so on.
    method : str
        How the amounts were found, in words.
    by_row : bool
        Whether it is about the class that is predicted, another from row to row.
    n_rows : int
        Rows that were looked at.
    columns : list of str
        The columns, the largest mean first.
    means : list of float
        The mean of the amounts without their sign.
    amounts : list of list of float
        Of the first columns, the amounts of some rows.
    places : list of list of (float or None)
        Where these rows' values lie among the column's: 0 for the lowest, 1 for the highest; None
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
    places: list[list[float | None]]
    examples: list[ExplainedRow] = field(default_factory=list)
    output: str = ""

    def about_row(self, predicted: str) -> str:
        """Return what is explained for a row with this prediction."""
        return f"{self.output} of {predicted}" if self.by_row else self.about


@dataclass(frozen=True)
class Evidence:
    """Everything in a report but the ranking.

    Attributes
    ----------
    title : str
        What was compared, such as ``"shop.csv: bought"``.
    target : TargetProfile
    columns : list of ColumnProfile
    learning_curves : list of LearningCurve
        Of the best models.
    confusion : Confusion or None
        Of the best model (classification).
    calibrations : list of Calibration
        Of the best models (classification).
    rocs, precision_recalls : list of Curve
        Of the best models for two classes; of the best model, class by class, for more.
    residuals : Residuals or None
        Of the best model (regression).
    importances : list of Importances
        Of the best models.
    dependences : list of Dependence
        Of the best model, for its most important columns.
    contributions : Contributions or None
        Of the best model.
    own_coverage : OwnCoverage or None
        Of the best model, if it has intervals or prediction sets of its own.
    tree_svg : str or None
        The pruned tree as a drawing.
    tree_text : str
        What to say about it: leaves, its own error.
    predictions : Predictions or None
        Of the best model.
    code : str
        Python that gives the numbers again.
    settings : dict of str to str
        Folds, seed, threads, versions and so on, in the order to show them.
    left_out : list of str
        What is not shown, and why (time, or a model that cannot).
    """

    title: str
    target: TargetProfile
    columns: list[ColumnProfile]
    learning_curves: list[LearningCurve] = field(default_factory=list)
    confusion: Confusion | None = None
    calibrations: list[Calibration] = field(default_factory=list)
    rocs: list[Curve] = field(default_factory=list)
    precision_recalls: list[Curve] = field(default_factory=list)
    residuals: Residuals | None = None
    importances: list[Importances] = field(default_factory=list)
    dependences: list[Dependence] = field(default_factory=list)
    contributions: Contributions | None = None
    own_coverage: OwnCoverage | None = None
    tree_svg: str | None = None
    tree_text: str = ""
    predictions: Predictions | None = None
    code: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
