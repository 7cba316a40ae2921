"""People with matrix-nio: an independent client, without cross-signing."""
import base64

from linepeer import Peer, Process
from synapse import HERE, Person, peers


def nio_process() -> Process:
    return Process(str(peers() / "bin/python"), str(HERE / "nio_peer.py"))


class NioPerson(Peer):
    """store: a folder for its keys; "": none, so that it takes part in rooms that are not encrypted only."""

    def __init__(self, process: Process, account: Person, store: str = "", **more: object) -> None:
        super().__init__(process, account, store=store, **more)

    def download(self, content: dict) -> bytes:
        where = {"file": content["file"]} if "file" in content else {"mxc": content["url"]}
        return base64.b64decode(self.do("download", **where))
