"""Encrypted rooms: the bot, a real Synapse, and people with matrix-js-sdk's Rust crypto."""
import unittest

from bot import Bot, Case, call
from jspeer import JsPerson
from synapse import peers

CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('growth')"
CSV = b"region,amount\nnorth,10\nsouth,32\n"
SUM = "import pandas as pd; total = pd.read_csv('sales.csv').amount.sum(); print(total)"


@unittest.skipUnless((peers() / "node_modules/matrix-js-sdk").is_dir(), "matrix-js-sdk needs Node 20 or later")
class Encrypted(Case):
    def js(self, name: str = "ann", identity: bool = True) -> JsPerson:
        person = JsPerson(self.server.register(name))
        self.addCleanup(person.close)
        if identity:
            person.do("identity")
        return person

    def room(self, ann: JsPerson, bot: Bot, *others: str, **options: object) -> str:
        room = ann.do("room", invite=[bot.user, *others], **options)
        ann.until(lambda e: e.get("type") == "m.room.member" and e["room"] == room and e["sender"] == bot.user and
                  e["content"]["membership"] == "join")
        return room

    def answer(self, ann: JsPerson, bot: Bot, question: str) -> dict:
        return ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("org.sandbook.re") == question)

    def test_e1_the_job_in_an_encrypted_room_with_only_signed_devices(self) -> None:
        bot = self.bot(call(SUM + "\n" + CHART), {"text": "|total|\n|---|\n|42|"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, self.person("bea").user)
        ann.do("strict", room=room)
        asked = ann.send_file(room, CSV, "sales.csv", caption="sum and a chart", more={"m.mentions": {"user_ids": [bot.user]}})
        got = self.answer(ann, bot, asked)
        self.assertEqual((got["encrypted"], got["failed"], got["shield"]), (True, False, 0))
        self.assertIn("<table>", got["content"]["formatted_body"])
        self.assertEqual(got["wire"]["m.relates_to"]["event_id"], asked)
        image = ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("msgtype") == "m.image")
        data = ann.download(image["content"])
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((image["content"]["info"]["w"], image["content"]["info"]["size"]), (int.from_bytes(data[16:20], "big"), len(data)))
        self.assertNotIn("url", image["content"])
        bot.stop()
        follow = ann.say(room, "and one more?", **{"m.relates_to": {"rel_type": "m.thread", "event_id": asked, "is_falling_back": True,
                                                                   "m.in_reply_to": {"event_id": asked}}})
        bot.answers(call("print(total + 1)"), {"text": "43"})
        bot.start()
        self.assertEqual(self.answer(ann, bot, follow)["content"]["body"].split()[0], "43")
        self.assertFalse([e for e in ann.events if e.get("failed")])

    def test_e1_a_direct_room_and_nobody_has_an_identity(self) -> None:
        bot = self.bot({"text": "hello"}, cross_signing="no")
        bot.logged("matrix_synced")
        ann = self.js(identity=False)
        room = self.room(ann, bot, direct=True)
        got = self.answer(ann, bot, ann.say(room, "hi"))
        self.assertTrue(got["encrypted"])

    def test_e19_a_person_verifies_the_bot_by_emoji(self) -> None:
        bot = self.bot({"text": "hello"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.answer(ann, bot, ann.say(room, "hi"))
        shown = ann.do("verify", user=bot.user, room=room)
        bot.logged('state=keys')
        listed = bot.command("verify")["verifications"]
        self.assertEqual(len(listed), 1)
        for _, name in shown["emoji"]:
            self.assertIn(name.lower(), listed[0]["emoji"].lower())
        self.assertEqual(bot.command("verify", listed[0]["txn"], "yes"), {"ok": True})
        ann.do("confirm", user=bot.user, match=True)
        ann.until(lambda e: e.get("verification") == "done")
        self.assertTrue(ann.do("verified", user=bot.user))
        self.assertTrue(bot.command("status")["encryption"]["identity"]["device_signed"])

    def test_logging_out_ends_the_device_and_the_next_login_is_a_new_one(self) -> None:
        bot = self.bot({"text": "hello"})
        bot.logged("matrix_synced")
        first = bot.command("status")["device"]
        self.assertEqual(bot.command("logout"), {"ok": True})
        bot.logged("matrix_down")
        bot.stop()
        second = bot.command("login")
        self.assertEqual(second["state"], "syncing")
        self.assertNotEqual(second["device"], first)

    def test_e21_a_room_that_becomes_encrypted(self) -> None:
        bot = self.bot({"text": "plain"}, {"text": "sealed"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, self.person("bea").user, plain=True)
        self.assertFalse(self.answer(ann, bot, ann.say(room, "one", bot.user))["encrypted"])
        ann.do("state", room=room, type="m.room.encryption", content={"algorithm": "m.megolm.v1.aes-sha2"})
        ann.until(lambda e: e.get("type") == "m.room.encryption" and e["room"] == room)
        self.assertTrue(self.answer(ann, bot, ann.say(room, "two", bot.user))["encrypted"])

    def test_e22_plain_text_in_an_encrypted_room_is_dropped(self) -> None:
        bot = self.bot({"text": "sealed"})
        bot.logged("matrix_synced")
        ann = self.js()
        bea = self.person("bea")
        room = self.room(ann, bot, bea.user)
        bea.call("POST", bea.at(room, "join"), {})
        bea.say(room, "plain", bot.user)
        bot.logged("matrix_plaintext_dropped")
        self.answer(ann, bot, ann.say(room, "sealed?", bot.user))

    def test_e23_edits_and_redactions_of_encrypted_questions(self) -> None:
        bot = self.bot({"text": "first"}, {"text": "second"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        asked = ann.say(room, "one")
        first = self.answer(ann, bot, asked)
        ann.say(room, "* two", **{"m.new_content": {"msgtype": "m.text", "body": "two"}, "m.relates_to": {"rel_type": "m.replace", "event_id": asked}})
        ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("body", "").startswith("second"))
        amended = ann.until(lambda e: e.get("sender") == bot.user and e["wire"].get("m.relates_to", {}).get("rel_type") == "m.replace")
        self.assertEqual(amended["wire"]["m.relates_to"]["event_id"], first["event"])
        self.assertTrue(amended["encrypted"])

    def test_e25_files_that_were_changed_on_their_way_are_refused_in_words(self) -> None:
        bot = self.bot({"text": "one"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        ann.send_file(room, CSV, "bad.csv", broken=True)
        ann.until(lambda e: e.get("sender") == bot.user and "bad.csv" in e["content"].get("body", ""))
        for size in (0, 1, 900_000):
            ann.send_file(room, b"x" * size, f"size{size}.csv")
        self.answer(ann, bot, ann.say(room, "still there?"))

    def test_e11_a_device_that_comes_later_reads_what_comes_later(self) -> None:
        bot = self.bot({"text": "first"}, {"text": "second"})
        bot.logged("matrix_synced")
        account = self.server.register("ann")
        ann = JsPerson(account)
        self.addCleanup(ann.close)
        room = self.room(ann, bot, direct=True)
        self.answer(ann, bot, ann.say(room, "one"))
        phone = JsPerson(account)
        self.addCleanup(phone.close)
        asked = ann.say(room, "two")
        self.answer(phone, bot, asked)

    def test_a_message_that_waited_for_the_bot_is_answered_after_a_kill(self) -> None:
        bot = self.bot({"text": "first"})
        bot.logged("matrix_synced")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.answer(ann, bot, ann.say(room, "one"))
        bot.kill()
        asked = [ann.say(room, f"question {i}") for i in range(3)]
        bot.answers(*({"text": f"answer {i}"} for i in range(3)))
        bot.start()
        for question in asked:
            self.answer(ann, bot, question)
        self.assertFalse([e for e in ann.events if e.get("failed")])


if __name__ == "__main__":
    unittest.main()
