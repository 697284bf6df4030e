"""What an operation of Haystack is, told by its name, its component's class, and its values.

Haystack reports no kind for a component, and users give components any name. What runs here runs on
the caller's thread: it looks at names and at first items, never at whole lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from haystack.dataclasses import ChatMessage

from claimspan_haystack._documents import declares_documents, lists_documents
from claimspan_haystack._texts import is_said, parts
from claimspan_tracing.adapters import Run, RunKind, is_list, is_mapping

__all__ = [
    "CHAT_GENERATOR_RUN",
    "DOCUMENTS_WRITTEN",
    "PIPELINE_RUNS",
    "QUERY_NAME",
    "REPLIES_KEY",
    "TOOL_RUN",
    "Operation",
    "is_converter",
    "is_streaming",
    "kind_of",
    "operation_of",
    "root_name",
]

REPLIES_KEY: Final = "replies"
"""Name of the output of all of Haystack's generators."""

DOCUMENTS_WRITTEN: Final = "documents_written"
"""Name of the output of ``DocumentWriter``."""

CHAT_GENERATOR_RUN: Final = "haystack.chat_generator.run"
"""A model call by a component that has a generator inside: a ranker, an evaluator, a router."""

PIPELINE_RUNS: Final = ("haystack.pipeline.run", "haystack.async_pipeline.run")
"""Operations of a whole pipeline; the second is that of ``AsyncPipeline`` before Haystack 3."""

GENERATOR_RUNS: Final = ("haystack.agent.step.llm", CHAT_GENERATOR_RUN)
"""Operations that are model calls."""

TOOL_RUN: Final = "haystack.agent.step.tool"
COMPONENT_RUN: Final = "haystack.component.run"

QUERY_NAME: Final = re.compile(r"quer(?:y|ies)|questions?")
"""Names of inputs that hold what is asked."""

_RETRIEVING_CLASS: Final = re.compile(r"(?:Retriever|Search|Searcher)$")
_OTHER_CLASS: Final = re.compile(
    r"(?:ToDocuments?|Converter|Splitter|Chunker|Cleaner|Embedder|Writer|Fetcher|Crawler|Loader"
    r"|Parser|Scraper|Ranker|Reranker|Joiner|Evaluator|Extractor|Router|Classifier|Preprocessor"
    r"|Checker|Sampler|Validator|Importer|Reader|Adapter|Builder)$"
)
"""Ends of the names of classes that return documents which nobody has asked for by a question."""

_CONVERTING_CLASS: Final = re.compile(r"(?:ToDocuments?|Converter|Crawler|Loader|Importer)$")
"""Those that make documents of what is no document."""

_OTHER_NAMES: Final = frozenset(
    "path paths file files filename url urls uri link links source sources dir directory folder "
    "html markdown content contents bucket encoding language mode index reply replies answer "
    "answers".split()
)
"""Words in the names of inputs that say where documents are or what was said, not what is asked."""


@dataclass(slots=True, eq=False)
class Operation:
    """What Haystack says of an operation when it starts. It also serves as the id of the run."""

    name: str
    """Name of the operation, such as ``haystack.component.run``."""

    component: str = ""
    """Name of the component's class."""

    takes: Mapping[str, object] | None = None
    """The inputs that a component declares."""

    returns: Mapping[str, object] | None = None
    """The outputs that a component declares, each with its type and receivers."""

    @staticmethod
    def of(name: str, tags: Mapping[str, Any]) -> Operation:
        """Return an operation with what its first tags say."""
        return Operation(
            name,
            tags.get("haystack.component.type") or "",
            tags.get("haystack.component.input_spec"),
            tags.get("haystack.component.output_spec"),
        )


_UNKNOWN: Final = Operation("")


def operation_of(run: Run) -> Operation:
    """Return the operation behind a run; an empty one where another framework reported the run."""
    return run.id if isinstance(run.id, Operation) else _UNKNOWN


def is_converter(component: str) -> bool:
    """Whether a class makes documents of files, pages or other sources."""
    return _CONVERTING_CLASS.search(component) is not None


def kind_of(operation: Operation, inputs: object, outputs: object) -> RunKind:
    """Return what an operation did.

    A retriever returns documents for a query and takes none: rankers and joiners pass on documents
    of others, converters and fetchers are told where they are. Whatever returns messages or answers
    beside its documents is no retriever.

    Args:
        operation: What Haystack said of it.
        inputs: What went in.
        outputs: What came out; None if the operation failed.
    """
    if operation.name in GENERATOR_RUNS:
        return RunKind.GENERATOR
    if operation.name not in (COMPONENT_RUN, TOOL_RUN):
        return RunKind.CHAIN
    # A failed component is judged by the outputs that it declares, as if each were empty.
    if outputs is None:
        outputs = dict.fromkeys(operation.returns or (), ())
    if _generates(inputs, outputs):
        return RunKind.GENERATOR
    returned = lists_documents(outputs) or declares_documents(operation.returns)
    given = lists_documents(inputs) or declares_documents(operation.takes)
    if not returned or given or is_said(outputs):
        return RunKind.CHAIN
    is_tool = operation.name == TOOL_RUN
    asked = is_tool or _is_asked(operation.component, inputs)
    return RunKind.RETRIEVER if asked else RunKind.CHAIN


def root_name(operation: Operation, tags: Mapping[str, Any]) -> object:
    """Return the name of the component, else of the pipeline, else of the operation."""
    # Pipelines have no name in Haystack; users put one into ``Pipeline(metadata={"name": ...})``.
    metadata = tags.get("haystack.pipeline.metadata")
    named = metadata.get("name") if is_mapping(metadata) else None
    return tags.get("haystack.component.name") or named or operation.name


def is_streaming(inputs: object) -> bool:
    """Whether the answer is streamed, which Haystack does through a callback in the inputs."""
    return any(part.get("streaming_callback") is not None for part in parts(inputs))


def _generates(inputs: object, outputs: object) -> bool:
    """Whether replies came out; routers, joiners and validators pass on those of others."""
    given = is_mapping(inputs) and inputs.get(REPLIES_KEY) is not None
    return is_mapping(outputs) and REPLIES_KEY in outputs and not given


def _is_asked(component: str, inputs: object) -> bool:
    """Whether a component was given a query, as a text, as messages or as an embedding."""
    asked = [str(n) for n, value in inputs.items() if _asks(value)] if is_mapping(inputs) else []
    if any(QUERY_NAME.search(name) for name in asked) or _RETRIEVING_CLASS.search(component):
        return True
    if _OTHER_CLASS.search(component):
        return False
    return any(_OTHER_NAMES.isdisjoint(name.lower().split("_")) for name in asked)


def _asks(value: object) -> bool:
    """Whether a value may be a query: a text, a message, an embedding, or a list of such."""
    first = value[0] if is_list(value) and value else value
    if isinstance(value, str) or first is not value:
        return isinstance(first, str | float | int | ChatMessage)
    return isinstance(value, ChatMessage) or hasattr(value, "indices")
