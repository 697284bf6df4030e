"""Stores that count the usage of a day: in memory, in an SQLite file, in Redis, by one protocol."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError, MissingExtraError
from claimspan.files.private import create_private_database

if TYPE_CHECKING:
    from redis import Redis

__all__ = [
    "LEASE_SECONDS",
    "Account",
    "Admission",
    "BudgetStore",
    "Limits",
    "MemoryBudgetStore",
    "RedisBudgetStore",
    "RedisClient",
    "SqliteBudgetStore",
]

LEASE_SECONDS: Final = 900.0
"""Seconds after which a reservation counts as spent: longer than a call with all its retries."""

BUSY_SECONDS: Final = 1.0
"""How long a call waits for another process that writes the file; a transaction takes 0.1 ms."""

TIMEOUT_SECONDS: Final = 1.0
"""How long a call waits for a Redis that does not answer."""

_KEPT_DAYS: Final = 2
"""Days that a store keeps: a call that begins before midnight is booked after it."""

_DAY_SECONDS: Final = 86_400


class Limits(NamedTuple):
    """What may be used, on one day or for one record; None sets no limit."""

    dollars: float | None = None
    calls: int | None = None
    """Requests to a model, retries included."""

    tokens: int | None = None
    """Prompt and completion tokens together."""

    def exceeded(self, total: Usage) -> Iterator[tuple[float, float, str]]:
        """Yield each limit that a total is beyond, with the total and its unit."""
        used = (total.cost_usd, total.calls, total.input_tokens + total.output_tokens)
        for limit, needed, unit in zip(self, used, self._fields, strict=True):
            if limit is not None and needed > limit:
                yield limit, needed, unit

    def allow(self, total: Usage) -> bool:
        """Whether a total is within every limit."""
        return not any(self.exceeded(total))


class Admission(NamedTuple):
    """The answer of a store to a reservation."""

    is_admitted: bool
    spent: Usage
    """Spending of that day so far, without reservations."""


class BudgetStore(Protocol):
    """Counts spending and reservations of each day, for one process or for many.

    The calls may block for a short time, and are made on a thread of their own. They may raise
    whatever the storage raises: the budget then goes on with the count of its own process.
    """

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """Enter a reservation if all spending and reservations stay within the limits.

        Looking and entering have to be one step, also if other processes do the same.

        Args:
            day: Days since 1970-01-01.
            key: Identifies the reservation; never used again.
            maximum: Upper bound of what the call can cost.
            limits: The limits of the day.
        """
        ...

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """End a reservation, and book the cost of the call.

        A reservation whose process died is booked at its maximum after some time; if that has
        happened to a process that lives, this corrects it. An unknown key is booked as well.
        """
        ...

    def spent(self, day: int) -> Usage:
        """Return the spending of a day so far, without reservations."""
        ...


class Account:
    """Spending and reservations of a day or of a record.

    The sum of the open reservations is kept, and not made anew for each call: the work of many that
    are open at once would grow with the square of their number.
    """

    def __init__(self) -> None:
        self.spent = Usage()
        self._open: dict[str, Usage] = {}
        self._reserved = Usage()

    def reserve(self, key: str, maximum: Usage, limits: Limits) -> bool:
        """Enter a reservation if all of it is within the limits; no other one may have its key."""
        if not limits.allow(self._reserved + self.spent + maximum):
            return False
        self._open[key] = maximum
        self._reserved += maximum
        return True

    def settle(self, key: str, spent: Usage) -> None:
        """End a reservation, if there is one, and book the spending."""
        maximum = self._open.pop(key, None)
        if maximum is not None:
            # With none open the sum begins anew: the rounding of dollars must not add up for days.
            self._reserved = self._reserved.beyond(maximum) if self._open else Usage()
        self.spent += spent

    def forget_reservations(self) -> None:
        """End all of them, without a cost."""
        self._open.clear()
        self._reserved = Usage()


class MemoryBudgetStore:
    """Counts within one process, from zero; the default."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._days: dict[int, Account] = {}

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """As ``BudgetStore.reserve``."""
        with self._lock:
            account = self._account(day)
            return Admission(account.reserve(key, maximum, limits), account.spent)

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        with self._lock:
            self._account(day).settle(key, spent)

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        with self._lock:
            return self._account(day).spent

    def forget_reservations(self) -> None:
        """Go on in a forked child: the calls under way are its parent's."""
        # Another thread may have held the lock at the moment of the fork: it is replaced.
        self._lock = threading.Lock()
        for account in self._days.values():
            account.forget_reservations()

    def _account(self, day: int) -> Account:
        for old in [each for each in self._days if each <= day - _KEPT_DAYS]:
            del self._days[old]
        return self._days.setdefault(day, Account())


def _values(usage: Usage) -> tuple[int, int, int, float]:
    return usage.calls, usage.input_tokens, usage.output_tokens, usage.cost_usd


def _usage(values: Iterable[object]) -> Usage:
    """Usage from a row of a store; a correction may leave a sum of floats just below zero."""
    calls, sent, got, cost = map(_number, values)
    return Usage(
        calls=int(calls), input_tokens=int(sent), output_tokens=int(got), cost_usd=max(0.0, cost)
    )


def _number(value: object) -> float:
    """A number as a store returns it: also bytes, text if the client decodes, or nothing."""
    if value is None:
        return 0.0
    return float(value if isinstance(value, bytes | str | int | float) else "nan")


# The sum of the open reservations is kept beside that of what was spent: to add up all of them for
# each call would take the square of their number.
_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS budget_sum (
    name TEXT NOT NULL, day INTEGER NOT NULL, is_open INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL,
    PRIMARY KEY (name, day, is_open)
);
CREATE TABLE IF NOT EXISTS budget_lease (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, day INTEGER NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL,
    expires REAL NOT NULL, is_booked INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS budget_lease_by_end ON budget_lease (name, is_booked, expires);
CREATE INDEX IF NOT EXISTS budget_lease_by_day ON budget_lease (name, day);
COMMIT;
"""
_SUM: Final = """
SELECT total(calls), total(input_tokens), total(output_tokens), total(cost_usd)
FROM budget_sum WHERE name=? AND day=? AND is_open=?
"""
_ADD: Final = """
INSERT INTO budget_sum VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name, day, is_open) DO UPDATE SET
    calls=calls+excluded.calls, input_tokens=input_tokens+excluded.input_tokens,
    output_tokens=output_tokens+excluded.output_tokens, cost_usd=cost_usd+excluded.cost_usd
"""
_EXPIRE: Final = """
UPDATE budget_lease SET is_booked=1 WHERE name=? AND is_booked=0 AND expires<?
RETURNING day, calls, input_tokens, output_tokens, cost_usd
"""
_SETTLE: Final = """
DELETE FROM budget_lease WHERE key=?
RETURNING is_booked, day, calls, input_tokens, output_tokens, cost_usd
"""
_FORGET: Final = (
    "DELETE FROM budget_lease WHERE name=? AND day<?",
    "DELETE FROM budget_sum WHERE name=? AND day<?",
)


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
            clock: Seconds since 1970-01-01 UTC. The processes share no monotonic clock; if this
                one jumps, a reservation counts as spent too early, until it is settled.

        Raises:
            ConfigError: The file cannot be opened, or is not an SQLite file.
        """
        self._path = Path(path)
        self._name = name
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._lock = threading.Lock()
        # By process: SQLite forbids to use or to close a parent's connection in a forked child.
        self._files: dict[int, sqlite3.Connection] = {}
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
            spent = self._sum(file, day, is_open=False)
            is_admitted = limits.allow(spent + self._sum(file, day, is_open=True) + maximum)
            if is_admitted:
                expires = self._clock() + self._lease_seconds
                file.execute(
                    "INSERT INTO budget_lease VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                    (key, self._name, day, *_values(maximum), expires),
                )
                self._add(file, day, _values(maximum), is_open=True)
            return Admission(is_admitted, spent)

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        with self._transaction() as file:
            for is_booked, its_day, *values in file.execute(_SETTLE, (key,)).fetchall():
                self._add(file, its_day, [-each for each in values], is_open=not is_booked)
            self._add(file, day, _values(spent), is_open=False)

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        with self._transaction() as file:
            return self._sum(file, day, is_open=False)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            file = self._files.pop(os.getpid(), None)
            if file is not None:
                file.close()

    def _book_expired(self, file: sqlite3.Connection) -> None:
        """Count reservations whose lease is over as spent, and forget days that are gone."""
        now = self._clock()
        for day, *values in file.execute(_EXPIRE, (self._name, now)).fetchall():
            self._add(file, day, [-each for each in values], is_open=True)
            self._add(file, day, values, is_open=False)
        for query in _FORGET:
            file.execute(query, (self._name, int(now // _DAY_SECONDS) - _KEPT_DAYS))

    def _add(
        self, file: sqlite3.Connection, day: int, values: Iterable[float], *, is_open: bool
    ) -> None:
        file.execute(_ADD, (self._name, day, is_open, *values))

    def _sum(self, file: sqlite3.Connection, day: int, *, is_open: bool) -> Usage:
        row: tuple[float, ...] = file.execute(_SUM, (self._name, day, is_open)).fetchone()
        return _usage(row)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """One transaction, which holds the lock on the file from its beginning to its end."""
        if self._files and os.getpid() not in self._files:
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
        if os.getpid() not in self._files:
            # Created before SQLite does it, which would let the group and others read it.
            create_private_database(self._path, what="a budget store")
            file = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                file.execute("PRAGMA journal_mode=WAL")
                file.execute("PRAGMA synchronous=NORMAL")
                file.executescript(_SCHEMA)
            except sqlite3.Error:
                file.close()
                raise
            self._files[os.getpid()] = file
        return self._files[os.getpid()]


# The first key has the sums of what was spent and of what is open. A reservation is a field of the
# second: "calls input output dollars expires is_booked". The third orders those that are not booked
# by their end: looking at each of them for every call would keep the server busy if many processes
# have calls open. The server's clock is the only one that all machines share.
_COMMON: Final = """
local NAMES = {'calls', 'input', 'output', 'dollars'}
local function add(prefix, sign, v)
  for i = 1, 3 do
    redis.call('HINCRBY', KEYS[1], prefix .. NAMES[i], string.format('%d', sign * v[i]))
  end
  local sum = tonumber(redis.call('HGET', KEYS[1], prefix .. 'dollars') or '0') + sign * v[4]
  -- with none open the sum begins anew: rounding must not add up
  if prefix == 'open_' and redis.call('ZCARD', KEYS[3]) == 0 then sum = 0 end
  redis.call('HSET', KEYS[1], prefix .. 'dollars', string.format('%.17g', sum))
end
local function total(prefix)
  local v = {}
  for i = 1, 4 do v[i] = redis.call('HGET', KEYS[1], prefix .. NAMES[i]) or '0' end
  return v
end
local function parse(text)
  local v = {}
  for part in string.gmatch(text, '%S+') do v[#v + 1] = tonumber(part) end
  return v
end
"""

_RESERVE: Final = (
    _COMMON
    + """
-- ARGV: calls, input, output, dollars, key, seconds to keep, lease, limits of dollars, calls,
-- tokens ('' for none)
local asked, clock = {ARGV[1], ARGV[2], ARGV[3], ARGV[4]}, redis.call('TIME')
local time = tonumber(clock[1]) + tonumber(clock[2]) / 1e6
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. time)) do
  local text = redis.call('HGET', KEYS[2], key)
  redis.call('ZREM', KEYS[3], key)
  if text then -- a server that is out of memory may drop one of the keys
    add('open_', -1, parse(text))
    add('', 1, parse(text))
    redis.call('HSET', KEYS[2], key, (string.gsub(text, '0$', '1')))
  end
end
local spent, open, needed = total(''), total('open_'), {}
for i = 1, 4 do needed[i] = asked[i] + spent[i] + open[i] end
local fits = 1
if ARGV[8] ~= '' and needed[4] > tonumber(ARGV[8]) then fits = 0 end
if ARGV[9] ~= '' and needed[1] > tonumber(ARGV[9]) then fits = 0 end
if ARGV[10] ~= '' and needed[2] + needed[3] > tonumber(ARGV[10]) then fits = 0 end
if fits == 1 then
  local ends = string.format('%.6f', time + ARGV[7])
  redis.call('HSET', KEYS[2], ARGV[5], table.concat(asked, ' ') .. ' ' .. ends .. ' 0')
  redis.call('ZADD', KEYS[3], ends, ARGV[5])
  add('open_', 1, asked)
  for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[6]) end
end
return {fits, spent[1], spent[2], spent[3], spent[4]}
"""
)

_SETTLE_IN_REDIS: Final = (
    _COMMON
    + """
-- ARGV: calls, input, output, dollars, key, seconds to keep
local text = redis.call('HGET', KEYS[2], ARGV[5])
if text then
  local v = parse(text)
  if redis.call('ZREM', KEYS[3], ARGV[5]) == 1 then
    add('open_', -1, v)
  elseif v[6] == 1 then
    add('', -1, v)
  end
  redis.call('HDEL', KEYS[2], ARGV[5])
end
add('', 1, ARGV)
redis.call('EXPIRE', KEYS[1], ARGV[6])
return 1
"""
)

_SPENT: Final = "return redis.call('HMGET', KEYS[1], 'calls', 'input', 'output', 'dollars')"

_KEPT_SECONDS: Final = str(_KEPT_DAYS * _DAY_SECONDS)


class RedisClient(Protocol):
    """The methods that the store needs of a synchronous client, such as ``redis.Redis``."""

    def eval(self, script: str, numkeys: int, /, *keys_and_args: str) -> object:
        """Run a script in Redis, in one step."""
        ...


class RedisBudgetStore:
    """Counts the usage of a day in Redis, which the processes of many machines may share.

    Each day has three keys, which Redis deletes two days later. A reservation of a process that
    died counts as spent, at its maximum, once its lease is over: the call may have been made and
    paid.
    """

    def __init__(
        self,
        server: str | Redis | RedisClient,
        *,
        name: str = "default",
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """Prepare a store; nothing is sent yet.

        Args:
            server: URL, such as ``redis://localhost:6379/0``, or a synchronous client of redis-py,
                whose timeouts should be short: the judge waits for it.
            name: Budgets of different names count apart in the same database.
            lease_seconds: Seconds after which a reservation counts as spent.

        Raises:
            ConfigError: The URL cannot be read.
            MissingExtraError: A URL is given, and redis-py is not installed.
        """
        self._client = _connect(server) if isinstance(server, str) else server
        self._name = name
        self._lease_seconds = lease_seconds

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """As ``BudgetStore.reserve``."""
        bounds = ("" if limit is None else repr(limit) for limit in limits)
        values = (*map(repr, _values(maximum)), key, _KEPT_SECONDS, repr(self._lease_seconds))
        is_admitted, *spent = self._run(_RESERVE, day, *values, *bounds)
        return Admission(_number(is_admitted) == 1, _usage(spent))

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        self._run(_SETTLE_IN_REDIS, day, *map(repr, _values(spent)), key, _KEPT_SECONDS)

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        return _usage(self._run(_SPENT, day))

    def _run(self, script: str, day: int, *arguments: str) -> list[object]:
        # In braces: a cluster keeps all keys of a day on the same machine.
        account = f"claimspan:budget:{{{self._name}:{day}}}"
        keys = (account, f"{account}:open", f"{account}:ends")
        reply = self._client.eval(script, len(keys), *keys, *arguments)
        return [*reply] if isinstance(reply, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - each item is checked where it is read


def _connect(url: str) -> RedisClient:
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise MissingExtraError("redis", "celery") from None
    try:
        client: Redis = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - redis-py leaves its options untyped
            url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # redis-py would try a server that is down for 3 to 30 s.
            retry=Retry(NoBackoff(), 0),
        )
        return client
    except ValueError:
        # Without the URL, which may hold a password.
        raise ConfigError(
            "the URL of the budget store cannot be read: give one like redis://localhost:6379/0"
        ) from None
