"""A chat model behind an endpoint that speaks OpenAI's protocol, by means of the openai package.

The judge has a guarded client of its own, or uses a client of the user's as it is.
"""

from __future__ import annotations

import asyncio
import math
import os
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Annotated, Final, cast
from urllib.parse import urlsplit
from weakref import finalize

from openai import AsyncOpenAI, OpenAIError
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, SecretStr, ValidationError

from claimspan.errors import ConfigError, JudgeError, ReplyError
from claimspan.judges.llm.base_url import OPENAI_URL, check_base_url, is_openai
from claimspan.judges.llm.chat import ChatReply, ChatRequest, Token
from claimspan.judges.llm.guarded_client import GuardedOpenAI, guarded_client
from claimspan.judges.llm.refusals import behind, refusal_in
from claimspan.text.encodable import encodable_json

__all__ = ["TRUST_VARIABLE", "OpenAIChat", "read_completion", "trusts_environment"]

TRUST_VARIABLE: Final = "CLAIMSPAN_TRUST_ENV"
"""Environment variable that has the judge honour the proxies of the environment."""

# For a client of the user's, which the judge cannot close: a connection that is kept would fail in
# the next event loop.
_CLOSE_CONNECTION: Final = {"Connection": "close"}


def trusts_environment() -> bool:
    """Whether ``CLAIMSPAN_TRUST_ENV`` is set to anything but a no."""
    return os.environ.get(TRUST_VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off")


class OpenAIChat:
    """One model behind one endpoint; implements ``ChatModel`` for any event loop."""

    def __init__(
        self,
        model: str,
        *,
        provider: str,
        api_key: SecretStr | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        client: AsyncOpenAI | None = None,
        read_seconds: float = 60.0,
        trust_env: bool = False,
    ) -> None:
        """Set where the model is; the arguments are those of ``OpenAIJudge``.

        Raises:
            ConfigError: The address cannot be a model's, a key is missing, or the client is none.
        """
        self.model: Final = model
        self.provider: Final = provider
        given = {"base_url": base_url, "api_key": api_key, "headers": headers, "query": query}
        self.secrets = [SecretStr(each) for each in {**(headers or {}), **(query or {})}.values()]
        """Keys that no error may repeat."""
        if client is None:
            if base_url is not None and not base_url.strip():
                raise ConfigError(
                    "base_url is empty: give the address of the model, or leave it out"
                )
            url = check_base_url(base_url or OPENAI_URL)
            carries_key = {"api-key", "authorization"} & {name.lower() for name in headers or {}}
            if not api_key and not carries_key and is_openai(url):
                raise ConfigError(
                    "OpenAI needs a key: set OPENAI_API_KEY for the judge 'openai:MODEL' or for "
                    "OpenAIJudge.from_environment, or give api_key"
                )
            self.secrets += [api_key] if api_key else []
            connect: Callable[[], AsyncOpenAI] = partial(
                guarded_client, url, api_key, dict(headers or {}), dict(query or {}),
                read_seconds, trust_env,
            )  # fmt: skip
            self.max_retries: int | None = None
        else:
            if not isinstance(client, AsyncOpenAI):  # pyright: ignore[reportUnnecessaryIsInstance] - for those who do not type-check
                kind = type(client).__name__
                raise ConfigError(f"client is of type {kind!r}: give an openai.AsyncOpenAI")
            for name, value in given.items():
                if value is not None:
                    raise ConfigError(f"client and {name} are both given: set {name} on the client")
            url = str(client.base_url)
            # The judge sees, counts and reserves each request: it retries in the client's place.
            connect = partial(client.with_options, max_retries=0)
            self.max_retries = client.max_retries
            self.secrets += [SecretStr(client.api_key)] if client.api_key else []
        self.url: Final = url
        self.ignores_proxies: Final = client is None and not trust_env
        self.address: Final = urlsplit(url).netloc.rpartition("@")[2]
        self._clients: dict[AbstractEventLoop, _Session] = {}
        self._connect = connect
        finalize(self, _close_all, self._clients).atexit = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Sends one request; errors of the openai package come through.

        Raises:
            ReplyError: The response is too large, or holds no reply.
            JudgeError: The address is one that nothing is sent to.
        """
        client = await self._client_of_running_loop()
        is_guarded = isinstance(client, GuardedOpenAI)
        try:
            response = await client.chat.completions.with_raw_response.create(
                model=self.model,
                messages=[],
                stream=False,  # some servers stream by default
                extra_headers=None if is_guarded else _CLOSE_CONNECTION,
                # Typed arguments go through a conversion that takes a quarter of a call's CPU time.
                extra_body={
                    **request.parameters,
                    "messages": [dict(each) for each in request.messages],
                },
            )
        except OpenAIError as error:
            ours = next((each for each in behind(error) if isinstance(each, JudgeError)), None)
            if ours is None:  # else one of our HTTP client's
                raise
        else:
            return read_completion(response.content)
        # Outside of the handler, so that no context leads to the request, which holds the key.
        raise ours

    async def _client_of_running_loop(self) -> AsyncOpenAI:
        """The client of the running event loop: a connection works in one loop only."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for each in list(self._clients):  # a copy: other threads come with loops of theirs
                if each.is_closed():  # without closing its generators
                    self._clients.pop(each, None)
            session = self._clients[loop] = _Session(self._connect())
            session.end_of_loop = _close_at_end(loop, self._clients)
            await anext(session.end_of_loop)
        return self._clients[loop].client


# --- clients of event loops ----------------------------------------------------------------------


class _Session:
    """A client for one event loop."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self.client: Final = client
        self.end_of_loop: AsyncGenerator[None] | None = None
        self._closing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        """Closes a client of the judge's own; all who call this wait for the same end."""
        if isinstance(self.client, GuardedOpenAI):
            self._closing = self._closing or asyncio.ensure_future(self.client.close())
            await asyncio.shield(self._closing)


async def _close_at_end(
    loop: AbstractEventLoop, sessions: dict[AbstractEventLoop, _Session]
) -> AsyncGenerator[None]:
    """Closes the session of a loop when the loop ends, also in ``asyncio.run``.

    Before it ends, a loop closes the asynchronous generators that have started in it, and waits for
    them. A task that waits for its cancellation would be simpler, but code that awaits all tasks of
    the loop would wait for it forever.
    """
    try:
        yield
    finally:
        await sessions.pop(loop).close()


def _close_all(sessions: dict[AbstractEventLoop, _Session]) -> None:
    """Closes the sessions of an object that is no longer used, each in its own loop."""

    def start(loop: AbstractEventLoop, session: _Session) -> None:
        # The task keeps the session and its generator: a loop that ends first waits for the task.
        loop.create_task(session.close())

    for loop, session in list(sessions.items()):  # another thread may start a session
        if not loop.is_closed():
            loop.call_soon_threadsafe(start, loop, session)


# --- the response --------------------------------------------------------------------------------


class _Loose(BaseModel):
    """The openai package builds its models without validating them: a field may hold anything.

    Endpoints leave out fields that the protocol requires. Here nothing is required.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Alternative(_Loose):
    token: str
    logprob: float | None = None


class _Token(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(_Loose):
    content: list[_Token] | None = None


def _joined(content: object) -> object:
    """Content in parts as one text, without the parts that are thoughts."""
    if not isinstance(content, list):
        return content
    texts: list[str] = []
    for part in cast("list[object]", content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            given = cast("dict[str, object]", part)
            if given.get("type") in ("text", "output_text", None):
                texts.append(str(given.get("text") or ""))
    return "".join(texts)


class _Message(_Loose):
    content: Annotated[str | None, BeforeValidator(_joined)] = None
    refusal: str | None = None


class _Choice(_Loose):
    finish_reason: str | None = None
    message: _Message | None = None
    text: str | None = None
    error: JsonValue = None
    logprobs: JsonValue = None
    """Read by itself: a reply counts without them, and was paid for."""


class _Usage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Envelope(_Loose):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: JsonValue = None


class ErrorReplyError(OpenAIError):
    """A response with the status 200 that holds an error; some gateways send them so."""

    def __init__(self, status: int, body: JsonValue) -> None:
        super().__init__("the response holds an error")
        self.status_code: Final = status
        self.body: Final = body


def read_completion(body: bytes) -> ChatReply:
    """Reads the body of a successful response.

    Raises:
        ReplyError: The body is HTML, not JSON, or not a chat completion; or the model refused.
        OpenAIError: It holds an error in place of a reply.
    """
    envelope = _envelope(body)
    choice = envelope.choices[0] if envelope.choices else None
    fault = envelope.error or (choice.error if choice is not None else None)
    if fault and (choice is None or choice.message is None or not choice.message.content):
        code = refusal_in({"error": fault}, 500).code
        raise ErrorReplyError(
            int(code) if code.isdecimal() and 400 <= int(code) < 600 else 500, fault
        )
    if choice is None or (choice.message is None and choice.text is None):
        raise ReplyError("the response holds no reply")
    message = choice.message or _Message(content=choice.text)
    if message.refusal:
        raise ReplyError("the model refused")
    counted = envelope.usage or _Usage()
    return ChatReply(
        message.content or "",
        choice.finish_reason,
        counted.prompt_tokens,
        counted.completion_tokens,
        _read_tokens(choice.logprobs),
    )


def _envelope(body: bytes) -> _Envelope:
    try:
        return _Envelope.model_validate_json(body)
    except ValidationError:
        pass
    try:
        return _Envelope.model_validate_json(encodable_json(body))
    except ValidationError as error:
        if body.lstrip()[:1] == b"<":
            raise ReplyError("the endpoint answered with HTML: is base_url right?") from None
        is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
        what = "is not a chat completion" if is_json else "is not JSON"
        raise ReplyError(f"the endpoint's response {what}") from None


def _read_tokens(logprobs: JsonValue) -> tuple[Token, ...]:
    try:
        read = _Logprobs.model_validate(logprobs or {})
    except ValidationError:
        return ()
    return tuple(_token(each) for each in read.content or [])


def _token(token: _Token) -> Token:
    """The token; without probabilities where one of them is not known."""
    given = {each.token: each.logprob for each in token.top_logprobs or []}
    known = {text: logprob for text, logprob in given.items() if logprob is not None}
    if token.logprob is None or len(known) < len(given):
        return Token(token.token, math.nan, {})
    return Token(token.token, token.logprob, known)
