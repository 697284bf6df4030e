"""Limits on what judging may cost; a call that could exceed one is not made."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

from claimspan.cost.usage import Meter, Usage, current_meter
from claimspan.errors import BudgetExceededError, ConfigError

__all__ = ["Budget", "Reservation"]

DAY_SECONDS: Final = 86_400

# Polled because calls in other threads cannot wake a task; a call takes at least ten times as long.
_POLL_SECONDS: Final = 0.02


class Reservation:
    """The upper bound of what one call can cost, reserved until its cost is known."""

    def __init__(self, maximum: Usage) -> None:
        self.maximum: Final = maximum
        self.spent = maximum
        """Usage to book when the call ends; the upper bound until the caller sets another."""


class _Account:
    """Usage of a day or of a record: what was spent, and what is reserved."""

    def __init__(self) -> None:
        self.spent = Usage()
        self.reserved: list[Reservation] = []

    def total_with(self, maximum: Usage) -> Usage:
        return sum((each.maximum for each in self.reserved), self.spent + maximum)


class Budget:
    """Limits the US dollars of a day and of a record, and the calls and tokens of a record.

    Before each request the judge reserves the upper bound of its cost: one token for each byte of
    the prompt, and all completion tokens that it allows. A request that could exceed a limit is
    not made. A request that the endpoint refuses counts as a call without a cost. A record is one
    evaluation; a day starts at 00:00 UTC. One budget may serve many judges and threads. It counts
    within one process, from zero.
    """

    def __init__(
        self,
        *,
        per_day: float | None = None,
        per_record: float | None = None,
        calls_per_record: int | None = None,
        tokens_per_record: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Set the limits; None sets none.

        Args:
            per_day: US dollars per day.
            per_record: US dollars per record.
            calls_per_record: Requests per record, retries included.
            tokens_per_record: Prompt and completion tokens per record.
            clock: Returns the seconds since 1970-01-01 UTC.

        Raises:
            ConfigError: A limit is negative.
        """
        limits = (per_day, per_record, calls_per_record, tokens_per_record)
        if any(limit is not None and limit < 0 for limit in limits):
            raise ConfigError("a limit of Budget is negative: give 0 or more, or None")
        self.per_day: Final = per_day
        self.per_record: Final = per_record
        self.calls_per_record: Final = calls_per_record
        self.tokens_per_record: Final = tokens_per_record
        self._clock = clock
        self._lock = threading.Lock()
        self._day = -1
        self._today = _Account()
        self._records: WeakKeyDictionary[Meter, _Account] = WeakKeyDictionary()

    @property
    def needs_price(self) -> bool:
        """Whether a limit is in dollars, so that a judge needs the price of its model."""
        return self.per_day is not None or self.per_record is not None

    @property
    def spent_today(self) -> Usage:
        """Usage since 00:00 UTC, without the calls under way."""
        with self._lock:
            return self._account_of_today().spent

    @asynccontextmanager
    async def reserve(self, maximum: Usage) -> AsyncGenerator[Reservation]:
        """Reserves the upper bound of what a call can cost, and books its cost after the block.

        Waits while reservations of other calls leave no room.

        Args:
            maximum: Upper bound of what the call can cost.

        Yields:
            The reservation; the block sets its ``spent`` to what the call has cost.

        Raises:
            BudgetExceededError: The call could exceed a limit.
        """
        reservation = Reservation(maximum)
        while (accounts := self._open(reservation)) is None:
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield reservation
        finally:
            with self._lock:
                for account in accounts:
                    account.reserved.remove(reservation)
                    account.spent += reservation.spent

    def _open(self, reservation: Reservation) -> list[_Account] | None:
        """Enters the reservation into its accounts; None while others leave it no room."""
        meter = current_meter()
        with self._lock:
            today = self._account_of_today()
            record = _Account() if meter is None else self._records.setdefault(meter, _Account())
            maximum = reservation.maximum
            self._check(today.spent + maximum, record.spent + maximum)
            try:
                self._check(today.total_with(maximum), record.total_with(maximum))
            except BudgetExceededError:
                return None
            for account in (today, record):
                account.reserved.append(reservation)
            return [today, record]

    def _check(self, today: Usage, record: Usage) -> None:
        _check_limits("a day", today, dollars=self.per_day)
        _check_limits(
            "a record",
            record,
            dollars=self.per_record,
            calls=self.calls_per_record,
            tokens=self.tokens_per_record,
        )

    def _account_of_today(self) -> _Account:
        day = int(self._clock() // DAY_SECONDS)
        if day != self._day:
            self._day, self._today = day, _Account()
        return self._today


def _check_limits(
    scope: str,
    total: Usage,
    *,
    dollars: float | None = None,
    calls: int | None = None,
    tokens: int | None = None,
) -> None:
    limits = (
        (dollars, total.cost_usd, "dollars"),
        (calls, total.calls, "calls"),
        (tokens, total.input_tokens + total.output_tokens, "tokens"),
    )
    for limit, needed, unit in limits:
        if limit is not None and needed > limit:
            raise BudgetExceededError(
                f"the budget of {limit:g} {unit} {scope} could be exceeded by the next call "
                f"(to {needed:g}), which was not made: raise the budget or wait"
            )
