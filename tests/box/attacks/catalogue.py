"""Reads the programs of this folder.

A file is a kind of attack. A program begins with a line such as

    # %% 36 keyrings -> EPERM
    # %% 37 a 32-bit call -> !crash 31 [x86_64]

its number (box_probes.h and doctor use the same; a letter more: others of the same kind), its name, and what is right: the words it may print,
or after "!" the verdicts (and numbers of signals). In brackets, by spaces: a machine; "fresh", for a session of its own;
"reset", for a new interpreter after it; "timeout=MS"; "groups", which needs control groups;
"once": a matter of the interpreter alone, tried under one kind of keeper unless ATTACKS=all;
"hole", for a hole that is known: the program says what it is, and is expected to fail ("hole=plain": not under root's keeper). An uncaught exception is right only when its name is among
the words.
"""
import ctypes
import ctypes.util
import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
HEADER = re.compile(r"# %% (?P<number>\w+) (?P<name>.+?) -> (?P<right>[^\[]+?)(?: \[(?P<options>.+)\])?")
KINDS = ("files", "privileges", "kernel", "sharing", "sockets", "limits", "endings", "interpreter", "poison", "hidden")
# Newer than the libseccomp of Debian 12; from 424 on the numbers are the same on every architecture.
NEW_CALLS = {"cachestat": 451, "fchmodat2": 452, "map_shadow_stack": 453, "futex_wake": 454, "statmount": 457, "mseal": 462}


class Program(NamedTuple):
    kind: str
    number: str
    name: str
    code: str
    words: frozenset
    verdicts: frozenset  # empty: "ok", with state kept
    signals: frozenset
    options: dict

    method = property(lambda self: "test_" + re.sub(r"\W+", "_", f"{self.number} {self.name}"))


def resolve(name):
    """The number of a system call on this machine, by the library that compiles the policy; negative: it has none."""
    lib = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2")
    number = lib.seccomp_syscall_resolve_name(name.encode())
    return NEW_CALLS.get(name, number) if number < 0 else number


def program(kind, header, code):
    found = HEADER.fullmatch(header.strip())
    if not found:
        raise ValueError(f"{kind}: {header!r}")
    options = dict(o.partition("=")[::2] for o in (found["options"] or "").split())
    right = found["right"].strip()
    deadly = right.startswith("!")
    words = right[1:].split() if deadly else right.split()
    signals = frozenset(int(w) for w in words if deadly and w.isdigit())
    verdicts = frozenset(w for w in words if deadly and not w.isdigit())
    return Program(kind, found["number"], found["name"], code, frozenset() if deadly else frozenset(words), verdicts, signals, options)


def programs(kind):
    text = (HERE / f"{kind}.py").read_text()
    parts = re.split(r"^(# %%.*)$", text, flags=re.M)
    return [program(kind, header, code.strip("\n") + "\n") for header, code in zip(parts[1::2], parts[2::2])]


def tools():
    text = (HERE / "tools.py").read_text()
    names = set()
    for kind in KINDS:
        names |= set(re.findall(r"\bcall\(\s*[\"'](\w+)[\"']", (HERE / f"{kind}.py").read_text()))
        for several in re.findall(r"# calls: (.+)", (HERE / f"{kind}.py").read_text()):
            names |= set(several.split())
    return f"SYS = {({name: resolve(name) for name in sorted(names)})!r}\n{text}"
