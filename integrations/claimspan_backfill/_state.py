"""The file of what was judged, so that a run goes on where another one was stopped."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from hashlib import blake2b
from pathlib import Path

from claimspan.errors import ConfigError
from claimspan.files.private import create_private_database


class State:
    """Knows which records a judge has judged; a set of digests, 16 bytes each."""

    def __init__(self, path: Path, *parts: str) -> None:
        """Open the file, and make it if there is none.

        Args:
            path: A database of SQLite.
            parts: What a record is judged by: the source, the judge and its version, the metrics.

        Raises:
            ConfigError: It cannot be written, or is another file.
        """
        self._parts = parts
        create_private_database(path, what="the state")
        try:
            self._database = sqlite3.connect(path, timeout=30)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS judged (record BLOB PRIMARY KEY) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise ConfigError(
                f"cannot use {path} as the state ({error.sqlite_errorname}): give another file "
                "with --state"
            ) from None

    def has(self, record: tuple[str, str]) -> bool:
        """Whether a record was judged, by its trace id and span id."""
        found = self._database.execute(
            "SELECT 1 FROM judged WHERE record = ?", (self._digest(record),)
        )
        return found.fetchone() is not None

    def add(self, records: Iterable[tuple[str, str]]) -> None:
        """Note that records were judged, and their scores written; on disk when it returns."""
        with self._database:
            self._database.executemany(
                "INSERT OR IGNORE INTO judged VALUES (?)", [(self._digest(e),) for e in records]
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _digest(self, record: Collection[str]) -> bytes:
        text = "\0".join((*self._parts, *record))
        return blake2b(text.encode(), digest_size=16).digest()
