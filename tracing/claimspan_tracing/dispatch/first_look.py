"""The first look: a cheap judge's scores, for records that the sampler could not decide without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from claimspan import aevaluate
from claimspan.cost.budget import Budget
from claimspan.errors import BudgetExceededError
from claimspan.evaluation.selection import Selection
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.dispatch.process import Judging
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job

__all__ = ["FirstLook", "first_look_of"]

FIRST_SECONDS: Final = 30.0
"""How long the first judge may take. It is meant to be cheap; one that hangs must not take the
time of the real judge, too."""


FIRST_METRICS: Final = Selection.of("all")
"""What the first judge measures: a rule may ask for any of them, and it has no ground truth."""


class FirstLook:
    """Has the sampler's first judge evaluate jobs, and the sampler decide on its scores."""

    def __init__(self, judging: Judging, decider: Decider, guard: Guard) -> None:
        """Set who scores and who decides.

        Args:
            judging: Has the sampler's first judge evaluate a record.
            decider: Asks the sampler.
            guard: Counts what the judge raises.
        """
        self._judging = judging
        self._decider = decider
        self._guard = guard

    async def decide(self, job: Job, seconds: float) -> Decision:
        """Decide about a job that was dispatched undecided.

        Args:
            job: Its decision is undecided.
            seconds: Time that is left for the job.

        Raises:
            BudgetExceededError: The budget has too little left for the first judge.
        """
        scores = await self._scores(job, min(seconds, FIRST_SECONDS))
        before = job.decision or Decision(sampled=True, rate=1.0, reason="", undecided=True)
        return self._decider.decide_scored(replace(job.facts, first_scores=scores), before)

    async def _scores(self, job: Job, seconds: float) -> Mapping[str, float]:
        """The metrics by the first judge; none where it fails, which the sampler then sees."""
        try:
            # Without a ground truth: a look-up may cost more than this judge.
            async with asyncio.timeout(seconds):
                evaluation = await self._judging(job.record)
            return evaluation.metrics
        except BudgetExceededError:
            raise
        except BaseException as error:  # a judge of the user's may raise anything
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                raise
            self._guard.swallow(error)
            return {}


def first_look_of(
    decider: Decider, guard: Guard, budget: Budget | None = None, judging: Judging | None = None
) -> FirstLook | None:
    """Return the first look that a decider's sampler asks for; None where it has no first judge.

    Args:
        decider: Asks the sampler.
        guard: Counts what the judge raises.
        budget: Bounds the first judge, beside a budget of its own.
        judging: Has the first judge evaluate a record under the budget; None does it here.
    """
    judge = decider.first_judge
    if judge is None:
        return None
    judging = judging or partial(aevaluate, judge=judge, metrics=FIRST_METRICS, budget=budget)
    return FirstLook(judging, decider, guard)
