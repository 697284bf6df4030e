"""A limit on what judging may cost, that stops before it is passed."""

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

_LOOK_AGAIN_SECONDS: Final = 0.02  # calls take ten times as long; they may be in other threads


class Reservation:
    """The most that one call can cost, set aside until it is known what it did cost."""

    def __init__(self, most: Usage) -> None:
        self.most: Final = most
        self.spent = most
        """What is booked when the call ends; the most, until the endpoint says less."""


class _Account:
    """What was spent in one scope, and what calls under way may still spend."""

    def __init__(self) -> None:
        self.spent = Usage()
        self.reserved: list[Reservation] = []

    def with_one_more(self, most: Usage) -> Usage:
        return sum((each.most for each in self.reserved), self.spent + most)


class Budget:
    """Limits in US dollars for a day and a record, and in calls and tokens for a record.

    Before each call the most that it can cost is set aside: one token for each byte of the prompt,
    and every completion token that is allowed. A call that could pass a limit is not made. A
    request that the endpoint refuses is a call that costs nothing. A record is one evaluation; a
    day begins at 00:00 UTC. One budget may serve many judges and threads; it counts within one
    process, and a new process starts at nothing.
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
        """Set the limits; None is no limit.

        Args:
            per_day: US dollars a day.
            per_record: US dollars a record.
            calls_per_record: Requests a record, retries and re-asks included.
            tokens_per_record: Prompt and completion tokens a record.
            clock: Seconds since 1970.

        Raises:
            ConfigError: A limit is negative.
        """
        limits = (per_day, per_record, calls_per_record, tokens_per_record)
        if any(limit is not None and limit < 0 for limit in limits):
            raise ConfigError("a limit of a Budget is negative: give 0 or more, or None")
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
        """Whether a limit is in dollars, so that the price of the model must be known."""
        return self.per_day is not None or self.per_record is not None

    @property
    def spent_today(self) -> Usage:
        """What was spent since 00:00 UTC, calls under way not counted."""
        with self._lock:
            return self._account_of_today().spent

    @asynccontextmanager
    async def reserve(self, most: Usage) -> AsyncGenerator[Reservation]:
        """Set aside the most that a call can cost; at the end of the block its cost is booked.

        Where only calls under way stand in the way, their end is awaited. The block says what the
        call did cost in ``reservation.spent``.

        Raises:
            BudgetExceededError: A limit could be passed.
        """
        reservation = Reservation(most)
        while (accounts := self._open(reservation)) is None:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        try:
            yield reservation
        finally:
            with self._lock:
                for account in accounts:
                    account.reserved.remove(reservation)
                    account.spent += reservation.spent

    def _open(self, reservation: Reservation) -> list[_Account] | None:
        """The accounts that the reservation stands in; None while others leave it no room."""
        meter = current_meter()
        with self._lock:
            today = self._account_of_today()
            record = _Account() if meter is None else self._records.setdefault(meter, _Account())
            most = reservation.most
            self._check(today.spent + most, record.spent + most)
            try:
                self._check(today.with_one_more(most), record.with_one_more(most))
            except BudgetExceededError:
                return None
            for account in (today, record):
                account.reserved.append(reservation)
            return [today, record]

    def _check(self, today: Usage, record: Usage) -> None:
        _refuse_beyond("a day", today, dollars=self.per_day)
        _refuse_beyond(
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


def _refuse_beyond(
    scope: str,
    most: Usage,
    *,
    dollars: float | None = None,
    calls: int | None = None,
    tokens: int | None = None,
) -> None:
    limits = (
        (dollars, most.cost_usd, "dollars"),
        (calls, most.calls, "calls"),
        (tokens, most.input_tokens + most.output_tokens, "tokens"),
    )
    for limit, needed, unit in limits:
        if limit is not None and needed > limit:
            raise BudgetExceededError(
                f"the budget of {limit:g} {unit} {scope} could be passed by the next call "
                f"(to {needed:g}): it was not made; raise the budget or wait"
            )
