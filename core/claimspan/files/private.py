"""Files that hold texts of users: only their owner may read them, and no link redirects them."""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from claimspan.errors import ConfigError

__all__ = [
    "cannot_write",
    "check_replaceable",
    "create_private",
    "create_private_database",
    "is_same_file",
    "open_private",
    "refuse_input",
    "refuse_special",
    "replaced_private",
    "write_private",
]

_OWNER_ONLY: Final = 0o600

_logger: Final = logging.getLogger("claimspan")

# Absent on Windows, where links need a privilege and nothing blocks in ``open``.
_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_NOCTTY: Final[int] = getattr(os, "O_NOCTTY", 0)

_warned: Final[set[str]] = set()
"""Paths of other owners' files that were spoken of; one warning each."""


def open_private(path: str | Path, flags: int) -> int:
    """Open a regular file, and close it to everybody but its owner; returns the descriptor.

    A file of another owner keeps its mode, with one warning a process. One that ``O_CREAT`` creates
    has the mode 0600. Its directory may be reached by links.

    Raises:
        OSError: The file cannot be opened, is a symbolic link (``ELOOP``), or is no regular file
            (``EISDIR`` or ``ENODEV``). ``cannot_write`` says what to do about it.
    """
    # O_NONBLOCK: a FIFO without a reader would hang ``open`` for ever.
    handle = os.open(path, flags | _NOFOLLOW | _NONBLOCK | _NOCTTY, _OWNER_ONLY)
    try:
        _check_and_tighten(os.fstat(handle), str(path), handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def create_private(path: Path, *, what: str) -> None:
    """Create a file if there is none, and tighten one that is there; its content stays.

    Raises:
        ConfigError: It cannot be written; says what to do.
    """
    try:
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    except OSError as error:
        raise cannot_write(path, error, what=what) from None


def create_private_database(path: Path, *, what: str) -> None:
    """As ``create_private``, for a file that SQLite may have open in this process.

    A file that is there is not opened: closing it would drop the locks that SQLite has on it, and
    another process would write at the same time.
    """
    try:
        try:
            os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            _check_and_tighten(os.lstat(path), str(path), path)
    except OSError as error:
        raise cannot_write(path, error, what=what) from None


def check_replaceable(path: Path, *, what: str) -> None:
    """Refuse a place that ``write_private`` could not write to, before long work for it begins.

    Raises:
        ConfigError: It cannot be written; says what to do.
    """
    try:
        refuse_special(path)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise cannot_write(path, error, what=what) from None


def write_private(path: Path, text: str, *, what: str) -> None:
    """Write a whole file or none of it, readable by its owner alone, and never through a link.

    What UTF-8 cannot encode becomes a question mark.

    Raises:
        ConfigError: ``what`` cannot be written; says what to do. The file of before is
            unchanged.
    """
    with replaced_private(path, what=what) as file:
        file.write(text)


@contextmanager
def replaced_private(path: Path, *, what: str) -> Generator[TextIO]:
    """As ``write_private``, for a file that is written part by part.

    Yields:
        The new file, whose ``buffer`` takes bytes. What is written to it is seen only when the
        block ends without an exception.
    """
    try:
        refuse_special(path)
        # In the same directory, since a file cannot be moved to another disk in one step. Its mode
        # is 0600 from the beginning.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        try:
            with open(handle, "w", encoding="utf-8", errors="replace") as file:
                yield file
            os.replace(name, path)
        except BaseException:
            # Also after Ctrl-C: half a file with users' texts must not stay behind under a name
            # that is not looked for.
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise cannot_write(path, error, what=what) from None


def cannot_write(path: str | Path, error: OSError, *, what: str) -> ConfigError:
    """The error for a path where ``what`` cannot be written: what is wrong, and what to do."""
    directory = str(Path(path).absolute().parent)
    match error.errno:
        case errno.ELOOP:
            remedy = "it is a symbolic link, which is not followed; give the path that it leads to"
        case errno.EISDIR:
            remedy = "it is a directory; give the path of a file"
        case errno.ENODEV | errno.ENXIO:
            remedy = "it is a FIFO, a socket or a device; give the path of a regular file"
        case errno.ENOENT | errno.ENOTDIR:
            remedy = f"the directory {directory!r} does not exist; create it, or give another file"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            remedy = f"no permission; let this user write in {directory!r}, or give another file"
        case errno.ENOSPC | errno.EDQUOT:
            remedy = "the disk is full; make room, or give a file on another disk"
        case _:
            remedy = f"{error.strerror or type(error).__name__}; give another file"
    return ConfigError(f"cannot write {what} to {str(path)!r}: {remedy}")


def is_same_file(left: Path, right: Path) -> bool:
    """Whether two paths lead to one file, by links and other spellings; there need not be one."""
    if left.exists() and right.exists():
        # Not by names alone: a hard link and a file system without case have two for one file.
        return left.samefile(right)
    return left.resolve() == right.resolve()


def refuse_input(output: Path | None, inputs: Iterable[Path | None], *, option: str) -> None:
    """Refuse to write over a file that a command reads: the only copy of it may be lost.

    Raises:
        ConfigError: The output of the ``option`` is one of the inputs.
    """
    if output is not None and any(is_same_file(output, each) for each in inputs if each):
        raise ConfigError(
            f"{str(output)!r} is a file that this command reads, and {option} would replace it: "
            f"give another path with {option}"
        )


def refuse_special(path: Path) -> None:
    """Refuse to put a file in the place of a link, a FIFO or a device, such as ``/dev/null``.

    Raises:
        OSError: There is one.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    _refuse(mode, str(path))


def _refuse(mode: int, path: str) -> None:
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFLNK: errno.ELOOP, stat.S_IFDIR: errno.EISDIR}
        code = kinds.get(stat.S_IFMT(mode), errno.ENODEV)
        raise OSError(code, os.strerror(code), path)


def _check_and_tighten(found: os.stat_result, path: str, target: int | Path) -> None:
    _refuse(found.st_mode, path)
    if not stat.S_IMODE(found.st_mode) & 0o077 or os.name != "posix":
        return
    try:
        # Not for the superuser either: it may be writing into a file of another user.
        if found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        os.chmod(target, _OWNER_ONLY)
    except OSError:  # another owner, or a file system without modes
        if path not in _warned:
            _warned.add(path)
            _logger.warning(
                "%r holds texts of users, can be read by others, and is not ours to close: "
                "run chmod 600 on it as its owner, or give another file",
                path,
            )
