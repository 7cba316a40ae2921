"""Cells that people, spreadsheets and printers write otherwise than programs: `load` and `convert` make what they mean of them."""

import io
import unittest
import zipfile

import openpyxl
import pandas as pd
from test_profile_tools import ProfileTest, profile_file


class Numbers(ProfileTest):
    def values(self, cells: list[str], head: str = "v") -> list:
        text = f"k;{head}\n" + "".join(f"r{at};{cell}\n" for at, cell in enumerate(cells))
        return [row[1] for row in self.rows(self.profile(text))]

    def test_signs_of_typesetters_bookkeepers_and_other_scripts_are_numbers(self):
        for cells, expected in [
            (["−1200", "300", "−45.5"], [-1200, 300, -45.5]),
            (["1200-", "300", "45.5-"], [-1200, 300, -45.5]),
            (["1.200,50-", "300,00", "45,50-"], [-1200.5, 300, -45.5]),
            (["１２", "３．５", "－４"], [12, 3.5, -4]),
            (["١٢", "٣", "٤٥"], [12, 3, 45]),
        ]:
            with self.subTest(cells=cells):
                self.assertEqual(self.values(cells), expected)

    def test_thousands_and_millions_are_multiplied_and_units_and_house_numbers_are_not(self):
        for cells, expected in [
            (["5K", "2.5M", "300"], [5e3, 2.5e6, 300]),
            (["$1.2M", "$300K", "$45"], [1.2e6, 3e5, 45]),
            (["$1.5bn", "$2mn"], [1.5e9, 2e6]),
            (["5万", "2.5亿", "3000"], [5e4, 2.5e8, 3000]),
            (["5万元", "0.5万元"], [5e4, 5e3]),
            (["5 m", "2.5 m", "3 m"], [5, 2.5, 3]),
            (["12A", "14B", "16"], ["12A", "14B", "16"]),
            (["12K", "14M", "16"], ["12K", "14M", "16"]),
        ]:
            with self.subTest(cells=cells):
                self.assertEqual(self.values(cells), expected)

    def test_day_numbers_of_a_spreadsheet_are_dates_where_the_column_is_called_so(self):
        for head in ("Date", "order_date", "OrderDate", "日期"):
            with self.subTest(head=head):
                self.assertEqual(self.values(["45306", "45325", "45330"], head), ["2024-01-15", "2024-02-03", "2024-02-08"])
        for head in ("updates", "price", "candidate"):
            with self.subTest(head=head):
                self.assertEqual(self.values(["45306", "45325", "45330"], head), [45306, 45325, 45330])


class Rows(ProfileTest):
    def test_a_row_of_units_is_no_data(self):
        for text in (
            "time,speed,mass\ns,m/s,kg\n0,1.5,10\n1,2.5,11\n",
            "Report\n\ntime,speed,mass\ns,m/s,kg\n0,1.5,10\n1,2.5,11\n",
            "time,speed,mass\n(s),[km/h],(kg)\n0,1.5,10\n1,2.5,11\n",
        ):
            with self.subTest(text=text):
                profile = self.profile(text)
                self.assertEqual(self.rows(profile), [[0, 1.5, 10], [1, 2.5, 11]])
                self.assertIn("units_row", self.codes(profile))

    def test_a_row_of_gaps_or_of_words_is_data(self):
        for text, rows in [
            ("name,a,b\nAnn,unknown,n/a\nBob,1,2\nCy,3,4\nDi,4,5\n", 4),
            ("team,home,away\nfoo,w,l\nbar,l,w\nbaz,w,w\n", 3),
            ("name,a,b\nAnn,,kg\nBob,1,2\nCy,3,4\n", 3),
        ]:
            with self.subTest(text=text):
                self.assertEqual(self.profile(text)["rows"], rows)

    def test_rarer_separators_are_found(self):
        for separator in "^~¦":
            with self.subTest(separator=separator):
                text = "\n".join(separator.join(row) for row in (["id", "name", "score"], ["1", "ann", "3.5"], ["2", "bob", "4"]))
                self.assertEqual(self.rows(self.profile(text)), [[1, "ann", 3.5], [2, "bob", 4.0]])

    def test_a_line_of_a_million_fields_is_no_table_and_no_burden(self):
        profile = self.profile(b"0," * 1_000_000)
        self.assertEqual((profile["load"], self.codes(profile)), (None, {"not_a_table"}))

    def test_megabytes_without_an_end_of_line_are_no_table_and_a_cell_of_megabytes_is(self):
        profile = self.profile(b"a" * (9 << 20))
        self.assertEqual((profile["load"], self.codes(profile)), (None, {"not_a_table"}))
        profile = self.profile(b"a,b\n" + b"x" * (9 << 20) + b",1\n")
        self.assertEqual(profile["rows"], 1)


class Workbooks(ProfileTest):
    def book(self, rows: list[list], merge: tuple[str, ...] = (), **cells: object) -> dict:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for cells_merged in merge:
            book.active.merge_cells(cells_merged)
        for at, cell in cells.items():
            book.active[at] = cell
        book.save("f.xlsx")
        return self.complete(profile_file("f.xlsx"))

    def test_a_cell_merged_over_rows_holds_for_each_of_them(self):
        rows = [["region", "city", "v"], ["N", "a", 1], [None, "b", 2], ["S", "c", 3], [None, "d", 4]]
        profile = self.book(rows, ("A2:A3", "A4:A5"))
        self.assertEqual([row[0] for row in self.rows(profile)], ["N", "N", "S", "S"])
        self.assertIn("merged_cells", self.codes(profile))
        self.assertEqual([row[0] for row in self.rows(self.book(rows))], ["N", None, "S", None])

    def test_units_and_day_numbers_are_known_there_too(self):
        profile = self.book([["Date", "speed", "mass"], [None, "m/s", "kg"], [45306, 1.5, 2], [45325, 2.5, 3]])
        self.assertEqual(self.rows(profile), [["2024-01-15", 1.5, 2], ["2024-02-03", 2.5, 3]])

    def test_a_stray_cell_in_the_last_corner_ends_no_interpreter(self):
        profile = self.book([["a", "b"], [1, 2]], XFD1048576="far")
        self.assertIn("unreadable", self.codes(profile))
        self.assertIsNone(profile["load"])

    def test_what_a_sheet_says_of_its_size_is_no_promise(self):
        self.book([["a", "b"], [1, 2], [3, 4]])
        with zipfile.ZipFile("f.xlsx") as source, zipfile.ZipFile("far.xlsx", "w") as lies:
            for name in source.namelist():
                sheet = source.read(name).replace(b'<row r="3"', b'<row r="1048576"')
                lies.writestr(name, sheet.replace(b'"A3"', b'"A1048576"').replace(b'"B3"', b'"XFD1048576"'))
        profile = profile_file("far.xlsx")
        self.assertIn("XFD1048576", str(profile["warnings"]))
        self.assertIsNone(profile["load"])

    def test_as_many_columns_as_there_can_be_take_no_longer_than_they_are_many(self):
        profile = self.book([list(range(4000)), list(range(4000))])
        self.assertEqual(len(set(profile["sheets"][0]["names"])), 4000)

    def test_a_workbook_that_was_cut_off_is_a_broken_workbook(self):
        self.book([["a", "b"], [1, 2]])
        with open("f.xlsx", "rb") as file:
            data = file.read()
        profile = self.profile(data[:-300], "cut.xlsx")
        self.assertEqual((profile["kind"], self.codes(profile)), ("excel", {"unreadable"}))


class Others(ProfileTest):
    def test_repeated_elements_of_xml_are_rows(self):
        for text in (
            '<?xml version="1.0"?><rows><row><a>1</a><b>x</b></row><row><a>2</a><b>y</b></row></rows>',
            '<data><r a="1" b="x"/><r a="2" b="y"/></data>',
            '<f xmlns="http://x"><head><t>1</t></head><e><a>1</a><b>x</b></e><e><a>2</a><b>y</b></e></f>',
        ):
            with self.subTest(text=text):
                profile = self.profile(text, "f.xml")
                self.assertEqual((profile["kind"], self.rows(profile)), ("xml", [[1, "x"], [2, "y"]]))

    def test_xml_that_is_broken_or_swells_is_told(self):
        swollen = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "lol">'
        swollen += "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9)) + "]><x><r><a>&a8;</a></r><r><a>1</a></r></x>"
        for text in ("<a><b>1</b>", swollen):
            with self.subTest(text=text[:30]):
                profile = self.profile(text, "f.xml")
                self.assertEqual((profile["kind"], profile["load"]), ("xml", None))

    def test_older_stata_files_and_orc_are_read(self):
        frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
        for name, write in (("f.dta", lambda out: frame.to_stata(out, write_index=False, version=114)), ("f.orc", frame.to_orc)):
            with self.subTest(name=name):
                out = io.BytesIO()
                write(out)
                self.assertEqual(self.rows(self.profile(out.getvalue(), name)), [[1, "x"], [2, "y"]])

    def test_a_damaged_archive_stays_an_archive(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a.csv", "a,b\n1,2\n")
        self.assertEqual(self.profile(out.getvalue()[:-10], "f.zip")["kind"], "archive")


if __name__ == "__main__":
    unittest.main()
