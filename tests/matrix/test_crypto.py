"""Trust, keys and verification as matrix-js-sdk's Rust crypto sees them, through a real Synapse."""
import time
import unittest

from bot import Bot, Case
from jspeer import JsPerson


class Crypto(Case):
    def js(self, name: str = "ann") -> JsPerson:
        person = JsPerson(self.server.register(name))
        self.addCleanup(person.close)
        person.do("identity")
        return person

    def room(self, ann: JsPerson, bot: Bot, *others: JsPerson, **options: object) -> str:
        room = ann.do("room", invite=[bot.user, *(o.user for o in others)], **options)
        ann.until(lambda e: e.get("type") == "m.room.member" and e["room"] == room and e["sender"] == bot.user and
                  e["content"]["membership"] == "join")
        for other in others:
            other.account.call("POST", other.account.at(room, "join"), {})
            ann.until(lambda e, o=other: e.get("type") == "m.room.member" and e["sender"] == o.user and e["content"]["membership"] == "join")
        return room

    def ask(self, ann: JsPerson, bot: Bot, room: str, text: str) -> dict:
        question = ann.say(room, text, bot.user)
        return ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("org.sandbook.re") == question)

    def test_the_bots_device_is_signed_and_its_keys_are_backed_up(self) -> None:
        bot = self.bot({"text": "hello"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.assertEqual(self.ask(ann, bot, room, "hi")["shield"], 0)
        keys = bot.account.call("POST", "/_matrix/client/v3/keys/query", {"device_keys": {bot.user: []}})
        signed = [d for d in keys["device_keys"][bot.user].values() if len(d["signatures"][bot.user]) == 2]
        self.assertEqual(len(signed), 1)
        self.assertTrue(ann.do("trust", user=bot.user, device=signed[0]["device_id"])["signed"])
        self.assertGreater(bot.account.call("GET", "/_matrix/client/v3/room_keys/version")["count"], 0)

    def test_a_person_verifies_the_bot_in_their_direct_room(self) -> None:
        bot = self.bot({"text": "hello"}, verification="auto")
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        self.assertFalse(ann.do("verified", user=bot.user))
        seen = ann.do("verify", user=bot.user, room=room)
        shown = bot.logged("state=keys emoji=")
        self.assertIn(" ".join(str(n) for n in seen["decimal"]), shown)
        for _, name in seen["emoji"]:
            self.assertIn(name.lower(), shown.lower())
        ann.do("confirm", user=bot.user, match=True)
        self.assertEqual(ann.until(lambda e: e.get("verification") in ("done", "failed"))["verification"], "done")
        end = time.monotonic() + 30
        while not ann.do("verified", user=bot.user):  # her signature is on its way to the server and back
            self.assertLess(time.monotonic(), end)

    def test_a_person_who_sees_other_emoji_ends_it(self) -> None:
        bot = self.bot({"text": "hello"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        ann.do("verify", user=bot.user, room=room)
        ann.do("confirm", user=bot.user, match=False)
        self.assertIn("m.mismatched_sas", bot.logged("state=cancelled"))
        self.assertFalse(ann.do("verified", user=bot.user))

    def test_without_an_identity_strict_people_refuse_and_the_log_says_why(self) -> None:
        bot = self.bot({"text": "hello"}, cross_signing="no")
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        ann.do("strict", room=room)
        ann.say(room, "hi", bot.user)
        self.assertIn("m.unverified", bot.logged("why=withheld"))

    def test_who_left_reads_nothing_more_and_a_restart_changes_no_key(self) -> None:
        bot = self.bot(*[{"text": f"answer {n}"} for n in range(2)])
        bot.logged("matrix_synced")
        ann, bea = self.js(), self.js("bea")
        room = self.room(ann, bot, bea)
        one = self.ask(ann, bot, room, "one")
        bea.until(lambda e: e.get("event") == one["event"] and not e["failed"])
        two = self.ask(ann, bot, room, "two")
        self.assertEqual(one["wire"]["session_id"], two["wire"]["session_id"])
        bot.stop()
        bot.answers(*[{"text": f"answer {n}"} for n in range(2, 4)])
        bot.start()
        three = self.ask(ann, bot, room, "three")
        self.assertEqual(one["wire"]["session_id"], three["wire"]["session_id"])
        bea.do("leave", room=room)
        ann.until(lambda e: e.get("type") == "m.room.member" and e["sender"] == bea.user and e["content"]["membership"] == "leave")
        four = self.ask(ann, bot, room, "four")
        self.assertNotEqual(one["wire"]["session_id"], four["wire"]["session_id"])


if __name__ == "__main__":
    unittest.main()
