"""One open spool file: its tables, its clock, and the transactions on it.

Every method may raise ``sqlite3.Error``. Rows are checked before they are parsed: others may write
to a file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError, PayloadError
from claimspan.files.jsonl import check_bounds
from claimspan_tracing.job import Job, JobKey, Outcome

__all__ = ["VERSION", "Lease", "Root", "Row", "Store", "now"]

VERSION: Final = 1
"""Version of these tables, kept in ``user_version``."""

TABLES: Final = frozenset({"owners", "records"})
"""Their names."""

# Times named ``_at`` are wall clock, for people to read. ``until`` and ``not_before`` are of the
# clock that cannot be set, and mean something only together with ``boot``.
CREATE: Final = """
CREATE TABLE IF NOT EXISTS owners (
    owner TEXT PRIMARY KEY,
    boot TEXT NOT NULL,
    until INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS records (
    id INTEGER PRIMARY KEY,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    state TEXT NOT NULL,
    root TEXT NOT NULL,
    owner TEXT,
    attempts INTEGER NOT NULL,
    not_before INTEGER NOT NULL DEFAULT 0,
    added_at REAL NOT NULL,
    died_at REAL,
    reason TEXT NOT NULL DEFAULT '',
    job TEXT NOT NULL,
    outcome TEXT,
    root_outcome TEXT,
    UNIQUE (trace_id, span_id)
);
CREATE INDEX IF NOT EXISTS records_by_owner ON records (owner, state, not_before);
CREATE INDEX IF NOT EXISTS records_that_wait ON records (
    owner, id, not_before, attempts, state
) WHERE state IN ('waiting', 'unexported');
"""
"""One row of ``owners`` for each process that is alive, one of ``records`` for each job. The second
index has the rows in the order in which they are taken up, with all that is asked of them: to sort
all that wait for each that is taken up would take the square of their number."""

BUSY_SECONDS: Final = 0.1
"""How long a transaction waits for another process. The worker keeps timers, and must go on."""

SET_UP_SECONDS: Final = 2.0
"""How long opening the file waits for others: the workers of a server all open it as they start."""

DEAD_SECONDS: Final = 7 * 24 * 3600.0
"""How long a dead letter is kept."""

MAX_REASON: Final = 500
"""Characters of the reason of a dead letter."""

_Value = str | int | float | None

MAX_PAYLOAD_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one job: 100 chunks of 64 KiB each, twice over, and some more."""

MAX_DEPTH: Final = 100
"""Nesting of a payload; metadata of applications is the only part of any depth."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux has a clock that counts sleep and is the same for all processes. Elsewhere a lease may
last longer by the time that the machine slept."""


def now() -> int:
    """Return nanoseconds since the machine was started, the same for all its processes."""
    return time.clock_gettime_ns(_CLOCK)


@cache
def boot_id() -> str:
    """Return what tells one start of the machine from another; empty if nothing does.

    Without it a lease of an earlier start is known by a time that lies too far ahead.
    """
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class Root(StrEnum):
    """How far the spans of a record are, whose root is ours."""

    HELD = "held"
    """They have not ended: without the process that holds them they were never seen."""

    ENDED = "ended"
    """They have ended without scores; whether they were exported is not known."""

    EXPORTED = "exported"
    """They were exported without scores, or others made them."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a row. It is lost when another process takes the row over."""

    key: JobKey
    """The key of the job."""

    attempts: int
    """How often a process has taken the row up, this time included."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that this process has taken up."""

    lease: Lease
    """The right to work on it."""

    job: Job
    """What to evaluate."""

    root: Root
    """How far its spans are."""

    outcome: Outcome | None
    """The outcome of the evaluation, if it is known and has only to be written again."""

    root_outcome: Outcome | None
    """The state that the root was ended with; None if it was not."""

    is_foreign: bool
    """Whether another process has added the row, so that this one has not counted it."""


class Store:
    """One open spool file, for one owner. Not for several threads at once."""

    def __init__(
        self,
        path: Path,
        owner: str,
        lease_seconds: float,
        max_bytes: int,
        clock: Callable[[], int] = now,
    ) -> None:
        """Open the file, which exists, and make its tables.

        Raises:
            sqlite3.Error: The file is no database, or cannot be used now.
            ConfigError: Another program or a newer version of claimspan has made it.
        """
        self._owner = owner
        self._clock = clock
        self.died: list[str] = []
        """Reasons of the rows that have become dead letters; the spool empties it."""
        self._lease = int(lease_seconds * 1e9)
        # Autocommit: each transaction of ours begins where it says so.
        self._db = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        deadline = time.monotonic() + SET_UP_SECONDS
        try:
            while not self._is_set_up(max_bytes, deadline):
                # SQLite itself does not wait if two change to the log at once.
                time.sleep(BUSY_SECONDS / 10)
        except BaseException:
            self._db.close()
            raise

    def _is_set_up(self, max_bytes: int, deadline: float) -> bool:
        try:
            self._set_up(max_bytes)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            return False
        return True

    def _set_up(self, max_bytes: int) -> None:
        version = self._number("PRAGMA user_version")
        if version > VERSION:
            raise ConfigError(
                f"the spool is of version {version}, and this claimspan knows up to {VERSION}: "
                "give another file, or update claimspan"
            )
        found = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        if found and not found >= TABLES:
            raise ConfigError("it is the database of another program: give another file")
        self._db.execute("PRAGMA journal_mode = WAL")
        # What was committed survives the process; the last moments may be lost with the machine.
        self._db.execute("PRAGMA synchronous = NORMAL")
        # Questions and answers must not stay in the file after their row is gone.
        self._db.execute("PRAGMA secure_delete = ON")
        pages = max(1, max_bytes // self._number("PRAGMA page_size"))
        self._db.execute(f"PRAGMA max_page_count = {pages}")
        self._db.execute(f"PRAGMA journal_size_limit = {4 * 1024 * 1024}")
        with self._transaction():
            for statement in filter(str.strip, CREATE.split(";")):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        self.renew()

    def _number(self, statement: str) -> int:
        return int(self._db.execute(statement).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """Begin as a writer, so that no transaction has to be upgraded, and fails half-way."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Give up all leases, so that others need not wait for their end, and close the file."""
        try:
            with self._transaction():
                # What was not finished has not used up its attempt: nothing went wrong with it.
                self._db.execute(
                    "UPDATE records SET owner = NULL, attempts = attempts - (state = 'leased'), "
                    "state = CASE state WHEN 'leased' THEN 'waiting' ELSE state END "
                    "WHERE owner = ? AND state <> 'dead'",
                    (self._owner,),
                )
                self._db.execute("DELETE FROM owners WHERE owner = ?", (self._owner,))
        finally:
            self._db.close()

    def drop(self) -> None:
        """Close the file without another word: it is gone, or damaged."""
        self._db.close()

    def adopt(self, other: Store) -> None:
        """Copy the rows of another open file, which was deleted from its folder."""
        columns = (
            "trace_id, span_id, state, root, owner, attempts, not_before, added_at, died_at, "
            "reason, job, outcome, root_outcome"
        )
        rows = other._db.execute(f"SELECT {columns} FROM records")  # noqa: S608 - constants of this function
        with self._transaction():
            self._db.executemany(
                f"INSERT OR IGNORE INTO records ({columns}) VALUES ({','.join('?' * 13)})",  # noqa: S608 - constants of this function
                rows,
            )

    # --- this process ---

    def renew(self) -> bool:
        """Say that this process is alive, and forget owners and dead letters of long ago."""
        moment = self._clock()
        with self._transaction():
            self._db.execute(
                "INSERT INTO owners VALUES (?, ?, ?) "
                "ON CONFLICT (owner) DO UPDATE SET boot = excluded.boot, until = excluded.until",
                (self._owner, boot_id(), moment + self._lease),
            )
            self._db.execute(
                f"DELETE FROM owners WHERE NOT {_ALIVE}",  # noqa: S608 - a constant of this module
                self._moment(moment),
            )
            self._db.execute(
                "DELETE FROM records WHERE state = 'dead' AND died_at < ?",
                (time.time() - DEAD_SECONDS,),
            )
        return True

    def _moment(self, moment: int) -> dict[str, _Value]:
        return {"now": moment, "boot": boot_id(), "lease": self._lease, "me": self._owner}

    # --- rows of this process ---

    def add(self, job: Job) -> Lease | None:
        """Add a job that this process works on; None if the spool has its key already."""
        root = Root.EXPORTED if job.root_ended else Root.HELD
        values = (*job.key, root.value, self._owner, time.time(), job.to_json())
        added = self._db.execute(
            "INSERT INTO records (trace_id, span_id, state, root, owner, attempts, added_at, job) "
            "VALUES (?, ?, 'leased', ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING",
            values,
        )
        return Lease(job.key, 1) if added.rowcount else None

    def has(self, key: JobKey) -> bool:
        """Whether there is a row, a dead one as well."""
        found = "SELECT 1 FROM records WHERE trace_id = ? AND span_id = ?"
        return self._db.execute(found, key).fetchone() is not None

    def end_root(self, leases: Iterable[Lease], outcome: Outcome) -> list[Lease]:
        """Note that held spans are about to end without scores; returns the leases still held."""
        text = outcome.to_json()
        with self._transaction():
            return [
                lease
                for lease in leases
                if self._change("root = 'ended', root_outcome = :text", lease, text=text)
            ]

    def root_exported(self, keys: Iterable[JobKey]) -> None:
        """Note that spans without scores were exported. True whichever process has the lease."""
        with self._transaction():
            self._db.executemany(
                "UPDATE records SET root = 'exported' "
                "WHERE trace_id = ? AND span_id = ? AND root = 'ended'",
                keys,
            )

    def write(self, lease: Lease, outcome: Outcome) -> bool:
        """Keep an outcome that is about to be written; False if the lease was lost."""
        changes = "state = 'written', outcome = :text"
        return self._change(changes, lease, text=outcome.to_json())

    def put_back(self, lease: Lease, delay: float, *, counted: bool) -> bool:
        """Let a row wait; ``counted`` if it has used up one of its attempts."""
        changes = "state = 'waiting', not_before = :start, attempts = attempts - :refund"
        start = self._clock() + int(delay * 1e9)
        return self._change(changes, lease, start=start, refund=0 if counted else 1)

    def export_again(self, lease: Lease, delay: float) -> bool:
        """Let a row whose spans were not exported wait to be written again."""
        changes = "state = 'unexported', not_before = :start"
        return self._change(changes, lease, start=self._clock() + int(delay * 1e9))

    def kill(self, lease: Lease, reason: str) -> None:
        """Make a row a dead letter."""
        changes = "state = 'dead', owner = NULL, died_at = :died_at, reason = :reason"
        self._change(changes, lease, reason=reason[:MAX_REASON], died_at=time.time())
        self.died.append(reason[:MAX_REASON])

    def delete(self, leases: Iterable[Lease]) -> bool:
        """Remove rows whose spans were exported, if their leases are still held."""
        with self._transaction():
            self._db.executemany(
                "DELETE FROM records WHERE trace_id = ? AND span_id = ? "
                "AND owner = ? AND attempts = ?",
                [(*lease.key, self._owner, lease.attempts) for lease in leases],
            )
        return True

    def _change(self, changes: str, lease: Lease, **values: _Value) -> bool:
        """Change a row, unless another process has taken it over."""
        trace_id, span_id = lease.key
        fence = {
            "trace_id": trace_id,
            "span_id": span_id,
            "me": self._owner,
            "attempts": lease.attempts,
        }
        changed = self._db.execute(
            f"UPDATE records SET {changes} WHERE trace_id = :trace_id AND span_id = :span_id "  # noqa: S608 - constants of this module
            "AND owner = :me AND attempts = :attempts",
            {**fence, **values},
        )
        return bool(changed.rowcount)

    # --- rows to take up ---

    def left(self) -> tuple[int, int]:
        """Number of rows that are not dead: all of them, and those no other living process has."""
        ours, all_ = self._db.execute(
            f"SELECT coalesce(sum(owner = :me OR {_FOREIGN}), 0), count(*) "  # noqa: S608 - constants of this module
            "FROM records WHERE state <> 'dead'",
            self._moment(self._clock()),
        ).fetchone()
        return int(all_), int(ours)

    def claim(self, most: int, max_attempts: int, *, is_alone: bool = True) -> list[Row]:
        """Take up rows that wait: this process's own, and those of processes that are dead.

        What cannot be read, and what was taken up too often, becomes a dead letter. A row at its
        last attempt is taken up by itself: one that ends its process must not use up the attempts
        of those beside it.

        Args:
            most: Number of rows.
            max_attempts: How often a row is taken up, before it is a dead letter.
            is_alone: Whether this process works on no row now that it has taken up.
        """
        # Two processes have ended beside such a row at least.
        last = max(2, max_attempts - 1)
        with self._transaction():
            found = self._found(_BESIDE_OTHERS, most, last)
            if not found and is_alone:
                found = self._found(_BY_ITSELF, min(1, most), last)
            rows = [self._row(row, max_attempts, is_foreign=foreign) for row, foreign in found]
        return [row for row in rows if row is not None]

    def _found(self, how: str, most: int, last: int) -> list[tuple[Mapping[str, object], bool]]:
        """Rows, and whether each was another process's."""
        own = self._take(f"{_OWN} AND {how}", most, last)
        foreign = self._take(f"{_FOREIGN} AND {how}", most - len(own), last)
        return [*((row, False) for row in own), *((row, True) for row in foreign)]

    def _take(self, which: str, most: int, last: int) -> list[Mapping[str, object]]:
        taken = self._db.execute(
            _CLAIM.format(which=which),
            {
                **self._moment(self._clock()),
                "most": most,
                "last": last,
                "max_bytes": MAX_PAYLOAD_BYTES,
            },
        )
        names = [column[0] for column in taken.description]
        return [dict(zip(names, values, strict=True)) for values in taken.fetchall()]

    def _row(
        self, values: Mapping[str, object], max_attempts: int, *, is_foreign: bool
    ) -> Row | None:
        key = (str(values["trace_id"]), str(values["span_id"]))
        lease = Lease(key, int(str(values["attempts"])))
        try:
            row = _parsed(lease, values, is_foreign=is_foreign)
        except (ConfigError, ValueError) as error:
            self.kill(lease, str(error))
            return None
        if lease.attempts > max_attempts and row.outcome is None:
            reason = f"{max_attempts} attempts to evaluate it ended without an outcome"
            self.kill(lease, reason)
            return None
        return row


_ALIVE: Final = (
    # A time too far ahead is of an earlier start of the machine, where no boot id tells.
    "(boot = :boot AND until >= :now AND until <= :now + 2 * :lease)"
)

_OWN: Final = "owner = :me AND state IN ('waiting', 'unexported') AND not_before <= :now"

_FOREIGN: Final = """state <> 'dead' AND (
    owner IS NULL OR owner NOT IN (SELECT owner FROM owners WHERE {alive})
)""".replace("{alive}", _ALIVE)

_BY_ITSELF: Final = "(attempts = :last AND state NOT IN ('written', 'unexported'))"
_BESIDE_OTHERS: Final = f"NOT {_BY_ITSELF}"

_CLAIM: Final = """
UPDATE records SET
    attempts = attempts + (state NOT IN ('written', 'unexported')),
    state = CASE WHEN state IN ('written', 'unexported') THEN 'written' ELSE 'leased' END,
    owner = :me
WHERE id IN (SELECT id FROM records WHERE {which} ORDER BY id LIMIT :most)
RETURNING trace_id, span_id, attempts, root, root_outcome, outcome,
    CASE WHEN typeof(job) = 'text' AND length(job) <= :max_bytes THEN job END AS job
"""


def _parsed(lease: Lease, values: Mapping[str, object], *, is_foreign: bool) -> Row:
    """A row whose parts fit together; raises if they do not."""
    job = Job.from_json(_checked(values["job"]))
    if job.key != lease.key:
        raise ConfigError("the payload is the job of another record")
    outcome, root_outcome = (
        None if values[name] is None else Outcome.from_json(_checked(values[name]))
        for name in ("outcome", "root_outcome")
    )
    return Row(lease, job, Root(str(values["root"])), outcome, root_outcome, is_foreign)


def _checked(text: object) -> bytes:
    if not isinstance(text, str):
        raise ConfigError("the payload is no text of a bounded length")
    try:
        return check_bounds(text, max_bytes=MAX_PAYLOAD_BYTES, max_depth=MAX_DEPTH)
    except PayloadError as error:
        raise ConfigError(f"the payload is {error.reason}") from None
