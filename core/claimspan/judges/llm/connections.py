"""Connections of a judge: one set for each event loop, closed when the loop or the judge ends."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Mapping
from typing import Final, Protocol
from weakref import finalize

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import SecretStr

__all__ = ["Connections", "Session"]


class Session:
    """What belongs to one event loop: connections, and a gate before them."""

    def __init__(self, client: AsyncOpenAI, concurrency: int) -> None:
        self.client: Final = client
        self.gate: Final = asyncio.Semaphore(concurrency)
        self.closer: finalize[..., Connections] | None = None
        """Ends the session with its owner; keeps it and its loop alive until then."""
        self._closing: asyncio.Future[None] | None = None

    def forget(self) -> None:
        """Take back that the session ends with its owner: it has ended, or never can."""
        if self.closer is not None:
            self.closer.detach()

    async def end(self) -> None:
        """Close the connections; whoever calls this waits for the same end."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self.client.close())
        await asyncio.shield(self._closing)


_Sessions = dict[AbstractEventLoop, Session]


class Connections:
    """Where requests go and with which key; nothing else of the process decides on that."""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        concurrency: int,
        read_seconds: float,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._headers = headers
        self._query = query
        self._concurrency = concurrency
        self._read_seconds = read_seconds
        self._sessions: _Sessions = {}

    def __repr__(self) -> str:
        """Without the key."""
        return f"Connections(base_url={self._base_url!r})"

    async def session(self) -> Session:
        """The session of the running loop.

        It ends with the loop, or with this object, whichever is first. For the one, a generator
        holds it, because a loop closes its generators before it ends, also in ``asyncio.run``; for
        the other, a finalizer holds the generator. A loop that was closed without closing its
        generators is let go, its connections with it, when the next loop comes.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._let_go_of_closed_loops()
            session = self._sessions[loop] = Session(self._connect(), self._concurrency)
            holder = _hold(self._sessions, loop)
            await anext(holder)
            session.closer = finalize(self, _close_soon, loop, session, holder)
            session.closer.atexit = False
        return self._sessions[loop]

    def _let_go_of_closed_loops(self) -> None:
        for loop in list(self._sessions):  # a copy: other threads come with loops of theirs
            if loop.is_closed() and (session := self._sessions.pop(loop, None)):
                session.forget()

    def _connect(self) -> AsyncOpenAI:
        headers = {"Accept-Encoding": "identity", **self._headers}
        client = AsyncOpenAI(
            api_key=self._api_key.get_secret_value() if self._api_key else "none",
            base_url=self._base_url,
            max_retries=0,  # its own retries know no deadline
            timeout=self._read_seconds,
            default_headers=headers,
            default_query=dict(self._query),
            http_client=DefaultAsyncHttpxClient(
                follow_redirects=False,  # a redirect would post the prompt to another host
                trust_env=False,
                verify=self._certificates(),
                event_hooks={"response": [_drop_error_body]},
            ),
        )
        # Read from the environment of the application, which is not asked to pay: its headers may
        # hold its key. There is no public way to be without them.
        client.organization = client.project = None
        client._custom_headers = headers  # pyright: ignore[reportPrivateUsage] - see above
        return client

    def _certificates(self) -> ssl.SSLContext | bool:
        """The usual ones, which take 70 ms to load; without TLS none, so that none is trusted."""
        is_plain = self._base_url.startswith("http://")
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True


async def _hold(sessions: _Sessions, loop: AbstractEventLoop) -> AsyncGenerator[None]:
    """Wait to be closed, then close the connections and leave nothing behind."""
    try:
        yield
    finally:
        session = sessions.pop(loop)
        session.forget()
        await session.end()


def _close_soon(loop: AbstractEventLoop, session: Session, holder: AsyncGenerator[None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(_end(session, holder)))


async def _end(session: Session, holder: AsyncGenerator[None]) -> None:
    """End a session; if its loop ends meanwhile, the generator makes it wait for that."""
    await session.end()
    del holder


class _Response(Protocol):
    """The part of a response that is used here, of whichever client the package brings."""

    status_code: int

    async def aclose(self) -> None: ...


async def _drop_error_body(response: _Response) -> None:
    """Close a response that is no success: its text may hold the key, and may never end."""
    if response.status_code >= 300:
        await response.aclose()
