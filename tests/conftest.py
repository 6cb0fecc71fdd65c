"""Settings and fixtures of all tests; in CI, Hypothesis draws the same examples."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

# Several test processes whose matrix products all use every core wait for each other most of the
# time. NumPy reads this when it is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test, so no profile limits the time of an example.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Outside CI new examples may find new failures. CI must not fail by chance.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
# `support.examples` multiplies the number of examples of expensive tests accordingly.
settings.register_profile("long", settings.get_profile("ci"), max_examples=800)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="also run the tests with the marker `long`, and draw more random examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long"):
        settings.load_profile("long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests with the marker `long`, without `--long` or an expression of markers."""
    if config.getoption("--long") or config.option.markexpr:
        return
    long_items = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long_items)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture
def sigint_handler() -> Iterator[None]:
    """Handle SIGINT as an interactive Python does, also in child processes.

    Background jobs and some CI runners ignore SIGINT, and child processes inherit that.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
