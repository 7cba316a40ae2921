#!/usr/bin/env python3
"""The include rules of the architecture: floors, no sibling adapters, programs that share nothing but their protocol, a vendor's header
only in the file that owns it."""
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWNERS = {
    "curl/curl.h": ["src/io/http*.c", "src/io/ws*.c"],
    "sqlite3.h": ["src/store/db.c", "src/tool/sql_sqlite.c"],
    "libpq-fe.h": ["src/tool/sql_postgres.c"],
    "openssl/*": ["src/base/digest.c", "src/chat/matrix/crypto/crypto_prim.c", "src/io/ws_handshake.c"],
    "cjson/cJSON.h": ["src/base/json*.c"],
    "utf8proc.h": ["src/base/utf8.c", "sandbox/inside/helper/unpack.c"],
    "seccomp.h": ["sandbox/keeper/walls/box_seccomp*.c", "tests/*"],
    "archive.h": ["sandbox/inside/helper/unpack.c"],
    "archive_entry.h": ["sandbox/inside/helper/unpack.c"],
    "png.h": ["sandbox/inside/helper/picture.c"],
    "md4c.h": ["src/chat/markup*.c"],
    "olm/olm.h": ["src/chat/matrix/crypto/olm_*"],
    "wslay/wslay.h": ["src/io/ws*.c"],
    "microhttpd.h": ["src/io/httpd*.c"],
    "zip.h": ["src/core/export/export_sink.c"],
}
ADAPTERS = {"src/chat", "src/model", "src/box", "src/store", "src/status", "src/tool"}
CORE_MAY_NOT = {"include/http.h", "include/ws.h"}
# Programs of their own: what a file of that folder may include, whatever its floor. The daemon shares one header with them.
SIDES = {
    "sandbox/keeper": ["sandbox/keeper/*", "sandbox/box_*.h", "include/base.h", "include/err.h", "include/str.h", "include/log.h", "include/json.h"],
    "sandbox/inside": ["sandbox/inside/*", "sandbox/box_*.h"],
}
SHARED = "sandbox/box_proto.h"


def load_floors() -> dict[str, float]:
    lines = (ROOT / "tests/floors.txt").read_text().splitlines()
    rows = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    return {name: float(floor) for name, floor in rows}


def floor_of(path: str, floors: dict[str, float]) -> float | None:
    """The longest entry that names the file or a folder above it."""
    parts = path.split("/")
    for n in range(len(parts), 0, -1):
        if (got := floors.get("/".join(parts[:n]))) is not None:
            return got
    return None


def resolve(file: Path, name: str) -> str | None:
    for folder in (file.parent, ROOT / "include", ROOT / "src", ROOT / "sandbox", ROOT / "sandbox/keeper"):
        if (folder / name).is_file():
            return str((folder / name).resolve().relative_to(ROOT))
    return None


def adapter_of(folder: str) -> str | None:
    return next((a for a in ADAPTERS if f"{folder}/".startswith(f"{a}/")), None)


def is_sibling(folder: str, other: str) -> bool:
    """Another adapter, or another folder of the same one; what lies above or below is its own."""
    if not adapter_of(folder) or not adapter_of(other):
        return False
    return not f"{folder}/".startswith(f"{other}/") and not f"{other}/".startswith(f"{folder}/")


def check_side(rel: str, target: str) -> str | None:
    for side, allowed in SIDES.items():
        if rel.startswith(f"{side}/") and not any(fnmatch(target, pattern) for pattern in allowed):
            return f"{side} may not include {target}"
    if not rel.startswith("sandbox/") and target.startswith("sandbox/") and target != SHARED:
        return f"the daemon may not include {target}"
    return None


def check_include(file: Path, rel: str, name: str, own: float, floors: dict[str, float]) -> str | None:
    target = resolve(file, name)
    if target is None:
        return f"includes {name}, which does not exist"
    other = floor_of(target, floors)
    if other is None:
        return f"{target} has no floor"
    folder, theirs = str(Path(rel).parent), str(Path(target).parent)
    if fault := check_side(rel, target):
        return fault
    if other > own:
        return f"floor {own:g} includes {target} of floor {other:g}"
    if is_sibling(folder, theirs):
        return f"adapter includes its sibling {target}"
    if int(own) == 4 and target in CORE_MAY_NOT:
        return f"the core may not include {target}"
    return None


def check_vendor(rel: str, name: str) -> str | None:
    owners = OWNERS.get(name) or OWNERS.get(f"{name.split('/')[0]}/*")
    if owners and not any(Path(rel).match(pattern) for pattern in owners):
        return f"includes <{name}>, which belongs to {', '.join(owners)}"
    return None


def check_file(file: Path, floors: dict[str, float]) -> list[str]:
    rel = str(file.relative_to(ROOT))
    own = floor_of(rel, floors)
    if own is None:
        return [f"{rel}: has no floor in tests/floors.txt"]
    found = []
    for no, line in enumerate(file.read_text().splitlines(), 1):
        if m := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            fault = check_include(file, rel, m[1], own, floors)
        elif m := re.match(r"\s*#\s*include\s+<([^>]+)>", line):
            fault = check_vendor(rel, m[1])
        else:
            continue
        if fault:
            found.append(f"{rel}:{no}: {fault}")
    return found


def main() -> int:
    floors = load_floors()
    files = [f for top in ("include", "src", "sandbox") for f in sorted((ROOT / top).rglob("*.[ch]"))]
    faults = [fault for f in files for fault in check_file(f, floors)]
    print("\n".join(faults) if faults else f"floors: {len(files)} files keep the rules")
    return 1 if faults else 0


sys.exit(main())
