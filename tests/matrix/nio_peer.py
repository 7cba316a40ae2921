"""People with matrix-nio, a client library of its own making: driven like js/peer.mjs, in JSON lines. Run by the peers' Python."""
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator

from nio import AsyncClient, AsyncClientConfig, Event, MegolmEvent, ToDeviceEvent, crypto
from nio.responses import ErrorResponse


def out(what: dict) -> None:
    print(json.dumps(what), flush=True)


def fine(response: object) -> object:
    if isinstance(response, ErrorResponse):
        raise RuntimeError(str(response))
    return response


class Person:
    """Named attributes of commands are the methods' parameters; what they don't know, they ignore."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.syncing: asyncio.Task | None = None

    async def login(self, url: str, user: str, password: str, store: str = "", device: str = "", token: str = "", **_: object) -> dict:
        config = AsyncClientConfig(encryption_enabled=bool(store), store_sync_tokens=bool(store))
        self.client = client = AsyncClient(url, user, device, store, config)
        if token:
            client.restore_login(user, device, token)
        else:
            fine(await client.login(password))
        client.add_event_callback(self.on_event, Event)
        client.add_to_device_callback(self.on_device, ToDeviceEvent)
        fine(await client.sync(timeout=0, full_state=True))
        self.syncing = asyncio.create_task(client.sync_forever(timeout=2000))
        await client.synced.wait()
        return {"device": client.device_id, "token": client.access_token}

    async def stop(self, **_: object) -> None:
        if self.syncing:
            self.syncing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.syncing
        await self.client.close()
        del people[self.name]

    async def on_event(self, room: object, event: Event) -> None:
        failed = isinstance(event, MegolmEvent)
        content = event.source["content"]
        out({"as": self.name, "event": event.event_id, "room": room.room_id, "type": event.source["type"], "sender": event.sender, "content": content,
             "wire": content, "encrypted": failed or event.decrypted, "failed": failed, "shield": None})

    async def on_device(self, event: ToDeviceEvent) -> None:
        out({"as": self.name, "todevice": type(event).__name__, "from": event.sender})

    async def room(self, invite: list[str], direct: bool = False, plain: bool = False, encryption: dict | None = None, **_: object) -> str:
        content = {"algorithm": "m.megolm.v1.aes-sha2"} | (encryption or {})
        state = [] if plain else [{"type": "m.room.encryption", "state_key": "", "content": content}]
        return fine(await self.client.room_create(invite=invite, is_direct=direct, initial_state=state)).room_id

    async def send(self, room: str, content: dict, type: str = "m.room.message", **_: object) -> str:  # pylint: disable=redefined-builtin
        return fine(await self.client.room_send(room, type, content, ignore_unverified_devices=True)).event_id

    async def discard(self, room: str, **_: object) -> None:
        self.client.invalidate_outbound_session(room)

    async def download(self, mxc: str = "", file: dict | None = None, **_: object) -> str:
        import base64  # pylint: disable=import-outside-toplevel
        data = fine(await self.client.download(mxc=file["url"] if file else mxc)).body
        if file:
            data = crypto.attachments.decrypt_attachment(data, file["key"]["k"], file["hashes"]["sha256"], file["iv"])
        return base64.b64encode(data).decode()


people: dict[str, Person] = {}


async def do(line: str) -> None:
    o = json.loads(line)
    try:
        person = people.setdefault(o["as"], Person(o["as"]))
        more = {k: v for k, v in o.items() if k not in ("id", "as", "do")}
        out({"id": o["id"], "ok": await getattr(person, o["do"])(**more)})
    except Exception as e:  # pylint: disable=broad-exception-caught
        out({"id": o["id"], "error": repr(e)})


async def lines() -> AsyncIterator[str]:
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode()


async def main() -> None:
    running = set()
    async for line in lines():
        running.add(task := asyncio.create_task(do(line)))
        task.add_done_callback(running.discard)


asyncio.run(main())
