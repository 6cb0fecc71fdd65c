"""Comparisons to render in tests: normal, hostile names, unusual numbers, empty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from spinney.comparison.comparison import Estimate, ModelResult
from spinney.report.evidence import (
    ColumnImportances,
    Contributions,
    DependenceCurve,
    Evidence,
    ExplainedRow,
    Histogram,
    LearningCurve,
    PredictedRow,
    TargetProfile,
)
from support.report_makers import NAMES, Sample, make_classification, make_regression

__all__ = ["HOSTILE", "SAMPLES"]

HOSTILE = [
    "<script>alert('x')</script>",
    "\"'><img src=http://example.org/x onerror=alert(1)>",
    "x" * 500,
    "word " * 60,
    "العمود الأول (سنة)",
    "",
    "two\nlines\tand a tab",
    "{{ 7 * 7 }}{% raw %}",
    "\u202eturned round\x00\x07",
    "&amp; </style></svg>--><!--",
    "数据列名称很长很长很长很长很长很长很长很长",
    "\ud800 half a pair",
]


def _hostile() -> Sample:
    """Return names with HTML and control characters in all fields."""
    comparison, evidence = make_classification(len(HOSTILE), len(HOSTILE))
    results = [
        replace(result, name=HOSTILE[index % len(HOSTILE)], title=HOSTILE[(index + 1) % 12])
        for index, result in enumerate(comparison.results)
    ]
    results[-1] = replace(results[-1], failure=HOSTILE[0] + HOSTILE[2])
    assert evidence.confusion is not None
    assert evidence.predictions is not None
    assert evidence.contributions is not None
    rows = [
        replace(row, actual=HOSTILE[i], predicted=HOSTILE[i + 1], prediction_set=HOSTILE[i : i + 9])
        for i, row in enumerate(evidence.predictions.typical)
    ]
    evidence = replace(
        evidence,
        title=HOSTILE[0] + HOSTILE[2],
        target=replace(evidence.target, name=HOSTILE[1], classes=list(HOSTILE)),
        columns=[
            replace(column, name=name, flags=[name], reason=name,
                    common=[(name, 3), ("b", 2)] if column.common else [])
            for column, name in zip(evidence.columns, HOSTILE, strict=True)
        ],
        learning_curves=[replace(c, model=HOSTILE[i]) for i, c in
                         enumerate(evidence.learning_curves)],
        confusion=replace(evidence.confusion, classes=list(HOSTILE), model=HOSTILE[2]),
        calibrations=[replace(c, model=HOSTILE[i], about=HOSTILE[i + 3]) for i, c in
                      enumerate(evidence.calibrations)],
        rocs=[replace(c, about=HOSTILE[i], model=HOSTILE[0]) for i, c in enumerate(evidence.rocs)],
        importances=[replace(i, columns=list(HOSTILE), model=HOSTILE[3]) for i in
                     evidence.importances],
        dependences=[
            replace(d, column=HOSTILE[i], about=HOSTILE[i + 1],
                    values=HOSTILE[:5] if isinstance(d.values[0], str) else d.values)
            for i, d in enumerate(evidence.dependences)
        ],
        contributions=replace(
            evidence.contributions, model=HOSTILE[0], about=HOSTILE[1], method=HOSTILE[2],
            columns=list(HOSTILE),
            examples=[
                replace(example, title=HOSTILE[i], prediction=rows[i],
                        parts=[(HOSTILE[j], HOSTILE[j + 1], 1.0 - j) for j in range(6)])
                for i, example in enumerate(evidence.contributions.examples)
            ],
        ),
        predictions=replace(evidence.predictions, typical=rows, worst=rows, method=HOSTILE[0]),
        tree_svg=None,
        tree_text=HOSTILE[0],
        code=HOSTILE[0] + "\n" + HOSTILE[2],
        settings={HOSTILE[0]: HOSTILE[2], HOSTILE[2]: HOSTILE[0]},
        not_shown=list(HOSTILE),
    )  # fmt: skip
    return replace(comparison, results=results, notes=list(HOSTILE)), evidence


def _large_counts() -> Sample:
    """Return twelve classes (the most with numbers in cells), with numbers too long for a cell."""
    comparison, evidence = make_classification(3, 12)
    assert evidence.confusion is not None
    counts = [[9999 if i == j else 10 ** ((i + j) % 10) for j in range(12)] for i in range(12)]
    return comparison, replace(evidence, confusion=replace(evidence.confusion, counts=counts))


def _bare() -> Sample:
    """Return one column, one model and one split, without any other evidence."""
    comparison, _ = make_regression(1, n_folds=1)
    evidence = Evidence("numbers", TargetProfile("y", "regression"), [])
    result = replace(comparison.results[0], size=None, r2=None)
    return replace(comparison, results=[result], notes=[], n_features=1), evidence


def _failed() -> Sample:
    """Return a comparison in which every model failed."""
    comparison, evidence = make_classification(3, 2)
    results = [
        ModelResult(name, title, failure="MemoryError: cannot allocate 40 GB")
        for name, title in NAMES
    ]
    bare = Evidence(evidence.title, evidence.target, evidence.columns, not_shown=["all of it"])
    return replace(comparison, results=results), bare


def _odd_numbers() -> Sample:
    """Return NaN, infinities, constants and extreme numbers in all numeric fields."""
    comparison, evidence = make_regression(3)
    nan, inf = math.nan, math.inf
    odd = [nan, inf, -inf, 1e308, -1e308, 5e-324, 0.0, 3.0, 3.0, 1e15]
    results = [
        replace(result, estimate=Estimate(value, se, (value,)), p_value=nan, behind=None)
        for result, value, se in zip(comparison.results, odd[7:] + odd, [nan, *odd], strict=False)
    ]
    flat = Histogram([3.0, 3.0], [7])
    assert evidence.residuals is not None
    evidence = replace(
        evidence,
        target=replace(evidence.target, histogram=flat, low=nan, mean=inf, high=1e308),
        columns=[
            replace(column, low=odd[index], high=odd[-index], mean=nan, histogram=flat)
            for index, column in enumerate(evidence.columns)
        ],
        learning_curves=[LearningCurve("a", list(range(10)), odd, odd[::-1]),
                         LearningCurve("b", [100], [0.5], [nan]), LearningCurve("c", [], [], [])],
        residuals=replace(evidence.residuals, predicted=odd, actual=odd[::-1], bias=nan,
                          histogram=Histogram([-inf, -1e308, 0, 1e308, inf], [1, 2, 3, 4])),
        importances=[ColumnImportances("a", "rmse", [str(i) for i in range(10)], odd, odd[::-1])],
        dependences=[DependenceCurve("a", "x", "y", odd, odd, odd, odd, odd),
                     DependenceCurve("a", "one", "y", [2.0], [1.0], [0.5], [2.0], [1.0],
                                     [(2.0, 1.0)]),
                     DependenceCurve("a", "far", "y", [0.0, 1.0], [0.0, 1.0], [0.0, 1.0],
                                     [0.0, 1.0], [0.5, 0.5], [(x, y) for x in odd for y in odd]),
                     DependenceCurve("a", "none", "y", [], [], [], [], [])],
        contributions=Contributions(
            "a", "y", "odd", False, 10, list("abcd"), [nan, 3.0, 3.0, 0.0],
            [odd, odd, [3.0] * 10, [0.0] * 10], [[0.5] * 10, [None] * 10, [1.0] * 10, [0.0] * 10],
            [ExplainedRow("one", PredictedRow(1, "1", "2", True), number, number,
                          [("a", "b", number)]) for number in odd]
            + [ExplainedRow("none", PredictedRow(2, "1", "2", True, low=nan, high=inf), 3.0, 3.0,
                            [])],
        ),
    )  # fmt: skip
    return replace(comparison, results=results), evidence


SAMPLES: dict[str, Callable[[], Sample]] = {
    "two_classes": lambda: make_classification(57, 2),
    "three_columns": lambda: make_classification(3, 5),
    "forty_classes": lambda: make_classification(300, 40),
    "many_classes": lambda: make_classification(12, 90),
    "numbers": lambda: make_regression(8),
    "one_split": lambda: make_regression(300, n_folds=1),
    "large_counts": _large_counts,
    "hostile": _hostile,
    "odd_numbers": _odd_numbers,
    "bare": _bare,
    "failed": _failed,
}
