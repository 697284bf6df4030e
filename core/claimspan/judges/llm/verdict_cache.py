"""Verdicts and claims that were paid for once, by the content that they are about."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from claimspan.errors import ConfigError
from claimspan.verdicts import Claim, Verdict

__all__ = ["VerdictCache", "content_key", "joint_key"]

MAX_ENTRIES: Final = 100_000
"""Entries in memory, about 25 MB of verdicts."""

_CLAIMS: Final = TypeAdapter(list[Claim])
_QUERY_SIZE: Final = 500  # below SQLite's limit on parameters in every build


def content_key(*parts: str | None) -> str:
    """A key for what is made of these texts, whatever they contain."""
    written = json.dumps(parts).encode()
    return hashlib.sha256(written).hexdigest()


def joint_key(*keys: str) -> str:
    """A key for what belongs to all of these keys."""
    return hashlib.sha256("".join(keys).encode()).hexdigest()


class VerdictCache:
    """Values by content key: in memory, and in an SQLite file if one is given.

    The file is kept for good and may be shared by processes. One that can no longer be written
    is left alone with a warning; memory goes on. A value that does not read as one counts as not
    there.
    """

    def __init__(self, path: str | Path | None = None, *, max_entries: int = MAX_ENTRIES) -> None:
        """Open or make the file.

        Args:
            path: SQLite file; None keeps everything in memory only.
            max_entries: Entries in memory; what was used longest ago goes first.

        Raises:
            ConfigError: The file cannot be opened, or is no SQLite file.
        """
        self._max_entries = max_entries
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self._file = None if path is None else _open(Path(path))

    def verdicts(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """The verdicts that are known, by key."""
        return {
            key: verdict for key, text in self._get(keys).items() if (verdict := _verdict(text))
        }

    def claims(self, key: str) -> list[Claim] | None:
        """The claims of a text, or None where they are not known."""
        text = self._get([key]).get(key)
        try:
            return None if text is None else _CLAIMS.validate_json(text)
        except ValidationError:
            return None

    def add_verdicts(self, verdicts: Mapping[str, Verdict]) -> None:
        """Keep verdicts by key."""
        self._put({key: each.model_dump_json() for key, each in verdicts.items()})

    def add_claims(self, key: str, claims: Sequence[Claim]) -> None:
        """Keep the claims of a text."""
        self._put({key: _CLAIMS.dump_json(list(claims)).decode()})

    def close(self) -> None:
        """Close the file; memory goes on."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _get(self, keys: Sequence[str]) -> dict[str, str]:
        with self._lock:
            found = {key: self._memory[key] for key in keys if key in self._memory}
            for key in found:
                self._memory.move_to_end(key)
            missing = [key for key in keys if key not in found]
            if missing and self._file is not None:
                stored = self._read(self._file, missing)
                self._remember(stored)
                found |= stored
            return found

    def _put(self, values: Mapping[str, str]) -> None:
        with self._lock:
            self._remember(values)
            if self._file is not None and values:
                self._write(self._file, values.items())

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
            self._give_up(error)
        return found

    def _write(self, file: sqlite3.Connection, rows: Iterable[tuple[str, str]]) -> None:
        try:
            with file:
                file.executemany("INSERT OR REPLACE INTO cache VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: sqlite3.Error) -> None:
        self._file = None
        warnings.warn(
            f"the verdict cache's file failed ({type(error).__name__}): going on in memory",
            RuntimeWarning,
            stacklevel=2,
        )


def _verdict(text: str) -> Verdict | None:
    try:
        return Verdict.model_validate_json(text)
    except ValidationError:
        return None


def _open(path: Path) -> sqlite3.Connection:
    try:
        file = sqlite3.connect(path, check_same_thread=False, timeout=5.0)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.execute("CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        file.commit()
    except sqlite3.Error as error:
        raise ConfigError(
            f"cannot use {str(path)!r} as a verdict cache ({type(error).__name__}): "
            "give the path of an SQLite file, or of one to be made"
        ) from error
    return file
