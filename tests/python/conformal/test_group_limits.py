"""Higher limits of prediction sets for categories whose coverage would be too low."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import spinney
from spinney.calibration import ConformalClassifier
from spinney.conformal.group_limits import RowCategories, raised_limits
from spinney.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from spinney.linear_model import LogisticRegression
from spinney.neighbors import KNeighborsClassifier


def _phone_calls(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Create rows with few positives, except in two months with nearly half of them."""
    random = np.random.default_rng(seed)
    month = random.choice(["may", "june", "march", "october"], n_rows, p=[0.45, 0.35, 0.1, 0.1])
    probability = np.select([month == "march", month == "october"], [0.45, 0.4], 0.04)
    X = pd.DataFrame({"age": random.uniform(20, 60, n_rows), "month": month})
    X["loan"] = random.choice(["yes", "no"], n_rows)
    return X, np.where(random.uniform(size=n_rows) < probability, "yes", "no")


def _ages(X: Any) -> Any:
    return np.asarray(X[["age"]], dtype=np.float64)


FOREST = RandomForestClassifier(40, min_samples_leaf=20, random_state=0)
MODELS = {
    "forest": FOREST,
    "boosting": GradientBoostingClassifier(n_estimators=30, early_stopping=True, random_state=0),
    "bagging": BaggingClassifier(
        spinney.tree.DecisionTreeClassifier(min_samples_leaf=20), 20, random_state=0
    ),
    "neighbors": KNeighborsClassifier(60, metric="gower"),
    "of the bag": ConformalClassifier(FOREST, random_state=0),
    "set aside": ConformalClassifier(FOREST, method="split", random_state=0),
    "folds": ConformalClassifier(
        make_pipeline(FunctionTransformer(_ages), LogisticRegression()), random_state=0
    ),
}


def _covered(model: Any, X: Any, y: Any, **options: Any) -> Any:
    sets = model.predict_set(X, **options)
    assert sets.any(axis=1).all()
    return sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_no_category_has_much_lower_coverage(name: str, kind: Any) -> None:
    X, y = _phone_calls(4000, 0)
    X_test, y_test = _phone_calls(8000, 1)
    model = clone(MODELS[name]).fit(kind(X), y)
    covered = _covered(model, kind(X_test), y_test)
    assert "categories that would fall short" in model.set_method_
    for month in ("march", "october"):
        assert covered[X_test["month"] == month].mean() > 0.78
    assert 0.88 < covered.mean() < 0.98  # in the other months the most probable class covers 96 %


def test_methods_without_groups_use_one_limit() -> None:
    X, y = _phone_calls(4000, 0)
    X_test, y_test = _phone_calls(8000, 1)
    march = (X_test["month"] == "march").to_numpy()
    forest = clone(FOREST).fit(X, y)
    common = ConformalClassifier(FOREST, groups=None, random_state=0).fit(X, y)
    assert "categories" not in common.set_method_
    for covered in (
        _covered(forest, X_test, y_test, method="aps"),
        _covered(common, X_test, y_test),
    ):
        assert covered[march].mean() < 0.7
    raised = forest.predict_set(X_test)
    assert (raised | ~forest.predict_set(X_test, method="aps")).all()  # never fewer classes
    unseen = X_test.assign(month="july", loan=None)
    assert forest.predict_set(unseen).any(axis=1).all()


def test_calibration_rows_of_the_caller_have_categories(tmp_path: Path) -> None:
    X, y = _phone_calls(4000, 0)
    X_test, y_test = _phone_calls(8000, 1)
    model = RandomForestClassifier(40, min_samples_leaf=20, bootstrap=False, random_state=0)
    model.fit(X[:1000], y[:1000])
    covered = _covered(model, X_test, y_test, calibration=(X[1000:], y[1000:]))
    assert covered[X_test["month"] == "march"].mean() > 0.78
    fitted = clone(FOREST).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    loaded = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_set(X_test), fitted.predict_set(X_test))


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 400),
    n_columns=st.integers(1, 4),
    coverage=st.sampled_from([0.5, 0.8, 0.9, 0.99]),
    weighted=st.booleans(),
)
def test_every_category_reaches_the_floor(
    seed: int, n_rows: int, n_columns: int, coverage: float, weighted: bool
) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, random.integers(1, 12, n_columns), (n_rows, n_columns))
    scores = random.choice([-np.inf, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95], n_rows)
    scores = np.where(codes[:, 0] == 0, scores + 0.05, scores)
    limit = float(random.choice([-np.inf, 0.3, 0.6, 0.85]))
    weights = random.integers(1, 4, n_rows).astype(float) if weighted else None
    rows = RowCategories(codes.astype(np.uint8))
    limits = raised_limits(scores, limit, coverage, weights=weights, held=rows, new=rows)[:, 0]
    assert (limits >= limit).all()
    counted = np.ones(n_rows) if weights is None else weights / weights.mean()
    covered = scores <= limits
    floor = coverage - (1 - coverage) * 0.6
    for j in range(n_columns):
        for code in np.unique(codes[:, j]):
            in_category = codes[:, j] == code
            if in_category.sum() < 10:
                continue
            size = counted[in_category].sum()
            coverage_of_category = (counted[in_category & covered].sum() + 10 * coverage) / (
                size + 10
            )
            assert coverage_of_category > floor - 1e-9 or covered[in_category].all()


def test_limit_that_covers_every_row_is_unchanged() -> None:
    rows = RowCategories(np.zeros((50, 1), dtype=np.uint8))
    scores = np.linspace(0, 1, 50)
    assert (raised_limits(scores, 0.95, 0.9, weights=None, held=rows, new=rows) == 0.95).all()
    other = RowCategories(np.zeros((5, 2), dtype=np.uint8))
    with pytest.raises(ValueError, match="the same categorical columns"):
        raised_limits(scores, 0.95, 0.9, weights=None, held=rows, new=other)
