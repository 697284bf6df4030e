"""The monitor: the one object that an application makes."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from opentelemetry.trace import TracerProvider

from claimspan.cost.budget import Budget
from claimspan.judges import Judge
from claimspan_tracing.decide.ledger import Stats
from claimspan_tracing.decide.sampling import Sampler
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.memory_queue import MAX_BYTES, MAX_RECORDS
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE
from claimspan_tracing.engine import Engine, Settings
from claimspan_tracing.export.providers import TracerSource
from claimspan_tracing.options import (
    GroundTruthLike,
    MonitorOptions,
    checked_cpu_share,
    checked_ground_truth,
    checked_judge,
    checked_path,
    checked_positive,
    checked_provider,
    checked_redaction,
    checked_sampler,
    checked_sinks,
)
from claimspan_tracing.redact.redaction import AUDIENCES, Audience, Redactor
from claimspan_tracing.write.sinks import Sink

__all__ = ["EXIT_TIMEOUT", "GroundTruthLike", "Monitor", "MonitorOptions"]

EXIT_TIMEOUT: Final = 5.0
"""Seconds that the end of the process may wait for evaluations."""


class Monitor:
    """Captures every query of a pipeline, and evaluates a sample of them off the request path.

    Make one for the whole process and give it to the integrations. It uses the tracer provider
    given to it, else the global one that the application has set, else one of its own made by
    ``configure()``; it never sets or replaces a global provider. Its threads start with the
    first query.

    Args:
        judge: Who decides: a judge, or the name of one as ``CLAIMSPAN_JUDGE`` takes it
            (``"local"``, ``"openai:gpt-4o-mini"``); None takes ``default_judge()``.
        ground_truth: Responses known to be right: path of a JSONL or CSV file, mapping,
            ``callable(query, metadata)``, which may be asynchronous, or ``GroundTruth``. None
            evaluates only what needs none.
        sample: Share of the records to evaluate, 0.0 to 1.0, or a sampler.
        hold_seconds: How long the spans of a query wait for its scores, from the end of its
            root. Scores that come later go to a carrier span.
        tracer_provider: Where the spans go.
        max_queue_records: Records under way at once, from the end of the root to the end of
            the evaluation; more are refused with ``queue_full``.
        max_queue_bytes: Approximate bytes of text that these may keep alive.
        sinks: Write finished records to further places, in order, after our own.
        redact: Takes out of every text what nobody may see, before any judge, span, sink or
            file gets it. Where it raises, the text is left out.
        redact_for: Who gets redacted texts: ``{"export"}`` lets the judge alone see them raw.
        capture_content: False writes no text on spans; records are evaluated all the same.
        budget: What judging may cost. A record beyond it ends as ``over_budget``.
        spool: File in which records wait for their evaluation, so that they survive the end
            of the process. Several processes may share it.
        dispatch: Has records evaluated elsewhere, such as by Celery workers; None evaluates
            them on a thread of this process.
        serverless: Evaluate or spool each record before the pipeline's call returns, for
            platforms that freeze the process between requests.
        max_cpu_share: Share of a core that evaluating in this process may take, above 0 up to
            1. The judge's event loop rests between its steps, which leaves the interpreter to
            the application; 1 never rests.

    Raises:
        ConfigError: An argument cannot work.
        GroundTruthError: The ground-truth file cannot be read.
    """

    def __init__(
        self,
        judge: Judge | str | None = None,
        *,
        ground_truth: GroundTruthLike | None = None,
        sample: float | Sampler = 0.05,
        hold_seconds: float = 30.0,
        tracer_provider: TracerProvider | None = None,
        max_queue_records: int = MAX_RECORDS,
        max_queue_bytes: int = MAX_BYTES,
        sinks: Sequence[Sink] = (),
        redact: Redactor | None = None,
        redact_for: Collection[Audience] = AUDIENCES,
        capture_content: bool = True,
        budget: Budget | None = None,
        spool: str | Path | None = None,
        dispatch: Dispatcher | None = None,
        serverless: bool = False,
        max_cpu_share: float = MAX_CPU_SHARE,
    ) -> None:
        self._exit_hook: Callable[[], None] | None = None
        self._settings = Settings(
            judge=checked_judge(judge),
            ground_truth=checked_ground_truth(ground_truth),
            sampler=checked_sampler(sample),
            hold_seconds=checked_positive("hold_seconds", hold_seconds),
            max_records=int(checked_positive("max_queue_records", max_queue_records)),
            max_bytes=int(checked_positive("max_queue_bytes", max_queue_bytes)),
            source=TracerSource(checked_provider(tracer_provider)),
            sinks=checked_sinks(sinks),
            redaction=checked_redaction(redact, redact_for),
            capture_content=capture_content,
            budget=budget,
            spool=checked_path(spool),
            dispatcher=dispatch,
            serverless=serverless,
            max_cpu_share=checked_cpu_share(max_cpu_share),
            on_first_record=self._drain_at_exit,
        )
        self._engine = Engine(self._settings)
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
            child = _weakly(weakref.WeakMethod(self._restart_in_child))
            os.register_at_fork(after_in_child=child)

    @property
    def engine(self) -> Engine:
        """What runs the records of this process; for adapters, not for applications."""
        return self._engine

    @property
    def stats(self) -> Stats:
        """Counts of the records so far, by state."""
        return self._engine.stats

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every record so far has its state, and its spans are exported.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False where something is left, or was dropped since the last flush.
        """
        return self._engine.flush(timeout)

    async def aflush(self, timeout: float = 10.0) -> bool:
        """As ``flush``, without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def shutdown(self, timeout: float = 5.0) -> bool:
        """Wait for what is under way, then end every span that is left with ``shutdown``.

        Traffic after it is still traced, with status ``shutdown``. Safe to call twice.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            As ``flush``.
        """
        is_clean = self._engine.shutdown(timeout)
        # Afterwards: where Ctrl-C interrupts the shutdown, the hook is still there.
        if self._exit_hook is not None:
            atexit.unregister(self._exit_hook)
        return is_clean

    def _drain_at_exit(self) -> None:
        """Register the exit hook with the first record, so that it runs before the provider's own.

        Exit hooks run in reverse order, and the provider's was registered when it was made.
        """
        if self._exit_hook is None:
            # Weakly: ``atexit`` would keep every monitor alive until the process ends.
            self._exit_hook = _weakly(weakref.WeakMethod(self._shut_down_at_exit))
            atexit.register(self._exit_hook)

    def _shut_down_at_exit(self) -> None:
        self.shutdown(EXIT_TIMEOUT)

    def _restart_in_child(self) -> None:
        """A forked child has no threads, and the spans under way are its parent's to end."""
        self._engine = Engine(self._settings)


def _weakly(method: weakref.WeakMethod[Callable[[], object]]) -> Callable[[], None]:
    """A function that calls a method as long as its object lives, without keeping it alive."""

    def call() -> None:
        bound = method()
        if bound is not None:
            bound()

    return call
