"""A budget store in an SQLite file, for the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from claimspan.cost.budget_store import KEPT_DAYS, Admission, Limits
from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError
from claimspan.files.private import create_private_database

__all__ = ["LEASE_SECONDS", "SqliteBudgetStore"]

LEASE_SECONDS: Final = 900.0
"""Seconds after which a reservation counts as spent: longer than a call with all its retries."""

BUSY_SECONDS: Final = 1.0
"""How long a call waits for another process that writes; a transaction takes about 0.1 ms."""

# The triggers keep the sum of the open reservations: to add up all of them for each call would take
# the square of their number. They run for processes of earlier versions as well.
_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS budget_day (
    name TEXT NOT NULL, day INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL,
    PRIMARY KEY (name, day)
);
CREATE TABLE IF NOT EXISTS budget_reservation (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, day INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL,
    expires REAL NOT NULL, is_booked INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS budget_open (
    name TEXT NOT NULL, day INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL,
    PRIMARY KEY (name, day)
);
CREATE INDEX IF NOT EXISTS budget_reservation_by_end
    ON budget_reservation (name, is_booked, expires);
CREATE INDEX IF NOT EXISTS budget_reservation_by_day ON budget_reservation (name, day);
CREATE TRIGGER IF NOT EXISTS budget_reserved AFTER INSERT ON budget_reservation
WHEN NEW.is_booked=0 BEGIN
    INSERT OR IGNORE INTO budget_open VALUES (NEW.name, NEW.day, 0, 0, 0, 0.0);
    UPDATE budget_open SET
        calls=calls+NEW.calls, input_tokens=input_tokens+NEW.input_tokens,
        output_tokens=output_tokens+NEW.output_tokens, cost_usd=cost_usd+NEW.cost_usd
    WHERE name=NEW.name AND day=NEW.day;
END;
CREATE TRIGGER IF NOT EXISTS budget_settled AFTER DELETE ON budget_reservation
WHEN OLD.is_booked=0 BEGIN
    UPDATE budget_open SET
        calls=calls-OLD.calls, input_tokens=input_tokens-OLD.input_tokens,
        output_tokens=output_tokens-OLD.output_tokens, cost_usd=cost_usd-OLD.cost_usd
    WHERE name=OLD.name AND day=OLD.day;
END;
CREATE TRIGGER IF NOT EXISTS budget_expired AFTER UPDATE OF is_booked ON budget_reservation
WHEN OLD.is_booked=0 AND NEW.is_booked=1 BEGIN
    UPDATE budget_open SET
        calls=calls-OLD.calls, input_tokens=input_tokens-OLD.input_tokens,
        output_tokens=output_tokens-OLD.output_tokens, cost_usd=cost_usd-OLD.cost_usd
    WHERE name=OLD.name AND day=OLD.day;
END;
INSERT OR IGNORE INTO budget_open
    SELECT name, day, total(calls), total(input_tokens), total(output_tokens), total(cost_usd)
    FROM budget_reservation WHERE is_booked=0 GROUP BY name, day;
COMMIT;
"""
_SPENT: Final = """
SELECT total(calls), total(input_tokens), total(output_tokens), total(cost_usd)
FROM budget_day WHERE name=? AND day=?
"""
_RESERVED: Final = """
SELECT total(calls), total(input_tokens), total(output_tokens), total(cost_usd)
FROM budget_open WHERE name=? AND day=?
"""
_ADD: Final = """
INSERT INTO budget_day VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name, day) DO UPDATE SET
    calls=calls+excluded.calls, input_tokens=input_tokens+excluded.input_tokens,
    output_tokens=output_tokens+excluded.output_tokens, cost_usd=cost_usd+excluded.cost_usd
"""
_EXPIRE: Final = """
UPDATE budget_reservation SET is_booked=1 WHERE name=? AND is_booked=0 AND expires<?
RETURNING day, calls, input_tokens, output_tokens, cost_usd
"""
_SETTLE: Final = """
DELETE FROM budget_reservation WHERE key=?
RETURNING is_booked, calls, input_tokens, output_tokens, cost_usd
"""
_FORGET: Final = (
    "DELETE FROM budget_reservation WHERE name=? AND day<?",
    "DELETE FROM budget_day WHERE name=? AND day<?",
    "DELETE FROM budget_open WHERE name=? AND day<?",
)

_Row = tuple[int, int, int, int, float]


class SqliteBudgetStore:
    """Counts the usage of a day in an SQLite file that several processes may share.

    The file is created for its owner alone. A reservation of a process that died counts as spent,
    at its maximum, once its lease is over: the call may have been made and paid.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "default",
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the file, or create it.

        Args:
            path: The file; it has to be on a disk of this machine, as SQLite's locks need.
            name: Budgets of different names count apart in the same file.
            lease_seconds: Seconds after which a reservation counts as spent.
            clock: Seconds since 1970-01-01 UTC. The processes share no monotonic clock; where this
                one jumps, a reservation counts as spent too early, until it is settled.

        Raises:
            ConfigError: The file cannot be opened, or is not an SQLite file.
        """
        self._path = Path(path)
        self._name = name
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._owner = 0
        # SQLite forbids to use or to close a parent's connection in a forked child: it is kept.
        self._connections: list[sqlite3.Connection] = []
        try:
            self._connection()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"cannot use {str(path)!r} as a budget store ({type(error).__name__}): "
                "give the path of an SQLite file, or of one to create"
            ) from error

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """As ``BudgetStore.reserve``."""
        with self._transaction() as file:
            self._book_expired(file)
            spent = self._read(file, _SPENT, day)
            is_admitted = limits.allow(spent + self._read(file, _RESERVED, day) + maximum)
            if is_admitted:
                expires = self._clock() + self._lease_seconds
                values = (key, self._name, day, *_values(maximum), expires, 0)
                file.execute(
                    "INSERT INTO budget_reservation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values
                )
            return Admission(is_admitted, spent)

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        with self._transaction() as file:
            rows: list[_Row] = file.execute(_SETTLE, (key,)).fetchall()
            booked = [_usage(values) for is_booked, *values in rows if is_booked]
            self._add(file, day, _values(spent))
            for maximum in booked:
                self._add(file, day, tuple(-value for value in _values(maximum)))

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        with self._transaction() as file:
            return self._read(file, _SPENT, day)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            if self._owner == os.getpid():
                self._connections.pop().close()
                self._owner = 0

    def _book_expired(self, file: sqlite3.Connection) -> None:
        """Count reservations whose lease is over as spent, and forget days that are gone."""
        now = self._clock()
        rows: list[_Row] = file.execute(_EXPIRE, (self._name, now)).fetchall()
        for day, *values in rows:
            self._add(file, day, _values(_usage(values)))
        for query in _FORGET:
            file.execute(query, (self._name, int(now // 86_400) - KEPT_DAYS))

    def _add(self, file: sqlite3.Connection, day: int, values: tuple[float, ...]) -> None:
        file.execute(_ADD, (self._name, day, *values))

    def _read(self, file: sqlite3.Connection, query: str, day: int) -> Usage:
        row: tuple[float, ...] = file.execute(query, (self._name, day)).fetchone()
        return _usage(row)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """One transaction, which holds the lock on the file from its beginning to its end."""
        if self._owner not in (0, os.getpid()):
            # In a forked child: the lock may have been held at the moment of the fork.
            self._lock = threading.Lock()
        with self._lock:
            file = self._connection()
            try:
                file.execute("BEGIN IMMEDIATE")
                yield file
                file.commit()
            except BaseException:
                with suppress(sqlite3.Error):  # the first error says more
                    file.rollback()
                raise

    def _connection(self) -> sqlite3.Connection:
        if self._owner != os.getpid():
            self._connections.append(_open(self._path))
            self._owner = os.getpid()
        return self._connections[-1]


def _open(path: Path) -> sqlite3.Connection:
    # Created before SQLite does it, which would let the group and others read it.
    create_private_database(path, what="a budget store")
    file = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.executescript(_SCHEMA)
    except sqlite3.Error:
        file.close()
        raise
    return file


def _values(usage: Usage) -> tuple[int, int, int, float]:
    return usage.calls, usage.input_tokens, usage.output_tokens, usage.cost_usd


def _usage(values: tuple[float, ...] | list[int | float]) -> Usage:
    """Usage from a row; a correction may leave a sum of floats just below zero."""
    calls, sent, got, cost = values
    return Usage(
        calls=int(calls), input_tokens=int(sent), output_tokens=int(got), cost_usd=max(0.0, cost)
    )
