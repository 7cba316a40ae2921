"""An installed tree, staged in a folder: it finds its own keeper, prompts and support; its units hold; and it can be taken away again.
And a keeper that runs by itself, reached through a socket, as the units have it."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from sandbook import PROGRAM, REAL, ROOT, Case

IMAGE = "sandbox/image/build"


def image_root() -> str:
    return subprocess.run([str(ROOT / IMAGE)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]


def make(*words: str) -> None:
    p = subprocess.run(["make", "--no-print-directory", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert p.returncode == 0, p.stdout[-2000:] + p.stderr[-2000:]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.stage = tempfile.mkdtemp(prefix="sandbook-stage-")
        cls.addClassCleanup(shutil.rmtree, cls.stage, ignore_errors=True)
        make("install", f"DESTDIR={cls.stage}", "PREFIX=/usr", f"IMAGE={image_root()}")

    def path(self, name: str) -> Path:
        return Path(self.stage, name)

    def installed(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.path("usr/bin/sandbook")), *words], cwd="/", capture_output=True, text=True, timeout=180, check=False)

    def test_it_answers_by_its_absolute_path_with_its_own_keeper_and_prompts(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            p = self.installed("ask", "--json", "--out", out, "--set", "service.log_level=debug", "--file", str(REAL / "tips.csv"), "how many rows?")
        self.assertEqual(p.returncode, 0, p.stderr[-3000:])
        self.assertIn("244", json.loads(p.stdout)["answer"])
        self.assertNotIn(str(ROOT), p.stderr)

    def test_nothing_in_it_points_back_to_where_it_was_built(self) -> None:
        for f in self.path("").rglob("*"):
            self.assertFalse(f.is_symlink() and os.readlink(f).startswith(str(ROOT)), f)
            if f.is_file() and f.suffix in (".service", ".socket", ".conf", ".md", ".1", "") and f.stat().st_size < 1 << 20:
                text = f.read_bytes()
                self.assertNotIn(self.stage.encode(), text, f)
                self.assertNotIn(b"@BINDIR@", text, f)
                self.assertNotIn(b"@LIBDIR@", text, f)
        for f in self.path("usr").rglob("*"):
            self.assertTrue(f.stat().st_mode & 0o004, f"others can't read {f}")

    def test_the_example_configuration_is_the_default_and_valid(self) -> None:
        p = self.installed("check-config", "-c", str(self.path("usr/share/sandbook/sandbook.conf")))
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_man_page_and_profile_are_there(self) -> None:
        self.assertIn("SANDBOOK 1", self.path("usr/share/man/man1/sandbook.1").read_text())
        self.assertIn("profile sandbook-box /usr/lib/sandbook/sandbook-box", self.path("usr/share/sandbook/apparmor-sandbook").read_text())

    def test_daemon_and_keeper_are_different_users(self) -> None:
        units = {f.name: f.read_text() for f in self.path("etc/systemd/system").iterdir()}
        self.assertEqual(set(units), {"sandbook.service", "sandbook-box.socket", "sandbook-box@.service"})
        self.assertIn("User=sandbook", units["sandbook.service"])
        self.assertIn("CapabilityBoundingSet=\n", units["sandbook.service"])
        self.assertIn("Delegate=", units["sandbook-box@.service"])
        self.assertIn("PrivateNetwork=yes", units["sandbook-box@.service"])
        self.assertNotIn("\nDelegate=", units["sandbook.service"])

    def test_the_units_are_ones_that_systemd_takes(self) -> None:
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        with tempfile.TemporaryDirectory(prefix="sandbook-units-") as prefix:
            make("install", f"PREFIX={prefix}", f"UNITDIR={prefix}/units", f"IMAGE={image_root()}")
            units = [*Path(prefix, "units").glob("*.s*"), Path(prefix, "share/sandbook/sandbook-user.service")]
            p = subprocess.run(["systemd-analyze", "verify", *map(str, units)], capture_output=True, text=True, check=False, env=os.environ | {"SYSTEMD_UNIT_PATH": f"{prefix}/units:"})
            # What an older systemd does not know it says it ignores; units of the machine's own may be unwell.
            said = [line for line in p.stderr.splitlines() if "sandbook" in line and "DelegateSubgroup" not in line and "not found" not in line]
            self.assertEqual(said, [], p.stderr)

    def test_uninstall_takes_everything_away(self) -> None:
        with tempfile.TemporaryDirectory(prefix="sandbook-gone-") as stage:
            make("install", f"DESTDIR={stage}", "PREFIX=/opt/s")
            Path(stage, "etc").mkdir(exist_ok=True)
            Path(stage, "etc/kept.conf").write_text("mine")
            make("uninstall", f"DESTDIR={stage}", "PREFIX=/opt/s")
            self.assertEqual([str(f) for f in Path(stage).rglob("*") if f.is_file()], [f"{stage}/etc/kept.conf"])


class Door(threading.Thread):
    """Plays sandbook-box.socket with Accept=yes: a keeper for each connection, with the connection as descriptor 3."""

    def __init__(self, path: str):
        super().__init__(daemon=True)
        self.keepers: list[subprocess.Popen] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen(4)
        self.beside = Path(os.path.realpath(PROGRAM)).parent
        self.image = image_root()
        self.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            words = [str(self.beside / "sandbook-box"), "--image", self.image, "--support", str(self.beside / "box"), "--uid-base", "700000", "--min-tier", "T1"]
            fd = connection.fileno()
            self.keepers.append(subprocess.Popen(words, env={}, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=lambda fd=fd: (os.dup2(fd, 3), os.set_inheritable(3, True))))
            connection.close()

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for keeper in self.keepers:
            keeper.wait(60)


class KeptByAnother(Case):
    def test_a_keeper_of_somebody_elses_serves_and_is_found_again_after_its_death(self) -> None:
        path = f"{self.out}/box"
        door = Door(path)
        p = subprocess.Popen([PROGRAM, "cells", "--json", "--out", self.out, "--set", f"box.socket={path}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def cell(code: str) -> dict:
            p.stdin.write(json.dumps({"code": code}) + "\n")
            p.stdin.flush()
            return json.loads(p.stdout.readline())

        self.assertEqual(cell("x = 20; x + 1")["result"]["text/plain"], "21")
        self.assertEqual([Path(f["path"]).name for f in cell("open('out/a.txt', 'w').write('a')")["files"]], ["a.txt"])
        door.keepers[0].kill()
        door.keepers[0].wait()
        after = cell("x")
        if after["status"] == "failed":
            after = cell("x")
        self.assertEqual((after["state"], after["error"]["name"]), ("lost", "NameError"))
        self.assertEqual(len(door.keepers), 2)
        p.stdin.close()
        p.wait(60)
        p.stdout.close()
        door.close()

    def test_a_door_that_is_not_there_is_said(self) -> None:
        p = subprocess.run([PROGRAM, "cells", "--set", f"box.socket={self.out}/none"], input="1\n", capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertIn(f"connecting to the keeper at {self.out}/none", p.stderr)


if __name__ == "__main__":
    unittest.main()
