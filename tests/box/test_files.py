"""/mnt/data over a folder of durable files: what a cell sees and may do, what is told of it, and what never changes.

As root, as a plain user and inside a user namespace. Root in a namespace of many ids cannot have its owner's ids mapped: there the
files are copied, and everything else is the same.
"""
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from attacks.world import IDENTITIES, IS_ROOT, Attacked, in_range
from keeper import DROP, MIB, UID_BASE, wait_until

RANGE = {"Range": in_range} if IS_ROOT else {}
OWNER = {"User": 65534, "UserNamespace": 65534, "Range": UID_BASE + 200000}
FILES = {"sales.csv": b"region,amount\nN,1\n", "été 数据.csv": b"x\n", "deep/er/a.txt": b"a", "deep/b.txt": b"b"}


class Files(Attacked):
    identity = None

    @classmethod
    def setUpClass(cls):
        IDENTITIES.update(RANGE)
        try:
            super().setUpClass()
        finally:
            for name in RANGE:
                IDENTITIES.pop(name)

    def setUp(self):
        self.folder = self.lay(FILES)
        self.box = self.keeper.open(files=self.folder, **self.limits)
        self.assertEqual(self.box.opened.verdict, "ok", self.box.opened)

    def tearDown(self):
        if self.box:
            self.close(self.box)
        self.assertEqual(self.host.changes(), [])

    def lay(self, files):
        """A folder as the daemon hands it over, owned by who runs the keeper."""
        top = Path(tempfile.mkdtemp(prefix="sandbook-files-"))
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        for name, data in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(data)
        for path in (top, *top.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o600)
            if IS_ROOT:
                os.chown(path, OWNER.get(self.identity, 0), OWNER.get(self.identity, 0))
        return str(top)

    def cell(self, code):
        a = self.box.cell(code)
        self.assertEqual((a.verdict, a.error), ("ok", None), a)
        return a

    def unchanged(self, folder=None, files=FILES):
        found = {str(p.relative_to(folder or self.folder)): p.read_bytes() for p in Path(folder or self.folder).rglob("*") if p.is_file()}
        self.assertEqual(found, files)

    # ---- what is there ----

    def test_the_files_are_there_and_the_session_owns_them(self):
        a = self.cell("import os\nfor d, _, fs in os.walk('.'):\n    for f in fs: p = os.path.join(d, f); s = os.stat(p); print(s.st_uid, os.access(p, os.W_OK), open(p, 'rb').read())")
        self.assertEqual(a.out.count(b"1000 True"), 4, a)
        self.assertEqual(a.files, {})
        self.assertEqual(self.cell("os.path.exists('été 数据.csv'), os.getcwd(), os.path.isdir('out')").result, "(True, '/mnt/data', True)")

    def test_only_the_merged_folder_has_a_place_in_the_box(self):
        a = self.cell("print(os.listdir('/mnt') if 'os' in dir() else __import__('os').listdir('/mnt'))\nfor l in open('/proc/self/mountinfo'):\n    if '/mnt' in l.split()[4]: print(l)")
        self.assertEqual(a.words[0], "['data']")
        self.assertEqual(a.out.count(b"/mnt/data"), 1, a)
        for word in (self.folder, "sandbook-", "/root", "/home", "/tmp/"):
            self.assertNotIn(word.encode(), a.out)

    def test_the_folder_stays_as_it_was_whatever_a_cell_does(self):
        self.cell("import os, shutil\nopen('sales.csv', 'a').write('S,2\\n')\nopen('été 数据.csv', 'w').write('other')\nos.unlink('deep/b.txt')\nshutil.rmtree('deep/er')\nos.chmod('sales.csv', 0o400)\nopen('new', 'w').write('n')")
        self.unchanged()

    # ---- what is told ----

    def test_new_changed_and_gone_are_told_once(self):
        a = self.cell("import os\nopen('sales.csv', 'a').write('S,2\\n'); os.makedirs('out/x'); open('out/x/r.csv', 'w').write('r'); os.unlink('deep/b.txt')")
        self.assertEqual((a.files, a.gone), ({"sales.csv": FILES["sales.csv"] + b"S,2\n", "out/x/r.csv": b"r"}, ["deep/b.txt"]))
        a = self.cell("1")
        self.assertEqual((a.files, a.gone), ({}, []))
        a = self.cell("os.unlink('out/x/r.csv'); os.unlink('sales.csv')")
        self.assertEqual((a.files, sorted(a.gone)), ({}, ["out/x/r.csv", "sales.csv"]))

    def test_a_file_that_comes_back_is_told(self):
        self.cell("import os; os.unlink('sales.csv')")
        a = self.cell("open('sales.csv', 'w').write('again')")
        self.assertEqual((a.files, a.gone), ({"sales.csv": b"again"}, []))

    def test_a_folder_made_anew_hides_what_was_below(self):
        a = self.cell("import os, shutil; shutil.rmtree('deep'); os.mkdir('deep'); open('deep/c.txt', 'w').write('c')")
        gone = {p for p in FILES if any(p == g or p.startswith(g + "/") for g in a.gone)}
        self.assertEqual((a.files, gone), ({"deep/c.txt": b"c"}, {"deep/er/a.txt", "deep/b.txt"}))
        self.assertEqual(self.cell("sorted(os.listdir('deep'))").result, "['c.txt']")

    def test_a_renamed_file_is_gone_and_new(self):
        a = self.cell("import os; os.rename('sales.csv', 'renamed.csv')")
        self.assertEqual((a.files, a.gone), ({"renamed.csv": FILES["sales.csv"]}, ["sales.csv"]))

    def test_reading_is_no_change(self):
        a = self.cell("import pandas as pd, os\ndf = pd.read_csv('sales.csv'); open('sales.csv', 'r+').close(); os.stat('deep/b.txt')")
        self.assertEqual(a.gone, [])
        self.assertLessEqual(set(a.files), {"sales.csv"})  # opened for writing: as good as changed

    def test_a_file_that_is_put_is_there_at_once_and_no_news(self):
        self.assertVerdict(self.box.put("sales.csv", b"sent again"), "ok")
        self.assertVerdict(self.box.put("other.csv", b"o"), "ok")
        a = self.cell("print(open('sales.csv').read(), open('other.csv').read())")
        self.assertEqual((a.words, a.files), (["sent", "again", "o"], {}))
        self.unchanged()

    def test_putting_hides_no_change_of_a_background_thread(self):
        self.cell("import threading, time\ndef f():\n    time.sleep(0.4); open('late.txt', 'w').write('late')\nthreading.Thread(target=f).start()")
        self.assertVerdict(self.box.put("x", b"x"), "ok")
        self.box.call("vars")
        self.assertEqual(self.cell("time.sleep(0.8)").files, {"late.txt": b"late"})

    # ---- taken away ----

    def test_a_file_that_is_taken_away_is_gone_for_everybody_and_no_news(self):
        self.cell("import os; df = open('sales.csv').read(); os.listdir('.'); os.listdir('deep'); open('mine.txt', 'w').write('m')")
        self.assertVerdict(self.box.drop("sales.csv", "deep/er/a.txt", "never there", "no/such/folder"), "ok")
        a = self.cell("try: open('sales.csv')\nexcept FileNotFoundError as e: print(type(e).__name__)\nprint(sorted(os.listdir('.')), os.listdir('deep'), len(df))")
        self.assertEqual((a.out, a.files, a.gone), ("FileNotFoundError\n['deep', 'mine.txt', 'out', 'été 数据.csv'] ['b.txt'] 18\n".encode(), {}, []))
        self.unchanged()

    def test_a_file_is_taken_away_while_a_cell_runs(self):
        request = self.box.begin_told("import os, time\nprint('=begun', flush=True)\nt = time.time()\nwhile os.path.exists('sales.csv') and time.time() < t + 15: time.sleep(0.01)\n"
                                      "print(os.path.exists('sales.csv')); open('made.txt', 'w').write('made')")
        self.assertVerdict(self.box.drop("sales.csv"), "ok")
        a = self.keeper.answer(self.box.id, request)
        self.assertEqual((a.words[-1], a.files, a.gone), ("False", {"made.txt": b"made"}, []), a)

    def test_taking_away_takes_no_folder_with_files_nor_follows_a_link(self):
        self.cell("import os; os.makedirs('zip/below'); open('zip/below/x', 'w').close(); open('zip/own', 'w').close(); os.symlink('deep', 'link'); os.symlink('/mnt', 'up')")
        self.assertVerdict(self.box.drop("zip/below/x"), "ok")
        self.assertEqual(self.cell("os.listdir('zip')").result, "['own']")
        for path in ("deep", "deep/../sales.csv", "../data/sales.csv", "/mnt/data/sales.csv", "link/b.txt", "up/data/sales.csv", ".", "..", "", "zip/", 7, "a\nb"):
            self.assertVerdict(self.box.drop(path), "failed", "kept", "could not be removed")
        self.assertEqual(self.cell("sorted(os.listdir('.')), os.listdir('deep/er'), sorted(os.listdir('deep')), os.listdir('zip')").result.replace("\n", ""),
                         "(['deep', 'link', 'out', 'sales.csv', 'up', 'zip', 'été 数据.csv'], ['a.txt'], ['b.txt', 'er'], ['own'])")
        self.assertVerdict(self.keeper.answer(self.box.id, self.box.begin(DROP, b"{")), "failed", "kept")

    def test_a_file_taken_away_does_not_come_back_with_an_older_state(self):
        self.cell("x = 1")
        self.cell("x = 2")
        self.assertVerdict(self.box.drop("sales.csv"), "ok")
        self.assertVerdict(self.box.back(1), "ok")
        self.assertEqual(self.cell("import os; x, os.path.exists('sales.csv')").result, "(1, False)")
        self.assertVerdict(self.box.put("sales.csv", b"again"), "ok")
        self.assertEqual(self.cell("open('sales.csv').read()").result, "'again'")

    def test_after_a_death_files_are_as_the_code_left_them(self):
        self.cell("x = 1")
        a = self.box.cell("import os; open('sales.csv', 'w').write('half'); os.unlink('deep/b.txt'); os.abort()")
        self.assertEqual((a.verdict, a.files, a.gone), ("crash", {"sales.csv": b"half"}, ["deep/b.txt"]))
        self.assertEqual(self.cell("import os; x, open('sales.csv').read(), os.getcwd(), os.path.exists('deep/b.txt')").result, "(1, 'half', '/mnt/data', False)")

    # ---- what can't be kept ----

    def test_what_cannot_be_kept_is_said_with_the_reason(self):
        a = self.cell("import os\nopen('bad\\nname', 'w'); open(b'\\xff\\xfe', 'w'); open('\\x1b[31mred', 'w'); open('ok', 'w').write('k')\nos.makedirs('/'.join('d' * 17)); open('/'.join('d' * 17) + '/deep', 'w')")
        self.assertEqual(a.files, {"ok": b"k"})
        self.assertEqual(a.kept_out, {"bad name": "its name has control characters", "\ufffd\ufffd": "its name is not valid UTF-8", "red": "its name has control characters",
                                      "/".join("d" * 17): "it lies deeper than 16 folders"})
        self.assertEqual(self.cell("1").kept_out, {})

    def test_a_long_path_is_refused(self):
        a = self.cell("import os\np = '/'.join('n' * 200 for _ in range(5))\nos.makedirs(p); open(p + '/' + 'f' * 100, 'w')")
        self.assertEqual((a.files, list(a.kept_out.values())), ({}, ["its path is longer than 1,024 bytes"]), a)

    def test_more_than_a_cell_may_hand_over_is_said(self):
        a = self.box.cell("for i in range(1200): open(f'{i}.txt', 'w').close()", timeout_ms=60000)
        self.assertEqual((len(a.files), a.kept_out), (1000, {"200 more files": "one cell may hand over 1,000"}))

    def test_more_refusals_than_are_named_are_counted_as_such(self):
        a = self.cell("for i in range(25): open(f'a\\n{i}', 'w').close()")
        self.assertEqual((len(a.kept_out), a.kept_out.get("5 more files")), (21, "they cannot be kept either"), a.kept_out)

    def test_a_folder_that_cannot_be_read_is_not_taken_for_empty(self):
        self.cell("import os; os.mkdir('mine'); open('mine/a', 'w').write('a')")
        a = self.cell("os.chmod('mine', 0)")
        self.assertEqual(a.gone, [])
        self.cell("os.chmod('mine', 0o755)")

    def test_bytes_and_inodes_are_bounded(self):
        a = self.box.cell("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))")
        self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)
        self.cell("f.close(); import os; os.unlink('big')")
        a = self.box.cell("for i in range(100000): open(f'i{i}', 'w').close()", timeout_ms=60000)
        self.assertEqual((a.verdict, a.error), ("ok", "OSError"), a)
        self.assertEqual(self.box.cell("6 * 7").result, "42")

    def test_a_hole_is_a_hole(self):
        a = self.cell("open('s', 'wb').truncate(200 << 20)")
        self.assertEqual(len(a.files["s"]), MIB)  # what this test reads of it

    def test_what_is_no_plain_file_is_not_told(self):
        a = self.cell("import os, socket\nos.symlink('/etc/passwd', 'l'); os.symlink('sales.csv', 'm'); s = socket.socket(socket.AF_UNIX); s.bind('s'); os.link('sales.csv', 'hard')")
        self.assertLessEqual(set(a.files), {"hard", "sales.csv"})
        self.assertEqual(a.gone, [])

    # ---- locks ----

    def test_the_box_gets_no_hold_of_its_layers(self):
        a = self.cell("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(n, *a): return libc.syscall(n, *a) < 0\n"
                      "print(call(165, b'none', b'/mnt/data', b'tmpfs', 0, 0), call(166, b'/mnt/data', 2), call(428, -100, b'/mnt/data', 1), call(188, b'sales.csv', b'user.overlay.opaque', b'y', 1, 0))\n"
                      "open('w', 'w').close(); call(316, -100, b'w', -100, b'w2', 4)\nprint(sorted(os.listdir('/mnt/data/..')))")
        self.assertEqual(a.out, b"True True True True\n['data']\n")

    def test_a_neighbour_sees_nothing_of_it(self):
        other = self.keeper.open(files=self.lay({"sales.csv": b"other"}), **self.limits)
        self.cell("open('sales.csv', 'w').write('mine'); open('only.txt', 'w').write('o')")
        self.assertEqual(other.cell("import os; open('sales.csv').read(), sorted(os.listdir('.'))").result, "('other', ['out', 'sales.csv'])")
        self.assertVerdict(other.close(), "ok")

    # ---- going back with files ----

    def test_a_branch_has_files_of_its_own(self):
        self.cell("x = 1; open('sales.csv', 'w').write('first'); open('mine.txt', 'w').write('m')")
        self.cell("x = 2")
        branch = self.lay({"sales.csv": b"as of cell 1", "b/c": b"c"})
        a = self.box.back(1, files=branch)
        self.assertVerdict(a, "ok", "rolled_back")
        a = self.cell("import os; x, open('sales.csv').read(), sorted(os.listdir('.')), os.getcwd(), open('/mnt/data/b/c').read()")
        self.assertEqual((a.result, a.files, a.gone), ("(1, 'as of cell 1', ['b', 'out', 'sales.csv'], '/mnt/data', 'c')", {}, []))
        a = self.cell("open('sales.csv', 'a').write('!'); os.unlink('b/c')")
        self.assertEqual((a.files, a.gone), ({"sales.csv": b"as of cell 1!"}, ["b/c"]))
        self.unchanged()
        self.unchanged(branch, {"sales.csv": b"as of cell 1", "b/c": b"c"})
        self.assertVerdict(self.box.back(2, files=self.lay({"z": b"z"})), "ok")
        self.assertEqual(self.cell("import os; x, sorted(os.listdir('.'))").result, "(2, ['out', 'z'])")

    def test_undo_leaves_the_files(self):
        self.cell("x = 1")
        self.cell("x = 2; open('sales.csv', 'w').write('second')")
        self.assertVerdict(self.box.back(), "ok")
        self.assertEqual(self.cell("x, open('sales.csv').read()").result, "(1, 'second')")

    def test_a_folder_that_is_no_folder_opens_no_session(self):
        before = set(self.keeper.descendants())
        with tempfile.NamedTemporaryFile() as f:
            self.keeper.sessions += 1
            self.keeper.send(1, self.keeper.sessions, 0, b"", [f.fileno()])
            self.assertEqual(self.keeper.answer(self.keeper.sessions, 0).verdict, "failed")
        wait_until(lambda: set(self.keeper.descendants()) <= before, "what was made for it to be gone")


for name in (*IDENTITIES, *RANGE):
    made = type(f"FilesAs{name}", (Files,), {"identity": name, "__module__": __name__})
    setattr(sys.modules[__name__], made.__name__, made)
del Files, Attacked, made

if __name__ == "__main__":
    unittest.main()
