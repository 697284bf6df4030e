"""Spans of OpenInference as an application makes them by hand, and what is captured of them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol
from weakref import WeakSet

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, Tracer

import claimspan_openinference
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from captured import texts
from replayed import jobs_afterwards, jobs_live
from support import attributes, ids

__all__ = [
    "ANSWER",
    "FACT",
    "MINE",
    "OTHERS",
    "OTHER_ANSWER",
    "OTHER_FACT",
    "OTHER_QUESTION",
    "QUESTION",
    "ai",
    "ask",
    "captured",
    "facts_of",
    "generate",
    "id_of",
    "langchain_traced",
    "linked",
    "monitored",
    "only_live",
    "retrieve",
    "traced",
]

QUESTION: Final = "How long is the Drava?"
FACT: Final = (
    "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."
)
ANSWER: Final = "The Drava is 725 kilometres long."

OTHER_QUESTION: Final = "How high is the Grossglockner?"
OTHER_FACT: Final = (
    "The Grossglockner in the Hohe Tauern is 3798 metres high, the highest peak of Austria."
)
OTHER_ANSWER: Final = "The Grossglockner is 3798 metres high."

MINE: Final = (QUESTION, ANSWER, [FACT])
OTHERS: Final = (OTHER_QUESTION, OTHER_ANSWER, [OTHER_FACT])
"""What is captured of ``ask``, and of the other question."""

Values = Mapping[str, str | int | float]


@contextmanager
def monitored(ground_truth: Mapping[str, str] | None = None) -> Generator[InMemoryMonitor]:
    """Attach a monitor to its own tracer provider; no fault of ours may go unnoticed.

    The spans have to give the same records when the traces are over, if not ``only_live``.
    """
    with InMemoryMonitor(ground_truth=ground_truth) as made:
        undo = claimspan_openinference.instrument(made, tracer_provider=made.provider)
        yield made
        undo()
        assert made.stats.faults == 0
        assert made in _only_live or jobs_afterwards(made) == jobs_live(made)


def only_live(monitor: InMemoryMonitor) -> None:
    """Do not compare: the spans alone do not show what the test is about."""
    _only_live.add(monitor)


_only_live: Final = WeakSet[InMemoryMonitor]()


class Instrumentor(Protocol):
    """One of OpenInference's instrumentors."""

    def instrument(self, *, tracer_provider: TracerProvider) -> object: ...
    def uninstrument(self) -> object: ...


@contextmanager
def traced(monitor: InMemoryMonitor, *instrumentors: Instrumentor) -> Generator[None]:
    """Have OpenInference's instrumentors trace their frameworks on the provider of a monitor."""
    for each in instrumentors:
        each.instrument(tracer_provider=monitor.provider)
    yield
    for each in instrumentors:
        each.uninstrument()


@contextmanager
def langchain_traced(monitor: InMemoryMonitor) -> Generator[None]:
    """Have OpenInference's instrumentor trace LangChain on the provider of a monitor."""
    with traced(monitor, LangChainInstrumentor()):
        yield


@contextmanager
def ai(tracer: Tracer, kind: str, values: Values | None = None) -> Generator[Span]:
    """Start a span of OpenInference whose kind is there from the start."""
    start = {"openinference.span.kind": kind}
    with tracer.start_as_current_span(kind.lower(), attributes=start) as span:
        span.set_attributes(values or {})
        yield span


def retrieve(tracer: Tracer, question: str = QUESTION, *facts: str) -> None:
    """Make the span of a retriever."""
    values = {"input.value": question}
    for index, text in enumerate(facts or (FACT,)):
        values[f"retrieval.documents.{index}.document.content"] = text
        values[f"retrieval.documents.{index}.document.id"] = text[:16]
    with ai(tracer, "RETRIEVER", values):
        pass


def generate(tracer: Tracer, prompt: str, answer: str = ANSWER) -> None:
    """Make the span of a model."""
    values = {
        "llm.model_name": "small",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Answer from the context alone.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    with ai(tracer, "LLM", values):
        pass


def ask(tracer: Tracer, question: str = QUESTION, fact: str = FACT, answer: str = ANSWER) -> None:
    """Make the spans of a pipeline as OpenInference's documentation traces one by hand."""
    with ai(tracer, "CHAIN", {"input.value": question}) as span:
        retrieve(tracer, question, fact)
        generate(tracer, f"{fact}\n{question}", answer)
        span.set_attribute("output.value", answer)


def facts_of(record: CapturedRecord) -> tuple[str, str, list[str]]:
    """Return question, answer and texts of the chunks."""
    return record.record.query, record.record.response, texts(record)


def captured(monitor: InMemoryMonitor) -> list[tuple[str, str, list[str]]]:
    """Return the facts of each record."""
    return [facts_of(record) for record in monitor.records()]


def linked(monitor: InMemoryMonitor) -> list[int]:
    """Return the ids of the spans that the scores are linked to."""
    (carrier,) = [span for span in monitor.spans() if span.name == "claimspan.evaluate"]
    return [link.context.span_id for link in carrier.links]


def id_of(monitor: InMemoryMonitor, kind: str) -> int:
    """Return the id of the one span of a kind."""
    spans = [s for s in monitor.spans() if attributes(s).get("openinference.span.kind") == kind]
    (found,) = [ids(span).span_id for span in spans]
    return found
