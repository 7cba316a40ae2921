"""The working folder. It may become another one under a head's feet: a box that was made ahead gets its files when its session
is known, and a branch has files of its own. A process that keeps standing in the old one would see what nobody else does."""

import builtins
import os

__builtins__ = dict(vars(builtins))

_chdir, _getcwd, _makedirs, _stat = os.chdir, os.getcwd, os.makedirs, os.stat


class Folder:
    def __init__(self, data_dir: str):
        self._data_dir = data_dir
        self._known = self._mark(".")  # where it really stands: the other one may be there already
        self._left = data_dir

    def _mark(self, path: str) -> tuple[int, int]:
        status = _stat(path)
        return status.st_dev, status.st_ino

    def leave(self) -> None:
        """Hold on to nothing below it: what is parked must not keep a mount alive."""
        self._left = self._where()
        _chdir("/")

    def _where(self) -> str:
        """The path that it stands at. In a folder that was taken away from under it there is none, or a wrong one."""
        try:
            path, device = _getcwd(), _stat(".").st_dev
        except OSError:
            return self._data_dir
        below = path == self._data_dir or path.startswith(self._data_dir + "/")
        return path if below or device != self._known[0] else self._data_dir

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
        if self._mark(self._data_dir) != self._known:
            self.leave()
            self.come_back()

    def _furnish(self) -> None:
        self._known = self._mark(self._data_dir)
        try:
            _makedirs(f"{self._data_dir}/out", exist_ok=True)
        except OSError:  # a file of that name, or no room: as a person may have it
            pass
