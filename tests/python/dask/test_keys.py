"""Keys of tasks on the scheduler are unique."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = X[:, 0] + RNG.normal(size=150)
C = np.digitize(Y, [-0.5, 0.5])
W = RNG.uniform(0.5, 2, size=150)
G = np.repeat(np.arange(15), 10)
CHUNKS = (50, 0, 30, 70)


class Dependencies(distributed.SchedulerPlugin):
    """Collects keys whose dependencies a later graph changes."""

    def __init__(self):
        self.known, self.changed = {}, []

    def update_graph(self, scheduler, *, tasks, **others):
        for key in tasks:
            task = scheduler.tasks[key]
            if task.run_spec is not None:
                now = frozenset(other.key for other in task.dependencies)
                if self.known.setdefault(key, now) != now:
                    self.changed.append(key)


class Warnings(logging.Handler):
    """Collects the scheduler's warnings."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture(scope="module")
def client():
    with distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        yield client


@pytest.fixture(autouse=True)
def keys_are_unique(client):
    warnings, dependencies = Warnings(), Dependencies()
    logger = logging.getLogger("distributed.scheduler")
    logger.addHandler(warnings)
    scheduler = client.cluster.scheduler
    client.sync(add_plugin, scheduler, dependencies)
    yield
    client.sync(remove_plugin, scheduler, dependencies)
    logger.removeHandler(warnings)
    assert not [message for message in warnings.messages if "run_spec" in message]
    assert not dependencies.changed
    assert len(dependencies.known) > 10


async def add_plugin(scheduler, plugin):
    scheduler.add_plugin(plugin, name="dependencies")


async def remove_plugin(scheduler, plugin):
    scheduler.remove_plugin("dependencies")


def arrays():
    rows = da.from_array(X, chunks=(CHUNKS, 3))
    return rows, *(da.from_array(values, chunks=(CHUNKS,)) for values in (Y, C, W, G))


def persisted_arrays():
    return tuple(values.persist() for values in arrays())


def lazy_arrays():
    rows, *columns = arrays()
    return 2 * rows + 1, *(values + 0 for values in columns)


def frames():
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y, c=C, w=W, g=G)
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    return table[list("abc")], *(table[name] for name in "ycwg")


def persisted_frames():
    rows, *columns = frames()
    return rows.persist(), *(values.persist() for values in columns)


FEW = {"n_estimators": 3, "random_state": 0}
ESTIMATORS = {name: {} if name.startswith(("L", "Ri", "K")) else dict(FEW) for name in sd.__all__}
ESTIMATORS["IsolationForest"]["contamination"] = 0.1


def fit(model, data, spread=None):
    rows, numbers, classes, weights, groups = data
    target = classes if is_classifier(model) else numbers
    options = {} if spread is None else {"spread": spread}
    if isinstance(model, sd.GradientBoostingRanker):
        return model.fit(rows, classes, group=groups)
    if not isinstance(model, sd.KNeighborsClassifier | sd.KNeighborsRegressor):
        options["sample_weight"] = weights
    if isinstance(model, sd.GradientBoostingClassifier | sd.GradientBoostingRegressor):
        options["eval_set"] = (rows, target)
    return model.fit(rows, target, **options)


@pytest.mark.parametrize("make", [arrays, persisted_arrays, lazy_arrays, frames, persisted_frames])
def test_fits_and_predictions_have_unique_keys(make):
    given = make()
    lazy = []
    for name, params in ESTIMATORS.items():
        if name == "GradientBoostingRanker" and hasattr(given[0], "columns"):
            continue  # here the rows of a group are in several partitions
        spreads = ("trees", "rows") if "Trees" in name or "Forest" in name else (None,)
        model = getattr(sd, name)(**params)
        for spread in spreads:
            fit(model, given, spread=spread)
            lazy.append(model.predict(given[0]).persist())
            fit(model, given, spread=spread)
            model.predict(given[0]).compute()
            if hasattr(model, "apply"):
                lazy.append(model.apply(given[0]).persist())
                model.apply(given[0]).compute()


def test_isolation_forest_after_neighbors_on_the_same_rows():
    """Optimization renames the tasks that persisted predictions of neighbours depend on."""
    rows, numbers, *_ = arrays()
    kept = sd.KNeighborsRegressor(3).fit(rows, numbers).predict(rows).persist()
    distributed.wait(kept)
    for spread in ("trees", "rows"):
        sd.IsolationForest(contamination=0.1, **FEW).fit(rows, spread=spread)
