"""Checkpoints: references, views, locks and iterators hold in a new interpreter."""

import unittest

from test_checkpoint_base import CheckpointTest


class References(CheckpointTest):
    def test_weak_references_hold(self):
        code = """
            import weakref
            class N: pass
            n = N(); r = weakref.ref(n); p = weakref.proxy(n); n.v = 5
            wv = weakref.WeakValueDictionary(a=n)
            wk = weakref.WeakKeyDictionary({n: 1})
            ws = weakref.WeakSet([n])
            dead = weakref.ref(N())
            n.f = lambda: 1
            class M:
                def f(self): return 3
            m = M(); wm = weakref.WeakMethod(m.f)
        """
        self.over(code)
        self.true("r() is n", "p.v == 5", "wv['a'] is n", "wk[n] == 1", "n in ws", "dead() is None", "wm()() == 3")
        self.ok("del n, r, p")
        self.true("len(wv) == len(wk) == len(ws) == 0")

    def test_views_of_dictionaries_stay_views(self):
        self.over("""
            import types
            d = {'a': 1}; k = d.keys(); v = d.values(); i = d.items(); ro = types.MappingProxyType(d)
        """)
        self.ok("d['b'] = 2")
        self.true("list(k) == ['a', 'b']", "list(v) == [1, 2]", "len(i) == 2", "ro['b'] == 2")

    def test_memoryviews_hold(self):
        self.over("""
            b = bytearray(b'abc'); m = memoryview(b); part = memoryview(b'hello')[1:3]
        """)
        self.ok("m[0] = 65")
        self.true("b == b'Abc'", "part.tobytes() == b'el'")

    def test_free_locks_come_back_free(self):
        self.over("""
            import threading, queue
            l = threading.Lock(); r = threading.RLock(); q = queue.Queue(); q.put(1)
            ev = threading.Event(); ev.set()
            class Svc:
                def __init__(self): self.lock = threading.Lock(); self.n = 1
            s = Svc()
            loc = threading.local(); loc.x = 4
        """)
        self.true(
            "l.acquire(timeout=1)",
            "q.get(timeout=1) == 1",
            "ev.is_set()",
            "s.lock.acquire(timeout=1) and s.n == 1",
            "loc.x == 4",
        )

    def test_context_variables_hold(self):
        self.over("""
            from contextvars import ContextVar
            v = ContextVar('v', default=1); w = ContextVar('w'); w.set([2]); x = w.get()
        """)
        self.true("v.get() == 1", "w.get() is x")

    def test_iterators_matches_and_the_like_hold(self):
        self.over("""
            import re, struct, itertools, datetime, decimal, fractions, uuid, pathlib, zoneinfo
            it = iter([1, 2, 3]); next(it)
            m = re.search('b(.)', 'abcd'); pat = re.compile('a+')
            st = struct.Struct('<I')
            dt = datetime.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))
            D = decimal.Decimal('1.10'); fr = fractions.Fraction(1, 3); p = pathlib.Path('a')
            u = uuid.UUID(int=1)
            sl = slice(1, 2); r = range(5); el = ...; ni = NotImplemented; ft = type(lambda: 0)
            nt = type(None)
        """)
        self.true(
            "list(it) == [2, 3]",
            "m.group(1) == 'c' and m.span() == (1, 3)",
            "pat.match('aa') is not None",
            "st.size == 4",
            "dt.utcoffset().seconds == 3600",
        )
        self.true("str(D) == '1.10'", "el is ...", "ni is NotImplemented", "ft is type(lambda: 0)", "nt is type(None)")

    def test_names_that_begin_with_an_underscore_are_kept(self):
        self.over("_cache = {1: 2}; __secret = 3; _ = 'mine'")
        self.true("_cache == {1: 2}", "__secret == 3", "_ == 'mine'")

    def test_exit_may_be_a_variable(self):
        self.over("exit = 5; sum = 3")
        self.true("exit == 5", "sum == 3")

    def test_modules_are_imported_with_their_parts(self):
        self.session.write("mine.py", "value = 5\ndef f(): return value\n")
        self.ok("""
            import math, pandas as pd, xml.dom.minidom, sklearn.svm, mine, types
            from mine import f
            dyn = types.ModuleType('dyn'); exec('k = 1\\ndef g(): return k', dyn.__dict__); g = dyn.g
        """)
        self.save()
        report = self.thaw()
        self.assertEqual(report["lost"], [])
        self.assertTrue(any("mine" in note for note in report["notes"]), report)
        self.true(
            "math.pi > 3",
            "pd.__name__ == 'pandas'",
            "xml.dom.minidom.parseString('<a/>') is not None",
            "sklearn.svm.SVC() is not None",
            "f() == 5 and mine.f is f",
        )
        self.ok("dyn.k = 9")
        self.true("g() == 9")


if __name__ == "__main__":
    unittest.main()
