"""Contributions in reports: sums, held-out rows, agreement with spinney.inspection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney.comparison.deadline import TimeUp
from spinney.comparison.recipe import Origin
from spinney.comparison.scaled_linear import ScaledLogisticRegression, ScaledRidge
from spinney.inspection import accumulated_local_effects, explain
from spinney.linear_model import LinearRegression
from spinney.report.build_evidence import build_evidence
from spinney.report.conformal_evidence import own_coverage, predicted_rows
from spinney.report.importances_and_dependence import FittedOnFold, dependence_curves
from spinney.report.model_explainer import ModelExplainer
from spinney.report.shap_contributions import contributions

RNG = np.random.default_rng(1)
N = 240
TABLE = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 11, RNG.integers(18, 80, N), np.nan),
        "city": pd.Categorical(RNG.choice(["Bath", "York", "Ely"], N)),
        "same": np.full(N, 7.0),
        "other": RNG.normal(size=N),
    }
)
SCORE = np.nan_to_num(TABLE.age, nan=50) / 20 + (TABLE.city == "Ely") + 0.3 * RNG.normal(size=N)
TARGETS: dict[str, Any] = {
    "numbers": SCORE.to_numpy(),
    "two": np.where(np.median(SCORE) < SCORE, "yes", "no"),
    "three": np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6])),
}
MODELS = {
    "numbers": ["random_forest", "boosted_stumps", "ridge", "k_neighbors", "decision_tree_pruned"],
    "two": ["random_forest", "logistic_regression", "perceptron", "ada_boost"],
    "three": ["extra_trees", "logistic_regression", "mixture"],
}


def fitted_on(target: str, name: str) -> FittedOnFold:
    result = spinney.compare(TABLE, TARGETS[target], cv=3, models=[name])
    assert result.compared is not None
    return FittedOnFold(result.compared, name)


@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target, names in MODELS.items() for name in names]
)
def test_contributions_sum_to_the_output(target: str, name: str) -> None:
    fitted = fitted_on(target, name)
    found = contributions(fitted, 60.0)
    assert sorted(found.columns) == sorted(TABLE.columns)
    assert found.means == sorted(found.means, reverse=True)
    assert dict(zip(found.columns, found.means, strict=True))["same"] == 0  # constant
    assert len(found.amounts) == len(found.ranks) == sum(mean > 0 for mean in found.means)
    for column, amounts, ranks in zip(found.columns, found.amounts, found.ranks, strict=False):
        assert len(amounts) == len(ranks) == found.n_rows <= 80
        ranked = [rank for rank in ranks if rank is not None]
        assert bool(ranked) is (column != "city")
        assert all(0 <= rank <= 1 for rank in ranked)
    assert found.by_row is (target == "three")
    assert len(found.examples) >= 3
    assert len({row.prediction.row for row in found.examples}) == len(found.examples)
    _, test = fitted.compared.splits[0]
    for row in found.examples:
        assert row.prediction.row - 1 in test
        parts = sum(amount for _, _, amount in row.parts) + row.rest
        assert row.base + parts == pytest.approx(row.output, rel=1e-9)
        assert len(row.parts) + row.n_rest == 4
        amounts = [abs(amount) for _, _, amount in row.parts]
        assert amounts == sorted(amounts, reverse=True)
        line = TABLE.iloc[[row.prediction.row - 1]]
        for column, cell, _ in row.parts:
            value = line[column].iloc[0]
            if isinstance(value, str):
                assert cell == value
            elif np.isnan(value):
                assert cell == "missing"
            else:
                assert float(cell) == pytest.approx(value, rel=1e-5)
        if target == "numbers":
            assert row.output == pytest.approx(fitted.model.predict(line)[0], rel=1e-6)
            assert row.prediction.low is not None
        elif found.about.startswith("probability"):
            shares = fitted.model.predict_proba(line)[0]
            expected = shares.max() if target == "three" else shares[1]
            assert row.output == pytest.approx(expected, abs=1e-9)


def test_worst_row_is_among_the_examples() -> None:
    fitted = fitted_on("numbers", "random_forest")
    found = contributions(fitted, 60.0)
    off = np.abs(fitted.y - fitted.model.predict(fitted.X))
    worst = int(fitted.rows[np.argmax(off)])
    assert [row.prediction.row for row in found.examples if row.title == "Most wrong"] == [
        worst + 1
    ]
    # The same prediction as in the table of predictions.
    listed = predicted_rows(fitted.compared, "random_forest")
    assert listed is not None
    both = {row.row: row for row in [*listed.typical, *listed.worst]}
    for row in found.examples:
        assert both.get(row.prediction.row, row.prediction) == row.prediction


def test_contributions_are_reproducible() -> None:
    once, again = (contributions(fitted_on("numbers", "k_neighbors"), 60.0) for _ in range(2))
    assert once == again
    assert once.method.startswith("sampling")


def test_sampling_needs_time() -> None:
    fitted = fitted_on("numbers", "k_neighbors")
    with pytest.raises(TimeUp):
        contributions(fitted, 1e-6)
    result = spinney.compare(TABLE, TARGETS["two"], cv=3, models=["k_neighbors"])
    evidence = build_evidence(result, origin=Origin("shop"), seconds=0.0)
    assert evidence.contributions is None


def test_few_rows_of_large_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fitted_on("numbers", "random_forest")
    assert contributions(fitted, 60.0).n_rows == 80
    monkeypatch.setattr("spinney.report.shap_contributions._EXACT_SECONDS", 1e-6)
    found = contributions(fitted, 60.0)
    assert found.n_rows == 30
    assert all(row.prediction.row - 1 in fitted.rows for row in found.examples)
    with pytest.raises(TimeUp):
        contributions(fitted, 1e-6)


def test_models_without_held_out_rows() -> None:
    result = spinney.compare(TABLE, TARGETS["numbers"], cv=3, models=["boosted_small_trees"])
    evidence = build_evidence(result, origin=Origin("shop"))
    assert evidence.own_coverage is None
    (reason,) = evidence.not_shown
    assert reason == (
        "own intervals or sets of boosted_small_trees: its fit held out no rows, or too few"
    )


def test_trees_are_explained_as_inspection_does() -> None:
    fitted = fitted_on("two", "random_forest")
    found = contributions(fitted, 60.0)
    values = explain(fitted.model, fitted.X).values[:, :, 1]
    means = dict(zip(TABLE.columns, np.abs(values).mean(axis=0), strict=True))
    assert dict(zip(found.columns, found.means, strict=True)) == pytest.approx(means, rel=1e-9)


@pytest.mark.parametrize("background", [None, TABLE[:50]])
def test_linear_models_on_scaled_columns(background: Any) -> None:
    model = ScaledRidge().fit(TABLE, SCORE)
    explainer = ModelExplainer(model)
    assert explainer.exact
    assert not explainer.compares
    found = explainer.explain(TABLE, model.predict(TABLE), background)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(TABLE))
    points = model.scaled_columns(TABLE)
    reference = np.array([0, 1 / 3, 1 / 3, 1 / 3, 0, 0])
    if background is not None:
        reference = model.scaled_columns(background).mean(axis=0)
    parts = (points - reference) * model.estimator_.coef_
    np.testing.assert_allclose(found.values[:, 0], parts[:, 0], atol=1e-12)
    np.testing.assert_allclose(found.values[:, 1], parts[:, 1:4].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.values[:, 3], parts[:, 5], atol=1e-12)


def test_several_classes_explain_the_predicted_one() -> None:
    y = TARGETS["three"]
    model = ScaledLogisticRegression().fit(TABLE, y)
    found = ModelExplainer(model).explain(TABLE, model.predict(TABLE))
    assert found.about == "score before softmax of the predicted class"
    scores = model.estimator_.decision_function(model.scaled_columns(TABLE))
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), scores.max(axis=1))


def test_several_outputs_raise() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    model = LinearRegression().fit(X, np.column_stack([X, X[:, 0]]))
    explainer = ModelExplainer(model)
    assert explainer.compares
    with pytest.raises(ValueError, match="expected one output, got 3"):
        explainer.explain(X, model.predict(X), X)


def test_intervals_and_sets_of_the_model_itself() -> None:
    fitted = fitted_on("numbers", "random_forest")
    found = own_coverage(fitted, 0.8)
    assert found is not None
    low, high = fitted.model.predict_interval(fitted.X, coverage=0.8).T
    assert found.reached == np.mean((low <= fitted.y) & (fitted.y <= high))
    assert found.width == np.median(high - low)
    assert found.method == fitted.model.interval_method_
    fitted = fitted_on("three", "random_forest")
    found = own_coverage(fitted, 0.8)
    assert found is not None
    inside = fitted.model.predict_set(fitted.X, coverage=0.8)
    assert found.reached == np.mean([inside[i, label] for i, label in enumerate(fitted.y)])
    assert found.width == inside.sum() / len(inside)
    assert own_coverage(fitted_on("two", "decision_tree")) is None


def test_effects_beside_dependence() -> None:
    fitted = fitted_on("two", "random_forest")
    age, city = dependence_curves(fitted, ["age", "city"], "bought")
    for curve in (age, city):
        found = accumulated_local_effects(
            fitted.model, fitted.X, curve.column, target="yes", n_intervals=24
        )
        assert [value for value, _ in curve.accumulated] == list(found.grids[0].values)
        levels = [level for _, level in curve.accumulated]
        np.testing.assert_allclose(levels, found.effect[0] + found.mean[0])
    assert {value for value, _ in city.accumulated} <= set(city.values)
