"""Checkpoints: functions, lambdas, closures and what they share hold in a new interpreter."""

import unittest

from test_checkpoint_base import CheckpointTest


class Functions(CheckpointTest):
    def test_a_function_sees_later_changes_of_globals(self):
        self.over("rate = 2\ndef f(x): return x * rate")
        self.true("f(3) == 6")
        self.ok("rate = 10")
        self.true("f(3) == 30", "f.__globals__ is globals()")

    def test_a_function_changes_globals(self):
        self.over("n = 1\ndef up():\n    global n\n    n += 1")
        self.ok("up(); up()")
        self.true("n == 3")

    def test_aliases_stay_one_object(self):
        self.over("""
            a = [1, 2]; b = a; d = {'a': a}; me = []; me.append(me); t = ([],); t[0].append(t)
        """)
        self.ok("b.append(3)")
        self.true("b is a", "d['a'] is a", "a == [1, 2, 3]", "me[0] is me", "t[0][0] is t")

    def test_closures_go_on_sharing_their_variable(self):
        code = """
            def counter():
                n = 0
                def up():
                    nonlocal n
                    n += 1
                    return n
                def now(): return n
                return up, now
            up, now = counter(); up()
        """
        self.over(code)
        self.true("up() == 2", "now() == 2")

    def test_a_function_may_be_in_its_own_closure(self):
        self.over("""
            def outer():
                def inner(): return inner
                return inner
            selfref = outer()
        """)
        self.true("selfref()() is selfref")

    def test_lambdas_recursion_and_defaults_hold(self):
        self.over("""
            def fact(n): return 1 if n < 2 else n * fact(n - 1)
            lam = lambda x=[], *, k=2: fact(5) * k
            kept = lam.__defaults__[0]
        """)
        self.true("lam() == 240", "lam.__defaults__[0] is kept")

    def test_decorators_and_attributes_hold(self):
        code = """
            import functools
            calls = []
            def deco(f):
                @functools.wraps(f)
                def w(*a):
                    calls.append(a)
                    return f(*a)
                return w
            @deco
            def g(x: int) -> int:
                'doc'
                return x
            g.tag = 'here'
        """
        self.over(code)
        self.true("g(2) == 2", "calls == [(2,)]", "g.tag == 'here'", "g.__doc__ == 'doc'")
        self.true("g.__wrapped__.__annotations__ == {'x': int, 'return': int}")

    def test_partials_bound_methods_and_builtin_methods_hold(self):
        code = """
            import functools
            class A:
                def __init__(self): self.n = 0
                def up(self, by=1):
                    self.n += by
                    return self.n
            a = A(); m = a.up; two = functools.partial(a.up, 2); xs = []; put = xs.append
            low = str.lower
        """
        self.over(code)
        self.true("m() == 1", "two() == 3", "a.n == 3", "m.__self__ is a", "low('A') == 'a'")
        self.ok("put(1)")
        self.true("xs == [1]")

    def test_a_cached_function_computes_again(self):
        self.over("""
            import functools
            @functools.lru_cache(maxsize=5)
            def slow(x): return x + rate
            rate = 1; slow(1); slow.note = 'n'
        """)
        self.ok("rate = 100")
        self.true("slow(1) == 101", "slow.cache_parameters()['maxsize'] == 5", "slow.note == 'n'")

    def test_singledispatch_and_cached_property_hold(self):
        code = """
            import functools
            @functools.singledispatch
            def kind(x): return 'any'
            @kind.register
            def _int(x: int): return 'int'
            class C:
                @functools.cached_property
                def p(self): return [1]
            c = C(); first = c.p
        """
        self.over(code)
        self.ok("@kind.register\ndef _str(x: str): return 'str'")
        self.true("kind(1) == 'int'", "kind('') == 'str'", "kind(1.0) == 'any'", "c.p is first", "str in kind.registry")

    def test_a_namespace_of_exec_stays_one(self):
        self.over("d = {}\nexec('n = 1\\ndef f(): return n', d)\nf = d['f']")
        self.ok("d['n'] = 7")
        self.true("f() == 7", "f.__globals__ is d", "d['f'] is f")

    def test_a_function_that_a_library_made_up_takes_along_what_it_uses(self):
        self.over(
            "import sympy\nx = sympy.Symbol('x'); f = sympy.lambdify(x, sympy.sin(x) + 1); g = eval('lambda: n', {'n': 4})"
        )
        self.true("f(0) == 1", "g() == 4")

    def test_functions_of_libraries_keep_their_library(self):
        self.over("""
            from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
            class T(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
                def fit(self, X, y=None):
                    self.n_features_in_ = 1
                    return self
                def transform(self, X): return X
            t = T()
        """)
        self.true("t.set_output(transform='pandas') is t", "t.fit_transform([[1]]) is not None")

    def test_tracebacks_and_source_know_the_cell(self):
        self.over("def bad(x):\n    y = x + 1\n    raise ValueError(y)")
        error = self.error("bad(1)", "ValueError")
        self.assertIn("<cell 2>", error["traceback"])
        self.assertIn("raise ValueError(y)", error["traceback"])
        self.ok("import inspect")
        self.true("'y = x + 1' in inspect.getsource(bad)")

    def test_generator_functions_and_coroutines_run(self):
        self.over("def gen():\n    yield from range(n)\nasync def co(): return n\nn = 3")
        self.true("list(gen()) == [0, 1, 2]", "await co() == 3")

    def test_code_objects_hold(self):
        self.over("c = compile('x_new = 5', '<s>', 'exec')")
        self.ok("exec(c)")
        self.true("x_new == 5")


if __name__ == "__main__":
    unittest.main()
