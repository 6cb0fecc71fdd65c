"""`n_jobs` and the number of threads."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import spinney
from spinney import _core
from spinney.runtime.threads import effective_n_jobs


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = spinney.get_num_threads()
    yield
    spinney.set_num_threads(before)


def test_none_uses_the_set_number_of_threads() -> None:
    spinney.set_num_threads(3)
    assert spinney.get_num_threads() == 3
    assert effective_n_jobs(None) == 3
    assert effective_n_jobs(2) == 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no CPU affinity here")
def test_negative_numbers_count_back_from_all_cpus() -> None:
    n_cpus = _core.available_cpus()  # a quota of a container can be smaller than the affinity
    assert 1 <= n_cpus <= len(os.sched_getaffinity(0))
    assert effective_n_jobs(-1) == n_cpus
    assert effective_n_jobs(-2) == max(1, n_cpus - 1)
    assert effective_n_jobs(-n_cpus - 5) == 1


def test_invalid_numbers_raise_and_name_the_parameter() -> None:
    with pytest.raises(ValueError, match="n_jobs"):
        effective_n_jobs(0)
    with pytest.raises(TypeError, match="n_jobs"):
        effective_n_jobs(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_threads"):
        spinney.set_num_threads(0)
    with pytest.raises(TypeError, match="n_threads"):
        spinney.set_num_threads(True)
