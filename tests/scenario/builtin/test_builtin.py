"""The built-in planner, from the request to the answer: right numbers, honest refusals, in English and Chinese.

Each case is a file, a request and what must hold of the answer. Expected numbers are computed here, from the same files, with the csv
module alone. A request that the data can't answer must be refused and must not come with a result."""
from __future__ import annotations

import csv
import io
import json
import re
import statistics
import sys
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from sandbook import REAL, run  # noqa: E402

TIPS, TITANIC, MACRO, STOCK = (REAL / name for name in ("tips.csv", "titanic.csv", "macrodata.csv", "stock_px.csv"))
BABY = REAL / "babynames_1980_2010.zip"
SALES = HERE / "data/销售.csv"
BOTH = (HERE / "data/customers.csv", HERE / "data/orders.csv")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as f:
        return list(csv.DictReader(f))


def numbers_of(table: list[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) for row in table if row[column] != ""]


def by(table: list[dict[str, str]], *keys: str) -> dict[tuple[str, ...], list[dict[str, str]]]:
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in table:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def grouped(table: list[dict[str, str]], column: str, statistic, *keys: str) -> dict[tuple[str, ...], float]:
    return {key: statistic(numbers_of(group, column)) for key, group in by(table, *keys).items()}


def where(table: list[dict[str, str]], **wanted: str) -> list[dict[str, str]]:
    return [row for row in table if all(row[key] == value for key, value in wanted.items())]


def births() -> list[dict[str, str]]:
    table = []
    with zipfile.ZipFile(REAL / "babynames_1980_2010.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".txt"):
                text = archive.read(name).decode()
                table += [dict(zip(("name", "sex", "number"), line), year=name[3:7]) for line in csv.reader(io.StringIO(text))]
    return table


mean, total, median = statistics.fmean, sum, statistics.median
tips, titanic, macro, stock, sales = map(rows, (TIPS, TITANIC, MACRO, STOCK, SALES))
customers, orders = map(rows, BOTH)
city_of = {row["customer_id"]: row["city"] for row in customers}
joined = [row | {"city": city_of[row["customer_id"]]} for row in orders if row["customer_id"] in city_of]
women = where(titanic, Sex="female")


def after(table: list[dict[str, str]], year: int) -> list[dict[str, str]]:
    return [row for row in table if int(row["year"]) > year]


# ---- what an answer is held against ----

class Answer:
    def __init__(self, reply: dict) -> None:
        self.status, self.text = reply["status"], reply["answer"]
        self.figures, self.files, self.cells = reply["figures"], reply["files"], reply["cells"]
        self.facts = self.text.split("**How I read it**")[0].split("**我的理解**")[0]

    def numbers(self, text: str) -> list[float]:
        return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", text)]

    def line_with(self, *labels: str) -> list[float]:
        """The numbers of the table row that has these labels as cells."""
        for line in self.facts.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and all(label in cells for label in labels):
                return self.numbers(line)
        return []


def near(found: float, expected: float) -> bool:
    return abs(found - expected) <= max(0.0051, 0.0006 * abs(expected))


class has:  # noqa: N801 - reads like a word of the table
    """All these numbers and words are in the answer."""

    def __init__(self, *expected: float | str, figure: bool = False, file: str = "") -> None:
        self.expected, self.figure, self.file = expected, figure, file

    def check(self, test: unittest.TestCase, answer: Answer) -> None:
        test.assertEqual(answer.status, "answered", answer.text)
        numbers = answer.numbers(answer.facts)
        for one in self.expected:
            if isinstance(one, str):
                test.assertIn(one, answer.text)
            else:
                test.assertTrue(any(near(n, one) for n in numbers), f"{one} not in:\n{answer.facts}")
        if self.figure:
            test.assertEqual(len(answer.figures), 1, answer.text)
        if self.file:
            test.assertIn(self.file, [Path(f["path"]).name for f in answer.files])


class table:  # noqa: N801
    """A row for each group, with that number in it."""

    def __init__(self, expected: dict[tuple[str, ...], float], figure: bool = False) -> None:
        self.expected, self.figure = expected, figure

    def check(self, test: unittest.TestCase, answer: Answer) -> None:
        test.assertEqual(answer.status, "answered", answer.text)
        for labels, number in self.expected.items():
            found = answer.line_with(*labels)
            test.assertTrue(any(near(n, number) for n in found), f"{labels}: {number} not in {found}\n{answer.facts}")
        if self.figure:
            test.assertEqual(len(answer.figures), 1, answer.text)


class refused:  # noqa: N801
    """No result, no figure; the words that stand in the way are named, or what is missing is asked."""

    def __init__(self, *named: str) -> None:
        self.named = named

    def check(self, test: unittest.TestCase, answer: Answer) -> None:
        test.assertEqual(answer.status, "refused", answer.text)
        test.assertEqual((answer.figures, answer.files), ([], []))
        test.assertFalse([line for line in answer.text.splitlines() if line.startswith("|")], answer.text)
        for word in self.named:
            test.assertIn(word, answer.text)


def share(table_: list[dict[str, str]], column: str, value: str) -> float:
    return sum(row[column] == value for row in table_) / len(table_)


def by_decade(rows: list[dict]) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows:
        found.setdefault(int(float(row["year"])) // 10 * 10, []).append(row)
    return found


def cases() -> list[tuple]:
    baby = births()
    per_year = {}
    for row in baby:
        per_year[row["year"]] = per_year.get(row["year"], 0) + int(row["number"])
    girls_1990 = where(baby, sex="F", year="1990")
    top = sorted(girls_1990, key=lambda row: -int(row["number"]))
    unemployment = grouped(macro, "unemp", mean, "year")
    decades = {(f"{key}s",): mean(numbers_of(group, "unemp")) for key, group in by_decade(macro).items()}
    gdp = numbers_of(macro, "realgdp")
    growth = round((gdp[-1] / gdp[0] - 1) * 100, 2)
    survival = {key: mean([float(row["Survived"]) for row in group]) for key, group in by(titanic, "Pclass", "Sex").items()}
    spx_2008 = [float(row["SPX"]) for row in stock if row[""].startswith("2008")]
    city_sales = grouped(sales, "销售额", total, "城市")
    return [
        # tips
        (TIPS, "average tip by day as a bar chart", table(grouped(tips, "tip", mean, "day"), figure=True)),
        (TIPS, "which day has the highest total bill", has("Sat", "Sun", max(grouped(tips, "total_bill", total, "day").values()))),
        (TIPS, "tip as a share of total bill", has(mean([float(r["tip"]) / float(r["total_bill"]) for r in tips]))),
        (TIPS, "averrage tip for dinner on Sundays, excluding smokers",
         has(mean(numbers_of(where(tips, time="Dinner", day="Sun", smoker="No"), "tip")))),
        (TIPS, "小费最高的5个账单", has(*sorted(numbers_of(tips, "tip"))[-5:])),
        (TIPS, "按星期几统计总账单", table(grouped(tips, "total_bill", total, "day"))),
        (TIPS, "各天吸烟者占比", table({key: share(group, "smoker", "Yes") for key, group in by(tips, "day").items()})),
        (TIPS, "小费和总账单的相关性", has(statistics.correlation(numbers_of(tips, "tip"), numbers_of(tips, "total_bill")), figure=True)),
        (TIPS, "吸烟者和不吸烟者的平均小费对比", table(grouped(tips, "tip", mean, "smoker"), figure=True)),
        (TIPS, "average salary by department", refused("salary", "department", "total_bill")),
        (TIPS, "tip percentage by smoker", refused("tip")),
        (TIPS, "average tip by day excluding holidays", refused("holidays")),
        (TIPS, "why do smokers tip less", refused("why")),
        (TIPS, "clean up duplicates and export", has(1, 243, "out/clean.csv")),
        (TIPS, "按性别比较平均小费", refused("性别", "smoker")),
        (TIPS, "预测下周的小费", refused("预测")),
        # titanic
        (TITANIC, "survival rate by class and sex, as a chart", table(survival, figure=True)),
        (TITANIC, "survival among women", has(mean(numbers_of(women, "Survived")), len(women))),
        (TITANIC, "how many passengers older than 60 died",
         has(len([r for r in titanic if r["Age"] and float(r["Age"]) > 60 and r["Survived"] == "0"]))),
        (TITANIC, "share of women among survivors", has(share(where(titanic, Survived="1"), "Sex", "female"))),
        (TITANIC, "median fare by embarked", table({k: v for k, v in grouped(titanic, "Fare", median, "Embarked").items() if k[0]})),
        (TITANIC, "哪些列有缺失值？画出缺失比例", has("Cabin", 687, "Age", 177, "Embarked", figure=True)),
        (TITANIC, "头等舱女性的平均年龄", has(mean(numbers_of(where(women, Pclass="1"), "Age")))),
        (TITANIC, "年龄最大的乘客是谁", has("Barkworth", 80)),
        (TITANIC, "各舱位的生还率", table({k: mean([float(r["Survived"]) for r in g]) for k, g in by(titanic, "Pclass").items()})),
        (TITANIC, "average age of the crew", refused("crew")),
        (TITANIC, "票价的异常值", refused("异常值")),
        # macrodata
        (MACRO, "trend of unemployment over time", has("1982", 10.7, 3.4, figure=True)),
        (MACRO, "average unemployment by year between 1990 and 1995",
         table({k: v for k, v in unemployment.items() if 1990 <= int(k[0]) <= 1995})),
        (MACRO, "2000年以后的平均失业率", has(mean(numbers_of(after(macro, 2000), "unemp")))),
        (MACRO, "失业率最高的是哪一年", has("1982", max(unemployment.values()))),
        (MACRO, "average wages by year", refused("wages", "unemp")),
        (MACRO, "GDP的增长率", has(growth, figure=True)),
        (MACRO, "growth of realgdp over time", has(growth, "change of realgdp", figure=True)),
        (MACRO, "average unemp per decade", table(decades)),
        (MACRO, "各年代的平均失业率", table(decades)),
        (MACRO, "moving average of realgdp", refused("moving average")),
        (MACRO, "unemployment in 2050", refused("1959", "2009")),
        # stock_px
        (STOCK, "when was AAPL highest", has("2011-10-14", 422)),
        (STOCK, "2008年SPX的最低值", has(min(spx_2008))),
        (STOCK, "correlation between AAPL and MSFT",
         has(statistics.correlation(numbers_of(stock, "AAPL"), numbers_of(stock, "MSFT")), figure=True)),
        (STOCK, "moving average of MSFT", refused("moving average")),
        # babynames
        (BABY, "how many files", has(32, 31)),
        (BABY, "total births per year", table({(y,): n for y, n in per_year.items() if int(y) < 1990})),
        (BABY, "1990年最受欢迎的10个女孩名字", has(*[row["name"] for row in top[:10]], int(top[0]["number"]))),
        (BABY, "how many babies were named Mary in 1990", has(sum(int(r["number"]) for r in where(baby, name="Mary", year="1990")))),
        # Chinese sales
        (SALES, "销售额前3的城市", has(*[k[0] for k in sorted(city_sales, key=city_sales.get)[-3:]])),
        (SALES, "各城市销售额占比", table({k: v / sum(city_sales.values()) for k, v in city_sales.items()})),
        (SALES, "线上和线下的平均利润对比", table(grouped(sales, "利润", mean, "渠道"), figure=True)),
        (SALES, "average revenue of online orders", refused("online")),
        (SALES, "除了食品以外的总销售额", has(sum(float(r["销售额"]) for r in sales if r["产品类别"] != "食品"))),
        (SALES, "利润率", refused("利润")),
        (SALES, "南京的销售额", refused("南京")),
        (SALES, "去重后导出为Excel", has(120, file="clean.xlsx")),
        # two files
        (BOTH, "total amount by city", table(grouped(joined, "amount", total, "city"))),
        (BOTH, "客户有多少", has(30)),
        (BOTH, "join the two files", has(len(joined), 200, file="joined.csv")),
        ((TIPS, TITANIC), "join the two files", refused("tips.csv", "titanic.csv")),
        ((TIPS, TITANIC), "average tip by day", table(grouped(tips, "tip", mean, "day"))),
    ]


class Requests(unittest.TestCase):
    maxDiff = None

    def ask(self, files: Path | tuple[Path, ...], text: str, out: str) -> Answer:
        words = [w for f in (files if isinstance(files, tuple) else (files,)) for w in ("--file", str(f))]
        p = run("ask", "--json", "--model", "builtin", "--out", out, *words, text)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        return Answer(json.loads(p.stdout))

    def test_answers_hold_what_the_data_says_and_the_rest_is_refused(self) -> None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="sandbook-builtin-") as out, ThreadPoolExecutor(2) as pool:
            todo = cases()
            answers = list(pool.map(lambda case: self.ask(case[0], case[1], f"{out}/{todo.index(case)}"), todo))
        for (files, text, expected), answer in zip(todo, answers):
            with self.subTest(request=text):
                expected.check(self, answer)
                chinese = bool(re.search("[\u4e00-\u9fff]", text))
                self.assertIn("未配置语言模型" if chinese else "No language model is configured", answer.text)


# ---- many questions in one process ----

STAFF, SHOP = HERE / "data/staff.csv", HERE / "data/shop.csv"
staff, shop = map(rows, (STAFF, SHOP))


def firsts(table_: list[dict[str, str]], each: str, of: str, column: str, n: int) -> dict[tuple[str, ...], float]:
    """The n largest sums of each group."""
    sums = grouped(table_, column, total, each, of)
    found: dict[tuple[str, ...], float] = {}
    for group in {key[0] for key in sums}:
        ranked = sorted((key for key in sums if key[0] == group), key=sums.get, reverse=True)
        found |= {key: sums[key] for key in ranked[:n]}
    return found


def best_of_each(table_: list[dict[str, str]], each: str, column: str, n: int) -> list[dict[str, str]]:
    groups = by([row for row in table_ if row[column] != ""], each).values()
    return [row for group in groups for row in sorted(group, key=lambda r: -float(r[column]))[:n]]


def changes(table_: list[dict[str, str]], column: str) -> list[float]:
    """Of each month's sum against the month before, in per cent."""
    months = grouped([row | {"month": row["date"][:7]} for row in table_], column, total, "month")
    sums = [value for _, value in sorted(months.items())]
    assert len(sums) > 2, sums
    return [(b / a - 1) * 100 for a, b in zip(sums, sums[1:])]


class only(table):  # noqa: N801
    """The rows of `table` and no others."""

    def check(self, test: unittest.TestCase, answer: Answer) -> None:
        super().check(test, answer)
        lines = [line for line in answer.facts.splitlines() if line.startswith("|")]
        test.assertEqual(len(lines) - 2, len(self.expected), answer.facts)


def amounts(column: str, **wanted: str) -> list[float]:
    return numbers_of(where(shop, **wanted), column)


def talks() -> list[tuple]:
    """File, then requests of one conversation, each with what must hold of its answer."""
    it = where(staff, department="IT")
    big = [row for row in shop if float(row["revenue"]) > 1000 and row["channel"] == "Online"]
    january = [float(row["revenue"]) for row in shop if row["date"] < "2022-02"]
    order = next(row for row in shop if row["order_id"] == "O00010")
    return [
        # the first of each group, not of all
        (SHOP, ("top 2 products per region by revenue", only(firsts(shop, "region", "product", "revenue", 2)))),
        (SHOP, ("top 1 product by revenue in each region", only(firsts(shop, "region", "product", "revenue", 1)))),
        (SHOP, ("which product has the highest total revenue in each region", only(firsts(shop, "region", "product", "revenue", 1)))),
        (SHOP, ("top 3 products by revenue", has("Desk", sum(amounts("revenue", product="Desk"))))),
        (SHOP, ("top 5 orders per region by revenue", has(*(r["order_id"] for r in best_of_each(shop, "region", "revenue", 5))))),
        # places, changes, running totals, "or": by the same table
        (SHOP, ("which product has the second highest total revenue", has(sorted(grouped(shop, "revenue", total, "product").items(), key=lambda kv: -kv[1])[1][0][0]))),
        (SHOP, ("month over month revenue growth", has(*changes(shop, "revenue")))),
        (SHOP, ("running total of revenue by year", has(sum(amounts("revenue"))))),
        (SHOP, ("how many orders are from North or of product Pen", has(sum(r["region"] == "North" or r["product"] == "Pen" for r in shop)))),
        (SHOP, ("total revenue between February 2022 and March 2022", has(sum(float(r["revenue"]) for r in shop if "2022-02" <= r["date"] < "2022-04")))),
        (SHOP, ("second highest revenue by region", refused("second"))),
        # a digit is never a typing error
        (SHOP, ("revenue of order O00010", has(float(order["revenue"]), "O00010"))),
        (SHOP, ("revenue of order O99999", refused("O99999"))),
        # names that look like little words, or like what nobody can do
        (STAFF, ("average salary of women in IT", has(mean([float(r["salary"]) for r in it if r["gender"] == "F"])))),
        (STAFF, ("average salary in IT", has(mean(numbers_of(it, "salary"))))),
        (SHOP, ("how many orders were online", has(len(where(shop, channel="Online"))))),
        (STAFF, ("how many people work in IT", has(len(it)))),
        (STAFF, ("show it: average salary by city", table(grouped(staff, "salary", mean, "city")))),
        (STAFF, ("AVERAGE SALARY BY CITY", table(grouped(staff, "salary", mean, "city")))),
        (SHOP, ("total revenue by region", table(grouped(shop, "revenue", total, "region"))),
               ("and for Online?", table(grouped(where(shop, channel="Online"), "revenue", total, "region"))),
               ("and the median?", table(grouped(where(shop, channel="Online"), "revenue", median, "region"))),
               ("as a bar chart", table(grouped(where(shop, channel="Online"), "revenue", median, "region"), figure=True))),
        # 总 is a sum
        (SALES, ("总金额", has(sum(numbers_of(sales, "销售额")))), ("总销售额", has(sum(numbers_of(sales, "销售额"))))),
        # filters
        (SHOP, ("how many orders with revenue over 1000 and channel Online", has(len(big)))),
        (SHOP, ("how many orders not in North", has(len(shop) - len(where(shop, region="North"))))),
        (SHOP, ("how many orders in North or South", has(sum(r["region"] in ("North", "South") for r in shop)))),
        (SHOP, ("how many orders with units between 5 and 10", has(sum(5 <= int(r["units"]) <= 10 for r in shop)))),
        (SHOP, ("total revenue in January 2022", has(sum(january)))),
        (SHOP, ("average units where product is Pen or channel is Store",
                has(mean([float(r["units"]) for r in shop if r["product"] == "Pen" or r["channel"] == "Store"])))),
        # statistics
        (SHOP, ("90th percentile of units", has(statistics.quantiles(amounts("units"), n=10, method="inclusive")[8]))),
        (SHOP, ("standard deviation of units", has(statistics.stdev(amounts("units"))))),
        (SHOP, ("number of distinct products", has(len({r["product"] for r in shop})))),
        (SHOP, ("share of total revenue by region",
                table({k: v / sum(amounts("revenue")) for k, v in grouped(shop, "revenue", total, "region").items()}))),
        (SHOP, ("how many missing ratings", has(sum(not r["rating"] for r in shop)))),
        # what it does not do is said
        (SHOP, ("running average of revenue by month", refused("running average"))),
        (SHOP, ("outliers in revenue", refused("outliers"))),
        (SHOP, ("predict revenue for 2024", refused("predict"))),
    ]


class Talks(unittest.TestCase):
    def ask_all(self, todo: list[tuple], home: str) -> dict[str, list[dict]]:
        lines = []
        for room, (file, *turns) in enumerate(todo):
            for at, (text, _) in enumerate(turns):
                event = {"id": f"{room}.{at}", "room": f"r{room}", "sender": "me", "direct": True, "mentioned": True, "text": text}
                lines.append(json.dumps(event | ({"files": [{"path": str(file), "name": file.name}]} if at == 0 else {})))
        p = run("run", "--set", "local.stdio=yes", "--set", f"service.data_dir={home}", "--set", "service.log_level=error",
                "--set", "box.pool=0", stdin="\n".join(lines) + "\n", timeout=400)
        self.assertEqual(p.returncode, 0, p.stderr)
        posts: dict[str, list[dict]] = {}
        for post in map(json.loads, p.stdout.splitlines()):
            if post.get("post") == "answer":
                posts.setdefault(post["reply_to"], []).append(post)
        return posts

    def test_conversations_are_answered_right_or_refused(self) -> None:
        import tempfile

        todo = talks()
        with tempfile.TemporaryDirectory(prefix="sandbook-talks-") as home:
            posts = self.ask_all(todo, home)
        for room, (_, *turns) in enumerate(todo):
            for at, (text, expected) in enumerate(turns):
                with self.subTest(request=text):
                    said = posts.get(f"{room}.{at}", [])
                    self.assertEqual(len(said), 1, said)
                    read = re.search(r"\*\*(How I read it|我的理解)\*\*", said[0]["markdown"])
                    status = "answered" if read else "refused"
                    expected.check(self, Answer(said[0] | {"answer": said[0]["markdown"], "status": status, "cells": []}))


if __name__ == "__main__":
    unittest.main()
