"""Puts the interpreter right after a cell.

In one process a cell can take away what the next cell, IPython or the head needs: builtins, the streams,
the recursion limit, the interrupt handler. As in any notebook a person may do all this; unlike there, it
must not end the session. What belongs to Python is put back and named in the notes; what is the person's
own (added builtins, a tracer, a profiler, timers) stays.
"""

import builtins
import sys
from operator import is_ as _is

from .gate import Gate
from .streams import Streams

__builtins__ = dict(vars(builtins))

_getrecursionlimit, _setrecursionlimit = sys.getrecursionlimit, sys.setrecursionlimit
_gettrace, _settrace = sys.gettrace, sys.settrace
_getprofile, _setprofile = sys.getprofile, sys.setprofile
_RECURSION_MIN = 1000
_COME_AND_GO = {"_", "display", "get_ipython"}  # IPython sets them while a cell runs


class Mender:
    def __init__(self, gate: Gate, streams: Streams):
        self._gate, self._streams = gate, streams
        self._module = builtins.__dict__
        self._builtins = {k: v for k, v in self._module.items() if k not in _COME_AND_GO}
        self._names, self._values = tuple(self._builtins), tuple(self._builtins.values())
        self._tracers = (None, None)

    def before_cell(self) -> None:
        tracer, profiler = self._tracers
        self._tracers = (None, None)
        if tracer is not None:
            _settrace(tracer)
        if profiler is not None:
            _setprofile(profiler)

    def _stop_tracing(self) -> None:
        """A tracer of the person's sees the cells, never the head."""
        now = _gettrace(), _getprofile()
        if now != (None, None):
            self._tracers = now
            _settrace(None)
            _setprofile(None)

    def after_cell(self) -> list[str]:
        """-> notes. May be called more than once, and may be cut short by an interrupt."""
        self._stop_tracing()
        notes = [f"builtins.{name} had been changed; it was put back" for name in self._mend_builtins()]
        if _getrecursionlimit() < _RECURSION_MIN:
            _setrecursionlimit(_RECURSION_MIN)
        self._gate.install()
        notes += [f"{what} had been replaced; it was put back" for what in self._streams.mend()]
        return notes

    def _mend_builtins(self) -> list[str]:
        module, changed = self._module, []
        if all(map(_is, self._values, map(module.get, self._names))):
            return changed
        for name, value in self._builtins.items():
            if module.get(name, self) is not value:
                module[name] = value
                changed.append(name)
        return changed
