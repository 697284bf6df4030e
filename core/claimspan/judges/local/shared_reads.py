"""Reads the pairs of the records that a judge has at one time, in common batches, oldest first.

A record of ten chunks has some forty pairs to read, a few at a time: which ones come next depends
on what the first ones gave. If those of one record do not fill a batch, the next ones fill it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Final, NamedTuple

from claimspan.errors import JudgeError
from claimspan.judges.local.background import InferenceStoppedError, InferenceThread, Stop
from claimspan.judges.local.cross_encoder import CrossEncoder, PairLogits, TextPair
from claimspan.judges.local.reading import Decided, Reads

__all__ = ["SharedReads", "Work"]

# Pairs of a turn that leave no room for another record. Records that shared every turn would all
# have their verdicts at the end: with eight of them the first verdicts took five times as long, for
# no more records a second, and on a small share of a core all of them came too late.
_FULL: Final = 8


class Work(NamedTuple):
    """What one record needs."""

    encoder: CrossEncoder
    reads: Reads


class SharedReads:
    """The records that wait for the model of one judge."""

    def __init__(self, thread: InferenceThread) -> None:
        self._thread = thread
        self._waiting: deque[_Record] = deque()

    async def run(self, begin: Callable[[Stop], Work], *, goes_on: bool = False) -> Decided:
        """Reads what one record needs, after older records, and waits for its verdicts.

        If the waiting task is cancelled, the record is left out from the next turn on.

        Args:
            begin: Called on the thread; loads the model if need be.
            goes_on: Whether the record has been here before: it is older than all that wait.

        Raises:
            InferenceStoppedError: The process ends.
        """
        record = _Record(begin)
        (self._waiting.appendleft if goes_on else self._waiting.append)(record)
        try:
            self._thread.submit(self._work_off)
            return await asyncio.wrap_future(record.future)
        except (asyncio.CancelledError, InferenceStoppedError):
            record.is_cancelled.set()
            raise

    def _work_off(self, stop: Stop) -> None:
        """Reads until no record is left; those that come meanwhile wait for the older ones."""
        begun: list[_Record] = []
        while begun or self._waiting:
            if turn := self._oldest(begun, stop):
                _turn(turn, stop)
            begun = [each for each in begun if each.is_open()]

    def _oldest(self, begun: list[_Record], stop: Stop) -> list[_Record]:
        """The records of the next turn; begins others if their pairs leave room."""
        turn: list[_Record] = []
        n_pairs = 0
        while n_pairs < _FULL and (len(turn) < len(begun) or self._waiting):
            if len(turn) == len(begun):
                record = self._waiting.popleft()
                record.begin(stop)
                if record.future.done():
                    continue
                begun.append(record)
            turn.append(begun[len(turn)])
            n_pairs += len(turn[-1].pairs)
        return turn


def _turn(records: Sequence[_Record], stop: Stop) -> None:
    """Reads the next pairs of some records at once, or of each alone if that fails."""

    def stop_all() -> None:
        stop()
        if all(each.is_cancelled.is_set() for each in records):
            raise InferenceStoppedError

    pairs = [pair for each in records for pair in each.pairs]
    try:
        found = records[0].encoder.read(pairs, stop_all)
    except BaseException as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
        if len(records) == 1:
            records[0].fail(error)
            return
        for each in records:
            _turn([each], stop)
        return
    left = iter(found)
    for each in records:
        each.go_on(list(islice(left, len(each.pairs))))


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
        if not self.future.set_running_or_notify_cancel():
            return

        def stop_this() -> None:
            stop()
            if self.is_cancelled.is_set():
                raise InferenceStoppedError

        try:
            self.encoder, self._reads = self._begin(stop_this)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
            self.fail(error)
        else:
            self._advance(lambda: next(self._reads))

    def go_on(self, found: Sequence[PairLogits]) -> None:
        if self.is_open():
            self._advance(lambda: self._reads.send(found))

    def is_open(self) -> bool:
        """Whether somebody still waits for verdicts; gives up the record if nobody does."""
        if self.is_cancelled.is_set() and not self.future.done():
            self.fail(InferenceStoppedError())
        return not self.future.done()

    def fail(self, error: BaseException) -> None:
        # A panic of native code is no ``Exception``: it would end the event loop of the waiting
        # task, and every other evaluation with it.
        if not isinstance(error, Exception):
            error = JudgeError(f"the model broke off: {type(error).__name__}")
        self.future.set_exception(error)

    def _advance(self, step: Callable[[], Sequence[TextPair]]) -> None:
        try:
            self.pairs = step()
        except StopIteration as ended:
            self.future.set_result(ended.value)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the verdicts gets it
            self.fail(error)
