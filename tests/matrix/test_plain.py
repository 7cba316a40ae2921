"""The bot in plain rooms of a real Synapse."""
import unittest

from bot import Case, call

CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('growth')"


class Plain(Case):
    def test_a_mention_in_a_room_is_answered_in_a_thread(self) -> None:
        bot = self.bot({"text": "It is **42**."})
        ann, room = self.group(bot)
        asked = ann.say(room, f"{bot.user}: what is it?", bot.user)
        got = self.answer(ann, room, bot)["content"]
        self.assertEqual(got["m.relates_to"], {"rel_type": "m.thread", "event_id": asked, "is_falling_back": True,
                                               "m.in_reply_to": {"event_id": asked}})
        self.assertIn("<strong>42</strong>", got["formatted_body"])
        self.assertEqual(got["m.mentions"], {"user_ids": [ann.user]})
        self.assertEqual(got["org.sandbook.re"], asked)


if __name__ == "__main__":
    unittest.main()
