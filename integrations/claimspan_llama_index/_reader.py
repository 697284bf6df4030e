"""Reads the notes of the hooks: finds query, response, chunks and model in a run tree.

Every method of the reader runs on the worker except ``parts``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Final

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms.llm import LLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.tools import BaseTool

from claimspan_llama_index._roles import ASKED_BESIDE
from claimspan_llama_index._snapshots import (
    Answer,
    Call,
    Fields,
    Said,
    ToolResult,
    call_of,
    documents_of,
)
from claimspan_llama_index._streams import StreamedAnswer
from claimspan_tracing.adapters import (
    NOT_KNOWN,
    ROLES,
    Document,
    Generation,
    Reader,
    Retrieval,
    Run,
    RunKind,
    RunTree,
    acknowledges,
    arguments_of,
    is_echo,
    is_grade,
    is_list,
    is_mapping,
    join_bounded,
    named_text,
    package_of,
    read_call,
    structured_text,
)
from claimspan_tracing.adapters import fields_of as plain_fields_of

ENGINES: Final = (BaseQueryEngine, BaseChatEngine)
ASKED: Final = (*ENGINES, BaseSynthesizer)
"""Classes whose objects are asked a question."""

NO_RESPONSE: Final = "Empty Response"
"""What a response synthesizer returns if the model said nothing, or there were no nodes."""


class LlamaIndexReader(Reader):
    """Finds query, response, chunks and model in the runs of any LlamaIndex pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for retrieval alone, evaluation, and what builds an index."""
        call = call_of(root)
        if root.kind is RunKind.RETRIEVER or call.is_beside:
            return False
        # Where something was looked up, a number may be the answer: {"score": 3}.
        said = root.outputs.said if isinstance(root.outputs, Answer) else root.outputs
        said = said.get("result", said) if isinstance(said, Fields) else said
        said = said.text if isinstance(said, Said) else said
        if is_grade(said, fields_of) and not root.tree.of_kind(RunKind.RETRIEVER):
            return False
        models = root.tree.of_kind(RunKind.GENERATOR)
        prompts = [_prompt(call_of(run)) for run in models if is_counted(run)]
        was_asked = (any(each in prompt for each in ASKED_BESIDE) for prompt in prompts)
        return not all(was_asked) if prompts else not self._only_works(root)

    def _only_works(self, root: Run) -> bool:
        """Whether a function or a workflow of the user's has built an index, and answered nothing.

        An engine that was asked is a query, also if it has found nothing to ask a model about.
        """
        if root.end is None or root.error is not None:
            return False
        asked = (run for run in root.tree.runs if isinstance(call_of(run).instance, ASKED))
        if any(map(is_counted, asked)):
            return False
        text = str(self.response(root))
        return not text.strip() or acknowledges(text)

    def query(self, root: Run) -> object:
        """Return the question that the root was asked, before any rewriting."""
        call = call_of(root)
        asked = _question_among(call.flat())
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
            asked = self.query(root)
            named = {name: each for name, each in _fields(root.outputs).items() if each != asked}
            text = answer_in(named or root.outputs, is_structured=True) or _last_completion(root)
        return "" if text == NO_RESPONSE else structured_text(text)

    def untold(self, root: Run) -> str:
        """Say that an answer is a text, or under one of the usual names."""
        return f"the result has no text, and none under {', '.join(RESPONSE_KEYS)}"

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
        """Return the texts that a tool, a step of a workflow or a function has brought.

        Neither the question nor a prompt with it.
        """
        call, returned = call_of(run), run.outputs
        if run.parent is None or run.kind is not RunKind.CHAIN or call.is_beside:
            return ()
        # What a step has returned after the last model was asked, that one has not read.
        models = run.tree.of_kind(RunKind.GENERATOR)
        if models and (run.end or models[-1].start) > models[-1].start:
            return ()
        if isinstance(call.instance, BaseTool) and isinstance(returned, ToolResult):
            is_found = not _echoed(run) and not documents_of(returned)
            texts = [returned.text] if is_found else []
        elif isinstance(returned, Fields) and not isinstance(call.instance, BaseTool):
            held = [each for v in returned.values() for each in (items(v) or [v])]
            texts = [each for each in held if isinstance(each, str) and len(each) >= MIN_FOUND]
        else:
            return ()
        asked = _question_among(call_of(run.tree.root).flat()).strip()
        return [text for text in texts if not (asked and asked in text)]

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the sources that an engine names if no model was asked, as there were none."""
        if root.tree.of_kind(RunKind.GENERATOR) or not isinstance(root.outputs, Answer):
            return None
        return list(root.outputs.sources)

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        call, said = call_of(run), run.outputs
        model = call.instance if isinstance(call.instance, LLM) else None
        told = said.call if isinstance(said, Said) else NOT_KNOWN
        asked = [call.flat(), getattr(model, "additional_kwargs", None), model]
        messages = messages_in(given_to(call))
        results = [each.text for each in messages if ROLES.get(each.role) == "tool"]
        nothing = unfound(run.tree) if results else set[str]()
        return Generation(
            prompt=_prompt(call),
            # Or else what it has filled in the calls of tools with.
            completion=answer_in(said)
            or (arguments_of(said.calls) if isinstance(said, Said) else ""),
            model=model and name_of(model),
            provider=model and package_of(type(model), PACKAGES),
            call=read_call(asked, [told]),
            is_completion=model is not None and not model.metadata.is_chat_model,
            tool_results=[text for text in results if text.strip() not in nothing],
            messages=[(ROLES.get(each.role, ""), each.text) for each in messages],
        )

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


PACKAGES: Final = re.compile(r"llama_index\.llms\.(\w+)")
"""The module of a model, whose package has the name of the provider."""


def name_of(given: BaseLLM) -> str:
    """Return the name of a model; empty if it has none."""
    name = given.metadata.model_name
    # What LlamaIndex calls a model whose class does not say its name.
    return named_text(["model"], [given]) if name == "unknown" else name


def _last_completion(root: Run) -> str:
    """Return what the last model answered, for a result of unknown shape.

    Models inside a retriever rewrite the query; they do not answer it. Nor is the answer of the
    last of several engines the answer to the first one's question.
    """
    runs = [root, *root.below()]
    models = [run for run in runs if run.kind is RunKind.GENERATOR and is_counted(run)]
    said = [run for run in models if not run.has_ancestor(RunKind.RETRIEVER)]
    engines = {id(engine) for run in runs if (engine := _engine_around(run, root))}
    if not said or (len(engines) > 1 and _engine_around(said[-1], root)):
        return ""
    return answer_in(said[-1].outputs)


def _engine_around(run: Run, root: Run) -> Run | None:
    """The outermost engine below the root that a run is part of."""
    inner = [each for each in (run, *run.around()) if each is not root and each.is_part_of(root)]
    engines = (each for each in inner if isinstance(call_of(each).instance, ENGINES))
    return next((each for each in [*engines][::-1] if is_counted(each)), None)


def _prompt(call: Call) -> str:
    given = given_to(call)
    if isinstance(given, str):
        return given
    return join_bounded((f"{each.role}: {each.text}" for each in messages_in(given)), "\n")


QUERY_KEYS: Final = (
    "str_or_query_bundle",
    "query_bundle",
    "query",
    "query_str",
    "message",
    "user_msg",
    "question",
    "input",
    "start_event",
    "chat_history",
)
"""Argument names of LlamaIndex's own methods first, then what users call theirs."""

STRUCTURE: Final = "structured_response"
"""Where an agent has its structured answer."""

RESPONSE_KEYS: Final = (
    STRUCTURE,
    "response",
    "answer",
    "result",
    "output",
    "text",
    "message",
    "content",
)
"""Where results have the answer. An agent has a structured one beside its message."""


# --- questions ------------------------------------------------------------------------------------


def question_in(value: object) -> str:
    """Return the text of a question: a text, a message, the last one of a person, or an event."""
    match value:
        case str():
            return value
        case Said():
            return value.text
        case Fields():
            return _question_among(value)
        case _:
            asked = [each for each in messages_in(value) if each.role == "user"]
            return asked[-1].text if asked else ""


def _question_among(named: Mapping[str, object]) -> str:
    texts = (question_in(named.get(key)) for key in QUERY_KEYS)
    # An unknown name counts only if there is no choice: a wrong text is worse than none.
    others = [value for value in named.values() if isinstance(value, str) and value]
    return next(filter(None, texts), others[0] if len(others) == 1 else "")


# --- answers --------------------------------------------------------------------------------------


def is_answer(value: object) -> bool:
    """Whether the type of a result tells the answer, also if that is nothing."""
    if isinstance(value, Fields):
        return any(isinstance(value.get(key), str | Said | Answer) for key in RESPONSE_KEYS)
    return value is None or isinstance(value, str | Said | Answer | StreamedAnswer | ToolResult)


def answer_in(value: object, *, is_structured: bool = False) -> str:
    """Return the text in the result of a query engine, chat engine, agent, model or workflow.

    All of it may be the answer, as in a structured one, a user's own model.
    """
    match value:
        case str():
            return value
        case StreamedAnswer():
            return join_bounded(value.parts)
        case Said() | ToolResult():
            return value.text
        case Answer():
            return answer_in(value.said, is_structured=True)
        case _ if not is_structured:
            named: Mapping[str, object] = {} if is_list(value) else _fields(value)
            found = (named[key] for key in RESPONSE_KEYS if named.get(key) is not None)
            texts = (answer_in(each, is_structured=True) for each in found)
            return next(filter(None, texts), _blocks(named.get("blocks")))
        case _:
            # A conversation has questions as well.
            return "" if messages_in(value) else structured_text(value, fields_of)


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of an object that was taken: of what says an answer, that alone."""
    if isinstance(value, _SAID):
        return {"answer": answer_in(value)}
    named = _fields(value)
    if said := named.get(STRUCTURE) or _blocks(named.get("blocks")):
        return {"answer": said}
    said = next((named[key] for key in RESPONSE_KEYS if isinstance(named.get(key), _SAID)), None)
    return named if said is None else {"answer": said}


_SAID: Final = (Said, Answer, StreamedAnswer, ToolResult)


def _fields(value: object) -> Mapping[str, object]:
    """The fields of a mapping or of the user's own object; none of LlamaIndex's objects or ours."""
    if is_mapping(value) or (
        is_dataclass(value) and not type(value).__module__.startswith(_OTHERS)
    ):
        return plain_fields_of(value)
    inner: object = getattr(value, "response", None)
    return {"response": inner} if isinstance(inner, str) else {}


_OTHERS: Final = ("llama_index.", "workflows.", "claimspan_")
"""Beginnings of the modules whose dataclasses are documents, events and the like."""


def _blocks(blocks: object) -> str:
    """Return the text of a message that a workflow has turned into a dict."""
    texts = [block.get("text") for block in items(blocks) if is_mapping(block)]
    return join_bounded((text for text in texts if isinstance(text, str)), "\n")


# --- prompts --------------------------------------------------------------------------------------


def given_to(call: Call) -> object:
    """Return the prompt of a model: a text or messages."""
    named = call.flat()
    # The LLM callbacks of LlamaIndex wrap a method as ``(self, *args, **kwargs)``.
    positional = [*items(named.get("args")), ""]
    return named.get("messages") or named.get("prompt") or positional[0]


def messages_in(value: object) -> list[Said]:
    """Return the messages of a list."""
    return [each for each in items(value) if isinstance(each, Said)]


def items(value: object) -> Sequence[object]:
    """Return the items of a list; nothing of any other value."""
    return value if is_list(value) else ()


# --- runs -----------------------------------------------------------------------------------------


def is_counted(run: Run) -> bool:
    """Whether a run may have to do with the answer: no attempt that failed, and no work beside."""
    return not call_of(run).is_beside and run.counts


# --- texts that are evidence ----------------------------------------------------------------------

MIN_FOUND: Final = 40
"""Characters from which on a text that a step hands on is taken for something that was found.
Names, languages and decisions are shorter."""


def unfound(tree: RunTree) -> set[str]:
    """Return the words of tools that found nothing: their errors, and what models told them."""
    # An agent catches what a tool raises, and hands on a result of its own.
    outputs = [run.outputs for run in tree.runs]
    held = (o for each in outputs for o in (each.values() if isinstance(each, Fields) else [each]))
    errors = {each.text.strip() for each in held if isinstance(each, ToolResult) and each.is_error}
    tools = (run for run in tree.runs if isinstance(call_of(run).instance, BaseTool))
    return errors | {*map(_echoed, tools)}


def _echoed(run: Run) -> str:
    """What a tool repeated of its arguments; empty if it found something."""
    text = run.outputs.text if isinstance(run.outputs, ToolResult) else ""
    return text.strip() if is_echo(text, call_of(run).flat().values()) else ""
