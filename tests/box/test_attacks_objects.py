"""Objects that are hostile to whoever looks at them: the list of variables, checkpoints, copies and the cells after them stay right (3.6, 3.19).

An object costs itself: it is left out by name, or shown by its type. What a person's code does to their own variables is theirs.
"""
import unittest

from keeper import CALL
from test_checkpoints import CheckpointTest

# Looked at by name, by type and by content. What follows it is in the checkpoint, or said to be left out.
OBJECTS = {
    "its class is a lie": "class A:\n    __class__ = property(lambda self: 1 / 0)\nx = A()",
    "whatever is asked of it ends the program": "class A:\n    def __getattribute__(self, name): raise SystemExit\nx = A()",
    "its class ends the program": "class M(type):\n    def __getattribute__(c, name): raise SystemExit\n    __repr__ = __getattribute__\nclass A(metaclass=M): pass\nx = A()",
    "a mapping without memory": "class A(dict):\n    def __iter__(self): raise MemoryError\n    keys = items = __len__ = __iter__\nx = A(a=1)",
    "a frame that lies": "import pandas\nclass A(pandas.DataFrame):\n    shape = columns = property(lambda self: 1 / 0)\n    def __len__(self): return -5\nx = A({'a': [1]})",
    "it is equal to nothing": "class A:\n    def __eq__(self, other): raise SystemExit\n    __hash__ = __bool__ = __lt__ = lambda self: 1 / 0\nx = A()",
    "its state is a generator's end": "class A:\n    def __getstate__(self): raise GeneratorExit\nx = A()",
    "it is made by code": "class A:\n    def __reduce__(self): return (eval, ('__import__(\"os\")._exit(9)',))\nx = A()",
    "it is nested too deeply": "x = []\nfor _ in range(200000): x = [x]",
    "its name is no text": "class S(str):\n    def __eq__(self, other): raise SystemExit\n    def __hash__(self): return 1\nglobals()[S('evil')] = x = 1",
    "its name is code in disguise": "globals()[5] = globals()[None] = globals()[(1,)] = x = 1; globals()['a\\nb'] = globals()['\\u202e'] = globals()['\\ud800'] = 2",
    "names of megabytes": "for i in range(5): globals()[f'{i}' + 'n' * 1_000_000] = (q for q in [1])\nx = type('C' * 3_000_000, (), {})()",
    "pools with names of megabytes": "from concurrent.futures import ThreadPoolExecutor\nx = ThreadPoolExecutor(1); x.submit(int).result(); globals()['q' * 3_000_000] = x",
    "a thread without a name": "import threading, time\nclass T(threading.Thread):\n    name = property(lambda self: 1 / 0, lambda self, to: None)\nx = T(target=time.sleep, args=(5,), daemon=True); x._name = 'x'; x.start()",
}


class Objects(CheckpointTest):
    limits = {"copies": 2}

    def variables(self):
        a = self.keeper.answer(self.box.id, self.box.begin(CALL, {"op": "vars", "timeout_ms": 20000, "grace_ms": 1000}))
        self.assertVerdict(a, "ok", "kept")
        self.assertLess(len(a.claim_text), 20000)
        return [v["name"] for v in a.claim.get("vars", [])]

    def test_an_object_costs_itself(self):
        self.ok("keep = 41")
        for what, code in OBJECTS.items():
            with self.subTest(what):
                self.ok(code)
                self.variables()
                answer, data = self.save()
                self.assertVerdict(answer, "ok", "kept")
                self.assertEqual(answer.claim["status"], "ok", answer.claim)
                self.assertLess(len(answer.claim_text), 20000)
                self.assertGreater(len(data), 1000)
                a = self.box.cell("print(6 * 7, keep)")
                self.assertEqual((a.out, a.state), (b"42 41\n", "kept"), a)
                back = self.box.back()
                self.assertEqual((back.verdict, back.state), ("ok", "rolled_back"), back)
                self.assertEqual(self.box.cell("keep").result, "41")
                self.ok("for _ in [n for n in globals() if n not in ('keep', 'In', 'Out') and str(n)[:1] != '_']: globals().pop(_)\ndel _", self.box)

    def test_what_is_told_of_an_error_has_an_end(self):
        for code in (
            "class E(Exception): pass\nE.__name__ = E.__qualname__ = 'E' * 5_000_000\nraise E('x' * 5_000_000)",
            "__import__('m' * 3_000_000)",
            "exec('n' * 3_000_000)",
            "{}['k' * 3_000_000]",
            "open('f' * 3_000_000)",
            "e = ValueError('x')\nfor _ in range(50000): e.add_note('n' * 100)\nraise e",
        ):
            with self.subTest(code[:30]):
                a = self.box.cell(code)
                self.assertVerdict(a, "ok", "kept")
                self.assertTrue(a.error)
                self.assertLess(len(a.claim_text), 40000)


if __name__ == "__main__":
    unittest.main()
