"""What a session costs, and that sharing it changes nothing for a cell."""

import re

from driver import KernelTest, Session

KIB = 1024
CHART = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nline, = ax.plot([1, 2])"


def private_kib(session: Session) -> int:
    with open(f"/proc/{session.pid}/smaps_rollup") as file:
        return int(re.search(r"Private_Dirty: +(\d+)", file.read())[1])


class TestMemory(KernelTest):
    def test_idle(self):
        self.ok("1")
        second = Session()  # a page that only one process has left counts as private, whoever made it
        self.addCleanup(second.close)
        self.assertLess(private_kib(second), 3 * KIB)
        second.run("print(1)")
        self.assertLess(private_kib(second), 4 * KIB)

    def test_chart(self):
        second = Session()
        self.addCleanup(second.close)
        self.ok(CHART)
        self.assertLess(private_kib(self.session), 16 * KIB)

    def test_a_figure_that_is_kept_keeps_no_pixels(self):
        self.ok(CHART)
        before = private_kib(self.session)
        for i in range(5):
            self.ok(f"kept{i}, ax = plt.subplots()\n_ = ax.plot([1, 2])\nplt.show()")
        self.assertLess(private_kib(self.session) - before, 8 * KIB)


class TestSharing(KernelTest):
    def test_what_was_preloaded_is_not_counted(self):
        self.assertEqual(self.value("import json, sys\nsys.getrefcount(json.dumps) == sys.getrefcount(None)"), "True")

    def test_what_a_cell_makes_is_counted_and_freed(self):
        self.ok("import gc, sys, weakref\nclass A: pass\na = A()\nw = weakref.ref(a)\nx = []")
        self.assertEqual(self.value("sys.getrefcount(x)"), "2")
        self.assertEqual(self.value("del a\nw() is None"), "True")
        self.assertEqual(self.value("b = A(); b.b = b; w = weakref.ref(b)\ndel b\ngc.collect()\nw() is None"), "True")

    def test_a_figure_can_be_used_after_it_was_drawn(self):
        self.ok(CHART)
        self.assertEqual(self.value("bool(ax.set_title('t').get_window_extent().width > 0)"), "True")
        self.assertEqual(self.value("import io\nfig.savefig(data := io.BytesIO())\nlen(data.getvalue()) > 1000"), "True")

    def test_objects_of_the_zygote_survive_being_replaced(self):
        self.ok("import json\nfor _ in range(1000):\n    json.dumps = lambda *a: 1")
        self.ok("import string\ndel string.ascii_letters\nstring.ascii_letters = 'x'")
        self.assert_alive()


class TestQuiet(KernelTest):
    def test_unknown_fonts_and_characters_print_nothing(self):
        reply = self.ok(CHART + "\nplt.rcParams['font.family'] = ['SimHei']\nax.set_title('月', fontname='Nope')")
        self.assertEqual((reply.stdout, reply.stderr), ("", ""))
