"""Trust, keys and verification as matrix-js-sdk's Rust crypto sees them, through a real Synapse."""
import sqlite3
import time
import unittest

from bot import Bot, longer
from encrypted import API, Encrypted
from jspeer import JsPerson
from proxy import Proxy
from synapse import Refused


class Rotation(Encrypted):
    """Age is for tests/unit/test_matrix_crypto.c, which has a clock of its own: no server and no client makes a week pass."""

    def test_E10_the_key_is_new_when_a_reader_is_gone_or_it_was_used_enough_and_not_after_a_restart(self) -> None:
        bot = self.ready_bot(*[{"text": f"answer {n}"} for n in range(20)])
        ann, bea, cyd = self.js(), self.js("bea"), self.js("cyd", identity=False)
        room = self.room(ann, bot, bea, cyd, encryption={"rotation_period_msgs": 4})
        keys: list[str] = []

        def ask(what: str) -> bool:
            """Whether the answer's key is a new one."""
            keys.append(self.ask(ann, bot, room, what)["wire"]["session_id"])
            return len(keys) < 2 or keys[-1] != keys[-2]
        ask("one")
        self.assertFalse(ask("two"))
        bot.stop()
        bot.start()
        self.assertFalse(ask("after a restart"))
        ask("four")
        self.assertTrue(ask("used enough"))
        bea.do("leave", room=room)
        self.until_member(ann, room, bea.user, "leave")
        self.assertTrue(ask("she left"))
        phone = self.js(identity=False, account=cyd.account)
        self.answer(phone, bot, ann.say(room, "with the phone", bot.user))
        keys.append(keys[-1])
        phone.do("logout")
        self.assertTrue(ask("a device logged out"))
        ann.do("kick", room=room, user=cyd.user)
        self.until_member(ann, room, cyd.user, "leave")
        self.assertTrue(ask("he was kicked"))
        ann.do("state", room=room, type="m.room.history_visibility", content={"history_visibility": "joined"})
        ann.until(lambda e: e.get("type") == "m.room.history_visibility" and e["content"]["history_visibility"] == "joined")
        self.assertTrue(ask("who may read the past"))
        bot.command("rotate", room)
        self.assertTrue(ask("asked for"))
        self.assert_all_readable(ann)


@longer
class Dehydrated(Encrypted):
    extra = "experimental_features: {msc3814_enabled: true}\n"

    def test_a_device_that_only_lies_at_the_server_gets_keys_too(self) -> None:
        bot, proxy = self.proxied({"text": "hello"})
        ann = self.js(identity=False)
        ann.do("identity", words="correct horse battery staple")
        ann.do("dehydrate")
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        told = {device for c in proxy.seen("PUT .*/sendToDevice/m.room.encrypted") for device in c.json["messages"].get(ann.user, {})}
        self.assertEqual((len(told), ann.device in told), (2, True))


class Identity(Encrypted):
    def signed(self, bot: Bot) -> dict[str, bool]:
        """By device: whether the identity signed it."""
        devices = self.keys_of(bot)["device_keys"].get(bot.user, {})
        return {name: len(d["signatures"][bot.user]) > 1 for name, d in devices.items()}

    def new_device(self, bot: Bot, recovery_key: str, url: str | None = None) -> Bot:
        """Of the same account, up."""
        other = Bot(self.server, [{"text": "from a new device"}] * 5, account=bot.account, url=url)
        self.addCleanup(other.close)
        key = other.folder / "recovery"
        key.write_text(recovery_key + "\n")
        key.chmod(0o600)
        other.conf.write_text(other.conf.read_text() + f"recovery_key_file = {key}\n")
        return other.start()

    def test_E18_the_first_run_a_restart_and_a_new_device_with_the_recovery_key(self) -> None:
        bot = self.ready_bot({"text": "hello"}, {"text": "again"})
        bot.logged("crypto_device_signed")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        master = self.keys_of(bot)["master_keys"][bot.user]["keys"]
        bot.stop()
        bot.start()
        bot.logged("matrix_synced")
        self.assertEqual(self.keys_of(bot)["master_keys"][bot.user]["keys"], master)
        words = bot.command("recovery")["recovery_key"]
        self.assertEqual(bot.command("recovery", "taken"), {"ok": True})
        self.assertIsNone(bot.command("recovery")["recovery_key"])
        bot.stop()
        other = self.new_device(bot, words)
        other.logged("crypto_device_signed")
        self.assertEqual(self.keys_of(bot)["master_keys"][bot.user]["keys"], master)
        self.assertEqual(list(self.signed(other).values()), [True, True])
        ann.do("strict", room=room)
        self.ask(ann, other, room, "are you signed?")

    def test_S07_E18_a_new_device_that_reads_the_past_in_the_backup_answers_nothing_twice(self) -> None:
        bot = self.ready_bot({"text": "hello"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        bot.logged("crypto_backup_on")
        asked = ann.say(room, "hi")
        self.answer(ann, bot, asked)
        bot.until(lambda: bot.has("GET", f"{API}/user/{bot.user}/account_data/org.sandbook.caught_up"))
        bot.until(lambda: bot.account.call("GET", f"{API}/room_keys/version")["count"] >= 2)
        words = bot.command("recovery")["recovery_key"]
        bot.stop()
        missed = ann.say(room, "are you there?")  # its key is for the old device, and in no backup
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        other = self.new_device(bot, words, url=proxy.url)
        other.logged("crypto_backup_on")
        ann.do("discard", room=room)
        self.ask(ann, other, room, "and now?")
        proxy.until(lambda: any(c.status == 200 for c in proxy.seen("GET .*/room_keys/keys/")))
        self.ask(ann, other, room, "still?")
        answered = [e["content"]["org.sandbook.re"] for e in ann.events if e.get("sender") == bot.user and e["content"].get("msgtype") == "m.text"]
        self.assertEqual(answered.count(asked), 1)
        self.assertTrue(missed)

    def test_E18_an_identity_made_elsewhere_is_left_alone_without_its_key(self) -> None:
        account = self.server.register("bot")
        elsewhere = JsPerson(self.node, account)
        self.addCleanup(elsewhere.close)
        elsewhere.do("identity")
        bot = Bot(self.server, [{"text": "hello"}], account=account)
        self.addCleanup(bot.close)
        master = self.keys_of(bot)["master_keys"]
        bot.start()
        self.assertIn("recovery_key_file", bot.logged("this device is not signed"))
        self.assertEqual(self.keys_of(bot)["master_keys"], master)
        self.assertFalse(self.signed(bot)[self.device_of(bot)])

    def test_E18_an_identity_that_is_replaced_while_it_runs_stops_it(self) -> None:
        bot = self.ready_bot({"text": "hello"}, {"text": "again"})
        bot.logged("crypto_device_signed")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        # Who has the account's password, but not the key of its secret storage.
        bot.account.call("PUT", f"{API}/user/{bot.user}/account_data/m.secret_storage.default_key", {})
        thief = JsPerson(self.node, bot.account)
        self.addCleanup(thief.close)
        thief.do("identity", again=True)
        bot.logged("the identity of our own account was replaced")
        self.assertIn("replaced by somebody else", bot.command("status")["encryption"]["refusal"])
        asked = ann.say(room, "is it still you?")
        ann.until(lambda e: e.get("event") == asked)
        self.assertFalse([e for e in ann.events if e.get("content", {}).get("org.sandbook.re") == asked])
        self.assertIsNone(bot.process.poll())

    def test_E18_somebody_elses_new_identity_is_said(self) -> None:
        bot = self.ready_bot({"text": "hello"}, {"text": "again"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        ann.do("identity", again=True)
        bot.logged(f"the identity of {ann.user} changed")
        self.ask(ann, bot, room, "it is me")

    def test_the_operator_makes_a_new_identity(self) -> None:
        bot = self.ready_bot({"text": "hello"}, {"text": "again"}, {"text": "still here"})
        bot.logged("crypto_device_signed")
        before, words = self.keys_of(bot)["master_keys"][bot.user]["keys"], bot.command("recovery")["recovery_key"]
        bot.command("recovery", "taken")
        since = len(bot.log)
        self.assertEqual(bot.command("reset"), {"ok": True})
        bot.logged("crypto_device_signed", since)
        bot.logged("crypto_backup_on", since)
        self.assertNotEqual(self.keys_of(bot)["master_keys"][bot.user]["keys"], before)
        self.assertEqual(self.signed(bot), {self.device_of(bot): True})
        self.assertNotIn(bot.command("recovery")["recovery_key"], (None, words))
        ann = self.js()
        ann.do("strict", room=(room := self.room(ann, bot, direct=True)))
        self.ask(ann, bot, room, "hi")
        bot.stop()
        bot.start()
        bot.logged("matrix_synced")
        self.ask(ann, bot, room, "and after a restart?")
        self.assertEqual(bot.command("status")["encryption"]["alarms"], 0, [x for x in bot.log if "alarm" in x])

    def test_a_device_that_the_operator_blocks_gets_no_keys(self) -> None:
        bot = self.ready_bot({"text": "hello"}, {"text": "secret"}, {"text": "again"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        self.assertEqual(bot.command("block", ann.user, ann.device), {"ok": True})
        ann.say(room, "what now?", bot.user)
        got = ann.until(lambda e: e.get("sender") == bot.user and e.get("failed"))
        self.assertIn("blocked", got["content"]["body"])
        self.assertEqual(bot.command("block", ann.user, ann.device, "no"), {"ok": True})
        self.ask(ann, bot, room, "and now?")
        with self.assertRaisesRegex(AssertionError, "has no device"):
            bot.command("block", ann.user, "NOTHERE")

    def test_logging_out_ends_the_device_and_the_next_login_is_a_new_one(self) -> None:
        bot = self.ready_bot({"text": "hello"})
        first = bot.command("status")["device"]
        self.assertEqual(bot.command("logout"), {"ok": True})
        bot.logged("matrix_logged_out")
        bot.stop()
        second = bot.command("login")
        self.assertEqual(second["state"], "syncing")
        self.assertNotEqual(second["device"], first)


class Backup(Encrypted):
    def count(self, bot: Bot) -> int:
        return bot.account.call("GET", f"{API}/room_keys/version")["count"]

    def until_count(self, bot: Bot, n: int) -> None:
        end = time.monotonic() + 60
        while self.count(bot) < n:
            self.assertLess(time.monotonic(), end)

    def test_E20_keys_go_up_a_new_version_is_followed_and_what_cannot_be_read_is_looked_up(self) -> None:
        bot, proxy = self.proxied(*[{"text": f"answer {n}"} for n in range(5)])
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        bot.logged("crypto_backup_on")
        self.until_count(bot, 2)
        version = bot.account.call("GET", f"{API}/room_keys/version")
        bot.stop()  # her key is lost here; the backup has it
        with sqlite3.connect(bot.folder / "data/sandbook.db") as db:
            self.assertGreater(db.execute("DELETE FROM kept WHERE platform='matrix' AND kind='e2ee_in' AND key LIKE ?", (room + " %",)).rowcount, 0)
        db.close()
        bot.start()
        self.ask(ann, bot, room, "with the same key")
        self.assertTrue(any(c.status == 200 for c in proxy.seen("GET .*/room_keys/keys/")))
        # A new version, of the same secret: the old one is gone.
        made = bot.account.call("POST", f"{API}/room_keys/version", {k: version[k] for k in ("algorithm", "auth_data")})
        ann.do("discard", room=room)
        self.ask(ann, bot, room, "a new key")
        bot.logged(f"crypto_backup_on version={made['version']}")
        self.until_count(bot, 2)  # with what the old one had and this device still has

    def test_E20_a_backup_that_our_identity_did_not_sign_gets_nothing(self) -> None:
        account = self.server.register("bot")
        bad = {"algorithm": "m.megolm_backup.v1.curve25519-aes-sha2",
               "auth_data": {"public_key": "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw", "signatures": {}}}
        account.call("POST", f"{API}/room_keys/version", bad)
        bot = Bot(self.server, [{"text": "hello"}], account=account)
        self.addCleanup(bot.close)
        bot.start()
        bot.logged("its identity did not sign")
        ann = self.js()
        self.ask(ann, bot, self.room(ann, bot, direct=True), "hi")
        self.assertEqual(self.count(bot), 0)

    def test_E20_where_somebody_said_no_backup_there_is_none(self) -> None:
        account = self.server.register("bot")
        account.call("PUT", f"{API}/user/{account.user}/account_data/m.key_backup", {"enabled": False})
        bot = Bot(self.server, [{"text": "hello"}], account=account)
        self.addCleanup(bot.close)
        bot.start()
        bot.logged("crypto_device_signed")
        ann = self.js()
        self.ask(ann, bot, self.room(ann, bot, direct=True), "hi")
        with self.assertRaises(Refused):
            self.count(bot)


class Verification(Encrypted):
    """Silence of ten minutes, steps out of order, two who begin at once and changed messages are for tests/unit/test_matrix_crypto_sas.c: no
    client does them."""

    def met(self, *answers: dict, **settings: str) -> tuple[Bot, JsPerson, str]:
        bot = self.ready_bot(*answers, {"text": "hello"}, **settings)
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "hi")
        return bot, ann, room

    def test_E19_a_person_and_the_operator_compare_emoji(self) -> None:
        bot, ann, room = self.met()
        shown = ann.do("verify", user=bot.user, room=room)
        bot.logged("state=keys")
        listed = bot.command("verify")["verifications"]
        self.assertEqual(len(listed), 1)
        for _, name in shown["emoji"]:
            self.assertIn(name.lower(), listed[0]["emoji"].lower())
        self.assertEqual(bot.command("verify", listed[0]["txn"], "yes"), {"ok": True})
        ann.do("confirm", user=bot.user, match=True)
        ann.until(lambda e: e.get("verification") == "done")
        self.assertTrue(ann.do("verified", user=bot.user))
        self.assertTrue(bot.command("status")["encryption"]["identity"]["device_signed"])

    def test_E19_a_person_compares_alone(self) -> None:
        bot, ann, room = self.met(verification="auto")
        seen = ann.do("verify", user=bot.user, room=room)
        shown = bot.logged("state=keys emoji=")
        self.assertIn(" ".join(str(n) for n in seen["decimal"]), shown)
        ann.do("confirm", user=bot.user, match=True)
        self.assertEqual(ann.until(lambda e: e.get("verification") in ("done", "failed"))["verification"], "done")
        self.assertTrue(ann.do("verified", user=bot.user))

    def test_E19_other_emoji_a_change_of_mind_and_the_operators_no_end_it_with_the_right_codes(self) -> None:
        bot, ann, room = self.met()
        ann.do("verify", user=bot.user, room=room)
        ann.do("confirm", user=bot.user, match=False)
        self.assertIn("m.mismatched_sas", bot.logged("state=cancelled"))
        begun = len(bot.log)
        ann.do("ask", user=bot.user, room=room)
        ann.do("cancel", user=bot.user)
        bot.logged("code=m.user", begun)
        begun = len(bot.log)
        ann.do("verify", user=bot.user, room=room)
        bot.logged("state=keys", begun)
        txn = next(v["txn"] for v in bot.command("verify")["verifications"] if v["state"] == "keys")
        bot.command("verify", txn, "no")
        self.assertEqual(ann.until(lambda e: e.get("verification") == "cancelled" and e["code"] == "m.mismatched_sas")["code"], "m.mismatched_sas")

    def test_E19_where_nobody_may_verify_it_is_refused(self) -> None:
        bot, ann, room = self.met(verification="off")
        with self.assertRaisesRegex(AssertionError, "cancelled m.user"):
            ann.do("ask", user=bot.user, room=room)


if __name__ == "__main__":
    unittest.main()
