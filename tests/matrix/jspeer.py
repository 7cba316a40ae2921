"""People with matrix-js-sdk: what Element does with encryption."""
import base64

from linepeer import Peer, Process
from synapse import HERE, peers


def js_process() -> Process:
    return Process("node", str(HERE / "js/peer.mjs"), PEER_MODULES=str(peers()))


class JsPerson(Peer):
    def send_file(self, room: str, data: bytes, name: str, **more: object) -> str:
        return self.do("file", room=room, data=base64.b64encode(data).decode(), name=name, **more)

    def download(self, content: dict) -> bytes:
        where = {"file": content["file"]} if "file" in content else {"mxc": content["url"]}
        return base64.b64decode(self.do("download", **where))
