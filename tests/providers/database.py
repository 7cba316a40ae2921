"""A real PostgreSQL on a socket in a folder of its own, as a user that is not root; for as long as a test class runs."""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:] or [""]
READER_PASSWORD = "reader-Pw-7391"


def plain_user() -> dict:
    """Who runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            p = pwd.getpwnam(name)
            return {"user": p.pw_uid, "group": p.pw_gid, "extra_groups": []}
        except KeyError:
            pass
    raise unittest.SkipTest("there is no plain user to run PostgreSQL as")


class Postgres:
    def __init__(self) -> None:
        if not Path(BIN[0], "initdb").exists():
            raise unittest.SkipTest("PostgreSQL is not installed (Debian package postgresql)")
        self.who = plain_user()
        self.folder = Path(tempfile.mkdtemp(prefix="sandbook-pg-"))
        if self.who:
            os.chown(self.folder, self.who["user"], self.who["group"])
        self.run("initdb", "-D", str(self.folder / "data"), "-U", "owner", "-A", "trust", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C")
        (self.folder / "data/pg_hba.conf").write_text("local all reader scram-sha-256\nlocal all all trust\n")
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=12"
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", str(self.folder / "log"), "-w", "-t", "60", "start")

    def run(self, program: str, *words: str, text: str = "") -> str:
        p = subprocess.run([f"{BIN[0]}/{program}", *words], input=text, capture_output=True, text=True, timeout=90, cwd="/", check=False, **self.who)
        if p.returncode:
            raise RuntimeError(f"{program}: {p.stdout}{p.stderr}")
        return p.stdout

    def sql(self, text: str) -> str:
        return self.run("psql", "-h", str(self.folder), "-U", "owner", "-d", "postgres", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", text=text)

    def dsn(self, user: str = "reader", password: str = READER_PASSWORD) -> str:
        return f"host={self.folder} dbname=postgres user={user} password={password}"

    def close(self) -> None:
        try:
            self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
