"""When an interrupt may come through.

SIGINT is how the keeper says "time is up" or "cancelled". Python turns it into KeyboardInterrupt wherever
the interpreter happens to be, so a signal that comes a moment late would hit the head's own code and cost
the session. Here it is raised only while the gate is open, which is while a person's code (or something
that calls it, such as a `__repr__`) runs, and never inside the function that opens and closes the gate.
A signal that arrives in between is remembered and raised as the first thing inside.

All other signals a cell may have asked for (alarms, timers) are blocked while the head does its own work:
their handlers are the person's code too, and may raise.
"""

import builtins
import signal
from _signal import pthread_sigmask  # signal's own makes an enum of each signal that was blocked: half of a small cell
from collections.abc import Callable
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGINT, getsignal

__builtins__ = dict(vars(builtins))

_install = signal.signal
_FAULTS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGKILL", "SIGSTOP"}
BLOCKED = frozenset(s for s in signal.valid_signals() if getattr(s, "name", "") not in _FAULTS)


class Gate:
    def __init__(self) -> None:
        self.open = False
        self.missed = False

    def install(self) -> None:
        """Take SIGINT (back): a cell may have put its own handler there, for its own time only."""
        if getsignal(SIGINT) != self._on_interrupt:
            _install(SIGINT, self._on_interrupt)

    def _on_interrupt(self, number: int, frame) -> None:
        if self.open and frame is not None and frame.f_code is not _RUN:
            raise KeyboardInterrupt
        self.missed = True

    def forget(self) -> None:
        self.missed = False

    def run(self, call: Callable, *args):
        """Call with the gate open. Whatever is raised inside comes out, KeyboardInterrupt included."""
        try:
            self.open = True
            return self._inside(call, args)
        finally:
            self.open = False
            pthread_sigmask(SIG_BLOCK, BLOCKED)

    def _inside(self, call: Callable, args: tuple):
        pthread_sigmask(SIG_UNBLOCK, BLOCKED)
        if self.missed:
            self.missed = False
            raise KeyboardInterrupt
        return call(*args)


_RUN = Gate.run.__code__


def close_signals() -> None:
    pthread_sigmask(SIG_BLOCK, BLOCKED)


def open_signals() -> None:
    pthread_sigmask(SIG_UNBLOCK, BLOCKED)
