"""The spool: jobs in a file, for an engine that no fault of the file may reach."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from claimspan.errors import ConfigError
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.spool.place import Ballast, make_private, set_aside
from claimspan_tracing.spool.store import Lease, Row, Store, now

__all__ = ["LEASE_SECONDS", "MAX_ATTEMPTS", "Spool", "release_leases"]

LEASE_SECONDS: Final = 15.0
"""How long after its last sign of life a process counts as dead."""

MAX_ATTEMPTS: Final = 3
"""How often a row is taken up, before it is a dead letter: a job that ends every process that
evaluates it must not go round for ever."""

MAX_BYTES: Final = 512 * 1024 * 1024
"""Size of the file. A spool that is full refuses new jobs."""

RETRY_SECONDS: Final = 2.0
"""How long a file that failed is left alone."""

MAX_FORGOTTEN: Final = 10_000
"""Rows to delete that are remembered while the file cannot be used."""

_NO_DATABASE: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_T = TypeVar("_T")

_logger: Final = logging.getLogger("claimspan")

# Weakly: monitors come and go, and a hook at fork can never be taken back.
_spools: Final[list[weakref.ref[Spool]]] = []

_inherited: Final[list[Store | None]] = []
"""Connections that could not be closed before a fork. They are never closed, as that would undo the
parent's locks, and this process opens no spool."""

# Those that were closed for a fork: the hook of a monitor may make a new one before ours is called.
_forking: Final[list[Spool]] = []

FORK_SECONDS: Final = 2.0
"""How long a fork waits for a transaction to end. None takes nearly as long."""


class Spool:
    """The rows of one process in a file that several processes may share.

    No method raises. While the file cannot be used, ``add`` returns None, and the job is in memory
    alone, as without a spool. Any thread may call: transactions take well under a millisecond, and
    one that waits for another process is given up after a tenth of a second.
    """

    def __init__(
        self,
        path: Path,
        *,
        lease_seconds: float | None = None,
        max_attempts: int | None = None,
        max_bytes: int | None = None,
        retry_seconds: float = RETRY_SECONDS,
        clock: Callable[[], int] = now,
    ) -> None:
        """Set the file; it is opened at first use. All processes that use it have one clock."""
        self._clock = clock
        # Absolute: the application may change its working directory.
        self._path = path.absolute()
        self.lease_seconds: Final = LEASE_SECONDS if lease_seconds is None else lease_seconds
        """How long after its last sign of life this process counts as dead."""
        self._max_attempts = MAX_ATTEMPTS if max_attempts is None else max_attempts
        self._max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self._retry_seconds = retry_seconds
        self.owner: Final = f"{os.getpid()}-{uuid4().hex}"
        """Identifies this process, or rather this spool of it."""
        self.given_up = 0
        """Number of rows that have become dead letters."""
        self._ballast = Ballast(self._path)
        self._store: Store | None = None
        self._inode = 0
        self._lock = threading.RLock()
        self._not_before = 0.0
        self._full_until = 0.0
        self._is_warned = False
        self._has_refused = False
        self._is_closed = False
        self._forgotten: list[Lease] = []
        self._is_held = False
        _spools[:] = [each for each in _spools if each() is not None] + [weakref.ref(self)]

    # --- what the engine calls ---

    @property
    def is_full(self) -> bool:
        """Whether a job was refused lately because the file or the disk is full."""
        return time.monotonic() < self._full_until

    def add(self, job: Job) -> Lease | None:
        """Keep a job that this process works on.

        Returns:
            The lease; from now on the job survives the process. None if it was not kept.
        """
        if self.is_full:
            return None
        lease = self._do(lambda store: store.add(job), None)
        # Not after any other success: on a full disk everything else works, and each refused job
        # would be a warning.
        self._is_warned = self._is_warned and lease is None
        if lease is not None and self._has_refused:
            _logger.warning("claimspan uses its spool %s again", self._path)
        self._has_refused = lease is None
        return lease

    def end_root(self, leases: Iterable[Lease], outcome: Outcome) -> list[Lease]:
        """Note that held spans are about to end without scores.

        Returns:
            The leases whose spans this process may end: not those that others have taken over.
        """
        held = list(leases)
        return self._do(lambda store: store.end_root(held, outcome), held)

    def root_exported(self, keys: Iterable[JobKey]) -> None:
        """Note that spans that ended without scores were exported."""
        found = list(keys)
        if found:
            self._do(lambda store: store.root_exported(found), None)

    def write(self, lease: Lease, outcome: Outcome) -> bool:
        """Keep an outcome that is about to be written; False if the lease was lost."""
        return self._do(lambda store: store.write(lease, outcome), True)

    def has(self, key: JobKey) -> bool:
        """Whether the file has a row, a dead one as well."""
        return self._do(lambda store: store.has(key), False)

    def put_back(self, lease: Lease, delay: float, *, counted: bool) -> None:
        """Let a row wait for ``delay`` seconds; ``counted`` if an attempt is used up."""
        self._do(lambda store: store.put_back(lease, delay, counted=counted), False)

    def export_again(self, lease: Lease, delay: float) -> None:
        """Let a row whose spans were not exported wait to be written again."""
        self._do(lambda store: store.export_again(lease, delay), False)

    def kill(self, lease: Lease, reason: str) -> None:
        """Make a row a dead letter."""
        self._do(lambda store: store.kill(lease, reason), None)

    def delete(self, leases: Iterable[Lease]) -> None:
        """Remove rows whose spans were exported; later, if the file cannot be used now."""
        with self._lock:
            self._forgotten = [*self._forgotten, *leases][-MAX_FORGOTTEN:]
        self._forget()

    def renew(self) -> None:
        """Say that this process is alive, and make up for what could not be done before."""
        if self._do(Store.renew, False):
            self._forget()
            if not self.is_full:
                with contextlib.suppress(OSError):  # a reserve is worth having, and no warning
                    self._ballast.take()

    def claim(self, most: int, *, is_alone: bool = True) -> list[Row]:
        """Take up at most so many rows that no process works on, the oldest first."""
        return self._do(lambda store: self._claimed(store, most, is_alone=is_alone), [])

    def _claimed(self, store: Store, most: int, *, is_alone: bool) -> list[Row]:
        rows = store.claim(most, self._max_attempts, is_alone=is_alone)
        died, store.died = store.died, []
        self.given_up += len(died)
        if died:
            _logger.warning(
                "claimspan gave up %d records of its spool (%s); `claimspan spool %s` lists them",
                len(died),
                died[0],
                self._path,
            )
        return rows

    @property
    def left(self) -> tuple[int, int]:
        """Number of rows that are not dead: all of them, and those no other living process has."""
        return self._do(Store.left, (0, 0))

    @property
    def has_rows(self) -> bool:
        """Whether the file is there, and has rows that are not dead; it is only read."""
        try:
            database = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", timeout=0.1, uri=True)
            with contextlib.closing(database):
                found = database.execute("SELECT 1 FROM records WHERE state <> 'dead' LIMIT 1")
                return found.fetchone() is not None
        except sqlite3.Error:  # there is none yet, or it is told when it is used
            return False

    def close(self) -> None:
        """Give up all leases and close the file; nothing is kept any more."""
        self._forget()
        with self._lock:
            self._is_closed = True
            store, self._store = self._store, None
            if store is not None:
                with contextlib.suppress(sqlite3.Error, OSError):  # the leases end by themselves
                    store.close()

    # --- the file and its faults ---

    def _do(self, work: Callable[[Store], _T], otherwise: _T) -> _T:
        """Do something with the file; if it cannot be used, return something else."""
        with self._lock:
            try:
                store = self._opened()
                if store is None:
                    return otherwise
                return work(store)
            except (sqlite3.Error, OSError, ConfigError) as error:
                self._failed(error)
                return otherwise
            except ValueError:  # a text that JSON or SQLite cannot hold, such as half a character
                return otherwise

    def _opened(self) -> Store | None:
        if self._is_closed or _inherited or time.monotonic() < self._not_before:
            return None
        if self._store is not None and not self._is_in_place():
            self._move()
        if self._store is None:
            self._store = self._open()
        return self._store

    def _move(self) -> None:
        """Go on in a new file: SQLite would go on in the deleted one, which is read no more."""
        self._warn("its file was deleted or replaced, so it goes on in another")
        old, self._store = self._store, None
        try:
            self._store = self._open()
            if old is not None:
                self._store.adopt(old)
        finally:
            if old is not None:
                old.drop()

    def _is_in_place(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _open(self) -> Store:
        self._inode = make_private(self._path)
        try:
            return self._new_store()
        except sqlite3.DatabaseError as error:
            if _code(error) not in _NO_DATABASE:
                raise
            self._warn("its file is damaged, and was set aside")
            set_aside(self._path, self._inode)
            self._inode = make_private(self._path)
            return self._new_store()

    def _new_store(self) -> Store:
        store = Store(self._path, self.owner, self.lease_seconds, self._max_bytes, self._clock)
        make_private(self._path)  # the files that SQLite has added by now
        return store

    def _failed(self, error: sqlite3.Error | OSError | ConfigError) -> None:
        code = _code(error)
        if code == sqlite3.SQLITE_FULL:
            # Given back so that rows can still be deleted; new ones would only take it again.
            self._ballast.give_back()
            self._full_until = time.monotonic() + self._retry_seconds
            self._warn("it is full, or the disk is")
            return
        self._not_before = time.monotonic() + self._retry_seconds
        self._warn(str(error) if isinstance(error, ConfigError) else _reason(error))
        if code in _NO_DATABASE and self._store is not None:
            set_aside(self._path, self._inode)
        if code not in _BUSY and self._store is not None:
            self._store.drop()
            self._store = None

    def _warn(self, why: str) -> None:
        """Say once an outage that records are in memory alone."""
        if self._is_warned:
            return
        self._is_warned = True
        _logger.warning(
            "claimspan cannot use its spool %s (%s): new records are kept in memory alone, and end "
            "with the process, until it can; the application is not affected",
            self._path,
            why,
        )

    def _forget(self) -> None:
        with self._lock:
            leases = self._forgotten
            if not leases:
                return
            if self._do(lambda store: store.delete(leases), False):
                self._forgotten = []

    # --- fork ---

    def before_fork(self) -> None:
        """Close the file until the fork is over.

        SQLite keeps in memory which locks its process has. A child would inherit that knowledge
        without the locks, and write as if it had them.
        """
        self._is_held = self._lock.acquire(timeout=FORK_SECONDS)
        if self._is_held and self._store is not None:
            self._store.drop()
            self._store = None

    def after_fork(self, *, in_child: bool) -> None:
        """Go on; in the child not with this spool, whose rows are the parent's."""
        self._is_closed = self._is_closed or in_child
        if in_child and not self._is_held:
            _inherited.append(self._store)
        if self._is_held:
            self._is_held = False
            self._lock.release()


def release_leases(path: Path) -> None:
    """Have the rows of a file taken up at once: all processes that have used it are dead."""
    with contextlib.suppress(sqlite3.Error):  # there is none yet, or the leases end by themselves
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
        with contextlib.closing(database), database:
            database.execute("DELETE FROM owners")


def _before_fork() -> None:
    _forking[:] = [spool for each in _spools if (spool := each()) is not None]
    for spool in _forking:
        spool.before_fork()


def _after_fork(*, in_child: bool) -> None:
    for spool in _forking:
        spool.after_fork(in_child=in_child)
    _forking.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )


def _code(error: Exception) -> int:
    """SQLite's primary code of an error; 0 if it has none."""
    code: object = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0


def _reason(error: sqlite3.Error | OSError) -> str:
    """What failed, by a name: messages may quote."""
    name: object = getattr(error, "sqlite_errorname", None)
    if isinstance(name, str):
        return name
    return getattr(error, "strerror", None) or type(error).__name__
