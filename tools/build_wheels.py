"""Build the source distribution and the wheels on one Linux machine, without containers.

    pip install '.[release]'
    python tools/build_wheels.py [--out dist] [--abi 3.11|3.12] [--python VERSION=PATH] [TARGET ...]

Targets: sdist, linux-x86_64, linux-aarch64, macos-arm64, windows-amd64; all by default. Zig's Clang
compiles for each of them. Wheels for CPython 3.12 and newer use the stable ABI; building them needs
Python 3.12 or newer. Linux also has wheels for CPython 3.11; building these needs Python 3.11.

``tools/check_wheels.py`` checks what this script builds.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from interpreters import find_python, include_folder

ROOT = Path(__file__).resolve().parents[1]
# The oldest version of the stable ABI in which nanobind can be linked statically.
STABLE_ABI = "cp312"


@dataclass(frozen=True)
class Target:
    """A platform: its names in Zig, CMake and Python."""

    zig: str
    system: str
    processor: str
    host_platform: str  # as sysconfig.get_platform() prints it on that platform
    tag: str
    pythons: tuple[str, ...] = ("3.11", "3.12")
    suffix: str = ".abi3.so"


TARGETS = {
    "linux-x86_64": Target(
        "x86_64-linux-gnu.2.28", "Linux", "x86_64", "linux-x86_64", "manylinux_2_28_x86_64"
    ),
    "linux-aarch64": Target(
        "aarch64-linux-gnu.2.28", "Linux", "aarch64", "linux-aarch64", "manylinux_2_28_aarch64"
    ),
    # Python's headers for these systems are not on a Linux machine: only the stable ABI is used,
    # whose headers depend little on the system.
    "macos-arm64": Target(
        "aarch64-macos.11.0", "Darwin", "arm64", "macosx-11.0-arm64", "macosx_11_0_arm64", ("3.12",)
    ),
    "windows-amd64": Target(
        "x86_64-windows-gnu", "Windows", "AMD64", "win-amd64", "win_amd64", ("3.12",), ".pyd"
    ),
}

# What Python's pyconfig.h defines on 64-bit Windows, as far as the stable ABI's headers need it.
WINDOWS_PYCONFIG = """
#pragma once
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define WITH_THREAD
#define HAVE_DECLSPEC_DLL
#define HAVE_STDDEF_H 1
#define HAVE_UINTPTR_T 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_PID_T 4
#define SIZEOF_TIME_T 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8
#include <basetsd.h>
typedef SSIZE_T Py_ssize_t;
#define HAVE_PY_SSIZE_T 1
#define PY_SSIZE_T_MAX SSIZE_MAX
"""


def run(*command: str | Path, **environment: str) -> None:
    """Run a command in the repository; stop the script if it fails."""
    # Settings of another build would take precedence over those on the command line.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SKBUILD_")}
    subprocess.run(command, cwd=ROOT, env={**inherited, **environment}, check=True)


# Zig's linker for macOS crashes on -bundle, and does not read nanobind's list of Python's symbols:
# make a shared library, which Python loads as well, where any symbol may be undefined.
WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    -bundle) set -- "$@" -dynamiclib ;;
    -Wl,@*) set -- "$@" -Wl,-undefined,dynamic_lookup ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{python}" -m ziglang {tool} {options} "$@"
"""


def write_compiler(folder: Path, target: Target) -> dict[str, Path]:
    """Write scripts that call Zig's tools: CMake takes a compiler as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = {}
    for tool in ("c++", "ar", "ranlib"):
        options = f"-target {target.zig}" if tool == "c++" else ""
        tools[tool] = folder / f"zig-{tool}"
        tools[tool].write_text(WRAPPER.format(python=sys.executable, tool=tool, options=options))
        tools[tool].chmod(0o755)
    return tools


def windows_python(folder: Path, python: Path) -> dict[str, Path]:
    """Write the headers and import libraries of python3.dll; return their CMake variables."""
    from abi3info import DATAS, FUNCTIONS
    from abi3info.models import PyVersion

    include = folder / "include"
    shutil.copytree(include_folder(python), include, dirs_exist_ok=True)
    (include / "pyconfig.h").write_text(WINDOWS_PYCONFIG)
    newest = PyVersion(3, 12)
    functions = sorted(s.name for s, f in FUNCTIONS.items() if f.added <= newest)
    data = sorted(s.name for s, d in DATAS.items() if d.added <= newest)
    lines = ["LIBRARY python3.dll", "EXPORTS", *functions, *(f"{name} DATA" for name in data)]
    definition, library = folder / "python3.def", folder / "python3.lib"
    definition.write_text("\n".join(lines) + "\n")
    zig = [sys.executable, "-m", "ziglang"]
    run(*zig, "dlltool", "-m", "i386:x86-64", "-d", definition, "-l", library)
    # CMake adds the libraries that this machine's Python is linked with.
    run(*zig, "ar", "rc", folder / "libdl.a")
    # CMake also looks for the library of one version, by its name; nothing is linked with it.
    versioned = shutil.copy(library, folder / "python312.lib")
    return {
        "Python_INCLUDE_DIR": include,
        "Python_LIBRARY": versioned,
        "Python_SABI_LIBRARY": library,
    }


def cmake_options(name: str, target: Target, folder: Path, python: Path) -> list[str]:
    """Return the options of CMake that select the compiler and the platform."""
    tools = write_compiler(folder, target)
    options = {
        "CMAKE_CXX_COMPILER": tools["c++"],
        "CMAKE_AR": tools["ar"],
        "CMAKE_RANLIB": tools["ranlib"],
        # Paths of the build machine are not part of a wheel. nanobind 3.1 prints to stderr without
        # the header, which Python.h does not include for the stable ABI.
        "CMAKE_CXX_FLAGS": f"-ffile-prefix-map={ROOT}=. -g0 -include stdio.h -fomit-frame-pointer",
    }
    if (target.system, target.processor) != (platform.system(), platform.machine()):
        options["CMAKE_SYSTEM_NAME"] = target.system
        options["CMAKE_SYSTEM_PROCESSOR"] = target.processor
    if target.system == "Darwin":
        options["CMAKE_OSX_SYSROOT"] = ""
    if target.system == "Windows":
        options |= windows_python(folder, python)
        options["CMAKE_MODULE_LINKER_FLAGS"] = f"-L{folder}"
        options["SKBUILD_SOSABI"] = ""  # the file is _core.pyd there, without "abi3"
    return [f"-D{key}={value}" for key, value in options.items()]


def build_wheel(name: str, version: str, out: Path, pythons: dict[str, str]) -> None:
    """Build one wheel into the folder `out`."""
    target = TARGETS[name]
    # A newer Python can build for the stable ABI of 3.12.
    usable = [version] if version != "3.12" else ["3.12", "3.13", "3.14"]
    found = [pythons.get(version), *(find_python(one) for one in usable)]
    python = next((Path(one) for one in found if one), None)
    if python is None:
        raise SystemExit(f"Python {version} was not found; pass --python {version}=PATH")
    zig = metadata.version("ziglang")  # compiled files of another version cannot be used again
    folder = ROOT / "build" / "wheels" / f"{name}-{version}-zig{zig}"
    shutil.rmtree(folder / "wheel", ignore_errors=True)  # compiled files are used again
    environment = folder / "python"
    run(python, "-m", "venv", environment)
    inside = environment / "bin" / "python"
    run(inside, "-m", "pip", "install", "-qU", "scikit-build-core", "nanobind", "ninja", "cmake")
    options = cmake_options(name, target, folder / "zig", python)
    settings = [f"--config-settings=build-dir={folder / 'cmake'}"]
    if version == "3.12":
        settings.append(f"--config-settings=wheel.py-api={STABLE_ABI}")
        suffix = target.suffix
    else:
        suffix = f".cpython-{version.replace('.', '')}-{target.processor}-linux-gnu.so"
    run(
        inside, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", *settings,
        "--wheel-dir", folder / "wheel", ROOT,
        SKBUILD_CMAKE_ARGS=";".join(options),
        SETUPTOOLS_EXT_SUFFIX=suffix,
        _PYTHON_HOST_PLATFORM=target.host_platform,
    )  # fmt: skip
    (built,) = (folder / "wheel").glob("*.whl")
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", target.tag, built)
    (tagged,) = (folder / "wheel").glob("*.whl")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(tagged, out)
    print(f"{tagged.name}  {tagged.stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--abi", choices=["3.11", "3.12"], help="only these wheels")
    parser.add_argument(
        "--python", action="append", default=[], metavar="VERSION=PATH", help="an interpreter"
    )
    options = parser.parse_args()
    if not all(re.fullmatch(r"3\.1[12]=.+", one) for one in options.python):
        parser.error("--python must be 3.11=PATH or 3.12=PATH (any Python from 3.12 on)")
    unknown = set(options.targets) - {"sdist", *TARGETS}
    if unknown:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}")
    pythons = dict(one.split("=", 1) for one in options.python)
    out = options.out.resolve()
    for name in options.targets or ("sdist", *TARGETS):
        if name == "sdist":
            run(sys.executable, "-m", "build", "--sdist", "--outdir", out, ROOT)
            continue
        for version in TARGETS[name].pythons:
            if options.abi in (None, version):
                build_wheel(name, version, out, pythons)


if __name__ == "__main__":
    main()
