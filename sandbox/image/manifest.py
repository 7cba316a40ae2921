"""Print manifest.json of a tree: manifest.py RECIPE ROOT DEBS."""

import json
import os
import re
import sys
import time


def debian_packages(path):
    with open(path, encoding="utf-8") as f:
        return dict(sorted(line.split() for line in f))


def python_packages(site):
    names = (re.fullmatch(r"(.+)-([^-]+)\.dist-info", d) for d in os.listdir(site))
    return dict(sorted((m[1].lower().replace("_", "-"), m[2]) for m in names if m))


def file_bytes(root):
    paths = (os.path.join(d, f) for d, _, files in os.walk(root) for f in files)
    return sum(os.lstat(p).st_size for p in paths)


recipe, root, debs = sys.argv[1:]
site = os.path.join(root, "usr/local/lib/python3.13/dist-packages")
manifest = {
    "recipe": recipe,
    "machine": os.uname().machine,
    "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    "bytes": file_bytes(root),
    "debian": debian_packages(debs),
    "python": python_packages(site),
}
json.dump(manifest, sys.stdout, indent=1)
print()
