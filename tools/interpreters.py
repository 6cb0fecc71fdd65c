"""Find Python interpreters by version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["find_python", "include_folder"]


def include_folder(python: str | Path) -> Path | None:
    """Return the folder of the C headers, None if the interpreter does not run."""
    query = "import sysconfig; print(sysconfig.get_path('include'))"
    run = subprocess.run([python, "-c", query], capture_output=True, text=True, check=False)
    return Path(run.stdout.strip()) if run.returncode == 0 else None


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version such as "3.13": on the PATH, or of pyenv.

    Interpreters with C headers come first, because an extension can be built for them.
    """
    candidates = [sys.executable] if version == sysconfig.get_python_version() else []
    if found := shutil.which(f"python{version}"):
        candidates.append(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted((pyenv / "versions").glob(f"{version}.*/bin/python{version}"))
    folders = {Path(one): include_folder(one) for one in candidates}
    running = [one for one, folder in folders.items() if folder is not None]
    # False sorts first: those with headers.
    return min(running, key=lambda one: not (folders[one] / "Python.h").exists(), default=None)
