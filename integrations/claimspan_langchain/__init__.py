"""Captures the queries of LangChain and LangGraph pipelines and writes claim-level scores on them.

For one pipeline, in its config:

    chain.invoke(question, config={"callbacks": [ClaimspanCallbackHandler()]})

For every pipeline of the process:

    claimspan_langchain.instrument()
"""

from __future__ import annotations

from importlib.util import find_spec

from claimspan.errors import MissingExtraError

if find_spec("langchain_core") is None:
    raise MissingExtraError("langchain-core", "langchain")

from claimspan_langchain._handler import ClaimspanCallbackHandler, instrument
from claimspan_langchain._vector_store import ScoredVectorStore
from claimspan_tracing.adapters import AutoInstrumentor

__all__ = ["ClaimspanCallbackHandler", "ScoredVectorStore", "instrument"]

auto = AutoInstrumentor(instrument, framework="langchain")
"""What ``opentelemetry-instrument`` loads."""
