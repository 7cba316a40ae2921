"""Encrypted rooms: the bot, a real Synapse, and people with matrix-js-sdk's Rust crypto."""
import unittest

from bot import Bot, Case, call
from jspeer import JsPerson

CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('growth')"
CSV = b"region,amount\nnorth,10\nsouth,32\n"
SUM = "import pandas as pd; total = pd.read_csv('sales.csv').amount.sum(); print(total)"


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
        bot = self.bot(call(SUM + "\n" + CHART), {"text": "|total|\n|---|\n|42|"}, call("print(total + 1)"), {"text": "43"})
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
        bot.start()
        self.assertEqual(self.answer(ann, bot, follow)["content"]["body"].split()[0], "43")
        self.assertFalse([e for e in ann.events if e.get("failed")])


if __name__ == "__main__":
    unittest.main()
