"""What the tests of encrypted rooms share: one Synapse and one process of people for a test class, and what they do all the time."""
import base64
import os
import unittest
from collections.abc import Callable

from bot import Bot, Case
from jspeer import JsPerson, js_process
from linepeer import Peer, Process
from proxy import Proxy
from synapse import Person, peers

API = "/_matrix/client/v3"
FULL = os.environ.get("SANDBOOK_MATRIX_FULL") == "1"  # also what takes minutes
NODE = (peers() / "node_modules/matrix-js-sdk").is_dir()


@unittest.skipUnless(NODE, "matrix-js-sdk needs Node 20 or later")
class Encrypted(Case):
    node: Process

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.node = js_process()
        cls.addClassCleanup(cls.node.close)

    def js(self, name: str = "ann", identity: bool = True, account: Person | None = None) -> JsPerson:
        person = JsPerson(self.node, account or self.server.register(name))
        self.addCleanup(person.close)
        if identity:
            person.do("identity")
        return person

    def ready_bot(self, *answers: dict, **settings: str) -> Bot:
        bot = self.bot(*answers, **settings)
        bot.logged("matrix_synced")
        return bot

    def proxied(self, *answers: dict, **settings: str) -> tuple[Bot, Proxy]:
        """A bot whose way to the server leads through a proxy that can misbehave."""
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        return self.ready_bot(*answers, url=proxy.url, **settings), proxy

    def room(self, ann: Peer, bot: Bot, *others: Peer | Person, **options: object) -> str:
        """ann's, with the bot in it."""
        room = ann.do("room", invite=[bot.user, *(o.user for o in others)], **options)
        for who in others:
            person = who.account if isinstance(who, Peer) else who
            person.call("POST", person.at(room, "join"), {})
        for user in (bot.user, *(o.user for o in others)):
            self.until_member(ann, room, user)
        return room

    def until_member(self, ann: Peer, room: str, user: str, membership: str = "join") -> None:
        ann.until(lambda e: e.get("type") == "m.room.member" and e["room"] == room and e["content"]["membership"] == membership and
                  user == (e["sender"] if membership == "join" else user))

    def answer(self, ann: Peer, bot: Bot, question: str, seconds: float = 90) -> dict:
        got = ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("org.sandbook.re") == question, seconds)
        self.assertTrue(got["encrypted"])
        return got

    def ask(self, ann: Peer, bot: Bot, room: str, text: str, **more: object) -> dict:
        """The answer; ann saw no shield on it."""
        got = self.answer(ann, bot, ann.say(room, text, bot.user, **more))
        self.assertEqual((got["failed"], got["shield"]), (False, 0))
        return got

    def assert_all_readable(self, ann: Peer) -> None:
        self.assertFalse([e for e in ann.events if e.get("failed")])

    def keys_of(self, bot: Bot) -> dict:
        return bot.account.call("POST", f"{API}/keys/query", {"device_keys": {bot.user: []}})

    def device_of(self, bot: Bot) -> str:
        return bot.logged("matrix_logged_in").split("device=")[1].split()[0]


def index_of(wire: dict) -> tuple[str, int]:
    """Which Megolm key, and which of its indexes, a message was encrypted with."""
    data = base64.b64decode(wire["ciphertext"] + "==")
    assert data[:2] == b"\x03\x08"
    index = shift = 0
    for byte in data[2:]:
        index |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return wire["session_id"], index


def in_room(room: str, edit: Callable[[dict], object]) -> Callable[[dict], object]:
    """For the proxy: each event of that room in an answer of /sync."""
    def change(body: dict) -> object:
        timeline = body.get("rooms", {}).get("join", {}).get(room, {}).get("timeline", {}).get("events", [])
        changed = [edit(e) for e in timeline]
        return any(x is not False for x in changed) if changed else False
    return change

