"""The file of a spool on disk: private to its owner, and with room kept in reserve."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError
from claimspan.files.private import open_private

__all__ = ["Ballast", "check_place", "make_private", "set_aside"]

BALLAST_BYTES: Final = 4 * 1024 * 1024
"""Room that is given back when the disk is full: without it SQLite could not even delete."""

BALLAST_SHARE: Final = 8
"""The ballast takes at most one part in so many of the free space."""

_PARTS: Final = ("", "-wal", "-shm")
"""What SQLite adds to the name of the file for its log and the index of that."""

_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL


def check_place(path: Path) -> None:
    """Check that a spool may be kept at a path; nothing is created.

    Raises:
        ConfigError: There is a link, a directory or a device, or another user owns the file.
    """
    if not path.name:  # an empty path, which stands for the working directory, or the root
        raise ConfigError(f"the spool {str(path)!r} is a directory: give a file")
    for part in _parts(path):
        try:
            found = part.lstat()
        except OSError:  # not there; what cannot be reached is a matter of run time
            continue
        except ValueError:  # a NUL, or half of a surrogate pair
            raise ConfigError(
                f"the spool {str(part)!r} is no path: give the path of a file"
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(
                f"the spool {str(part)!r} is a link, a directory or a device: give another file"
            )
        if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
            raise ConfigError(f"the spool {str(part)!r} belongs to another user: give another file")


def make_private(path: Path) -> int:
    """Create the file if it is missing, and let its owner alone read it.

    Returns:
        Number of the file (inode): by it a file that was replaced is told from this one.

    Raises:
        ConfigError: As ``check_place``.
        OSError: The file cannot be created or opened.
    """
    check_place(path)
    # A directory that was there keeps its mode: it may hold other things.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(open_private(path, _CREATE))
    # A file that exists is never opened here: closing it would drop the locks that SQLite has on
    # it in this process, and another process would write at the same time.
    for part in filter(Path.exists, _parts(path)):
        if stat.S_IMODE(part.lstat().st_mode) & 0o077:
            part.chmod(0o600)
    return path.stat().st_ino


def set_aside(path: Path, inode: int) -> None:
    """Rename a file that is no spool to ``NAME.damaged-TIME``, with what belongs to it.

    Args:
        path: The file.
        inode: Number of the file that was found damaged. Another process may have set it aside
            and made a new one already, which is left alone.
    """
    if not path.exists() or path.stat().st_ino != inode:
        return
    suffix = time.strftime(".damaged-%Y%m%dT%H%M%S")
    for part in _parts(path):
        if part.exists():
            part.rename(part.with_name(part.name + suffix))


class Ballast:
    """A file that holds room in reserve, beside the spool."""

    def __init__(self, path: Path, max_bytes: int = BALLAST_BYTES) -> None:
        """Set the place, beside the file of a spool, and the size if there is room enough."""
        self._path = path.with_name(path.name + ".ballast")
        self._max_bytes = max_bytes

    def take(self) -> None:
        """Take up room, if there is plenty and none was taken before."""
        space = os.statvfs(self._path.parent)
        size = min(self._max_bytes, space.f_bavail * space.f_frsize // BALLAST_SHARE)
        if self._path.exists() or size < space.f_frsize:
            return
        try:
            handle = open_private(self._path, _CREATE)
        except FileExistsError:  # another process was first
            return
        try:
            # Allocated, not just long: a hole would hold no room.
            os.posix_fallocate(handle, 0, size)
        except OSError:
            self.give_back()
        finally:
            os.close(handle)

    def give_back(self) -> None:
        """Give the room back to the disk."""
        self._path.unlink(missing_ok=True)


def _parts(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in _PARTS]
