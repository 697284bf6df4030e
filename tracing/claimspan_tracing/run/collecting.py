"""Brings each record of a run back to the question that it belongs to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import context as otel_context

from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing import semconv
from claimspan_tracing.decide.sampling import Decision, Facts
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import JobKey
from claimspan_tracing.run.files import DatasetItem
from claimspan_tracing.write.sinks import Finished

__all__ = ["ITEM_KEY", "Collector", "item_key", "of_item"]

ITEM_KEY: Final = "dataset_item"
"""Key of a record's metadata: the id of the question, else ``#`` with its place from 1."""

MAX_METADATA_BYTES: Final = 16 * 1024
"""Metadata of a question that go onto its trace; longer ones stay in the results alone."""

NOTHING_SECONDS: Final = 5.0
"""How long a question that was answered waits for a record of which nothing was seen."""

SCORES_SECONDS: Final = 660.0
"""How long it waits for the state of a record that was seen: longer than a trace is held."""

MORE_SECONDS: Final = 0.5
"""How long it waits for a better record, if the record seen so far lacks an answer or chunks. The
worker reads records in milliseconds."""


def item_key(index: int, item: DatasetItem) -> str:
    """Return what identifies a question within its dataset."""
    return f"#{index + 1}" if item.id is None else item.id


@contextmanager
def of_item(key: str, metadata: Mapping[str, object]) -> Generator[None]:
    """Let whatever is captured in the block carry the question's key and metadata.

    They stand in OpenTelemetry's context where OpenInference's ``using_metadata`` would put them,
    so that every integration finds them.
    """
    # The key last: a dataset made from an earlier run has one of that run in its metadata.
    attached = json.dumps({**metadata, ITEM_KEY: key})
    if len(attached.encode()) > MAX_METADATA_BYTES:
        attached = json.dumps({ITEM_KEY: key})
    token = otel_context.attach(otel_context.set_value(semconv.METADATA, attached))
    try:
        yield
    finally:
        otel_context.detach(token)


@dataclass(slots=True)
class _Seen:
    announced: dict[JobKey, bool] = field(default_factory=dict[JobKey, bool])
    """Record to whether it can be evaluated."""

    finished: dict[JobKey, Finished] = field(default_factory=dict[JobKey, Finished])
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Collector:
    """A sampler that takes every record, a sink that gets it, and the look-up of its ground truth.

    A sampler sees a record as soon as it was read, so that it is known how many records of one
    question there will be.
    """

    wants_unasked: Final = True
    """A retriever alone gives a row as well: the ground truth tells the facts that it missed."""

    def __init__(self, items: Mapping[str, DatasetItem], *, evaluate: bool) -> None:
        self._items = items
        self._evaluate = evaluate
        self._seen: dict[str, _Seen] = {}
        # A sink may get a record without its metadata, where texts are not to be captured.
        self._item_of: dict[JobKey, str] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def expect(self, key: str) -> None:
        """Begin to collect the records of a question, in the running loop."""
        self._loop = asyncio.get_running_loop()
        with self._lock:
            self._seen[key] = _Seen()

    async def take(self, key: str) -> Finished | None:
        """Wait for the record of a question that was answered; None if nothing was captured."""
        seen = self._seen[key]
        while True:
            with self._lock:
                under_way = seen.announced.keys() - seen.finished.keys()
                # All of them: of two chains in a function the one with scores may come last.
                if any(seen.announced.values()) and not under_way:
                    break
                patience = SCORES_SECONDS if under_way else MORE_SECONDS
                if not seen.announced:
                    patience = NOTHING_SECONDS
            try:
                await asyncio.wait_for(seen.changed.wait(), patience)
            except TimeoutError:
                break
            seen.changed.clear()
        return self.forget(key)

    def forget(self, key: str) -> Finished | None:
        """Stop collecting the records of a question; returns the best one so far."""
        with self._lock:
            seen = self._seen.pop(key, None)
            for record in () if seen is None else seen.announced:
                self._item_of.pop(record, None)
            return max(seen.finished.values(), key=_worth, default=None) if seen else None

    def decide(self, facts: Facts) -> Decision:
        """Take the record, or none if nothing is to be evaluated."""
        key = (f"{facts.trace_id:032x}", f"{facts.span_id:016x}")
        with self._lock:
            # A record without the key, such as one made at an import, is of no question.
            item = str(facts.attributes.get(ITEM_KEY))
            if seen := self._seen.get(item):
                self._item_of[key] = item
                seen.announced[key] = facts.can_be_evaluated
                self._tell(seen)
        return Decision(sampled=self._evaluate, rate=1.0, reason="dataset")

    def write(self, finished: Finished) -> None:
        """Note a finished record."""
        with self._lock:
            item = self._item_of.get(finished.job.key)
            if item is not None and (seen := self._seen.get(item)):
                seen.finished[finished.job.key] = finished
                self._tell(seen)

    def ground_truth(self, query: str, metadata: Mapping[str, object]) -> GroundTruthMatch | None:
        """Return the ground truth of the question that a record belongs to."""
        item = self._items.get(str(metadata.get(ITEM_KEY)))
        if item is None or item.ground_truth is None:
            return None
        return GroundTruthMatch(text=item.ground_truth, matched_by="id")

    def _tell(self, seen: _Seen) -> None:
        if self._loop is not None and not self._loop.is_closed():
            # Called on the worker's thread, and an asyncio event may be set on its loop's thread
            # alone.
            self._loop.call_soon_threadsafe(seen.changed.set)


def _worth(finished: Finished) -> tuple[bool, bool, int]:
    """The record with scores is the best one, or else one with chunks, or else the last one."""
    outcome, job = finished.outcome, finished.job
    has_scores = outcome.evaluation is not None or outcome.status is Status.NOT_SAMPLED
    return has_scores, bool(job.record.chunks), job.ended
