"""What a request itself says about its evaluation: none at all, or a rate of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Final, ParamSpec, TypeVar, cast

from claimspan.errors import ConfigError
from claimspan_tracing import semconv
from claimspan_tracing.decide.chance import is_share, is_taken
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import Decision

__all__ = ["BY_REQUEST", "disable_evaluation", "disabled_decision", "requested_decision"]

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
    where it was given a copy of the context.
    """

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(_DISABLED.set(True))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
            return cast("Callable[_P, _R]", _disabled_coroutine(function))

        @wraps(function)
        def disabled(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with disable_evaluation():
                return function(*args, **kwargs)

        return disabled


def _disabled_coroutine(
    function: Callable[_P, Awaitable[_R]],
) -> Callable[_P, Coroutine[None, None, _R]]:
    @wraps(function)
    async def disabled(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with disable_evaluation():
            return await function(*args, **kwargs)

    return disabled


def disabled_decision(request: Context) -> Decision | None:
    """Return the decision about a record whose request runs in ``disable_evaluation``, else None.

    Args:
        request: The context variables of the request.
    """
    if not request.get(_DISABLED, False):
        return None
    return Decision(sampled=False, rate=0.0, reason="disabled")


def requested_decision(facts: Facts) -> Decision | None:
    """Return the decision that the metadata of a run asks for, or None where it asks for none.

    ``metadata={"claimspan.sample": True}`` evaluates the record, ``False`` does not, and a number
    is the rate at which to evaluate records like it.

    Raises:
        ConfigError: The value is something else.
    """
    wanted = facts.attributes.get(semconv.SAMPLE_REQUEST)
    if wanted is None:
        return None
    if isinstance(wanted, bool):
        return Decision(sampled=wanted, rate=float(wanted), reason="request")
    if isinstance(wanted, int | float) and is_share(wanted):
        return Decision(sampled=is_taken(facts, wanted), rate=float(wanted), reason="request")
    raise ConfigError(
        f"metadata {semconv.SAMPLE_REQUEST!r} is no True, False or number from 0.0 to 1.0; the "
        "sampler decides"
    )
