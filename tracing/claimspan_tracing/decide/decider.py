"""The decider: asks the request, then the sampler, and lets no fault cost a record its state."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import Context, ContextVar, Token
from dataclasses import replace
from functools import wraps
from typing import Final, ParamSpec, TypeVar, cast

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan_tracing import semconv
from claimspan_tracing.decide.sampling import (
    MIN_RATE,
    Decision,
    Facts,
    RateSampler,
    Sampler,
    checked_decision,
    first_judge_of,
    is_share,
    is_taken,
)
from claimspan_tracing.decide.thinning import MARK, Fit, Overload, Room
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import run_suppressed

__all__ = ["BY_REQUEST", "Decider", "disable_evaluation"]

# --- what a request itself says -------------------------------------------------------------------

_DISABLED: Final = ContextVar("claimspan_evaluation_disabled", default=False)

BY_REQUEST: Final = frozenset({"disabled", "request"})
"""The reasons of decisions that the request made itself."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class disable_evaluation:  # noqa: N801 - it is used like a function, as the context managers of contextlib are
    """Switches evaluation off for the queries that begin in a block, or in a function.

    They are traced all the same, with status ``not_sampled`` and reason ``disabled``::

        with disable_evaluation():
            chain.invoke("a question of the smoke test")

    As a decorator it serves functions and coroutine functions. It follows context variables: tasks
    that are started in the block inherit it, and other requests do not see it. A thread sees it
    if it was given a copy of the context.
    """

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(_DISABLED.set(True))

    def __exit__(self, *raised: object) -> None:
        # An asynchronous generator may be closed in another context than it ran in. There the
        # variable was never set, and nothing is to be put back.
        with suppress(ValueError):
            _DISABLED.reset(self._tokens.pop())

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return a function whose queries are not evaluated.

        Raises:
            ConfigError: It is a generator function, whose body runs in its caller's context.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError("disable_evaluation cannot decorate a generator: use `with` inside")
        if inspect.iscoroutinefunction(function):
            call = cast("Callable[_P, Awaitable[_R]]", function)

            @wraps(function)
            async def disabled_coroutine(*args: _P.args, **kwargs: _P.kwargs) -> _R:
                with disable_evaluation():
                    return await call(*args, **kwargs)

            return cast("Callable[_P, _R]", disabled_coroutine)

        @wraps(function)
        def disabled(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with disable_evaluation():
                return function(*args, **kwargs)

        return disabled


# --- the decision ---------------------------------------------------------------------------------


class Decider:
    """Decides about one record at a time.

    The request comes first (``disable_evaluation``, then its metadata), then the sampler, whose
    rate is lowered while the judge cannot keep up.
    """

    def __init__(
        self,
        sampler: Sampler,
        fullness: Callable[[], float],
        guard: Guard,
        overload: Overload | None = None,
        *,
        room: Callable[[], Room | None] = lambda: None,
    ) -> None:
        """Set who decides; ``fullness`` is that of the judge's share of the queue, 0 to 1."""
        self._sampler = sampler
        self._fullness = fullness
        self._guard = guard
        self._overload = overload or Overload()
        self._room = room
        self._fit = Fit()
        self.first_judge: Judge | None = first_judge_of(sampler)
        """Scores the records that the sampler leaves undecided; None without a first judge."""

    def decide(self, facts: Facts, request: Context) -> Decision:
        """Decide about a record, on the worker's thread.

        ``request`` has the context variables as they were when the root started.
        """
        # The request has the last word: its author knows more about it than any rule. An
        # overload does not thin it either, as the application has chosen these few by itself.
        asked = self._requested(facts, request)
        if asked is not None:
            return asked
        decision = self._ask(facts)
        if decision.undecided and self.first_judge is None:
            self._guard.swallow(ConfigError("the sampler is undecided, and has no first_judge"))
            return _FAILED
        if not facts.can_be_evaluated:  # it adds nothing to the judge's queue
            return decision
        fitting = self._fit.thin(decision, facts, self._room())
        return self._overload.thin(fitting, facts, self._fullness())

    def decide_unread(
        self, trace_id: int, span_id: int, metadata: Mapping[str, object], request: Context
    ) -> Decision | None:
        """Decide about a record that was not read, on the application's thread.

        Returns:
            None if only a sampler that needs more than the ids could decide: facts have not been
            read, and a user's sampler may block.
        """
        attributes: dict[str, JsonValue] = {}
        with self._guard:
            wanted = metadata.get(semconv.SAMPLE_REQUEST)
            if isinstance(wanted, int | float):
                attributes[semconv.SAMPLE_REQUEST] = wanted
        facts = Facts(trace_id=trace_id, span_id=span_id, attributes=attributes)
        # A rate sampler needs the ids alone, and its rate at this moment is the rate of what is
        # refused as well, so that its share of the weight is right.
        if isinstance(self._sampler, RateSampler):
            return self.decide(facts, request)
        return self._requested(facts, request)

    def decide_scored(self, facts: Facts, before: Decision) -> Decision:
        """Decide about a record that was left undecided, on the judge's thread.

        The rate of the decision before goes into the new one.
        """
        decision = self._ask(facts)
        if decision.undecided:
            self._guard.swallow(ConfigError("the sampler is undecided after its first judge, too"))
            return _FAILED
        mark = MARK if before.reason.endswith(MARK) else ""
        # Two tiny rates may have a product that no weight can be made from.
        rate = max(decision.rate * before.rate, MIN_RATE if decision.sampled else 0.0)
        return replace(decision, rate=rate, reason=decision.reason + mark, counts=before.counts)

    def decide_late(self, facts: Facts) -> Decision:
        """Decide once more about a record that was not sampled, with the feedback of a user.

        The decision has no weight: the records that were sampled in time stand for all traffic
        already.
        """
        decision = self._ask(facts)
        # As in ``decide``: without a first judge nothing could ever settle it.
        if decision.undecided and self.first_judge is None:
            return _FAILED
        return replace(self._overload.thin(decision, facts, self._fullness()), counts=False)

    def _requested(self, facts: Facts, request: Context) -> Decision | None:
        """The request's wish, from its metadata: True, False, or the rate of records like it."""
        if request.get(_DISABLED, False):
            return Decision(sampled=False, rate=0.0, reason="disabled")
        wanted = facts.attributes.get(semconv.SAMPLE_REQUEST)
        if wanted is None:
            return None
        if isinstance(wanted, int | float) and (isinstance(wanted, bool) or is_share(wanted)):
            return Decision(sampled=is_taken(facts, wanted), rate=float(wanted), reason="request")
        self._guard.swallow(
            ConfigError(
                f"metadata {semconv.SAMPLE_REQUEST!r} is no True, False or number from 0.0 to 1.0; "
                "the sampler decides"
            )
        )
        return None

    def _ask(self, facts: Facts) -> Decision:
        try:
            if type(self._sampler) is RateSampler:  # ours, which calls no code of others
                return self._sampler.decide(facts)
            return checked_decision(run_suppressed(self._sampler.decide, facts))
        except BaseException as error:  # noqa: BLE001 - the sampler is the user's; the record still gets its state
            self._guard.swallow(error)
            return _FAILED


_FAILED = Decision(sampled=False, rate=0.0, reason="the sampler failed")
