"""Reading: from a run tree to a job, its decision and its spans, on the worker's thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.weight import weigh_tree
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.engine.feedback import FeedbackDesk
from claimspan_tracing.engine.inner_records import InnerRecords
from claimspan_tracing.engine.opening import key_of
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.read.job_reader import asked_nothing, read_job
from claimspan_tracing.read.splitting import split
from claimspan_tracing.redact.redaction import MARGIN_BYTES
from claimspan_tracing.suppression import run_suppressed, run_unsuppressed
from claimspan_tracing.write.content import without_content
from claimspan_tracing.write.open_records import OpenRecord, OpenRecords
from claimspan_tracing.write.spans import build_spans, with_span_ids
from claimspan_tracing.write.writer import Writer

__all__ = ["Reading"]


class Reading:
    """Reads finished trees, and dispatches their jobs or finishes their records at once."""

    def __init__(
        self,
        settings: Settings,
        records: OpenRecords,
        queue: RecordQueue,
        decider: Decider,
        writer: Writer,
        evaluations: Evaluations,
        feedback: FeedbackDesk,
        inner: InnerRecords,
        guard: Guard,
    ) -> None:
        """Connect the parts.

        Args:
            settings: The options of the monitor.
            records: The records that have no state yet.
            queue: Holds their places.
            decider: Decides which of them are evaluated.
            writer: Finishes those that are not.
            evaluations: Takes those that are.
            feedback: Knows what users have said, and keeps what was not sampled.
            inner: Takes the queries within a run that gave several answers.
            guard: Counts what fails.
        """
        self._settings = settings
        self._records = records
        self._queue = queue
        self._decider = decider
        self._writer = writer
        self._evaluations = evaluations
        self._feedback = feedback
        self._inner = inner
        self._guard = guard

    def process(self, tree: RunTree) -> None:
        """Read a tree and dispatch its job, or finish the record at once; does not raise."""
        key = key_of(tree)
        try:
            self._read(key, tree)
        except BaseException as error:  # noqa: BLE001 - a reader or span processor may raise anything
            self._guard.swallow(error)
            failed = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
            self._writer.finish(key, failed)
            self._queue.release(key)
        finally:
            tree.release()

    def _read(self, key: JobKey, tree: RunTree) -> None:
        record = self._records.get(key)
        if record is None:  # a shutdown has finished it
            self._queue.release(key)
            return
        redaction = self._settings.redaction
        job = run_suppressed(self._job_of, tree)
        is_record = self._settings.keeps_unasked or not asked_nothing(job)
        job = shown = self._decided(job, record) if is_record else job
        has_room = self._has_room(key, tree, job)
        # Before a judge can begin: from the job on nobody holds an object of a framework.
        tree.release()
        if redaction is not None:
            shown = redaction.apply(job, self._guard)
        record.job, record.decision = shown, shown.decision or record.decision
        if not job.root_ended:
            tracer = self._settings.source.tracer()
            written = shown if self._settings.capture_content else without_content(shown)
            build = partial(build_spans, written, record.root, tracer, self._guard)
            record.spans = run_unsuppressed(record.context, build)
            # Who writes to a backend's API names each span by its id.
            is_same = shown is job
            shown = record.job = with_span_ids(shown, record.spans)
            job = shown if is_same else with_span_ids(job, record.spans)
        if self._records.get(key) is None:
            _end_runs(record, self._guard)
        if is_record:
            self._settle(key, record, job, shown, has_room=has_room)
        else:
            self._writer.withdraw(key, shown.reason)
            self._queue.release(key)

    def _settle(
        self, key: JobKey, record: OpenRecord, job: Job, shown: Job, *, has_room: bool
    ) -> None:
        """Dispatch the job of a record, or finish it at once.

        Args:
            key: Of the record.
            record: Its spans are built.
            job: As the pipeline ran it.
            shown: As everybody but the judge may see it.
            has_room: Whether the record fits into the queue.
        """
        status, reason = shown.status, shown.reason
        decision = record.decision
        if job.status is None and decision is not None and not decision.sampled:
            status, reason = decision.status or Status.NOT_SAMPLED, ""
        elif not has_room:
            status, reason = Status.QUEUE_FULL, ""
        redaction = self._settings.redaction
        judged = shown if redaction is None else redaction.for_judge(job, shown)
        if status is None:
            self._evaluations.dispatch(record, judged, shown)
        else:
            # What the redactor failed on cannot be judged later either.
            if status is Status.NOT_SAMPLED and shown.status is None:
                self._feedback.keep(judged, shown, record.context)
            self._writer.finish(key, Outcome(status=status, reason=reason))
            self._queue.release(key)

    def _job_of(self, tree: RunTree) -> Job:
        settings = self._settings
        several = None
        with self._guard:  # an output may hold any object of the user's
            several = split(tree, self._guard)
        if several is not None:
            weigh_tree(tree, self._guard)  # each query in it gets its share
        for query in () if several is None else several.queries:
            self._inner.open(tree, query)
        return read_job(
            tree,
            self._guard,
            several,
            # A redactor sees more of a text than is kept of it, and cuts it.
            margin=0 if settings.redaction is None else MARGIN_BYTES,
            capture_content=settings.capture_content,
            whole_values=settings.whole_values or settings.source.wants_whole_values,
        )

    def _has_room(self, key: JobKey, tree: RunTree, job: Job) -> bool:
        """Whether a record that is to be evaluated fits into the queue with its real weight."""
        decision = job.decision
        is_judged = job.status is None and (decision is None or decision.sampled)
        if not is_judged or not tree.unweighed:
            return True
        weigh_tree(tree, self._guard)
        return self._queue.reweigh(key, tree.size)

    def _decided(self, job: Job, record: OpenRecord) -> Job:
        """Return the job with its decision, and with what a user has said about it by now."""
        said = self._feedback.value_for(job.key)
        facts = job.facts if said is None else replace(job.facts, feedback=said)
        record.decision = self._decider.decide(facts, record.context)
        return replace(job, feedback=said, decision=record.decision)


def _end_runs(record: OpenRecord, guard: Guard) -> None:
    """End spans that were started while a shutdown ended their root."""
    for span, ended in record.ends()[:-1]:
        if span.is_recording():
            with guard:
                span.end(end_time=ended)
