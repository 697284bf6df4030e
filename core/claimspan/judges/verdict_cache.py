"""A cache of verdicts, claims and grades by content, in memory and optionally in an SQLite file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from claimspan.errors import ConfigError
from claimspan.files.private import create_private_database
from claimspan.judges.protocol import Grade
from claimspan.verdicts import Claim, Verdict

__all__ = ["VerdictCache", "content_key", "joint_key"]

MAX_ENTRIES: Final = 100_000
"""Default limit on the entries in memory: about 25 MB of verdicts."""

_T = TypeVar("_T")
_CLAIMS: Final = TypeAdapter(list[Claim])
_GRADE: Final = TypeAdapter(Grade)
_VERDICT: Final = TypeAdapter(Verdict)
_QUERY_SIZE: Final = 500  # below SQLite's limit on parameters in every build


def content_key(*parts: str | None) -> str:
    """The cache key of a result that depends on these texts; None and an empty text differ."""
    written = json.dumps(parts).encode()
    return hashlib.sha256(written).hexdigest()


def joint_key(*keys: str) -> str:
    """The cache key of a result that depends on the results of these keys."""
    return hashlib.sha256("".join(keys).encode()).hexdigest()


class VerdictCache:
    """Caches values by content key in memory, and in an SQLite file if one is given.

    The file never loses an entry, processes may share it, and only its owner can read it. When it
    fails, the cache warns and goes on in memory. A value that cannot be read counts as missing.
    """

    def __init__(self, path: str | Path | None = None, *, max_entries: int = MAX_ENTRIES) -> None:
        """Open the file, or create it.

        Args:
            path: SQLite file; None caches in memory only.
            max_entries: Limit on the entries in memory; the least recently used goes first.

        Raises:
            ConfigError: The file cannot be opened, is a link, or is not an SQLite file.
        """
        self._max_entries = max_entries
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self._file = None if path is None else _open(Path(path))

    def verdicts(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """The cached verdicts among these keys, by key."""
        return self._values(keys, _VERDICT)

    def claims(self, key: str) -> list[Claim] | None:
        """The cached claims of a text, or None."""
        return self._values([key], _CLAIMS).get(key)

    def grades(self, keys: Sequence[str]) -> dict[str, Grade]:
        """The cached grades among these keys, by key."""
        return self._values(keys, _GRADE)

    def add_verdicts(self, verdicts: Mapping[str, Verdict]) -> None:
        """Caches verdicts by key."""
        self._put(verdicts, _VERDICT)

    def add_claims(self, key: str, claims: Sequence[Claim]) -> None:
        """Caches the claims of a text."""
        self._put({key: list(claims)}, _CLAIMS)

    def add_grades(self, grades: Mapping[str, Grade]) -> None:
        """Caches grades by key."""
        self._put(grades, _GRADE)

    def close(self) -> None:
        """Closes the file; the cache goes on in memory."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _values(self, keys: Sequence[str], kind: TypeAdapter[_T]) -> dict[str, _T]:
        with self._lock:
            written = {key: self._memory[key] for key in keys if key in self._memory}
            for key in written:
                self._memory.move_to_end(key)
            missing = [key for key in keys if key not in written]
            if missing and self._file is not None:
                stored = self._read(self._file, missing)
                self._remember(stored)
                written |= stored
        values: dict[str, _T] = {}
        for key, text in written.items():
            with suppress(ValidationError):
                values[key] = kind.validate_json(text)
        return values

    def _put(self, values: Mapping[str, _T], kind: TypeAdapter[_T]) -> None:
        written = {key: kind.dump_json(each).decode() for key, each in values.items()}
        with self._lock:
            self._remember(written)
            if self._file is not None and written:
                self._write(self._file, written.items())

    def _remember(self, values: Mapping[str, str]) -> None:
        self._memory.update(values)
        while len(self._memory) > self._max_entries:
            self._memory.popitem(last=False)

    def _read(self, file: sqlite3.Connection, keys: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            for start in range(0, len(keys), _QUERY_SIZE):
                some = keys[start : start + _QUERY_SIZE]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, value FROM cache WHERE key IN ({marks})"  # noqa: S608 - marks only
                found.update((str(key), str(value)) for key, value in file.execute(query, some))
        except sqlite3.Error as error:
            self._give_up(file, error)
        return found

    def _write(self, file: sqlite3.Connection, rows: Iterable[tuple[str, str]]) -> None:
        try:
            with file:
                file.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._give_up(file, error)

    def _give_up(self, file: sqlite3.Connection, error: sqlite3.Error) -> None:
        self._file = None
        file.close()
        warnings.warn(
            f"the file of the verdict cache failed ({type(error).__name__}): it goes on in memory",
            RuntimeWarning,
            stacklevel=2,
        )


def _open(path: Path) -> sqlite3.Connection:
    if str(path) != ":memory:":
        # Before SQLite does it, with a mode that lets others read claims; its journal files take
        # the mode of this one.
        create_private_database(path, what="a verdict cache")
    file: sqlite3.Connection | None = None
    try:
        file = sqlite3.connect(path, check_same_thread=False, timeout=5.0)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.execute("CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        file.commit()
    except sqlite3.Error as error:
        # Python 3.13 warns of a connection that is only dropped.
        if file is not None:
            file.close()
        raise ConfigError(
            f"cannot use {str(path)!r} as a verdict cache ({type(error).__name__}): "
            "give the path of an SQLite file, or of one to create"
        ) from error
    return file
