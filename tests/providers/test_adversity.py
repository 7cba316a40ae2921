"""Servers and models that misbehave, through the program, its agent and its box: each ends in a sentence after the number of requests that it
should take, and the conversation goes on from a history that a strict server takes."""
import gzip
import json
import threading
import unittest
from pathlib import Path
from typing import Callable

from fakes import KEY, Chat, Reply
from service import Case, code, last_of, talk_of

HI = Reply(text="Hello.", usage=(0, 0, 0))  # without usage: a long conversation is not taken for one that was cut


def sse(*events: dict, end: str = "data: [DONE]\n\n") -> bytes:
    return "".join(f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events).encode() + end.encode()


def delta(finish: str | None = None, **members: object) -> dict:
    return {"id": "x", "choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def call(name: str | None, arguments: object, finish: str = "tool_calls", **more: object) -> Reply:
    return Reply(body=sse(delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}} | more]), delta(finish)))


def said(text: str) -> Reply:
    return Reply(text=text, usage=(0, 0, 0))


def script_of(*replies: Reply) -> Callable[[dict], Reply]:
    """In order; the last one again and again. A word with tools forbidden is always given."""
    left = list(replies)

    def script(body: dict) -> Reply:
        if body.get("tool_choice") == "none":
            return said("That is all I know.")
        return left.pop(0) if len(left) > 1 else left[0]

    return script


class Adversity(Case):
    """One service for all cases of a test; each is a question of its own in the same conversation."""

    def serve(self, *options: str) -> None:
        self.server = self.fake("chat", script_of(HI))
        self.service = self.start(self.server, *options)
        self.asked = 0

    def try_out(self, what: str, requests: int, *replies: Reply, answer: str | None = None, last: bool = False) -> str:
        """Asks once; the answer. requests: how many it takes; last: the last of them forbids tools."""
        self.asked += 1
        before = len(self.server.requests)
        self.server.script = script_of(*replies)
        got = self.say(self.service, str(self.asked), f"Question {self.asked} about {what}.")
        with self.subTest(what):
            self.assertTrue(got, (self.folder / "log").read_text()[-2000:])
            self.assertEqual(len(self.server.requests) - before, requests, got)
            self.assertEqual(self.server.requests[-1].get("tool_choice") == "none", last)
            if answer is not None:
                self.assertEqual(got, answer)
            self.assertNotIn(KEY, got or "")
        return got or ""

    def close_up(self) -> None:
        """The conversation still works, and nothing in it was ever refused."""
        self.try_out("the end", 1, HI, answer="Hello.")
        self.assertEqual(self.server.faults, [])
        assert self.service.stdin
        self.service.stdin.close()
        self.assertEqual(self.service.wait(60), 0)

    def test_models_that_go_in_circles(self) -> None:
        self.serve()
        done = "That is all I know."
        self.try_out("always a division by zero", 4, Reply(calls=[code("1/0")]), answer=done, last=True)
        self.try_out("always the same program that works", 4, Reply(calls=[code("print(1)")]), answer=done, last=True)
        self.try_out("always another error", 4, *(Reply(calls=[code(f"raise ValueError({i})")]) for i in range(9)), answer=done, last=True)
        self.try_out("always a program that works", 16, *(Reply(calls=[code(f"print({i})")]) for i in range(30)), answer=done, last=True)
        self.try_out("bare code as arguments", 2, call("python", "print(6*7)"), Reply(text="It is 42."), answer="It is 42.")
        self.assertIn('{"code":"print(6*7)"}', self.server.requests[-1]["messages"][-2]["tool_calls"][0]["function"]["arguments"])
        cut = call("run_python", '{"code":"import os\\nprint(', finish="length")
        self.try_out("a call that is cut twice", 3, cut, cut, cut, answer=done, last=True)
        self.try_out("a call that is cut and called whole", 3, call("run_python", '{"code":"print('), answer=done, last=True)
        self.try_out("nothing at all", 3, Reply(text=""), answer=done, last=True)
        self.try_out("an open thought", 3, Reply(text="<think>I wonder " * 40), answer=done, last=True)
        self.try_out("tools of another house", 3, Reply(calls=[("web_search", {"q": "x"})]), answer=done, last=True)
        self.try_out("a call without a name", 3, call(None, '{"x":1}'), answer=done, last=True)
        self.try_out("JavaScript", 3, Reply(calls=[("run_python", {"language": "javascript", "code": "console.log(1)"})]), answer=done, last=True)
        self.try_out("a shell", 2, Reply(calls=[("bash", {"command": "echo $((6*7))"})]), Reply(text="It is 42."), answer="It is 42.")
        self.try_out("an invented path", 2, Reply(calls=[code("import pandas as pd\npd.read_csv('/mnt/data/data.csv')")]), Reply(text="There is no such file."))
        self.assertIn("FileNotFoundError", last_of(self.server.requests[-1]))
        self.close_up()

    def test_answers_in_odd_shapes(self) -> None:
        self.serve()
        both = [{"index": 0, "id": "same", "type": "function", "function": {"name": "run_python", "arguments": json.dumps({"code": f"print({i})"})}} for i in (1, 2)]
        self.try_out("two calls with one id", 2, Reply(body=sse(delta(tool_calls=both[:1]), delta(tool_calls=[both[1] | {"index": 1}]), delta("tool_calls"))), HI)
        ids = [c["id"] for m in self.server.requests[-1]["messages"] for c in m.get("tool_calls", [])]
        self.assertEqual(len(ids), len(set(ids)))
        text = "Grüße, 你好 😱"
        self.try_out("text cut within characters", 1, Reply(body=sse(delta(content=text), delta("stop"))), answer=text)
        self.try_out("bytes that are no UTF-8", 1, Reply(body=sse(delta(content="a")).replace(b'"a"', b'"a\xff\xfeb"')), answer="a��b")
        self.try_out("another language", 1, Reply(text="Bonjour tout le monde."), answer="Bonjour tout le monde.")
        self.try_out("content as parts", 1, Reply(body=sse(delta(content=[{"type": "text", "text": "He"}, {"type": "text", "text": "llo."}]), delta("stop"))), answer="Hello.")
        nothing = {k: None for k in ("role", "refusal", "tool_calls", "function_call", "reasoning_content", "audio")}
        nulls = {"id": None, "object": None, "usage": None, "error": None, "choices": [{"index": None, "finish_reason": None, "logprobs": None, "delta": nothing | {"content": "Hello."}}]}
        self.try_out("nulls everywhere", 1, Reply(body=sse(nulls, delta("stop"))), answer="Hello.")
        self.try_out("no usage", 1, Reply(body=sse(delta(content="Hello."), delta("stop"))), answer="Hello.")
        self.try_out("a reason for calls that are not there", 1, Reply(body=sse(delta(content="Hello."), delta("tool_calls"))), answer="Hello.")
        self.try_out("no reason and no mark at the end", 1, Reply(body=sse(delta(content="Hello."), delta("stop"), end="")), answer="Hello.")
        packed = gzip.compress(sse(delta(content="Hello."), delta("stop")))
        self.try_out("comments and blank events", 1, Reply(body=b": ping\n\n" * 50 + b"event: x\n\n" + sse(delta(content="Hello."), delta("stop"))), answer="Hello.")
        self.try_out("a call written out", 2, Reply(text='{"name":"run_python","arguments":{"code":"print(6*7)"}}'), Reply(text="It is 42."), answer="It is 42.")
        self.try_out("an answer that nobody asked to be packed", 1, Reply(body=packed, headers={"content-encoding": "gzip"}), answer="Hello.")
        got = self.try_out("an answer that is packed and does not say so", 3, Reply(body=packed))
        self.assertNotIn("\x1f", got)
        self.close_up()

    def ask_of_data(self, text: str, requests: int, *replies: Reply, files: tuple[Path, ...] = ()) -> str:
        self.asked += 1
        before = len(self.server.requests)
        self.server.script = script_of(*replies)
        got = self.say(self.service, str(self.asked), text, *files) or ""
        self.assertEqual(len(self.server.requests) - before, requests, f"{text}: {got}")
        return got

    def test_models_that_make_things_up(self) -> None:
        """What is not computed is asked about, and marked when it stays; what is put right is given as it is."""
        a, b = self.folder / "fares.csv", self.folder / "costs.csv"
        a.write_text("x,day\n20,Mon\n30,Tue\n45,Mon\n" + "".join(f"{n},Wed\n" for n in range(200, 260)))
        b.write_text("y\n70\n80\n")
        self.serve()
        mean = Reply(calls=[code("import pandas as pd\ndf = pd.read_csv('fares.csv')\nprint(df.x.mean())")])
        read = Reply(text="The mean is 220.08.", usage=(0, 0, 0))  # of 63 rows
        typed = Reply(calls=[code("import pandas as pd\nt = pd.DataFrame({'x': [25, 26]})\nprint(t.x.mean())")])
        got = self.ask_of_data("What is the mean of x?", 4, typed, said("The mean is 25.5."), mean, read, files=(a, b))
        self.assertEqual(got, "The mean is 220.08.")
        self.assertIn("has read a file", last_of(self.server.requests[-2]))
        stated = Reply(calls=[code("print('The mean is 42.5')")])
        got = self.ask_of_data("And the mean of x on Mon?", 3, stated, said("The mean is 42.5."), said("The mean is 42.5."))
        self.assertIn("Not supported by any output: 42.5", got)
        self.assertEqual(self.ask_of_data("And the mean of x in all?", 4, stated, said("The mean is 42.5."), mean, read), "The mean is 220.08.")
        hidden = Reply(calls=[code("try:\n    print(df['nothing'].mean())\nexcept Exception:\n    pass")])
        got = self.ask_of_data("The mean of the other column?", 3, hidden, said("The mean is 61.7."), said("As computed above, it is 61.7."))
        self.assertIn("Not supported by any output: 61.7", got)
        block = said("Output:\n```\n77.7\n```\nThe largest is 77.7.")
        got = self.ask_of_data("What is the largest x on Tue?", 3, block)
        self.assertIn("Not supported by any output: 77.7", got)
        self.assertEqual(self.ask_of_data("What is the mean of x now?", 3, said("As computed above, the mean is 97.3."), mean, read), "The mean is 220.08.")
        other = Reply(calls=[code("print(pd.read_csv('costs.csv').y.mean())")])
        got = self.ask_of_data("What is the mean in fares.csv?", 4, other, said("The mean is 75."), mean, read)
        self.assertEqual(got, "The mean is 220.08.")
        self.assertIn("your programs read costs.csv", last_of(self.server.requests[-2]))
        got = self.ask_of_data("Draw the mean of x by day", 3, mean, said("Here is the bar chart; the chart shows the means."))
        self.assertIn("No chart was made", got)
        got = self.ask_of_data("Save the means to a file", 3, mean, said("I saved them as means.xlsx."))
        self.assertIn("There is no file `means.xlsx`", got)
        got = self.ask_of_data("What is the mean of x, once more?", 3, mean, said("What is the mean of x, once more?"), read)
        self.assertEqual(got, "The mean is 220.08.")
        chinese = said("文件中这一列的平均值是二百二十，所有的行都计算在内，没有缺失的值。")
        got = self.ask_of_data("What is the mean of x, in words?", 3, mean, chinese, read)
        self.assertEqual(got, "The mean is 220.08.")
        bad = "![c](data:image/png;base64,AAAA)[t](sandbox:/mnt/data/out/t.csv) <file:///mnt/data/fares.csv> <img src=x> @room <!here> \u202e@\u2060channel"
        got = self.ask_of_data("hello", 1, said(bad))
        for part in ("data:image", "sandbox:", "file:", "<img", "@room", "<!here", "\u202e", "@channel"):
            self.assertNotIn(part, got)
        got = self.ask_of_data("Why is the mean so high?", 1, said("Because of the days at the end."))
        self.assertEqual(got, "Because of the days at the end.")
        self.close_up()

    def test_streams_written_in_odd_ways(self) -> None:
        self.serve()
        hello = sse(delta(content="He"), delta(content="llo."), delta("stop"))
        chunk = json.dumps(delta(content="Hello."))
        half = len(chunk) // 2
        whole = {"id": "x", "object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}
        another = {"message": {"role": "assistant", "content": "Another."}, "finish_reason": "stop"}
        for what, body in {
            "a mark of byte order": b"\xef\xbb\xbf" + hello,
            "line ends of three kinds": hello.replace(b"\n\n", b"\r\n\r\n", 1).replace(b"\n\n", b"\r\r", 1),
            "no blank behind the colon": hello.replace(b"data: ", b"data:"),
            "fields that nobody knows": b"retry: 10\nid: 7\nfoo: bar\nevent: message\n" + hello,
            "an event in two lines of data": f"data: {chunk[:half]}\ndata: {chunk[half:]}\n\n".encode() + sse(delta("stop")),
            "a reason that nobody knows": sse(delta(content="Hello."), delta("because")),
            "the probabilities of each word": sse({"choices": [{"index": 0, "delta": {"content": "Hello."}, "logprobs": {"content": [{"token": "Hello.", "logprob": -0.1}]}, "finish_reason": "stop"}]}),
            "two choices at once": sse({"choices": [{"index": 1, "delta": {"content": "Another."}}, {"index": 0, "delta": {"content": "Hello."}}]}, delta("stop")),
            "choices that are no list": sse({"choices": {}}, {"choices": None}, delta(content="Hello."), delta("stop")),
            "a whole body in place of a stream": json.dumps(whole).encode(),
            "a whole body with two answers": json.dumps(whole | {"choices": [whole["choices"][0], another]}).encode(),
            "usage that is none": sse(delta(content="Hello."), delta("stop"), {"choices": [], "usage": {"prompt_tokens": -9e15, "completion_tokens": "many", "prompt_tokens_details": []}}),
            "usage beyond all windows": sse(delta(content="Hello."), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 9e15, "completion_tokens": 9e15, "prompt_tokens_details": {"cached_tokens": 9e15}}}),
            "words behind the end": hello + b"data: {not json at all\n\n",
        }.items():
            self.try_out(what, 1, Reply(body=body), answer="Hello.")
        self.try_out("a stream that is called a page", 1, Reply(body=hello, headers={"content-type": "text/html"}), answer="Hello.")
        self.try_out("words and a call in one", 2, Reply(text="Let me see.", calls=[code("print(6*7)")]), Reply(text="It is 42."), answer="It is 42.")
        self.try_out("a refusal in its own member", 1, Reply(body=sse(delta(refusal="I cannot help with that."), delta("stop"))), answer="I cannot help with that.")
        self.try_out("a filter's end", 1, Reply(body=sse(delta("content_filter"))))
        self.try_out("thoughts only", 3, Reply(body=sse(delta(reasoning_content="Hm."), delta("stop"))), answer="That is all I know.", last=True)
        self.try_out("thoughts, then well", 2, Reply(body=sse(delta(reasoning_content="Hm."), delta("stop"))), HI, answer="Hello.")
        self.try_out("the end and nothing before it", 3, Reply(body=sse()))
        self.close_up()

    def test_arguments_of_every_kind(self) -> None:
        self.serve()
        done = "That is all I know."
        for what, args in {"a list": '["print(1)"]', "a number": "42", "null": "null", "another member": '{"url":"http://127.0.0.1/"}', "two objects": '{"code":"print(1)"}{"code":"print(2)"}'}.items():
            self.try_out(what, 3, call("run_python", args), answer=done, last=True)
        for what, args in {"a list that is no JSON for its depth": "[" * 3000 + "]" * 3000, "lines of code": '{"code":["print(1)"]}'}.items():
            self.try_out(what, 4, call("run_python", args), answer=done, last=True)  # read as a program, three times the same
        self.try_out("text within text", 2, call("run_python", json.dumps(json.dumps({"code": "print(6*7)"}))), said("It is 42."), answer="It is 42.")
        self.try_out("an object", 2, call("run_python", {"code": "print(6*7)"}), said("It is 42."), answer="It is 42.")
        self.try_out("a name of another tool", 2, call("list_files", '{"code":"print(6*7)"}'), said("There are none."), answer="There are none.")
        self.try_out("cells that there are not", 2, call("read_more", '{"cell":-1,"offset":9e18}'), said("There are none."), answer="There are none.")
        self.try_out("an hour that there is not", 2, call("current_time", '{"utc_offset_minutes":"later"}'), said("It is late."), answer="It is late.")
        self.close_up()

    def test_refusals_in_many_words(self) -> None:
        self.serve()
        elsewhere = self.fake("chat", script_of(HI))

        def no(http: int, message: str, headers: dict[str, str] | None = None, **more: object) -> Reply:
            return Reply(status=http, error={"error": {"message": message} | more}, headers=headers or {})

        gone = ((401, "Incorrect API key provided"), (403, "Country not supported"), (404, "The model `m` does not exist"), (410, "The model m has been retired"), (400, "m is not a valid model ID"),
                (402, "Insufficient Balance"), (403, "quota", "insufficient_user_quota"), (429, "You exceeded your current quota", "insufficient_quota"), (429, "您的账户余额不足，请充值", "1113"))
        for status, message, *coded in gone:
            self.try_out(message, 1, no(status, message, code=coded[0] if coded else None), answer=None)
        self.try_out("a wall of a web server", 1, Reply(status=403, body=b"<html><head><title>Attention Required!</title></head></html>", headers={"content-type": "text/html"}))
        self.try_out("another host", 1, Reply(status=307, body=b"", headers={"location": elsewhere.url + "/chat/completions"}))
        self.assertEqual(elsewhere.requests, [])
        for wait in ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT", "retry-after-ms": "10"}, {"retry-after-ms": "10.5"}, {"retry-after": "0.01"}):
            self.try_out(f"too many requests, {wait}", 2, no(429, "Rate limit reached", wait), HI, answer="Hello.")
        self.try_out("too many requests, in words", 2, no(429, "Rate limit reached. Please try again in 20ms."), HI, answer="Hello.")
        self.try_out("a minute's quota", 2, no(429, "You exceeded your current quota, please check your plan. Please retry in 0.02s.", code=429, status="RESOURCE_EXHAUSTED"), HI, answer="Hello.")
        self.try_out("a try that is of no use", 1, no(500, "no", {"x-should-retry": "false"}))
        self.try_out("a failed server, then well", 2, Reply(status=502, body=b"<html>Bad Gateway</html>"), HI, answer="Hello.")
        self.try_out("a body that is said to be longer", 2, Reply(body=b"data: ", headers={"content-length": "900"}, cut_after=6), HI, answer="Hello.")
        self.try_out("headers without end", 2, Reply(text="x", headers={"x-huge": "y" * 400000}), HI, answer="Hello.")
        for message in ("输入长度超过限制", "Range of input length should be [1, 30720]", "Die Eingabe ist zu lang", "Request too large for m on tokens per min (TPM): Limit 30000, Requested 31000"):
            self.try_out(message, 3, no(429 if "TPM" in message else 400, message), HI, answer="Hello.")  # one of them for notes
        self.close_up()

    def test_a_call_of_half_a_megabyte_is_run(self) -> None:
        big = "x = '" + "y" * (1 << 19) + "'\nprint(len(x))"
        left = [call("run_python", json.dumps({"code": big})), Reply(text="524288 characters.", usage=(200000, 0, 20))]
        server = self.fake("chat", lambda body: left.pop(0))
        a = self.ask(server, "chat", "How long is it?", context="2000000")
        self.assertEqual((a["answer"], a["cells"][0]["stdout"], server.faults), ("524288 characters.", "524288\n", []))

    def test_servers_that_fail(self) -> None:
        self.serve()
        error = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
        soon = {"retry-after-ms": "20"}
        self.try_out("429, then well", 2, Reply(status=429, headers=soon, error=error), HI, answer="Hello.")
        self.try_out("529 for ever", 3, Reply(status=529, headers=soon, error=error))
        self.try_out("death in the middle", 2, Reply(text="x" * 900, cut_after=700), HI, answer="Hello.")
        self.try_out("a web page", 1, Reply(body=b"<!DOCTYPE html><html><body>Welcome</body></html>"))
        self.try_out("only comments", 2, Reply(body=b": keep-alive\n\n" * 20), HI, answer="Hello.")
        self.try_out("an error within the answer", 2, Reply(body=sse(delta(content="He"), {"error": {"message": "boom", "code": 502}})), HI, answer="Hello.")
        self.try_out("garbage called gzip", 2, Reply(body=b"\x1f\x8b garbage", headers={"content-encoding": "gzip"}), HI, answer="Hello.")
        self.try_out("no body", 2, Reply(body=b""), HI, answer="Hello.")
        self.try_out("a body that is null", 2, Reply(body=b"null"), HI, answer="Hello.")
        many = [{"index": i, "id": f"c{i}", "type": "function", "function": {"name": "run_python", "arguments": "{}"}} for i in range(400)]
        self.try_out("four hundred calls", 2, Reply(body=sse(delta(tool_calls=many), delta("tool_calls"))), HI, answer="Hello.")
        self.try_out("no money", 1, Reply(status=402, error={"error": {"message": "Insufficient credits"}}))
        long = Reply(status=400, error={"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 20000 tokens. However, your request has 26000 input tokens."}})
        self.try_out("too long, then well", 3, long, HI, answer="Hello.")  # one of them for notes
        self.assertIn("longer than the model can read", self.try_out("always too long", 3, long))
        self.close_up()

    def test_a_stream_without_an_end_is_left_when_time_is_up(self) -> None:
        stop = threading.Event()
        self.addCleanup(stop.set)

        class Endless(Chat):
            def write(self, h, r, data, kind):  # type: ignore[no-untyped-def]
                if r.text != "endless":
                    super().write(h, r, data, kind)
                    return
                h.send_response(200)
                h.send_header("content-type", "text/event-stream")
                h.end_headers()
                while not stop.wait(0.02):
                    h.wfile.write(b": still here\n\n")
                    h.wfile.flush()

        server = Endless(script_of(Reply(text="endless")))
        self.addCleanup(server.close)
        a = self.ask(server, "chat", "What is it?", "--set", "agent.turn_timeout=2s", "--set", "box.cell_timeout=1s")
        self.assertEqual((a["answer"], len(server.requests)), ("That is all I know.", 2))
        self.assertIn("(2 s) is used up", talk_of(server.requests[-1]))


if __name__ == "__main__":
    unittest.main()
