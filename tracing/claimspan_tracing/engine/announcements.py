"""Announcements: what happens for the first time is said in the log, once.

A set-up that works says so in two lines at INFO. One that does not says for each kind of failure
what it is and what to do, instead of leaving it to the attributes of spans that may not be seen.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Mapping
from typing import Final

from claimspan.judges.protocol import PartlyBlindJudge
from claimspan.metrics.catalogue import in_order
from claimspan.text.percentages import in_percent
from claimspan_tracing.decide.sampling import RateSampler
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Outcome
from claimspan_tracing.options import Settings

__all__ = ["Announcements"]

_logger: Final = logging.getLogger("claimspan")

MAX_KINDS: Final = 32
"""Kinds of failures that are told; a reason that names something else each time is one kind only
as long as its digits are all that differs."""

_WAYS_OUT: Final[Mapping[Status, str]] = {
    Status.JUDGE_ERROR: "`claimspan doctor` checks the judge",
    Status.TIMEOUT: "the root has ended without scores, and late ones go to a span below it: use a "
    "faster judge, a smaller sample, or a larger hold_seconds",
    Status.QUEUE_FULL: "records come faster than they are judged: lower sample, use Throttle, or "
    "judge in workers",
    Status.OVER_BUDGET: "records are traced and not judged until the budget allows it",
    Status.SHUTDOWN: "the process ended before the record was judged: raise exit_timeout, or give "
    "spool= a file",
    Status.NO_CONTEXT: "no retriever's documents were seen: see 'no_context' in docs/operations.md",
    Status.NO_ANSWER: "where the answer is not in the usual place, give response_key",
}
"""What to do about a state without scores. States that the application has asked for, such as
``not_sampled``, are no failures."""

_COST: Final = (
    "claimspan evaluates every query with %s, and a thousand like the first cost %s US dollars; "
    "sample=0.05 evaluates one of twenty, budget=Budget(per_day=5.0) sets a limit, and "
    "sample=1.0 says that this is wanted"
)

_PLAIN: Final = frozenset({Status.OVER_BUDGET, Status.NO_CONTEXT, Status.NO_ANSWER})
"""States that may be as they should be: said at INFO, where others are warnings."""


class Announcements:
    """Says each thing once for a monitor; safe to use from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._said: set[tuple[str, str]] = set()

    def captured(self) -> None:
        """A query was captured: say where spans and records go."""
        if self._is_new("captured"):
            _say(logging.INFO, "claimspan captures queries: %s", _described(self._settings))

    def finished(self, status: Status, outcome: Outcome) -> None:
        """A record has its state: say what it is, if it is the first of its kind."""
        if status is Status.EVALUATED:
            if (scores := _scores_of(outcome)) and self._is_new("evaluated"):
                _say(logging.INFO, "claimspan wrote its first scores: %s", scores)
            self._tell_cost(outcome)
            return
        way_out = _WAYS_OUT.get(status)
        # Reasons are ours, or class names: they quote no content.
        if way_out is None or not self._is_new(status.value, re.sub(r"\d+", "0", outcome.reason)):
            return
        # Where it is known why there is no answer, it was not looked for in the wrong place.
        remedy = "" if status is Status.NO_ANSWER and outcome.reason else f"; {way_out}"
        reason = f" ({outcome.reason})" if outcome.reason else ""
        level = logging.INFO if status in _PLAIN else logging.WARNING
        _say(level, "claimspan: no scores, %s%s%s", status.value, reason, remedy)

    def _tell_cost(self, outcome: Outcome) -> None:
        """Say what a thousand records like this one cost, if no limit is set."""
        evaluation = outcome.evaluation
        if not self._settings.tells_cost or evaluation is None or not evaluation.usage.cost_usd:
            return
        if self._is_new("cost"):
            cost = f"{evaluation.usage.cost_usd * 1000:.2f}"
            _say(logging.WARNING, _COST, self._settings.judge.name, cost)

    def _is_new(self, kind: str, detail: str = "") -> bool:
        with self._lock:
            if (kind, detail) in self._said or len(self._said) >= MAX_KINDS:
                return False
            self._said.add((kind, detail))
            return True


def _say(level: int, line: str, *values: str) -> None:
    # A filter of the application's logging may raise, and so may a handler of its own.
    with contextlib.suppress(Exception):
        _logger.log(level, line, *values)


def _described(settings: Settings) -> str:
    if settings.dispatcher is not None:
        judge = f"{type(settings.dispatcher).__name__} has them judged elsewhere"
    else:
        judge = f"the judge is {settings.judge.name}"
        if isinstance(settings.judge, PartlyBlindJudge):
            judge += f", which misses {settings.judge.blind_to}"
    sampler = settings.sampler
    rate = type(sampler).__name__
    if isinstance(sampler, RateSampler):
        rate = in_percent(sampler.rate)
    truths = "no ground truth" if settings.ground_truth is None else "with ground truth"
    return f"spans go to {settings.source.described()}; {judge}, sample {rate}, {truths}"


def _scores_of(outcome: Outcome) -> str:
    if outcome.evaluation is None:
        return ""
    scores = outcome.evaluation.metrics
    return ", ".join(f"{name} {scores[name]:.2f}" for name in in_order(scores))
