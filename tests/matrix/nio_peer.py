"""A second client, matrix-nio: asks one question in a room and prints, a JSON line each, what the bot says. Run by the peers' Python."""
import asyncio
import json
import sys

from nio import AsyncClient, RoomMessage, RoomMessageImage, RoomMessageText, SyncResponse


async def main(url: str, user: str, password: str, room: str, bot: str, wanted: int) -> None:
    client = AsyncClient(url, user)
    await client.login(password)
    first = await client.sync(timeout=0, full_state=True)
    assert isinstance(first, SyncResponse), first
    seen = 0

    async def on_message(_room: object, event: RoomMessage) -> None:
        nonlocal seen
        if event.sender != bot:
            return
        kind = "image" if isinstance(event, RoomMessageImage) else "text" if isinstance(event, RoomMessageText) else "other"
        more = {"url": event.url} if isinstance(event, RoomMessageImage) else {"html": getattr(event, "formatted_body", None)}
        print(json.dumps({"kind": kind, "body": event.body} | more), flush=True)
        seen += 1
    client.add_event_callback(on_message, RoomMessage)
    await client.room_send(room, "m.room.message", {"msgtype": "m.text", "body": "chart, please", "m.mentions": {"user_ids": [bot]}})
    while seen < wanted:
        await client.sync(timeout=2000)
    await client.close()


asyncio.run(main(*sys.argv[1:6], int(sys.argv[6])))
