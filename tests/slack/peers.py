"""Slack's own SDKs for Node and Python, and slack-go: installed once into the cache, pinned by the lock files beside this."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("SANDBOOK_CACHE", Path.home() / ".cache/sandbook")) / "peers"
GO = [HERE / "slackgo" / name for name in ("go.mod", "go.sum", "main.go")]
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


def build_go(folder: Path) -> None:
    for path in GO:
        shutil.copy(path, folder)
    env = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    subprocess.run(["go", "build", "-o", "bot", "."], cwd=folder, check=True, env=env, stdout=sys.stderr)


def slack_go() -> Path | None:
    """A bot on slack-go. It wants a newer Go than Debian 12 has, so where there is none it is left out, and counted as such."""
    folder = cached("slackgo", GO, "go", build_go)
    return folder / "bot" if folder else None


if __name__ == "__main__":
    slack_go()
    sys.exit(0 if peers() else 1)
