"""How the cost of tracing grows: the caller's hooks, reading, building spans, and the queue."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from functools import partial
from typing import Final, cast

from growth_curves import Curve, cpu, measure
from growth_judging import text_of
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN

from claimspan import Claim, VerdictMatrix
from claimspan.testing import ScriptedJudge
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import Document, Generation, Retrieval, Run, RunKind, open_capture
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.capture.runs import Reader, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job
from claimspan_tracing.read.job_reader import read_job
from claimspan_tracing.records import Event, Record, Records
from claimspan_tracing.write.spans import build_spans

__all__ = ["tracing_curves"]

CHUNK_WORDS: Final = 130
MESSAGE_WORDS: Final = 30
FLUSH_SECONDS: Final = 120.0

Messages = list[tuple[str, str]]
Values = Callable[[int], tuple[list[str], Messages]]


class NoExporter(SpanExporter):
    """Takes spans and sends them nowhere."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class PlainReader(Reader):
    """Reads runs whose inputs and outputs are plain values."""

    def is_query(self, root: Run) -> bool:
        return True

    def query(self, root: Run) -> object:
        return root.inputs

    def response(self, root: Run) -> object:
        return root.outputs

    def names_answer(self, root: Run) -> bool:
        return True

    def retrieval(self, run: Run) -> Retrieval:
        texts = cast("list[str]", run.outputs)
        return Retrieval(run.inputs, [Document(text, str(i)) for i, text in enumerate(texts)])

    def generation(self, run: Run) -> Generation:
        found = cast("Messages", run.inputs)
        prompt = "\n".join(text for _, text in found)
        return Generation(prompt, run.outputs, "model", messages=found)

    def parts(self, value: object) -> list[object]:
        return []


READER: Final = PlainReader()
PROVIDER: Final = TracerProvider(shutdown_on_exit=False)
PROVIDER.add_span_processor(BatchSpanProcessor(NoExporter(), schedule_delay_millis=3_600_000))
TRACER: Final = PROVIDER.get_tracer("growth")


def query(capture: Capture, name: str, texts: list[str], messages: Messages) -> None:
    """What a pipeline reports of one query: root, retriever, generator."""
    retriever, generator = f"{name}r", f"{name}g"
    capture.start(name, None, RunKind.CHAIN, "rag", "What do these topics say?")
    capture.start(retriever, name, RunKind.RETRIEVER, "store", "topics")
    capture.end(retriever, texts)
    capture.start(generator, name, RunKind.GENERATOR, "model", messages)
    capture.end(generator, "They say much.")
    capture.end(name, "They say much.")


def _texts(n: int, words: int = CHUNK_WORDS) -> list[str]:
    return [text_of(words, start=i * words) for i in range(n)]


def _messages(n: int) -> Messages:
    return [("user", text) for text in _texts(n, MESSAGE_WORDS)]


def tracing_curves(most: int, rounds: int) -> Iterator[Curve]:
    """Yield the curves of the way of a record, but for judging.

    Args:
        most: Chunks of the largest record; other sizes go with it.
        rounds: Measurements of each point.
    """
    sizes = [n for n in (1, 3, 10, 30, 100, 300) if n < most] + [most]
    kinds: tuple[tuple[str, str, Values], ...] = (
        ("chunks", "chunks", lambda n: (_texts(n), _messages(1))),
        ("history", "messages of the prompt", lambda n: (_texts(10), _messages(n))),
        ("documents", "kB of one chunk", lambda n: (_texts(1, n * 1000 // 6), _messages(1))),
    )
    for group, label, values in kinds:
        for name, work in (("capture", _captured), ("read", _read), ("build spans", _built)):
            curve = Curve(name, group, label, "ms")
            yield measure(curve, sizes, partial(_prepared, work, values), rounds)
    yield from _open_runs([n for n in (1, 10, 100, 1000) if n < most * 10] + [most * 10], rounds)
    depths = [n for n in (10, 100, 1000) if n < most * 10] + [most * 10]
    yield measure(
        Curve("queue, one record in and out", "queue", "records waiting", "ms", is_per_item=True),
        depths,
        _queued,
        rounds,
    )
    for name, sample in (("record, traced", 0.0), ("record, judged", 1.0)):
        curve = Curve(name, "queue", "records waiting", "ms", is_per_item=True)
        yield measure(curve, depths, partial(_through_monitor, sample), min(rounds, 2))


def _prepared(
    work: Callable[[list[str], Messages], Callable[[], object]],
    values: Values,
    n: int,
) -> Callable[[], float]:
    return partial(cpu, work(*values(n)))


# --- one record ---


def _captured(texts: list[str], messages: Messages) -> Callable[[], object]:
    monitor = _monitor(0.0, 10)
    # Stopped, the engine lets go of each tree at once: what is left is the caller's part.
    monitor.shutdown(5)
    return partial(query, open_capture(monitor, READER), "q", texts, messages)


def _tree(texts: list[str], messages: Messages) -> RunTree:
    tree = RunTree(TRACER.start_span("rag"), READER, Context())
    root = Run(0, tree, None, RunKind.CHAIN, "rag", 1, "What do these topics say?", {}, end=4)
    root.outputs = "They say much."
    retriever = Run(1, tree, root, RunKind.RETRIEVER, "store", 2, "topics", {}, end=3)
    retriever.outputs = texts
    generator = Run(2, tree, root, RunKind.GENERATOR, "model", 3, messages, {}, end=4)
    generator.outputs = root.outputs
    tree.runs += [root, retriever, generator]
    return tree


def _read(texts: list[str], messages: Messages) -> Callable[[], object]:
    return partial(read_job, _tree(texts, messages), Guard())


def _built(texts: list[str], messages: Messages) -> Callable[[], object]:
    job = read_job(_tree(texts, messages), Guard())

    def build() -> None:
        opened = build_spans(job, TRACER.start_span("rag"), TRACER, Guard())
        for span, ended in opened.ends():
            span.end(ended)

    return build


# --- many records ---


def _open_runs(sizes: Sequence[int], rounds: int) -> Iterator[Curve]:
    """The caller's cost while others are open, and the memory that these take."""
    name = "hooks of one query, others open"
    curve = Curve(name, "open", "open queries", "ms", is_per_item=True)
    yield measure(curve, sizes, _among_open, rounds)
    curve = Curve("memory of open queries", "memory", "open queries", "kB")
    yield measure(curve, sizes, lambda n: partial(_memory, n), 1)


def _monitor(sample: float, places: int) -> Monitor:
    return Monitor(
        sample=sample,
        judge=ScriptedJudge(),
        tracer_provider=PROVIDER,
        max_queue_records=2 * places + 10,
        max_queue_bytes=1 << 40,
        max_cpu_share=1.0,
        hold_seconds=600,
    )


def _start_all(capture: Capture, n: int) -> None:
    for i in range(n):
        capture.start(i, None, RunKind.CHAIN, "rag", "What do these topics say?")


def _among_open(n: int) -> Callable[[], float]:
    """Queries that begin and end in their order, while so many are open, as a busy server has."""
    monitor = _monitor(0.0, 10)
    monitor.shutdown(5)
    capture = open_capture(monitor, READER)
    first = iter(range(10**9))
    last = iter(range(10**9))

    def one() -> None:
        capture.start(next(last), None, RunKind.CHAIN, "rag", "What do these topics say?")
        capture.end(next(first), "They say much.")

    for _ in range(n):
        capture.start(next(last), None, RunKind.CHAIN, "rag", "What do these topics say?")

    def many() -> float:
        # As many as are open at least, so that every place of the table has been used once.
        times = max(n, 1000)
        return cpu(partial(_repeat, one, times)) / times

    return many


def _repeat(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()


def _memory(n: int) -> float:
    monitor = _monitor(0.0, 10)
    capture = open_capture(monitor, READER)
    gc.collect()
    tracemalloc.start()
    try:
        _start_all(capture, n)
        return tracemalloc.get_traced_memory()[0] / 1e3
    finally:
        tracemalloc.stop()
        monitor.shutdown(5)


def _queued(n: int) -> Callable[[], float]:
    """Records that pass the queue, the newest first, while others wait."""
    jobs = [_job(i) for i in range(n)]
    trees = [RunTree(INVALID_SPAN, READER, Context()) for _ in range(n)]

    def fill_and_drain() -> None:
        table = Records(2 * n + 10, 1 << 40)
        for job, tree in zip(jobs, trees, strict=True):
            record = Record(job.key, INVALID_SPAN, None, Context(), judged=job)
            table.add(record)
            table.give_place(record, tree)
        while (unread := table.next_unread()) is not None:
            table.move(unread, Event.DISPATCHED)
            table.wait_for_judge(unread)
        while (taken := table.take(600.0)) is not None:
            table.move(taken[0], Event.SETTLED)
            table.move(taken[0], Event.EXPORTED)

    return lambda: cpu(fill_and_drain) / n


def _job(number: int) -> Job:
    job = read_job(_tree(["A text."], []), Guard())
    return Job(
        record=job.record,
        trace_id=f"{number + 1:032x}",
        span_id=f"{number + 1:016x}",
        trace_flags=1,
        route="rag",
        started=1,
        ended=2,
    )


class _Gated(ScriptedJudge):
    """A judge that begins when its gate is open, so that a queue can fill before."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.gate.wait(FLUSH_SECONDS)
        return await super().check(claims, references, question=question)


def _through_monitor(sample: float, n: int) -> Callable[[], float]:
    """CPU of one record on its way through a whole monitor, where so many came at once."""
    texts, messages = ["They say much. The sky is blue."], _messages(1)

    def once() -> float:
        judge = _Gated()
        monitor = Monitor(
            sample=sample,
            judge=judge,
            tracer_provider=PROVIDER,
            max_queue_records=2 * n + 10,
            max_queue_bytes=1 << 40,
            max_cpu_share=1.0,
            hold_seconds=600,
        )
        capture = open_capture(monitor, READER)
        gc.collect()
        started = time.process_time()
        for i in range(n):
            query(capture, str(i), texts, messages)
        judge.gate.set()
        monitor.flush(FLUSH_SECONDS)
        spent = time.process_time() - started
        done = monitor.stats
        if done.produced != n or done.pending or done.dropped:
            raise RuntimeError(f"{n} records came, and not all had their way: {done}")
        monitor.shutdown(5)
        return spent / n * 1e3

    return once
