"""Calls of a pipeline run on threads of their own; one that hangs holds up no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing.run.calls import Calls, CallTimeoutError


def test_a_call_that_hangs_holds_up_no_call_beside_it() -> None:
    released = threading.Event()

    async def both() -> list[object]:
        calls = Calls(2)
        await calls.run(threading.get_ident)
        hanging, quick = calls.run(released.wait, 1.0), calls.run(threading.get_ident, 60.0)
        # An idle thread is there for one of them; the other needs a thread of its own.
        found = await asyncio.gather(hanging, quick, return_exceptions=True)
        released.set()
        calls.close()
        return [*found, calls.left_behind]

    first, second, left_behind = asyncio.run(both())

    assert isinstance(first, CallTimeoutError)
    assert isinstance(second, int)
    assert left_behind == 1


def test_what_waits_for_a_place_is_not_counted_as_hanging() -> None:
    async def one_by_one() -> tuple[list[int], int]:
        calls = Calls(1)
        threads = await asyncio.gather(*(calls.run(threading.get_ident, 60.0) for _ in range(20)))
        calls.close()
        return threads, calls.left_behind

    threads, left_behind = asyncio.run(one_by_one())

    assert len(threads) == 20
    assert len(set(threads)) == 1
    assert left_behind == 0


@pytest.mark.parametrize("name", ["claimspan-run-0", "claimspan-run-loop"])
def test_after_a_thread_that_could_not_start_the_next_call_is_answered(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    class Answer:
        def __await__(self) -> Generator[None, None, str]:
            yield
            return "answered"

    async def one_after_the_other() -> str:
        calls = Calls(1)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ConfigError, match="no thread could be started"):
            await calls.run(Answer, 60.0)
        monkeypatch.undo()
        # What could not start would hold it up until its time is over.
        said: object = await calls.run(Answer, 60.0)
        calls.close()
        return str(said)

    assert asyncio.run(one_after_the_other()) == "answered"
