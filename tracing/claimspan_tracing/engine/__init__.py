"""The engine: puts the rooms together. The only room that knows all of them.

engine       what the application's threads call, and the life of the parts announcements what
happens for the first time, said in the log reading      the worker: from a run tree to a job, its
decision and its spans evaluations  jobs that were dispatched: how long their spans are held, and
what comes back collected    handles of the records that start within a block of the application's
code feedback     what users say about responses, and the records that this may have evaluated late
"""

from __future__ import annotations

from claimspan_tracing.engine.collected import CapturedRecord, collected_records
from claimspan_tracing.engine.engine import Engine
from claimspan_tracing.engine.feedback import checked_feedback

__all__ = ["CapturedRecord", "Engine", "checked_feedback", "collected_records"]
