"""A person with matrix-js-sdk: what Element does with encryption, as a child process."""
import base64
import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path

from synapse import HERE, Person, peers


class JsPerson:
    def __init__(self, account: Person) -> None:
        env = os.environ | {"PEER_MODULES": str(peers())}
        self.account, self.user = account, account.user
        self.process = subprocess.Popen(["node", str(HERE / "js/peer.mjs")], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.n, self.answers, self.events = 0, {}, []
        self.came = threading.Condition()
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.device = self.do("login", url=account.server.url, user=account.user, password=account.password)["device"]

    def _read(self) -> None:
        for line in self.process.stdout or ():
            got = json.loads(line)
            with self.came:
                if "id" in got:
                    self.answers[got["id"]] = got
                else:
                    self.events.append(got)
                self.came.notify_all()
        with self.came:
            self.events.append({"ended": True})
            self.came.notify_all()

    def do(self, what: str, seconds: float = 60, **more: object):
        self.n += 1
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"id": self.n, "do": what} | more) + "\n")
        self.process.stdin.flush()
        with self.came:
            if not self.came.wait_for(lambda: self.n in self.answers, seconds):
                raise AssertionError(f"{what} was not answered; seen: {self.events[-5:]}")
            got = self.answers.pop(self.n)
        if "error" in got:
            raise AssertionError(f"{what}: {got['error']}")
        return got["ok"]

    def until(self, wanted, seconds: float = 90, since: int = 0) -> dict:
        end = time.monotonic() + seconds
        with self.came:
            while True:
                for event in self.events[since:]:
                    if wanted(event):
                        return event
                if not self.came.wait(max(0.0, end - time.monotonic())):
                    raise AssertionError(f"nothing came; seen: {[(e.get('type'), e.get('sender'), e.get('failed'), e.get('content', {}).get('body')) for e in self.events]}")

    def say(self, room: str, text: str, *mention: str, **more: object) -> str:
        content = {"msgtype": "m.text", "body": text, "m.mentions": {"user_ids": list(mention)} if mention else {}} | more
        return self.do("send", room=room, content=content)

    def send_file(self, room: str, data: bytes, name: str, **more: object) -> str:
        return self.do("file", room=room, data=base64.b64encode(data).decode(), name=name, **more)

    def download(self, content: dict) -> bytes:
        where = {"file": content["file"]} if "file" in content else {"mxc": content["url"]}
        return base64.b64decode(self.do("download", **where))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
