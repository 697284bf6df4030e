"""The judge's own client of the openai package: isolated, limited, and guarded per request."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Protocol

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit
from pydantic import SecretStr

from claimspan.errors import JudgeError, ReplyError
from claimspan.judges.llm.base_url import ForbiddenAddressError, is_forbidden_address
from claimspan.judges.llm.call import Call
from claimspan.judges.llm.failures import failure_of

if TYPE_CHECKING:
    from httpx2 import Request, Response  # of whichever client the openai package brings

__all__ = [
    "GuardedOpenAI",
    "StopRetryingError",
    "current_call",
    "guarded_client",
    "retry_after_seconds",
]

MAX_TRIES: Final = 100
"""More than any call has time for: how often a request is retried is for ``Call.may_retry``."""

MAX_REPLY_BYTES: Final = 5 * 2**20
"""Limit on a response; one with the log probabilities of 5,000 tokens has 2 MiB. Reading up to it
takes less than 10 MiB of memory."""

_KEPT_HEADERS: Final = ("retry-after", "retry-after-ms", "x-should-retry")

_TRIED_AGAIN: Final = frozenset({408, 409, 429})
"""Statuses below 500 that the openai package takes for passing."""

current_call: Final[ContextVar[Call]] = ContextVar("claimspan_judge_call")
"""The call that a request belongs to; the openai package has no argument to pass it through."""


class GuardedOpenAI(AsyncOpenAI):
    """The judge's own client: it ignores the ``OPENAI_*`` variables of the application.

    The package takes headers, organisation and project from them, which may hold the key of the
    application and make its account pay. ``default_headers`` replaces all of them.
    """

    own_headers: Mapping[str, str] = {}
    """Headers that the user has given to the judge."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        """The headers of every request."""
        return {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # the limit on a reply counts the bytes on the wire
            "Content-Type": "application/json",
            "User-Agent": self.user_agent,
            **self.auth_headers,  # the package adds them by itself from 3.0 on
            **self.own_headers,
        }


class StopRetryingError(BaseException):
    """Carries an error past the package, which before 3.0 retries after every ``Exception``."""

    def __init__(self, error: JudgeError) -> None:
        super().__init__(str(error))
        self.error: Final = error


class _Connection(Protocol):
    """What is used of a network stream of httpcore."""

    def get_extra_info(self, info: str) -> object: ...

    async def aclose(self) -> None: ...


async def check_connection(event: str, info: Mapping[str, object]) -> None:
    """Closes a new connection to a forbidden address before anything is sent on it.

    The address that a name has led to is looked at on the connection itself: a name may resolve to
    another address each time it is asked for. Called by httpcore's ``trace`` extension.

    Args:
        event: What has happened, such as ``connection.connect_tcp.complete``.
        info: The connection, as ``return_value``.

    Raises:
        ForbiddenAddressError: It leads to a link-local or metadata address.
    """
    if event != "connection.connect_tcp.complete":
        return
    connection: _Connection = info["return_value"]  # type: ignore[assignment]  # what httpcore documents
    address = connection.get_extra_info("server_addr")
    # Unknown addresses are refused as well: (host, port, ...) is what every backend gives.
    if not isinstance(address, tuple) or is_forbidden_address(str(address[0])):  # pyright: ignore[reportUnknownArgumentType] - its text is what is checked
        await connection.aclose()
        raise ForbiddenAddressError


class GuardedHttpClient(DefaultAsyncHttpxClient):
    """Passes each request through ``Call.request``, and limits what is read of a response.

    A response is read here and not by the openai package, so that its retries cover a connection
    that breaks in the middle of a body, and that no body exceeds ``MAX_REPLY_BYTES``.
    """

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        auth: object = None,
        follow_redirects: object = None,
    ) -> Response:
        """Sends one request and reads its response; never follows a redirect.

        Raises:
            StopRetryingError: The circuit breaker or the budget refuses the request, or the body
                is larger than ``MAX_REPLY_BYTES``.
        """
        try:
            return await self._send_guarded(request, current_call.get())
        except JudgeError as error:
            raise StopRetryingError(error) from None
        except ForbiddenAddressError:
            raise StopRetryingError(
                JudgeError(
                    "base_url leads to a link-local or metadata address, and nothing was sent: "
                    "give the address of a model"
                )
            ) from None
        except Exception as error:
            call = current_call.get()
            if call.may_retry(status=None, wait=0.0):
                call.tell_retry(_host(request), str(failure_of(error, None)))
                raise
            # Without the cause, which leads to the request, and that holds the key.
            raise StopRetryingError(failure_of(error, call.n_requests)) from None

    async def _send_guarded(self, request: Request, call: Call) -> Response:
        async with call.request():
            request.extensions = {**request.extensions, "trace": check_connection}
            # A redirect would send the prompt to another host.
            response = await super().send(request, stream=True, follow_redirects=False)
            try:
                body = b""
                if response.is_success:  # the body of an error may hold the key, and may never end
                    if _declares_more(response.headers, MAX_REPLY_BYTES):
                        raise _too_large(MAX_REPLY_BYTES)
                    body = await _read_at_most(response.aiter_bytes(), MAX_REPLY_BYTES)
            finally:
                await response.aclose()
            call.status = response.status_code
        headers = {name: each for name, each in response.headers.items() if name in _KEPT_HEADERS}
        wait = retry_after_seconds(headers)
        status = response.status_code
        if not call.may_retry(status=status, wait=wait):
            headers["x-should-retry"] = "false"  # the header that the package obeys first
        elif status in _TRIED_AGAIN or status >= 500:
            call.tell_retry(_host(request), f"the endpoint answered with HTTP {status}")
        return type(response)(status, headers=headers, content=body, request=request)


def _host(request: Request) -> str:
    """Host and port, without the path, the query and the user's name and password."""
    return request.url.netloc.decode("ascii", "replace")


def guarded_client(
    *,
    base_url: str,
    api_key: SecretStr | None,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    read_seconds: float,
) -> GuardedOpenAI:
    """Creates the judge's own client of an endpoint, which ignores all environment variables.

    Args:
        base_url: Address of the endpoint.
        api_key: Its key; None where it needs none.
        headers: Headers of every request.
        query: Query parameters of every request.
        read_seconds: Timeout of one read, connect or write.
    """
    is_plain = base_url.startswith("http://")
    client = GuardedOpenAI(
        api_key=api_key.get_secret_value() if api_key else "none",
        base_url=base_url,
        max_retries=MAX_TRIES,
        timeout=read_seconds,
        default_query=dict(query),
        http_client=GuardedHttpClient(
            trust_env=False,
            # Certificates take 40 to 70 ms to load; plain HTTP needs none.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        ),
    )
    client.own_headers = headers
    return client


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """Seconds that a response asks to wait before a retry; 0 or less where it does not.

    Args:
        headers: Headers of the response, names in lower case.
    """
    with suppress(KeyError, ValueError):
        return float(headers["retry-after-ms"]) / 1000
    with suppress(KeyError, ValueError):
        return float(headers["retry-after"])
    with suppress(KeyError, ValueError, OverflowError):
        return parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    return 0.0


async def _read_at_most(parts: AsyncIterator[bytes], limit: int) -> bytes:
    # Joined at the end: an array that grows is copied, and held twice meanwhile.
    read: list[bytes] = []
    size = 0
    async for part in parts:
        size += len(part)
        if size > limit:
            read.clear()  # the traceback of the error would keep it
            raise _too_large(limit)
        read.append(part)
    return b"".join(read)


def _too_large(limit: int) -> ReplyError:
    return ReplyError(f"the response is larger than {limit // 2**20} MiB")


def _declares_more(headers: Mapping[str, str], limit: int) -> bool:
    """Whether a response says beforehand that it is too large; it is not read then."""
    declared = headers.get("content-length", "")
    return declared.isdecimal() and int(declared[:20]) > limit
