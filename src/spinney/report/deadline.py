"""Stop what takes too long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["TimeUp", "deadline"]


class TimeUp(BaseException):
    """A deadline has passed; like Ctrl-C no error, so that nothing takes it for one on the way."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TimeUp` in the body after so many seconds.

    Fits and predictions of Spinney ask for signals as they go, so that they end soon after. Signals
    reach the main thread alone and need an alarm clock: elsewhere the body simply runs on.
    """
    can_ring = hasattr(signal, "setitimer") and (
        threading.current_thread() is threading.main_thread()
    )
    if seconds is None or not can_ring:
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise TimeUp

    before: Any = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
