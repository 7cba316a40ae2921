"""The look at a cell's code before it runs: what it names, what it leaves alone, what it costs."""

import statistics
import sys
import time
import types
import unittest

from driver import SANDBOX, KernelTest

sys.path.insert(0, SANDBOX)
from kernel import audit  # noqa: E402

RISKY = {
    "shell": [
        "import os\nos.system('ls')",
        "import os as o\no.system('ls')",
        "from os import system as s\ns('ls')",
        "__import__('os').system('ls')",
        "__import__('o' + 's').popen('ls')",
        "import importlib\nimportlib.import_module('os').system('ls')",
        "from importlib import import_module as load\nload('os').system('ls')",
        "import os\ngetattr(os, 'system')('ls')",
        "import os\ngetattr(os, 'sys' + 'tem')('ls')",
        "import os\ns = os.system\ns('ls')",
        "import os\na = os\nb = a\nb.system('ls')",
        "import os\nvars(os)['system']('ls')",
        "import os\nos.__dict__['system']('ls')",
        "import sys\nsys.modules['os'].system('ls')",
        "import os\nglobals()['os'].system('ls')",
        "import os\n(s := os.system)('ls')",
        "import os, operator\noperator.attrgetter('system')(os)('ls')",
        "import os, functools\nfunctools.partial(os.system, 'ls')()",
        "import os\nlist(map(os.system, ['ls']))",
        "import os, threading\nthreading.Thread(target=os.system, args=('ls',)).start()",
        "from os import *\nsystem('ls')",
        "import posix\nposix.system('ls')",
        "def f():\n    import os\n    return os.system('ls')",
        "class A:\n    def f(self):\n        return __import__('os').system('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "from subprocess import check_output as out\nout('ls', shell=yes)",
        "import subprocess\nsubprocess.getoutput('ls')",
        "import asyncio\nawait asyncio.create_subprocess_shell('ls')",
        "!ls",
        "files = !ls",
        "%sx ls",
        "%%bash\nls",
        "%%script sh\nls",
        "import builtins\nbuiltins.__import__('os').system('ls')",
        "__builtins__.__import__('os').system('ls')",
    ],
    "process": [
        "import subprocess\nsubprocess.run(['ls'])",
        "from subprocess import run as r\nr(['ls'])",
        "import subprocess as sp\nwith sp.Popen(['ls']) as p: pass",
        "import os\nos.execv('/bin/ls', [])",
        "import os\nif os.fork() == 0: pass",
        "import os\nos.posix_spawn('ls', [], {})",
    ],
    "process control": [
        "import os\nos.kill(1, 9)",
        "import os, signal\nos.killpg(0, signal.SIGTERM)",
        "import resource\nresource.setrlimit(1, (1, 1))",
        "import os\nos._exit(1)",
        "import os\nos.unshare(1)",
    ],
    "network": [
        "import requests\nrequests.get(u)",
        "from requests import get\nget(u)",
        "import socket\nsocket.create_connection(('h', 1))",
        "from socket import socket as S\nS()",
        "import urllib.request\nurllib.request.urlopen(u)",
        "from urllib.request import urlopen\nurlopen(u)",
        "from urllib import request\nrequest.urlopen(u)",
        "import http.client as h\nh.HTTPConnection('x')",
        "import pandas as pd\npd.read_csv('https://host/a.csv')",
        "import pandas as pd\npd.read_csv(f'https://host/{name}.csv')",
        "import asyncio\nawait asyncio.open_connection('h', 1)",
    ],
    "built code": [
        "eval(input_text)",
        "exec('import ' + name)",
        "exec(open('x.py').read())",
        "compile(text, '', 'exec')",
        "exec(f'x = {y}')",
        "import builtins\nbuiltins.eval(t)",
        "e = eval\ne(t)",
        "getattr(__builtins__, 'ev' + 'al')(t)",
        "import marshal\nmarshal.loads(b)",
        "import types\ntypes.CodeType(*a)",
    ],
    "native code": [
        "import ctypes\nctypes.CDLL(None)",
        "from ctypes import CDLL\nCDLL(None)",
        "import ctypes as c\nc.cdll.LoadLibrary('x')",
        "from ctypes import *\nimport ctypes\nctypes.string_at(0)",
        "import cffi\ncffi.FFI().dlopen(None)",
    ],
    "kernel files": [
        "open('/proc/self/mem', 'r+b')",
        "import os\nos.listdir('/proc')",
        "from pathlib import Path\nPath('/sys/fs/cgroup').iterdir()",
        "open(f'/proc/{pid}/maps')",
        "open('/proc/' + pid)",
        "open('/dev/mem')",
    ],
    "deletes a tree": [
        "import shutil\nshutil.rmtree('x')",
        "from shutil import rmtree as gone\ngone('x')",
        "import os\nos.removedirs('x')",
        "import os\nos.system('rm -rf /')",
        "!rm -r out",
        "%%sh\nrm -fr x",
    ],
}
NESTED = ["eval('__import__(\"os\").system(\"ls\")')", "exec('import os\\nos.system(1)')", "exec(\"exec('import os; os.system(1)')\")"]
HARMLESS = [
    "import pandas as pd\ndf = pd.read_csv('a.csv')\ndf.groupby('x').sum()",
    "df.eval('a + b')\ndf.query('a > 1')",
    "eval('1 + 1')",
    "exec('x = 1')",
    "import os\nos.path.join('a', 'b')\nos.listdir('.')\nos.makedirs('out', exist_ok=True)",
    "import socket\nsocket.gethostname()",
    "plt.title('https://example.com')\nprint('/proc is a folder')",
    "open('/dev/null')\nopen('/dev/shm/x', 'w')",
    "class Job:\n    def system(self): return 1\nJob().system()",
    "def run(x): return x\nrun(['ls'])",
    "system = len\nsystem('ls')",
    "s = 'os.system(1)'\nprint(s)",
    "# os.system('ls')\nx = 5 % 3 != 2",
    "def eval(x): return x\neval(y)",
    "import re\nre.compile(p)",
    "from sklearn.model_selection import cross_val_score\nmodel.fit(x, y)",
    "import multiprocessing as mp\nmp.Pool(2).map(f, x)",
    "import signal\nsignal.signal(signal.SIGALRM, f)",
    "x = {'run': 1}['run']",
    "",
    "x = (",
    "%timeit -n 1 x",
]


def transformed(code):
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(code)


def check(code, **namespace):
    return audit.check(code, namespace, transformed)


class Found(unittest.TestCase):
    def test_risky_calls_are_named_by_kind(self):
        for kind, programs in RISKY.items():
            for code in programs:
                with self.subTest(code):
                    self.assertIn(kind, {f.kind for f in check(code)})

    def test_code_in_constants_is_read_at_the_line_of_its_call(self):
        for code in NESTED:
            with self.subTest(code):
                self.assertEqual([(f.line, f.kind, f.what) for f in check("\n\n" + code)], [(3, "shell", "os.system")])

    def test_what_is_harmless_is_left_alone(self):
        for code in HARMLESS:
            with self.subTest(code):
                self.assertEqual(check(code), [])

    def test_lines_and_names_are_right(self):
        code = "import os as o\nx = 1\nif x:\n    o.system(\n        'ls')\nimport shutil\nshutil.rmtree('y')"
        self.assertEqual([(f.line, f.what) for f in check(code)], [(4, "os.system"), (7, "shutil.rmtree")])

    def test_what_earlier_cells_bound_is_followed(self):
        import os
        import shutil
        import subprocess

        self.assertEqual(check("o.system('ls')", o=os)[0].what, "os.system")
        self.assertEqual(check("r(['ls'])", r=subprocess.run)[0].what, "subprocess.run")
        self.assertEqual(check("P(['ls'])", P=subprocess.Popen)[0].what, "subprocess.Popen")
        self.assertEqual(check("gone('x')", gone=shutil.rmtree)[0].what, "shutil.rmtree")
        self.assertEqual(check("os.system('ls')", os="mine"), [])

    def test_a_namespace_that_was_played_with_is_no_error(self):
        class Angry(types.ModuleType):
            def __getattribute__(self, name):
                raise SystemExit

        module = types.ModuleType("m")
        del module.__dict__["__name__"]
        self.assertEqual(check("m.system('ls'); n.system('ls')", m=module, n=Angry("x")), [])

    def test_a_cell_may_not_flood_the_note(self):
        found = check("import os\n" + "os.system('ls')\n" * 500)
        self.assertEqual(len(found), audit.FOUND_MAX)
        self.assertLess(len(audit.note(found)), 600)
        self.assertLess(max(len(f.what) for f in check(f"open('/proc/{'x' * 5000}\\n')")), 100)


class Bounded(unittest.TestCase):
    def kinds(self, code):
        return {f.kind for f in check(code)}

    def test_what_is_too_long_or_too_deep_is_said_and_nothing_is_raised(self):
        for name, code in {
            "long": "import os\n" + "x = 1\n" * 30000,
            "many parts": "import os\nos.system\nx = [" + "1," * 60000 + "]",
        }.items():
            with self.subTest(name):
                self.assertEqual(self.kinds(code), {"unchecked"})
        for name, code in {
            "parentheses": "import os\n" + "(" * 50000 + ")" * 50000,
            "brackets": "os." + "[" * 190 + "]" * 190,
            "minus": "import os\nx = " + "-" * 20000 + "1",
            "attributes": "import os\nos" + ".a" * 20000,
            "calls": "import os\nos" + "()" * 20000,
            "sums": "import os\nx = " + "'a' + " * 20000 + "'b'",
            "blocks": "import os\n" + "".join(" " * i + "if 1:\n" for i in range(90)) + " " * 90 + "os.system('x')",
            "lambdas": "import os\nx = " + "lambda: " * 20000 + "1",
            "NUL": "import os\0",
            "surrogates": "import os\nx = '\ud800'",
            "cycle": "import os\na = b\nb = a\na.system('ls')",
            "nested": "exec(" * 30 + "'1'" + ")" * 30,
        }.items():
            with self.subTest(name):
                began = time.perf_counter()
                check(code)
                self.assertLess(time.perf_counter() - began, 5)

    def test_usual_cells_cost_little(self):
        """The least of many: what the code takes, not what the machine is busy with. The promise is 0.3 ms."""
        chart = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot(df['x'], df['y'])\nax.set_title('%d rows' % len(df))\nplt.show()\n"
        mixed = "import os\nimport pandas as pd\nfor name in os.listdir('.'):\n    if name.endswith('.csv'):\n        df = pd.read_csv(name)\n        print(name, df.shape)\n"
        for code in ("x = 1", chart, mixed, mixed * 5 + "os.system('ls')\n"):
            times = []
            for _ in range(300):
                began = time.perf_counter()
                check(code)
                times.append((time.perf_counter() - began) * 1e3)
            self.assertLess(min(times), 0.3, code)
            print(f"code check of {len(code)} characters: least {min(times):.3f} ms, median {statistics.median(times):.3f} ms", file=sys.stderr)


class Wired(KernelTest):
    """The head: a note with the answer, or a refusal in its place."""

    def asked(self, code, **more):
        self.session.number += 1
        self.session.send(2, {"code": code, "number": self.session.number, "timeout_ms": 10000, "grace_ms": 500} | more)
        return self.session.finish()

    def test_note_runs_the_cell_and_says_what_was_seen(self):
        reply = self.asked("import os\nos.system('true')", audit="note")
        self.assertEqual(reply["status"], "ok", reply)
        self.assertEqual(reply["audit"], [{"kind": "shell", "line": 2, "what": "os.system"}])
        self.assertIn("code check: line 2 runs a shell command (os.system)", reply["notes"])
        reply = self.asked("os.system('true')", audit="note")
        self.assertEqual([f["line"] for f in reply["audit"]], [1])

    def test_refuse_runs_nothing_and_says_what_to_do(self):
        self.asked("ran = []", audit="refuse")
        reply = self.asked("ran.append(1)\nimport subprocess\nsubprocess.run(['true'])", audit="refuse")
        self.assertEqual((reply["status"], reply["error"]["name"], reply["error"]["line"]), ("error", "CodeRefused", 3))
        self.assertIn("box.audit = refuse", reply["error"]["value"])
        self.assertEqual(self.asked("ran", audit="refuse").text, "[]")

    def test_off_and_absent_look_at_nothing(self):
        for mode in ({"audit": "off"}, {}):
            reply = self.asked("import os\nos.system('true')", **mode)
            self.assertEqual((reply["audit"], reply["notes"]), ([], []))

    def test_warnings_of_the_code_come_once(self):
        plain, looked = [self.asked("import os\nx = os.popen and '\\d'", audit=mode) for mode in ("off", "note")]
        self.assertIn("SyntaxWarning", looked.stderr)
        self.assertEqual(looked.stderr.count("SyntaxWarning"), plain.stderr.count("SyntaxWarning"), looked.stderr)


if __name__ == "__main__":
    unittest.main()
