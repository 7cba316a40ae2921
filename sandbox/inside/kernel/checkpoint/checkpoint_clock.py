"""Time for what a person's objects do while they are written down or put together again.

`__reduce__`, `__setstate__` and their kin are code from cells: they may wait for ever. An alarm interrupts
them, again and again if they swallow it, and costs them only their own variable: each gets a part of what is
left, so that there is always something left for the next.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN_S = 0.2


class OutOfTime(BaseException):
    """Not an Exception: `except Exception` in a person's code must not end it."""

    def __init__(self, seconds: float = 0.0):
        super().__init__(seconds)
        self.seconds = seconds


class Clock:
    """Takes SIGALRM for as long as it is entered; a timer of the person's own goes on afterwards."""

    def __init__(self, seconds: float):
        self._end = time.monotonic() + seconds
        self._due: float | None = None
        self._allowed = 0.0
        self._works = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Clock":
        if self._works:
            self._began = time.monotonic()
            self._timer = signal.setitimer(signal.ITIMER_REAL, 0)
            self._handler = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_) -> None:
        self._due = None
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._handler if self._handler is not None else signal.SIG_DFL)
            left, interval = self._timer
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - self._began), 1e-3), interval)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._due is not None and time.monotonic() >= self._due:
            raise OutOfTime(self._allowed)

    @property
    def left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)

    @contextmanager
    def share(self, part: float = 0.5) -> Iterator[None]:
        """What runs inside may take that part of the time that is left."""
        try:
            self._start(part)
            yield
        finally:
            self._due = None
            if self._works:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def once_more(self) -> None:
        """It was out of time, and goes on with something else."""
        self._start(0.5)

    def _start(self, part: float) -> None:
        self._allowed = self.left * part
        if self._allowed < 1e-3:
            raise OutOfTime
        self._due = time.monotonic() + self._allowed
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, self._allowed, _AGAIN_S)
