"""The kernel: everything of Sandbook that runs as Python inside a box.

Two doors. The zygote calls `preload` once; each child it forks, once locked down, calls `serve`, which runs
that session's cells until its channel is closed. Which module does what:

  frames, gate, streams, mend    the channel; interrupts; stdout and stderr; what is put right after a cell
  copies, copies_gone, copies_mend   what the head leaves behind after a cell, and how that becomes the head
  settle, hot                    memory that sessions share, and what of it is copied ahead
  head, ops, cell                the loop; requests besides cells; what belongs to the running cell
  shell, transforms, magics      IPython, embedded; what cells may contain besides Python
  audit, audit_rules             risky calls in a cell's code, named before it runs: a hint
  errors, hints, hints_usage     exceptions; what was probably meant: near names; what a message of pandas asks for
  oversights                     what a cell that worked probably did not mean
  refusals, packages, spawning   input, debuggers, installers; what is installed; multiprocessing
  variables, folder, formulas    what a session holds; where it works; tables it made that a spreadsheet would run

  results/                       how values are shown; charts: when they count, what they show, how they are delivered
  files/                         what a file holds, and what becomes of one that arrives
  checkpoint/                    a session as bytes, and back; `checkpoint_rebuild` stays here: every checkpoint names it

Nothing is imported here: workers that multiprocessing spawns import this package for `spawning` alone.
"""


def preload(once: bool = False) -> None:
    """In the zygote, once: import, install the hooks, warm up. Leaves no user state and one Python thread.

    once: for one session only, see `warmup`."""
    from . import head, warmup  # head: else every session's would be compiled after the fork

    assert head
    warmup.preload(once)


def settle_memory() -> int:
    """In the zygote, last: forks become quicker, and cells after them. -> pages that are copied ahead"""
    from . import hot, settle

    learned = hot.learn()
    settle.enlarge_pages()  # afterwards: a page that is written to while others have it comes apart again
    return learned


def serve(sock_fd: int, data_dir: str = "/mnt/data", session: int = 0, hello: dict | None = None) -> None:
    """In the locked-down child: serve until the channel is closed, then end the process.

    `hello` is sent as BOX_HELLO for `session` when all is ready; None means that the caller has done so.
    """
    from . import head

    head.serve(sock_fd, data_dir, session, hello)
