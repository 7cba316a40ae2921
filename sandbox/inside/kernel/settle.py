"""The last step of preloading: what the sessions share stays shared.

A fork copies nothing; the first write to a page does, 4 KiB at a time. CPython writes to an object whenever it
uses it, since its count of references lies in it, so that a session which only calls what was preloaded would
copy a good part of it. Three remedies, all for what is alive at this moment:

  immortal   what is alive now is never counted again. It is what CPython itself does to None, small integers and
             its own types (PEP 683), and costs only that none of it can be freed later
  no holes   new objects go to pages of their own instead of into gaps between old ones
  large      2 MiB of memory become one page, which a fork and the end of a process deal with at once; a write to it
             still copies 4 KiB

What a session makes itself is counted, collected and freed as ever.
"""

import ctypes
import gc
import sys
import types

import numpy

_POOL = 16 << 10  # of CPython's small object allocator
_BLOCK, _BLOCK_MAX = 16, 512
_ROUNDS_MAX = 500
_UNTRACKED = (tuple, dict, types.CodeType)  # the collector doesn't look at these, or not always
_LARGE_PAGE = 2 << 20
_COLLAPSE = 25  # madvise, Linux 6.1; an older kernel says no, and all stays as it is
_fill: list[object] = []
_libc = ctypes.CDLL(None)


def _addresses(objects: list) -> numpy.ndarray:
    held = numpy.fromiter(objects, dtype=object, count=len(objects))
    pointers = (ctypes.c_int64 * len(objects)).from_address(held.ctypes.data)
    return numpy.frombuffer(pointers, dtype=numpy.int64).copy()


def _parts(value: object) -> tuple:
    if type(value) is not types.CodeType:
        return ()
    return (value.co_consts, value.co_names, value.co_name, value.co_qualname, value.co_filename,
            value.co_linetable, value.co_exceptiontable)  # fmt: skip


def _mark(objects: list, never: int) -> numpy.ndarray:
    """Makes them immortal; -> which were not."""
    addresses = _addresses(objects)
    low = int(addresses.min())
    memory = (ctypes.c_uint32 * ((int(addresses.max()) - low) // 4 + 1)).from_address(low)
    counts, places = numpy.frombuffer(memory, dtype=numpy.uint32), (addresses - low) // 4
    new = counts[places] != never
    counts[places] = never
    return numpy.flatnonzero(new)


def _make_immortal() -> None:
    """Every object that the collector knows, and what these lead to: by the count that None has, in the layout of
    the interpreter with the lock. Of no other anything is known, and there all stays as it is."""
    never = ctypes.c_uint32.from_address(id(None)).value
    if sys.implementation.name != "cpython" or never < 1 << 31 or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return
    tracked = gc.get_objects()
    _mark(tracked, never)
    reached = gc.get_referents(*tracked)
    while reached:
        new = _mark(reached, never).tolist()
        deeper = list({id(value): value for i in new if type(value := reached[i]) in _UNTRACKED}.values())
        reached = gc.get_referents(*deeper)
        for value in deeper:
            reached += _parts(value)


def _one(size: int) -> object:
    return object() if size == 16 else float(size) if size == 32 else bytes(size - 33)


def _fill_holes() -> None:
    """Until the allocator hands out one address after the other: then it has no gaps left, for each of its sizes."""
    for size in range(_BLOCK, _BLOCK_MAX + 1, _BLOCK):
        for _ in range(_ROUNDS_MAX):
            values = [_one(size) for _ in range(_POOL // size)]
            _fill.append(values)
            if numpy.mean(numpy.diff(_addresses(values)) == size) > 0.7:
                break


def settle() -> None:
    """After it, nothing that is alive can be freed, and the collector does not see it. What is of no use has been collected."""
    gc.unfreeze()
    _make_immortal()
    _fill_holes()
    gc.freeze()
    _libc.malloc_trim(0)


def _is_own(line: list[str]) -> bool:
    """Of /proc/self/maps: memory that we write to, and of no file."""
    return line[1] == "rw-p" and (len(line) < 6 or line[5].startswith(("[heap]", "[anon")))


def enlarge_pages() -> None:
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    for begin, end in [map(lambda x: int(x, 16), line[0].split("-")) for line in lines if _is_own(line)]:
        for at in range(-(-begin // _LARGE_PAGE) * _LARGE_PAGE, end - _LARGE_PAGE + 1, _LARGE_PAGE):
            _libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(_LARGE_PAGE), _COLLAPSE)
