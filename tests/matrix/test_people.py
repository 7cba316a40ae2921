"""What people do with Element, in encrypted rooms: a real Synapse, matrix-js-sdk's Rust crypto, and events as Element makes them."""
import unittest

from bot import Bot, call
from encrypted import Encrypted
from jspeer import JsPerson

SLOW = call("import time; print('up', flush=True); time.sleep(50)")
HARD = """\u200fשלום עולם, مرحبا — 你好，世界 👩‍👩‍👧‍👦 e\u0301 🇩🇪

Some `code with a | bar`, ``a ` backtick``, **bold *and* italic**, ~~gone~~ and a [link](https://example.org/a?b=c&d="e").

````
```text
a fence in a fence
```
````

| name | price | 说明 |
|:-----|------:|------|
| apple `|` | € | 苹果 <b>not bold</b> |
| שקד | — | \\| escaped |

> a quote
> - [x] done
> - [ ] open

<script>alert(x)</script> &amp; &lt; $x^y$"""


class People(Encrypted):
    def relate(self, root: str, reply: str | None = None) -> dict:
        return {"m.relates_to": {"rel_type": "m.thread", "event_id": root, "is_falling_back": reply is None, "m.in_reply_to": {"event_id": reply or root}}}

    def said(self, ann: JsPerson, bot: Bot, text: str) -> dict:
        return ann.until(lambda e: e.get("sender") == bot.user and text in e["content"].get("m.new_content", e["content"]).get("body", ""))

    def made(self, ann: JsPerson, bot: Bot, name: str, question: str) -> bytes:
        """The file of that name that the answer brought."""
        return ann.download(ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("filename") == name and e["content"].get("org.sandbook.re") == question)["content"])

    def test_everything_that_is_no_question_and_then_several_files_and_one(self) -> None:
        names = "import os; names = sorted(n for n in os.listdir('.') if '.' in n); open('names.txt', 'w').write('|'.join(names))"
        bot = self.ready_bot(call(names), {"text": "made `names.txt`"}, {"text": "I mean this"}, {"text": "waves back"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        poll = {"question": {"org.matrix.msc1767.text": "Lunch?"}, "kind": "org.matrix.msc3381.poll.disclosed", "max_selections": 1,
                "answers": [{"id": "a", "org.matrix.msc1767.text": "Yes"}, {"id": "b", "org.matrix.msc1767.text": "No"}]}
        ann.do("send", room=room, type="org.matrix.msc3381.poll.start", content={"org.matrix.msc3381.poll.start": poll, "org.matrix.msc1767.text": "Lunch?\n1. Yes\n2. No"})
        ann.do("send", room=room, type="m.sticker", content={"body": "a cat", "url": "mxc://localhost/cat", "info": {"w": 1, "h": 1, "mimetype": "image/png"}})
        ann.do("send", room=room, content={"msgtype": "m.location", "body": "Location was shared", "geo_uri": "geo:51.5,-0.1"})
        ann.do("send", room=room, content={"msgtype": "m.server_notice", "body": "you owe us"})
        ann.do("send", room=room, content={"msgtype": "m.text", "body": ""})
        ann.do("send", room=room, content={"msgtype": "m.text"})
        voice = {"msgtype": "m.audio", "org.matrix.msc3245.voice": {}, "org.matrix.msc1767.audio": {"duration": 3, "waveform": [0, 512, 1024]}}
        ann.send_file(room, b"OggS", "Voice message.ogg", mimetype="audio/ogg", more=voice)
        for n, name in enumerate(("one.csv", "two.csv", "image.png", "clip.mp4")):
            ann.send_file(room, b"a,b\n1,2\n", name, more={"msgtype": ("m.file", "m.file", "m.image", "m.video")[n]})
        asked = ann.say(room, "what have you got?")
        self.answer(ann, bot, asked)
        self.assertEqual(self.made(ann, bot, "names.txt", asked).decode().split("|"), ["Voice message.ogg", "clip.mp4", "image.png", "one.csv", "two.csv"])
        # A reply to an old answer, and words with an emote, are questions of the same conversation.
        answer = self.answer(ann, bot, asked)["event"]
        reply = ann.say(room, "tell me more", **{"m.relates_to": {"m.in_reply_to": {"event_id": answer}}})
        self.assertEqual(self.answer(ann, bot, reply)["content"]["body"], "I mean this")
        self.assertEqual(self.ask(ann, bot, room, "waves", msgtype="m.emote")["content"]["body"], "waves back")
        answered = [e["content"]["org.sandbook.re"] for e in ann.events if e.get("sender") == bot.user and e["content"].get("msgtype") == "m.text"]
        self.assertEqual(len(set(answered)), 3)
        self.assert_all_readable(ann)

    def test_threads_reactions_edits_and_a_long_answer_in_a_direct_room(self) -> None:
        names = [a + b for a in "abcde" for b in "fghijklm"]
        long = "\n\n".join(f"paragraph {name} " + "word " * 200 for name in names)
        bot = self.ready_bot(SLOW, {"text": "reworded"}, call("x = 41"), {"text": "set"}, call("open('x.txt', 'w').write(str('x' in globals()))"), {"text": "made `x.txt`"},
                             SLOW, {"text": HARD}, {"text": long})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        slow = ann.say(room, "slow")
        self.said(ann, bot, "")  # the line that says how it is doing
        ann.say(room, "* quick", **{"m.new_content": {"msgtype": "m.text", "body": "quick"}, "m.relates_to": {"rel_type": "m.replace", "event_id": slow}})
        self.said(ann, bot, "reworded")
        root = ann.say(room, "x is 41")
        self.assertIn("set", self.answer(ann, bot, root)["content"]["body"])
        aside = ann.say(room, "do you know x here?", **self.relate(root))
        self.assertEqual(self.answer(ann, bot, aside)["wire"]["m.relates_to"]["event_id"], root)
        self.assertEqual(self.made(ann, bot, "x.txt", aside), b"False")  # a thread is a conversation of its own
        seen = {e.get("event") for e in ann.events}
        stopped = ann.say(room, "slow again")
        ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("msgtype") == "m.notice" and e["event"] not in seen)
        ann.do("send", room=room, type="m.reaction", content={"m.relates_to": {"rel_type": "m.annotation", "event_id": stopped, "key": "🛑"}})
        self.assertNotIn("שלום", self.answer(ann, bot, stopped)["content"]["body"])
        hard = self.ask(ann, bot, room, HARD)["content"]
        self.assert_hard(hard)
        asked = ann.say(room, "a long one, " + "please " * 2000)
        parts = [self.said(ann, bot, f"paragraph {name} ") for name in names]
        self.assertGreater(len({e["event"] for e in parts}), 1)
        self.assertEqual({e["content"]["org.sandbook.re"] for e in parts}, {asked})
        self.assert_all_readable(ann)

    def assert_hard(self, content: dict) -> None:
        body, html = content["body"], content["formatted_body"]
        for words in ("שלום עולם", "مرحبا", "你好，世界 👩‍👩‍👧‍👦 e\u0301 🇩🇪", "a fence in a fence", "苹果", "שקד"):
            self.assertIn(words, body)
        for words in ("<code>a ` backtick</code>", "<strong><em>and</em></strong>", "<del>gone</del>", "<th>price</th>", "```text\n", "&lt;script&gt;", "<blockquote>"):
            self.assertIn(words, html)
        self.assertNotIn("<script", html)
        self.assertNotIn("<b>", html)

    def test_invited_and_asked_while_it_was_away(self) -> None:
        bot = self.ready_bot({"text": "one"}, {"text": "two"})
        ann, bea = self.js(), self.js("bea")
        bot.stop()
        room = ann.do("room", invite=[bot.user, bea.user])
        bea.do("join", room=room)
        early = ann.say(room, "before you came", bot.user)
        bot.start()
        self.until_member(ann, room, bot.user)
        self.ask(ann, bot, room, "and now?")
        self.ask(bea, bot, room, "and I?")
        self.assertFalse([e for e in ann.events if e.get("sender") == bot.user and e["content"].get("org.sandbook.re") == early])


if __name__ == "__main__":
    unittest.main()
