"""Forests on a Dask cluster, distributed by trees or by rows."""

from __future__ import annotations

import numpy as np
import pytest

from spinney import ensemble

pytest.importorskip("distributed")
pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
import spinney.dask as sd
from support.dask_rows import CLASSES, X, Y, blocks

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("RandomForestClassifier", CLASSES),
        ("RandomForestRegressor", Y),
        ("ExtraTreesClassifier", CLASSES),
        ("ExtraTreesRegressor", Y),
    ],
)
def test_forests_distributed_by_trees_equal_local_forests(name, target):
    local = getattr(ensemble, name)(10, random_state=1).fit(X, target)
    ours = getattr(sd, name)(10, random_state=1).fit(blocks(X), blocks(target))
    assert ours.spread_ == "trees"
    left, right = local.fitted_model().store.core.state(), ours.fitted_model().store.core.state()
    assert all(left[key].tobytes() == right[key].tobytes() for key in left)
    np.testing.assert_array_equal(ours.predict(blocks(X)).compute(), local.predict(X))
    if name.endswith("Regressor"):
        assert np.isfinite(ours.to_local().predict_quantiles(X, [0.1, 0.9])).all()


def test_forests_distributed_by_rows():
    ordered = np.sort(CLASSES)  # a block has two of the three classes at most
    ours = sd.RandomForestClassifier(12, random_state=1)
    ours.fit(blocks(X), blocks(ordered), spread="rows")
    assert len(ours.to_local()) == 12
    assert ours.classes_.tolist() == ["no", "perhaps", "yes"]
    assert ours.predict_proba(blocks(X)).compute().shape == (900, 3)
    numbers = sd.RandomForestRegressor(12, random_state=1).fit(blocks(X), Y, spread="rows")
    assert numbers.score(blocks(X), Y) > 0.5
    with pytest.raises(ValueError, match="blocks of rows"):
        numbers.predict_quantiles(X, [0.5])
    with pytest.raises(ValueError, match="oob_score=True"):
        sd.RandomForestClassifier(oob_score=True).fit(blocks(X), CLASSES)
    with pytest.raises(ValueError, match="spread"):
        sd.RandomForestClassifier().fit(blocks(X), CLASSES, spread="columns")


def test_isolation_forest():
    local = ensemble.IsolationForest(n_estimators=20, random_state=1, contamination=0.1).fit(X)
    ours = sd.IsolationForest(n_estimators=20, random_state=1, contamination=0.1).fit(blocks(X))
    np.testing.assert_array_equal(ours.score_samples(blocks(X)), local.score_samples(X))
    np.testing.assert_array_equal(ours.predict(blocks(X)), local.predict(X))
    rows = sd.IsolationForest(n_estimators=20, random_state=1).fit(blocks(X), spread="rows")
    assert np.corrcoef(rows.score_samples(X), local.score_samples(X))[0, 1] > 0.8
