"""Watching a comparison: what a callback is told, and a bar that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

__all__ = ["Bar", "Step"]


@dataclass(frozen=True)
class Step:
    """Where a comparison stands; sent before each fit and once at the end.

    Attributes
    ----------
    model : str
        Name of the model that is fitted next ("" at the end).
    done, total : int
        Number of fits finished, and of all fits.
    """

    model: str
    done: int
    total: int


class Bar:
    """A progress bar on the standard error, silent where that is no terminal.

    Use it as a context manager and pass it as a callback.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: Any = None

    def __enter__(self) -> Bar:
        """Start the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self._progress.stop()

    def __call__(self, step: Step) -> None:
        """Show how far the comparison is."""
        if self._task is None:
            self._task = self._progress.add_task(step.model, total=step.total)
        self._progress.update(self._task, description=step.model, completed=step.done)
