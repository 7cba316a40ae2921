"""The picture helper by itself: every kind of PNG in, plain PNG out, and nothing hostile through."""

import os
import random
import struct
import subprocess
import tempfile
import unittest
import zlib

HELPER = os.environ.get("SANDBOOK_PICTURE", "/opt/sandbook/bin/picture")
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, kind=2, depth=8, pixels=None, extra=b"", interlaced=0, tail=b"") -> bytes:
    """`pixels`: the rows' bytes without filter bytes; zeros if not given."""
    row = (width * CHANNELS[kind] * depth + 7) // 8
    pixels = bytes(row * height) if pixels is None else pixels
    raw = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(height))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced))
    return SIGNATURE + head + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND") + tail


def pam(width, height, pixels: bytes) -> bytes:
    return b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % (width, height) + pixels


def unfilter(raw: bytes, row: int, size: int) -> bytes:
    """The three filters that the helper may write."""
    out, above = [], bytes(row)
    for start in range(0, len(raw), row + 1):
        how, line = raw[start], bytearray(raw[start + 1 : start + 1 + row])
        for i in range(row):
            left = line[i - size] if i >= size else 0
            line[i] = (line[i] + (0, left, above[i])[how]) & 0xFF
        out.append(bytes(line))
        above = line
    return b"".join(out)


def parse(data: bytes) -> dict:
    """A PNG of the helper's."""
    assert data[:8] == SIGNATURE
    kinds, idat, at = [], b"", 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        kinds.append(kind.decode())
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        if kind == b"IDAT":
            idat += body
        at += 12 + length
    size = CHANNELS[colour]
    pixels = unfilter(zlib.decompress(idat), width * size, size)
    return {
        "size": (width, height),
        "kind": colour,
        "depth": depth,
        "interlaced": interlaced,
        "chunks": set(kinds),
        "pixels": pixels,
    }


@unittest.skipUnless(os.path.exists(HELPER), "the picture helper is not built")
class Picture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, data: bytes) -> str:
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def helper(self, *args: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run([HELPER, *args], capture_output=True, timeout=60, **options)

    def run_one(self, data: bytes, *options: str) -> tuple[str, dict | None]:
        done = self.helper(*options, self.write("in.png", data), self.path("out.png"))
        line = done.stdout.decode().strip()
        if line.startswith("error"):
            self.assertEqual(done.returncode, 1)
            return line, None
        self.assertEqual(done.returncode, 0)
        with open(self.path("out.png"), "rb") as file:
            out = file.read()
        picture = parse(out)
        self.assertEqual(line, f"{picture['size'][0]} {picture['size'][1]} {len(out)}")
        return line, picture

    def good(self, data: bytes, *options: str) -> dict:
        line, picture = self.run_one(data, *options)
        self.assertIsNotNone(picture, line)
        self.assertEqual((picture["chunks"], picture["depth"], picture["interlaced"]), ({"IHDR", "IDAT", "IEND"}, 8, 0))
        return picture

    def test_every_kind_becomes_eight_bit_gray_rgb_or_rgba(self):
        palette = chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0]))
        clear = chunk(b"tRNS", bytes([0]))
        for name, data, kind, pixels in [
            ("gray", png(2, 1, 0, 8, b"\x10\x20"), 0, b"\x10\x20"),
            ("gray, 1 bit", png(2, 1, 0, 1, b"\x40"), 0, b"\x00\xff"),
            ("gray, 16 bits", png(1, 1, 0, 16, b"\x80\x80"), 0, b"\x80"),
            ("gray with alpha", png(1, 1, 4, 8, b"\x10\x80"), 6, b"\x10\x10\x10\x80"),
            ("gray with alpha, opaque", png(1, 1, 4, 8, b"\x10\xff"), 0, b"\x10"),
            ("rgb", png(1, 1, 2, 8, b"\1\2\3"), 2, b"\1\2\3"),
            ("rgb, 16 bits", png(1, 1, 2, 16, b"\1\1\2\2\3\3"), 2, b"\1\2\3"),
            (
                "rgb, one colour clear",
                png(2, 1, 2, 8, b"\1\2\3\4\5\6", chunk(b"tRNS", b"\0\1\0\2\0\3")),
                6,
                b"\1\2\3\0\4\5\6\xff",
            ),
            ("rgba", png(1, 1, 6, 8, b"\1\2\3\4"), 6, b"\1\2\3\4"),
            ("rgba, opaque", png(1, 1, 6, 8, b"\1\2\3\xff"), 2, b"\1\2\3"),
            ("palette", png(2, 1, 3, 8, b"\0\1", palette), 2, b"\xff\0\0\0\xff\0"),
            ("palette, 2 bits, clear", png(2, 1, 3, 2, b"\x10", palette + clear), 6, b"\xff\0\0\0\0\xff\0\xff"),
            ("interlaced", png(1, 1, 2, 8, b"\1\2\3", interlaced=1), 2, b"\1\2\3"),
        ]:
            with self.subTest(name):
                picture = self.good(data)
                self.assertEqual((picture["kind"], picture["pixels"]), (kind, pixels))

    def test_everything_but_the_picture_is_dropped(self):
        extra = (
            chunk(b"tEXt", b"Author\0secret")
            + chunk(b"iCCP", b"p\0\0" + zlib.compress(b"profile"))
            + chunk(b"gAMA", b"\0\0\xb1\x8f")
        )
        extra += chunk(b"eXIf", b"MM\0*") + chunk(b"vpAg", b"private") + chunk(b"pHYs", b"\0\0\1\0\0\0\1\0\1")
        data = png(1, 1, 2, 8, b"\1\2\3", extra, tail=b"PK\3\4 hidden archive")
        self.assertEqual(self.good(data)["pixels"], b"\1\2\3")
        with open(self.path("out.png"), "rb") as file:
            out = file.read()
        for word in (b"secret", b"private", b"hidden"):
            self.assertNotIn(word, out)

    def test_what_is_too_large_or_no_picture_is_refused(self):
        bomb = (
            SIGNATURE
            + chunk(b"IHDR", struct.pack(">IIBBBBB", 8192, 8192, 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b""))
            + chunk(b"IEND")
        )
        for name, data, why in [
            ("wide", png(8193, 1, 0), "invalid"),
            ("many pixels", bomb, "more than"),
            ("no width", SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 1, 8, 2, 0, 0, 0)), "invalid"),
            (
                "huge",
                SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)),
                "invalid",
            ),
            ("empty", b"", "not a readable PNG"),
            ("jpeg", b"\xff\xd8\xff\xe0" + bytes(100), "not a readable PNG"),
            ("text", b"hello", "not a readable PNG"),
            ("cut", png(10, 10)[:-40], "not a readable PNG"),
            (
                "no data",
                SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IEND"),
                "not a readable PNG",
            ),
            ("palette without one", png(1, 1, 3), "not a readable PNG"),
            ("wrong sum", png(1, 1)[:-5] + b"abcde", None),
        ]:
            with self.subTest(name):
                line, picture = self.run_one(data)
                if why is None:
                    continue
                self.assertIsNone(picture)
                self.assertIn(why.lower(), line.lower())

    def test_larger_pictures_are_made_smaller_by_averaging(self):
        for size, limit, expected in [
            ((4000, 2000), 2000, (2000, 1000)),
            ((100, 300), 30, (10, 30)),
            ((2000, 10), 2000, (2000, 10)),
            ((3000, 1), 1000, (1000, 1)),
            ((1001, 777), 1000, (1000, 776)),
            ((7, 5), 3, (3, 2)),
        ]:
            with self.subTest(size):
                picture = self.good(png(*size, 0, 8, b"\x64" * (size[0] * size[1])), "-m", str(limit))
                self.assertEqual(picture["size"], expected)
                self.assertEqual(set(picture["pixels"]), {0x64})  # one colour stays that colour

    def test_averages_are_right(self):
        self.assertEqual(self.good(png(4, 1, 0, 8, bytes([0, 100, 200, 100])), "-m", "2")["pixels"], bytes([50, 150]))
        self.assertEqual(self.good(png(3, 1, 0, 8, bytes([0, 150, 90])), "-m", "2")["pixels"], bytes([50, 110]))
        self.assertEqual(self.good(png(1, 4, 0, 8, bytes([0, 100, 200, 100])), "-m", "2")["pixels"], bytes([50, 150]))

    def test_invisible_colour_does_not_tint(self):
        pixels = self.good(png(2, 1, 6, 8, b"\xff\0\0\0" + b"\0\0\xff\xff"), "-m", "1")["pixels"]
        self.assertEqual(pixels, b"\0\0\xff\x80")

    def test_several_pictures_in_one_call(self):
        self.write("a.png", png(3, 1))
        self.write("b.png", b"no")
        done = self.helper(
            *(self.path(n) for n in ("a.png", "a.out", "b.png", "b.out", "none.png", "c.out", "a.png", "d.out"))
        )
        lines = done.stdout.decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["3", "error:", "error:", "3"])
        self.assertIn("can't be read", lines[2])
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(self.path("b.out")))

    def test_a_picture_can_replace_itself_and_pipes_work(self):
        path = self.write("a.png", png(3, 1, 2, 8, bytes(range(9))))
        self.assertEqual(self.helper(path, path).returncode, 0)
        with open(path, "rb") as file:
            self.assertEqual(parse(file.read())["pixels"], bytes(range(9)))
        done = self.helper("-", "-", input=png(3, 1, 2, 8, bytes(range(9))))
        self.assertEqual(parse(done.stdout)["pixels"], bytes(range(9)))
        self.assertEqual(done.stderr.decode().split()[:2], ["3", "1"])

    def test_special_files_are_refused_without_waiting(self):
        for path in ("/dev/zero", self.folder, "/proc/self/mem"):
            with self.subTest(path):
                self.assertIn(b"error:", self.helper(path, self.path("out.png")).stdout)
        os.mkfifo(self.path("fifo"))
        self.assertIn(b"error:", self.helper(self.path("fifo"), self.path("out.png")).stdout)

    def test_links_are_not_written_through(self):
        os.symlink(self.path("target"), self.path("link"))
        self.assertIn(b"can't be written", self.helper(self.write("a.png", png(1, 1)), self.path("link")).stdout)
        self.assertFalse(os.path.exists(self.path("target")))

    def test_wrong_usage_says_so(self):
        for args in (
            [],
            ["a"],
            ["-m", "0", "a", "b"],
            ["-m", "x", "a", "b"],
            ["-m", "9999", "a", "b"],
            ["-x", "a", "b"],
            ["-s", "800", "a", "b"],
            ["-s", "800x", "a", "b"],
            ["-s", "x600", "a", "b"],
            ["-s", "0x600", "a", "b"],
            ["-s", "800x600x1", "a", "b"],
            ["-s", "800x9999", "a", "b"],
            ["-s", "-1x-1", "a", "b"],
        ):
            with self.subTest(args):
                self.assertEqual(self.helper(*args).returncode, 2)

    def test_pixels_as_they_are_become_the_same_picture_as_their_png(self):
        chance = random.Random(2)
        for width, height, alpha in ((1, 1, True), (7, 5, False), (300, 40, True), (64, 200, False)):
            rgba = bytearray(chance.randbytes(width * height * 4))
            if not alpha:
                rgba[3::4] = b"\xff" * (width * height)
            with self.subTest(size=(width, height), alpha=alpha):
                plain = self.good(pam(width, height, bytes(rgba)))
                self.assertEqual(plain, self.good(png(width, height, 6, 8, bytes(rgba))))
                self.assertEqual(plain["kind"], 6 if alpha else 2)
                self.assertEqual(self.good(pam(width, height, bytes(rgba)), "-m", "30"), self.good(png(width, height, 6, 8, bytes(rgba)), "-m", "30"))

    def test_pixels_that_are_not_what_they_say_are_refused(self):
        whole = pam(3, 2, bytes(24))
        for name, data in [
            ("short", whole[:-1]),
            ("no pixels", pam(3, 2, b"")),
            ("half a head", whole[:20]),
            ("too wide", pam(8193, 1, bytes(100))),
            ("too many", pam(8192, 8192, bytes(100))),
            ("nothing", pam(0, 3, b"")),
            ("negative", whole.replace(b"WIDTH 3", b"WIDTH -3")),
            ("huge", whole.replace(b"WIDTH 3", b"WIDTH 99999999999999999999")),
            ("not a number", whole.replace(b"WIDTH 3", b"WIDTH 3x")),
            ("a long line", whole.replace(b"WIDTH 3", b"WIDTH " + b"0" * 40 + b"3")),
            ("three channels", whole.replace(b"DEPTH 4", b"DEPTH 3")),
            ("two bytes each", whole.replace(b"MAXVAL 255", b"MAXVAL 65535")),
            ("another order", whole.replace(b"P7\nWIDTH 3\nHEIGHT 2", b"P7\nHEIGHT 2\nWIDTH 3")),
            ("another of netpbm's", b"P6\n3 2\n255\n" + bytes(18)),
            ("NULs", b"P7\0\n" + whole[3:]),
        ]:
            with self.subTest(name):
                self.assertIsNone(self.run_one(data)[1])

    def test_a_small_one_lies_beside_what_is_too_large(self):
        for width, height, small in ((40, 10, (20, 5)), (10, 40, (4, 15)), (20, 15, None), (21, 15, (20, 14)), (8000, 1, (20, 1))):
            data = pam(width, height, random.Random(3).randbytes(width * height * 4))
            with self.subTest(size=(width, height)):
                self.assertEqual(self.good(data, "-s", "20x15")["size"], (width, height))
                beside = self.path("out.small.png")
                self.assertEqual(os.path.exists(beside), small is not None)
                if small:
                    with open(beside, "rb") as file:
                        found = parse(file.read())
                    self.assertEqual(found["size"], small)
                    self.assertEqual(found, self.good(data, "-m", str(max(small))))
                    os.unlink(beside)

    def test_damaged_files_never_crash_it(self):
        chance = random.Random(1)
        palette = chunk(b"PLTE", bytes(range(30)))
        seeds = [pam(9, 9, bytes(range(81)) * 4), png(9, 9, 6, 8), png(9, 9, 3, 4, extra=palette), png(17, 3, 0, 16), png(8, 8, 2, 8, interlaced=1)]
        paths = []
        for i in range(400):
            data = bytearray(chance.choice(seeds))
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            paths += [self.write(f"{i}.png", bytes(data)), self.path(f"{i}.out")]
        done = self.helper(*paths)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 400)


if __name__ == "__main__":
    unittest.main()
