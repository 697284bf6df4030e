"""A file of lines that several threads and processes append to, rotated when it has grown.

What one call appends is there as a whole or not at all, whatever fails in between: a full disk, a
process that is killed, a fork, another process that rotates.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from claimspan.files.private import create_private, open_private

if sys.platform != "win32":
    import fcntl

__all__ = ["LineFile", "lock_file"]

LOCK_SECONDS: Final = 2.0
"""How long a write waits for another process; one write takes milliseconds."""

_RETRY_SECONDS: Final = 0.002
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT

_files: Final[weakref.WeakSet[LineFile]] = weakref.WeakSet()


class LineFile:
    """Appends whole lines to a file that its owner alone can read.

    Safe to use from several threads, and from several processes where the system has ``flock``.
    The file is opened for each write: it may be moved or deleted by others at any time.
    """

    def __init__(self, path: str | Path, max_bytes: int, *, what: str) -> None:
        """Create the file, or check that it can be written.

        Args:
            path: The file. One that others can read is closed to them.
            max_bytes: The file is renamed to ``NAME.1``, which replaces the one before it, where a
                write would make it larger.
            what: What the file holds, for the message.

        Raises:
            ConfigError: The file cannot be written, is a link, or is no regular file.
        """
        self._path = Path(path).absolute()  # the application may change its working directory
        self._old = self._path.with_name(self._path.name + ".1")
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._handle: int | None = None
        create_private(self._path, what=what)
        with suppress(OSError):  # there is none yet, or it is not ours to close
            os.close(open_private(self._old, os.O_RDONLY))
        _files.add(self)

    @property
    def is_writing(self) -> bool:
        """Whether a thread of this process is writing, or waits for another process to end."""
        return self._handle is not None

    def append(self, data: bytes) -> None:
        """Append lines, all or none of them.

        Args:
            data: Whole lines, each with its end.

        Raises:
            OSError: Nothing was appended.
        """
        with self._lock:
            if self.is_writing:  # a signal handler or a finalizer, within our own write
                raise BlockingIOError(errno.EAGAIN, "the file is being written by this thread")
            with self._opened(len(data)) as handle:
                _write_all(handle, data)

    def renew_after_fork(self) -> None:
        """Free what a thread of the parent held when this process was forked from it."""
        self._lock = threading.RLock()
        handle, self._handle = self._handle, None
        if handle is not None:
            # Our copy would keep the parent's lock alive, should the parent be killed.
            with suppress(OSError):
                os.close(handle)

    @contextmanager
    def _opened(self, size: int) -> Generator[int]:
        """Open and lock the file that is at our path now, with room for this many bytes."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            handle = self._handle = open_private(self._path, _FLAGS)
            try:
                lock_file(handle, deadline)
                # While we waited, another process may have renamed what we opened.
                if _is_at(handle, self._path) and not self._rotated(handle, size):
                    yield handle
                    return
            finally:
                self._handle = None
                _unlock_and_close(handle)
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "other processes keep renaming the file")

    def _rotated(self, handle: int, size: int) -> bool:
        """Rename the file where it has no room; only while it is locked, so that one process does.

        A file that cannot be renamed is not written either, or it would grow without a bound.
        """
        grown = os.fstat(handle).st_size
        if grown == 0 or grown + size <= self._max_bytes:
            return False
        os.replace(self._path, self._old)
        return True


def _renew_all() -> None:
    for file in list(_files):
        file.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


def _write_all(handle: int, data: bytes) -> None:
    """Write everything, or leave the file as it was."""
    before = os.fstat(handle).st_size
    torn = before > 0 and os.pread(handle, 1, before - 1) != b"\n"
    # Whoever was killed in the middle of a line shall not take ours with it.
    rest = memoryview(b"\n" + data if torn else data)
    written = 0
    try:
        while rest:
            count = os.write(handle, rest)
            written, rest = written + count, rest[count:]
    except BaseException:
        # Not if somebody who does not lock has appended behind us: it would be cut off.
        if written and os.fstat(handle).st_size == before + written:
            os.ftruncate(handle, before)
        raise


def _is_at(handle: int, path: Path) -> bool:
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), there)


# --- locks between processes --------------------------------------------------------------------


def lock_file(handle: int, deadline: float) -> None:
    """Lock the file against other processes, where the system has ``flock``.

    Args:
        handle: An open file; the lock goes with the last descriptor of it.
        deadline: Of ``time.monotonic``, until which to wait for another process.

    Raises:
        TimeoutError: Another process has held it until the deadline.
    """
    # flock, not lockf: the latter's lock is lost when the process closes *any* descriptor of the
    # file, such as that of a report that it reads.
    while sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the file") from None
            time.sleep(_RETRY_SECONDS)
        except OSError:  # a file system without locks: one write is still one line, mostly
            return


def _unlock_and_close(handle: int) -> None:
    # Closing alone would leave the lock with a child that was forked meanwhile.
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
