"""What a figure shows, in words: a stand-in for eyes that tells a model that a plot is empty or odd."""

import datetime
import math

from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Wedge

TITLE_MAX = 200
PANELS_MAX = 4
LABEL_MAX = 60


def _clip(text: object, limit: int = LABEL_MAX) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def has_content(figure: Figure) -> bool:
    """Somebody meant it to be seen: something is drawn in it, or it has words. Axes that nobody touched are left-overs."""
    own = figure.texts or figure.images or figure.lines or figure.patches or figure.legends or figure.artists
    return bool(own) or any(_is_used(ax) for ax in figure.axes)


def _is_used(ax: Axes) -> bool:
    drawn = ax.has_data() or ax.texts or ax.tables or ax.artists
    return bool(drawn or _axes_titles(ax) or ax.get_xlabel() or ax.get_ylabel())


def _axes_titles(ax: Axes) -> str:
    titles = (ax.get_title(loc=loc) for loc in ("left", "center", "right"))
    return " ".join(t for t in titles if t)


def title_of(figure: Figure) -> str:
    whole = figure.get_suptitle()
    parts = [whole] if whole else [_axes_titles(ax) for ax in figure.axes]
    return _clip(" | ".join(p for p in parts if p), TITLE_MAX)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _as_date(value: float) -> str:
    when = dates.num2date(value)
    midnight = when.time() == datetime.time(tzinfo=None)
    return when.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")


def _is_dated(axis) -> bool:
    formatters = (dates.AutoDateFormatter, dates.ConciseDateFormatter, dates.DateFormatter)
    return isinstance(axis.get_major_formatter(), formatters)


def _tick_words(axis) -> list[str]:
    """Names on a category axis: what is no number."""
    words = [label.get_text() for label in axis.get_ticklabels()]
    words = [w for w in words if w]
    numeric = sum(w.replace("−", "-").replace(".", "").lstrip("-").isdigit() for w in words)
    return words if words and numeric < len(words) else []


def _range(ax: Axes, name: str) -> str:
    axis = getattr(ax, f"{name}axis")
    low, high = ax.dataLim.intervalx if name == "x" else ax.dataLim.intervaly
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    if _is_dated(axis):
        return f"{name} {_as_date(low)}…{_as_date(high)}"
    words = _tick_words(axis)
    if words:
        return f"{name} {_clip(words[0], 20)}…{_clip(words[-1], 20)} ({len(words)} labels)"
    return f"{name} {_number(low)}…{_number(high)}"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}{'' if n == 1 else 's'}"


def _marks(ax: Axes) -> list[str]:
    bars = sum(len(c) for c in ax.containers if isinstance(c, BarContainer))
    wedges = sum(isinstance(p, Wedge) for p in ax.patches)
    patches = len(ax.patches) - bars - wedges
    scatters = [c for c in ax.collections if isinstance(c, PathCollection)]
    meshes = sum(isinstance(c, QuadMesh) for c in ax.collections)
    others = len(ax.collections) - len(scatters) - meshes
    points = sum(len(line.get_xdata(orig=False)) for line in ax.lines)
    points += sum(len(c.get_offsets()) for c in scatters)
    counts = [
        (len(ax.lines), "line"), (bars, "bar"), (wedges, "wedge"), (len(scatters), "scatter"),
        (meshes, "mesh"), (len(ax.images), "image"), (patches, "patch"), (others, "collection"),
        (points, "point"), (len(ax.texts), "text"), (len(ax.tables), "table"),
    ]  # fmt: skip
    return [_count(n, thing) for n, thing in counts if n]


def _panel(ax: Axes) -> str:
    labels = [f"{n} '{_clip(v)}'" for n, v in (("x", ax.get_xlabel()), ("y", ax.get_ylabel())) if v]
    parts = ["axes: " + ", ".join(labels)] if labels else []
    parts += _marks(ax) or ["nothing drawn"]
    if ax.axison:
        parts += [r for r in (_range(ax, "x"), _range(ax, "y")) if r]
    return ", ".join(parts)


def _safe_panel(ax: Axes) -> str:
    try:
        return _panel(ax)
    except Exception:
        return type(ax).__name__  # projections of other kinds: no claim about what they show


def summary_of(figure: Figure) -> str:
    """After it was drawn, so that tick labels exist."""
    title = title_of(figure)
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    head = [f"title '{title}'"] if title else []
    if len(panels) > 1:
        head.append(f"{len(panels)} panels")
    shown = [_safe_panel(ax) for ax in panels[:PANELS_MAX]]
    return "; ".join([", ".join(head), *shown] if head else shown)
