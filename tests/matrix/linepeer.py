"""Clients in a child process that is spoken to in JSON lines: {"id","as","do",...} in; {"id","ok"|"error"} and {"as",...} out.

One process may be many people, since starting a client library costs more than all that a test does with it."""
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable

from synapse import Person


class Process:
    def __init__(self, *words: str, **env: str) -> None:
        self.process = subprocess.Popen(words, env=os.environ | env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.n = 0
        self.answers: dict[int, dict] = {}
        self.people: dict[str, "Peer"] = {}
        self.came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            got = json.loads(line)
            with self.came:
                if "id" in got:
                    self.answers[got["id"]] = got
                elif got["as"] in self.people:
                    self.people[got["as"]].events.append(got)
                self.came.notify_all()
        with self.came:
            for person in self.people.values():
                person.events.append({"ended": True})
            self.came.notify_all()

    def do(self, who: str, what: str, seconds: float, more: dict):
        with self.came:
            self.n += 1
            n = self.n
            assert self.process.stdin
            self.process.stdin.write(json.dumps({"id": n, "as": who, "do": what} | more) + "\n")
            self.process.stdin.flush()
            if not self.came.wait_for(lambda: n in self.answers, seconds):
                raise AssertionError(f"{what} was not answered")
            got = self.answers.pop(n)
        if "error" in got:
            raise AssertionError(f"{what}: {got['error']}")
        return got["ok"]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Peer:
    """A person at one device of theirs."""

    def __init__(self, process: Process, account: Person, **login: object) -> None:
        self.process, self.account, self.user = process, account, account.user
        self.events: list[dict] = []
        with process.came:
            self.name = f"{account.user} {len(process.people)}"
            process.people[self.name] = self
        got = self.do("login", url=account.server.url, user=account.user, password=account.password, **login)
        self.device, self.token = got["device"], got.get("token", "")

    def do(self, what: str, seconds: float = 90, **more: object):
        return self.process.do(self.name, what, seconds, more)

    def until(self, wanted: Callable[[dict], object], seconds: float = 90) -> dict:
        end, looked = time.monotonic() + seconds, 0
        with self.process.came:
            while True:
                for event in self.events[looked:]:
                    if wanted(event):
                        return event
                looked = len(self.events)
                if not self.process.came.wait(max(0.0, end - time.monotonic())):
                    raise AssertionError(f"nothing came; {self.name} saw: {[self.short(e) for e in self.events[-40:]]}")

    @staticmethod
    def short(event: dict) -> tuple:
        return event.get("type"), event.get("sender"), event.get("failed"), event.get("content", {}).get("body", event.get("verification"))

    def say(self, room: str, text: str, *mention: str, **more: object) -> str:
        content = {"msgtype": "m.text", "body": text, "m.mentions": {"user_ids": list(mention)} if mention else {}} | more
        return self.do("send", room=room, content=content)

    def close(self) -> None:
        if self.process.process.poll() is None:
            self.do("stop")
