"""Progress of a fit: callbacks, and a bar when ``verbose``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["progress_hook"]

Callback = Callable[[int, int], object]


def progress_hook(estimator: Any) -> Callback | None:
    """Make the function that the core calls while `estimator` is fitted, or None.

    The core calls it with (units done, units in all), on the thread that called ``fit`` and at most
    every 50 ms. An exception that it raises ends the fit.

    Parameters
    ----------
    estimator : estimator
        Its ``callbacks`` (a callable or several, each called with ``(done, total)``) and
        ``verbose`` are read.
    """
    callbacks = estimator.callbacks
    listeners: list[Callback] = []
    if callable(callbacks):
        listeners.append(callbacks)
    elif callbacks is not None:
        for position, callback in enumerate(callbacks):
            if not callable(callback):
                raise TypeError(
                    "callbacks must be callables that take (done, total), got "
                    f"{type(callback).__name__} at position {position}"
                )
            listeners.append(callback)
    if estimator.verbose:
        listeners.append(_Bar(type(estimator).__name__))
    if not listeners:
        return None

    def hook(done: int, total: int) -> None:
        for listener in listeners:
            listener(done, total)

    return hook


class _Bar:
    """A bar on standard error, drawn only if the work lasts long enough to be asked about."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.progress: Any = None
        self.task: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self.progress is None:
            from rich.console import Console
            from rich.progress import Progress

            self.progress = Progress(console=Console(stderr=True), transient=True)
            self.task = self.progress.add_task(self.title, total=total)
            self.progress.start()
        self.progress.update(self.task, completed=done)

    def __del__(self) -> None:
        if self.progress is not None:
            self.progress.stop()
