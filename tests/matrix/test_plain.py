"""The bot in plain rooms of a real Synapse: who is answered, where, and with what."""
import io
import unittest
import zipfile

from bot import Case, call, is_answer, longer
from niopeer import NioPerson, nio_process
from synapse import Person

CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('growth')"
CSV = b"region,amount\nnorth,10\nsouth,32\n"
SUM = "import pandas as pd; print(pd.read_csv('sales.csv').amount.sum())"


class Addressing(Case):
    def test_the_first_login_leaves_a_signed_device_a_backup_and_a_recovery_key(self) -> None:
        bot = self.bot(start=False)
        told = bot.command("login")
        self.assertEqual((told["state"], told["encryption"]["identity"]["device_signed"], told["encryption"]["backup"]["version"]), ("syncing", True, "1"))
        self.assertRegex(bot.command("recovery")["recovery_key"], r"^E[a-zA-Z0-9 ]{50,}$")
        self.assertEqual(bot.command("recovery", "taken"), {"ok": True})

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

    def test_s12_only_what_addresses_the_bot_is_answered(self) -> None:
        bot = self.bot(*({"text": f"answer {i}"} for i in range(9)))
        ann, room = self.group(bot)
        name = bot.user.split(":")[0][1:]
        pill = f'<a href="https://matrix.to/#/%40{name}%3Alocalhost">Robot</a> hello'
        none = [
            ann.say(room, f"{bot.user} is a bot"),  # m.mentions is there, and empty
            ann.say(room, "all of you", **{"m.mentions": {"room": True}}),
            ann.send_event(room, {"msgtype": "m.text", "body": f"see https://example.org/{name}/x"}),
            ann.send_event(room, {"msgtype": "m.text", "body": f"I met {name} yesterday"}),
            ann.send_event(room, {"msgtype": "m.notice", "body": f"{name}: hello", "m.mentions": {"user_ids": [bot.user]}}),
            ann.send_event(room, {"msgtype": "m.text", "body": f"x{bot.user}y"}),
        ]
        asked = [
            ann.say(room, "hello there", bot.user),
            ann.send_event(room, {"msgtype": "m.text", "body": "Robot hello", "format": "org.matrix.custom.html", "formatted_body": pill}),
            ann.send_event(room, {"msgtype": "m.text", "body": f"what does {bot.user} think?"}),
            ann.send_event(room, {"msgtype": "m.text", "body": f"{name}: hello"}),
        ]
        for question in asked:
            self.answer(ann, room, bot, question)
        answered = {e["content"]["org.sandbook.re"] for e in ann.history(room) if is_answer(e, bot)}
        self.assertEqual(answered & set(none), set())
        self.assertLessEqual(set(asked), answered)

    def test_in_a_direct_room_nothing_but_words_is_needed(self) -> None:
        bot = self.bot(call("x = 20"), {"text": "noted"}, call("print(x + 1)"), {"text": "21"})
        ann, room = self.direct(bot)
        ann.say(room, "x is 20")
        got = self.answer(ann, room, bot)["content"]
        self.assertNotIn("m.relates_to", got)
        ann.say(room, "and one more?")
        ann.until(room, lambda e: e["content"].get("body", "").startswith("21"))

    def test_a_room_of_two_is_not_direct_unless_somebody_said_so(self) -> None:
        bot = self.bot({"text": "one"})
        ann = self.person()
        room = ann.room(bot.user)
        self.until_joined(ann, room, bot)
        ann.say(room, "hello?")
        asked = ann.say(room, "hello?", bot.user)
        self.assertEqual(self.answer(ann, room, bot)["content"]["org.sandbook.re"], asked)

    def test_messages_from_before_it_came_are_no_questions(self) -> None:
        bot = self.bot({"text": "one"})
        ann = self.person()
        room = ann.room(self.person("bea").user)
        for i in range(3):
            ann.say(room, f"old {i}", bot.user)
        ann.call("POST", ann.at(room, "invite"), {"user_id": bot.user})
        self.until_joined(ann, room, bot)
        asked = ann.say(room, "new", bot.user)
        self.answer(ann, room, bot, asked)
        self.assertEqual(sum(is_answer(e, bot) for e in ann.history(room)), 1)


class Threads(Case):
    def test_s13_a_thread_is_a_session_and_goes_on_without_a_mention(self) -> None:
        bot = self.bot(call("x = 41"), {"text": "set"}, call("print(x + 1)"), {"text": "42"})
        ann, room = self.group(bot)
        root = ann.say(room, "x is 41", bot.user)
        self.answer(ann, room, bot, root)
        second = ann.in_thread(room, root, "plus one?")
        got = self.answer(ann, room, bot, second)["content"]
        self.assertEqual((got["m.relates_to"]["event_id"], got["m.relates_to"]["m.in_reply_to"]["event_id"]), (root, second))

    def test_s13_an_unthreaded_reply_to_the_bot_stays_in_its_thread(self) -> None:
        bot = self.bot({"text": "first"}, {"text": "second"})
        ann, room = self.group(bot)
        root = ann.say(room, "hello", bot.user)
        first = self.answer(ann, room, bot, root)
        reply = ann.say(room, "> <@bot> first\n\nand now?", **{"m.relates_to": {"m.in_reply_to": {"event_id": first["event_id"]}}})
        got = self.answer(ann, room, bot, reply)["content"]
        self.assertEqual(got["m.relates_to"]["event_id"], root)

    def test_s13_a_mention_in_another_thread_is_answered_there(self) -> None:
        bot = self.bot({"text": "here"})
        ann, room = self.group(bot)
        root = ann.say(room, "people talk")
        ann.in_thread(room, root, "and talk")
        asked = ann.in_thread(room, root, "bot?", bot.user)
        self.assertEqual(self.answer(ann, room, bot, asked)["content"]["m.relates_to"]["event_id"], root)


    def test_s13_roots_that_were_edited_or_deleted_quotes_and_replies_to_replies(self) -> None:
        bot = self.bot(*({"text": f"answer {i}"} for i in range(5)))
        ann, room = self.group(bot)
        root = ann.say(room, "talk", bot.user)
        first = self.answer(ann, room, bot, root)
        quote = {"rel_type": "m.thread", "event_id": root, "is_falling_back": False, "m.in_reply_to": {"event_id": first["event_id"]}}
        quoted = ann.say(room, "what do you mean?", **{"m.relates_to": quote})
        self.assertEqual(self.answer(ann, room, bot, quoted)["content"]["m.relates_to"]["event_id"], root)
        ann.redact(room, root)
        after = ann.in_thread(room, root, "still?", bot.user)
        self.assertEqual(self.answer(ann, room, bot, after)["content"]["m.relates_to"]["event_id"], root)
        plain = ann.say(room, "people talk")
        edited = ann.say(room, "* people talked", **{"m.new_content": {"msgtype": "m.text", "body": "people talked"}, "m.relates_to": {"rel_type": "m.replace", "event_id": plain}})
        self.assertTrue(edited)
        threaded = ann.in_thread(room, plain, "bot?", bot.user)
        self.assertEqual(self.answer(ann, room, bot, threaded)["content"]["m.relates_to"]["event_id"], plain)
        reply = ann.say(room, "a reply", **{"m.relates_to": {"m.in_reply_to": {"event_id": plain}}})
        deeper = ann.say(room, "a reply to it", bot.user, **{"m.relates_to": {"m.in_reply_to": {"event_id": reply}}})
        self.assertEqual(self.answer(ann, room, bot, deeper)["content"]["m.relates_to"]["m.in_reply_to"]["event_id"], deeper)


    def test_s13_an_unthreaded_reply_to_what_others_say_in_a_thread_is_answered_in_that_thread(self) -> None:
        bot = self.bot({"text": "here"})
        ann, room = self.group(bot)
        root = ann.say(room, "people talk")
        inside = ann.in_thread(room, root, "and talk")
        asked = ann.say(room, "bot?", bot.user, **{"m.relates_to": {"m.in_reply_to": {"event_id": inside}}})
        self.assertEqual(self.answer(ann, room, bot, asked)["content"]["m.relates_to"]["event_id"], root)

    def test_s14_a_mention_that_is_added_later_makes_it_a_question_where_it_was_said(self) -> None:
        bot = self.bot({"text": "here"}, call(SUM), {"text": "done"}, call(SUM), {"text": "again"})
        ann, eve = self.person(), self.person("eve")
        ann, room = self.group(bot, ann, eve)

        def edit(who: Person, event: str, new: dict) -> None:
            new = {"msgtype": "m.text"} | new | {"m.mentions": {"user_ids": [bot.user]}}
            who.send_event(room, new | {"body": "* " + new["body"], "m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": event}})
        root = ann.say(room, "people talk")
        inside = ann.in_thread(room, root, "what is it?")
        edit(eve, inside, {"body": "evil"})  # not hers
        edit(ann, inside, {"body": "what is it, bot?"})
        got = self.answer(ann, room, bot)["content"]
        self.assertEqual((got["org.sandbook.re"], got["m.relates_to"]["event_id"]), (inside, root))
        # The caption of a file, first without and then with other words.
        url = ann.upload(CSV, "sales.csv")
        file = {"msgtype": "m.file", "filename": "sales.csv", "url": url, "info": {"size": len(CSV)}}
        sent = ann.send_event(room, file | {"body": "sum of amount"})
        edit(ann, sent, file | {"body": "sum of amount, bot"})
        got = self.answer(ann, room, bot, sent)["content"]
        self.assertEqual(got["m.relates_to"]["event_id"], sent)
        self.assertIn("1 cell", got["body"])  # which read the file
        self.assertNotIn("failed", got["body"])
        edit(ann, sent, file | {"body": "sum of amount, once more"})
        ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("body", "").startswith("again"))


class Files(Case):
    def png(self, ann, event: dict) -> tuple[int, int]:
        data = ann.download(event["content"]["url"])
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")

    def test_the_job_a_csv_in_and_text_table_and_chart_out(self) -> None:
        table = "|region|amount|\n|---|---:|\n|north|10|\n|south|32|"
        bot = self.bot(call(SUM + "\n" + CHART), {"text": f"The sum is 42.\n\n{table}"})
        ann, room = self.group(bot)
        asked = ann.send_file(room, CSV, "sales.csv", caption="sum and a chart, please", mention=(bot.user,))
        got = self.answer(ann, room, bot, asked)["content"]
        self.assertIn("<table><thead><tr><th>region</th>", got["formatted_body"])
        self.assertIn("north", got["body"])
        image = ann.until(room, lambda e: e["content"].get("msgtype") == "m.image")
        info = image["content"]["info"]
        self.assertEqual((info["w"], info["h"]), self.png(ann, image))
        self.assertEqual(info["size"], len(ann.download(image["content"]["url"])))
        self.assertEqual(image["content"]["m.relates_to"]["event_id"], asked)

    def test_a_file_in_a_thread_asked_about_later(self) -> None:
        bot = self.bot(call(SUM), {"text": "42"})
        ann, room = self.group(bot)
        root = ann.send_file(room, CSV, "sales.csv")
        asked = ann.in_thread(room, root, "sum of amount?", bot.user)
        self.assertEqual(self.answer(ann, room, bot, asked)["content"]["body"].split()[0], "42")

    def test_the_file_of_a_quoted_message(self) -> None:
        bot = self.bot(call(SUM), {"text": "42"})
        ann, room = self.group(bot)
        file = ann.send_file(room, CSV, "sales.csv")
        asked = ann.say(room, "sum of amount?", bot.user, **{"m.relates_to": {"m.in_reply_to": {"event_id": file}}})
        self.answer(ann, room, bot, asked)

    def test_a_zip_and_awkward_names(self) -> None:
        bot = self.bot(call("import os; print(sorted(os.listdir('.')))"), {"text": "listed"})
        ann, room = self.direct(bot)
        box = io.BytesIO()
        with zipfile.ZipFile(box, "w") as z:
            z.writestr("a/b.csv", CSV)
        ann.send_file(room, box.getvalue(), "pack.zip")
        ann.send_file(room, CSV, "数据 表.csv")
        ann.say(room, "list")
        self.answer(ann, room, bot)

    def test_s17_addresses_that_lead_elsewhere_are_refused_in_words(self) -> None:
        bot = self.bot({"text": "one"})
        ann, room = self.direct(bot)
        for url in ("mxc://localhost/../../admin", "mxc://localhost/nothing-there", "https://example.org/x", ""):
            ann.send_event(room, {"msgtype": "m.file", "body": "x.csv", "url": url, "info": {"size": -5}})
        ann.until(room, lambda e: e["sender"] == bot.user and "x.csv" in e["content"].get("body", ""))
        ann.say(room, "still there?")
        self.answer(ann, room, bot)

    def test_s17_a_result_larger_than_the_server_takes_is_told(self) -> None:
        big = "import os; open('big.bin', 'wb').write(os.urandom(2_000_000))"
        bot = self.bot(call(big), {"text": "made `big.bin`"})
        ann, room = self.direct(bot)
        ann.say(room, "make it")
        self.answer(ann, room, bot)
        ann.until(room, lambda e: e["sender"] == bot.user and "larger than this server takes" in e["content"].get("body", ""))


class OtherClients(Case):
    def test_matrix_nio_understands_answer_and_chart(self) -> None:
        bot = self.bot(call(CHART), {"text": "**done**"}, progress="typing")
        ann, room = self.group(bot)
        process = nio_process()
        self.addCleanup(process.close)
        nio = NioPerson(process, ann)
        nio.say(room, "chart, please", bot.user)
        self.assertIn("<strong>done</strong>", nio.until(lambda e: e.get("content", {}).get("msgtype") == "m.text" and e["sender"] == bot.user)
                      ["content"]["formatted_body"])
        image = nio.until(lambda e: e.get("content", {}).get("msgtype") == "m.image")["content"]
        self.assertEqual(nio.download(image)[:8], b"\x89PNG\r\n\x1a\n")


class Texts(Case):
    def parts(self, text: str, marks: list[str]) -> list[dict]:
        bot = self.bot({"text": text})
        ann, room = self.direct(bot)
        ann.say(room, "go")
        ann.until(room, lambda e: any(m in e["content"].get("body", "") for m in marks[-1:]) or e["content"].get("msgtype") == "m.file")
        return [e["content"] for e in ann.history(room) if e["sender"] == bot.user and e["type"] == "m.room.message"]

    def test_s16_a_long_answer_comes_in_parts_and_whole(self) -> None:
        paragraphs = [f"paragraph {i} " + "word " * 100 for i in range(80)]
        got = self.parts("\n\n".join(paragraphs), ["paragraph 79 "])
        text = "\n".join(c["body"] for c in got)
        self.assertTrue(1 < len(got) <= 5)
        for i in range(80):
            self.assertIn(f"paragraph {i} ", text)

    def test_s16_an_answer_beyond_all_parts_is_attached(self) -> None:
        got = self.parts("界" * 100_000, ["nothing"])
        self.assertTrue(any(c.get("filename") == "answer.md" for c in got))

    def test_s16_thirty_thousand_quotes(self) -> None:
        got = self.parts('"' * 30_000 + " end", [" end"])
        self.assertEqual(sum(c["body"].count('"') for c in got), 30_000)

    @longer
    def test_s16_a_line_and_a_table_without_end(self) -> None:
        table = "|n|word|\n|---|---|\n" + "".join(f"|{i}|{'word ' * 5}|\n" for i in range(900))
        bot = self.bot({"text": "x" * 70_000 + " end"}, {"text": table})
        ann, room = self.direct(bot)
        ann.say(room, "a line")
        ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("body", "").endswith(" end"))
        ann.say(room, "a table")
        last = ann.until(room, lambda e: e["sender"] == bot.user and ("899" in e["content"].get("body", "") or e["content"].get("msgtype") == "m.file"))
        said = [e["content"] for e in ann.history(room) if e["sender"] == bot.user and e["type"] == "m.room.message"]
        self.assertEqual(sum(c["body"].count("x") for c in said if set(c["body"]) <= set("x end")), 70_000)
        self.assertTrue(last)
        self.assertTrue(all("<th>n</th>" in c["formatted_body"] for c in said if "<table>" in c.get("formatted_body", "")))


if __name__ == "__main__":
    unittest.main()
