"""What today's clients send, and what an operator does at a shell: with a real Synapse."""
import unittest

from bot import Case, call
from encrypted import Encrypted
from synapse import Person

LIST = call("import os; print(sorted(n for n in os.listdir('.') if n.endswith('.csv')))")


class Clients(Case):
    def test_a_gallery_is_several_files_with_a_caption_and_what_did_not_come_is_said(self) -> None:
        bot = self.bot(LIST, {"text": "seen"})
        ann, room = self.direct(bot)
        items = [{"itemtype": "m.file", "body": name, "url": ann.upload(b"x,y\n1,2\n", name), "info": {"mimetype": "text/csv", "size": 8}}
                 for name in ("a.csv", "b.csv")]
        asked = ann.send_event(room, {"msgtype": "dm.filament.gallery", "body": "compare them", "itemtypes": items + [{"itemtype": "m.file", "body": "c.csv"}]})
        self.answer(ann, room, bot, asked)
        shown = [e["content"].get("body", "") for e in ann.events[room] if e["sender"] == bot.user]
        self.assertTrue([b for b in shown if "`c.csv` was not taken" in b], shown)
        listed = ann.say(room, "files")
        self.assertIn("`b.csv`", ann.until(room, lambda e: e["sender"] == bot.user and "`a.csv`" in e["content"].get("body", "") and listed)["content"]["body"])

    def test_a_session_that_the_server_ended_is_logged_out_and_only_a_login_makes_a_device(self) -> None:
        bot = self.bot(start=False)
        with self.assertRaisesRegex(AssertionError, "there is no session in data_dir"):
            bot.command("status")
        first = bot.command("login")["device"]
        again = Person.call_at(self.server.url, None, "POST", "/_matrix/client/v3/login", {
            "type": "m.login.password", "identifier": {"type": "m.id.user", "user": bot.user}, "password": bot.account.password})
        bot.account.token = again["access_token"]
        bot.account.call("DELETE", f"/_matrix/client/v3/devices/{first}", {"auth": {
            "type": "m.login.password", "identifier": {"type": "m.id.user", "user": bot.user}, "password": bot.account.password}})
        with self.assertRaisesRegex(AssertionError, "the server ended this session.*sandbook matrix logout"):
            bot.command("status")
        self.assertEqual(bot.command("logout"), {"ok": True})
        with self.assertRaisesRegex(AssertionError, "there is no session in data_dir"):
            bot.command("logout")
        self.assertNotEqual(bot.command("login")["device"], first)


class EncryptedClients(Encrypted):
    def test_a_reply_to_a_file_from_before_it_came_says_that_it_can_not_be_read(self) -> None:
        bot = self.ready_bot({"text": "without it, then"})
        ann = self.js()
        bea = self.server.register("bea")
        room = ann.do("room", invite=[bea.user])
        bea.call("POST", bea.at(room, "join"), {})
        early = ann.send_file(room, b"x,y\n1,2\n", "early.csv")
        ann.account.call("POST", ann.account.at(room, "invite"), {"user_id": bot.user})
        self.until_member(ann, room, bot.user)
        asked = ann.say(room, "sum it", bot.user, **{"m.relates_to": {"m.in_reply_to": {"event_id": early}}})
        self.answer(ann, bot, asked)
        self.assertTrue([e for e in ann.events if e.get("sender") == bot.user and "the message you reply to" in e["content"].get("body", "")])


if __name__ == "__main__":
    unittest.main()
