"""Errors whose message names a parameter."""

from __future__ import annotations

from typing import Any

from spinney.data.messages import Parameter, Part, join_parts

__all__ = ["ParameterError"]


class ParameterError(ValueError):
    """A parameter has a wrong value, or another parameter solves the problem.

    Parameters
    ----------
    *parts : str or Parameter
        The message. ``str(error)`` spells parameters as Python does; the shell renders the same
        parts with its option names.

    Attributes
    ----------
    parts : tuple of str and Parameter
        The message in parts.

    Examples
    --------
    >>> error = ParameterError(Parameter("cv", 9), " folds need 9 groups; there are 4")
    >>> str(error), error.parameters[0].value
    ('cv=9 folds need 9 groups; there are 4', 9)
    """

    def __init__(self, *parts: Part) -> None:
        super().__init__(join_parts(parts))
        self.parts = parts

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that the message names, in order."""
        return tuple(part for part in self.parts if isinstance(part, Parameter))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts: the message alone would lose them."""
        return type(self), self.parts
