"""Reads LangChain's inputs and outputs: finds query, response, chunks and model in a run tree.

Every method runs on the worker except ``parts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.outputs import Generation as OneGeneration
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from claimspan_langchain._documents import (
    documents_in,
    evidence_in,
    holds_documents,
    listed_texts,
    tool_results,
)
from claimspan_langchain._interrupts import MESSAGES_KEY, is_interrupted
from claimspan_langchain._messages import Said, role_and_text, text_of
from claimspan_langchain._prompts import completion_of, prompt_messages, prompt_of, usage_of
from claimspan_langchain._structures import fields_of
from claimspan_langchain._texts import answer_in, question_in
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    RunKind,
    acknowledges,
    is_grade,
    is_list,
    is_mapping,
    structured_text,
    value_at,
)

__all__ = ["LangChainReader"]

CONTEXT_KEY: Final = "context"
"""Output key in which ``create_retrieval_chain`` returns the documents of the prompt."""

INTERNAL_NAMES: Final = (
    "__",
    "branch:",
    "checkpoint_",
    "graph:step:",
    "langgraph_",
    "langsmith",
    "lc_",
    "ls_",
    "map:key:",
    "seq:step:",
)
"""Beginnings of the metadata keys and tags that LangChain and LangGraph add to a run."""

EVALUATOR_NAME: Final = "EvalChain"
"""End of the names of all of LangChain's evaluators."""

ANSWER_INPUTS: Final = ("prediction", "submission", "answer", "generation", "outputs")
"""Keys under which a chain is given an answer, to judge it."""


class LangChainReader:
    """Finds query, response, chunks and model in the runs of any LangChain pipeline."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self._query_key = query_key
        self._response_key = response_key

    def look_at(self, query_key: Key | None, response_key: Key | None) -> None:
        """Look for question and answer there from now on; None leaves it as it is."""
        self._query_key = self._query_key if query_key is None else query_key
        self._response_key = self._response_key if response_key is None else response_key

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever, a chain that ends in one, and what judges an answer."""
        if root.kind is RunKind.RETRIEVER or holds_documents(root.outputs):
            return False
        # Where something was looked up, a number may be the answer: {"score": 3}.
        retrieves = bool(root.tree.of_kind(RunKind.RETRIEVER))
        if self._response_key is None and not retrieves and _is_grade(root.outputs):
            return False
        if str(root.name).endswith(EVALUATOR_NAME) or _is_given_an_answer(root):
            return False
        return self._response_key is not None or not self._only_works(root)

    def _only_works(self, root: Run) -> bool:
        """Whether a chain has ended without a word: it has built an index, or moved something.

        It returns ids, a count, or that it is done. A model may have written the summaries of an
        index, so that ids are none of its words either.
        """
        if ids := _ids_in(root.outputs):
            said = self._completions(root)
            return not any(each in text for each in ids for text in said)
        # Most runs go no further.
        if root.tree.of_kind(RunKind.GENERATOR) or root.error is not None or root.end is None:
            return False
        found = [each.outputs for each in root.tree.of_kind(RunKind.RETRIEVER)]
        # A search that has found nothing is a question, also where no model was asked after it.
        if (found and not any(found)) or self.interrupted(root):
            return False
        text = str(self.response(root))
        return not text.strip() or acknowledges(text)

    def query(self, root: Run) -> object:
        """Return the text of the question in the input of the root."""
        if self._query_key is not None:
            return text_of(value_at(root.inputs, self._query_key))
        if root.kind is RunKind.GENERATOR:
            asked = text_of(prompt_messages(root.inputs), "human")
            return asked or prompt_of(root.inputs)
        found = question_in(root.inputs)
        if found or is_mapping(root.inputs) or is_list(root.inputs):
            return found
        # A graph that goes on after an interrupt is given no question: its state has it.
        states = [run.inputs for run in root.tree.runs if run is not root]
        found_in = (question_in(state) for state in (root.outputs, *states) if is_mapping(state))
        return next(filter(None, found_in), "")

    def response(self, root: Run) -> object:
        """Return the text of the answer in the output of the root, or the last completion."""
        if self._response_key is not None:
            said = value_at(root.outputs, self._response_key)
            return structured_text(text_of(said) or said, fields_of)
        if holds_documents(root.outputs):
            return ""
        if root.kind is RunKind.GENERATOR:
            return structured_text(completion_of(root.outputs))
        completions = self._completions(root)
        found = answer_in(root.outputs, root.inputs, completions)
        # LangGraph returns its whole state: before there is an answer, the only text in it is
        # the question.
        if is_mapping(root.outputs) and found == self.query(root):
            found = ""
        return structured_text(found or self._last_completion(root, completions))

    def names_answer(self, root: Run) -> bool:
        """Whether a key of the answer was given."""
        return self._response_key is not None

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        # ``ls_*`` keys are what LangChain itself adds to the metadata, for LangSmith.
        source = run.metadata.get("ls_vector_store_provider")
        return Retrieval(run.inputs, [*documents_in(run.outputs, 1)], source)

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents in the output of a node, function or tool that searched a store.

        ``VectorStore.similarity_search`` calls no callback. A tool with the response format
        ``content_and_artifact`` keeps the documents beside the text that the model reads. Only
        the output of the tool itself counts: the messages of a conversation have those of
        earlier queries, too.
        """
        output = run.outputs
        if is_mapping(output):
            output = {key: item for key, item in output.items() if key != MESSAGES_KEY}
        documents = [*documents_in(output)]
        return Retrieval(question_in(run.inputs), documents) if documents else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents that a chain was called with, or that its state holds."""
        return [*documents_in(run.inputs), *listed_texts(run.inputs)]

    def passages(self, run: Run) -> Sequence[str]:
        """Return what a tool returned as a text, and what was passed under a name like context."""
        return [*evidence_in(run.inputs, run.outputs)]

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the documents in the prompt of a retrieval chain; None if it does not say."""
        found = root.outputs.get(CONTEXT_KEY) if is_mapping(root.outputs) else None
        if not is_list(found) or not all(isinstance(item, LangChainDocument) for item in found):
            return None
        return [*documents_in(found, 1)]

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        result = run.outputs if isinstance(run.outputs, LLMResult) else None
        usage = usage_of(result)
        return Generation(
            prompt=prompt_of(run.inputs),
            completion=completion_of(result),
            model=run.metadata.get("ls_model_name"),
            provider=run.metadata.get("ls_provider"),
            input_tokens=usage[0],
            output_tokens=usage[1],
            tool_results=tool_results(prompt_messages(run.inputs)),
            messages=[role_and_text(message) for message in prompt_messages(run.inputs)],
        )

    def is_internal(self, name: str) -> bool:
        """Whether LangChain or LangGraph has added a metadata key or a tag."""
        return name.startswith(INTERNAL_NAMES)

    def parts(self, value: object) -> Sequence[object]:
        """Return what a document, a message, a prompt or a completion holds."""
        match value:
            case LangChainDocument():
                return value.page_content, value.metadata or None
            case ToolMessage():
                return value.content, value.artifact
            case Said():
                return (value.content,)
            case BaseMessage():
                return value.content, value.additional_kwargs or None
            case ChatGeneration():
                return value.text, value.message
            case OneGeneration():
                return (value.text,)
            case LLMResult():
                return (value.generations,)
            case StringPromptValue():
                return (value.text,)
            case ChatPromptValue():
                return (value.messages,)
            case _:
                return ()

    def interrupted(self, root: Run) -> bool:
        """Whether the graph waits for a person before it answers, or the task was cancelled."""
        return is_interrupted(
            root, lambda: str(self.response(root)), lambda: self._completions(root)
        )

    def _completions(self, root: Run) -> list[str]:
        """Return what the models outside of retrievers have answered, without rewritten queries."""
        asked = [
            run.inputs.strip()
            for run in root.tree.of_kind(RunKind.RETRIEVER)
            if isinstance(run.inputs, str)
        ]
        completions = [
            completion_of(run.outputs)
            for run in root.tree.of_kind(RunKind.GENERATOR)
            if isinstance(run.outputs, LLMResult) and not run.has_ancestor(RunKind.RETRIEVER)
        ]
        return [text for text in completions if text.strip() not in asked]

    def _last_completion(self, root: Run, completions: Sequence[str]) -> str:
        """Return what the last generator answered, for an output of unknown shape.

        A failed or paused run (output None) has no answer, a str output is the answer itself, and
        so is a conversation: a turn that says nothing has none.
        """
        if root.outputs is None or isinstance(root.outputs, str):
            return ""
        if is_mapping(root.outputs) and root.outputs.get(MESSAGES_KEY):
            return ""
        return completions[-1] if completions else ""


_ID: Final = re.compile(r"(?=[^\n]*\d)[\w.:/#-]{1,200}")
"""An id of a document: one word with a digit."""

MAX_IDS: Final = 100
"""Items of a list that are looked at."""

_NO_STATE: Final[Mapping[object, object]] = {}


def _is_grade(output: object) -> bool:
    said = text_of(output) if isinstance(output, BaseMessage | Said) else output
    return is_grade(said, fields_of)


def _ids_in(output: object) -> list[str]:
    """The ids in an output that is a list of them, as a store returns of what it has taken."""
    items = output[:MAX_IDS] if is_list(output) else ()
    ids = [each for each in items if isinstance(each, str) and _ID.fullmatch(each)]
    return ids if len(ids) == len(items) else []


def _is_given_an_answer(root: Run) -> bool:
    """Whether the input has an answer already; a graph returns the state that it was given."""
    given, output = root.inputs, root.outputs
    if not is_mapping(given):
        return False
    state: Mapping[object, object] = output if is_mapping(output) else _NO_STATE
    answers = (given.get(key) for key in ANSWER_INPUTS if key not in state)
    return any(isinstance(answer, str) and answer.strip() for answer in answers)
