"""Streams: messages that grow, and that Slack ends when it likes."""
import json
import re

from .limits import Refusal, check_chunks
from .people import People


class Streams(People):
    """A stream is a message with `_stream`, its tasks by id; `stream_ends` more appends and it is over."""

    def steps(self, args: dict) -> dict[str, dict]:
        chunks = json.loads(args["chunks"]) if isinstance(args.get("chunks"), str) else args.get("chunks") or []
        if chunks:
            check_chunks(chunks)
        return {c["id"]: c for c in chunks if c["type"] == "task_update"}

    def words(self, args: dict, before: str = "") -> str:
        """What the stream says with these; Slack puts pieces together, and mentions whom the whole mentions."""
        chunks = json.loads(args["chunks"]) if isinstance(args.get("chunks"), str) else args.get("chunks") or []
        whole = before + "".join(c["text"] for c in chunks if c["type"] == "markdown_text") + args.get("markdown_text", "")
        if len(whole) > 12000:
            self.complain("a stream of more than 12,000 characters")
        for token in re.findall(r"<[!@#]|@(?:here|channel|everyone)", whole):
            self.complain(f"a live token in a stream: {token}")
        return whole

    def streaming(self, args: dict) -> dict:
        m = self.find(self.place(args), args["ts"])
        if not m:
            raise Refusal("message_not_found")
        if "_stream" not in m or m.get("_over"):
            raise Refusal("message_not_in_streaming_state")
        return m

    def do_chat_startStream(self, args: dict, who: dict) -> dict:
        channel, steps = self.place(args), self.steps(args)
        if self.no_agent:
            raise Refusal("feature_not_enabled")
        if self.channels[channel] != "im" and not (args.get("recipient_user_id") and args.get("recipient_team_id")):
            raise Refusal("missing_recipient_user_id")
        if not self.find(channel, args["thread_ts"]):
            raise Refusal("thread_not_found")
        m = {"type": "message", "user": who["user"], "bot_id": who["bot"], "app_id": "AAPP", "text": "", "ts": self.ts(), "thread_ts": args["thread_ts"], "_stream": steps, "_words": self.words(args)}
        self.messages.setdefault(channel, []).append(m)
        self.streamed.append(m)
        return {"channel": channel, "ts": m["ts"]}

    def do_chat_appendStream(self, args: dict, _: dict) -> dict:
        m = self.streaming(args)
        if self.stream_ends is not None:
            self.stream_ends -= 1
            m["_over"] = self.stream_ends < 0
        self.streaming(args)["_stream"] |= self.steps(args)
        m["_words"] = self.words(args, m["_words"])
        return {"channel": args["channel"], "ts": m["ts"]}

    def do_chat_stopStream(self, args: dict, _: dict) -> dict:
        m = self.streaming(args)
        m["_stream"] |= self.steps(args)
        m["_words"] = self.words(args, m["_words"])
        m["_over"] = True
        return {"channel": args["channel"], "ts": m["ts"], "message": {"ts": m["ts"]}}
