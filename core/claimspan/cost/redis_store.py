"""A budget store in Redis, for the processes of many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from claimspan.cost.budget_store import KEPT_DAYS, Admission, Limits
from claimspan.cost.sqlite_store import LEASE_SECONDS
from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisBudgetStore"]

TIMEOUT_SECONDS: Final = 1.0
"""How long a call waits for a Redis that does not answer."""

# A reservation is a field of the second hash: "calls input output dollars expires is_booked". The
# third key orders those that are not booked by their end, and the first hash has their sum: looking
# at each of them for every call would keep the server busy where many processes have calls open.
# The server's clock is the only one that all machines share.
_COMMON: Final = """
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1e6
end
local function add(sign, calls, input, output, dollars)
  redis.call('HINCRBY', KEYS[1], 'calls', string.format('%d', sign * calls))
  redis.call('HINCRBY', KEYS[1], 'input', string.format('%d', sign * input))
  redis.call('HINCRBY', KEYS[1], 'output', string.format('%d', sign * output))
  local sum = tonumber(redis.call('HGET', KEYS[1], 'dollars') or '0') + sign * dollars
  redis.call('HSET', KEYS[1], 'dollars', string.format('%.17g', sum))
end
local function hold(sign, calls, tokens, dollars)
  redis.call('HINCRBY', KEYS[1], 'open_calls', string.format('%d', sign * calls))
  redis.call('HINCRBY', KEYS[1], 'open_tokens', string.format('%d', sign * tokens))
  local sum = tonumber(redis.call('HGET', KEYS[1], 'open_dollars') or '0') + sign * dollars
  if redis.call('ZCARD', KEYS[3]) == 0 then sum = 0 end -- rounding must not add up
  redis.call('HSET', KEYS[1], 'open_dollars', string.format('%.17g', sum))
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
-- ARGV: key, calls, input, output, dollars, lease, limits of dollars, calls, tokens ('' for none)
local calls, tokens, dollars = tonumber(ARGV[2]), ARGV[3] + ARGV[4], tonumber(ARGV[5])
local time = now()
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. time)) do
  local text = redis.call('HGET', KEYS[2], key)
  redis.call('ZREM', KEYS[3], key)
  if text then -- a server that is out of memory may drop one of the keys
    local v = parse(text)
    hold(-1, v[1], v[2] + v[3], v[4])
    add(1, v[1], v[2], v[3], v[4])
    redis.call('HSET', KEYS[2], key, (string.gsub(text, '0$', '1')))
  end
end
local spent = redis.call('HMGET', KEYS[1], 'calls', 'input', 'output', 'dollars')
local open = redis.call('HMGET', KEYS[1], 'open_calls', 'open_tokens', 'open_dollars')
for i = 1, 4 do spent[i] = spent[i] or '0' end
calls, tokens = calls + spent[1] + (open[1] or 0), tokens + spent[2] + spent[3] + (open[2] or 0)
dollars = dollars + spent[4] + (open[3] or 0)
local fits = 1
if ARGV[7] ~= '' and dollars > tonumber(ARGV[7]) then fits = 0 end
if ARGV[8] ~= '' and calls > tonumber(ARGV[8]) then fits = 0 end
if ARGV[9] ~= '' and tokens > tonumber(ARGV[9]) then fits = 0 end
if fits == 1 then
  local ends = string.format('%.6f', time + ARGV[6])
  local value = table.concat({ARGV[2], ARGV[3], ARGV[4], ARGV[5], ends, '0'}, ' ')
  redis.call('HSET', KEYS[2], ARGV[1], value)
  redis.call('ZADD', KEYS[3], ends, ARGV[1])
  hold(1, ARGV[2], ARGV[3] + ARGV[4], ARGV[5])
  for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[10]) end
end
return {fits, spent[1], spent[2], spent[3], spent[4]}
"""
)

_SETTLE: Final = (
    _COMMON
    + """
-- ARGV: key, calls, input, output, dollars, seconds to keep
local text = redis.call('HGET', KEYS[2], ARGV[1])
if text then
  local v = parse(text)
  if redis.call('ZREM', KEYS[3], ARGV[1]) == 1 then
    hold(-1, v[1], v[2] + v[3], v[4])
  elseif v[6] == 1 then
    add(-1, v[1], v[2], v[3], v[4])
  end
  redis.call('HDEL', KEYS[2], ARGV[1])
end
add(1, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))
redis.call('EXPIRE', KEYS[1], ARGV[6])
return 1
"""
)

_SPENT: Final = "return redis.call('HMGET', KEYS[1], 'calls', 'input', 'output', 'dollars')"

_KEPT_SECONDS: Final = KEPT_DAYS * 86_400


class RedisClient(Protocol):
    """What the store needs of a synchronous client, such as ``redis.Redis``."""

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
        lease = repr(self._lease_seconds)
        reply = self._run(
            _RESERVE, day, (key, *_texts(maximum), lease, *bounds, str(_KEPT_SECONDS))
        )
        is_admitted, *spent = reply
        return Admission(_number(is_admitted) == 1, _usage(spent))

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        self._run(_SETTLE, day, (key, *_texts(spent), str(_KEPT_SECONDS)))

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        return _usage(self._run(_SPENT, day, ()))

    def _run(self, script: str, day: int, arguments: tuple[str, ...]) -> list[object]:
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


def _texts(usage: Usage) -> tuple[str, str, str, str]:
    sent, got = str(usage.input_tokens), str(usage.output_tokens)
    return str(usage.calls), sent, got, repr(usage.cost_usd)


def _usage(values: list[object]) -> Usage:
    calls, sent, got, cost = map(_number, values)
    return Usage(
        calls=int(calls), input_tokens=int(sent), output_tokens=int(got), cost_usd=max(0.0, cost)
    )


def _number(value: object) -> float:
    """A number as Redis returns it: bytes, text where the client decodes, or nothing."""
    if value is None:
        return 0.0
    return float(value if isinstance(value, bytes | str | int | float) else "nan")
