"""The pickler and the unpicklers of a checkpoint.

One pickler for the whole session: its memo is why two names of one list are one list afterwards. Variables go
through it one after the other, so that each can be given up alone: what it left in the memo and in the file is
taken back. Things that exist in every session (its namespace, `Out`, stdout, the random numbers of `random`)
are in the memo from the start, on both sides; that costs nothing, where a `persistent_id` would be asked for
every number and string.
"""

import concurrent.futures
import contextvars
import copyreg
import functools
import io
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable

import numpy
import pandas
import pyarrow
from cloudpickle import cloudpickle
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from pandas._libs.internals import Block, BlockValuesRefs
from pandas.core.arrays.arrow.array import ArrowExtensionArray
from pandas.core.internals.managers import SingleBlockManager

from . import checkpoint_code as code
from . import checkpoint_memory as memory
from .. import checkpoint_rebuild as rebuild
from . import checkpoint_things as things
from .checkpoint_clock import Clock, OutOfTime
from .checkpoint_file import Damaged, Reader, Writer
from .checkpoint_refuse import what_is

PROTOCOL = 5
_WEAK_DICTS = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary)
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


def _artist(pickler: "Pickler", value: Artist):
    """matplotlib forgets whom to tell of a change, and nobody would see that the figure has to be drawn again."""
    if isinstance(value, Figure):
        pickler.figures.append(value)
    reduced = value.__reduce_ex__(PROTOCOL)
    if len(reduced) > 2 and type(reduced[2]) is dict and "stale_callback" in reduced[2]:
        reduced[2]["stale_callback"] = value.stale_callback
    return reduced


class _Never:
    pass


# By the exact type
_EXACT: dict[type, Callable] = {
    types.FunctionType: code.function,
    types.CodeType: code.code,
    types.CellType: code.cell,
    types.ModuleType: code.module,
    functools._lru_cache_wrapper: code.cached,
    typing.TypeVar: code.type_variable,
    typing.ParamSpec: code.type_variable,
    typing.TypeVarTuple: code.type_variables,
    typing.NewType: code.new_type,
    getattr(typing, "TypeAliasType", _Never): code.type_alias,  # since Python 3.12
    numpy.ndarray: memory.array,
    numpy.memmap: memory.memmap,
    BlockValuesRefs: memory.shared_by,
    io.TextIOWrapper: things.text_file,
    io.BufferedReader: things.byte_file,
    io.BufferedWriter: things.byte_file,
    io.BufferedRandom: things.byte_file,
    io.FileIO: things.byte_file,
    type(threading.Lock()): things.lock,
    type(threading.RLock()): things.recursive_lock,
    weakref.ReferenceType: things.reference,
    weakref.WeakMethod: things.method_reference,
    weakref.ProxyType: things.proxy,
    weakref.CallableProxyType: things.proxy,
    types.MappingProxyType: things.read_only,
    memoryview: things.memory_view,
    random.SystemRandom: things.random_numbers,
    contextvars.ContextVar: things.context_variable,
    re.Match: things.match,
    struct.Struct: things.structure,
    **dict.fromkeys(_WEAK_DICTS, things.weak_dict),
    **dict.fromkeys(_VIEWS, things.dict_view),
}

_EXACT_BY_IDENTITY = {id(kind): handler for kind, handler in _EXACT.items()}

# By what the type comes from
_BASES: tuple[tuple[type, Callable], ...] = (
    (type, code.klass),
    (types.ModuleType, code.module),
    (threading.local, things.thread_local),
    (subprocess.Popen, things.child),
    (concurrent.futures.Future, things.future),
    (BaseException, code.exception),
    (SingleBlockManager, memory.series_manager),
    (Block, memory.block),
    (pandas.Index, memory.index),
    (ArrowExtensionArray, memory.arrow_values),
    (pyarrow.Buffer, memory.buffer),
    (Artist, _artist),
)


def _handler(kind: type) -> Callable | None:
    exact = _EXACT_BY_IDENTITY.get(id(kind))
    if exact is not None:
        return exact
    for base, handler in _BASES:
        if issubclass(kind, base):
            return handler
    if what_is(kind):
        return things.refuse
    return code.instance if code.wants_care(kind) else None


class Pickler(pickle.Pickler):
    def __init__(self, writer: Writer, anchors: dict[str, object], data_dir: str):
        super().__init__(writer, PROTOCOL, buffer_callback=self._buffer)
        self._writer = writer
        self._namespace = anchors["namespace"]
        self._data_dir = os.path.realpath(data_dir)
        self.dispatch_table = {**copyreg.dispatch_table, **cloudpickle.Pickler._dispatch_table}
        self._handlers: dict[int, Callable | None] = {}
        self._kinds: list[type] = []  # alive for as long as their identities are asked for
        self.memo = {id(value): (place, value) for place, value in enumerate(anchors.values())}
        self.modules = dict(sys.modules)
        self.made_modules: dict[int, types.ModuleType] = {}
        self.buffers: dict[tuple[int, int], pyarrow.Buffer] = {}
        self.figures: list[Figure] = []
        self.last: object = None  # what was looked at when something was raised

    # What pickle asks

    def reducer_override(self, value: object):
        self.last = value
        handler = self._handlers.get(id(type(value)), self)
        if handler is self:
            handler = self._learn(type(value))
        return NotImplemented if handler is None else handler(self, value)

    def _learn(self, kind: type) -> Callable | None:
        """By identity: a metaclass of the person's may have its own idea of hash and equality."""
        self._kinds.append(kind)
        handler = self._handlers[id(kind)] = _handler(kind)
        return handler

    def _buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """-> whether it is to go through the pickle"""
        view = buffer.raw()
        if view.nbytes < memory.APART_MIN:
            return True
        self._writer.memory(view)
        return False

    # What the reducers ask

    def memory(self, view: memoryview) -> None:
        self._writer.memory(view)

    def home_of(self, namespace: dict) -> object:
        """The session's namespace, a module, or a dictionary that code was run in."""
        if namespace is self._namespace:
            return namespace
        name = namespace.get("__name__")
        module = self.modules.get(name) if isinstance(name, str) else None
        if isinstance(module, types.ModuleType) and vars(module) is namespace:
            return module
        return self.made_modules.get(id(namespace), namespace)

    def place_of(self, path: str) -> str:
        """Below the session's own folder, or where it is."""
        real = os.path.realpath(path)
        inside = os.path.commonpath((real, self._data_dir)) == self._data_dir
        return os.path.relpath(real, self._data_dir) if inside else real

    # One variable at a time

    def put(self, item: list) -> None:
        """All of it, or nothing and an exception. `item` is a list of its own: the memo is told by it."""
        mark = self._writer.mark()
        try:
            self.dump(item)
        except BaseException:
            self._take_back(item, mark)
            raise

    def _take_back(self, item: list, mark: int) -> None:
        self._writer.rewind(mark)
        memo = self.memo.copy()
        if id(item) in memo:
            first = memo[id(item)][0]
            self.memo = {key: entry for key, entry in memo.items() if entry[0] < first}
        self.buffers.clear()

    def written(self) -> set[int]:
        """The identities of all that was written."""
        return set(self.memo.copy())


# Reading


def _anchoring(count: int) -> bytes:
    """A pickle that puts the anchors into the memo of the unpickler and gives None."""
    return b"\x80\x05" + b"".join(b"K" + bytes([n]) + b"Q\x940" for n in range(count)) + b"N."


class Unpickler(pickle.Unpickler):
    """The fast one: whatever is raised ends it."""

    def __init__(self, reader: Reader, anchors: list[object]):
        super().__init__(reader, buffers=reader)
        self._anchors = anchors
        reader.restart(_anchoring(len(anchors)))
        self.load()

    def persistent_load(self, place: int) -> object:
        return self._anchors[place]


def said(error: BaseException) -> str:
    if isinstance(error, OutOfTime):
        return f"it took longer than {error.seconds:.1f} s"
    try:
        text = str(error)
    except BaseException:  # the person's
        text = ""
    name = type(error).__name__
    return f"{name}: {text}" if text else name


class PatientUnpickler(pickle._Unpickler):
    """For when the fast one failed: goes on behind what can't be put together, and remembers what that was."""

    def __init__(self, reader: Reader, anchors: list[object], thaw: rebuild.Thaw, clock: Clock):
        super().__init__(reader, buffers=reader)
        self._anchors, self._thaw, self._clock = anchors, thaw, clock
        reader.restart(_anchoring(len(anchors)))
        self.load()

    def persistent_load(self, place: int) -> object:
        return self._anchors[place]

    def find_class(self, module: str, name: str) -> object:
        try:
            return super().find_class(module, name)
        except _FATAL:
            raise
        except BaseException as error:
            return self.lose(error)

    def lose(self, error: BaseException, value: object = None, parts: tuple = ()) -> object:
        if isinstance(error, OutOfTime):
            self._clock.once_more()
        for part in _with_parts(parts):
            if type(part) is rebuild.Lost:
                return part
        return self._thaw.lose(said(error), value)


def _with_parts(parts: tuple) -> list[object]:
    """What a call was given, and what was in that: the first cause says more than what came of it."""
    inner = [list(part.values()) if type(part) is dict else part for part in parts]
    return [*parts, *(one for part in inner if type(part) in (list, tuple) for one in part)]


_FATAL = (Damaged, MemoryError, KeyboardInterrupt)
_Step = Callable[[PatientUnpickler], None]


def _filling(step: _Step) -> _Step:
    """BUILD, SETITEMS and their kin: what is filled lies on the stack, and stays as far as it came."""

    def filling(self: PatientUnpickler) -> None:
        try:
            step(self)
        except _FATAL:
            raise
        except BaseException as error:
            self.lose(error, self.stack[-1])

    return filling


def _making(unpack: Callable[[PatientUnpickler], tuple]) -> _Step:
    """REDUCE, NEWOBJ and their kin: what could not be made is a `Lost` from there on."""

    def making(self: PatientUnpickler) -> None:
        make, args, options = unpack(self)
        try:
            made = make(*args, **options)
        except _FATAL:
            raise
        except BaseException as error:
            filled = args[0] if args and getattr(make, "__name__", "").startswith("fill_") else None
            made = self.lose(error, filled, (make, *args))
        self.append(made)

    return making


def _of_reduce(self: PatientUnpickler) -> tuple:
    args = self.stack.pop()
    return self.stack.pop(), args, {}


def _of_new(self: PatientUnpickler) -> tuple:
    args = self.stack.pop()
    kind = self.stack.pop()
    return getattr(kind, "__new__", kind), (kind, *args), {}


def _of_new_with_options(self: PatientUnpickler) -> tuple:
    options = self.stack.pop()
    make, args, _ = _of_new(self)
    return make, args, options


def _of_frozenset(self: PatientUnpickler) -> tuple:
    return frozenset, (self.pop_mark(),), {}


_FILLING = (pickle.BUILD, pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.ADDITEMS)
PatientUnpickler.dispatch = dict(pickle._Unpickler.dispatch) | {
    **{code[0]: _filling(pickle._Unpickler.dispatch[code[0]]) for code in _FILLING},
    pickle.REDUCE[0]: _making(_of_reduce),
    pickle.NEWOBJ[0]: _making(_of_new),
    pickle.NEWOBJ_EX[0]: _making(_of_new_with_options),
    pickle.FROZENSET[0]: _making(_of_frozenset),
}
