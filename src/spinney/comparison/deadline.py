"""Stop what takes too long."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any

_LONGEST = 1e7  # seconds: what clocks can count

__all__ = ["TimeUp", "deadline"]


class TimeUp(BaseException):
    """A deadline has passed; like Ctrl-C no error, so that nothing takes it for one on the way."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TimeUp` in the body after so many seconds.

    Fits and predictions of Spinney ask for signals as they go, so that they end soon after. Signals
    reach the main thread alone and need an alarm clock: elsewhere the body simply runs on. Somebody
    else's alarm rings when it is due, and goes on afterwards.
    """
    if seconds is None or not math.isfinite(seconds) or not _can_ring():
        yield
        return
    theirs: Any = signal.getsignal(signal.SIGALRM)
    start = monotonic()
    their_seconds, interval = signal.getitimer(signal.ITIMER_REAL)
    their_time = start + their_seconds if their_seconds > 0 else math.inf
    our_time = start + max(seconds, 1e-3)
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal their_time
        if monotonic() >= their_time:
            their_time = monotonic() + interval if interval > 0 else math.inf
            _set(min(our_time, their_time))
            if callable(theirs):
                theirs(number, frame)
        elif armed:
            raise TimeUp

    signal.signal(signal.SIGALRM, ring)
    _set(min(our_time, their_time))
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, theirs)
        if their_time < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(their_time - monotonic(), 1e-3), interval)


def _can_ring() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is not None  # a handler that Python cannot put back
    )


def _set(time: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, min(max(time - monotonic(), 1e-3), _LONGEST))
