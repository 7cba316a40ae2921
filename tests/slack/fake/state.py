"""All that the fake knows, and waiting for it to change."""
import itertools
import threading
import time
from typing import TYPE_CHECKING

from .limits import SCOPES

if TYPE_CHECKING:
    from .sockets import Link


class State:
    """A workspace: who is in it, what was said, what was called, and what a test wants to go wrong."""

    def __init__(self) -> None:
        self.counter = itertools.count(1)
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.complaints: list[str] = []
        self.calls: list[dict] = []
        self.messages: dict[str, list[dict]] = {}
        self.files: dict[str, dict] = {}
        self.bytes: dict[str, bytes] = {}
        self.users = {u: {"id": u, "team_id": "T1", "name": n, "real_name": n.title(), "profile": {"display_name": n, "real_name": n.title()}} for u, n in (("U1", "ann"), ("U2", "bob"))}
        self.users["UBOT"] = {"id": "UBOT", "team_id": "T1", "name": "sandbook", "is_bot": True, "profile": {"display_name": "sandbook", "real_name": "sandbook"}}
        self.channels = {"C1": "channel", "C2": "channel", "C3": "channel", "G1": "group", "D1": "im", "D2": "im", "M1": "mpim"}
        self.tokens: dict[str, dict] = {}
        self.add_team("T1", "xoxb-test-1")
        self.app_token = "xapp-test-1"
        self.signing_secret = "s3cr3t"
        self.links: list["Link"] = []
        self.tickets: set[str] = set()
        self.opens: list[float] = []
        self.envelopes: dict[str, dict] = {}
        self.waiting: list[dict] = []  # events that no link took
        self.ack_ms: list[float] = []
        self.events_sent = 0
        self.max_links = 0
        self.gap_ms = 0.0
        self.alone_since: float | None = None
        self.statuses: list[tuple[str, str, str]] = []
        self.sessions: dict[tuple[str, str], str] = {}
        self.faults: dict[str, list[dict]] = {}
        self.refuse_blocks = self.no_agent = self.html_files = self.cdn_hop = self.foreign_hop = False
        self.foreign_tokens: list[str | None] = []
        self.echo = True
        self.unfurl = False
        self.lost_shares = 0
        self.share_delay = 0.0
        self.fragment = self.slow = False
        self.answer_pings = True
        self.no_hello = self.bad_accept = False
        self.upgrade_status = 101
        self.phantom_links = 0
        self.refreshed = 0
        self.streamed: list[dict] = []  # all streams that ever were
        self.stream_ends: int | None = None  # after so many more appends a stream is over
        self.asides: list[dict] = []  # ephemeral messages
        self.titles: dict[tuple[str, str], str] = {}
        self.port, self.url = 0, ""  # the server's, once it listens

    def complain(self, words: str) -> None:
        self.complaints.append(words)

    def add_team(self, team: str, token: str, **more: object) -> None:
        suffix = "" if team == "T1" else team
        self.tokens[token] = {"team": team, "user": f"UBOT{suffix}", "bot": f"BBOT{suffix}", "scopes": SCOPES} | more

    def until(self, wanted, timeout: float = 60, what: str = "it"):
        """The first true value of wanted(), looked at whenever something happened."""
        give_up = time.monotonic() + timeout
        with self.changed:
            while not (got := wanted()):
                left = give_up - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"waited {timeout} s for {what}; last calls: {[' '.join(filter(None, (c['method'], c.get('error')))) for c in self.calls[-15:]]}")
                self.changed.wait(min(left, 0.5))
            return got

    def ts(self) -> str:
        return f"{int(time.time())}.{next(self.counter):06d}"

    def find(self, channel: str, ts: str) -> dict | None:
        return next((m for m in self.messages.get(channel, []) if m["ts"] == ts), None)

    def said(self, channel: str, thread: str | None = None) -> list[dict]:
        """Messages of the bot."""
        with self.lock:
            return [m for m in self.messages.get(channel, []) if m.get("bot_id") and (thread is None or m.get("thread_ts") == thread)]

    def text_of(self, m: dict) -> str:
        """All words of a message, blocks before text."""
        words: list[str] = []

        def walk(v: object) -> None:
            if isinstance(v, dict):
                if isinstance(v.get("text"), str):
                    words.append(v["text"])
                for k, x in v.items():
                    if k != "text" or not isinstance(x, str):
                        walk(x)
            elif isinstance(v, list):
                for x in v:
                    walk(x)

        walk(m.get("blocks"))
        return " ".join(words) or m.get("text", "")
