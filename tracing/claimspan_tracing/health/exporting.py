"""Checks of the spans' way out: the provider, one span that is sent, and the backend's clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextvars import Context
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from threading import Event
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from opentelemetry.trace import format_span_id, format_trace_id

from claimspan.daemon_threads import start_daemon
from claimspan_tracing import semconv
from claimspan_tracing.export.destination import ENDPOINT_VARIABLES, is_switched_off
from claimspan_tracing.export.providers import TracerSource
from claimspan_tracing.guard import Guard
from claimspan_tracing.health.findings import Finding
from claimspan_tracing.records import Exports, Record, Records

__all__ = ["check_clock", "check_export", "check_provider"]

_ORDER_OF_A_TRACE: Final = 5.0
"""Seconds of difference between two clocks from which spans of two machines look out of order."""


def check_provider(source: TracerSource) -> Iterator[Finding]:
    """Says which tracer provider gets the spans, and whether it has an exporter."""
    provider = source.sdk_provider()
    where = source.described()
    if provider is None:
        yield Finding(
            "provider", "ok", f"{where}, which is not the SDK's: it cannot be looked into"
        )
    elif source.failure:
        yield Finding("provider", "failed", where, source.failure)
    elif source.exports:
        yield Finding("provider", "ok", where)
    else:
        yield Finding(
            "provider",
            "failed",
            f"{where}, which has no exporter: no span leaves this process",
            "add a BatchSpanProcessor with an exporter to it, or call "
            "claimspan_openinference.instrument(tracer_provider=provider) in place of adding "
            "ClaimspanSpanProcessor to a provider of Phoenix's register()",
        )


def check_export(source: TracerSource, timeout: float) -> Iterator[Finding]:
    """Sends one span, and says what the exporters made of it.

    Args:
        source: Gives the tracer.
        timeout: Seconds to wait for the exporters.
    """
    if source.failure or is_switched_off():
        return  # Another check has said so: without an exporter or spans nothing is sent.
    sent = Event()
    exports = Exports(Records(), source.sdk_provider, sent.set, Guard())
    span = source.tracer().start_span(semconv.SPAN_DOCTOR)
    context = span.get_span_context()
    if not span.is_recording() or not context.trace_flags.sampled:
        yield Finding(
            "export",
            "warning",
            "the provider's sampler dropped the test span: traces that it drops have no scores",
            "run the check again where it samples a share; Monitor(sample=...) is the place to "
            "save judging",
        )
        return
    key = format_trace_id(context.trace_id), format_span_id(context.span_id)
    followed = Record(key, span, None, Context(), is_open=False)
    exports.follow_ids(followed, [key[1]])
    if not exports.observes:
        span.end()
        yield Finding("export", "ok", "one span was handed over; its exporter cannot be observed")
        return
    span.end()
    exports.complete(followed)
    # On a thread: a backend that hangs holds a flush up for longer than the caller wants to wait.
    start_daemon(source.force_flush, "claimspan-check")
    yield _outcome(exports, sent, timeout)


def _outcome(exports: Exports, sent: Event, timeout: float) -> Finding:
    began = time.monotonic()
    exported, failed, seconds = False, False, 0.0
    # Each exporter of the provider reports by itself, and all of them are to have the span.
    while not (exported or failed) and seconds < timeout:
        sent.wait(timeout - seconds)
        sent.clear()
        done, lost, _ = exports.take()
        exported, failed, seconds = bool(done), bool(lost), time.monotonic() - began
    if exported:
        return Finding("export", "ok", f"one span was sent and taken in {seconds:.1f} s")
    how = "the exporter failed" if failed else f"no answer came within {seconds:.0f} s"
    return Finding(
        "export",
        "failed",
        f"one span was sent, and {how}",
        "check that the endpoint is up, that its URL ends in /v1/traces where the exporter does "
        "not add it, and that OTEL_EXPORTER_OTLP_HEADERS holds the key that it wants",
    )


def check_clock(timeout: float) -> Iterator[Finding]:
    """Compares this machine's clock with that of the endpoint that the environment names."""
    endpoint = next(filter(None, map(os.environ.get, ENDPOINT_VARIABLES)), None)
    if endpoint is None or not endpoint.startswith(("http://", "https://")):
        return
    theirs = _date_of(endpoint, timeout)
    if theirs is None:
        return
    ahead = (datetime.now(UTC) - theirs).total_seconds()
    if abs(ahead) < _ORDER_OF_A_TRACE:
        yield Finding("clock", "ok", "agrees with that of the endpoint")
        return
    yield Finding(
        "clock",
        "warning",
        f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
        "that of the endpoint, so traces may not be where you look for them",
        "synchronise the clocks, for example by NTP",
    )


def _date_of(endpoint: str, timeout: float) -> datetime | None:
    """The time of an HTTP server, to the second; None where it does not say."""
    request = Request(endpoint, method="HEAD")  # noqa: S310 - the caller takes HTTP alone
    try:
        with urlopen(request, timeout=timeout) as reply:  # noqa: S310 - see above
            said = reply.headers.get("Date")
    except HTTPError as error:  # most receivers take POST alone, and answer all the same
        said = error.headers.get("Date")
    except (OSError, HTTPException, ValueError):
        return None
    return None if said is None else parsedate_to_datetime(said)
