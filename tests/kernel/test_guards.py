"""What can't work says so at once; what a cell breaks is mended."""

import unittest

from driver import KernelTest


class Refused(KernelTest):
    def test_questions_to_a_keyboard_are_refused_at_once(self):
        for code in (
            "input()",
            "input('name? ')",
            "import getpass; getpass.getpass()",
            "from builtins import input; input()",
        ):
            with self.subTest(code):
                self.assertIn("nobody is at the keyboard", self.error(code, "EOFError")["value"])

    def test_debuggers_are_refused_at_once(self):
        for code in (
            "breakpoint()",
            "x = 1\nbreakpoint()\nx = 2",
            "import pdb; pdb.set_trace()\nx = 3",
            "pdb.run('x = 1')",
            "from IPython.core.debugger import set_trace; set_trace()\nx = 4",
            "%debug",
            "%pdb on",
            "def f():\n    breakpoint()\nf()",
        ):
            with self.subTest(code):
                self.assertIn("debugger", self.error(code, "RuntimeError")["value"])
        self.assert_alive()

    def test_doctests_work(self):
        self.ok("def f():\n    '''\n    >>> 1 + 1\n    2\n    '''\nimport doctest")
        self.assertIn("attempted=1", self.value("doctest.run_docstring_examples(f, globals()); doctest.testmod()"))

    def test_exit_ends_the_cell_but_not_the_session(self):
        self.ok("x = 1")
        for code in ("exit()", "quit()", "x\nexit()", "exit ()", "import sys; sys.exit()", "sys.exit(0)",
                     "raise SystemExit",
                     "if True:\n    exit()\nx = 2"):  # fmt: skip
            with self.subTest(code):
                reply = self.ok(code)
                self.assertTrue(any("session and its variables stay" in n for n in reply["notes"]), reply)
                self.assertEqual(reply.stderr, "")
                self.assertEqual(self.value("x"), "1")

    def test_exit_without_brackets_says_what_it_does(self):
        self.assertIn("ends the cell", self.value("exit"))
        self.ok("exit = 5")

    def test_an_exit_with_a_status_is_an_error(self):
        self.assertEqual(self.error("import sys; sys.exit('no data')", "SystemExit")["value"], "no data")
        self.assertEqual(self.error("sys.exit(3)", "SystemExit")["value"], "3")


class Installers(KernelTest):
    def test_every_way_to_install_is_answered(self):
        for code in (
            "%pip install torch",
            "pip install torch",
            "!pip install torch",
            "!pip3 install -q torch==2.0",
            "!python -m pip install --upgrade torch",
            "import sys\n!{sys.executable} -m pip install torch",
            "x = 1\npip install torch\nx",
            "import subprocess; subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'torch'])",
            "subprocess.run('pip install torch', shell=True, check=True)",
            "subprocess.check_output(['pip', 'install', 'torch'])",
            "import os; os.system('pip install torch')",
            "%conda install torch",
            "!conda install -y torch",
            "!uv pip install torch",
            "%%bash\npip install torch",
            "!sudo apt-get install -y torch",
        ):
            with self.subTest(code):
                reply = self.ok(code)
                self.assertEqual(len(reply["notes"]), 1, reply)
                self.assertIn("torch is not installed. Nearest here: scikit-learn", reply["notes"][0])
                self.assertIn("Installed are: numpy", reply["notes"][0])
                self.assertEqual(reply.stderr, "")

    def test_the_answer_is_printed_as_well(self):
        for code in ("!pip install torch", "%pip install torch", "import os; os.system('pip install torch')"):
            with self.subTest(code):
                self.assertIn("torch is not installed", self.ok(code).stdout)

    def test_what_is_there_is_said_to_be_there(self):
        for code in ("%pip install pandas", "!pip install 'pandas>=2' numpy", "!pip install sklearn -q"):
            with self.subTest(code):
                note = self.ok(code)["notes"][0]
                self.assertIn("is installed already", note)
                self.assertNotIn("Nothing can be installed", note)

    def test_the_rest_of_a_command_line_runs(self):
        self.assertIn("after", self.ok("!pip install torch && echo after").stdout)

    def test_a_listing_is_given(self):
        self.assertIn("pandas==", self.ok("!pip list").stdout)
        self.assertIn("numpy==", self.ok("%pip freeze").stdout)

    def test_other_commands_are_left_alone(self):
        self.session.write("pip.txt", "pip install torch\n")
        for code in ("!cat pip.txt", "!echo pip", "'pip install torch'", "s = '''\npip install torch\n'''"):
            with self.subTest(code):
                self.assertEqual(self.ok(code)["notes"], [])


class Mended(KernelTest):
    def test_answers_can_not_be_broken_by_patching(self):
        for code in (
            "import json; json.dumps = lambda *a, **k: '{\"forged\":1}'",
            "import json; json.JSONEncoder.encode = json.JSONEncoder.iterencode = None; json.loads = None",
            "import json.encoder; json.encoder.encode_basestring = json.encoder.c_make_encoder = None",
            "import json.decoder; json.decoder.scanstring = None; json.JSONDecoder.decode = None",
            "import struct; struct.pack = struct.Struct = None",
            "import socket; socket.socket.send = socket.socket.recv = None",
            "import os; os.write = os.getpid = os._exit = os.waitpid = os.posix_spawn = None",
            "import select, signal; select.poll = None; signal.signal = None; signal.pthread_sigmask = None",
            "import builtins; builtins.len = lambda x: 0",
            "import builtins; del builtins.isinstance",
            "import builtins\nfor n in list(vars(builtins)):\n    if n != '__import__': delattr(builtins, n)",
            "import builtins; builtins.__dict__.clear()",
            "import builtins; builtins.print = builtins.dict = builtins.str = builtins.BaseException = None",
            "import gc; gc.callbacks.append(lambda *a: 1/0); gc.collect()",
            "import sys; sys.settrace(lambda *a: 1/0)",
            "import sys; sys.setprofile(lambda *a: None)",
            "import sys; sys.displayhook = sys.excepthook = None",
            "import sys; sys.path.clear(); sys.meta_path.clear()",
            "import warnings; warnings.warn = warnings.showwarning = None",
            "get_ipython().run_cell = None",
        ):
            with self.subTest(code):
                self.setUp()
                self.run_cell(code)
                reply = self.run_cell("print(40 + 2)")
                self.assertEqual((reply["status"], reply.stdout), ("ok", "42\n"), reply)
                self.assertEqual(self.run_cell("1/0")["status"], "error")

    def test_damage_beyond_mending_is_answered_and_said(self):
        for code in ("import sys; sys.modules.clear()", "import linecache; linecache.cache = None"):
            with self.subTest(code):
                self.setUp()
                self.run_cell(code)
                self.assertIn("a reset gives a new one", self.run_cell("print(1)")["notes"][0])

    def test_a_changed_builtin_is_named(self):
        reply = self.ok("import builtins; builtins.len = lambda x: 0")
        self.assertEqual(reply["notes"], ["builtins.len had been changed; it was put back"])
        self.assertEqual(self.value("len([1])"), "1")

    def test_added_builtins_stay(self):
        self.ok("import builtins; builtins.shared = 5")
        self.assertEqual(self.value("shared"), "5")

    def test_a_low_recursion_limit_ends_with_the_cell(self):
        self.run_cell("import sys; sys.setrecursionlimit(60)")
        self.assertEqual(self.value("import sys; sys.getrecursionlimit() >= 1000"), "True")
        self.ok("sys.setrecursionlimit(5000)")
        self.assertEqual(self.value("sys.getrecursionlimit()"), "5000")

    def test_a_tracer_goes_on_in_the_next_cell(self):
        self.ok(
            "import sys\nseen = []\ndef f(): pass\nsys.settrace(lambda frame, *a: seen.append(frame.f_code.co_name))"
        )
        self.ok("f()\nsys.settrace(None)")
        self.assertEqual(self.value("'f' in seen, 'serve' in seen, 'send' in seen"), "(True, False, False)")

    def test_an_exception_hook_of_the_garbage_collector_is_harmless(self):
        self.ok("class D:\n    def __del__(self): raise SystemExit\none = D()\ndel one")
        self.assert_alive()

    def test_ipython_can_be_left_and_entered(self):
        self.assertIn("42", self.value("get_ipython().run_cell('40 + 2').result"))
        self.assertIn("ZeroDivisionError", self.ok("r = get_ipython().run_cell('1/0')").stderr)


if __name__ == "__main__":
    unittest.main()
