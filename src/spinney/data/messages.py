"""Messages that name parameters: Python and the shell spell these differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Parameter", "Part", "join_parts"]

_NO_VALUE: Any = ...


@dataclass(frozen=True)
class Parameter:
    """A parameter named in a message, with or without a value.

    Parameters
    ----------
    name : str
        The parameter's name in Python.
    value : object, default=...
        The value to show beside it; ``...`` shows the name alone.

    Examples
    --------
    >>> str(Parameter("task", "regression")), str(Parameter("cv"))
    ("task='regression'", 'cv')
    """

    name: str
    value: Any = _NO_VALUE

    @property
    def has_value(self) -> bool:
        """Whether a value is shown beside the name."""
        return self.value is not _NO_VALUE

    def __str__(self) -> str:
        """Return the parameter as Python code spells it."""
        return f"{self.name}={self.value!r}" if self.has_value else self.name


Part: TypeAlias = str | Parameter


def join_parts(parts: Iterable[Part], spell: Callable[[Parameter], str] = str) -> str:
    """Join the parts of a message; `spell` returns the text of a parameter.

    Examples
    --------
    >>> parts = [Parameter("cv"), " must be at least 2; got 1"]
    >>> join_parts(parts), join_parts(parts, lambda parameter: f"--{parameter.name}")
    ('cv must be at least 2; got 1', '--cv must be at least 2; got 1')
    """
    return "".join(part if isinstance(part, str) else spell(part) for part in parts)
