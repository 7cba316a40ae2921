"""Files: what people have, what the bot uploads, and when it is shown."""
import json
import secrets
import time
import urllib.parse

from .faults import Faults
from .limits import Refusal


class Files(Faults):
    """Files and their bytes, and the three steps by which a bot adds some."""

    def place(self, args: dict, key: str = "channel") -> str:
        channel = args[key]
        if channel not in self.channels:
            raise Refusal("channel_not_found")
        return channel

    def add_file(self, name: str, data: bytes, mimetype: str = "text/csv", **more: object) -> str:
        with self.lock:
            fid = f"F{next(self.counter):06d}"
            url = f"{self.url}/files-pri/T1-{fid}/download/{urllib.parse.quote(name)}"
            self.bytes[fid] = data
            self.files[fid] = {
                "id": fid, "name": name, "title": name, "mimetype": mimetype, "filetype": name.rsplit(".", 1)[-1], "size": len(data), "mode": "hosted",
                "is_external": False, "url_private": url, "url_private_download": url, "file_access": "visible", "user": "U1", "shares": {}, "channels": [],
            } | more
            return fid

    def file_view(self, f: dict) -> dict:
        return {k: v for k, v in f.items() if not k.startswith("_")}

    def do_files_info(self, args: dict, _: dict) -> dict:
        f = self.files.get(args["file"])
        if not f or f.get("_pending"):
            raise Refusal("file_not_found")
        if f.get("_share_at") and time.monotonic() >= f["_share_at"]:
            self.share(f)
        full = self.file_view(f | f.get("_full", {}))
        return {"file": full}

    def do_files_getUploadURLExternal(self, args: dict, _: dict) -> dict:
        if int(args["length"]) <= 0:
            raise Refusal("missing_argument")
        fid = self.add_file(args["filename"], b"", "", _pending=True, _length=int(args["length"]), alt_txt=args.get("alt_txt", ""))
        return {"upload_url": f"{self.url}/upload/v1/{secrets.token_hex(12)}-{fid}", "file_id": fid}

    def do_files_completeUploadExternal(self, args: dict, who: dict) -> dict:
        wanted = json.loads(args["files"]) if isinstance(args["files"], str) else args["files"]
        out = []
        group = [w["id"] for w in wanted]
        for w in wanted:
            f = self.files.get(w["id"])
            if not f or not f.get("_pending") or len(self.bytes[w["id"]]) != f["_length"]:
                raise Refusal("file_not_found")
        for w in wanted:
            f = self.files[w["id"]]
            f |= {"_pending": False, "title": w.get("title", f["name"]), "size": f["_length"], "user": who["user"], "mimetype": "image/png" if self.bytes[w["id"]][:4] == b"\x89PNG" else "text/plain"}
            if args.get("channel_id") and self.lost_shares <= 0:
                f |= {"_to": self.place(args, "channel_id"), "_thread": args.get("thread_ts"), "_group": group, "_share_at": time.monotonic() + self.share_delay}
            out.append({"id": f["id"], "title": f["title"]})
        if args.get("channel_id"):
            self.lost_shares -= 1
            if not self.share_delay and self.files[group[0]].get("_share_at"):
                self.share(self.files[group[0]])
        return {"files": out}

    def share(self, f: dict) -> None:
        channel, thread = f["_to"], f["_thread"]
        m = {"type": "message", "subtype": "file_share", "user": f["user"], "bot_id": "BBOT", "app_id": "AAPP", "text": "", "ts": self.ts(), "files": [self.file_view(self.files[x]) for x in f["_group"]]}
        if thread:
            m["thread_ts"] = thread
        self.messages.setdefault(channel, []).append(m)
        for x in f["_group"]:
            self.files[x]["_share_at"] = None
            self.files[x]["shares"] = {"private" if channel[0] in "DG" else "public": {channel: [{"ts": m["ts"], "thread_ts": thread}]}}
        self.later(m | {"channel": channel, "channel_type": self.channels[channel]})

    def do_files_delete(self, args: dict, _: dict) -> dict:
        if not self.files.pop(args["file"], None):
            raise Refusal("file_not_found")
        return {}
