"""The engine: puts the rooms together. The only room that knows all of them.

settings     the checked options of a monitor
engine       what the application's threads call, and the life of the parts
intake       how a record of the application comes into the queue, or is refused
reading      the worker: from a run tree to a job, its decision and its spans
evaluations  jobs that were dispatched: how long their spans are held, and what comes back
deliveries   the sinks that deliver on threads of their own
collected    handles of the records that start within a block of the application's code
feedback     what users say about responses, and the records that this may have evaluated late
"""

from __future__ import annotations

from claimspan_tracing.engine.collected import CapturedRecord, collected_records
from claimspan_tracing.engine.engine import Engine
from claimspan_tracing.engine.feedback import checked_feedback
from claimspan_tracing.engine.settings import Settings

__all__ = ["CapturedRecord", "Engine", "Settings", "checked_feedback", "collected_records"]
