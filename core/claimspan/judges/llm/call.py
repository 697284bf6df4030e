"""What the requests of one chat completion share: deadline, budget, circuit breaker and usage.

The openai package repeats a request by itself. Each repetition costs money and time of its own, so
each passes through ``Call.request`` on its way out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from openai import APIStatusError

from claimspan.cost.budget import Budget, Reservation
from claimspan.cost.usage import Usage, add_usage, within_record_limits
from claimspan.errors import ReplyError
from claimspan.judges.llm.base_url import ForbiddenAddressError
from claimspan.judges.llm.circuit_breaker import CircuitBreaker
from claimspan.judges.llm.failures import root_cause

__all__ = ["MAX_RETRIES", "OVERLOADED", "Call"]

MAX_RETRIES: Final = 2
"""Retries of a request that failed for another passing reason than too many requests."""

OVERLOADED: Final = frozenset({429, 503})
"""Too many requests, of this client or of all: they are retried as long as the deadline lets them,
each after twice the wait of the one before."""

_REQUEST: Final = Usage(calls=1)
_LOG: Final = logging.getLogger("claimspan")


class Call:
    """One chat completion, from its first request to the last of its retries."""

    def __init__(
        self,
        maximum: Usage,
        deadline: asyncio.Timeout,
        breaker: CircuitBreaker,
        budgets: Sequence[Budget],
    ) -> None:
        """Create a call that has made no request yet.

        Args:
            maximum: Upper bound of what one request can cost.
            deadline: The timeout that the call runs in; it stands still while the call waits for
                its budget.
            breaker: Counts the failures of the endpoint.
            budgets: Limit what the requests may cost.
        """
        self.n_requests = 0
        self.status: int | None = None
        """HTTP status of the last request; None while it has no response."""
        self._maximum = maximum
        self._deadline = deadline
        self._breaker = breaker
        self._budgets = budgets
        self._reserved = AsyncExitStack()
        self._reservations: list[Reservation] = []
        self._n_before = 0

    def begin(self) -> None:
        """Starts to count retries anew: what follows is another request, and no retry."""
        self._n_before = self.n_requests

    def may_retry(self, *, status: int | None, wait: float) -> bool:
        """Tells whether the last request may be repeated.

        Args:
            status: Its HTTP status; None where it had no response.
            wait: Seconds that the endpoint asks to wait; 0 or less where it does not.

        Returns:
            False where the wait ends after the deadline, where the circuit is open, and after
            ``MAX_RETRIES`` of a failure that is not about too many requests.
        """
        n_tries = self.n_requests - self._n_before
        if status is not None and self._breaker.is_open:
            return False
        if (wait if wait > 0 else _least_wait(n_tries)) >= self.seconds_left:
            return False
        return status in OVERLOADED or n_tries <= MAX_RETRIES

    def tell_retry(self, host: str, failure: str) -> None:
        """Says in the log that the request is tried again, once for each kind of failure.

        A process that ends meanwhile says of its records only that they were not judged.

        Args:
            host: Where the request went.
            failure: What has happened, without any content.
        """
        if self._breaker.is_new(failure):
            _LOG.warning(
                "claimspan: requests of the judge to %s are tried again for up to %.0f s: %s",
                *(host, self.seconds_left, failure),
            )

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return (self._deadline.when() or 0.0) - asyncio.get_running_loop().time()

    @asynccontextmanager
    async def request(self) -> AsyncGenerator[None]:
        """Surrounds one request: admits it, and accounts for how it ends.

        The block sets ``status`` once it has read a response. The reservation of a request that
        succeeds stays open until ``settle``, because its cost is in the reply.

        Raises:
            JudgeUnavailableError: The circuit breaker refuses the request.
            BudgetExceededError: It could cost more than a budget has left, or the record has used
                up its calls or tokens.
        """
        self._breaker.before_request()
        await self._reserve()
        self.status = None
        self.n_requests += 1
        add_usage(_REQUEST)
        try:
            yield
        except APIStatusError as error:
            await self._answered(error.status_code)
            raise
        except ForbiddenAddressError:  # refused by us: it says nothing about the endpoint
            await self.settle(Usage())
            raise
        except ReplyError:  # an answer that is too large: the endpoint is there, and was paid
            self._breaker.record_success()
            raise
        except Exception as error:
            await self._failed(error)
            raise
        await self._answered(self.status or 200)

    async def settle(self, usage: Usage | None = None) -> None:
        """Books the last request.

        Args:
            usage: Tokens and price of the request; None where they are not known: then the upper
                bound is booked.
        """
        if usage is not None:
            self._book(usage + _REQUEST)
        await self._reserved.aclose()
        self._reservations.clear()

    def _book(self, usage: Usage) -> None:
        for reservation in self._reservations:
            reservation.spent = usage

    async def _reserve(self) -> None:
        await self.settle()
        seconds = self.seconds_left
        self._deadline.reschedule(None)  # the endpoint is not to blame for a wait for the budget
        try:
            for budget in self._budgets:
                reservation = budget.reserve(self._maximum)
                self._reservations.append(await self._reserved.enter_async_context(reservation))
            limits = within_record_limits(_expected_tokens(self._maximum))
            await self._reserved.enter_async_context(limits)
        except BaseException:
            self._book(Usage())  # what another budget has reserved was not used
            await self.settle()
            raise
        finally:
            self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _answered(self, status: int) -> None:
        self.status = status
        if status >= 500:
            self._breaker.record_failure()
        else:
            self._breaker.record_success()
        if status >= 300:
            await self.settle(Usage())  # a request that is refused costs nothing

    async def _failed(self, error: Exception) -> None:
        self._breaker.record_failure()
        # ConnectError and ConnectTimeout of the HTTP client: the request was never sent.
        if type(root_cause(error)).__name__.startswith("Connect"):
            await self.settle(Usage())


def _least_wait(n_tries: int) -> float:
    """The least that the openai package waits before a retry: half a second, doubled up to 8 s.

    It takes up to a quarter off by chance, so that calls do not return all at once.
    """
    return 0.75 * min(0.5 * 2.0 ** (n_tries - 1), 8.0)


def _expected_tokens(maximum: Usage) -> int:
    """The most tokens that a request uses in practice.

    The maximum counts a token for each byte; a third of the bytes is no less than the tokens in
    any script.
    """
    return maximum.input_tokens // 3 + maximum.output_tokens
