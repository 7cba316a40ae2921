"""The two others: bubblewrap with a cold interpreter, and a Jupyter kernel, both on the box image's Python and libraries.

What the Jupyter kernel needs besides is fetched once, into the cache of the image (SANDBOOK_CACHE, else ~/.cache/sandbook)."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keeper

IMPORTS = "import numpy, pandas, matplotlib.pyplot, scipy.stats, sklearn.linear_model, sklearn.ensemble, sklearn.cluster, seaborn"
CACHE = Path(os.environ.get("SANDBOOK_CACHE") or Path.home() / ".cache/sandbook") / "bench"
WHEELS = ["--python-version", "3.13", "--only-binary=:all:", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]


def in_image(*more: str) -> list[str]:
    """A command line that runs what follows in the image, by bubblewrap."""
    root = keeper.image()
    words = ["bwrap", "--ro-bind", f"{root}/usr", "/usr", "--ro-bind", f"{root}/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in os.listdir(root):
        if os.path.islink(f"{root}/{name}"):
            words += ["--symlink", os.readlink(f"{root}/{name}"), f"/{name}"]
    return [*words, *more, "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "MPLBACKEND", "Agg", "--setenv", "OPENBLAS_NUM_THREADS", "1"]


def cold(code: str, imports: str = IMPORTS) -> float | None:
    """Milliseconds from nothing to that code's end, in an interpreter that has to import first; None: no bubblewrap."""
    if not shutil.which("bwrap"):
        return None
    words = [*in_image("--unshare-all"), "python3", "-I", "-c", f"{imports}\n{code}"]
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def _fetch() -> None:
    if not (CACHE / "client/bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "client")], check=True)
        subprocess.run([str(CACHE / "client/bin/pip"), "install", "-q", "jupyter_client"], check=True)
    if not (CACHE / "kernel/ipykernel").exists():
        subprocess.run([str(CACHE / "client/bin/pip"), "install", "-q", "--target", str(CACHE / "kernel"), *WHEELS, "ipykernel"], check=True)


def jupyter() -> "Jupyter | None":
    try:
        _fetch()
        return Jupyter()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no Jupyter kernel: {error}", file=sys.stderr)
        return None


class Jupyter:
    """A kernel, and a client process of its own that asks it (jupyter_client lives in another Python)."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="sandbook-jupyter-")
        self.began = time.perf_counter()
        words = [*in_image("--unshare-pid", "--die-with-parent", "--ro-bind", str(CACHE / "kernel"), "/opt/kernel", "--bind", self.folder, "/run"), "--setenv", "PYTHONPATH", "/opt/kernel",
                 "python3", "-m", "ipykernel_launcher", "-f", "/run/kernel.json", "--transport=ipc", "--ip=/run/socket"]
        self.kernel = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = [str(CACHE / "client/bin/python"), str(Path(__file__).with_name("jupyter_ask.py")), self.folder]
        self.client = subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.client.stdout
        if self.client.stdout.readline() != "ready\n":
            self.close()
            raise OSError("the kernel did not start")

    def cell(self, code: str) -> float:
        assert self.client.stdin and self.client.stdout
        self.client.stdin.write(code.replace("\n", ";") + "\n")
        self.client.stdin.flush()
        return float(self.client.stdout.readline())

    def memory(self) -> float:
        """MiB of private memory of the kernel's process."""
        pid = next(p for p, name in keeper.descendants(self.kernel.pid).items() if name != "bwrap")
        rows = [r.split() for r in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
        return sum(int(r[1]) for r in rows if r[0].startswith("Private_")) / 1024

    def close(self) -> None:
        for p in (self.client, self.kernel):
            p.kill()
            p.wait()
        if self.client.stdin and self.client.stdout:
            self.client.stdin.close()
            self.client.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
