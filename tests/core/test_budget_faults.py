"""A budget whose store fails: every process keeps the limits, and nobody waits for long.

Row F9 of the reliability matrix, for the store of a budget.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from pathlib import Path

import pytest
import redis

from claimspan import Usage
from claimspan.cost import Budget, MemoryBudgetStore, RedisBudgetStore, SqliteBudgetStore
from claimspan.cost.stores import Admission, Limits
from claimspan.errors import BudgetExceededError

from redis_server import redis_server


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


class BrokenStore(MemoryBudgetStore):
    """A store whose storage fails on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.attempts = 0

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        self._fail()
        return super().reserve(day, key, maximum, limits)

    def settle(self, day: int, key: str, spent: Usage) -> None:
        self._fail()
        super().settle(day, key, spent)

    def _fail(self) -> None:
        self.attempts += 1
        if self.error is not None:
            raise self.error


async def spend(budget: Budget, cost: float = 0.25) -> None:
    async with budget.reserve(Usage(calls=1, cost_usd=cost)):
        pass


async def test_where_the_store_fails_this_process_keeps_the_limit_by_its_own_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = BrokenStore()
    store.error = sqlite3.OperationalError("database or disk is full: sk-canary")
    budget = Budget(per_day=1.0, store=store)

    for _ in range(4):
        await spend(budget)
    with pytest.raises(BudgetExceededError, match="1 dollars a day"):
        await spend(budget)

    assert budget.store_failures == 1  # it is left alone for a while
    assert store.attempts == 1
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(lines) == 1
    assert "the budget store failed with OperationalError" in lines[0]
    assert "sk-canary" not in caplog.text


async def test_what_was_spent_without_the_store_is_booked_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claimspan.cost.budget.AWAY_SECONDS", 0.0)
    store = BrokenStore()
    budget = Budget(per_day=1.0, store=store)
    await spend(budget)
    store.error = ConnectionError()
    await spend(budget)
    await spend(budget)
    store.error = None
    day = int(time.time() // 86_400)
    assert store.spent(day).cost_usd == 0.25

    await spend(budget)

    assert store.spent(day) == Usage(calls=4, cost_usd=1.0)


async def test_a_redis_that_goes_away_and_comes_back_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claimspan.cost.budget.AWAY_SECONDS", 0.05)
    with redis_server() as server:
        budget = Budget(calls_per_day=4, store=RedisBudgetStore(server.url))
        await spend(budget)
        server.stop()
        await spend(budget)
        await spend(budget)
        failed = budget.store_failures
        server.start()
        await asyncio.sleep(0.1)
        await spend(budget)
        shared = RedisBudgetStore(server.url).spent(int(time.time() // 86_400))
        with pytest.raises(BudgetExceededError, match="4 calls a day"):
            await spend(budget)

    assert failed > 0
    assert shared.calls == 3  # what the server had before it went away is lost with its memory


async def test_a_redis_that_hangs_is_left_though_its_client_has_no_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claimspan.cost.budget.STORE_SECONDS", 0.3)
    with redis_server() as server, redis.Redis(host="127.0.0.1", port=server.port) as client:
        budget = Budget(calls_per_day=3, store=RedisBudgetStore(client))
        await spend(budget)
        server.freeze()
        await asyncio.wait_for(_spend_twice(budget), 10)

        with pytest.raises(BudgetExceededError, match="3 calls a day"):
            await spend(budget)
        assert budget.store_failures == 1
        server.stop()  # else the thread of the store would keep the client from closing


async def _spend_twice(budget: Budget) -> None:
    await spend(budget)
    await spend(budget)


async def test_a_file_that_another_process_holds_delays_no_other_task(sqlite_path: Path) -> None:
    store = SqliteBudgetStore(sqlite_path)
    budget = Budget(calls_per_day=4, store=store)
    holder = sqlite3.connect(sqlite_path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - before)

    ticking = asyncio.ensure_future(tick())
    await spend(budget)
    ticking.cancel()
    holder.close()
    store.close()

    assert budget.store_failures == 1
    assert sum(pauses) > 0.5  # it waited for the lock that long
    assert max(pauses) < 0.4  # and the loop went on


async def test_a_call_that_is_cancelled_while_it_reserves_leaves_nothing_reserved() -> None:
    entered, release = threading.Event(), threading.Event()

    class SlowStore(MemoryBudgetStore):
        def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
            entered.set()
            release.wait(10)
            return super().reserve(day, key, maximum, limits)

    budget = Budget(calls_per_day=1, store=SlowStore())
    call = asyncio.ensure_future(spend(budget))
    await asyncio.to_thread(entered.wait, 10)
    call.cancel()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await call

    await spend(budget)
    assert budget.spent_today.calls == 1
