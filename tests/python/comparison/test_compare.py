"""`spinney.compare`: tasks, folds, ranking, failures, rendering."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import spinney
from spinney.comparison import families
from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.comparison.families import FAMILIES
from spinney.comparison.progress import Step
from spinney.data.target import infer_task, read_target

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
LABELS = np.where(X[:, 0] + 0.3 * RNG.normal(size=120) > 0, "yes", "no")
NUMBERS = 100 * X[:, 0] + 10 * RNG.normal(size=120)


# The task


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 10, "classification"),
        ([True, False] * 10, "classification"),
        ([0, 1, 2, 2, 1, 0] * 5, "classification"),
        (list(range(40)) * 2, "regression"),  # integers, but many distinct ones
        (list(range(10)), "regression"),  # few values, but all different
        ([0.5, 1.5, 2.5] * 10, "regression"),
        ([1.0, 2.0, 3.0] * 10, "regression"),
        ([0.0, 1.0] * 10, "classification"),
        ([-1.0, 1.0] * 10, "classification"),
    ],
)
def test_task_is_inferred_from_values(y: list[Any], task: str) -> None:
    assert infer_task(np.asarray(y)) == task
    assert read_target(y)[1] == task


def test_task_is_inferred_from_pandas() -> None:
    pd = pytest.importorskip("pandas")
    for y, task, kind in [
        (pd.Series(["a", "b", "a", "b"]), "classification", "O"),
        (pd.Series(["a", "b", "a", "b"], dtype="category"), "classification", "O"),
        (pd.Series([1, 2, 1, 2], dtype="Int64"), "classification", "i"),
        (pd.Series([True, False, True, False], dtype="boolean"), "classification", "b"),
        (pd.Series([0.1, 0.2, 0.3, 0.4], dtype="Float64"), "regression", "f"),
        (pd.DataFrame({"only": [1, 1, 2, 2]}), "classification", "i"),
    ]:
        values, inferred = read_target(y)
        assert inferred == task
        assert values.dtype.kind == kind or (kind == "O" and values.dtype.kind in "UT")


def test_task_is_inferred_from_polars_and_arrow() -> None:
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    for y in (
        pl.Series("t", ["u", "v", "u", "v"], dtype=pl.Categorical),
        pa.chunked_array([pa.array(["u", "v", "u", "v"]).dictionary_encode()]),
    ):
        values, task = read_target(y)
        assert task == "classification"
        assert values.tolist() == ["u", "v", "u", "v"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0], "target 'y' is missing in 1 of 3 rows"),
        (["a", None, "b"], "target 'y' is missing in 1 of 3 rows"),
        (["a", float("nan"), "b"], "target 'y' is missing in 1 of 3 rows"),
        ([None, None], "target 'y' is missing in all rows"),
        (["a", 1], "target 'y' mixes text"),
        (np.array([1j, 2.0]), "target 'y' must hold text or numbers, got complex numbers"),
        (["a", "a"], "target 'y' has one class only: a"),
        ([[1, 2], [3, 4]], "target 'y' must be one column"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), "holds dates"),
        ([np.inf, 1.5, 2.5], "target 'y' holds infinite values"),
    ],
)
def test_invalid_target_raises(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_target(y)


@pytest.mark.parametrize(
    ("texts", "raises"),
    [
        ([f"{k / 100:.2f} €" for k in range(97)], True),
        ([f"€{k / 100:.2f}" for k in range(97)], True),
        ([f"USD {k / 100:.2f}" for k in range(97)], True),
        ([f"{k / 4}%" for k in range(6)], True),
        ([f"{k * 137:,}" for k in range(97)], True),
        ([f"{k * 137.5:,.2f}".translate(str.maketrans(",.", ".,")) for k in range(97)], True),
        ([f"{k * 137:,} km".replace(",", "\u202f") for k in range(97)], True),
        ([f"−{k} °C" for k in range(21)], True),
        ([f"{k / 7:.3f}" for k in range(97)] + ["unknown"], True),
        # Few distinct values are allowed, like few distinct integers.
        ([f"{k / 2} mg" for k in range(5)], False),
        ([f"{k} months" for k in range(20)], False),
        # Labels that contain digits.
        ([f"cluster {k}" for k in range(97)], False),
        ([f"{k}{side}" for k in range(40) for side in "AB"], False),
        ([f"{k}-{k + 4}" for k in range(97)], False),
        ([f"0{k:03}" for k in range(97)], False),
        ([f"0{k:03}" for k in range(97)] + ["unknown"], False),
        ([f"2.{k}.1" for k in range(97)], False),
        ([f"word{k}" for k in range(97)], False),
    ],
)
def test_numbers_written_as_text_raise(texts: list[str], raises: bool) -> None:
    y = np.array(texts * 3)
    X = np.arange(len(y), dtype=float)[:, np.newaxis]
    with nullcontext() if not raises else pytest.raises(ValueError, match="write numbers plainly"):
        spinney.compare(X, y, models=["baseline"], cv=2)
    result = spinney.compare(X, y, models=["baseline"], cv=2, task="classification")
    n_classes = len(texts)
    many_classes_note = (
        f"{n_classes} classes in {3 * n_classes} rows, 3.0 rows per class on average: "
    )
    assert any(note.startswith(many_classes_note) for note in result.notes) == (n_classes > 20)


def test_declared_categories_are_classes() -> None:
    y = pd.Series([f"{k / 100:.2f} €" for k in range(97)] * 3, dtype="category")
    X = np.arange(len(y), dtype=float)[:, np.newaxis]
    assert spinney.compare(X, y, models=["baseline"], cv=2).task == "classification"


def test_bytes_are_classes_but_not_numbers() -> None:
    y = np.array([b"1", b"2.x"] * 3)
    assert read_target(y)[1] == "classification"
    with pytest.raises(ValueError, match="must hold numbers for regression, got bytes"):
        read_target(y, "regression")


def test_invalid_target_error_names_the_column() -> None:
    pd = pytest.importorskip("pandas")
    for values in ([1, None, 2], ["a", None, "b"], [1.5, np.nan, 2.5]):
        with pytest.raises(ValueError, match="target 'price' is missing in 1 of 3 rows"):
            read_target(pd.Series(values, name="price"))
    with pytest.raises(ValueError, match="target 'price' is missing in 1 of 3 rows"):
        read_target(pd.Series([1, None, 2], name="price", dtype="Int64"))
    with pytest.raises(ValueError, match="'price' must hold numbers for regression"):
        read_target(pd.Series(["a", "b"], name="price"), "regression")
    with pytest.raises(
        ValueError, match=r"2 of 3 values are not numbers, the first is 'a\{' in row 2$"
    ):
        read_target(pd.Series(["1.5", "a{", "b"], name="price"), "regression")
    with pytest.raises(ValueError, match="'price' holds fractions"):
        read_target(pd.Series([0.5, 1.5], name="price"), "classification")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_target_is_named_by_column(library: str) -> None:
    module = pytest.importorskip(library)
    columns = {"a": list(range(40)), "kind": ["p", "q"] * 20}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    result = spinney.compare(frame, "kind", models=["baseline"], cv=2)
    assert (result.n_features, result.n_rows, result.task) == (1, 40, "classification")
    with pytest.raises(ValueError, match=r"no column 'kinds' in X .*; did you mean 'kind'\?"):
        spinney.compare(frame, "kinds")
    with pytest.raises(ValueError, match="got the name 'kind', and X is not a data frame"):
        spinney.compare(np.zeros((40, 2)), "kind")
    with pytest.raises(ValueError, match=r"got the path 'shop.csv'; .*read_training_table"):
        spinney.compare("shop.csv", "kind")


def test_many_text_numbers_with_one_typo_raise() -> None:
    prices = [f"{number}.5" for number in range(80)]
    prices[33] = "oops"
    with pytest.raises(
        ValueError, match=r"as 1 value is not a number \(the first is 'oops' in row 34"
    ):
        spinney.compare(np.zeros((80, 1)), prices)


# The comparison


def test_classification_compares_all_families() -> None:
    result = spinney.compare(X, LABELS, cv=5)
    assert result.task == "classification"
    assert result.metric == "error"
    assert (result.n_rows, result.n_features, result.n_folds) == (120, 3, 5)
    names = [r.name for r in result.results]
    assert set(names) == {family.name for family in FAMILIES if "classification" in family.tasks}
    assert names[-1] == "baseline"
    assert result.best is result.results[0]
    means = [r.estimate.mean for r in result.results if r.estimate]
    assert means == sorted(means)
    for r in result.results:
        assert r.failure is None
        assert r.estimate is not None
        assert len(r.estimate.folds) == 5
        assert r.fit_seconds > 0
        assert r.predict_seconds > 0


def test_folds_equal_those_of_scikit_learn() -> None:
    """The folds are scikit-learn's shuffled stratified folds."""
    result = spinney.compare(X, LABELS, cv=5, models=["baseline"], random_state=3)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    errors = 1 - cross_val_score(DummyClassifier(), X, LABELS, cv=folds)
    estimate = result.results[0].estimate
    assert estimate is not None
    np.testing.assert_allclose(estimate.folds, errors)
    np.testing.assert_allclose(estimate.mean, errors.mean())
    np.testing.assert_allclose(estimate.se, errors.std(ddof=1) / np.sqrt(5))


def test_regression_ranks_by_rmse() -> None:
    result = spinney.compare(X, NUMBERS, cv=4)
    assert result.task == "regression"
    assert result.metric == "rmse"
    assert result.results[-1].name == "baseline"
    best = result.best
    assert best is not None
    assert best.r2 is not None
    assert best.r2.mean > 0.5
    assert "R²" in str(result)


def test_number_of_jobs_does_not_change_estimates() -> None:
    first, second = (spinney.compare(X, LABELS, cv=3, n_jobs=n) for n in (1, 2))
    assert [r.estimate for r in first.results] == [r.estimate for r in second.results]


def test_score_ranks_larger_values_first() -> None:
    result = spinney.compare(X, LABELS, cv=3, scoring="accuracy")
    assert result.greater_is_better
    assert result.metric == "accuracy"
    assert result.results[-1].name == "baseline"
    assert "accuracy % ± se" in str(result)


def test_cv_accepts_splits() -> None:
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    result = spinney.compare(X, NUMBERS, cv=splits, models=["decision_tree"])
    assert result.n_folds == 2
    assert not result.stratified


def test_kinds_of_data_frames_give_the_same_estimates() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(1000, 1120))
    expected = spinney.compare(X, LABELS, cv=3, models=["decision_tree"]).results[0].estimate
    assert expected is not None
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        result = spinney.compare(table, LABELS, cv=3, models=["decision_tree"])
        assert result.results[0].estimate == expected


def test_text_columns_are_categories() -> None:
    rng = np.random.default_rng(2)
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    colours = rng.permutation(["red", "green", "blue", "grey"] * 30)
    y = np.isin(colours, ["red", "grey"])
    frame = pd.DataFrame({"colour": colours, "noise": X[:, 0]})
    for table in (frame, frame.astype({"colour": "category"}), pl.from_pandas(frame)):
        result = spinney.compare(table, y, cv=3, models=["decision_tree"])
        assert result.results[0].failure is None
        assert result.results[0].estimate is not None
        assert result.results[0].estimate.mean == 0


def test_callbacks_receive_every_fit() -> None:
    steps: list[Step] = []
    spinney.compare(X, LABELS, cv=3, models=["baseline", "decision_tree"], callbacks=[steps.append])
    assert [step.done for step in steps] == [0, 1, 2, 3, 4, 5, 6]
    assert {step.total for step in steps} == {6}
    names = [step.model for step in steps]
    assert names[:2] == ["baseline", "decision_tree"]
    # Later folds start with the model that was faster in the first.
    assert set(names[2:4]) == set(names[4:6]) == {"baseline", "decision_tree"}
    assert names[6:] == [""]
    assert steps[0].seconds_left is None
    assert all(step.seconds_left is not None for step in steps[2:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ["decision_tre"]}, "models has no 'decision_tre'; did you mean"),
        ({"models": []}, "models is empty"),
        ({"cv": 1}, "cv must be between 2"),
        ({"cv": 100}, "cv=100 folds need a class of 100 rows"),
        ({"task": "clustering"}, "task must be"),
        ({"y": LABELS[:50]}, "X has 120 rows, y has 50"),
        ({"X": X[:0], "y": []}, "X is empty"),
        ({"X": X[:, 0]}, "X must have two dimensions"),
    ],
)
def test_invalid_arguments_raise(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spinney.compare(**{"X": X, "y": LABELS, **change})


def test_rare_class_is_noted() -> None:
    y = LABELS.copy().astype(object)
    y[:2] = "rare"
    result = spinney.compare(X, y, cv=3, models=["baseline"])
    assert result.notes == ["the rarest class has 2 rows, fewer than the 3 folds"]


class Failing:
    """An estimator that cannot be fitted."""

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any) -> Any:
        raise RuntimeError("no luck\ntoday")


@pytest.fixture
def failing_family(monkeypatch: pytest.MonkeyPatch) -> None:
    family = families.Family("failing", "never works", lambda *arguments: Failing())
    monkeypatch.setattr(families, "FAMILIES", (family, *families.FAMILIES))


def test_models_without_errors_are_noted() -> None:
    models = ["baseline", "linear_regression"]
    exact = spinney.compare(X, X[:, 0] + X[:, 1], task="regression", models=models, cv=3)
    assert any("linear_regression makes no error" in note for note in exact.notes)
    noisy = spinney.compare(X, NUMBERS, task="regression", models=models, cv=3)
    assert not any("no error" in note for note in noisy.notes)


@pytest.mark.usefixtures("failing_family")
def test_failed_model_is_reported_and_others_continue() -> None:
    result = spinney.compare(X, LABELS, cv=3)
    assert [r.name for r in result.results][-1] == "failing"
    assert result.results[-1].failure == "RuntimeError: no luck today"
    assert result.best is not None
    for text in (str(result), result._repr_html_()):
        assert "failing failed: RuntimeError: no luck today" in text
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.usefixtures("failing_family")
def test_result_when_all_models_fail() -> None:
    result = spinney.compare(X, LABELS, cv=3, models=["failing"])
    assert result.best is None
    assert result.to_dict()["best"] is None
    assert "failed" in str(result)


def test_table_that_no_model_can_read_raises() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2024-01-01", periods=120)})
    models = ["baseline", "decision_tree", "logistic_regression"]
    with pytest.raises(ValueError, match=r"no model can .*'day'.*decide_kinds\(X\)\.prepare"):
        spinney.compare(frame, LABELS, models=models, cv=3)
    prepared = spinney.io.decide_kinds(frame).prepare(frame)
    assert spinney.compare(prepared, LABELS, models=models, cv=3).n_features == 2
    with pytest.raises(ValueError, match="Complex data") as raised:
        spinney.compare(X + 1j, LABELS, models=models, cv=3)
    assert len(str(raised.value)) < 400


def test_custom_estimators() -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    nearest = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
    models = ["baseline", SVC(), KNeighborsClassifier(), ("scaled", nearest)]
    result = spinney.compare(X, LABELS, models=models, cv=4)
    # Custom models do not take names of the built-in models.
    assert {r.name for r in result.results} == {"baseline", "svc", "k_neighbors_2", "scaled"}
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    expected = 1 - cross_val_score(nearest, X, LABELS, cv=folds)
    estimate = result["scaled"].estimate
    assert estimate is not None
    np.testing.assert_allclose(estimate.folds, expected)
    assert not hasattr(nearest, "classes_")  # the given model is not fitted
    assert isinstance(result.fit("svc"), SVC)
    assert isinstance(pickle.loads(pickle.dumps(result)).make("svc"), SVC)
    assert result.compared is not None
    assert result.compared.given["models"] == "models"
    by_name = spinney.compare(X, LABELS, models={"mine": SVC()}, cv=3)
    assert [r.name for r in by_name.results] == ["mine"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([DummyClassifier], "got the class DummyClassifier"),
        ([("random_forest", DummyClassifier())], "a new name, got 'random_forest'"),
        ([("mine", 3)], "expected an estimator for 'mine', got 3"),
        ([spinney.ensemble.RandomForestRegressor()], "does not support classification"),
        ([3], "models has no 3"),
    ],
)
def test_invalid_models_raise(models: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spinney.compare(X, LABELS, models=models, cv=3)


def test_ranking_on_spam() -> None:
    """Bagging beats a tree; a forest and boosting beat bagging with similar errors."""
    spam, y = spinney.datasets.load_spam(return_X_y=True)
    models = ["decision_tree_pruned", "bagging", "random_forest", "boosted_small_trees"]
    result = spinney.compare(spam, y, cv=5, models=models)
    errors = {r.name: r.estimate.mean for r in result.results if r.estimate}
    assert errors["decision_tree_pruned"] > errors["bagging"]
    assert errors["bagging"] > errors["random_forest"]
    assert errors["bagging"] > errors["boosted_small_trees"]
    assert abs(errors["random_forest"] - errors["boosted_small_trees"]) < 0.005
    assert not result["decision_tree_pruned"].tied


# Rendering


def example_comparison() -> Comparison:
    return Comparison(
        task="classification",
        metric="error",
        greater_is_better=False,
        n_rows=1000,
        n_features=5,
        n_folds=2,
        stratified=True,
        results=[
            ModelResult(
                "tree", "A tree", Estimate.from_folds([0.1, 0.13]), None, 0.25, 0.0001, 1500
            ),
            ModelResult("<b>", "Odd", Estimate.from_folds([0.5, 0.5]), None, 1.5, 0.01),
        ],
        notes=["a note"],
    )


def test_result_as_plain_text() -> None:
    assert str(example_comparison()).splitlines() == [
        "classification · 1,000 rows × 5 columns · 2 stratified folds",
        "",
        "  model  error % ± se  fit s  predict s    size",
        "* tree     11.5 ± 1.5  0.250     <0.001  1.5 kB",
        "  <b>      50.0 ± 0.0  1.500      0.010       –",
        "Note: a note",
    ]


def test_html_escapes_names() -> None:
    html = example_comparison()._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_rich_shows_the_table() -> None:
    console = pytest.importorskip("rich.console").Console(width=80)
    with console.capture() as captured:
        console.print(example_comparison())
    assert "* tree" in captured.get()
    assert "11.5 ± 1.5" in captured.get()


def test_to_dict_is_json() -> None:
    content = example_comparison().to_dict()
    assert content["best"] == "tree"
    assert content["results"][0]["estimate"]["folds"] == [0.1, 0.13]
    json.dumps(content, allow_nan=False)


def test_single_fold_has_no_standard_error() -> None:
    estimate = Estimate.from_folds([0.5])
    assert np.isnan(estimate.se)


# The pruned tree as an estimator


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_pruned_tree_fits_and_predicts(task: families.Task) -> None:
    from spinney.tree.pruned_tree import PrunedTreeClassifier, PrunedTreeRegressor

    y = LABELS if task == "classification" else NUMBERS
    cls = PrunedTreeClassifier if task == "classification" else PrunedTreeRegressor
    model = clone(cls(random_state=0)).fit(X, y)
    assert model.n_features_in_ == 3
    assert model.predict(X).shape == (120,)
    assert model.score(X, y) > 0.5
    if task == "classification":
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.predict_proba(X).shape == (120, 2)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_scaled_neighbors_fit_and_predict(task: families.Task) -> None:
    from spinney.comparison.scaled_neighbors import (
        ScaledNeighborsClassifier,
        ScaledNeighborsRegressor,
    )

    y = LABELS if task == "classification" else NUMBERS
    cls = ScaledNeighborsClassifier if task == "classification" else ScaledNeighborsRegressor
    model = clone(cls(random_state=0)).fit(X, y)
    assert model.n_features_in_ == 3
    assert model.score(X, y) > 0.5
    assert cls().fit(X[:4], y[:4]).predict(X).shape == (120,)  # fewer rows than neighbours
    subsampled = [cls(max_rows=30, random_state=1).fit(X, y) for _ in range(2)]
    assert subsampled[0].estimator_.n_samples_fit_ == 30
    np.testing.assert_array_equal(subsampled[0].predict(X), subsampled[1].predict(X))
    if task == "classification":
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.predict_proba(X).shape == (120, 2)


def test_families_have_unique_names_and_titles() -> None:
    names = [family.name for family in families.FAMILIES]
    assert len(set(names)) == len(names)
    for family in families.FAMILIES:
        assert family.name.isidentifier()
        assert family.name.islower()
        assert family.title
        for task in family.tasks:
            assert hasattr(family.make(task, 0, None), "fit")


def test_scaled_local_models_accept_mixed_tables():
    from spinney.comparison.scaled_local import ScaledLocalClassifier, ScaledLocalRegressor

    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n) * 1000,
            "c": rng.choice(list("abc"), n),
            "constant": 1.0,
            "gone": np.nan,
        }
    )
    y = frame["x"] / 1000 + (frame["c"] == "a") * 3
    frame.loc[rng.random(n) < 0.05, "x"] = np.nan
    model = ScaledLocalRegressor(max_rows=300, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.8
    classes = np.where(frame["c"] == "a", "yes", "no")
    classifier = ScaledLocalClassifier().fit(frame, classes)
    assert classifier.score(frame, classes) > 0.95
    np.testing.assert_allclose(classifier.predict_proba(frame).sum(axis=1), 1)
    unseen = frame[:2].assign(c=["never seen", None])
    assert np.isfinite(model.predict(unseen)).all()


def test_scaled_mixture_accepts_mixed_tables():
    from spinney.comparison.scaled_mixture import ScaledMixtureClassifier

    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n) * 1000,
            "c": rng.choice(list("abc"), n),
            "constant": 1.0,
            "gone": np.nan,
        }
    )
    y = np.where(np.abs(frame["x"]) < 700, "near", "far")  # not separable by a line
    frame.loc[rng.random(n) < 0.02, "x"] = np.nan
    model = ScaledMixtureClassifier().fit(frame, y)
    assert model.score(frame, y) > 0.7  # half of the rows are near
    proba = model.predict_proba(frame)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(model.predict_proba(frame[:2].assign(c=["never seen", None]))).all()
    subsampled = [
        ScaledMixtureClassifier(max_rows=100, random_state=1).fit(frame, y) for _ in range(2)
    ]
    np.testing.assert_array_equal(
        subsampled[0].predict_proba(frame), subsampled[1].predict_proba(frame)
    )
    regression_families = [family.name for family in families.select_families(None, "regression")]
    assert "mixture" not in regression_families
    with pytest.raises(ValueError, match="'mixture' does not support regression"):
        families.select_families(["mixture"], "regression")


def test_scaled_linear_models_accept_mixed_tables():
    from spinney.comparison import scaled_linear

    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, 300),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], 300)),
            "incomplete": np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300)),
        }
    )
    y = 0.1 * frame["size"] + 2.0 * (frame["kind"] == "b") + 0.1 * rng.normal(size=300)
    for kind in (scaled_linear.ScaledLinearRegression, scaled_linear.ScaledRidge):
        assert kind().fit(frame[:200], y[:200]).score(frame[200:], y[200:]) > 0.98
    labels = np.where(y > y.median(), "high", "low")
    for kind in (scaled_linear.ScaledLogisticRegression, scaled_linear.ScaledPerceptron):
        model = kind(random_state=0).fit(frame[:200], labels[:200])
        assert model.score(frame[200:], labels[200:]) > 0.9
        assert model.classes_.tolist() == ["high", "low"]
    probabilities = scaled_linear.ScaledLogisticRegression().fit(frame, labels).predict_proba(frame)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_explain_of_a_model() -> None:
    result = spinney.compare(X, LABELS, cv=3, models=["decision_tree", "logistic_regression"])
    explanation = result.explain("decision_tree", max_rows=20)
    model = result.fit("decision_tree")
    assert explanation.values.shape[:2] == (20, X.shape[1])
    sums = explanation.values.sum(axis=1) + explanation.base_values
    rows = np.unique(np.linspace(0, len(X) - 1, 20).astype(int))
    np.testing.assert_allclose(sums, model.predict_proba(X[rows]), atol=1e-9)
    assert result.explain(X=X[:3]).values.shape[0] == 3
    with pytest.raises(ValueError, match="max_rows"):
        result.explain(max_rows=0)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_date_columns_raise_with_a_hint(library: str) -> None:
    module = pytest.importorskip(library)
    days = np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]").astype("datetime64[us]")
    columns = {"a": list(range(40)), "when": days.tolist()}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    models = ["decision_tree", "random_forest"]
    with pytest.raises(ValueError, match=r"no model can be fitted: .* converts dates to numbers"):
        spinney.compare(frame, ["p", "q"] * 20, models=models, cv=2)
