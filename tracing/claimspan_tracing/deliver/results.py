"""Results handed to a function of the application's: the option ``on_result``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from claimspan_tracing.deliver.calls import Calls
from claimspan_tracing.write.sinks import Finished

__all__ = ["OnResult", "ResultSink"]

OnResult = Callable[[Finished], object]
"""What ``Monitor(on_result=...)`` takes; it may be asynchronous."""


class ResultSink:
    """Hands every record that was evaluated to a function, on a thread of its own."""

    def __init__(self, on_result: OnResult) -> None:
        """Set the function; no thread starts yet."""
        self._calls = Calls("on_result", on_result)
        self.start = self._calls.start
        self.flush = self._calls.flush
        self.stop = self._calls.stop

    @property
    def lost(self) -> int:
        """Number of records that the function did not take."""
        return self._calls.lost

    def write(self, finished: Finished) -> None:
        """Take a record, if it has scores."""
        if finished.outcome.evaluation is not None:
            # The spans have ended; what they hold need not wait for the function.
            self._calls.put(replace(finished, spans=None))
