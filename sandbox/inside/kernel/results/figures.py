"""Every figure of a cell, once each.

People expect a chart to arrive whether they call show(), savefig(), close() or nothing at all; and a file
that they saved and the figure it came from should not arrive as two. So matplotlib is told to report what
happens to a figure:

  show, fig.show     drawn now, in number order, and closed, as Jupyter does it
  savefig            remembered: this file shows that figure as it was
  close, clear       a figure that was saved but never shown still arrives, as the saved file
  end of the cell    what is open and not empty is drawn; then all are closed

"As it was" is matplotlib's own `stale` flag: it is set by any change to anything in a figure. While it is
not set, a second show, a second file or the end of the cell belong to the same picture.
"""

import builtins
import logging
import math
import os
import shutil
import warnings
import weakref
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import matplotlib
import numpy
from matplotlib import _pylab_helpers, font_manager, pyplot
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from . import figure_text
from ..cell import current
from .gallery import SIDE_MAX, Gallery, Picture, write_png

__builtins__ = dict(vars(builtins))

DPI = 144
PAD_INCHES = 0.1
GROWTH_MAX = 2  # a legend beside the axes may make a picture wider
FONTS_MAX = 16  # each holds a dozen open files, for its fallbacks; a box has 512
GLYPHS_NOTE = "some characters have no glyph in any installed font and are shown as boxes"
_FILE_BACKENDS = {"agg", "pdf", "svg", "ps", "pgf", "cairo", "template"}
Gcf = _pylab_helpers.Gcf
_savefig, _clear = Figure.savefig, Figure.clear


@dataclass
class Record:
    """What this cell has done with a figure since it last changed."""

    figure: weakref.ref
    saved: list[str] = field(default_factory=list)
    title: str = ""
    summary: str = ""
    picture: Picture | None = None  # it was drawn as this


class Figures:
    def __init__(self) -> None:
        self.gallery: Gallery | None = None
        self._records: list[Record] = []
        self._by_figure: weakref.WeakKeyDictionary[Figure, Record] = weakref.WeakKeyDictionary()
        self._earlier: weakref.WeakSet[Figure] = weakref.WeakSet()
        self._looks: weakref.WeakKeyDictionary[Figure, int] = weakref.WeakKeyDictionary()
        self._last: Figure | None = None
        self._busy = False

    # What the hooks report

    def shown(self) -> None:
        for manager in _open_by_number():
            self._last = manager.canvas.figure
            self.capture(manager.canvas.figure)
            self._close(manager.num)

    def shown_one(self, figure: Figure) -> None:
        self._last = figure
        self.capture(figure)
        Gcf.destroy_fig(figure)

    def saved(self, figure: Figure, path: str | None, save) -> object:
        if self._busy or self.gallery is None or path is None:
            return save()
        record = self._record(figure)
        if figure.stale:
            self._retire(record)
        result = save()
        record.title, record.summary = describe(figure)
        (record.picture.saved if record.picture else record.saved).append(path)
        return result

    def leaving(self, figure: Figure) -> None:
        """It is about to be closed or cleared."""
        record = self._by_figure.get(figure)
        if self._busy or record is None:
            return
        if record.saved and not figure.stale and not _png_of(record):
            self.capture(figure)
        self._retire(record)

    def is_open(self, figure: Figure) -> bool:
        return any(manager.canvas.figure is figure for manager in Gcf.get_all_fig_managers())

    def last_shown(self) -> Figure | None:
        """For a savefig that comes after show: the figure it means is closed by then."""
        return None if pyplot.get_fignums() else self._last

    # Drawing

    def capture(self, figure: Figure, unasked: bool = False) -> None:
        """`unasked`: it comes from an earlier cell, and has to look different from what was drawn then.

        Only looking at a figure (its tick labels) sets `stale` as well.
        """
        record = self._record(figure)
        if record.picture and not figure.stale:
            return
        if figure.stale:
            self._retire(record)
        if not figure_text.has_content(figure) or self.gallery.full():
            figure.stale = False
            return
        path = self._draw(figure)
        if path is None or (unasked and self._looks.get(figure) == _look(path)):
            figure.stale = False
            return
        self._looks[figure] = _look(path)
        record.picture = self.gallery.add(Picture(path, *describe(figure), record.saved))
        record.saved = []

    def _draw(self, figure: Figure) -> str | None:
        path = self.gallery.temporary()
        self._busy = True
        try:
            draw_leniently(figure, path, self.gallery.save)
            _drop_pixels(figure)
            return path
        except Exception as error:
            current.note(f"a figure could not be drawn: {type(error).__name__}: {error}")
            return None
        finally:
            self._busy = False

    def finish(self) -> None:
        """The end of a cell; `forget` has to follow, whatever happens here."""
        for manager in _open_by_number():
            self.capture(manager.canvas.figure)
        for figure in [f for f in self._earlier if f.stale]:
            self.capture(figure, unasked=True)
        for record in self._records:
            self._retire(record)

    def forget(self) -> None:
        """Only what changes from here on counts for a later cell; not what failed or was cut short."""
        for figure in [f for r in self._records if (f := r.figure()) is not None]:
            _drop_pixels(figure)
            figure.stale = False
            self._earlier.add(figure)
        self._busy = True
        try:
            pyplot.close("all")
        finally:
            self._busy = False
        if font_manager._get_font.cache_info().currsize > FONTS_MAX:
            font_manager._get_font.cache_clear()
        self._records.clear()
        self._by_figure.clear()
        self._last = None

    def _close(self, number: int) -> None:
        self._busy = True
        try:
            Gcf.destroy(number)
        finally:
            self._busy = False

    def _record(self, figure: Figure) -> Record:
        record = self._by_figure.get(figure)
        if record is None:
            record = self._by_figure[figure] = Record(weakref.ref(figure))
            self._records.append(record)
        return record

    def _retire(self, record: Record) -> None:
        """The figure changed or went: what was saved of it before is a picture of its own.

        A copy, since the next turn of a loop may save under the same name.
        """
        source = _png_of(record)
        if source and not self.gallery.full():
            copy = shutil.copyfile(source, self.gallery.temporary())
            self.gallery.add(Picture(copy, record.title, record.summary, record.saved))
        record.saved, record.picture = [], None


def _open_by_number() -> list:
    return sorted(Gcf.get_all_fig_managers(), key=lambda manager: manager.num)


def describe(figure: Figure) -> tuple[str, str]:
    """Title and summary; from here on, any change sets `stale` (asking for tick labels may have)."""
    said = figure_text.title_of(figure), figure_text.summary_of(figure)
    figure.stale = False
    return said


def _look(path: str) -> int:
    with open(path, "rb") as file:
        return zlib.adler32(file.read())


def _png_of(record: Record) -> str | None:
    files = (path for path in record.saved if path.lower().endswith(".png"))
    return next((path for path in files if os.path.isfile(path)), None)


# Drawing a figure, whatever is odd about it


def _extent(figure: Figure) -> Bbox | None:
    """What is drawn, in inches, with a margin; None if that is far larger than the figure.

    A label placed far outside would make a picture of gigabytes.
    """
    box = figure.get_tightbbox()
    size = figure.get_size_inches()
    if box is None or not all(math.isfinite(v) for v in box.extents) or min(box.size) <= 0:
        return None
    if box.width > size[0] * GROWTH_MAX or box.height > size[1] * GROWTH_MAX:
        return None
    return box.padded(PAD_INCHES)


class _Sink:
    """For savefig, which writes the renderer's own memory: that is kept, not copied."""

    data: memoryview | bytes = b""

    def write(self, data) -> None:
        self.data = data

    def seek(self, *_) -> None:  # of no use, but makes a file of it for matplotlib
        pass


def _pixels(figure: Figure, dpi: float) -> numpy.ndarray:
    sink = _Sink()
    _savefig(figure, sink, format="rgba", dpi=dpi, transparent=False)
    width = int(figure.get_size_inches()[0] * dpi)
    return numpy.frombuffer(sink.data, numpy.uint8).reshape(-1, width, 4)


def _drop_pixels(figure: Figure) -> None:
    """Megabytes that it would keep: of a drawing at another resolution, so that it will not use them again."""
    canvas = figure.canvas
    drawn = getattr(canvas, "_lastKey", None)
    if drawn is not None and drawn != (*figure.bbox.size, figure.dpi):
        canvas._lastKey = canvas.renderer = None
    for text in figure.findobj(Text):
        text._renderer = None  # asked of the figure again when needed


def _cropped(pixels: numpy.ndarray, box: Bbox, dpi: float) -> numpy.ndarray:
    height = len(pixels)
    left, right = (max(round(v * dpi), 0) for v in (box.x0, box.x1))
    top, bottom = (max(height - round(v * dpi), 0) for v in (box.y1, box.y0))
    return pixels[top:bottom, left:right]


def _draw(figure: Figure, path: str, save: Callable[[numpy.ndarray, str], None]) -> None:
    """Drawn as it is and cut to what is in it; drawn again only if something reaches beyond its edges."""
    size = figure.get_size_inches()
    dpi = min(DPI, SIDE_MAX / max(size))
    own_dpi, figure.dpi = figure.dpi, dpi  # text is laid out once, for the drawing and for the extent
    try:
        pixels = _pixels(figure, dpi)
        box = _extent(figure)
        margin = PAD_INCHES * 1.01
        if box and (box.x0 < -margin or box.y0 < -margin or any(box.max > size + margin)):
            _savefig(figure, path, format="png", dpi=min(DPI, SIDE_MAX / max(box.size)), bbox_inches=box,
                     transparent=False, pil_kwargs={"compress_level": 1})  # fmt: skip
            return
    finally:
        figure.dpi = own_dpi
    save(_cropped(pixels, box, dpi) if box else pixels, path)


def _draw_watched(figure: Figure, path: str, save: Callable[[numpy.ndarray, str], None]) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _draw(figure, path, save)
    if any("Glyph " in str(w.message) for w in seen):
        current.note(GLYPHS_NOTE)


def _tidy(figure: Figure) -> None:
    """Panels that would overlap, if the person has not laid them out; grids where they disturb."""
    for ax in figure.axes:
        if ax.images or any(isinstance(c, QuadMesh) for c in ax.collections):
            ax.grid(False)
    _one_grid_for_twins(figure)
    for text in figure.findobj(Text):
        if _is_money(text.get_text()):
            text.set_parse_math(False)
    panels = [ax for ax in figure.axes if ax.get_subplotspec() is not None]
    if len(panels) < 2 or figure.get_layout_engine() is not None or _laid_out(figure):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.tight_layout()


def _is_money(text: str) -> bool:
    """'$5 to $10', 'revenue ($) and cost ($)': between these dollars is no formula."""
    between = text.split("$")[1:-1]
    if not between or any(c in text for c in "\\^_{}"):
        return False
    return between[0][:1] in "0123456789.,) " or between[0].endswith("(")


def _one_grid_for_twins(figure: Figure) -> None:
    places = set()
    for ax in figure.axes:
        place = tuple(round(v, 4) for v in ax.get_position(original=True).bounds)
        if place in places:
            ax.grid(False)
        places.add(place)


def _laid_out(figure: Figure) -> bool:
    sides = ("left", "right", "top", "bottom", "wspace", "hspace")
    return any(abs(getattr(figure.subplotpars, s) - matplotlib.rcParams[f"figure.subplot.{s}"]) > 1e-9 for s in sides)


def _plain_text(figure: Figure) -> None:
    """Dollar signs and backslashes as they are; nothing so far outside that FreeType can't place it."""
    far = 10 * max(figure.bbox.size)
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_usetex(False)
        x, y = text.get_transform().transform(text.get_unitless_position())
        if not (abs(x) < far and abs(y) < far):
            text.set_visible(False)


def draw_leniently(figure: Figure, path: str, save: Callable[[numpy.ndarray, str], None] = write_png) -> None:
    """What can't be typeset is drawn as it stands: dollars in labels are more often money than mathematics."""
    try:
        _tidy(figure)
    except Exception:
        pass  # layout is a nicety
    try:
        _draw_watched(figure, path, save)
    except Exception:
        _plain_text(figure)
        _draw_watched(figure, path, save)


class _NoGlyphMessages(logging.Filter):
    """mathtext complains by log, once for each character."""

    def filter(self, record: logging.LogRecord) -> bool:
        missing = "glyph" in record.getMessage()
        if missing:
            current.note(GLYPHS_NOTE)
        return not missing


# The hooks: process-wide, set once in the zygote

figures = Figures()


def _saved_path(target: object, kwargs: dict) -> str | None:
    """Where matplotlib will write, as print_figure decides it; None for an open file."""
    if not isinstance(target, (str, os.PathLike)):
        return None
    path = os.path.abspath(os.fsdecode(target))
    if not os.path.splitext(path)[1]:
        path = path.rstrip(".") + "." + (kwargs.get("format") or matplotlib.rcParams["savefig.format"])
    return path


def _hooked_savefig(self, fname, *args, **kwargs):
    path = _saved_path(fname, kwargs)
    return figures.saved(self, path, lambda: _savefig(self, fname, *args, **kwargs))


def _hooked_clear(self, *args, **kwargs):
    figures.leaving(self)
    return _clear(self, *args, **kwargs)


def _hooked_show(*args, **kwargs) -> None:
    figures.shown()


def _hooked_figure_show(self, *args, **kwargs) -> None:
    figures.shown_one(self)


def _hook_pyplot() -> None:
    switch, save = pyplot.switch_backend, pyplot.savefig

    def switch_backend(newbackend):
        if str(newbackend).lower() in _FILE_BACKENDS:
            switch(newbackend)

    def savefig(*args, **kwargs):
        figure = figures.last_shown()
        return save(*args, **kwargs) if figure is None else figure.savefig(*args, **kwargs)

    savefig.__doc__ = save.__doc__
    pyplot.switch_backend, pyplot.savefig = switch_backend, savefig
    pyplot.show = _hooked_show
    pyplot.pause = lambda interval: None


def _hook_closing() -> None:
    destroy, destroy_all = Gcf.destroy, Gcf.destroy_all

    def hooked_destroy(cls, num):
        manager = num if isinstance(num, FigureManagerBase) else cls.figs.get(num)
        if manager is not None:
            figures.leaving(manager.canvas.figure)
        destroy(num)

    def hooked_destroy_all(cls):
        for manager in list(cls.figs.values()):
            figures.leaving(manager.canvas.figure)
        destroy_all()

    Gcf.destroy, Gcf.destroy_all = classmethod(hooked_destroy), classmethod(hooked_destroy_all)


def install() -> None:
    Figure.savefig, Figure.clear = _hooked_savefig, _hooked_clear
    Figure.show = _hooked_figure_show
    _hooked_savefig.__doc__, _hooked_clear.__doc__ = _savefig.__doc__, _clear.__doc__
    logging.getLogger("matplotlib.mathtext").addFilter(_NoGlyphMessages())
    _hook_pyplot()
    _hook_closing()
