"""Slack's own SDKs for Node and Python, and slack-go: installed once into the cache, pinned by the lock files beside this."""
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("SANDBOOK_CACHE", Path.home() / ".cache/sandbook")) / "peers"
GO = [HERE / "slackgo" / name for name in ("go.mod", "go.sum", "main.go")]
TOOLCHAIN, TOOLCHAIN_SUM = "v0.0.1-go1.26.8.linux-amd64", "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="
LOCKS = ("package.json", "package-lock.json", "requirements.txt")


def install(folder: Path) -> None:
    for name in LOCKS:
        shutil.copy(HERE / name, folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=True, stdout=sys.stderr)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder / "python"), "-r", "requirements.txt"]
    subprocess.run(pip, cwd=folder, check=True, stdout=sys.stderr)


def cached(name: str, locks: list[Path], tool: str, make: Callable[[Path], None]) -> Path | None:
    """The folder that make() filled for exactly these locks; None where that can't be, after saying why."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in locks)).hexdigest()[:16]
    done = CACHE / f"{name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_dir():
            return done
        if not shutil.which(tool):
            print(f"{name} peers: there is no {tool}", file=sys.stderr)
            return None
        print(f"{name} peers: making {done}", file=sys.stderr)
        fresh = Path(f"{done}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            make(fresh)
        except (subprocess.CalledProcessError, OSError) as e:
            print(f"{name} peers: not made: {e}", file=sys.stderr)
            return None
        fresh.rename(done)
        return done


def peers() -> Path | None:
    """The folder with node_modules and python."""
    return cached("slack", [HERE / name for name in LOCKS], "npm", install)


def new_go(folder: Path) -> str:
    """The Go that there is, or, where that is too old for slack-go as Debian 12's is, the one that it gets as a module, known by its sum."""
    env = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    has = subprocess.run(["go", "env", "GOVERSION"], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout
    wanted = re.search(r"^go (\d+)\.(\d+)", (HERE / "slackgo/go.mod").read_text(), re.M)
    known = re.match(r"go(\d+)\.(\d+)", has)
    if known and wanted and [int(n) for n in known.groups()] >= [int(n) for n in wanted.groups()]:
        return "go"
    got = subprocess.run(["go", "mod", "download", "-json", f"golang.org/toolchain@{TOOLCHAIN}"], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout
    module = json.loads(got)
    if module["Sum"] != TOOLCHAIN_SUM:
        raise OSError(f"golang.org/toolchain has the sum {module['Sum']}")
    for part in ("bin", "pkg/tool"):  # modules have no executable files
        for path in Path(module["Dir"], part).rglob("*"):
            path.chmod(0o755)
    return f"{module['Dir']}/bin/go"


def build_go(folder: Path) -> None:
    go = new_go(folder)
    for path in GO:
        shutil.copy(path, folder)
    env = {k: v for k, v in os.environ.items() if k != "GOROOT"} | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    subprocess.run([go, "build", "-o", "bot", "."], cwd=folder, check=True, env=env, stdout=sys.stderr)


def slack_go() -> Path | None:
    """A bot on slack-go; where there is no Go at all it is left out, and counted as such."""
    folder = cached("slackgo", GO, "go", build_go)
    return folder / "bot" if folder else None


if __name__ == "__main__":
    slack_go()
    sys.exit(0 if peers() else 1)
