"""Evidence of reports: against brute force and scikit-learn; reproducible recipes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn import metrics

import spinney
from spinney.comparison import scheduler
from spinney.comparison.recipe import Origin
from spinney.io import decide_kinds
from spinney.report.build_evidence import build_evidence
from spinney.report.conformal_evidence import predicted_rows
from spinney.report.diagnostics import (
    calibration_curves,
    count_confusion,
    rate_curves,
    summarize_residuals,
)
from spinney.report.importances_and_dependence import FittedOnFold
from spinney.report.learning import measure_learning_curve
from spinney.report.page import render_page
from spinney.report.profile import histogram_of, profile_columns
from spinney.tree import DecisionTreeClassifier

RNG = np.random.default_rng(0)
N = 240
AGE = RNG.integers(18, 80, N).astype(float)
CITY = RNG.choice(["Bath", "York", "Ely"], N)
NOISE = RNG.normal(size=N)
SCORE = AGE / 20 + (CITY == "Ely") + 0.3 * NOISE
AGE[::11] = np.nan
TABLE = pa.table({"age": AGE, "city": CITY, "other": RNG.normal(size=N)})
TARGETS: dict[str, Any] = {
    "two": np.where(np.median(SCORE) < SCORE, "yes", "no"),
    "three": np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6])),
    "numbers": SCORE,
}
MODELS = ["baseline", "decision_tree", "random_forest"]


@pytest.fixture(scope="module", params=list(TARGETS))
def compared(request: pytest.FixtureRequest) -> Any:
    return spinney.compare(TABLE, TARGETS[request.param], cv=4, models=MODELS)


def test_all_parts_of_the_evidence(compared: Any) -> None:
    steps: list[str] = []
    evidence = build_evidence(compared, origin=Origin("shop.csv", "score"), on_step=steps.append)
    assert evidence.not_shown == []
    assert steps
    assert evidence.title == "shop.csv: score"
    assert [column.name for column in evidence.columns] == ["age", "city", "other"]
    assert len(evidence.learning_curves) == 3
    assert len(evidence.importances) == 3
    assert evidence.importances[0].columns[0] in ("age", "city")
    assert {curve.column for curve in evidence.dependences} >= {"age", "city"}
    assert evidence.tree_svg is not None
    assert evidence.tree_svg.startswith("<svg")
    assert evidence.predictions is not None
    classes = compared.task == "classification"
    assert (evidence.confusion is not None) is classes
    assert bool(evidence.calibrations) is classes
    assert bool(evidence.rocs) is classes
    assert (evidence.residuals is not None) is not classes
    assert list(evidence.settings)[:3] == ["table", "measure", "seed"]
    _all_finite(evidence)


def _all_finite(part: Any, name: str = "evidence") -> None:
    """Only a standard error of one fold may be NaN."""
    if isinstance(part, float):
        assert math.isfinite(part), name
    elif isinstance(part, list | tuple):
        for item in part:
            _all_finite(item, name)
    elif hasattr(part, "__dataclass_fields__"):
        for field in part.__dataclass_fields__:
            _all_finite(getattr(part, field), f"{name}.{field}")


class CountingTree(DecisionTreeClassifier):
    """A tree that counts how often one is fitted on how many rows."""

    fits: ClassVar[list[int]] = []

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        self.fits.append(len(y))
        return super().fit(X, y, **fit_params)


@pytest.mark.parametrize("largest", [16_000_000, 0])
def test_small_models_of_the_first_fold_are_not_fitted_again(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_LARGEST_KEPT", largest)
    CountingTree.fits.clear()
    result = spinney.compare(TABLE, TARGETS["two"], cv=4, models=[CountingTree(random_state=0)])
    compared = result.compared
    assert compared is not None
    trials = compared.trials["counting_tree"]
    assert [trial.model is not None for trial in trials] == [largest > 0, False, False, False]
    evidence = build_evidence(result, origin=Origin("shop.csv", "two"))
    assert evidence.not_shown == []
    n_train = len(compared.splits[0][0])
    assert CountingTree.fits.count(n_train) == 4 + (
        largest == 0
    )  # other row counts belong to the learning curve
    fitted = FittedOnFold(compared, "counting_tree")
    assert (fitted.model is trials[0].model) == (largest > 0)
    np.testing.assert_array_equal(fitted.model.predict(fitted.X), trials[0].predicted)


def test_diagnostics_agree_with_scikit_learn(compared: Any) -> None:
    name, data = "random_forest", compared.compared
    predicted = compared.predictions(name)
    if compared.task == "regression":
        left = summarize_residuals(data, name)
        assert left.bias == pytest.approx(np.mean(data.y - predicted))
        assert left.median_absolute == pytest.approx(
            metrics.median_absolute_error(data.y, predicted)
        )
        assert sum(left.histogram.counts) == pytest.approx(N, abs=4)
        return
    counted = count_confusion(data, name)
    np.testing.assert_array_equal(counted.counts, metrics.confusion_matrix(data.y, predicted))
    probabilities = data.probabilities(name)
    rocs, precisions = rate_curves(data, [name])
    assert len(rocs) == (1 if len(data.classes) == 2 else 3)
    for roc, precision in zip(rocs, precisions, strict=True):
        code = [str(label) for label in data.classes].index(roc.about)
        truth = data.y == data.classes[code]
        assert roc.area == pytest.approx(metrics.roc_auc_score(truth, probabilities[:, code]))
        average = metrics.average_precision_score(truth, probabilities[:, code])
        assert precision.area == pytest.approx(average)
        assert precision.floor == pytest.approx(truth.mean())
    (curve,) = calibration_curves(data, [name])
    assert sum(curve.counts) == N
    event = probabilities[:, 1] if len(data.classes) == 2 else probabilities.max(axis=1)
    assert np.average(curve.predicted, weights=curve.counts) == pytest.approx(event.mean())


def test_learning_curves_end_where_the_comparison_did(compared: Any) -> None:
    data = compared.compared
    curve = measure_learning_curve(data, "decision_tree")
    assert curve.sizes == [22, 45, 90, 180]
    last = np.mean([trial.score for trial in data.trials["decision_tree"][:3]])
    assert curve.means[-1] == pytest.approx(last)
    assert curve.means[0] >= curve.means[-1]


def test_intervals_reach_their_coverage(compared: Any) -> None:
    for name in MODELS[1:]:
        found = predicted_rows(compared.compared, name, coverage=0.8)
        assert found is not None
        assert found.reached >= 0.8 - 2 * math.sqrt(0.16 / N)
        for row in [*found.typical, *found.worst]:
            truth = compared.compared.y[row.row - 1]
            if compared.task == "regression":
                assert row.low is not None
                assert row.high is not None
                assert row.right == (row.low <= truth <= row.high)
            else:
                assert row.actual == str(truth)
                assert row.predicted in row.prediction_set


def test_intervals_by_brute_force() -> None:
    result = spinney.compare(TABLE, SCORE, cv=4, models=["decision_tree"])
    data = result.compared
    assert data is not None
    found = predicted_rows(data, "decision_tree", coverage=0.9)
    assert found is not None
    errors = np.abs(SCORE - result.predictions())
    for row in found.typical:
        fold = next(test for _, test in data.splits if row.row - 1 in test)
        others = np.sort(np.delete(errors, fold))
        half = others[math.ceil((len(others) + 1) * 0.9) - 1]
        assert row.low is not None
        assert row.high is not None
        assert row.high - row.low == pytest.approx(2 * half)


def test_sets_of_an_accurate_model() -> None:
    """If the accuracy is above the coverage, each set has only the predicted class."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    result = spinney.compare(X, y, cv=4, models=["decision_tree"])
    assert result.best is not None
    assert result.best.estimate is not None
    assert result.best.estimate.mean < 0.1
    found = predicted_rows(result.compared, "decision_tree")  # type: ignore[arg-type]
    assert found is not None
    assert found.width == 1
    assert found.reached == pytest.approx(1 - result.best.estimate.mean)
    assert all(row.prediction_set == [row.predicted] for row in [*found.typical, *found.worst])


def test_evidence_without_time() -> None:
    result = spinney.compare(TABLE, TARGETS["two"], cv=3, models=["random_forest"])
    evidence = build_evidence(result, origin=Origin("shop.csv"), seconds=0.0)
    assert "learning curve of random_forest: no time" in evidence.not_shown
    assert evidence.columns


def test_dates_are_written_as_dates(tmp_path: Path) -> None:
    rows = [
        f"{row % 28 + 1}.{row % 12 + 1}.2024,{row % 24:02}:30,{row % 12 + row % 5 / 9}"
        for row in range(90)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["when,clock,y", *rows]), encoding="utf-8")
    data = spinney.io.read_training_table(path, "y")
    result = spinney.compare(data.X, data.y, cv=3, models=["decision_tree"])
    evidence = build_evidence(
        result, origin=Origin("t.csv", "y"), kinds=data.kinds, frame=data.frame, seconds=20
    )
    assert evidence.contributions is not None
    written = {
        name: value for row in evidence.contributions.examples for name, value, _ in row.parts
    }
    assert re.fullmatch(r"2024-\d\d-\d\d", written["when"])
    page = render_page(result, evidence)
    assert "2024-01-01 … 2024-12-28, mean 2024-" in page
    assert "00:30 … 23:30, mean 1" in page
    assert "days since 1970" in page


def test_probabilities_that_never_change(tmp_path: Path) -> None:
    """Rounding errors must not determine the axis of the chart."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.array([f"c{number:02}" for number in np.argsort(np.argsort(X[:, 0])) // 20])
    result = spinney.compare(X, y, cv=3, models=["decision_tree"])
    evidence = build_evidence(result, origin=Origin("t.csv", "y"), seconds=20)
    levels = [level for curve in evidence.dependences for _, level in curve.accumulated]
    assert levels
    assert all(level == 0 or abs(level) > 1e-9 for level in levels)


def test_report_issues_no_warnings(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Warnings about subsets with nearly as many classes as rows are suppressed."""
    X = np.random.default_rng(0).normal(size=(160, 2))
    y = np.array([f"c{number}" for number in np.argsort(np.argsort(X[:, 0])) // 4])
    result = spinney.compare(X, y, cv=3, models=["decision_tree"])
    recwarn.clear()
    page = result.report(tmp_path / "report.html", seconds=20)
    assert [str(warning.message) for warning in recwarn.list] == []
    assert "learning" in page.read_text(encoding="utf-8")


def test_profile_of_unused_columns() -> None:
    frame = pa.table({"a": range(40), "who": [row % 8 for row in range(40)], "l": [[1]] * 40})
    kinds = decide_kinds(frame, overrule={"who": "dropped"})
    _, who, lists = profile_columns(kinds.prepare(frame), kinds, frame)
    assert (who.used, who.distinct) == (False, 8)
    assert (lists.used, lists.distinct) == (False, 0)


def test_profile_of_columns() -> None:
    age, city, _ = profile_columns(TABLE)
    assert (age.kind, age.missing, age.distinct) == ("number", 22, len(np.unique(AGE[AGE == AGE])))
    assert age.mean == pytest.approx(np.nanmean(AGE))
    assert age.histogram is not None
    assert sum(age.histogram.counts) == N - 22
    assert city.kind == "category"
    assert dict(city.common) == {name: int((name == CITY).sum()) for name in set(CITY)}


@pytest.mark.parametrize(
    "values",
    [[], [np.nan], [np.inf, -np.inf], [1.0], [1e308, -1e308], [1.0, np.nextafter(1, 2)], [3, 4, 5]],
)
def test_histograms_of_extreme_values(values: list[float]) -> None:
    array = np.array(values, dtype=float)
    histogram = histogram_of(array)
    if histogram is not None:
        assert sum(histogram.counts) == np.isfinite(array).sum()
        assert (np.diff(histogram.edges) > 0).all()


@pytest.mark.parametrize("change", [{}, {"max_folds": 2}, {"max_rows": 100}, {"scoring": "mae"}])
def test_recipe_gives_the_same_numbers(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "shop.csv"
    pa.csv.write_csv(TABLE.append_column("score", pa.array(SCORE)), path)
    data = spinney.io.read_training_table(path, "score")
    result = spinney.compare(data.X, data.y, cv=3, models=["ridge", "bagging"], **change)
    load = f"data = spinney.io.read_training_table({str(path)!r}, 'score')"
    origin = Origin("shop.csv", "score", (load, "X, y = data.X, data.y"))
    code = build_evidence(result, origin=origin, seconds=0.0).code
    assert len(code.splitlines()) == 5
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["result"].results[0].estimate == result.results[0].estimate
    assert names["model"].predict(data.X).shape == (N,)


def test_report(tmp_path: Path, compared: Any) -> None:
    path = compared.report(tmp_path / "report.html", title="a <b>table</b>", target="score")
    text = path.read_text(encoding="utf-8")
    assert "a &lt;b&gt;table&lt;/b&gt;" in text
    assert "random_forest" in text


def test_recipes_have_the_arguments() -> None:
    groups = np.repeat(np.arange(24), 10)
    options = {"models": ["baseline", "decision_tree"], "random_state": 1}
    codes = TABLE.drop_columns("city").to_pandas().fillna(0).round().to_numpy()
    for change, argument in (
        ({"cv": 3, "groups": groups}, "groups=groups"),
        ({"cv": 3, "time": np.arange(N)}, "time=time"),
        ({"cv": [(np.arange(120), np.arange(120, N))] * 2}, "cv=cv"),
        ({"cv": 3, "scoring": lambda model, X, y: model.score(X, y)}, "scoring=scoring"),
        ({"cv": 3, "categorical_features": [1]}, "categorical_features=[1]"),
    ):
        result = spinney.compare(codes, TARGETS["two"], **options, **change)  # type: ignore[arg-type]
        evidence = build_evidence(result, origin=Origin("a table"))
        assert argument in evidence.code
        assert "random_state=1" in evidence.code
        failed = [part for part in evidence.not_shown if "Error" in part]
        assert failed == []


def test_rows_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    gone = pa.array([None if row < 100 else float(score) for row, score in enumerate(SCORE)])
    pa.csv.write_csv(TABLE.append_column("score", gone), path)
    data = spinney.io.read_training_table(path, "score")
    result = spinney.compare(data.X, data.y, cv=3, models=["decision_tree"])
    evidence = build_evidence(result, origin=Origin("shop"), row_numbers=data.rows)
    assert evidence.predictions is not None
    for row in [*evidence.predictions.typical, *evidence.predictions.worst]:
        assert float(row.actual) == pytest.approx(SCORE[row.row - 1], rel=1e-5)


def test_only_wrong_rows_are_most_wrong() -> None:
    y = TARGETS["two"].copy()
    result = spinney.compare(TABLE, y, cv=4, models=["random_forest"])
    found = predicted_rows(result.compared, "random_forest")  # type: ignore[arg-type]
    assert found is not None
    assert not any(row.right for row in found.worst)
