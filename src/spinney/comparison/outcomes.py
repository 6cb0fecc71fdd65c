"""Reasons for models without a result, and for an early end of a comparison."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

__all__ = ["EndedBy", "Failure", "Skip", "SkipReason", "Stage"]


class Stage(Enum):
    """The step at which a model failed."""

    FIT = "fit"  # fit or predict
    MEASURE = "measure"


class SkipReason(Enum):
    """The reason why a model was not run on all folds."""

    NO_PROBABILITIES = "no probabilities"
    NOT_REACHED = "not reached"
    TOO_SLOW = "too slow"


class EndedBy(Enum):
    """The reason for an early end; the value is part of printed results."""

    TIME_LIMIT = "the time limit"
    INTERRUPT = "Ctrl-C"


class Failure(str):
    """The reason why a model failed: one line of text, with its parts as attributes.

    Parameters
    ----------
    stage : Stage
        The step that failed.
    error_type : str
        The name of the exception's class, or "" if nothing was raised.
    message : str
        The exception's message, in one line.
    measure : str, default=""
        The metric, if its calculation failed.
    """

    __slots__ = ("error_type", "measure", "message", "stage")

    stage: Stage
    error_type: str
    message: str
    measure: str

    def __new__(cls, stage: Stage, error_type: str, message: str, measure: str = "") -> Self:
        """Render the parts as text."""
        text = ": ".join(part for part in (error_type, message) if part)
        if stage is Stage.MEASURE:
            text = f"{measure} failed: {text}"
        failure = super().__new__(cls, text)
        failure.stage, failure.error_type = stage, error_type
        failure.message, failure.measure = message, measure
        return failure

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the parts."""
        return type(self), (self.stage, self.error_type, self.message, self.measure)


class Skip(str):
    """The reason why a model was skipped: one line of text, with its kind as an attribute."""

    __slots__ = ("reason",)

    reason: SkipReason

    def __new__(cls, reason: SkipReason, text: str) -> Self:
        """Store the reason with the text."""
        skip = super().__new__(cls, text)
        skip.reason = reason
        return skip

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the reason and the text."""
        return type(self), (self.reason, str(self))
