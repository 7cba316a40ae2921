"""A cell that is Python and nothing else never meets IPython's transformers: they would have left it as it is."""

import itertools
import sys
import unittest

from driver import SANDBOX, KernelTest

sys.path.insert(0, SANDBOX)
from IPython.core.inputtransformer2 import TransformerManager  # noqa: E402
from kernel import transforms  # noqa: E402

PARTS = (
    "x = 1", "if x:", "    y = 2", "\tz = 3", "", "  ", "\t", "\f", "# note", "%time x", "%%bash", "x = %pwd", "x = !ls", "!ls", "a != b",
    "  !ls", "x %= 3", "y = x % 3", "f'{x!r}'", "x?", "?x", "x??", "print('why?')", ",f a b", ";f a", "/f 1", "  /f", "x = (1", ", 2)",
    "x = \\", "'''", "'a' ", ">>> x", "... x", "In [1]: x", "   ...: y", "...", "pip install numpy", "pip = 3", "conda list", "await f()",
    "x ; y", "d['%s' % 3]", "x = # c", "=", "@f", "é = '\u2028'", "x\r", "for i in r:  ", "\x0c%pwd", "async def f(): pass", "'''  '''", "=%pwd",
)  # fmt: skip


def plainly(code: str) -> str | None:
    """What all the transformers make of it; None: they raise."""
    try:
        return TransformerManager.transform_cell(transforms.Transformers(), code)
    except Exception:
        return None


class Transforms(unittest.TestCase):
    def test_a_cell_of_python_is_left_as_the_transformers_leave_it(self):
        manager, skipped = transforms.Transformers(), 0
        for parts in itertools.chain(itertools.product(PARTS, repeat=1), itertools.product(PARTS, repeat=2), zip(PARTS, PARTS[7:], PARTS[19:])):
            for code in ("\n".join(parts), "\n".join(parts) + "\n"):
                want = plainly(code)
                if want is not None:
                    with self.subTest(code=code):
                        self.assertEqual(manager.transform_cell(code), want)
                skipped += transforms._special(code) is None
        self.assertGreater(skipped, 500)

    def test_a_transformer_that_a_person_adds_sees_every_cell(self):
        manager = transforms.Transformers()
        manager.cleanup_transforms.append(lambda lines: [line.replace("x", "y") for line in lines])
        self.assertEqual(manager.transform_cell("x = 1"), "y = 1\n")


class Coroutines(KernelTest):
    def test_what_awaits_is_awaited(self):
        for code in ("import asyncio\nawait asyncio.sleep(0)\n5", "async with A() as a: pass\na", "[i async for i in g()][0]"):
            with self.subTest(code=code):
                self.ok("class A:\n    async def __aenter__(s): return 5\n    async def __aexit__(s, *e): pass\nasync def g():\n    yield 5")
                self.assertEqual(self.value(code), "5")

    def test_what_is_printed_is_not_kept(self):
        self.ok("import sys\nwrite = sys.stdout.write\nprint('x' * 1000)")
        self.assertEqual(self.value("len(get_ipython().history_manager.outputs), sys.stdout.write == write"), "(0, True)")
