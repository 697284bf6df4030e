"""What a span of another instrumentation is, and what it shows at a glance, by its attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Final, cast

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._dialects import MARKS
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Run, RunKind, is_mapping

__all__ = [
    "APART",
    "ENCLOSING",
    "MIN_TOOL_TEXT",
    "TEXTS",
    "Attributes",
    "attributes_of",
    "exception_of",
    "flattened",
    "holds_documents",
    "holds_nodes",
    "is_ai",
    "is_marked",
    "kind_of",
    "kind_of_span",
    "runs_below",
    "starts_agent",
    "told_by",
    "told_of_exception",
    "written_in",
]

APART: Final = frozenset(
    {
        semconv.KIND_RETRIEVER,
        semconv.KIND_RERANKER,
        semconv.KIND_EMBEDDING,
        semconv.KIND_GUARDRAIL,
        semconv.KIND_EVALUATOR,
        semconv.KIND_PROMPT,
    }
)
"""Kinds whose model calls answer no question: they rewrite a query, or check an answer."""

ENCLOSING: Final = frozenset({semconv.KIND_CHAIN, semconv.KIND_AGENT})
"""Kinds whose output is an answer, also where no model below made a span."""

_KNOWN: Final = APART | ENCLOSING | {semconv.KIND_LLM, semconv.KIND_TOOL}

_OF_A_MODEL: Final = (
    semconv.LLM_MODEL_NAME,
    semconv.LLM_PARAMETERS,
    semconv.LLM_PROMPTS,
    semconv.LLM_TOKENS_PROMPT,
    semconv.OUTPUT_MESSAGE_PREFIX + "0.message.role",
    semconv.INPUT_MESSAGE_PREFIX + "0.message.role",
)

_EVALUATES: Final = re.compile(r"\w*(?:Evaluator|BatchEvalRunner)\.\w+$|\w*EvalChain$")
"""Names of the spans of LlamaIndex's, Haystack's and LangChain's evaluators, which have no kind of
their own."""

Attributes = Mapping[str, object]


def attributes_of(run: Run) -> Attributes:
    """The attributes of the span that a run stands for."""
    return cast(Attributes, run.outputs) if is_mapping(run.outputs) else {}


def runs_below(run: Run, kind: RunKind) -> list[Run]:
    """The runs of a kind that are part of a run."""
    return [each for each in run.tree.of_kind(kind) if each is not run and each.is_part_of(run)]


def is_marked(attributes: Attributes | None) -> bool:
    """Whether a span with these attributes is one of an AI application.

    Who traces by hand may leave out the kind; no other span has an input or an output.
    """
    # Written out: this is asked of each span that passes, and most are of other kinds.
    return attributes is not None and (
        semconv.OPENINFERENCE_SPAN_KIND in attributes
        or semconv.INPUT_VALUE in attributes
        or semconv.OUTPUT_VALUE in attributes
        or not MARKS.isdisjoint(attributes)
    )


def is_ai(span: object) -> bool:
    """Whether an open span is one of an AI application, as far as can be seen before it ends."""
    if not isinstance(span, ReadableSpan):
        return False
    scope = span.instrumentation_scope
    if scope is not None and scope.name.startswith(semconv.LATE_SCOPES):
        return True
    # OpenInference's tracer keeps the kind back until the end.
    kept: object = getattr(span, semconv.BUFFERED_ATTRIBUTES, None)
    return (is_mapping(kept) and bool(kept)) or is_marked(span.attributes)


def kind_of(attributes: Attributes) -> str:
    """The kind of a span, in OpenInference's words; ``CHAIN`` where it is not known."""
    kind = str(attributes.get(semconv.OPENINFERENCE_SPAN_KIND, "")).upper()
    if kind not in _KNOWN:
        return semconv.KIND_CHAIN
    if kind == semconv.KIND_LLM and semconv.LLM_TEMPLATE in attributes:
        # Haystack's builder of prompts is called ``LLM``, and has nothing that a model has.
        return kind if any(name in attributes for name in _OF_A_MODEL) else semconv.KIND_PROMPT
    return kind


def kind_of_span(span: ReadableSpan) -> str:
    """The kind of a span; a chain by the name of a framework's evaluator is one."""
    kind = kind_of(span.attributes or {})
    return semconv.KIND_EVALUATOR if kind in ENCLOSING and _EVALUATES.match(span.name) else kind


MIN_TOOL_TEXT: Final = 40
"""Characters from which on the result of a tool may be evidence, and not a number or a status."""


def written_in(span: ReadableSpan) -> Iterator[str]:
    """The texts that a span has found: documents, reranked ones, or the result of a tool."""
    attributes = span.attributes or {}
    yield from flattened(attributes, lambda index: semconv.document(index, "content"))
    yield from flattened(attributes, lambda index: semconv.reranked(index, "content"))
    if attributes.get(semconv.OPENINFERENCE_SPAN_KIND) == semconv.KIND_TOOL:
        yield told_by(span)


def holds_documents(attributes: Attributes) -> bool:
    """Whether a span of any kind has documents: who searches a store by hand makes no retriever."""
    if semconv.document(0, "content") in attributes:
        return True
    # As LangChain writes them.
    return '"page_content"' in str(attributes.get(semconv.OUTPUT_VALUE, ""))


AGENT_STARTS: Final = '"AgentWorkflowStartEvent('
"""How the input of an agent of LlamaIndex's has its beginning, which does not show the question."""

TEXTS: Final = "text_chunks"
"""Argument of LlamaIndex's synthesizers: the texts of the nodes, each with its metadata."""


def holds_nodes(attributes: Attributes) -> bool:
    """Whether a span is that of a synthesizer that was given nodes."""
    return f'"{TEXTS}"' in str(attributes.get(semconv.INPUT_VALUE, ""))


def starts_agent(attributes: Attributes) -> bool:
    """Whether a span is that of an agent of LlamaIndex's, whose models are told the question."""
    return AGENT_STARTS in str(attributes.get(semconv.INPUT_VALUE, ""))


def told_by(span: ReadableSpan) -> str:
    """What a tool has returned, as a text."""
    attributes = span.attributes or {}
    return str(attributes.get(semconv.OUTPUT_VALUE, ""))


def flattened(attributes: Attributes, name: Callable[[int], str]) -> Iterator[str]:
    """The texts of attributes that are numbered; the first gap ends them."""
    for index in count():
        value = attributes.get(name(index))
        if value is None:
            return
        yield str(value)


_DESCRIBED: Final = re.compile(r"(?:[\w.]+: )?(\w+)\b")
"""The class of an exception at the beginning of a span's description of its status."""


def exception_of(span: ReadableSpan) -> str:
    """The name of the class of the last exception that a span tells of."""
    described = _DESCRIBED.match(span.status.description or "")
    named = told_of_exception(span, semconv.EVENT_EXCEPTION_TYPE).rpartition(".")[2]
    return named or (described.group(1) if described else "")


def told_of_exception(span: ReadableSpan, name: str) -> str:
    """What a span tells of the last exception, under a name."""
    told = [each.attributes or {} for each in span.events if each.name == semconv.EVENT_EXCEPTION]
    return str(told[-1].get(name, "")) if told else ""
