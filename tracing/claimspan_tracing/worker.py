"""One daemon thread with an event loop of its own. The application's loop is never touched."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from claimspan_tracing.guard import Guard
from claimspan_tracing.runs import RunTree

__all__ = ["Worker"]

DELAY_SECONDS: Final = 0.02
"""How long a wake-up waits: a query that has just ended gets the interpreter first."""

BATCH: Final = 64
"""Records taken in one go, so that evaluations and timers get their turn between them."""


class Worker:
    """Takes records from a queue and hands each to ``process``, on its own loop."""

    def __init__(
        self,
        take: Callable[[], RunTree | None],
        processor: Callable[[], Callable[[RunTree], None]],
        guard: Guard,
    ) -> None:
        """Prepare a worker; no thread starts before it is woken.

        Args:
            take: Gives the next record, or None.
            processor: Called once on the worker's thread; gives what handles a record.
            guard: Counts what fails.
        """
        self._take = take
        self._processor = processor
        self._guard = guard
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process: Callable[[RunTree], None] | None = None
        self._woken = False
        self._stopped = False
        self._lock = threading.RLock()

    def wake(self) -> None:
        """There is something in the queue; starts the thread if need be.

        Raises:
            RuntimeError: No thread can be started any more, as the interpreter is shutting down.
        """
        if self._thread is None:
            self._start()
        if not self._woken and self._loop is not None:
            self._woken = True
            self._loop.call_soon_threadsafe(self._drain_soon)

    def stop(self, timeout: float) -> None:
        """Cancel what is under way and end the thread, waiting at most ``timeout`` seconds."""
        self._stopped = True
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout)

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=self._run, args=(self._loop,), name="claimspan-worker", daemon=True
            )
            thread.start()
            self._thread = thread

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._stopped:
            try:
                loop.run_forever()
            except BaseException:  # noqa: BLE001 - a judge that calls sys.exit must not end the worker
                self._guard.faults += 1
        with self._guard:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())  # ends the judge's connections
        loop.close()

    def _drain_soon(self) -> None:
        asyncio.get_running_loop().call_later(DELAY_SECONDS, self._drain)

    def _drain(self) -> None:
        self._woken = False
        if self._process is None:
            self._process = self._processor()
        for _ in range(BATCH):
            tree = self._take()
            if tree is None:
                return
            self._process(tree)
        self._woken = True
        asyncio.get_running_loop().call_soon(self._drain)
