"""The count of a day that processes share, kept usable where its store is not."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Final, TypeVar

from claimspan.concurrency import DaemonPool
from claimspan.cost.budget_store import Admission, BudgetStore, Limits
from claimspan.cost.usage import Usage

__all__ = ["SharedCount"]

_T = TypeVar("_T")
_logger: Final = logging.getLogger("claimspan")

AWAY_SECONDS: Final = 5.0
"""How long a store that failed is left alone, so that its timeouts do not delay every call."""

STORE_SECONDS: Final = 3.0
"""How long a call of the store is waited for; a client of the user's may have no timeout."""

LOG_INTERVAL: Final = 60.0
"""Seconds between two log lines: a store that is down fails with every call."""

MAX_OWED: Final = 1_000
"""Bookings kept for a store that is away; more of them are added up."""


class SharedCount:
    """Calls a store on a thread of its own, and goes without it where it fails.

    What could not be booked is kept, and booked when the store is back.
    """

    def __init__(self, store: BudgetStore, limits: Limits) -> None:
        """Create the count; nothing is called yet.

        Args:
            store: Counts for all processes.
            limits: The limits of a day.
        """
        self.failures = 0
        """Calls of the store that failed."""
        self._store = store
        self._limits = limits
        # One thread: a store serialises its writers anyway.
        self._pool = DaemonPool(1, name="claimspan-budget")
        self._pid = os.getpid()
        # Touched by atomic operations alone: a lock could be held by nobody after a fork.
        self._owed: dict[str, tuple[int, Usage]] = {}
        self._away_until = 0.0
        self._next_log = 0.0

    async def reserve(self, day: int, key: str, maximum: Usage) -> Admission | None:
        """Enter a reservation; None where the store is away, so that the own count decides.

        A caller that is cancelled meanwhile has to ``settle``.
        """
        return await self._off_loop(lambda: self._store.reserve(day, key, maximum, self._limits))

    async def settle(self, day: int, key: str, spent: Usage) -> None:
        """End a reservation and book its cost, now or when the store is back."""
        self._owe(day, key, spent)
        await self._off_loop(lambda: None)

    async def spent_later(self, day: int) -> Usage | None:
        """As ``spent``, without blocking the event loop."""
        return await self._off_loop(lambda: self._store.spent(day))

    def spent(self, day: int) -> Usage | None:
        """What all processes have spent on a day; None where the store is away. Blocks."""
        return self._guarded(lambda: self._store.spent(day))

    async def _off_loop(self, call: Callable[[], _T]) -> _T | None:
        if self._is_away:
            return None
        try:
            async with asyncio.timeout(STORE_SECONDS):
                # In the caller's context: instrumentation may be suppressed there.
                return await self._pool.run(lambda: self._guarded(call), context=copy_context())
        except TimeoutError as error:
            self._failed(error)
            return None

    @property
    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def _guarded(self, call: Callable[[], _T]) -> _T | None:
        """Pay what is owed and make a call; None where the store is away."""
        if self._is_away:
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
        """In a forked child: what the parent owes is the parent's."""
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
