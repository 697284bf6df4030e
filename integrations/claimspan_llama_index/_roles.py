"""What the methods do whose calls are LlamaIndex's spans: retrieve, generate, or neither."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.llm import LLM
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index_instrumentation import DispatcherSpanMixin

from claimspan_llama_index._origins import BESIDE
from claimspan_llama_index._retries import RETRYING
from claimspan_tracing.adapters import RunKind

__all__ = ["Role", "role_of"]

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
    """What a method does."""

    kind: RunKind

    may_be_root: bool
    """Whether a call of it may be a root: where it belongs to one of ``PIPELINES``, or to the
    user's own code."""

    is_beside: bool
    """Whether it answers nothing, and nothing does that it calls."""

    may_be_called_beside: bool
    """Whether evaluators and indices call it as well."""

    is_retry: bool
    """Whether it is called once more after it has rejected an answer."""


@lru_cache(maxsize=1024)
def role_of(owner: type[Any], name: str) -> Role:
    """Return what a method does.

    Args:
        owner: Class of the object whose method it is.
        name: Of the span: ``Class.method``, or that of a function.
    """
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
