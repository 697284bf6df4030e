"""One client for each event loop: connections of the HTTP client work in one loop only.

A judge outlives event loops, because every ``evaluate`` runs one of its own.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable
from typing import Final, Protocol
from weakref import finalize

from openai import AsyncOpenAI

from claimspan.errors import JudgeError

__all__ = ["GivenClient", "Session", "SessionPerLoop", "SessionSource"]


class Session:
    """What belongs to one event loop: a client, and a semaphore that limits its requests."""

    def __init__(self, client: AsyncOpenAI, concurrency: int) -> None:
        self.client: Final = client
        self.semaphore: Final = asyncio.Semaphore(concurrency)
        self.end_of_loop: AsyncGenerator[None] | None = None
        self._closing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        """Closes the client; all who call this wait for the same end."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self.client.close())
        await asyncio.shield(self._closing)


class SessionSource(Protocol):
    """Gives the session of the running event loop."""

    async def session(self) -> Session:
        """The session of the running event loop."""
        ...


class GivenClient:
    """The session of one client that the user has made, and closes."""

    def __init__(self, client: AsyncOpenAI, concurrency: int) -> None:
        self._session = Session(client, concurrency)
        self._loop: AbstractEventLoop | None = None

    async def session(self) -> Session:
        """The session of the first event loop that asks.

        Raises:
            JudgeError: Another loop asks.
        """
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise JudgeError(
                "the client that the judge was given belongs to another event loop: give a "
                "function in its place that makes one, such as client=lambda: AsyncOpenAI(...)"
            )
        return self._session


_Sessions = dict[AbstractEventLoop, Session]


class SessionPerLoop:
    """Makes a session for each event loop, and closes it when the loop or this object ends.

    asyncio has no hook for the end of a loop but one: before it ends, also in ``asyncio.run``, a
    loop closes the asynchronous generators that have begun in it, and waits for them. A task that
    waits to be cancelled would do as well, but whoever awaits all tasks of the loop would wait for
    it.
    """

    def __init__(self, connect: Callable[[], AsyncOpenAI], concurrency: int) -> None:
        self._connect = connect
        self._concurrency = concurrency
        self._sessions: _Sessions = {}
        finalize(self, _close_all, self._sessions).atexit = False

    async def session(self) -> Session:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._forget_closed_loops()
            session = self._sessions[loop] = Session(self._connect(), self._concurrency)
            session.end_of_loop = _close_at_end(loop, self._sessions)
            await anext(session.end_of_loop)
        return self._sessions[loop]

    def _forget_closed_loops(self) -> None:
        """Drops what loops have left that were closed without closing their generators."""
        for loop in list(self._sessions):  # a copy: other threads come with loops of theirs
            if loop.is_closed():
                self._sessions.pop(loop, None)


async def _close_at_end(loop: AbstractEventLoop, sessions: _Sessions) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await sessions.pop(loop).close()


def _close_all(sessions: _Sessions) -> None:
    """Closes the sessions of a source that is no longer used, each in its own loop."""
    for loop, session in list(sessions.items()):  # another thread may start a session
        if not loop.is_closed():
            loop.call_soon_threadsafe(_start_to_close, loop, session)


def _start_to_close(loop: AbstractEventLoop, session: Session) -> None:
    # The task keeps the session and its generator: if the loop ends first, it waits for the task.
    loop.create_task(session.close())
