"""Run scikit-learn's own tests with Spinney's classes instead of its own.

    python tests/peer/run.py [FAMILY ...] [-- PYTEST OPTIONS]

All families of `families.FAMILIES` run by default. The program counts the tests of each file that
passed and failed. Skipped tests and tests that use no Spinney objects (tests of
scikit-learn's internals) do not count. The exit status is 0 if

- every test that failed is listed in ``known_differences.toml``,
- every test listed there failed (otherwise the entry is stale), and
- at least 95 % of each family's tests passed.

Options after ``--`` go to pytest, and its output is shown. Such options may deselect tests
(``-k``), so only the first condition is checked.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from families import FAMILIES

HERE = Path(__file__).resolve().parent
REQUIRED_SHARE = 0.95


@dataclass(frozen=True)
class Difference:
    """A test, or all cases of a test function, that is known to fail."""

    family: str
    test: str
    reason: str
    flaky: bool

    def covers(self, test: str) -> bool:
        return test == self.test or ("[" not in self.test and test.startswith(f"{self.test}["))


def read_differences(path: Path) -> list[Difference]:
    differences = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("difference", []):
        unknown = set(entry) - {"family", "tests", "reason", "flaky"}
        if unknown or not entry.get("reason") or entry.get("family") not in FAMILIES:
            raise SystemExit(f"{path.name}: bad entry {entry}")
        for test in entry["tests"]:
            differences.append(
                Difference(entry["family"], test, entry["reason"], entry.get("flaky", False))
            )
    return differences


def run_tests(family: str, options: list[str]) -> dict[str, Any]:
    """Run a family's test files in a subprocess, and return the plugin's report."""
    package = Path(importlib.import_module("sklearn").__file__ or "").parent
    files = [package / file for file in FAMILIES[family].files]
    for file in files:
        if not file.exists():
            raise SystemExit(f"scikit-learn {version('scikit-learn')} has no {file.name}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            *(sys.executable, "-m", "pytest", "-p", "plugin", "--peer-family", family),
            *("--peer-report", str(report), "--rootdir", str(package.parent)),
            # Ignore this project's settings; scikit-learn's are in its conftest.py.
            *("-c", os.devnull, "-p", "no:cacheprovider", "-q", "--no-header", "--tb=short"),
            *map(str, files),
            *options,
        ]
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        run = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=folder,
        )
        if options:
            print(run.stdout)
        if not report.exists():
            raise SystemExit(f"{family}: the tests could not be run\n{run.stdout[-3000:]}")
        content: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    content["tests"] = {short_name(name): test for name, test in content["tests"].items()}
    return content


def short_name(name: str) -> str:
    """Shorten "sklearn/tree/tests/test_tree.py::test_x" to "test_tree.py::test_x"."""
    file, separator, test = name.partition("::")
    return file.rpartition("/")[2] + separator + test


def print_report(
    family: str, content: dict[str, Any], differences: list[Difference], *, complete: bool
) -> bool:
    """Print the outcomes of a family's tests, and return whether they are as expected."""
    counts: dict[str, Counter[str]] = {}
    failed: dict[str, str] = {}
    passed: set[str] = set()
    for name, test in content["tests"].items():
        file = name.partition("::")[0]
        # A failure always counts: it may have occurred before the first use of Spinney.
        outcome = test["outcome"]
        if outcome == "passed" and not test["used"]:
            outcome = "unrelated"
        counts.setdefault(file, Counter())[outcome] += 1
        if outcome == "failed":
            failed[name] = test["message"]
        elif outcome == "passed":
            passed.add(name)

    print(f"{'':<26}{'passed':>8}{'failed':>8}{'share':>9}{'skipped':>9}{'unrelated':>11}")
    total: Counter[str] = Counter()
    for file, count in counts.items():
        print_line(file, count)
        total += count
    print_line(family, total)
    if content["lacking"]:
        print("Not in Spinney, scikit-learn's was used:", ", ".join(content["lacking"]))

    known = [difference for difference in differences if difference.family == family]
    by_reason: dict[str, list[str]] = {}
    new: dict[str, list[str]] = {}
    for name in failed:
        difference = next((d for d in known if d.covers(name)), None)
        if difference is None:
            new.setdefault(name.partition("[")[0], []).append(name)
        else:
            by_reason.setdefault(difference.reason, []).append(name)
    stale = []
    for difference in known if complete else []:
        if difference.flaky:
            continue
        if not any(map(difference.covers, content["tests"])):
            stale.append(f"{difference.test}: there is no such test")
        stale += [f"{name}: passes" for name in sorted(passed) if difference.covers(name)]

    print_list("Known differences", by_reason)
    unknown = {f"{test}: {failed[cases[0]]}": cases for test, cases in new.items()}
    print_list("Failures that are not known", unknown)
    print_list("Stale entries of known_differences.toml", {line: [] for line in stale})
    print_list("Files that could not be collected", {line: [] for line in content["broken"]})
    share = passed_share(total)
    if complete and share < REQUIRED_SHARE:
        print(f"\n{100 * share:.1f} % passed, {100 * REQUIRED_SHARE:.0f} % are required")
        return False
    return not (new or stale or content["broken"])


def passed_share(count: Counter[str]) -> float:
    counted = count["passed"] + count["failed"]
    return count["passed"] / counted if counted else 0.0


def print_line(title: str, count: Counter[str]) -> None:
    print(
        f"{title:<26}{count['passed']:>8}{count['failed']:>8}{100 * passed_share(count):>7.1f} %"
        f"{count['skipped']:>9}{count['unrelated']:>11}"
    )


def print_list(title: str, content: dict[str, list[str]]) -> None:
    """Print entries, each with its tests below."""
    if content:
        print(f"\n{title}:")
        for entry, tests in content.items():
            print(f"  {entry}")
            for test in tests:
                print(f"      {test}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", nargs="*", help=f"one of {', '.join(FAMILIES)}; all by default")
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, options = arguments[:cut], arguments[cut + 1 :]
    families = parser.parse_args(arguments).family or list(FAMILIES)
    for family in families:
        if family not in FAMILIES:
            parser.error(f"no family {family!r}; expected one of {', '.join(FAMILIES)}")
    differences = read_differences(HERE / "known_differences.toml")
    print(f"scikit-learn {version('scikit-learn')}, its tests with Spinney's classes\n")
    passed = [
        print_report(family, run_tests(family, options), differences, complete=not options)
        for family in families
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
