"""Linear models on a Dask cluster equal local models of the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from spinney import linear_model

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from support.dask_rows import CLASSES, FULL, WEIGHTS, Y, blocks  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(
    ("ours", "local"),
    [
        (sd.LinearRegression(), linear_model.LinearRegression()),
        (sd.LinearRegression(fit_intercept=False), linear_model.LinearRegression()),
        (sd.Ridge(alpha=3.0), linear_model.Ridge(alpha=3.0)),
    ],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_least_squares_equal_the_local_model(ours, local, weights):
    local = type(local)(**ours.get_params()).fit(FULL, Y, weights)
    fitted = clone(ours).fit(blocks(FULL), blocks(Y), None if weights is None else blocks(WEIGHTS))
    np.testing.assert_allclose(fitted.coef_, local.coef_, rtol=1e-12)
    np.testing.assert_allclose(fitted.intercept_, local.intercept_, rtol=1e-12)
    np.testing.assert_allclose(
        fitted.predict(blocks(FULL)).compute(), local.predict(FULL), rtol=1e-11
    )
    assert type(fitted.to_local()) is type(local)
    assert fitted.score(blocks(FULL), Y) == pytest.approx(local.score(FULL, Y))


def test_collinear_columns_have_the_local_coefficients():
    rows = np.c_[FULL, FULL[:, 0], np.full(900, 3.0)]
    local = linear_model.LinearRegression().fit(rows, Y)
    ours = sd.LinearRegression().fit(blocks(rows), Y)
    assert (ours.solver_, ours.rank_) == (local.solver_, local.rank_)
    np.testing.assert_allclose(ours.coef_, local.coef_, atol=1e-9)


def test_repeated_fits_are_bitwise_equal():
    first = sd.LinearRegression().fit(blocks(FULL), Y)
    assert sd.LinearRegression().fit(blocks(FULL), Y).coef_.tobytes() == first.coef_.tobytes()


def test_few_rows_and_several_targets():
    targets = np.c_[Y, -2 * Y]
    wide = sd.LinearRegression().fit(da.from_array(FULL[:3], chunks=(1, 4)), Y[:3])
    np.testing.assert_allclose(wide.predict(FULL[:3]), Y[:3])
    for ours in (sd.LinearRegression(), sd.Ridge(alpha=[1.0, 2.0])):
        local = ours._local_class(**ours.get_params()).fit(FULL, targets)
        fitted = ours.fit(blocks(FULL), blocks(targets))
        np.testing.assert_allclose(fitted.coef_, local.coef_, rtol=1e-10)
        assert fitted.predict(blocks(FULL)).compute().shape == (900, 2)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 2, "perhaps": 1, "yes": 0.5}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_equals_the_local_model(n_classes, class_weight):
    labels = np.where(CLASSES == "perhaps", "no", CLASSES) if n_classes == 2 else CLASSES
    labels = np.sort(labels)  # most partitions lack a class
    if n_classes == 2 and isinstance(class_weight, dict):
        class_weight = {"no": 2, "yes": 0.5}
    local = linear_model.LogisticRegression(class_weight=class_weight, tol=1e-8)
    local.fit(FULL, labels, WEIGHTS)
    ours = sd.LogisticRegression(class_weight=class_weight, tol=1e-8)
    ours.fit(blocks(FULL), blocks(labels), blocks(WEIGHTS))
    assert ours.classes_.tolist() == local.classes_.tolist()
    np.testing.assert_allclose(ours.coef_, local.coef_, atol=1e-9)
    lazy = ours.predict_proba(blocks(FULL))
    assert lazy.shape == (900, n_classes)
    np.testing.assert_allclose(lazy.compute(), local.predict_proba(FULL), atol=1e-9)
