"""Reads LangChain's inputs and outputs: finds query, response, chunks and model in a run tree.

LangChain prescribes no shape for the input and the output of a chain, so the usual names are tried
in the order of the constants below. Every method runs on the worker except ``parts``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
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
from claimspan_langchain._messages import (
    Said,
    Structure,
    completion_of,
    fields_of,
    first_generation,
    prompt_messages,
    prompt_of,
    role_of,
    said_of,
    text_of,
    told_by,
)
from claimspan_tracing.adapters import (
    ANSWER_FIELDS,
    ANSWER_NAMES,
    QUESTION_NAMES,
    Document,
    Generation,
    Reader,
    Retrieval,
    Run,
    RunKind,
    acknowledges,
    filled_in,
    is_grade,
    is_list,
    is_mapping,
    read_call,
    structured_text,
    texts_in,
    value_at,
    waits_for_person,
)

MESSAGES_KEY: Final = "messages"
"""Where a graph's state keeps its conversation."""

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


class LangChainReader(Reader):
    """Finds query, response, chunks and model in the runs of any LangChain pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever, a chain that ends in one, and what judges an answer."""
        if root.kind is RunKind.RETRIEVER or holds_documents(root.outputs):
            return False
        # Where something was looked up, a number may be the answer: {"score": 3}.
        if self.response_key is None and not root.tree.of_kind(RunKind.RETRIEVER):
            said = root.outputs
            said = text_of(said) if isinstance(said, BaseMessage | Said) else said
            if is_grade(said, fields_of):
                return False
        if str(root.name).endswith(EVALUATOR_NAME) or _is_given_an_answer(root):
            return False
        return self.response_key is not None or not self._only_works(root)

    def _only_works(self, root: Run) -> bool:
        """Whether a chain has ended without a word: it has built an index, or moved something.

        It returns ids, a count, or that it is done. A model may have written the summaries of an
        index, so that ids are none of its words either.
        """
        if ids := _ids_in(root.outputs):
            said = self._completions(root)
            return not any(each in text for each in ids for text in said)
        # Most runs go no further.
        is_over = root.end is not None and root.error is None and not root.tree.is_left
        if root.tree.of_kind(RunKind.GENERATOR) or not is_over:
            return False
        found = [each.outputs for each in root.tree.of_kind(RunKind.RETRIEVER)]
        # A search that has found nothing is a question, also where no model was asked after it.
        if (found and not any(found)) or self.interrupted(root):
            return False
        text = str(self.response(root))
        return not text.strip() or acknowledges(text)

    def query(self, root: Run) -> object:
        """Return the text of the question in the input of the root."""
        if self.query_key is not None:
            return text_of(value_at(root.inputs, self.query_key))
        if root.kind is RunKind.GENERATOR:
            asked = text_of(prompt_messages(root.inputs), "user")
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
        if self.response_key is not None:
            said = value_at(root.outputs, self.response_key)
            return structured_text(text_of(said) or said, fields_of)
        if holds_documents(root.outputs):
            return ""
        if root.kind is RunKind.GENERATOR:
            return structured_text(said_of(root.outputs))
        completions = self._completions(root)
        found = answer_in(root.outputs, root.inputs, completions)
        # LangGraph returns its whole state: before there is an answer, the only text in it is
        # the question.
        if is_mapping(root.outputs) and found == self.query(root):
            found = ""
        # Of an output of unknown shape it is the last completion. A run that failed or waits has
        # none; a text is the answer itself, and so is a conversation: a turn may say nothing.
        is_known = root.outputs is None or isinstance(root.outputs, str)
        is_talk = is_mapping(root.outputs) and bool(root.outputs.get(MESSAGES_KEY))
        # What a tool was called with is no answer, unless it is in the output.
        last = "" if is_known or is_talk else next(iter(self._completions(root, said_of)[-1:]), "")
        return structured_text(found or last)

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        # ``ls_*`` keys are what LangChain itself adds to the metadata, for LangSmith.
        source = run.metadata.get("ls_vector_store_provider")
        return Retrieval(run.inputs, documents_in(run.outputs, 1), source)

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
        documents = documents_in(output)
        return Retrieval(question_in(run.inputs), documents) if documents else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents that a chain was called with, or that its state holds."""
        if isinstance(run.inputs, str):  # as of most steps of a chain
            return ()
        return documents_in(run.inputs) + listed_texts(run.inputs)

    def passages(self, run: Run) -> Sequence[str]:
        """Return what a tool returned as a text, and what was passed under a name like context."""
        return evidence_in(run.inputs, run.outputs, is_tool=run.kind is RunKind.TOOL)

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        # ``ls_*`` keys are what LangChain itself adds to the metadata, for LangSmith.
        own = {key[3:]: value for key, value in run.metadata.items() if key.startswith("ls_")}
        messages = prompt_messages(run.inputs)
        return Generation(
            prompt=prompt_of(run.inputs),
            completion=completion_of(run.outputs),
            model=own.get("model_name"),
            provider=own.get("provider"),
            call=read_call([own], told_by(run.outputs)),
            is_completion=own.get("model_type") == "llm",
            tool_results=tool_results(messages),
            messages=[(role_of(message) or "", text_of(message)) for message in messages],
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
        """Whether the graph waits for a person before it answers."""
        output = root.outputs

        def is_said_last() -> bool:
            messages = output.get(MESSAGES_KEY) if is_mapping(output) else None
            last = text_of(messages[-1]).strip() if is_list(messages) and messages else ""
            return bool(last) and last in map(str.strip, self._completions(root))

        def calls_tools() -> bool:
            model = root.tree.last_model
            message = getattr(first_generation(model and model.outputs), "message", None)
            return isinstance(message, AIMessage) and bool(message.tool_calls)

        return waits_for_person(
            root,
            output,
            root.metadata,
            is_said_last=is_said_last,
            calls_tools=calls_tools,
            has_answer=lambda: bool(str(self.response(root)).strip()),
        )

    def _completions(self, root: Run, of: Callable[[object], str] = completion_of) -> list[str]:
        """Return what the models outside of retrievers have answered, without rewritten queries."""
        asked = [
            run.inputs.strip()
            for run in root.tree.of_kind(RunKind.RETRIEVER)
            if isinstance(run.inputs, str)
        ]
        completions = [
            of(run.outputs)
            for run in root.tree.of_kind(RunKind.GENERATOR)
            if isinstance(run.outputs, LLMResult) and not run.has_ancestor(RunKind.RETRIEVER)
        ]
        return [text for text in completions if text.strip() not in asked]


_ID: Final = re.compile(r"(?=[^\n]*\d)[\w.:/#-]{1,200}")
"""An id of a document: one word with a digit."""

MAX_IDS: Final = 100
"""Items of a list that are looked at."""

_NOTHING: Final[Mapping[object, object]] = {}


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
    state: Mapping[object, object] = output if is_mapping(output) else _NOTHING
    answers = (given.get(key) for key in ANSWER_INPUTS if key not in state)
    return any(isinstance(answer, str) and answer.strip() for answer in answers)


# --- questions and answers ------------------------------------------------------------------------


QUERY_KEYS: Final = (*QUESTION_NAMES, MESSAGES_KEY)
MAX_DEPTH: Final = 4
"""Levels of an output in which a field is looked for that is named as an answer."""


def question_in(value: object) -> str:
    """Return the question in an input: a text, a message, messages, or a mapping of the usual keys.

    An unknown key counts only if there is no choice: a wrong text is worse than none.
    """
    if not is_mapping(value):
        return text_of(value, "user")
    named = (text_of(value.get(key), "user") for key in QUERY_KEYS)
    texts = [item for item in value.values() if isinstance(item, str) and item]
    return next(filter(None, named), texts[0] if len(texts) == 1 else "")


def answer_in(value: object, given: object, completions: Sequence[str]) -> str:
    """Return the answer in an output: a text, messages, a structure, or one of the usual keys.

    Args:
        value: The output.
        given: The input: a graph returns its whole state, and what it was given is no answer.
        completions: The words of models, in order, for a mapping with several unknown keys.
    """
    if isinstance(value, str):
        return value  # as most answers are
    if is_list(value) and not isinstance(value, list):
        # A function that returns the answer and its documents, or its sources: a tuple.
        found = (_answer(item, completions) for item in value)
        return next(filter(None, found), "")
    if not is_mapping(value) or isinstance(value, Structure):
        return _answer(value, completions)
    for key in ANSWER_NAMES:
        if text := _answer(value.get(key), completions):
            return text
    before: Mapping[object, object] = given if is_mapping(given) else _NOTHING
    new = {str(k): v for k, v in value.items() if before.get(k) is not v or v is None}
    filled = filled_in(new, completions, fields_of)
    rest = {key: item for key, item in new.items() if key not in filled}
    if filled and next(texts_in(rest, fields_of), None) is None:
        return structured_text(filled, fields_of)
    if nested := _nested_answer(value.values(), MAX_DEPTH):
        return nested
    texts = {key: item for key, item in rest.items() if isinstance(item, str) and item.strip()}
    return structured_text(filled, fields_of) or _said_by_a_model(texts, completions)


def _said_by_a_model(texts: Mapping[str, str], completions: Sequence[str]) -> str:
    """The only text, that of the key that is named as an answer, or the longest of a model's."""
    if len(texts) <= 1:
        return next(iter(texts.values()), "")
    said = {
        key: text
        for key, text in texts.items()
        if any(each and (each in text or text in each) for each in completions)
    }
    named = [t for key, t in said.items() if any(word in key.lower() for word in ANSWER_FIELDS)]
    return max(named or said.values(), key=len, default="")


def _answer(value: object, completions: Sequence[str]) -> str:
    if isinstance(value, str | BaseMessage | Said):
        return text_of(value)
    if is_list(value) and any(role_of(item) is not None for item in value):
        return _said_last(value, completions)
    messages = getattr(value, "messages", None)
    if is_list(messages):
        return _said_last(messages, completions)
    return structured_text(value, fields_of)


def _said_last(messages: Sequence[object], completions: Sequence[str]) -> str:
    """Return what a conversation ends with: the last message of a model after the last question.

    A fixed text behind it, such as a request for feedback, is none that a model has said. A tool
    may answer by itself, and an agent may report to others in messages that bear its name.
    """
    turn = _after_the_question(messages)
    last = turn[-1] if turn else None
    if role_of(last) == "tool" and isinstance(last, BaseMessage | Said):
        return text_of(last)
    texts = [text_of(message[1] if is_list(message) else message) for message in turn]
    said = [text for text in texts if text and text in completions]
    return said[-1] if said and texts[-1] else next(iter(texts[-1:]), "")


def _after_the_question(messages: Sequence[object]) -> list[object]:
    turn: list[object] = []
    for message in messages:
        is_named = bool(getattr(message, "name", None))
        if role_of(message) == "user" and not is_named:
            turn = []
        elif is_named or role_of(message) in ("assistant", "tool"):
            turn.append(message)
    return turn


def _nested_answer(values: Iterable[object], depth: int) -> str:
    """The text of a field that is named as an answer, within structures below an output."""
    held = [fields_of(value) for value in values if not isinstance(value, LangChainDocument)]
    for named in held:
        found = (named.get(key) for key in ANSWER_FIELDS)
        if text := next((t for t in found if isinstance(t, str) and t.strip()), ""):
            return text
    inner = (_nested_answer(named.values(), depth - 1) for named in held if named and depth)
    return next(filter(None, inner), "")
