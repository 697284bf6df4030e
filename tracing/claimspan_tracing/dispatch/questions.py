"""The file by which a monitor and its judging process talk: questions, reservations, log lines.

The monitor makes it for itself alone. The writer rings the other, so that neither looks while
nothing is new. A question outlasts the process that has taken it:

    waiting ──▶ taken ──▶ judged or failed ──▶ deleted by the monitor
       ▲          │  ╲
       ╰──death───╯   ╲──▶ cancelled ──▶ as above, once the process has left it off
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from pathlib import Path
from typing import Final

from claimspan.files.private import create_private_database

__all__ = ["READY", "RELEASE", "RING", "QuestionFile"]

RING: Final = b"."
"""What one process writes into the socket to the other: look into the file."""

READY: Final = b"+"
"""The same, and the judges are made."""

RELEASE: Final = b"!"
"""The same, and rest no more: the application is ending."""

BUSY_SECONDS: Final = 5.0
"""How long a statement waits for the other process; each takes about 0.1 ms."""

# AUTOINCREMENT: no number is used again after its row was deleted.
_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
CREATE TABLE set_up (content TEXT NOT NULL, log_level INTEGER NOT NULL, refusal TEXT NOT NULL);
INSERT INTO set_up VALUES ('', 0, '');
CREATE TABLE question (
    number INTEGER PRIMARY KEY AUTOINCREMENT, judge INTEGER NOT NULL, record TEXT NOT NULL,
    limits TEXT,
    state TEXT NOT NULL DEFAULT 'waiting', owner INTEGER, deaths INTEGER NOT NULL DEFAULT 0,
    result TEXT, unbooked TEXT, cpu_seconds REAL
);
CREATE TABLE reservation (
    key TEXT PRIMARY KEY, question INTEGER NOT NULL, maximum TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'asked', refusal TEXT, is_of_record INTEGER, spent TEXT
);
CREATE TABLE log (
    number INTEGER PRIMARY KEY, logger TEXT NOT NULL, level INTEGER NOT NULL, text TEXT NOT NULL
);
"""

_of_parent: Final[list[sqlite3.Connection]] = []
"""Connections of the process that this one was forked from. SQLite forbids to close them here."""


class QuestionFile:
    """The open file; each statement is a transaction of its own."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the file, or make it in a folder that only its user may enter.

        Args:
            folder: Has the file. None makes both, which are deleted with this object.

        Raises:
            OSError: There is no place for it; ``TMPDIR`` may name one.
            ConfigError: As above.
        """
        # Absolute: the application may leave the directory in which it was started.
        self.folder: Final = folder or Path(tempfile.mkdtemp(prefix="claimspan-")).absolute()
        path = self.folder / "questions.db"
        if folder is None:
            self._delete = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
            create_private_database(path, what="questions to the judging process")
        self.sql: Final = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        # It is worth nothing after the two processes. Yet no text may stay after its row is gone.
        self.sql.execute("PRAGMA synchronous = OFF")
        self.sql.execute("PRAGMA secure_delete = ON")
        if folder is None:
            self.sql.executescript(_SCHEMA)

    def delete(self) -> None:
        """Delete the file that this object has made; it may be open."""
        self._delete()

    def forget_in_fork(self) -> None:
        """Leave the file to the process that this one was forked from."""
        self._delete.detach()
        _of_parent.append(self.sql)
