"""Blocking functions on daemon threads: what reaches the event loop, and what may not break."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Final, NoReturn

import pytest

from claimspan.concurrency import DaemonPool
from claimspan.errors import ConfigError

TENANT: Final[ContextVar[str]] = ContextVar("tenant", default="nobody")


@pytest.fixture
def pool() -> Iterator[DaemonPool]:
    pool = DaemonPool(2, name="test-pool")
    yield pool
    pool.close()
    # The next test counts threads of this name.
    wait_until(lambda: not threads_of("test-pool"))


def threads_of(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(name)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def raises(error: BaseException) -> Callable[[], NoReturn]:
    def function() -> NoReturn:
        raise error

    return function


# --- results and errors ---


async def test_a_function_runs_with_its_arguments_on_a_thread_of_the_pool(pool: DaemonPool) -> None:
    def function(left: int, right: int) -> tuple[int, str]:
        return left - right, threading.current_thread().name

    difference, thread = await pool.run(function, 5, 3)

    assert difference == 2
    assert thread.startswith("test-pool-")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
async def test_every_exception_reaches_the_task_and_leaves_the_threads_alive(
    pool: DaemonPool, error: BaseException
) -> None:
    for _ in range(3):
        with pytest.raises(type(error)) as caught:
            await pool.run(raises(error))
        assert caught.value is error

    assert await pool.run(lambda: "alive") == "alive"
    assert len(threads_of("test-pool")) == 2


@pytest.mark.parametrize("error", [StopIteration(4), GeneratorExit(), asyncio.CancelledError()])
async def test_an_exception_that_means_something_else_to_a_task_is_the_cause_of_another(
    pool: DaemonPool, error: BaseException
) -> None:
    with pytest.raises(RuntimeError, match=f"raised {type(error).__name__}") as caught:
        await pool.run(raises(error))

    assert caught.value.__cause__ is error


# --- threads ---


def test_no_thread_starts_before_the_first_call() -> None:
    pool = DaemonPool(2, name="unused-pool")

    assert threads_of("unused-pool") == []

    asyncio.run(pool.run(int))
    assert [each.daemon for each in threads_of("unused-pool")] == [True, True]
    pool.close()


async def test_as_many_functions_run_at_once_as_there_are_threads(pool: DaemonPool) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def function() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1

    await asyncio.gather(*(pool.run(function) for _ in range(6)))

    assert most == 2
    assert len(threads_of("test-pool")) == 2


async def test_the_event_loop_goes_on_while_a_function_blocks(pool: DaemonPool) -> None:
    released = threading.Event()
    blocked = asyncio.ensure_future(pool.run(released.wait, 5))

    await asyncio.sleep(0.01)
    assert not blocked.done()
    released.set()

    assert await blocked


def test_a_pool_without_threads_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_threads is 0: give 1 or more"):
        DaemonPool(0)


def test_closing_ends_the_threads_and_a_later_call_starts_new_ones() -> None:
    pool = DaemonPool(2, name="closed-pool")
    asyncio.run(pool.run(int))

    pool.close()

    wait_until(lambda: threads_of("closed-pool") == [])
    assert asyncio.run(pool.run(lambda: "again")) == "again"
    pool.close()


def test_one_pool_serves_event_loops_of_several_threads(pool: DaemonPool) -> None:
    results: list[int] = []

    def serve(number: int) -> None:
        results.append(asyncio.run(pool.run(lambda: number * 2)))

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert sorted(results) == [number * 2 for number in range(8)]


# --- tasks and loops that end early ---


async def test_a_cancelled_task_breaks_no_thread(pool: DaemonPool) -> None:
    released = threading.Event()
    tasks = [asyncio.ensure_future(pool.run(released.wait, 5)) for _ in range(2)]
    await asyncio.sleep(0.01)

    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    released.set()

    assert [type(each) for each in ended] == [asyncio.CancelledError] * 2
    assert await pool.run(lambda: "alive") == "alive"


async def test_a_call_that_was_cancelled_in_the_queue_never_runs(pool: DaemonPool) -> None:
    released, called = threading.Event(), threading.Event()
    blocked = [asyncio.ensure_future(pool.run(released.wait, 5)) for _ in range(2)]
    queued = asyncio.ensure_future(pool.run(called.set))
    await asyncio.sleep(0.01)

    queued.cancel()
    released.set()
    await asyncio.gather(*blocked)
    await asyncio.gather(*(pool.run(int) for _ in range(4)))

    assert not called.is_set()


def test_a_closed_loop_breaks_no_thread(pool: DaemonPool) -> None:
    released = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.run(released.wait, 5), 0.01)

    asyncio.run(give_up())
    asyncio.run(give_up())  # both threads are in functions of closed loops
    released.set()

    assert asyncio.run(pool.run(lambda: "alive")) == "alive"
    assert len(threads_of("test-pool")) == 2


def test_an_outcome_for_a_loop_that_was_closed_under_its_task_is_discarded(
    pool: DaemonPool,
) -> None:
    released = threading.Event()
    loop = asyncio.new_event_loop()
    task = loop.create_task(pool.run(released.wait, 5))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()

    released.set()

    assert asyncio.run(pool.run(lambda: "alive")) == "alive"
    assert not task.done()


# --- context variables ---


async def test_a_function_runs_in_an_empty_context(pool: DaemonPool) -> None:
    TENANT.set("tenant of the request")

    assert await pool.run(TENANT.get) == "nobody"


async def test_a_function_runs_in_the_context_that_is_given(pool: DaemonPool) -> None:
    TENANT.set("tenant of the request")
    context = copy_context()

    assert await pool.run(TENANT.get, context=context) == "tenant of the request"
    await pool.run(lambda: TENANT.set("set by the function"), context=context)
    assert context[TENANT] == "set by the function"
    assert TENANT.get() == "tenant of the request"


# --- processes ---


def run_script(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_function_that_never_returns_does_not_keep_the_process_alive() -> None:
    script = """
import asyncio, threading
from claimspan.concurrency import DaemonPool

async def main():
    try:
        await asyncio.wait_for(DaemonPool(1).run(threading.Event().wait), 0.05)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    assert run_script(script) == "given up\n"


def test_an_exit_handler_can_still_run_functions() -> None:
    script = """
import asyncio, atexit
from claimspan.concurrency import DaemonPool

pool = DaemonPool(2)
asyncio.run(pool.run(int))
atexit.register(lambda: print(asyncio.run(pool.run(lambda: "looked up at exit"))))
"""
    assert run_script(script) == "looked up at exit\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    script = """
import asyncio, os, warnings
from claimspan.concurrency import DaemonPool

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
pool = DaemonPool(2)
asyncio.run(pool.run(int))
pool._lock.acquire()  # as if another thread was starting threads at this moment
pid = os.fork()
if pid == 0:
    print("child", asyncio.run(asyncio.wait_for(pool.run(os.getpid), 5)) == os.getpid(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
pool._lock.release()
print("parent", asyncio.run(pool.run(os.getpid)) == os.getpid())
"""
    assert run_script(script) == "child True\nparent True\n"


# --- as many threads as calls ---


@pytest.fixture
def growing() -> Iterator[DaemonPool]:
    growing = DaemonPool(None, name="growing-pool")
    yield growing
    growing.close()
    wait_until(lambda: not threads_of("growing-pool"))


async def test_without_a_number_a_function_that_never_returns_holds_up_no_other(
    growing: DaemonPool,
) -> None:
    end = threading.Event()
    hung = [asyncio.ensure_future(growing.run(end.wait)) for _ in range(20)]
    await asyncio.sleep(0)

    assert await asyncio.wait_for(growing.run(lambda: "done"), 5) == "done"
    assert len(threads_of("growing-pool")) == 21
    end.set()
    assert await asyncio.gather(*hung) == [True] * 20


async def test_without_a_number_a_thread_that_is_free_takes_the_next_call(
    growing: DaemonPool,
) -> None:
    for _ in range(50):
        assert await growing.run(lambda: "done") == "done"
        await asyncio.sleep(0.001)  # the thread is free a moment after its result is there

    assert len(threads_of("growing-pool")) <= 2


async def test_without_a_number_a_pool_starts_anew_once_it_was_closed(growing: DaemonPool) -> None:
    await growing.run(lambda: "done")
    growing.close()
    wait_until(lambda: not threads_of("growing-pool"))

    assert await growing.run(lambda: "done") == "done"
