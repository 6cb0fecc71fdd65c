"""Check the wheels of ``tools/build_wheels.py``: size, contents, symbols, metadata and tests.

    python tools/check_wheels.py dist [--tests PYTHON ...]

Each wheel must be at most 5 MB, stripped, free of paths of the build machine, and pass auditwheel
(Linux), abi3audit (stable ABI), check-wheel-contents and twine. With ``--tests``, the wheel and
the extra ``[test]`` are installed in a new environment of each interpreter, and the whole test
suite runs in a copy of the repository, on a PATH without a compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_BYTES = 5_000_000
# Minimum number of AVX2 and of AVX-512 registers in the disassembly; compiled kernels have tens of
# thousands.
MIN_VECTORS = 5000
COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+|tcc|icx|nvcc)(-[\d.]+)?$")
PATHS = re.compile(rb"/(?:home|root|work|tmp|build|opt|Users)/[\w./+-]{4,}")


def check_contents(wheel: Path) -> list[str]:
    """Return the problems of the size, the module and its strings."""
    problems = []
    if wheel.stat().st_size > MAX_BYTES:
        problems.append(f"{wheel.stat().st_size} bytes; at most {MAX_BYTES} are allowed")
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if re.search(r"\.(so|pyd)$", name)]
        if len(modules) != 1:
            problems.append(f"expected one compiled module; got {modules}")
        for name in modules:
            data = archive.read(name)
            if b".debug_info" in data or b"\0.symtab\0" in data:
                problems.append(f"{name} is not stripped")
            if paths := sorted(set(PATHS.findall(data))):
                problems.append(f"{name} contains paths: {paths[:3]}")
    return problems


def check_instructions(wheel: Path) -> list[str]:
    """Return a problem if the kernels of an x86-64 wheel use baseline instructions only."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if re.search(r"\.(so|pyd)$", name))
        module = archive.extract(name, folder)
        shown = subprocess.run(
            ["objdump", "-d", module], capture_output=True, text=True, check=True
        )
    counts = {name: shown.stdout.count(f"%{name}") for name in ("ymm", "zmm")}
    return (
        [] if min(counts.values()) > MIN_VECTORS else [f"few vector registers are used: {counts}"]
    )


def run_tool(*command: str | Path) -> list[str]:
    """Return the output of a tool as a problem if it fails."""
    run = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    return [] if run.returncode == 0 else [f"{command[0]}: {run.stdout}{run.stderr}".strip()]


def check_wheel(wheel: Path) -> list[str]:
    """Return the problems of a wheel."""
    problems = check_contents(wheel)
    problems += run_tool("check_wheel_contents", wheel)
    problems += run_tool("twine", "check", "--strict", wheel)
    if "-abi3-" in wheel.name:
        problems += run_tool("abi3audit", "--strict", wheel)
    if re.search(r"x86_64|amd64", wheel.name) and shutil.which("objdump"):
        problems += check_instructions(wheel)
    if tag := re.search(r"-(manylinux_\d+_\d+)_(\w+)\.whl$", wheel.name):
        shown = subprocess.run(
            [sys.executable, "-m", "auditwheel", "show", wheel],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = re.search(r'tag[:\s]+"manylinux_(\d+)_(\d+)_', shown.stdout.replace("\n", " "))
        claimed = tuple(map(int, tag[1].split("_")[1:]))
        if found is None or tuple(map(int, found.groups())) > claimed:
            problems.append(f"auditwheel does not confirm {tag[1]}: {shown.stdout}{shown.stderr}")
    return problems


def tools_without_compiler(folder: Path) -> Path:
    """Return a folder with links to this machine's programs, except compilers."""
    folder.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            link = folder / program.name
            if not COMPILERS.match(program.name) and not link.is_symlink():
                link.symlink_to(program)
    return folder


def run_tests(dist: Path, python: str) -> int:
    """Install the wheel for an interpreter in a new environment and run the suite."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([python, "-m", "venv", folder / "python"], check=True)
        inside = folder / "python" / "bin" / "python"
        path = tools_without_compiler(folder / "bin")
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"CC", "CXX", "PYTHONPATH", "VIRTUAL_ENV"}
        } | {"PATH": f"{inside.parent}:{path}"}
        install = [inside, "-m", "pip", "install", "-q", "--only-binary=:all:"]
        # pip chooses the wheel; without an index it cannot fall back to another spinney.
        subprocess.run(
            [*install, "--no-index", "--no-deps", "--find-links", dist, "spinney"],
            env=environment, check=True,
        )  # fmt: skip
        subprocess.run([*install, "spinney[test]"], env=environment, check=True)
        # Some tests read the sources as text; nothing is imported from them.
        ignored = shutil.ignore_patterns(".git", "build", "dist", ".*cache", ".*venv", "*.so")
        shutil.copytree(ROOT, folder / "repository", ignore=ignored)
        run = subprocess.run(
            [inside, "-m", "pytest"], cwd=folder / "repository", env=environment, check=False
        )
        return run.returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dist", type=Path)
    parser.add_argument("--tests", nargs="+", default=[], metavar="PYTHON")
    options = parser.parse_args()
    failed = False
    wheels = sorted(options.dist.glob("*.whl"))
    if not wheels:
        parser.error(f"{options.dist} contains no wheels")
    for wheel in wheels:
        problems = check_wheel(wheel)
        failed |= bool(problems)
        print(
            f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  {'FAILED' if problems else 'ok'}"
        )
        for problem in problems:
            print(f"  {problem}")
    for sdist in sorted(options.dist.glob("*.tar.gz")):
        problems = run_tool("twine", "check", "--strict", sdist)
        failed |= bool(problems)
        print(
            f"{sdist.name}  {sdist.stat().st_size / 1e6:.1f} MB  {'FAILED' if problems else 'ok'}"
        )
    for python in options.tests:
        print(f"tests with {python}", flush=True)
        failed |= run_tests(options.dist, python) != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
