"""The requests whose traces are not judged yet, in the files of a folder.

One process appends to it, and another one reads. What is in it survives the end of both: a request
is written before it is acknowledged, and stays until each of its traces is judged. Nothing waits
for the disk, so that a SIGKILL loses nothing and the end of the machine may lose the last seconds.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from claimspan.errors import ConfigError

RECORDS: Final = "records.db"
"""The spool of the monitor, in the same folder: what was sampled is there, and here no more."""

N_SEGMENTS: Final = 64
"""Files that all bytes are spread over. A file goes when all of its traces are judged."""

MAX_KNOWN: Final = 100_000
"""Traces that were judged which are remembered, the last ones."""

MAX_ATTEMPTS: Final = 3
"""How often something is worked on that each time ends the process."""

MAX_ASIDE: Final = 100
"""Files that are set aside; of more there is the count alone."""

_TRACES: Final = "traces.db"
_ASIDE: Final = "aside-"
_SUFFIX: Final = ".otlp"
_HEAD: Final = Struct("<IBB")
"""Bytes of the body, whether it is JSON, whether it is packed by gzip."""

_OFFSET_BITS: Final = 36


@dataclass(frozen=True, slots=True)
class Entry:
    """A request as it came."""

    position: int
    """Grows from one entry to the next."""

    body: bytes
    is_json: bool
    is_packed: bool


def segment_of(position: int) -> int:
    """Number of the file that has what is at a position."""
    return position >> _OFFSET_BITS


class Journal:
    """The end to which requests are appended, in one process and on one thread."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Go on after what is there.

        Args:
            folder: Where the files are.
            max_bytes: Of all of them.
        """
        self._folder = folder
        self._max_bytes = max_bytes
        self._sizes = {number: _path(folder, number).stat().st_size for number in _numbers(folder)}
        # What was being written when the process before was killed is not gone on with.
        self._last = max(self._sizes, default=0)
        self._file: int | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of all that is in it."""
        return sum(self._sizes.values())

    def has_room(self, n_bytes: int) -> bool:
        """Whether a request of this size fits."""
        return self.n_bytes + n_bytes <= self._max_bytes

    def append(self, body: bytes, *, is_json: bool, is_packed: bool) -> bool:
        """Put a request down; False if there is no room for it, or the disk is full."""
        if not self.has_room(len(body)):
            return False
        entry = _HEAD.pack(len(body), is_json, is_packed) + body
        try:
            file = self._opened()
            is_whole = os.write(file, entry) == len(entry)
        except OSError:
            is_whole = False
        if is_whole:
            self._sizes[self._last] += len(entry)
        if not is_whole or self._sizes[self._last] * N_SEGMENTS >= self._max_bytes:
            self.close()  # what follows half an entry could not be read
            with suppress(OSError):  # a file is over, and can be deleted, once there is a later one
                self._opened()
        return is_whole

    def refresh(self) -> None:
        """See which files were deleted because all in them is judged."""
        there = set(_numbers(self._folder)) | {self._last}
        self._sizes = {number: size for number, size in self._sizes.items() if number in there}

    def close(self) -> None:
        """End the present file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            path = _path(self._folder, self._last + 1)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(path, flags, 0o600)
            self._last += 1
            self._sizes[self._last] = 0
        return self._file


class Segments:
    """The other end, from which requests are read in their order."""

    def __init__(self, folder: Path) -> None:
        """Begin with the oldest file."""
        self._folder = folder
        self._number = self._offset = 0
        self._file: BinaryIO | None = None
        self._read = set[int]()
        """Files that were read to their end."""

    def next(self) -> Entry | None:
        """The next request; None if there is none now."""
        while (entry := self._entry()) is None:
            later = min((n for n in _numbers(self._folder) if n > self._number), default=None)
            if later is None:
                return None
            # What came between the two looks; a file gets nothing once there is a later one.
            if (entry := self._entry()) is not None:
                break
            self.close()
            self._read.add(self._number)
            self._number, self._offset = later, 0
            self._file = _path(self._folder, later).open("rb")
        return entry

    def delete(self, needed: Mapping[int, int]) -> None:
        """Delete the files that were read to their end and that no trace needs any more."""
        for number in [each for each in self._read if not needed.get(each)]:
            with suppress(OSError):  # tried again
                _path(self._folder, number).unlink(missing_ok=True)
                self._read.discard(number)

    def close(self) -> None:
        """Leave off."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _entry(self) -> Entry | None:
        """The entry at the present place; None if it is not there, or not to its end."""
        if self._file is None:
            return None
        self._file.seek(self._offset)
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        size, is_json, is_packed = _HEAD.unpack(head)
        body = self._file.read(size)
        if len(body) < size:
            return None
        position = self._number << _OFFSET_BITS | self._offset
        self._offset += _HEAD.size + size
        return Entry(position, body, bool(is_json), bool(is_packed))


@dataclass(frozen=True, slots=True)
class JudgedTrace:
    """What is remembered of a trace that was judged or given up."""

    position: int
    """The last request that was a part of it; -1 if all that comes of it has its outcome."""

    outcome: str
    """What becomes of its spans that come later; empty if it then begins anew."""

    resource: bytes = b""
    """By what its root was made, as OTLP has it, if it gave a record."""


class Judged:
    """The traces that were judged, in a file that one process alone has open.

    Whether a trace was judged has to be known as long as a request of it may be read once more. So
    has what was begun: if the process has ended at it again and again, it may be the reason.
    """

    def __init__(self, folder: Path | None = None, *, wait_seconds: float = 20.0) -> None:
        """Open the file.

        Args:
            folder: Where it is; None keeps all in memory.
            wait_seconds: How long the process before may take to end.

        Raises:
            ConfigError: It cannot be opened, or another service has it.
        """
        where = ":memory:" if folder is None else str(folder / _TRACES)
        try:
            if folder is not None:
                (folder / _TRACES).touch(mode=0o600)
            # One connection, used on one thread and closed on any.
            self._db = sqlite3.connect(
                where, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
            for each in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = OFF"):
                self._db.execute(f"PRAGMA {each}")
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS traces "
                "(id BLOB PRIMARY KEY, position INTEGER, outcome TEXT, resource BLOB)"
            )
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS begun (id BLOB PRIMARY KEY, attempts INTEGER)"
            )
            self._db.execute("COMMIT")
            begun = self._db.execute("SELECT * FROM begun").fetchall()
            self._attempts: dict[bytes, int] = dict(begun)
            rows = self._db.execute("SELECT * FROM traces ORDER BY rowid").fetchall()
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"cannot use {where!r} ({error}): end the other claimspan serve that has it, or "
                "give another folder as spool"
            ) from None
        self._traces = {int.from_bytes(row[0]): JudgedTrace(*row[1:]) for row in rows}

    def close(self) -> None:
        """Leave the file to the next process."""
        self._db.close()

    def get(self, trace_id: int) -> JudgedTrace | None:
        """What is known of a trace."""
        return self._traces.get(trace_id)

    def note(self, trace_id: int, judged: JudgedTrace) -> None:
        """Remember a trace, for this process alone until it is kept."""
        self._traces.pop(trace_id, None)
        self._traces[trace_id] = judged
        if len(self._traces) > MAX_KNOWN:
            del self._traces[next(iter(self._traces))]

    def keep(self, judged: Iterable[tuple[int, JudgedTrace]]) -> bool:
        """Remember traces for the process after this one; False if the disk is full."""
        over = [(t.to_bytes(16), j.position, j.outcome, j.resource) for t, j in judged]
        with suppress(sqlite3.Error), self._db:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?)", over)
            self._db.execute(
                "DELETE FROM traces WHERE rowid <= (SELECT max(rowid) FROM traces) - ?",
                (MAX_KNOWN,),
            )
            self._db.executemany("DELETE FROM begun WHERE id = ?", [row[:1] for row in over])
            return True
        return False

    def attempts(self, id_: bytes) -> int:
        """How many processes have ended at something: a request, by its place, or a trace."""
        return self._attempts.get(id_, 0)

    def begin(self, id_: bytes) -> None:
        """Note for the process after this one that something is worked on."""
        with suppress(sqlite3.Error):
            self._db.execute(
                "INSERT INTO begun VALUES (?, 1) ON CONFLICT DO UPDATE SET attempts = attempts + 1",
                (id_,),
            )

    def end(self, id_: bytes) -> None:
        """Note that it has not ended the process."""
        with suppress(sqlite3.Error):
            self._db.execute("DELETE FROM begun WHERE id = ?", (id_,))


def set_aside(folder: Path, name: str, body: bytes) -> str:
    """Keep what is not judged in a file by itself; returns its path, or what became of it."""
    path = folder / f"{_ASIDE}{name}"
    if sum(each.startswith(_ASIDE) for each in os.listdir(folder)) >= MAX_ASIDE:
        return f"nowhere, since there are {MAX_ASIDE} such files"
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(body)
    except OSError as error:
        return f"nowhere ({error.strerror})"
    return str(path.absolute())


def _numbers(folder: Path) -> list[int]:
    return [
        int(name.removesuffix(_SUFFIX))
        for name in os.listdir(folder)
        if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal()
    ]


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:012}{_SUFFIX}"
