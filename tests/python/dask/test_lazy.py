"""Lazy predictions on Dask come from the model as it is at the time of the call."""

from __future__ import annotations

import gc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from support.waiting import wait_until  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        yield client


RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=120)
C = np.array(["no", "perhaps", "yes"])[np.digitize(Y, [0, 2])]
GROUPS = np.repeat(np.arange(12), 10)
RELEVANCE = np.clip(np.round(Y), 0, 4)
FRAME = pd.DataFrame(X, columns=list("abc"))

FEW = {"n_estimators": 4, "random_state": 0}
PROBABILITIES = ("predict", "predict_proba", "predict_log_proba")
# Estimator, target, methods.
CASES = [
    (
        sd.GradientBoostingClassifier(**FEW),
        C,
        (*PROBABILITIES, "decision_function", "apply", ("predict_set", "calibrated")),
    ),
    (
        sd.GradientBoostingRegressor(**FEW),
        Y,
        ("predict", "apply", ("predict_interval", "calibrated")),
    ),
    (sd.GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.9], **FEW), Y, ("predict",)),
    (sd.GradientBoostingRanker(**FEW), RELEVANCE, ("predict", "apply")),
    (
        sd.RandomForestClassifier(**FEW),
        C,
        (*PROBABILITIES, "apply", ("predict_set", "calibrated")),
    ),
    (
        sd.RandomForestRegressor(**FEW),
        Y,
        ("predict", "apply", "predict_quantiles", "predict_interval"),
    ),
    (sd.ExtraTreesClassifier(**FEW), C, (*PROBABILITIES, "apply", ("predict_set", "calibrated"))),
    (
        sd.ExtraTreesRegressor(**FEW),
        Y,
        ("predict", "apply", "predict_quantiles", ("predict_interval", "calibrated")),
    ),
    (sd.IsolationForest(contamination=0.1, **FEW), None, ("predict", "decision_function")),
    (sd.IsolationForest(**FEW), None, ("score_samples",)),
    (sd.LinearRegression(), Y, ("predict", ("predict_interval", "calibrated"))),
    (sd.Ridge(), Y, ("predict", ("predict_interval", "calibrated"))),
    (
        sd.LogisticRegression(),
        C,
        (*PROBABILITIES, "decision_function", ("predict_set", "calibrated")),
    ),
    (sd.KNeighborsClassifier(3), C, ("predict", "predict_proba")),
    (sd.KNeighborsClassifier(3, weights="distance"), C, ("predict", "predict_proba")),
    (sd.KNeighborsRegressor(3), Y, ("predict",)),
    (sd.KNeighborsRegressor(3, weights="distance"), np.c_[Y, -Y], ("predict",)),
]


def fit(model, rows, target):
    options = {"group": GROUPS} if isinstance(model, sd.GradientBoostingRanker) else {}
    return model.fit(rows, target, **options)


def shuffled(target):
    """Return the same targets in another order."""
    return None if target is None else target[::-1].copy()


def rows_of(kind):
    if kind == "array":
        return da.from_array(X, chunks=(40, 3))
    return dd.from_pandas(FRAME, npartitions=3, sort=False)


def delete(model, rows, target):
    """Do nothing: the caller deletes the model after each of these functions."""


def refit(model, rows, target):
    fit(model, rows[::-1] if isinstance(rows, da.Array) else rows, shuffled(target))


def predict_again(model, rows, target):
    model.predict(rows).compute()
    model.predict(X[:5] if isinstance(rows, da.Array) else FRAME[:5])


def change_parameters(model, rows, target):
    for name, value in (("n_neighbors", 7), ("weights", "uniform"), ("n_estimators", 2)):
        if name in model.get_params():
            model.set_params(**{name: value})


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.parametrize("between", [delete, refit, predict_again, change_parameters])
@pytest.mark.parametrize(
    ("model", "target", "methods"), CASES, ids=[type(case[0]).__name__ for case in CASES]
)
def test_lazy_predictions_come_from_the_model_at_the_call(model, target, methods, between, kind):
    rows = rows_of(kind)
    calibrated = {"calibration": (X if kind == "array" else FRAME, shuffled(target))}
    model = fit(clone(model), rows, target)

    def predict_all(model):
        predictions = {}
        for call in methods:
            name, options = (call, {}) if isinstance(call, str) else (call[0], calibrated)
            predictions[name] = getattr(model, name)(rows, **options)
        return predictions

    true = {name: predicted.compute() for name, predicted in predict_all(model).items()}
    lazy = predict_all(model)
    between(model, rows, target)
    del model
    gc.collect()
    for name, predicted in lazy.items():
        computed = np.asarray(predicted.compute())
        np.testing.assert_array_equal(computed, np.asarray(true[name]), name)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_collections_derived_from_predictions_keep_the_indexes(kind):
    def predict():
        rows = rows_of(kind)
        return sd.KNeighborsRegressor(3).fit(rows, Y).predict(rows.persist())

    true = np.asarray(predict().compute())
    for change, expected in (
        (lambda lazy: 2 * lazy, 2 * true),
        (lambda lazy: lazy.persist(), true),
        (lambda lazy: lazy.to_delayed(), true),
        (lambda lazy: dask.delayed(lazy) if kind == "frame" else dask.optimize(lazy)[0], true),
    ):
        derived = change(predict())
        gc.collect()
        has_tasks = isinstance(derived, list | np.ndarray)
        parts = dask.compute(*(np.ravel(derived) if has_tasks else [derived]))
        np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_workers_release_the_indexes_with_the_last_prediction(cluster):
    def held_keys():
        return {str(key) for keys_of in cluster.has_what().values() for key in keys_of}

    rows = rows_of("array")
    model = sd.KNeighborsRegressor(3).fit(rows, Y)
    keys = {str(index.key) for index in model._dask_shelves}
    lazy = model.predict(rows)
    del model
    gc.collect()
    lazy.compute()
    assert keys <= held_keys()
    del lazy
    gc.collect()
    wait_until(lambda: not keys & held_keys(), "the workers still hold indexes")


def test_neighbors_have_the_methods_of_the_local_classifier():
    model = sd.KNeighborsClassifier(3).fit(rows_of("array"), C)
    assert hasattr(model, "predict_log_proba") == hasattr(model.to_local(), "predict_log_proba")
