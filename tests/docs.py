#!/usr/bin/env python3
"""Words of the documents that name things of the code: settings, commands, metrics, files. Each must be there."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONF = (ROOT / "include/conf.h").read_text()
# Section and key of each row of the tables.
ROWS = re.findall(r'X\("(\w+)",\s+"(\w+)",', CONF)
KEYS = {f"{section}.{key}" for section, key in ROWS}
NAMED = ("model", "tool", "database")
SECTIONS = {section for section, _ in ROWS}
# A file's name looks like a setting, too.
FILES = r"(?:\.(?:c|h|py|md|conf|db|key|csv|txt|json|jsonl|png|ipynb|sh|zst|lock|toml|service|socket))"

TREE = [f.relative_to(ROOT) for top in ("config", "include", "prompts", "sandbox", "src", "tests") for f in (ROOT / top).rglob("*.*")]
# Examples and files of an operator.
USER_FILES = {"notebook.py"}


def settings(text: str) -> set[str]:
    """`section.key` in backquotes, perhaps with a value; [model NAME] and its like as model.key or model.NAME.key."""
    found = re.findall(r"`(?:--set )?([a-z]+)\.((?:[\w-]+\.)?[a-z_]+)(?: ?=[^`]*)?`", text)
    return {f"{s}.{k.split('.')[-1]}" for s, k in found if s in SECTIONS and not re.fullmatch(FILES, f".{k}")}


def commands() -> list[str]:
    return re.findall(r'^    \{ "([a-z-]+)", "sandbook', (ROOT / "src/main.c").read_text(), re.M)


def check_settings() -> list[str]:
    return [f"{doc.relative_to(ROOT)}: there is no setting {name}" for doc in DOCS for name in sorted(settings(doc.read_text()) - KEYS)]


def check_commands() -> list[str]:
    man = (ROOT / "docs/man/sandbook.1").read_text().replace("\\-", "-")
    cli = (ROOT / "docs/cli.md").read_text()
    missing = [(name, where) for name in commands() for where, text in (("the manual page", man), ("docs/cli.md", cli)) if not re.search(rf"\b{name}\b", text)]
    return [f"{where} does not name `sandbook {name}`" for name, where in missing] or ([] if commands() else ["no command was found"])


def check_metrics() -> list[str]:
    made = set(re.findall(r'"((?:sandbook|process)_\w+)"', (ROOT / "include/metric.h").read_text()))
    told = set(re.findall(r"`((?:sandbook|process)_[a-z_]+)", (ROOT / "docs/operations.md").read_text()))
    return [f"docs/operations.md and include/metric.h differ: {name}" for name in sorted(made ^ told)] if made else ["no metric was found"]


def sources(text: str) -> set[str]:
    """Files of the tree in backquotes: by name, with folders or without; perhaps a pattern."""
    return set(re.findall(r"`([\w*][\w./*-]*\.(?:c|h|py|conf))`", text)) - USER_FILES


def check_sources() -> list[str]:
    return [f"{doc.relative_to(ROOT)}: there is no file {name}" for doc in DOCS for name in sorted(sources(doc.read_text())) if not any(f.match(name) for f in TREE)]


def check_links() -> list[str]:
    links = [(doc, link) for doc in DOCS for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", doc.read_text())]
    return [f"{doc.relative_to(ROOT)}: {link} is not there" for doc, link in links if not (doc.parent / link).exists()]


def main() -> int:
    faults = check_settings() + check_commands() + check_metrics() + check_sources() + check_links()
    print("\n".join(faults) if faults else f"docs: {len(DOCS)} files name {len(KEYS)} settings and {len(commands())} commands as the code has them")
    return 1 if faults else 0


sys.exit(main())
