"""What the keeper itself may do once it serves: its filter, its rights, its descriptors; as root, as a plain user, and in a user namespace."""
import re
import unittest
from pathlib import Path

from attacks.world import IDENTITIES, in_range, through
from keeper import IS_ROOT, MIB, Keeper

SETGID, SETUID, DAC_OVERRIDE, FOWNER, SYS_ADMIN = 6, 7, 1, 3, 21
UNIT = Path(__file__).resolve().parents[2] / "config/systemd/sandbook-box@.service"
KEPT = 1 << SETGID | 1 << SETUID | 1 << DAC_OVERRIDE | 1 << FOWNER | 1 << SYS_ADMIN


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


class Confined(unittest.TestCase):
    def look(self, identity, start, allowed):
        keeper = start()
        self.addCleanup(lambda: keeper.process.poll() is None and keeper.stop())
        if keeper.report["tier"] > "T1":
            self.skipTest(f"this machine makes no boxes for {identity}")
        s = status(keeper.process.pid)
        self.assertEqual((s["Seccomp"], s["NoNewPrivs"]), ("2", "1"))
        for name in ("CapEff", "CapPrm", *(("CapBnd",) if allowed else ())):
            self.assertEqual(int(s[name], 16) & ~allowed, 0, f"{name} {s[name]}")
        self.assertEqual(int(s["CapAmb"], 16) | int(s["CapInh"], 16), 0)
        # and all that it is for still works
        self.assertEqual(keeper.report["features"]["files"], "overlay")
        box = keeper.open(memory_bytes=384 * MIB)
        self.assertEqual(box.put("in.txt", b"put").verdict, "ok")
        a = box.cell("open('out.txt', 'w').write(open('in.txt').read() + ' and made')")
        self.assertEqual((a.verdict, a.files), ("ok", {"out.txt": b"put and made"}), a)
        self.assertEqual(box.cell("import os; os.chmod('.', 0)").verdict, "ok")
        self.assertEqual(box.reset().verdict, "ok")  # whatever became of its folder
        self.assertEqual(box.cell("open('out.txt').read()").verdict, "ok")
        self.assertEqual(box.cell("import os; os.abort()").state, "rolled_back")
        self.assertEqual(box.cell("while True: pass", timeout_ms=300, grace_ms=200).verdict, "timeout")
        self.assertEqual(box.close().verdict, "ok")
        self.assertEqual(keeper.stop(), 0)

    def test_as_each_identity(self):
        for identity, start in IDENTITIES.items():
            with self.subTest(identity):
                self.look(identity, start, KEPT if identity == "Root" else 0)

    @unittest.skipUnless(IS_ROOT, "only root has ids to give")
    def test_as_root_of_a_user_namespace_with_many_ids(self):
        self.look("a range of ids", in_range, KEPT)

    @unittest.skipUnless(IS_ROOT, "only root has rights to give")
    def test_with_the_rights_of_its_service(self):
        given = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.M)[1].lower().replace("cap_", "+").replace(" ", ",")
        script = f'#!/bin/sh\nexec setpriv --no-new-privs --inh-caps -all --bounding-set -all,{given} KEEPER "$@"\n'
        self.look("the service", lambda: through(script), KEPT & ~(1 << SYS_ADMIN))


class Once(unittest.TestCase):
    def test_an_interpreter_for_one_session_does_what_others_do(self):
        keeper = Keeper(once=True)
        self.addCleanup(lambda: keeper.process.poll() is None and keeper.stop())
        self.assertLessEqual(keeper.report["tier"], "T1")  # the quick escapes were tried on it
        box = keeper.open(memory_bytes=768 * MIB, copies=2)
        self.assertEqual(box.cell("import sys; {'scipy', 'sklearn', 'seaborn'} & set(sys.modules)").result, "set()")
        drawn = box.cell("import seaborn, sklearn.ensemble\nseaborn.barplot(x=['a', 'é'], y=[1, 2])\nx = 1")
        self.assertEqual((drawn.verdict, drawn.err, len(drawn.claim["figures"])), ("ok", b"", 1), drawn)
        self.assertEqual(box.cell("x = 2").verdict, "ok")
        self.assertEqual(box.back().done["cell"], 2)
        self.assertEqual(box.cell("x").result, "1")
        self.assertEqual(box.reset().verdict, "ok")
        self.assertEqual(box.cell("import seaborn; 'x' in globals()").result, "False")
        self.assertEqual(keeper.stop(), 0)


if __name__ == "__main__":
    unittest.main()
