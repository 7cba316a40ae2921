"""kill -9 at random moments: the next cell has the right state, or is told what was lost; nothing is left behind.

FAULTS: how many; SEED: which. A failure names the seed.
"""
import os
import random
import threading
import time
import unittest

from keeper import IS_ROOT, BoxTest, Keeper, for_each_user

FAULTS = int(os.environ.get("FAULTS", "40"))
SEED = int(os.environ.get("SEED", "1"))
ADD = "import time\nhistory.append({0})\ntime.sleep({1})"


@for_each_user
class Faults(BoxTest):
    def victims(self):
        found = {pid: name for pid, name in self.keeper.descendants().items() if pid not in self.still}
        return [pid for pid, name in found.items() if name != "box-init"]

    def kill_later(self, choice, after):
        def kill():
            time.sleep(after)
            pids = self.victims()
            if pids:
                try:
                    os.kill(choice.choice(pids), 9)
                except ProcessLookupError:
                    pass

        thread = threading.Thread(target=kill)
        thread.start()
        return thread

    def test_heads_and_copies_killed_at_random(self):
        choice = random.Random(SEED)
        self.box.cell("history = []")
        past = {1: []}  # cell -> the state after it
        for i in range(FAULTS):
            with self.subTest(seed=SEED, fault=i):
                thread = self.kill_later(choice, choice.random() * 0.15)
                before = past[max(past)]
                a = self.box.cell(ADD.format(i, round(choice.random() * 0.1, 3)))
                thread.join()
                shown = self.box.cell("history")
                cell = self.box.cells
                if shown.error == "NameError":
                    self.assertIn("lost", (a.state, shown.state), (a, shown))
                    self.box.cell("history = []")
                    past = {self.box.cells: []}
                    continue
                now = eval(shown.result)
                whole = a.verdict == "ok" and "rolled_back" not in (a.state, shown.state)
                if whole:
                    self.assertEqual(now, before + [i], (a, shown))
                else:
                    self.assertIn("rolled_back", (a.state, shown.state), (a, shown))
                    states = [*past.values(), *[p + [i] for p in past.values()]]
                    self.assertIn(now, states, (a, shown))
                past[cell] = now


class Ends(unittest.TestCase):
    def test_an_init_that_is_killed_ends_its_session_only(self):
        keeper = Keeper()
        box, other = keeper.open(), keeper.open()
        other.cell("x = 1")
        request = box.begin_cell("import time; time.sleep(30)")
        time.sleep(0.3)
        inits = sorted(pid for pid, name in keeper.descendants().items() if name == "box-init")
        os.kill(inits[0], 9)
        a = keeper.answer(box.id, request)
        self.assertEqual((a.verdict, a.state), ("failed", "lost"), a)
        self.assertEqual(other.cell("x").result, "1")
        self.leaves_nothing(keeper)

    def test_a_zygote_that_is_killed_ends_the_keeper_in_order(self):
        keeper = Keeper()
        box = keeper.open()
        box.cell("x = 1")
        began = keeper.descendants()
        zygote = min(pid for pid, name in began.items() if name == "python3")
        os.kill(zygote, 9)
        keeper.process.wait(30)
        self.leaves_nothing(keeper, began)

    def test_a_keeper_that_is_killed_takes_everything_along(self):
        keeper = Keeper()
        box = keeper.open()
        for i in range(3):
            box.cell(f"x = {i}")
        box.call("vars")
        began = keeper.descendants()
        os.kill(keeper.process.pid, 9)
        keeper.process.wait(30)
        self.gone(began)
        Keeper().stop()  # the next one removes the groups
        self.assertEqual(keeper.groups() if IS_ROOT else [], [])
        keeper.socket.close()

    def gone(self, pids):
        for _ in range(100):
            left = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
            if not left:
                return
            time.sleep(0.05)
        self.fail(f"processes left: {left}")

    def leaves_nothing(self, keeper, began=None):
        began = began or keeper.descendants()
        keeper.stop()
        self.gone(began)
        self.assertEqual(keeper.groups(), [])


if __name__ == "__main__":
    unittest.main()
