"""Functions that create comparisons with all content of a report, for tests of the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.report.evidence import (
    CalibrationCurve,
    ColumnImportances,
    ColumnProfile,
    ConfusionMatrix,
    Contributions,
    Curve,
    DependenceCurve,
    Evidence,
    ExplainedRow,
    Histogram,
    LearningCurve,
    OwnCoverage,
    PredictedRow,
    Predictions,
    ResidualSummary,
    TargetProfile,
)
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_svg

__all__ = ["NAMES", "Sample", "make_classification", "make_regression"]

Sample = tuple[Comparison, Evidence]

NAMES = [
    ("extra_trees", "extra trees"),
    ("boosted_small_trees", "boosted trees of five leaves"),
    ("gradient_boosting", "gradient boosting"),
    ("random_forest", "random forest"),
    ("boosted_stumps", "boosted stumps"),
    ("bagging", "bagged trees"),
    ("adaboost", "AdaBoost"),
    ("local_fit", "local regression"),
    ("k_neighbors", "nearest neighbours"),
    ("logistic_regression", "logistic regression"),
    ("decision_tree_pruned", "pruned tree"),
    ("decision_tree", "decision tree"),
    ("mixture", "Gaussian mixtures"),
    ("baseline", "no column at all"),
]
CODE = """import spinney
from spinney.io import read_table

table = read_table("shop.csv").frame
print(spinney.compare(table.drop(["bought"]), table["bought"], cv=10, random_state=0))
"""


def _results(task: str, n_folds: int, rng: np.random.Generator) -> list[ModelResult]:
    results: list[ModelResult] = []
    start, width = (0.041, 0.003) if task == "classification" else (48_200.0, 900.0)
    best = None
    for index, (name, title) in enumerate(NAMES):
        level = start * (1 + 0.06 * index + 0.004 * index**2)
        if name == "baseline":
            level = start * 9.4
        folds = level + width * rng.normal(size=n_folds)
        estimate = Estimate.from_folds([float(value) for value in folds])
        result = ModelResult(
            name,
            title,
            estimate,
            r2=Estimate.from_folds([1 - level / 5e5] * n_folds) if task == "regression" else None,
            fit_seconds=float(rng.gamma(1, 0.3)),
            predict_seconds=float(rng.gamma(1, 0.003)),
            size=int(rng.gamma(1, 400_000)),
        )
        if best is None:
            best = estimate
        elif n_folds > 1:
            away = [a - b for a, b in zip(estimate.folds, best.folds, strict=True)]
            p_value = 0.9 / (1 + index) ** 2
            result = replace(
                result, behind=Estimate.from_folds(away), p_value=p_value, tied=p_value > 0.05
            )
        results.append(result)
    skipped = ModelResult("hnsw", "approximate neighbours", skipped="stopped after 600 seconds")
    failed = ModelResult(
        "plug_in", "plug-in rule", failure="ValueError: class 'b' has one row only"
    )
    return [*results, skipped, failed]


def _histogram(rng: np.random.Generator, size: int = 800) -> Histogram:
    counts, edges = np.histogram(rng.gamma(2.0, 3.0, size=size), bins=20)
    return Histogram(edges.tolist(), counts.tolist())


def _columns(names: list[str], rng: np.random.Generator) -> list[ColumnProfile]:
    columns = []
    for index, name in enumerate(names):
        if index % 4 == 2:
            common = [
                ("red", 420),
                ("green", 200),
                ("a rather long category name", 90),
                ("blue", 9),
            ]
            columns.append(
                ColumnProfile(name, "category", True, distinct=11, missing=37, common=common)
            )
        elif index % 13 == 7:
            columns.append(
                ColumnProfile(
                    name, "identifier", False, reason="every row has another value", distinct=4601
                )
            )
        else:
            low = float(rng.normal() * 10.0 ** rng.integers(-3, 6))
            flags = ["alone it predicts the target"] if index % 11 == 5 else []
            columns.append(
                ColumnProfile(
                    name, "number", True, flags=flags, distinct=901, low=low, mean=low + 3.3,
                    high=low + 20, histogram=_histogram(rng),
                )
            )  # fmt: skip
    return columns


def _shared(
    task: str, n_columns: int, rng: np.random.Generator, n_folds: int
) -> tuple[Comparison, list[ColumnProfile], list[LearningCurve], list[ColumnImportances]]:
    comparison = Comparison(
        task=task,  # type: ignore[arg-type]
        metric="error" if task == "classification" else "rmse",
        greater_is_better=False,
        n_rows=4601,
        n_features=n_columns,
        n_folds=n_folds,
        stratified=task == "classification",
        results=_results(task, n_folds, rng),
        notes=["12 rows without a value in the target were left out"],
    )
    columns = _columns([f"column_{number}" for number in range(n_columns)], rng)
    sizes = [65, 130, 260, 520, 1040, 2070, 4140]
    curves = []
    for index, result in enumerate(comparison.results[:5]):
        assert result.estimate is not None
        level = result.estimate.mean
        means = [level * (1 + 2.5 * (65 / size) ** (0.5 + 0.1 * index)) for size in sizes]
        ses = [0.3 * (mean - level) + 0.02 * level for mean in means]
        curves.append(LearningCurve(result.name, sizes, means, ses))
    importances = []
    for result in comparison.results[:2]:
        assert result.estimate is not None
        means = [result.estimate.mean * 2.0 / (1 + index) for index in range(n_columns)]
        ses = [mean * 0.1 + result.estimate.mean * 0.01 for mean in means]
        names = [column.name for column in columns]
        importances.append(ColumnImportances(result.name, comparison.metric, names, means, ses))
    return comparison, columns, curves, importances


def _dependences(model: str, about: str, low: float, high: float) -> list[DependenceCurve]:
    grid = np.linspace(-2.0, 9.0, 25)
    found = []
    for number in range(4):
        means = low + (high - low) / (1 + np.exp(-(grid - 2 - number)))
        found.append(
            DependenceCurve(
                model, f"column_{number}", about, grid.tolist(), means.tolist(),
                (means - 0.2 * (high - low)).tolist(), (means + 0.15 * (high - low)).tolist(),
                np.exp(-((grid - 3) ** 2) / 8).tolist(),
                [(float(x), float(low + 0.8 * (mean - low)))
                 for x, mean in zip(grid, means, strict=True)],
            )
        )  # fmt: skip
    colours = ["red", "green", "a rather long category name", "blue", "(missing)"]
    means = np.linspace(low, high, 5)
    spread = 0.1 * (high - low)
    found.append(
        DependenceCurve(model, "colour", about, colours, means.tolist(), (means - spread).tolist(),
                   (means + spread).tolist(), [0.5, 0.3, 0.1, 0.06, 0.04],
                   [("blue", float(low)), ("red", float(high)), ("green", float(low + spread))])
    )  # fmt: skip
    return found


def _contributions(
    model: str, names: list[str], about: str, scale: float, rows: list[PredictedRow]
) -> Contributions:
    rng = np.random.default_rng(len(names))
    means, amounts, positions = [], [], []
    for number in range(len(names)):
        width = scale / (1 + number)
        x = rng.normal(size=200) if number % 4 else (rng.random(200) < 0.1).astype(float)
        amount = width * (x - x.mean()) + 0.2 * width * rng.normal(size=200)
        means.append(float(np.abs(amount).mean()))
        if number < 15:
            amounts.append(amount.tolist())
            ranks = [float(rank) for rank in x.argsort().argsort() / 199]
            positions.append([None] * 200 if number % 4 == 2 else ranks)
    examples = []
    for title, row in zip(["Most wrong", "Most confident", "In the middle"], rows, strict=False):
        parts = [(name, "1.25", scale * (-1) ** j / (1 + j)) for j, name in enumerate(names[:6])]
        rest, n_rest = 0.1 * scale, max(0, len(names) - 6)
        output = 0.4 * scale + sum(amount for _, _, amount in parts) + (rest if n_rest else 0.0)
        examples.append(ExplainedRow(title, row, 0.4 * scale, output, parts, rest, n_rest))
    by_row = "predicted class" in about
    method = "trees, path dependent, by rows"
    output = about.split(" of ")[0]
    return Contributions(
        model, about, method, by_row, 200, names, means, amounts, positions, examples, output
    )


def make_classification(n_columns: int, n_classes: int, n_folds: int = 10) -> Sample:
    """Return a comparison of classifiers with all evidence."""
    rng = np.random.default_rng(n_columns + n_classes)
    comparison, columns, curves, importances = _shared("classification", n_columns, rng, n_folds)
    classes = ["mail", "spam"] if n_classes == 2 else [f"species {i}" for i in range(n_classes)]
    counts = [[int(rng.poisson(3)) for _ in classes] for _ in classes]
    for index in range(n_classes):
        counts[index][index] = 4000 // (n_classes + 2 * index)
    best = comparison.results[0].name
    grid = np.linspace(0, 1, 401)
    some = [result.name for result in comparison.results[:3]]
    shares = (np.arange(10) + 0.5) / 10
    calibrations = [
        CalibrationCurve(name, "probability of spam", shares.tolist(),
                    (shares ** (1 + 0.2 * index)).tolist(), [460] * 10, 0.013 * (1 + index))
        for index, name in enumerate(some)
    ]  # fmt: skip
    pairs = [(name, "spam") for name in some] if n_classes == 2 else [(best, c) for c in classes]
    rocs, precisions = [], []
    for index, (name, about) in enumerate(pairs):
        power = 0.05 + 0.01 * index
        rocs.append(Curve(name, about, grid.tolist(), (grid**power).tolist(), 1 / (1 + power), 0.5))
        precisions.append(
            Curve(name, about, grid.tolist(), (1 - 0.6 * grid ** (8 - 0.08 * index)).tolist(),
                  0.95 - power, 1 / n_classes)
        )  # fmt: skip
    X = rng.normal(size=(400, 3))
    y = np.asarray(classes)[np.digitize(X[:, 0], [0.0]) + (n_classes > 2) * (X[:, 1] > 0.3)]
    tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    rows = [
        PredictedRow(17 * i + 3, classes[i % n_classes], classes[(i * i) % n_classes],
                     i % n_classes == (i * i) % n_classes, 0.99 - 0.05 * i,
                     prediction_set=classes[: 1 + i % 3])
        for i in range(8)
    ]  # fmt: skip
    wrong = [replace(row, predicted=classes[-1], actual=classes[0], right=False) for row in rows]
    evidence = Evidence(
        title="mails.csv: kind",
        target=TargetProfile(
            "kind", "classification", classes, [sum(row) for row in counts]
        ),
        columns=columns,
        learning_curves=curves,
        confusion=ConfusionMatrix(best, classes, counts),
        calibrations=calibrations,
        rocs=rocs,
        precision_recalls=precisions,
        importances=importances,
        dependences=_dependences(best, f"probability of {classes[-1]}", 0.08, 0.86),
        contributions=_contributions(
            best, [column.name for column in columns],
            "log-odds of spam" if n_classes == 2 else "score before softmax of the predicted class",
            2.5, rows,
        ),
        own_coverage=OwnCoverage(best, "adaptive conformal, rows out of the bag", 0.9, 0.91, 460,
                                   1.08),
        tree_svg=export_svg(tree, feature_names=["column_0", "column_1", "column_2"]),
        tree_text="It has 8 leaves and an error of 7.46 %.",
        predictions=Predictions(
            best, 0.9, 0.912, 1.13, "Sets are split-conformal, from the other folds' scores.",
            rows, wrong,
        ),
        code=CODE,
        settings={"folds": "10, stratified", "seed": "0", "threads": "2", "Spinney": "0.1.0"},
        not_shown=["learning curve of bagging: no time"],
    )  # fmt: skip
    return comparison, evidence


def make_regression(n_columns: int, n_folds: int = 10) -> Sample:
    """Return a comparison of regressors with all evidence."""
    rng = np.random.default_rng(n_columns)
    comparison, columns, curves, importances = _shared("regression", n_columns, rng, n_folds)
    best = comparison.results[0].name
    actual = rng.gamma(4.0, 50_000.0, size=1000)
    predicted = actual + rng.normal(size=1000) * 0.2 * actual
    off = actual - predicted
    counts, edges = np.histogram(off, bins=30)
    y_counts, y_edges = np.histogram(actual, bins=30)
    X = rng.normal(size=(400, 3))
    tree = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0).fit(X, 1e5 * X[:, 0])
    rows = [
        PredictedRow(11 * i + 2, f"{actual[i]:,.0f}", f"{predicted[i]:,.0f}", True,
                     low=float(predicted[i]) - 60_000, high=float(predicted[i]) + 75_000,
                     actual_value=float(actual[i]), predicted_value=float(predicted[i]))
        for i in range(8)
    ]  # fmt: skip
    evidence = Evidence(
        title="houses.csv: price",
        target=TargetProfile(
            "price", "regression", histogram=Histogram(y_edges.tolist(), y_counts.tolist()),
            low=float(actual.min()), mean=float(actual.mean()), high=float(actual.max()),
            spread=float(actual.std()),
        ),
        columns=columns,
        learning_curves=curves,
        residuals=ResidualSummary(
            best, predicted.tolist(), actual.tolist(), Histogram(edges.tolist(), counts.tolist()),
            float(off.mean()), float(np.median(np.abs(off))), float(np.quantile(np.abs(off), 0.9)),
        ),
        importances=importances,
        dependences=_dependences(best, "price", 1.1e5, 3.4e5),
        contributions=_contributions(
            best, [column.name for column in columns], "prediction", 55_000.0, rows
        ),
        own_coverage=OwnCoverage(best, "conformal, rows out of the bag", 0.9, 0.894, 460, 128e3),
        tree_svg=export_svg(tree, feature_names=["column_0", "column_1", "column_2"]),
        tree_text="It has 8 leaves and an RMSE of 61,300.",
        predictions=Predictions(
            best, 0.9, 0.887, 135_000.0, "Intervals come from the residuals of the other folds.",
            rows, rows[::-1],
        ),
        code=CODE,
        settings={"folds": "10", "seed": "0", "threads": "2", "Spinney": "0.1.0"},
        not_shown=["calibration and ROC: the target is a number"],
    )  # fmt: skip
    return comparison, evidence
