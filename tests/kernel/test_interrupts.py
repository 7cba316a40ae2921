"""SIGINT: ends the cell it is meant for, at any moment, and nothing else."""

import os
import threading
import time
import unittest

from driver import KernelTest

LOOPS = {
    "a loop": "while True: pass",
    "a sleep": "import time; time.sleep(100)",
    "a system call": "import signal; signal.pause()",
    "a child process": "import subprocess; subprocess.run(['sleep', '100'])",
    "a shell line": "!sleep 100",
    "a shell cell": "get_ipython().run_cell_magic('bash', '', 'sleep 100; sleep 100')",
    "an event loop": "import asyncio; asyncio.run(asyncio.sleep(100))",
    "a lock": "import threading; threading.Event().wait()",
    "a queue": "import queue; queue.Queue().get()",
    "numpy": "import numpy as np\nwhile True: np.ones(1000).sum()",
}


def processes(command: str) -> list[str]:
    """Processes whose command line begins like this."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                line = file.read()
        except OSError:
            continue
        if line.startswith(command):
            found.append(line)
    return found


def left(command: str, patience_s: float = 20) -> list[str]:
    """Those of them that don't end: one that was killed is there until it has had the processor once more."""
    end = time.monotonic() + patience_s
    while (found := processes(command)) and time.monotonic() < end:
        os.sched_yield()
    return found


class Interrupts(KernelTest):
    def interrupted(self, code: str, word: str = "begun") -> dict:
        self.session.start(f"print({word!r})\n{code}")
        self.session.wait_printed(word)
        self.session.interrupt()
        # one that comes just before a blocking call is seen when that ends, as in any Python: then another does it
        again = threading.Timer(10, self.session.interrupt)
        again.start()
        reply = self.session.finish()
        again.cancel()
        self.assertEqual(reply["status"], "error", reply)
        self.assertEqual(reply["error"]["name"], "KeyboardInterrupt", reply)
        return reply

    def test_whatever_runs_is_interrupted_and_variables_stay(self):
        self.ok("x = 41")
        for name, code in LOOPS.items():
            with self.subTest(name):
                self.interrupted(code)
                self.assertEqual(self.value("x + 1"), "42")

    def test_the_line_that_ran_is_named(self):
        self.session.start("import time\n\nwhile True:\n    print('begun'); time.sleep(100)")
        self.session.wait_printed("begun")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["line"], 4)

    def test_top_level_await_is_interrupted(self):
        self.ok("import asyncio")
        self.interrupted("await asyncio.sleep(100)")
        self.assertEqual(self.value("await asyncio.sleep(0, 5)"), "5")

    def test_a_repr_that_never_returns_is_interrupted(self):
        self.session.start("class R:\n    def __repr__(self):\n        print('in repr')\n        while True: pass\nR()")
        self.session.wait_printed("in repr")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["name"], "KeyboardInterrupt")
        self.assert_alive()

    def test_a_cell_may_catch_the_interrupt(self):
        self.session.start(
            "try:\n    print('begun')\n    while True: pass\nexcept KeyboardInterrupt:\n    x = 'caught'\nx"
        )
        self.session.wait_printed("begun")
        self.session.interrupt()
        self.assertEqual(self.session.finish().text, "'caught'")

    def test_drawing_is_interrupted_and_still_answered(self):
        self.session.start(
            "from matplotlib.lines import Line2D\n"
            "import matplotlib.pyplot as plt\n"
            "class Slow(Line2D):\n"
            "    def draw(self, renderer):\n"
            "        print('drawing')\n"
            "        while True: pass\n"
            "plt.plot([1]); plt.title('done before'); plt.show()\n"
            "plt.gca().add_line(Slow([0, 1], [0, 1]))\n"
            "x = 7"
        )
        self.session.wait_printed("drawing")
        self.session.interrupt()
        reply = self.session.finish()
        self.assertEqual(reply["error"]["name"], "KeyboardInterrupt")
        self.assertIn("drawing the figures was interrupted", reply["notes"])
        self.assertEqual([figure["title"] for figure in reply["figures"]], ["done before"])
        self.assertEqual(self.value("x"), "7")
        self.assertEqual(self.value("plt.get_fignums()"), "[]")

    def test_a_signal_between_cells_is_without_effect(self):
        for _ in range(50):
            self.session.interrupt()
        self.assert_alive()
        self.session.interrupt()
        self.assertEqual(self.value("import time; time.sleep(0.01); 3"), "3")

    def test_a_storm_of_signals_loses_no_claim(self):
        for round_ in range(60):
            self.session.start("sum(range(20000))" if round_ % 2 else "1/0")
            for _ in range(round_ % 7):
                self.session.interrupt()
            reply = self.session.finish()
            self.assertIn(reply["status"], ("ok", "error"))
            if reply["error"]:
                self.assertIn(reply["error"]["name"], ("KeyboardInterrupt", "ZeroDivisionError"))
        self.assert_alive()

    def test_own_handlers_serve_the_cell_only(self):
        self.ok("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
        self.interrupted("while True: pass")
        self.ok("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])")
        self.interrupted("while True: pass", "again")

    def test_an_alarm_between_cells_harms_nothing(self):
        self.ok(
            "import signal\n"
            "def ring(*_):\n"
            "    print('ringing')\n"
            "    raise TimeoutError('too late')\n"
            "signal.signal(signal.SIGALRM, ring)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.05)"
        )
        self.session.wait_printed("ringing")
        self.assert_alive()

    def test_an_alarm_in_a_cell_works(self):
        self.ok("import signal, time\ndef ring(*_): raise TimeoutError('late')\nsignal.signal(signal.SIGALRM, ring)")
        self.error("signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(100)", "TimeoutError")

    def test_a_child_of_an_interrupted_line_is_gone(self):
        for _ in range(4):  # before it is started, while it is, and behind that
            self.interrupted("!sleep 98761 & sleep 98762")
            self.assertEqual(left("sleep\0009876"), [])
            self.session.start("!echo begun; sleep 98761 & sleep 98762")
            self.session.wait_printed("begun")
            self.session.interrupt()
            self.assertEqual(self.session.finish()["error"]["name"], "KeyboardInterrupt")
            self.assertEqual(left("sleep\0009876"), [])

    def test_interrupts_raised_by_the_cell_itself_work_more_than_once(self):
        code = (
            "import os, signal\nn = 0\n"
            "for _ in range(3):\n"
            "    try:\n        os.kill(os.getpid(), signal.SIGINT)\n        signal.pause()\n"
            "    except KeyboardInterrupt:\n        n += 1\n"
            "n"
        )
        self.assertEqual(self.value(code), "3")


class Calls(KernelTest):
    def test_a_request_other_than_a_cell_can_be_interrupted(self):
        self.ok(
            "import sys, types, kernel.files\n"
            "m = types.ModuleType('kernel.files.intake')\n"
            "def intake(name, cwd):\n"
            "    print('working')\n"
            "    while True: pass\n"
            "m.intake = intake\n"
            "sys.modules['kernel.files.intake'] = kernel.files.intake = m"
        )
        self.session.send(3, {"op": "intake", "name": "a.csv"})
        self.session.wait_printed("working")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["name"], "KeyboardInterrupt")
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
