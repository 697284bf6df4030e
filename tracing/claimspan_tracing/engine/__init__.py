"""The engine: puts the rooms together. The only room that knows all of them.

settings     the checked options of a monitor
engine       what the application's threads call, and the life of the parts
reading      the worker: from a run tree to a job, its decision and its spans
evaluations  jobs that were dispatched: how long their spans are held, and what comes back
deliveries   the sinks that deliver on threads of their own
feedback     what users say about responses, and the records that this may have evaluated late
"""

from __future__ import annotations

from claimspan_tracing.engine.engine import Engine
from claimspan_tracing.engine.feedback import checked_feedback
from claimspan_tracing.engine.settings import Settings

__all__ = ["Engine", "Settings", "checked_feedback"]
