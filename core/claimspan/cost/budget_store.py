"""Where the usage of a day is counted: the protocol of a store, and the store in memory."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple, Protocol

from claimspan.cost.usage import Usage

__all__ = ["Admission", "BudgetStore", "Limits", "MemoryBudgetStore", "Reserved"]

KEPT_DAYS: Final = 2
"""Days that a store keeps: a call that begins before midnight is booked after it."""


class Limits(NamedTuple):
    """What may be used, on one day or for one record; None sets no limit."""

    dollars: float | None = None
    """US dollars."""

    calls: int | None = None
    """Requests to a model, retries included."""

    tokens: int | None = None
    """Prompt and completion tokens together."""

    def allow(self, total: Usage) -> bool:
        """Whether a total is within every limit."""
        used = (total.cost_usd, total.calls, total.input_tokens + total.output_tokens)
        return all(
            limit is None or needed <= limit for limit, needed in zip(self, used, strict=True)
        )


class Admission(NamedTuple):
    """The answer of a store to a reservation."""

    is_admitted: bool
    """Whether the reservation was entered."""

    spent: Usage
    """What was spent on that day so far, without what is reserved."""


class BudgetStore(Protocol):
    """Counts what was spent and what is reserved on each day, for one process or for many.

    The calls may block for a short time, and are made on a thread of their own. They may raise
    whatever the storage raises: the budget then goes on with the count of its own process.
    """

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """Enter a reservation if what is spent, reserved and asked for is within the limits.

        Looking and entering have to be one step, also where other processes do the same.

        Args:
            day: Days since 1970-01-01.
            key: Identifies the reservation; never used again.
            maximum: Upper bound of what the call can cost.
            limits: The limits of the day.
        """
        ...

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """End a reservation, and book what the call has cost.

        A reservation whose process died is booked at its maximum after some time; where that has
        happened to a process that lives, this corrects it. An unknown key is booked as well.
        """
        ...

    def spent(self, day: int) -> Usage:
        """Return what was spent on a day so far, without what is reserved."""
        ...


class Reserved:
    """The open reservations, and their sum.

    The sum is kept, and not made anew for each call: the work of many that are open at once would
    grow with the square of their number.
    """

    def __init__(self) -> None:
        """Begin without one."""
        self._by_key: dict[str, Usage] = {}
        self._total = Usage()

    @property
    def total(self) -> Usage:
        """The sum of calls, tokens and dollars; time is not limited."""
        return self._total

    def add(self, key: str, maximum: Usage) -> None:
        """Enter a reservation.

        Args:
            key: Identifies it; no other open one may have it.
            maximum: What is reserved.
        """
        self._by_key[key] = maximum
        self._total += maximum

    def remove(self, key: str) -> None:
        """End a reservation; no effect where there is none."""
        maximum = self._by_key.pop(key, None)
        if maximum is None:
            return
        # Where none is open the sum begins anew: the rounding of dollars must not add up for days.
        self._total = self._total.beyond(maximum) if self._by_key else Usage()

    def clear(self) -> None:
        """Forget all of them."""
        self._by_key.clear()
        self._total = Usage()


class _Day:
    """The count of one day."""

    def __init__(self) -> None:
        self.spent = Usage()
        self.reserved = Reserved()


class MemoryBudgetStore:
    """Counts within one process, from zero; the default."""

    def __init__(self) -> None:
        """Create an empty store."""
        self._lock = threading.Lock()
        self._days: dict[int, _Day] = {}

    def reserve(self, day: int, key: str, maximum: Usage, limits: Limits) -> Admission:
        """As ``BudgetStore.reserve``."""
        with self._lock:
            account = self._account(day)
            total = account.reserved.total + account.spent + maximum
            is_admitted = limits.allow(total)
            if is_admitted:
                account.reserved.add(key, maximum)
            return Admission(is_admitted, account.spent)

    def settle(self, day: int, key: str, spent: Usage) -> None:
        """As ``BudgetStore.settle``."""
        with self._lock:
            account = self._account(day)
            account.reserved.remove(key)
            account.spent += spent

    def spent(self, day: int) -> Usage:
        """As ``BudgetStore.spent``."""
        with self._lock:
            return self._account(day).spent

    def forget_reservations(self) -> None:
        """Go on in a forked child: the calls under way are its parent's."""
        # Another thread may have held the lock at the moment of the fork: it is replaced.
        self._lock = threading.Lock()
        for account in self._days.values():
            account.reserved.clear()

    def _account(self, day: int) -> _Day:
        for old in [each for each in self._days if each <= day - KEPT_DAYS]:
            del self._days[old]
        return self._days.setdefault(day, _Day())
