"""The pictures of a cell, in the order in which they were made, and their way to out/figure-CELL-N.png.

Pictures come as files in a folder below /tmp, as PNG or, while there are few, as their mere pixels (PAM); what the person saved is
copied there and stays as it is. At the end of the cell one call of the picture helper reads them all, makes them small enough, drops
what is not picture, and writes them to their place, with a small one beside each that is large: where rooms are encrypted, no server
can make it. One call, since starting a process is the larger part.
"""

import builtins
import ctypes
import gc
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy
from PIL import Image

from ..cell import current

__builtins__ = dict(vars(builtins))

HELPER = os.environ.get("SANDBOOK_PICTURE", "/opt/sandbook/bin/picture")  # read in the zygote
PICTURES_MAX = 100
SIDE_MAX = 2000
SMALL = (800, 600)  # what chats show of a larger one
BATCH = 20
PIXELS_MAX = 8 << 20  # bytes; /tmp has as little as 16 MiB
ROWS = 1024  # that one call takes
PAM = b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
RASTER = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
OBJECTS_MAX = 300_000  # of a session: to look through more would be felt
_trim = ctypes.CDLL(None).malloc_trim
NO_HELPER = "the picture helper is missing: pictures were not checked, made smaller or stripped"


@dataclass
class Picture:
    source: str  # a file in the workshop
    title: str = ""
    summary: str = ""
    saved: list[str] = field(default_factory=list)  # files of the person's that show the same


class HelperMissing(Exception):
    pass


def _read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts)


def _wait(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # a cell that ignores SIGCHLD, or a thread of its that waits for everything


def _nothing() -> None:
    pass


def run_helper(arguments: list[str], meanwhile: Callable[[], None] = _nothing) -> list[str]:
    """The helper's lines. posix_spawn is vfork underneath: nothing of the big interpreter is copied."""
    ours, its = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, its, 1),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    try:
        pid = os.posix_spawn(HELPER, [HELPER, *arguments], {}, file_actions=actions)
    except (FileNotFoundError, PermissionError):
        os.close(ours)
        raise HelperMissing from None
    finally:
        os.close(its)
    try:
        meanwhile()
        return _read_all(ours).decode("utf-8", "replace").splitlines()
    finally:
        os.close(ours)
        _wait(pid)


def png_size(path: str) -> tuple[int, int]:
    with open(path, "rb") as file:
        head = file.read(24)
    if len(head) < 24 or head[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("not a PNG")
    return struct.unpack(">II", head[16:24])


class Gallery:
    def __init__(self, data_dir: str):
        self.data_dir = data_dir
        self.out_dir = os.path.join(data_dir, "out")
        self._workshop: str | None = None
        self._shared = sys.getallocatedblocks()  # what was preloaded
        self.begin()

    def begin(self) -> None:
        """A new cell."""
        self._pictures: list[Picture] = []
        self._refused = self._made = self._files = self._named = self._raw = 0
        self.delivered: list[dict] = []  # the claim's figures
        self.same_as: dict[str, str] = {}

    def temporary(self) -> str:
        """A path for the next raw picture."""
        if self._workshop is None or not os.path.isdir(self._workshop):
            self._workshop = tempfile.mkdtemp(prefix="pictures-")
        self._made += 1
        return os.path.join(self._workshop, f"{current.cell.number}-{self._made}.png")

    def save(self, pixels: numpy.ndarray, path: str) -> None:
        """RGBA; to be read by the helper alone. To encode them here would only make it decode them."""
        self._raw += pixels.nbytes
        if self._raw > PIXELS_MAX or not _write_pam(pixels, path):
            write_png(pixels, path)

    def file_name(self, kind: str, extension: str) -> str:
        """Below the data folder, for something that is delivered as a file."""
        os.makedirs(self.out_dir, exist_ok=True)
        self._files += 1
        return f"out/{kind}-{current.cell.number}-{self._files}.{extension}"

    def full(self) -> bool:
        """Whether one more would be too many; counts it if so."""
        if len(self._pictures) < PICTURES_MAX:
            return False
        self._refused += 1
        return True

    def add(self, picture: Picture) -> Picture:
        self._pictures.append(picture)
        return picture

    def relative(self, path: str) -> str | None:
        """As the keeper names it, if it lies below the data folder."""
        path = os.path.relpath(os.path.realpath(path), os.path.realpath(self.data_dir))
        return None if path.startswith("..") or os.path.isabs(path) else path

    def deliver(self) -> None:
        """Fills `delivered` and `same_as`."""
        if self._refused:
            current.note(f"{self._refused} more pictures were left out: a cell may show {PICTURES_MAX}.")
        if self._pictures:
            os.makedirs(self.out_dir, exist_ok=True)
        while self._pictures:
            batch, self._pictures = self._pictures[:BATCH], self._pictures[BATCH:]
            self._deliver(batch, _nothing if self._pictures else self._give_back)

    def _give_back(self) -> None:
        """The memory of the drawing. Figures refer to themselves, so only the collector frees them; the C library
        keeps what is freed."""
        if gc.isenabled():
            gc.collect(2 if sys.getallocatedblocks() - self._shared < OBJECTS_MAX else 1)
        _trim(0)

    def _deliver(self, batch: list[Picture], meanwhile: Callable[[], None]) -> None:
        names = [f"figure-{current.cell.number}-{self._named + i}.png" for i in range(1, len(batch) + 1)]
        self._named += len(batch)
        targets = [os.path.join(self.out_dir, name) for name in names]
        results = self._normalise([p.source for p in batch], targets, meanwhile)
        for picture, name, (width, height, why) in zip(batch, names, results):
            _discard(picture.source)
            if why:
                current.note(f"a picture could not be delivered: {why}")
                continue
            path = f"out/{name}"
            self.delivered.append(_claim(picture, path, width, height))
            self.same_as.update((saved, path) for saved in self._same(picture, path))

    def _normalise(self, sources: Iterable[str], targets: list[str], meanwhile: Callable[[], None]) -> list[tuple[int, int, str]]:
        pairs = [part for pair in zip(sources, targets) for part in pair]
        try:
            lines = run_helper(["-m", str(SIDE_MAX), "-s", "{}x{}".format(*SMALL), "--", *pairs], meanwhile)
        except HelperMissing:
            current.note(NO_HELPER)
            return [_copy(pairs[i], pairs[i + 1]) for i in range(0, len(pairs), 2)]
        lines += ["error: the picture helper died"] * (len(targets) - len(lines))
        return [_parse(line) for line in lines]

    def _same(self, picture: Picture, path: str) -> list[str]:
        found = (self.relative(saved) for saved in picture.saved if saved.lower().endswith(RASTER))
        return [name for name in found if name and name != path]


def write_png(pixels: numpy.ndarray, path: str) -> None:
    opaque = pixels[..., 3].min(initial=255) == 255
    Image.fromarray(pixels[..., :3] if opaque else pixels).save(path, "PNG", compress_level=1)


def _write_pam(pixels: numpy.ndarray, path: str) -> bool:
    """False: there was no room for it."""
    height, width, _ = pixels.shape
    try:
        with open(path, "wb", buffering=0) as file:
            file.write(PAM % (width, height))
            rows = (list(pixels[at : at + ROWS]) for at in range(0, height, ROWS))  # a part of a larger drawing: not copied first
            return sum(os.writev(file.fileno(), some) for some in rows) == pixels.nbytes
    except OSError:
        return False


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _claim(picture: Picture, path: str, width: int, height: int) -> dict:
    summary = f"{width}x{height}" + (f", {picture.summary}" if picture.summary else "")
    return {"path": path, "width": width, "height": height, "title": picture.title, "summary": summary}


def _parse(line: str) -> tuple[int, int, str]:
    if line.startswith("error: "):
        return 0, 0, line[len("error: ") :]
    width, height, _ = line.split()
    return int(width), int(height), ""


def _read_pam(path: str) -> numpy.ndarray | None:
    with open(path, "rb") as file:
        if file.readline() != b"P7\n":
            return None
        width, height = (int(file.readline().split()[1]) for _ in range(2))
        while file.readline() != b"ENDHDR\n":
            pass
        return numpy.frombuffer(file.read(width * height * 4), numpy.uint8).reshape(height, width, 4)


def _copy(source: str, target: str) -> tuple[int, int, str]:
    """Without the helper."""
    try:
        pixels = _read_pam(source)
        if pixels is None:
            shutil.copyfile(source, target)
        else:
            write_png(pixels, target)
        return *png_size(target), ""
    except (OSError, ValueError) as error:
        return 0, 0, str(error)
