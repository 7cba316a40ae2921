"""intake(name, cwd) -> profiles: what has to happen when a file arrives.

An archive is taken apart by /opt/sandbook/bin/unpack, into a folder of its name; then there is one profile
for the archive and one for each table in it. Any other file is profiled as it is. Never raises for bad data.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from .intake_group import Group, find_groups, group_load
from .intake_names import rename_all, unique_path
from .profile import profile_file
from .profile_base import Profile, scan
from .profile_table import describe_frame
from .sniff import sniff_kind
from .tables_load import evaluate
from .tables_plan import ColumnPlan

UNPACK = "/opt/sandbook/bin/unpack"
MEMBERS_MAX = 1000  # paths that are listed
PROFILED_MAX = 40  # members that get a profile of their own
GROUP_BYTES_MAX = 32 << 20  # pieces of one table that are read together for the figures
_ENDINGS = re.compile(r"(\.tar)?\.(zip|tar|t?gz|t?bz2?|t?xz|t?zst|7z|rar|lzma|z)$", re.I)
_NO_TABLE = ("image", "pdf", "text", "binary", "empty", "pickle", "notebook", "docx", "archive")


@dataclass
class Unpacked:
    """What came out of an archive."""

    members: list[str] = field(default_factory=list)  # below the cells' folder
    skipped: list[tuple[str, str]] = field(default_factory=list)
    truncated: bool = False
    single: bool = False
    error: str | None = None


def intake(name: str, cwd: str) -> list[dict[str, Any]]:
    """Unpacks the file if it is an archive; returns its profile, then those of the tables in it."""
    path = os.path.join(cwd, name)
    try:
        if sniff_kind(path, name) == "archive":
            return _intake_archive(path, name, cwd)
    except Exception as error:
        profile = Profile(name, name)
        profile.set(kind="archive")
        profile.warn("unreadable", f"{type(error).__name__}: {error}")
        return [profile.fields]
    return [profile_file(path, name, cwd)]


def _intake_archive(path: str, name: str, cwd: str) -> list[dict[str, Any]]:
    """The archive's own profile comes first."""
    facts = scan(path)
    unpacked = unpack(path, cwd)
    profile = Profile(name, name)
    profile.set(kind="archive", bytes=facts.size, sha256=facts.sha256, members=unpacked.members[:MEMBERS_MAX])
    profile.set(sample="\n".join(unpacked.members)[:600] or None)
    _warn(profile, unpacked)
    groups = find_groups(cwd, unpacked.members)
    profiles = _profile_members(unpacked.members, groups[:1], cwd)
    first = next((entry for entry in profiles if groups and entry["path"] == groups[0].members[0]), None)
    if first and first["load"]:
        _collect(profile, groups[0], first, cwd)
    return [profile.fields, *profiles]


def unpack(path: str, cwd: str) -> Unpacked:
    """Runs the helper; its output lines and the names on disk become an Unpacked."""
    stem = _ENDINGS.sub("", os.path.basename(path)) or "archive"
    folder = unique_path(os.path.join(cwd, stem))
    os.mkdir(folder)
    run = subprocess.run([UNPACK, path, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    result = _read_report(run.stdout)
    result.members = [f"{os.path.basename(folder)}/{member}" for member in rename_all(folder, result.members)]
    if result.single and len(result.members) == 1:
        result.members = [_lift(cwd, folder, result.members[0])]
    elif not result.members:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _read_report(output: bytes) -> Unpacked:
    """The helper's JSON lines."""
    result = Unpacked(error="unpack ended early")
    for line in output.splitlines():
        report = json.loads(line)
        if "path" in report:
            result.members.append(report["path"])
        elif "skipped" in report:
            result.skipped.append((report["skipped"], report["why"]))
        else:
            result.truncated, result.single = report["truncated"], report["single"]
            result.error = report["error"]
    return result


def _lift(cwd: str, folder: str, member: str) -> str:
    """One compressed file is no archive: sales.csv.gz becomes sales.csv beside it, in no folder."""
    source = os.path.join(cwd, member)
    aside = unique_path(folder + ".tmp")
    os.rename(source, aside)
    os.rmdir(folder)
    target = unique_path(os.path.join(cwd, os.path.basename(member)))
    os.rename(aside, target)
    return os.path.basename(target)


def _warn(profile: Profile, unpacked: Unpacked) -> None:
    """Says what was not taken, and why."""
    reasons = Counter(why for _, why in unpacked.skipped if why != "system file")
    locked = reasons.pop("password-protected", 0)
    if locked or unpacked.error == "password-protected":
        what = f"{locked} members are" if unpacked.members else "the archive is"
        profile.warn("unreadable", f"{what} password-protected: unpack and send the files")
    elif unpacked.error:
        profile.warn("unreadable", f"the archive is damaged or of an unknown sort: {unpacked.error}")
    if reasons:
        text = ", ".join(f"{count} × {why}" for why, count in reasons.most_common())
        profile.warn("unsafe_members", f"members left out: {text}")
    if not unpacked.members and not profile.fields["warnings"]:
        profile.warn("empty", "the archive holds no files")
    if unpacked.truncated:
        profile.warn("truncated", f"the archive passes a limit; {len(unpacked.members)} members were unpacked")


def _collect(profile: Profile, group: Group, first: dict[str, Any], cwd: str) -> None:
    """Makes the archive readable as the one table that its pieces are; `first` is the first one's profile."""
    size = sum(os.path.getsize(os.path.join(cwd, member)) for member in group.members)
    pieces = len(group.members) if size <= GROUP_BYTES_MAX else 2
    here = [os.path.join(cwd, member) for member in group.members[:pieces]]
    frame = evaluate(
        group_load(replace(group, members=here, values=group.values[:pieces]), first["load"], first["path"])
    )
    _describe_like(profile, frame, first)
    load = group_load(group, first["load"], first["path"])
    collection = {"members": group.members, "columns": list(frame.columns), "added": group.column, "load": load}
    profile.set(load=load, collection=collection, header_row=first["header_row"])
    if pieces < len(group.members):
        profile.set(rows=None)
        profile.warn("truncated", "the figures are from the first two files only")


def _describe_like(profile: Profile, frame: pd.DataFrame, first: dict[str, Any]) -> None:
    """Columns of all pieces together; what the first was found to need holds for all."""
    found = {column["name"]: column for column in first["columns"]}
    describe_frame(
        profile, frame, {name: ColumnPlan(name, convert=column["convert"]) for name, column in found.items()}
    )
    for column in profile.fields["columns"]:
        like = found.get(column["name"], {})
        column |= {key: like[key] for key in ("date_format", "ambiguous_date") if key in like}
    for warning in first["warnings"]:
        profile.warn(warning["code"], warning["text"])


def _profile_members(members: list[str], groups: list[Group], cwd: str) -> list[dict[str, Any]]:
    """Profiles of the tables, of alike ones only the first."""
    alike = {member for group in groups for member in group.members[1:]}
    profiles: list[dict[str, Any]] = []
    for member in members:
        if member in alike or len(profiles) == PROFILED_MAX:
            continue
        profile = profile_file(os.path.join(cwd, member), member, cwd)
        if profile["kind"] not in _NO_TABLE:
            profiles.append(profile)
    return profiles
