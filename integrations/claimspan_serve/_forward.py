"""Sends requests on to a backend as they came, and brings back its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hmac import compare_digest
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import grpc
from grpc.aio import AioRpcError, Channel, ServicerContext
from multidict import CIMultiDict
from starlette.requests import Request
from starlette.responses import Response
from yarl import URL

from claimspan_serve._receiver import RefusedError

_Value = TypeVar("_Value", str, str | bytes)

TIMEOUT_SECONDS: Final = 30.0
"""How long a backend is waited for. Exporters give up after ten seconds, unless told otherwise."""

_OF_ONE_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"}
)
"""Headers about the connection to whoever sent them, and no part of the message."""

_ADDED: Final = ("accept", "accept-encoding", "content-type", "user-agent")
"""Headers that the client of HTTP would add where the application has sent none."""

_OF_THE_CHANNEL: Final = frozenset({"user-agent", "content-type", "te"})
"""Metadata that a channel sets itself, beside what begins with ``grpc-``."""

_DETAILS: Final = "grpc-status-details-bin"
"""Where gRPC has the details of an error, such as when to try again."""

_Metadata = Iterable[tuple[str, str | bytes]]


TOKEN_HEADER: Final = "x-claimspan-token"  # noqa: S105 - the name of a header
"""Where the token may stand, if the backend wants an ``authorization`` of its own."""


class Credentials:
    """The token that a request needs, and that is not for the backend."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def are_in(self, headers: Mapping[str, str | bytes]) -> bool:
        """Whether the headers of a request have the token, if one is wanted."""
        if self._token is None:
            return True
        said = headers.get(TOKEN_HEADER) or _bearer(headers.get("authorization", ""))
        return isinstance(said, str) and compare_digest(said.encode(), self._token.encode())

    def without(self, headers: Iterable[tuple[str, _Value]]) -> list[tuple[str, _Value]]:
        """The headers of a request that are the backend's own."""
        return [(name, value) for name, value in headers if not self._is_ours(name.lower(), value)]

    def _is_ours(self, name: str, value: str | bytes) -> bool:
        if name == "authorization" and self._token is not None:
            return _bearer(value) == self._token
        return name == TOKEN_HEADER


def _bearer(value: str | bytes) -> str:
    """The token of an ``authorization``; empty if it has none."""
    scheme, _, token = value.partition(" ") if isinstance(value, str) else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


class HttpForward:
    """A backend that takes OTLP over HTTP."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        """Set where it is.

        Args:
            url: Its base, to which ``/v1/traces`` is added.
            credentials: What is left out of the headers.
        """
        self._url = url.rstrip("/").removesuffix("/v1/traces")
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, body: bytes) -> Response:
        """Send a request on, and return the backend's answer.

        Raises:
            RefusedError: The backend gave none.
        """
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            # Encoded already: what was sent is not to be written in another way.
            url = URL(f"{self._url}{request.url.path}{query}", encoded=True)
            headers = _own(self._credentials.without(request.headers.items()))
            async with self._opened().post(
                url, data=body, headers=CIMultiDict(headers), allow_redirects=False
            ) as answer:
                response = Response(await answer.read(), answer.status)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _no_answer(self._url, type(error).__name__) from None
        named = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in answer.raw_headers]
        response.raw_headers += [
            (k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in _own(named)
        ]
        return response

    def _opened(self) -> aiohttp.ClientSession:
        """The session, which is made in the event loop that uses it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,  # what the backend has compressed goes on as it is
                skip_auto_headers=_ADDED,
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
            )
        return self._session

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _own(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of the message, without those of the connection."""
    return [(name, value) for name, value in headers if name.lower() not in _OF_ONE_CONNECTION]


def _no_answer(url: str, reason: str) -> RefusedError:
    where = urlsplit(url)
    return RefusedError(
        502, f"the backend at {where.hostname}:{where.port} did not answer ({reason}): is it up?"
    )


class GrpcForward:
    """A backend that takes OTLP over gRPC."""

    def __init__(self, url: str, credentials: Credentials, max_bytes: int) -> None:
        """Set where it is.

        Args:
            url: ``grpc://host:port``, or ``grpcs://`` for TLS.
            credentials: What is left out of the metadata.
            max_bytes: Size of the largest answer.
        """
        self._credentials = credentials
        options = [("grpc.max_receive_message_length", max_bytes)]
        scheme, _, target = url.rstrip("/").partition("://")
        if scheme == "grpcs":
            tls = grpc.ssl_channel_credentials()
            self._channel: Channel = grpc.aio.secure_channel(target, tls, options)
        else:
            self._channel = grpc.aio.insecure_channel(target, options)

    async def send(self, method: str, body: bytes, context: ServicerContext[bytes, bytes]) -> bytes:
        """Send a message on, and return the backend's answer.

        If there is none, the call ends with the status that the backend or the channel gave.
        """
        # Bytes go through as they are; gRPC's own default says nothing about their type.
        stub = self._channel.unary_unary(
            method, request_serializer=bytes, response_deserializer=bytes
        )
        call = stub(
            body,
            timeout=min(TIMEOUT_SECONDS, context.time_remaining() or TIMEOUT_SECONDS),
            metadata=_passed_on(self._credentials.without(context.invocation_metadata() or ())),
        )
        try:
            answer: bytes = await call
        except AioRpcError as error:
            trailing = _passed_on(error.trailing_metadata() or ())
            await context.abort(error.code(), error.details() or "", trailing)
        context.set_trailing_metadata(_passed_on(await call.trailing_metadata() or ()))
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._channel.close()


def _passed_on(metadata: _Metadata) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata of the message, and not that of a connection."""
    return tuple(
        (name, value)
        for name, value in metadata
        if name == _DETAILS or not (name in _OF_THE_CHANNEL or name.startswith(("grpc-", ":")))
    )
