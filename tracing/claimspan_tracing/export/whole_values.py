"""Whole values: whether a backend shows inputs and outputs of spans, and no other texts.

MLflow shows documents and messages in the output of a retriever's span and the input of a model's,
and nowhere else. Langfuse shows the input of a model, and leaves out the attributes of its messages
where there is one. Other backends read the attributes that each document and message has, so that
for them these values would be the same texts once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from claimspan_tracing.export.exporting import processors_of

__all__ = ["goes_to_whole_values", "wants_whole_values"]

_PACKAGES: Final = frozenset({"langfuse", "mlflow"})
"""Where the span processors of these backends are from."""

_ADDRESSES: Final = ("MLFLOW_TRACKING_URI", "LANGFUSE_BASE_URL", "LANGFUSE_HOST")
"""Where their own clients look for a server."""

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")

_LANGFUSE_PATH: Final = "/api/public/otel"
"""Its receiver of spans, on any server."""

_MLFLOW_HEADER: Final = "x-mlflow-"
"""Its receiver refuses what comes without ``x-mlflow-experiment-id``."""


def wants_whole_values(sinks: Iterable[object]) -> bool:
    """Whether a sink or the environment names such a backend.

    Args:
        sinks: One that writes to such a backend has a true ``wants_whole_values``.
    """
    if any(getattr(sink, "wants_whole_values", False) is True for sink in sinks):
        return True
    if any(map(os.environ.get, _ADDRESSES)):
        return True
    headers = [os.environ.get(name, "").lower() for name in _HEADERS]
    endpoints = map(os.environ.get, _ENDPOINTS)
    return any(_MLFLOW_HEADER in each for each in headers) or any(map(_is_langfuse, endpoints))


def goes_to_whole_values(chain: object) -> bool:
    """Whether a provider sends its spans to such a backend.

    Args:
        chain: As for ``processors_of``.
    """
    return any(
        type(each).__module__.partition(".")[0] in _PACKAGES or _sends_there(each)
        for each in processors_of(chain)
    )


def _sends_there(processor: object) -> bool:
    """Whether the exporter of a processor sends to the receiver of such a backend."""
    exporter: object = getattr(processor, "span_exporter", None)
    # The one that ``configure`` makes stands around another.
    inner: object = getattr(exporter, "_exporter", exporter)
    return _is_langfuse(getattr(inner, "_endpoint", ""))


def _is_langfuse(endpoint: object) -> bool:
    return isinstance(endpoint, str) and _LANGFUSE_PATH in endpoint
