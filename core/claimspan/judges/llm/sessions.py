"""What a judge keeps for each event loop, because a connection works in one loop only.

A judge outlives loops: every ``evaluate`` runs one of its own.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable
from typing import Final
from weakref import finalize

from openai import AsyncOpenAI

from claimspan.judges.llm.client import GuardedOpenAI

__all__ = ["Session", "Sessions"]


class Session:
    """A client for one event loop, and the semaphore that limits its requests."""

    def __init__(self, client: AsyncOpenAI, concurrency: int) -> None:
        self.client: Final = client
        self.semaphore: Final = asyncio.Semaphore(concurrency)
        self.end_of_loop: AsyncGenerator[None] | None = None
        self._closing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        """Closes a client of the judge's own; all who call this wait for the same end."""
        if isinstance(self.client, GuardedOpenAI):
            self._closing = self._closing or asyncio.ensure_future(self.client.close())
            await asyncio.shield(self._closing)


_SessionByLoop = dict[AbstractEventLoop, Session]


class Sessions:
    """One session for each event loop, closed when the loop or this object ends.

    asyncio has one hook for the end of a loop: before it ends, also in ``asyncio.run``, a loop
    closes the asynchronous generators that have started in it, and waits for them. A task that
    waits for its cancellation would be simpler, but code that awaits all tasks of the loop would
    wait for it forever.
    """

    def __init__(self, connect: Callable[[], AsyncOpenAI], concurrency: int) -> None:
        self._connect = connect
        self._concurrency = concurrency
        self._sessions: _SessionByLoop = {}
        finalize(self, _close_all, self._sessions).atexit = False

    async def of_running_loop(self) -> Session:
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


async def _close_at_end(loop: AbstractEventLoop, sessions: _SessionByLoop) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await sessions.pop(loop).close()


def _close_all(sessions: _SessionByLoop) -> None:
    """Closes the sessions of an object that is no longer used, each in its own loop."""
    for loop, session in list(sessions.items()):  # another thread may start a session
        if not loop.is_closed():
            loop.call_soon_threadsafe(_start_to_close, loop, session)


def _start_to_close(loop: AbstractEventLoop, session: Session) -> None:
    # The task keeps the session and its generator: if the loop ends first, it waits for the task.
    loop.create_task(session.close())
