"""Attacks by content: what a box leaves in its folder, and what is put there, under the keeper's hands (section 4, 13-19, 96-100)."""
import io
import os
import time
import zipfile
import zlib
from pathlib import Path

from attacks.world import Attacked, for_each_identity
from keeper import MIB

SWAPS = 10_000


class Content(Attacked):
    limits = {"memory_bytes": 512 * MIB, "disk_bytes": 128 * MIB}

    def tearDown(self):
        if self.box:
            self.answers()
            self.unharmed()
            self.close(self.box)

    def answers(self, state="kept"):
        a = self.box.cell("print(6 * 7)")
        self.assertEqual((a.verdict, a.words[-1:]), ("ok", ["42"]), a)

    def rss(self):
        status = Path(f"/proc/{self.keeper.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def race(self, swap, look):
        """A process in the box swaps SWAPS times; meanwhile the keeper collects again and again."""
        code = (
            "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n"
            "def exchange(a, b): libc.syscall(316 if os.uname().machine == 'x86_64' else 276, -100, a, -100, b, 2)\n"
            f"{swap}\n"
            f"if os.fork() == 0:\n    for n in range({SWAPS}):\n        flip(n)\n        if n % 50 == 0: time.sleep(0.001)\n    open('/tmp/swapped', 'w').write(str(n + 1)); os._exit(0)\n"
        )
        self.assertVerdict(self.box.cell(code), "ok")
        looks = 0
        while looks < 60 or self.box.cell("import os; os.path.exists('/tmp/swapped')").result != "True":
            a = self.box.cell("for _ in range(3): time.sleep(0.0005)", timeout_ms=20000)
            self.assertVerdict(a, "ok")
            look(a)
            looks += 1
            self.assertLess(looks, 5000)
        self.assertEqual(self.box.cell("int(open('/tmp/swapped').read())").result, str(SWAPS))

    def mine_or_nothing(self, a):
        for path, data in a.files.items():
            self.assertIn(data, (b"mine", b""), path)
            self.assertNotEqual(os.path.basename(path), "canary")

    def test_17_a_file_swapped_with_a_link_is_never_followed(self):
        swap = (
            "open('x', 'w').write('mine')\n"
            f"os.symlink({str(self.host.canary)!r}, 'y')\nos.symlink('/etc/passwd', 'z')\n"
            "def flip(n):\n    exchange(b'x', b'y' if n % 2 else b'z')\n    if n % 7 == 0: os.utime('x', follow_symlinks=False)\n"
        )
        self.race(swap, self.mine_or_nothing)

    def test_17b_a_folder_swapped_with_a_link_is_never_entered(self):
        swap = (
            "os.mkdir('d'); open('d/canary.txt', 'w').write('mine'); open('d/passwd', 'w').write('mine')\n"
            f"os.symlink({self.host.folder!r}, 'e'); os.symlink('/etc', 'f')\n"
            "def flip(n): exchange(b'd', b'e' if n % 2 else b'f')\n"
        )
        self.race(swap, self.mine_or_nothing)

    def test_17c_a_file_swapped_with_everything_else(self):
        swap = (
            "import socket\nopen('x', 'w').write('mine'); os.mkdir('y'); os.symlink('x', 'l')\ns = socket.socket(socket.AF_UNIX); s.bind('s')\n"
            "def flip(n): exchange(b'x', (b'y', b's', b'l')[n % 3])\n"
        )
        self.race(swap, self.mine_or_nothing)

    def test_17d_a_file_that_grows_and_shrinks(self):
        swap = "open('x', 'w').write('mine')\ndef flip(n): os.truncate('x', (0, 4, 1 << 20)[n % 3])\n"
        self.race(swap, lambda a: self.assertLessEqual(len(a.files.get("x", b"")), MIB))

    def test_13_links_of_every_kind_are_no_results(self):
        code = (
            "import os\n"
            f"for i, to in enumerate(['/etc/shadow', '/etc/passwd', {str(self.host.canary)!r}, '/proc/self/environ', '/proc/1/environ', '../../../etc/shadow', '/dev/zero', '.', 'loop', '/proc/self/fd/0']):\n"
            "    os.symlink(to, f'result{i}.png')\n"
            f"os.symlink('loop', 'loop'); os.symlink('/', 'root'); os.symlink({self.host.folder!r}, 'folder'); os.symlink('/mnt/data', 'self')\n"
            "open('out/real.txt', 'w').write('mine'); os.symlink('out/real.txt', 'soft.txt')\n"
        )
        a = self.box.cell(code)
        self.assertEqual(a.files, {"out/real.txt": b"mine"})

    def test_13b_the_folder_of_results_is_a_link(self):
        a = self.box.cell(f"import os, shutil\nshutil.rmtree('out'); os.symlink({self.host.folder!r}, 'out')\nopen('b.txt', 'w').write('mine')")
        self.assertVerdict(a, "ok")
        self.assertEqual(a.files, {"b.txt": b"mine"})

    def test_14_results_that_are_no_files(self):
        code = (
            "import os, socket\nos.mkdir('dir.png')\ns = socket.socket(socket.AF_UNIX); s.bind('sock.png')\n"
            "open('no.txt', 'w').write('x'); os.chmod('no.txt', 0)\nos.mkdir('shut'); open('shut/in.txt', 'w').close(); os.chmod('shut', 0)\n"
            "open('w.txt', 'w').write('x'); os.chmod('w.txt', 0o222)\nopen('yes.txt', 'w').write('mine')"
        )
        a = self.box.cell(code)
        self.assertVerdict(a, "ok")
        self.assertEqual(a.files["yes.txt"], b"mine")
        self.assertLessEqual(set(a.files), {"yes.txt", "no.txt", "w.txt", "shut/in.txt"})

    def test_15_giants_with_holes_cost_the_keeper_nothing(self):
        before = self.rss()
        a = self.box.cell("for i in range(800): open(f's{i}', 'wb').truncate(255 << 20)", timeout_ms=60000)  # 200 GiB together
        self.assertVerdict(a, "ok")
        self.assertLessEqual(len(a.files), 1000)
        self.assertLess(self.rss() - before, 16 * MIB)

    def test_18_a_hundred_thousand_files(self):
        code = "import os\nn = 0\ntry:\n    for n in range(100000): os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))\nexcept OSError as e: print(e.errno)\nprint(n)"
        a = self.box.cell(code, timeout_ms=60000)
        self.assertVerdict(a, "ok")
        self.assertEqual(a.words[0], "28", a)
        self.assertLess(int(a.words[1]), 9000)
        self.assertLessEqual(len(a.files), 1000)
        self.assertLess(self.box.cell("1").ms, 1500)

    def test_18b_names_of_every_kind(self):
        code = (
            "import os\n"
            "for n in [b'\\xff\\xfe', b'a\\nb', b'\\x1b[31m', b'\\x7f', b'c\\x01', b'-rf', b'--help', b' ', b'a b', b'.hidden', b'...', b'*', b'$(id)', b'`id`', b'a;b', b'%s%n', b'CON', b'a\\\\b',\n"
            "          '\\u202egnp.exe'.encode(), '\\u0085'.encode(), 'e\\u0301'.encode(), '\\ufeff'.encode(), b'x' * 255, '数'.encode() * 85, b'\\xc0\\xaf', b'\\xed\\xa0\\x80', b'\\xf4\\x90\\x80\\x80']:\n"
            "    os.close(os.open(n, os.O_CREAT | os.O_WRONLY, 0o644))\n"
        )
        a = self.box.cell(code)
        self.assertVerdict(a, "ok")
        for path in a.files:
            self.assertFalse(any(ord(c) < 32 or 127 <= ord(c) < 160 for c in path), repr(path))
            self.assertFalse(path.startswith("."), path)
        self.assertIn("a b", a.files)
        self.assertIn("数" * 85, a.files)

    def test_18c_deep_trees(self):
        code = (
            "import os\nfor top in ('d', 'x' * 200):\n    os.chdir('/mnt/data')\n    for _ in range(1000):\n"
            "        try: os.mkdir(top); os.chdir(top); open('f', 'w').close()\n        except OSError: break\nos.chdir('/mnt/data')\nopen('top.txt', 'w').write('mine')"
        )
        a = self.box.cell(code, timeout_ms=30000)
        self.assertVerdict(a, "ok")
        self.assertEqual(a.files["top.txt"], b"mine")
        self.assertLessEqual(max(path.count("/") for path in a.files), 16)  # BOX_DEPTH_MAX
        self.assertLess(self.box.cell("1").ms, 1500)

    def test_18d_wide_and_deep_trees(self):
        code = "import os\nfor a in range(10):\n  for b in range(10):\n    for c in range(10):\n      os.makedirs(f'{a}/{b}/{c}'); open(f'{a}/{b}/{c}/f', 'w').close()"
        a = self.box.cell(code, timeout_ms=30000)
        self.assertVerdict(a, "ok")
        self.assertLessEqual(len(a.files), 1000)

    def test_18e_a_file_that_is_read_while_its_box_dies(self):
        a = self.box.cell("import os\nopen('last.txt', 'w').write('mine')\nos.abort()")
        self.assertVerdict(a, "crash")
        self.assertEqual(a.files, {"last.txt": b"mine"})

    # ---- putting ----

    def test_16_putting_into_a_folder_that_flips(self):
        self.box.cell(
            "import ctypes, os\nlibc = ctypes.CDLL(None)\nopen('a', 'w').close()\n"
            f"os.symlink({str(self.host.canary)!r}, 'b'); os.mkdir('c')\n"
            "if os.fork() == 0:\n    nr = 316 if os.uname().machine == 'x86_64' else 276\n"
            "    while True:\n        libc.syscall(nr, -100, b'a', -100, b'b', 2); libc.syscall(nr, -100, b'a', -100, b'c', 2)\n"
            "        try: os.symlink('/tmp/elsewhere', '.sandbook-put')\n        except OSError: pass\n"
        )
        verdicts = {self.box.put("a", b"put " * 100).verdict for _ in range(150)}
        self.assertLessEqual(verdicts, {"ok", "failed"})
        self.assertEqual(self.host.canary.read_text(), "canary-7f1d")
        self.assertEqual(self.box.cell("os.path.exists('/tmp/elsewhere')").result, "False")
        self.assertVerdict(self.box.reset(), "ok")

    def test_16b_the_name_that_putting_uses_is_taken(self):
        for way in ("os.mkdir('.sandbook-put'); os.mkdir('.sandbook-put/x')", "os.symlink('/etc', '.sandbook-put')", "os.chmod('.', 0o500)"):
            with self.subTest(way):
                self.box.cell("import os, shutil\nos.chmod('.', 0o755)\nif os.path.isdir('.sandbook-put') and not os.path.islink('.sandbook-put'): shutil.rmtree('.sandbook-put')\nelif os.path.lexists('.sandbook-put'): os.unlink('.sandbook-put')")
                self.box.cell("import os\n" + way)
                a = self.box.put("in.txt", b"data")
                self.assertIn(a.verdict, ("ok", "failed"), a)
                self.assertTrue(a.verdict == "ok" or a.why, a)
        self.box.cell("import os; os.chmod('.', 0o755)")

    def test_16c_putting_a_giant_with_holes(self):
        fd = os.memfd_create("giant")
        os.ftruncate(fd, 200 << 30)
        began = time.perf_counter()
        a = self.box.put("giant", fd=fd)
        os.close(fd)
        self.assertVerdict(a, "failed", "kept")
        self.assertLess(time.perf_counter() - began, 10)

    # ---- what is parsed inside ----

    def intake(self, name, data, verdicts=("ok",)):
        put = self.box.put(name, data)
        self.assertVerdict(put, "ok")
        a = self.box.call("intake", name=name, timeout_ms=8000)
        self.assertIn(a.verdict, verdicts, a)
        return a

    def test_19_archives_that_climb(self):
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w") as z:
            for name in ("../up.txt", "/etc/abs.txt", "a/../../up2.txt", "..\\win.txt", "C:\\x.txt", "ok.txt", "deep/" * 60 + "x", "n" * 300, "nul\0.txt", ".hidden", "out/../../../tmp/z"):
                z.writestr(zipfile.ZipInfo(name.replace("\0", "")), "mine")
            link = zipfile.ZipInfo("link")
            link.external_attr = 0o120777 << 16
            z.writestr(link, str(self.host.canary))
            through = zipfile.ZipInfo("link/through.txt")
            z.writestr(through, "mine")
        self.intake("climb.zip", f.getvalue())
        code = (
            "import os\nbad = [os.path.join(d, n) for top in ('/tmp', '/mnt/data') for d, ds, ns in os.walk(top) for n in ns + ds if os.path.islink(os.path.join(d, n))]\n"
            "print(len(bad), os.path.exists('/mnt/up.txt'), os.path.exists('/up2.txt'), os.path.exists('/tmp/z'), os.path.exists('/etc/abs.txt'))"
        )
        self.assertEqual(self.box.cell(code).words, ["0", "False", "False", "False", "False"])

    def test_19b_archives_that_burst(self):
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
            for i in range(10):
                z.writestr(f"zeros{i}.csv", bytes(60 * MIB))
        self.intake("bomb.zip", f.getvalue(), ("ok", "oom", "limit", "timeout", "failed"))
        nest = b"x" * 1000
        for i in range(12):
            f = io.BytesIO()
            with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
                for j in range(4):
                    z.writestr(f"{i}-{j}.zip", nest)
            nest = f.getvalue()
            if len(nest) > MIB:
                break
        self.box.reset()
        self.box.cell("import os, shutil\nfor n in os.listdir('.'):\n    shutil.rmtree(n, ignore_errors=True) if os.path.isdir(n) else os.unlink(n)")
        self.intake("nest.zip", nest, ("ok", "oom", "limit", "timeout", "failed"))

    def test_19c_archives_of_very_many(self):
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w") as z:
            for i in range(20000):
                z.writestr(f"{i}", "")
        self.intake("many.zip", f.getvalue(), ("ok", "limit", "timeout"))

    def test_99_files_that_are_hostile_to_their_reader(self):
        def png(width, height):
            head = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
            return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + head + zlib.crc32(head).to_bytes(4, "big") + bytes(8) + b"IDAT"

        def xlsx(sheet):
            f = io.BytesIO()
            with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
                z.writestr("[Content_Types].xml", '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>')
                z.writestr("xl/workbook.xml", sheet)
            return f.getvalue()

        lol = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "lol">' + "".join(f'<!ENTITY {chr(98 + i)} "{"&" + chr(97 + i) + ";" * 1}{("&" + chr(97 + i) + ";") * 9}">' for i in range(9)) + "]><l>&j;</l>"
        outside = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://{self.host.canary}">]><x>&e;</x>'
        for name, data in {
            "wide.csv": b",".join(b"c%d" % i for i in range(60000)) + b"\n" + b",".join([b"1"] * 60000),
            "long.csv": b"a" * (8 * MIB),
            "quote.csv": b'a,b\n"' + b"x\n" * 200000,
            "nul.csv": b"a,b\n\0\0,\0\n" * 1000,
            "deep.json": b"[" * 200000 + b"]" * 200000,
            "big.json": b'{"a":' + b"9" * 100000 + b"}",
            "nan.json": b'[{"a": NaN}, {"a": 1e999}]',
            "lol.xml": lol.encode(),
            "lol.xlsx": xlsx(lol),
            "outside.xlsx": xlsx(outside),
            "bomb.xlsx": xlsx("<x>" + "0" * (30 * MIB)),
            "huge.png": png(60000, 60000),
            "flat.png": png(1, 2**31 - 1),
            "none.png": png(0, 0),
            "x.pkl": b"cos\nsystem\n(S'touch /tmp/pickled'\ntR.",
            "x.parquet": b"PAR1" + os.urandom(2000) + b"\xff\xff\xff\x7fPAR1",
            "x.sqlite": b"SQLite format 3\0" + os.urandom(4000),
            "x.pdf": b"%PDF-1.7\n" + b"<<" * 50000,
            "x.docx": xlsx(lol),
            "x.gz": zlib.compress(bytes(100 * MIB), 9),
            "formula.csv": b"a\n=HYPERLINK(\"http://x\",\"y\")\n@SUM(1)\n",
        }.items():
            with self.subTest(name):
                a = self.intake(name, data, ("ok", "oom", "timeout", "limit", "crash"))
                self.assertNotIn(b"canary-7f1d", a.claim_text + a.out + a.err)
                if a.verdict != "ok":
                    print(f"{name}: {a.verdict} {a.why}")
                self.box.cell(f"import os; os.path.exists({name!r}) and os.unlink({name!r})")
        self.assertEqual(self.box.cell("import os; os.path.exists('/tmp/pickled')").result, "False")


for_each_identity(Content)
del Content, Attacked
