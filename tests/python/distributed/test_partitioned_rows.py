"""Rows read block by block give the same model as rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.distributed.exchange import ThreadExchange
from spinney.distributed.partitioned_rows import PartitionedRows
from spinney.ensemble import GradientBoostingRegressor
from support.workers import assert_same, fit_on_one_worker, fit_worker


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n_rows=st.integers(3, 120),
    n_blocks=st.integers(1, 6),
    begun=st.integers(0, 4),
    weighted=st.booleans(),
)
def test_number_of_blocks_does_not_change_the_model(seed, n_rows, n_blocks, begun, weighted):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.integers(0, 4, n_rows)})
    frame["town"] = np.array(["Ulm", "Bonn", None, "Jena"], dtype=object)[
        rng.integers(0, 4, n_rows)
    ]
    frame.loc[rng.random(n_rows) < 0.1, "a"] = np.nan
    frame.loc[::3, "town"] = "Bonn"  # a column without values is not categorical
    y = rng.normal(size=n_rows)
    weights = rng.exponential(size=n_rows) if weighted else None
    ends = np.sort(rng.integers(0, n_rows // 3 + 1, n_blocks - 1)) * 3  # blocks may be empty
    blocks = [frame.iloc[a:b] for a, b in zip([0, *ends], [*ends, n_rows], strict=True)]
    rows = PartitionedRows(
        [lambda block=block: block for block in blocks], [len(block) for block in blocks]
    )

    def create():
        return GradientBoostingRegressor(
            n_estimators=5, n_folds=1, min_samples_leaf=2, categorical_features=["town"],
            early_stopping=False, max_set_categories=None, max_bins=2 if weighted else 255,
        )  # fmt: skip

    one_process = fit_on_one_worker(create(), frame, y, weights)
    options = {"exchange": ThreadExchange.of(1)[0], "row_ranges": [(0, 0)]}
    options["sample_weight"] = weights
    start = [one_process.fitted_model().store.part(0, begun)] if begun else []
    assert_same(one_process, fit_worker(create(), rows, y, start=start, **options))
