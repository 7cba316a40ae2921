"""Reading a session back, in the head of a new one.

All or nothing: variables appear in the namespace as they are read, since a person's `__setstate__` may need
those before it, but until the last is read the old ones can be put back; settings, `Out` and random numbers
come only after that. What a person's object raises on the way costs only itself: then all is read once more,
slowly, by an unpickler that goes on behind it.
"""

import importlib
import os
import sys
import types
from collections.abc import Callable

from matplotlib.figure import Figure

from . import checkpoint_pickle as pickling
from .. import checkpoint_rebuild as rebuild
from . import checkpoint_save as saving
from . import checkpoint_shell, checkpoint_state, checkpoint_words
from .checkpoint_clock import Clock
from .checkpoint_file import FORMAT, Damaged, Reader
from .checkpoint_trace import Trace
from ..results.figures import figures
from ..shell import Shell


def load(
    shell: Shell, fd: int, *, data_dir: str = "/mnt/data", seconds: float = 30.0, at: int = 0, size: int | None = None
) -> dict:
    """`fd`: a regular file, `size` bytes of it from `at` on. -> the report; its "error" says why nothing was changed."""
    work = _Load(shell, lambda: Reader(fd, at, size), data_dir)
    try:
        with saving.unnoticed(), saving.not_collecting(), Clock(seconds) as clock:
            work.read(clock)
        work.finish()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return work.failed(error)
    return work.report


class _Load:
    def __init__(self, shell: Shell, reader: Callable[[], Reader], data_dir: str):
        self._shell, self._reader, self._data_dir = shell, reader, data_dir
        self._anchors = checkpoint_shell.anchors(shell)
        self.report = {"kept": 0, "bytes": 0, "lost": [], "notes": [], "error": None}
        self._changed: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self._names: dict[object, object] = {}
        self._types: dict[object, str] = {}
        self._results: dict[int, object] = {}
        self._newest: dict[str, object] = {}
        self._magics: list[tuple[str, str, object]] = []
        self._extras: dict[str, object] = {}
        self._notes: list[str] = []
        self._lost: list[dict[str, str]] = []

    # Reading

    def read(self, clock: Clock) -> None:
        reader = self._reader()
        self._check(reader.head)
        self._kept_then = reader.report
        self.report["bytes"] = reader.size
        before = _Before(self._shell)
        try:
            if not self._went_well(clock, reader):
                before.put_back()
                self._begin()
                self._read_all(clock, self._patient, reader)
        except BaseException:
            before.put_back()
            raise
        finally:
            rebuild.thaw = None

    def _went_well(self, clock: Clock, reader: Reader) -> bool:
        """The quick way. What it had made until it failed is gone when this returns: there may be no room for both."""
        try:
            self._read_all(clock, self._quick, reader)
        except (Damaged, MemoryError, KeyboardInterrupt):
            raise
        except BaseException:
            return False
        return True

    def _check(self, head: dict) -> None:
        if head.get("format") != FORMAT:
            raise Damaged(f"it is of format {head.get('format')!r}, which this version does not read")
        if head.get("bytecode") != saving.bytecode():
            raise Damaged(f"it was made by Python {head.get('python')}, whose functions can't run in this one")
        missing = set(head.get("anchors", ())) - set(self._anchors)
        if missing:
            raise Damaged(f"it was made by a newer version ({', '.join(sorted(map(str, missing)))})")
        now = saving.packages()
        for name, version in head.get("packages", {}).items():
            if now.get(name, version) != version:
                self._changed.append(f"{name} was {version} and is {now[name]} now")

    def _read_all(self, clock: Clock, make, reader: Reader) -> None:
        anchors = [self._anchors[name] for name in reader.head["anchors"]]
        rebuild.thaw = rebuild.Thaw(reader.memory, self._data_dir)
        self._clear()
        unpickler = make(clock, reader, anchors)
        while not reader.done:
            kind, name, type_name, value = self._one(clock, unpickler)
            getattr(self, f"_take_{kind}")(name, value)
            if kind == "variable":
                self._types[name] = type_name
        if rebuild.thaw.broken:
            self._leave_out(rebuild.thaw.broken)

    def _quick(self, clock: Clock, reader: Reader, anchors: list[object]):
        return pickling.Unpickler(reader, anchors)

    def _patient(self, clock: Clock, reader: Reader, anchors: list[object]):
        return pickling.PatientUnpickler(reader, anchors, rebuild.thaw, clock)

    @staticmethod
    def _one(clock: Clock, unpickler) -> list:
        with clock.share():
            return unpickler.load()

    def _clear(self) -> None:
        namespace = self._shell.user_ns
        for name, value in list(namespace.items()):
            if checkpoint_shell.is_variable(self._shell, name, value):
                del namespace[name]

    # What is read

    def _take_variable(self, name: object, value: object) -> None:
        self._names[name] = self._shell.user_ns[name] = value

    def _take_magic(self, name: list[str], value: object) -> None:
        self._magics.append((*name, value))

    def _take_result(self, number: int, value: object) -> None:
        self._results[number] = value

    def _take_newest(self, name: str, value: object) -> None:
        self._newest[name] = value

    def _take_extra(self, name: str, value: object) -> None:
        """Some have to be there before the variables; all others wait until everything is read."""
        if name in _EARLY:
            _EARLY[name](self, value)
        else:
            self._extras[name] = value

    def _set_folder(self, folder: str) -> None:
        try:
            os.chdir(rebuild.thaw.place(folder))
        except OSError as error:
            self._notes.append(f"the folder {folder} is not there any more: {error.strerror}")

    def _set_places(self, places: list[tuple[int, str]]) -> None:
        checkpoint_state.look_there_too(places)

    def _set_parts(self, names: list[str]) -> None:
        for name in names:
            if name not in sys.modules:
                try:
                    importlib.import_module(name)
                except Exception as error:
                    self._notes.append(f"{name} could not be imported: {type(error).__name__}: {error}")

    def _set_sources(self, entries: dict[str, tuple]) -> None:
        checkpoint_shell.set_sources(entries)

    def _leave_out(self, broken: dict[int, tuple[object, str]]) -> None:
        """Variables that hold something that could not be put together are no variables."""
        trace = Trace(broken, self._anchors.values())
        for name, value in list(self._names.items()):
            if (why := trace.why(value)) is not None:
                del self._names[name], self._shell.user_ns[name]
                self._lost.append(_lost(str(name), self._types[name], why))
        for number, value in list(self._results.items()):
            if (why := trace.why(value)) is not None:
                del self._results[number]
                self._notes.append(_lost(f"Out[{number}]", "", why)["why"])
        self._newest = {name: value for name, value in self._newest.items() if trace.why(value) is None}
        self._magics = [magic for magic in self._magics if trace.why(magic[2]) is None]
        self._extras = {name: value for name, value in self._extras.items() if trace.why(value) is None}

    # Afterwards: it can't fail any more, as a whole

    def finish(self) -> None:
        shell, extras = self._shell, self._extras
        self._guarded("Out", checkpoint_shell.set_results, shell, self._results, self._newest)
        for kind, name, function in self._magics:
            self._guarded(f"%{name}", checkpoint_shell.set_magic, shell, kind, name, function)
        if "session" in extras:
            self._guarded("In", checkpoint_shell.set_session, shell, extras.pop("session"))
        for figure in extras.pop("figures", ()):
            self._guarded("a figure", _know, figure)
        for name in [*checkpoint_state.PIECES]:
            if name in extras:
                self._guarded(name, checkpoint_state.put_back, name, extras[name])
        self._tell()

    def _guarded(self, what: str, step: Callable, *args: object) -> None:
        try:
            step(*args)
        except Exception as error:
            self._notes.append(f"{what} could not be put back: {type(error).__name__}: {error}")

    def _tell(self) -> None:
        then = self._kept_then
        variables = {n: v for n, v in self._names.items() if not isinstance(v, types.ModuleType)}
        self.report["kept"] = sum(not str(name).startswith("__") for name in variables)
        self.report["lost"] = [*then.get("lost", ()), *self._lost]
        self.report["notes"] = [*then.get("notes", ()), *self._changed, *self._notes]

    def failed(self, error: BaseException) -> dict:
        said = str(error) if isinstance(error, Damaged) else pickling.said(error)
        self.report.update(kept=0, error=f"the checkpoint could not be read: {said}")
        return self.report


_EARLY = {
    "folder": _Load._set_folder,
    "places": _Load._set_places,
    "parts": _Load._set_parts,
    "sources": _Load._set_sources,
}


class _Before:
    """What was there, in case that it can't be replaced."""

    def __init__(self, shell: Shell):
        self._namespace, self._names = shell.user_ns, dict(shell.user_ns)
        self._path = list(sys.path)
        try:
            self._folder = os.getcwd()
        except OSError:
            self._folder = "/"

    def put_back(self) -> None:
        self._namespace.clear()
        self._namespace.update(self._names)
        sys.path[:] = self._path
        os.chdir(self._folder)


def _lost(name: str, type_name: str, why: str) -> dict[str, str]:
    return checkpoint_words.entry(name, type_name, f"`{name}` could not be put together again: {why}")


def _know(figure: Figure) -> None:
    """A later change to it makes it a chart of that cell, as it would have. Thawing was no change."""
    figure.stale = False
    figures._earlier.add(figure)
