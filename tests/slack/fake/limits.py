"""What Slack documents about calls and blocks, and the refusal of what is beyond it."""
import json
from pathlib import Path

MANIFEST = json.loads((Path(__file__).resolve().parents[3] / "config/slack-manifest.json").read_text())
SCOPES = ",".join(MANIFEST["oauth_config"]["scopes"]["bot"])  # a call beyond them is one that a real workspace refuses
COMMON = {"token", "team_id"}
# method -> (required, optional, accepts JSON)
METHODS: dict[str, tuple[set[str], set[str], bool]] = {
    "auth.test": (set(), set(), True),
    "api.test": (set(), {"error", "foo"}, True),
    "apps.connections.open": (set(), set(), True),
    "chat.postMessage": (
        {"channel"},
        {"text", "blocks", "attachments", "markdown_text", "thread_ts", "reply_broadcast", "unfurl_links", "unfurl_media", "mrkdwn", "link_names", "parse", "metadata"},
        True,
    ),
    "chat.update": ({"channel", "ts"}, {"text", "blocks", "attachments", "markdown_text", "metadata", "file_ids", "reply_broadcast", "link_names", "parse"}, True),
    "chat.delete": ({"channel", "ts"}, set(), True),
    "chat.postEphemeral": ({"channel", "user"}, {"text", "blocks", "thread_ts"}, True),
    "chat.startStream": ({"channel", "thread_ts"}, {"markdown_text", "chunks", "recipient_user_id", "recipient_team_id", "task_display_mode"}, True),
    "chat.appendStream": ({"channel", "ts"}, {"markdown_text", "chunks"}, True),
    "chat.stopStream": ({"channel", "ts"}, {"markdown_text", "chunks", "blocks", "metadata", "session_status"}, True),
    "agents.sessions.setStatus": ({"channel_id", "status"}, {"thread_ts", "title", "initiator_user_id"}, True),
    "agents.sessions.rename": ({"channel_id", "title"}, {"thread_ts"}, True),
    "assistant.threads.setStatus": ({"channel_id", "thread_ts", "status"}, {"loading_messages"}, True),
    "assistant.threads.setTitle": ({"channel_id", "thread_ts", "title"}, set(), True),
    "assistant.threads.setSuggestedPrompts": ({"channel_id", "prompts"}, {"title", "thread_ts"}, True),
    "reactions.add": ({"channel", "name", "timestamp"}, set(), True),
    "reactions.remove": ({"channel", "name", "timestamp"}, set(), True),
    "conversations.replies": ({"channel", "ts"}, {"cursor", "limit", "oldest", "latest", "inclusive", "include_all_metadata"}, False),
    "conversations.history": ({"channel"}, {"cursor", "limit", "oldest", "latest", "inclusive", "include_all_metadata"}, False),
    "conversations.info": ({"channel"}, {"include_locale", "include_num_members"}, False),
    "conversations.open": (set(), {"users", "channel", "return_im"}, True),
    "users.info": ({"user"}, {"include_locale"}, False),
    "files.info": ({"file"}, {"cursor", "limit"}, False),
    "files.getUploadURLExternal": ({"filename", "length"}, {"alt_txt", "snippet_type"}, False),
    "files.completeUploadExternal": ({"files"}, {"channel_id", "channels", "thread_ts", "initial_comment", "blocks"}, True),
    "files.delete": ({"file"}, set(), True),
    "oauth.v2.access": (set(), {"grant_type", "refresh_token", "code", "redirect_uri", "client_id", "client_secret"}, False),
}
# the first that the method's name begins with; one of these scopes is enough
NEEDS: dict[str, tuple[str, ...]] = {
    "agents.": ("chat:write",), "assistant.threads.setStatus": ("chat:write", "assistant:write"), "assistant.": ("assistant:write",), "chat.": ("chat:write",),
    "conversations.history": ("channels:history", "groups:history", "im:history", "mpim:history"), "conversations.replies": ("channels:history", "groups:history", "im:history", "mpim:history"),
    "conversations.info": ("channels:read", "groups:read", "im:read", "mpim:read"), "conversations.open": ("im:write", "mpim:write"), "files.complete": ("files:write",),
    "files.delete": ("files:write",), "files.get": ("files:write",), "files.info": ("files:read",), "reactions.": ("reactions:write",), "users.": ("users:read",),
}


class Refusal(Exception):
    def __init__(self, code: str, **more: object) -> None:
        super().__init__(code)
        self.body = {"ok": False, "error": code} | more


def chars(v: object) -> int:
    return len(json.dumps(v, ensure_ascii=False, separators=(",", ":")))


def check_text(text: object, limit: int, where: str) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= limit:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] bad text at {where}"]})


def check_rich(element: dict, where: str, depth: int = 0) -> None:
    kinds = {"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"} if depth == 0 else {"text", "link", "user", "emoji", "rich_text_section"}
    if element.get("type") not in kinds or depth > 3:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported element {element.get('type')} at {where}"]})
    if element["type"] in ("text", "link"):
        if element["type"] == "text" or "text" in element:
            check_text(element.get("text"), 12000, where)
        if element["type"] == "link":
            check_text(element.get("url"), 3000, where)
    for i, e in enumerate(element.get("elements", [])):
        check_rich(e, f"{where}/elements/{i}", depth + 1)
    if element["type"].startswith("rich_") and not element.get("elements"):
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] no elements at {where}"]})


def check_table(block: dict, where: str) -> int:
    rows = block.get("rows")
    data = block["type"] == "data_table"
    if not isinstance(rows, list) or not (2 if data else 1) <= len(rows) <= (101 if data else 100) or not 1 <= len(rows[0]) <= 20:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] table size at {where}"]})
    if data:
        check_text(block.get("caption"), 2000, where)
    total = 0
    for r, cells in enumerate(rows):
        if len(cells) != len(rows[0]):
            raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] row length at {where}/rows/{r}"]})
        for cell in cells:
            if cell.get("type") not in ("raw_text", "rich_text", "raw_number") or (r == 0 and cell["type"] != "raw_text"):
                raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] cell type at {where}/rows/{r}"]})
            if cell["type"] != "rich_text":
                check_text(cell.get("text"), 2000, f"{where}/rows/{r}")
                total += len(cell["text"])
    return total


def check_buttons(element: dict, where: str) -> None:
    if element.get("type") != "feedback_buttons" or len(element.get("action_id", "")) > 255:
        raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported element at {where}"]})
    for name in ("positive_button", "negative_button"):
        button = element.get(name, {})
        check_text(button.get("text", {}).get("text"), 75, where)
        check_text(button.get("value"), 2000, where)
        check_text(button.get("accessibility_label", "x"), 75, where)


def check_blocks(blocks: list) -> None:
    if not isinstance(blocks, list) or len(blocks) > 50:
        raise Refusal("msg_blocks_too_many" if isinstance(blocks, list) else "invalid_blocks_format")
    if chars(blocks) > 13200:
        raise Refusal("msg_blocks_too_long")
    cells = tables = 0
    for i, b in enumerate(blocks):
        kind = b.get("type")
        if kind == "rich_text":
            if not b.get("elements"):
                raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] no elements at /blocks/{i}"]})
            for k, e in enumerate(b["elements"]):
                check_rich(e, f"/blocks/{i}/elements/{k}")
        elif kind in ("table", "data_table"):
            cells += check_table(b, f"/blocks/{i}")
            tables += 1
        elif kind == "context":
            if not 1 <= len(b.get("elements", [])) <= 10:
                raise Refusal("invalid_blocks")
            for e in b["elements"]:
                check_text(e.get("text"), 2000, f"/blocks/{i}")
        elif kind == "context_actions":
            if not 1 <= len(b.get("elements", [])) <= 5:
                raise Refusal("invalid_blocks")
            for e in b["elements"]:
                check_buttons(e, f"/blocks/{i}")
        elif kind == "section":
            check_text(b.get("text", {}).get("text"), 3000, f"/blocks/{i}")
        elif kind not in ("divider", "markdown", "header", "image"):
            raise Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] unsupported type {kind} at /blocks/{i}"]})
    if cells > 10000 or tables > 1:
        raise Refusal("invalid_blocks", response_metadata={"messages": ["[ERROR] tables"]})


def check_chunks(chunks: object) -> None:
    if not isinstance(chunks, list) or not chunks:
        raise Refusal("invalid_chunks")
    for c in chunks:
        if c.get("type") == "markdown_text" and set(c) == {"type", "text"} and c["text"]:
            continue
        task = c.get("type") == "task_update" and c.get("id") and c.get("status") in ("pending", "in_progress", "complete", "error")
        if not task or not 0 < len(c.get("title", "")) <= 256 or set(c) - {"type", "id", "title", "status", "details", "output", "sources"}:
            raise Refusal("invalid_chunks")
