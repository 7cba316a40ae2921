"""The working folder. It may become another one under a head's feet: a box that was made ahead gets its files when its session
is known, and a branch has files of its own. A process that keeps standing in the old one would see what nobody else does."""

import builtins
import os

__builtins__ = dict(vars(builtins))

_chdir, _getcwd, _makedirs, _stat = os.chdir, os.getcwd, os.makedirs, os.stat


class Folder:
    def __init__(self, data_dir: str):
        self._data_dir = data_dir
        self._known = self._mark()
        self._left = data_dir

    def _mark(self) -> tuple[int, int]:
        status = _stat(self._data_dir)
        return status.st_dev, status.st_ino

    def leave(self) -> None:
        """Hold on to nothing below it: what is parked must not keep a mount alive."""
        try:
            self._left = _getcwd()
        except OSError:  # removed
            self._left = self._data_dir
        _chdir("/")

    def come_back(self) -> None:
        for place in (self._left, self._data_dir):
            try:
                _chdir(place)
                break
            except OSError:  # the folder is not there among these files
                pass
        self._furnish()

    def settle(self) -> None:
        """Before each request."""
        if self._mark() != self._known:
            self.leave()
            self.come_back()

    def _furnish(self) -> None:
        self._known = self._mark()
        try:
            _makedirs(f"{self._data_dir}/out", exist_ok=True)
        except OSError:  # a file of that name, or no room: as a person may have it
            pass
