"""Two pylock.toml (x86_64, aarch64) -> one hashed requirements file for pip.

Only the files that can be installed in the tree are listed: CPython 3.13 wheels of the two machine
types, or the source where a package has no wheel. So a lock entry can't be met by anything else.
"""

import re
import sys
import tomllib

PYTHON = re.compile(r"cp313-cp313|cp3(?:[2-9]|1[0-3])-abi3|(?:py2\.)?py3(?:1[0-3])?-none|cp313-none")
PLATFORM = re.compile(r"any|.*manylinux.*_(?:x86_64|aarch64)")

HEAD = """\
# Written by relock from {name}.in: do not edit.
# CPython 3.13, manylinux x86_64 and aarch64. A package below --no-binary has no wheel: its source is
# listed, and the image build makes the wheel.
"""


def file_name(entry):
    return entry.get("name") or entry["url"].rsplit("/", 1)[1]


def fits(wheel):
    python, abi, platform = file_name(wheel)[: -len(".whl")].rsplit("-", 3)[1:]
    return PYTHON.fullmatch(f"{python}-{abi}") and PLATFORM.fullmatch(platform)


def entry(package, other):
    both = package.get("wheels", []) + other.get("wheels", [])
    wheels = [w for w in both if fits(w)]
    files = wheels or [package["sdist"]]
    hashes = sorted({f["hashes"]["sha256"] for f in files})
    text = f"{package['name']}=={package['version']}"
    text += "".join(f" \\\n    --hash=sha256:{h}" for h in hashes)
    return text if wheels else f"--no-binary {package['name']}\n{text}"


def packages(path):
    with open(path, "rb") as f:
        return {p["name"]: p for p in tomllib.load(f)["packages"]}


def main(first, second):
    one, other = packages(first), packages(second)
    if {n: p["version"] for n, p in one.items()} != {n: p["version"] for n, p in other.items()}:
        sys.exit("relock: the two machine types need different packages")
    print(HEAD.format(name=re.search(r"pylock\.(\w+)-", first)[1]), end="")
    for name in sorted(one):
        print(entry(one[name], other[name]))


main(*sys.argv[1:])
