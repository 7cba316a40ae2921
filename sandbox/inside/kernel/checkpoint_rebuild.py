"""What the pickle of a checkpoint calls to put objects together again.

Named in every checkpoint that was ever written, by module and name: functions may be added here; those that
are here keep their names and what they take.

As little as possible of the person's code runs: no `__new__`, `__init__`, `__init_subclass__`, `__set_name__`
or metaclass of a class from a cell. What those did was done once; its results are in the checkpoint.
"""

import _abc
import abc
import contextlib
import contextvars
import enum
import functools
import io
import os
import re
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator

import numpy
from pandas._libs.internals import BlockPlacement, BlockValuesRefs


class Lost:
    """Stands where something could not be put together; variables that hold one are taken out again."""

    def __init__(self, why: str):
        self.why = why


class Thaw:
    """The thaw that is going on: where memory comes from, where files lie, what went wrong."""

    def __init__(self, memory: Callable, data_dir: str):
        self.memory, self.data_dir = memory, data_dir
        self.broken: dict[int, tuple[object, str]] = {}

    def lose(self, why: str, value: object = None) -> object:
        """`value`, or what stands for it, from now on counts as broken."""
        value = Lost(why) if value is None else value
        self.broken.setdefault(id(value), (value, why))
        return value

    def place(self, path: str) -> str:
        return os.path.join(self.data_dir, path)


thaw: Thaw | None = None  # one at a time: a thaw is all that its process does


def same(value: object) -> object:
    return value


# Functions


def empty_cell() -> types.CellType:
    return types.CellType()


def fill_cell(cell: types.CellType, contents: tuple) -> None:
    cell.cell_contents = contents[0]


def make_function(code: types.CodeType, home: object, name: str, cells: tuple) -> types.FunctionType:
    """`home`: the namespace itself, or the module that has it."""
    namespace = vars(home) if isinstance(home, types.ModuleType) else home
    return types.FunctionType(code, namespace, name, None, cells or None)


def fill_function(function: types.FunctionType, state: tuple[dict, dict]) -> None:
    attributes, own = state
    function.__dict__.update(attributes)
    for name, value in own.items():
        setattr(function, name, value)


def cached(function: Callable, parameters: dict) -> Callable:
    return functools.lru_cache(**parameters)(function)


def fill_attributes(value: object, attributes: dict) -> None:
    value.__dict__.update(attributes)


# Classes


def _builtin(kind: type, name: str) -> Callable:
    """The first implementation in C: what a person's class has put before it is not run."""
    for base in type.__dict__["__mro__"].__get__(kind):
        found = type.__dict__["__dict__"].__get__(base).get(name)
        if isinstance(found, (types.BuiltinFunctionType, types.WrapperDescriptorType)):
            return found
    raise TypeError(f"{kind} has no {name}")


def _inherited(bases: tuple[type, ...]) -> list[type]:
    """In some order, without twins; a metaclass may forbid to ask for equality."""
    return list({id(base): base for kind in bases for base in type.__dict__["__mro__"].__get__(kind)}.values())


def _do_nothing(cls: type, **kwargs: object) -> None:
    pass


@contextlib.contextmanager
def _quiet(bases: tuple[type, ...]) -> Iterator[None]:
    """Nobody hears of the new subclass: `__init_subclass__` would register it a second time, or miss arguments."""
    changed = []
    try:
        for base in _inherited(bases):
            old = type.__dict__["__dict__"].__get__(base).get("__init_subclass__")
            if isinstance(old, classmethod):
                type.__setattr__(base, "__init_subclass__", classmethod(_do_nothing))
                changed.append((base, old))
        yield
    finally:
        for base, old in changed:
            type.__setattr__(base, "__init_subclass__", old)


def make_class(kind: type | int, name: str, bases: tuple[type, ...], namespace: dict) -> type:
    """`kind`: the metaclass, or which of the bases has it."""
    kind = type(bases[kind]) if isinstance(kind, int) else kind
    with _quiet(bases):
        made = _builtin(kind, "__new__")(kind, name, bases, dict(namespace))
        _builtin(kind, "__init__")(made, name, bases, dict(namespace))
    if issubclass(kind, abc.ABCMeta):
        _abc._abc_init(made)
    return made


def fill_class(made: type, state: tuple[dict, list]) -> None:
    attributes, registered = state
    put = _builtin(type(made), "__setattr__")
    for name, value in attributes.items():
        put(made, name, value)
    for other in registered:
        _abc._abc_register(made, other)


def make_enum(kind: type, name: str, bases: tuple[type, ...], namespace: dict, members: dict) -> type:
    """By the metaclass of the library, which makes the members; without the person's `__new__` and `__init__`."""
    body = enum.EnumType.__prepare__(name, bases)
    for key, value in namespace.items():
        body[key] = value
    for key, value in members.items():
        body[key] = enum.member(value)  # also what would be a method: a function, a class
    with _quiet(bases):
        return enum.EnumType.__new__(kind, name, bases, body)


def fill_enum(made: type, state: tuple[dict, dict]) -> None:
    attributes, members = state
    for name, value in attributes.items():
        type.__setattr__(made, name, value)
    for name, own in members.items():
        made.__members__[name].__dict__.update(own)


def type_variable(kind: type, name: str, bounds: tuple, options: dict) -> object:
    return kind(name, *bounds, **options)


def new_type(name: str, module: str, base: object) -> typing.NewType:
    made = typing.NewType(name, base)
    made.__module__ = module
    return made


def type_alias(name: str, value: object, parameters: tuple) -> object:
    return typing.TypeAliasType(name, value, type_params=parameters)


# Instances


def bare(kind: type, *args: object) -> object:
    return _builtin(kind, "__new__")(kind, *args)


def fill_bare(value: object, state: tuple) -> None:
    """As pickle does it, but what is in a list or a dict does not pass through a person's `__setitem__`."""
    own, items, pairs = state
    if isinstance(value, list):
        list.extend(value, items)
    if isinstance(value, dict):
        dict.update(value, pairs)
    if own is None:
        return
    setstate = getattr(type(value), "__setstate__", None)  # asking the value would end up in its `__getattr__`
    if setstate is not None:
        setstate(value, own)
        return
    attributes, slots = own if isinstance(own, tuple) and len(own) == 2 else (own, None)
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    for name, item in (slots or {}).items():
        object.__setattr__(value, name, item)


def make_exception(kind: type, args: tuple) -> BaseException:
    """Many a class calls itself with other arguments than those that it keeps: `__init__` is C's, not its own."""
    made = _builtin(kind, "__new__")(kind, *args)
    _builtin(kind, "__init__")(made, *args)
    return made


def fill_exception(error: BaseException, state: tuple) -> None:
    attributes, error.__cause__, error.__context__, error.__suppress_context__ = state
    error.__dict__.update(attributes)


# Memory


def array(shape: tuple[int, ...], dtype: numpy.dtype, order: str, writeable: bool) -> numpy.ndarray:
    """Read straight to where it stays."""
    made = numpy.empty(shape, dtype, order)
    thaw.memory(flat_bytes(made))
    made.flags.writeable = writeable
    return made


def small_array(data: bytes, shape: tuple, dtype: numpy.dtype, order: str, writeable: bool) -> numpy.ndarray:
    made = numpy.empty(shape, dtype, order)
    flat_bytes(made)[:] = data
    made.flags.writeable = writeable
    return made


def flat_bytes(values: numpy.ndarray) -> memoryview:
    """A contiguous array as it lies in memory."""
    flat = values.reshape(-1, order="A") if values.flags.c_contiguous else values.T.reshape(-1)
    return memoryview(flat.view(numpy.uint8))


def view(root: numpy.ndarray, start: int, shape: tuple, strides: tuple, dtype: numpy.dtype, writeable: bool):
    """Another array in the same memory."""
    made = numpy.ndarray(shape, dtype, root, start, strides)
    if not writeable:
        made.flags.writeable = False
    if isinstance(root, numpy.memmap):
        made = made.view(numpy.memmap)
        made._mmap, made.filename, made.mode = root._mmap, root.filename, root.mode
        made.offset = root.offset + start
    return made


def memmap(path: str, dtype: numpy.dtype, mode: str, offset: int, shape: tuple, order: str):
    try:
        return numpy.memmap(thaw.place(path), dtype, mode, offset, shape, order)
    except (OSError, ValueError) as error:
        return thaw.lose(f"its file could not be opened again: {error}")


def shared_by() -> BlockValuesRefs:
    """pandas' list of who looks at the same memory; without it a write to one table would show in another."""
    return BlockValuesRefs()


def block(kind: type, values: object, places: object, ndim: int, shared: BlockValuesRefs | None) -> object:
    return kind(values, placement=BlockPlacement(places), ndim=ndim, refs=shared)


def index(make: Callable, args: tuple, shared: BlockValuesRefs) -> object:
    made = make(*args)
    made._references = shared
    shared.add_index_reference(made)
    return made


def dict_view(values: dict, name: str) -> object:
    return getattr(dict, name)(values)


def memory_view(values: object, form: str, shape: tuple) -> memoryview:
    plain = memoryview(values).cast("B")
    return plain if form == "B" else plain.cast(form, shape)


# Files


def _kept(flags: int) -> int:
    """Opened as it was, but nothing is cut off or made anew."""
    return flags & ~(os.O_TRUNC | os.O_CREAT | os.O_EXCL)


def open_file(name: object, path: str, mode: str, at: int, text: dict, buffering: int) -> io.IOBase:
    place = thaw.place(path)
    try:
        file = open(name, mode, buffering, **text, opener=lambda _, flags: os.open(place, _kept(flags)))
    except OSError as error:
        return thaw.lose(f"its file could not be opened again: {error.strerror}")
    if file.seekable():
        file.seek(at)
    return file


def closed_file(name: object, mode: str, text: dict) -> io.IOBase:
    nothing = os.O_RDWR | os.O_CLOEXEC
    file = open(name, mode, **text, opener=lambda _, flags: os.open("/dev/null", nothing))
    file.close()
    return file


# What pickle refuses, and what is easily made anew


def lock() -> object:
    return threading.Lock()


def recursive_lock() -> object:
    return threading.RLock()


def thread_local(kind: type, attributes: dict) -> threading.local:
    made = kind()
    made.__dict__.update(attributes)
    return made


def context_variable(name: str, default: tuple, value: tuple) -> contextvars.ContextVar:
    made = contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)
    if value:
        made.set(value[0])
    return made


class _Gone:
    pass


def dead_reference() -> weakref.ref:
    return weakref.ref(_Gone())


def match(pattern: re.Pattern, how: str, text: object, start: int, end: int) -> re.Match:
    return getattr(pattern, how)(text, start, end)


def made_module(name: str) -> types.ModuleType:
    return types.ModuleType(name)


def fill_module(module: types.ModuleType, attributes: dict) -> None:
    vars(module).update(attributes)


def make_arrow(kind: type) -> object:
    return kind.__new__(kind)
