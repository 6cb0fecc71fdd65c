"""A pytest plugin that replaces scikit-learn's classes with Spinney's.

``run.py`` loads it with ``-p plugin``, before pytest imports scikit-learn's test modules. It marks
each test that used a Spinney object, and writes the outcomes of the tests to a file.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from families import FAMILIES, Family, Replacement

import spinney

# Set by every use of a Spinney object, cleared before each test.
_used = False


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("spinney")
    group.addoption("--peer-family", choices=sorted(FAMILIES), required=True)
    group.addoption("--peer-report", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    lacking = replace(FAMILIES[config.getoption("--peer-family")])
    if not hasattr(config, "workerinput"):  # with xdist the workers report to the main process
        report = config.getoption("--peer-report")
        config.pluginmanager.register(Collector(report, lacking), "spinney-peer-collector")


def replace(family: Family) -> list[str]:
    """Replace scikit-learn's objects, and return the names that Spinney lacks.

    The test files use Spinney's version of all classes that `spinney.patch_sklearn` replaces.
    The classes of the family are also replaced in scikit-learn's private modules.
    """
    for module in family.import_first:
        importlib.import_module(module)
    originals = {
        (replacement.theirs, name): getattr(importlib.import_module(replacement.theirs), name)
        for replacement in family.replacements
        for name in replacement.names
    }
    for name in spinney.patch_sklearn().replaced:
        package, _, name = name.rpartition(".")
        mark_uses(importlib.import_module(f"spinney.{package}"), name)
    lacking = []
    for replacement in family.replacements:
        ours = importlib.import_module(replacement.ours)
        for name in replacement.names:
            if hasattr(ours, name):
                marked = mark_uses(ours, name)
                replace_everywhere(replacement, originals[replacement.theirs, name], marked)
                setattr(importlib.import_module(replacement.theirs), name, marked)
            else:
                lacking.append(f"{replacement.theirs}.{name}")
    return lacking


def replace_everywhere(replacement: Replacement, theirs: Any, ours: Any) -> None:
    inside = f"{replacement.theirs}."
    for name, module in list(sys.modules.items()):
        if name == replacement.theirs or name.startswith(inside):
            for attribute, value in list(vars(module).items()):
                if value is theirs:
                    setattr(module, attribute, ours)


def mark_uses(module: ModuleType, name: str) -> Any:
    """Record each use of a Spinney class or function.

    A class stays the same object, so that tests of types and pickles stay valid.
    """
    target = getattr(module, name)
    if not isinstance(target, type):
        return recording(target)
    for method in ("__init__", "fit"):
        if hasattr(target, method):
            setattr(target, method, recording(getattr(target, method)))
    return target


def recording(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        global _used
        _used = True
        return function(*arguments, **keywords)

    return wrapper


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    global _used
    _used = False
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    report.user_properties.append(("used_spinney", _used))
    return report


class Collector:
    """Collects the outcome of each test."""

    def __init__(self, path: Path, lacking: list[str]) -> None:
        self.path = path
        self.lacking = lacking
        self.tests: dict[str, dict[str, Any]] = {}
        self.broken: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken.append(f"{report.nodeid}: {last_line(report.longreprtext)}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self.tests.setdefault(report.nodeid, {"outcome": "passed", "used": False})
        test["used"] = test["used"] or dict(report.user_properties)["used_spinney"]
        if report.failed:
            test["outcome"] = "failed"
            test["message"] = last_line(report.longreprtext)
        elif report.skipped and test["outcome"] == "passed":
            # Includes tests that scikit-learn expects to fail.
            test["outcome"] = "skipped"

    def pytest_sessionfinish(self) -> None:
        content = {"tests": self.tests, "broken": self.broken, "lacking": self.lacking}
        self.path.write_text(json.dumps(content), encoding="utf-8")


def last_line(text: str) -> str:
    """Return the line of a traceback that has the error message."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return (lines or text.strip().splitlines() or [""])[0]
