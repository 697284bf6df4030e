"""Reads what the hooks have taken: finds query, response, chunks and model in a run tree.

Every method runs on the worker except ``parts``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms.llm import LLM
from llama_index.core.response_synthesizers import BaseSynthesizer

from claimspan_llama_index._context import call_of, is_counted, nodes_read, runs_below
from claimspan_llama_index._evidence import evidence_in, has_found, unfound
from claimspan_llama_index._origins import ASKED_BESIDE
from claimspan_llama_index._snapshots import Answer, Call, Fields, Said, ToolResult, documents_of
from claimspan_llama_index._streams import StreamedAnswer
from claimspan_llama_index._texts import (
    STRUCTURE,
    answer_in,
    fields_of,
    given_to,
    is_answer,
    items,
    messages_in,
    question_in,
    question_of,
)
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Retrieval,
    Run,
    RunKind,
    acknowledges,
    is_grade,
    join_bounded,
    structured_text,
)

__all__ = ["LlamaIndexReader"]

ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""LlamaIndex's roles to OpenInference's."""

ENGINES: Final = (BaseQueryEngine, BaseChatEngine)
ASKED: Final = (*ENGINES, BaseSynthesizer)
"""Classes whose objects are asked a question."""

NO_RESPONSE: Final = "Empty Response"
"""What a response synthesizer returns where the model said nothing, or there were no nodes."""


class LlamaIndexReader:
    """Finds query, response, chunks and model in the runs of any LlamaIndex pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for retrieval alone, evaluation, and what builds an index."""
        call = call_of(root)
        if root.kind is RunKind.RETRIEVER or call.is_beside:
            return False
        # Where something was looked up, a number may be the answer: {"score": 3}.
        if is_grade(_result(root), fields_of) and not root.tree.of_kind(RunKind.RETRIEVER):
            return False
        runs = runs_below(root)
        models = (run for run in runs if run.kind is RunKind.GENERATOR)
        prompts = [_prompt(call_of(run)) for run in models if is_counted(run, root)]
        was_asked = (any(each in prompt for each in ASKED_BESIDE) for prompt in prompts)
        return not all(was_asked) if prompts else not self._only_works(root, runs)

    def _only_works(self, root: Run, runs: Sequence[Run]) -> bool:
        """Whether a function or a workflow of the user's has built an index, and answered nothing.

        An engine that was asked is a query, also where it has found nothing to ask a model about.
        """
        if root.end is None or root.error is not None:
            return False
        if any(isinstance(call_of(run).instance, ASKED) and is_counted(run, root) for run in runs):
            return False
        text = str(self.response(root))
        return not text.strip() or acknowledges(text)

    def query(self, root: Run) -> object:
        """Return the question that the root was asked, before any rewriting."""
        call = call_of(root)
        asked = question_of(call)
        if asked or root.kind is not RunKind.GENERATOR:
            return asked
        # A model that is called by itself is asked by its prompt, or by its user's last message.
        return question_in(given_to(call)) or _prompt(call)

    def response(self, root: Run) -> object:
        """Return the text of the answer in the result of the root, or the last completion."""
        # A retriever that is called by itself returns documents and answers nothing.
        if root.kind is RunKind.RETRIEVER:
            return ""
        text = answer_in(root.outputs)
        if not text and not is_answer(root.outputs):
            text = _last_completion(root) or answer_in(root.outputs, is_structured=True)
        return "" if text == NO_RESPONSE else structured_text(text)

    def names_answer(self, root: Run) -> bool:
        """Whether an engine or an agent has filled a structure of the user's: that is an answer."""
        said = root.outputs
        if isinstance(said, Fields):
            return bool(said.get(STRUCTURE))
        return isinstance(said, Answer) and isinstance(said.said, Fields)

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        documents = [each for each in items(run.outputs) if isinstance(each, Document)]
        asked = call_of(run).flat().get("str_or_query_bundle")
        return Retrieval(question_in(asked), documents)

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the nodes in the result of a function, tool or workflow step of the user's own."""
        documents = [] if call_of(run).is_beside else documents_of(run.outputs)
        return Retrieval(self.query(run), documents) if documents else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the nodes among the arguments of a call."""
        call = call_of(run)
        # Answers to other questions, given as nodes, beside the sources that they rest on.
        if call.is_beside or call.arguments.get("additional_source_nodes"):
            return ()
        return documents_of({**call.arguments})

    def passages(self, run: Run) -> Sequence[str]:
        """Return what a tool or a step of a workflow has returned as plain text."""
        return evidence_in(run)

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the nodes that the answering synthesizer was given, or the sources of the answer.

        Node post-processors report nothing: the retrieved nodes may be more than were read.
        """
        # As it stands: a synthesizer without nodes and its engine say the same.
        found = nodes_read(root, answer_in(root.outputs) or str(self.response(root)))
        if found is not None:
            return found
        sources = root.outputs.sources if isinstance(root.outputs, Answer | StreamedAnswer) else ()
        return list(sources) or None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        call, said = call_of(run), run.outputs
        model = call.instance.metadata.model_name if isinstance(call.instance, LLM) else None
        tokens = said.tokens if isinstance(said, Said) else (None, None)
        messages = messages_in(given_to(call))
        results = [each.text for each in messages if _is_result(each.role) and has_found(each.text)]
        nothing = unfound(run.tree) if results else set[str]()
        return Generation(
            prompt=_prompt(call),
            completion=answer_in(said),
            model=model,
            input_tokens=_number(tokens[0]),
            output_tokens=_number(tokens[1]),
            tool_results=[text for text in results if text.strip() not in nothing],
            messages=[(ROLES.get(each.role, ""), each.text) for each in messages],
        )

    def is_internal(self, name: str) -> bool:
        """Return False: all metadata are tags that the application has set."""
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return what a call, a document, a message or an answer holds.

        Not the object that was called: an engine and its index live without the record.
        """
        match value:
            case Call():
                return (value.arguments,)
            case Document():
                return value.text, value.metadata or None
            case Said():
                return (value.text,)
            case Answer():
                # Not its sources, which are no part of what was said. They were weighed where they
                # were retrieved.
                return (value.said,)
            case ToolResult():
                return value.text, value.raw
            case StreamedAnswer():
                return (value.parts,)
            case _:
                return ()

    def interrupted(self, root: Run) -> bool:
        """Whether the task was cancelled, or the workflow through its handler."""
        return root.failed_with(asyncio.CancelledError)


def _result(root: Run) -> object:
    """What the root has returned, without what LlamaIndex puts around it."""
    said = root.outputs.said if isinstance(root.outputs, Answer) else root.outputs
    if isinstance(said, Said):
        return said.text
    return said.get("result", said) if isinstance(said, Fields) else said


def _is_result(role: str) -> bool:
    return ROLES.get(role) == "tool"


def _last_completion(root: Run) -> str:
    """Return what the last model answered, for a result of unknown shape.

    Models inside a retriever rewrite the query; they do not answer it. Nor is the answer of the
    last of several engines the answer to the first one's question.
    """
    runs = runs_below(root)
    said = [
        run
        for run in runs
        if run.kind is RunKind.GENERATOR
        and is_counted(run, root)
        and not run.has_ancestor(RunKind.RETRIEVER)
    ]
    engines = {id(engine) for run in runs if (engine := _engine_around(run, root))}
    if not said or (len(engines) > 1 and _engine_around(said[-1], root)):
        return ""
    return answer_in(said[-1].outputs)


def _engine_around(run: Run, root: Run) -> Run | None:
    """The outermost engine below the root that a run is part of."""
    engine: Run | None = None
    each: Run | None = run
    while each is not None and each is not root:
        if isinstance(call_of(each).instance, ENGINES) and is_counted(each, root):
            engine = each
        each = each.parent
    return engine


def _prompt(call: Call) -> str:
    given = given_to(call)
    if isinstance(given, str):
        return given
    return join_bounded((f"{each.role}: {each.text}" for each in messages_in(given)), "\n")


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
