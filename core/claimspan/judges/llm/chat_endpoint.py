"""A chat model behind an OpenAI-compatible endpoint.

The openai package sends, retries and reports errors. This module adds what it does not have: one
deadline over all tries, a budget and a circuit breaker for each request, and errors that hold
neither the prompt nor the reply nor the key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

from openai import AsyncOpenAI
from pydantic import JsonValue

from claimspan.cost.budget import Budget, current_budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage, add_usage, lift_record_limits
from claimspan.errors import JudgeError, JudgeUnavailableError
from claimspan.judges.llm.call import Call
from claimspan.judges.llm.circuit_breaker import CircuitBreaker
from claimspan.judges.llm.client import GuardedOpenAI, StopRetryingError, current_call
from claimspan.judges.llm.completion import (
    Completion,
    Prompt,
    read_completion,
    read_envelope,
    usage_of,
)
from claimspan.judges.llm.failures import failure_of
from claimspan.judges.llm.sessions import Sessions
from claimspan.text.tokens import token_upper_bound

__all__ = ["LENGTH_OPTIONS", "ChatEndpoint"]

LENGTH_OPTIONS: Final = ("max_tokens", "max_completion_tokens")
"""Fields of a request that limit its completion tokens; endpoints know one of them, or both."""

_TEMPLATE_TOKENS: Final = 64  # what a chat template adds to the texts, generously
_LOGPROBS_REFUSED: Final = frozenset({400, 403, 422})
# For a client of the user's, which the judge cannot close: a connection that is kept would fail in
# the next event loop.
_CLOSE_CONNECTION: Final = {"Connection": "close"}


class ChatEndpoint:
    """A chat model behind an endpoint; implements ``ChatModel`` for any event loop."""

    def __init__(
        self,
        *,
        model: str,
        sessions: Sessions,
        options: Mapping[str, JsonValue],
        length_option: str,
        reasoning_tokens: int,
        top_logprobs: int,
        call_seconds: float,
        price: Price | None,
        budget: Budget | None,
    ) -> None:
        self._model = model
        self._sessions = sessions
        self._options = options
        self._length_option = length_option
        self._reasoning_tokens = reasoning_tokens
        self._top_logprobs = top_logprobs
        self._call_seconds = call_seconds
        self._price = price or Price(input=0.0, output=0.0)
        self._budget = budget
        self._breaker = CircuitBreaker()
        self._refuses_logprobs = False

    async def complete(self, prompt: Prompt) -> Completion:
        """Gets the reply to a prompt, with retries where a failure may pass.

        Raises:
            ReplyError: A response came, without a complete reply.
            BudgetExceededError: The next request could exceed the budget.
            JudgeUnavailableError: No response came in time, or the endpoint is down or overloaded.
            JudgeError: The endpoint refuses the request; the message says why.
        """
        session = await self._sessions.of_running_loop()
        async with session.semaphore:
            deadline = asyncio.timeout(self._call_seconds)
            call = Call(self._maximum(prompt), deadline, self._breaker, self._budgets())
            try:
                async with deadline:
                    return await self._complete(session.client, prompt, call)
            except TimeoutError:
                if call.status is None:
                    self._breaker.record_failure()
            finally:
                await call.settle()
        last = "" if call.status is None else f" (the last answer was HTTP {call.status})"
        raise JudgeUnavailableError(f"no reply within {self._call_seconds:g} s{last}")

    def _budgets(self) -> list[Budget]:
        """The judge's own budget, and the one that the evaluation runs under."""
        own, budgets = self._budget, [self._budget, current_budget()]
        if own is not None:
            lift_record_limits(own.calls_per_record, own.tokens_per_record)
        return list(dict.fromkeys(each for each in budgets if each is not None))

    async def _complete(self, client: AsyncOpenAI, prompt: Prompt, call: Call) -> Completion:
        if prompt.logprobs and not self._refuses_logprobs:
            try:
                return await self._request(client, prompt, call)
            except JudgeError:
                if call.status not in _LOGPROBS_REFUSED:
                    raise
        completion = await self._request(client, prompt._replace(logprobs=False), call)
        self._refuses_logprobs |= prompt.logprobs
        return completion

    async def _request(self, client: AsyncOpenAI, prompt: Prompt, call: Call) -> Completion:
        envelope = read_envelope(await self._send(client, prompt, call))
        usage = self._priced(usage_of(envelope, prompt))
        add_usage(usage)
        await call.settle(usage)
        return read_completion(envelope)

    async def _send(self, client: AsyncOpenAI, prompt: Prompt, call: Call) -> bytes:
        """The body of a successful response."""
        try:
            return await self._create(client, prompt, call)
        except StopRetryingError as stop:
            failure = stop.error
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - the package lets errors of its client through
            # The retries of a user's client are not counted.
            is_guarded = isinstance(client, GuardedOpenAI)
            failure = failure_of(error, call.n_requests if is_guarded else None)
        # Outside of the handler, so that no context leads to the request, which holds the key.
        raise failure

    async def _create(self, client: AsyncOpenAI, prompt: Prompt, call: Call) -> bytes:
        # GuardedHttpClient passes each request through the call, retries included.
        is_guarded = isinstance(client, GuardedOpenAI)
        current_call.set(call)
        call.begin()
        if not is_guarded and current_budget() is not None:
            # A budget reserves each request; the judge does not see the retries of the client.
            client = client.with_options(max_retries=0)
        async with nullcontext() if is_guarded else call.request():
            response = await client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[],
                stream=False,  # some servers stream by default
                extra_headers=None if is_guarded else _CLOSE_CONNECTION,
                # Typed arguments go through a conversion that takes a quarter of a call's CPU time.
                extra_body=self._body(prompt),
            )
        if not is_guarded:
            add_usage(Usage(calls=response.retries_taken))
        return response.content

    def _body(self, prompt: Prompt) -> dict[str, JsonValue]:
        reply: JsonValue = {
            "name": prompt.schema_name,
            "strict": True,
            "schema": dict(prompt.schema),
        }
        logprobs: dict[str, JsonValue] = {"logprobs": True, "top_logprobs": self._top_logprobs}
        return {
            "response_format": {"type": "json_schema", "json_schema": reply},
            self._length_option: prompt.max_tokens + self._reasoning_tokens,
            **(logprobs if prompt.logprobs else {}),
            **self._options,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    def _maximum(self, prompt: Prompt) -> Usage:
        """Upper bound of what one request can cost: a token for each byte, and a full reply."""
        body = self._body(prompt)
        input_tokens = token_upper_bound(json.dumps(body, ensure_ascii=False)) + _TEMPLATE_TOKENS
        return self._priced(
            Usage(calls=1, input_tokens=input_tokens, output_tokens=_max_output_tokens(body))
        )

    def _priced(self, usage: Usage) -> Usage:
        cost = self._price.of(usage.input_tokens, usage.output_tokens)
        return usage.model_copy(update={"cost_usd": cost})


def _max_output_tokens(body: Mapping[str, JsonValue]) -> int:
    """Completion tokens that a request allows; the user's options may have raised them."""
    limits = [body.get(name) for name in LENGTH_OPTIONS]
    replies = body.get("n")
    longest = max((limit for limit in limits if isinstance(limit, int)), default=0)
    return longest * (replies if isinstance(replies, int) else 1)
