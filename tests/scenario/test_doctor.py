"""doctor, and that nothing is served on a machine that cannot hold a box: real bad machines where one can be made."""
import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from sandbook import PROGRAM, ROOT, Case, run

IS_ROOT = os.geteuid() == 0
SUPPORT = Path(os.environ.get("SANDBOOK_BOX_SUPPORT", str(ROOT / "build/keeper/box")))


class Doctor(Case):
    def lines(self, *words: str, status: int, before: tuple[str, ...] = ()) -> list[dict]:
        p = subprocess.run([*before, PROGRAM, "doctor", "--json", *words], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def failed(self, lines: list[dict]) -> str:
        return " | ".join(f"{x['name']}: {x['detail']}" for x in lines if x["outcome"] == "fail")

    def test_a_good_machine_passes_every_escape(self) -> None:
        lines = self.lines(status=0)
        self.assertEqual(self.failed(lines), "")
        self.assertGreaterEqual(sum(x["outcome"] == "pass" for x in lines), 26)
        self.assertEqual({x["outcome"] for x in lines} - {"pass", "info", "warn", "skip"}, set())
        self.assertTrue(all({"name", "outcome", "detail"} == set(x) for x in lines))

    def leaking(self) -> str:
        """The box's own programs, but the interpreter is started with a secret in its environment."""
        copy = Path(self.out, "box")
        shutil.copytree(SUPPORT, copy, symlinks=True)
        os.chmod(self.out, 0o755)
        zygote = copy / "zygote.py"
        text = zygote.read_text()
        marked = text.replace("            reseed()\n", "            reseed()\n            os.environ['MODEL_KEY'] = 'canary'\n")
        self.assertNotEqual(marked, text)
        zygote.write_text(marked)
        return f"box.support={copy}"

    def test_an_escape_that_gets_through_is_refused_service_by_every_command(self) -> None:
        leak = ("--set", self.leaking())
        for words, stdin in ((("ask", "total?"), ""), (("cells",), "1\n"), (("chat",), "hello\n"), (("run", "--set", "local.stdio=yes"), "")):
            p = run(*words, *leak, "--set", f"service.data_dir={self.out}/data", stdin=stdin, cwd=self.out)
            self.assertEqual(p.returncode, 3, (words, p.stdout, p.stderr))
            self.assertIn("an escape was not stopped when it was tried at the start: an environment without secrets", p.stderr)
            self.assertIn("do not run the service on this machine", p.stderr)
            self.assertNotIn("canary", p.stdout + p.stderr)
        failed = self.failed(self.lines(*leak, status=1))
        self.assertIn("MODEL_KEY", failed)

    def bad(self, script: str) -> str:
        """doctor's words in a namespace that a script has made worse."""
        lines = self.lines("--set", "box.min_tier=T1", status=3, before=("unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"))
        return self.failed(lines)

    @unittest.skipUnless(IS_ROOT, "only root can mount over /proc")
    def test_a_proc_that_is_masked_is_named_with_the_cure(self) -> None:
        said = self.bad("mount -t tmpfs none /proc/irq 2>/dev/null || mount -t tmpfs none /proc/fs")
        self.assertIn("boxes can't be made: proc", said)
        self.assertIn("ProtectKernelTunables", said)

    @unittest.skipUnless(IS_ROOT, "a user namespace of our own is needed")
    def test_user_namespaces_that_are_forbidden_are_named_with_the_cure(self) -> None:
        inner = "echo 0 > /proc/sys/user/max_user_namespaces"
        lines = self.lines(status=3, before=("unshare", "--user", "--map-root-user", "sh", "-c", f'{inner} && exec "$@"', "sh"))
        said = self.failed(lines)
        self.assertIn("boxes can't be made", said)
        self.assertRegex(said, "user.max_user_namespaces|range of ids|map that range")

    @unittest.skipUnless(IS_ROOT, "root has control groups here that a plain user has not")
    def test_below_the_wanted_tier_is_refused_with_the_cure(self) -> None:
        folder = Path(self.out, "seen")
        for name in ("build", "image"):
            (folder / name).mkdir(parents=True)
        os.chmod(self.out, 0o755)
        image = subprocess.run([str(ROOT / "sandbox/image/build")], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
        keeper = os.path.realpath(Path(os.path.realpath(PROGRAM)).parent / "sandbook-box")
        script = (
            f"mount --bind {ROOT}/build {folder}/build && mount --bind {image} {folder}/image && exec setpriv --reuid 65534 --regid 65534 "
            f'--clear-groups env HOME=/ {folder}/build/{os.path.relpath(os.path.realpath(PROGRAM), ROOT / "build")} doctor --json --set box.min_tier=T0 '
            f"--set box.keeper={folder}/build/{os.path.relpath(keeper, ROOT / 'build')} --set box.support={folder}/build/keeper/box --set box.image={folder}/image"
        )
        p = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300, check=False)
        lines = [json.loads(line) for line in p.stdout.splitlines()]
        if any(x["name"] == "cgroups" and x["detail"] != "none" for x in lines):
            self.skipTest("a plain user has control groups here")
        self.assertEqual(p.returncode, 3, p.stdout + p.stderr)
        said = self.failed(lines)
        self.assertIn("no control groups", said)
        self.assertRegex(said, "Delegate=yes|writable|of its own")


if __name__ == "__main__":
    unittest.main()
