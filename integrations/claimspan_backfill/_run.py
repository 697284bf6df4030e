"""One run: reads traces page by page, judges their records, and writes the scores back."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from claimspan import RagRecord
from claimspan.errors import ConfigError, DeliveryError, JudgeError, PayloadError
from claimspan.files.private import create_private, create_private_database
from claimspan.results.rows import ResultRow
from claimspan_backfill._sources import Page, Source, Window, items
from claimspan_openinference import records_of_trace, why_no_record
from claimspan_tracing import Job, Outcome, Status, semconv
from claimspan_tracing.adapters import (
    BackendWriter,
    Deliver,
    Finished,
    JobKey,
    Monitor,
    RemoteEvaluation,
    submit_ended,
    wait_until_idle,
)
from claimspan_tracing.otlp.decoding import spans_of_json

BATCH: Final = 16
"""Records that are judged before what they led to is noted: as many are judged again after a
kill."""

READ_SECONDS: Final = 60.0
"""For the records of one page to be read; they take milliseconds."""

JUDGE_SECONDS: Final = 600.0
"""For one record: no request waits for it."""

DELIVERY_SECONDS: Final = 180.0
"""For a backend to take the scores of a batch; a writer gives up a record after two minutes."""

MAX_PAGE_BYTES: Final = 2**30
"""Of the JSON that a page is decoded from, far above what a source gives."""

SPENT: Final = "the budget is spent: the same command goes on with another one"

_AGAIN: Final = frozenset(
    {Status.JUDGE_ERROR, Status.TIMEOUT, Status.OVER_BUDGET, Status.SHUTDOWN, Status.QUEUE_FULL}
)
"""States of records that another run judges."""

_LEFT_OUT: Final = {
    Status.NOT_SAMPLED: "not sampled",
    Status.NO_CONTEXT: "nothing was retrieved",
    Status.NO_ANSWER: "no answer, or one that claims nothing",
    Status.NO_GROUND_TRUTH: "no ground truth, which each of the metrics needs",
    Status.APP_ERROR: "the pipeline failed",
    Status.ABANDONED: "the answer was not read to its end",
    Status.INTERRUPTED: "interrupted, or waits for a person",
    Status.QUEUE_FULL: "larger than what is judged",
    Status.SEVERAL_ANSWERS: "several answers in one, each a record of its own if it can be told",
}


@dataclass(slots=True)
class Summary:
    """What a run has done."""

    source: str
    traces: int = 0
    """Traces that were read."""

    records: int = 0
    """Records that can be judged, without those that were not sampled."""

    judged: int = 0
    """Records that have scores by now, of this run alone."""

    undecided: int = 0
    """Those of them for which no score is decided."""

    already: int = 0
    """Records that were judged before: by another run, or live."""

    left_out: Counter[str] = field(default_factory=Counter[str])
    """Why traces and records were not judged, with how many."""

    failed: Counter[str] = field(default_factory=Counter[str])
    """Why records have no scores, with how many; the same command tries them again."""

    cost_usd: float = 0.0
    stopped: str = ""
    """Why the run has ended before the last trace; empty if it has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is done with records."""

    window: Window
    wanted: Mapping[str, str] = field(default_factory=dict[str, str])
    """Attributes that a trace has to have, on any span or resource."""

    sample: float = 1.0
    limit: int | None = None
    concurrency: int = 4


class Backfill:
    """Judges the traces of a source, or only counts their records."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        *,
        evaluation: RemoteEvaluation | None,
        writer: BackendWriter | None,
        output: ResultLines | None,
        state: State | None,
        judge: tuple[str, str] = ("", ""),
    ) -> None:
        """Put the parts together.

        Args:
            source: Where traces are.
            settings: What is done with records.
            evaluation: Judges, and writes to its sinks; None judges nothing.
            writer: The sink of the evaluation whose scores are waited for.
            output: Takes each result as well.
            state: Knows what was judged; None if nothing is to be known.
            judge: Name and version of the judge.
        """
        self._source = source
        self._settings = settings
        self._evaluation = evaluation
        self._writer = writer
        self._output = output
        self._state = state
        self._judge = judge
        self.summary: Final = Summary(source.identity)
        self._inbox = _Inbox()
        self._monitor = Monitor(
            dispatch=self._inbox,
            sample=settings.sample,
            tracer_provider=TracerProvider(shutdown_on_exit=False),
            sinks=[self._inbox],
            # A page is in memory already: what bounds it is the source.
            max_queue_bytes=MAX_PAGE_BYTES,
        )

    def run(
        self,
        advance: Callable[[], None],
        look: Callable[[Sequence[RagRecord]], None] = lambda _: None,
    ) -> Summary:
        """Read every trace, and judge the records.

        Args:
            advance: Called after each record.
            look: Called with the records of each page, before they are judged.

        Raises:
            ConfigError: The source cannot be read.
            JudgeError: The judge is away.
            DeliveryError: The backend does not take scores.
        """
        try:
            for page in self._source.pages(self._settings.window):
                jobs = [*self._jobs(page)]
                look([job.record for job in jobs])
                for at in range(0, len(jobs), BATCH):
                    self._judge_all(jobs[at : at + BATCH], advance)
                if self.summary.stopped:
                    break
        finally:
            self._monitor.shutdown(0)
            stats = self._monitor.stats
            for status, count in ({**stats.skipped, **stats.dropped}).items():
                if status != Status.DISPATCHED:
                    self.summary.left_out[_LEFT_OUT.get(Status(status), status)] += count
            if skipped := getattr(self._source, "skipped", 0):
                self.summary.left_out["lines that are not OTLP JSON"] += skipped
        return self.summary

    # --- from a page to jobs ---

    def _jobs(self, page: Page) -> Iterator[Job]:
        """The records of a page that are to be judged."""
        summary = self.summary
        judged: set[JobKey] = set()
        for spans in self._traces(page):
            summary.traces += 1
            if not self._is_wanted(spans):
                summary.left_out["another --filter"] += 1
                continue
            judged |= self._judged_live(spans)
            trees = records_of_trace(spans)
            if not trees:
                summary.left_out[why_no_record(spans)] += 1
            for tree in trees:
                submit_ended(self._monitor, tree)
        if not wait_until_idle(self._monitor, READ_SECONDS):
            raise ConfigError(
                "a page of traces cannot be read in a minute: give fewer with --until"
            )
        for job in self._inbox.taken():
            if job.key in judged or (self._state is not None and self._state.has(job.key)):
                summary.already += 1
            elif self._settings.limit is None or summary.records < self._settings.limit:
                summary.records += 1
                yield job
            else:
                summary.stopped = "--limit is reached"

    def _traces(self, page: Page) -> Iterator[Sequence[ReadableSpan]]:
        traces: defaultdict[int, list[ReadableSpan]] = defaultdict(list)
        for span in self._decoded(page):
            context = span.get_span_context()
            traces[context.trace_id if context else 0].append(span)
        for trace in [*traces]:
            yield traces.pop(trace)

    def _decoded(self, page: Page) -> Iterator[ReadableSpan]:
        """The spans of a page, without those that cannot be read."""
        request = {"resourceSpans": [*map(_with_ids, page)]}
        try:
            decoded = spans_of_json(json.dumps(request), max_bytes=MAX_PAGE_BYTES)
        except (PayloadError, RecursionError):
            # A number that JSON does not have, or what is nested too deeply: of one group alone.
            if len(page) < 2:
                self.summary.left_out["spans that are no OTLP JSON"] += len(page)
            for group in page if len(page) > 1 else ():
                yield from self._decoded([group])
            return
        if decoded.rejected:
            self.summary.left_out[f"spans with {decoded.problem}"] += decoded.rejected
        yield from decoded.spans

    def _is_wanted(self, spans: Sequence[ReadableSpan]) -> bool:
        held = [span.attributes or {} for span in spans]
        held += [span.resource.attributes for span in spans]
        return all(
            any(_shown(each[name]) == value for each in held if name in each)
            for name, value in self._settings.wanted.items()
        )

    def _judged_live(self, spans: Sequence[ReadableSpan]) -> set[JobKey]:
        """The records for which the trace has scores of this judge already."""
        found: set[JobKey] = set()
        for span in spans:
            attributes = span.attributes or {}
            name, version = (attributes.get(e) for e in (semconv.JUDGE_NAME, semconv.JUDGE_VERSION))
            scored = span.parent if span.name == semconv.SPAN_EVALUATE else span.get_span_context()
            if scored is not None and (name, version or "") == self._judge:
                found.add((f"{scored.trace_id:032x}", f"{scored.span_id:016x}"))
        return found

    # --- from jobs to scores ---

    def _judge_all(self, jobs: Sequence[Job], advance: Callable[[], None]) -> None:
        evaluation = self._evaluation
        if evaluation is None or self.summary.stopped == SPENT:
            for _ in jobs:
                advance()
            return
        with ThreadPoolExecutor(self._settings.concurrency) as pool:
            outcomes = [*pool.map(evaluation.evaluate, jobs, repeat(JUDGE_SECONDS))]
        lost = self._writer.lost if self._writer else 0
        done: list[JobKey] = []
        for job, outcome in zip(jobs, outcomes, strict=True):
            if outcome.status not in _AGAIN:
                self._write(evaluation, job, outcome)
                done.append(job.key)
        if self._writer is not None and (
            not self._writer.flush(DELIVERY_SECONDS) or self._writer.lost > lost
        ):
            raise DeliveryError(
                f"{self._writer.backend.name} did not take all scores: check "
                f"{self._writer.backend.settings}; the same command goes on"
            )
        if self._state is not None:
            self._state.add(done)
        for job, outcome in zip(jobs, outcomes, strict=True):
            self._count(job, outcome)
            advance()
        if any(outcome.unavailable for outcome in outcomes):
            why = next(outcome.reason for outcome in outcomes if outcome.unavailable)
            raise JudgeError(f"the judge is away ({why}): the same command goes on when it is back")

    def _write(self, evaluation: RemoteEvaluation, job: Job, outcome: Outcome) -> None:
        if not evaluation.write(job, outcome):
            raise DeliveryError(
                "the address of --export takes no spans: check it; the same command goes on"
            )
        if self._output is not None:
            self._output.add(job, outcome)

    def _count(self, job: Job, outcome: Outcome) -> None:
        summary, found = self.summary, outcome.evaluation
        if found is not None:
            summary.cost_usd += found.usage.cost_usd
        if outcome.status is Status.OVER_BUDGET:
            summary.stopped = SPENT
        elif outcome.status in _AGAIN:
            summary.failed[outcome.reason or outcome.status.value] += 1
        elif found is None:
            summary.left_out[_LEFT_OUT.get(outcome.status, outcome.status.value)] += 1
        else:
            summary.judged += 1
            summary.undecided += not found.metrics


def _shown(value: object) -> str:
    """A value as it is written on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Inbox:
    """Takes the jobs of a monitor in place of a judge."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._deliver: Deliver | None = None

    def taken(self) -> list[Job]:
        """Return what has come since it was asked last, in the order of the start."""
        found, self._jobs = self._jobs, []
        return sorted(found, key=lambda job: job.started)

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def dispatch(self, job: Job) -> bool:
        self._jobs.append(job)
        if self._deliver is not None:
            self._deliver(job, Outcome(status=Status.DISPATCHED))
        return True

    def withdraw(self, key: JobKey) -> bool:
        return False

    def stop(self, timeout: float) -> None:
        """Nothing is under way."""

    def write(self, finished: Finished) -> None:
        """Nothing is written: what is none of the jobs is in the monitor's books."""


class State:
    """Knows which records a judge has judged; a set of digests, 16 bytes each."""

    def __init__(self, path: Path, *parts: str) -> None:
        """Open the database, for what a record is judged by: source, judge, version, metrics.

        Raises:
            ConfigError: It cannot be written, or is another file.
        """
        self._parts = parts
        create_private_database(path, what="the state")
        try:
            self._database = sqlite3.connect(path, timeout=30)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS judged (record BLOB PRIMARY KEY) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise ConfigError(
                f"cannot use {path} as the state ({error.sqlite_errorname}): give another file "
                "with --state"
            ) from None

    def has(self, record: tuple[str, str]) -> bool:
        """Whether a record was judged, by its trace id and span id."""
        found = self._database.execute(
            "SELECT 1 FROM judged WHERE record = ?", (self._digest(record),)
        )
        return found.fetchone() is not None

    def add(self, records: Iterable[tuple[str, str]]) -> None:
        """Note that records were judged, and their scores written; on disk when it returns."""
        with self._database:
            self._database.executemany(
                "INSERT OR IGNORE INTO judged VALUES (?)", [(self._digest(e),) for e in records]
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _digest(self, record: Collection[str]) -> bytes:
        text = "\0".join((*self._parts, *record))
        return blake2b(text.encode(), digest_size=16).digest()


class ResultLines:
    """A file of results, a line a record, as ``claimspan evaluate -o`` writes them."""

    def __init__(self, path: Path) -> None:
        """Open the file, and read what it holds already.

        Raises:
            ConfigError: It cannot be written, or a line is no result.
        """
        create_private(path, what="the results")
        self._known: set[int] = set()
        self._n_lines = 0
        with path.open("r+b") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    break  # a run was killed while it wrote this
                whole += len(line)
                try:
                    row = ResultRow.model_validate_json(line)
                except ValueError:
                    raise ConfigError(
                        f"line {self._n_lines + 1} of {path} is no result: give a new file"
                    ) from None
                self._n_lines += 1
                ids = (str(row.record.metadata.get(name)) for name in _ID_NAMES)
                self._known.add(hash((*ids, row.evaluation.judge_name)))
            file.truncate(whole)
        self._file = path.open("ab")

    def add(self, job: Job, outcome: Outcome) -> None:
        """Add what was found out of a record, unless it is there."""
        found, truth = outcome.evaluation, outcome.ground_truth
        if found is None or (key := hash((*job.key, found.judge_name))) in self._known:
            return
        record = job.record.model_copy(
            update={
                "ground_truth": None if truth is None else truth.text,
                "metadata": {**job.record.metadata, **dict(zip(_ID_NAMES, job.key, strict=True))},
            }
        )
        row = ResultRow.of(self._n_lines, record, found)
        self._file.write(row.model_dump_json().encode() + b"\n")
        self._file.flush()
        self._known.add(key)
        self._n_lines += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_ID_NAMES: Final = ("trace_id", "span_id")


_IDS: Final = {
    name: (camel, size)
    for snake, camel, size in (
        ("trace_id", "traceId", 32),
        ("span_id", "spanId", 16),
        ("parent_span_id", "parentSpanId", 16),
    )
    for name in (snake, camel)
}


def _with_ids(group: Mapping[str, object]) -> Mapping[str, object]:
    """A group whose ids are in hex under OTLP's names, as some APIs have base64 of other names."""
    scopes = [
        {**scope, "spans": [dict(map(_named, each.items())) for each in items(scope, "spans")]}
        for scope in items(group, "scopeSpans")
    ]
    return {**group, "scopeSpans": scopes}


def _named(pair: tuple[str, object]) -> tuple[str, object]:
    name, value = pair
    if name not in _IDS:
        return pair
    camel, size = _IDS[name]
    if isinstance(value, str) and value and len(value) != size:
        try:
            value = base64.b64decode(value, validate=True).hex()
        except binascii.Error:
            return camel, value
    return camel, value or ""
