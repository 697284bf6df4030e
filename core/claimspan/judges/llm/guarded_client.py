"""The judge's own client of the openai package: isolated from the environment, and bounded."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit
from pydantic import SecretStr

from claimspan.errors import JudgeError, ReplyError
from claimspan.judges.llm.base_url import ForbiddenAddressError, is_forbidden_address

if TYPE_CHECKING:
    from httpx2 import Request, Response  # of whichever client the openai package brings

__all__ = ["GuardedOpenAI", "guarded_client"]

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


def guarded_client(
    base_url: str,
    api_key: SecretStr | None,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    read_seconds: float,
    trust_env: bool,
) -> AsyncOpenAI:
    """Creates a client that retries nothing; the arguments are those of ``OpenAIChat``."""
    client = GuardedOpenAI(
        api_key=api_key.get_secret_value() if api_key else _NO_KEY.partition(" ")[2],
        base_url=base_url,
        max_retries=0,
        timeout=read_seconds,
        default_query=dict(query),
        http_client=_HttpClient(
            trust_env=trust_env,
            # Certificates take 40 to 70 ms to load; plain HTTP needs none.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if base_url.startswith("http://") and not trust_env
            else _certificates(),
        ),
    )
    client.own_headers = headers
    return client


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
    """What is used of a network stream of httpcore."""

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
        """Sends one request and reads its response.

        Raises:
            ReplyError: The body is larger than ``MAX_REPLY_BYTES``.
            JudgeError: The address is one that nothing is sent to.
        """
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
