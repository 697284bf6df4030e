"""A worker app of a user's own: its judge does what environment and questions tell it to.

Celery loads this module in a process of its own: ``celery -A judging_worker worker``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from claimspan import Claim, VerdictMatrix
from claimspan.errors import JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_celery import WorkerLimits, make_worker_app

__all__ = ["DEADLY", "DOWN", "JOB_SECONDS", "SECONDS", "STUCK", "JudgeOfTests", "app"]

SECONDS = "JUDGE_SECONDS"
"""Environment variable: how long each call of the judge takes."""

DOWN = "JUDGE_DOWN_FILE"
"""Environment variable: the judge fails while a file of this name exists."""

JOB_SECONDS = "JOB_SECONDS"
"""Environment variable: time for one evaluation."""

STUCK = "stops its judge"
"""A response with these words stops the process that judges it, so that it heeds no signal."""

DEADLY = "kills its judge"
"""A response with these words ends the process that judges it."""


class JudgeOfTests(ScriptedJudge):
    """Answers from a script, and writes down who judged what."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        print(f"judging in process {os.getpid()}", flush=True)
        if STUCK in text:
            os.kill(os.getpid(), signal.SIGSTOP)
        if DEADLY in text:
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        verdicts = await super().check(claims, references, question=question)
        if Path(os.environ.get(DOWN, "/nowhere")).exists():
            raise JudgeError("the judge is down")
        return verdicts


app = make_worker_app(
    judge=lambda: JudgeOfTests(delay_seconds=float(os.environ.get(SECONDS, "0"))),
    # The shortest visibility timeout that goes with 2 s for an evaluation.
    limits=WorkerLimits(
        job_seconds=float(os.environ.get(JOB_SECONDS, "2")),
        visibility_seconds=5.5,
        max_deliveries=3,
    ),
)
