"""Threads change no bit, and seeds make fits repeatable."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from support.contract import (
    all_entries,
    assert_same,
    entries_with,
    entries_without,
    fit,
    make_queries,
    make_table,
    outputs,
)
from support.registry import Entry


@entries_with("threads")
def test_number_of_threads_changes_no_bit(entry: Entry) -> None:
    X, y = make_table(entry, entry.thread_rows)
    with parallel_config(backend="threading"):  # for estimators that fit others
        models = [fit(entry.create(n_jobs=n_jobs), X, y) for n_jobs in (1, 2, 5)]
        expected = outputs(models[0], X[:1000])
        for model in models[1:]:
            assert_same(outputs(model, X[:1000]), expected)


@entries_with("threads")
def test_invalid_n_jobs_raises(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match="n_jobs"):
        outputs(fit(entry.create(n_jobs=0), X, y), X)


@entries_without("threads")
def test_estimators_without_threads_have_no_n_jobs(entry: Entry) -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'n_jobs'"):
        entry.create(n_jobs=1)


@all_entries()
def test_predictions_from_many_threads(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, y)
    expected = outputs(model, make_queries())
    with ThreadPoolExecutor(8) as pool:
        for actual in pool.map(lambda _: outputs(model, make_queries()), range(8)):
            assert_same(actual, expected)


@all_entries()
def test_fits_from_many_threads(entry: Entry) -> None:
    tables = [make_table(entry, 40, seed) for seed in range(3)]

    def fitted_outputs(table: tuple[Any, Any]) -> dict[str, Any]:
        return outputs(fit(entry.create(), *table), make_queries())

    expected_outputs = [fitted_outputs(table) for table in tables]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(fitted_outputs, tables), expected_outputs, strict=True):
            assert_same(found, expected)


@all_entries()
def test_fits_are_repeatable(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, y)
    expected = outputs(model, make_queries())
    np.random.default_rng().random(3)
    assert_same(outputs(fit(entry.create(), X, y), make_queries()), expected)
    assert_same(outputs(fit(model, X, y), make_queries()), expected)


@all_entries()
def test_random_states(entry: Entry) -> None:
    model = entry.create()
    if "random_state" not in model.get_params(deep=False):
        pytest.skip("no random_state")
    X, y = make_table(entry)
    first, second = (
        outputs(fit(entry.create(random_state=np.random.RandomState(3)), X, y), X) for _ in range(2)
    )
    assert_same(first, second)
    outputs(fit(entry.create(random_state=None), X, y), X)


@all_entries()
def test_global_random_state_is_left_alone(entry: Entry) -> None:
    X, y = make_table(entry)
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1:3]  # noqa: NPY002
    outputs(fit(entry.create(), X, y), X)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    np.testing.assert_array_equal(before[0], after[0])
    assert before[1] == after[1]
