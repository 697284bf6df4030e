"""Which attributes of others mean what: the table of dialects.

A span may speak several, as OpenLLMetry's and Logfire's do. It is read by each of them in the order
of the table, and the first that has a value for something counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from claimspan_tracing import semconv

__all__ = [
    "ARGUMENTS",
    "DIALECTS",
    "EVENTS_OF_DETAILS",
    "EVENT_CHOICE",
    "EVENT_MESSAGE",
    "EVENT_RESULT",
    "MARKS",
    "RETURNED",
    "SCHEMA",
    "Dialect",
]

ARGUMENTS: Final = "logfire.arguments"
"""Stands for the arguments of a function, which Logfire writes as an attribute each."""

SCHEMA: Final = "logfire.json_schema"
"""Names the arguments."""

RETURNED: Final = "return"

_CHAIN: Final = semconv.KIND_CHAIN
_AGENT: Final = semconv.KIND_AGENT
_LLM: Final = semconv.KIND_LLM
_TOOL: Final = semconv.KIND_TOOL
_RETRIEVER: Final = semconv.KIND_RETRIEVER
_EMBEDDING: Final = semconv.KIND_EMBEDDING
_RERANKER: Final = semconv.KIND_RERANKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the attributes of one instrumentation mean; of several names the first that is there."""

    name: str
    kind: tuple[str, ...] = ()
    """What kind of span it is: a word, or an object that has it as a name."""

    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    """These words, in lower case, and the kinds of OpenInference; any other is a chain."""

    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names by which spans are known that have none of the above, and their kinds."""

    beside: tuple[str, ...] = ()
    """Names by which spans are known that another dialect reads as well."""

    given: tuple[str, ...] = ()
    """What a span was given: a text, arguments, or messages."""

    returned: tuple[str, ...] = ()
    """What it has returned."""

    read: tuple[str, ...] = ()
    """Messages that a model or an agent has read, if they stand apart from what it was given."""

    said: tuple[str, ...] = ()
    """Messages that it has answered."""

    system: tuple[str, ...] = ()
    """The parts of a system message that stands apart."""

    calls: tuple[str, ...] = ()
    """Calls of tools that it has answered with, if they stand apart from what it has said."""

    numbered: tuple[str, ...] = ()
    """How the names of single messages begin, those read and those said: ``BEGINNING.0.role``."""

    model: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    """How the names begin of what the application has attached."""

    contents: str
    """What to set if its spans come without texts."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of texts that stand under another name afterwards."""
        return (*self.given, *self.returned, *self.read, *self.said, *self.system, *self.calls)


DIALECTS: Final = (
    Dialect(
        name="LangSmith",
        kind=("langsmith.span.kind",),
        kinds={
            "llm": _LLM,
            "retriever": _RETRIEVER,
            "tool": _TOOL,
            "embedding": _EMBEDDING,
            "prompt": semconv.KIND_PROMPT,
        },
        given=("gen_ai.prompt",),
        returned=("gen_ai.completion",),
        session=tuple(f"langsmith.metadata.{key}" for key in semconv.SESSION_KEYS),
        user=("langsmith.metadata.user_id",),
        metadata=("langsmith.metadata.",),
        contents="unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS",
    ),
    Dialect(
        name="Vercel AI SDK",
        kind=("ai.operationId",),
        kinds={
            **dict.fromkeys(
                ("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"), _AGENT
            ),
            **{
                f"ai.{name}.{step}": _LLM
                for name in ("generatetext", "streamtext", "generateobject", "streamobject")
                for step in ("dogenerate", "dostream")
            },
            "ai.toolcall": _TOOL,
            **{
                f"ai.{name}": _EMBEDDING
                for name in ("embed", "embed.doembed", "embedmany", "embedmany.doembed")
            },
        },
        given=("ai.prompt", "ai.toolCall.args"),
        returned=("ai.response.text", "ai.response.object", "ai.toolCall.result"),
        read=("ai.prompt.messages",),
        calls=("ai.response.toolCalls",),
        model=("ai.model.id",),
        session=("ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId"),
        user=("ai.telemetry.metadata.userId", "ai.settings.context.userId"),
        metadata=("ai.telemetry.metadata.", "ai.settings.context."),
        contents="leave recordInputs and recordOutputs on in its telemetry settings",
    ),
    Dialect(
        name="Langfuse",
        kind=("langfuse.observation.type",),
        kinds={
            "generation": _LLM,
            "retriever": _RETRIEVER,
            "tool": _TOOL,
            "agent": _AGENT,
            "embedding": _EMBEDDING,
            "evaluator": semconv.KIND_EVALUATOR,
            "guardrail": semconv.KIND_GUARDRAIL,
        },
        given=("langfuse.observation.input", "langfuse.trace.input"),
        returned=("langfuse.observation.output", "langfuse.trace.output"),
        model=("langfuse.observation.model.name",),
        metadata=("langfuse.trace.metadata.", "langfuse.observation.metadata."),
        contents="set LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true",
    ),
    Dialect(
        name="MLflow",
        kind=("mlflow.spanType",),
        kinds={
            "llm": _LLM,
            "chat_model": _LLM,
            "retriever": _RETRIEVER,
            "reranker": _RERANKER,
            "tool": _TOOL,
            "agent": _AGENT,
            "embedding": _EMBEDDING,
            "evaluator": semconv.KIND_EVALUATOR,
            "guardrail": semconv.KIND_GUARDRAIL,
        },
        given=("mlflow.spanInputs",),
        returned=("mlflow.spanOutputs",),
        model=("mlflow.llm.model",),
        session=("mlflow.trace.session",),
        user=("mlflow.trace.user",),
        contents="log inputs and outputs of the traced functions",
    ),
    Dialect(
        name="Haystack",
        # What a component is follows from its outputs.
        kind=("haystack.component.output_spec",),
        marks={
            "haystack.pipeline.metadata": _CHAIN,
            "haystack.agent.max_steps": _AGENT,
            "haystack.agent.step.llm.input": _LLM,
            "haystack.tool.name": _TOOL,
        },
        kinds={
            "last_message": _AGENT,
            "replies": _LLM,
            "embedding": _EMBEDDING,
            "documents": _RETRIEVER,
            "prompt": semconv.KIND_PROMPT,
        },
        given=(
            *("haystack.pipeline.input_data", "haystack.component.input", "haystack.agent.input"),
            *("haystack.agent.step.llm.input", "haystack.agent.step.tool.input"),
        ),
        returned=(
            *("haystack.pipeline.output_data", "haystack.component.output"),
            *("haystack.agent.output", "haystack.agent.step.llm.output"),
            "haystack.agent.step.tool.output",
        ),
        contents="set HAYSTACK_CONTENT_TRACING_ENABLED=true",
    ),
    Dialect(
        name="Mastra",
        kind=("mastra.span.type",),
        kinds={
            "agent_run": _AGENT,
            "model_inference": _CHAIN,  # it does not show what the model has read
            "tool_call": _TOOL,
            "mcp_tool_call": _TOOL,
        },
        given=("mastra.agent_run.input", "mastra.workflow_run.input"),
        returned=("mastra.agent_run.output", "mastra.workflow_run.output"),
        session=("mastra.metadata.sessionId", "mastra.metadata.threadId"),
        user=("mastra.metadata.userId",),
        metadata=("mastra.metadata.",),
        contents="take out spanOutputProcessors that remove inputs or outputs",
    ),
    Dialect(
        name="OpenLLMetry",
        kind=("traceloop.span.kind", "llm.request.type"),
        kinds={
            "agent": _AGENT,
            "tool": _TOOL,
            "chat": _LLM,
            "completion": _LLM,
            "embedding": _EMBEDDING,
            "rerank": _RERANKER,
        },
        beside=("traceloop.workflow.name",),
        given=("traceloop.entity.input",),
        returned=("traceloop.entity.output",),
        numbered=("gen_ai.prompt.", "gen_ai.completion."),
        session=tuple(f"traceloop.association.properties.{key}" for key in semconv.SESSION_KEYS),
        user=("traceloop.association.properties.user_id",),
        metadata=("traceloop.association.properties.",),
        contents="set TRACELOOP_TRACE_CONTENT=true",
    ),
    Dialect(
        name="pydantic-ai",
        beside=("pydantic_ai.all_messages", "all_messages_events", "tool_response", "agent_name"),
        given=("tool_arguments",),
        returned=("final_result", "tool_response"),
        read=("pydantic_ai.all_messages", "all_messages_events"),
        contents="set include_content=True in InstrumentationSettings",
    ),
    Dialect(
        name="OpenTelemetry",
        kind=(semconv.GEN_AI_OPERATION_NAME,),
        marks={semconv.GEN_AI_RETRIEVAL_DOCUMENTS: _CHAIN},
        kinds={
            semconv.OPERATION_RETRIEVAL: _RETRIEVER,
            "vector_db_retrieve": _RETRIEVER,  # OpenLLMetry's word
            semconv.OPERATION_CHAT: _LLM,
            "chat.completions": _LLM,  # Semantic Kernel's
            semconv.OPERATION_TEXT: _LLM,
            semconv.OPERATION_CONTENT: _LLM,
            semconv.OPERATION_AGENT: _AGENT,
            semconv.OPERATION_TOOL: _TOOL,
            semconv.OPERATION_EMBEDDINGS: _EMBEDDING,
            semconv.OPERATION_RERANK: _RERANKER,
        },
        given=(semconv.GEN_AI_RETRIEVAL_QUERY, "gen_ai.tool.call.arguments"),
        returned=(semconv.GEN_AI_TOOL_RESULT, semconv.GEN_AI_RETRIEVAL_DOCUMENTS),
        read=(semconv.GEN_AI_INPUT_MESSAGES,),
        said=(semconv.GEN_AI_OUTPUT_MESSAGES,),
        system=(semconv.GEN_AI_SYSTEM_INSTRUCTIONS,),
        session=(semconv.GEN_AI_CONVERSATION_ID,),
        contents="set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only",
    ),
    Dialect(
        name="Logfire",
        marks={RETURNED: _CHAIN},
        given=(ARGUMENTS,),
        returned=(RETURNED,),
        contents="set record_return=True in @logfire.instrument",
    ),
)
"""The dialects, those first whose names mean the same wherever they stand."""

MARKS: Final = frozenset(mark for each in DIALECTS for mark in (*each.kind, *each.marks))
"""Names of which every span of a dialect has one."""

EVENTS_OF_DETAILS: Final = (
    "gen_ai.client.inference.operation.details",
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
)
"""Events with attributes that others write onto the span."""

EVENT_MESSAGE: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
"""Events that are a message each, which a model has read."""

EVENT_CHOICE: Final = "gen_ai.choice"
"""Event that is what a model has answered."""

EVENT_RESULT: Final = "db.query.result"
"""Event with one document that a store has found, in OpenLLMetry's instrumentations of stores."""
