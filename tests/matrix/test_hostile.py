"""The bot and a homeserver that misbehaves: nothing is lost, nothing is said twice, nothing falls over."""
import json
import threading
import unittest
from pathlib import Path

from bot import FULL, Bot, call, longer
from hostile import ANN, ROOM, USER, Fake, Handler

MIB = 1 << 20


class Account:
    user, password = USER, "hunter22"


class Place:
    """What Bot wants to know of a server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def register(self, _name: str) -> Account:
        return Account()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = Fake()
        self.addCleanup(self.fake.close)

    def bot(self, *answers: dict, joined: bool = True, wait: str = "matrix_synced", **settings: str) -> Bot:
        bot = Bot(Place(self.fake.url), list(answers), **({"e2ee": "off", "require_mention": "never", "reply": "room"} | settings))
        self.addCleanup(bot.close)
        if joined:
            self.fake.deliver()
        return bot.start(wait)

    def said(self, text: str) -> None:
        self.fake.until(lambda: any(text in t for t in self.fake.texts()))


class Refused(Case):
    def test_s4_a_send_whose_answer_is_lost_is_repeated_under_its_key(self) -> None:
        def lose(handler: Handler, body: bytes) -> None:
            self.fake.keep(handler.path, body)
            handler.hang_up()
        self.fake.first(2, "PUT", "/send/", lose)
        self.bot({"text": "only once"}, progress="typing")
        self.fake.ask("one?")
        self.fake.until(lambda: self.fake.count("/send/") >= 3)
        self.assertEqual(sum("only once" in t for t in self.fake.texts()), 1)

    def test_a_limit_without_a_hint_is_obeyed(self) -> None:
        self.fake.first(1, "PUT", "/send/", lambda h, b: h.reply(429, {"errcode": "M_LIMIT_EXCEEDED"}))
        bot = self.bot({"text": "late"}, progress="typing")
        self.fake.ask("one?")
        bot.logged("matrix_limited")
        self.said("late")
        self.assertEqual(self.fake.count("/send/"), 2)

    def test_s16_too_large_in_another_servers_words(self) -> None:
        self.fake.first(1, "PUT", "/send/", lambda h, b: h.reply(413, {"errcode": "M_BAD_JSON", "error": "too large"}))
        self.bot({"text": "a long answer"}, progress="typing")
        self.fake.ask("one?")
        self.said("larger than this server takes")

    def test_s16_a_text_beyond_the_servers_limit_is_halved_until_it_fits(self) -> None:
        """Not a word is lost or said twice, also when it is killed between two pieces."""
        words = [f"w{i:04}" for i in range(3000)]
        self.fake.on("PUT", "/send/", lambda h, b: h.reply(413, {"errcode": "M_TOO_LARGE"}) if len(b) > 6000 else False)
        bot = self.bot({"text": "\n\n".join(" ".join(words[i:i + 50]) for i in range(0, 3000, 50))}, progress="typing")
        self.fake.ask("one?")
        self.fake.until(lambda: len(self.fake.sent) >= 2)
        bot.kill()
        bot.start()
        self.said("w2999")
        said = " ".join(self.fake.texts()).split()
        self.assertEqual([w for w in said if w in set(words)], words)
        bot.logged("matrix_halved", since=0)

    def test_a_thread_that_can_not_be_is_left_out(self) -> None:
        no = {"errcode": "M_UNKNOWN", "error": "Cannot start threads from an event with a relation"}
        self.fake.on("PUT", "/send/", lambda h, b: h.reply(400, no) if "m.thread" in b.decode() else False)
        self.bot({"text": "all the same"}, reply="thread", progress="typing")
        self.fake.ask("one?")
        self.said("all the same")


class Broken(Case):
    def test_s18_pages_half_answers_and_silence_are_waited_out(self) -> None:
        self.fake.first(2, "GET", "/versions", lambda h, b: h.reply(502, b"<html>bad gateway</html>", Content_Type="text/html"))
        self.fake.first(2, "GET", "/whoami", lambda h, b: h.reply(500, b"oops"))
        bot = self.bot({"text": "hello"})
        for bad in (b'{"next_batch":"x","rooms":', b"", b"[1,2]", b'{"next_batch":7}', b'{"next_batch":"x","a":"\\ud800"}', b"\xff\xfe"):
            begun = len(bot.log)
            self.fake.raw(bad)
            bot.logged("matrix_sync_failed", begun)
            self.fake.raw({})  # the next wait is a short one again
            bot.logged("matrix_synced status=200", begun)
        before = self.fake.count("/sync")
        self.fake.ask("still there?")
        self.said("hello")
        self.assertLess(before, 30)

    @longer
    def test_s18_an_answer_that_a_minute_does_not_bring_is_asked_for_again(self) -> None:
        again = threading.Event()

        def silent(handler: Handler, body: bytes) -> None:
            self.fake.keep(handler.path, body)
            again.wait(120)
            handler.hang_up()
        self.fake.first(1, "PUT", "/send/", silent)
        bot = self.bot({"text": "only once"}, {"text": "here"}, progress="typing")
        self.fake.ask("one?")
        bot.logged("matrix_send_waits", seconds=150)
        before = self.fake.count("/sync")
        self.fake.until(lambda: self.fake.count("/send/") == 2)
        again.set()
        self.fake.ask("still there?")
        self.said("here")
        self.assertGreater(before, 20)  # the rest went on meanwhile
        self.assertEqual(sum("only once" in t for t in self.fake.texts()), 1)

    def test_without_its_own_id_it_does_not_start(self) -> None:
        self.fake.on("GET", "/whoami", lambda h, b: h.reply(200, {"user_id": USER}))
        bot = self.bot({"text": "hello"}, joined=False, wait="matrix_down")
        self.assertEqual(self.fake.count("/sync"), 0)
        self.assertIsNone(bot.process.poll())

    def test_a_response_of_any_size_does_not_kill_it(self) -> None:
        bot = self.bot({"text": "hello"})
        self.fake.raw(b'{"next_batch":"x","pad":"' + b"x" * (65 * MIB) + b'"}')
        bot.logged("matrix_sync_failed")
        self.fake.ask("still there?")
        self.said("hello")

    def test_wrong_types_everywhere_change_nothing(self) -> None:
        bot = self.bot({"text": "hello"})
        odd: list[object] = [None, True, 7, -1.5, "", "x", [], {}, [[]], {"a": {}}]
        for value in odd:
            self.fake.raw({"rooms": value, "account_data": value, "to_device": value, "device_lists": value})
            self.fake.raw({"rooms": {"join": value, "invite": value, "leave": value}, "account_data": {"events": value}})
            self.fake.raw({"rooms": {"join": {ROOM: value, "no room": value}, "invite": {ROOM: value, "!x": value}, "leave": {"!y": value}}})
            self.fake.deliver(value, {"type": value}, {"type": "m.room.message", "content": value, "event_id": value, "sender": value})
            self.fake.deliver(*(self.fake.message(value) | {key: value} for key in ("type", "sender", "event_id", "content", "unsigned", "redacts")))
            self.fake.deliver(*(self.fake.message({"msgtype": "m.text", "body": "x", key: value}, type=kind) for kind in
                                ("m.room.message", "m.reaction", "m.room.redaction", "m.room.encrypted", "m.key.verification.start")
                                for key in ("m.relates_to", "m.new_content", "m.mentions", "file", "info", "url", "msgtype", "redacts")))
            self.fake.deliver({"type": "m.room.member", "state_key": USER, "content": value, "sender": ANN},
                              {"type": "m.room.tombstone", "state_key": "", "content": {"replacement_room": value}})
        self.fake.until(lambda: not self.fake.syncs)
        self.fake.deliver(*[])
        self.fake.ask("a question after all that")
        self.said("hello")
        self.assertIsNone(bot.process.poll())


    def test_nesting_positions_times_and_repeats_are_refused_or_taken_once(self) -> None:
        bot = self.bot({"text": "hello"}, {"text": "second"})
        for bad in (b'{"next_batch":"x","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {"next_batch": ""}, {"next_batch": "x" * (1 << 20)},
                    b'{"next_batch":"a","next_batch":"b"}', b'{"next_batch":"x"} {}', b'{"next_batch":"a\\u0000b"}'):
            begun = len(bot.log)
            self.fake.raw(bad)
            bot.logged("matrix_sync_failed", begun)
            self.fake.raw({})
            bot.logged("matrix_synced status=200", begun)
        one = self.fake.message({"msgtype": "m.text", "body": "once"}, origin_server_ts=1 << 52)
        other = one | {"content": {"msgtype": "m.text", "body": "the same id with other words"}, "origin_server_ts": -5}
        self.fake.deliver(one, one, other)
        self.fake.deliver(other, one)
        self.said("hello")
        self.fake.ask("and now?")
        self.said("second")
        self.assertEqual(len({t for t in self.fake.texts() if t.startswith(("hello", "second"))}), 2)

    @longer
    def test_a_server_that_answers_at_once_with_nothing_is_not_asked_without_end(self) -> None:
        bot = self.bot({"text": "hello"}, {"text": "again"})
        for body, answer in (({"next_batch": "same"}, "hello"), (None, "again")):
            left = [40]

            def quick(handler: Handler, _body: bytes, body: dict | None = body, left: list[int] = left) -> object:
                left[0] -= 1
                return handler.reply(200, body or {"next_batch": f"n{left[0]}"}) if left[0] > 0 and not self.fake.syncs else False
            self.fake.rules[:] = []
            before = self.fake.count("/sync")
            self.fake.on("GET", "/sync", quick)
            self.fake.until(lambda before=before: self.fake.count("/sync") - before >= 7)
            self.fake.rules[:] = []
            self.assertGreater(left[0], 20)
            self.fake.ask("still there?")
            self.said(answer)
        self.assertIsNone(bot.process.poll())

    def test_s8_a_join_that_is_refused_at_first_is_tried_again(self) -> None:
        self.fake.first(3, "POST", "/join/", lambda h, b: h.reply(403, {"errcode": "M_FORBIDDEN", "error": "You are not invited to this room."}))
        bot = self.bot({"text": "hello"})
        me = {"type": "m.room.member", "state_key": USER, "sender": ANN, "content": {"membership": "invite", "is_direct": True}}
        self.fake.raw({"rooms": {"invite": {"!new:fake": {"invite_state": {"events": [me]}}}}})
        bot.logged("matrix_joined")
        self.assertEqual(self.fake.count("/join/"), 4)
        stranger = me | {"sender": "@eve:elsewhere"}
        self.fake.raw({"rooms": {"invite": {"!strange:elsewhere": {"invite_state": {"events": [stranger]}}}}})
        self.fake.until(lambda: self.fake.count("strange%3Aelsewhere/leave"))
        self.fake.until(lambda: self.fake.count("account_data/m.direct"))

    def test_s21_a_backlog_of_many_rooms_is_worked_off_in_bounded_memory_and_others_are_served(self) -> None:
        rooms, each = (50, 100) if FULL else (12, 4)
        bot = self.bot()
        self.flood(rooms, each)
        mine = self.fake.ask("and I?")
        self.fake.until_more(lambda: len(self.answered()), rooms * each + 1)
        self.assertIn(mine, self.answered())
        self.assertEqual(len(self.answered()), len(set(self.answered())))
        peak = next(line for line in Path(f"/proc/{bot.process.pid}/status").read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        self.assertLess(int(peak.split()[1]), 120_000)

    def test_s21_a_room_where_much_is_to_be_said_holds_up_no_other(self) -> None:
        many, ran = 20, threading.Event()
        self.fake.on("PUT", "/send/", lambda h, b: False if ran.wait(60) else None)
        bot = self.bot()
        self.flood(3, many)
        bot.logged("event=turn_done", times=3 * many)
        mine = self.fake.ask("and I?")
        bot.logged("event=turn_done", times=3 * many + 1)
        ran.set()
        self.fake.until_more(lambda: len(self.answered()), 3 * many + 1)
        self.assertLess(self.answered().index(mine), 9)

    def flood(self, rooms: int, each: int) -> None:
        """In each room somebody asks so many things at once."""
        summary = {"summary": {"m.joined_member_count": 2}}
        self.fake.raw({"rooms": {"join": {f"!flood{n}:fake": summary for n in range(rooms)}}})
        for n in range(rooms):
            events = [self.fake.message({"msgtype": "m.text", "body": f"what can you do, {i}?"}, sender=f"@eve{n}:fake") for i in range(each)]
            self.fake.raw({"rooms": {"join": {f"!flood{n}:fake": summary | {"timeline": {"events": events}}}}})

    def answered(self) -> list[str]:
        return [s["content"]["org.sandbook.re"] for s in list(self.fake.sent.values()) if "org.sandbook.re" in s["content"]]


class Tokens(Case):
    def expiring(self) -> list[str]:
        """Logins and renewals give token-0, token-1, ...; only the newest is good for what has a rule here."""
        given: list[str] = []

        def give(handler: Handler, _body: bytes) -> None:
            given.append(f"token-{len(given)}")
            handler.reply(200, {"user_id": USER, "device_id": "FAKEDEVICE", "access_token": given[-1], "refresh_token": f"again-{len(given)}", "expires_in_ms": 3_600_000})
        self.fake.on("POST", "/login", give)
        self.fake.on("POST", "/refresh", give)
        return given

    def test_s19_requests_that_expire_together_renew_the_token_once(self) -> None:
        given = self.expiring()
        old: list[str] = []

        def gone(handler: Handler, _body: bytes) -> object:
            if handler.headers["Authorization"].removeprefix("Bearer ") not in old:
                return False
            return handler.reply(401, {"errcode": "M_UNKNOWN_TOKEN", "soft_logout": True})
        for method, path in (("PUT", "/typing/"), ("POST", "/receipt/"), ("PUT", "/send/")):
            self.fake.on(method, path, gone)
        bot = self.bot({"text": "hello"})
        old += given
        self.fake.ask("one?")
        self.said("hello")
        self.assertEqual(self.fake.count("/refresh"), 1)
        self.assertEqual(sum("matrix_down" in line for line in bot.log), 0)

    def test_s19_a_refusal_of_the_token_before_the_last_ends_no_other(self) -> None:
        given = self.expiring()
        renewed = threading.Event()
        old: list[str] = []

        def gone(handler: Handler, _body: bytes) -> object:
            if handler.headers["Authorization"].removeprefix("Bearer ") not in old:
                renewed.set()
                return False
            if "/send/" not in handler.path:  # refused once the next token is in use
                renewed.wait(30)
            return handler.reply(401, {"errcode": "M_UNKNOWN_TOKEN", "soft_logout": True})
        for method, path in (("PUT", "/typing/"), ("POST", "/receipt/"), ("PUT", "/send/")):
            self.fake.on(method, path, gone)
        self.bot({"text": "hello"}, {"text": "good bye"})
        old += given
        self.fake.ask("one?")
        self.said("hello")
        self.fake.ask("two?")
        self.said("good bye")
        self.assertEqual(self.fake.count("/refresh"), 1)

    def test_s19_a_file_whose_token_ended_unnoticed_has_it_renewed(self) -> None:
        given = self.expiring()
        old: list[str] = []
        for method, path, answer in (("GET", "/media/download/", b"a,b\n"), ("POST", "/upload", {"content_uri": "mxc://fake/up"})):
            def file(handler: Handler, _body: bytes, answer: object = answer) -> object:
                if handler.headers["Authorization"].removeprefix("Bearer ") in old:
                    return handler.reply(401, {"errcode": "M_UNKNOWN_TOKEN", "soft_logout": True})
                old[:] = given  # ended once more
                return handler.reply(200, answer)
            self.fake.on(method, path, file)
        self.bot(call("open('twice.csv', 'w').write(open('one.csv').read() * 2)"), {"text": "made `twice.csv`"})
        old += given
        self.fake.deliver(self.fake.message({"msgtype": "m.file", "body": "twice", "filename": "one.csv", "url": "mxc://fake/one"}))
        self.fake.until(lambda: any(s["content"].get("filename") == "twice.csv" for s in self.fake.sent.values()))
        self.assertEqual(self.fake.count("/refresh"), 2)

    def test_s19_a_crash_before_the_new_tokens_are_kept(self) -> None:
        self.fake.on("POST", "/login", lambda h, b: h.reply(200, {"user_id": USER, "device_id": "FAKEDEVICE", "access_token": "old", "refresh_token": "again", "expires_in_ms": 1500}))
        bot = Bot(Place(self.fake.url), [{"text": "hello"}], e2ee="off", require_mention="never", reply="room")
        self.addCleanup(bot.close)
        self.fake.deliver()

        killed = threading.Event()

        def crash(handler: Handler, _body: bytes) -> None:
            killed.wait(60)
            handler.hang_up()
        self.fake.first(1, "POST", "/refresh", crash)
        self.fake.on("POST", "/refresh", lambda h, b: h.reply(200, {"access_token": "new", "refresh_token": "another", "expires_in_ms": 3_600_000}))
        bot.start(wait="")
        self.fake.until(lambda: self.fake.count("/refresh") == 1)
        bot.kill()
        killed.set()
        bot.start(wait="matrix_token_renewed")
        bot.logged("matrix_synced")
        self.fake.ask("one?")
        self.said("hello")
        bodies = [json.loads(b) for _, p, _, b in self.fake.requests if p.endswith("/refresh")]
        self.assertEqual(bodies[:2], [{"refresh_token": "again"}] * 2)
        self.assertEqual(self.fake.count("/login"), 1)

    def test_a_soft_logout_is_followed_by_a_login_of_the_same_device(self) -> None:
        self.fake.first(1, "GET", "/sync", lambda h, b: h.reply(401, {"errcode": "M_UNKNOWN_TOKEN", "soft_logout": True}))
        self.bot({"text": "hello"})
        self.fake.ask("one?")
        self.said("hello")
        logins = [json.loads(b) for _, p, _, b in self.fake.requests if p.endswith("/login")]
        self.assertEqual([x.get("device_id") for x in logins], [None, "FAKEDEVICE"])

    def test_what_is_wrong_at_the_beginning_is_said_with_the_setting_to_look_at(self) -> None:
        """Each is a newcomer's mistake; none may show the password."""
        wrong = {"errcode": "M_FORBIDDEN", "error": "Invalid username or password"}
        off = {"errcode": "M_UNKNOWN", "error": "Password login has been disabled."}
        page = b"<html>Welcome to nginx!</html>"
        cases = [("matrix_down", "matrix.password_file", "POST", "/login", lambda h, b: h.reply(403, wrong), {}),
                 ("matrix_down", "takes no password", "POST", "/login", lambda h, b: h.reply(400, off), {}),
                 ("matrix_down", "takes no password", "POST", "/login", lambda h, b: h.reply(404, {"errcode": "M_UNRECOGNIZED"}), {}),
                 ("matrix_login_waits", "is not a Matrix homeserver", "GET", "/versions", lambda h, b: h.reply(200, page, Content_Type="text/html"), {}),
                 ("matrix_login_waits", "is not a Matrix homeserver", "GET", "/versions", lambda h, b: h.reply(404, page, Content_Type="text/html"), {}),
                 ("matrix_down", "data_dir holds a session of @other:fake", "GET", "/whoami", lambda h, b: h.reply(200, {"user_id": "@other:fake", "device_id": "D"}), {}),
                 ("matrix_clock", "clock", "GET", "/versions", lambda h, b: h.reply(200, {"versions": ["v1.11"]}, Date="Mon, 30 Nov 2015 01:00:00 GMT"), {}),
                 ("matrix_down", "access_token_file", "GET", "/whoami", lambda h, b: h.reply(401, {"errcode": "M_UNKNOWN_TOKEN"}), {"auth": "token", "password_file": ""}),
                 ("matrix_login_waits", "matrix.homeserver", "GET", "/nothing", lambda h, b: None, {"homeserver": "http://127.0.0.1:9"})]
        for word, says, method, path, do, settings in cases if FULL else [cases[0], cases[3], cases[7]]:
            with self.subTest(says):
                self.fake.rules[:] = []
                self.fake.on(method, path, do)
                bot = Bot(Place(self.fake.url), [], **({"e2ee": "off"} | settings))
                self.addCleanup(bot.close)
                if "auth" in settings:
                    (bot.folder / "token").write_text("a-token")
                    (bot.folder / "token").chmod(0o600)
                    bot.conf.write_text(bot.conf.read_text() + f"access_token_file = {bot.folder}/token\n")
                bot.start(wait="")
                self.assertIn(says, bot.logged(word))
                self.assertNotIn("hunter22", "\n".join(bot.log))
                bot.kill()

    def test_an_account_that_is_suspended_or_owes_consent_keeps_its_answers(self) -> None:
        self.fake.first(1, "PUT", "/send/", lambda h, b: h.reply(403, {"errcode": "M_USER_SUSPENDED", "error": "suspended", "retry_after_ms": 1000}))
        self.fake.first(1, "PUT", "/send/", lambda h, b: h.reply(403, {"errcode": "M_CONSENT_NOT_GIVEN", "error": "terms", "consent_uri": "https://fake/terms", "retry_after_ms": 1000}))
        bot = self.bot({"text": "hello"}, progress="typing")
        self.fake.ask("one?")
        self.said("hello")
        self.assertIn("https://fake/terms", bot.logged("M_CONSENT_NOT_GIVEN"))


class Media(Case):
    def test_s17_an_old_server_and_redirects_that_lead_astray(self) -> None:
        """Only the last file is there: by the old way, behind two redirects."""
        other = Fake()
        self.addCleanup(other.close)
        astray = iter(["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1:1/_x", "//127.0.0.1:1/x", "/relative", "http://user:pw@127.0.0.1:1/x"])
        self.fake.first(6, "GET", "/client/v1/media/download/", lambda h, b: h.reply(302, b"", Location=next(astray)))
        self.fake.first(1, "GET", "/client/v1/media/download/", lambda h, b: h.reply(302, b"", Location=self.fake.url + "/_matrix/client/v1/media/download/fake/round"))
        self.fake.on("GET", "/client/v1/media/download/fake/round", lambda h, b: h.reply(302, b"", Location=self.fake.url + h.path))
        self.fake.on("GET", "/client/v1/media/download/", lambda h, b: h.reply(404, {"errcode": "M_UNRECOGNIZED"}))
        self.fake.on("GET", "/media/v3/download/", lambda h, b: h.reply(307, b"", Location=other.url + "/one"))
        other.on("GET", "/one", lambda h, b: h.reply(308, b"", Location=other.url + "/two"))
        other.on("GET", "/two", lambda h, b: h.reply(200, b"a,b\n1,2\n", Content_Type="text/csv"))
        self.bot(*({"text": f"answer {n}"} for n in range(7)), call("print(open('good.csv').read())"), {"text": "read"})
        for n in range(7):
            self.fake.deliver(self.fake.message({"msgtype": "m.file", "body": f"what is it, {n}?", "filename": f"bad{n}.csv", "url": f"mxc://fake/bad{n}"}))
            self.said(f"answer {n}")
        self.fake.deliver(self.fake.message({"msgtype": "m.file", "body": "read it", "filename": "good.csv", "url": "mxc://fake/good"}))
        self.said("read")
        self.assertLessEqual(self.fake.count("/fake/round"), 3)
        self.assertFalse([h for _, p, h, _ in other.requests if "authorization" in {k.lower() for k in h}])
        self.assertFalse([h for _, p, h, _ in self.fake.requests if "round" in p and "Authorization" in h])

    def test_s17_a_redirect_to_another_host_does_not_get_our_token(self) -> None:
        other = Fake()
        self.addCleanup(other.close)
        other.on("GET", "/file", lambda h, b: h.reply(200, b"a,b\n1,2\n", Content_Type="text/csv"))
        self.fake.on("GET", "/media/download/", lambda h, b: h.reply(307, b"", Location=other.url + "/file"))
        self.bot(call("print(open('a.csv').read())"), {"text": "read"})
        self.fake.deliver(self.fake.message({"msgtype": "m.file", "body": "sum it", "filename": "a.csv", "url": "mxc://fake/abc"}))
        self.said("read")
        self.assertEqual(len(other.requests), 1)
        self.assertNotIn("authorization", {k.lower() for k in other.requests[0][2]})

    def test_a_file_larger_than_it_says_is_stopped(self) -> None:
        def endless(handler: Handler, _body: bytes) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(64 * MIB))
            handler.end_headers()
            for _ in range(64):
                handler.wfile.write(b"x" * MIB)
        self.fake.on("GET", "/media/download/", endless)
        bot = Bot(Place(self.fake.url), [{"text": "small"}], e2ee="off", require_mention="never", reply="room")
        self.addCleanup(bot.close)
        bot.conf.write_text(bot.conf.read_text() + "[files]\nupload_max = 2M\n")
        self.fake.deliver()
        bot.start("matrix_synced")
        self.fake.deliver(self.fake.message({"msgtype": "m.file", "body": "big.csv", "url": "mxc://fake/abc", "info": {"size": 10}}))
        self.said("larger than 2 MB")


class Grant(Case):
    def test_a_person_opens_a_page_and_the_session_is_renewed(self) -> None:
        url, tokens = self.fake.url, iter(range(100))
        self.fake.on("GET", "/auth_metadata", lambda h, b: h.reply(200, {
            "issuer": url, "token_endpoint": url + "/token", "registration_endpoint": url + "/register", "device_authorization_endpoint": url + "/device"}))
        self.fake.on("POST", "/register", lambda h, b: h.reply(201, {"client_id": "client-1"}))
        self.fake.on("POST", "/device", lambda h, b: h.reply(200, {
            "device_code": "code", "user_code": "AB-CD", "verification_uri": url + "/page", "expires_in": 600, "interval": 1}))
        self.fake.first(1, "POST", "/token", lambda h, b: h.reply(400, {"error": "authorization_pending"}))
        self.fake.on("POST", "/token", lambda h, b: h.reply(200, {
            "access_token": f"token-{next(tokens)}", "refresh_token": "again", "expires_in": 3, "token_type": "Bearer"}))
        bot = self.bot({"text": "hello"}, password_file="", wait="matrix_open_this_page_to_log_in")
        bot.logged("matrix_logged_in")
        bot.logged("matrix_token_renewed")
        self.fake.ask("still there?")
        self.said("hello")
        forms = [b.decode() for m, p, _, b in self.fake.requests if p == "/token"]
        self.assertIn("device_code=code", forms[0])
        self.assertIn("grant_type=refresh_token", forms[-1])
        self.assertNotIn("token-", "\n".join(bot.log))


if __name__ == "__main__":
    unittest.main()
