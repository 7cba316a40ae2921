"""Strict servers of the three dialects on 127.0.0.1. They refuse what the real ones refuse, and answer by script.

A fake is given a function that is asked once a request: it gets the request's body and returns a Reply. Before that the fake has
checked headers and body; what is wrong is remembered in `faults` and answered with 400 in the dialect's own shape.
"""
import json
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-test-0123456789abcdef"


@dataclass
class Reply:
    """What the model says: words, then calls (name, arguments); or an error; or raw bytes of a body."""
    text: str = ""
    calls: list[tuple[str, dict]] = field(default_factory=list)
    thinking: str = ""
    status: int = 200
    error: dict | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    pause_s: float = 0  # between pieces
    cut_after: int = 0  # bytes of the body, then the connection ends
    usage: tuple[int, int, int] = (100, 64, 20)  # in, cached, out


class Refused(Exception):
    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.status = param, status


def need(ok: object, message: str, param: str | None = None) -> None:
    if not ok:
        raise Refused(message, param)


class Fake:
    """One server. Dialects override path, check() and the two ways to write an answer."""
    path = ""
    known: set[str] = set()
    takes_temperature = False  # where no tools are offered

    def __init__(self, script: Callable[[dict], Reply], refuses: tuple[str, ...] = (), key: str | None = KEY) -> None:
        self.script, self.refuses, self.key = script, refuses, key
        self.requests: list[dict] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        self.broken = 0  # connections that the client ended
        self.n = 0
        self.given: dict[str, dict] = {}  # id of a call -> what has to come back with it
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                outer.serve(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # ---- one request ----

    def serve(self, h: BaseHTTPRequestHandler) -> None:
        data = h.rfile.read(int(h.headers.get("content-length", 0)))
        try:
            body = self.accept(h, data)
            reply = self.script(body)
        except Refused as e:
            self.faults.append(str(e))
            reply = Reply(status=e.status, error=self.refusal(str(e), e.param))
        self.answer(h, reply, body if reply.status == 200 else {})

    def accept(self, h: BaseHTTPRequestHandler, data: bytes) -> dict:
        self.headers.append({k.lower(): v for k, v in h.headers.items()})
        self.raw.append(data)
        need(h.path == self.path, f"no such path: {h.path}")
        need(h.headers.get("content-type") == "application/json", "wrong content-type")
        self.check_key(h)
        body = json.loads(data.decode())
        self.requests.append(body)
        for name in self.refuses:
            need(name not in body, f"Unrecognized request argument supplied: {name}", name)
        for name in body:
            need(name in self.known, f"Unrecognized request argument supplied: {name}", name)
        for name in ("temperature", "top_p", "top_k", "seed", "presence_penalty"):
            plain = name == "temperature" and self.takes_temperature and "tools" not in body  # a model without tools
            need(name not in body or plain, f"Unsupported parameter: '{name}' is not supported with this model.", name)
        self.check(body)
        return body

    def check_key(self, h: BaseHTTPRequestHandler) -> None:
        if self.key and h.headers.get("authorization") != f"Bearer {self.key}":
            raise Refused(f"Incorrect API key provided: {h.headers.get('authorization')}", status=401)

    def answer(self, h: BaseHTTPRequestHandler, r: Reply, body: dict) -> None:
        stream = bool(body.get("stream"))
        self.n += 1
        data = r.body
        if data is None:
            data = json.dumps(r.error).encode() if r.error else self.stream(r, body) if stream else self.whole(r, body)
        kind = "text/event-stream" if stream and not r.error else "application/json"
        try:
            self.write(h, r, data, kind)
        except (BrokenPipeError, ConnectionResetError):
            self.broken += 1

    def write(self, h: BaseHTTPRequestHandler, r: Reply, data: bytes, kind: str) -> None:
        h.send_response(r.status)
        for k, v in {"content-type": kind, "content-length": str(len(data)), **r.headers}.items():
            h.send_header(k, v)
        h.end_headers()
        step = 7 if not r.pause_s else 200
        end = r.cut_after or len(data)
        for at in range(0, end, step):
            h.wfile.write(data[at : min(at + step, end)])
            if r.pause_s:
                h.wfile.flush()
                time.sleep(r.pause_s)
        if r.cut_after:
            h.close_connection = True

    def call_id(self, i: int) -> str:
        return f"call_{self.n}_{i}"

    # ---- the dialect ----

    def refusal(self, message: str, param: str | None) -> dict:
        return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}

    def check(self, body: dict) -> None:
        raise NotImplementedError

    def stream(self, r: Reply, body: dict) -> bytes:
        raise NotImplementedError

    def whole(self, r: Reply, body: dict) -> bytes:
        raise NotImplementedError


def not_blank(text: object, where: str) -> None:
    need(isinstance(text, str) and text.strip(), f"{where}: text must not be blank")


def pieces(text: str, n: int = 3) -> list[str]:
    return [text[i : i + n] for i in range(0, len(text), n)]


# ---- Chat Completions ----


class Chat(Fake):
    path = "/v1/chat/completions"
    takes_temperature = True
    known = {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "stop", "stream",
             "stream_options", "reasoning_effort", "prompt_cache_key", "temperature"}
    reasoning = ""  # a member that must come back beside calls (DeepSeek), and must not elsewhere

    def check(self, body: dict) -> None:
        need(not ("max_tokens" in body and "max_completion_tokens" in body), "both kinds of max tokens")
        need("stream_options" not in body or body.get("stream"), "stream_options needs stream", "stream_options")
        need("tools" in body or "tool_choice" not in body, "tool_choice needs tools", "tool_choice")
        messages = body["messages"]
        need(messages and messages[-1]["role"] in ("user", "tool"), "the last message must be of the user or a tool")
        open_ids: list[str] = []
        for i, m in enumerate(messages):
            role = m["role"]
            if role == "tool":
                need(open_ids and m["tool_call_id"] == open_ids[0], f"messages[{i}]: no call {m.get('tool_call_id')} waits for this result")
                open_ids.pop(0)
                not_blank(m["content"], f"messages[{i}]")
                continue
            need(not open_ids, f"messages[{i}]: results are missing for {open_ids}")
            need(role != "system" or i == 0, f"messages[{i}]: the system message must be the first")
            need(role in ("system", "developer", "user", "assistant"), f"messages[{i}]: unknown role {role}")
            need(role != "user" or i == 0 or messages[i - 1]["role"] != "user", f"messages[{i}]: roles must alternate")
            if role != "assistant" or not m.get("tool_calls"):
                not_blank(m["content"], f"messages[{i}]")
            if role == "assistant":
                open_ids = self.check_assistant(m, f"messages[{i}]")
        need(not open_ids, f"results are missing for {open_ids}")

    def check_assistant(self, m: dict, where: str) -> list[str]:
        need("reasoning_content" not in m or self.reasoning, f"{where}: reasoning_content: Extra inputs are not permitted")
        ids = []
        for c in m.get("tool_calls", []):
            need(c["type"] == "function" and isinstance(c["function"]["arguments"], str), f"{where}: malformed call")
            need(isinstance(json.loads(c["function"]["arguments"]), dict), f"{where}: arguments are no object")
            ids.append(c["id"])
            for key, value in self.given.get(c["id"], {}).items():
                need(c.get(key) == value, f"{where}: {key} of the call must be passed back")
        if ids and self.reasoning:
            need(m.get("reasoning_content") == self.reasoning, f"{where}: The reasoning_content in the thinking mode must be passed back to the API.")
        return ids

    def usage(self, r: Reply) -> dict:
        a, c, b = r.usage
        return {"prompt_tokens": a, "completion_tokens": b, "total_tokens": a + b, "prompt_tokens_details": {"cached_tokens": c}}

    def calls(self, r: Reply) -> list[dict]:
        out = []
        for i, (name, args) in enumerate(r.calls):
            extra = {"extra_content": {"google": {"thought_signature": f"SIG{self.n}.{i}"}}}
            self.given[self.call_id(i)] = extra
            out.append({"index": i, "id": self.call_id(i), "type": "function", "function": {"name": name, "arguments": json.dumps(args)}, **extra})
        return out

    def stream(self, r: Reply, body: dict) -> bytes:
        deltas: list[dict] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": p} for p in pieces(r.thinking)]
        deltas += [{"content": p} for p in pieces(r.text)]
        for c in self.calls(r):
            args = c["function"]["arguments"]
            deltas.append({"tool_calls": [c | {"function": {"name": c["function"]["name"], "arguments": ""}}]})
            deltas += [{"tool_calls": [{"index": c["index"], "function": {"arguments": p}}]} for p in pieces(args)]
        chunks = [{"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        chunks.append({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if r.calls else "stop"}]})
        if body.get("stream_options", {}).get("include_usage"):
            chunks.append({"id": "x", "choices": [], "usage": self.usage(r)})
        return "".join(f"data: {json.dumps(c, ensure_ascii=False)}\n\n" for c in chunks).encode() + b"data: [DONE]\n\n"

    def whole(self, r: Reply, body: dict) -> bytes:
        m: dict = {"role": "assistant", "content": r.text or None, "refusal": None}
        if r.thinking:
            m["reasoning_content"] = r.thinking
        if r.calls:
            m["tool_calls"] = self.calls(r)
        choice = {"index": 0, "message": m, "finish_reason": "tool_calls" if r.calls else "stop"}
        return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": self.usage(r)}).encode()


# ---- Responses ----


class Responses(Fake):
    path = "/v1/responses"
    known = {"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "include", "store", "stream",
             "prompt_cache_key", "reasoning"}

    def check(self, body: dict) -> None:
        need(body.get("store") is False, "nothing may be stored", "store")
        for t in body.get("tools", []):
            need(t["type"] == "function" and "parameters" in t, "tools[0]: parameters are required", "tools[0]")
        items = body["input"]
        need(items[-1]["type"] == "function_call_output" or items[-1].get("role") == "user", "the last item must be of the user or a result")
        open_ids: list[str] = []
        for i, x in enumerate(items):
            before = items[i - 1] if i else {}
            if x["type"] == "function_call_output":
                need(x["call_id"] in open_ids, f"input[{i}]: no call {x['call_id']} waits for this output")
                open_ids.remove(x["call_id"])
                not_blank(x["output"], f"input[{i}]")
            elif x["type"] == "reasoning":
                need(x.get("encrypted_content") == f"ENC-{x['id']}", f"input[{i}]: reasoning without its encrypted content")
                need(i + 1 < len(items) and items[i + 1].get("id"), f"Item '{x['id']}' of type 'reasoning' was provided without its required following item.")
            elif x["type"] == "function_call":
                need(isinstance(json.loads(x["arguments"]), dict), f"input[{i}]: arguments are no object")
                if x.get("id") in self.given:
                    need(self.given[x["id"]]["after"] in (before.get("id"), None), f"Item '{x['id']}' of type 'function_call' was provided without its required 'reasoning' item")
                open_ids.append(x["call_id"])
            else:
                need(x["type"] == "message", f"input[{i}]: unknown type {x['type']}")
                need(not open_ids, f"No tool output found for function call {open_ids}.")
                part = "output_text" if x["role"] == "assistant" else "input_text"
                for p in x["content"]:
                    need(p["type"] == part, f"input[{i}]: {p['type']} in a message of {x['role']}")
                    not_blank(p["text"], f"input[{i}]")
                if x.get("id"):
                    need(x.get("phase") == "final", f"input[{i}]: phase must be passed back")
        need(not open_ids, f"No tool output found for function call {open_ids}.")

    def items(self, r: Reply) -> list[dict]:
        out: list[dict] = []
        rid = f"rs_{self.n}"
        if r.thinking:
            out.append({"type": "reasoning", "id": rid, "summary": [{"type": "summary_text", "text": r.thinking}], "encrypted_content": f"ENC-{rid}"})
        if r.text:
            out.append({"type": "message", "id": f"msg_{self.n}", "role": "assistant", "status": "completed", "phase": "final",
                        "content": [{"type": "output_text", "text": r.text, "annotations": []}]})
        for i, (name, args) in enumerate(r.calls):
            self.given[f"fc_{self.n}_{i}"] = {"after": out[-1]["id"] if out else None}
            out.append({"type": "function_call", "id": f"fc_{self.n}_{i}", "call_id": self.call_id(i), "name": name,
                        "arguments": json.dumps(args), "status": "completed"})
        return out

    def response(self, r: Reply, output: list[dict]) -> dict:
        a, c, b = r.usage
        usage = {"input_tokens": a, "input_tokens_details": {"cached_tokens": c}, "output_tokens": b, "total_tokens": a + b}
        return {"id": "resp", "object": "response", "status": "completed", "error": None, "incomplete_details": None, "output": output, "usage": usage}

    def stream(self, r: Reply, body: dict) -> bytes:
        events: list[dict] = [{"type": "response.created", "response": {"status": "in_progress", "output": []}}]
        for i, x in enumerate(self.items(r)):
            bare = {k: v for k, v in x.items() if k != "encrypted_content"} | ({"arguments": ""} if x["type"] == "function_call" else {"content": []})
            events.append({"type": "response.output_item.added", "output_index": i, "item": bare})
            if x["type"] == "message":
                events += [{"type": "response.output_text.delta", "item_id": x["id"], "output_index": i, "content_index": 0, "delta": p} for p in pieces(r.text)]
            if x["type"] == "function_call":
                events += [{"type": "response.function_call_arguments.delta", "item_id": x["id"], "output_index": i, "delta": p} for p in pieces(x["arguments"])]
            events.append({"type": "response.output_item.done", "output_index": i, "item": x})
        events.append({"type": "response.completed", "response": self.response(r, [])})
        return "".join(f"event: {e['type']}\ndata: {json.dumps(e | {'sequence_number': n})}\n\n" for n, e in enumerate(events)).encode()

    def whole(self, r: Reply, body: dict) -> bytes:
        return json.dumps(self.response(r, self.items(r))).encode()


# ---- Anthropic Messages ----


class Anthropic(Fake):
    path = "/v1/messages"
    known = {"model", "max_tokens", "system", "messages", "tools", "tool_choice", "stream", "stop_sequences", "thinking", "output_config"}

    def check_key(self, h: BaseHTTPRequestHandler) -> None:
        need(h.headers.get("anthropic-version") == "2023-06-01", "anthropic-version: header is required")
        if self.key and h.headers.get("x-api-key") != self.key:
            raise Refused("invalid x-api-key", status=401)

    def refusal(self, message: str, param: str | None) -> dict:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"}

    def check(self, body: dict) -> None:
        need(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        marks = json.dumps(body).count('"cache_control"')
        need(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
        messages = body["messages"]
        need(messages[0]["role"] == "user", "messages: first message must use the user role")
        need(messages[-1]["role"] == "user", "This model does not support assistant message prefill.")
        waiting: list[str] = []
        for i, m in enumerate(messages):
            need(i == 0 or messages[i - 1]["role"] != m["role"], f"messages.{i}: roles must alternate")
            blocks = m["content"]
            need(blocks, f"messages.{i}: content must not be empty")
            for b in blocks:
                if b["type"] == "text":
                    not_blank(b["text"], f"messages.{i}: text content blocks must be non-empty")
            if m["role"] == "user":
                results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
                need(results == waiting, f"messages.{i}: `tool_use` ids {waiting} need `tool_result` blocks immediately after, found {results}")
                need([b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results), f"messages.{i}: results come first")
                waiting = []
            else:
                waiting = self.check_assistant(blocks, f"messages.{i}")

    def check_assistant(self, blocks: list[dict], where: str) -> list[str]:
        uses = [b for b in blocks if b["type"] == "tool_use"]
        need(blocks[len(blocks) - len(uses) :] == uses, f"{where}: tool_use must be at the end")
        for u in uses:
            need(isinstance(u["input"], dict), f"{where}: input is no object")
            thinking = self.given.get(u["id"], {}).get("thinking")
            need(not thinking or blocks[0] == thinking, f"{where}: `thinking` blocks in the latest assistant message cannot be modified")
        return [u["id"] for u in uses]

    def blocks(self, r: Reply) -> list[dict]:
        out: list[dict] = []
        if r.thinking:
            out.append({"type": "thinking", "thinking": r.thinking, "signature": f"SIG{self.n}"})
        if r.text:
            out.append({"type": "text", "text": r.text})
        for i, (name, args) in enumerate(r.calls):
            self.given[self.call_id(i)] = {"thinking": out[0] if r.thinking else None}
            out.append({"type": "tool_use", "id": self.call_id(i), "name": name, "input": args})
        return out

    def usage(self, r: Reply) -> dict:
        a, c, _ = r.usage
        return {"input_tokens": a - c, "cache_creation_input_tokens": 0, "cache_read_input_tokens": c, "output_tokens": 1}

    def stream(self, r: Reply, body: dict) -> bytes:
        events: list[dict] = [{"type": "message_start", "message": {"role": "assistant", "content": [], "usage": self.usage(r)}}, {"type": "ping"}]
        for i, b in enumerate(self.blocks(r)):
            empty = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}[b["type"]]
            events.append({"type": "content_block_start", "index": i, "content_block": b | empty})
            if b["type"] == "thinking":
                deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(b["thinking"])] + [{"type": "signature_delta", "signature": b["signature"]}]
            elif b["type"] == "text":
                deltas = [{"type": "text_delta", "text": p} for p in pieces(b["text"])]
            else:
                deltas = [{"type": "input_json_delta", "partial_json": p} for p in ["", *pieces(json.dumps(b["input"]))]]
            events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
            events.append({"type": "content_block_stop", "index": i})
        reason = "tool_use" if r.calls else "end_turn"
        events += [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": r.usage[2]}}, {"type": "message_stop"}]
        return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()

    def whole(self, r: Reply, body: dict) -> bytes:
        usage = self.usage(r) | {"output_tokens": r.usage[2]}
        return json.dumps({"type": "message", "role": "assistant", "content": self.blocks(r), "stop_reason": "tool_use" if r.calls else "end_turn", "usage": usage}).encode()


# ---- Ollama ----


class Ollama(Fake):
    path = "/api/chat"
    known = {"model", "messages", "tools", "stream", "think", "options"}
    window = 0  # num_ctx that it grants at most, 0: what is asked for; longer talks lose their front without a word

    @property
    def url(self) -> str:
        return super().url.removesuffix("/v1")

    def refusal(self, message: str, param: str | None) -> dict:
        return {"error": message}

    def check(self, body: dict) -> None:
        need(isinstance(body.get("stream"), bool), "stream must be said")
        need("temperature" not in body["options"] or "tools" not in body, "invalid option 'temperature'")
        need(set(body["options"]) <= {"num_ctx", "num_predict", "stop", "temperature"} and body["options"].get("num_ctx", 0) >= 1024, "options: num_ctx is needed")
        need(body.get("think", True) in (True, False, "low", "medium", "high"), f"invalid think value: {body.get('think')}")
        waiting: list[str] = []
        for i, m in enumerate(body["messages"]):
            need(m["role"] in ("system", "user", "assistant", "tool") and isinstance(m["content"], str), f"messages[{i}]: malformed")
            if m["role"] == "tool":
                need(waiting and m["tool_name"] == waiting.pop(0), f"messages[{i}]: no call of {m.get('tool_name')} waits for this result")
                not_blank(m["content"], f"messages[{i}]")
                continue
            need(not waiting, f"messages[{i}]: results are missing for {waiting}")
            for c in m.get("tool_calls", []):
                need(set(c) == {"function"} and isinstance(c["function"]["arguments"], dict), f"messages[{i}]: arguments must be an object")
                waiting.append(c["function"]["name"])
        need(not waiting, f"results are missing for {waiting}")

    def pieces_of(self, r: Reply, body: dict) -> list[dict]:
        out: list[dict] = [{"thinking": p, "content": ""} for p in pieces(r.thinking)] + [{"content": p} for p in pieces(r.text)]
        out += [{"content": "", "tool_calls": [{"function": {"name": n, "arguments": a}}]} for n, a in r.calls]
        return out

    def end(self, r: Reply, body: dict) -> dict:
        a, _, b = r.usage
        if self.window:
            a = min(a, self.window)
        return {"done": True, "done_reason": "stop", "total_duration": 1, "prompt_eval_count": a, "eval_count": b}

    def stream(self, r: Reply, body: dict) -> bytes:
        lines = [{"model": "m", "message": {"role": "assistant", **p}, "done": False} for p in self.pieces_of(r, body)]
        lines.append({"model": "m", "message": {"role": "assistant", "content": ""}} | self.end(r, body))
        return "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines).encode()

    def whole(self, r: Reply, body: dict) -> bytes:
        m = {"role": "assistant", "content": r.text, "thinking": r.thinking, "tool_calls": [{"function": {"name": n, "arguments": a}} for n, a in r.calls]}
        return json.dumps({"model": "m", "message": {k: v for k, v in m.items() if v or k == "content"} | {"role": "assistant"}} | self.end(r, body)).encode()


# ---- the other end ----

DIALECTS: dict[str, type[Fake]] = {"chat": Chat, "responses": Responses, "anthropic": Anthropic, "ollama": Ollama}
SOURCES = ["src/base/*.c", "src/io/loop.c", "src/io/http.c", "src/io/http_*.c", "src/model/sse.c", "src/model/wire*.c", "src/model/openai_*.c", "src/model/anthropic.c", "src/model/ollama.c",
           "src/model/fence.c", "src/model/provider*.c", "src/core/prompt/transcript.c", "tests/providers/talk.c"]


def build_talk() -> Path:
    """The driver, with sanitizers; built anew only when a source is newer."""
    out = ROOT / "build/providers/talk"
    sources = [p for pattern in SOURCES for p in sorted(ROOT.glob(pattern))]
    headers = [*ROOT.glob("include/*.h"), *ROOT.glob("src/*/*.h")]
    if out.exists() and all(p.stat().st_mtime < out.stat().st_mtime for p in [*sources, *headers]):
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libcurl", "libcjson", "libutf8proc", "libcrypto"], stdout=subprocess.PIPE, text=True, check=True)
    new = out.with_suffix(".new")
    subprocess.run([shutil.which("cc") or "gcc", "-std=c17", "-D_GNU_SOURCE", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
                    "-Iinclude", "-Isrc/core/prompt", "-o", str(new), *map(str, sources), *flags.stdout.split(), "-lm"], cwd=ROOT, check=True)
    new.rename(out)
    return out


class Talk:
    """A conversation of the driver with a fake."""

    def __init__(self, dialect: str, url: str, key_file: Path | None = None, **settings: str) -> None:
        words = [f"{k}={v}" for k, v in ({"url": url, "name": "m", "key_file": str(key_file or "")} | settings).items()]
        self.p = subprocess.Popen([str(build_talk()), dialect, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.log = ""

    def send(self, **line: object) -> dict:
        assert self.p.stdin and self.p.stdout
        self.p.stdin.write(json.dumps(line) + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline()
        if not answer:
            raise AssertionError(f"the driver ended: {self.p.stderr.read() if self.p.stderr else ''}")
        return json.loads(answer)

    def say(self, text: str, **more: object) -> dict:
        return self.send(say=text, **more)

    def close(self) -> int:
        _, self.log = self.p.communicate(timeout=30)
        return self.p.returncode
