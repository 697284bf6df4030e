"""A monitor that keeps its records, attached to a framework, and what its records say."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from claimspan.testing import ScriptedJudge
from claimspan_tracing import Monitor
from claimspan_tracing.job import RetrieverRun
from claimspan_tracing.semconv import EVALUATION_STATUS
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import HIGH, TOWER

__all__ = ["attached", "judged", "never_judged", "no_record", "read", "searches", "texts"]


@contextmanager
def attached(
    instrument: Callable[[Monitor], Callable[[], object]], judge: ScriptedJudge | None = None
) -> Generator[InMemoryMonitor]:
    """Attach a monitor by the ``instrument`` of an integration, and detach it in the end."""
    with InMemoryMonitor(judge=judge or ScriptedJudge()) as made:
        undo = instrument(made)
        try:
            yield made
        finally:
            undo()


def texts(record: CapturedRecord) -> list[str]:
    """Return the texts of the chunks that the generator read."""
    return [chunk.text for chunk in record.record.chunks]


def read(record: CapturedRecord) -> tuple[str, str, list[str], str]:
    """Return question, answer, texts of the chunks and status."""
    found = record.record
    return found.query, found.response, texts(record), str(record.status)


def searches(record: CapturedRecord) -> list[str]:
    """Return what the retrievers were asked."""
    return [run.query for run in record.job.runs if isinstance(run, RetrieverRun)]


def judged(record: CapturedRecord, chunks: list[str], answer: str = HIGH) -> None:
    """Check that exactly this answer to ``TOWER`` was judged, by exactly these chunks."""
    assert read(record) == (TOWER, answer, chunks, "evaluated")


def no_record(monitor: InMemoryMonitor, judge: ScriptedJudge | None = None) -> None:
    """Check that a run was captured which is no record: it is not judged, and has no state."""
    assert monitor.records() == []
    assert (monitor.stats.produced, monitor.stats.unasked) == (0, 1)
    states = [(span.attributes or {}).get(EVALUATION_STATUS) for span in monitor.spans()]
    assert states
    assert set(states) == {None}
    if judge is not None:
        assert (judge.checks, judge.extractions) == ([], [])


def never_judged(monitor: InMemoryMonitor, judge: ScriptedJudge, *states: str) -> CapturedRecord:
    """Check that there is one record without an answer, of which the judge heard nothing."""
    record = monitor.only_record()
    assert record.status in (states or ("no_answer",))
    assert record.record.response == ""
    assert (judge.checks, judge.extractions) == ([], [])
    return record
