"""Slack's own SDKs for Node and Python, installed once into the cache, pinned by the lock files beside this."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("SANDBOOK_CACHE", Path.home() / ".cache/sandbook")) / "peers"
LOCKS = ("package.json", "package-lock.json", "requirements.txt")


def install(folder: Path) -> None:
    for name in LOCKS:
        shutil.copy(HERE / name, folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=True, stdout=sys.stderr)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder / "python"), "-r", "requirements.txt"]
    subprocess.run(pip, cwd=folder, check=True, stdout=sys.stderr)


def peers() -> Path | None:
    """The folder with node_modules and python; None where there is no npm or no registry, after saying so."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in LOCKS)).hexdigest()[:16]
    done = CACHE / f"slack-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "slack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_dir():
            return done
        if not shutil.which("npm"):
            print("slack peers: there is no npm (Debian packages nodejs, npm)", file=sys.stderr)
            return None
        print(f"slack peers: installing Slack's SDKs into {done}", file=sys.stderr)
        fresh = Path(f"{done}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            install(fresh)
        except (subprocess.CalledProcessError, OSError) as e:
            print(f"slack peers: not installed: {e}", file=sys.stderr)
            return None
        fresh.rename(done)
        return done


if __name__ == "__main__":
    sys.exit(0 if peers() else 1)
