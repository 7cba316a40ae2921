"""Second thoughts, invitations, leaving, replaced rooms: against a real Synapse."""
import unittest

from bot import Case, call, is_answer, longer

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

    def test_s14_and_s15_what_runs_or_waits_can_be_reworded_or_taken_back(self) -> None:
        bot = self.bot(SLOW, {"text": "reworded"}, {"text": "last"})
        ann, room = self.direct(bot)
        asked = ann.say(room, "slow")
        ann.until(room, lambda e: e["sender"] == bot.user and e["content"].get("msgtype") == "m.notice")
        gone = ann.say(room, "and this")
        ann.redact(room, gone)
        ann.say(room, "* quick", **{"m.new_content": {"msgtype": "m.text", "body": "quick"}, "m.relates_to": {"rel_type": "m.replace", "event_id": asked}})
        ann.until(room, lambda e: e["sender"] == bot.user and "reworded" in e["content"].get("body", ""))
        self.answer(ann, room, bot, ann.say(room, "the last one"))
        self.assertFalse([e for e in ann.history(room) if is_answer(e, bot, gone)])

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
    extra = "server_notices: {system_mxid_localpart: notices, room_name: Notices}\n"

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

    @longer
    def test_s8_a_flood_by_one_person_and_one_who_is_ignored(self) -> None:
        bot = self.bot({"text": "hello"})
        ann, eve = self.person(), self.person("eve")
        bot.account.call("PUT", f"/_matrix/client/v3/user/{bot.user}/account_data/m.ignored_user_list", {"ignored_users": {eve.user: {}}})
        mine, shared = self.group(bot, ann, eve)
        eve.say(shared, "ignored", bot.user)
        asked = mine.say(shared, "not ignored", bot.user)
        self.answer(mine, shared, bot, asked)
        self.assertEqual(sum(is_answer(e, bot) for e in mine.history(shared)), 1)
        refused = eve.room(bot.user)
        rooms = [ann.room(bot.user) for _ in range(21)]
        for room in rooms:
            ann.until(room, lambda e: e["type"] == "m.room.member" and e["state_key"] == bot.user and e["content"]["membership"] in ("join", "leave"))
        self.assertNotIn(bot.user, eve.joined(refused))  # Synapse does not even hand on such an invitation
        self.assertEqual(sum(bot.user in ann.joined(room) for room in rooms), 19)  # the first of twenty an hour is the shared one

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

    def test_s10_a_direct_room_that_is_replaced_keeps_its_variables(self) -> None:
        bot = self.bot(call("x = 20"), {"text": "noted"}, call("print(x + 1)"), {"text": "21"})
        ann, room = self.direct(bot)
        ann.say(room, "x is 20")
        ann.until(room, lambda e: e["sender"] == bot.user and "noted" in e["content"].get("body", ""))
        new = ann.call("POST", ann.at(room, "upgrade"), {"new_version": "11"})["replacement_room"]
        bot.logged("matrix_room_replaced")
        ann.call("POST", ann.at(new, "invite"), {"user_id": bot.user})
        self.until_joined(ann, new, bot)
        ann.say(new, "and one more?", bot.user)
        ann.until(new, lambda e: e["sender"] == bot.user and e["content"].get("body", "").startswith("21"))

    def test_s10_a_private_replacement_is_entered_when_it_invites(self) -> None:
        bot = self.bot({"text": "new"}, autojoin="never", start=False)
        bot.conf.write_text(bot.conf.read_text().replace("autojoin = never", "autojoin = allowed"))
        bot.start()
        ann, room = self.group(bot)
        bot.logged("matrix_synced status=200")
        bot.command("room", room, "reply=room")
        bot.stop()
        bot.conf.write_text(bot.conf.read_text().replace("autojoin = allowed", "autojoin = never"))
        new = ann.call("POST", ann.at(room, "upgrade"), {"new_version": "11"})["replacement_room"]
        bot.start()
        bot.logged("matrix_room_replaced")
        ann.call("POST", ann.at(new, "invite"), {"user_id": bot.user})
        self.until_joined(ann, new, bot)
        ann.say(room, "and in the old one?", bot.user)
        got = self.answer(ann, new, bot, ann.say(new, "and here?", bot.user))
        self.assertNotEqual(got["content"]["m.relates_to"].get("rel_type"), "m.thread")  # its settings moved along
        self.assertFalse([e for e in ann.history(room) if e["sender"] == bot.user and e["type"] == "m.room.message"])

    # ---- how it behaves there ----

    def test_a_room_says_how_the_bot_behaves_in_it_and_the_operator_has_the_last_word(self) -> None:
        bot = self.bot({"text": "one"}, {"text": "two"})
        ann, room = self.group(bot)
        ann.call("PUT", ann.at(room, "state/org.sandbook.room/"), {"require_mention": "never", "reply": "room", "msgtype": 7, "progress": "loud"})
        bot.until(lambda: bot.command("room", room)["reply"] == "room")
        asked = ann.say(room, "nobody is named")
        self.assertEqual(self.answer(ann, room, bot, asked)["content"]["m.relates_to"], {"m.in_reply_to": {"event_id": asked}})
        told = bot.command("room", room, "require_mention=always")
        self.assertEqual((told["require_mention"], told["msgtype"], told["progress"], told["may_write"]), ("always", "text", "edits", True))
        unheard = ann.say(room, "nobody is named again")
        self.answer(ann, room, bot, ann.say(room, "now you are", bot.user))
        self.assertFalse([e for e in ann.history(room) if is_answer(e, bot, unheard)])

    def test_where_it_may_not_write_it_says_so_where_it_may(self) -> None:
        bot = self.bot({"text": "in private"}, {"text": "at last"})
        ann, direct = self.direct(bot)
        silent = ann.room(bot.user, self.person().user, room_version="12", power_level_content_override={"events_default": 50})
        self.until_joined(ann, silent, bot)
        ann.say(silent, "can you hear me?", bot.user)
        ann.until(direct, lambda e: e["sender"] == bot.user and silent in e["content"].get("body", ""))
        ann.call("PUT", ann.at(silent, "state/m.room.power_levels/"), {"events_default": 50, "users": {bot.user: 50}})
        bot.until(lambda: bot.command("room", silent)["may_write"])
        self.answer(ann, silent, bot, ann.say(silent, "and now?", bot.user))
        bea = self.person("bea")
        signs = bea.room(bot.user, self.person().user, power_level_content_override={"events": {"m.room.message": 50}})
        self.until_joined(bea, signs, bot)
        asked = bea.say(signs, "can you hear me?", bot.user)
        bea.until(signs, lambda e: e["type"] == "m.reaction" and e["sender"] == bot.user and e["content"]["m.relates_to"]["event_id"] == asked)

    @longer
    def test_service_members_and_server_notices(self) -> None:
        bot = self.bot({"text": "still direct"})
        ann, room = self.direct(bot)
        bridge = self.person("bridge")
        ann.call("PUT", ann.at(room, "state/io.element.functional_members/"), {"service_members": [bridge.user, bot.user, 7]})
        ann.call("POST", ann.at(room, "invite"), {"user_id": bridge.user})
        bridge.call("POST", bridge.at(room, "join"), {})
        admin = self.server.register("admin", admin=True)
        admin.call("POST", "/_synapse/admin/v1/send_server_notice", {"user_id": bot.user, "content": {"msgtype": "m.text", "body": "maintenance tonight"}})
        bot.logged("by=@notices:localhost")
        bot.until(lambda: bot.command("room", room)["members"] == 3)
        self.assertTrue(bot.command("room", room)["direct"])
        self.answer(ann, room, bot, ann.say(room, "no mention"))
        self.assertEqual(bot.command("status")["inbox"], 0)
        self.assertFalse([line for line in bot.log if "event=turn_done" in line and "notices" in line])


if __name__ == "__main__":
    unittest.main()
