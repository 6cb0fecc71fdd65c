"""Valid and invalid inputs of estimators on Dask, with threads instead of a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from spinney import ensemble, linear_model, neighbors

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402

RNG = np.random.default_rng(0)
F = RNG.normal(size=(600, 5))
Y = F[:, 0] + F[:, 1] ** 2 + RNG.normal(size=600)
C = np.digitize(Y, [0, 2])
ROWS = da.from_array(F, chunks=(160, 5))
NAMES = list("abcde")
FRAME = pd.DataFrame(F, columns=NAMES)
LAZY = dd.from_pandas(FRAME, npartitions=3)


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def test_forests_have_the_classes_of_each_output():
    two_outputs = np.c_[C, np.where(Y > 1, 7, 5)]
    for spread in ("rows", "trees"):
        ours = sd.RandomForestClassifier(5, random_state=0).fit(ROWS, two_outputs, spread=spread)
        assert [classes.tolist() for classes in ours.classes_] == [[0, 1, 2], [5, 7]]
        local = ours.to_local()
        for shares, true in zip(ours.predict_proba(ROWS), local.predict_proba(F), strict=True):
            assert shares.shape == true.shape
            np.testing.assert_array_equal(shares.compute(), true)
        np.testing.assert_array_equal(ours.predict(ROWS).compute(), local.predict(F))
    ours = sd.RandomForestClassifier(3, random_state=0).fit(LAZY, two_outputs)
    by_output = ours.predict_proba(LAZY)
    assert [list(frame.columns) for frame in by_output] == [[0, 1, 2], [5, 7]]
    np.testing.assert_array_equal(by_output[1].compute(), ours.to_local().predict_proba(FRAME)[1])


def test_neighbours_check_column_names():
    model = sd.KNeighborsRegressor().fit(LAZY, Y)
    true = neighbors.KNeighborsRegressor().fit(FRAME, Y).predict(FRAME)
    np.testing.assert_array_equal(model.predict(LAZY).compute(), true)
    np.testing.assert_array_equal(model.predict(FRAME), true)
    np.testing.assert_array_equal(model.to_local().predict(FRAME), true)
    for rows in (LAZY, FRAME):
        for wrong in (rows[NAMES[::-1]], rows.rename(columns={"a": "q"})):
            for method in (model.predict, model.kneighbors):
                with pytest.raises(ValueError, match="feature names should match"):
                    method(wrong)


def test_missing_targets_of_neighbours_raise():
    wrong = np.where(np.arange(600) == 500, np.nan, Y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        sd.KNeighborsRegressor().fit(ROWS, wrong)


def test_partition_may_have_only_zero_weights():
    weights = np.where(np.arange(600) < 160, 0.0, 1.5)
    for name, target in (("LinearRegression", Y), ("Ridge", Y), ("LogisticRegression", C)):
        local = getattr(linear_model, name)().fit(F, target, weights)
        ours = getattr(sd, name)().fit(ROWS, target, weights)
        np.testing.assert_allclose(ours.coef_, local.coef_, rtol=1e-4, atol=1e-6)
        with pytest.raises(ValueError, match="sample_weight"):
            getattr(sd, name)().fit(ROWS, target, weights * 0)


def test_booleans_with_missing_values_stay_booleans():
    flags = [None if k % 7 == 0 else bool(k % 2) for k in range(600)]
    frame = pl.DataFrame({"a": F[:, 0], "flag": pl.Series(flags, dtype=pl.Boolean)})
    local = ensemble.RandomForestRegressor(3, random_state=0).fit(frame, Y)
    for given in (frame, frame.to_arrow()):
        ours = sd.RandomForestRegressor(3, random_state=0).fit(given, Y)
        np.testing.assert_array_equal(ours.predict(frame), local.predict(frame))


def test_missing_held_out_rows_raise():
    for model in (sd.LinearRegression(), sd.Ridge()):
        model.fit(ROWS, Y)
        with pytest.raises(ValueError, match="several workers hold out no rows"):
            model.predict_interval(F)
        assert model.predict_interval(F[:5], calibration=(F, Y)).shape == (5, 2)
    neighbours = sd.KNeighborsRegressor().fit(ROWS, Y)
    with pytest.raises(ValueError, match="to_local"):
        neighbours.predict_interval(F)
    assert neighbours.to_local().predict_interval(F[:5]).shape == (5, 2)
    forest = sd.RandomForestRegressor(20, random_state=0).fit(ROWS, Y, spread="trees")
    assert forest.predict_interval(F[:5]).shape == (5, 2)
    for spread in ("trees", "rows"):
        forest = sd.RandomForestClassifier(20, random_state=0).fit(ROWS, C, spread=spread)
        with pytest.raises(ValueError, match="several workers hold out no rows"):
            forest.predict_set(F)
        assert forest.predict_set(F[:5], calibration=(F, C)).shape == (5, 3)


def test_paths_of_files(tmp_path):
    table = FRAME.assign(y=Y)
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    for k, path in enumerate(paths):
        table[k * 300 : (k + 1) * 300].to_parquet(path)
    model = sd.Ridge().fit(paths, "y")
    local = linear_model.Ridge().fit(FRAME, Y)
    np.testing.assert_allclose(model.coef_, local.coef_)
    for given in (paths, [str(path) for path in paths], tmp_path):
        np.testing.assert_allclose(model.predict(given).compute(), local.predict(FRAME))
    neighbours = sd.KNeighborsRegressor().fit(paths, "y")
    predicted = neighbours.predict(paths).compute()
    np.testing.assert_array_equal(predicted, neighbours.predict(FRAME))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (sp.csr_matrix(F), "X: expected dense rows"),
        (dask.delayed(lambda: FRAME)(), "got a Delayed"),
        (LAZY["a"], "X: expected rows and columns, got a Dask series"),
    ],
)
def test_rows_that_are_not_a_table_raise(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sd.Ridge().fit(wrong, Y)
    if "dense" not in message:
        with pytest.raises((TypeError, ValueError), match=message):
            sd.Ridge().fit(ROWS, Y).predict(wrong)


def test_predictions_for_collections_are_lazy_and_check_names():
    model = sd.RandomForestRegressor(20, random_state=0).fit(LAZY, Y)
    local = model.to_local()
    for method, arguments, names in (
        ("apply", (), list(range(20))),
        ("predict_quantiles", ([0.1, 0.5],), [0.1, 0.5]),
        ("predict_interval", (0.8,), ["lower", "upper"]),
    ):
        true = getattr(local, method)(FRAME, *arguments)
        predicted = getattr(model, method)(LAZY, *arguments)
        assert isinstance(predicted, dd.DataFrame)
        assert list(predicted.columns) == names
        pd.testing.assert_frame_equal(
            predicted.compute(), pd.DataFrame(true, columns=names), check_column_type=False
        )
        with pytest.raises(ValueError, match="feature names"):
            getattr(model, method)(LAZY[NAMES[::-1]], *arguments).compute()
        predicted = getattr(model, method)(ROWS, *arguments)
        assert predicted.shape == true.shape
        assert predicted.dtype == true.dtype
        with pytest.warns(UserWarning, match="feature names"):
            computed = predicted.compute()
        np.testing.assert_array_equal(computed, true)
    with pytest.raises(TypeError, match="rows in memory"):
        model.decision_path(LAZY)


def test_intervals_of_several_outputs_are_arrays():
    model = sd.RandomForestRegressor(20, random_state=0).fit(LAZY, np.c_[Y, -Y])
    true = model.to_local().predict_interval(FRAME)
    intervals = model.predict_interval(LAZY)
    assert intervals.shape[1:] == (2, 2)
    np.testing.assert_array_equal(intervals.compute(), true)


def test_calibration_rows_may_be_on_dask():
    labels = np.array(["no", "yes"])[(Y > 0).astype(int)]
    lazy_labels = dd.from_pandas(pd.Series(labels), npartitions=3)
    model = sd.LogisticRegression().fit(LAZY, labels)
    local = model.to_local()
    true = local.predict_set(FRAME, calibration=(FRAME, labels))
    sets = model.predict_set(LAZY, calibration=(LAZY, lazy_labels))
    assert list(sets.columns) == ["no", "yes"]
    np.testing.assert_array_equal(sets.compute(), true)
    np.testing.assert_array_equal(model.predict_set(FRAME, calibration=(LAZY, labels)), true)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_set(FRAME, calibration=(LAZY[NAMES[::-1]], labels))
    with pytest.raises(ValueError, match=r"calibration=\(X, y\)"):
        model.predict_set(LAZY)
    neighbours = sd.KNeighborsClassifier().fit(LAZY, labels)
    true = neighbours.predict_set(FRAME, calibration=(FRAME, labels))
    sets = neighbours.predict_set(FRAME, calibration=(LAZY, labels))
    np.testing.assert_array_equal(sets, true)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "KNeighborsClassifier"])
def test_lazy_labels_have_the_type_of_the_computed_ones(name):
    texts = np.array(["a", "b", "c"])[C]
    for labels in (texts, texts.astype(object), np.array([3, 5, 7])[C], Y > 0):
        model = getattr(sd, name)().fit(LAZY, labels)
        lazy = model.predict(LAZY)
        assert lazy.dtype == lazy.compute().dtype
        assert lazy.partitions[0].compute().dtype == lazy.dtype
        assert (lazy.compute().to_numpy() == model.predict(FRAME)).all()


def test_partitions_with_columns_in_another_order():
    parts = [FRAME.iloc[:300], FRAME.iloc[300:][NAMES[::-1]]]
    lazy = dd.from_delayed([dask.delayed(part) for part in parts], FRAME[:0], verify_meta=False)
    model = sd.Ridge().fit(lazy, Y)
    true = linear_model.Ridge().fit(FRAME, Y).predict(FRAME)
    np.testing.assert_allclose(model.predict(lazy).compute(), true)


def test_missing_labels_raise():
    labels = pd.Series(np.where(C == 1, None, "a"), dtype="string")
    for name in ("RandomForestClassifier", "LogisticRegression", "KNeighborsClassifier"):
        with pytest.raises(ValueError, match="y contains NaN"):
            getattr(sd, name)().fit(LAZY, dd.from_pandas(labels, npartitions=3))


def test_one_number_is_the_weight_of_all_rows():
    ours = sd.RandomForestRegressor(3, random_state=0).fit(ROWS, Y, 2.0)
    local = ensemble.RandomForestRegressor(3, random_state=0).fit(F, Y, np.full(600, 2.0))
    np.testing.assert_array_equal(ours.predict(F), local.predict(F))
    with pytest.raises(ValueError, match=r"y: expected 600 rows as in X, got 3\.0"):
        sd.Ridge().fit(ROWS, 3.0)
