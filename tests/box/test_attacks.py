"""What a box must withstand: the programs of attacks/, tried on a keeper of root's, of a plain user's, and inside a user
namespace.

After each program the next cell of the same session answers, a neighbour's session is as it was, the host's files, mounts, name
and queues are unchanged; when the session closes, no process, group or descriptor is left.
"""
import os
import platform
import sys
import unittest

from attacks import catalogue
from attacks.world import IDENTITIES, Attacked

TOOLS = catalogue.tools()
LOST = ("lost", "rolled_back")
SPOILT = ("interpreter", "poison")  # a new interpreter after each


class Programs(Attacked):
    """The programs of one kind share a session; one that is marked "fresh" has its own."""

    kind = None
    limits = {"memory_bytes": 384 << 20, "pids": 48}

    def setUp(self):
        cls = type(self)
        if not cls.box:
            cls.box = self.keeper.open(**self.limits)
            self.assertEqual(cls.box.opened.verdict, "ok", cls.box.opened)
            cls.armed = False

    def tearDown(self):
        if self.alone:
            self.renew()

    @classmethod
    def tearDownClass(cls):
        try:
            if cls.box:
                cls("renew").renew()
        finally:
            super().tearDownClass()

    def renew(self):
        box, type(self).box = self.box, None
        if box:
            self.close(box)

    alone = True  # also when it fails on the way

    def attack(self, p):
        if "x86_64" in p.options and platform.machine() != "x86_64":
            self.skipTest("machine code for x86_64")
        if "groups" in p.options and not self.groups:
            self.skipTest("no control groups under this keeper: only mapped memory is counted (docs/sandbox.md, T1)")
        if "fresh" in p.options:
            self.renew()
            self.setUp()
        cls = type(self)
        if not self.armed:
            a = self.box.cell(TOOLS)
            self.assertEqual((a.verdict, a.error), ("ok", None), a)
            cls.armed = True
        a = self.box.cell(p.code, timeout_ms=int(p.options.get("timeout", 30000)), grace_ms=200)
        cls.armed = a.state == "kept" and p.kind not in SPOILT and "reset" not in p.options
        self.judge(p, a)
        if p.kind in SPOILT or "reset" in p.options:
            self.assertVerdict(self.box.reset(), "ok")
        self.answers()
        self.unharmed()
        self.alone = "fresh" in p.options

    def judge(self, p, a):
        if p.verdicts:
            self.assertIn(a.verdict, p.verdicts, a)
            if a.verdict == "crash":
                self.assertIn(a.state, LOST, a)
                if p.signals:
                    self.assertIn(a.done["signal"], p.signals, a)
            return
        self.assertVerdict(a, "ok", "kept")
        words = set(a.words) | ({a.error} if a.error else set())
        self.assertTrue(words, a)
        self.assertLessEqual(words, p.words, a)

    def answers(self):
        a = self.box.cell("print(6 * 7)")
        self.assertEqual((a.verdict, a.out), ("ok", b"42\n"), a)


def test_of(p, identity):
    def test(self):
        self.attack(p)

    if "once" in p.options and identity != next(iter(IDENTITIES)) and os.environ.get("ATTACKS") != "all":
        return unittest.skip("tried as another identity; ATTACKS=all tries it as each")(test)
    expected = p.options.get("hole") == "" or (p.options.get("hole") == "plain" and identity != "Root")
    return unittest.expectedFailure(test) if expected else test


def make_tests():
    module = sys.modules[__name__]
    for identity in IDENTITIES:
        for kind in catalogue.KINDS:
            tests = {p.method: test_of(p, identity) for p in catalogue.programs(kind)}
            name = f"{kind.capitalize()}As{identity}"
            setattr(module, name, type(name, (Programs,), {"kind": kind, "identity": identity, "__module__": __name__, **tests}))


make_tests()
del Programs, Attacked

if __name__ == "__main__":
    unittest.main()
