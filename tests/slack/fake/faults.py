"""What goes wrong when a test wants it."""
import threading

from .sockets import Sockets


class Faults(Sockets):
    """Faults of the Web API; those of links are in Sockets."""

    def fail(self, method: str, n: int = 1, status: int = 200, code: str | None = None, retry_after: int | None = None, html: bool = False, apply: bool = False, delay: float = 0, cut: bool = False) -> None:
        """The next n calls of the method fail so; apply: they take effect all the same; cut: no answer comes at all."""
        self.faults.setdefault(method, []).extend([{"status": status, "code": code, "retry_after": retry_after, "html": html, "apply": apply, "delay": delay, "cut": cut}] * n)

    def hold(self, method: str, apply: bool) -> threading.Event:
        """The next call of the method takes effect or not, and gets no answer: its connection is cut once the event is set."""
        held = threading.Event()
        self.faults.setdefault(method, []).append({"status": 200, "code": None, "retry_after": None, "html": False, "apply": apply, "delay": 0, "cut": True, "hold": held})
        return held
