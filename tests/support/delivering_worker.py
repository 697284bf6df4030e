"""A worker app of a user's own with a sink that delivers slowly, to a file.

Celery loads this module in a process of its own: ``celery -A delivering_worker worker``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from claimspan.testing import ScriptedJudge
from claimspan_celery import make_worker_app
from claimspan_tracing.adapters import Delivery, Finished

__all__ = ["DELIVERED", "GATE", "app"]

DELIVERED = "DELIVERED_FILE"
"""Environment variable: the file that gets the trace id of each record."""

GATE = "GATE_FILE"
"""Environment variable: nothing is delivered before a file of this name exists."""


class ToFile:
    """Delivers trace ids, one at a time."""

    def __init__(self) -> None:
        self._delivery = Delivery[str]("file", self._send, batch_size=1)
        self.start = self._delivery.start
        self.flush = self._delivery.flush

    @property
    def lost(self) -> int:
        return self._delivery.lost

    def write(self, finished: Finished) -> None:
        self._delivery.put(finished.job.trace_id)

    def _send(self, trace_ids: Sequence[str]) -> Sequence[str]:
        while not Path(os.environ[GATE]).exists():
            time.sleep(0.02)
        with Path(os.environ[DELIVERED]).open("a", encoding="utf-8") as file:
            file.writelines(f"{each}\n" for each in trace_ids)
        return ()


app = make_worker_app(judge=ScriptedJudge, sinks=[ToFile()])
