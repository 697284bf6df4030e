"""Requests to an OpenAI-compatible endpoint that end in time, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
import ssl
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol
from weakref import finalize

from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError
from pydantic import JsonValue, SecretStr

from claimspan.budget import Budget, Reservation
from claimspan.errors import JudgeError, ReplyError
from claimspan.judges._breaker import Breaker, asked_to_wait, pause_before
from claimspan.judges._completion import (
    Completion,
    Prompt,
    read_completion,
    read_envelope,
    usage_of,
)
from claimspan.pricing import Price
from claimspan.tokens import most_tokens
from claimspan.usage import Usage, add_usage

__all__ = ["Endpoint"]

TRIES: Final = 3
"""Requests for one call, the first included."""

MAX_REPLY_BYTES: Final = 8 * 2**20
"""A reply with log probabilities of 5,000 tokens is 2 MiB."""

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
    """A failure that another try may get past, and the wait that the endpoint asked for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait: Final = wait or 0.0


class _GradesRefusedError(Exception):
    """The endpoint may be one that refuses requests for log probabilities."""


class _Session:
    """What belongs to one event loop: connections, and a gate before them."""

    def __init__(self, client: AsyncOpenAI, concurrency: int) -> None:
        self.client: Final = client
        self.gate: Final = asyncio.Semaphore(concurrency)
        self._closing: asyncio.Future[None] | None = None

    async def end(self) -> None:
        """Close the connections; whoever calls this waits for the same end."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self.client.close())
        await asyncio.shield(self._closing)


_Sessions = dict[AbstractEventLoop, _Session]


class Endpoint:
    """An endpoint, a key and a model, usable from any event loop."""

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: SecretStr | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        options: Mapping[str, JsonValue],
        length_option: str,
        top_logprobs: int,
        concurrency: int,
        call_seconds: float,
        price: Price | None,
        budget: Budget | None,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._headers = headers
        self._query = query
        self._options = options
        self._length_option = length_option
        self._top_logprobs = top_logprobs
        self._concurrency = concurrency
        self._call_seconds = call_seconds
        self._price = price or Price(input=0.0, output=0.0)
        self._budget = budget
        self._breaker = Breaker()
        self._grades_refused = False
        self._sessions: _Sessions = {}

    def __repr__(self) -> str:
        """Without the key."""
        return f"Endpoint(model={self._model!r}, base_url={self._base_url!r})"

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to a prompt, after retries if need be.

        Raises:
            ReplyError: It came, and is not a complete reply.
            JudgeError: None came in time; the message has neither prompt, nor reply, nor key.
        """
        session = await self._session()
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
                completion = await self._send(client, prompt._replace(graded=graded))
            except _GradesRefusedError:
                graded = False
            except _TransientError as error:
                pause = max(pause_before(attempt), error.wait)
                left = (deadline.when() or 0.0) - asyncio.get_running_loop().time()
                if attempt == TRIES - 1 or pause >= left:
                    raise JudgeError(f"{error}; requests made: {attempt + 1}") from None
                await asyncio.sleep(pause)
            else:
                if prompt.graded:
                    self._grades_refused = not graded
                return completion
        raise JudgeError("the endpoint refuses the request, with and without log probabilities")

    async def _send(self, client: AsyncOpenAI, prompt: Prompt) -> Completion:
        body = self._body(prompt)
        async with self._reserved(body, prompt) as reservation:
            add_usage(Usage(calls=1))
            try:
                envelope = read_envelope(await self._post(client, body))
            except (_GradesRefusedError, _TransientError):
                reservation.spent = Usage(calls=1)
                raise
            usage = self._priced(usage_of(envelope, prompt))
            reservation.spent = usage + Usage(calls=1)
            add_usage(usage)
        return read_completion(envelope)

    def _reserved(
        self, body: Mapping[str, JsonValue], prompt: Prompt
    ) -> AbstractAsyncContextManager[Reservation]:
        if self._budget is None:
            return nullcontext(Reservation(Usage()))
        sent = json.dumps(body, ensure_ascii=False)
        most = Usage(
            calls=1,
            input_tokens=most_tokens(sent) + _TEMPLATE_TOKENS,
            output_tokens=prompt.max_tokens,
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
            self._length_option: prompt.max_tokens,
            "stream": False,
            **(grades if prompt.graded else {}),
            **self._options,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
        }

    async def _post(self, client: AsyncOpenAI, body: Mapping[str, JsonValue]) -> bytes:
        """The body of a successful response."""
        try:
            async with client.chat.completions.with_streaming_response.create(
                model=self._model, messages=[], extra_body=body
            ) as response:
                content = await _read_at_most(response.iter_bytes(), MAX_REPLY_BYTES)
        except ReplyError:
            raise
        except APIStatusError as error:
            if error.status_code >= 500:
                self._breaker.failed()
            else:
                self._breaker.succeeded()
            raise _failure(error, graded="logprobs" in body) from None
        except Exception as error:  # noqa: BLE001 - the package lets errors of its client through
            self._breaker.failed()
            raise _TransientError(f"the connection failed ({_cause(error)})") from None
        self._breaker.succeeded()
        return content

    async def _session(self) -> _Session:
        """The session of the running loop.

        It ends with the loop, or with this endpoint, whichever is first. For the one, a generator
        holds it, because a loop closes its generators before it ends, also in ``asyncio.run``; for
        the other, a finalizer holds the generator.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            session = self._sessions[loop] = _Session(self._connect(), self._concurrency)
            closers: list[finalize[..., Endpoint]] = []
            holder = _hold(self._sessions, loop, closers)
            await anext(holder)
            closers.append(finalize(self, _close_soon, loop, session, holder))
            closers[0].atexit = False
        return self._sessions[loop]

    def _certificates(self) -> ssl.SSLContext | bool:
        """The usual ones, which take 70 ms to load; without TLS none, so that none is trusted."""
        is_plain = self._base_url.startswith("http://")
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True

    def _connect(self) -> AsyncOpenAI:
        client = AsyncOpenAI(
            api_key=self._api_key.get_secret_value() if self._api_key else "none",
            base_url=self._base_url,
            max_retries=0,  # its own retries know no deadline
            timeout=self._call_seconds,
            default_headers={"Accept-Encoding": "identity", **self._headers},
            default_query=dict(self._query),
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False,  # a redirect would post the prompt to another host
                trust_env=False,
                verify=self._certificates(),
                event_hooks={"response": [_drop_error_body]},
            ),
        )
        # Read from the environment of the application, which is not asked to pay.
        client.organization = client.project = None
        return client


async def _hold(
    sessions: _Sessions, loop: AbstractEventLoop, closers: list[finalize[..., Endpoint]]
) -> AsyncGenerator[None]:
    """Wait to be closed, then close the connections and leave nothing behind."""
    try:
        yield
    finally:
        for closer in closers:
            closer.detach()
        await sessions.pop(loop).end()


def _close_soon(loop: AbstractEventLoop, session: _Session, holder: AsyncGenerator[None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(_end(session, holder)))


async def _end(session: _Session, holder: AsyncGenerator[None]) -> None:
    """End a session; if its loop ends meanwhile, the generator makes it wait for that."""
    await session.end()
    del holder


async def _read_at_most(parts: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > limit:
            raise ReplyError(f"the response is larger than {limit // 2**20} MiB")
    return bytes(body)


class _Response(Protocol):
    """The part of a response that is used here, of whichever client the package brings."""

    status_code: int

    async def aclose(self) -> None: ...


async def _drop_error_body(response: _Response) -> None:
    """Close a response that is no success: its text may hold the key, and may never end."""
    if response.status_code >= 300:
        await response.aclose()


def _failure(error: APIStatusError, *, graded: bool) -> Exception:
    status = error.status_code
    reason = f"the endpoint answered with HTTP {status}"
    if status >= 500 or status in _RETRIED:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return _TransientError(reason, asked_to_wait(headers))
    if graded and status in _GRADES_REFUSED:
        return _GradesRefusedError(reason)
    return JudgeError(f"{reason}{_ADVICE.get(status, '')}")


def _cause(error: Exception) -> str:
    """The class of what went wrong; the text of an error may hold the address or the key."""
    while isinstance(error, OpenAIError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return type(error).__name__
