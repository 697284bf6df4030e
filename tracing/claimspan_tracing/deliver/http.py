"""The HTTP API of a backend: bounded in time and size, with a clear error for each refusal.

httpx is imported when a backend is made, so that it is not needed without one.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from claimspan.errors import ConfigError, DeliveryError, MissingExtraError
from claimspan.text.shapes import is_mapping
from claimspan_tracing.blocking import may_block

if TYPE_CHECKING:
    import httpx

__all__ = ["Backend", "Connection", "NotStoredError", "RefusalError", "checked_address"]

REQUEST_SECONDS: Final = 20.0
"""From the first byte of a request to the last of its response, however slowly these come."""

CONNECT_SECONDS: Final = 5.0
"""Until a connection is there; a backend on the same network needs milliseconds."""

MAX_RESPONSE_BYTES: Final = 64 * 2**20
"""Of a response: 50 traces with long chunks; one with 5,000 assessments has 4 MiB."""

SILENT_SECONDS: Final = 1.0
"""For how long a backend gets no request that has too many, and does not say how long to wait."""

LONGEST_WAIT: Final = 300.0
"""Seconds for which a backend may ask us to be silent; what waits is given up before."""

_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses below 500 that speak of the moment, and not of the request."""

_AWAY: Final = frozenset({429, 502, 503, 504})
"""Statuses that are about the backend as a whole; 500 may be about the one request."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Name of a header (RFC 9110, section 5.6.2)."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RefusalError(DeliveryError):
    """A backend answered a request with an error."""

    def __init__(self, reason: str, *, status: int) -> None:
        """Set the reason, and the status, which says whether a new try can help."""
        self.status: Final = status
        super().__init__(reason, final=status < 500 and status not in _AGAIN)


class NotStoredError(DeliveryError):
    """A backend does not have the trace yet that scores are for; it is asked again later."""


class Backend:
    """Where requests go, and with which credentials.

    No connection outlives ``run``: there is none that a forked child could share by mistake.
    Proxies of the environment are used, as by the backends' own clients, but not for this
    machine's own addresses.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        extra: str,
        settings: str,
        headers: Mapping[str, str] | None = None,
        user: tuple[str, str] | None = None,
    ) -> None:
        """Set the address.

        Args:
            name: Of the backend, for messages.
            address: Before the path of each request.
            extra: What ``pip install 'claimspan[...]'`` names.
            settings: The arguments and variables to look at if the backend refuses us.
            headers: Of each request. Their values are in no message.
            user: Name and password, if the backend takes these.

        Raises:
            ConfigError: HTTP cannot carry a header.
            MissingExtraError: httpx is not installed.
        """
        try:
            import httpx
        except ImportError:
            raise MissingExtraError("httpx", extra) from None
        self._httpx = httpx
        self.late_errors: Final = (httpx.ReadTimeout, httpx.WriteTimeout)
        self.name: Final = name
        self.settings: Final = settings
        self.address: Final = address
        self._is_on_this_machine = _is_loopback(urlsplit(address).hostname or "")
        self._headers = {"User-Agent": "claimspan", "Accept": "application/json", **(headers or {})}
        for header, value in self._headers.items():
            if _TOKEN.fullmatch(header) and value.isascii() and value.isprintable():
                continue
            raise ConfigError(
                f"a header or a key has signs that HTTP cannot carry: check {settings}"
            )
        self._user = user
        self._certificates: ssl.SSLContext | None = None
        self._silent_until = 0.0

    def run(self, work: Callable[[Connection], Coroutine[object, object, _T]]) -> _T:
        """Call a coroutine function with a connection, on a loop of its own, on this thread."""
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_SameThread())
        with may_block():  # the thread waits for nothing but this
            try:
                return loop.run_until_complete(self._connected(work))
            finally:
                # Not asyncio.Runner: it starts a thread here, which fails while the process ends.
                loop.run_until_complete(_end_tasks(loop))
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.close()

    async def _connected(self, work: Callable[[Connection], Coroutine[object, object, _T]]) -> _T:
        if self._certificates is None:
            self._certificates = self._httpx.create_ssl_context()  # takes 20 ms, so once
        async with self._httpx.AsyncClient(
            headers=self._headers,
            auth=self._user,
            verify=self._certificates,
            timeout=self._httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=False,  # credentials go to no other address
            # A proxy of the environment cannot reach this machine's own addresses.
            trust_env=not self._is_on_this_machine,
        ) as client:
            return await work(Connection(self, client))

    @property
    def silent_seconds(self) -> float:
        """For how long the backend has asked for no requests yet; 0 if it has not."""
        return max(0.0, self._silent_until - time.monotonic())

    def be_silent(self, seconds: float) -> None:
        """Send nothing for some seconds."""
        self._silent_until = time.monotonic() + min(seconds, LONGEST_WAIT)


class Connection:
    """Sends requests to a backend, until it is away: what else was to be sent fails at once then.

    One that is silent would otherwise take its time for each record of a batch.
    """

    def __init__(self, backend: Backend, client: httpx.AsyncClient) -> None:
        self._backend = backend
        self._client = client
        self._away: DeliveryError | None = None

    async def get(self, path: str) -> JsonValue:
        """Return the answer of a path.

        Raises:
            DeliveryError: The backend refuses, or does not answer.
        """
        return await self._request("GET", path, None)

    async def post(self, path: str, body: JsonValue, *, answer: str) -> None:
        """Send a value to a path, whose answer has the name ``answer`` if the value was taken.

        Raises:
            DeliveryError: The backend refuses, does not answer, or says something else.
        """
        said = await self.ask(path, body)
        if not is_mapping(said) or answer not in said:
            # Whatever is at the address, such as a gateway, has not taken it.
            name, settings = self._backend.name, self._backend.settings
            raise DeliveryError(
                f"{name} does not say that it has taken the scores: check {settings}", final=True
            )

    async def ask(self, path: str, body: JsonValue) -> JsonValue:
        """Send a value to a path; returns the answer.

        Raises:
            DeliveryError: The backend refuses, or does not answer.
        """
        content = json.dumps(body, separators=(",", ":"), allow_nan=False)
        return await self._request("POST", path, content)

    async def _request(self, method: str, path: str, content: str | None) -> JsonValue:
        if self._away is not None:
            raise self._away
        if left := self._backend.silent_seconds:
            name = self._backend.name
            raise RefusalError(f"{name} asks to wait for {left:.0f} s more", status=429)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._exchange(method, path, content)
        except RefusalError as error:
            if error.status in _AWAY:
                self._away = error
            raise
        except DeliveryError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken answer may raise anything in httpx
            self._away = self._silence(error)
            raise self._away from None

    def _silence(self, error: Exception) -> DeliveryError:
        name, settings = self._backend.name, self._backend.settings
        # Its message stays out: it may quote the address, and that a key.
        is_late = isinstance(error, (TimeoutError, *self._backend.late_errors))
        problem = "gave no whole answer in time" if is_late else "cannot be reached"
        return DeliveryError(f"{name} {problem} ({type(error).__name__}): check {settings}")

    async def _exchange(self, method: str, path: str, content: str | None) -> JsonValue:
        headers = {} if content is None else {"Content-Type": "application/json"}
        url = self._backend.address + path
        async with self._client.stream(method, url, content=content, headers=headers) as response:
            if not response.is_success:  # its body is not read: it may quote what was sent
                raise self._refusal(response)
            return _parsed(await self._read(response), self._backend)

    async def _read(self, response: httpx.Response) -> bytes:
        read = bytearray()
        # Closed at the end of the block, and not whenever the collector finds it.
        body = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
        async with aclosing(body) as parts:
            async for part in parts:
                read += part
                if len(read) > MAX_RESPONSE_BYTES:
                    raise DeliveryError(
                        f"{self._backend.name} sends more than {MAX_RESPONSE_BYTES:,} bytes: "
                        f"check {self._backend.settings}",
                        final=True,
                    )
        return bytes(read)

    def _refusal(self, response: httpx.Response) -> RefusalError:
        status, backend = response.status_code, self._backend
        if status in (429, 503):
            asked = _seconds(response.headers.get("retry-after", ""))
            backend.be_silent(asked or SILENT_SECONDS)
        if status >= 500 or status in _AGAIN:
            advice = "it is tried again"
        elif status in (400, 413, 422):
            advice = "it does not take these scores"
        else:
            advice = f"check {backend.settings}"
        return RefusalError(f"{backend.name} answers {status}: {advice}", status=status)


def checked_address(address: str, settings: str) -> str:
    """Return an address of a backend, without a slash at its end.

    Args:
        address: As given.
        settings: Name of the argument or variable that it is from.

    Raises:
        ConfigError: It is no http(s) address with a host, or holds a password.
    """
    try:
        parts = urlsplit(address.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    has_odd_sign = any(sign.isspace() or not sign.isprintable() for sign in address.strip())
    is_http = parts.scheme in ("http", "https") and bool(host)
    if not is_http or parts.query or parts.fragment or has_odd_sign:
        raise ConfigError(f"{settings} is no address: give one like http://127.0.0.1:6006")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{settings} holds a user name or a password: give them by themselves")
    return address.strip().rstrip("/")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """End the rest of the work if a part of it has raised."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _parsed(body: bytes, backend: Backend) -> JsonValue:
    if not body.strip():
        return None
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        # Whatever is at the address, it is not the API: a page to sign in, for one.
        raise DeliveryError(
            f"{backend.name} answers with something that is not JSON: check {backend.settings}",
            final=True,
        ) from None
    return value


def _seconds(retry_after: str) -> float:
    """Seconds that a ``Retry-After`` asks to wait, which is a number or a date; 0 without one."""
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    return 0.0


class _SameThread(ThreadPoolExecutor):
    """Runs each function at once, on the thread that asks; asyncio resolves names with it.

    A delivery's thread is there to wait. asyncio's own executor would keep the process alive until
    a look-up has returned, and can start no thread while the process ends.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future carries it to the caller
            future.set_exception(error)
        return future
