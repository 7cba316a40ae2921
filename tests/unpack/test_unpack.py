"""What unpack takes out of an archive, and what it refuses."""

import bz2
import gzip
import json
import lzma
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from archives import rar, special, tarred, zipped, zipped_raw

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "../../sandbox/inside/helper/unpack.c"
FLAVOURS = {
    "plain": ["-O2"],
    "sanitized": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}
OK, BAD_ARCHIVE, USAGE, LIMIT_HIT = 0, 1, 2, 4
TABLE = b"a,b\n1,2\n"
programs: dict[str, Path] = {}


def setUpModule():
    """Builds the helper as it is shipped, and with sanitizers."""
    folder = Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, folder)
    for flavour, flags in FLAVOURS.items():
        programs[flavour] = folder / flavour
        command = [
            os.environ.get("CC", "cc"),
            "-std=c17",
            "-D_GNU_SOURCE",
            *flags,
            "-o",
            str(programs[flavour]),
            str(SOURCE),
            "-larchive",
        ]
        subprocess.run(command, check=True)


class UnpackTest(unittest.TestCase):
    flavour = "sanitized"

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.dest = self.folder / "dest"
        self.dest.mkdir()

    def unpack(self, archive: Path, *options: str, status: int = OK) -> dict:
        """Runs the helper; its report, and a check that report and disk agree."""
        command = [str(programs[self.flavour]), str(archive), str(self.dest), *options]
        run = subprocess.run(command, capture_output=True, check=False, timeout=60)
        self.assertEqual(run.returncode, status, run.stderr.decode())
        lines = [json.loads(line) for line in run.stdout.decode().splitlines()]
        report = lines[-1]
        report["paths"] = [line["path"] for line in lines if "path" in line]
        report["skipped"] = {line["skipped"]: line["why"] for line in lines if "skipped" in line}
        self.assertEqual(sorted(report["paths"]), sorted(self.on_disk()))
        return report

    def on_disk(self) -> list[str]:
        return [
            os.path.relpath(os.path.join(root, name), self.dest)
            for root, _, names in os.walk(self.dest)
            for name in names
        ]


class Formats(UnpackTest):
    def test_every_kind_of_archive_gives_its_files(self):
        members = [("a.csv", TABLE), ("sub/b.csv", TABLE)]
        made = {
            "x.zip": lambda path: zipped(path, members),
            "x.tar": lambda path: tarred(path, members),
            "x.tar.gz": lambda path: tarred(path, members, "w:gz"),
            "x.tbz": lambda path: tarred(path, members, "w:bz2"),
            "x.tar.xz": lambda path: tarred(path, members, "w:xz"),
            "x.rar": lambda path: rar(path, members),
            "no-ending": lambda path: zipped(path, members),
        }
        for name, make in made.items():
            with self.subTest(name):
                shutil.rmtree(self.dest)
                self.dest.mkdir()
                report = self.unpack(make(self.folder / name))
                self.assertEqual(sorted(report["paths"]), ["a.csv", "sub/b.csv"])
                self.assertEqual((self.dest / "sub/b.csv").read_bytes(), TABLE)
                self.assertEqual((report["bytes"], report["truncated"], report["single"]), (16, False, False))

    def test_a_7z_file_keeps_its_unicode_names(self):
        self.assertEqual(self.unpack(HERE / "data/u.7z")["paths"], ["表/数据.csv"])

    def test_a_single_compressed_file_loses_its_last_ending(self):
        cases = {
            "sales.csv.gz": (gzip.compress, "sales.csv"),
            "sales.csv.bz2": (bz2.compress, "sales.csv"),
            "销售.csv.XZ": (lzma.compress, "销售.csv"),
            "upload": (gzip.compress, "upload"),
        }
        for name, (compress, expected) in cases.items():
            with self.subTest(name):
                shutil.rmtree(self.dest)
                self.dest.mkdir()
                (self.folder / name).write_bytes(compress(TABLE))
                report = self.unpack(self.folder / name)
                self.assertEqual((report["paths"], report["single"]), ([expected], True))

    def test_what_is_no_archive_is_refused(self):
        for data in (
            b"",
            b"a,b\n1,2\n",
            b"PK\3\4" + b"\0" * 40,
            b"Rar!\x1a\x07\0garbage",
            os.urandom(5000),
            b"\x1f\x8b\x08",
        ):
            with self.subTest(data[:10]):
                (self.folder / "x").write_bytes(data)
                self.assertTrue(self.unpack(self.folder / "x", status=BAD_ARCHIVE)["error"])

    def test_a_damaged_archive_gives_what_came_before_the_damage(self):
        path = tarred(self.folder / "x.tar.gz", [("a.csv", TABLE), ("b.bin", os.urandom(200_000))], "w:gz")
        path.write_bytes(path.read_bytes()[:100_000])
        command = [str(programs[self.flavour]), str(path), str(self.dest)]
        run = subprocess.run(command, capture_output=True, check=False)
        self.assertEqual(run.returncode, BAD_ARCHIVE)
        self.assertEqual(self.on_disk(), ["a.csv"])

    def test_an_archive_inside_stays_a_file(self):
        inner = zipped(self.folder / "inner.zip", [("a.csv", TABLE)])
        report = self.unpack(zipped(self.folder / "outer.zip", [("inner.zip", inner.read_bytes())]))
        self.assertEqual(report["paths"], ["inner.zip"])

    def test_password_protected_entries_are_named_as_such(self):
        self.assertEqual(self.unpack(HERE / "data/locked.zip")["skipped"], {"seven.csv": "password-protected"})
        report = self.unpack(HERE / "data/locked.7z", status=BAD_ARCHIVE)
        self.assertEqual(report["error"], "password-protected")


class Escapes(UnpackTest):
    def test_names_that_lead_outside_are_refused(self):
        cases = {
            "../x.csv": "leads outside",
            "a/../../x.csv": "leads outside",
            "/etc/x.csv": "absolute path",
            "C:\\x.csv": "absolute path",
            "..\\x.csv": "leads outside",
            "\\x.csv": "absolute path",
            "a/..": "leads outside",
            "n" * 256: "name too long",
            "/".join("d" * 200 for _ in range(6)): "name too long",
            "/".join("abcdefghi"): "too deep",
            "./": None,
        }
        path = zipped(self.folder / "x.zip", [(name, TABLE) for name in cases] + [("good.csv", TABLE)])
        report = self.unpack(path)
        self.assertEqual(report["paths"], ["good.csv"])
        skipped = {
            name.replace("\\", "/"): why for name, why in report["skipped"].items()
        }  # libarchive turns some itself
        self.assertEqual(skipped, {name.replace("\\", "/"): why for name, why in cases.items() if why})
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["dest", "x.zip"])

    def test_the_same_in_a_tar(self):
        report = self.unpack(tarred(self.folder / "x.tar", [("../x", TABLE), ("/y", TABLE), ("z", TABLE)]))
        self.assertEqual(report["paths"], ["z"])

    def test_links_and_special_files_are_refused(self):
        members = [
            special("link", tarfile.SYMTYPE, "/etc"),
            ("link/passwd", TABLE),
            special("hard", tarfile.LNKTYPE, "link/passwd"),
            special("pipe", tarfile.FIFOTYPE),
            special("null", tarfile.CHRTYPE),
            special("disk", tarfile.BLKTYPE),
        ]
        report = self.unpack(tarred(self.folder / "x.tar", members))
        self.assertEqual(report["paths"], ["link/passwd"])
        self.assertTrue((self.dest / "link").is_dir() and not (self.dest / "link").is_symlink())
        self.assertEqual(report["skipped"]["hard"], "link")
        self.assertEqual(report["skipped"]["pipe"], "special file")

    def test_a_link_in_a_zip_is_refused(self):
        info = zipfile.ZipInfo("link")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(self.folder / "x.zip", "w") as archive:
            archive.writestr(info, "/etc/passwd")
        self.assertEqual(self.unpack(self.folder / "x.zip")["skipped"], {"link": "link"})

    def test_modes_are_plain(self):
        info = tarfile.TarInfo("setuid")
        info.mode = 0o6777
        secret = tarfile.TarInfo("secret")
        secret.mode = 0o000
        self.unpack(tarred(self.folder / "x.tar", [(info, TABLE), (secret, TABLE), ("d/a", TABLE)]))
        modes = {name: stat.S_IMODE((self.dest / name).stat().st_mode) for name in ("setuid", "secret", "d")}
        self.assertEqual(modes, {"setuid": 0o755, "secret": 0o644, "d": 0o755})


class Limits(UnpackTest):
    flavour = "plain"

    def test_a_bomb_stops_at_the_limit_of_bytes(self):
        path = self.folder / "bomb.zip"
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("zeros", "w", force_zip64=True) as member,
        ):
            for _ in range(64):
                member.write(bytes(4 << 20))
        report = self.unpack(path, "--max-bytes", "1000000", status=LIMIT_HIT)
        self.assertEqual(report["skipped"], {"zeros": "over the limit of bytes"})
        self.assertTrue(report["truncated"])
        self.unpack(path, status=LIMIT_HIT)  # 256 MB: over the default as well

    def test_the_limit_counts_all_files_together(self):
        path = zipped(self.folder / "x.zip", [(f"{n}.bin", bytes(400_000)) for n in range(5)])
        report = self.unpack(path, "--max-bytes", "1000000", status=LIMIT_HIT)
        self.assertEqual((report["paths"], report["bytes"]), (["0.bin", "1.bin"], 800_000))

    def test_a_hundred_thousand_entries_stop_at_a_thousand(self):
        report = self.unpack(zipped(self.folder / "x.zip", [(f"{n}", b"") for n in range(100_000)]), status=LIMIT_HIT)
        self.assertEqual((len(report["paths"]), report["entries"], report["truncated"]), (1000, 1000, True))

    def test_exactly_as_many_as_allowed_is_no_limit_hit(self):
        path = zipped(self.folder / "x.zip", [(f"{n}", b"1") for n in range(5)])
        self.assertFalse(self.unpack(path, "--max-entries", "5", "--max-bytes", "5")["truncated"])

    def test_a_limit_on_file_size_is_a_full_disk(self):
        path = zipped(self.folder / "x.zip", [("big", bytes(300_000))])
        command = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", str(programs["plain"]), str(path), str(self.dest)]
        run = subprocess.run(command, capture_output=True, check=False)
        self.assertEqual((run.returncode, self.on_disk()), (LIMIT_HIT, []))

    def test_wrong_arguments_are_usage_errors(self):
        cases = (
            [],
            ["x"],
            ["x", "y", "--max-bytes"],
            ["x", "y", "--max-bytes", "-1"],
            ["x", "y", "--max", "1"],
            ["x", "/nowhere"],
        )
        for arguments in cases:
            with self.subTest(arguments):
                run = subprocess.run([str(programs["plain"]), *arguments], capture_output=True, check=False)
                self.assertEqual(run.returncode, USAGE)


class Names(UnpackTest):
    def test_names_are_kept_whatever_is_in_them(self):
        names = [
            "销售 数据 – 2024.csv",
            "it's (1) $HOME;x.csv",
            'say "hi".csv',
            "😱.csv",
            "a b/c d.csv",
            "-rf",
            "back\\slash/x.csv",
        ]
        self.assertEqual(self.unpack(zipped(self.folder / "x.zip", [(name, TABLE) for name in names]))["paths"], names)

    def test_bytes_that_are_not_utf8_come_through_unchanged(self):
        raw = "数据/销售.csv".encode("gb18030")
        report = self.unpack(zipped_raw(self.folder / "x.zip", [(raw, TABLE)]))
        self.assertEqual([os.fsencode(path) for path in report["paths"]], [raw])

    def test_a_backslash_may_be_half_a_character(self):
        raw = "表.csv".encode("shift_jis")
        self.assertIn(b"\\", raw)
        report = self.unpack(zipped_raw(self.folder / "x.zip", [(raw, TABLE)]))
        self.assertEqual([os.fsencode(path) for path in report["paths"]], [raw])

    def test_backslashes_of_windows_programs_are_folders(self):
        self.assertEqual(self.unpack(zipped_raw(self.folder / "x.zip", [(b"a\\b.csv", TABLE)]))["paths"], ["a/b.csv"])

    def test_control_characters_are_replaced(self):
        report = self.unpack(tarred(self.folder / "x.tar", [("a\nb\x1b[31m.csv", TABLE)]))
        self.assertEqual(report["paths"], ["a_b_[31m.csv"])

    def test_the_same_name_twice_gives_two_files(self):
        with self.assertWarns(UserWarning):
            path = zipped(self.folder / "x.zip", [("a.csv", b"1"), ("a.csv", b"2"), ("d/a", b"3"), ("d/a", b"4")])
        report = self.unpack(path)
        self.assertEqual(report["paths"], ["a.csv", "a (2).csv", "d/a", "d/a (2)"])
        self.assertEqual((self.dest / "a (2).csv").read_bytes(), b"2")

    def test_a_file_where_a_folder_should_be_is_reported(self):
        report = self.unpack(zipped(self.folder / "x.zip", [("a", b"1"), ("a/b", b"2")]))
        self.assertEqual((report["paths"], report["skipped"]), (["a"], {"a/b": "name taken"}))

    def test_litter_is_left_out(self):
        names = ["__MACOSX/._a.csv", ".DS_Store", "sub/Thumbs.db", "._a.csv", "a.csv"]
        report = self.unpack(zipped(self.folder / "x.zip", [(name, TABLE) for name in names]))
        self.assertEqual(report["paths"], ["a.csv"])
        self.assertEqual(set(report["skipped"].values()), {"system file"})


class Noise(UnpackTest):
    def test_no_damage_to_an_archive_makes_it_crash(self):
        made = [
            zipped(self.folder / "x.zip", [("a.csv", TABLE * 50), ("b/c.csv", TABLE)]),
            tarred(self.folder / "x.tgz", [("a.csv", TABLE * 50)], "w:gz"),
            rar(self.folder / "x.rar", [("a.csv", TABLE * 20)]),
            HERE / "data/u.7z",
        ]
        for path in made:
            good = path.read_bytes()
            for at in range(0, len(good), max(1, len(good) // 40)):
                broken = bytearray(good)
                broken[at] ^= 0xFF
                (self.folder / "broken").write_bytes(broken)
                command = [
                    str(programs["sanitized"]),
                    str(self.folder / "broken"),
                    str(self.dest),
                    "--max-bytes",
                    "100000",
                ]
                run = subprocess.run(command, capture_output=True, check=False)
                self.assertIn(run.returncode, (OK, BAD_ARCHIVE, LIMIT_HIT), (path, at, run.stderr.decode()))


if __name__ == "__main__":
    unittest.main()
