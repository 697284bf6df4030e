"""A chat model as the judge uses it: bounded in time and money, asked in the way that it takes.

Whatever the client, a call has one deadline over all of its requests; each request passes the
circuit breaker, reserves its upper bound on every budget, and is counted. What may pass is tried
again, what is refused by name is asked for otherwise, and the error that is left says why.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack, nullcontext
from inspect import isawaitable
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from claimspan.concurrency import Clock, record_clock
from claimspan.cost.budget import Budget, Reservation, current_budget
from claimspan.cost.pricing import price_of
from claimspan.cost.usage import Usage, add_usage, lift_record_limits, within_record_limits
from claimspan.errors import (
    BudgetExceededError,
    ConfigError,
    JudgeError,
    JudgeUnavailableError,
    RecordLimitError,
    ReplyError,
)
from claimspan.judges.llm.chat import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Prompt,
    Settings,
    Traits,
    traits_of,
)
from claimspan.judges.llm.dialect import LIMITS, TEMPLATE_TOKENS, Dialect
from claimspan.judges.llm.refusals import Refusal, TooLongError, read_refusal
from claimspan.text.tokens import count_tokens, token_upper_bound

__all__ = [
    "MAX_FAILURES",
    "OPEN_SECONDS",
    "CircuitBreaker",
    "CutReplyError",
    "Endpoint",
    "asked_twice",
]


# --- circuit breaker ------------------------------------------------------------------------------

MAX_FAILURES: Final = 5
"""Failures in a row that open the circuit."""

OPEN_SECONDS: Final = 30.0
"""Seconds between an opening, or a failed probe, and the next probe."""


class CircuitBreaker:
    """Refuses requests after ``MAX_FAILURES`` failures in a row, but for one probe at a time."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0
        self._cause = ""
        self._last = ""

    @property
    def is_open(self) -> bool:
        """Whether requests are refused, but for probes."""
        return self._failures >= MAX_FAILURES

    def before_request(self) -> None:
        """Admits the next request.

        Raises:
            JudgeUnavailableError: The circuit is open, and the next probe is not due.
        """
        if not self.is_open:
            return
        seconds = self._next_probe - self._clock()
        if seconds > 0:
            last = f" ({self._last})" if self._last else ""
            failed = f"the judge's endpoint has failed {MAX_FAILURES} times in a row{last}"
            why = self._cause or failed
            raise JudgeUnavailableError(f"{why}: no request for another {seconds:.0f} s")
        self._next_probe = self._clock() + OPEN_SECONDS  # the request that asks is the probe

    def record_failure(self, cause: str = "") -> None:
        """Counts a request without an answer in time, or with a server error."""
        self._last = cause
        self._failures += 1
        self._next_probe = self._clock() + OPEN_SECONDS

    def close_down(self, cause: str) -> None:
        """Opens the circuit at once: the endpoint has said that it answers no request for now."""
        self._failures, self._cause = MAX_FAILURES, cause
        self._next_probe = self._clock() + OPEN_SECONDS

    def record_success(self) -> None:
        """Closes the circuit: the endpoint has answered, be it with a refusal."""
        self._failures, self._cause = 0, ""


# --- endpoint -------------------------------------------------------------------------------------

MAX_RETRIES: Final = 2
"""Retries of a request that failed for another passing reason than too many requests."""

MAX_TRIES: Final = 100
"""Retries of a call to an endpoint that is overloaded, if there is time for as many."""

MAX_CHANGES: Final = 3
"""Further requests of a call after refusals that name a part of it."""

MAX_WAIT_SECONDS: Final = 900.0
"""The longest wait that an endpoint may ask for; beyond it the call fails."""

_OVERLOADED: Final = frozenset({429, 503})
"""Too many requests, of this client or of all: tried again as long as the deadline lets them."""

_UNBOUNDED: Final = (
    "the model has no limit on its reply, so that no budget can bound a call: set its max_tokens"
)
_REQUEST: Final = Usage(calls=1)
_LOG: Final = logging.getLogger("claimspan")
_K = TypeVar("_K")
_T = TypeVar("_T")


class CutReplyError(ReplyError):
    """A reply ended at its allowed length before it was complete."""


class Endpoint:
    """Asks one chat model for any event loop and any number of records at once."""

    def __init__(self, model: ChatModel, settings: Settings) -> None:
        self.model: Final = model
        self.traits: Final[Traits] = traits_of(model)
        self.dialect: Final = Dialect(model.model, settings, self.traits)
        self.price: Final = settings.price or self.traits.price or price_of(model.model)
        self.secrets: Final = tuple(self.traits.secrets)
        self._settings = settings
        self.breaker = CircuitBreaker()
        self._slots: WeakKeyDictionary[AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._told: set[str] = set()
        self._learned: dict[str, None] = {}

    @property
    def learned(self) -> Sequence[str]:
        """The refusals so far, as they were logged."""
        return tuple(self._learned)

    async def complete(self, prompt: Prompt) -> ChatReply:
        """The reply to a prompt, complete or cut.

        Raises:
            ReplyError: A response came without a reply in it.
            TooLongError: The texts do not fit into the model's window.
            BudgetExceededError: The next request could exceed the budget.
            JudgeUnavailableError: No response came in time, or the endpoint is down or overloaded.
            JudgeError: The endpoint refuses the request; the message says why.
        """
        call = _Call(self, prompt)
        slots = asyncio.Semaphore(self._settings.concurrency)
        async with self._slots.setdefault(asyncio.get_running_loop(), slots):
            clock = Clock(self._settings.call_seconds)
            try:
                async with clock.running():
                    return await call.run(clock)
            except TimeoutError:
                if not clock.has_expired:  # the record's own deadline, or the client's
                    raise
                self.breaker.record_failure()
                raise JudgeUnavailableError(
                    f"no reply within {self._settings.call_seconds:g} s; requests made: "
                    f"{call.n_requests}"
                ) from None
            finally:
                await call.settle()

    async def ask(self, prompt: Prompt, read: Callable[[ChatReply], _T]) -> _T:
        """The reply to a prompt as ``read`` reads it; one that was cut is asked for with more room.

        ``read`` raises ``CutReplyError`` if a reply ended too early.

        Raises:
            ReplyError: The reply cannot be used.
            JudgeError: As ``complete``.
        """
        while True:
            had_room = self.dialect.has_room
            reply = await self.complete(prompt)
            try:
                return read(reply)
            except CutReplyError:
                if self.traits.max_output_tokens != 0:
                    raise CutReplyError(
                        "the reply was cut at the length that the model object allows: raise its "
                        "max_tokens"
                    ) from None
                limit = self.dialect.request(prompt).max_tokens
                if had_room:
                    raise CutReplyError(
                        f"the reply was cut at its allowed length of {limit:,} tokens: allow more "
                        "with reasoning_tokens=, or take a model that thinks less"
                    ) from None
                self.dialect.give_room()
                if self.dialect.request(prompt).max_tokens <= limit:
                    raise CutReplyError(
                        f"the reply was cut at its allowed length of {limit:,} tokens, and the "
                        "model takes no higher limit: take another model"
                    ) from None
                self.say(
                    f"a reply was cut at {limit:,} tokens: asked again with room for "
                    f"{self.dialect.reasoning_tokens:,} more, for reasoning"
                )
            except ReplyError:
                # Ollama cuts a prompt that is too long without a word, and the model never saw it.
                read_tokens = reply.input_tokens
                written = sum(map(count_tokens, prompt.texts))
                # Its windows are powers of two, from 2,048 tokens on.
                is_window = read_tokens in (2048, 4096, 8192, 16384) and read_tokens < written
                if written > 1000 and read_tokens and (is_window or read_tokens < written // 2):
                    raise TooLongError(
                        f"the endpoint read {read_tokens:,} of some {written:,} tokens of the "
                        "prompt: raise its context window (Ollama: num_ctx)"
                    ) from None
                raise

    def budgets(self) -> list[Budget]:
        """The budgets of judge and evaluation; the former lifts the limits of the record."""
        own = self._settings.budget
        if own is not None:
            lift_record_limits(own.calls_per_record, own.tokens_per_record)
        given = dict.fromkeys((own, current_budget()))
        return [each for each in given if each is not None]

    def maximum(self, request: ChatRequest, budgets: Sequence[Budget]) -> Usage:
        """Upper bound of what one request can cost: a token for each byte, and a full reply."""
        said = json.dumps(
            [list(map(dict, request.messages)), dict(request.parameters)], ensure_ascii=False
        )
        most = request.max_tokens
        if self.traits.max_output_tokens != 0:
            most = self.traits.max_output_tokens or 0
            if not most and any(each.counts_tokens for each in budgets):
                raise BudgetExceededError(_UNBOUNDED)
        elif budgets and not any(name in request.parameters for name in LIMITS):
            raise BudgetExceededError(
                "the model takes no limit on its reply, so that no budget can bound a call: "
                "leave the budget out, or take another model"
            )
        replies = request.parameters.get("n")
        return self._priced(
            Usage(
                calls=1,
                input_tokens=token_upper_bound(said) + TEMPLATE_TOKENS,
                output_tokens=most * (replies if isinstance(replies, int) else 1),
            )
        )

    def used(self, prompt: Prompt, reply: ChatReply) -> Usage:
        """Tokens as the provider has counted them, or an estimate if it has not."""
        sent, got = reply.input_tokens, reply.output_tokens
        return self._priced(
            Usage(
                input_tokens=sum(map(count_tokens, prompt.texts)) if sent is None else max(0, sent),
                output_tokens=count_tokens(reply.text) if got is None else max(0, got),
            )
        )

    def _priced(self, usage: Usage) -> Usage:
        if self.price is None:
            return usage
        cost = self.price.of(usage.input_tokens, usage.output_tokens)
        return usage.model_copy(update={"cost_usd": cost})

    def tell_retry(self, refusal: Refusal, seconds: float) -> None:
        """Says in the log that requests are tried again, once for each kind of failure.

        A process that ends meanwhile says of its records only that they were not judged.
        """
        address, most = self.traits.address or self.model.model, max(seconds, refusal.wait)
        again = f"requests of the judge to {address} are tried again"
        if refusal.status in _OVERLOADED:
            again += f" for up to {most:.0f} s"
        self._tell(refusal.told, f"{again}: {refusal.told}")

    def note(self, refused: str) -> None:
        """Keeps what the model has refused, to say now and later how it is used."""
        self._learned[f"asked without {refused}"] = None
        self.say(f"it refuses {refused}, and is asked without it from now on")

    def say(self, what: str) -> None:
        """Says something of this model in the log, once."""
        address = f" at {self.traits.address}" if self.traits.address else ""
        self._tell(what, f"the judge's model {self.model.model}{address}: {what}")

    def _tell(self, what: str, line: str) -> None:
        if what not in self._told:
            self._told.add(what)
            _LOG.warning("claimspan: %s", line)

    def check_budget(self, budget: Budget) -> None:
        """Checks that each call has an upper bound by which a budget can reserve it.

        Raises:
            ConfigError: The budget is in dollars and the price of the model is not known, or a call
                may cost anything.
        """
        if budget.needs_price and self.price is None:
            raise ConfigError(
                f"the price of {self.model.model!r} is not known, and the budget is in dollars: "
                "give price=Price(...)"
            )
        if self.traits.max_output_tokens is None and budget.counts_tokens:
            raise ConfigError(_UNBOUNDED)
        for name in (*LIMITS, "n"):
            value: JsonValue = self.dialect.options.get(name, 1)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"options[{name!r}] is {value!r}: a budget needs a whole number")


class _Call:
    def __init__(self, endpoint: Endpoint, prompt: Prompt) -> None:
        self.n_requests = 0
        self._waited = 0.0
        self._endpoint = endpoint
        self._prompt = prompt
        self._reserved = AsyncExitStack()
        self._reservations: list[Reservation] = []

    async def run(self, clock: Clock) -> ChatReply:
        endpoint, dialect = self._endpoint, self._endpoint.dialect
        tries = changes = 0
        while True:
            request = dialect.request(self._prompt)
            tries += 1
            outcome = await self._send(request, clock)
            if isinstance(outcome, ChatReply):
                return outcome
            refusal, told = outcome
            if changes < MAX_CHANGES:
                learned = dialect.learn(refusal, request, self._prompt)
                if learned is not None:
                    changes, tries = changes + 1, 0
                    if learned:
                        endpoint.note(learned)
                    continue
            wait = self._wait(refusal, tries, clock)
            if wait is None:
                raise told or self._error(refusal)
            endpoint.tell_retry(refusal, clock.left)
            await self._rest(wait, clock)

    async def _rest(self, seconds: float, clock: Clock) -> None:
        """Waits; if longer than the call has time for, as the endpoint asks, no clock runs."""
        if seconds < clock.left:
            await asyncio.sleep(seconds)
            return
        self._waited += seconds
        of_record = record_clock.get()
        with clock.stopped(), of_record.stopped() if of_record is not None else nullcontext():
            await asyncio.sleep(seconds)

    async def _send(
        self, request: ChatRequest, clock: Clock
    ) -> ChatReply | tuple[Refusal, JudgeError | None]:
        """One request, from its reservation to its account; its reply, or why there is none.

        An error of the client is not passed on, since it leads to the request, with the key.
        """
        endpoint, breaker = self._endpoint, self._endpoint.breaker
        breaker.before_request()
        await self._reserve(request, clock)
        self.n_requests += 1
        add_usage(_REQUEST)
        try:
            asked = endpoint.model.complete(request)
            if not isawaitable(asked):
                raise JudgeError("complete() of the ChatModel is not asynchronous: use async def")
            reply = await asked
            if not isinstance(reply, ChatReply):  # pyright: ignore[reportUnnecessaryIsInstance] - a client of the user's may return anything
                raise JudgeError(
                    f"complete() of the ChatModel returned a {type(reply).__name__}: return a "
                    "ChatReply"
                )
        except ReplyError:  # an answer that cannot be read: the endpoint is there, and was paid
            breaker.record_success()
            raise
        except JudgeError:
            await self.settle(Usage())
            raise
        except Exception as error:  # noqa: BLE001 - clients raise what they like
            refusal = read_refusal(error).without_echo(self._prompt.texts[1:])
            told = endpoint.traits.explain(error) if endpoint.traits.explain else None
            if refusal.kind == "quota":
                breaker.close_down(str(self._error(refusal)))
            elif refusal.status is None or refusal.status >= 500:
                breaker.record_failure(refusal.told)
            else:
                breaker.record_success()
            # A request that is refused costs nothing, nor does one that was never sent.
            if refusal.status is not None or refusal.cause.startswith("Connect"):
                await self.settle(Usage())
            return refusal, None if told is None else JudgeError(told)
        breaker.record_success()
        used = endpoint.used(self._prompt, reply)
        add_usage(used)
        await self.settle(used)
        return reply

    def _error(self, refusal: Refusal) -> JudgeError:
        secrets = [each.get_secret_value() for each in self._endpoint.secrets]
        return refusal.error(
            self.n_requests,
            texts=[self._prompt.user],
            secrets=secrets,
            has_options=bool(self._endpoint.dialect.options),
            of_object=not self._endpoint.traits.sends_parameters,
        )

    def _wait(self, refusal: Refusal, tries: int, clock: Clock) -> float | None:
        """Seconds to wait before the request is sent again; None if it is not."""
        endpoint = self._endpoint
        is_overload = refusal.status in _OVERLOADED
        most = endpoint.traits.max_retries
        if most is None:
            most = MAX_TRIES if is_overload else MAX_RETRIES
        if refusal.is_final or refusal.kind not in ("rate", "away") or tries > most:
            return None
        if refusal.status is not None and endpoint.breaker.is_open:
            return None
        if refusal.wait > 0:
            may_wait = is_overload and self._waited + refusal.wait <= MAX_WAIT_SECONDS
            return refusal.wait if may_wait or refusal.wait < clock.left else None
        # Half a second, doubled up to 8 s, less up to a quarter: calls do not return all at once.
        wait = 2.0 ** min(tries - 2, 3) * (1 - 0.25 * random.random())  # noqa: S311 - no secret
        return wait if wait < clock.left else None

    async def _reserve(self, request: ChatRequest, clock: Clock) -> None:
        await self.settle()
        budgets = self._endpoint.budgets()
        maximum = self._endpoint.maximum(request, budgets)
        # The endpoint is not to blame for a wait for the budget.
        with clock.stopped():
            try:
                for budget in budgets:
                    entered = self._reserved.enter_async_context(budget.reserve(maximum))
                    self._reservations.append(await entered)
                # The maximum counts a token for each byte; a third is no less than the tokens in
                # any script.
                expected = maximum.input_tokens // 3 + maximum.output_tokens
                await self._reserved.enter_async_context(within_record_limits(expected))
            except BaseException:
                self._book(Usage())  # what another budget has reserved was not used
                await self.settle()
                raise

    async def settle(self, usage: Usage | None = None) -> None:
        """Books the last request: its usage, or the upper bound if that is not known."""
        if usage is not None:
            self._book(usage + _REQUEST)
        await self._reserved.aclose()
        self._reservations.clear()

    def _book(self, usage: Usage) -> None:
        for reservation in self._reservations:
            reservation.spent = usage


# --- two replies ----------------------------------------------------------------------------------


async def asked_twice(
    wanted: Set[_K],
    ask: Callable[[Set[_K], int], Awaitable[Mapping[_K, _T]]],
    *,
    missing: str,
) -> tuple[dict[_K, _T], str]:
    """What two replies decide, the second of what the first has left out, and why no more.

    Args:
        wanted: What is to be decided.
        ask: One call, for some of it, by the number of the attempt.
        missing: The reason if a reply leaves something out.

    Raises:
        JudgeError: No reply came before anything was decided. Two replies that cannot be used, and
            a limit of the record, leave all undecided.
    """
    found: dict[_K, _T] = {}
    reason = ""
    for attempt in (1, 2):
        left = wanted - found.keys()
        if not left:
            break
        try:
            found |= await ask(left, attempt)
            reason = missing
        except (ReplyError, RecordLimitError) as error:
            reason = str(error)
        except JudgeError as error:
            if not found:
                raise
            reason = str(error)  # what the first reply has decided is paid for
    return found, reason if len(found) < len(wanted) else ""
