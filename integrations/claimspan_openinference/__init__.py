"""Evaluates the spans that another instrumentation already makes; no second set of spans.

    from claimspan_openinference import ClaimspanSpanProcessor

    provider.add_span_processor(ClaimspanSpanProcessor())

Works on OpenInference's instrumentors, and on those that write ``gen_ai.retrieval.documents``
with content. Their spans end on their own, so the scores go to a carrier span.
"""

from __future__ import annotations

from claimspan_openinference._processor import ClaimspanSpanProcessor

__all__ = ["ClaimspanSpanProcessor"]
