"""Captures the queries of Haystack pipelines and writes claim-level scores on them.

One line, for the whole process:

    claimspan_haystack.instrument()
"""

from __future__ import annotations

from importlib.util import find_spec

from claimspan.errors import MissingExtraError

if find_spec("haystack") is None:
    raise MissingExtraError("haystack-ai", "haystack")

from claimspan_haystack._instrument import ClaimspanConnector, Instrumentation, instrument
from claimspan_tracing.adapters import AutoInstrumentor

__all__ = ["ClaimspanConnector", "Instrumentation", "instrument"]

auto = AutoInstrumentor(instrument, framework="haystack")
"""What ``opentelemetry-instrument`` loads."""
