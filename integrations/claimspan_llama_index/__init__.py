"""Captures the queries of everything in LlamaIndex and writes claim-level scores on them.

One line, for the whole process:

    claimspan_llama_index.instrument()
"""

from __future__ import annotations

from importlib.util import find_spec

from claimspan.errors import MissingExtraError

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise MissingExtraError("llama-index-core", "llama-index")

from claimspan_llama_index._spans import instrument
from claimspan_tracing.adapters import AutoInstrumentor

__all__ = ["instrument"]

auto = AutoInstrumentor(instrument, framework="llama_index")
"""What ``opentelemetry-instrument`` loads."""
