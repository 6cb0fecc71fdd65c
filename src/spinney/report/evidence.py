"""What a report shows beside the ranking: plain numbers, no drawing."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.report.families import Task

__all__ = [
    "Calibration",
    "ColumnProfile",
    "Confusion",
    "Curve",
    "Dependence",
    "Evidence",
    "Histogram",
    "Importances",
    "LearningCurve",
    "PredictedRow",
    "Predictions",
    "Residuals",
    "TargetProfile",
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
        The classes, commonest first (classification).
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
        The commonest values and their rows (categories), at most eight.
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

    `about` is the class told from the rest; `floor` is the area that chance would have.
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
    """

    model: str
    column: str
    about: str
    places: list[float] | list[str]
    means: list[float]
    lows: list[float]
    highs: list[float]
    weights: list[float]


@dataclass(frozen=True)
class PredictedRow:
    """A row's cross-validated prediction; `row` counts from 1 in the table.

    For numbers `low` and `high` bound an interval; for classes `told` lists the classes of the
    prediction set and `probability` is that of the predicted class.
    """

    row: int
    actual: str
    predicted: str
    right: bool
    probability: float | None = None
    low: float | None = None
    high: float | None = None
    told: list[str] = field(default_factory=list)


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
    tree_svg: str | None = None
    tree_text: str = ""
    predictions: Predictions | None = None
    code: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
