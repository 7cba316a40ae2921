"""Profiles of documents and pictures: what there is to read, and a sample of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pandas as pd

from .profile_base import SAMPLE_CHARS, Profile
from .profile_table import finish_frame, plain_names
from .tables_load import Load

HTML_MAX = 16 << 20
TABLES_MAX = 50


def profile_pdf(profile: Profile, path: str) -> None:
    """Pages and the first words."""
    import pypdf  # only here: the zygote has no use for it

    reader = pypdf.PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        profile.warn("unreadable", "password-protected")
        return
    profile.set(pages=len(reader.pages))
    text = ""
    for page in reader.pages[:5]:
        text += page.extract_text() + "\n"
        if len(text) > SAMPLE_CHARS:
            break
    profile.set_sample(text.strip())
    if not text.strip():
        profile.warn("unreadable", "the first pages hold no text; they may be scans")


def profile_docx(profile: Profile, path: str) -> None:
    """The first paragraphs, and how many tables there are."""
    import docx

    document = docx.Document(path)
    lines = [paragraph.text for paragraph in document.paragraphs[:40] if paragraph.text.strip()]
    profile.set_sample("\n".join(lines))
    tables = [[[cell.text for cell in row.cells] for row in table.rows[:2]] for table in document.tables[:TABLES_MAX]]
    profile.set(
        sheets=[
            {
                "name": f"table {at}",
                "rows": max(0, len(document.tables[at].rows) - 1),
                "columns": len(rows[0]) if rows else 0,
                "hidden": False,
                "header_row": 0,
                "names": rows[0] if rows else [],
                "load": None,
                "convert": {},
            }
            for at, rows in enumerate(tables)
        ]
    )


def profile_xml(profile: Profile, path: str) -> None:
    """The elements that are repeated most, each a row of its attributes and children; what else there is stays text."""
    from lxml import etree

    if profile.fields["bytes"] > HTML_MAX:
        return
    profile.set(kind="xml")
    try:
        root = etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
        rows = _repeated(root)
        if rows is not None:
            load = Load("pd.read_xml(", {"xpath": f"//*[local-name()={rows!r}]"})
            finish_frame(profile, *plain_names(load.read(path), load))
    except Exception as error:  # not well-formed, or rows that are no flat records
        profile.warn("not_a_table", f"no table could be read from it: {error}")


def _repeated(root: Any) -> str | None:
    """The local name of the elements that make the largest table, or None."""
    from lxml import etree

    if etree.QName(root).localname in ("svg", "html"):
        return None
    counts: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    for element in root.iter(etree.Element):
        name = etree.QName(element).localname
        simple = sum(1 for child in element if len(child) == 0)
        if element.getparent() is not None and (simple or element.attrib):
            counts[name] += 1
            fields[name] += simple + len(element.attrib)
    repeated = [name for name, count in counts.items() if count > 1]
    return max(repeated, key=lambda name: fields[name], default=None)


def profile_html(profile: Profile, path: str, text: str, encoding: str) -> None:
    """The tables of a page; `load` reads the largest."""
    profile.set_sample(_visible(text[: 1 << 20]))
    if profile.fields["bytes"] > HTML_MAX or "<table" not in text.lower():
        return
    options: dict[str, Any] = {} if encoding == "utf-8" else {"encoding": encoding}
    try:
        tables = Load("pd.read_html(", options).read(path)
    except ValueError:  # pandas: no tables found
        return
    loads = [Load("pd.read_html(", options, f")[{at}]") for at in range(len(tables))][:TABLES_MAX]
    profile.set(sheets=[_html_entry(profile, at, table, loads[at]) for at, table in enumerate(tables[:TABLES_MAX])])
    largest = max(range(len(loads)), key=lambda at: tables[at].size)
    if tables[largest].size:
        finish_frame(profile, *plain_names(tables[largest], loads[largest]))


def _html_entry(profile: Profile, at: int, table: pd.DataFrame, load: Load) -> dict[str, Any]:
    return {
        "name": f"table {at}",
        "rows": len(table),
        "columns": len(table.columns),
        "hidden": False,
        "header_row": 0,
        "names": [str(name) for name in table.columns],
        "load": load.expr(profile.fields["path"]),
        "convert": {},
    }


def _visible(text: str) -> str:
    """The words of a page."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(text, "lxml")
    for tag in soup(["script", "style"]):
        tag.decompose()
    return "\n".join(soup.stripped_strings)


def profile_image(profile: Profile, path: str) -> None:
    """Size and format from the header; no pixel is decoded."""
    from PIL import Image

    with Image.open(path) as image:
        profile.set(width=image.width, height=image.height, sample=f"{image.format} {image.width}x{image.height}")


def profile_notebook(profile: Profile, data: dict[str, Any]) -> None:
    """The cells' sources, as one would read them."""
    cells = data.get("cells", [])
    profile.set(cells=len(cells))
    sources = ["".join(cell.get("source", "")) for cell in cells[:40] if isinstance(cell, dict)]
    profile.set_sample("\n\n".join(sources))


def parse_json(text: str) -> Any:
    """The document, or None when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
