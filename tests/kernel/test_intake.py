"""What happens when an archive arrives: real archives through the real helper."""

import gzip
import io
import os
import shutil
import struct
import subprocess
import tarfile
import tempfile
import unittest
import zipfile
import zlib
from pathlib import Path

import pandas as pd
from test_profile_tools import DATA, ProfileTest, intake_module, readable

SOURCE = Path(__file__).resolve().parents[2] / "sandbox/inside/helper/unpack.c"


def setUpModule():
    """The helper that is laid for the box, or else one that is built here."""
    if os.path.exists(intake_module.UNPACK):
        return
    if not SOURCE.exists() or not shutil.which("cc"):
        raise unittest.SkipTest(f"neither {intake_module.UNPACK} nor what it takes to build it")
    folder = tempfile.mkdtemp()
    unittest.addModuleCleanup(shutil.rmtree, folder)
    program = os.path.join(folder, "unpack")
    subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-o", program, str(SOURCE), "-larchive"], check=True)
    unittest.addModuleCleanup(setattr, intake_module, "UNPACK", intake_module.UNPACK)
    intake_module.UNPACK = program


class IntakeTest(ProfileTest):
    def zip(self, members: dict[str, str | bytes], name: str = "x.zip") -> list[dict]:
        """The profiles of a zip file with these members."""
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
        return self.intake(name)

    def intake(self, name: str) -> list[dict]:
        profiles = intake_module.intake(name, os.getcwd())
        for profile in profiles:
            self.complete(profile)
        return profiles

    @staticmethod
    def raw_zip(name: str, members: dict[bytes, bytes]) -> None:
        """A zip file whose names are these bytes, without the flag that says UTF-8."""
        body, directory = b"", b""
        for member, data in members.items():
            fixed = struct.pack(
                "<HHHHHIIIHH", 20, 0, 0, 0, 0x21, zlib.crc32(data), len(data), len(data), len(member), 0
            )
            directory += (
                b"PK\1\2" + struct.pack("<H", 20) + fixed + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + member
            )
            body += b"PK\3\4" + fixed + member + data
        end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
        Path(name).write_bytes(body + directory + b"PK\5\6" + end)


class Archives(IntakeTest):
    def test_a_file_that_is_no_archive_is_profiled_as_it_is(self):
        Path("a.csv").write_text("a,b\n1,2\n")
        self.assertEqual([profile["path"] for profile in self.intake("a.csv")], ["a.csv"])

    def test_the_archive_comes_first_then_its_tables(self):
        profiles = self.zip({"a.csv": "x,y\n1,2\n", "sub/b.csv": "z,u\n2,3\n", "notes.md": "# hi\n"})
        self.assertEqual([profile["path"] for profile in profiles], ["x.zip", "x/a.csv", "x/sub/b.csv"])
        self.assertEqual(profiles[0]["members"], ["x/a.csv", "x/sub/b.csv", "x/notes.md"])
        self.assertEqual([profile["kind"] for profile in profiles], ["archive", "csv", "csv"])
        self.assertEqual(self.rows(profiles[2]), [[2, 3]])

    def test_a_folder_that_is_taken_is_left_alone(self):
        os.mkdir("x")
        self.assertEqual(self.zip({"a.csv": "x,y\n1,2\n"})[0]["members"], ["x (2)/a.csv"])

    def test_a_single_compressed_file_goes_beside_its_archive(self):
        Path("sales.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
        self.assertEqual([profile["path"] for profile in self.intake("sales.csv.gz")], ["sales.csv.gz", "sales.csv"])
        self.assertEqual(self.intake("sales.csv.gz")[1]["path"], "sales (2).csv")
        self.assertEqual(sorted(os.listdir()), ["sales (2).csv", "sales.csv", "sales.csv.gz"])

    def test_the_kind_is_told_from_the_bytes(self):
        self.assertEqual(self.zip({"a.csv": "x,y\n1,2\n"}, "data.csv")[0]["members"], ["data (2).csv/a.csv"])
        pd.DataFrame({"a": [1], "b": [2]}).to_excel("book.zip.xlsx", index=False)
        self.assertEqual([profile["kind"] for profile in self.intake("book.zip.xlsx")], ["excel"])
        self.assertEqual(
            [profile["kind"] for profile in self.zip({"META-INF/MANIFEST.MF": "", "A.class": b"x"}, "x.jar")],
            ["binary"],
        )

    def test_a_tar_in_any_wrapping_is_an_archive(self):
        for ending, mode in ((".tar", "w"), (".tar.gz", "w:gz"), (".tgz", "w:gz"), (".tar.xz", "w:xz")):
            with tarfile.open("t" + ending, mode) as archive:
                info = tarfile.TarInfo("a.csv")
                info.size = 8
                archive.addfile(info, io.BytesIO(b"a,b\n1,2\n"))
            with self.subTest(ending):
                self.assertEqual(self.intake("t" + ending)[0]["members"], ["t/a.csv"])
                shutil.rmtree("t")

    def test_nested_archives_stay_files(self):
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as archive:
            archive.writestr("a.csv", "a,b\n1,2\n")
        self.assertEqual([p["members"] for p in self.zip({"inner.zip": inner.getvalue()})], [["x/inner.zip"]])

    def test_what_is_dangerous_is_left_out_and_said(self):
        profiles = self.zip(
            {"../evil.csv": "a\n", "/etc/evil.csv": "a\n", "good.csv": "a,b\n1,2\n", "__MACOSX/._good.csv": "x"}
        )
        self.assertEqual(profiles[0]["members"], ["x/good.csv"])
        self.assertEqual(self.codes(profiles[0]), {"unsafe_members"})
        self.assertEqual(sorted(os.listdir()), ["x", "x.zip"])

    def test_broken_and_locked_archives_say_so(self):
        Path("b.zip").write_bytes(b"PK\3\4" + bytes(50))
        Path("c.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(50))
        for name, code in (("b.zip", "unreadable"), ("c.7z", "empty")):
            with self.subTest(name):
                profiles = self.intake(name)
                self.assertEqual([code in self.codes(profile) for profile in profiles], [True])
                self.assertFalse(os.path.exists(name.split(".")[0]))

    def test_too_many_entries_are_cut_at_a_thousand(self):
        profiles = self.zip({f"{n:05}.bin": b"\0" for n in range(3000)})
        self.assertEqual((len(profiles[0]["members"]), self.codes(profiles[0])), (1000, {"truncated"}))

    def test_of_many_different_tables_forty_are_profiled(self):
        profiles = self.zip({f"{n}.csv": f"a{n},b\n1,2\n" for n in range(60)})
        self.assertEqual((len(profiles), len(profiles[0]["members"])), (41, 60))

    def test_a_file_that_is_gone_is_unreadable(self):
        self.assertEqual(self.codes(self.intake("nowhere.zip")[0]), {"unreadable"})


class Names(IntakeTest):
    def test_names_in_the_code_page_of_the_sender_are_repaired(self):
        cases = {
            "gb18030": ["销售数据/一月.csv", "销售数据/二月.csv"],
            "shift_jis": ["売上データ/表.csv", "売上データ/さくら.csv"],
            "big5": ["銷售資料/台北市.csv", "銷售資料/高雄.csv"],
            "euc_kr": ["매출/서울.csv", "매출/부산.csv"],
            "cp437": ["Übersicht März.csv", "Köln.csv"],
            "cp866": ["Отчёт за март.csv", "Москва.csv"],
        }
        for page, names in cases.items():
            with self.subTest(page):
                self.raw_zip("n.zip", {name.encode(page): b"a,b\n1,2\n" for name in names})
                members = self.intake("n.zip")[0]["members"]
                self.assertEqual(sorted(members), sorted(f"n/{name}" for name in names))
                self.assertTrue(all(os.path.isfile(member) for member in members))
                shutil.rmtree("n")

    def test_names_are_composed(self):
        self.assertEqual(self.zip({"Ko\u0308ln.csv": "a,b\n1,2\n"})[0]["members"], ["x/Köln.csv"])
        self.assertTrue(os.path.exists("x/Köln.csv"))

    def test_no_name_can_become_a_way_out(self):
        for name in readable([os.fsdecode(b"\x81/..\xff/a"), "..", "a/./b", "x" * 200 + "ü" * 100 + ".csv"]):
            with self.subTest(name):
                self.assertFalse({"..", "."} & set(name.split("/")))
                self.assertLessEqual(max(len(part.encode()) for part in name.split("/")), 255)


class Collections(IntakeTest):
    def test_thirty_one_years_of_names_are_one_table(self):
        shutil.copy(DATA / "real/babynames_1980_2010.zip", "names.zip")
        archive, first = self.intake("names.zip")
        self.assertEqual([column["name"] for column in archive["columns"]], ["name", "sex", "number", "year"])
        collection = archive["collection"]
        self.assertEqual((len(collection["members"]), collection["added"], len(archive["members"])), (31, "year", 32))
        self.assertIn("for year in range(1980, 2011)", archive["load"])
        self.assertEqual(archive["time"]["columns"], ["year"])
        df = self.table(archive)
        self.assertEqual(
            (df["year"].min(), df["year"].max(), df[df["year"] == 1980]["number"].sum()),
            (1980, 2010, self.table(first)["number"].sum()),
        )

    def test_pieces_are_told_apart_by_what_their_names_say(self):
        cases = [
            (["s_2019.csv", "s_2020.csv"], "year", [2019, 2020]),
            (["s_2019.csv", "s_2021.csv"], "year", [2019, 2021]),
            (["2024-01.csv", "2024-02.csv"], "month", ["2024-01", "2024-02"]),
            (["d20240131.csv", "d20240201.csv"], "date", ["2024-01-31", "2024-02-01"]),
            (["part2.csv", "part10.csv"], "part", [2, 10]),
            (["north.csv", "süd 'x'.csv"], "file", ["north", "süd 'x'"]),
        ]
        for names, added, values in cases:
            with self.subTest(names):
                archive = self.zip({name: f"a,b\n{at},x\n" for at, name in enumerate(names)})[0]
                df = self.table(archive)
                self.assertEqual((archive["collection"]["added"], list(df[added])), (added, values))
                self.assertEqual(list(df["a"]), [0, 1])
                shutil.rmtree("x")

    def test_what_the_first_piece_needs_is_done_to_all(self):
        members = {
            f"s_{year}.csv": f"d;v;p\n31.12.{year};1.234,5;12%\n01.02.{year};2,5;3%\n" for year in (2019, 2020, 2021)
        }
        archive = self.zip(members)[0]
        df = self.table(archive)
        self.assertEqual((df["v"].sum(), df["p"].sum(), str(df["d"].max().date())), (3711, 45, "2021-12-31"))

    def test_a_column_of_the_same_name_is_not_overwritten(self):
        archive = self.zip({f"s_{year}.csv": "year,v\n1,2\n" for year in (2019, 2020)})[0]
        self.assertEqual(archive["collection"]["columns"], ["year", "v", "file_year"])

    def test_different_tables_are_no_collection(self):
        archive, *tables = self.zip({"a1.csv": "x,y\n1,2\n", "a2.csv": "x,z\n1,2\n"})
        self.assertIsNone(archive["collection"])
        self.assertEqual(len(tables), 2)


if __name__ == "__main__":
    unittest.main()
