"""What application and worker agree on: names of tasks and queue, and the bounds of a message."""

from __future__ import annotations

from typing import Final

__all__ = ["EVALUATE", "EVALUATE_RECORD", "HIDDEN", "MAX_BYTES", "QUEUE", "REPLIES"]

EVALUATE: Final = "claimspan.evaluate"
"""Task that evaluates a job and writes its scores to a carrier."""

EVALUATE_RECORD: Final = "claimspan.evaluate_record"
"""Task that evaluates a record of a file and puts the outcome on a list in Redis."""

REPLIES: Final = "claimspan:replies:"
"""Beginning of the name of such a list; 32 hex digits follow."""

QUEUE: Final = "claimspan"
"""Queue of both tasks, unless another is given."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Characters of one job as JSON. A job with 100 chunks of 64 KiB has 6.4 million; RabbitMQ refuses
messages over 16 MiB by default."""

HIDDEN: Final = "(...)"
"""Shown in place of the arguments. Celery would put their beginning, which is content,
into a header that monitoring tools show."""
