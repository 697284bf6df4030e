"""Requests to an OpenAI-compatible endpoint that end in time, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from openai import APIStatusError, AsyncOpenAI, OpenAIError
from pydantic import JsonValue

from claimspan.cost.budget import Budget, Reservation
from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage, add_usage
from claimspan.errors import JudgeError, ReplyError
from claimspan.judges.llm.breaker import Breaker, asked_to_wait, pause_before
from claimspan.judges.llm.completion import (
    Completion,
    Prompt,
    read_completion,
    read_envelope,
    usage_of,
)
from claimspan.judges.llm.connections import Connections
from claimspan.text.tokens import token_upper_bound

__all__ = ["LENGTH_OPTIONS", "Endpoint"]

TRIES: Final = 3
"""Requests for one call, the first included."""

MAX_REPLY_BYTES: Final = 8 * 2**20
"""A reply with log probabilities of 5,000 tokens is 2 MiB."""

LENGTH_OPTIONS: Final = ("max_tokens", "max_completion_tokens")
"""After how many completion tokens a reply is cut; endpoints differ in which of them they know."""

_TEMPLATE_TOKENS: Final = 64  # what a chat template adds to the texts, generously
_RETRIED: Final = frozenset({408, 409, 425, 429})
_GRADES_REFUSED: Final = frozenset({400, 403, 422})
_ADVICE: Final = {
    301: ": redirects are not followed, give the final base_url",
    302: ": redirects are not followed, give the final base_url",
    307: ": redirects are not followed, give the final base_url",
    308: ": redirects are not followed, give the final base_url",
    400: ": it does not know an option, or the texts are too long for the model",
    401: ": check the key",
    403: ": check what the key may do",
    404: ": check base_url and model",
    422: ": it does not know an option",
}


class _TransientError(Exception):
    """A failure that another try may get past."""

    def __init__(self, reason: str, *, wait: float | None = None, is_paid: bool = False) -> None:
        super().__init__(reason)
        self.wait: Final = wait or 0.0
        """Seconds that the endpoint asked to wait."""
        self.is_paid: Final = is_paid
        """Whether the endpoint may have done its work before the connection broke off."""


class _GradesRefusedError(Exception):
    """The endpoint may be one that refuses requests for log probabilities."""


class Endpoint:
    """A model behind connections, usable from any event loop."""

    def __init__(
        self,
        *,
        model: str,
        connections: Connections,
        options: Mapping[str, JsonValue],
        length_option: str,
        thinking_tokens: int,
        top_logprobs: int,
        call_seconds: float,
        price: Price | None,
        budget: Budget | None,
    ) -> None:
        self._model = model
        self._connections = connections
        self._options = options
        self._length_option = length_option
        self._thinking_tokens = thinking_tokens
        self._top_logprobs = top_logprobs
        self._call_seconds = call_seconds
        self._price = price or Price(input=0.0, output=0.0)
        self._budget = budget
        self._breaker = Breaker()
        self._grades_refused = False

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to a prompt, after retries if need be.

        Raises:
            ReplyError: It came, and is not a complete reply.
            JudgeError: None came in time; the message has neither prompt, nor reply, nor key.
        """
        session = await self._connections.session()
        async with session.gate:
            try:
                async with asyncio.timeout(self._call_seconds) as deadline:
                    return await self._try_until(session.client, prompt, deadline)
            except TimeoutError:
                self._breaker.failed()
                raise JudgeError(f"no reply within {self._call_seconds:g} s") from None

    async def _try_until(
        self, client: AsyncOpenAI, prompt: Prompt, deadline: asyncio.Timeout
    ) -> Completion:
        graded = prompt.graded and not self._grades_refused
        for attempt in range(TRIES):
            self._breaker.enter()
            try:
                completion = await self._send(client, prompt._replace(graded=graded), deadline)
            except _GradesRefusedError:
                graded = False
            except _TransientError as error:
                pause = max(pause_before(attempt), error.wait)
                if attempt == TRIES - 1 or pause >= _seconds_left(deadline):
                    raise JudgeError(f"{error}; requests made: {attempt + 1}") from None
                await asyncio.sleep(pause)
            else:
                if prompt.graded:
                    self._grades_refused = not graded
                return completion
        raise JudgeError("the endpoint refuses the request, with and without log probabilities")

    async def _send(
        self, client: AsyncOpenAI, prompt: Prompt, deadline: asyncio.Timeout
    ) -> Completion:
        body = self._body(prompt)
        left = _seconds_left(deadline)
        deadline.reschedule(None)  # the endpoint is not to blame for a wait for the budget
        async with self._reserved(body) as reservation:
            deadline.reschedule(asyncio.get_running_loop().time() + left)
            add_usage(Usage(calls=1))
            try:
                envelope = read_envelope(await self._post(client, body))
            except Exception as error:
                if not _may_be_paid(error):
                    reservation.spent = Usage(calls=1)
                raise
            usage = self._priced(usage_of(envelope, prompt))
            reservation.spent = usage + Usage(calls=1)
            add_usage(usage)
        return read_completion(envelope)

    def _reserved(self, body: Mapping[str, JsonValue]) -> AbstractAsyncContextManager[Reservation]:
        if self._budget is None:
            return nullcontext(Reservation(Usage()))
        sent = json.dumps(body, ensure_ascii=False)
        most = Usage(
            calls=1,
            input_tokens=token_upper_bound(sent) + _TEMPLATE_TOKENS,
            output_tokens=_most_output(body),
        )
        return self._budget.reserve(self._priced(most))

    def _priced(self, usage: Usage) -> Usage:
        cost = self._price.of(usage.input_tokens, usage.output_tokens)
        return usage.model_copy(update={"cost_usd": cost})

    def _body(self, prompt: Prompt) -> dict[str, JsonValue]:
        form: dict[str, JsonValue] = {
            "type": "json_schema",
            "json_schema": {
                "name": prompt.schema_name,
                "strict": True,
                "schema": dict(prompt.schema),
            },
        }
        grades: dict[str, JsonValue] = {"logprobs": True, "top_logprobs": self._top_logprobs}
        return {
            "response_format": form,
            self._length_option: prompt.max_tokens + self._thinking_tokens,
            "stream": False,
            **(grades if prompt.graded else {}),
            **self._options,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    async def _post(self, client: AsyncOpenAI, body: Mapping[str, JsonValue]) -> bytes:
        """The body of a successful response.

        What it raises knows nothing of the error behind it, which holds the request and the key.
        """
        try:
            async with client.chat.completions.with_streaming_response.create(
                model=self._model, messages=[], extra_body=body
            ) as response:
                content = await _read_at_most(response.iter_bytes(), MAX_REPLY_BYTES)
            self._breaker.succeeded()
            return content
        except ReplyError:
            raise
        except APIStatusError as error:
            failure = self._failure(error, graded="logprobs" in body)
        except Exception as error:  # noqa: BLE001 - the package lets errors of its client through
            self._breaker.failed()
            cause = _cause(error)
            is_paid = not cause.startswith("Connect")  # ConnectError, ConnectTimeout
            failure = _TransientError(f"the connection failed ({cause})", is_paid=is_paid)
        raise failure

    def _failure(self, error: APIStatusError, *, graded: bool) -> Exception:
        status = error.status_code
        reason = f"the endpoint answered with HTTP {status}"
        if status >= 500:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        if status >= 500 or status in _RETRIED:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return _TransientError(reason, wait=asked_to_wait(headers))
        if graded and status in _GRADES_REFUSED:
            return _GradesRefusedError(reason)
        return JudgeError(f"{reason}{_ADVICE.get(status, '')}")


def _seconds_left(deadline: asyncio.Timeout) -> float:
    return (deadline.when() or 0.0) - asyncio.get_running_loop().time()


def _may_be_paid(error: Exception) -> bool:
    """Whether the endpoint may have done its work all the same; what it refuses costs nothing."""
    return error.is_paid if isinstance(error, _TransientError) else isinstance(error, ReplyError)


def _most_output(body: Mapping[str, JsonValue]) -> int:
    """Completion tokens that a request allows, which its options may have raised."""
    given = [body[name] for name in LENGTH_OPTIONS if name in body]
    lengths = [length for length in given if isinstance(length, int)]
    replies = body.get("n")
    return max(lengths) * (replies if isinstance(replies, int) else 1)


async def _read_at_most(parts: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > limit:
            raise ReplyError(f"the response is larger than {limit // 2**20} MiB")
    return bytes(body)


def _cause(error: Exception) -> str:
    """The class of what went wrong; the text of an error may hold the address or the key."""
    while isinstance(error, OpenAIError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return type(error).__name__
