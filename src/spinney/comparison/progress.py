"""Progress of a comparison: what callbacks receive, and a progress bar."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

__all__ = ["ComparisonBar", "Step"]


@dataclass(frozen=True)
class Step:
    """The progress of a comparison; sent before each fit and once at the end.

    Attributes
    ----------
    model : str
        Name of the model that is fitted next ("" at the end).
    done, total : int
        Finished fits, and all fits (fewer after models are skipped).
    seconds_left : float or None
        Estimated remaining time; None during the first fold.
    """

    model: str
    done: int
    total: int
    seconds_left: float | None = None


class ComparisonBar:
    """A progress bar on the standard error; silent if that is not a terminal.

    Use it as a context manager and pass it as a callback.
    """

    def __init__(self) -> None:
        # Imported late, for start-up time.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: Any = None

    def __enter__(self) -> ComparisonBar:
        """Start the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if not self._progress.disable:  # Rich before 14 would print an empty line
            self._progress.stop()

    def __call__(self, step: Step) -> None:
        """Update the bar."""
        left = "" if step.seconds_left is None else f"about {_duration(step.seconds_left)} left"
        if self._task is None:
            self._task = self._progress.add_task(step.model, total=step.total, left=left)
        self._progress.update(
            self._task, description=step.model, completed=step.done, total=step.total, left=left
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
