"""The Web API but for files: strict about names, scopes, tokens and sizes."""
import json
import re
import secrets

from .limits import COMMON, METHODS, NEEDS, Refusal, check_blocks
from .streams import Streams


class Web(Streams):
    """One method of Slack's is one method here."""

    def api(self, method: str, args: dict, token: str | None, as_json: bool) -> dict:
        if method not in METHODS:
            raise Refusal("unknown_method")
        required, optional, json_ok = METHODS[method]
        if unknown := set(args) - required - optional - COMMON:
            self.complain(f"{method}: unknown arguments {sorted(unknown)}")
        if as_json and args and not json_ok:
            raise Refusal("invalid_arguments")
        if "" in args.values() and not (method == "assistant.threads.setStatus" and args.get("status") == ""):
            self.complain(f"{method}: an empty argument")
        if method == "apps.connections.open":
            return self.connections_open(token)
        if method == "oauth.v2.access":
            return self.oauth(args)
        who = self.tokens.get(token or "")
        if not who:
            raise Refusal("invalid_auth" if token else "not_authed")
        if who.get("expired"):
            raise Refusal("token_expired")
        needed = next((scopes for prefix, scopes in NEEDS.items() if method.startswith(prefix)), ())
        if needed and not set(needed) & set(who["scopes"].split(",")):
            raise Refusal("missing_scope", needed=needed[0], provided=who["scopes"])
        if missing := required - set(args):
            raise Refusal("invalid_arguments", response_metadata={"messages": [f"[ERROR] missing required field: {sorted(missing)[0]}"]})
        return getattr(self, "do_" + re.sub(r"[.]", "_", method))(args, who)

    def oauth(self, args: dict) -> dict:
        old = next((t for t in self.tokens.values() if t.get("refresh") == args.get("refresh_token")), None)
        if args.get("grant_type") != "refresh_token" or not old:
            raise Refusal("invalid_refresh_token")
        self.refreshed += 1
        token, refresh = f"xoxe.xoxb-{secrets.token_hex(6)}", f"xoxe-{secrets.token_hex(6)}"
        self.tokens[token] = old | {"expired": False, "refresh": refresh}
        old["expired"], old["refresh"] = True, None
        return {"access_token": token, "refresh_token": refresh, "expires_in": 43200, "token_type": "bot"}

    def do_auth_test(self, _: dict, who: dict) -> dict:
        return {"url": "https://fake.slack.com/", "team": "Fake", "team_id": who["team"], "user": "sandbook", "user_id": who["user"], "bot_id": who["bot"], "enterprise_id": who.get("enterprise"), "is_enterprise_install": bool(who.get("enterprise"))}

    def do_api_test(self, args: dict, _: dict) -> dict:
        return {"args": args}

    def content(self, args: dict, who: dict) -> dict:
        blocks = args.get("blocks")
        if isinstance(blocks, str):
            blocks = json.loads(blocks)
        if blocks:
            if self.refuse_blocks:
                raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] because the test wants it"]})
            try:
                check_blocks(blocks)
            except Refusal as r:
                self.complain(f"blocks refused: {r.body}: {json.dumps(blocks)[:500]}")
                raise
        text = args.get("text", "")
        if not text and not blocks and not args.get("markdown_text"):
            raise Refusal("no_text")
        if len(text) > 40000:
            raise Refusal("msg_too_long")
        if len(text) > 4000:
            self.complain("text that Slack would split anywhere")
        for token in re.findall(r"<[!@#][^>]*>", text):
            self.complain(f"a live token in text: {token}")
        m = {"type": "message", "user": who["user"], "bot_id": who["bot"], "app_id": "AAPP", "team": who["team"], "text": text}
        if blocks:
            m["blocks"] = blocks
        return m

    def do_chat_postMessage(self, args: dict, who: dict) -> dict:
        channel, m = self.place(args), self.content(args, who)
        if args.get("thread_ts"):
            root = self.find(channel, args["thread_ts"])
            if not root:
                raise Refusal("thread_not_found")
            if root.get("thread_ts") not in (None, root["ts"]):
                self.complain("thread_ts is no root")
            m["thread_ts"] = root["thread_ts"] = args["thread_ts"]
        if args.get("metadata"):
            m["metadata"] = json.loads(args["metadata"]) if isinstance(args["metadata"], str) else args["metadata"]
        m["ts"] = self.ts()
        self.messages.setdefault(channel, []).append(m)
        self.later(m | {"channel": channel, "channel_type": self.channels[channel]})
        if self.unfurl and "http" in m["text"]:
            self.later({"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "message": m | {"attachments": [{"from_url": "http://x"}]}, "previous_message": m})
        return {"channel": channel, "ts": m["ts"], "message": m}

    def do_chat_update(self, args: dict, who: dict) -> dict:
        channel = self.place(args)
        m = self.find(channel, args["ts"])
        if not m:
            raise Refusal("message_not_found")
        if m.get("bot_id") != who["bot"]:
            raise Refusal("cant_update_message")
        before, new = dict(m), self.content(args, who)
        if args.get("blocks") in ("[]", []):
            m.pop("blocks", None)
        m |= new | {"edited": {"user": who["bot"], "ts": self.ts()}}
        self.later({"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "message": dict(m), "previous_message": before})
        return {"channel": channel, "ts": m["ts"], "text": m["text"]}

    def do_chat_delete(self, args: dict, who: dict) -> dict:
        channel = self.place(args)
        m = self.find(channel, args["ts"])
        if not m:
            raise Refusal("message_not_found")
        if "_stream" in m and not m.get("_over"):
            raise Refusal("streaming_state_conflict")
        self.messages[channel].remove(m)
        self.later({"type": "message", "subtype": "message_deleted", "hidden": True, "channel": channel, "channel_type": self.channels[channel], "ts": self.ts(), "deleted_ts": args["ts"], "previous_message": m})
        return {"channel": channel, "ts": args["ts"]}

    def do_chat_postEphemeral(self, args: dict, _: dict) -> dict:
        self.asides.append({"channel": self.place(args), "user": args["user"], "text": args["text"], "thread_ts": args.get("thread_ts")})
        return {"message_ts": self.ts()}

    def do_agents_sessions_setStatus(self, args: dict, _: dict) -> dict:
        if self.no_agent:
            raise Refusal("feature_not_enabled")
        if args["status"] not in ("active", "processing", "suspended", "closed"):
            raise Refusal("invalid_arguments")
        at = (args["channel_id"], args.get("thread_ts", ""))
        if len(args.get("title", "")) > 200:
            raise Refusal("invalid_arguments")
        if at not in self.sessions and args.get("title"):
            self.titles[at] = args["title"]
        self.sessions[at] = args["status"]
        return {"status": args["status"]}

    def do_agents_sessions_rename(self, args: dict, _: dict) -> dict:
        return {"title": args["title"]}

    def do_assistant_threads_setStatus(self, args: dict, _: dict) -> dict:
        if self.no_agent:
            raise Refusal("not_agent_app")
        self.statuses.append((args["channel_id"], args["thread_ts"], args["status"]))
        return {}

    def do_assistant_threads_setTitle(self, args: dict, _: dict) -> dict:
        self.titles[args["channel_id"], args["thread_ts"]] = args["title"]
        return {}

    def do_assistant_threads_setSuggestedPrompts(self, args: dict, _: dict) -> dict:
        prompts = json.loads(args["prompts"]) if isinstance(args["prompts"], str) else args["prompts"]
        if not 1 <= len(prompts) <= 4:
            raise Refusal("invalid_arguments")
        return {}

    def do_reactions_add(self, args: dict, _: dict) -> dict:
        m = self.find(self.place(args), args["timestamp"])
        if not m:
            raise Refusal("message_not_found")
        m.setdefault("reactions", []).append({"name": args["name"]})
        return {}

    def do_reactions_remove(self, args: dict, _: dict) -> dict:
        m = self.find(self.place(args), args["timestamp"])
        if not m or not m.get("reactions"):
            raise Refusal("no_reaction")
        m["reactions"] = [r for r in m["reactions"] if r["name"] != args["name"]]
        return {}

    def page(self, all_: list[dict], args: dict) -> dict:
        limit, at = min(int(args.get("limit", 100)), 200), int(args.get("cursor") or 0)
        oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or 1e12)
        part = [m for m in all_ if oldest < float(m["ts"]) <= latest]
        if not args.get("include_all_metadata"):
            part = [{k: v for k, v in m.items() if k != "metadata"} for m in part]
        more = at + limit < len(part)
        return {"messages": part[at : at + limit], "has_more": more, "response_metadata": {"next_cursor": str(at + limit) if more else ""}}

    def do_conversations_replies(self, args: dict, _: dict) -> dict:
        channel = self.place(args)
        root = self.find(channel, args["ts"])
        if not root:
            raise Refusal("thread_not_found")
        return self.page([m for m in self.messages[channel] if args["ts"] in (m["ts"], m.get("thread_ts"))], args)

    def do_conversations_history(self, args: dict, _: dict) -> dict:
        return self.page([m for m in reversed(self.messages.get(self.place(args), [])) if m.get("thread_ts") in (None, m["ts"])], args)

    def do_conversations_info(self, args: dict, _: dict) -> dict:
        channel = self.place(args)
        return {"channel": {"id": channel, "name": channel.lower(), "is_im": self.channels[channel] == "im"}}

    def do_conversations_open(self, args: dict, _: dict) -> dict:
        return {"channel": {"id": "D1"}}

    def do_users_info(self, args: dict, _: dict) -> dict:
        if args["user"] not in self.users:
            raise Refusal("user_not_found")
        return {"user": self.users[args["user"]]}
