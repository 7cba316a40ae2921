"""Archives, good and hostile, written byte by byte where no library would write them."""

import io
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path


def zipped(path: Path, members: list[tuple[str, bytes]], **options) -> Path:
    """A zip file with these members, duplicates and evil names included."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def zipped_raw(path: Path, members: list[tuple[bytes, bytes]]) -> Path:
    """A zip file whose names are these bytes, without the flag that says UTF-8."""
    body, directory = b"", b""
    for name, data in members:
        fixed = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0x21, zlib.crc32(data), len(data), len(data), len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fixed + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        body += b"PK\3\4" + fixed + name + data
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\5\6" + end)
    return path


def tarred(path: Path, members: list[tuple[tarfile.TarInfo | str, bytes]], mode: str = "w") -> Path:
    """A tar file; a member is a name or a whole TarInfo."""
    with tarfile.open(path, mode) as archive:
        for member, data in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """A tar member that is no regular file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def rar(path: Path, members: list[tuple[str, bytes]]) -> Path:
    """A RAR 4 file that only stores."""
    out = b"Rar!\x1a\x07\0" + _rar_block(0x73, 0, b"\0" * 6)
    for name, data in members:
        head = struct.pack(
            "<IIBIIBBHI", len(data), len(data), 3, zlib.crc32(data), 0x21 << 16, 20, 0x30, len(name), 0o100644
        )
        out += _rar_block(0x74, 0x8000, head + name.encode()) + data
    path.write_bytes(out + _rar_block(0x7B, 0x4000, b""))
    return path


def _rar_block(kind: int, flags: int, data: bytes) -> bytes:
    body = struct.pack("<BHH", kind, flags, 7 + len(data)) + data
    return struct.pack("<H", zlib.crc32(body) & 0xFFFF) + body
