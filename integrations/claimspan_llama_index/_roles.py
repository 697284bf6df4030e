"""The roles of the calls that LlamaIndex reports: to retrieve, generate, ask again, or work beside.

LlamaIndex also judges answers, builds indices and sums up chats. Such work calls the same engines,
synthesizers and models as a query does. Transformations and rerankers report themselves; what calls
from an evaluator, an index or a memory is seen only on the stack.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.evaluation.base import BaseEvaluator
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.document_summary.base import DEFAULT_SUMMARY_QUERY
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.llm import LLM
from llama_index.core.memory.types import BaseMemory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.query_engine import (
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import TransformComponent
from llama_index_instrumentation import DispatcherSpanMixin
from llama_index_instrumentation.dispatcher import Dispatcher

from claimspan_llama_index._snapshots import Call
from claimspan_tracing.adapters import Run, RunKind

BESIDE: Final = (
    TransformComponent,
    IngestionPipeline,
    BaseQueryTransform,
    BaseSelector,
    BaseQuestionGenerator,
    BaseNodePostprocessor,
)
"""Classes whose methods answer nothing, and nothing does that they call."""

MODULES: Final = frozenset(
    f"llama_index.core.{name}"
    for name in (
        "evaluation.base",
        "evaluation.dataset_generation",
        "llama_dataset.generator",
        "llama_dataset.legacy.embedding",
        "memory.chat_summary_memory_buffer",
        "memory.memory",
        "memory.memory_blocks.fact",
        "node_parser.interface",
        "node_parser.relational.base_element",
        "extractors.interface",
        "indices.base",
        "indices.common.struct_store.base",
        "indices.common_tree.base",
        "indices.document_summary.base",
        "indices.keyword_table.base",
        "indices.knowledge_graph.base",
        "indices.property_graph.base",
        "indices.tree.base",
        "indices.tree.inserter",
    )
)
"""Modules whose functions build something; none of them has an engine."""

ASKED_BESIDE: Final = (DEFAULT_SUMMARY_QUERY, "generate only questions based on the below query")
"""Texts of LlamaIndex's own: what an index of summaries asks of each document, and what the prompt
for questions of a dataset says. Both may run in tasks where the stack does not show them."""

_BUILDERS: Final = (BaseEvaluator, BaseIndex, BaseMemory)
_METHODS: Final = frozenset(
    {"evaluate", "aevaluate", "_build_index_from_nodes", "_insert", "put", "aput", "get", "aget"}
)
"""Methods that a class of the user's own overrides, in a module that we do not know."""

_WRAPPERS: Final = frozenset(
    each.co_name for each in Dispatcher.span.__code__.co_consts if isinstance(each, CodeType)
)
MAX_FRAMES: Final = 200


def is_called_beside(*, is_root: bool) -> bool:
    """Whether the call that is about to be reported comes from work beside answering.

    Of a root the whole stack is looked at. Of any other run only the frames up to the run that
    calls it count, as its own caller is known.
    """
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - nothing else tells who calls
    n_wrappers = 0
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        name, method = frame.f_globals.get("__name__"), frame.f_code.co_name
        if name in MODULES or (method in _METHODS and _is_builder(frame)):
            return True
        if method in _WRAPPERS and name == Dispatcher.__module__:
            n_wrappers += 1
            # The first one is that of this very call.
            if n_wrappers == 2 and not is_root:
                break
        frame = frame.f_back
    return False


def _is_builder(frame: FrameType) -> bool:
    return isinstance(frame.f_locals.get("self"), _BUILDERS)


RETRYING: Final = (RetryQueryEngine, RetrySourceQueryEngine, RetryGuidelineQueryEngine)
"""An engine of these answers from the first attempt that passes; each one after the first is an
engine of the same class, called by the one before."""


class RejectedAnswerError(Exception):
    """An answer did not pass, and the engine asks again."""


def reject_attempts(retrying: Run) -> None:
    """Mark the runs of an engine so far as failed, as it begins to try again."""
    for run in retrying.tree.runs:
        is_attempt = run.parent is retrying and run.error is None
        if is_attempt and isinstance(run.inputs, Call) and not run.inputs.is_beside:
            run.error = RejectedAnswerError


RETRIEVING: Final = frozenset({"retrieve", "aretrieve"})
GENERATING: Final = frozenset(
    f"{way}{form}" for way in ("", "a", "stream_", "astream_") for form in ("chat", "complete")
)
PIPELINES: Final = (BaseQueryEngine, BaseChatEngine, BaseRetriever, BaseSynthesizer, LLM)
"""Classes whose methods answer a query, so that a call of one may be a root."""

PARTS: Final = (DispatcherSpanMixin, IngestionPipeline, StreamingAgentChatResponse)
"""Classes whose methods are no query by themselves, unless the class is one of ``PIPELINES``:
embedding a text, splitting a document, selecting a tool."""

HOUSEKEEPING: Final = frozenset({"reset", "_prepare_chat_with_tools", *vars(PromptMixin)})
"""Methods of ``PIPELINES`` that answer nothing. LlamaIndex makes spans of all abstract ones, also
of those that show and change prompts, and that make the arguments of a model with tools."""

JOBS: Final = "run_jobs"
"""LlamaIndex's function that runs ``PARTS`` concurrently, and is a span of its own."""


class Role(NamedTuple):
    """The role of a method."""

    kind: RunKind

    may_be_root: bool
    """Whether a call of it may be a root: if it belongs to one of ``PIPELINES``, or to the user's
    own code."""

    is_beside: bool
    """Whether it answers nothing, and nothing does that it calls."""

    may_be_called_beside: bool
    """Whether evaluators and indices call it as well."""

    is_retry: bool
    """Whether it is called once more after it has rejected an answer."""


@lru_cache(maxsize=1024)
def role_of(owner: type[Any], name: str) -> Role:
    """Return the role of a method, by the name of its span: ``Class.method``, or of a function."""
    # Cached, as ``issubclass`` of an abstract class takes longer than the rest of a hook.
    method, is_job = name.rpartition(".")[2], name.startswith(JOBS)
    is_pipeline = issubclass(owner, PIPELINES)
    return Role(
        _kind(owner, method),
        may_be_root=(is_pipeline or not (issubclass(owner, PARTS) or is_job))
        and method not in HOUSEKEEPING,
        is_beside=issubclass(owner, BESIDE),
        may_be_called_beside=is_pipeline or is_job,
        is_retry=issubclass(owner, RETRYING),
    )


def _kind(owner: type[Any], method: str) -> RunKind:
    if method in RETRIEVING and issubclass(owner, BaseRetriever):
        return RunKind.RETRIEVER
    if method in GENERATING and issubclass(owner, LLM) and not _only_passes_on(owner, method):
        return RunKind.GENERATOR
    return RunKind.CHAIN


def _only_passes_on(model: type[LLM], method: str) -> bool:
    """Whether a method only calls another one that is a run of its own.

    ``CustomLLM.astream_chat`` and ``astream_complete`` read the synchronous stream.
    """
    source = next(each for each in model.__mro__ if method in vars(each))
    return source is CustomLLM and method.startswith("astream_")
