"""CMake names the compilers that work if it finds another one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT

CMAKE = shutil.which("cmake")


@pytest.mark.skipif(CMAKE is None, reason="needs cmake")
@pytest.mark.parametrize(
    ("compiler", "version"), [("MSVC", "19.40"), ("GNU", "11.4.0"), ("Clang", "15.0.7")]
)
def test_cmake_names_the_compilers_that_work(compiler: str, version: str, tmp_path: Path) -> None:
    pretended = {
        "CMAKE_CXX_COMPILER": shutil.which("sh"),
        "CMAKE_CXX_COMPILER_FORCED": "TRUE",  # CMake does not run it
        "CMAKE_CXX_COMPILER_ID": compiler,
        "CMAKE_CXX_COMPILER_VERSION": version,
    }
    options = [f"-D{name}={value}" for name, value in pretended.items()]
    run = subprocess.run(
        [str(CMAKE), "-S", ROOT, "-B", tmp_path, *options], capture_output=True, text=True
    )
    message = " ".join(run.stderr.split())
    assert run.returncode != 0
    assert "Spinney needs GCC 12 or newer, or Clang 16 or newer" in message
    assert f"got {compiler}" in message
    assert "Set the environment variable CXX" in message
