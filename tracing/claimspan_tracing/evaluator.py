"""What the worker does with a finished run tree: spans, the state, and if need be the judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # pyright: ignore[reportPrivateUsage] - the API has no other name for it
)
from opentelemetry.trace import Tracer

from claimspan import GroundTruth, RagRecord, aevaluate
from claimspan.errors import BudgetExceededError, JudgeError
from claimspan.files.ground_truth import ID_KEYS
from claimspan.judges import Judge
from claimspan_tracing import semconv
from claimspan_tracing.captured import Captured, read_tree
from claimspan_tracing.guard import Guard
from claimspan_tracing.ledger import Ledger
from claimspan_tracing.runs import RunTree
from claimspan_tracing.spans import MAX_VALUE_BYTES, CapturedSpans, build_spans
from claimspan_tracing.status import Status
from claimspan_tracing.text import clean, cut
from claimspan_tracing.writer import Writer

__all__ = ["Evaluator"]

CONCURRENCY: Final = 8
"""Records before the judge at once."""

DEADLINE_SECONDS: Final = 300.0
"""No evaluation goes on for longer, also where its spans have long been ended."""


class Evaluator:
    """Takes run trees one by one, on the worker's event loop."""

    def __init__(
        self,
        *,
        judge: Judge,
        ground_truth: GroundTruth | None,
        hold_seconds: float,
        writer: Writer,
        ledger: Ledger,
        guard: Guard,
        tracer: Callable[[], Tracer],
    ) -> None:
        self._judge = judge
        self._ground_truth = ground_truth
        self._hold_seconds = hold_seconds
        self._writer = writer
        self._ledger = ledger
        self._guard = guard
        self._tracer = tracer
        self._gate = asyncio.Semaphore(CONCURRENCY)
        self._tasks: set[asyncio.Task[None]] = set()

    def process(self, tree: RunTree) -> None:
        """Finish a record at once, or start its evaluation."""
        try:
            self._process(tree)
        except Exception as error:  # noqa: BLE001 - counted; the record still gets its state
            self._guard.swallow(error)
            self._writer.finish(tree, Status.JUDGE_ERROR, "claimspan failed inside")

    def _process(self, tree: RunTree) -> None:
        captured = read_tree(tree, self._guard)
        if tree.span.is_recording():
            spans = build_spans(captured, self._tracer())
        else:  # somebody else's spans, which have ended
            spans = CapturedSpans(tree.span, captured)
        if not self._writer.hold(tree, spans):
            return
        status = captured.status
        if status is None and tree.decision is not None and not tree.decision.sampled:
            status = Status.NOT_SAMPLED
        if status is not None:
            self._writer.finish(tree, status, captured.reason)
            return
        self._start(spans)

    def _start(self, spans: CapturedSpans) -> None:
        tree = spans.captured.tree
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_hold_left(tree, self._hold_seconds), self._stop_holding, tree)
        self._ledger.evaluation_started()
        task = loop.create_task(self._evaluate(spans, timer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop_holding(self, tree: RunTree) -> None:
        held = f"no verdicts within {self._hold_seconds:g} s"
        self._writer.finish(tree, Status.TIMEOUT, held)

    async def _evaluate(self, spans: CapturedSpans, timer: asyncio.TimerHandle) -> None:
        tree = spans.captured.tree
        late = False
        try:
            async with self._gate, asyncio.timeout(DEADLINE_SECONDS):
                late = await self._judge_and_write(spans)
        except TimeoutError:
            self._writer.finish(tree, Status.TIMEOUT, f"no verdicts within {DEADLINE_SECONDS:g} s")
        except BudgetExceededError as error:
            self._writer.finish(tree, Status.OVER_BUDGET, str(error))
        except JudgeError as error:
            self._writer.finish(tree, Status.JUDGE_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - counted; the record still gets its state
            self._guard.swallow(error)
            self._writer.finish(tree, Status.JUDGE_ERROR, "claimspan failed inside")
        finally:
            timer.cancel()
            self._ledger.evaluation_ended(late=late)

    async def _judge_and_write(self, spans: CapturedSpans) -> bool:
        """Evaluate and write; True where the scores came too late for the spans themselves."""
        captured = spans.captured
        ground_truth, reason = await self._find_ground_truth(captured)
        record = RagRecord(
            query=captured.query,
            response=captured.response,
            chunks=captured.chunks,
            ground_truth=ground_truth,
        )
        if ground_truth is not None:
            spans.root.set_attribute(semconv.GROUND_TRUTH, cut(ground_truth, MAX_VALUE_BYTES))
        # Set in this task's own context: the judge's requests stay out of the application's traces.
        otel_context.attach(otel_context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        evaluation = await aevaluate(record, judge=self._judge)
        if self._writer.finish(captured.tree, Status.EVALUATED, reason, evaluation):
            return False
        self._writer.write_late(spans, evaluation)
        return True

    async def _find_ground_truth(self, captured: Captured) -> tuple[str | None, str]:
        """The ground truth, and why there is none although it was asked for."""
        for key in ID_KEYS:
            if key in captured.metadata:
                captured.tree.span.set_attribute(semconv.RECORD_ID, clean(captured.metadata[key]))
                break
        if self._ground_truth is None:
            return None, ""
        try:
            match = await self._ground_truth.find(captured.query, captured.metadata)
        except Exception as error:  # noqa: BLE001 - the user's own look-up; the other metrics stand
            self._guard.swallow(error)
            return None, f"looking up the ground truth raised {type(error).__name__}"
        return (clean(match.text) if match else None), ""


def _hold_left(tree: RunTree, hold_seconds: float) -> float:
    """Seconds until the spans have to be ended, counted from the end of the root."""
    ended = tree.root.end or time.time_ns()
    waited = (time.time_ns() - ended) / 1e9
    return max(0.0, hold_seconds - max(0.0, waited))
