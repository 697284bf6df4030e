"""The evaluator: from a job to its outcome. It knows no span, so it works in any process.

A sampler may have a cheap judge of its own, which looks first and decides what is evaluated.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Final

from claimspan import Evaluation, GroundTruth, aevaluate
from claimspan.concurrency import DaemonPool
from claimspan.cost.budget import Budget
from claimspan.errors import BudgetExceededError, JudgeError, JudgeUnavailableError
from claimspan.evaluation.evaluate import with_functions
from claimspan.evaluation.selection import Selection
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan.judges import Judge
from claimspan.metrics.truths import NO_GROUND_TRUTH
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.process import Judging, is_raised_by_us
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.redact.redaction import Redaction
from claimspan_tracing.suppression import suppress
from claimspan_tracing.text import clean

__all__ = ["FAILED_INSIDE", "Evaluator", "FirstLook", "first_look_of"]

FIRST_SECONDS: Final = 30.0
"""How long the first judge may take. It is meant to be cheap; one that hangs must not take the
time of the real judge, too."""


FIRST_METRICS: Final = Selection.of("all")
"""What the first judge measures: a rule may ask for any of them, and it has no ground truth."""


FirstLook = Callable[[Job, float], Awaitable[Decision]]
"""Decides about a job that was dispatched undecided, within so many seconds; raises
``BudgetExceededError`` if the budget has too little left for the first judge."""


def first_look_of(
    decider: Decider, guard: Guard, budget: Budget | None = None, judging: Judging | None = None
) -> FirstLook | None:
    """Return the first look that a decider's sampler asks for; None if it has no first judge."""
    judge = decider.first_judge
    if judge is None:
        return None
    judging = judging or partial(aevaluate, judge=judge, metrics=FIRST_METRICS, budget=budget)
    return partial(_decide_first, judging, decider, guard)


async def _decide_first(
    judging: Judging, decider: Decider, guard: Guard, job: Job, seconds: float
) -> Decision:
    scores: Mapping[str, float] = {}
    try:
        # Without a ground truth: a look-up may cost more than this judge.
        async with asyncio.timeout(min(seconds, FIRST_SECONDS)):
            scores = (await judging(job.record)).metrics
    except BudgetExceededError:
        raise
    except BaseException as error:  # a judge of the user's may raise anything
        if _is_cancelled(error):
            raise
        guard.swallow(error)  # the sampler sees that there are no scores
    before = job.decision or Decision(sampled=True, rate=1.0, reason="", undecided=True)
    return decider.decide_scored(replace(job.facts, first_scores=scores), before)


LOOKUP_THREADS: Final = 8
"""Synchronous ground-truth look-ups that run at once."""

LOOKUP_SECONDS: Final = 10.0
"""How long a record waits for its ground truth. One look-up that hangs would otherwise keep an
evaluation for minutes, and a few of them all others."""

FAILED_INSIDE: Final = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
"""The outcome of a job on which something failed that is caught nowhere else."""


@dataclass(eq=False)
class Evaluator:
    """Evaluates jobs: looks up the ground truth, asks the judge, and names what went wrong."""

    judge: InitVar[Judge]
    ground_truth: GroundTruth | None
    """Without it, metrics that need one are not measured."""
    guard: Guard
    first_look: FirstLook | None = None
    """Decides about jobs that were dispatched undecided; None evaluates them."""
    redaction: Redaction | None = None
    """Redacts ground truths and outcomes."""
    budget: InitVar[Budget | None] = None
    judging: Judging | None = None
    """Has the judge evaluate a record under the budget; None does it here."""
    selection: Selection = field(default_factory=Selection.of)
    """The metrics to measure."""

    def __post_init__(self, judge: Judge, budget: Budget | None) -> None:
        here = partial(aevaluate, judge=judge, metrics=self.selection.in_judge, budget=budget)
        self._judging: Judging = self.judging or here
        self._pool = DaemonPool(LOOKUP_THREADS, name="claimspan-lookup")
        # Calls that were given up after ``LOOKUP_SECONDS`` and still occupy a thread.
        self._hanging: list[threading.Event] = []

    def prepare(self) -> None:
        """Start the threads of look-ups and redactors; see ``Dispatcher.start``."""
        is_blocking = self.ground_truth is not None and self.ground_truth.is_blocking
        if is_blocking or self.redaction is not None:
            self._pool.start()

    def close(self) -> None:
        """End the threads of synchronous look-ups."""
        self._pool.close()

    async def conclude(self, job: Job, seconds: float) -> Outcome:
        """Evaluate a job within some time; the work of a task in a context of its own.

        Whatever is raised becomes an outcome, and what must not be seen is taken out of that.
        Instrumentation is suppressed: the judge's requests stay out of the application's traces,
        and a judge that is built on a framework is not captured as a query.
        """
        suppress()
        try:
            outcome = await self._decided(job, seconds)
            if self.redaction is None:
                return outcome
            return await self._pool.run(self.redaction.apply_to_outcome, job, outcome, self.guard)
        except asyncio.CancelledError:  # by us: the core turns a judge's own into an error
            return Outcome(status=Status.SHUTDOWN)
        except BaseException as error:  # noqa: BLE001 - on our own thread no other code can receive it
            self.guard.swallow(error)
            return FAILED_INSIDE

    async def _decided(self, job: Job, seconds: float) -> Outcome:
        """Let a first judge decide about a job that was dispatched undecided, then evaluate it."""
        if job.decision is None or not job.decision.undecided:
            return await self._evaluate(job, seconds)
        if self.first_look is None:
            # A job of another process, from the spool: what would have become of records like it is
            # not known here, so it has no part in means.
            decision = replace(job.decision, undecided=False, counts=False)
            return replace(await self._evaluate(job, seconds), decision=decision)
        # Both judges share the time of the job.
        began = time.monotonic()
        try:
            decision = await self.first_look(job, seconds)
        except BudgetExceededError as error:
            return Outcome(status=Status.OVER_BUDGET, reason=str(error))
        if not decision.sampled:
            return Outcome(status=decision.status or Status.NOT_SAMPLED, decision=decision)
        left = max(0.0, seconds - (time.monotonic() - began))
        outcome = await self._evaluate(job, left)
        return replace(outcome, decision=decision)

    async def _evaluate(self, job: Job, seconds: float) -> Outcome:
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                match, reason = await self._find_ground_truth(job)
                return await self._judge_record(job, match, reason)
        except TimeoutError:
            if not deadline.expired():  # of other code
                raise
            return Outcome(status=Status.TIMEOUT, reason=f"no verdicts within {seconds:g} s")
        except BudgetExceededError as error:
            return Outcome(status=Status.OVER_BUDGET, reason=str(error))
        except JudgeError as error:
            unavailable = isinstance(error, JudgeUnavailableError)
            reason = str(error)
            if not (job.capture_content or is_raised_by_us(error)):
                reason = f"the judge raised {type(error).__name__}"
            return Outcome(status=Status.JUDGE_ERROR, reason=reason, unavailable=unavailable)
        except Exception:  # a fault of ours, which the thread counts
            raise
        except BaseException as error:
            if _is_cancelled(error):
                raise
            # The core passes these on to its caller, which may be an application. On this thread
            # there is none, so the judge has failed.
            reason = f"the judge raised {type(error).__name__}"
            return Outcome(status=Status.JUDGE_ERROR, reason=reason)

    async def _judge_record(self, job: Job, match: GroundTruthMatch | None, reason: str) -> Outcome:
        record, redaction = job.record, self.redaction
        # The job keeps no ground truth: another worker may look it up in another version.
        if match is not None:
            text: str | None = match.text
            if redaction is not None and not redaction.spares_judge:
                text = await self._pool.run(redaction.apply_to_text, match.text, self.guard)
            if text is None:
                match, reason = None, "the redactor failed on the ground truth"
            record = record.model_copy(update={"ground_truth": text})
        evaluation = with_functions(await self._judging(record), self.selection)
        status, why = _state_of(evaluation)
        return Outcome(
            status=status, reason=why or reason, evaluation=evaluation, ground_truth=match
        )

    async def _find_ground_truth(self, job: Job) -> tuple[GroundTruthMatch | None, str]:
        """The match, and why there is none if the look-up failed: other metrics still stand."""
        if self.ground_truth is None:
            return None, ""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                match = await self.ground_truth.find(
                    job.record.query, job.record.metadata, run_blocking=self._run_blocking
                )
        except BaseException as error:  # the user's own look-up may raise anything
            if _is_cancelled(error):
                raise
            self.guard.swallow(error)
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
        self._hanging = [each for each in self._hanging if each.is_set()]
        if len(self._hanging) >= LOOKUP_THREADS:
            raise TimeoutError(f"{LOOKUP_THREADS} look-ups hang, and no thread is left for more")
        is_running = threading.Event()

        def call() -> object:
            is_running.set()
            try:
                return find(query, metadata)
            finally:
                is_running.clear()

        try:
            return await self._pool.run(call, context=copy_context())
        finally:
            if is_running.is_set():
                self._hanging.append(is_running)


def _state_of(evaluation: Evaluation) -> tuple[Status, str]:
    if evaluation.metrics:
        return Status.EVALUATED, ""
    if evaluation.undefined and {*evaluation.undefined.values()} == {NO_GROUND_TRUTH}:
        return Status.NO_GROUND_TRUTH, "each of the chosen metrics needs a ground truth"
    if evaluation.response_claims:
        if failure := evaluation.why_undecided:
            return Status.JUDGE_ERROR, failure
        # A judge that is not sure, or did not get all of the context, has not failed.
        reasons = dict.fromkeys((*evaluation.undecided, *evaluation.undefined.values()))
        return Status.EVALUATED, f"no score has a value: {next(iter(reasons), 'none was chosen')}"
    if evaluation.abstained:
        return Status.NO_ANSWER, "the response declines to answer"
    return Status.NO_ANSWER, "the response makes no claim"


def _is_cancelled(error: BaseException) -> bool:
    """Whether this task is being cancelled, and the error is not the look-up's own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and bool(task and task.cancelling())
