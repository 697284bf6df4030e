"""The instrumentation scope of all that claimspan writes: its name, version and conventions.

Spans, metrics and log events come from the tracer, meter and logger that this module gives.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from typing import Final

from opentelemetry import metrics
from opentelemetry._logs import Logger, get_logger  # the API's only path so far
from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer, TracerProvider

import claimspan
from claimspan_tracing import semconv

__all__ = ["SCHEMA_URL", "logger", "meter", "tracer_of"]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The conventions for generative AI that we follow, as their own manifest names them."""


def tracer_of(provider: TracerProvider) -> Tracer:
    """Return our tracer of a provider."""
    return provider.get_tracer(semconv.SCOPE, _version(), SCHEMA_URL)


def meter() -> Meter:
    """Return our meter of the application's provider, or of the one that it sets later."""
    return metrics.get_meter(semconv.SCOPE, _version(), schema_url=SCHEMA_URL)


def logger() -> Logger:
    """Return our logger of the application's provider, or of the one that it sets later."""
    return get_logger(semconv.SCOPE, _version(), schema_url=SCHEMA_URL)


@cache
def _version() -> str:
    try:
        return claimspan.__version__
    except PackageNotFoundError:  # bundles for functions leave out what says it, to be smaller
        return ""
