"""What a cell shows: its last expression, and whatever it hands to display().

The last expression becomes the claim's `result`, as text and, for tables, as HTML. display() prints, in
order with everything else that is printed. Pictures of any kind (matplotlib figures, PIL images, anything
with `_repr_png_`) go to the gallery, whichever way they came.
"""

import base64
import builtins
import html
import io
import json
import os
import re
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from matplotlib.artist import Artist
from matplotlib.container import Container
from matplotlib.figure import Figure
from numpy import ndarray

from . import plotly_view
from ..cell import current
from .figures import figures
from .gallery import Picture

__builtins__ = dict(vars(builtins))

TEXT_MAX = 64 << 10
HTML_MAX = 512 << 10
SIDE_MAX = 4000  # of a PIL image, before the helper makes it smaller still
_CHART_MODULES = ("matplotlib.container", "seaborn.axisgrid", "seaborn.matrix")
SPOKEN = ("text/markdown", "text/latex")  # say more than the repr of the object that holds them


def clip(text: str, limit: int = TEXT_MAX) -> str:
    """Head and tail."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    left = len(text) - limit
    return f"{text[: limit - tail]}\n… {left:,} characters left out …\n{text[-tail:]}"


def _kind(value: object) -> type:
    """The real type: `__class__` can lie, and asking for it can raise."""
    return type(value)


def _is_chart_part(value: object, depth: int = 0) -> bool:
    """Axes, lines, bars: what plotting calls return. The figure arrives anyway."""
    kind = _kind(value)
    if issubclass(kind, (Artist, Container)) or kind.__module__ in _CHART_MODULES:
        return True
    if issubclass(kind, ndarray):
        return value.dtype == object and 0 < value.size < 1000 and _is_chart_part(value.flat[0])
    if depth > 2 or kind not in (list, tuple, dict) or not value:
        return False
    parts = list(value.values() if kind is dict else value)[:20]
    plain = [p for p in parts if not (isinstance(p, (ndarray, float, int)) or (type(p) is list and not p))]
    return bool(plain) and all(_is_chart_part(p, depth + 1) for p in plain)


# Pictures


def _add_png(data: bytes, title: str = "") -> None:
    if figures.gallery.full():
        return
    path = figures.gallery.temporary()
    with open(path, "wb") as file:
        file.write(data)
    figures.gallery.add(Picture(path, title))


def _add_image(image) -> None:
    """A PIL image, of whatever mode."""
    width, height = image.size
    if max(width, height) > SIDE_MAX:
        image = image.copy()
        image.thumbnail((SIDE_MAX, SIDE_MAX))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
        image = image.convert("RGB")
    data = io.BytesIO()
    image.save(data, "PNG", compress_level=1)
    _add_png(data.getvalue())


def _is_pil(kind: type) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and issubclass(kind, module.Image)


def _as_bytes(data: object) -> bytes:
    return base64.b64decode(data) if isinstance(data, str) else bytes(data)


def _add_encoded(data: object) -> None:
    """PNG, JPEG and the like, as bytes or base64: decoded by PIL unless the helper can."""
    data = _as_bytes(data)
    if data.startswith(b"\x89PNG"):
        _add_png(data)
        return
    from PIL import Image

    _add_image(Image.open(io.BytesIO(data)))


def _write_svg(source: str) -> None:
    path = figures.gallery.file_name("picture", "svg")
    with open(os.path.join(figures.gallery.data_dir, path), "w", encoding="utf-8") as file:
        file.write(source)
    current.note(f"an SVG picture was written to {path}")


def _take_pictures(bundle: dict) -> bool:
    """Out of a bundle of representations; whether there was one."""
    encoded = bundle.pop("image/png", None) or bundle.pop("image/jpeg", None)
    svg = bundle.pop("image/svg+xml", None)
    try:
        if encoded:
            _add_encoded(encoded)
        elif svg:
            _write_svg(str(svg))
    except Exception as error:
        current.note(f"a picture could not be shown: {type(error).__name__}: {error}")
        return False
    return bool(encoded or svg)


def take_whole(value: object) -> bool:
    """Objects that are pictures and nothing else."""
    kind = _kind(value)
    if issubclass(kind, Figure):
        figures.capture(value)
    elif plotly_view.is_figure(kind):
        plotly_view.deliver(value)
    elif _is_pil(kind):
        _add_image(value)
    else:
        return False
    return True


# Text


def _from_html(source: str) -> str:
    """Readable text of an HTML object that has no other."""
    source = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>", "", source)
    source = re.sub(r"(?i)<br\s*/?>|</(p|div|tr|li|h\d)\s*>", "\n", source)
    return html.unescape(re.sub(r"<[^>]*>", "", source)).strip()


def _styled(value: object) -> str | None:
    """A Styler's repr says nothing; its text has the formats that were asked for."""
    module = sys.modules.get("pandas.io.formats.style")
    if module is None or not issubclass(_kind(value), module.Styler):
        return None
    return value.to_string(max_rows=20, max_columns=20, delimiter="  ")


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{_kind(value).__name__} object; its repr raised {type(error).__name__}>"


def _better(value: object, bundle: dict) -> str | None:
    """For an object whose repr is only its address."""
    styled = _styled(value)
    if styled is not None:
        return styled
    for kind in SPOKEN:
        if isinstance(bundle.get(kind), str):
            return bundle[kind]
    if "application/json" in bundle:
        return json.dumps(bundle["application/json"], ensure_ascii=False, default=str)
    markup = bundle.get("text/html")
    is_display = _kind(value).__module__.startswith("IPython.")
    return _from_html(markup) if is_display and isinstance(markup, str) else None


class Formatter(DisplayFormatter):
    """All representations of an object, with pictures taken out on the way."""

    def format(self, obj, include=None, exclude=None):
        if take_whole(obj) or self.ipython_display_formatter(obj):
            return {}, {}
        bundle, _ = super().format(obj, include, exclude)
        bundle = {kind: data for kind, data in bundle.items() if data is not None}
        if _take_pictures(bundle):
            return {}, {}
        return self._texts(obj, bundle), {}

    def _texts(self, obj: object, bundle: dict) -> dict:
        texts = {"text/plain": clip(self._plain(obj, bundle))}
        markup = bundle.get("text/html")
        if isinstance(markup, str):
            if len(markup) <= HTML_MAX:
                texts["text/html"] = markup
            else:
                current.note("the HTML of the result was left out: it is too long")
        return texts

    def _plain(self, obj: object, bundle: dict) -> str:
        text = bundle.get("text/plain")
        if not isinstance(text, str):
            return _repr(obj)
        bare = text.startswith("<") and " at 0x" in text or "IPython.core.display" in text
        return bare and _better(obj, bundle) or text


class Hook(DisplayHook):
    """The last expression of a cell."""

    def write_output_prompt(self) -> None:
        pass

    def compute_format_data(self, result):
        is_figure = issubclass(_kind(result), Figure)
        if figures.is_open(result) if is_figure else _is_chart_part(result):
            return {}, {}  # comes with the figures at the end of the cell
        return self.shell.display_formatter.format(result)

    def write_format_data(self, format_dict, md_dict=None) -> None:
        if current.cell.result is not None:  # several expressions (ast_node_interactivity): print the earlier
            print(current.cell.result["text/plain"])
        current.cell.result = format_dict

    def log_output(self, format_dict) -> None:
        """IPython keeps a copy of all that was ever shown; nobody reads it here."""

    def finish_displayhook(self) -> None:
        self._is_active = False


class Publisher(DisplayPublisher):
    """display(), and what libraries publish by themselves."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs) -> None:
        bundle = dict(data)
        _take_pictures(bundle)
        text = next((bundle[k] for k in (*SPOKEN[:1], "text/plain") if isinstance(bundle.get(k), str)), None)
        if text is None and isinstance(bundle.get("text/html"), str):
            text = _from_html(bundle["text/html"])
        if text:
            print(clip(text))

    def clear_output(self, wait=False) -> None:
        """What was printed is on its way already."""
