"""Compare the hashes that several builds of `spinney_bits` print.

    python tests/compare_bits.py A B …

Each argument is a file with the output of one build, or a program to run. Prefix a program with
variables and an emulator as in a shell: "SPINNEY_ISA=avx2 build/tests/spinney_bits". The exit
status is 1 if any line differs from the first output, is missing, or contains an error.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def read_output(argument: str) -> str:
    """Return the content of a file of hashes, or the output of a program."""
    path = Path(argument)
    if path.is_file() and not os.access(path, os.X_OK):
        return path.read_text(encoding="utf-8")
    words = shlex.split(argument)
    environment = dict(os.environ)
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{argument}: exit status {run.returncode}\n{run.stderr}")
    return run.stdout


def read_hashes(text: str) -> dict[str, str]:
    """Return the hash of each name; an error message counts as a hash."""
    hashes = {}
    for line in text.splitlines():
        name, _, value = line.partition(" error: ")
        if value:
            hashes[name] = f"error: {value}"
        elif line.strip():
            name, _, value = line.rpartition(" ")
            hashes[name] = value
    return hashes


def find_differences(outputs: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """Return one line per name whose hashes differ, are missing or are errors."""
    lines = []
    for name in dict.fromkeys(name for _, hashes in outputs for name in hashes):
        values = [(label, hashes.get(name, "missing")) for label, hashes in outputs]
        expected = values[0][1]
        if expected.startswith("error: "):
            lines.append(f"{name}: {expected}")
            continue
        different = [f"{label}: {value}" for label, value in values if value != expected]
        if different:
            lines.append(f"{name}: expected {expected}; {'; '.join(different)}")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the differences between the outputs and return the exit status."""
    if not arguments:
        print(__doc__)
        return 2
    outputs = [(argument, read_hashes(read_output(argument))) for argument in arguments]
    n_names = len(outputs[0][1])
    if n_names == 0:
        print(f"{arguments[0]}: no hashes")
        return 1
    differences = find_differences(outputs)
    print("\n".join(differences) or f"{n_names} hashes agree in {len(outputs)} outputs")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
