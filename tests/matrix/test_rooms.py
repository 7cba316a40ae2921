"""Second thoughts, invitations, leaving, replaced rooms: against a real Synapse."""
import unittest

from bot import Case, call, is_answer

SLOW = call("import time; print('up', flush=True); time.sleep(50)")


class SecondThoughts(Case):
    def test_s14_an_edit_of_an_answered_question_runs_it_again(self) -> None:
        bot = self.bot({"text": "first"}, {"text": "second"})
        ann, room = self.direct(bot)
        asked = ann.say(room, "one")
        self.answer(ann, room, bot, asked)
        ann.say(room, "* two", **{"m.new_content": {"msgtype": "m.text", "body": "two"}, "m.relates_to": {"rel_type": "m.replace", "event_id": asked}})
        ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("body", "").startswith("second"))

    def test_s14_edits_that_make_no_sense_change_nothing(self) -> None:
        bot = self.bot({"text": "first"}, {"text": "second"})
        ann, room = self.group(bot)
        asked = ann.say(room, "one", bot.user)
        self.answer(ann, room, bot, asked)
        bea = self.person("eve")
        ann.call("POST", ann.at(room, "invite"), {"user_id": bea.user})
        bea.call("POST", bea.at(room, "join"), {})
        replace = {"m.relates_to": {"rel_type": "m.replace", "event_id": asked}}
        bea.say(room, "* evil", bot.user, **({"m.new_content": {"msgtype": "m.text", "body": "evil"}} | replace))
        ann.say(room, "* none", **replace)
        ann.say(room, "* odd", **({"m.new_content": "text"} | replace))
        last = ann.say(room, "two", bot.user)
        self.assertEqual(self.answer(ann, room, bot, last)["content"]["body"].split()[0], "second")

    def test_s15_a_deleted_question_is_cancelled(self) -> None:
        for version in ("10", "12"):
            bot = self.bot(SLOW, {"text": "late"}, {"text": "next"})
            ann, room = self.group(bot, room_version=version)
            asked = ann.say(room, "slow", bot.user)
            ann.until(room, lambda e: e["sender"] == bot.user and "m.relates_to" in e["content"])  # the status line
            ann.redact(room, asked)
            ann.until(room, lambda e: e["type"] == "m.room.redaction" and e["sender"] == bot.user)  # the line is gone
            self.assertFalse(any(is_answer(e, bot, asked) for e in ann.history(room)), version)
            bot.kill()

    def test_a_reaction_stops_what_runs(self) -> None:
        bot = self.bot(SLOW, {"text": "late"})
        ann, room = self.group(bot)
        asked = ann.say(room, "slow", bot.user)
        line = ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("msgtype") == "m.notice")
        ann.send_event(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": asked, "key": "🛑"}}, "m.reaction")
        got = self.answer(ann, room, bot, asked)
        self.assertNotIn("late", got["content"]["body"])
        gone = next(e for e in ann.history(room) if e["event_id"] == line["event_id"])
        ann.until(room, lambda e: e["type"] == "m.room.redaction" and e.get("redacts", e["content"].get("redacts")) == gone["event_id"])

    def test_s11_two_bots_do_not_talk_for_ever(self) -> None:
        one, two = self.bot({"text": "hello you"}, {"text": "yes"}), self.bot({"text": "hello too"}, msgtype="notice")
        ann, room = self.group(one, self.person(), self.person("bea"))
        ann.call("POST", ann.at(room, "invite"), {"user_id": two.user})
        self.until_joined(ann, room, two)
        first = ann.say(room, "both of you", one.user, two.user)
        self.answer(ann, room, one, first)
        ann.until(room, lambda e: e["sender"] == two.user and e["content"].get("org.sandbook.re") == first)
        last = ann.say(room, "are you still there? nobody else asked", one.user)
        self.answer(ann, room, one, last)
        self.assertLessEqual(sum(e["sender"] in (one.user, two.user) and e["type"] == "m.room.message" for e in ann.history(room)), 3)


class Coming(Case):
    def test_s8_only_those_on_the_list_may_invite(self) -> None:
        ann, eve = self.person(), self.person("eve")
        bot = self.bot({"text": "hello"}, {"text": "again"}, inviters="@ann*:localhost @nobody:example.org")
        room = ann.room(bot.user, eve.user)
        eve.call("POST", eve.at(room, "join"), {})
        self.until_joined(ann, room, bot)
        refused = eve.room(bot.user)
        eve.until(refused, lambda e: e["type"] == "m.room.member" and e["state_key"] == bot.user and e["content"]["membership"] == "leave")
        asked = ann.say(room, "me?", bot.user)
        self.answer(ann, room, bot, asked)
        self.assertEqual(sum(is_answer(e, bot) for e in ann.history(room)), 1)

    def test_s8_spaces_and_floods(self) -> None:
        bot = self.bot({"text": "hello"}, max_rooms="5")
        ann = self.person()
        space = ann.room(bot.user, creation_content={"type": "m.space"})
        rooms = [ann.room(bot.user) for _ in range(12)]
        for room in [space, *rooms]:
            ann.until(room, lambda e: e["type"] == "m.room.member" and e["state_key"] == bot.user and e["content"]["membership"] in ("join", "leave"))
        self.assertNotIn(bot.user, ann.joined(space))
        self.assertEqual(sum(bot.user in ann.joined(room) for room in rooms), 5)

    def test_it_leaves_when_all_others_have_left(self) -> None:
        bot = self.bot({"text": "hello"})
        ann, room = self.direct(bot)
        ann.call("POST", ann.at(room, "leave"), {})
        bot.logged("matrix_leaves")
        bot.logged("matrix_room_left")

    def test_s9_a_kick_ends_the_work(self) -> None:
        bot = self.bot(SLOW, {"text": "late"})
        ann, room = self.group(bot)
        ann.say(room, "slow", bot.user)
        ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("msgtype") == "m.notice")
        ann.call("POST", ann.at(room, "kick"), {"user_id": bot.user})
        bot.logged("matrix_room_left")
        again = ann.room(bot.user)
        self.until_joined(ann, again, bot)  # it lives

    def test_s10_it_follows_into_the_room_that_replaces_another(self) -> None:
        bot = self.bot({"text": "old"}, {"text": "new"})
        ann, room = self.group(bot, preset="public_chat")
        self.answer(ann, room, bot, ann.say(room, "here?", bot.user))
        new = ann.call("POST", ann.at(room, "upgrade"), {"new_version": "11"})["replacement_room"]
        self.until_joined(ann, new, bot)
        self.answer(ann, new, bot, ann.say(new, "and here?", bot.user))

    def test_s10_a_private_replacement_is_entered_when_it_invites(self) -> None:
        bot = self.bot({"text": "new"}, autojoin="never", start=False)
        bot.conf.write_text(bot.conf.read_text().replace("autojoin = never", "autojoin = allowed"))
        bot.start()
        ann, room = self.group(bot)
        bot.stop()
        bot.conf.write_text(bot.conf.read_text().replace("autojoin = allowed", "autojoin = never"))
        new = ann.call("POST", ann.at(room, "upgrade"), {"new_version": "11"})["replacement_room"]
        bot.start()
        bot.logged("matrix_room_replaced")
        ann.call("POST", ann.at(new, "invite"), {"user_id": bot.user})
        self.until_joined(ann, new, bot)
        self.answer(ann, new, bot, ann.say(new, "and here?", bot.user))


if __name__ == "__main__":
    unittest.main()
