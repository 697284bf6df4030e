"""What is kept of the spans of a query: those that have ended below one span, and what they do."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from claimspan_openinference._kinds import (
    APART,
    ENCLOSING,
    MIN_TOOL_TEXT,
    Attributes,
    exception_of,
    holds_documents,
    holds_nodes,
    kind_of,
    kind_of_span,
    starts_agent,
    told_by,
    written_in,
)
from claimspan_openinference._messages import (
    answered,
    is_told_evidence,
    is_told_to_grade,
    last_asked,
)
from claimspan_openinference._questions import has_answer, question_in
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    THREAD_KEY,
    WAITS,
    asked_in,
    is_grade,
    is_list,
    written_evidence,
)

__all__ = ["Group", "group_of"]

SPAN_BYTES: Final = 2 * 1024
"""What a span takes beside the values of its attributes, about."""

NUMBER_BYTES: Final = 24
"""What a number takes; embeddings have thousands."""

MAX_LOOKED_AT: Final = 10
"""Documents of a query that are looked for in an output, on the application's thread."""

_EVIDENCE: Final = frozenset({semconv.KIND_RETRIEVER, semconv.KIND_RERANKER})
_KEPT: Final = _EVIDENCE | {semconv.KIND_LLM, semconv.KIND_TOOL}
"""Kinds that are kept where there are many spans: without one of these a record is not whole."""

_GENERATORS: Final = ("<generator object", "<async_generator object", "AsyncStreamingResponse(")
_STREAMS: Final = (*_GENERATORS, *(f"StopEvent(result={each}" for each in _GENERATORS))
"""How the output of LlamaIndex's spans begins whose answer is read after they have ended."""

_OF_AN_INDEX: Final = "Describe what the provided text is about."
"""How the question begins that LlamaIndex's index of summaries asks of each document."""

_ROLES: Final = ('"role"', '"assistant"', '"ai"')


@dataclass(slots=True, eq=False)
class Group:
    """The spans of an AI application that have ended below one of them, and that one, the top."""

    top: ReadableSpan
    """The topmost of them, which ends last."""

    spans: list[ReadableSpan] = field(default_factory=list[ReadableSpan])
    """All of them, apart from those that are not kept."""

    links: dict[int, int] = field(default_factory=dict[int, int])
    """Parents of the spans in between that are not kept, or are of no AI application."""

    size: int = 0
    """Approximate bytes that they keep alive."""

    retrieves: bool = False
    """Whether there is evidence among them: a retriever, a reranker, or a tool that tells much."""

    generates: bool = False
    """Whether there is a model that may have given an answer."""

    grades: bool = False
    """Whether there is a model that checks a document or an answer."""

    prompts: list[Attributes] = field(default_factory=list[Attributes])
    """The attributes of the models that may have given an answer: what they have read may be
    evidence, however it was found."""

    holds_nodes: bool = False
    """Whether a synthesizer was given nodes, wherever they are from."""

    has_waited: bool = False
    """Whether a part of it has stopped to wait for a person."""

    left_out: int = 0
    """Spans that were not kept, as there were too many; none of them had evidence or an answer."""

    is_lost: bool = False
    """Whether the spans were let go of, as they took too much: nothing may be judged without."""

    has_moved: bool = False
    """Whether the span below which it ended has ended, and it waits for one further up."""

    is_running: bool = False
    """Whether the top has ended while a part of it ran on that hands on what a model says."""

    is_left: bool = False
    """Whether the top has ended as the reader of a stream left that no model gives."""

    joined_below: str | None = None
    """Name of the span that its parts stood side by side below; None where the top encloses all."""

    @property
    def has_result(self) -> bool:
        """Whether the top itself has failed, or has an output that is more than what was found."""
        attributes = self.top.attributes or {}
        if kind_of(attributes) not in ENCLOSING:
            return False
        if self.top.status.status_code is StatusCode.ERROR:
            return True
        output = str(attributes.get(semconv.OUTPUT_VALUE, "")).strip()
        if output.startswith("[") and not any(role in output for role in _ROLES):
            return False  # a list of documents, and not of messages
        found = [text for span in self.spans for text in islice(written_in(span), MAX_LOOKED_AT)]
        return bool(output) and not (len(found) > 1 and all(text in output for text in found))

    @property
    def returns_stream(self) -> bool:
        """Whether the answer is read after the top has ended."""
        return _is_stream(self.top)

    @property
    def awaits_stream(self) -> bool:
        """Whether the answer is a stream that no model has begun to give.

        What models have said before whatever made the stream began is no part of it.
        """
        if not self.returns_stream:
            return False
        begun = max(span.start_time or 0 for span in (self.top, *self.spans) if _is_stream(span))
        later = [span for span in self.spans if (span.start_time or 0) >= begun]
        return not any(kind_of(span.attributes or {}) == semconv.KIND_LLM for span in later)

    @property
    def is_record(self) -> bool:
        """Whether it is a question with its answer and its evidence, or has failed on the way.

        Retrieval alone is not, nor are embedding and indexing, nor a model that was given nothing.
        A check of an answer is none either. A question that waits for a person is one.
        """
        if self.has_waited or self._has_stopped:
            return True
        if (self.grades and not self.generates) or self.awaits_stream:
            return False
        return self.retrieves and (self.generates or self.has_result)

    @property
    def _has_stopped(self) -> bool:
        """Whether a graph with a memory has ended before a model was asked, and may go on later."""
        attributes = self.top.attributes or {}
        has_memory = THREAD_KEY in str(attributes.get(semconv.METADATA, ""))
        is_graph = kind_of(attributes) in ENCLOSING and self.top.status.is_ok
        return has_memory and is_graph and self.retrieves and not (self.generates or self.grades)

    @property
    def is_record_by_hand(self) -> bool:
        """Whether it is a question with an answer from what its application wrote into the prompt.

        A chain that is given an answer checks it, or goes on from it. A model may stand alone, if
        nothing else is traced, and is no record while it calls tools.
        """
        attributes = self.top.attributes or {}
        kind = kind_of(attributes)
        if not self.generates or kind not in (*ENCLOSING, semconv.KIND_LLM):
            return False
        # Looked for only now: it takes longer than the rest, on the application's thread.
        if not (self.holds_nodes or any(map(is_told_evidence, self.prompts))):
            return False
        given = attributes.get(semconv.INPUT_VALUE)
        asked = str(question_in(given))
        if starts_agent(attributes):
            asked = next((said for each in self.prompts if (said := last_asked(each))), "")
        if kind == semconv.KIND_LLM:
            asked = last_asked(attributes)
            if semconv.output_message(0, semconv.MESSAGE_TOOL_CALL) in attributes:
                return False
        # By the models: of an output with one field OpenInference writes the value alone.
        is_graded = all(is_grade(answered(each)) for each in self.prompts)
        if asked.startswith(_OF_AN_INDEX) or is_graded:
            return False
        # A whole prompt is not the question to what it tells, but may have it within.
        is_prompt = bool(written_evidence([asked], "")) and not asked_in(asked)
        return bool(asked) and not is_prompt and not has_answer(given)

    def add(self, other: Group) -> None:
        """Add the spans of another one."""
        self.spans += other.spans
        self.links |= other.links
        self.size += other.size
        self.left_out += other.left_out
        self.retrieves |= other.retrieves
        self.generates |= other.generates
        self.grades |= other.grades
        self.prompts += other.prompts
        self.is_lost |= other.is_lost
        self.has_waited |= other.has_waited
        self.holds_nodes |= other.holds_nodes

    def let_go(self) -> None:
        """Let go of the spans."""
        self.spans, self.links, self.prompts = [], {}, []
        self.size, self.is_lost = 0, True


def group_of(span: ReadableSpan, below: list[Group], *, is_full: bool = False) -> Group:
    """Put a span of an AI application that has ended on top of what has ended below it.

    If there are many, the span itself is kept only if the record is not whole without it.
    """
    attributes = span.attributes or {}
    kind = kind_of_span(span)
    group = Group(span, has_waited=exception_of(span) in WAITS)
    if kind == semconv.KIND_EMBEDDING:
        return group  # vectors take much, and are never read
    for part in below:
        group.add(part)
    if not is_full or kind in _KEPT:
        group.spans.append(span)
        group.size += _size(span)
    else:
        group.left_out += 1
        context = span.get_span_context()
        if group.spans and context is not None and span.parent is not None:
            group.links[context.span_id] = span.parent.span_id
    if kind in APART:
        # What runs in a retriever, or in a check of the answer, is neither question nor answer.
        group.generates, group.prompts, group.retrieves = False, [], kind in _EVIDENCE
    elif kind == semconv.KIND_LLM:
        # LlamaIndex puts a span with the template around the one with the prompt.
        if is_told_to_grade(attributes) or (group.grades and not group.generates):
            group.grades = True
        else:
            group.generates = True
            group.prompts.append(attributes)
    elif kind == semconv.KIND_TOOL:
        group.retrieves |= len(told_by(span)) >= MIN_TOOL_TEXT
    group.retrieves |= kind in ENCLOSING and holds_documents(attributes)
    group.holds_nodes |= kind in ENCLOSING and holds_nodes(attributes)
    return group


def _is_stream(span: ReadableSpan) -> bool:
    attributes = span.attributes or {}
    output = str(attributes.get(semconv.OUTPUT_VALUE, ""))
    return output.startswith(_STREAMS) and kind_of(attributes) in ENCLOSING


def _size(span: ReadableSpan) -> int:
    """Approximate bytes that a span takes; the SDK bounds the number of its attributes."""
    values = [*(span.attributes or {}).values()]
    if not span.status.is_ok:  # stack traces are long
        values += [value for event in span.events for value in (event.attributes or {}).values()]
    size = SPAN_BYTES + sum(map(sys.getsizeof, values))
    for value in values:
        if is_list(value) and value:
            # Texts differ in length, numbers do not.
            is_text = isinstance(value[0], str)
            size += sum(map(sys.getsizeof, value)) if is_text else NUMBER_BYTES * len(value)
    return size
