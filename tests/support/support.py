"""Doubles and drivers that several tests share. The frameworks and OpenTelemetry are real."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Unpack

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan_tracing import Monitor
from claimspan_tracing.monitor import MonitorOptions

__all__ = ["MonitorFactory", "ScriptedJudge", "Spans", "attributes", "ids", "score_names"]

SCORE = "claimspan.score."


class ScriptedJudge:
    """A judge whose verdicts are known beforehand: a reference entails the claims it contains.

    Claims are the sentences of a text. A reference that contains ``not: CLAIM`` contradicts it.
    """

    name = "scripted"
    version = "1"

    def __init__(
        self, *, error: BaseException | None = None, delay: float = 0.0, undecided: str = ""
    ) -> None:
        self.error = error
        self.delay = delay
        self.undecided = undecided
        self.checked: list[tuple[str, ...]] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await self._act()
        return [Claim(text=part.strip()) for part in text.split(".") if part.strip()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        await self._act()
        self.checked.append(tuple(references))
        rows = [[self._verdict(claim, text) for text in references] for claim in claims]
        return VerdictMatrix.of(rows, n_references=len(references))

    async def _act(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.error is not None:
            raise self.error

    def _verdict(self, claim: Claim, reference: str) -> Verdict | None:
        if self.undecided and self.undecided in claim.text:
            return None
        if f"not: {claim.text}" in reference:
            return Verdict(label=Label.CONTRADICTED)
        return Verdict(label=Label.ENTAILED if claim.text in reference else Label.NEUTRAL)


class MonitorFactory:
    """Makes monitors on one provider, and remembers them."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self.made: list[Monitor] = []
        self.expected_faults = 0

    def __call__(self, **options: Unpack[MonitorOptions]) -> Monitor:
        defaults: MonitorOptions = {
            "judge": ScriptedJudge(),
            "sample": 1.0,
            "tracer_provider": self.provider,
            # Tests wait for their evaluations, and nobody else needs the processor meanwhile.
            "max_cpu_share": 1.0,
        }
        monitor = Monitor(**(defaults | options))
        self.made.append(monitor)
        return monitor


class Spans:
    """The exported spans, by what they are."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self.exporter = exporter

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    @property
    def evaluations(self) -> list[ReadableSpan]:
        """The spans with claims, and with the scores where these were late."""
        return [span for span in self.all if span.name == "claimspan.evaluate"]

    @property
    def annotations(self) -> list[ReadableSpan]:
        """The spans with late scores as OpenInference's annotations."""
        return [span for span in self.all if span.name == "claimspan.annotations"]

    @property
    def roots(self) -> list[ReadableSpan]:
        return self.of_kind("CHAIN")

    @property
    def root(self) -> ReadableSpan:
        (root,) = self.roots
        return root

    def of_kind(self, kind: str) -> list[ReadableSpan]:
        return [s for s in self.all if attributes(s).get("openinference.span.kind") == kind]

    def one(self, kind: str) -> ReadableSpan:
        (span,) = self.of_kind(kind)
        return span


def attributes(span: ReadableSpan) -> Mapping[str, object]:
    return span.attributes or {}


def ids(span: ReadableSpan) -> SpanContext:
    """Trace and span id; every exported span has them."""
    context = span.get_span_context()
    assert context is not None
    return context


def score_names(span: ReadableSpan) -> set[str]:
    """The metrics that have a score on this span."""
    return {name.removeprefix(SCORE) for name in attributes(span) if name.startswith(SCORE)}
