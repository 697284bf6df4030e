"""Whatever a judge or a look-up raises, its record reaches a state, and the next ones are judged.

Row F11 of the reliability matrix, for the user's code that runs on our threads.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NoReturn

import pytest

from claimspan import Claim, VerdictMatrix
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes


class OfTheUsersError(BaseException):
    """An error that inherits from nothing that anybody catches."""


def group() -> BaseException:
    return BaseExceptionGroup("of a judge", [KeyboardInterrupt(), ValueError()])


ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "BaseExceptionGroup": group,
    "ExceptionGroup": lambda: ExceptionGroup("of a judge", [ValueError()]),
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "TimeoutError": TimeoutError,
    "RecursionError": RecursionError,
    "OfTheUsersError": OfTheUsersError,
}

Error = Callable[[], BaseException]
Raise = Callable[[Error], Awaitable[object]]


async def at_once(error: Error) -> NoReturn:
    raise error()


async def after_a_pause(error: Error) -> NoReturn:
    await asyncio.sleep(0)
    raise error()


async def in_a_task(error: Error) -> object:
    return await asyncio.gather(after_a_pause(error), asyncio.sleep(0.01))


async def in_a_task_group(error: Error) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(after_a_pause(error))
        tasks.create_task(asyncio.sleep(0.01))


async def on_a_thread(error: Error) -> object:
    def call() -> NoReturn:
        raise error()

    # A bound: what asyncio does not carry from a thread to its future would be awaited for ever.
    return await asyncio.wait_for(asyncio.to_thread(call), 0.5)


WAYS: Final[list[Raise]] = [at_once, after_a_pause, in_a_task, in_a_task_group, on_a_thread]


# From Python 3.12 on this is true of a thread as well.
CLOSES_WHAT_AWAITS: Final[Sequence[Raise]] = (
    (in_a_task, on_a_thread) if sys.version_info >= (3, 12) else (in_a_task,)
)


def is_no_error(error: Error, way: Raise) -> bool:
    """A task group takes the cancellation of one of its tasks for its end."""
    return error is asyncio.CancelledError and way is in_a_task_group


class FailingOnce(ScriptedJudge):
    """A judge that raises in one of its calls for the first record."""

    def __init__(self, error: Error, place: str, way: Raise) -> None:
        super().__init__()
        self._failing = error
        self._place = place
        self._way = way

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await self._fail("extract_claims", question)
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        await self._fail("check", question)
        return await super().check(claims, references, question=question)

    async def _fail(self, place: str, question: str | None) -> None:
        if place == self._place and question == "first":
            await self._way(self._failing)


def run(monitor: Monitor, query: str) -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def states(monitor: Monitor, spans: Spans) -> list[object]:
    """The states of a first record that fails, and of a second one."""
    run(monitor, "first")
    assert monitor.engine.wait_until_idle(20)
    run(monitor, "second")
    assert monitor.engine.wait_until_idle(20)
    monitor.flush()
    assert monitor.stats.pending == 0
    return [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("place", ["extract_claims", "check"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=list(ERRORS))
def test_a_judge_that_raises_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: Error, place: str, way: Raise
) -> None:
    monitor = make_monitor(judge=FailingOnce(error, place, way))

    found = states(monitor, spans)

    make_monitor.expected_faults = monitor.stats.faults
    if is_no_error(error, way):
        assert found == ["evaluated", "evaluated"]
    else:
        assert found == ["judge_error", "evaluated"]
        assert attributes(spans.roots[0])["claimspan.evaluation.reason"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("error", ERRORS.values(), ids=list(ERRORS))
def test_an_asynchronous_look_up_that_raises_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: Error, way: Raise
) -> None:
    async def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        if query == "first":
            await way(error)
        return "The truth is here."

    monitor = make_monitor(ground_truth=look_up)

    found = states(monitor, spans)

    make_monitor.expected_faults = monitor.stats.faults
    reason = attributes(spans.roots[0]).get("claimspan.evaluation.reason", "")
    if is_no_error(error, way):
        assert (found, reason) == (["evaluated", "evaluated"], "")
    elif error is GeneratorExit and way in CLOSES_WHAT_AWAITS:
        # asyncio throws it into whoever awaits the task, and Python closes every coroutine of ours
        # on the way: the evaluation cannot go on.
        assert found == ["judge_error", "evaluated"]
    else:
        assert found == ["evaluated", "evaluated"]
        assert str(reason).startswith("looking up the ground truth raised")
        assert monitor.stats.faults >= 1


@pytest.mark.parametrize("error", ERRORS.values(), ids=list(ERRORS))
def test_a_synchronous_look_up_that_raises_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: Error
) -> None:
    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        if query == "first":
            raise error()
        return "The truth is here."

    monitor = make_monitor(ground_truth=look_up)

    assert states(monitor, spans) == ["evaluated", "evaluated"]
    make_monitor.expected_faults = 1
    reason = attributes(spans.roots[0])["claimspan.evaluation.reason"]
    assert str(reason).startswith("looking up the ground truth raised")


@pytest.mark.parametrize("place", ["name", "version"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=list(ERRORS))
def test_a_judge_whose_name_cannot_be_read_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: Error, place: str
) -> None:
    class Nameless(ScriptedJudge):
        is_ready = False

        def __getattribute__(self, name: str) -> object:
            if name == place and type(self).is_ready:
                raise error()
            return super().__getattribute__(name)

    monitor = make_monitor(judge=Nameless())
    Nameless.is_ready = True
    run(monitor, "first")
    assert monitor.engine.wait_until_idle(20)
    monitor.flush()
    make_monitor.expected_faults = monitor.stats.faults

    assert monitor.stats.pending == 0
    assert attributes(spans.root)["claimspan.evaluation.status"] == "judge_error"
