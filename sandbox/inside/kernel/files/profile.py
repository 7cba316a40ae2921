"""profile_file(path, name) -> dict: what the intake finds out about one file (docs/profile.md).

Never raises for bad data: what can't be read is said in a warning. Every `load` that it hands out has
been run here, bounded in rows, so that the planner and the model start from a call that works.
"""

from __future__ import annotations

import os
import re
from typing import Any

from .profile_base import Facts, Profile, relative, scan
from .profile_doc import parse_json, profile_docx, profile_html, profile_image, profile_notebook, profile_pdf, profile_xml
from .profile_text import Text, profile_text, read_sample, sniff_text
from .sniff import sniff_kind
from .sniff_text import Encoding, sniff_bom, sniff_encoding

_HTML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body|table)\b", re.I | re.S)
_LINE_END = re.compile(r"[\r\n]")
_BETWEEN = re.compile(r"[,;\t|]")
WIDTH_MAX = 50_000  # fields of a line beyond which it is one long list and no row
WIDE_SAMPLE = 1 << 20
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".ipynb", ".geojson")


def profile_file(path: str, name: str | None = None, root: str | None = None) -> dict[str, Any]:
    """The profile of the file at `path`; `name` is what the person called it, `root` the cells' folder."""
    shown = relative(path, root or os.getcwd())
    profile = Profile(shown, name or os.path.basename(path))
    try:
        facts = scan(path)
        profile.set(bytes=facts.size, sha256=facts.sha256)
        _fill(profile, path, facts)
    except Exception as error:
        profile.set(load=None)
        profile.warn("unreadable", f"{type(error).__name__}: {error}")
    return profile.fields


def _fill(profile: Profile, path: str, facts: Facts) -> None:
    """Hands the file to the module for its kind."""
    kind = sniff_kind(path, profile.fields["name"])
    profile.set(kind=kind)
    if kind == "empty":
        profile.warn("empty", "the file is empty")
    elif kind == "pickle":
        profile.warn("pickle_refused", "pickles run code when they are loaded; export the data as CSV or Parquet")
    elif kind == "text":
        _fill_text(profile, path, facts)
    elif kind == "binary":
        profile.warn("not_a_table", "no format that is known here")
    elif kind != "archive":
        _fill_binary(profile, path, kind)


def _fill_binary(profile: Profile, path: str, kind: str) -> None:
    """Formats with a signature of their own. Their readers are imported when such a file comes."""
    from . import profile_book, profile_data

    if kind in ("excel", "ods"):
        profile_book.profile_book(profile, path)
    elif kind in ("feather", "stata", "orc"):
        profile_data.profile_simple(profile, path, f"read_{kind}")
    else:
        readers = {
            "parquet": profile_data.profile_parquet,
            "array": profile_data.profile_array,
            "sqlite": profile_data.profile_sqlite,
            "pdf": profile_pdf,
            "docx": profile_docx,
            "image": profile_image,
        }
        readers[kind](profile, path)


def _fill_text(profile: Profile, path: str, facts: Facts) -> None:
    """Text of any sort: a page, a document of JSON, a table, or just text."""
    encoding = _encoding(path, facts)
    text = read_sample(path, encoding)
    profile.set(encoding=encoding.name)
    profile.set_sample(text.sample)
    if encoding.guessed:
        profile.warn("encoding_guessed", f"the file does not state its encoding; read as {encoding.name}")
    if not text.sample.strip():
        profile.set(kind="empty")
        profile.warn("empty", "the file holds nothing but blanks")
    elif _HTML.match(text.sample):
        profile.set(kind="html")
        profile_html(profile, path, text.sample, encoding.name)
    elif text.sample.lstrip().startswith("<?xml") or profile.fields["name"].lower().endswith(".xml"):
        profile_xml(profile, path)
    elif not _fill_json(profile, text, facts):
        _fill_table(profile, text, facts)


def _fill_table(profile: Profile, text: Text, facts: Facts) -> None:
    """A delimited table; where pandas refuses it in every way, at least its beginning is shown."""
    widest = max((len(_BETWEEN.findall(line)) for line in text.sample[:WIDE_SAMPLE].splitlines()), default=0)
    if widest > WIDTH_MAX:
        profile.warn("not_a_table", f"a line of over {WIDTH_MAX:,} fields: more columns than can be worked with")
        return
    if not text.complete and not _LINE_END.search(text.sample):
        profile.warn("not_a_table", f"a line of over {len(text.sample) >> 20} MiB: no rows that could be read one by one")
        return
    if not sniff_text(text, profile.fields["name"]):
        return
    try:
        profile_text(profile, text, facts)
    except Exception as error:
        profile.set(kind="text", load=None, columns=[])
        profile.warn("not_a_table", f"pandas reads no table from it: {error}")


def _fill_json(profile: Profile, text: Text, facts: Facts) -> bool:
    """True when the text is JSON, of one document or of one a line."""
    start = text.sample.lstrip()[:1]
    if start not in ("{", "["):
        return False
    from . import profile_data

    whole = text.sample if text.complete else _read_all(profile, text)
    data = parse_json(whole) if whole else None
    if isinstance(data, dict) and "nbformat" in data and isinstance(data.get("cells"), list):
        profile.set(kind="notebook")
        profile_notebook(profile, data)
        return True
    lines = [line for line in text.sample.splitlines()[:20] if line.strip()]
    if data is None and all(isinstance(parse_json(line), dict) for line in lines):
        profile.set(kind="jsonl")
        profile_data.profile_jsonl(profile, text.path, text.encoding.name, facts)
        return True
    if data is None and not profile.fields["name"].lower().endswith(_JSON_NAMES):
        return False
    profile.set(kind="json")
    if data is None and whole:
        profile.warn("unreadable", "it is not valid JSON")
        return True
    profile_data.profile_json(profile, text.path, text.encoding.name, data)
    return True


def _read_all(profile: Profile, text: Text) -> str:
    """The whole text when it is small enough to be parsed; else nothing."""
    from .profile_data import JSON_MAX

    if profile.fields["bytes"] > JSON_MAX:
        return ""
    with open(text.path, encoding=text.encoding.name, errors="replace") as file:
        return file.read()


def _encoding(path: str, facts: Facts) -> Encoding:
    """From the whole file where it is UTF-8, else guessed from its first megabytes."""
    with open(path, "rb") as file:
        head = file.read(4 << 20)
    if facts.utf8 and not sniff_bom(head) and b"\0" not in head[:4096]:
        return Encoding("utf-8")
    return sniff_encoding(head, cut=facts.size > len(head))
