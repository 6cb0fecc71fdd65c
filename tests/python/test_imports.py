"""Imports: `import spinney` and `spinney --help` load no heavy libraries."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

import spinney

HEAVY = ["sklearn", "scipy", "matplotlib", "pandas", "polars", "pyarrow", "narwhals"]


def loaded_by(code: str) -> set[str]:
    """Return the heavy libraries that a new interpreter loads when it runs the code."""
    script = f"""
import sys
from importlib.metadata import PackageNotFoundError, version
before = set(sys.modules)  # editable installs or coverage hooks may load modules
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
def test_no_heavy_library_is_loaded(code: str) -> None:
    assert loaded_by(code) == set()


def test_load_spam_needs_only_numpy() -> None:
    code = "import spinney; spinney.datasets.load_spam(return_X_y=True)"
    assert loaded_by(code) == set()


def test_trees_do_not_load_matplotlib_or_polars() -> None:
    # scikit-learn itself loads SciPy, narwhals and, if installed, pandas.
    code = (
        "from spinney.tree import DecisionTreeClassifier as T; "
        "T().fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])"
    )
    assert loaded_by(code).isdisjoint({"matplotlib", "polars"})


def test_every_public_name_resolves() -> None:
    assert set(dir(spinney)) == set(spinney.__all__)
    # Call __getattr__ in a new interpreter: imported submodules are attributes already.
    code = (
        "import spinney; "
        "[spinney.__getattr__(name) for name in spinney.__all__ if name != '__version__']"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_unknown_attribute_raises() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = spinney.nothing


def test_version_equals_the_installed_version() -> None:
    try:
        installed = version("spinney")
    except PackageNotFoundError:
        pytest.skip("spinney is not installed")
    assert installed == spinney.__version__
