"""Checkpoints: classes of every kind, and their instances, hold in a new interpreter."""

import unittest

from test_checkpoint_base import CheckpointTest


class Classes(CheckpointTest):
    def test_instances_stay_instances_and_init_is_not_run(self):
        self.over("""
            class P:
                made = 0
                def __init__(self): P.made += 1
                def rate(self): return rate
            rate = 2
            p = P(); Q = P
        """)
        self.ok("rate = 9")
        self.true("isinstance(p, P)", "Q is P", "P.made == 1", "p.rate() == 9", "P().made == 2")

    def test_super_and_inheritance_hold(self):
        self.over("""
            class A:
                def f(self): return 'a'
            class B(A):
                def f(self): return super().f() + 'b'
            m = B.f
            b = B()
        """)
        self.true("b.f() == 'ab'", "m(b) == 'ab'", "m is B.f", "issubclass(B, A)", "A.__subclasses__() == [B]")

    def test_dataclasses_can_be_inherited_from(self):
        code = """
            from dataclasses import dataclass, field, replace, fields
            @dataclass(order=True)
            class D:
                x: int
                y: list = field(default_factory=list)
            @dataclass(frozen=True, slots=True)
            class F:
                v: float = 1.5
            d = D(3); f = F()
        """
        self.over(code)
        self.ok("@dataclass\nclass E(D):\n    z: int = 1")
        self.true(
            "d == D(3)", "replace(d, x=4) == D(4)", "E(1).z == 1", "E(1).y == []", "f == F()", "hash(f) == hash(F())"
        )
        self.error("E()", "TypeError")
        self.error("f.v = 2", "FrozenInstanceError")

    def test_named_tuples_hold(self):
        self.over("""
            from collections import namedtuple
            from typing import NamedTuple
            T = namedtuple('T', 'u v', defaults=[5])
            class N(NamedTuple):
                a: int
                b: str = 'x'
            t = T(1); n = N(1)
        """)
        self.true(
            "t == (1, 5) and t.v == 5",
            "T(2)._replace(v=1) == (2, 1)",
            "n.b == 'x'",
            "N(2, 'y')._asdict() == {'a': 2, 'b': 'y'}",
            "type(n) is N",
        )

    def test_enums_hold(self):
        code = """
            import enum
            class E(enum.Enum):
                A = 1
                ALIAS = 1
                def f(self): return self.value
                @property
                def twice(self): return 2 * self.value
            class Planet(enum.Enum):
                EARTH = (5.97, 6.37)
                def __init__(self, mass, radius):
                    self.mass, self.radius = mass, radius
            class Fl(enum.Flag):
                R = enum.auto()
                W = enum.auto()
            class I(enum.IntEnum):
                ONE = 1
            class S(enum.StrEnum):
                X = enum.auto()
            e = E.A; p = Planet.EARTH; rw = Fl.R | Fl.W; one = I.ONE; s = S.X; d = {E.A: 1}
        """
        self.over(code)
        self.true(
            "e is E.A",
            "E.ALIAS is E.A",
            "E(1) is e",
            "e.f() == 1",
            "e.twice == 2",
            "p is Planet.EARTH",
            "p.mass == 5.97",
            "d[E.A] == 1",
        )
        self.true(
            "rw == Fl.R | Fl.W",
            "Fl.R in rw",
            "one == 1 and one is I.ONE",
            "s == 'x'",
            "list(E) == [E.A]",
            "repr(e) == '<E.A: 1>'",
        )

    def test_metaclasses_hold_and_do_not_run_again(self):
        code = """
            registry = []
            class Meta(type):
                def __new__(m, name, bases, ns, *, tag):
                    c = super().__new__(m, name, bases, ns)
                    c.tag = tag
                    registry.append(name)
                    return c
                def __init__(c, name, bases, ns, *, tag): super().__init__(name, bases, ns)
                def __setattr__(c, n, v):
                    if n == 'fixed': raise AttributeError(n)
                    super().__setattr__(n, v)
            class A(metaclass=Meta, tag='t'):
                fixed = 1
            a = A()
        """
        self.over(code)
        self.true("type(A) is Meta", "A.tag == 't'", "registry == ['A']", "A.fixed == 1", "isinstance(a, A)")
        self.ok("class B(A, tag='u'): pass")
        self.true("registry == ['A', 'B']")
        self.error("A.fixed = 2", "AttributeError")

    def test_subclasses_do_not_register_twice(self):
        code = """
            plugins = {}
            class Base:
                def __init_subclass__(cls, *, key, **kw):
                    super().__init_subclass__(**kw)
                    plugins.setdefault(key, []).append(cls)
            class One(Base, key='one'): pass
            class Desc:
                def __set_name__(self, owner, name): named.append(name)
            named = []
            class H:
                x = Desc()
        """
        self.over(code)
        self.true("plugins == {'one': [One]}", "named == ['x']")
        self.ok("class Two(Base, key='two'): pass")
        self.true("plugins['two'] == [Two]")

    def test_abstract_classes_hold(self):
        code = """
            import abc
            class Shape(abc.ABC):
                @abc.abstractmethod
                def area(self): ...
            class Sq(Shape):
                def area(self): return 4
            @Shape.register
            class Odd: pass
            s = Sq()
        """
        self.over(code)
        self.true("s.area() == 4", "isinstance(Odd(), Shape)", "isinstance(s, Shape)", "not isinstance(1, Shape)")
        self.error("Shape()", "TypeError")

    def test_generics_protocols_and_typed_dicts_hold(self):
        code = """
            from typing import Generic, TypeVar, Protocol, TypedDict, NewType, runtime_checkable
            T = TypeVar('T', bound=int)
            class Box(Generic[T]):
                def __init__(self, v: T): self.v = v
            class Stack[K]:
                def push(self, k: K) -> K: return k
            def same[V](v: V) -> V: return v
            @runtime_checkable
            class Sized2(Protocol):
                def size(self) -> int: ...
            class TD(TypedDict, total=False):
                a: int
            Uid = NewType('Uid', int)
            type Pair[Z] = tuple[Z, Z]
            W = TypeVar('W', default=str)
            b = Box(1); alias = Box[T]; st = Stack[int]; u = Uid(5)
        """
        self.over(code)
        self.true(
            "b.v == 1",
            "Box[bool](True).v is True",
            "alias.__args__[0] is T",
            "T.__bound__ is int",
            "Box.__parameters__ == (T,)",
        )
        self.true(
            "Stack().push(3) == 3",
            "Stack.__type_params__[0].__name__ == 'K'",
            "same(2) == 2",
            "TD(a=1) == {'a': 1}",
            "TD.__total__ is False",
            "Pair.__value__.__args__[0] is Pair.__type_params__[0]",
            "W.__default__ is str",
            "Uid(1) == 1",
        )
        self.ok("class More(Box[T]): pass\nclass Has:\n    def size(self): return 1")
        self.true("isinstance(Has(), Sized2)", "not isinstance(1, Sized2)", "More(3).v == 3")

    def test_slots_stay_slots(self):
        self.over("""
            class S:
                __slots__ = ('a', '__b')
                def __init__(self): self.a, self.__b = 1, 2
                def b(self): return self.__b
            s = S()
            class Sub(S): __slots__ = ['c']
            sub = Sub(); sub.c = 3
        """)
        self.true("s.a == 1", "s.b() == 2", "sub.c == 3", "sub.a == 1")
        self.error("s.new = 1", "AttributeError")

    def test_properties_descriptors_static_and_class_methods_hold(self):
        code = """
            class C:
                _x = 1
                @property
                def x(self): return self._x
                @x.setter
                def x(self, v): self._x = v
                @staticmethod
                def s(a): return a
                @classmethod
                def c(cls): return cls.__name__
                class Inner: pass
            c = C(); i = C.Inner()
        """
        self.over(code)
        self.ok("c.x = 5")
        self.true("c.x == 5", "C.s(2) == 2", "c.c() == 'C'", "type(i) is C.Inner", "C.Inner.__qualname__ == 'C.Inner'")

    def test_singletons_stay_single(self):
        code = """
            class One:
                _it = None
                def __new__(cls, *a):
                    if cls._it is None: cls._it = super().__new__(cls)
                    return cls._it
            one = One()
            class Need:
                def __new__(cls, x):
                    o = super().__new__(cls)
                    o.x = x
                    return o
            need = Need(3)
            class Metres(float):
                def __new__(cls, v, unit):
                    o = super().__new__(cls, v)
                    o.unit = unit
                    return o
            m = Metres(2, 'm')
        """
        self.over(code)
        self.true("One() is one", "need.x == 3", "m == 2.0 and m.unit == 'm' and type(m) is Metres")

    def test_proxies_with_getattr_hold(self):
        self.over("""
            class Proxy:
                def __init__(self, inner): self.inner = inner
                def __getattr__(self, n): return getattr(self.inner, n)
            p = Proxy([1])
            class Any:
                def __getattr__(self, n): return lambda *a: n
            any_ = Any()
        """)
        self.ok("p.append(2)")
        self.true("p.inner == [1, 2]", "any_.hello() == 'hello'")

    def test_containers_with_code_of_their_own_hold(self):
        code = """
            class Log(dict):
                def __init__(self): self.log = []
                def __setitem__(self, k, v):
                    self.log.append(k)
                    super().__setitem__(k, v)
            l = Log(); l['a'] = l
            class L(list):
                def append(self, x): self.seen = self.seen + 1; super().append(x)
                seen = 0
            x = L(); x.append(1); x.append(x)
        """
        self.over(code)
        self.true("l['a'] is l", "l.log == ['a']", "x[1] is x", "x.seen == 2", "x[0] == 1")

    def test_state_methods_may_use_variables_and_modules(self):
        code = """
            import numpy as np
            class W:
                def __init__(self): self.v = np.ones(2)
                def __getstate__(self): return {'n': 2}
                def __setstate__(self, s): self.v = np.ones(s['n']) * factor
                def __hash__(self): return hash(np.round(1.0))
                def __eq__(self, o): return self is o
            factor = 3
            w = W(); by = {w: 1}
        """
        self.over(code)
        self.true("w.v.tolist() == [3.0, 3.0]", "by[w] == 1")

    def test_exceptions_hold_whatever_their_init_takes(self):
        code = """
            class Bad(Exception):
                def __init__(self, code, text):
                    super().__init__(text)
                    self.code = code
            try:
                try: 1/0
                except ZeroDivisionError as z: raise Bad(7, 'no') from z
            except Bad as b:
                e = b; e.add_note('n')
            u = UnicodeDecodeError('utf-8', b'x', 0, 1, 'why')
            o = FileNotFoundError(2, 'gone', 'f'); g = ExceptionGroup('g', [ValueError(1)])
        """
        self.over(code)
        self.true(
            "e.code == 7 and str(e) == 'no'",
            "type(e.__cause__) is ZeroDivisionError",
            "e.__notes__ == ['n']",
            "u.reason == 'why' and str(u) != ''",
            "o.filename == 'f'",
            "str(g.exceptions[0]) == '1'",
        )

    def test_objects_with_del_are_quiet(self):
        self.over("""
            class D:
                def __del__(self): print('deleted', flush=True)
            d = D(); ds = [D()]
        """)
        self.assertEqual(self.ok("del d").stdout.strip(), "deleted")

    def test_ctypes_structures_hold(self):
        self.over("""
            import ctypes
            class Pt(ctypes.Structure):
                _fields_ = [('x', ctypes.c_int), ('y', ctypes.c_int)]
            p = Pt(1, 2)
        """)
        self.true("p.x == 1 and p.y == 2", "ctypes.sizeof(Pt) == 8")


if __name__ == "__main__":
    unittest.main()
