"""The check of a judge: whether it answers, in the form that it is asked for, and rightly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from claimspan import Chunk, Evaluation, RagRecord, aevaluate
from claimspan.daemon_threads import start_daemon
from claimspan.errors import ClaimspanError, ConfigError
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.findings import Finding

__all__ = ["check_judge"]

_FACT: Final = "The Danube rises in the Black Forest in Germany."
_RECORD: Final = RagRecord(
    query="Where does the Danube rise?",
    response=_FACT,
    chunks=(
        Chunk(id="1", text=f"{_FACT} It flows into the Black Sea."),
        Chunk(id="2", text="Sourdough bread is left to rise overnight before it is baked."),
    ),
)
"""A claim that a chunk has word for word, which no judge may miss."""


_CONNECT: Final = (
    "check its base URL, its key and its model's name; behind a proxy, HTTPS_PROXY and NO_PROXY"
)


def check_judge(settings: Settings, timeout: float) -> Iterator[Finding]:
    """Has the judge evaluate a record whose verdicts nobody doubts.

    Args:
        settings: Its judge and budget.
        timeout: Seconds that it may take.
    """
    if settings.dispatcher is not None:
        yield Finding("judge", "ok", "records are judged by workers: run the check there as well")
        return
    name = settings.judge.name
    began = time.monotonic()
    try:
        evaluation = _evaluated(settings, timeout)
    except TimeoutError:
        remedy = "check that its endpoint is up, or give it more time"
        yield Finding("judge", "failed", f"{name} gave no verdict within {timeout:g} s", remedy)
        return
    except ClaimspanError as error:
        remedy = "" if isinstance(error, ConfigError) else _CONNECT
        yield Finding("judge", "failed", f"{name} failed: {error}", remedy)
        return
    seconds = time.monotonic() - began
    calls = evaluation.usage.calls
    paid = f", {calls} calls, ${evaluation.usage.cost_usd:.4f}" if calls else ""
    # Checked here, and not in the process: whether it can be made there was checked at set-up.
    where = "; records go to a process of their own" if settings.judge_specs else ""
    yield _judged(evaluation, f"{name} evaluated a record in {seconds:.1f} s{paid}{where}")


def _judged(evaluation: Evaluation, found: str) -> Finding:
    faithfulness = evaluation.metrics.get("faithfulness")
    if faithfulness is None:
        reasons = "; ".join(evaluation.undecided) or "it found no claim in a plain sentence"
        remedy = "use a model that keeps to a JSON schema, or claimspan estimate another"
        return Finding("judge", "failed", f"{found}, without a verdict: {reasons}", remedy)
    if faithfulness < 1:
        remedy = "use another model: this one does not see what stands there word for word"
        return Finding("judge", "warning", f"{found}, and calls a copied sentence untrue", remedy)
    return Finding("judge", "ok", f"{found}, and is right about it")


def _evaluated(settings: Settings, timeout: float) -> Evaluation:
    """Evaluates the record, on a thread: the caller may be in a loop, and the judge may block."""
    outcome: list[Evaluation | BaseException] = []

    def evaluate() -> None:
        try:
            call = aevaluate(_RECORD, judge=settings.judge, budget=settings.budget)
            outcome.append(asyncio.run(asyncio.wait_for(call, timeout)))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.append(error)

    start_daemon(evaluate, "claimspan-check").join(timeout)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
