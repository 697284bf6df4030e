"""The monitor: the one object that an application makes."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import NoReturn, Self, SupportsIndex, Unpack

from opentelemetry.trace import SpanContext

from claimspan.daemon_threads import refuse_eventlet
from claimspan.errors import ClaimspanError
from claimspan.judges.choice import JudgeLike
from claimspan_tracing.blocking import may_block
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.engine import (
    CapturedRecord,
    Engine,
    checked_feedback,
    collected_records,
)
from claimspan_tracing.health import Diagnosis, diagnose
from claimspan_tracing.lifecycle import EXIT_TIMEOUT, restart_in_child
from claimspan_tracing.observed import ObservedReader, ObservedRecord, open_record
from claimspan_tracing.options import GroundTruthLike, MonitorOptions, settings_of
from claimspan_tracing.records.table import Stats

__all__ = ["EXIT_TIMEOUT", "CapturedRecord", "GroundTruthLike", "Monitor", "MonitorOptions"]


class Monitor:
    """Captures every query of a pipeline, and evaluates a sample of them off the request path.

    Make one for the whole process and give it to the integrations. It uses the tracer provider
    given to it, else the global one that the application has set, else one of its own made by
    ``configure()``; it never sets or replaces a global provider. Its threads start with the first
    query.

    Args:
        judge: Who decides: a judge, the name of one as ``CLAIMSPAN_JUDGE`` takes it (``"local"``,
            ``"openai:gpt-4o-mini"``), or a model object of a framework, see ``judge_of``; None
            takes ``default_judge()``.
        metrics: What to measure: names, as a list or separated by commas, ``"all"``,
            ``Criterion(...)`` of your own that a language model judges, functions from an
            evaluation to a number. None measures ``faithfulness``, ``groundedness`` and
            ``contradicted_by_chunks``, and with a ground truth ``precision``, ``recall``, ``f1``,
            ``claim_recall`` and ``context_precision`` as well. Only chosen metrics are judged.
        thresholds: Metric to its worst value that is good, for others than the usual ones:
            ``{"faithfulness": 0.9}``. Label, summary and blame of a record follow from them.
        ground_truth: Responses known to be right: path of a JSONL or CSV file, mapping,
            ``callable(query, metadata)``, which may be asynchronous, or ``GroundTruth``. Without
            one, metrics that need it are not measured.
        sample: Share of the records to evaluate, 0.0 to 1.0, or a sampler. None evaluates all of
            them, as far as the other bounds allow it, and says in the log once what a thousand
            records cost if the judge costs money and there is no ``budget``.
        hold_seconds: How long the spans of a query wait for its scores, from the end of its
            root. Scores that come later go to a carrier span.
        tracer_provider: Gets the spans.
        max_queue_records: Records under way at once, from the end of the root to the end of
            the evaluation; more are refused with ``queue_full``.
        max_queue_bytes: Approximate bytes of text that these may keep alive.
        sinks: Write finished records to further places, in order, after our own.
        on_result: Called with the ``Finished`` of every record that was evaluated, also if its
            scores came late. It may be asynchronous, and then takes 30 s at most. It runs on a
            thread of its own and delays no answer; if it raises, or 1,000 results wait for it, a
            result is lost and counted in ``stats.undelivered``. It gets no result twice.
        alerts: Thresholds for the means of scores, and for the shares of states. An alert that
            fires or resolves is a ``claimspan.alert`` log event and a line in the log.
        on_alert: Called with each ``AlertEvent`` as well, as ``on_result`` is with results.
        redact: Redacts every text before any judge, span, sink or file gets it: ``callable(text)``,
            or ``"pii"`` for ``PiiRedactor()``. Called on a thread of its own. If it raises, or does
            not return within 5 s, the text is left out; a record that the judge then cannot read
            ends as ``judge_error``. Samplers get raw facts, and the look-up of ground truth gets
            the judge's texts.
        redact_for: Who gets redacted texts: ``{"export"}`` lets the judge alone see them raw.
        capture_content: False writes no text on spans, events and sinks; records are evaluated all
            the same. ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=NO_CONTENT`` says the
            same, and wins. Spans of other instrumentations are not changed.
        budget: Limits the cost of judging, the sampler's first judge included. A record beyond it
            ends as ``over_budget``.
        spool: File in which records wait for their evaluation, so that they survive the end
            of the process. Several processes may share it.
        dispatch: Has records evaluated elsewhere, such as by Celery workers; None evaluates
            them on a thread of this process.
        serverless: Evaluate or spool each record before the pipeline's call returns, for
            platforms that freeze the process between requests. The call waits at most
            ``hold_seconds``, and half a second for the export; in an event loop, which must not
            wait, ``await aflush()`` instead.
        exit_timeout: Seconds that the end of the process may take in all, even if something hangs.
            With several monitors, the longest counts. A kernel of Jupyter, which is killed sooner,
            takes 2 s if none has set another time than the default.
        worker: The judge computes on a ``"thread"``, or in a ``"process"`` of its own, which takes
            no turn at this interpreter. The judge is then given by name, or has a method
            ``arguments()``. None takes ``CLAIMSPAN_WORKER``, else a thread, and for records with a
            text of more than 8,000 characters a process, if the judge can be made in one: a step of
            a judge that reads for long keeps the interpreter from the application.
        max_cpu_share: Share of a core that evaluating may take, above 0 up to 1. Its threads rest
            between their steps, which leaves the interpreter to the application; 1 never rests. If
            more records come than fit, fewer are sampled, and their weights say so.

    Raises:
        ConfigError: An argument cannot work.
        GroundTruthError: The ground-truth file cannot be read.
    """

    def __new__(cls, *judge: object, **options: object) -> Self:
        """Note the options and who has given them, before a class derived from it adds its own."""
        made = super().__new__(cls)
        made.given = dict(zip(("judge",), judge, strict=False)) | options
        caller = inspect.currentframe()
        caller = caller and caller.f_back
        made.made_at = (caller.f_code.co_filename, caller.f_lineno) if caller else ("", 0)
        return made

    given: Mapping[str, object]
    """The options that it was made with, for adapters: whether another one says the same."""

    made_at: tuple[str, int]
    """File and line of the code that made it, for adapters."""

    def __init__(  # pyright: ignore[reportInconsistentConstructor] - __new__ takes the same
        self, by_place: JudgeLike | None = None, /, **options: Unpack[MonitorOptions]
    ) -> None:
        if by_place is not None and "judge" in options:
            raise TypeError("Monitor() got a judge by its place and another one by name")
        try:
            refuse_eventlet()
            placed: MonitorOptions = {} if by_place is None else {"judge": by_place}
            self._settings = settings_of(placed | options)
        except ClaimspanError as error:
            # Without the frames of our checks: who reads the traceback looks for the call.
            raise error.with_traceback(None) from None
        # A plain attribute, since every hook of an adapter reads it.
        self.engine = self._new_engine()
        """What runs the records of this process; for adapters, not for applications."""
        restart_in_child(self)
        # A restarted service may be long without a query, and its last records wait.
        rows = self.engine.records.spool
        with may_block():  # a file is read
            if rows is not None and rows.has_rows:
                self.engine.take_over()

    def __copy__(self) -> Self:
        """Returns the monitor itself: a copied chain is monitored as the chain that it is of."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Say why a monitor cannot be pickled, by a ``TypeError`` as of everything of this kind."""
        raise TypeError(
            "a Monitor cannot be pickled, since its threads and spans are of this process: make "
            "one in each process, where the chain or the pipeline is made"
        )

    @property
    def is_shut_down(self) -> bool:
        """Whether ``shutdown`` was called, so that records are traced and not evaluated."""
        return self.engine.is_closed

    @property
    def stats(self) -> Stats:
        """Counts of the records so far, by state."""
        return self.engine.stats

    def record(
        self,
        query: str,
        *,
        name: str = "record",
        metadata: Mapping[str, object] | None = None,
    ) -> ObservedRecord:
        """Capture a query that the application's own code answers, without a framework.

        ``with monitor.record(query) as record:`` is a record from the beginning of the block to its
        end. Report the documents with ``record.retrieved(documents)``, and the answer with
        ``record.answered(text)``. A retriever or a model of a framework that runs in the block,
        with an integration of the same monitor attached, joins the record by itself. A block within
        the block of another record belongs to that one.

        Args:
            query: What the user asked.
            name: Name of the pipeline: the route, and a part of the root's name.
            metadata: Facts about the query, such as ``session.id``, ``user.id`` or ``id``.

        Returns:
            The record, whose ``trace_id`` and ``span_id`` are known from the beginning.
        """
        capture = Capture(ObservedReader(), self)
        return open_record(capture, self.feedback, name=name, inputs=query, metadata=metadata)

    def collect_records(self) -> AbstractContextManager[list[CapturedRecord]]:
        """Get a handle on each query that starts in a block, in any framework.

        ``with monitor.collect_records() as records:`` around ``chain.invoke(question, ...)``. Each
        handle has the ``trace_id`` and the ``span_id`` of the query, and ``feedback(value)`` at any
        later time. A query is in the list from its start, also while it runs and if it raises.
        Threads and tasks that take the context along, such as those of ``chain.batch``, add to the
        same list; requests that are served side by side have lists of their own. Queries whose
        spans an instrumentor of OpenInference makes are not in it.
        """
        return collected_records(self._settings, self.feedback)

    def feedback(
        self, value: float, *, trace_id: str | int | SpanContext, span_id: str | int = ""
    ) -> None:
        """Note what a user said about a response, at any time. Returns at once.

        It is written as a ``gen_ai.evaluation.result`` event with the name ``user_feedback``. If
        the sampler has a rule about ``feedback()``, it also decides: about a record that is still
        under way as a fact, about one that was not sampled once more. Scores that come so late go
        to a carrier span, with weight 0, since they are no random sample.

        For that, and only with such a rule, records that were not sampled stay in memory with their
        texts: 1,000 at most, 16 million characters, for an hour. They do not outlive the process,
        and feedback that reaches another process of the service is an event there and nothing more.

        Args:
            value: From 0.0 (bad) to 1.0 (good).
            trace_id: Trace of the query: 32 hex digits, a number, or the context of its root span.
            span_id: Root span of the query, 16 hex digits or a number. Without it the feedback is
                about every query of the trace.

        Raises:
            ConfigError: The value is out of its range, or an id is malformed.
        """
        self.engine.feedback(checked_feedback(value, trace_id, span_id))

    def check(self, timeout: float = 30.0) -> Diagnosis:
        """Check everything that scores depend on, before traffic comes or when none are seen.

        Sends one span named ``claimspan.doctor``, and has the judge decide about one claim, which a
        language model is paid for. ``claimspan doctor path.py:monitor`` does the same.

        Args:
            timeout: Seconds that exporter, judge and clock may take, each.

        Returns:
            The findings, line by line, each with its remedy; ``str`` shows them.
        """
        return diagnose(self._settings, self.stats, timeout)

    async def acheck(self, timeout: float = 30.0) -> Diagnosis:
        """As ``check``, without blocking the event loop."""
        return await asyncio.to_thread(self.check, timeout)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every record so far has its state, and its spans and result have arrived.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False if something is left, or was dropped or not delivered since the last flush.
        """
        return self.engine.flush(timeout)

    async def aflush(self, timeout: float = 10.0) -> bool:
        """As ``flush``, without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def shutdown(self, timeout: float = 5.0) -> bool:
        """Wait for records under way, then end all other spans with ``shutdown``.

        Traffic after it is still traced, with status ``shutdown``. Safe to call twice.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            As ``flush``.
        """
        return self.engine.shutdown(timeout)

    def restart_in_child(self) -> None:
        """Begin anew in a forked child; the spans under way are its parent's to end."""
        self._retire.detach()
        self.engine = self._new_engine()

    def _new_engine(self) -> Engine:
        engine = Engine(self._settings)
        # The threads of an engine keep it alive, so it is told when it can be used no more.
        self._retire = weakref.finalize(self, engine.retire)
        self._retire.atexit = False  # at exit, its records are waited for
        return engine
