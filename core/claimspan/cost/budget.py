"""Limits on what judging may cost; a call that could exceed one is not made."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from claimspan.concurrency import DaemonPool
from claimspan.cost.stores import Account, Admission, BudgetStore, Limits, MemoryBudgetStore
from claimspan.cost.usage import Meter, Usage, current_meter
from claimspan.errors import BudgetExceededError, ConfigError

__all__ = ["Budget", "Reservation", "current_budget", "with_budget"]

DAY_SECONDS: Final = 86_400

# Polled because calls in other threads cannot wake a task; a call takes at least ten times as long.
_POLL_SECONDS: Final = 0.02
_SHARED_POLL_SECONDS: Final = 0.5
"""Longest pause between two questions to a store that others share."""

_LEAST: Final = Usage(calls=1, input_tokens=1, cost_usd=1e-9)
"""Less than any call of a model costs: if it does not fit, nothing is left."""

AWAY_SECONDS: Final = 5.0
"""How long a store that failed is left alone, so that its timeouts do not delay every call."""

STORE_SECONDS: Final = 3.0
"""How long a call of the store is waited for; a client of the user's may have no timeout."""

LOG_INTERVAL: Final = 60.0
"""Seconds between two log lines: a store that is down fails with every call."""

MAX_OWED: Final = 1_000
"""Bookings kept for a store that is away; more of them are added up."""

_T = TypeVar("_T")
_logger: Final = logging.getLogger("claimspan")


class Reservation:
    """The upper bound of what one call can cost, reserved until its cost is known."""

    def __init__(self, maximum: Usage) -> None:
        self.maximum: Final = maximum
        self.spent = maximum
        """Usage to book when the call ends; the upper bound until the caller sets another."""


class Budget:
    """Limits the US dollars, calls and tokens of a day and of a record.

    Before each request the judge reserves the upper bound of its cost: one token for each byte of
    the prompt, and all completion tokens that it allows. A request that could exceed a limit is not
    made. A request that the endpoint refuses counts as a call without a cost. A record is one
    evaluation; a day starts at 00:00 UTC. One budget may serve many judges and threads.

    Without a store it counts within one process, from zero. With one, all processes that use the
    store share the limits of the day. If the store fails, each process goes on with its own count
    and the same limits, and books its spending when the store is back.
    """

    def __init__(
        self,
        *,
        per_day: float | None = None,
        calls_per_day: int | None = None,
        tokens_per_day: int | None = None,
        per_record: float | None = None,
        calls_per_record: int | None = None,
        tokens_per_record: int | None = None,
        store: BudgetStore | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Set the limits; None sets none.

        Args:
            per_day: US dollars per day.
            calls_per_day: Requests per day, retries included.
            tokens_per_day: Prompt and completion tokens per day.
            per_record: US dollars per record.
            calls_per_record: Requests per record, retries included.
            tokens_per_record: Prompt and completion tokens per record.
            store: Counts the days for all processes: ``SqliteBudgetStore`` or
                ``RedisBudgetStore``; None counts in this process alone.
            clock: Returns the seconds since 1970-01-01 UTC.

        Raises:
            ConfigError: A limit is negative, or NaN.
        """
        self.per_day: Final = per_day
        self.per_record: Final = per_record
        self.calls_per_record: Final = calls_per_record
        self.tokens_per_record: Final = tokens_per_record
        self._day_limits = Limits(per_day, calls_per_day, tokens_per_day)
        self._record_limits = Limits(per_record, calls_per_record, tokens_per_record)
        limits = (*self._day_limits, *self._record_limits)
        # NaN is not at least 0 either: nothing would be within it, and every call would wait.
        if not all(limit is None or limit >= 0 for limit in limits):
            raise ConfigError("a limit of Budget is negative or no number: give 0 or more, or None")
        self._clock = clock
        self._lock = threading.Lock()
        self._own = MemoryBudgetStore()
        self._shared = None if store is None else _SharedCount(store, self._day_limits)
        self._records: WeakKeyDictionary[Meter, Account] = WeakKeyDictionary()
        _budgets.add(self)

    @property
    def needs_price(self) -> bool:
        """Whether a limit is in dollars, so that a judge needs the price of its model."""
        return self.per_day is not None or self.per_record is not None

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit is in tokens or in dollars, so that each call needs an upper bound."""
        limits = (self._day_limits, self._record_limits)
        return self.needs_price or any(each.tokens is not None for each in limits)

    @property
    def spent_today(self) -> Usage:
        """Usage since 00:00 UTC, without the calls under way; asks the store, if there is one."""
        own = self._own.spent(self._today())
        shared = None if self._shared is None else self._shared.spent(self._today())
        return own if shared is None else shared

    @property
    def store_failures(self) -> int:
        """How often the store has failed."""
        return 0 if self._shared is None else self._shared.failures

    def booked_for(self, meter: Meter) -> Usage:
        """Reservations and bookings of a meter's record."""
        with self._lock:
            account = self._records.get(meter)
            return Usage() if account is None else account.spent

    @asynccontextmanager
    async def reserve(self, maximum: Usage) -> AsyncGenerator[Reservation]:
        """Reserves the upper bound of what a call can cost, and books its cost after the block.

        Waits while reservations of other calls leave no room.

        Args:
            maximum: Upper bound of what the call can cost.

        Yields:
            The reservation; the block sets its ``spent`` to the cost of the call.

        Raises:
            BudgetExceededError: The call could exceed a limit.
        """
        key, reservation, pause = secrets.token_hex(8), Reservation(maximum), _POLL_SECONDS
        record = self._record_account()
        while (day := await self._open(key, maximum, record)) is None:
            await asyncio.sleep(pause)
            if self._shared is not None:
                pause = min(2 * pause, _SHARED_POLL_SECONDS)
        try:
            yield reservation
        finally:
            self._close(day, key, reservation.spent, record)
            if self._shared is not None:
                await self._shared.settle(day, key, reservation.spent)

    async def check(self) -> None:
        """Checks that something is left, for a judge that reserves nothing by itself.

        Raises:
            BudgetExceededError: The budget of the day, or of any record, is used up.
        """
        _check("a record", self._record_limits, _LEAST)
        day = self._today()
        _check("a day", self._day_limits, self._own.spent(day) + _LEAST)
        shared = None if self._shared is None else await self._shared.spent_later(day)
        if shared is not None:
            _check("a day", self._day_limits, shared + _LEAST)

    async def book(self, usage: Usage) -> None:
        """Books spending without a reservation."""
        day, key = self._today(), secrets.token_hex(8)
        self._own.settle(day, key, usage)
        if self._shared is not None:
            await self._shared.settle(day, key, usage)

    def forget_reservations(self) -> None:
        """Go on in a forked child: the calls under way are its parent's."""
        # Another thread may have held a lock at the moment of the fork: all are replaced.
        self._lock = threading.Lock()
        self._records = WeakKeyDictionary()
        self._own.forget_reservations()

    async def _open(self, key: str, maximum: Usage, record: Account) -> int | None:
        """Enters a reservation everywhere; returns its day, or None while others leave no room."""
        day = self._today()
        with self._lock:
            _check("a record", self._record_limits, record.spent + maximum)
            if not record.reserve(key, maximum, self._record_limits):
                return None
        admission = self._own.reserve(day, key, maximum, self._day_limits)
        if admission.is_admitted and self._shared is not None:
            try:
                # None: the store is away, and the own count decides.
                admission = await self._shared.reserve(day, key, maximum) or admission
            except BaseException:  # cancelled: the store may have entered the reservation
                self._close(day, key, Usage(), record)
                await self._shared.settle(day, key, Usage())
                raise
        if admission.is_admitted:
            return day
        self._close(day, key, Usage(), record)
        _check("a day", self._day_limits, admission.spent + maximum)
        return None

    def _close(self, day: int, key: str, spent: Usage, record: Account) -> None:
        self._own.settle(day, key, spent)
        with self._lock:
            record.settle(key, spent)

    def _record_account(self) -> Account:
        meter = current_meter()
        if meter is None:
            return Account()
        with self._lock:
            return self._records.setdefault(meter, Account())

    def _today(self) -> int:
        return int(self._clock() // DAY_SECONDS)


_current: Final[ContextVar[Budget | None]] = ContextVar("claimspan_budget", default=None)


@contextmanager
def with_budget(budget: Budget | None) -> Generator[None]:
    """Bounds every judge inside the block, and in tasks that start there, by a budget.

    It comes beside the budget that a judge may have of its own. None leaves everything as it is.
    """
    token = _current.set(budget or _current.get())
    try:
        yield
    finally:
        _current.reset(token)


def current_budget() -> Budget | None:
    """The budget of the innermost block of ``with_budget``; None outside of one."""
    return _current.get()


_budgets: Final[WeakSet[Budget]] = WeakSet()


def _forget_reservations_of_all_budgets() -> None:
    for budget in _budgets:
        budget.forget_reservations()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_reservations_of_all_budgets)


def _check(scope: str, limits: Limits, total: Usage) -> None:
    for limit, needed, unit in limits.exceeded(total):
        raise BudgetExceededError(
            f"the budget of {limit:g} {unit} {scope} could be exceeded by the next call "
            f"(to {needed:g}), which was not made: raise the budget or wait"
        )


class _SharedCount:
    """The count of processes together: calls their store on a thread of its own.

    If the store fails, it goes without. What could not be booked is kept, and booked later.
    """

    def __init__(self, store: BudgetStore, limits: Limits) -> None:
        self.failures = 0
        """Calls of the store that failed."""
        self._store = store
        self._limits = limits
        # One thread: a store serialises its writers anyway.
        self._pool = DaemonPool(1, name="claimspan-budget")
        self._pid = os.getpid()
        # Touched by atomic operations alone: a lock could stay held after a fork.
        self._owed: dict[str, tuple[int, Usage]] = {}
        self._away_until = 0.0
        self._next_log = 0.0

    async def reserve(self, day: int, key: str, maximum: Usage) -> Admission | None:
        """Enter a reservation, or None; a caller that is cancelled meanwhile has to ``settle``."""
        return await self._off_loop(lambda: self._store.reserve(day, key, maximum, self._limits))

    async def settle(self, day: int, key: str, spent: Usage) -> None:
        """End a reservation and book its cost, now or when the store is back."""
        self._owe(day, key, spent)
        await self._off_loop(lambda: None)

    async def spent_later(self, day: int) -> Usage | None:
        return await self._off_loop(lambda: self._store.spent(day))

    def spent(self, day: int) -> Usage | None:
        """The usage of all processes on a day; None if the store is away. Blocks."""
        return self._guarded(lambda: self._store.spent(day))

    async def _off_loop(self, call: Callable[[], _T]) -> _T | None:
        if time.monotonic() < self._away_until:
            return None
        try:
            async with asyncio.timeout(STORE_SECONDS):
                # In the caller's context: instrumentation may be suppressed there.
                return await self._pool.run(lambda: self._guarded(call), context=copy_context())
        except TimeoutError as error:
            self._failed(error)
            return None

    def _guarded(self, call: Callable[[], _T]) -> _T | None:
        """Pay the debt and make a call; None if the store is away."""
        if time.monotonic() < self._away_until:
            return None
        try:
            self._pay()
            return call()
        except Exception as error:  # noqa: BLE001 - a store of the user's may raise anything
            self._failed(error)
            return None

    def _owe(self, day: int, key: str, spent: Usage) -> None:
        self._forget_parent()
        if len(self._owed) >= MAX_OWED:
            # Its reservation is booked at the maximum when its lease is over: more, never less.
            key = f"owed-{self._pid}-{day}"
            spent += self._owed.pop(key, (day, Usage()))[1]
        self._owed[key] = (day, spent)

    def _pay(self) -> None:
        self._forget_parent()
        for key in list(self._owed):
            day, spent = self._owed.pop(key, (0, None))
            if spent is None:  # another thread pays it
                continue
            try:
                self._store.settle(day, key, spent)
            except Exception:
                self._owed[key] = (day, spent)
                raise

    def _forget_parent(self) -> None:
        """In a forked child: the debt stays with the parent."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._owed.clear()

    def _failed(self, error: Exception) -> None:
        now = time.monotonic()
        self.failures += 1
        self._away_until = now + AWAY_SECONDS
        if now < self._next_log:
            return
        self._next_log = now + LOG_INTERVAL
        # The class alone: the text of a client's error may hold the address with its password.
        _logger.warning(
            "the budget store failed with %s: this process goes on with its own count and the same"
            " limits, and tries the store again every %g s",
            type(error).__name__,
            AWAY_SECONDS,
        )
