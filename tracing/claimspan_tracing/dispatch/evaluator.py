"""The evaluator: from a job to its outcome. It knows no span, so it works in any process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Final

from claimspan import GroundTruth, aevaluate
from claimspan.concurrency import DaemonPool
from claimspan.errors import BudgetExceededError, JudgeError
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan.judges import Judge
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.text import clean

__all__ = ["Evaluator"]

LOOKUP_THREADS: Final = 4
"""Synchronous ground-truth look-ups that run at once."""


class Evaluator:
    """Evaluates jobs: looks up the ground truth, asks the judge, and names what went wrong."""

    def __init__(self, judge: Judge, ground_truth: GroundTruth | None, guard: Guard) -> None:
        """Set who decides.

        Args:
            judge: Gives claims and verdicts.
            ground_truth: Responses known to be right; None evaluates what needs none.
            guard: Counts faults of the ground-truth look-up.
        """
        self._judge = judge
        self._ground_truth = ground_truth
        self._guard = guard
        self._pool = DaemonPool(LOOKUP_THREADS, name="claimspan-lookup")

    def prepare(self) -> None:
        """Start the threads of synchronous look-ups; see ``Dispatcher.start``."""
        if self._ground_truth is not None and self._ground_truth.is_blocking:
            self._pool.start()

    async def evaluate(self, job: Job, seconds: float) -> Outcome:
        """Evaluate a job.

        Args:
            job: What to evaluate.
            seconds: Time that the evaluation may take.
        """
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                match, reason = await self._find_ground_truth(job)
                return await self._judge_record(job, match, reason)
        except TimeoutError:
            return Outcome(status=Status.TIMEOUT, reason=f"no verdicts within {seconds:g} s")
        except BudgetExceededError as error:
            return Outcome(status=Status.OVER_BUDGET, reason=str(error))
        except JudgeError as error:
            return Outcome(status=Status.JUDGE_ERROR, reason=str(error))

    async def _judge_record(self, job: Job, match: GroundTruthMatch | None, reason: str) -> Outcome:
        record = job.record
        # The job keeps no ground truth: another worker may look it up in another version.
        if match is not None:
            record = record.model_copy(update={"ground_truth": match.text})
        evaluation = await aevaluate(record, judge=self._judge)
        return Outcome(
            status=Status.EVALUATED, reason=reason, evaluation=evaluation, ground_truth=match
        )

    async def _find_ground_truth(self, job: Job) -> tuple[GroundTruthMatch | None, str]:
        """The match, and why there is none where the look-up failed: other metrics still stand."""
        if self._ground_truth is None:
            return None, ""
        try:
            match = await self._ground_truth.find(
                job.record.query, job.record.metadata, run_blocking=self._run_blocking
            )
        except BaseException as error:  # the user's own look-up may raise anything
            if _is_cancelled(error):
                raise
            self._guard.swallow(error)
            return None, f"looking up the ground truth raised {type(error).__name__}"
        if match is None:
            return None, ""
        # The user's look-up may return what no exporter can encode.
        text = clean(match.text)
        return (match.model_copy(update={"text": text}) if text.strip() else None), ""

    async def _run_blocking(
        self,
        find: Callable[[str, Mapping[str, object]], object],
        query: str,
        metadata: Mapping[str, object],
    ) -> object:
        """Run a synchronous look-up on a thread, in a copy of this task's context.

        Instrumentation is suppressed there too: a look-up built on a framework is no query.
        """
        return await self._pool.run(find, query, metadata, context=copy_context())


def _is_cancelled(error: BaseException) -> bool:
    """Whether this task is being cancelled, and the error is not the look-up's own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and bool(task and task.cancelling())
