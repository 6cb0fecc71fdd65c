"""Errors and notes carry parameters and kinds, and survive pickling."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from spinney.comparison.outcomes import Failure, Skip, SkipReason, Stage
from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter, join_parts
from spinney.data.notes import Note, NoteKind
from spinney.data.target import StrayValue


def test_parameter_error() -> None:
    error = ParameterError(Parameter("cv", 9), " folds need 9 groups; or set ", Parameter("task"))
    assert isinstance(error, ValueError)
    assert str(error) == "cv=9 folds need 9 groups; or set task"
    assert error.parameters == (Parameter("cv", 9), Parameter("task"))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.parts) == (ParameterError, str(error), error.parts)
    shell = join_parts(error.parts, lambda parameter: f"--{parameter.name}")
    assert shell == "--cv folds need 9 groups; or set --task"


def test_parameter_without_value() -> None:
    assert not Parameter("cv").has_value
    assert Parameter("cv", None).has_value
    assert str(Parameter("cv", None)) == "cv=None"


def test_stray_value() -> None:
    error = StrayValue("target has '{x}' in ", 16, ", or set ", Parameter("task", "regression"))
    assert str(error) == "target has '{x}' in row 17, or set task='regression'"
    assert str(error.at("line 18")) == "target has '{x}' in line 18, or set task='regression'"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.row, str(again)) == (StrayValue, 16, str(error))


def test_note() -> None:
    note = Note("set ", Parameter("header", False), kind=NoteKind.HEADER, column="a")
    assert note == "set header=False"
    assert note.render(lambda parameter: "--no-header") == "set --no-header"
    assert json.dumps([note]) == '["set header=False"]'
    for again in (pickle.loads(pickle.dumps(note)), copy.deepcopy(note)):
        assert isinstance(again, Note)
        assert (again, again.kind, again.column) == (note, NoteKind.HEADER, "a")


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(Stage.FIT, "ValueError", "no rows"), "ValueError: no rows"),
        (Failure(Stage.FIT, "ValueError", ""), "ValueError"),
        (Failure(Stage.MEASURE, "TypeError", "no", "f1"), "f1 failed: TypeError: no"),
    ],
)
def test_failure(failure: Failure, text: str) -> None:
    assert failure == text
    again = pickle.loads(pickle.dumps(failure))
    assert (again, again.stage, again.error_type) == (text, failure.stage, failure.error_type)


def test_skip() -> None:
    skip = Skip(SkipReason.TOO_SLOW, "a fold takes 9 s")
    again = copy.deepcopy(skip)
    assert (again, again.reason) == ("a fold takes 9 s", SkipReason.TOO_SLOW)
