"""Reads the pairs of all records that a judge has at one time in common batches.

A record of ten chunks has some forty pairs to read, a few at a time: which ones come next depends
on what the first ones gave. The pairs of several records fill a batch that those of one do not.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from claimspan.judges.local.background import InferenceStoppedError, InferenceThread, Stop
from claimspan.judges.local.cross_encoder import CrossEncoder, Reading, TextPair
from claimspan.judges.local.reading import Decided, Reads

__all__ = ["SharedReads", "Work"]

# Records that are read together; more would wait longer for their verdicts, in fuller batches.
_TOGETHER: Final = 8


class Work(NamedTuple):
    """What one record needs."""

    encoder: CrossEncoder
    reads: Reads


class SharedReads:
    """The records that wait for the model of one judge."""

    def __init__(self, thread: InferenceThread) -> None:
        """Has no record yet.

        Args:
            thread: The thread on which the model runs.
        """
        self._thread = thread
        self._waiting: deque[_Record] = deque()

    async def run(self, begin: Callable[[Stop], Work]) -> Decided:
        """Reads what one record needs, together with other records, and waits for its verdicts.

        Where the waiting task is cancelled, the record is left out from the next turn on.

        Args:
            begin: Called on the thread; loads the model where need be.

        Raises:
            InferenceStoppedError: The process ends.
        """
        record = _Record(begin)
        self._waiting.append(record)
        try:
            self._thread.submit(self._work_off)
            return await asyncio.wrap_future(record.future)
        except (asyncio.CancelledError, InferenceStoppedError):
            record.is_cancelled.set()
            raise

    def _work_off(self, stop: Stop) -> None:
        """Reads until no record is left; those that come meanwhile join at the next turn."""
        active: list[_Record] = []
        while self._waiting or active:
            while self._waiting and len(active) < _TOGETHER:
                record = self._waiting.popleft()
                record.begin(stop)
                active.append(record)
            active = [each for each in active if not each.future.done()]
            if active:
                _turn(active, stop)


def _turn(active: Sequence[_Record], stop: Stop) -> None:
    """Reads the next pairs of all records at once, or of each alone where that fails."""

    def stop_all() -> None:
        stop()
        if all(each.is_cancelled.is_set() for each in active):
            raise InferenceStoppedError("the inference was stopped: nobody waits for its result")

    pairs = [pair for each in active for pair in each.pairs]
    try:
        found = active[0].encoder.read(pairs, stop_all)
    except Exception as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
        if len(active) == 1:
            active[0].fail(error)
            return
        for each in active:
            _turn([each], stop)
        return
    start = 0
    for each in active:
        end = start + len(each.pairs)
        each.go_on(Reading(found.logits[start:end], found.cut[start:end]))
        start = end


class _Record:
    """One record, and whether somebody still waits for it."""

    encoder: CrossEncoder

    def __init__(self, begin: Callable[[Stop], Work]) -> None:
        self.future: Future[Decided] = Future()
        self.is_cancelled = threading.Event()
        self.pairs: Sequence[TextPair] = ()
        """The pairs to read next."""
        self._begin = begin

    def begin(self, stop: Stop) -> None:
        """Prepares the record, up to the first pairs that it needs."""
        if not self.future.set_running_or_notify_cancel():
            return

        def stop_this() -> None:
            stop()
            if self.is_cancelled.is_set():
                raise InferenceStoppedError("the inference was stopped: nobody waits for it")

        try:
            self.encoder, self._reads = self._begin(stop_this)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
            self.fail(error)
        else:
            self._advance(lambda: next(self._reads))

    def go_on(self, found: Reading) -> None:
        """Takes what the model says of the pairs."""
        if self.is_cancelled.is_set():
            self.fail(InferenceStoppedError("the inference was stopped: nobody waits for it"))
        else:
            self._advance(lambda: self._reads.send(found))

    def fail(self, error: BaseException) -> None:
        """Gives an error to whoever awaits the verdicts."""
        self.future.set_exception(error)

    def _advance(self, step: Callable[[], Sequence[TextPair]]) -> None:
        try:
            self.pairs = step()
        except StopIteration as ended:
            self.future.set_result(ended.value)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
            self.fail(error)
