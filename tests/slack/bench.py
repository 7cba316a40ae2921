"""How fast an event is durable and acknowledged, one at a time and in a burst, and what a thread costs. Prints figures."""
import statistics
import sys
import unittest

from daemon import Case, python

BURST = 1000


class Bench(Case):
    def show(self, what: str, ms: list[float]) -> None:
        ms = sorted(ms)
        print(f"{what}: median {statistics.median(ms):.1f} ms, p99 {ms[int(len(ms) * 0.99)]:.1f} ms, max {ms[-1]:.1f} ms", file=sys.stderr)

    def test_figures(self) -> None:
        s = self.slack
        s.echo = False
        d = self.run_daemon()
        root = s.say("U1", "C1", "<@UBOT> " + python("print('ready')"))
        self.answer("C1", root, "ready")
        s.ack_ms.clear()
        for i in range(300):
            n = len(s.ack_ms)
            s.react("U1", "C1", root, f"one{i}")
            s.until(lambda n=n: len(s.ack_ms) > n, what="an ack")
        self.show("envelope to acknowledgement, one at a time", s.ack_ms)
        s.ack_ms.clear()
        for i in range(BURST):
            s.react("U1", "C1", root, f"burst{i}")
        s.until(lambda: len(s.ack_ms) >= BURST, what="all acks")
        self.show(f"the same, {BURST} at once", s.ack_ms)
        before = d.rss_kb()
        roots = [s.say("U1", "C2", f"<@UBOT> help {i}") for i in range(100)]
        for r in roots:
            s.until(lambda r=r: self.answers("C2", r), what="help")
        print(f"daemon's memory per open thread: {(d.rss_kb() - before) / 100:.1f} KiB", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
