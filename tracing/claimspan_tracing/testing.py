"""A monitor that keeps records and spans in memory, to test a pipeline without a backend.

A test attaches it as the application attaches its own monitor, runs the pipeline, and asks for the
records::

    from claimspan_langchain import ClaimspanCallbackHandler
    from claimspan_tracing.testing import InMemoryMonitor

    def test_an_invented_sentence_lowers_faithfulness():
        with InMemoryMonitor() as monitor:
            config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
            chain.invoke("Where is the tower?", config)

            record = monitor.only_record()

        assert record.status == "evaluated"
        assert record.scores["faithfulness"] == 0.5

Every query is evaluated, by a judge that entails the claims which a reference contains word for
word (``claimspan.testing.ScriptedJudge``). Give another judge, a ground truth or a sampler as to
``Monitor``::

    InMemoryMonitor(judge=ScriptedJudge(error=JudgeError("the endpoint is down")))
    InMemoryMonitor(ground_truth={"Where is the tower?": "The tower is in Paris."})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, Unpack

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan import RagRecord
from claimspan.errors import ConfigError
from claimspan.testing import ScriptedJudge
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.monitor import Monitor, MonitorOptions
from claimspan_tracing.write.sinks import Finished

__all__ = ["CapturedRecord", "InMemoryMonitor"]

FLUSH_SECONDS: Final = 10.0
"""How long a test waits for its records unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class CapturedRecord:
    """One finished record of a test."""

    job: Job
    """The captured record, with its runs, its times and the sampler's decision."""

    outcome: Outcome
    """The outcome of its evaluation."""

    @property
    def record(self) -> RagRecord:
        """Query, chunks that the generator read, response and metadata."""
        return self.job.record

    @property
    def status(self) -> Status:
        """The state that the record ended in; a ``StrEnum``."""
        return self.outcome.status

    @property
    def scores(self) -> dict[str, float]:
        """Metric to value; an undefined metric is absent, and all are if nothing was judged."""
        evaluation = self.outcome.evaluation
        return {} if evaluation is None else dict(evaluation.metrics)


class InMemoryMonitor(Monitor):
    """A monitor with a tracer provider of its own, whose spans and records stay in memory.

    It runs the whole path of a record: threads, sampler, judge and sinks are those of ``Monitor``.
    As a context manager it shuts itself down at the end of the block.
    """

    def __init__(self, **options: Unpack[MonitorOptions]) -> None:  # pyright: ignore[reportInconsistentConstructor] - as for Monitor
        """Make a monitor that evaluates every query.

        Args:
            options: Keyword arguments of ``Monitor``, apart from ``tracer_provider``. Without
                ``judge`` a ``ScriptedJudge`` decides, which needs no model; without ``sample``
                the share is 1.0.

        Raises:
            ConfigError: An option cannot work, or ``tracer_provider`` is given.
        """
        if "tracer_provider" in options:
            raise ConfigError(
                "InMemoryMonitor has a tracer provider of its own: add processors to its provider, "
                "or use Monitor"
            )
        self.provider: Final = TracerProvider(shutdown_on_exit=False)
        """Gets the spans; a test may add span processors to it, or take a tracer from it."""
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._collector = _Collector()
        defaults: MonitorOptions = {"judge": ScriptedJudge(), "sample": 1.0}
        ours: MonitorOptions = {
            "tracer_provider": self.provider,
            "sinks": (*options.get("sinks", ()), self._collector),
        }
        super().__init__(**(defaults | options | ours))

    def records(self, timeout: float = FLUSH_SECONDS) -> list[CapturedRecord]:
        """Wait for the records so far, and return them in the order in which their queries began.

        A record whose scores came late is returned once, with its late outcome. A record that was
        refused before it was read (its trace is not recorded, the queue was full, or the monitor
        was shut down) is counted in ``stats`` alone.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            AssertionError: A record has no state yet after ``timeout`` seconds.
        """
        # What ``flush`` returns is of no use here: False also means that a record was dropped,
        # which may be what the test is about.
        self.flush(timeout)
        if pending := self.stats.pending:
            raise AssertionError(
                f"{pending} of {self.stats.produced} records have no state after {timeout:g} s: "
                "give a longer timeout, or a judge that answers sooner"
            )
        # A copy made in one step: the worker may write meanwhile.
        return sorted(list(self._collector.values()), key=lambda record: record.job.started)

    def only_record(self, timeout: float = FLUSH_SECONDS) -> CapturedRecord:
        """Wait for the one record of a test, and return it.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            AssertionError: There is no record or more than one; the message counts them.
        """
        records = self.records(timeout)
        if len(records) == 1:
            return records[0]
        if records:
            raise AssertionError(
                f"{len(records)} records were captured where one was expected: the pipeline was "
                "called several times, or more than one call below it was taken for a query; "
                "records() returns all of them"
            )
        stats = self.stats
        if not stats.produced:
            raise AssertionError(
                "no record was captured: attach this monitor to the pipeline (its callback, or "
                "instrument) before the call, and call the pipeline"
            )
        counts = {**stats.skipped, **stats.dropped}
        listed = ", ".join(f"{status}: {count}" for status, count in counts.items())
        raise AssertionError(
            f"no record was read ({listed or 'all were cleared'}); stats counts them"
        )

    def spans(self, timeout: float = FLUSH_SECONDS) -> tuple[ReadableSpan, ...]:
        """Wait for the records so far, and return every span exported, in the order of their ends.

        Args:
            timeout: Seconds to wait at most.
        """
        self.flush(timeout)
        return self._exporter.get_finished_spans()

    def clear(self, timeout: float = FLUSH_SECONDS) -> None:
        """Forget the records and spans so far, once they are finished; ``stats`` go on counting.

        Args:
            timeout: Seconds to wait at most.
        """
        self.flush(timeout)
        self._collector.clear()
        self._exporter.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.shutdown()
        self.provider.shutdown()


class _Collector(dict[JobKey, CapturedRecord]):
    """A sink that keeps the last outcome of each record."""

    def write(self, finished: Finished) -> None:
        self[finished.job.key] = CapturedRecord(finished.job, finished.outcome)
