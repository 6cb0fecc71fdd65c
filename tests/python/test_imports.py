"""What gets imported: `import spinney` and `spinney --help` stay light."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

import spinney

HEAVY = ["sklearn", "scipy", "matplotlib", "pandas", "polars", "pyarrow", "narwhals"]


def loaded_by(code: str) -> set[str]:
    """Return which of the heavy libraries a fresh interpreter loads when it runs the code."""
    script = f"""
import sys
from importlib.metadata import PackageNotFoundError, version
before = set(sys.modules)  # an editable install or a coverage hook may load things at start
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print("\\nloaded:", *sorted((set(sys.modules) - before) & set({HEAVY})))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.rsplit("loaded:", 1)[1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import spinney",
        "import spinney; dir(spinney); spinney.__version__",
        "import spinney.comparison.families",
        "import sys; sys.argv = ['spinney', '--help']; import spinney.cli; spinney.cli.main()",
        "import sys; sys.argv = ['spinney', '--version']; import spinney.cli; spinney.cli.main()",
        *(
            f"import sys; sys.argv = ['spinney', '{command}', '--help']; "
            "import spinney.cli; spinney.cli.main()"
            for command in ("compare", "fit", "predict", "show", "datasets")
        ),
    ],
)
def test_light(code: str) -> None:
    assert loaded_by(code) == set()


def test_spam_needs_numpy_alone() -> None:
    code = "import spinney; spinney.datasets.load_spam(return_X_y=True)"
    assert loaded_by(code) == set()


def test_trees_load_nothing_they_do_not_use() -> None:
    # scikit-learn itself loads SciPy, narwhals and, where it is installed, pandas.
    code = (
        "from spinney.tree import DecisionTreeClassifier as T; "
        "T().fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])"
    )
    assert loaded_by(code).isdisjoint({"matplotlib", "polars"})


def test_every_public_name_resolves() -> None:
    assert set(dir(spinney)) == set(spinney.__all__)
    # Not by getattr alone: a submodule that something imported before is an attribute already.
    # In an interpreter of its own, so that no other test has loaded anything.
    code = (
        "import spinney; "
        "[spinney.__getattr__(name) for name in spinney.__all__ if name != '__version__']"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = spinney.nothing


def test_version_is_the_package_s() -> None:
    try:
        installed = version("spinney")
    except PackageNotFoundError:
        pytest.skip("spinney is not installed")
    assert installed == spinney.__version__
