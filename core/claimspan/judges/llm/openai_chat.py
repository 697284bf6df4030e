"""A chat model behind an endpoint that speaks OpenAI's protocol, by means of the openai package.

The judge has a guarded client of its own, or uses a client of the user's as it is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import socket
import ssl
import unicodedata
import warnings
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Protocol
from urllib.parse import unquote, urlsplit
from weakref import finalize

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit, OpenAIError
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, SecretStr, ValidationError

from claimspan.errors import ConfigError, JudgeError, ReplyError
from claimspan.judges.llm.chat import ChatReply, ChatRequest, Token
from claimspan.judges.llm.dialect import LIMITS
from claimspan.judges.llm.refusals import behind, refusal_in
from claimspan.text.encodable import encodable_json
from claimspan.text.shapes import is_list, is_mapping

if TYPE_CHECKING:
    from httpx2 import Request, Response  # of whichever client the openai package brings

__all__ = [
    "ForbiddenAddressError",
    "GuardedOpenAI",
    "OpenAIChat",
    "is_forbidden_address",
    "read_completion",
    "trusts_environment",
]


# --- the address ----------------------------------------------------------------------------------

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_OPENAI_URL: Final = "https://api.openai.com/v1"

# Cloud providers serve the credentials of a machine at these names and addresses.
_METADATA_HOSTS: Final = frozenset(
    {
        "metadata.google.internal",
        "metadata.goog",
        "metadata",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
# Link-local addresses aside: Alibaba, Azure, Oracle, and the IPv6 ones of AWS and Google.
_METADATA_ADDRESSES: Final = frozenset(
    {"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"}
)
# NAT64 (RFC 6052, RFC 8215), IPv4-compatible and IPv4-translated addresses (RFC 2765): an IPv4
# address in the last 32 bits.
_EMBEDDING: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96"))
)
# The full stops that IDNA takes for a dot, and NFKC leaves.
_DOTS: Final = {ord(each): "." for each in "\u3002\uff0e\uff61"}


class ForbiddenAddressError(Exception):
    """A connection was made to an address that no model is at; nothing was sent on it."""


def _check_base_url(url: str) -> str:
    """The address without a trailing slash; warns if it is plain HTTP to a public host.

    Loopback and private addresses are allowed, because local models are there.

    Raises:
        ConfigError: It is no http(s) URL with a host, holds a user name or a password, or is a
            link-local or metadata address.
    """
    try:
        parts = urlsplit(url)
        host, _ = _plain_host(parts.hostname or ""), parts.port
    except ValueError:
        raise ConfigError(
            "base_url cannot be read as a URL: give one like http://host/v1"
        ) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("base_url needs http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url holds a user name or a password: give the key as api_key")
    if any(mark in host for mark in "@/\\?#") or not host.isprintable():
        raise ConfigError("base_url has a host with signs that no host has")
    if host in _METADATA_HOSTS or is_forbidden_address(host):
        raise ConfigError(
            "base_url leads to a link-local or metadata address: give the address of a model"
        )
    address = _address(host)
    is_near = address.is_private if address is not None else "." not in host
    if parts.scheme == "http" and not is_near and not host.endswith((".local", ".internal")):
        warnings.warn(
            "base_url is plain http to a public host: prompts and key can be read on the way",
            stacklevel=3,
        )
    return url.rstrip("/")


def _is_openai(url: str) -> bool:
    """Whether the address is of OpenAI or Azure, whose services know some other options."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".openai.azure.com", ".azure.com"))


def is_forbidden_address(address: str) -> bool:
    """Whether an IP address is link-local, unspecified, or serves a machine's credentials.

    Args:
        address: As a socket gives it, also with a scope (``fe80::1%eth0``); a text that is no
            address is not forbidden.
    """
    found = _address(address)
    return found is not None and any(
        each.is_link_local or each.is_unspecified or str(each) in _METADATA_ADDRESSES
        for each in (found, *_inside(found))
    )


def _plain_host(host: str) -> str:
    """A host as resolvers read it: percent signs decoded, wide digits and dots made narrow."""
    narrow = unicodedata.normalize("NFKC", unquote(host)).translate(_DOTS)
    return narrow.lower().rstrip(".")


def _address(host: str) -> _Address | None:
    """The IP address that a host spells, also in decimal, octal or hexadecimal form."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None


def _inside(address: _Address) -> list[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _EMBEDDING):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]


# --- the judge's own client -----------------------------------------------------------------------

MAX_REPLY_BYTES: Final = 5 * 2**20
"""Limit on a response; one with the log probabilities of 5,000 tokens has 2 MiB. Reading up to it
takes less than 10 MiB of memory."""

MAX_ERROR_BYTES: Final = 16 * 2**10
ERROR_SECONDS: Final = 2.0
"""Limits on the body of an error, which may never end."""


_NO_KEY: Final = "Bearer none"
"""What stands in place of a key; servers that need none take anything."""


class GuardedOpenAI(AsyncOpenAI):
    """The judge's own client: it ignores the ``OPENAI_*`` variables of the application.

    The package takes headers, organisation and project from them, which may hold the key of the
    application and make its account pay. ``default_headers`` replaces all of them.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        read_seconds: float,
        trust_env: bool,
    ) -> None:
        """Create a client that retries nothing; the arguments are those of ``OpenAIChat``."""
        self._own_headers = headers
        # Certificates take 40 to 70 ms to load; plain HTTP needs none.
        is_plain = base_url.startswith("http://") and not trust_env
        super().__init__(
            api_key=api_key.get_secret_value() if api_key else _NO_KEY.partition(" ")[2],
            base_url=base_url,
            max_retries=0,
            timeout=read_seconds,
            default_query=dict(query),
            http_client=_HttpClient(
                trust_env=trust_env,
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else _certificates(),
            ),
        )

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        """The headers of every request."""
        return {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # the limit on a reply counts the bytes on the wire
            "Content-Type": "application/json",
            "User-Agent": self.user_agent,
            **self.auth_headers,  # the package adds them by itself from 3.0 on
            **self._own_headers,
        }


def _certificates() -> ssl.SSLContext | bool:
    """The usual certificates, and those of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``.

    Every program of a machine heeds these two; unlike a proxy they send nothing elsewhere.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return True
    import certifi

    context = ssl.create_default_context(cafile=certifi.where())
    try:
        context.load_verify_locations(cafile=file or None, capath=folder or None)
    except (OSError, ssl.SSLError):
        raise JudgeError(
            "SSL_CERT_FILE or SSL_CERT_DIR cannot be read: name a file of certificates (PEM) or a "
            "folder of them"
        ) from None
    return context


class _Connection(Protocol):
    """The used part of a network stream of httpcore."""

    def get_extra_info(self, info: str) -> object: ...

    async def aclose(self) -> None: ...


async def _check_connection(event: str, info: Mapping[str, object]) -> None:
    """Closes a new connection to a forbidden address before anything is sent on it.

    The address that a name has led to is looked at on the connection itself: a name may resolve to
    another address each time it is asked for. Called by httpcore's ``trace`` extension.
    """
    if event != "connection.connect_tcp.complete":
        return
    connection: _Connection = info["return_value"]  # type: ignore[assignment]  # what httpcore documents
    address = connection.get_extra_info("server_addr")
    # Unknown addresses are refused as well: (host, port, ...) is what every backend gives.
    if not isinstance(address, tuple) or is_forbidden_address(str(address[0])):  # pyright: ignore[reportUnknownArgumentType] - its text is what is checked
        await connection.aclose()
        raise ForbiddenAddressError


class _HttpClient(DefaultAsyncHttpxClient):
    """Limits where a request goes and what is read of a response; never follows a redirect."""

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        auth: object = None,
        follow_redirects: object = None,
    ) -> Response:
        """Sends one request; raises ``ReplyError`` for a body that is too large."""
        request.extensions = {**request.extensions, "trace": _check_connection}
        # Azure's key goes alone: the package adds one of its own, which here is none.
        if "api-key" in request.headers and request.headers.get("authorization") == _NO_KEY:
            del request.headers["authorization"]
        try:
            # A redirect would send the prompt to another host.
            response = await super().send(request, stream=True, follow_redirects=False)
        except ForbiddenAddressError:
            raise JudgeError(
                "base_url leads to a link-local or metadata address, and nothing was sent: "
                "give the address of a model"
            ) from None
        try:
            body = await (_read_reply if response.is_success else _read_error)(response)
        finally:
            await response.aclose()
        names = ("retry-after", "retry-after-ms", "x-should-retry", "content-type")
        kept = {*names, *(f"llm_provider-{name}" for name in names)}
        headers = {name: each for name, each in response.headers.items() if name in kept}
        return type(response)(response.status_code, headers=headers, content=body, request=request)


async def _read_reply(response: Response) -> bytes:
    declared = response.headers.get("content-length", "")
    too_large = ReplyError(f"the response is larger than {MAX_REPLY_BYTES // 2**20} MiB")
    if declared.isdecimal() and int(declared[:20]) > MAX_REPLY_BYTES:
        raise too_large
    read = await _read_at_most(response.aiter_bytes(), MAX_REPLY_BYTES)
    if read is None:
        raise too_large
    return read


async def _read_error(response: Response) -> bytes:
    """The beginning of what a server says of an error; empty if it does not come soon."""
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            return await _read_at_most(response.aiter_bytes(), MAX_ERROR_BYTES) or b""
    except Exception:  # noqa: BLE001 - the status is known, and enough
        return b""


async def _read_at_most(parts: AsyncIterator[bytes], limit: int) -> bytes | None:
    # Joined at the end: an array that grows is copied, and held twice meanwhile.
    read: list[bytes] = []
    size = 0
    async for part in parts:
        size += len(part)
        if size > limit:
            return None
        read.append(part)
    return b"".join(read)


# --- the model ------------------------------------------------------------------------------------

# For a client of the user's, which the judge cannot close: a connection that is kept would fail in
# the next event loop.
_CLOSE_CONNECTION: Final = {"Connection": "close"}


def trusts_environment() -> bool:
    """Whether ``CLAIMSPAN_TRUST_ENV`` has the judge honour the proxies of the environment."""
    given = os.environ.get("CLAIMSPAN_TRUST_ENV", "").strip().lower()
    return given not in ("", "0", "false", "no", "off")


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
            url = _check_base_url(base_url or _OPENAI_URL)
            carries_key = {"api-key", "authorization"} & {name.lower() for name in headers or {}}
            if not api_key and not carries_key and _is_openai(url):
                raise ConfigError(
                    "OpenAI needs a key: set OPENAI_API_KEY for the judge 'openai:MODEL' or for "
                    "OpenAIJudge.from_environment, or give api_key"
                )
            self.secrets += [api_key] if api_key else []
            connect: Callable[[], AsyncOpenAI] = partial(
                GuardedOpenAI,
                base_url=url,
                api_key=api_key,
                headers=dict(headers or {}),
                query=dict(query or {}),
                read_seconds=read_seconds,
                trust_env=trust_env,
            )
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
        self.limit_field: Final = LIMITS[1] if _is_openai(url) else None
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
    """A part of a response of which nothing is required: endpoints leave fields out."""

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
    if not is_list(content):
        return content
    parts = [{"text": part} if isinstance(part, str) else part for part in content]
    return "".join(
        str(part.get("text") or "")
        for part in parts
        if is_mapping(part) and part.get("type") in ("text", "output_text", None)
    )


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
        tuple(_read_tokens(choice.logprobs)),
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


def _read_tokens(logprobs: JsonValue) -> Iterator[Token]:
    """The tokens of a reply; one of which a probability is not known has none."""
    try:
        read = _Logprobs.model_validate(logprobs or {})
    except ValidationError:
        return
    for token in read.content or []:
        given = {each.token: each.logprob for each in token.top_logprobs or []}
        known = {text: logprob for text, logprob in given.items() if logprob is not None}
        if token.logprob is None or len(known) < len(given):
            yield Token(token.token, math.nan, {})
        else:
            yield Token(token.token, token.logprob, known)
