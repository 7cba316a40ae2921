"""The box's root tree: is it what the recipe says, and does it work?

Needs a built tree (sandbox/image/build) and nothing but Python >= 3.9. Code inside the tree runs in a
chroot: as root, or in a user namespace.
"""

import json
import os
import re
import stat
import subprocess
import time
import unittest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGE = os.path.join(REPO, "sandbox", "image")
SITE = "usr/local/lib/python3.13/dist-packages"
# distribution -> module, where the name alone doesn't say it
MODULES = {
    "scikit-learn": "sklearn", "python-calamine": "python_calamine", "odfpy": "odf", "pillow": "PIL",
    "python-docx": "docx", "ipython": "IPython", "beautifulsoup4": "bs4",
    "charset-normalizer": "charset_normalizer",
}


def tree_path():
    found = subprocess.run([os.path.join(IMAGE, "build"), "--print-path"], stdout=subprocess.PIPE)
    return found.stdout.decode().strip()


ROOT = tree_path()


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def inside(*command, stdin=None):
    """Run a command in the tree, with a /tmp of its own; (exit code, what it wrote)."""
    enter = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    enter += ["sh", "-c", 'mount -t tmpfs none "$0/tmp" && exec chroot "$0" "$@"', ROOT]
    env = ["/usr/bin/env", "-i", "PATH=/usr/bin", "HOME=/tmp", "LANG=C.UTF-8", "MPLBACKEND=Agg",
           "MPLCONFIGDIR=/tmp", "MATPLOTLIBRC=/etc/matplotlibrc", "PYTHONDONTWRITEBYTECODE=1"]
    done = subprocess.run(enter + env + list(command), input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace")


def python(code):
    return inside("/usr/bin/python3.13", "-I", "-W", "always", "-", stdin=code.encode())


def files():
    for folder, folders, names in os.walk(ROOT):
        for name in folders + names:
            yield os.path.join(folder, name)


def names_of(path):
    with open(os.path.join(IMAGE, path), encoding="utf-8") as f:
        return [line.split("#")[0].strip() for line in f if line.split("#")[0].strip()]


def locked():
    with open(os.path.join(IMAGE, "requirements.lock"), encoding="utf-8") as f:
        pins = re.findall(r"^([A-Za-z0-9][^=\s]*)==(\S+)", f.read(), re.M)
    return {canonical(name): version for name, version in pins}


@unittest.skipUnless(ROOT, "no tree: run sandbox/image/build")
class Content(unittest.TestCase):
    def test_python_packages_are_exactly_the_locked_ones(self):
        found = {}
        for name in os.listdir(os.path.join(ROOT, SITE)):
            if name.endswith(".dist-info"):
                with open(os.path.join(ROOT, SITE, name, "METADATA"), encoding="utf-8") as f:
                    head = f.read().split("\n\n")[0]
                found[canonical(re.search(r"^Name: (\S+)", head, re.M)[1])] = re.search(
                    r"^Version: (\S+)", head, re.M)[1]
        self.assertEqual(found, locked())

    def test_lock_has_every_requirement_and_names_no_place(self):
        self.assertEqual(set(map(canonical, names_of("requirements.in"))) - set(locked()), set())
        for lock in ("requirements.lock", "build.lock"):
            with open(os.path.join(IMAGE, lock), encoding="utf-8") as f:
                self.assertNotRegex(f.read(), r"://|find-links|index-url|file:")

    def test_manifest_agrees(self):
        with open(os.path.join(ROOT, "..", "manifest.json"), encoding="utf-8") as f:
            manifest = json.load(f)
        self.assertEqual({canonical(n): v for n, v in manifest["python"].items()}, locked())
        self.assertEqual(set(names_of("packages.txt")) - set(manifest["debian"]), set())
        self.assertIn(manifest["recipe"], ROOT)
        print("\ntree: %d MB, %d Python and %d Debian packages" % (
            manifest["bytes"] // 1000000, len(manifest["python"]), len(manifest["debian"])))

    def test_no_file_has_more_rights_than_its_reader(self):
        for path in files():
            mode = os.lstat(path).st_mode
            self.assertTrue(stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), path)
            self.assertEqual(mode & (stat.S_ISUID | stat.S_ISGID), 0, path)
            if stat.S_ISLNK(mode):
                continue
            self.assertEqual(mode & 0o022, 0, path)
            self.assertEqual(mode & 0o444, 0o444, path)
            self.assertNotIn("security.capability", os.listxattr(path, follow_symlinks=False), path)

    def test_every_module_is_compiled(self):
        for top in ("usr/lib/python3.13", SITE):
            for folder, _, names in os.walk(os.path.join(ROOT, top)):
                have = os.listdir(os.path.join(folder, "__pycache__")) if any(
                    n.endswith(".py") for n in names) else []
                missing = [n for n in names if n.endswith(".py") and n[:-3] + ".cpython-313.pyc" not in have]
                self.assertEqual(missing, [], folder)

    def test_compiled_modules_are_not_checked_at_import(self):
        sample = os.path.join(ROOT, SITE, "pandas", "__pycache__", "__init__.cpython-313.pyc")
        with open(sample, "rb") as f:
            self.assertEqual(f.read(8)[4:], b"\1\0\0\0")  # PEP 552: by hash, unchecked

    def test_no_place_of_the_building_machine_is_inside(self):
        cache = os.path.dirname(os.path.dirname(ROOT)).encode()
        for path in files():
            if os.path.islink(path):
                self.assertTrue(os.path.lexists(path))
                self.assertFalse(os.readlink(path).startswith(cache.decode()), path)
            elif os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                with open(path, "rb") as f:
                    data = f.read()
                self.assertNotIn(cache, data, path)
                self.assertNotIn(b"/building.", data, path)

    def test_links_lead_somewhere(self):
        for path in files():
            if os.path.islink(path):
                target = os.readlink(path)
                base = ROOT if target.startswith("/") else os.path.dirname(path)
                self.assertTrue(os.path.lexists(os.path.join(base, target.lstrip("/"))), path)

    def test_nothing_of_a_package_manager_is_left(self):
        for name in ("usr/bin/apt", "usr/bin/apt-get", "usr/bin/dpkg", "usr/bin/perl", "usr/bin/su",
                     "usr/bin/mount", "var", "etc/shadow", "etc/apt", "usr/lib/dpkg"):
            self.assertFalse(os.path.lexists(os.path.join(ROOT, name)), name)


@unittest.skipUnless(ROOT, "no tree: run sandbox/image/build")
class Use(unittest.TestCase):
    def check(self, code):
        status, text = python(code)
        self.assertEqual(status, 0, text)
        return text

    def test_every_requirement_imports(self):
        modules = [MODULES.get(n, n) for n in names_of("requirements.in")]
        self.check("import importlib, sys\nfor m in %r: importlib.import_module(m)" % modules)

    def test_every_distribution_answers_to_importlib_metadata(self):
        self.check("from importlib.metadata import version\nfor n in %r: version(n)" % sorted(locked()))

    def test_every_shared_object_finds_its_libraries(self):
        # By the loader itself, which obeys the run paths inside the wheels.
        text = self.check(r"""
import os, subprocess
from concurrent.futures import ThreadPoolExecutor
loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))
top = "/usr/local/lib/python3.13", "/usr/lib/python3.13"
paths = [os.path.join(d, f) for t in top for d, _, fs in os.walk(t) for f in fs if ".so" in f]
def ask(p):
    r = subprocess.run([loader, "--list", p], capture_output=True, text=True)
    return [f"{p}: {line}" for line in (r.stdout + r.stderr).splitlines() if "not found" in line]
with ThreadPoolExecutor(4) as pool: bad = sum(pool.map(ask, paths), [])
print(len(paths), *bad, sep="\n")
assert len(paths) > 300 and not bad
""")
        print("\n%s shared objects" % text.split()[0])

    def test_any_family_falls_back_to_cjk_and_emoji(self):
        text = self.check("""
import warnings, logging
import matplotlib.pyplot as plt
warnings.simplefilter("error")
def draw(name, kind):
    fig, ax = plt.subplots()
    ax.set_title("\u4e2d\u6587 \u6f22\u5b57 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u2212-5")
    ax.set_xlabel("\U0001f600 \U0001f680 \U0001f4c8 \U0001f9e0 \U0001fae0 \u2705 \u2764\ufe0f \U0001f1e9\U0001f1ea")
    ax.set_ylabel("\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22 \u0639\u0631\u0628\u064a \u05e2\u05d1", weight="bold")
    ax.plot([-1, 1])
    fig.savefig("/tmp/" + name + "." + kind)
    plt.close(fig)
for kind in ("png", "svg", "pdf"): draw("plain", kind)
import seaborn; seaborn.set_theme(); draw("seaborn", "png")
with plt.style.context("ggplot"): draw("ggplot", "png")
plt.rcParams["font.family"] = "serif"; draw("serif", "png")
logging.disable()
plt.rcParams["font.family"] = "SimHei"; draw("missing", "png")
""")
        self.assertNotIn("lyph", text)

    def test_fonts_are_not_scanned_at_import(self):
        self.check("""
import matplotlib.font_manager as fm
def scan(*a, **k): raise SystemExit("scanned the fonts")
fm.findSystemFonts = scan
fm._load_fontmanager()
""")

    def test_standard_library_is_whole(self):
        self.check("""
import ssl, sqlite3, lzma, bz2, zlib, ctypes, readline, curses, uuid, decimal, hashlib, dbm, mimetypes
ssl.create_default_context()
sqlite3.connect(":memory:").execute("select json('[1]'), sqlite_version()").fetchone()
assert mimetypes.guess_type("a.parquet") and mimetypes.guess_type("a.xlsx")[0]
import zoneinfo, pandas
for zone in ("Europe/Berlin", "US/Eastern", "Asia/Kolkata"): zoneinfo.ZoneInfo(zone)
pandas.Timestamp("2024-07-01", tz="US/Eastern")
import time, locale
assert time.tzname[0] == "UTC", time.tzname
import pwd; assert pwd.getpwuid(1000).pw_name == "box"
import socket
try: socket.getaddrinfo("example.invalid", 80)
except OSError: pass
""")

    def test_each_file_kind_goes_out_and_in(self):
        self.check("""
import io, warnings
import pandas as pd
df = pd.DataFrame({"a": [1, 2], "b": ["x", "\u4e2d"]})
def back(kind, write, read):
    got = read(write("/tmp/t." + kind))
    assert got["b"].tolist() == df["b"].tolist(), (kind, got)
def to(method, **options):
    def write(path): getattr(df, method)(path, **options); return path
    return write
back("xlsx", to("to_excel", index=False), pd.read_excel)
back("xlsx", to("to_excel", index=False, engine="xlsxwriter"), lambda p: pd.read_excel(p, engine="calamine"))
back("ods", to("to_excel", index=False), pd.read_excel)
back("parquet", to("to_parquet"), pd.read_parquet)
back("feather", to("to_feather"), pd.read_feather)
import polars, duckdb
back("csv", to("to_csv", index=False), lambda p: polars.read_csv(p).to_pandas())
back("csv", to("to_csv", index=False), lambda p: duckdb.sql(f"select * from '{p}'").df())
pd.read_html(io.StringIO(df.to_html()))
df.to_markdown(); df.style.to_html()
""")

    def test_what_people_type_after_an_exclamation_mark_works(self):
        for line in ("ls -la /", "head -1 /etc/passwd | cut -d: -f1", "echo b a | tr ' ' '\\n' | sort",
                     "awk 'BEGIN { print 1 }'", "python -c 'print(1)'", "python3 --version", "find /etc | wc -l",
                     "cd /tmp && echo x >t.txt && zip -q t.zip t.txt && unzip -l t.zip && tar czf t.tgz t.txt",
                     "grep -c root /etc/passwd", "date", "df / || true", "diff /etc/hosts /etc/hosts"):
            status, text = inside("/bin/sh", "-c", line)
            self.assertEqual(status, 0, line + "\n" + text)


@unittest.skipUnless(ROOT, "no tree: run sandbox/image/build")
class Query(unittest.TestCase):
    def test_asking_for_a_built_tree_is_quick(self):
        times = []
        for _ in range(5):
            start = time.monotonic()
            self.assertEqual(tree_path(), ROOT)
            times.append(time.monotonic() - start)
        self.assertLess(min(times), 0.2)

    def test_an_unbuilt_tree_is_told_by_exit_1(self):
        done = subprocess.run([os.path.join(IMAGE, "build"), "--print-path"], stdout=subprocess.PIPE,
                              env=dict(os.environ, SANDBOOK_CACHE="/nonexistent"))
        self.assertEqual((done.returncode, done.stdout), (1, b""))


if __name__ == "__main__":
    unittest.main()
