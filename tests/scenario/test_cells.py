"""`sandbook cells`: what people and agents rely on between and inside cells."""
import json
import signal
import subprocess
import time
from pathlib import Path

from sandbook import PROGRAM, Case, run

KEYS = ["id", "cell", "status", "stdout", "stderr", "result", "error", "figures", "files", "state", "truncated", "took_ms", "start_ms", "peak_bytes"]


def processes(needle: str) -> list[str]:
    """Command lines on the whole machine that contain the needle."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if needle in line:
            found.append(line)
    return found


class State(Case):
    def test_variables_live_over_fifty_cells(self) -> None:
        answers = self.cells("x = 0", *["x += 1"] * 49, "x")
        self.assertEqual(answers[-1]["result"]["text/plain"], "49")
        self.assertEqual([a["cell"] for a in answers], list(range(1, 52)))

    def test_an_exception_keeps_what_ran_before_it(self) -> None:
        answers = self.cells("a = 1\nb = 1/0\nc = 3", "a")
        self.assertEqual(answers[0]["status"], "error")
        self.assertEqual(answers[0]["error"]["name"], "ZeroDivisionError")
        self.assertEqual(answers[0]["error"]["line"], 2)
        self.assertEqual(answers[0]["state"], "kept")
        self.assertEqual(answers[1]["result"]["text/plain"], "1")

    def test_reset_forgets_variables_and_keeps_files(self) -> None:
        answers = self.cells("x = 1\nopen('kept.txt', 'w').write('here')", {"command": "reset"}, "open('kept.txt').read()", "x")
        self.assertEqual(answers[1]["status"], "ok")
        self.assertEqual(answers[2]["result"]["text/plain"], "'here'")
        self.assertEqual(answers[3]["error"]["name"], "NameError")

    def test_vars_lists_what_there_is(self) -> None:
        answers = self.cells("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\nn = 7", {"command": "vars", "id": "v"})
        self.assertEqual(answers[1]["id"], "v")
        self.assertEqual({v["name"] for v in answers[1]["vars"]}, {"df", "n"})

    def test_a_seed_set_in_one_cell_holds_in_the_next(self) -> None:
        twice = [self.cells("import random, numpy as np\nrandom.seed(1); np.random.seed(1)", "(random.random(), float(np.random.rand()))") for _ in range(2)]
        self.assertEqual(twice[0][1]["result"], twice[1][1]["result"])

    def test_two_runs_do_not_share_random_states(self) -> None:
        code = "import random, numpy as np\n(random.random(), float(np.random.rand()))"
        one, two = self.cells(code)[0], self.cells(code)[0]
        self.assertNotEqual(one["result"], two["result"])


class Output(Case):
    def test_every_answer_has_the_keys_of_the_contract_in_order(self) -> None:
        answer = self.cells({"code": "1", "id": "one"})[0]
        self.assertEqual(list(answer)[: len(KEYS)], KEYS)
        self.assertEqual(answer["id"], "one")

    def test_a_data_frame_has_html(self) -> None:
        answer = self.cells("import pandas as pd\npd.DataFrame({'a': [1, 2]})")[0]
        self.assertIn("<table", answer["result"]["text/html"])
        self.assertIn("a", answer["result"]["text/plain"])

    def test_stdout_and_stderr_come_on_success_error_and_timeout(self) -> None:
        say = "import sys\nprint('out 你好'); print('err 😱', file=sys.stderr)\n"
        answers = self.cells(say, say + "1/0", say + "while True: pass", options=("--timeout", "2"))
        self.assertEqual([a["status"] for a in answers], ["ok", "error", "timeout"])
        for a in answers:
            self.assertIn("out 你好", a["stdout"])
            self.assertIn("err 😱", a["stderr"])

    def test_three_figures_in_a_loop_are_three_pictures(self) -> None:
        answer = self.cells("import matplotlib.pyplot as plt\nfor i in range(3):\n    plt.figure(); plt.plot([1, i]); plt.title(f'图 {i}')")[0]
        self.assertEqual([f["title"] for f in answer["figures"]], ["图 0", "图 1", "图 2"])
        self.assertEqual(answer["stderr"], "")
        for f in answer["figures"]:
            self.assert_png(f)

    def test_a_figure_before_an_exception_still_arrives(self) -> None:
        answer = self.cells("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1/0")[0]
        self.assertEqual((answer["status"], len(answer["figures"])), ("error", 1))

    def test_written_files_are_delivered_whole(self) -> None:
        answer = self.cells("open('销售 数据.csv', 'w').write('a,b\\n1,2\\n')\nimport os; os.makedirs('out', exist_ok=True); open('out/x.bin', 'wb').write(bytes(3000000))")[0]
        sizes = {Path(f["path"]).name: f["bytes"] for f in answer["files"]}
        self.assertEqual(sizes, {"销售 数据.csv": 8, "x.bin": 3000000})
        for f in answer["files"]:
            self.assertEqual(Path(f["path"]).stat().st_size, f["bytes"])

    def test_a_link_to_a_host_file_is_not_delivered(self) -> None:
        answer = self.cells("import os\nos.symlink('/etc/passwd', 'result.txt'); os.symlink('/etc', 'folder')")[0]
        self.assertEqual(answer["files"], [])


class Limits(Case):
    def test_an_endless_loop_ends_as_timeout_and_keeps_the_variables(self) -> None:
        began = time.monotonic()
        answers = self.cells("x = 5", "while True: pass", "x", options=("--timeout", "2"))
        self.assertEqual((answers[1]["status"], answers[1]["state"]), ("timeout", "kept"))
        self.assertTrue(1900 <= answers[1]["took_ms"] <= 3000, answers[1]["took_ms"])
        self.assertEqual(answers[2]["result"]["text/plain"], "5")
        self.assertLess(time.monotonic() - began, 60)

    def test_a_loop_that_ignores_interrupts_ends_as_timeout_too(self) -> None:
        stubborn = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
        answers = self.cells(stubborn, "sum(range(10**13))", "1 + 1", options=("--timeout", "2"))
        for a in answers[:2]:
            self.assertEqual(a["status"], "timeout")
            self.assertLess(a["took_ms"], 3500)
        self.assertEqual(answers[2]["result"]["text/plain"], "2")

    def test_a_memory_hog_ends_as_oom_and_the_next_cell_answers(self) -> None:
        hog = "a = []\nwhile True: a.append(bytearray(10**7))"
        answers = self.cells(hog, "1 + 1", "b = bytearray(10**11)", options=("--memory", "512M", "--timeout", "30"))
        self.assertEqual(answers[0]["status"], "oom")
        self.assertGreater(answers[0]["peak_bytes"], 200 << 20)
        self.assertIn("why", answers[0])
        self.assertEqual(answers[1]["result"]["text/plain"], "2")
        self.assertEqual(answers[2]["status"], "oom")

    def test_a_fork_bomb_leaves_nothing_behind(self) -> None:
        bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
        answers = self.cells(bomb, "1 + 1", options=("--timeout", "2"))
        self.assertNotEqual(answers[0]["status"], "ok")
        self.assertEqual(answers[1]["result"]["text/plain"], "2")

    def test_a_flood_of_output_is_cut_and_ends(self) -> None:
        answers = self.cells("while True: print('x' * 10**6)", "1 + 1", options=("--timeout", "20"))
        self.assertEqual(answers[0]["status"], "limit")
        self.assertTrue(answers[0]["truncated"])
        self.assertLess(len(answers[0]["stdout"]), 200_000)
        self.assertEqual(answers[1]["result"]["text/plain"], "2")

    def test_nothing_that_a_cell_started_outlives_the_session(self) -> None:
        self.cells("import subprocess\np = subprocess.Popen(['sleep', '98765'])")
        self.assertEqual(processes("sleep 98765"), [])

    def test_ways_to_die_are_told_and_survived(self) -> None:
        deaths = ["import os; os._exit(0)", "import os; os.abort()", "import ctypes; ctypes.string_at(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
        answers = self.cells(*[x for d in deaths for x in (d, "1 + 1")])
        self.assertEqual([a["status"] for a in answers[::2]], ["crash"] * len(deaths))
        self.assertEqual([a["status"] for a in answers[1::2]], ["ok"] * len(deaths))

    def test_leaving_is_no_death(self) -> None:
        answers = self.cells("x = 1", "exit()", "import sys; sys.exit(3)", "raise SystemExit", "x")
        self.assertEqual(answers[4]["result"]["text/plain"], "1")


class Walls(Case):
    def test_there_is_no_network_no_host_and_no_secret(self) -> None:
        answers = self.cells(
            "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 2)\nexcept OSError as e: print(type(e).__name__)",
            "import os; sorted(os.environ)",
            "open('/etc/shadow').read()",
            "import os; os.listdir('/root')",
        )
        self.assertNotEqual(answers[0]["stdout"], "")
        self.assertNotIn("SSH", answers[1]["result"]["text/plain"])
        self.assertEqual([a["status"] for a in answers[2:]], ["error", "error"])

    def test_input_and_pip_are_refused_with_words(self) -> None:
        answers = self.cells("input('name? ')", "%pip install torch", "!pip install torch", "1 + 1")
        self.assertEqual(answers[0]["status"], "error")
        self.assertTrue(any("torch" in n for n in answers[1]["notes"]), answers[1])
        self.assertEqual(answers[3]["result"]["text/plain"], "2")


class Calls(Case):
    def test_broken_lines_are_refused_one_by_one(self) -> None:
        p = run("cells", "--json", "--out", self.out, stdin='{"code": "1"}\nnot json\n{"nothing": 1}\n{"command": "fly"}\n{"code": "2"}\n')
        answers = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual([a["status"] for a in answers], ["ok", "refused", "refused", "refused", "ok"])
        self.assertEqual(p.returncode, 1)

    def test_lines_that_are_not_what_they_should_be_are_refused_and_the_rest_goes_on(self) -> None:
        lines = [
            b'\xef\xbb\xbf{"code": "1", "id": 5}',  # a byte order mark; the id comes back as it was
            b'{"code": "x = 1' + b" " * 70_000_000 + b'"}',  # never held whole
            b'{"code": "1", "command": "undo", "id": "both"}',
            b'{"code": 5}',
            b'{"command": "branch"}',  # never to where nobody said
            b'{"command": "branch", "cell": "1"}',
            b'{"command": "undo", "cell": -1}',
            b'{"code": "2"}\0',
            b"\xff\xfe",
            b'{"code": "6"}',
        ]
        p = run("cells", "--json", "--out", self.out, stdin=b"\n".join(lines))
        answers = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual([a["status"] for a in answers], ["ok"] + ["refused"] * 8 + ["ok"], p.stderr)
        self.assertEqual([answers[0]["id"], answers[2]["id"], answers[-1]["cell"]], [5, "both", 2])
        self.assertEqual(p.returncode, 1)

    def test_a_cell_that_is_stopped_with_the_command_gets_its_line(self) -> None:
        with subprocess.Popen([PROGRAM, "cells", "--json", "--out", self.out], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            p.stdin.write(b'{"code": "print(1)"}\n{"code": "import time; time.sleep(50)", "id": "long"}\n')
            p.stdin.flush()
            self.assertEqual(json.loads(p.stdout.readline())["status"], "ok")  # the second is asked in the same breath
            p.send_signal(signal.SIGINT)
            answer = json.loads(p.stdout.readline())
        self.assertEqual((answer["id"], answer["status"], list(answer)[: len(KEYS)]), ("long", "cancelled", KEYS))
        self.assertEqual(p.returncode, 1)

    def test_plain_cells_print_text_and_fail_with_one(self) -> None:
        p = run("cells", "--out", self.out, stdin="print('one')\n# %%\n1 + 1\n# %%\n1/0\n")
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stdout, "one\n2\n")
        self.assertIn("ZeroDivisionError", p.stderr)

    def test_no_cells_are_no_error(self) -> None:
        self.assertEqual(run("cells", "--json", "--out", self.out).returncode, 0)
