"""What an attack must not touch, and the three kinds of keeper that are attacked: root's, a plain user's, and one inside a user
namespace. Shared by the attack suites of this folder's parent."""
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import keeper as box
from keeper import IS_ROOT, BoxTest, Keeper

WATCHED = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts", "/etc/ld.so.cache", "/bin/sh", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
           "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem")
IMAGE_FILES = ("usr/bin/python3.13", "usr/bin/env", "etc/passwd", "etc/os-release", "usr/lib/python3.13/os.py")


OTHERS = {str(p.pw_uid) for p in pwd.getpwall() if p.pw_name not in ("root", "nobody")} - {str(os.getuid())}


def ipc_of(path):
    """Rows of System V IPC that a box could have made. (A database of somebody else's on this machine has its own.)"""
    head, *rows = Path(path).read_text().splitlines()
    return [row for row in rows if row.split()[head.split().index("uid")] not in OTHERS]


def facts_of(path):
    if path.startswith("/proc/sysvipc/"):
        return ipc_of(path)
    try:
        s = os.stat(path)
        data = Path(path).read_bytes() if s.st_size < 1 << 20 else b""
    except OSError as e:
        return e.errno
    return (s.st_mode, s.st_uid, s.st_ino, s.st_size, s.st_mtime_ns, hashlib.sha256(data).digest()) if not path.startswith("/proc") else data


def mounts():
    """Mounts at places where the keeper puts its own in a box. (Whoever else works on this machine may mount elsewhere.)"""
    ours = ("/", "/usr", "/etc", "/proc", "/tmp", "/dev/shm", "/mnt", "/mnt/data", "/opt", "/opt/sandbook", *(f"/dev/{d}" for d in ("null", "zero", "full", "random", "urandom")))
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted(" ".join(x[2:5]) for x in lines if x[4] in ours or x[4].startswith((box.image(), box.support())))


class Host:
    """The machine as it was. A canary file of root's lies where a path of the box's could lead."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sandbook-canary-")
        self.canary = Path(self.folder, "canary")
        self.canary.write_text("canary-7f1d")
        self.before = self.now()

    def now(self):
        image = box.image()
        files = {p: facts_of(p) for p in (*WATCHED, *(os.path.join(image, f) for f in IMAGE_FILES), str(self.canary))}
        return files | {"name": socket.gethostname(), "mounts": mounts(), "here": sorted(os.listdir(self.folder))}

    def changes(self):
        now = self.now()
        return [k for k in now if now[k] != self.before[k]]

    def close(self):
        shutil.rmtree(self.folder)


# ---- keepers ----


def program_for_all(script):
    """A folder with a copy of the keeper and a script that starts it; everybody may read it."""
    folder = tempfile.mkdtemp(prefix="sandbook-program-")
    os.chmod(folder, 0o755)
    shutil.copy(box.binary(), folder + "/sandbook-box")
    start = Path(folder, "start")
    start.write_text(script.replace("KEEPER", folder + "/sandbook-box"))
    start.chmod(0o755)
    return folder


def through(script, **how):
    """A keeper that is started by a script: KEEPER in it is the program, "$@" its arguments."""
    folder, old = program_for_all(script), os.environ.get("SANDBOOK_BOX")
    os.environ["SANDBOOK_BOX"] = folder + "/start"
    try:
        keeper = Keeper(**how)
    finally:
        os.environ.pop("SANDBOOK_BOX")
        if old:
            os.environ["SANDBOOK_BOX"] = old
    stop = keeper.stop

    def stop_and_remove():
        shutil.rmtree(folder, ignore_errors=True)
        return stop()

    keeper.stop = stop_and_remove
    return keeper


# One id, which is not 0 inside: what rootless containers give a service.
ONE_ID = '#!/bin/sh\nexec unshare --user --map-user=1000 --map-group=1000 KEEPER "$@"\n'
# One id, which is 0 inside.
ROOT_ALONE = '#!/bin/sh\nexec unshare -Ur KEEPER "$@"\n'
# A whole range of ids, 0 among them: what a system container gives. A child stays outside to write the maps.
RANGE = f"""#!{sys.executable} -I
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
me = os.getpid()
if os.fork() == 0:
    os.read(ready[0], 1)
    for kind in ("uid", "gid"):
        open(f"/proc/{{me}}/{{kind}}_map", "w").write("0 {box.UID_BASE + 200000} 200000")
    os.write(go[1], b"m")
    os._exit(0)
if ctypes.CDLL(None).unshare(0x10000000) != 0:
    sys.exit("no user namespace")
os.write(ready[1], b"r")
os.read(go[0], 1)
os.wait()
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
os.execv("KEEPER", sys.argv)
"""


def in_range(**how):
    """Root of a user namespace with many ids. What it must reach is bound to where everybody may go, in a mount namespace of its own."""
    stash = tempfile.mkdtemp(prefix="sandbook-range-")
    os.chmod(stash, 0o755)
    for name in ("image", "box"):
        os.mkdir(f"{stash}/{name}")
    folder = program_for_all(RANGE)
    script = f'mount --bind {box.image()} {stash}/image && mount --bind {box.support()} {stash}/box && exec {folder}/start "$@"'
    outer = Path(folder, "outer")
    outer.write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{script}' sh \"$@\"\n")
    outer.chmod(0o755)
    changed = {"SANDBOOK_BOX": str(outer), "SANDBOOK_IMAGE": f"{stash}/image", "SANDBOOK_BOX_SUPPORT": f"{stash}/box"}
    old = {k: os.environ.get(k) for k in changed}
    os.environ.update(changed)
    try:
        keeper = Keeper(uid_base=1000, **how)
    finally:
        for k, v in old.items():
            os.environ.pop(k)
            if v is not None:
                os.environ[k] = v
    stop = keeper.stop

    def stop_and_remove():
        status = stop()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(stash, ignore_errors=True)
        return status

    keeper.stop = stop_and_remove
    return keeper


IDENTITIES = {"Root": Keeper, "User": lambda: Keeper(user=True), "UserNamespace": lambda: through(ONE_ID, user=True)} if IS_ROOT else {"User": Keeper, "UserNamespace": lambda: through(ONE_ID)}


class Attacked(BoxTest):
    """A keeper of one identity for a class, a neighbour's session in it, and the host watched."""

    identity = "User"

    @classmethod
    def setUpClass(cls):
        cls.host, cls.box = Host(), None
        cls.mounts = Path("/proc/self/mountinfo").read_text()
        cls.keeper = IDENTITIES[cls.identity]()
        report = cls.keeper.report
        if report["tier"] > "T1":
            cls.keeper.stop()
            if "user namespaces" in str(report["problems"]):
                raise unittest.SkipTest(f"this machine makes no boxes for {cls.identity}: {report['problems']}")
            raise AssertionError(f"{report}\n{cls.keeper.log_text()[-2000:]}")
        cls.groups = report["features"]["cgroups"] != "none"
        cls.bystander = cls.keeper.open(copies=0)  # its processes are counted before and after
        cls.bystander.cell("mine = 'untouched'; open('mine.txt', 'w').write(mine); open('/dev/shm/mine', 'w').write(mine)")
        cls.settle()

    @classmethod
    def sessions_groups(cls):
        return {f"{g}/{s}" for g in cls.keeper.groups() for s in os.listdir(g) if s[:1] == "s" and s[1:].isdigit()}

    @classmethod
    def settle(cls):
        cls.still = set(cls.keeper.descendants())
        cls.others = cls.sessions_groups()
        cls.fds = cls.keeper.descriptors()

    @classmethod
    def tearDownClass(cls):
        try:
            assert not cls.host.changes(), cls.host.changes()
            cls.mounts = Path("/proc/self/mountinfo").read_text()
            super().tearDownClass()
        finally:
            cls.host.close()

    def setUp(self):
        self.box = self.keeper.open(**self.limits)
        self.assertEqual(self.box.opened.verdict, "ok", self.box.opened)

    def close(self, box):
        """Nothing of it is left: no process, no group, no descriptor of the keeper's."""
        self.assertEqual(box.close().verdict, "ok")
        self.assertEqual(sorted(set(self.keeper.descendants()) - self.still), [])
        self.assertEqual(self.sessions_groups() - self.others, set())
        self.assertLessEqual(self.keeper.descriptors(), self.fds)
        if box is self.box:
            self.box = None

    def unharmed(self):
        """The neighbour, the host, the keeper."""
        a = self.bystander.cell("print(mine, open('mine.txt').read(), open('/dev/shm/mine').read())")
        self.assertEqual((a.words, a.state), (["untouched"] * 3, "kept"), a)
        self.assertEqual(self.host.changes(), [])
        self.assertIsNone(self.keeper.process.poll())


def for_each_identity(cls):
    """Puts the class into its module once for each identity, in place of itself."""
    module = sys.modules[cls.__module__]
    for name in IDENTITIES:
        made = type(f"{cls.__name__}As{name}", (cls,), {"identity": name, "__module__": cls.__module__})
        setattr(module, made.__name__, made)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)
