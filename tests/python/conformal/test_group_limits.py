"""Sets of classes do not let categories down that the likeliest class is often wrong about."""

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


def _calls(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make rows of which few say yes, but nearly half of those of two months."""
    random = np.random.default_rng(seed)
    month = random.choice(["may", "june", "march", "october"], n_rows, p=[0.45, 0.35, 0.1, 0.1])
    chance = np.select([month == "march", month == "october"], [0.45, 0.4], 0.04)
    X = pd.DataFrame({"age": random.uniform(20, 60, n_rows), "month": month})
    X["loan"] = random.choice(["yes", "no"], n_rows)
    return X, np.where(random.uniform(size=n_rows) < chance, "yes", "no")


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


def _held(model: Any, rows: Any, truth: Any, **options: Any) -> Any:
    sets = model.predict_set(rows, **options)
    assert sets.any(axis=1).all()
    return sets[np.arange(len(truth)), np.searchsorted(model.classes_, truth)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_no_category_falls_far_short(name: str, kind: Any) -> None:
    X, y = _calls(4000, 0)
    rows, truth = _calls(8000, 1)
    model = clone(MODELS[name]).fit(kind(X), y)
    held = _held(model, kind(rows), truth)
    assert "categories that would fall short" in model.set_method_
    for month in ("march", "october"):
        assert held[rows["month"] == month].mean() > 0.78
    assert 0.88 < held.mean() < 0.98  # of the other months the likeliest class holds 96 %


def test_one_limit_on_request() -> None:
    X, y = _calls(4000, 0)
    rows, truth = _calls(8000, 1)
    march = (rows["month"] == "march").to_numpy()
    forest = clone(FOREST).fit(X, y)
    common = ConformalClassifier(FOREST, groups=None, random_state=0).fit(X, y)
    assert "categories" not in common.set_method_
    for held in (_held(forest, rows, truth, method="aps"), _held(common, rows, truth)):
        assert held[march].mean() < 0.7
    raised = forest.predict_set(rows)
    assert (raised | ~forest.predict_set(rows, method="aps")).all()  # never fewer classes
    unseen = rows.assign(month="july", loan=None)
    assert forest.predict_set(unseen).any(axis=1).all()


def test_rows_of_the_caller_have_categories(tmp_path: Path) -> None:
    X, y = _calls(4000, 0)
    rows, truth = _calls(8000, 1)
    model = RandomForestClassifier(40, min_samples_leaf=20, bootstrap=False, random_state=0)
    model.fit(X[:1000], y[:1000])
    held = _held(model, rows, truth, calibration=(X[1000:], y[1000:]))
    assert held[rows["month"] == "march"].mean() > 0.78
    fitted = clone(FOREST).fit(X, y)
    spinney.save(fitted, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_set(rows), fitted.predict_set(rows))


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
    own = random.choice([-np.inf, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95], n_rows)
    own = np.where(codes[:, 0] == 0, own + 0.05, own)
    limit = float(random.choice([-np.inf, 0.3, 0.6, 0.85]))
    weights = random.integers(1, 4, n_rows).astype(float) if weighted else None
    rows = RowCategories(codes.astype(np.uint8))
    limits = raised_limits(own, limit, coverage, weights=weights, held=rows, new=rows)[:, 0]
    assert (limits >= limit).all()
    counted = np.ones(n_rows) if weights is None else weights / weights.mean()
    covered = own <= limits
    floor = coverage - (1 - coverage) * 0.6
    for j in range(n_columns):
        for code in np.unique(codes[:, j]):
            mine = codes[:, j] == code
            if mine.sum() < 10:
                continue
            size = counted[mine].sum()
            share = (counted[mine & covered].sum() + 10 * coverage) / (size + 10)
            assert share > floor - 1e-9 or covered[mine].all()


def test_a_limit_that_holds_all_is_left_alone() -> None:
    rows = RowCategories(np.zeros((50, 1), dtype=np.uint8))
    own = np.linspace(0, 1, 50)
    assert (raised_limits(own, 0.95, 0.9, weights=None, held=rows, new=rows) == 0.95).all()
    other = RowCategories(np.zeros((5, 2), dtype=np.uint8))
    with pytest.raises(ValueError, match="the same categorical columns"):
        raised_limits(own, 0.95, 0.9, weights=None, held=rows, new=other)
