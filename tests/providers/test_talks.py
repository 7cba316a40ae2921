"""Whole conversations with strict servers, through the driver (talk.c): what each dialect must do, and what only one knows."""
import errno
import json
import os
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Callable

from fakes import DIALECTS, KEY, Anthropic, Chat, Fake, Reply, Refused, Talk, need

TURNS = 20


def code(text: str) -> tuple[str, dict]:
    return ("run_python", {"code": text})


def work(fake: Fake | None = None, thinking: str = "") -> Callable[[dict], Reply]:
    """Each question: one program, a second one for every third, then an answer."""
    state = {"n": 0, "left": 0, "turn": 0}

    def script(body: dict) -> Reply:
        if state["left"] == 0:
            state["turn"] += 1
            state["left"] = 3 if state["turn"] % 3 == 0 else 2
        state["left"] -= 1
        state["n"] += 1
        if state["left"] == 0:
            return Reply(text=f"Answer {state['turn']} – ü 😱", thinking=thinking)
        return Reply(text="Let me see." if state["turn"] % 2 else "", calls=[code(f"print({state['n']})")], thinking=thinking)

    return script


def script_of(*replies: Reply) -> Callable[[dict], Reply]:
    """In order; the last one again and again."""
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


class Base(unittest.TestCase):
    dialect = "chat"
    cached = 64

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="sandbook-test-")
        self.addCleanup(folder.cleanup)
        self.key_file = Path(folder.name, "key")
        self.key_file.write_text(KEY + "\n")
        self.key_file.chmod(0o600)

    def fake(self, script: Callable[[dict], Reply], **more: object) -> Fake:
        f = DIALECTS[self.dialect](script, **more)
        self.addCleanup(f.close)
        return f

    def talk(self, fake: Fake, **settings: str) -> Talk:
        t = Talk(self.dialect, fake.url, self.key_file, **settings)
        self.addCleanup(self.finish, t)
        return t

    def finish(self, t: Talk) -> None:
        if t.p.poll() is None:
            self.assertEqual(t.close(), 0, t.log)
        self.assertNotIn(KEY, t.log)
        for line in t.log.splitlines():
            self.assertNotIn("ERROR: ", line)

    def one(self, reply: Reply, **settings: str) -> dict:
        return self.talk(self.fake(script_of(reply)), **settings).say("Q?")


class Counting(Anthropic):
    """An Anthropic server that counts tokens for nothing, as the real one does."""

    def __init__(self, script: Callable[[dict], Reply], count: Callable[[dict], Reply], **more: object) -> None:
        super().__init__(script, **more)  # type: ignore[arg-type]
        self.count = count
        self.counts: list[dict] = []

    def serve(self, h) -> None:  # type: ignore[no-untyped-def]
        if h.path != self.path + "/count_tokens":
            super().serve(h)
            return
        body = json.loads(h.rfile.read(int(h.headers["content-length"])))
        self.counts.append(body)
        try:
            self.check_key(h)
            extra = set(body) - {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}
            need(not extra, f"{extra}: Extra inputs are not permitted")
            reply = self.count(body)
        except Refused as e:
            self.faults.append(str(e))
            reply = Reply(status=e.status, error=self.refusal(str(e), None))
        self.answer(h, reply, {})


def counted(tokens: object) -> Callable[[dict], Reply]:
    return lambda body: Reply(body=json.dumps({"input_tokens": tokens}).encode())


def said_of(body: dict) -> list:
    """The conversation of a request, without the marks of caching, which move."""
    text = json.dumps(body.get("messages") or body["input"]).replace(', "cache_control": {"type": "ephemeral"}', "")
    return json.loads(text)


class EachDialect:
    """What every dialect must do. Mixed into one class for each."""

    def conversation(self, **settings: str) -> Fake:
        fake = self.fake(work(thinking="hm hm"))
        if isinstance(fake, Chat):
            fake.reasoning = "hm hm"
        t = self.talk(fake, **settings)
        for n in range(1, TURNS + 1):
            a = t.say(f"Question {n}?")
            self.assertNotIn("error", a, fake.faults)
            self.assertEqual(a["text"], f"Answer {n} – ü 😱")
            self.assertEqual(a["steps"], 3 if n % 3 == 0 else 2)
            self.assertEqual([json.loads(c)["code"][:6] for c in a["calls"]], ["print("] * (a["steps"] - 1))
            self.assertEqual((a["in"], a["cached"], a["out"]), (100, self.cached, 20))
        self.assertEqual(fake.faults, [])
        self.assertEqual(len(fake.requests), sum(3 if n % 3 == 0 else 2 for n in range(1, TURNS + 1)))
        return fake

    def test_twenty_turns_with_tools_and_reasoning_break_no_rule(self) -> None:
        fake = self.conversation()
        self.assertTrue(all(r["stream"] for r in fake.requests))

    def test_twenty_turns_without_streaming_break_no_rule(self) -> None:
        fake = self.conversation(stream="no")
        self.assertFalse(any(r.get("stream") for r in fake.requests))

    def test_each_request_begins_as_the_one_before_so_that_prefixes_are_cached(self) -> None:
        fake = self.conversation()
        for a, b in zip(fake.requests, fake.requests[1:]):
            one, two = said_of(a), said_of(b)
            self.assertEqual(two[: len(one)], one)
            for name in ("tools", "system", "instructions", "prompt_cache_key", "model"):
                self.assertEqual(a.get(name), b.get(name))

    def test_text_is_shown_as_it_comes(self) -> None:
        a = self.one(Reply(text="Hello there – ü 😱"))
        self.assertEqual((a["text"], a["shown"]), ("Hello there – ü 😱", "Hello there – ü 😱"))

    def test_another_providers_history_goes_out_without_its_reasoning(self) -> None:
        fake = self.fake(work(thinking="secret thought"))
        t = self.talk(fake)
        if isinstance(fake, Chat):
            fake.reasoning = "secret thought"
        for n in range(3):
            self.assertNotIn("error", t.say(f"Q{n}?"), fake.faults)
        t.send(drop=True)
        fake.given.clear()
        if isinstance(fake, Chat):
            fake.reasoning = ""
        before = len(fake.requests)
        self.assertIn("text", t.say("And now?"))
        self.assertNotIn("secret thought", json.dumps(said_of(fake.requests[before])))

    def test_a_wrong_key_is_the_operators_to_mend_and_is_told_to_nobody(self) -> None:
        fake = self.fake(script_of(Reply(text="x")), key="another")
        a = self.talk(fake).say("Q?")
        self.assertEqual((a["kind"], a["sys"]), ("config", errno.EACCES))
        self.assertNotIn(KEY, a["error"])
        self.assertEqual(len(fake.headers), 1)

    def test_a_key_that_was_changed_while_the_program_runs_is_found(self) -> None:
        fake = self.fake(lambda body: Reply(text="good"))
        t = self.talk(fake)
        self.assertEqual(t.say("Q?")["text"], "good")
        fake.key = "sk-test-another-key"
        self.assertEqual((t.say("Q?")["kind"], len(fake.headers)), ("config", 2))  # the same key is not tried again
        self.key_file.write_text(fake.key + "\r\n")
        self.assertEqual((t.say("Q?")["text"], len(fake.headers)), ("good", 4))
        self.assertEqual((t.say("Q?")["text"], len(fake.headers)), ("good", 5))
        fake.key = "sk-test-a-third-key"
        self.key_file.unlink()
        a = t.say("Q?")
        self.assertEqual((a["kind"], a["sys"]), ("config", errno.EACCES))
        self.assertNotIn("another-key", t.log + a["error"])

    def test_busy_servers_say_when_to_come_back(self) -> None:
        for status, headers, kind, wait in (
            (429, {"retry-after": "2"}, "limit", 2000),
            (429, {"retry-after-ms": "1500", "retry-after": "9"}, "limit", 1500),
            (429, {"retry-after": "999"}, "limit", 0),
            (429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, "limit", 1000),
            (429, {"x-ratelimit-reset": "1m30s"}, "limit", 90000),
            (429, {"x-ratelimit-reset": "4102444800000"}, "limit", 0),
            (429, {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, "limit", 0),
            (529, {}, "limit", 0),
            (503, {"retry-after": "1"}, "net", 0),
            (500, {}, "net", 0),
            (500, {"x-should-retry": "false"}, "refused", 0),
            (400, {"x-should-retry": "true"}, "net", 0),
        ):
            a = self.one(Reply(status=status, headers=headers, error={"error": {"message": "no", "type": "x"}}))
            self.assertEqual((a["kind"], a["retry_ms"]), (kind, wait), (status, headers, a))

    def test_no_money_is_no_reason_to_try_again(self) -> None:
        for status, error in ((429, {"code": "insufficient_quota", "message": "quota"}), (402, {"message": "Insufficient credits"}),
                              (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."})):
            a = self.one(Reply(status=status, error={"error": error}))
            self.assertEqual((a["kind"], a["sys"]), ("config", errno.EDQUOT), a)

    def test_a_conversation_that_is_too_long_can_be_told_apart(self) -> None:
        a = self.one(Reply(status=400, error={"error": {"message": "prompt is too long: 250000 tokens > 200000 maximum", "type": "invalid_request_error"}}))
        self.assertEqual((a["kind"], a["sys"]), ("refused", errno.EMSGSIZE))

    def test_a_filter_is_a_refusal_not_a_failure(self) -> None:
        a = self.one(Reply(status=400, error={"error": {"code": "content_filter", "message": "The response was filtered"}}))
        self.assertEqual((a["text"], a["stop"]), ("", 2))

    def test_an_error_inside_an_answer_of_status_200_is_an_error(self) -> None:
        for body in (b'{"error":{"message":"boom","code":502}}', b'data: {"error":{"message":"boom"}}\n\n',
                     b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"boom"}}\n\n'):
            a = self.one(Reply(body=body))
            if body.startswith(b"{") or self.dialect != "ollama":  # no events there
                self.assertIn("boom", a["error"])
            self.assertEqual(a["kind"], "net")

    def test_a_stream_that_breaks_can_be_tried_again(self) -> None:
        fake = self.fake(script_of(Reply(text="x" * 500, cut_after=400), Reply(text="good")))
        t = self.talk(fake)
        a = t.say("Q?")
        self.assertEqual(a["kind"], "net")
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(fake.faults, [])

    def test_a_cancelled_answer_ends_the_connection_and_nothing_else(self) -> None:
        fake = self.fake(script_of(Reply(text="slow " * 400, pause_s=0.05), Reply(text="good")))
        t = self.talk(fake)
        for n in range(3):
            if n:
                fake.script = script_of(Reply(text="slow " * 400, pause_s=0.05), Reply(text="good"))
            self.assertEqual(t.say("Q?", cancel_ms=200), {"cancelled": True})
            self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(fake.faults, [])

    def test_a_cancel_from_inside_a_delta_is_the_end_of_it(self) -> None:
        fake = self.fake(lambda body: Reply(text="words and words"))
        t = self.talk(fake)
        self.assertEqual(t.say("Q?", at_words=True), {"cancelled": True})
        self.assertEqual(t.say("Q?")["text"], "words and words")
        fake.script = lambda body: Reply(body=fake.whole(Reply(text="plain"), body))
        self.assertEqual(t.say("Q?", at_words=True), {"cancelled": True})
        self.assertEqual(t.say("Q?")["text"], "plain")

    def test_a_server_that_streams_nothing_is_understood(self) -> None:
        fake = self.fake(lambda body: Reply(body=fake.whole(Reply(text="plain"), body)))
        self.assertEqual(self.talk(fake).say("Q?")["text"], "plain")

    def test_a_redirect_is_not_followed(self) -> None:
        other = self.fake(script_of(Reply(text="stolen")))
        a = self.one(Reply(status=307, headers={"location": other.url + "/x"}, error={}))
        self.assertEqual(a["kind"], "config")
        self.assertIn(other.url + "/x", a["error"])
        self.assertEqual(other.headers, [])

    def test_an_event_past_the_ceiling_ends_the_answer(self) -> None:
        a = self.one(Reply(body=b'data: {"x":"' + b"x" * (9 << 20) + b'"}\n\n', pause_s=0))
        self.assertEqual(a["kind"], "data")

    def test_a_web_page_is_a_wrong_address(self) -> None:
        self.assertEqual(self.one(Reply(body=b"<!DOCTYPE html><html></html>"))["kind"], "config")

    def test_the_last_word_keeps_tools_but_forbids_them(self) -> None:
        fake = self.fake(script_of(Reply(calls=[code("1")]), Reply(text="one"), Reply(text="done")))
        t = self.talk(fake)
        t.say("Q?")
        self.assertEqual(t.say("Finish.", last=True)["text"], "done")
        self.assertTrue(fake.requests[-1]["tools"])
        choice = fake.requests[-1]["tool_choice"]
        self.assertEqual(choice["type"] if isinstance(choice, dict) else choice, "none")

    def test_two_calls_at_once_get_two_results_in_order(self) -> None:
        fake = self.fake(script_of(Reply(calls=[code("1"), code("2")]), Reply(text="both")))
        a = self.talk(fake).say("Q?")
        self.assertEqual((a["text"], len(a["calls"])), ("both", 2))
        self.assertEqual(fake.faults, [])

    def test_no_tools_means_fences_and_that_is_remembered(self) -> None:
        talk = "I look.\n\n```python\nprint(1)\n```\nOutput: 7\n" + "and so on " * 200

        def script(body: dict) -> Reply:
            need("tools" not in body, "m does not support tools")
            text = json.dumps(said_of(body))
            return Reply(text="It is out 0." if "Output of your program" in text else talk)

        fake = self.fake(script)
        t = self.talk(fake)
        a = t.say("Q?")
        self.assertEqual((a["text"], a["calls"]), ("It is out 0.", ['{"code":"print(1)\\n"}']))
        self.assertEqual(len(fake.faults), 1)
        self.assertNotIn("and so on and so on", json.dumps(said_of(fake.requests[-1])))
        t.say("Again?")
        self.assertEqual(len(fake.faults), 1)

    def test_a_server_that_swallows_tools_is_found_out_by_the_programs_in_its_text(self) -> None:
        fake = self.fake(script_of(Reply(text="Look:\n```python\nprint(1)\n```\nOutput: 7\n```python\nprint(2)\n```\n"), Reply(text="one")))
        a = self.talk(fake).say("Q?")
        self.assertEqual((a["text"], a["calls"]), ("one", ['{"code":"print(1)\\n"}']))
        self.assertEqual(["tools" in r for r in fake.requests], [True, False])
        self.assertIn("Output of your program", fake.raw[-1].decode())

    def test_a_model_that_has_called_a_tool_may_show_programs(self) -> None:
        shown = "So:\n```python\nprint(1)\n```\n"
        fake = self.fake(script_of(Reply(calls=[code("print(1)")]), Reply(text=shown)))
        a = self.talk(fake).say("Q?")
        self.assertEqual((a["text"], a["steps"]), (shown, 2))
        self.assertTrue(all("tools" in r for r in fake.requests))

    def test_native_tools_are_never_given_up(self) -> None:
        fake = self.fake(script_of(Reply(status=400, error={"error": {"message": "m does not support tools"}})))
        self.assertEqual(self.talk(fake, tools="native").say("Q?")["kind"], "refused")

    def test_fences_from_the_start_never_mention_tools(self) -> None:
        fake = self.fake(script_of(Reply(text="```python\nprint(1)\n```\n"), Reply(text="one")))
        a = self.talk(fake, tools="fence").say("Q?")
        self.assertEqual((a["text"], a["steps"]), ("one", 2))
        self.assertFalse(any("tools" in r or "tool_choice" in r for r in fake.requests))
        self.assertEqual(fake.faults, [])

    def temperatures(self, fake: Fake) -> list:
        return [(r.get("options") or r).get("temperature") for r in fake.requests]

    def test_temperature_is_said_to_models_without_tools_alone(self) -> None:
        own = 0 if self.dialect in ("chat", "ollama") else None
        for settings, said in (({"tools": "fence"}, own), ({}, None), ({"tools": "fence", "temperature": ""}, None)):
            with self.subTest(settings):
                fake = self.fake(script_of(Reply(text="x")))
                self.talk(fake, **settings).say("Q?")
                self.assertEqual((self.temperatures(fake), fake.faults), ([said], []))

    def test_a_temperature_that_is_set_is_given_up_when_it_is_refused(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        t = self.talk(fake, temperature="0.7")
        self.assertEqual([t.say("Q?")["text"], t.say("Q?")["text"]], ["x", "x"])
        self.assertEqual(len(fake.raw), 3)
        self.assertIn(b"0.7", fake.raw[0])
        self.assertEqual(self.temperatures(fake)[-2:], [None, None])
        t.close()
        self.assertIn("model_setting_refused", t.log)

    def test_optional_fields_are_dropped_one_refusal_each_and_remembered(self) -> None:
        optional = {"chat": ("stream_options", "parallel_tool_calls", "prompt_cache_key", "tool_choice"),
                    "responses": ("include", "parallel_tool_calls", "prompt_cache_key"), "anthropic": ("tool_choice",), "ollama": ()}[self.dialect]
        fake = self.fake(script_of(Reply(text="good")), refuses=optional)
        t = self.talk(fake)
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(len(fake.requests), len(optional) + 1)
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(len(fake.requests), len(optional) + 2)

    def test_a_refusal_without_reason_gets_one_plain_try(self) -> None:
        def script(body: dict) -> Reply:
            for name in ("prompt_cache_key", "stream_options", "include"):
                need(name not in body, "Bad request")
            need('"cache_control"' not in json.dumps(body), "Bad request")
            return Reply(text="good")

        fake = self.fake(script)
        t = self.talk(fake)
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(len(fake.requests), 2)
        fake.script = script_of(Reply(status=400, error={"error": {"message": "Bad request"}}))
        self.assertEqual(t.say("Q?")["kind"], "refused")
        self.assertEqual(len(fake.requests), 3)


class ChatTalks(EachDialect, Base):
    dialect = "chat"

    def test_an_answer_that_is_whole_does_not_wait_for_the_end_of_its_connection(self) -> None:
        fake = self.fake(lambda body: Reply(text="good", headers={"content-length": "100000"}))  # as if more were to come
        stop = threading.Event()
        self.addCleanup(stop.set)
        write, over = fake.write, []
        fake.write = lambda *a: (write(*a), stop.wait(240), over.append(1))  # type: ignore[method-assign]
        self.assertEqual(self.talk(fake).say("Q?")["text"], "good")
        self.assertEqual(over, [])

    def test_the_other_name_of_max_tokens_is_found(self) -> None:
        fake = self.fake(script_of(Reply(text="good")), refuses=("max_tokens",))
        t = self.talk(fake, max_output="99")
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual([("max_tokens" in r, r.get("max_completion_tokens")) for r in fake.requests], [(True, None), (False, 99), (False, 99)])

    def test_less_room_for_the_answer_is_taken_when_the_server_names_it(self) -> None:
        def script(body: dict) -> Reply:
            if body["max_tokens"] > 1096:
                raise Refused("This model's maximum context length is 4096 tokens. However, you requested 7000 tokens (3000 in the messages, 4000 in the completion).")
            return Reply(text="good")

        fake = self.fake(script)
        t = self.talk(fake, max_output="4000")
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(fake.requests[1]["max_tokens"], 1032)

    def test_effort_and_the_role_of_the_system_message_are_said_as_configured(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        self.talk(fake, effort="low", system_role="developer").say("Q?")
        self.assertEqual((fake.requests[0]["reasoning_effort"], fake.requests[0]["messages"][0]["role"]), ("low", "developer"))
        fake = self.fake(script_of(Reply(text="x")), refuses=("reasoning_effort",))
        self.assertEqual(self.talk(fake, effort="low", system_role="user").say("Q?")["text"], "x")
        self.assertEqual([m["role"] for m in fake.requests[1]["messages"]], ["user"])

    def test_reasoning_and_tools_that_do_not_go_together_turn_reasoning_off(self) -> None:
        def script(body: dict) -> Reply:
            need(body.get("reasoning_effort") == "none", "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. "
                 "To use function tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort")
            return Reply(text="good")

        fake = self.fake(script)
        self.assertEqual(self.talk(fake).say("Q?")["text"], "good")
        self.assertEqual(len(fake.requests), 2)

    def test_a_server_that_may_not_stream_is_asked_for_the_whole(self) -> None:
        def script(body: dict) -> Reply:
            need("stream" not in body, "Your organization must be verified to stream this model.", "stream")
            return Reply(text="good")

        self.assertEqual(self.talk(self.fake(script)).say("Q?")["text"], "good")

    def test_a_fence_ends_the_stream_where_its_program_ends(self) -> None:
        fake = self.fake(script_of(Reply(text="```python\nprint(1)\n```\n" + "made up " * 3000, pause_s=0.02), Reply(text="one")))
        a = self.talk(fake, tools="fence").say("Q?")
        self.assertEqual((a["text"], a["steps"]), ("one", 2))
        self.assertNotIn("made up made up", a["shown"])

    def test_a_thinking_server_without_a_parser_shows_and_gets_no_thoughts(self) -> None:
        fake = self.fake(script_of(Reply(text="<think>hm </thin hm</think>\n\nHello"), Reply(text="again")))
        t = self.talk(fake)
        a = t.say("Q?")
        self.assertEqual((a["text"], a["shown"]), ("Hello", "Hello"))
        t.say("And?")
        self.assertNotIn("think", fake.raw[-1].decode())

    def test_a_model_without_tools_that_reasons_is_left_its_chance(self) -> None:
        fake = self.fake(script_of(Reply(text="<think>hm</think>\n\nHello"), Reply(text="again")))
        t = self.talk(fake, tools="fence")
        t.say("Q?")
        t.say("And?")
        self.assertEqual(self.temperatures(fake), [0, None])


class ResponsesTalks(EachDialect, Base):
    dialect = "responses"

    def test_effort_is_said_as_configured(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        self.talk(fake, effort="low").say("Q?")
        self.assertEqual(fake.requests[0]["reasoning"], {"effort": "low"})

    def test_encrypted_reasoning_is_asked_for_and_nothing_is_stored(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        self.talk(fake).say("Q?")
        self.assertEqual((fake.requests[0]["store"], fake.requests[0]["include"]), (False, ["reasoning.encrypted_content"]))


class AnthropicTalks(EachDialect, Base):
    dialect = "anthropic"

    def counting(self, count: Callable[[dict], Reply], *replies: Reply) -> Counting:
        fake = Counting(script_of(*replies), count)
        self.addCleanup(fake.close)
        return fake

    def test_what_may_be_too_long_is_counted_and_not_sent_when_it_is(self) -> None:
        fake = self.counting(counted(21000), Reply(text="x"))
        got = self.talk(fake, context="20000", max_output="4000").say("word " * 9000)
        self.assertEqual((got["sys"], len(fake.counts), len(fake.requests), fake.faults), (errno.EMSGSIZE, 1, 0, []))
        self.assertIn("21000 tokens counted, 20000 fit", got["error"])

    def test_what_fits_is_sent_and_taught_by_its_usage_not_counted_again(self) -> None:
        fake = self.counting(counted(9100), Reply(text="x", usage=(9100, 0, 5)))
        talk = self.talk(fake, context="20000", max_output="4000")
        self.assertEqual([talk.say("word " * 9000)["text"], talk.say("And?")["text"]], ["x", "x"])
        self.assertEqual((len(fake.counts), len(fake.requests), fake.faults), (1, 2, []))
        self.assertEqual({b["max_tokens"] for b in fake.requests}, {4000})

    def test_the_ceiling_of_the_answer_is_lowered_to_what_is_left(self) -> None:
        fake = self.counting(counted(17936), Reply(text="x"))
        self.assertEqual(self.talk(fake, context="20000", max_output="4000").say("word " * 9000)["text"], "x")
        self.assertEqual(([b["max_tokens"] for b in fake.requests], fake.faults), ([2000], []))

    def test_short_talks_are_not_counted(self) -> None:
        fake = self.counting(counted(10), Reply(text="x"))
        self.assertEqual(self.talk(fake, context="20000", max_output="4000").say("Hello?")["text"], "x")
        self.assertEqual(fake.counts, [])

    def test_servers_that_do_not_count_are_asked_all_the_same(self) -> None:
        for reply in (Reply(status=404, error={"error": "no"}), Reply(status=500, error={"error": "no"}), Reply(body=b"<html>"), Reply(body=b'{"input_tokens":-5}'),
                      Reply(body=b'{"input_tokens":9e15}'), Reply(body=b"[]"), Reply(body=b""), Reply(body=b"x" * 100000), Reply(status=302, headers={"location": "http://127.0.0.1:1/"})):
            with self.subTest(reply=str(reply)[:80]):
                fake = self.counting(lambda body, reply=reply: reply, Reply(text="x", usage=(0, 0, 0)))
                talk = self.talk(fake, context="20000", max_output="4000")
                self.assertEqual([talk.say("word " * 9000)["text"], talk.say("And?")["text"]], ["x", "x"])
                self.assertLessEqual(len(fake.counts), 2)
                self.assertEqual((len(fake.requests), fake.faults), (2, []))

    def test_thinking_and_effort_are_said_as_configured_and_dropped_when_named(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        self.talk(fake, effort="low", thinking="on").say("Q?")
        self.assertEqual((fake.requests[0]["thinking"], fake.requests[0]["output_config"]), ({"type": "adaptive"}, {"effort": "low"}))
        fake = self.fake(script_of(Reply(text="x")), refuses=("thinking", "output_config"))
        self.assertEqual(self.talk(fake, effort="low", thinking="off").say("Q?")["text"], "x")
        self.assertEqual(len(fake.requests), 3)

    def test_less_room_for_the_answer_is_taken_when_the_server_names_it(self) -> None:
        def script(body: dict) -> Reply:
            if body["max_tokens"] > 2000:
                raise Refused("input length and `max_tokens` exceed context limit: 198000 + 4000 > 200000, decrease input length or `max_tokens` and try again")
            return Reply(text="good")

        fake = self.fake(script)
        t = self.talk(fake, max_output="4000")
        self.assertEqual(t.say("Q?")["text"], "good")
        self.assertEqual(fake.requests[1]["max_tokens"], 1936)
        t.say("Q?")
        self.assertEqual(fake.requests[2]["max_tokens"], 4000)  # the window was short that time, not the model

    def test_prefixes_are_marked_for_the_cache(self) -> None:
        fake = self.fake(work())
        t = self.talk(fake)
        for n in range(3):
            t.say(f"Q{n}?")
        for r in fake.requests:
            self.assertIn("cache_control", r["system"][-1])
            self.assertIn("cache_control", r["messages"][-1]["content"][-1])


class OllamaTalks(EachDialect, Base):
    dialect = "ollama"
    cached = 0  # it does not say

    test_a_refusal_without_reason_gets_one_plain_try = None  # nothing of a request is optional
    test_the_last_word_keeps_tools_but_forbids_them = None  # it can't: below

    def test_the_window_is_asked_for_and_results_name_their_tool(self) -> None:
        fake = self.fake(work())
        self.talk(fake, context="12000", max_output="500").say("Q?")
        self.assertEqual(fake.requests[0]["options"], {"num_ctx": 12000, "num_predict": 500})
        self.assertEqual(fake.requests[1]["messages"][-1]["tool_name"], "run_python")

    def test_thinking_is_said_as_configured_and_dropped_when_the_model_has_none(self) -> None:
        for settings, think in (({}, None), ({"thinking": "on"}, True), ({"thinking": "off"}, False), ({"effort": "high"}, "high"), ({"effort": "none"}, False)):
            with self.subTest(settings=settings):
                fake = self.fake(script_of(Reply(text="x", thinking="hm")))
                self.assertEqual(self.talk(fake, **settings).say("Q?")["text"], "x")
                self.assertEqual(fake.requests[0].get("think"), think)

        def script(body: dict) -> Reply:
            need("think" not in body, '"m" does not support thinking')
            return Reply(text="x")

        fake = self.fake(script)
        t = self.talk(fake, thinking="on")
        self.assertEqual(t.say("Q?")["text"], "x")
        self.assertEqual(t.say("Q?")["text"], "x")
        self.assertEqual(len(fake.requests), 3)
        t.close()
        self.assertIn("model_setting_refused", t.log)

    def test_tools_are_forbidden_by_leaving_them_out(self) -> None:
        fake = self.fake(script_of(Reply(text="x")))
        self.talk(fake).say("Q?", last=True)
        self.assertNotIn("tools", fake.requests[0])

    def test_a_front_that_was_dropped_is_noticed(self) -> None:
        fake = self.fake(script_of(Reply(text="x", usage=(9000, 0, 1))))
        fake.window = 1024
        t = self.talk(fake)
        t.say("word " * 8000)
        t.close()
        self.assertIn("model_lost_context", t.log)


if __name__ == "__main__":
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    unittest.main()
