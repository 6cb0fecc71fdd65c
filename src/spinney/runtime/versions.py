"""Versions and properties of the machine, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

__all__ = ["installed_versions", "show_versions"]

# Printed in addition to the dependencies, if installed.
_OPTIONAL = ("pandas", "polars", "dask", "distributed", "matplotlib", "onnx", "onnxruntime")


def installed_versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of the libraries that are installed, in the given order."""
    found = {}
    for library in libraries:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def show_versions() -> None:
    """Print the versions, the processor and the threads that a bug report needs.

    See Also
    --------
    set_num_threads : Set the number of threads.

    Examples
    --------
    >>> import spinney
    >>> spinney.show_versions()  # doctest: +ELLIPSIS
    System
      spinney          ...
      Python           ...
      system           ...
      processor        ...
      CPUs             ...
      threads          ...
      instruction set  ...
    Libraries
      numpy            ...
    """
    # Imported here for start-up time.
    from spinney import __version__, _core
    from spinney.runtime.threads import get_num_threads

    cpus = f"{_core.available_cpus()} available of {os.cpu_count()}"
    system = {
        "spinney": f"{__version__} ({Path(_core.__file__).name})",
        "Python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.platform()}, {platform.machine()}",
        "processor": _processor_name(),
        "CPUs": cpus,
        "threads": str(get_num_threads()),
        "instruction set": _core.instruction_set,
    }
    libraries = installed_versions([*_dependencies(), *_OPTIONAL])
    for title, values in (("System", system), ("Libraries", libraries)):
        print(title)
        for name, value in values.items():
            print(f"  {name:<16} {value}")


def _dependencies() -> list[str]:
    """Return the names of the libraries that Spinney always needs."""
    try:
        listed = requires("spinney") or []
    except PackageNotFoundError:  # run from a source folder
        listed = ["numpy", "scipy", "scikit-learn", "narwhals", "pyarrow"]
    return [_name_of(line) for line in listed if "extra ==" not in line]


def _name_of(requirement: str) -> str:
    """Return the name at the start of a requirement such as ``numpy>=2.0``."""
    end = next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), None)
    return requirement[:end]


def _processor_name() -> str:
    """Return the name of the processor model, or of its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()
