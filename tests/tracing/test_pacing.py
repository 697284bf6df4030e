"""Evaluations take a bounded share of a core, and leave the interpreter to the application.

Row L3 of the reliability matrix; its figures are measured by ``tests/benchmarks/host_latency.py``.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from typing import TypeVar

import pytest

from claimspan import Claim, VerdictMatrix
from claimspan.errors import ConfigError
from claimspan.judges import LexicalJudge
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.judging import JudgeThread
from claimspan_tracing.dispatch.pacing import LONGEST_REST, CpuShare
from claimspan_tracing.guard import Guard
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain

_T = TypeVar("_T")


class Clock:
    """CPU time that a test takes by saying so, and the rests that follow."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rests: list[float] = []

    def work(self, seconds: float) -> None:
        self.now += seconds


def paced(coroutine: Coroutine[object, object, _T], pace: CpuShare) -> _T:
    """Run a coroutine on an event loop of its own that is paced."""
    loop = asyncio.new_event_loop()
    pace.install(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def of(clock: Clock, share: float) -> CpuShare:
    return CpuShare(
        share,
        clock=lambda: clock.now,
        wall=lambda: clock.now + sum(clock.rests),
        sleep=clock.rests.append,
    )


async def steps(clock: Clock, *seconds: float) -> None:
    for each in seconds:
        await asyncio.sleep(0)
        clock.work(each)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_the_rests_keep_the_share(share: float) -> None:
    clock = Clock()

    paced(steps(clock, *[0.002] * 50), of(clock, share))

    assert clock.now / (clock.now + sum(clock.rests)) == pytest.approx(share, rel=0.05)


def test_the_whole_of_a_core_needs_no_rest() -> None:
    clock = Clock()

    paced(steps(clock, *[0.002] * 50), of(clock, 1.0))

    assert clock.rests == []


def test_a_long_step_is_rested_for_in_parts_so_that_timers_are_not_late() -> None:
    clock = Clock()

    paced(steps(clock, 0.1, *[0.0] * 10), of(clock, 0.25))

    assert max(clock.rests) <= LONGEST_REST
    assert sum(clock.rests) == pytest.approx(0.3)


def test_no_rest_is_owed_after_a_release() -> None:
    clock = Clock()
    pace = of(clock, 0.25)

    async def work() -> None:
        await steps(clock, 1.0, 0.0)
        pace.release()
        clock.rests.clear()
        await steps(clock, 1.0, 0.0, 0.0)

    paced(work(), pace)

    assert clock.rests == []


def test_tasks_of_a_paced_loop_do_what_tasks_do() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError("expected")

    async def work() -> list[object]:
        variable.set("set")
        hanging = asyncio.create_task(asyncio.sleep(60), name="hanging")
        await asyncio.sleep(0)
        hanging.cancel()
        cancelled, failed, seen = await asyncio.gather(
            hanging, fail(), asyncio.to_thread(variable.get), return_exceptions=True
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        return [hanging.get_name(), type(cancelled), type(failed), seen]

    wanted = ["hanging", asyncio.CancelledError, LookupError, "set"]
    assert paced(work(), CpuShare(0.5)) == wanted


def test_the_lexical_judge_makes_many_steps_of_many_claims() -> None:
    clock = Clock()
    pace = of(clock, 0.5)
    rested = 0

    def rest(cores: int = 1) -> bool:
        nonlocal rested
        rested += cores
        return False

    pace.rest = rest  # type: ignore[method-assign]  # - counts the steps
    claims = [Claim(text=f"The bridge number {n} has {n} arches.") for n in range(500)]
    references = [f"The bridge number {n} has {n + 1} arches." for n in range(10)]
    matrix = paced(LexicalJudge().check(claims, references), pace)

    # A step is a millisecond, and all of them are hundreds.
    assert matrix.shape == (500, 10)
    assert rested >= 20


def test_a_thread_that_evaluates_takes_its_share_of_a_core() -> None:
    figures: list[tuple[float, float]] = []

    def evaluate() -> None:
        claims = [Claim(text=f"The bridge has {n} arches.") for n in range(10)]
        references = ["The bridge has 3 arches, and was built in 1890. " * 8] * 5
        cpu, wall = time.thread_time(), time.perf_counter()
        paced(LexicalJudge().check(claims, references), CpuShare(0.1))
        figures.append((time.thread_time() - cpu, time.perf_counter() - wall))

    thread = threading.Thread(target=evaluate)
    thread.start()
    thread.join()

    ((cpu, wall),) = figures
    assert cpu / wall < 0.3


class ManySteps(ScriptedJudge):
    """A judge that computes for a moment, a thousand times."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        for _ in range(1_000):
            await asyncio.sleep(0)
            sorted(range(1_000))
        return await super().check(claims, references, question=question)


def test_a_shutdown_does_not_rest() -> None:
    # At this share each of the thousand steps would rest for as long as a rest may take, 50 s.
    with InMemoryMonitor(judge=ManySteps(), max_cpu_share=0.0001) as monitor:
        rag_chain().invoke("the question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        assert monitor.shutdown(20)

    assert monitor.stats.evaluated == 1


@pytest.mark.parametrize("share", [0, -0.1, 1.5, float("nan"), True, "0.5"])
def test_a_share_that_is_none_is_refused_at_set_up(share: float) -> None:
    with pytest.raises(ConfigError, match="max_cpu_share is"):
        Monitor("lexical", max_cpu_share=share)


def test_after_a_long_step_the_queue_is_looked_at_once_however_many_jobs_came() -> None:
    clock, looks, is_over = Clock(), list[None](), threading.Event()
    pace, guard = of(clock, 0.25), Guard()
    pace.begin()
    clock.work(10.0)  # of a judge, in one step
    pace.rest()

    def look() -> None:
        looks.append(None)

    evaluator = Evaluator(ScriptedJudge(), None, guard)
    thread = JudgeThread(look, evaluator, lambda _job, _outcome: None, guard, pace)
    for _ in range(100):
        done = threading.Event()
        thread.fill()
        thread.call(done.set)
        assert done.wait(10)
    pace.release()
    # Behind all timers that were set before.
    thread.call(lambda: asyncio.get_running_loop().call_later(2 * LONGEST_REST, is_over.set))
    assert is_over.wait(10)
    thread.stop(10)

    assert len(looks) == 1
