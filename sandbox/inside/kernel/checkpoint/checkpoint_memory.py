"""How arrays and tables are written down: each piece of memory once, whoever looks at it.

A view stays a view of the array it was taken from, if somebody else has that too. In pandas that alone would
be a trap: since pandas 3 a table that was made from another one shares its memory until one of them is
changed, and which ones do is in a list (`refs`) that pickle leaves out. Without it the first change after the
thaw would show in both. So the list is written down as well.
"""

import os
import sys

import numpy
import pandas
import pyarrow
from pandas._libs.internals import Block, BlockValuesRefs
from pandas.core.arrays.arrow.array import ArrowExtensionArray
from pandas.core.internals.managers import SingleBlockManager

from .. import checkpoint_rebuild as rebuild
from .checkpoint_refuse import Refused

APART_MIN = 16 << 10  # smaller pieces go through the pickle: a block of its own costs two system calls
_PLAIN = "biufcmMSUV"


def _holders(values: numpy.ndarray) -> int:
    return sys.getrefcount(values.base)


_ALONE = _holders(numpy.empty(4)[1:])


def _shape_of_memory(values: numpy.ndarray) -> str | None:
    if values.flags.c_contiguous:
        return "C"
    return "F" if values.flags.f_contiguous else None


def _is_plain(dtype: numpy.dtype) -> bool:
    return dtype.kind in _PLAIN and not dtype.hasobject and dtype.itemsize > 0


def array(pickler, values: numpy.ndarray):
    """Its own memory, or a view of somebody else's."""
    if not _is_plain(values.dtype) or not values.size:
        return NotImplemented
    root, is_shared = _root(values)
    if root is not values and _is_root(root) and (is_shared or isinstance(root, numpy.memmap)):
        return _view(values, root)
    order = _shape_of_memory(values)
    if order is None:
        values, order = numpy.ascontiguousarray(values), "C"
    args = (values.shape, values.dtype, order, values.flags.writeable)
    data = rebuild.flat_bytes(values)
    if data.nbytes < APART_MIN:
        return rebuild.small_array, (bytes(data), *args)
    pickler.memory(data)
    return rebuild.array, args


def _root(values: numpy.ndarray) -> tuple[numpy.ndarray, bool]:
    """The array that has the memory, and whether anybody but `values` holds it."""
    is_shared = False
    while isinstance(values.base, numpy.ndarray):
        is_shared = is_shared or _holders(values) > _ALONE
        values = values.base
    return values, is_shared


def _is_root(base: numpy.ndarray) -> bool:
    """Written down with the same layout as it has, so that places in it hold."""
    return type(base) in (numpy.ndarray, numpy.memmap) and _is_plain(base.dtype) and _shape_of_memory(base) is not None


def _address(values: numpy.ndarray) -> int:
    return values.__array_interface__["data"][0]


def _view(values: numpy.ndarray, root: numpy.ndarray):
    start = _address(values) - _address(root)
    return rebuild.view, (root, start, values.shape, values.strides, values.dtype, values.flags.writeable)


def memmap(pickler, values: numpy.memmap):
    """By the name of its file. What was changed in private (mode "c") is not in the file: that one is copied."""
    if isinstance(values.base, numpy.ndarray):
        return array(pickler, values)
    if values.filename is None or values.mode == "c":
        plain = numpy.array(values, subok=False)
        return rebuild.same, (plain,)
    path = os.fspath(values.filename)
    if not os.path.exists(path):
        raise Refused(values, "an array in a file that was deleted")
    values.flush()
    mode = "r+" if values.mode == "w+" else values.mode
    order = _shape_of_memory(values) or "C"
    return rebuild.memmap, (pickler.place_of(path), values.dtype, mode, values.offset, values.shape, order)


# pandas


def series_manager(pickler, value: SingleBlockManager):
    """pandas writes down the values, and makes blocks of its own of them."""
    return type(value), (value.blocks[0], value.axes[0])


def block(pickler, value: Block):
    shared = value.refs if value.refs is not None and value.refs.has_reference() else None
    return rebuild.block, (type(value), value.values, value.mgr_locs.indexer, value.ndim, shared)


def shared_by(pickler, value: BlockValuesRefs):
    return rebuild.shared_by, ()


def index(pickler, value: pandas.Index):
    shared = value.__dict__.get("_references")  # a range has one as well, of the numbers that it makes when asked
    if shared is None or not shared.has_reference():
        return NotImplemented
    make, args, *_ = value.__reduce__()
    return rebuild.index, (make, args, shared)


def arrow_values(pickler, value: ArrowExtensionArray):
    """pandas joins the chunks first, which takes the memory a second time, and loses who shares them."""
    data = value._pa_array
    if data.num_chunks != 1 or data.get_total_buffer_size() > 2 * data.nbytes + APART_MIN:
        return NotImplemented
    state = {**value.__dict__, "_pa_array": data}
    if "_cache" in state:
        state["_cache"] = {}
    return rebuild.make_arrow, (type(value),), state, None, None, rebuild.fill_attributes


def buffer(pickler, value: pyarrow.Buffer):
    """Every look at an Arrow array makes new Python objects for the same memory: told by its address."""
    place = (value.address, value.size)
    first = pickler.buffers.setdefault(place, value)
    return NotImplemented if first is value else (rebuild.same, (first,))
