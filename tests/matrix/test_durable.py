"""Crashes, gaps, limits and lost sessions: nothing is lost, nothing said twice."""
import random
import unittest

from bot import FULL, Bot, Case, is_answer, longer
from synapse import Person


class Durable(Case):
    def answers(self, ann: Person, room: str, bot: Bot) -> list[str]:
        return [e["content"]["org.sandbook.re"] for e in ann.history(room) if is_answer(e, bot) and "m.new_content" not in e["content"]]

    def until_all(self, ann: Person, room: str, bot: Bot, asked: list[str], seconds: float = 150) -> None:
        for question in asked:
            ann.until(room, lambda e, q=question: is_answer(e, bot, q), seconds)
        self.assertEqual(sorted(self.answers(ann, room, bot)), sorted(asked))

    def test_s1_what_was_asked_while_it_was_down_is_answered_once_in_order(self) -> None:
        bot = self.bot({"text": "hello"})
        ann, room = self.direct(bot)
        self.answer(ann, room, bot, ann.say(room, "hi"))
        bot.kill()
        asked = [ann.say(room, f"question {i}") for i in range(5)]
        bot.answers(*({"text": f"answer {i}"} for i in range(5)))
        bot.start()
        for question in asked:
            self.answer(ann, room, bot, question)
        self.assertEqual(self.answers(ann, room, bot)[1:], asked)

    def test_s2_questions_in_a_long_gap_are_found(self) -> None:
        bot = self.bot({"text": "hello"})
        ann, room = self.group(bot)
        self.answer(ann, room, bot, ann.say(room, "hi", bot.user))
        bot.kill()
        asked = []
        for i in range(300):
            if i in (5, 150, 299):
                asked.append(ann.say(room, f"question {i}", bot.user))
            else:
                ann.say(room, f"chatter {i}")
        bot.answers(*({"text": f"answer {i}"} for i in range(3)))
        bot.start()
        for question in asked:
            self.answer(ann, room, bot, question)
        self.assertEqual(sorted(self.answers(ann, room, bot)[1:]), sorted(asked))

    def test_s3_killed_at_any_time_each_question_is_answered_once(self) -> None:
        dice = random.Random(3)
        bot = self.bot(start=False)
        bot.start()
        ann, room = self.direct(bot)
        asked = []
        for i in range(12):
            asked.append(ann.say(room, f"what can you do, {i}?"))
            if i % 2:
                for _ in range(dice.randrange(4)):
                    ann.sync(50)
                bot.kill()
                bot.start(wait="")
        bot.logged("matrix_logged_in")
        self.until_all(ann, room, bot, asked)

    def test_s6_a_position_that_the_server_no_longer_knows(self) -> None:
        import sqlite3  # pylint: disable=import-outside-toplevel
        bot = self.bot({"text": "one"})
        ann, room = self.direct(bot)
        asked = ann.say(room, "first")
        self.answer(ann, room, bot, asked)
        bot.stop()
        with sqlite3.connect(bot.folder / "data/sandbook.db") as db:
            self.assertEqual(db.execute("UPDATE kept SET value=? WHERE platform='matrix' AND kind='sync'", (b"nonsense",)).rowcount, 1)
        db.close()
        ann.say(room, "while it was lost")
        bot.answers({"text": "two"})
        bot.start()
        bot.logged("matrix_position_lost")
        bot.logged("matrix_synced status=200")
        self.answer(ann, room, bot, ann.say(room, "second"))
        self.assertEqual(self.answers(ann, room, bot)[0], asked)

    def test_s7_a_lost_data_dir_answers_what_is_new_and_nothing_twice(self) -> None:
        bot = self.bot({"text": "one"}, e2ee="off")
        ann, room = self.direct(bot)
        data = f"/_matrix/client/v3/user/{bot.user}/account_data/"
        first = ann.say(room, "first")
        self.answer(ann, room, bot, first)
        bot.until(lambda: bot.has("GET", data + "org.sandbook.caught_up"))
        self.assertIn(room, bot.account.call("GET", data + "m.direct")[ann.user])
        bot.stop()
        bot.forget()
        missed = ann.say(room, "while it was lost")
        bot.answers({"text": "two"})
        bot.start()
        self.answer(ann, room, bot, missed)
        bot.stop()
        bot.forget()
        old = ann.say(room, "older than the marker")
        ts = next(e["origin_server_ts"] for e in ann.history(room) if e["event_id"] == old)
        bot.account.call("PUT", data + "org.sandbook.caught_up", {"ts": ts})
        ann.sync(5)  # the next message has another millisecond
        new = ann.say(room, "newer")
        bot.answers({"text": "three"})
        bot.start()
        self.answer(ann, room, bot, new)
        self.assertEqual(self.answers(ann, room, bot), [first, missed, new])

    @longer
    def test_s18_a_server_that_is_away_is_waited_for_without_haste(self) -> None:
        bot = self.bot({"text": "hello"})
        ann, room = self.direct(bot)
        bot.logged("matrix_synced status=200")
        begun = len(bot.log)
        self.server.stop()
        bot.logged("matrix_sync_failed", begun)
        bot.logged("matrix_sync_failed try=3", begun)
        self.server.start()
        self.answer(ann, room, bot, ann.say(room, "are you back?"))
        self.assertLess(sum("matrix_sync_failed" in line for line in bot.log[begun:]), 12)

    def test_s20_a_session_that_the_server_ended_is_not_replaced_in_silence(self) -> None:
        bot = self.bot({"text": "one"})
        device = bot.logged("matrix_logged_in").split("device=")[1].split()[0]
        bot.account.call("POST", "/_matrix/client/v3/delete_devices", {"devices": [device], "auth": {
            "type": "m.login.password", "identifier": {"type": "m.id.user", "user": bot.user}, "password": bot.account.password}})
        bot.logged("matrix_down")
        self.assertIsNone(bot.process.poll())
        bot.stop()
        bot.start(wait="matrix_down")

    def test_s20_a_wrong_password_is_said_once_and_not_tried_again(self) -> None:
        bot = self.bot({"text": "one"}, start=False)
        (bot.folder / "password").write_text("wrong")
        bot.start(wait="matrix_down")
        self.assertEqual(sum("matrix_login" in line for line in bot.log), 0)
        self.assertNotIn("wrong", "\n".join(bot.log))

    def test_s22_a_second_process_on_the_same_data_is_refused(self) -> None:
        bot = self.bot({"text": "one"})
        second = Bot(self.server, [{"text": "x"}])
        self.addCleanup(second.close)
        second.conf.write_text(bot.conf.read_text())
        second.start(wait="")
        self.assertNotEqual(second.process.wait(60), 0)
        self.assertIsNone(bot.process.poll())

    def test_u10_no_secret_is_ever_logged(self) -> None:
        bot = self.bot({"text": "one"})
        ann, room = self.direct(bot)
        self.answer(ann, room, bot, ann.say(room, "the words of a person"))
        bot.stop()
        text = "\n".join(bot.log)
        for secret in ("syt_", bot.account.password + " ", "the words of a person", "Bearer"):
            self.assertNotIn(secret, text)


class Tokens(Case):
    extra = "refreshable_access_token_lifetime: 4s\nrefresh_token_lifetime: 24h\n"

    def test_s19_a_short_lived_token_is_renewed_across_lives(self) -> None:
        bot = self.bot({"text": "one"}, {"text": "two"})
        ann, room = self.direct(bot)
        self.answer(ann, room, bot, ann.say(room, "first"))
        begun = len(bot.log)
        bot.logged("matrix_token_renewed", begun)
        self.answer(ann, room, bot, ann.say(room, "second"))
        bot.kill()
        ann.sync(6000)
        bot.answers({"text": "three"})
        bot.start()
        self.answer(ann, room, bot, ann.say(room, "third"))
        self.assertEqual(sum("matrix_down" in line for line in bot.log), 0)


class Limits(Case):
    extra = f"rc_message: {{per_second: {0.2 if FULL else 0.5}, burst_count: 3}}\n"

    def test_s5_under_a_limit_all_answers_arrive_and_few_are_refused(self) -> None:
        each = 3 if FULL else 2
        bot = self.bot(*({"text": f"answer {'abcdefghijkl'[i]}"} for i in range(4 * each)), progress="typing")
        people = [self.server.register("ann") for _ in range(4)]
        rooms = [p.room(bot.user, is_direct=True) for p in people]
        for person, room in zip(people, rooms):
            self.until_joined(person, room, bot)
        asked = [(p, r, p.say(r, f"question {i}")) for i in range(each) for p, r in zip(people, rooms)]
        for person, room, question in asked:
            self.answer(person, room, bot, question)
        self.assertLessEqual(sum("event=matrix_limited" in line for line in bot.log), 2 if FULL else 3)


if __name__ == "__main__":
    unittest.main()
