"""The check of a judge: whether it answers, in the form that it is asked for, and rightly."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from claimspan import Chunk, Evaluation, RagRecord, aevaluate
from claimspan.daemon_threads import start_daemon
from claimspan.errors import ClaimspanError
from claimspan.judges import Judge
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.findings import Finding

__all__ = ["check_judge"]

_T = TypeVar("_T")

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


_CONNECT: Final = "check that its endpoint is up, its base URL, its key and its model's name"
_REQUESTS: Final = re.compile(r"; requests made: \d+")


def check_judge(settings: Settings, timeout: float) -> Iterator[Finding]:
    """Has the judge evaluate a record whose verdicts nobody doubts.

    Args:
        settings: Its judge and budget.
        timeout: Seconds that it may take.
    """
    if settings.dispatcher is not None:
        yield _handed_over(settings.dispatcher, timeout)
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
        remedy = "" if _says_why(str(error)) else _CONNECT
        yield Finding("judge", "failed", f"{name} failed: {error}", remedy)
        return
    seconds = time.monotonic() - began
    calls = evaluation.usage.calls
    paid = f", {calls} calls, ${evaluation.usage.cost_usd:.4f}" if calls else ""
    # Checked here, and not in the process: whether it can be made there was checked at set-up.
    where = "; records go to a process of their own" if settings.judge_specs else ""
    told = f"{name} evaluated a record in {seconds:.1f} s{paid}{_learned(settings.judge)}{where}"
    yield _judged(evaluation, told)


def _says_why(message: str) -> bool:
    """Whether a message says more than that something failed: the server's words, or what to do."""
    return ": " in _REQUESTS.sub("", message)


def _learned(judge: Judge) -> str:
    """What the model was found to refuse during the evaluation, if the judge tells."""
    # A calibrated judge has the one that asks the model behind it.
    asked = getattr(judge, "judge", judge)
    learned: Sequence[str] = getattr(asked, "learned", ())
    return f"; {', '.join(learned)}" if learned else ""


def _handed_over(dispatcher: Dispatcher, timeout: float) -> Finding:
    """Whether workers can be given records, where the dispatcher can tell."""
    # No part of the protocol, which dispatchers of others fulfil already.
    check: Callable[[], object] | None = getattr(dispatcher, "check", None)
    try:
        if check is not None:
            _within(timeout, check)
    except TimeoutError:
        found = f"{type(dispatcher).__name__} could reach nobody within {timeout:g} s"
        return Finding("judge", "failed", found, "check the address that it sends records to")
    except ClaimspanError as error:
        return Finding("judge", "failed", str(error))
    return Finding("judge", "ok", "records are judged by workers: run the check there as well")


def _judged(evaluation: Evaluation, found: str) -> Finding:
    faithfulness = evaluation.metrics.get("faithfulness")
    if faithfulness is None:
        reasons = "; ".join(evaluation.undecided) or "it found no claim in a plain sentence"
        remedy = "use a model that keeps to a JSON schema, or claimspan estimate another"
        if _says_why(reasons):
            remedy = ""
        return Finding("judge", "failed", f"{found}, without a verdict: {reasons}", remedy)
    if faithfulness < 1:
        remedy = "use another model: this one does not see what stands there word for word"
        return Finding("judge", "warning", f"{found}, and calls a copied sentence untrue", remedy)
    return Finding("judge", "ok", f"{found}, and is right about it")


def _evaluated(settings: Settings, timeout: float) -> Evaluation:
    """Evaluates the record."""

    def evaluate() -> Evaluation:
        call = aevaluate(_RECORD, judge=settings.judge, budget=settings.budget)
        return asyncio.run(asyncio.wait_for(call, timeout))

    return _within(timeout, evaluate)


def _within(timeout: float, work: Callable[[], _T]) -> _T:
    """Calls a function on a thread: the caller may be in a loop, and the function may block."""
    outcome: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            raised.append(error)

    start_daemon(run, "claimspan-check").join(timeout)
    if raised:
        raise raised[0]
    if not outcome:
        raise TimeoutError
    return outcome[0]
