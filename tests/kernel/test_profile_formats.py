"""Files that are no delimited text: workbooks, columns, databases, documents, pictures, and what is refused."""

import io
import json
import pickle
import sqlite3
import unittest
import zipfile
from datetime import date
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
from test_profile_tools import ProfileTest, profile_file

from kernel.files import profile_data

FRAME = pd.DataFrame(
    {
        "date": pd.date_range("2024-01-01", periods=4),
        "zip": ["01234", "00501", "10001", "94105"],
        "v": [1.5, None, 3.0, 4.0],
        "t": ["a", "b", "a", "b"],
    }
)
CELLS = [
    ["2024-01-01", "01234", 1.5, "a"],
    ["2024-01-02", "00501", None, "b"],
    ["2024-01-03", "10001", 3, "a"],
    ["2024-01-04", "94105", 4, "b"],
]


class Workbooks(ProfileTest):
    def book(self, sheets: dict[str, list[list]], name: str = "f.xlsx") -> dict:
        """The profile of a workbook with these rows; None leaves a cell alone."""
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for at, row in enumerate(rows, start=1):
                for column, cell in enumerate(row, start=1):
                    if cell is not None:
                        sheet.cell(at, column, cell)
        book.save(name)
        return self.complete(profile_file(name))

    def test_a_table_that_starts_anywhere_is_found(self):
        rows = [
            [None, "Quarterly report"],
            [],
            [None, None, "Region", "Q1"],
            [None, None, "North", 1],
            [None, None, "South", 2],
            [None, None, "Total", 3],
        ]
        profile = self.book({"S": rows})
        self.assertEqual(self.rows(profile), [["North", 1], ["South", 2]])
        self.assertEqual((profile["header_row"], self.codes(profile)), (2, {"title_rows", "footer_rows"}))

    def test_empty_rows_and_columns_inside_are_left_out(self):
        profile = self.book({"S": [["a", None, "b"], [1, None, "x"], [], [2, None, "y"]]})
        self.assertEqual(self.rows(profile), [[1, "x"], [2, "y"]])

    def test_cells_of_text_keep_what_is_in_them(self):
        rows = [
            ["iso", "zip", "when", "amount"],
            ["NA", "01234", "31/12/2020", "$1,200"],
            ["US", "00501", "01/02/2021", "$5"],
            ["DE", "00777", "03/02/2021", 7],
        ]
        expected = [
            ["NA", "01234", "2020-12-31", 1200],
            ["US", "00501", "2021-02-01", 5],
            ["DE", "00777", "2021-02-03", 7],
        ]
        self.assertEqual(self.rows(self.book({"S": rows})), expected)

    def test_the_sheet_with_the_table_is_read_and_each_has_a_load_call(self):
        profile = self.book(
            {"Cover": [["See Data"]], "Data": [["a", "b"], [1, 2], [3, 4]], "More": [["c", "d"], ["x", 5]]}
        )
        self.assertEqual(self.rows(profile), [[1, 2], [3, 4]])
        self.assertEqual([sheet["names"] for sheet in profile["sheets"]], [[], ["a", "b"], ["c", "d"]])
        more = eval(profile["sheets"][2]["load"], {"pd": pd})
        self.assertEqual(more.to_dict("list"), {"c": ["x"], "d": [5]})

    def test_numbers_and_dates_as_names_become_text(self):
        profile = self.book({"S": [["Country", 2019, 2020, date(2021, 1, 1)], ["France", 1.5, 2.5, 3.5]]})
        self.assertEqual(list(self.table(profile).columns), ["Country", "2019", "2020", "2021-01-01"])

    def test_a_sheet_without_header_gets_names(self):
        profile = self.book({"S": [["Mary", 1980, 7065.5], ["Anna", 1981, 2604.5], ["John", 1982, 9655.5]]})
        self.assertEqual([column["name"] for column in profile["columns"]], ["name", "year", "number"])

    def test_dates_of_cells_are_dates(self):
        profile = self.book({"S": [["when", "v"], [date(2024, 1, 2), 1], [date(2024, 1, 3), 2]]})
        self.assertEqual(self.rows(profile), [["2024-01-02", 1], ["2024-01-03", 2]])
        self.assertEqual(profile["time"]["columns"], ["when"])

    def test_a_workbook_of_nothing_says_so(self):
        self.assertEqual(self.codes(self.book({"S": []})), {"empty"})

    def test_an_ods_file_is_read_like_a_workbook(self):
        FRAME.to_excel("f.ods", index=False, engine="odf")
        profile = self.complete(profile_file("f.ods"))
        self.assertEqual((profile["kind"], self.rows(profile)), ("ods", CELLS))

    def test_a_broken_workbook_is_unreadable(self):
        with zipfile.ZipFile("f.xlsx", "w") as archive:
            archive.writestr("xl/workbook.xml", "<broken")
        self.assertEqual(self.codes(self.complete(profile_file("f.xlsx"))), {"unreadable"})


class Typed(ProfileTest):
    def test_columnar_files_keep_their_types(self):
        FRAME.to_parquet("f.parquet")
        FRAME.to_feather("f.feather")
        for name in ("f.parquet", "f.feather"):
            with self.subTest(name):
                profile = self.complete(profile_file(name))
                self.assertEqual((profile["kind"], self.rows(profile)), (name[2:], CELLS))

    def test_column_names_that_are_no_text_become_text(self):
        pd.DataFrame({("a", 1): [1], ("b", 2): [2]}).to_parquet("f.parquet")
        self.assertEqual(len(self.table(self.complete(profile_file("f.parquet"))).columns), 2)

    def test_of_a_large_parquet_file_the_first_rows_give_the_figures(self):
        pd.DataFrame({"n": np.arange(300_000)}).to_parquet("f.parquet")
        profile = self.complete(profile_file("f.parquet"))
        self.assertEqual((profile["rows"], self.codes(profile)), (300_000, {"truncated"}))
        self.assertEqual(self.column(profile, "n")["max"], 199_999)

    def test_a_database_lists_its_tables_and_reads_the_largest(self):
        with sqlite3.connect("it's.db") as connection:
            FRAME.assign(date=FRAME["date"].astype("str")).to_sql('big "one"', connection, index=False)
            FRAME[["v"]].head(1).to_sql("small", connection, index=False)
        connection.close()
        profile = self.complete(profile_file("it's.db"))
        self.assertEqual(
            [(sheet["name"], sheet["rows"]) for sheet in profile["sheets"]], [('big "one"', 4), ("small", 1)]
        )
        self.assertEqual((profile["kind"], self.rows(profile)), ("sqlite", CELLS))

    def test_a_view_that_makes_rows_without_end_is_left_out(self):
        with sqlite3.connect("endless.db") as connection:
            connection.execute("create table t as select 1 as a, 2 as b")
            connection.execute("create view v as with recursive r(n) as (select 1 union all select n + 1 from r) select n from r")
        connection.close()
        before, profile_data.COUNT_S = profile_data.COUNT_S, 0.2
        try:
            profile = profile_file("endless.db")
        finally:
            profile_data.COUNT_S = before
        self.assertEqual([sheet["name"] for sheet in profile["sheets"]], ["t"])
        self.assertIn("'v'", str(profile["warnings"]))

    def test_json_of_every_shape_becomes_a_table(self):
        cases = [
            ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [[1, "x"], [2, "y"]]),
            ([{"a": 1, "b": {"c": 2}}, {"a": 2, "b": {"c": 3}}], [[1, 2], [2, 3]]),
            ({"meta": 1, "data": {"items": [{"a": 1}, {"a": 2}]}}, [[1], [2]]),
            ({"a": [1, 2], "b": ["x", "y"]}, [[1, "x"], [2, "y"]]),
            ({"x": {"v": 1}, "y": {"v": 2}}, [["x", 1], ["y", 2]]),
            ([["a", "b"], [1, 2], [3, 4]], [[1, 2], [3, 4]]),
            ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
            ([1, 2], [[1], [2]]),
            ({"a": 1, "b": "x"}, [[1, "x"]]),
            ([{"id": 9007199254740993, "zip": "012", "date": "2024-01-31"}], [[9007199254740993, "012", "2024-01-31"]]),
        ]
        for data, expected in cases:
            with self.subTest(data):
                profile = self.profile(json.dumps(data), "f.json")
                self.assertEqual((profile["kind"], self.rows(profile)), ("json", expected))

    def test_lines_of_json_become_a_table(self):
        cases = {
            '{"a":1}\n{"a":2,"b":3}\n': [[1, None], [2, 3]],
            '{"a":1,"b":{"c":2}}\n{"a":2,"b":{"c":5}}\n': [[1, 2], [2, 5]],
        }
        for text, expected in cases.items():
            for name in ("f.jsonl", "f.txt"):
                with self.subTest(text=text, name=name):
                    profile = self.profile(text, name)
                    self.assertEqual((profile["kind"], self.rows(profile)), ("jsonl", expected))

    def test_broken_json_is_unreadable(self):
        profile = self.profile('{"a": [1, 2', "f.json")
        self.assertEqual((profile["kind"], profile["load"], self.codes(profile)), ("json", None, {"unreadable"}))

    def test_a_page_gives_its_largest_table(self):
        page = (
            "<html><body><p>Hello</p><table><tr><th>x</th></tr><tr><td>1</td></tr></table>"
            + FRAME[["v", "t"]].to_html(index=False)
            + "</body></html>"
        )
        profile = self.profile(page, "f.html")
        self.assertEqual((profile["kind"], len(profile["sheets"])), ("html", 2))
        self.assertEqual(self.rows(profile)[0], [1.5, "a"])
        self.assertTrue(profile["sample"].startswith("Hello"))

    def test_plain_arrays_are_tables(self):
        np.save("f.npy", np.arange(6).reshape(3, 2))
        profile = self.complete(profile_file("f.npy"))
        self.assertEqual((profile["kind"], self.rows(profile)), ("array", [[0, 1], [2, 3], [4, 5]]))


class Refused(ProfileTest):
    def test_pickles_in_every_guise_are_refused(self):
        np.save("objects.npy", np.array([{}, 1], dtype=object))
        made = {
            "f.pkl": pickle.dumps([1]),
            "f.csv": pickle.dumps({"a": 1}),
            "f.joblib": b"\x80\x04K\x01.",
            "f.pickle": pickle.dumps([1], protocol=0),
            "g.npy": Path("objects.npy").read_bytes(),
        }
        for name, data in made.items():
            with self.subTest(name):
                profile = self.profile(data, name)
                self.assertEqual(
                    (profile["kind"], profile["load"], self.codes(profile)), ("pickle", None, {"pickle_refused"})
                )

    def test_a_pickle_is_never_loaded(self):
        class Bomb:
            def __reduce__(self):
                return (Path("proof").write_text, ("ran",))

        for name in ("f.pkl", "f.csv", "f.parquet", "f.npy", "f.xlsx"):
            self.profile(pickle.dumps(Bomb()), name)
        self.assertFalse(Path("proof").exists())


class Documents(ProfileTest):
    def test_a_pdf_shows_its_pages_and_words(self):
        from reportlab.pdfgen import canvas

        page = canvas.Canvas("f.pdf")
        page.drawString(100, 700, "Hello report")
        page.showPage()
        page.showPage()
        page.save()
        profile = self.complete(profile_file("f.pdf"))
        self.assertEqual((profile["kind"], profile["pages"]), ("pdf", 2))
        self.assertIn("Hello report", profile["sample"])

    def test_a_document_shows_its_words_and_tables(self):
        import docx

        document = docx.Document()
        document.add_paragraph("Hello document")
        document.add_table(2, 3)
        document.save("f.docx")
        profile = self.complete(profile_file("f.docx"))
        self.assertEqual((profile["kind"], profile["sample"]), ("docx", "Hello document"))
        self.assertEqual((profile["sheets"][0]["rows"], profile["sheets"][0]["columns"]), (1, 3))

    def test_a_picture_shows_its_size(self):
        from PIL import Image

        for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"):
            with self.subTest(kind):
                data = io.BytesIO()
                Image.new("RGB", (30, 20)).save(data, kind)
                profile = self.profile(data.getvalue(), "f.bin")
                self.assertEqual((profile["kind"], profile["width"], profile["height"]), ("image", 30, 20))

    def test_a_notebook_shows_its_cells(self):
        cells = [{"cell_type": "code", "source": ["import x\n", "y"], "metadata": {}, "outputs": []}]
        profile = self.profile(
            json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), "f.ipynb"
        )
        self.assertEqual((profile["kind"], profile["cells"], profile["sample"]), ("notebook", 1, "import x\ny"))

    def test_cut_files_of_every_kind_never_raise(self):
        FRAME.to_parquet("whole.parquet")
        FRAME.to_excel("whole.xlsx")
        for whole in ("whole.parquet", "whole.xlsx"):
            data = Path(whole).read_bytes()
            for at in range(4, len(data), len(data) // 25):
                with self.subTest(whole=whole, at=at):
                    self.profile(data[:at], "f.bin")


if __name__ == "__main__":
    unittest.main()
