"""What pytest leaves alone here: scripts run in tests of their own, and Sphinx's files."""

import importlib.util
import sys

import pytest

collect_ignore_glob = ["gallery/*.py", "conf.py", "_extensions/*", "api/*"]


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_ignore_collect(collection_path):
    """Leave out the pages whose packages are not here."""
    if collection_path.name == "dask.md" and importlib.util.find_spec("distributed") is None:
        return True
    return None
