"""Every file of tests/data/uploads and tests/data/real, and what its profile says."""

import shutil
import unittest

from test_profile_tools import DATA, ProfileTest, profile_file

# file -> (kind, rows, column -> dtype, warning codes)
UPLOADS = {
    "bom_cr_only.csv": ("csv", 2, {"id": "int", "wage": "float"}, set()),
    "dup_columns.csv": ("csv", 1, {"a": "int", "a.1": "int", "b": "int"}, {"duplicate_columns"}),
    "empty.csv": ("empty", None, {}, {"empty"}),
    "header_only.csv": ("csv", 0, {"a": "text", "b": "text"}, {"header_only"}),
    "huge_cell.csv": ("csv", 1, {"id": "int", "blob": "text"}, set()),
    "injection.csv": ("csv", 2, {"name": "category", "note": "text"}, set()),
    "it's (1) $HOME;x.csv": ("csv", 1, {"a": "int"}, set()),
    "latin1_semicolon.csv": ("csv", 2, {"Stadt": "category", "Größe": "float"}, {"encoding_guessed"}),
    "leading_zeros.csv": ("csv", 2, {"zip": "category", "acct": "category"}, {"leading_zeros", "long_digits"}),
    "lines.jsonl": ("jsonl", 2, {"a": "int", "b": "int"}, set()),
    "mixed_dates.csv": ("csv", 3, {"d": "date", "v": "int"}, set()),
    "multi_sheet_merged.xlsx": (
        "excel",
        2,
        {"Region": "category", "Q1 units": "int", "Q1 eur": "float", "Q2 units": "int", "Q2 eur": "float"},
        {"hidden_sheet", "formulas_uncached", "merged_header"},
    ),
    "na_country.csv": ("csv", 2, {"country": "category", "v": "int"}, set()),
    "quoted_newline.csv": ("csv", 2, {"id": "int", "comment": "category"}, set()),
    "sales.csv.gz": ("archive", None, {}, set()),
    "semicolon_decimal_comma.csv": ("csv", 3, {"Datum": "date", "Region": "category", "Umsatz": "float"}, set()),
    "two.zip": ("archive", None, {}, set()),
}
CELLS = {
    "bom_cr_only.csv": [[1, 5.73], [2, 4.28]],
    "latin1_semicolon.csv": [["München", 1.5], ["Köln", 2.5]],
    "leading_zeros.csv": [["01234", "0000123456789012345678"], ["00501", "9007199254740993"]],
    "lines.jsonl": [[1, None], [2, 3]],
    "mixed_dates.csv": [["2014-12-31", 1], ["2011-03-10", 2], ["2012-04-05", 3]],
    "multi_sheet_merged.xlsx": [["North", 1, 10.5, 2, 20.5], ["South", 3, 30.5, 4, 40.5]],
    "na_country.csv": [["NA", 1], ["US", 2]],
    "quoted_newline.csv": [[1, "line one\nline two"], [2, 'he said "hi"']],
    "semicolon_decimal_comma.csv": [
        ["2024-02-01", "Nord", 1234.5],
        ["2024-02-13", "Süd", 99.9],
        ["2024-03-03", "Nord", 0.1],
    ],
}
# file -> column -> (dtype, role, nulls)
REAL = {
    "tips.csv": {
        "total_bill": ("float", "measure", 0),
        "tip": ("float", "measure", 0),
        "smoker": ("category", "flag", 0),
        "day": ("category", "group", 0),
        "time": ("category", "group", 0),
        "size": ("int", "group", 0),
    },
    "titanic.csv": {
        "PassengerId": ("int", "id", 0),
        "Survived": ("int", "flag", 0),
        "Pclass": ("int", "group", 0),
        "Name": ("text", "text", 0),
        "Sex": ("category", "group", 0),
        "Age": ("float", "measure", 177),
        "SibSp": ("int", "group", 0),
        "Parch": ("int", "group", 0),
        "Ticket": ("text", "text", 0),
        "Fare": ("float", "measure", 0),
        "Cabin": ("text", "text", 687),
        "Embarked": ("category", "group", 2),
    },
    "stock_px.csv": {"date": ("date", "date", 0)}
    | dict.fromkeys(("AAPL", "MSFT", "XOM", "SPX"), ("float", "measure", 0)),
    "ex1.xlsx": dict.fromkeys("abcd", ("int", "measure", 0)) | {"message": ("category", "group", 0)},
}


def setUpModule():
    if not DATA.is_dir():
        raise unittest.SkipTest("tests/data is not laid beside the tests")


class Files(ProfileTest):
    def of(self, folder: str, name: str) -> dict:
        shutil.copy(DATA / folder / name, name)
        return self.complete(profile_file(name))


class Uploads(Files):
    def test_every_upload_has_an_expectation(self):
        self.assertEqual({path.name for path in (DATA / "uploads").iterdir()} - {"README.md"}, set(UPLOADS))

    def test_each_upload_is_profiled_as_expected(self):
        for name, (kind, rows, columns, codes) in UPLOADS.items():
            with self.subTest(name):
                profile = self.of("uploads", name)
                self.assertEqual((profile["kind"], profile["rows"]), (kind, rows))
                self.assertEqual({column["name"]: column["dtype"] for column in profile["columns"]}, columns)
                self.assertEqual(self.codes(profile), codes)
                if profile["load"]:
                    self.table(profile)

    def test_the_cells_of_each_upload_are_right(self):
        for name, cells in CELLS.items():
            with self.subTest(name):
                self.assertEqual(self.rows(self.of("uploads", name)), cells)

    def test_a_workbook_lists_all_sheets(self):
        profile = self.of("uploads", "multi_sheet_merged.xlsx")
        self.assertEqual([sheet["name"] for sheet in profile["sheets"]], ["Notes", "2023", "2024", "hidden"])
        self.assertEqual([sheet["hidden"] for sheet in profile["sheets"]], [False, False, False, True])
        self.assertIn("sheet_name='2023'", profile["load"])


class Real(Files):
    def test_each_real_table_has_its_columns_and_roles(self):
        for name, expected in REAL.items():
            with self.subTest(name):
                profile = self.of("real", name)
                found = {
                    column["name"]: (column["dtype"], column["role"], column["nulls"]) for column in profile["columns"]
                }
                self.assertEqual(found, expected)
                self.assertEqual(profile["warnings"], [])
                self.table(profile)

    def test_examples_come_most_frequent_first(self):
        titanic = self.of("real", "titanic.csv")
        self.assertEqual(self.column(titanic, "Sex")["examples"], ["male", "female"])
        self.assertEqual(self.column(titanic, "Embarked")["examples"], ["S", "C", "Q"])
        self.assertEqual(self.column(titanic, "Pclass")["examples"], [3, 1, 2])
        self.assertEqual(self.column(self.of("real", "tips.csv"), "day")["examples"][:2], ["Sat", "Sun"])

    def test_what_values_give_away_is_an_alias(self):
        self.assertIn("gender", self.column(self.of("real", "titanic.csv"), "Sex")["alias"])
        self.assertIn("weekday", self.column(self.of("real", "tips.csv"), "day")["alias"])

    def test_a_year_and_a_quarter_make_a_time(self):
        profile = self.of("real", "macrodata.csv")
        self.assertEqual((profile["time"]["columns"], profile["time"]["freq"]), (["year", "quarter"], "quarter"))
        import pandas as pd

        key = eval(profile["time"]["expr"], {"pd": pd, "df": self.table(profile)})
        self.assertEqual([str(day.date()) for day in key[[0, 1, 202]]], ["1959-01-01", "1959-04-01", "2009-07-01"])

    def test_an_index_of_dates_is_the_time(self):
        profile = self.of("real", "stock_px.csv")
        self.assertEqual(profile["time"], {"columns": ["date"], "freq": "day", "expr": "df['date']"})


if __name__ == "__main__":
    unittest.main()
