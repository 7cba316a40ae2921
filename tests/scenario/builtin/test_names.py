"""Names that bite: whatever columns and values are called, the programs compile, run and answer."""
from __future__ import annotations

import ast
import csv
import json
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from sandbook import run  # noqa: E402

NAMES = ['say "hi"', "it's {x}", "back\\slash", "line\nbreak", "pipe|bar", "$cost$ %s", "`tick`", "😱 emoji", "数量\u2028x", "__import__('os')"]
GROUPS = ['a "q"', "b'c", "d\\", "e\nf", "g|h", "{i}", "$j$", "😱", "北京", "__k__"]


def write(path: Path, measure: str, group: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as f:
        out = csv.writer(f)
        out.writerow([group, measure])
        out.writerows([value, i * 7 % 13 + 0.5] for i, value in enumerate(GROUPS * 4))


class Names(unittest.TestCase):
    def answer(self, folder: str, at: int) -> tuple[str, dict]:
        measure, group = NAMES[at], NAMES[-1 - at] + " g"
        path = Path(folder, f"t{at} $'{{}}.csv")
        write(path, measure, group)
        request = f"average of “{measure}” by “{group}” as a bar chart" if at % 2 else f"按“{group}”统计平均“{measure}”，画柱状图"
        p = run("ask", "--json", "--model", "builtin", "--out", f"{folder}/{at}", "--file", str(path), request)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        return request, json.loads(p.stdout)

    def test_every_program_compiles_and_answers(self) -> None:
        with tempfile.TemporaryDirectory(prefix="sandbook-names-") as folder, ThreadPoolExecutor(2) as pool:
            for request, reply in pool.map(lambda at: self.answer(folder, at), range(len(NAMES))):
                with self.subTest(request=request):
                    self.assertEqual(reply["status"], "answered", reply["answer"])
                    self.assertEqual(len(reply["figures"]), 1)
                    for cell in reply["cells"]:
                        ast.parse(cell["code"])
                        self.assertEqual(cell["status"], "ok", cell["error"])
                        self.assertNotIn("Warning", cell["stderr"])
                    table = [line for line in reply["answer"].splitlines() if line.startswith("|")]
                    self.assertEqual(len({line.count("|") - line.count("\\|") for line in table}), 1, table)
                    self.assertEqual(len(table), 2 + len(GROUPS), table)


if __name__ == "__main__":
    unittest.main()
