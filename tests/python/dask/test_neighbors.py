"""Neighbours on a Dask cluster equal those of one index."""

from __future__ import annotations

import numpy as np
import pytest

from spinney import neighbors

distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from support.dask_rows import CLASSES, FULL, Y, blocks  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize("weights", ["uniform", "distance", "tricube"])
def test_neighbours_equal_those_of_one_index(weights):
    tied = np.round(FULL)  # many distances are tied
    local = neighbors.KNeighborsClassifier(7, weights=weights).fit(tied, CLASSES)
    ours = sd.KNeighborsClassifier(7, weights=weights).fit(blocks(tied), blocks(CLASSES))
    for found, true in zip(ours.kneighbors(blocks(tied)), local.kneighbors(tied), strict=True):
        np.testing.assert_array_equal(found, true)
    np.testing.assert_array_equal(ours.predict_proba(blocks(tied)), local.predict_proba(tied))
    np.testing.assert_array_equal(ours.predict(tied), local.predict(tied))
    np.testing.assert_array_equal(ours.to_local().predict(tied), local.predict(tied))
    regressor = sd.KNeighborsRegressor(3, weights=weights).fit(blocks(tied), Y)
    true = neighbors.KNeighborsRegressor(3, weights=weights).fit(tied, Y).predict(tied)
    np.testing.assert_array_equal(regressor.predict(blocks(tied)), true)


def test_unsupported_parameters_raise():
    with pytest.raises(ValueError, match="algorithm='hnsw'"):
        sd.KNeighborsClassifier(algorithm="hnsw").fit(blocks(FULL), CLASSES)
    with pytest.raises(ValueError, match="metric='seuclidean'"):
        sd.KNeighborsRegressor(metric="seuclidean").fit(blocks(FULL), Y)
    model = sd.KNeighborsRegressor(901).fit(blocks(FULL), Y)
    with pytest.raises(ValueError, match="n_neighbors = 901"):
        model.predict(FULL)


def test_predictions_after_the_client_is_closed_raise(cluster):
    with distributed.Client(cluster.scheduler.address) as other, other.as_current():
        model = sd.KNeighborsRegressor().fit(blocks(FULL), Y)
    for call in (model.to_local, lambda: model.predict(FULL), lambda: model.kneighbors(FULL)):
        with pytest.raises(RuntimeError, match="expected the client of fit to be open"):
            call()
