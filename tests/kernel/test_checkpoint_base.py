"""What all checkpoint tests start from: one session that writes itself down, and a new one that reads it.

Never the same process: half of what can go wrong shows only where nothing of the old session is left.
"""

import os
import shutil
import tempfile
import textwrap

from driver import KernelTest, Reply, Session

WIRE = """
from kernel import checkpoint, ops
ops.OPS.update(checkpoint=checkpoint.op_checkpoint, restore=checkpoint.op_restore)
del checkpoint, ops
"""


def new_session() -> Session:
    session = Session()
    reply = session.run(WIRE)
    assert reply["status"] == "ok", reply
    return session


class CheckpointTest(KernelTest):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="kernel-checkpoint-")
        self.addCleanup(shutil.rmtree, folder, True)
        self.path = os.path.join(folder, "state")
        self.session = self.enter(new_session())

    def enter(self, session: Session) -> Session:
        self.addCleanup(session.close)
        return session

    def run_cell(self, code: str, **options) -> Reply:
        return super().run_cell(textwrap.dedent(code).strip("\n"), **options)

    def checkpoint(self, **options) -> Reply:
        """As the keeper asks for it, into the file at self.path; a pipe would do."""
        with open(self.path, "wb") as file:
            return self.session.call("checkpoint", fds=(file.fileno(),), **options)

    def restore(self, **options) -> Reply:
        with open(self.path, "rb") as file:
            return self.session.call("restore", fds=(file.fileno(),), **options)

    def save(self, **options) -> dict:
        reply = self.checkpoint(**options)
        self.assertEqual(reply["status"], "ok", reply)
        self.assertEqual((reply.stdout, reply.stderr), ("", ""))
        return reply["report"]

    def thaw(self, **options) -> dict:
        """In a new session, which has the files of the old one; the test goes on in it."""
        old, self.session = self.session, self.enter(new_session())
        shutil.copytree(old.data_dir, self.session.data_dir, dirs_exist_ok=True)
        reply = self.restore(**options)
        self.session.number = old.number  # as the daemon counts
        self.assertEqual(reply["status"], "ok", reply)
        self.assertEqual((reply.stdout, reply.stderr), ("", ""))
        return reply["report"]

    def over(self, code: str) -> dict:
        """Run, written down, thawed with nothing lost. -> the report"""
        self.ok(code)
        saved = self.save()
        report = self.thaw()
        self.assertEqual((saved["lost"], report["lost"], report["error"]), ([], [], None), (saved, report))
        self.assertEqual(saved["notes"], report["notes"])
        return report

    def lost(self, code: str, **options) -> dict[str, str]:
        """-> name and reason of what is lost; the same before and after."""
        self.ok(code)
        saved = self.save(**options)
        report = self.thaw()
        self.assertIsNone(report["error"], report)
        self.assertEqual(saved["lost"], report["lost"])
        return {entry["name"]: entry["why"] for entry in report["lost"]}

    def true(self, *expressions: str) -> None:
        for expression in expressions:
            with self.subTest(expression):
                self.assertIn(self.value(expression), ("True", "np.True_"))
