"""What the tests of profiles share: a folder to write files in, and the table that `load` plus `convert` makes."""

import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, os.environ.get("SANDBOOK_SANDBOX", str(HERE.parent.parent / "sandbox/inside")))

import pandas as pd  # noqa: E402
from kernel.files import intake as intake_module  # noqa: E402, F401 - for test_intake
from kernel.files.intake_names import readable  # noqa: E402, F401
from kernel.files.profile import profile_file  # noqa: E402
from kernel.files.profile_base import FIELDS  # noqa: E402

DATA = HERE.parent / "data"


class ProfileTest(unittest.TestCase):
    """Each test stands in an empty folder, as a cell stands in /mnt/data."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def profile(self, content: str | bytes, name: str = "f.csv", encoding: str = "utf-8") -> dict:
        """The profile of a file with this content."""
        data = content if isinstance(content, bytes) else content.encode(encoding)
        Path(name).write_bytes(data)
        return self.complete(profile_file(name))

    def complete(self, profile: dict) -> dict:
        """The same profile, once it is sure that it keeps the contract's form."""
        self.assertLessEqual(set(FIELDS), set(profile))
        json.dumps(profile, allow_nan=False)
        self.assertTrue(all(set(warning) == {"code", "text"} for warning in profile["warnings"]))
        return profile

    def table(self, profile: dict) -> pd.DataFrame:
        """What a cell gets that runs `load` and then every `convert`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            df = eval(profile["load"], {"pd": pd})
            for column in profile["columns"]:
                if column["convert"]:
                    df[column["name"]] = eval(column["convert"], {"pd": pd, "df": df})
        self.assertEqual([column["name"] for column in profile["columns"]], list(df.columns))
        self.assertEqual(profile["rows"], len(df))
        return df

    def rows(self, profile: dict) -> list[list]:
        """The table's cells, missing ones as None, dates as text."""
        return [[self._plain(cell) for cell in row] for row in self.table(profile).itertuples(index=False)]

    @staticmethod
    def _plain(cell):
        if pd.isna(cell):
            return None
        return cell.isoformat().removesuffix("T00:00:00") if isinstance(cell, pd.Timestamp) else cell

    @staticmethod
    def codes(profile: dict) -> set[str]:
        return {warning["code"] for warning in profile["warnings"]}

    @staticmethod
    def column(profile: dict, name: str) -> dict:
        return next(column for column in profile["columns"] if column["name"] == name)


class Contract(ProfileTest):
    def test_a_profile_has_all_fields_even_of_a_file_that_is_not_there(self):
        profile = self.complete(profile_file("nowhere.csv"))
        self.assertEqual(self.codes(profile), {"unreadable"})

    def test_a_folder_is_unreadable(self):
        os.mkdir("d")
        self.assertEqual(self.codes(self.complete(profile_file("d"))), {"unreadable"})

    def test_paths_are_those_that_a_cell_would_write(self):
        os.mkdir("sub")
        Path("sub/a.csv").write_text("a,b\n1,2\n")
        profile = profile_file(os.path.abspath("sub/a.csv"), "A.csv")
        self.assertEqual((profile["path"], profile["name"]), ("sub/a.csv", "A.csv"))
        self.assertEqual(profile["load"], "pd.read_csv('sub/a.csv')")

    def test_any_name_makes_a_load_call_that_runs(self):
        for name in (
            "it's (1) $HOME;x.csv",
            "quo\"te's.csv",
            "über daten – März 😱.csv",
            "销售 数据.csv",
            "back\\slash.csv",
            "{x}.csv",
        ):
            with self.subTest(name):
                self.assertEqual(self.rows(self.profile("a,b\n1,2\n", name)), [[1, 2]])
