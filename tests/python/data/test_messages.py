"""Errors and notes store parameters and kinds, and can be pickled."""

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


def test_parameter_error_stores_its_parts() -> None:
    error = ParameterError(Parameter("cv", 9), " folds need 9 groups; or set ", Parameter("task"))
    assert isinstance(error, ValueError)
    assert str(error) == "cv=9 folds need 9 groups; or set task"
    assert error.parameters == (Parameter("cv", 9), Parameter("task"))
    restored = pickle.loads(pickle.dumps(error))
    assert (type(restored), str(restored), restored.parts) == (
        ParameterError,
        str(error),
        error.parts,
    )
    shell_text = join_parts(error.parts, lambda parameter: f"--{parameter.name}")
    assert shell_text == "--cv folds need 9 groups; or set --task"


def test_parameter_may_have_no_value() -> None:
    assert not Parameter("cv").has_value
    assert Parameter("cv", None).has_value
    assert str(Parameter("cv", None)) == "cv=None"


def test_stray_value_stores_its_row() -> None:
    error = StrayValue("target has '{x}' in ", 16, ", or set ", Parameter("task", "regression"))
    assert str(error) == "target has '{x}' in row 17, or set task='regression'"
    assert str(error.at("line 18")) == "target has '{x}' in line 18, or set task='regression'"
    restored = pickle.loads(pickle.dumps(error))
    assert (type(restored), restored.row, str(restored)) == (StrayValue, 16, str(error))


def test_note_is_a_string_with_kind_and_column() -> None:
    note = Note("set ", Parameter("header", False), kind=NoteKind.HEADER, column="a")
    assert note == "set header=False"
    assert note.render(lambda parameter: "--no-header") == "set --no-header"
    assert json.dumps([note]) == '["set header=False"]'
    for copied in (pickle.loads(pickle.dumps(note)), copy.deepcopy(note)):
        assert isinstance(copied, Note)
        assert (copied, copied.kind, copied.column) == (note, NoteKind.HEADER, "a")


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(Stage.FIT, "ValueError", "no rows"), "ValueError: no rows"),
        (Failure(Stage.FIT, "ValueError", ""), "ValueError"),
        (Failure(Stage.MEASURE, "TypeError", "no", "f1"), "f1 failed: TypeError: no"),
    ],
)
def test_failure_is_a_string_with_a_stage(failure: Failure, text: str) -> None:
    assert failure == text
    restored = pickle.loads(pickle.dumps(failure))
    assert (restored, restored.stage, restored.error_type) == (
        text,
        failure.stage,
        failure.error_type,
    )


def test_skip_is_a_string_with_a_reason() -> None:
    skip = Skip(SkipReason.TOO_SLOW, "a fold takes 9 s")
    copied = copy.deepcopy(skip)
    assert (copied, copied.reason) == ("a fold takes 9 s", SkipReason.TOO_SLOW)
