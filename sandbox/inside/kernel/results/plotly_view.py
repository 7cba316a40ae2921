"""Plotly figures without a browser.

They are delivered as an HTML file that works offline, since there is nothing here that could draw them.
The common kinds of traces (lines, points, bars, pies, histograms, boxes, heat maps) are drawn once more
with matplotlib, so that a chat shows something. A picture that says something else than the chart would be
worse than none: whatever is not fully understood (facets, second axes, aggregations by plotly) comes as the
file alone, and that is said.
"""

import builtins
import sys
from collections.abc import Iterator

from . import figures as charts
from ..cell import current

__builtins__ = dict(vars(builtins))

NOTE = "the interactive chart was written to {}"
NO_PICTURE = "; no picture of it can be made here ({})"


def is_figure(kind: type) -> bool:
    module = sys.modules.get("plotly.basedatatypes")
    return module is not None and issubclass(kind, module.BaseFigure)


def deliver(figure) -> None:
    gallery = charts.figures.gallery
    path = gallery.file_name("plotly", "html")
    figure.write_html(f"{gallery.data_dir}/{path}", include_plotlyjs=True)
    reasons = sorted(set(_beyond_us(figure)))
    current.note(NOTE.format(path) + (NO_PICTURE.format(", ".join(reasons)) if reasons else ""))
    if figure.data and not reasons:
        _deliver_picture(figure)


def _beyond_us(figure) -> Iterator[str]:
    """What `draw` would get wrong."""
    if figure.frames:
        yield "animation"
    for trace in figure.data:
        if trace.type not in _DRAW:
            yield trace.type
        else:
            yield from (feature for feature, wrong in _FEATURES.items() if wrong(trace))


def _set(name: str, *allowed):
    """Whether a trace has a setting other than these."""
    return lambda trace: name in trace and trace[name] is not None and trace[name] not in allowed


_FEATURES = {
    "facets or a second axis": lambda t: _set("xaxis", "x")(t) or _set("yaxis", "y")(t),
    "stacked areas": _set("stackgroup", ""),
    "filled areas": _set("fill", "none"),
    "an aggregation": lambda t: (
        _set("histfunc", "count")(t)
        or _set("histnorm", "")(t)
        or _set("cumulative", None)(t)
        and bool(t.cumulative.enabled)
    ),
    "bars with a base": lambda t: "base" in t and t.base is not None,
    "error bars": lambda t: any(name in t and t[name].array is not None for name in ("error_x", "error_y")),
    "precomputed boxes": lambda t: t.type == "box" and t.q1 is not None,
}


def _deliver_picture(figure) -> None:
    from matplotlib.figure import Figure

    chart = Figure()
    try:
        draw(figure, chart)
    except Exception as error:
        current.note(f"no picture of the interactive chart: {type(error).__name__}: {error}")
        return
    charts.figures.capture(chart)


def draw(figure, chart) -> None:
    ax = chart.add_subplot()
    bars = [trace for trace in figure.data if trace.type == "bar"]
    for trace in figure.data:
        _DRAW[trace.type](ax, trace, bars, figure.layout)
    _label(ax, figure.layout)


def _label(ax, layout) -> None:
    if layout.title.text:
        ax.set_title(layout.title.text)
    for name in ("x", "y"):
        axis = layout[f"{name}axis"]
        if axis.title.text:
            getattr(ax, f"set_{name}label")(axis.title.text)
        if axis.type == "log":
            getattr(ax, f"set_{name}scale")("log")
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) > 1:
        ax.legend(handles, labels)


def _values(values) -> list:
    return [] if values is None else list(values)


def _dated(values) -> list:
    """Dates come as text or datetime64; matplotlib wants datetimes."""
    import pandas

    values = _values(values)
    if values and isinstance(values[0], str) and values[0][:4].isdigit() and "-" in values[0]:
        try:
            return list(pandas.to_datetime(values))
        except (ValueError, TypeError):
            return values
    return values


def _one_colour(colour) -> str | None:
    return colour if isinstance(colour, str) and colour.startswith("#") else None


def _scatter(ax, trace, bars, layout) -> None:
    y = _values(trace.y)
    x = _dated(trace.x) or list(range(len(y)))
    mode = trace.mode or "lines"
    if "lines" in mode:
        marker = "o" if "markers" in mode else None
        ax.plot(x, y, marker=marker, label=trace.name, color=_one_colour(trace.line.color))
    else:
        _points(ax, trace, x, y)


def _points(ax, trace, x: list, y: list) -> None:
    """With size and colour, where they mean something."""
    options = {"s": 30, "color": _one_colour(trace.marker.color)}
    sizes, colours = trace.marker.size, trace.marker.color
    if sizes is not None and not isinstance(sizes, (int, float)):
        largest = max(sizes) or 1
        options["s"] = [300 * size / largest for size in sizes]
    if colours is not None and not isinstance(colours, str):
        del options["color"]
        options["c"] = list(colours)
    drawn = ax.scatter(x, y, alpha=0.8, label=trace.name, **options)
    if "c" in options:
        ax.figure.colorbar(drawn, ax=ax)


def _bar(ax, trace, bars, layout) -> None:
    """Values of one name add up, as plotly does it; positive and negative ones apart."""
    sideways = trace.orientation == "h"
    order = _bar_names(bars, sideways)
    names, sizes = (trace.y, trace.x) if sideways else (trace.x, trace.y)
    grouped = layout.barmode in (None, "group") and len(bars) > 1
    width = 0.8 / len(bars) if grouped else 0.8
    shift = (next(i for i, b in enumerate(bars) if b is trace) - (len(bars) - 1) / 2) * width if grouped else 0
    heights = {} if grouped or layout.barmode == "overlay" else ax.__dict__.setdefault("_bar_heights", {})
    label = trace.name
    for positive in (True, False):
        sums = _sums(names, sizes, positive)
        if not sums:
            continue
        places = [order.index(n) + shift for n in sums]
        base = [heights.get((n, positive), 0) for n in sums]
        heights.update(((n, positive), b + v) for (n, v), b in zip(sums.items(), base))
        options = {"label": label, "color": _one_colour(trace.marker.color)}
        draw_bars, edge = (ax.barh, "left") if sideways else (ax.bar, "bottom")
        draw_bars(places, list(sums.values()), width, **{edge: base}, **options)
        label = None
    set_ticks = ax.set_yticks if sideways else ax.set_xticks
    set_ticks(range(len(order)), [str(n) for n in order], rotation=45 if len(order) >= 10 and not sideways else 0)


def _bar_names(bars, sideways: bool) -> list:
    """In order of appearance; numbers and dates in their own order."""
    names = list(dict.fromkeys(n for b in bars for n in _values(b.y if sideways else b.x)))
    return names if any(isinstance(n, str) for n in names) else sorted(names)


def _sums(names, sizes, positive: bool) -> dict:
    sums: dict = {}
    for name, size in zip(_values(names), _values(sizes)):
        if size is not None and size == size and (size >= 0) == positive:
            sums[name] = sums.get(name, 0) + size
    return sums


def _pie(ax, trace, bars, layout) -> None:
    sizes = trace["values"]
    labels = _values(trace.labels)
    sums = _sums(labels, [1] * len(labels) if sizes is None else sizes, True)
    if trace.sort is not False:
        sums = dict(sorted(sums.items(), key=lambda item: -item[1]))
    hole = {"width": 1 - trace.hole} if trace.hole else None
    ax.pie(
        list(sums.values()), labels=list(sums), autopct="%1.1f%%", startangle=90, counterclock=False, wedgeprops=hole
    )


def _histogram(ax, trace, bars, layout) -> None:
    sideways = trace.x is None
    bins = trace.nbinsx or "auto"
    values = _dated(trace.y if sideways else trace.x)
    orientation = "horizontal" if sideways else "vertical"
    ax.hist(values, bins=bins, alpha=0.8, label=trace.name, orientation=orientation)


def _box(ax, trace, bars, layout) -> None:
    import numpy
    import pandas

    sideways = trace.y is None or trace.orientation == "h"
    sizes, groups = (trace.x, trace.y) if sideways else (trace.y, trace.x)
    values = pandas.Series(numpy.asarray(_values(sizes), dtype=float))
    names = pandas.Series(_values(groups) or [""] * len(values)).astype(str)
    seen = ax.__dict__.setdefault("_box_names", [])
    for name, part in values.groupby(names, sort=False):
        seen.append(", ".join(word for word in (name, trace.name) if word))
        direction = "horizontal" if sideways else "vertical"
        ax.boxplot(part.dropna().to_numpy(), positions=[len(seen) - 1], widths=0.6, orientation=direction)
    (ax.set_yticks if sideways else ax.set_xticks)(range(len(seen)), seen)


def _heatmap(ax, trace, bars, layout) -> None:
    import numpy

    origin = "upper" if layout.yaxis.autorange == "reversed" else "lower"
    image = ax.imshow(numpy.asarray(trace.z, dtype=float), aspect="auto", origin=origin)
    ax.figure.colorbar(image, ax=ax)
    for name, labels in (("x", _values(trace.x)), ("y", _values(trace.y))):
        if labels:
            getattr(ax, f"set_{name}ticks")(range(len(labels)), [str(v) for v in labels])


_DRAW = {
    "scatter": _scatter,
    "scattergl": _scatter,
    "bar": _bar,
    "pie": _pie,
    "histogram": _histogram,
    "box": _box,
    "heatmap": _heatmap,
}


def write_image(figure, file, format=None, **options) -> None:
    """In place of plotly's, which needs a browser: the drawing described above."""
    from matplotlib.figure import Figure

    reasons = sorted(set(_beyond_us(figure)))
    if reasons:
        raise ValueError(f"no picture of this chart can be made here ({', '.join(reasons)}). Use write_html.")
    chart = Figure()
    draw(figure, chart)
    chart.savefig(file, format=format)


def install() -> None:
    """What would look for a browser."""
    from plotly import basedatatypes

    def show(self, *args, **kwargs) -> None:
        deliver(self)

    basedatatypes.BaseFigure.show = show
    basedatatypes.BaseFigure.write_image = write_image
