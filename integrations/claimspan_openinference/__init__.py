"""Evaluates the spans that another instrumentation makes, without a second set of spans.

One line, with the tracer provider that the other instrumentation uses:

    claimspan_openinference.instrument(tracer_provider=provider)

Reads the spans of OpenInference's instrumentors, and of others that write
``gen_ai.retrieval.documents`` with content. A record begins with the topmost of them, whatever
stands above it. Those spans have ended when they are read, and nothing can be written to an ended
span: the scores go to spans of their own, which are linked to the record's root.
"""

from __future__ import annotations

from claimspan_openinference._processor import ClaimspanSpanProcessor, instrument
from claimspan_openinference._replay import records_of_trace

__all__ = ["ClaimspanSpanProcessor", "instrument", "records_of_trace"]
