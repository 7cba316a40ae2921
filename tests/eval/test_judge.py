"""The judge of the evaluation: no right answer is called wrong, and no wrong one right."""
import importlib.machinery
import importlib.util
import unittest
from pathlib import Path

loader = importlib.machinery.SourceFileLoader("eval_run", str(Path(__file__).resolve().parent / "run"))
spec = importlib.util.spec_from_loader("eval_run", loader)
assert spec
run = importlib.util.module_from_spec(spec)
loader.exec_module(run)

MEAN = {"question": "What is the mean fare, with two decimals?", "digits": 2}
COUNT = {"question": "How many passengers were younger than 10?"}
DAY = {"question": "On which day is the mean highest?", "others": ["Sat", "Thur", "Fri"]}
NONE = {"question": "What was the highest price of GOOG?"}


class Judge(unittest.TestCase):
    def check(self, question: dict, right: list | None, answer: str, verdict: str, status: str = "answered", outputs: str | None = "32.204207 62 0.77104 422.0", marked: bool = False) -> None:
        with self.subTest(answer=answer):
            self.assertEqual(run.judge(question, right, answer, status, outputs, marked), verdict)

    def test_values(self) -> None:
        self.check(MEAN, [32.204207], "The mean fare is 32.20.", "right")
        self.check(MEAN, [32.204207], "It is **32.2**.", "right")
        self.check(MEAN, [32.204207], "It is 32.204207968.", "wrong", outputs="32.204207968")
        self.check(MEAN, [32.204207968], "It is 32.204207968.", "right")
        self.check(MEAN, [32.204207], "It is 32.25.", "invented")
        self.check(COUNT, [62.0], "There were 62 of them.", "right")
        self.check(COUNT, [62.0], "There were 62.4 of them.", "invented")
        self.check(COUNT, [62.0], "Their mean is 32.204207.", "wrong")
        self.check({"question": "In what percentage of rows? One decimal.", "digits": 1}, [77.104377], "In 77.1 % of them.", "right")
        self.check(COUNT, [1234.0], "There are 1,234.", "right")

    def test_names(self) -> None:
        self.check(DAY, ["Sun"], "On Sunday.", "right")
        self.check(DAY, ["Sun"], "On Saturday.", "wrong")
        self.check(DAY, ["Sun"], "On Saturday and Sunday.", "wrong")
        self.check(DAY, ["Sun"], "On Sunday, before Saturday.", "right")

    def test_refusals(self) -> None:
        self.check(NONE, None, "There is no column GOOG in this table.", "right")
        self.check(NONE, None, "The highest price of GOOG was 422.", "wrong")
        self.check(NONE, None, "The highest price of GOOG was 523.45.", "invented")
        self.check(NONE, None, "GOOG's only price was high.", "wrong")
        self.check(COUNT, [62.0], "I stopped because this took longer than 300 s. Your variables are kept; a smaller question may go through.", "refused", status="failed")
        self.check(COUNT, [62.0], "That could not be found out.", "refused", status="failed")
        self.check(MEAN, [32.204207], "It is 41.5.\n\n*(Not supported by any output: 41.5. Please check before use.)*", "marked", marked=True)


if __name__ == "__main__":
    unittest.main()
