"""A budget that several processes share: in memory, in an SQLite file, in Redis.

Row S7 of the reliability matrix, the daily cap.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

from claimspan import Usage
from claimspan.cost import (
    Budget,
    BudgetStore,
    MemoryBudgetStore,
    RedisBudgetStore,
    SqliteBudgetStore,
)
from claimspan.cost.stores import Admission, Limits
from claimspan.errors import BudgetExceededError, ConfigError

from redis_server import RedisServer, redis_server

TODAY: Final = 20_000
LIMITS: Final = Limits(dollars=1.0, calls=10, tokens=1_000)
# An eighth is exact in binary.
PART: Final = Usage(calls=1, input_tokens=60, output_tokens=40, cost_usd=0.125)

MakeStore = Callable[[], BudgetStore]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(
    request: pytest.FixtureRequest, sqlite_path: Path, server: RedisServer
) -> Iterator[BudgetStore]:
    if request.param == "memory":
        yield MemoryBudgetStore()
    elif request.param == "sqlite":
        sqlite_store = SqliteBudgetStore(sqlite_path, clock=lambda: TODAY * 86_400.0)
        yield sqlite_store
        sqlite_store.close()
    else:
        with redis.Redis(host="127.0.0.1", port=server.port) as client:
            yield RedisBudgetStore(client, name=request.node.name)


@pytest.fixture(params=["sqlite", "redis"])
def make_shared(
    request: pytest.FixtureRequest, sqlite_path: Path, server: RedisServer
) -> Iterator[MakeStore]:
    """Makes stores that count together, as two processes have them; leases last 0.3 s."""
    sqlite_stores: list[SqliteBudgetStore] = []
    clients: list[redis.Redis] = []

    def make() -> BudgetStore:
        if request.param == "sqlite":
            sqlite_stores.append(SqliteBudgetStore(sqlite_path, lease_seconds=0.3))
            return sqlite_stores[-1]
        clients.append(redis.Redis(host="127.0.0.1", port=server.port))
        return RedisBudgetStore(clients[-1], name=request.node.name, lease_seconds=0.3)

    yield make
    for each in sqlite_stores:
        each.close()
    for client in clients:
        client.close()


# --- every store ---


def test_reservations_are_admitted_up_to_the_limit(store: BudgetStore) -> None:
    admitted = [store.reserve(TODAY, f"k{i}", PART, LIMITS).is_admitted for i in range(9)]

    assert admitted == [True] * 8 + [False]
    assert store.spent(TODAY) == Usage()


@pytest.mark.parametrize(
    "maximum",
    [
        Usage(cost_usd=1.01),
        Usage(calls=11),
        Usage(input_tokens=600, output_tokens=401),
    ],
    ids=["dollars", "calls", "tokens"],
)
def test_each_limit_is_kept(store: BudgetStore, maximum: Usage) -> None:
    assert not store.reserve(TODAY, "k", maximum, LIMITS).is_admitted
    assert store.reserve(TODAY, "k", maximum, Limits()).is_admitted


def test_what_was_settled_is_spent_and_its_reservation_gone(store: BudgetStore) -> None:
    all_of_it = Usage(calls=10, input_tokens=1_000, cost_usd=1.0)
    assert store.reserve(TODAY, "a", all_of_it, LIMITS).is_admitted
    assert not store.reserve(TODAY, "b", PART, LIMITS).is_admitted

    store.settle(TODAY, "a", PART)

    assert store.spent(TODAY) == PART
    assert store.reserve(TODAY, "b", PART, LIMITS) == Admission(is_admitted=True, spent=PART)


def test_a_booking_without_a_reservation_counts(store: BudgetStore) -> None:
    store.settle(TODAY, "unknown", PART)
    store.settle(TODAY, "other", PART)

    assert store.spent(TODAY) == PART + PART


def test_each_day_counts_apart(store: BudgetStore) -> None:
    store.settle(TODAY, "a", Usage(cost_usd=1.0))

    assert not store.reserve(TODAY, "b", PART, LIMITS).is_admitted
    assert store.reserve(TODAY + 1, "c", PART, LIMITS).is_admitted
    assert store.spent(TODAY + 1) == Usage()


def test_threads_together_stay_within_the_limit(store: BudgetStore) -> None:
    admitted: list[bool] = []
    limits = Limits(calls=50)

    def reserve(number: int) -> None:
        for i in range(20):
            key = f"{number}-{i}"
            admitted.append(store.reserve(TODAY, key, Usage(calls=1), limits).is_admitted)

    threads = [threading.Thread(target=reserve, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (len(admitted), sum(admitted)) == (80, 50)


async def test_a_budget_with_a_store_waits_refuses_and_books_as_one_without(
    store: BudgetStore,
) -> None:
    budget = Budget(per_day=1.0, store=store, clock=lambda: TODAY * 86_400.0)
    order: list[str] = []

    async def call(name: str) -> None:
        async with budget.reserve(Usage(calls=1, cost_usd=0.6)) as reservation:
            order.append(f"{name} begins")
            await asyncio.sleep(0.01)
            order.append(f"{name} ends")
            reservation.spent = Usage(calls=1, cost_usd=0.25)

    await asyncio.gather(call("first"), call("second"))

    assert order == ["first begins", "first ends", "second begins", "second ends"]
    assert budget.spent_today == Usage(calls=2, cost_usd=0.5)
    with pytest.raises(BudgetExceededError, match="1 dollars a day could be exceeded"):
        await call("third")
    assert budget.store_failures == 0


# --- stores that processes share ---


def test_the_second_process_sees_what_the_first_has_reserved_and_spent(
    make_shared: MakeStore,
) -> None:
    day = int(time.time() // 86_400)
    first, second = make_shared(), make_shared()
    first.settle(day, "a", Usage(cost_usd=0.5))
    first.reserve(day, "b", Usage(cost_usd=0.4), LIMITS)

    assert second.spent(day) == Usage(cost_usd=0.5)
    assert not second.reserve(day, "c", Usage(cost_usd=0.2), LIMITS).is_admitted


def test_a_reservation_of_a_process_that_died_is_booked_at_its_maximum(
    make_shared: MakeStore,
) -> None:
    day = int(time.time() // 86_400)
    make_shared().reserve(day, "of the dead", Usage(calls=1, cost_usd=0.6), LIMITS)
    living = make_shared()
    assert not living.reserve(day, "a", Usage(cost_usd=0.6), LIMITS).is_admitted

    time.sleep(0.4)
    admission = living.reserve(day, "b", Usage(cost_usd=0.3), LIMITS)

    assert admission == Admission(is_admitted=True, spent=Usage(calls=1, cost_usd=0.6))


def test_a_call_that_outlasts_its_lease_is_corrected_when_it_ends(make_shared: MakeStore) -> None:
    day = int(time.time() // 86_400)
    slow, other = make_shared(), make_shared()
    slow.reserve(day, "slow", Usage(calls=1, cost_usd=0.75), LIMITS)
    time.sleep(0.4)
    other.reserve(day, "other", Usage(), LIMITS)
    assert other.spent(day).cost_usd == 0.75

    slow.settle(day, "slow", Usage(calls=1, cost_usd=0.25))

    assert other.spent(day) == Usage(calls=1, cost_usd=0.25)


SPEND: Final = """
import asyncio, sys
from claimspan import Usage
from claimspan.cost import Budget, RedisBudgetStore, SqliteBudgetStore
from claimspan.errors import BudgetExceededError

kind, place, name = sys.argv[1:]
store = SqliteBudgetStore(place) if kind == "sqlite" else RedisBudgetStore(place, name=name)
budget = Budget(calls_per_day=60, per_day=100.0, store=store)

async def spend():
    made = 0
    try:
        while True:
            async with budget.reserve(Usage(calls=1, cost_usd=0.5)) as reservation:
                await asyncio.sleep(0.001)
                reservation.spent = Usage(calls=1, cost_usd=0.125)
            made += 1
    except BudgetExceededError:
        return made

async def main():
    print(sum(await asyncio.gather(spend(), spend(), spend())), budget.store_failures, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_two_processes_together_make_as_many_calls_as_the_day_allows(
    kind: str, sqlite_path: Path, server: RedisServer
) -> None:
    place = str(sqlite_path) if kind == "sqlite" else server.url
    command = [sys.executable, "-c", SPEND, kind, place, "two-processes"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [child.communicate(timeout=60)[0].split() for child in children]

    assert sum(int(made) for made, _ in outputs) == 60
    assert [failures for _, failures in outputs] == ["0", "0"]


def test_a_forked_child_goes_on_with_the_shared_file(sqlite_path: Path) -> None:
    store = SqliteBudgetStore(sqlite_path)
    budget = Budget(calls_per_day=10, store=store)
    asyncio.run(budget.book(Usage(calls=4)))

    child = os.fork()
    if child == 0:  # in the child: 0 tells the parent that all went well
        code = 1
        try:
            asyncio.run(budget.book(Usage(calls=3)))
            code = 0 if budget.spent_today.calls == 7 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert budget.spent_today.calls == 7
    store.close()


def test_the_file_is_its_owners_alone(sqlite_path: Path) -> None:
    sqlite_path.touch(0o644)
    store = SqliteBudgetStore(sqlite_path)
    store.settle(TODAY, "a", PART)

    files = sorted(sqlite_path.parent.iterdir())
    assert [each.name for each in files] == ["budget.db", "budget.db-shm", "budget.db-wal"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    store.close()


def test_old_days_are_forgotten(sqlite_path: Path, server: RedisServer) -> None:
    store = SqliteBudgetStore(sqlite_path)
    store.settle(TODAY - 5, "a", PART)
    store.reserve(int(time.time() // 86_400), "b", PART, LIMITS)
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        RedisBudgetStore(client, name="old").settle(TODAY, "a", PART)
        seconds_left = client.ttl(f"claimspan:budget:{{old:{TODAY}}}")

    assert store.spent(TODAY - 5) == Usage()
    assert isinstance(seconds_left, int)
    assert 0 < seconds_left <= 2 * 86_400
    store.close()


def test_a_reservation_takes_redis_no_longer_where_many_calls_are_open(server: RedisServer) -> None:
    limits = Limits(1e6, None, None)

    def microseconds(n: int) -> float:
        """Of the server for one reservation, the least of some."""
        store = RedisBudgetStore(server.url, name=f"open-{n}")
        found: list[float] = []
        for place in range(n):
            server.client.config_resetstat()
            store.reserve(TODAY, f"{place}", PART, limits)
            found.append(server.client.info("commandstats")["cmdstat_eval"]["usec"])
        return min(found[-10:])

    # To look at each of 1,000 takes ten times as long and more.
    assert microseconds(1_000) < 4 * microseconds(20)


def test_a_reservation_takes_a_file_no_longer_where_many_calls_are_open(tmp_path: Path) -> None:
    day, limits = int(time.time() // 86_400), Limits(1e6, None, None)

    def seconds(n: int) -> float:
        """Of this thread for one reservation, the least of some."""
        store = SqliteBudgetStore(tmp_path / f"{n}.db")
        found: list[float] = []
        for place in range(n):
            started = time.thread_time()
            store.reserve(day, f"{place}", PART, limits)
            found.append(time.thread_time() - started)
        store.close()
        return min(found[-20:])

    # To look at each of 10,000 takes fifteen times as long and more.
    assert seconds(10_000) < 5 * seconds(50)


def test_open_reservations_leave_the_sum_as_they_end(make_shared: MakeStore) -> None:
    store, day = make_shared(), int(time.time() // 86_400)
    for each in range(6):
        assert store.reserve(day, f"{each}", PART, LIMITS).is_admitted
    for each in range(6):
        store.settle(day, f"{each}", Usage())
    assert [store.reserve(day, f"again-{i}", PART, LIMITS).is_admitted for i in range(9)] == [
        *[True] * 8,
        False,
    ]


@pytest.mark.parametrize("decodes", [False, True])
def test_a_client_that_decodes_replies_counts_as_well(
    server: RedisServer, *, decodes: bool
) -> None:
    name = f"decodes-{decodes}"
    with redis.Redis(host="127.0.0.1", port=server.port, decode_responses=decodes) as client:
        store = RedisBudgetStore(client, name=name)
        assert store.reserve(TODAY, "a", PART, LIMITS).is_admitted
        store.settle(TODAY, "a", PART)

        assert store.spent(TODAY) == PART


def test_a_process_that_is_killed_holds_its_reservation_until_the_lease_is_over(
    sqlite_path: Path,
) -> None:
    program = (
        "import sys, time\n"
        "from claimspan import Usage\n"
        "from claimspan.cost import SqliteBudgetStore\n"
        "from claimspan.cost.stores import Limits\n"
        "store = SqliteBudgetStore(sys.argv[1], lease_seconds=0.5)\n"
        "day = int(time.time() // 86_400)\n"
        "store.reserve(day, 'k', Usage(calls=1), Limits(calls=1))\n"
        "print('reserved', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(sqlite_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "reserved"
        child.send_signal(signal.SIGKILL)
    time.sleep(0.6)
    store = SqliteBudgetStore(sqlite_path)
    day = int(time.time() // 86_400)
    store.reserve(day, "mine", Usage(), Limits())

    assert store.spent(day) == Usage(calls=1)
    store.close()


# --- arguments ---


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0 but garbage" * 100])
def test_a_file_that_is_no_database_is_refused(sqlite_path: Path, content: bytes) -> None:
    sqlite_path.write_bytes(content)

    with pytest.raises(ConfigError, match="as a budget store"):
        SqliteBudgetStore(sqlite_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist; create it"):
        SqliteBudgetStore(tmp_path / "missing" / "budget.db")


def test_a_url_that_cannot_be_read_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match="give one like redis://") as caught:
        RedisBudgetStore("http://user:sk-canary@localhost")

    assert "sk-canary" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize("limit", ["calls_per_day", "tokens_per_day"])
async def test_the_calls_and_tokens_of_a_day_are_limited(limit: str) -> None:
    budget = Budget(**{limit: 100})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - one of two names
    async with budget.reserve(Usage(calls=60, output_tokens=60)):
        pass

    with pytest.raises(BudgetExceededError, match=f"100 {limit.partition('_')[0]} a day"):
        await budget.reserve(Usage(calls=60, output_tokens=60)).__aenter__()
