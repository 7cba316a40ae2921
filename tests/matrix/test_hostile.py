"""The bot and a homeserver that misbehaves: nothing is lost, nothing is said twice, nothing falls over."""
import unittest

from bot import Bot, call
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
        bot.logged("matrix_halved")

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


class Media(Case):
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
