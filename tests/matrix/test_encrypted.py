"""Encrypted rooms: the bot, a real Synapse, and people with matrix-js-sdk's Rust crypto and with matrix-nio."""
import io
import unittest
import zipfile

from bot import call
from encrypted import API, FULL, Encrypted
from jspeer import JsPerson
from niopeer import NioPerson, nio_process

CSV = b"region,amount\nnorth,10\nsouth,32\n"
JOB = """import pandas as pd, numpy as np
from PIL import Image
total = pd.read_csv('sales.csv').amount.sum()
print(total)
pixels = np.zeros((900, 1200, 3), np.uint8)
pixels[:, :600] = (200, 30, 60)
pixels[:450, 600:] = (10, 160, 90)
Image.fromarray(pixels)"""


def halves(data: bytes) -> tuple[int, int, list[tuple[int, ...]]]:
    """Width, height, and the pixels in the middle of left, right top and right bottom of a PNG of 8 bits a channel."""
    import struct  # pylint: disable=import-outside-toplevel
    import zlib  # pylint: disable=import-outside-toplevel
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    size = {2: 3, 6: 4}[colour]
    assert depth == 8
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
        at += n + 12
    raw, rows, above = zlib.decompress(packed), [], bytearray(width * size)
    for y in range(height):
        how, row = raw[y * (width * size + 1)], bytearray(raw[y * (width * size + 1) + 1:(y + 1) * (width * size + 1)])
        for x in range(len(row) if how else 0):
            left, up, corner = (row[x - size] if x >= size else 0), above[x], (above[x - size] if x >= size else 0)
            nearest = min((left, up, corner), key=lambda v, p=left + up - corner: abs(p - v))
            row[x] = (row[x] + (0, left, up, (left + up) // 2, nearest)[how]) & 255
        rows.append(row)
        above = row
    pick = [(height // 2, width // 4), (height // 4, width * 3 // 4), (height * 3 // 4, width * 3 // 4)]
    return width, height, [tuple(rows[y][x * size:x * size + 3]) for y, x in pick]


class Job(Encrypted):
    def in_thread(self, root: str) -> dict:
        return {"m.relates_to": {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}}

    def test_E01_the_job_in_an_encrypted_room_with_only_signed_devices(self) -> None:
        bot = self.ready_bot(call(JOB), {"text": "|total|\n|---|\n|42|"})
        ann = self.js()
        room = self.room(ann, bot, self.person("bea"))
        ann.do("strict", room=room)
        root = ann.say(room, "let us look at the sales")
        asked = ann.send_file(room, CSV, "sales.csv", caption="sum and a picture", more={"m.mentions": {"user_ids": [bot.user]}} | self.in_thread(root))
        got = self.answer(ann, bot, asked)
        self.assertEqual((got["failed"], got["shield"]), (False, 0))
        self.assertIn("<table>", got["content"]["formatted_body"])
        self.assertEqual(got["wire"]["m.relates_to"]["event_id"], root)
        self.assert_picture(ann, ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("msgtype") == "m.image"))
        follow = ann.say(room, "and one more?", **self.in_thread(root))
        bot.stop()
        bot.answers(call("print(total + 1)"), {"text": "43"}, call("print(total + 2)"), {"text": "44"},
                    call("import glob; print(open(glob.glob('**/inner.csv', recursive=True)[0]).read())"), {"text": "unpacked"})
        bot.start()
        self.assertEqual(self.answer(ann, bot, follow)["content"]["body"].split()[0], "43")
        new = {"msgtype": "m.text", "body": "and two more?"}
        ann.say(room, "* and two more?", **{"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": follow}})
        ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("m.new_content", e["content"]).get("body", "").startswith("44"))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as z:
            z.writestr("inner.csv", CSV)
        ann.send_file(room, packed.getvalue(), "both.zip", mimetype="application/zip", more=self.in_thread(root))
        self.assertIn("unpacked", self.answer(ann, bot, ann.say(room, "what is in it?", **self.in_thread(root)))["content"]["body"])
        self.assert_all_readable(ann)
        self.assertEqual({e["shield"] for e in ann.events if e.get("sender") == bot.user and e.get("type") == "m.room.message"}, {0})
        ann.do("kick", room=room, user=bot.user)
        bot.logged("matrix_room_left")

    def assert_picture(self, ann: JsPerson, image: dict) -> None:
        content, info = image["content"], image["content"]["info"]
        self.assertEqual((image["encrypted"], image["shield"]), (True, 0))
        self.assertNotIn("url", content)
        colours = [(200, 30, 60), (10, 160, 90), (0, 0, 0)]
        data = ann.download(content)
        self.assertEqual(halves(data), (info["w"], info["h"], colours))
        self.assertEqual((info["w"], info["h"], info["size"]), (1200, 900, len(data)))
        small, about = ann.download({"file": info["thumbnail_file"]}), info["thumbnail_info"]
        self.assertEqual(halves(small), (about["w"], about["h"], colours))
        self.assertEqual((about["w"], about["h"], about["size"], about["mimetype"]), (800, 600, len(small), "image/png"))
        self.assertNotEqual(info["thumbnail_file"]["key"]["k"], content["file"]["key"]["k"])

    def test_E01_matrix_nio_in_an_encrypted_room(self) -> None:
        bot = self.ready_bot(call(JOB.replace("pd.read_csv('sales.csv').amount.sum()", "42")), {"text": "**done**"})
        process = nio_process()
        self.addCleanup(process.close)
        store = bot.folder / "nio"
        store.mkdir()
        nio = NioPerson(process, self.server.register("nio"), str(store))
        room = self.room(nio, bot, direct=True)
        got = self.answer(nio, bot, nio.say(room, "a picture, please"))
        self.assertIn("<strong>done</strong>", got["content"]["formatted_body"])
        image = nio.until(lambda e: e.get("content", {}).get("msgtype") == "m.image")["content"]
        for data in (nio.download(image), nio.download({"file": image["info"]["thumbnail_file"]})):
            self.assertEqual(halves(data)[2][0], (200, 30, 60))
        self.assert_all_readable(nio)

    def test_E25_files_that_were_changed_on_their_way_are_refused_in_words(self) -> None:
        sizes = "import os; open('sizes.txt', 'w').write(' '.join(str(os.path.getsize(f'size{n}.csv')) for n in (0, 1, 900_000)))"
        bot = self.ready_bot(call(sizes), {"text": "made `sizes.txt`"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        ann.send_file(room, CSV, "bad.csv", broken=True)
        ann.until(lambda e: e.get("sender") == bot.user and "bad.csv" in e["content"].get("body", ""))
        for size in (0, 1, 900_000):
            ann.send_file(room, b"x" * size, f"size{size}.csv")
        ann.say(room, "empty", **{"msgtype": "m.file", "filename": "blank.csv", "url": "", "file": {"v": "v1"}})
        self.ask(ann, bot, room, "what came?")
        made = ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("filename") == "sizes.txt")
        self.assertEqual(ann.download(made["content"]), b"0 1 900000")


class Rooms(Encrypted):
    def test_E02_strict_people_and_a_device_that_nobody_signed(self) -> None:
        bot = self.ready_bot({"text": "hello"}, cross_signing="no")
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        ann.do("strict", room=room)
        ann.say(room, "hi", bot.user)
        self.assertIn("m.unverified", bot.logged("why=withheld"))
        self.assertIn("this device is not signed", bot.logged("crypto_alarm"))
        # Words that she will not be shown as long as she is as strict as that.
        person = self.server.register("reader")
        ann.account.call("POST", ann.account.at(room, "invite"), {"user_id": person.user})
        person.call("POST", person.at(room, "join"), {})
        person.until(room, lambda e: e["sender"] == bot.user and e["type"] == "m.room.encrypted")

    def test_E01_a_direct_room_where_nobody_has_an_identity(self) -> None:
        bot = self.ready_bot({"text": "hello"}, cross_signing="no")
        ann = self.js(identity=False)
        room = self.room(ann, bot, direct=True)
        self.answer(ann, bot, ann.say(room, "hi"))

    def test_E11_a_device_that_comes_later_reads_what_comes_later(self) -> None:
        bot = self.ready_bot({"text": "first"}, {"text": "second"})
        ann = self.js(identity=False)
        room = self.room(ann, bot, direct=True)
        before = self.answer(ann, bot, ann.say(room, "one"))
        phone = self.js(identity=False, account=ann.account)
        after = self.answer(phone, bot, ann.say(room, "two"))
        self.assertEqual(before["wire"]["session_id"], after["wire"]["session_id"])
        self.assertFalse([e for e in phone.events if e.get("event") == before["event"] and not e["failed"]])

    def test_E21_a_room_that_becomes_encrypted_and_one_that_is_replaced_by_an_encrypted_one(self) -> None:
        bot = self.ready_bot({"text": "plain"}, {"text": "sealed"}, {"text": "sealed there"})
        ann = self.js()
        room = self.room(ann, bot, self.person("bea"), plain=True)
        first = ann.say(room, "one", bot.user)
        self.assertFalse(ann.until(lambda e: e.get("content", {}).get("org.sandbook.re") == first)["encrypted"])
        ann.do("state", room=room, type="m.room.encryption", content={"algorithm": "m.megolm.v1.aes-sha2"})
        ann.until(lambda e: e.get("type") == "m.room.encryption" and e["room"] == room)
        self.ask(ann, bot, room, "two")
        new = ann.account.call("POST", ann.account.at(room, "upgrade"), {"new_version": "11"})["replacement_room"]
        ann.account.call("POST", ann.account.at(new, "invite"), {"user_id": bot.user})
        self.until_member(ann, new, bot.user)
        self.ask(ann, bot, new, "three")

    def test_E22_plain_text_in_an_encrypted_room_is_dropped(self) -> None:
        bot = self.ready_bot({"text": "sealed"})
        ann, bea = self.js(), self.person("bea")
        room = self.room(ann, bot, bea)
        bea.say(room, "plain", bot.user)
        bea.send_file(room, CSV, "plain.csv", caption="in clear", mention=(bot.user,))
        bot.logged("matrix_plaintext_dropped")
        self.ask(ann, bot, room, "sealed?")

    def test_E23_edits_reactions_threads_and_redactions_of_encrypted_questions(self) -> None:
        bot = self.ready_bot({"text": "first"}, {"text": "second"}, {"text": "third"})
        ann = self.js()
        room = self.room(ann, bot, direct=True)
        asked = ann.say(room, "one")
        first = self.answer(ann, bot, asked)
        ann.say(room, "* two", **{"m.new_content": {"msgtype": "m.text", "body": "two"}, "m.relates_to": {"rel_type": "m.replace", "event_id": asked}})
        ann.until(lambda e: e.get("sender") == bot.user and e["content"].get("body", "").startswith("second"))
        amended = ann.until(lambda e: e.get("sender") == bot.user and e["wire"].get("m.relates_to", {}).get("rel_type") == "m.replace")
        self.assertEqual(amended["wire"]["m.relates_to"]["event_id"], first["event"])
        self.assertTrue(amended["encrypted"])
        ann.do("send", room=room, type="m.reaction", content={"m.relates_to": {"rel_type": "m.annotation", "event_id": asked, "key": "🔁"}})
        ann.until(lambda e: e.get("sender") == bot.user and "third" in e["content"].get("body", ""))
        ann.do("redact", room=room, event=asked)
        ann.until(lambda e: e.get("type") == "m.room.redaction")
        self.assertIsNone(bot.process.poll())

    def test_E24_many_devices_get_the_key_in_one_go_and_only_once(self) -> None:
        bot, proxy = self.proxied({"text": "first"}, {"text": "second"})
        ann = self.js()
        crowd, devices = [self.server.register("crowd") for _ in range(100 if FULL else 10)], []
        for person in crowd:
            for _ in range(2):
                got = person.call("POST", f"{API}/login", {"type": "m.login.password", "password": person.password,
                                                           "identifier": {"type": "m.id.user", "user": person.user}})
                devices.append({"user": person.user, "device": got["device_id"], "token": got["access_token"]})
        ann.do("crowd", url=self.server.url, devices=devices)
        room = self.room(ann, bot, *crowd)
        since, began = len(proxy.calls), bot.cpu_s()
        self.ask(ann, bot, room, "one")
        self.assertLess(bot.cpu_s() - began, 10)
        self.ask(ann, bot, room, "two")
        shares = [c.json["messages"] for c in proxy.seen("PUT .*/sendToDevice/m.room.encrypted", since)]
        told = [(user, device) for share in shares for user, its in share.items() for device in its]
        self.assertEqual(sorted(told), sorted({*((d["user"], d["device"]) for d in devices), (ann.user, ann.device)}))
        self.assertLessEqual(max(sum(map(len, share.values())) for share in shares), 250)


if __name__ == "__main__":
    unittest.main()
