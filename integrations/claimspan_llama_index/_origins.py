"""Tells what LlamaIndex does beside answering: it judges answers, builds indices, sums up chats.

Such work calls the same engines, synthesizers and models as a query does. Transformations and
rerankers report themselves; what calls from an evaluator, an index or a memory is seen only on
the stack.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Final

from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.evaluation.base import BaseEvaluator
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.document_summary.base import DEFAULT_SUMMARY_QUERY
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory.types import BaseMemory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.question_gen.types import BaseQuestionGenerator
from llama_index.core.schema import TransformComponent
from llama_index_instrumentation.dispatcher import Dispatcher

__all__ = ["ASKED_BESIDE", "BESIDE", "is_called_beside"]

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

    Args:
        is_root: Whether to look at the whole stack. For any other run only the frames up to the run
            that calls it count, as what called that one is known.
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
