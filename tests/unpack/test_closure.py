"""A laid program runs in a root that has nothing else: no loader, no libraries, no shell."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from archives import zipped

HELPERS = Path(__file__).resolve().parent / "../../sandbox/inside/helper"
FLAGS = ["-Wl,-rpath,/opt/sandbook/lib", "-Wl,--disable-new-dtags"]


class Closure(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "root"

    def build(self, *flags: str) -> Path:
        """The unpack helper, as the Makefile links it."""
        program = self.folder / "unpack"
        source = [str(HELPERS / "unpack.c"), "-larchive"]
        subprocess.run(
            [os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-o", program, *source, *flags], check=True
        )
        return program

    def lay(self, *programs: Path) -> subprocess.CompletedProcess:
        out = self.root / "opt/sandbook"
        return subprocess.run(
            [sys.executable, HELPERS / "closure", out, *programs], capture_output=True, text=True, check=False
        )

    def test_it_runs_where_there_is_nothing_else(self):
        laid = self.lay(self.build(*FLAGS))
        self.assertEqual(laid.returncode, 0, laid.stderr)
        zipped(self.root / "x.zip", [("a.csv", b"1")])
        (self.root / "dest").mkdir()
        enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "-Ur", "chroot"]
        command = [*enter, str(self.root), "/opt/sandbook/bin/unpack", "/x.zip", "/dest"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode and "unshare" in run.stderr:
            self.skipTest(run.stderr.strip())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual((self.root / "dest/a.csv").read_bytes(), b"1")

    def test_no_file_is_shared_with_the_host(self):
        self.lay(self.build(*FLAGS))
        files = [path for path in self.root.rglob("*") if not path.is_dir()]
        self.assertGreater(len(files), 3)
        self.assertTrue(all(path.stat().st_nlink == 1 and not path.is_symlink() for path in files))

    def test_a_program_that_would_take_the_images_libraries_is_refused(self):
        laid = self.lay(self.build())
        self.assertNotEqual(laid.returncode, 0)
        self.assertIn("link it with", laid.stderr)

    def test_what_is_no_program_is_refused(self):
        for path in (self.folder / "missing", HELPERS / "closure"):
            with self.subTest(path):
                laid = self.lay(path)
                self.assertNotEqual(laid.returncode, 0)
                self.assertTrue(laid.stderr.startswith("closure: "), laid.stderr)


if __name__ == "__main__":
    unittest.main()
