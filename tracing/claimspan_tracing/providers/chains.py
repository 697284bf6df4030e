"""Looks into tracer providers: what they pass spans to, and whether these leave the process.

A provider without an exporter takes every span and says nothing. It comes about if a span processor
takes the place of the exporter: ``add_span_processor`` of the provider that Phoenix's
``register()`` returns removes the exporter that it had.

The *chain* of a provider is what it passes its spans to: ``_active_span_processor`` of a provider,
``_span_processor`` of a span.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry.trace import ProxyTracerProvider, TracerProvider

from claimspan.text.shapes import is_list
from claimspan_tracing.providers.destination import endpoint_variable

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

__all__ = [
    "chain_of",
    "exports",
    "flush",
    "flush_each",
    "global_provider",
    "goes_to_whole_values",
    "processors_of",
    "sdk_of",
    "wants_whole_values",
    "warn_of_no_exporter",
]

_logger: Final = logging.getLogger("claimspan")


def global_provider() -> TracerProvider | None:
    """Return the provider that the application has set for the process; None if it has not."""
    current = trace.get_tracer_provider()
    return None if isinstance(current, ProxyTracerProvider) else current


def sdk_of(provider: TracerProvider) -> SdkTracerProvider | None:
    """Return the SDK's provider that a provider is, or passes everything on to; else None."""
    # An application that has a provider of the SDK has loaded it; no other needs to.
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

    # Logfire's provider passes everything on to one of the SDK, and shows it by this name.
    inner: object = getattr(provider, "provider", None)
    return next((p for p in (provider, inner) if isinstance(p, SdkTracerProvider)), None)


def chain_of(provider: SdkTracerProvider | None) -> object:
    """Return the chain of a provider; None without one, or if names of the SDK have moved."""
    return getattr(provider, "_active_span_processor", None)


def processors_of(chain: object) -> tuple[object, ...]:
    """Return the span processors of a provider, by its chain."""
    found: object = getattr(chain, "_span_processors", ())
    return tuple(found) if is_list(found) else ()


def exports(chain: object) -> bool:
    """Whether a provider has a span processor that may bring spans out of the process.

    Only ours are known not to. Any other may export by itself, as Langfuse's and Logfire's do.
    """
    processors = processors_of(chain)
    # An SDK whose names have moved shows no processors, and is not blamed for it.
    if not processors and not hasattr(chain, "_span_processors"):
        return True
    return any(getattr(each, "exports_spans", True) for each in processors)


def flush(provider: TracerProvider | None) -> bool:
    """Have a provider export the spans that have ended.

    Returns:
        False if the provider or one of its processors says that it could not; True if there is
        nothing to ask.
    """
    sdk = None if provider is None else sdk_of(provider)
    if sdk is not None:
        from opentelemetry.sdk.trace import SynchronousMultiSpanProcessor
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

        # Up to 1.41 the SDK's own flush stops at a processor that returns nothing, and each of its
        # versions at one that raises. A flush of the application's own is called, and a chain that
        # asks its processors all at once is left to do so.
        chain, is_plain = chain_of(sdk), type(sdk).force_flush is SdkTracerProvider.force_flush
        if is_plain and isinstance(chain, SynchronousMultiSpanProcessor):
            return flush_each(processors_of(chain), _FLUSH_SECONDS)
    ask = getattr(provider, "force_flush", None)
    return True if ask is None else bool(ask())


_FLUSH_SECONDS: Final = 30.0
"""As the SDK's default."""


def flush_each(processors: Iterable[object], seconds: float) -> bool:
    """Have span processors export, one after the other and all of them within a time.

    Returns:
        False if one says that it could not, or was not asked for want of time. One that returns
        nothing has not said so.

    Raises:
        BaseException: The first error of a processor. All others were asked as well.
    """
    deadline = time.monotonic() + seconds
    is_done = True
    raised: BaseException | None = None
    for each in processors:
        left = int(1e3 * (deadline - time.monotonic()))
        if left <= 0:
            is_done = False
            break
        ask = getattr(each, "force_flush", None)
        try:
            is_done = (ask is None or ask(left) is not False) and is_done
        except BaseException as error:  # noqa: BLE001 - the others are to export all the same
            raised = raised or error
    if raised is not None:
        raise raised
    return is_done


_was_said: Final = threading.Event()


def warn_of_no_exporter() -> None:
    """Warn that a provider has no exporter, once in the process."""
    if _was_said.is_set():
        return
    _was_said.set()
    _logger.warning(
        "no span of claimspan leaves this process: the tracer provider has no exporter, and scores "
        "are lost. Add one to it. Where it had one until "
        "add_span_processor(ClaimspanSpanProcessor()) took its place, as with Phoenix's "
        "register(), call claimspan_openinference.instrument(tracer_provider=provider) instead"
    )


# --- whole values: backends that show inputs and outputs of spans, and no other texts -----------
#
# MLflow shows documents and messages in the output of a retriever's span and the input of a
# model's, and nowhere else. Langfuse shows the input of a model, and leaves out the attributes of
# its messages if there is one. Other backends read the attributes that each document and message
# has: for them these values would be the same texts once more.

_PACKAGES: Final = frozenset({"langfuse", "mlflow"})
"""Where the span processors of these backends are from."""

_ADDRESSES: Final = ("MLFLOW_TRACKING_URI", "LANGFUSE_BASE_URL", "LANGFUSE_HOST")
"""Where their own clients look for a server."""

_HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")

_LANGFUSE_PATH: Final = "/api/public/otel"
"""Langfuse's receiver of spans, on any server."""

_MLFLOW_HEADER: Final = "x-mlflow-"
"""MLflow's receiver refuses what comes without ``x-mlflow-experiment-id``."""


def wants_whole_values(sinks: Iterable[object]) -> bool:
    """Whether a sink, by a true ``wants_whole_values``, or the environment names one of them."""
    if any(getattr(sink, "wants_whole_values", False) is True for sink in sinks):
        return True
    headers = (os.environ.get(name, "").lower() for name in _HEADERS)
    return (
        any(map(os.environ.get, _ADDRESSES))
        or any(_MLFLOW_HEADER in each for each in headers)
        or _LANGFUSE_PATH in endpoint_variable()[1]
    )


def goes_to_whole_values(chain: object) -> bool:
    """Whether a provider sends its spans to such a backend."""
    return any(
        type(each).__module__.partition(".")[0] in _PACKAGES or _LANGFUSE_PATH in _endpoint_of(each)
        for each in processors_of(chain)
    )


def _endpoint_of(processor: object) -> str:
    """Where the exporter of a processor sends; empty if it does not say."""
    exporter: object = getattr(processor, "span_exporter", None)
    # The one that ``configure`` makes stands around another.
    endpoint: object = getattr(getattr(exporter, "_exporter", exporter), "_endpoint", "")
    return endpoint if isinstance(endpoint, str) else ""
