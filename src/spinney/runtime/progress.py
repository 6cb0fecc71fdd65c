"""Progress of a fit: callbacks, and a bar when ``verbose``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["progress_hook"]


def progress_hook(estimator: Any, *, scored: bool = False) -> Callable[..., bool] | None:
    """Return the function that reports the progress of a fit, or None.

    It is called with (units done, total units) on the thread that called ``fit``; the core calls
    it at most every 50 ms. An exception that it raises ends the fit.

    Parameters
    ----------
    estimator : estimator
        Its ``callbacks`` (a callable or several, each called with ``(done, total)``) and
        ``verbose`` are read.
    scored : bool, default=False
        Whether the hook gets a score as a third argument. It passes the score to callbacks with
        three arguments, and returns whether one of them returned True.
    """
    callbacks = estimator.callbacks
    given: list[Any] = []
    if callable(callbacks):
        given.append(callbacks)
    elif callbacks is not None:
        for position, callback in enumerate(callbacks):
            if not callable(callback):
                raise TypeError(
                    "callbacks must be callables that take (done, total), got "
                    f"{type(callback).__name__} at position {position}"
                )
            given.append(callback)
    if estimator.verbose:
        given.append(_FitBar(type(estimator).__name__))
    if not given:
        return None
    listeners = [(listener, scored and _takes_three(listener)) for listener in given]

    def hook(done: int, total: int, score: float | None = None) -> bool:
        ends = False
        for listener, takes_score in listeners:
            result = listener(done, total, score) if takes_score else listener(done, total)
            ends |= result is True
        return ends

    return hook


def _takes_three(listener: Any) -> bool:
    try:
        inspect.signature(listener).bind(0, 0, 0.0)
    except (TypeError, ValueError):
        return False
    return True


class _FitBar:
    """A progress bar on standard error, created at the first report of progress."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.progress: Any = None
        self.task: Any = None

    def __call__(self, done: int, total: int, score: float | None = None) -> None:
        if self.progress is None:
            # Imported here for start-up time: most fits show no bar.
            from rich.console import Console
            from rich.progress import Progress

            self.progress = Progress(console=Console(stderr=True), transient=True)
            self.task = self.progress.add_task(self.title, total=total)
            self.progress.start()
        title = self.title if score is None else f"{self.title} loss {score:.5g}"
        self.progress.update(self.task, completed=done, description=title)

    def __del__(self) -> None:
        if self.progress is not None:
            self.progress.stop()
