"""What the zygote does once, so that every session finds it done.

Importing takes a second and a half, a first chart takes half of one; a fork takes milliseconds. Everything
that initialises itself on first use is used once, on nothing: no user state, no open figure, no descriptor
and no thread is left behind. Never polars or statsmodels (which imports polars): its thread pool does not
survive a fork.
"""

import gc
import importlib
import io
import sys
import threading
import warnings

# What the kernel itself stands on, and most cells.
_FIRST = (
    "numpy",
    "pandas",
    "matplotlib.pyplot",
    "matplotlib.dates",
    "PIL.PngImagePlugin",
    "asyncio",
    "sqlite3",
    "IPython.core.interactiveshell",
)
_REST = (
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.ensemble",
    "sklearn.model_selection",
    "sklearn.cluster",
    "sklearn.metrics",
    "sklearn.preprocessing",
    "seaborn",
    "plotly.express",
    "openpyxl",
    "jinja2",
)
_WARM_CELLS = ("x = 1\n!true\nx", "1/0", "def f(\n")


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)


def _warm_tables() -> None:
    import pandas

    frame = pandas.read_csv(io.StringIO("day,kind,value\n2024-01-01,a,1.5\n2024-01-02,b,2\n"), parse_dates=["day"])
    frame.groupby("kind")["value"].mean()
    frame.merge(frame, on="kind").pivot_table(index="kind", values="value_x")
    repr(frame), frame._repr_html_(), repr(frame["kind"]), frame.describe()


def _warm_charts() -> None:
    import seaborn
    from matplotlib import pyplot

    from .results import figures

    figure, axes = pyplot.subplots(1, 2)
    axes[0].plot(["一月", "二月"], [-1, 1], label="销售额")
    axes[0].legend()
    axes[0].set_title("月度销售额 é")
    axes[0].set_ylabel("$x^2$")  # by itself: mathtext has fonts of its own, without CJK, and says so
    seaborn.barplot(x=["a", "b"], y=[1, 2], ax=axes[1])
    figures.draw_leniently(figure, io.BytesIO())
    figures.describe(figure)
    pyplot.close("all")


def _warm_cells() -> None:
    """Run and forgotten: the shell is as new afterwards."""
    from . import errors
    from .cell import Cell, current
    from .shell import shell

    box = shell()
    for number, code in enumerate(_WARM_CELLS, 1):
        current.cell = Cell(number, code)
        error = box.run(current.cell)
        if error is not None:
            errors.describe(error, current.cell, box.user_ns)
    box.forget_all()
    current.cell = Cell()


def _drop_open_fonts() -> None:
    """Their files would be shared, offsets and all, with every session."""
    from matplotlib import font_manager, mathtext

    mathtext.MathTextParser._parse_cached.cache_clear()
    font_manager._get_font.cache_clear()
    gc.collect()


def preload(once: bool) -> None:
    """Import and use; leaves the garbage collector off, and all of this out of its sight.

    once: what the first cell needs. The one session imports the rest when it asks for it, and nothing is done for the next."""
    from . import settle

    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _import(_FIRST if once else _FIRST + _REST)
    install()
    _make_shell()
    if not once:
        _warm()
    _import_checkpoint()
    _check()
    if not once:
        settle.settle()


def _make_shell() -> None:
    """Here, where a folder to work in is certain: in a box it need not be, and IPython asks for it."""
    from .shell import shell

    shell()


def _warm() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm_tables()
        _warm_charts()
        _warm_cells()
    _drop_open_fonts()


def _import_checkpoint() -> None:
    from . import checkpoint  # else every thaw would pay for it

    assert checkpoint


def install() -> None:
    """Hooks and settings that are the same for every session."""
    from . import refusals, spawning
    from .results import figures, plotly_view, style

    style.apply()
    figures.install()
    plotly_view.install()
    refusals.install()
    spawning.install()


def _check() -> None:
    """A thread, a module or an open file that a fork would break or share is our own bug: say so at once."""
    shared = [n for n in ("polars", "statsmodels.api") if n in sys.modules]
    if shared:
        raise RuntimeError(f"preload imported {shared}")
    if threading.active_count() != 1:
        raise RuntimeError(f"preload left threads: {[t.name for t in threading.enumerate()]}")
