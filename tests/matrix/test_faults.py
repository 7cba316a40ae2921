"""Encrypted rooms and a server, or somebody on the way to it, that misbehaves: a real Synapse, real clients, and a proxy that lies to the bot.

One bot for all of it; each test has a room of its own, and takes its lies back."""
import base64
import json
import shutil
import sqlite3
import unittest

from bot import Bot
from encrypted import API, FULL, Encrypted, in_room, index_of
from jspeer import JsPerson
from niopeer import NioPerson, nio_process
from proxy import Call, Proxy


def to_device(body: dict) -> list[dict]:
    return body.get("to_device", {}).get("events", [])


class Faults(Encrypted):
    the_bot: Bot
    proxy: Proxy
    ann: JsPerson
    bea: JsPerson

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if cls is Faults:
            cls.proxy = Proxy(cls.server.port)
            cls.addClassCleanup(cls.proxy.close)
            cls.the_bot = Bot(cls.server, [{"text": f"answer {n}"} for n in range(200)], url=cls.proxy.url)
            cls.addClassCleanup(cls.the_bot.close)
            cls.the_bot.start()
            cls.the_bot.logged("matrix_synced")
            cls.ann, cls.bea = (JsPerson(cls.node, cls.server.register(name)) for name in ("ann", "bea"))
            for who in (cls.ann, cls.bea):
                who.do("identity")

    def setUp(self) -> None:
        self.begun = len(self.the_bot.log)
        self.calls = len(self.proxy.calls)
        self.addCleanup(self.proxy.rules.clear)

    def logged(self, word: str) -> str:
        return self.the_bot.logged(word, self.begun)

    def not_logged(self, word: str) -> None:
        self.assertFalse([line for line in self.the_bot.log[self.begun:] if word in line])

    def alone(self, **options: object) -> str:
        """ann's direct room with the bot, where one question was answered."""
        room = self.room(self.ann, self.the_bot, direct=True, **options)
        self.ask(self.ann, self.the_bot, room, "hello")
        return room

    def lives(self, room: str, who: JsPerson | None = None) -> None:
        self.ask(who or self.ann, self.the_bot, room, "still there?")

    def nudge(self, room: str) -> None:
        """Something that a /sync returns for, and nobody answers."""
        self.ann.do("send", room=room, type="org.example.nudge", content={})

    # ---- what comes by /sync ----

    def test_E06_a_response_with_keys_that_is_lost_comes_again_and_twice_is_once(self) -> None:
        room = self.alone()
        lost = []

        def lose(call: Call) -> None:
            if to_device(json.loads(call.got[1])):
                lost.append(call.got[1])
                rule.off()
                call.lose()
        rule = self.proxy.on("GET .*/sync$", lose, late=True)
        self.ann.do("discard", room=room)
        self.ask(self.ann, self.the_bot, room, "with a new key")
        self.assertEqual(len(lost), 1)
        again = to_device(json.loads(lost[0]))
        self.proxy.answers("GET .*/sync$", lambda body: body.setdefault("to_device", {}).setdefault("events", []).extend(again), times=1)
        self.lives(room)
        self.not_logged("crypto_channel_broken")

    def test_E07_a_hundred_messages_to_the_device_come_before_the_keys(self) -> None:
        room = self.alone()
        self.the_bot.stop()
        junk = {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": {}}
        device = self.device_of(self.the_bot)
        for n in range(250 if FULL else 130):
            self.bea.account.call("PUT", f"{API}/sendToDevice/m.room.encrypted/j{n}", {"messages": {self.the_bot.user: {device: junk}}})
        asked = []
        for n in range(3):
            self.ann.do("discard", room=room)
            asked.append(self.ann.say(room, f"question {n}"))
        self.the_bot.start()
        for question in asked:
            self.answer(self.ann, self.the_bot, question)

    def test_E08_a_key_that_comes_after_its_message(self) -> None:
        room = self.alone()
        kept: list[dict] = []

        def hold(body: dict) -> object:
            kept.extend(to_device(body))
            body.pop("to_device", None)
            return None
        rule = self.proxy.answers("GET .*/sync$", hold)
        self.ann.do("discard", room=room)
        asked = self.ann.say(room, "can you read this?")
        self.assertIn("why=no_key", self.logged("matrix_not_readable"))
        rule.off()
        self.proxy.answers("GET .*/sync$", lambda body: body.setdefault("to_device", {}).setdefault("events", []).extend(kept), times=1)
        self.nudge(room)
        self.answer(self.ann, self.the_bot, asked)

    @unittest.skipUnless(FULL, "SANDBOOK_MATRIX_FULL=1 waits for half a minute")
    def test_E08_a_key_that_never_comes_is_told_once(self) -> None:
        room = self.alone()
        self.proxy.answers("GET .*/sync$", lambda body: body.pop("to_device", None))
        self.ann.do("discard", room=room)
        for n in range(2):
            self.ann.say(room, f"can you read this? {n}")
        self.ann.until(lambda e: e.get("room") == room and "did not reach me" in e.get("content", {}).get("body", ""))
        self.proxy.rules.clear()
        self.ann.do("discard", room=room)
        self.lives(room)
        self.assertEqual(sum("did not reach me" in e.get("content", {}).get("body", "") for e in self.ann.events), 1)

    def test_E12_the_same_ciphertext_under_another_event_id_is_dropped(self) -> None:
        room = self.alone()
        held: list[dict] = []
        rule = self.proxy.answers("GET .*/sync$", in_room(room, lambda e: held.append(e) if e["sender"] == self.ann.user else False))
        self.ask(self.ann, self.the_bot, room, "only once")
        rule.off()
        again = dict(next(e for e in held if e["type"] == "m.room.encrypted"), event_id="$replayed")

        def add(body: dict) -> object:
            timeline = body.setdefault("rooms", {}).setdefault("join", {}).setdefault(room, {}).setdefault("timeline", {})
            timeline.setdefault("events", []).append(again)
            return None
        self.proxy.answers("GET .*/sync$", add, times=1)
        self.nudge(room)
        self.assertIn("why=replayed", self.logged("crypto_message_refused"))
        self.lives(room)
        self.assertFalse([e for e in self.ann.events if e.get("content", {}).get("org.sandbook.re") == "$replayed"])

    def test_E13_a_message_under_somebody_elses_name_is_dropped(self) -> None:
        room = self.room(self.ann, self.the_bot, self.bea)
        self.ask(self.ann, self.the_bot, room, "hello")

        def forge(event: dict) -> object:
            if event["type"] != "m.room.encrypted" or event["sender"] != self.ann.user:
                return False
            event["sender"] = self.bea.user
            return None
        rule = self.proxy.answers("GET .*/sync$", in_room(room, forge), times=1)
        asked = self.ann.say(room, "I am bea", self.the_bot.user)
        self.assertIn("why=forged", self.logged("crypto_message_refused"))
        rule.off()
        self.lives(room)
        self.assertFalse([e for e in self.ann.events if e.get("content", {}).get("org.sandbook.re") == asked])

    def test_E14_once_encrypted_nothing_is_sent_in_clear(self) -> None:
        room = self.alone()
        self.proxy.fails("GET .*/state/m.room.encryption", 404, errcode="M_NOT_FOUND")
        self.proxy.answers("GET .*/sync$", lambda body: [body.get("rooms", {}).get("join", {}).get(room, {}).pop(part, None) for part in ("state",)])

        def hide(event: dict) -> object:
            if event["type"] != "m.room.encryption":
                return False
            event["type"] = "org.example.hidden"
            return None
        self.proxy.answers("GET .*/sync$", in_room(room, hide))
        self.ask(self.ann, self.the_bot, room, "one")
        self.the_bot.stop()
        with sqlite3.connect(self.the_bot.folder / "data/sandbook.db") as db:  # what it knew of the room is gone, too
            self.assertGreater(db.execute("DELETE FROM kept WHERE platform='matrix' AND kind='room' AND key=?", (room,)).rowcount, 0)
        db.close()
        self.the_bot.start()
        self.ask(self.ann, self.the_bot, room, "two")
        kinds = {c.path.split("/send/")[1].split("/")[0] for c in self.proxy.seen(f"PUT .*{room.replace('!', '.')}.*/send/", self.calls)}
        self.assertEqual(kinds - {"m.reaction"}, {"m.room.encrypted"})

    def test_E10_whoever_came_or_went_while_it_was_away_gets_no_key(self) -> None:
        """What the long absence skipped is older than what the sync tells: cyd, who came in it, has left since."""
        cyd = self.js("cyd", identity=False)
        room = self.room(self.ann, self.the_bot, self.bea)
        before = self.ask(self.ann, self.the_bot, room, "hello")["wire"]["session_id"]
        self.the_bot.stop()
        self.ann.do("kick", room=room, user=self.bea.user)
        self.ann.account.call("POST", self.ann.account.at(room, "invite"), {"user_id": cyd.user})
        cyd.do("join", room=room)
        for _ in range(110):
            self.ann.account.send_event(room, {}, "org.example.nudge")
        cyd.do("leave", room=room)
        self.until_member(self.ann, room, cyd.user, "leave")
        asked = self.ann.say(room, "who is here?", self.the_bot.user)
        since = len(self.proxy.calls)
        self.the_bot.start()
        self.the_bot.logged("matrix_gap")
        self.assertNotEqual(self.answer(self.ann, self.the_bot, asked)["wire"]["session_id"], before)
        self.lives(room)
        told = {user for c in self.proxy.seen("PUT .*/sendToDevice/m.room.encrypted", since) for user in c.json["messages"]}
        self.assertEqual(told & {self.ann.user, self.bea.user, cyd.user}, {self.ann.user})

    def test_a_thread_that_can_not_be_is_left_out_of_what_is_encrypted_too(self) -> None:
        room = self.room(self.ann, self.the_bot, self.bea)

        def no(call: Call) -> None:
            if "rel_type" in call.json.get("m.relates_to", {}):
                call.reply(400, {"errcode": "M_UNKNOWN", "error": "Cannot start threads from an event with a relation"})
        self.proxy.on("PUT .*/send/m.room.encrypted/", no)
        got = self.ask(self.ann, self.the_bot, room, "hello")
        self.assertNotIn("rel_type", got["wire"].get("m.relates_to", {}))
        used = [index_of(c.json) for c in self.proxy.seen("PUT .*/send/m.room.encrypted/", self.calls)]
        self.assertEqual(len(used), len(set(used)))

    # ---- keys of others ----

    def test_E15_a_list_of_devices_that_cannot_be_had_holds_up_nobody_else(self) -> None:
        dan = self.js("dan", identity=False)
        room, other = self.alone(), self.room(dan, self.the_bot, direct=True)
        self.answer(dan, self.the_bot, dan.say(other, "hello"))
        cut = self.proxy.answers("POST .*/keys/query$", lambda body: body.setdefault("device_keys", {}).pop(dan.user, None))
        self.proxy.fails("POST .*/keys/query$", 500, times=1)
        phone = self.js(identity=False, account=dan.account)
        self.lives(room)
        self.answer(dan, self.the_bot, dan.say(other, "my list is hidden from you"))
        self.assertTrue(cut.hits)
        cut.off()
        whole = len(self.proxy.calls)  # answers from here on name dan's devices
        self.logged("crypto_devices_unknown")
        if not FULL:
            return  # it asks again after a quarter of a minute
        self.proxy.until(lambda: any(c.status == 200 and dan.user in c.json["device_keys"] for c in self.proxy.calls[whole:] if c.path.endswith("/keys/query")), 60)
        self.answer(phone, self.the_bot, dan.say(other, "and now?"))

    def test_E16_without_a_good_one_time_key_a_device_is_told_once_and_the_others_are_served(self) -> None:
        dan = self.js("dan", identity=False)
        room = self.room(self.ann, self.the_bot, dan)

        def spoil(body: dict) -> object:
            for key in body["one_time_keys"].get(dan.user, {}).get(dan.device, {}).values():
                key["key"] = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw"
            return None
        rule = self.proxy.answers("POST .*/keys/claim$", spoil)
        for _ in range(2):
            self.lives(room)
        self.assertTrue(rule.hits)
        told = [c.json["messages"][dan.user][dan.device] for c in self.proxy.seen("PUT .*/sendToDevice/m.room_key.withheld", self.calls)]
        self.assertEqual([t["code"] for t in told], ["m.no_olm"])
        self.assertEqual(len(self.proxy.seen("POST .*/keys/claim", self.calls)), rule.hits)
        self.assertLessEqual(rule.hits, 2)

    def test_E17_a_key_whose_delivery_fails_is_sent_again_before_the_message(self) -> None:
        room = self.alone(encryption={"rotation_period_msgs": 1})
        for fault in ("lost", "500", "429"):
            with self.subTest(fault=fault):
                since = len(self.proxy.calls)
                rule = (self.proxy.loses_answers("PUT .*/sendToDevice/m.room.encrypted", times=1) if fault == "lost" else
                        self.proxy.fails("PUT .*/sendToDevice/m.room.encrypted", int(fault), times=1, retry_after_ms=200))
                self.lives(room)
                self.assertEqual(rule.hits, 1)
                tries = [c.path for c in self.proxy.seen("PUT .*/sendToDevice/m.room.encrypted", since)]
                self.assertGreaterEqual(len(tries), 2)
                self.assertEqual(len(set(tries[:2])), 1, "the same transaction")
        self.assert_all_readable(self.ann)

    def test_E26_keys_of_a_known_device_are_never_replaced(self) -> None:
        room = self.alone()
        other = self.js("eve")
        theirs = other.account.call("POST", f"{API}/keys/query", {"device_keys": {other.user: []}})["device_keys"][other.user][other.device]

        def swap(body: dict) -> object:
            devices = body.get("device_keys", {}).get(self.ann.user)
            if not devices or self.ann.device not in devices:
                return False
            fake = json.loads(json.dumps(theirs).replace(other.device, self.ann.device).replace(other.user, self.ann.user))
            devices[self.ann.device]["keys"] = fake["keys"]
            return None
        self.proxy.answers("POST .*/keys/query$", swap)
        self.js(identity=False, account=self.ann.account)
        self.assertIn(self.ann.user, self.logged("crypto_device_refused"))
        self.proxy.rules.clear()
        self.lives(room)

    # ---- what others send to the device ----

    def test_E27_room_keys_in_clear_and_forwarded_ones_that_nobody_asked_for_are_ignored(self) -> None:
        room = self.alone()
        device = self.device_of(self.the_bot)
        key = {"algorithm": "m.megolm.v1.aes-sha2", "room_id": room, "session_id": "A" * 43, "session_key": "A" * 306}
        forwarded = key | {"sender_key": "A" * 43, "sender_claimed_ed25519_key": "A" * 43, "forwarding_curve25519_key_chain": []}
        for n, (kind, content) in enumerate((("m.room_key", key), ("m.forwarded_room_key", forwarded), ("m.secret.send", {"secret": "x"}))):
            self.bea.account.call("PUT", f"{API}/sendToDevice/{kind}/f{n}", {"messages": {self.the_bot.user: {device: content}}})
        before = self.the_bot.command("status")["encryption"]["sessions"]["in"]
        for kind, content in (("m.forwarded_room_key", forwarded), ("m.room_key", key | {"algorithm": "m.megolm.v9"}), ("m.room_key", key),
                              ("m.secret.send", {"request_id": "1", "secret": "x"}), ("m.secret.request", {"action": "request", "name": "m.megolm_backup.v1"})):
            self.bea.do("whisper", user=self.the_bot.user, device=device, type=kind, content=content)
        self.logged("crypto_room_key_refused")
        self.lives(room)
        self.assertEqual(self.the_bot.command("status")["encryption"]["sessions"]["in"], before)

    def test_messages_to_the_device_of_any_shape_change_nothing(self) -> None:
        room = self.alone()
        device = self.device_of(self.the_bot)
        ours = self.keys_of(self.the_bot)["device_keys"][self.the_bot.user][device]["keys"][f"curve25519:{device}"]
        theirs = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw"
        olm = {"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": theirs}
        odd: list[dict] = [{}, {"algorithm": 5}, olm, olm | {"ciphertext": []}, olm | {"ciphertext": {ours: 7}}, olm | {"sender_key": "A" * 43, "ciphertext": {ours: {"type": 0, "body": "x"}}}]
        odd += [olm | {"ciphertext": {ours: {"type": kind, "body": body}}} for kind in (0, 1, 2, -1, True, "0")
                for body in ("", "AwogX", "A" * 60_000, 7, "Awogaz7mdGNYPL49wI/p0HZcJmb/UhDdUnydhwXkSSfIDVUSIHmmMe7eG/nJjxIDLN6t0OegeTmPx4a4jMhG7ImvhaUaGiA0")]
        for n, content in enumerate(odd):
            self.bea.account.call("PUT", f"{API}/sendToDevice/m.room.encrypted/o{n}", {"messages": {self.the_bot.user: {device: content}}})
        for n, kind in enumerate(("m.key.verification.request", "m.key.verification.start", "m.key.verification.mac", "m.room_key.withheld",
                                  "m.room_key_request", "m.room_key_bundle", "org.example.nothing")):
            for k, content in enumerate(({}, {"transaction_id": 5}, {"transaction_id": "t", "mac": [], "code": {}, "body": "x", "from_device": device})):
                self.bea.account.call("PUT", f"{API}/sendToDevice/{kind}/p{n}.{k}", {"messages": {self.the_bot.user: {device: content}}})
        self.lives(room)
        self.assertIsNone(self.the_bot.process.poll())


class Desync(Encrypted):
    """Faults that leave a bot of their own changed."""

    def test_E05_one_time_keys_that_somebody_else_uploaded_under_its_ids(self) -> None:
        bot, proxy = self.proxied(*[{"text": f"answer {n}"} for n in range(5)])
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        upload = proxy.seen("POST .*/keys/upload")[0]
        ids = [int.from_bytes(base64.b64decode(name.split(":")[1] + "=="), "big") for name in upload.json["one_time_keys"]]
        foreign = dict(next(iter(upload.json["one_time_keys"].values())), key="B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw")
        names = [base64.b64encode((max(ids) + n).to_bytes(4, "big")).decode().rstrip("=") for n in (1, 2, 3)]
        names = [name for name in names if name not in str(upload.json["fallback_keys"])]
        ann.account.call_at(self.server.url, upload.token, "POST", f"{API}/keys/upload",
                            {"one_time_keys": {f"signed_curve25519:{name}": foreign for name in names}})
        device = self.device_of(bot)
        for _ in range(10):
            ann.account.call("POST", f"{API}/keys/claim", {"one_time_keys": {bot.user: {device: "signed_curve25519"}}})
        since = len(proxy.calls)
        self.ask(ann, bot, room, "one")
        bot.logged("other one-time keys than this store made")
        if FULL:  # a quarter of a minute later
            proxy.until(lambda: any(c.status == 200 and c.json.get("one_time_keys") for c in proxy.seen("POST .*/keys/upload", since)))
        self.ask(ann, bot, room, "two")
        self.assertLessEqual(len([c for c in proxy.seen("POST .*/keys/upload", since) if c.status == 400]), 2)

    def test_E03_more_devices_than_one_time_keys(self) -> None:
        bot, proxy = self.proxied(*[{"text": f"answer {n}"} for n in range(5)])
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        device = self.device_of(bot)
        bot.stop()
        claim = {"one_time_keys": {bot.user: {device: "signed_curve25519"}}}
        got = [ann.account.call("POST", f"{API}/keys/claim", claim)["one_time_keys"][bot.user][device] for _ in range(60)]
        self.assertTrue(any(next(iter(k.values())).get("fallback") for k in got))
        asked = [self.js("bea"), self.js("cyd")]
        rooms = [who.do("room", invite=[bot.user], direct=True) for who in asked]
        ann.say(room, "one")
        since = len(proxy.calls)
        bot.start()
        for who, its in zip(asked, rooms):
            self.until_member(who, its, bot.user)
            self.ask(who, bot, its, "by the fallback key")
        self.ask(ann, bot, room, "two")
        proxy.until(lambda: sum(len(c.json.get("one_time_keys", {})) for c in proxy.seen("POST .*/keys/upload", since)) >= 50)
        proxy.until(lambda: any(c.json.get("fallback_keys") for c in proxy.seen("POST .*/keys/upload", since)))

    def test_E09_a_peer_whose_keys_are_an_old_copy_is_heard_again(self) -> None:
        bot, _ = self.proxied(*[{"text": f"answer {n}"} for n in range(12)])
        process = nio_process()
        self.addCleanup(process.close)
        account = self.server.register("nio")
        store, copy = bot.folder / "nio", bot.folder / "nio-old"
        store.mkdir()
        nio = NioPerson(process, account, str(store))
        room = self.room(nio, bot, direct=True)
        self.answer(nio, bot, nio.say(room, "one"))
        nio.close()
        shutil.copytree(store, copy)
        again = NioPerson(process, account, str(store), device=nio.device, token=nio.token)
        for n in range(2):
            again.do("discard", room=room)
            self.answer(again, bot, again.say(room, f"new {n}"))
        again.close()
        old = NioPerson(process, account, str(copy), device=nio.device, token=nio.token)
        old.do("discard", room=room)
        old.say(room, "from the past")
        bot.logged("crypto_channel_broken", 0)
        bot.logged("crypto_unwedged", 0)
        old.until(lambda e: e.get("todevice"))  # the new channel
        old.do("discard", room=room)
        self.answer(old, bot, old.say(room, "back again"))

    def test_E09_an_old_copy_of_the_bots_own_store_is_refused(self) -> None:
        bot = self.ready_bot({"text": "one"}, {"text": "two"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        self.ask(ann, bot, room, "one")
        bot.stop()
        shutil.copytree(bot.folder / "data", bot.folder / "old")
        bot.start()
        bot.logged("matrix_synced")
        bot.stop()
        shutil.rmtree(bot.folder / "data")
        (bot.folder / "old").rename(bot.folder / "data")
        bot.start(wait="matrix_encryption_refused")
        self.assertIn("old copy", bot.logged("matrix_encryption_refused"))
        asked = ann.say(room, "two")
        bot.logged("matrix_synced")
        self.assertIn("old copy", bot.command("status")["encryption"]["refusal"])
        self.assertIsNone(bot.process.poll())
        self.assertFalse([e for e in ann.events if e.get("content", {}).get("org.sandbook.re") == asked])

    def test_a_store_that_is_not_its_devices_is_refused(self) -> None:
        bot = self.ready_bot({"text": "one"})
        bot.stop()
        key = bot.folder / "data/matrix.key"
        ours = key.read_bytes()
        key.write_bytes(b"x" * 32)
        bot.start(wait="matrix_down")
        bot.stop()
        key.chmod(0o644)
        bot.start(wait="matrix_down")
        self.assertIn("only its owner", bot.logged("matrix_down"))
        bot.stop()
        key.write_bytes(ours)
        key.chmod(0o600)
        with sqlite3.connect(bot.folder / "data/sandbook.db") as db:
            self.assertGreater(db.execute("DELETE FROM kept WHERE platform='matrix' AND kind LIKE 'e2ee%'").rowcount, 0)
        db.close()
        bot.start(wait="matrix_encryption_refused")
        self.assertIn("log in as a new device", bot.logged("matrix_encryption_refused"))


if __name__ == "__main__":
    unittest.main()
