"""Reading: from a run tree to a job, its decision and its spans, on the worker's thread.

A run that gave several answers is read into several records: one for each query within it, whose
root span is below that of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, set_span_in_context

from claimspan.files.ground_truth import ID_KEYS
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import Run, RunTree
from claimspan_tracing.capture.weight import weigh_tree
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.status import Status
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.engine.feedback import FeedbackDesk
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.options import Settings
from claimspan_tracing.read.job_reader import asked_nothing, read_job
from claimspan_tracing.read.splitting import split
from claimspan_tracing.records import Event, Record, Records
from claimspan_tracing.redact.redaction import MARGIN_BYTES
from claimspan_tracing.suppression import run_suppressed, run_unsuppressed
from claimspan_tracing.write.sinks import without_content
from claimspan_tracing.write.spans import BARE_ROOT, build_spans, with_span_ids
from claimspan_tracing.write.writer import Writer

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Reads finished trees, and dispatches their jobs or finishes their records at once."""

    settings: Settings
    records: Records
    decider: Decider
    writer: Writer
    """Finishes the records that are not evaluated."""
    evaluations: Evaluations
    """Takes those that are."""
    feedback: FeedbackDesk
    guard: Guard

    def process(self, record: Record) -> None:
        """Read a record and have it evaluated, or finish it at once; does not raise."""
        tree, record.tree = record.tree, None
        if tree is None:
            return
        try:
            if record.is_open:  # else a shutdown has finished it
                self._read(record, tree)
        except BaseException as error:  # noqa: BLE001 - a reader or span processor may raise anything
            self.guard.swallow(error)
            failed = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
            self._finish(record, failed)
        finally:
            tree.release()

    def _read(self, record: Record, tree: RunTree) -> None:
        redaction = self.settings.redaction
        job = run_suppressed(self._job_of, tree)
        is_record = self.settings.keeps_unasked or not asked_nothing(job)
        job = shown = self._decided(job, record) if is_record else job
        has_room = self._has_room(record, tree, job)
        # Before a judge can begin: from the job on nothing holds an object of a framework.
        tree.release()
        if redaction is not None:
            shown = redaction.apply(job, self.guard)
        record.job, record.decision = shown, shown.decision or record.decision
        spans = None
        if not job.root_ended:
            tracer = self.settings.source.tracer()
            written = shown if self.settings.capture_content else without_content(shown)
            build = partial(build_spans, written, record.root, tracer, self.guard)
            record.spans = spans = run_unsuppressed(record.context, build)
            # Who writes to a backend's API names each span by its id.
            is_same = shown is job
            shown = record.job = with_span_ids(shown, spans)
            job = shown if is_same else with_span_ids(job, spans)
        if not record.is_open:  # a shutdown has ended its root meanwhile
            for span, ended in [] if spans is None else spans.ends()[:-1]:
                if span.is_recording():
                    with self.guard:
                        span.end(end_time=ended)
        elif is_record:
            self._settle(record, job, shown, has_room=has_room)
        else:
            self.writer.withdraw(record, shown.reason)
            self._done(record)

    def _settle(self, record: Record, job: Job, shown: Job, *, has_room: bool) -> None:
        """Have a record evaluated, or finish it at once; ``shown`` is for all but the judge."""
        status, reason = shown.status, shown.reason
        decision = record.decision
        if job.status is None and decision is not None and not decision.sampled:
            status, reason = decision.status or Status.NOT_SAMPLED, ""
        elif not has_room:
            status, reason = Status.QUEUE_FULL, ""
        redaction = self.settings.redaction
        judged = shown if redaction is None else redaction.for_judge(job, shown)
        if status is None:
            self.evaluations.dispatch(record, judged, shown)
            return
        # What the redactor failed on cannot be judged later either.
        if status is Status.NOT_SAMPLED and shown.status is None:
            self.feedback.keep(judged, shown, record.context)
        self._finish(record, Outcome(status=status, reason=reason))

    def _finish(self, record: Record, outcome: Outcome) -> None:
        self.writer.finish(record, outcome)
        self._done(record)

    def _done(self, record: Record) -> None:
        """Give back the place of a record that is not evaluated."""
        self.records.move(record, Event.SETTLED)
        self.records.move(record, Event.EXPORTED)

    def _job_of(self, tree: RunTree) -> Job:
        settings = self.settings
        several = None
        with self.guard:  # an output may hold any object of the user's
            several = split(tree, self.guard)
        if several is not None:
            weigh_tree(tree, self.guard)  # each query in it gets its share
        for query in () if several is None else several.queries:
            self._open_inner(tree, query)
        return read_job(
            tree,
            self.guard,
            several,
            # A redactor sees more of a text than is kept of it, and cuts it.
            margin=0 if settings.redaction is None else MARGIN_BYTES,
            capture_content=settings.capture_content,
            whole_values=settings.whole_values or settings.source.wants_whole_values,
        )

    def _has_room(self, record: Record, tree: RunTree, job: Job) -> bool:
        """Whether a record that is to be evaluated fits into the queue with its real weight."""
        decision = job.decision
        is_judged = job.status is None and (decision is None or decision.sampled)
        if not is_judged or not tree.unweighed:
            return True
        weigh_tree(tree, self.guard)
        return self.records.reweigh(record, tree.size)

    def _decided(self, job: Job, record: Record) -> Job:
        """Return the job with its decision, and with the feedback of users by now."""
        said = self.feedback.value_for(job.key)
        facts = job.facts if said is None else replace(job.facts, feedback=said)
        record.decision = self.decider.decide(facts, record.context)
        return replace(job, feedback=said, decision=record.decision)

    # --- queries within a run ---

    def _open_inner(self, tree: RunTree, query: Run) -> None:
        """Take the runs of a query out of a tree, and queue them as a record of their own."""
        inner = RunTree(tree.span, query.read_by, tree.context, closed=True)
        with self.guard:
            inner.span = self._start(tree, query)
        if inner.span is tree.span:  # no span, and hence no record
            return
        _move(query, tree, inner)
        record = Record.of(inner)
        self.records.count("produced")
        if not inner.span.is_recording() and not query.span_id:
            self.writer.refuse(record, Status.NOT_SAMPLED)
        elif not self.records.add(record):
            self.writer.refuse(record, Status.JUDGE_ERROR, "another record has the same ids")
        elif not self.records.give_place(record, inner):
            self.writer.refuse(record, Status.QUEUE_FULL)
            self._done(record)

    def _start(self, tree: RunTree, query: Run) -> Span:
        """The root span of a query: a new one, or the span that another package made."""
        around = tree.span.get_span_context()
        if query.span_id:
            return NonRecordingSpan(
                SpanContext(
                    around.trace_id,
                    query.span_id,
                    is_remote=False,
                    trace_flags=around.trace_flags,
                    trace_state=around.trace_state,
                )
            )
        start = partial(
            self.settings.source.tracer().start_span,
            semconv.SPAN_ROOT,
            kind=SpanKind.INTERNAL,
            attributes=BARE_ROOT,
            start_time=query.start,
        )
        return run_unsuppressed(tree.context, lambda: start(set_span_in_context(tree.span)))


def _move(query: Run, tree: RunTree, inner: RunTree) -> None:
    below = {id(query)}
    for run in tree.runs:  # a parent stands before its children
        if run.parent is not None and id(run.parent) in below:
            below.add(id(run))
    # What identifies the record of the whole run is not the id of each query in it.
    metadata = {**tree.root.metadata, **query.metadata}
    query.metadata = {key: value for key, value in metadata.items() if key not in ID_KEYS}
    query.parent = None
    inner.runs = [run for run in tree.runs if id(run) in below]
    inner.started, inner.size = query.start, tree.size // max(1, len(tree.runs)) * len(below)
    tree.runs = [run for run in tree.runs if id(run) not in below]
    for run in inner.runs:
        run.tree = inner
        run.reader = run.reader if run.reader is not inner.reader else None
