"""What is taken back. A person deletes a message: the file that it brought is gone, out of the store and out of the running box, against a
real Synapse. A room is replaced by one that cannot be joined: that is not tried with every word that is said."""
import unittest

from bot import Bot, Case
from hostile import ANN
from test_hostile import Case as Hostile

LOOK = """```python
import glob
print("there:", sorted(glob.glob("**/*.csv", recursive=True)), "read:", "rows" in dir())
try: open("sales.csv")
except FileNotFoundError: print("no such file")
```"""
READ = "```python\nrows = open('sales.csv').read()\nopen('own.csv', 'w').write('own')\nprint(len(rows))\n```"
SALES = b"region,amount\nN,1\n"


def stored(bot: Bot) -> list[str]:
    """Where its bytes are: version, link of a box."""
    return [str(p) for p in (bot.folder / "data/sessions").glob("**/*") if p.is_file() and p.read_bytes() == SALES]


class Redaction(Case):
    def look(self, ann, room: str, bot: Bot, *mention: str, **more: object) -> str:
        return self.answer(ann, room, bot, ann.say(room, LOOK, *mention, **more))["content"]["body"]

    def test_a_file_goes_with_its_message(self) -> None:
        bot = self.bot({"text": "not asked"})
        ann, room = self.direct(bot)
        sent = ann.send_file(room, SALES, "sales.csv")
        self.answer(ann, room, bot, ann.say(room, READ))
        self.assertTrue(stored(bot))
        ann.redact(room, sent)
        bot.logged("files_withdrawn")
        self.assertIn("there: ['own.csv'] read: True\nno such file", self.look(ann, room, bot))
        self.assertEqual(stored(bot), [])
        bot.kill()
        bot.start()
        self.assertRegex(self.look(ann, room, bot), r"there: \['own.csv'\] read: \w+\nno such file")

    def test_it_goes_when_another_message_asked_about_it_and_the_service_was_down(self) -> None:
        bot = self.bot({"text": "not asked"})
        ann, room = self.group(bot)
        sent = ann.send_file(room, SALES, "sales.csv")
        asked = ann.say(room, READ, bot.user, **{"m.relates_to": {"m.in_reply_to": {"event_id": sent}}})
        self.answer(ann, room, bot, asked)
        self.assertTrue(stored(bot))
        bot.kill()
        ann.redact(room, sent)
        bot.start()
        bot.logged("files_withdrawn")
        self.assertEqual(stored(bot), [])
        there = self.look(ann, room, bot, bot.user, **{"m.relates_to": {"rel_type": "m.thread", "event_id": asked}})
        self.assertRegex(there, r"there: \['own.csv'\] read: \w+\nno such file")


class Replaced(Hostile):
    def test_a_successor_that_cannot_be_joined_is_not_asked_for_again_and_again(self) -> None:
        self.fake.rules.append(("POST", "/join/", lambda h, _: h.reply(400, {"errcode": "M_UNSUPPORTED_ROOM_VERSION", "error": "no"})))
        bot = self.bot({"text": "still here"})
        stone = {"event_id": "$stone", "type": "m.room.tombstone", "state_key": "", "sender": ANN, "origin_server_ts": 1, "content": {"replacement_room": "!next:x"}}
        self.fake.deliver(stone)
        bot.logged("matrix_join_failed")
        for n in range(5):
            self.fake.deliver(self.fake.message({"msgtype": "m.text", "body": str(n)}))
        self.fake.until(lambda: not self.fake.syncs)
        self.fake.deliver()
        self.fake.until(lambda: not self.fake.syncs)
        self.assertEqual(self.fake.count("/join/"), 1)


if __name__ == "__main__":
    unittest.main()
