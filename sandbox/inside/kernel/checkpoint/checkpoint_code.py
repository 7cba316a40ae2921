"""How functions, closures and classes from cells are written down.

By value, and bound to what they were bound to: a function's globals are the session's namespace itself (or
the module it comes from), never a copy of what it used, so that it sees what later cells change. Cells of
closures are objects of their own, made empty and filled later: functions that share a variable go on sharing
it, and may be in their own closure. A class is what is in its `__dict__`.
"""

import _abc
import abc
import enum
import functools
import marshal
import sys
import types
import typing

from cloudpickle import cloudpickle

from .. import checkpoint_rebuild as rebuild

_NAMED = {kind: name for name, kind in vars(types).items() if type(kind) is type}
_CLASS_HEAD = ("__module__", "__slots__", "__orig_bases__")  # the last is asked for by typing.Generic
_CLASS_LEFT_OUT = {"__module__", "__slots__", "__qualname__", "__dict__", "__weakref__", "_abc_impl"}
_CLASS_LEFT_OUT |= {"__annotate_func__", "__annotations_cache__"}  # Python 3.14 makes them again
_MADE_BY_ENUM = {"_member_names_", "_member_map_", "_value2member_map_", "_hashable_values_", "_unhashable_values_"}
_MADE_BY_ENUM |= {"_unhashable_values_map_", "_member_type_", "_value_repr_", "_use_args_", "_new_member_"}
_MADE_BY_ENUM |= {"_generate_next_value_", "_flag_mask_", "_singles_mask_", "_all_bits_", "_inverted_"}
_MADE_BY_ENUM |= {"__new__", "__new_member__", "__reduce_ex__", "_sort_order_"}
_MEMBER_OWN = {"_value_", "_name_", "__objclass__", "_sort_order_"}
_REFERENCE_KINDS = (types.FunctionType, type)


def importable(value: object) -> bool:
    """A function or class that a new interpreter finds by module and name."""
    try:
        return cloudpickle._lookup_module_and_qualname(value) is not None
    except Exception:  # a metaclass of the person's
        return False


def _slot(kind: type, name: str) -> object:
    return type.__dict__[name].__get__(kind)


# Functions


def function(pickler, value: types.FunctionType):
    if importable(value):
        return NotImplemented
    args = (value.__code__, _home(pickler, value), value.__name__, value.__closure__ or ())
    own = {
        "__qualname__": value.__qualname__,
        "__module__": value.__module__,
        "__doc__": value.__doc__,
        "__defaults__": value.__defaults__,
        "__kwdefaults__": value.__kwdefaults__,
        "__annotations__": _annotations(value),
    }
    if getattr(value, "__type_params__", ()):
        own["__type_params__"] = value.__type_params__
    return rebuild.make_function, args, (value.__dict__, own), None, None, rebuild.fill_function


def _holders(value: types.FunctionType) -> int:
    return sys.getrefcount(value.__globals__)


_ALONE = _holders(types.FunctionType(compile("", "", "exec"), {}))


def _home(pickler, value: types.FunctionType) -> object:
    """The dictionary of code that a library made up (sympy.lambdify) has all of numpy in it: what is used will do."""
    names = value.__globals__
    if _holders(value) > _ALONE + 1:
        return pickler.home_of(names)
    used = ["__name__", "__builtins__", *cloudpickle._extract_code_globals(value.__code__)]
    return {name: names[name] for name in used if name in names}


def _annotations(value: types.FunctionType) -> dict:
    try:
        return value.__annotations__
    except Exception:  # evaluated when asked for since Python 3.14: a name may be missing
        return {}


def code(pickler, value: types.CodeType):
    """As a .pyc has it: with its file name, which tracebacks of cells are told by."""
    return marshal.loads, (marshal.dumps(value),)


def cell(pickler, value: types.CellType):
    try:
        return rebuild.empty_cell, (), (value.cell_contents,), None, None, rebuild.fill_cell
    except ValueError:
        return rebuild.empty_cell, ()


def cached(pickler, value):
    """functools.lru_cache and cache: the function and its size; what it remembered is computed again."""
    if importable(value):
        return NotImplemented
    attributes = {k: v for k, v in value.__dict__.items() if k not in ("__wrapped__", "cache_parameters")}
    args = (value.__wrapped__, value.cache_parameters())
    return rebuild.cached, args, attributes, None, None, rebuild.fill_attributes


def module(pickler, value: types.ModuleType):
    name = vars(value).get("__name__")
    known = pickler.modules.get(name) if isinstance(name, str) else None
    if known is value:
        return rebuild_import(name)
    pickler.made_modules[id(vars(value))] = value
    attributes = {k: v for k, v in vars(value).items() if k not in ("__builtins__", "__loader__", "__spec__")}
    return rebuild.made_module, (str(name),), attributes, None, None, rebuild.fill_module


def rebuild_import(name: str):
    return cloudpickle.subimport, (name,)


# Classes


def klass(pickler, value: type):
    if value in _NAMED:
        return getattr, (types, _NAMED[value])
    if importable(value):
        return NotImplemented
    if isinstance(value, enum.EnumType):
        return _enum(value)
    body = _slot(value, "__dict__")
    head = {k: body[k] for k in _CLASS_HEAD if k in body} | {"__qualname__": _slot(value, "__qualname__")}
    attributes = {k: v for k, v in body.items() if k not in _CLASS_LEFT_OUT and not _made_by_slots(value, v)}
    bases = _slot(value, "__bases__")
    args = (_metaclass(type(value), bases), _slot(value, "__name__"), bases, head)
    state = (attributes, _registered(value))
    return rebuild.make_class, args, state, None, None, rebuild.fill_class


def _metaclass(kind: type, bases: tuple[type, ...]) -> type | int:
    """Those of C code often can't be found by name."""
    same = [place for place, base in enumerate(bases) if type(base) is kind]
    return same[0] if same else kind


def _made_by_slots(owner: type, value: object) -> bool:
    if type(value).__name__ == "CField":  # of ctypes: made from `_fields_`
        return True
    descriptor = isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))
    return descriptor and value.__objclass__ is owner


def _registered(value: type) -> list[type]:
    """Classes that said of themselves to be a subclass (ABC.register)."""
    if not isinstance(value, abc.ABCMeta):
        return []
    return [other for other in (reference() for reference in _abc._get_dump(value)[0]) if other is not None]


def _enum(value: enum.EnumType):
    body, members = _slot(value, "__dict__"), value.__members__
    head = {"__module__": value.__module__, "__qualname__": value.__qualname__}
    made = _MADE_BY_ENUM | _CLASS_LEFT_OUT | set(members)
    attributes = {k: v for k, v in body.items() if k not in made and not _made_by_slots(value, v)}
    own = {name: _member_state(member) for name, member in members.items()}
    values = {name: member._value_ for name, member in members.items()}
    args = (type(value), value.__name__, value.__bases__, head, values)
    return rebuild.make_enum, args, (attributes, own), None, None, rebuild.fill_enum


def _member_state(member: enum.Enum) -> dict:
    return {k: v for k, v in vars(member).items() if k not in _MEMBER_OWN}


# What typing makes: pickle would look for it under its name in the namespace that it is about to fill


def type_variable(pickler, value):
    if value.__module__ != "__main__" and importable_by_name(value):
        return NotImplemented
    options = {"covariant": value.__covariant__, "contravariant": value.__contravariant__}
    if getattr(value, "__infer_variance__", False):
        options = {"infer_variance": True}
    if value.__bound__ is not None:
        options["bound"] = value.__bound__
    if hasattr(value, "has_default") and value.has_default():
        options["default"] = value.__default__
    return rebuild.type_variable, (type(value), value.__name__, getattr(value, "__constraints__", ()), options)


def type_variables(pickler, value: typing.TypeVarTuple):
    if value.__module__ != "__main__" and importable_by_name(value):
        return NotImplemented
    return rebuild.type_variable, (type(value), value.__name__, (), {})


def new_type(pickler, value: typing.NewType):
    if value.__module__ != "__main__":
        return NotImplemented
    return rebuild.new_type, (value.__name__, value.__module__, value.__supertype__)


def type_alias(pickler, value):
    return rebuild.type_alias, (value.__name__, value.__value__, value.__type_params__)


def importable_by_name(value: object) -> bool:
    try:
        return cloudpickle._lookup_module_and_qualname(value, name=value.__name__) is not None
    except Exception:
        return False


# Instances of classes from cells


def _in_python(kind: type, *names: str) -> bool:
    """Whether the class itself, or one it comes from, has put Python code in the place of C's."""
    found = (_find(kind, name) for name in names)
    return any(isinstance(f, (types.FunctionType, staticmethod, classmethod, functools.partial)) for f in found)


def _find(kind: type, name: str) -> object:
    for base in _slot(kind, "__mro__"):
        if name in _slot(base, "__dict__"):
            return _slot(base, "__dict__")[name]
    return None


def wants_care(kind: type) -> bool:
    """Pickle would call a `__new__` without its arguments, or ask a `__getattr__` that knows nothing yet."""
    if _in_python(kind, "__getnewargs__", "__getnewargs_ex__"):
        return False
    if _find(kind, "__reduce_ex__") is not object.__dict__["__reduce_ex__"]:
        return False
    if _find(kind, "__reduce__") is not object.__dict__["__reduce__"]:
        return False
    if _in_python(kind, "__getattr__", "__getattribute__"):
        return True
    if importable(kind):
        return _needs_arguments(_find(kind, "__new__"))
    return _in_python(kind, "__new__", "__setitem__", "append", "extend")


def _needs_arguments(new: object) -> bool:
    new = getattr(new, "__func__", new)
    if not isinstance(new, types.FunctionType):
        return False
    return new.__code__.co_argcount - len(new.__defaults__ or ()) > 1


def instance(pickler, value: object):
    kind = type(value)
    newargs = _find(kind, "__getnewargs__")
    args = newargs(value) if newargs is not None else ()
    items = tuple(list.__iter__(value)) if issubclass(kind, list) else ()
    pairs = tuple(dict.items(value)) if issubclass(kind, dict) else ()
    state = (kind.__getstate__(value), items, pairs)
    return rebuild.bare, (kind, *args), state, None, None, rebuild.fill_bare


def exception(pickler, value: BaseException):
    if _find(type(value), "__reduce__") is not BaseException.__dict__["__reduce__"]:
        return NotImplemented
    if _find(type(value), "__reduce_ex__") is not object.__dict__["__reduce_ex__"]:
        return NotImplemented
    state = (value.__dict__, value.__cause__, value.__context__, value.__suppress_context__)
    return rebuild.make_exception, (type(value), value.args), state, None, None, rebuild.fill_exception
