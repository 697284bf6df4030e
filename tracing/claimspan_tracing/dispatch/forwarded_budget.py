"""A budget in the judging process, which asks the application's own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from claimspan.cost.budget import Budget, Reservation
from claimspan.cost.usage import Meter, Usage, current_meter
from claimspan.errors import BudgetExceededError, RecordLimitError
from claimspan_tracing.dispatch.frames import Answer, Ask, Booked, Checked, Reserve, Settled

__all__ = ["ForwardedBudget"]

Send = Callable[[Reserve | Settled | Checked | Booked], None]
"""Sends a message to the application."""


class ForwardedBudget(Budget):
    """Reserves each call of one record with the budget of the application, which alone counts."""

    def __init__(self, ask: Ask, send: Send) -> None:
        """Begin without a reservation.

        Args:
            ask: The question that is paid for.
            send: Sends a message to the application.
        """
        super().__init__(
            calls_per_record=ask.calls_per_record, tokens_per_record=ask.tokens_per_record
        )
        self._number = ask.number
        self._send = send
        self._answers: dict[str, asyncio.Future[Answer]] = {}
        self._spent: WeakKeyDictionary[Meter, Usage] = WeakKeyDictionary()

    def take(self, answer: Answer) -> None:
        """Give an answer of the application to whoever waits for it."""
        waiting = self._answers.get(answer.key)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def booked_for(self, meter: Meter) -> Usage:
        """As in the base class."""
        return self._spent.get(meter, Usage())

    @asynccontextmanager
    async def reserve(self, maximum: Usage) -> AsyncGenerator[Reservation]:
        """As in the base class."""
        key, reservation = secrets.token_hex(8), Reservation(maximum)
        await self._answered(Reserve(number=self._number, key=key, maximum=maximum))
        try:
            yield reservation
        finally:
            self._send(Settled(number=self._number, key=key, spent=reservation.spent))
            meter = current_meter()
            if meter is not None:
                self._spent[meter] = self.booked_for(meter) + reservation.spent

    async def check(self) -> None:
        """As in the base class."""
        await self._answered(Checked(number=self._number, key=secrets.token_hex(8)))

    async def book(self, usage: Usage) -> None:
        """As in the base class."""
        self._send(Booked(number=self._number, usage=usage))

    async def _answered(self, question: Reserve | Checked) -> None:
        waiting = self._answers[question.key] = asyncio.get_running_loop().create_future()
        self._send(question)
        try:
            answer = await waiting
        except asyncio.CancelledError:
            # The application may have entered the reservation by now.
            if isinstance(question, Reserve):
                self._send(Settled(number=self._number, key=question.key, spent=Usage()))
            raise
        finally:
            del self._answers[question.key]
        if answer.refusal:
            kind = RecordLimitError if answer.is_of_record else BudgetExceededError
            raise kind(answer.refusal)
