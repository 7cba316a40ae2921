"""Boxes that wait ready for a session, and the interpreters they are forked from: taken, replaced, killed."""
import os
import signal
import time
import unittest
from pathlib import Path

from attacks import catalogue
from keeper import CANCEL, IS_ROOT, MIB, OPEN, POOL, Keeper, Session, for_each_user

TERMS = {"memory_bytes": 384 * MIB, "disk_bytes": 64 * MIB, "pids": 64, "cpu_pct": 200, "copies": 4}
NUMBERS = "import random, numpy as np, uuid; print(random.random(), np.random.rand(), np.random.default_rng().random(), uuid.uuid4())"
SEEN = """
import os, sys
print(sorted(k for k in globals() if k != 'SEEN'), len(In), Out, get_ipython().execution_count)
print(os.getcwd(), sorted(os.listdir('.')), sorted(os.listdir('/tmp')), sorted(os.environ), sorted(os.listdir('/proc/self/fd'))[:-1])
print(os.getresuid(), sorted(sys.modules) == sorted(set(sys.modules)), len(sys.modules), sys.path, sys.argv, os.getpid())
"""


class Shared(unittest.TestCase):
    """One keeper for a class; a test leaves no session and no wish."""

    user = False

    @classmethod
    def setUpClass(cls):
        cls.keeper = Keeper(user=cls.user)
        cls.addClassCleanup(cls.end)
        if cls.keeper.report["tier"] > "T1":
            raise unittest.SkipTest(str(cls.keeper.report["problems"]))

    @classmethod
    def end(cls):
        began = cls.keeper.descendants()
        status = cls.keeper.stop()
        left = [pid for pid in began if os.path.exists(f"/proc/{pid}")]
        assert (status, left, cls.keeper.groups()) == (0, [], []), (status, left, cls.keeper.groups(), cls.keeper.log_text()[-3000:])

    def setUp(self):
        self.opened = []

    def tearDown(self):
        self.keeper.send(POOL, 0, 0, {"boxes": 0})
        for box in self.opened:
            box.close()
        self.until(lambda: len(self.boxes()) == 1)

    # ---- what is there ----

    def children(self, name):
        """Of the keeper itself: zygotes are "python3", inits of base and boxes "box-init"."""
        found = set()
        for pid, is_called in self.keeper.descendants().items():
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            if is_called == name and int(stat[stat.rindex(")") + 2 :].split()[1]) == self.keeper.process.pid:
                found.add(pid)
        return found

    def until(self, what, seconds=120):
        """Busy machines take their time; what never comes is a failure."""
        late = time.monotonic() + seconds
        while not (seen := what()):
            self.assertLess(time.monotonic(), late, self.keeper.log_text()[-3000:])
            time.sleep(0.01)
        return seen

    def boxes(self):
        return self.children("box-init")

    def heads(self):
        """pid namespace -> pid of its head, for each box that has one."""
        found = {}
        for pid, name in self.keeper.descendants().items():
            if name == "python3" and pid not in self.children("python3"):
                try:
                    found[os.readlink(f"/proc/{pid}/ns/pid")] = pid
                except OSError:
                    continue
        return found

    def pool(self, boxes=2, **more):
        """Asks for so many and waits until their heads are there."""
        used = len(self.heads())
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": boxes} | more)
        return self.until(lambda: len(self.heads()) == used + boxes and self.heads())

    def open(self, **terms):
        box = self.keeper.open(**(TERMS | terms))
        self.assertEqual(box.opened.verdict, "ok", box.opened)
        self.opened.append(box)
        return box

    def close(self, box):
        self.assertEqual(box.close().verdict, "ok")
        self.opened.remove(box)

    def place(self, box):
        return self.value(box, "import os; os.readlink('/proc/self/ns/pid')").strip("'")

    def value(self, box, code, **limits):
        a = box.cell(code, **limits)
        self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a.result


class LargePages(Shared):
    def test_what_sessions_share_is_one_large_page_in_2_mib(self):
        """Else each fork copies, and each end takes apart, what the kernel notes of 45,000 small ones."""
        if not Path("/sys/kernel/mm/transparent_hugepage").exists() or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 1):
            raise unittest.SkipTest("this kernel makes no large pages when asked")
        rows = [r.split() for r in Path(f"/proc/{min(self.children('python3'))}/smaps_rollup").read_text().splitlines()]
        kib = {r[0]: int(r[1]) for r in rows if r[-1] == "kB"}
        self.assertGreater(kib["AnonHugePages:"], kib["Anonymous:"] / 10)  # nearly all, unless memory lies in pieces


@for_each_user
class Pool(Shared):
    def test_an_open_takes_what_waits_and_the_pool_fills_again(self):
        before = self.pool()
        boxes = [self.open(), self.open()]
        places = [self.place(box) for box in boxes]
        self.assertEqual(set(places), set(before))
        fresh = self.until(lambda: len(self.heads()) == 4 and self.heads())
        self.assertEqual(len(set(fresh) - set(before)), 2)
        for box in boxes:
            self.close(box)
        self.assertIn(self.place(self.open()), set(fresh) - set(before))  # a used one never comes back

    def test_other_terms_get_a_box_of_their_own(self):
        before = self.pool()
        for other in ({"memory_bytes": 400 * MIB}, {"disk_bytes": 32 * MIB}, {"pids": 65}, {"cpu_pct": 100}, {"copies": 5}):
            box = self.open(**other)
            self.assertNotIn(self.place(box), before, other)
            self.close(box)

    def test_one_that_is_still_being_made_is_waited_for(self):
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 1})
        self.until(lambda: len(self.boxes()) == 2)
        self.assertEqual(self.value(self.open(), "1 + 1"), "2")

    def test_more_sessions_than_wait(self):
        self.pool()
        boxes = self.opened = [Session(self.keeper, n) for n in range(1001, 1007)]
        for box in boxes:
            self.keeper.send(OPEN, box.id, 0, TERMS)
        opened = set()
        self.keeper.stray = lambda kind, s, r, payload: opened.add(s)
        while len(opened) < len(boxes):
            kind, _, s, _, payload, _ = self.keeper.receive()
            self.assertIn(b'"ok"', payload)
            opened.add(s)
        del self.keeper.stray
        self.assertEqual(len({self.place(box) for box in boxes}), 6)

    def test_random_numbers_are_never_shared(self):
        self.pool()
        seen = [word for _ in range(4) for word in self.open().cell(NUMBERS).words]
        self.assertEqual(len(seen), len(set(seen)), seen)

    def test_a_seed_of_the_persons_holds(self):
        self.pool(boxes=1)
        box = self.open()
        first = self.value(box, "import random, numpy as np; random.seed(1); np.random.seed(1); (random.random(), float(np.random.rand()))")
        self.assertEqual(first, self.value(self.open(), "import random, numpy as np; random.seed(1); np.random.seed(1); (random.random(), float(np.random.rand()))"))
        again = "random.seed(1); np.random.seed(1)"
        self.value(box, again)
        self.assertEqual(self.value(box, "(random.random(), float(np.random.rand()))"), first)

    def test_it_looks_like_any_other_session(self):
        other = self.open(pids=65).cell(SEEN)
        self.pool(boxes=1)
        from_pool = self.open().cell(SEEN)
        self.assertEqual(from_pool.out.decode(), other.out.decode())
        self.assertEqual((from_pool.files, from_pool.err, from_pool.told), ({}, b"", []))

    def test_the_first_cell_can_be_undone_and_a_death_costs_no_more_than_elsewhere(self):
        self.pool(boxes=1)
        box = self.open()
        self.value(box, "x = 1")
        self.assertEqual(box.back().done["cell"], 0)
        self.assertEqual(box.cell("x").error, "NameError")
        self.value(box, "x = 2")
        a = box.cell("import os; os._exit(3)")
        self.assertEqual((a.verdict, a.state), ("crash", "rolled_back"), a)
        self.assertIn("exit status 3", a.why)
        self.assertEqual(self.value(box, "x"), "2")

    def test_nothing_is_made_between_a_request_and_its_answer(self):
        self.pool()
        box = self.open()
        request = box.begin_cell("print('on', flush=True)\nimport time; time.sleep(60)")
        while self.keeper.receive()[0] != 33:
            pass
        before = self.boxes()
        for _ in range(40):
            self.assertEqual(self.boxes(), before)
            time.sleep(0.01)
        self.keeper.send(CANCEL, box.id, request)
        self.assertEqual(self.keeper.answer(box.id, request).verdict, "cancelled")
        self.until(lambda: len(self.boxes()) == len(before) + 1)

    def test_without_a_wish_they_go(self):
        self.pool()
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 0})
        self.until(lambda: len(self.boxes()) == 1)
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 1})
        self.until(lambda: len(self.boxes()) == 2)
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 1, "pids": 70})  # other terms: others
        self.assertEqual(self.value(self.open(pids=70), "1"), "1")

    def test_one_that_dies_while_it_waits_is_replaced(self):
        before = self.pool()
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        self.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in before.values()))
        self.assertEqual(self.value(self.open(), "1 + 1"), "2")
        self.until(lambda: len(set(self.heads().values()) - set(before.values())) >= 2)  # numbers of namespaces come again

    def test_wishes_that_make_no_sense_are_survived(self):
        for wish in (b"", b"{", b"[]", b"null", {"boxes": -1}, {"boxes": "2"}, {"boxes": 1 << 62, "pids": -1}, {"zygote_forks": -5, "zygote_age_ms": "x"}):
            self.keeper.send(POOL, 0, 0, wish)
            self.keeper.send(POOL, 0, 0, {"boxes": 0})
        self.assertEqual(self.value(self.open(), "1"), "1")

    def test_attacks_on_privileges_meet_the_same_walls(self):
        self.pool(boxes=1)
        box = self.open()
        self.value(box, catalogue.tools())
        for p in catalogue.programs("privileges"):
            if p.verdicts or set(p.options) & {"fresh", "reset", "hole", "x86_64", "groups"}:
                continue
            with self.subTest(p.name):
                a = box.cell(p.code)
                self.assertEqual((a.verdict, a.state), ("ok", "kept"), a)
                self.assertLessEqual(set(a.words) | ({a.error} if a.error else set()), p.words, a)


@for_each_user
class Zygotes(Shared):
    def bases(self, box):
        """Where the interpreter and the C library lie."""
        code = "[l.split('-')[0] for l in open('/proc/self/maps') if l.endswith(('/libc.so.6\\n', '[heap]\\n'))][:2]"
        return self.value(box, code)

    def test_another_takes_its_place_after_so_many_forks(self):
        box, same = self.open(), self.open()
        first = self.children("python3")  # now, since the one before may only just have been killed
        self.value(box, "x = 41")
        self.assertEqual(self.bases(box), self.bases(same))  # which is why
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 0, "zygote_forks": 2})
        second = self.until(lambda: (now := self.children("python3")).isdisjoint(first) and now)
        other = self.open()
        self.assertNotEqual(self.bases(other), self.bases(box))
        self.assertNotEqual(self.value(other, "hash('a word')"), self.value(box, "hash('a word')"))
        self.assertEqual(self.value(box, "x + 1"), "42")
        self.assertEqual(box.reset().verdict, "ok")  # whose interpreter is the new one's child
        self.assertEqual(self.bases(box), self.bases(other))
        a = same.cell("import os; os._exit(5)")  # and an old one's end is known still
        self.assertIn("exit status 5", a.why)
        self.assertTrue(second)

    def test_another_takes_its_place_at_some_age_and_what_waits_with_it(self):
        first, waits = self.children("python3"), self.pool(boxes=1)
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 1, "zygote_age_ms": 1})
        self.until(lambda: not self.children("python3") & first)
        self.keeper.send(POOL, 0, 0, TERMS | {"boxes": 1})
        self.until(lambda: self.heads() and not set(self.heads().values()) & set(waits.values()))
        self.assertEqual(self.value(self.open(), "1 + 1"), "2")

    def kill_zygote(self):
        for pid in self.children("python3"):
            os.kill(pid, signal.SIGKILL)

    def test_a_zygote_that_is_killed_takes_no_session_along(self):
        box = self.open()
        self.value(box, "x = [1]")
        self.kill_zygote()
        self.value(box, "x.append(2)")
        self.assertEqual(self.value(self.open(), "6 * 7"), "42")  # waits for the next one
        self.assertEqual(self.value(box, "x"), "[1, 2]")
        self.assertEqual(box.back().done["cell"], 2)
        a = box.cell("import os; os._exit(4)")
        self.assertIn("exit status 4", a.why)

    def test_a_death_is_known_while_there_is_no_zygote(self):
        for copies, state in ((0, "lost"), (2, "rolled_back")):
            box = self.open(copies=copies)
            self.value(box, "x = 1")
            self.kill_zygote()
            a = box.cell("import os; os._exit(9)")
            self.assertEqual((a.verdict, a.state), ("crash", state), a)
            self.assertIn("exit status 9", a.why)
            self.assertEqual(self.value(box, "1 + 1"), "2")

    def test_a_head_that_was_on_its_way_comes_from_the_next_one(self):
        for _ in range(4):
            box = Session(self.keeper, 2000 + _)
            self.opened.append(box)
            self.keeper.send(OPEN, box.id, 0, TERMS)
            self.kill_zygote()
            self.assertEqual(self.keeper.answer(box.id, 0).verdict, "ok")
            self.assertEqual(self.value(box, "1 + 1"), "2")


@unittest.skipUnless(IS_ROOT, "one uid for all when not root")
class Ends(unittest.TestCase):
    def test_a_base_that_is_killed_ends_the_keeper(self):
        keeper = Keeper()
        box = keeper.open()
        began = keeper.descendants()
        os.kill(min(pid for pid, name in began.items() if name == "box-init"), signal.SIGKILL)
        keeper.process.wait(30)
        self.assertEqual([pid for pid in began if os.path.exists(f"/proc/{pid}")], [])
        self.assertEqual(keeper.groups(), [])
        keeper.stop()
        del box


    def test_those_that_wait_have_a_uid_each(self):
        keeper = Keeper()
        self.addCleanup(keeper.stop)
        keeper.send(POOL, 0, 0, TERMS | {"boxes": 3})
        late = time.monotonic() + 30
        uids = set()
        while len(uids) < 4 and time.monotonic() < late:  # the zygote's, and three
            pids = [pid for pid, name in keeper.descendants().items() if name == "python3"]
            uids = {os.stat(f"/proc/{pid}").st_uid for pid in pids if os.path.exists(f"/proc/{pid}")}
            time.sleep(0.01)
        self.assertEqual(len(uids), 4, uids)
        self.assertNotIn(0, uids)


if __name__ == "__main__":
    unittest.main()
