"""Attaches the span processor to a tracer provider, whoever has made it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Unpack

from opentelemetry.sdk.trace import TracerProvider

from claimspan.errors import ConfigError
from claimspan_openinference._processor import ClaimspanSpanProcessor
from claimspan_tracing.adapters import (
    Key,
    Monitor,
    MonitorOptions,
    chain_of,
    processors_of,
    sdk_provider,
    warn_of_several,
    write_to,
)

__all__ = ["instrument"]

_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Callable[[], None]:
    """Evaluate the traces of a tracer provider, and write the scores to that very provider.

    Other than ``provider.add_span_processor(ClaimspanSpanProcessor())`` it never takes the place of
    the provider's exporter, as it would with the provider of Phoenix's ``register()``, and it works
    with Logfire's. Attached twice with the same monitor, it evaluates each trace once, until both
    are undone; question and answer are then where the first of the two says.

    Args:
        monitor: Evaluates the records and writes the scores; None uses a monitor of its own where
            there are options, else the one that the process shares.
        query_key: Where the user's question is; as in ``ClaimspanSpanProcessor``.
        response_key: Where the answer is; as in ``ClaimspanSpanProcessor``.
        options: Options of ``Monitor``; whoever gives equal ones shares a monitor.
            ``tracer_provider`` may be given beside a monitor as well: the provider that the other
            instrumentation uses. None takes the application's global one.

    Returns:
        A callable that ends the evaluation of what has not ended yet, unless another call has
        attached the monitor as well. Calling it twice is safe.

    Raises:
        ConfigError: There is no provider, it is not of the OpenTelemetry SDK, the monitor writes to
            another one, both a monitor and options are given, or an option is invalid.
    """
    given = options.pop("tracer_provider", None)
    provider = sdk_provider(given)
    if monitor is None and (given is not None or options):
        # A monitor of its own: the one that the process shares may serve another provider.
        options["tracer_provider"] = given or provider
    processor = ClaimspanSpanProcessor(
        monitor, query_key=query_key, response_key=response_key, **options
    )
    if given is not None and not write_to(processor.monitor, given):
        raise ConfigError(
            "the monitor writes to another tracer provider than the one given: make a monitor for "
            "each provider, or give the monitor the same one"
        )
    return _attach(processor, provider)


def _attach(processor: ClaimspanSpanProcessor, provider: TracerProvider) -> Callable[[], None]:
    with _lock:  # two threads may attach the same monitor at once
        there = processors_of(chain_of(provider))
        ours = [each for each in there if isinstance(each, ClaimspanSpanProcessor)]
        known = next((each for each in ours if each.stands_for(processor)), None)
        if known is not None:
            known.attach()
            return _once(known.release)
        # The method of the SDK itself: Phoenix's takes what is added in place of its own exporter.
        TracerProvider.add_span_processor(provider, processor)
        warn_of_several(1 + sum(not each.is_detached for each in ours))
    return _once(processor.release)


def _once(release: Callable[[], None]) -> Callable[[], None]:
    """Make a callable that ends one attachment, however often it is called."""
    left = [release]

    def undo() -> None:
        with _lock:
            if left:
                left.pop()()

    return undo
