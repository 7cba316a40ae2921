"""What the head can be asked for besides running a cell: BOX_CALL's `op`, and what answers it.

A table, since more will come. An op gets the head's context and its
own request, and returns the claim's members; what it raises becomes the claim's error.
"""

import builtins
import os
from collections.abc import Callable
from dataclasses import dataclass

from . import variables

__builtins__ = dict(vars(builtins))


@dataclass(frozen=True)
class Context:
    namespace: dict
    hidden: dict
    data_dir: str
    fds: tuple[int, ...] = ()  # that came with the request; closed after it


def _vars(context: Context, spec: dict) -> dict:
    return {"vars": variables.listing(context.namespace, context.hidden)}


def _intake(context: Context, spec: dict) -> dict:
    from .files import intake

    return {"profiles": intake.intake(spec["name"], context.data_dir)}


def _profile(context: Context, spec: dict) -> dict:
    from .files import profile

    path = os.path.join(context.data_dir, spec["path"])
    return {"profiles": [profile.profile_file(path, spec.get("as") or spec["path"], context.data_dir)]}


def _checkpoint(context: Context, spec: dict) -> dict:
    from . import checkpoint

    return checkpoint.op_checkpoint(context, spec)


def _restore(context: Context, spec: dict) -> dict:
    from . import checkpoint

    return checkpoint.op_restore(context, spec)


OPS: dict[str, Callable[[Context, dict], dict]] = {
    "vars": _vars,
    "checkpoint": _checkpoint,
    "intake": _intake,
    "profile": _profile,
    "restore": _restore,
}


def run(context: Context, spec: dict) -> dict:
    op = OPS.get(spec.get("op"))
    if op is None:
        raise ValueError(f"unknown op {spec.get('op')!r}")
    return op(context, spec)
