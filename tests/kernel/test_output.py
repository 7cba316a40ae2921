"""What is printed, by whatever means, reaches the pipes before the claim; and the next cell's does, too."""

import os
import select
import unittest

from driver import HeadDied, KernelTest


class Output(KernelTest):
    def test_everything_that_prints_is_heard(self):
        cases = {
            "print('a')": "a\n",
            "print('no newline', end='')": "no newline",
            "import sys; sys.stdout.write('w') and None": "w",
            "sys.stdout.buffer.write(b'raw\\n') and None": "raw\n",
            "import os; os.write(1, b'descriptor\\n') and None": "descriptor\n",
            "os.system('echo child') and None": "child\n",
            "import subprocess; subprocess.run(['echo', 'run']) and None": "run\n",
            "import ctypes; ctypes.CDLL(None).printf(b'libc, no newline') and None": "libc, no newline",
            "display(1)": "1\n",
            "sys.__stdout__.write('dunder\\n') and None": "dunder\n",
        }
        for code, printed in cases.items():
            with self.subTest(code):
                self.assertEqual(self.ok(code).stdout, printed)

    def test_output_of_different_origin_keeps_its_order(self):
        code = (
            "import os, ctypes\nprint(1)\nos.system('echo 2')\n"
            "ctypes.CDLL(None).puts(b'3')\nprint(4)\n!echo 5\ndisplay(6)"
        )
        self.assertEqual(self.ok(code).stdout, "1\n2\n3\n4\n5\n6\n")

    def test_stderr_is_its_own_stream(self):
        reply = self.ok("import sys, warnings\nprint('e', file=sys.stderr)\nwarnings.warn('careful')\nprint('o')")
        self.assertEqual(reply.stdout, "o\n")
        self.assertIn("e\n", reply.stderr)
        self.assertIn("careful", reply.stderr)

    def test_files_with_cells_that_a_spreadsheet_runs_are_named_once_and_left_as_they_are(self):
        write = "import pandas as pd\ndf = pd.DataFrame({'a': ['=1+1', '-5', '@x', 'plain, =x', '+cmd', -3], 'b': range(6)})\n"
        cases = {
            "df.to_csv('out/x.csv', index=False)": "out/x.csv: 3 cells",
            "df.to_csv('out/y.csv', index=False, sep=';')": "out/y.csv: 3 cells",
            "df.to_excel('out/x.xlsx', index=False)": "out/x.xlsx: 1 cell",
            "df[['b']].to_csv('out/b.csv')": None,
            "open('out/z.csv', 'wb').write(bytes(range(256)) * 9) and None": None,
            "open('out/no.xlsx', 'wb').write(b'PK broken') and None": None,
        }
        for code, words in cases.items():
            with self.subTest(code):
                notes = [n for n in self.ok(write + code)["notes"] if n.startswith("formulas: ")]
                self.assertEqual(bool(notes), words is not None, notes)
                self.assertIn(words or "", notes[0] if notes else "")
        self.assertEqual(self.ok("open('out/x.csv').read().count(\"'=\")").text, "0")
        self.assertEqual([n for n in self.ok("1")["notes"] if n.startswith("formulas: ")], [])

    def test_text_that_is_no_text_is_printed_escaped(self):
        self.assertEqual(self.ok(r"print('\udce9 \ud800')").stdout, "\\udce9 \\ud800\n")
        self.assertEqual(self.ok(r"'\udce9'").text, r"'\udce9'")

    def test_streams_that_were_replaced_are_put_back(self):
        for code in (
            "import sys, io; sys.stdout = io.StringIO(); print('swallowed')",
            "import sys; sys.stdout = None",
            "import sys; del sys.stdout",
            "import sys; sys.stdout.close()",
            "import sys; sys.stdout.detach()",
            "import os; os.close(1)",
            "import os; os.close(1); os.close(2)",
            "import os; os.dup2(os.open('log.txt', os.O_CREAT | os.O_WRONLY), 1)",
            "import sys; sys.stderr = sys.stdout = open('log.txt', 'w')",
        ):
            with self.subTest(code):
                reply = self.run_cell(code)
                self.assertTrue(any("put back" in note for note in reply["notes"]), reply)
                reply = self.ok("import sys\nprint('out')\nprint('err', file=sys.stderr)")
                self.assertEqual((reply.stdout, reply.stderr), ("out\n", "err\n"))

    def test_a_redirection_for_a_block_is_no_replacement(self):
        code = (
            "import io, contextlib\n"
            "with contextlib.redirect_stdout(io.StringIO()) as f:\n    print('kept')\nf.getvalue()"
        )
        reply = self.ok(code)
        self.assertEqual((reply.text, reply["notes"]), ("'kept\\n'", []))

    def test_a_thread_may_print_later(self):
        self.ok(
            "import threading\ngo = threading.Event()\n"
            "t = threading.Thread(target=lambda: (go.wait(), print('late')))\nt.start()"
        )
        self.assertEqual(self.ok("go.set(); t.join()").stdout, "late\n")

    def test_a_timer_fires_between_cells(self):
        self.ok("import threading\nthreading.Timer(0.05, lambda: print('tick')).start()")
        self.session.wait_printed("tick")

    def test_lines_printed_before_a_kill_are_not_lost(self):
        self.session.start("print('last words')\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        with self.assertRaises(HeadDied) as died:
            self.session.finish()
        self.assertEqual(died.exception.args[0]["stdout"], b"last words\n")

    def test_output_comes_while_the_cell_runs(self):
        self.session.start("print('begun')\nimport time\nwhile True: time.sleep(0.01)")
        self.session.wait_printed("begun")
        self.session.interrupt()
        self.assertEqual(self.session.finish()["error"]["name"], "KeyboardInterrupt")

    def test_much_output_flows(self):
        self.assertEqual(len(self.ok("print('x' * 3_000_000)").stdout), 3_000_001)

    def test_progress_bars_print_to_stderr(self):
        reply = self.ok("from tqdm import tqdm\nfor _ in tqdm(range(3)): pass")
        self.assertIn("3/3", reply.stderr)


class Descriptors(KernelTest):
    def test_a_cell_sees_only_its_own_descriptors(self):
        listed = self.value("import os; sorted(int(f) for f in os.listdir('/proc/self/fd') if int(f) < 100)[:4]")
        self.assertEqual(listed, "[0, 1, 2, 3]")

    def test_children_do_not_inherit_the_channel(self):
        printed = self.ok("!ls /proc/self/fd | sort -n | tr '\\n' ' '").stdout.split()
        self.assertEqual([fd for fd in printed if fd != "3"], ["0", "1", "2"])  # 3: the folder that ls reads

    def test_standard_input_is_empty(self):
        self.assertEqual(self.value("import sys; sys.stdin.read()"), "''")


class Death(KernelTest):
    def test_a_head_that_exits_is_gone(self):
        self.session.start("import os; os._exit(3)")
        self.assertRaises(HeadDied, self.session.finish)

    def test_the_head_ends_when_the_channel_is_closed(self):
        self.ok("1")
        waiter = os.pidfd_open(self.session.pid)
        self.session.channel.shutdown(2)
        self.assertTrue(select.select([waiter], [], [], 20)[0])
        os.close(waiter)

    def test_a_crash_is_a_signal(self):
        self.session.start("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        self.assertRaises(HeadDied, self.session.finish)


if __name__ == "__main__":
    unittest.main()
