"""Has records judged in a process of its own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Final

from claimspan import Evaluation, RagRecord
from claimspan.cost.budget import Budget
from claimspan.cost.usage import metered
from claimspan.errors import JudgeError
from claimspan.evaluation.selection import Selection
from claimspan_tracing.dispatch.child_process import ChildProcess, ProcessEndedError
from claimspan_tracing.dispatch.frames import SetUp
from claimspan_tracing.dispatch.judge_errors import ChildJudgeError
from claimspan_tracing.dispatch.judge_spec import JudgeSpec
from claimspan_tracing.dispatch.pacing import CpuShare

__all__ = ["JudgeProcess", "Judging"]

Judging = Callable[[RagRecord], Awaitable[Evaluation]]
"""Evaluates a record; raises a ``JudgeError`` where the judge fails."""

START_SECONDS: Final = 60.0
"""How long a judge may take to be made: its module may import a framework."""

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds before a process that has died is started again; twice as long after each death in a
row, so that a judge that dies at once does not occupy the machine by starting."""

_logger: Final = logging.getLogger("claimspan")


class JudgeProcess:
    """The judging process of a monitor, and the ones that take its place.

    A record that is being judged when the process dies is judged once more, those one at a time:
    one of them may be what kills it. Runs on the judge's event loop, but for ``close``.
    """

    def __init__(
        self, specs: Sequence[JudgeSpec], selections: Sequence[Selection], max_cpu_share: float
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            specs: What the judges are made from.
            selections: What each of them measures.
            max_cpu_share: Share of a core that the process may take.
        """
        self._specs = tuple(specs)
        self._metrics = tuple(each.data() for each in selections)
        self._max_cpu_share = max_cpu_share
        self._pace = CpuShare(max_cpu_share)
        self._child: ChildProcess | None = None
        self._here: _OnLoop | None = None
        self._deaths = 0
        self._not_before = 0.0
        self._refusal = ""
        self._is_released = False
        self._is_closed = False
        self._warming: asyncio.Task[None] | None = None

    @property
    def cannot_start(self) -> bool:
        """Whether the last attempt to start the process, or to make its judge, has failed."""
        return bool(self._refusal)

    def judging(self, judge: int, budget: Budget | None) -> Judging:
        """Return what evaluates with one of the judges.

        Args:
            judge: Its place in the specs.
            budget: Bounds it; counted in this process.
        """
        return partial(self._evaluate, judge, budget)

    def count_with(self, pace: CpuShare) -> None:
        """Have the CPU time of the process counted, too, by what counts this one's."""
        self._pace = pace

    def warm_up(self) -> None:
        """Start the process before the first record is to be judged."""
        self._warming = asyncio.get_running_loop().create_task(self._warm_up())

    def release(self) -> None:
        """Judge with the whole of a core from now on."""
        self._is_released = True
        if self._child is not None:
            self._child.release()

    def close(self, timeout: float) -> None:
        """End the process, and wait for its end; on any thread."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill(timeout)

    async def _warm_up(self) -> None:
        # Whoever judges next is told what went wrong.
        try:
            await self._running()
        except JudgeError as error:
            _logger.warning("claimspan: the judging process did not start: %s", error)

    async def _evaluate(self, judge: int, budget: Budget | None, record: RagRecord) -> Evaluation:
        with metered():  # the budget knows the calls of a record by its meter
            try:
                return await self._ask(judge, budget, record)
            except ProcessEndedError:
                pass
            async with self._on_loop().again:
                try:
                    return await self._ask(judge, budget, record)
                except ProcessEndedError as error:
                    reason = f"{error}, twice while this record was judged"
                    raise ChildJudgeError(reason, is_ours=True) from error

    async def _ask(self, judge: int, budget: Budget | None, record: RagRecord) -> Evaluation:
        child = await self._running()
        question = child.new_question(judge, budget, copy_context())
        evaluation = await child.judge(question, record)
        self._deaths = 0
        return evaluation

    async def _running(self) -> ChildProcess:
        """Return the process, after it was started where there is none."""
        async with self._on_loop().starting:
            child = self._child
            if child is None or child.has_ended:
                child = await self._started()
        return child

    async def _started(self) -> ChildProcess:
        if self._child is not None:
            self._note_death()
        pause = self._not_before - time.monotonic()
        if pause > 0 and self._refusal:  # the same judge cannot be made now either
            raise ChildJudgeError(self._refusal, is_ours=True)
        await asyncio.sleep(pause)
        if self._is_closed:
            raise ProcessEndedError("the monitor was shut down")
        set_up = SetUp(
            judges=self._specs,
            metrics=self._metrics,
            max_cpu_share=1.0 if self._is_released else self._max_cpu_share,
            log_level=_logger.getEffectiveLevel(),
        )
        try:
            child = ChildProcess(set_up, self._pace)
        except (OSError, RuntimeError, ValueError) as error:  # also where the interpreter is ending
            raise self._refused(f"it cannot be started ({type(error).__name__})") from error
        self._child = child
        try:
            async with asyncio.timeout(START_SECONDS):
                await child.ready
        except TimeoutError:
            child.kill()
            raise self._refused(f"its judge was not made within {START_SECONDS:g} s") from None
        except ChildJudgeError as error:
            raise self._refused(str(error)) from error
        self._refusal = ""
        if self._is_released:  # while it was started
            child.release()
        return child

    def _note_death(self) -> None:
        """Set when the next process may start, once for each that has ended."""
        self._child = None
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**self._deaths)
        self._deaths += 1
        self._not_before = time.monotonic() + pause
        _logger.warning("claimspan: the judging process has ended; the next starts in %g s", pause)

    def _refused(self, reason: str) -> ChildJudgeError:
        self._note_death()
        self._refusal = f"the judging process: {reason}"
        return ChildJudgeError(self._refusal, is_ours=True)

    def _on_loop(self) -> _OnLoop:
        """Return the locks; anew on another loop, where a thread that hangs was given up."""
        here = self._here
        if here is None or here.loop is not asyncio.get_running_loop():
            if self._child is not None:
                self._child.kill()
            self._child, self._here = None, (here := _OnLoop())
        return here


class _OnLoop:
    """What belongs to one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.starting = asyncio.Lock()
        """Held while a process is started."""
        self.again = asyncio.Lock()
        """Held while a record is judged once more."""
