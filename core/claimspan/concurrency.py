"""Concurrent calls that asyncio does not have: pool, gather, single flight, exit, pace, clock."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context, ContextVar
from functools import cached_property, partial
from typing import Final, Generic, Protocol, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary, WeakSet

from claimspan.daemon_threads import SimpleQueue, start_daemon
from claimspan.errors import ConfigError

__all__ = [
    "Clock",
    "DaemonPool",
    "Pace",
    "SingleFlight",
    "call_last_at_exit",
    "current_pace",
    "gather_or_cancel",
    "keep_pace",
    "record_clock",
]

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_Work = Callable[[], None]


class Pace(Protocol):
    """Bounds the CPU time of evaluating, on all threads that do so together."""

    def begin(self) -> None:
        """Count the CPU time of the calling thread from now on."""
        ...

    def rest(self, cores: int = 1) -> bool:
        """Count the thread's time since ``begin`` or the last rest, and rest for a moment.

        Native code may have computed on several ``cores`` meanwhile. Returns whether more rest is
        owed than one moment.
        """
        ...


_pace: Final[ContextVar[Pace | None]] = ContextVar("claimspan_pace", default=None)


def keep_pace(pace: Pace) -> None:
    """Have judges that compute on threads of their own keep a pace, for the current context."""
    _pace.set(pace)


def current_pace() -> Pace | None:
    """The pace that a judge has to keep on threads of its own; None without one."""
    return _pace.get()


class Clock:
    """A deadline in a task that can stand still, such as while an endpoint has asked to wait."""

    def __init__(self, seconds: float) -> None:
        """Set the seconds from the start of ``running`` to the end."""
        self._timeout = asyncio.timeout(seconds)
        self._seconds = seconds
        self._stops = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Runs the block until the time is up.

        Raises:
            TimeoutError: The time was up; ``has_expired`` tells it from one of the block's own.
        """
        async with self._timeout:
            yield

    @property
    def has_expired(self) -> bool:
        """Whether the time was up."""
        return self._timeout.expired()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        end = self._timeout.when()
        return self._seconds if end is None else end - asyncio.get_running_loop().time()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Lets no time pass during the block; blocks of several tasks may overlap."""
        if self._stops == 0:
            self._seconds = self.left
            self._reschedule(None)
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1
            if self._stops == 0:
                self._reschedule(asyncio.get_running_loop().time() + self._seconds)

    def _reschedule(self, end: float | None) -> None:
        with suppress(RuntimeError):  # the time was up already, or the block has ended
            self._timeout.reschedule(end)


record_clock: Final[ContextVar[Clock | None]] = ContextVar("claimspan_record_clock", default=None)
"""The deadline of the record under evaluation; None outside of one."""


class DaemonPool:
    """Runs blocking functions on daemon threads, for code on an event loop.

    ``ThreadPoolExecutor`` does not serve here: the interpreter joins its threads at exit, so one
    function that never returns keeps the process alive, and it refuses work from ``atexit``
    handlers, where the last evaluations are still drained.

    Threads start with the first call. They do not survive a fork: a forked child starts its own,
    and the calls under way stay with the parent. One pool may serve many event loops and threads.
    """

    def __init__(self, max_threads: int | None, *, name: str = "claimspan") -> None:
        """Create a pool; no thread starts yet.

        Args:
            max_threads: Functions that run at the same time; further calls wait in a queue. None
                starts a thread for a call when all others are taken: what bounds the calls is then
                the caller's.
            name: Prefix of the names of the threads.

        Raises:
            ConfigError: ``max_threads`` is less than 1.
        """
        if max_threads is not None and max_threads < 1:
            raise ConfigError(f"max_threads is {max_threads!r}: give 1 or more")
        self.max_threads: Final = max_threads
        self.name: Final = name
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._free: SimpleQueue[None] = SimpleQueue()  # one for each thread that waits for a call
        self._n_threads = 0
        _pools.add(self)

    async def run(
        self, function: Callable[[*_Ts], _T], *args: *_Ts, context: Context | None = None
    ) -> _T:
        """Run ``function(*args)`` on a thread of the pool and wait for its result.

        When the awaiting task is cancelled, a function that has not started never does, and the
        result of one that has is discarded.

        Args:
            function: The function to run; it may block.
            *args: Its positional arguments.
            context: Context variables for the call, not entered by anybody else at the time; None
                for an empty context, so that nothing of the awaiting task leaks into user code.

        Returns:
            What the function returned.

        Raises:
            BaseException: What the function raised, ``SystemExit`` and ``KeyboardInterrupt``
                included.
            RuntimeError: The function raised ``StopIteration``, ``GeneratorExit`` or
                ``asyncio.CancelledError``, which mean something else to the awaiting task; it is
                the cause.
        """
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        work = partial(_execute, future, partial((context or Context()).run, function, *args))
        try:
            queue = self._started_queue()
        except RuntimeError:
            # The interpreter is shutting down, and no thread can be started. The loop is blocked
            # meanwhile: better than an evaluation that fails.
            work()
        else:
            queue.put(work)
        return await future

    def start(self) -> None:
        """Start the threads now, for work that may come when none can be started any more."""
        if self.max_threads is not None:
            self._started_queue()

    def close(self) -> None:
        """End the threads once the calls in the queue have run; a later call starts new ones."""
        with self._lock:
            queue, n_threads = self._queue, self._n_threads
            self._begin()
        for _ in range(n_threads):
            queue.put(None)

    def forget_threads(self) -> None:
        """Start anew in a forked child, which has none of the threads of its parent."""
        # Another thread may have held the lock at the moment of the fork: it is replaced as well.
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._queue, self._free, self._n_threads = SimpleQueue(), SimpleQueue(), 0

    def _started_queue(self) -> SimpleQueue[_Work | None]:
        """The queue, once a thread is there for one more call."""
        with self._lock:
            if self.max_threads is not None:
                # At once: some Python versions refuse new threads in atexit handlers.
                missing = self.max_threads - self._n_threads
            elif self._free.empty():
                missing = 1
            else:
                self._free.get()  # no other call counts on that thread
                missing = 0
            free = None if self.max_threads else self._free
            for _ in range(missing):
                start_daemon(partial(_work, self._queue, free), f"{self.name}-{self._n_threads}")
                self._n_threads += 1
            return self._queue


_pools: Final[WeakSet[DaemonPool]] = WeakSet()


def _forget_threads_of_all_pools() -> None:
    for pool in _pools:
        pool.forget_threads()


def _renew_locks_of_cached_properties() -> None:
    """Gives the cached properties of this package new locks, in a forked child.

    Python 3.11 has one lock for each cached property of a class, whichever object it is of. If a
    thread of the parent has it at the fork, nothing in the child would ever release it.
    """
    own = [module for name, module in list(sys.modules.items()) if name.startswith("claimspan")]
    kinds = {each for module in own for each in vars(module).values() if isinstance(each, type)}
    for each in [each for kind in kinds for each in vars(kind).values()]:
        if isinstance(each, cached_property):
            vars(each)["lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_threads_of_all_pools)
    if sys.version_info < (3, 12):
        os.register_at_fork(after_in_child=_renew_locks_of_cached_properties)


def _work(queue: SimpleQueue[_Work | None], free: SimpleQueue[None] | None) -> None:
    while (work := queue.get()) is not None:
        work()
        del work  # an idle thread keeps neither the arguments nor the result alive
        if free is not None:
            free.put(None)


def _execute(future: asyncio.Future[_T], call: Callable[[], _T]) -> None:
    """Runs the call and sets its outcome on the future, on the event loop of the future."""
    if future.cancelled():
        return
    try:
        set_outcome = partial(future.set_result, call())
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        outcome = error
        # A future refuses ``StopIteration``, a coroutine that catches ``GeneratorExit`` may not
        # await anything afterwards, and ``CancelledError`` would look like a cancellation of the
        # awaiting task.
        if isinstance(error, StopIteration | GeneratorExit | asyncio.CancelledError):
            outcome = RuntimeError(f"the function raised {type(error).__name__}")
            outcome.__cause__ = error
        set_outcome = partial(future.set_exception, outcome)
    with suppress(RuntimeError):  # the loop was closed: nothing awaits the outcome any more
        future.get_loop().call_soon_threadsafe(_set_unless_done, future, set_outcome)


def _set_unless_done(future: asyncio.Future[_T], set_outcome: _Work) -> None:
    if not future.done():
        set_outcome()


async def gather_or_cancel(calls: Sequence[Coroutine[object, None, _T]]) -> list[_T]:
    """Run coroutines concurrently; when one fails, cancel the others, and wait for their end.

    Returns the results in the order of the calls, or raises the first exception of one.
    """
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class SingleFlight(Generic[_T]):
    """Merges concurrent calls with the same key into one; each event loop has its own calls."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[AbstractEventLoop, dict[str, asyncio.Task[_T]]]
        self._loops = WeakKeyDictionary()

    async def run(self, key: str, start: Callable[[], Coroutine[object, None, _T]]) -> _T:
        """Wait for the call in flight with this key, or start one.

        A call is cancelled with the task that started it. A task that waited for a call which
        failed or was cancelled starts its own: the reason may be the other task's, such as its
        budget.
        """
        in_flight = self._loops.setdefault(asyncio.get_running_loop(), {})
        other = in_flight.get(key)
        if other is not None:
            await asyncio.wait([other])
            if not other.cancelled() and other.exception() is None:
                return other.result()
        call = in_flight[key] = asyncio.ensure_future(start())
        try:
            return await call
        finally:
            call.cancel()
            if in_flight.get(key) is call:
                del in_flight[key]


_last_calls: Final[list[_Work]] = []


def call_last_at_exit(function: _Work) -> None:
    """Call a function when the process ends, after every exit hook that we register elsewhere.

    Exit hooks run in reverse order, so what ends the threads of a judge must be registered before
    what drains the last records, though the judge's module may be imported after the drain began to
    wait. This module is imported by both, and registers its hook here.
    """
    _last_calls.append(function)


def _call_last() -> None:
    while _last_calls:
        _last_calls.pop()()


atexit.register(_call_last)
