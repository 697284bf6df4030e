"""Calls that belong together, and calls that would be the same."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["Flights", "together"]

_T = TypeVar("_T")


async def together(calls: Sequence[Coroutine[object, None, _T]]) -> list[_T]:
    """Run the calls at once; when one fails, the others are cancelled and awaited."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Flights(Generic[_T]):
    """Calls under way, so that whoever wants the same at the same time waits for the same."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[AbstractEventLoop, dict[str, asyncio.Task[_T]]]
        self._loops = WeakKeyDictionary()

    async def join(self, key: str, start: Callable[[], Coroutine[object, None, _T]]) -> _T:
        """The result of the call under way with this key, or of a new one.

        A call is cancelled with whoever started it. Who waits for a call of another and does not
        get its result makes a call of one's own: the other's budget may have been the reason.
        """
        flights = self._loops.setdefault(asyncio.get_running_loop(), {})
        other = flights.get(key)
        if other is not None:
            await asyncio.wait([other])
            if not other.cancelled() and other.exception() is None:
                return other.result()
        call = flights[key] = asyncio.ensure_future(start())
        try:
            return await call
        finally:
            call.cancel()
            if flights.get(key) is call:
                del flights[key]
