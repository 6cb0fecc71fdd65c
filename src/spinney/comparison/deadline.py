"""Stop the body of a ``with`` statement after a number of seconds."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any

_LONGEST = 1e7  # seconds: the longest alarm that every system accepts

__all__ = ["TimeUp", "deadline"]


class TimeUp(BaseException):
    """A deadline has passed. Like KeyboardInterrupt, it passes ``except Exception``."""


@contextmanager
def deadline(seconds: float | None, clock: Callable[[], float] = monotonic) -> Iterator[None]:
    """Raise `TimeUp` in the body after a number of seconds.

    Fits and predictions of Spinney check for signals, so they end soon after. Signals reach the
    main thread only and need SIGALRM; elsewhere the body runs without a limit. An alarm of the
    caller is still delivered at its time.

    Parameters
    ----------
    seconds : float or None
        The limit; None means unlimited.
    clock : callable, default=time.monotonic
        Returns the time in seconds. It only determines which alarm is due; the system's timer sends
        the signals.
    """
    if seconds is None or not math.isfinite(seconds) or not _has_alarms():
        yield
        return
    their_handler: Any = signal.getsignal(signal.SIGALRM)
    start = clock()
    their_seconds, interval = signal.getitimer(signal.ITIMER_REAL)
    their_time = start + their_seconds if their_seconds > 0 else math.inf
    our_time = start + max(seconds, 1e-3)
    armed = True

    def on_alarm(number: int, frame: FrameType | None) -> None:
        nonlocal their_time
        if clock() >= their_time:
            their_time = clock() + interval if interval > 0 else math.inf
            _set_alarm(min(our_time, their_time) - clock())
            if callable(their_handler):
                their_handler(number, frame)
        elif armed:
            raise TimeUp

    signal.signal(signal.SIGALRM, on_alarm)
    _set_alarm(min(our_time, their_time) - start)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, their_handler)
        if their_time < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(their_time - clock(), 1e-3), interval)


def _has_alarms() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM)
        is not None  # None: a handler that Python cannot restore
    )


def _set_alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-3), _LONGEST))
