"""Reads the attributes of spans that another instrumentation made.

All runs are complete when they come, so every method finds inputs and outputs in the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._documents import (
    attached,
    documents_given,
    holds_nodes,
    holds_windows,
    named_texts,
    nodes_in,
    refined_in,
    reranked,
    reranker_given,
    retrieved,
    told,
    told_to_model,
    windows_in,
)
from claimspan_openinference._kinds import Attributes, holds_documents, kind_of
from claimspan_openinference._messages import (
    USER,
    answered,
    inside_of,
    last_turn_in,
    messages_of,
    parsed,
    prompted,
    shown_beginning,
    text_of_parts,
    tool_results,
)
from claimspan_openinference._questions import (
    NOTE_OF_STRUCTURE,
    answers_in,
    answers_of_components,
    attributes_of,
    calls_in_text,
    goes_on,
    is_of_components,
    last_answer,
    only_text,
    question_in,
    said_last,
    structured_answer,
    whole_result,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    RunKind,
    acknowledges,
    is_list,
    is_mapping,
    is_review,
    structured_text,
)

__all__ = ["SpanReader", "WaitsForPersonError"]

REFINES: Final = "Refine."
"""How the name of the span begins in which LlamaIndex refines an answer."""

NOTHING: Final = "null"
"""Output of a function that returned nothing: what a model said in it was not the answer."""

_NO_TEXT: Final = re.compile(r"|null|None|\d{1,12}")
"""What a span has where a function returned nothing, or a number."""

ATTACHED: Final = (semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS)
"""Attributes of a root that stand beside its metadata."""


class SpanReader:
    """Finds query, response, chunks and model in OpenInference's and OpenTelemetry's attributes."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self.keys: Final = (query_key, response_key)
        """Where question and answer are, as the application says."""
        self._query_key, self._response_key = self.keys

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever that is called by itself, and for what asks no model.

        Such as an index that is built. A search that has found nothing is a question all the same.
        """
        if root.kind is RunKind.RETRIEVER or self._response_key is not None:
            return root.kind is not RunKind.RETRIEVER
        if root.error is not None:
            return True
        runs = root.tree.runs
        found = [retrieved(attributes_of(run)) for run in runs if run.kind is RunKind.RETRIEVER]
        if any(run.kind is RunKind.GENERATOR for run in runs) or (found and not any(found)):
            return True
        text = str(self.response(root)).strip()
        return not (_NO_TEXT.fullmatch(text) or acknowledges(text))

    def query(self, root: Run) -> object:
        """Return the question in the root's input, or the last message of its user."""
        attributes = attributes_of(root)
        if self._query_key is None and (said := _asked_of_root(root)):
            return said
        if self._query_key is None and goes_on(attributes.get(semconv.INPUT_VALUE)):
            return _asked_before(root)
        found = question_in(attributes.get(semconv.INPUT_VALUE), self._query_key)
        return found if self._query_key is not None else found or _asked_of_agent(root)

    def response(self, root: Run) -> object:
        """Return the answer in the root's output, or the last completion."""
        attributes = attributes_of(root)
        if root.kind is RunKind.GENERATOR and self._response_key is None:
            return structured_text(answered(attributes) or last_answer(root))
        beginning = shown_beginning(attributes.get(semconv.OUTPUT_VALUE))
        if beginning and self._response_key is None:
            return structured_text(whole_result(root, beginning))
        if attributes.get(semconv.OUTPUT_VALUE) == NOTHING and self._response_key is None:
            return ""
        given = self._answers_of(root)
        found = said_last(root, given) if len(given) > 1 else next(iter(given), "")
        if not found and semconv.GEN_AI_OUTPUT_MESSAGES in attributes:
            found = answered(attributes)
        if str(found).startswith(NOTE_OF_STRUCTURE):
            found = structured_answer(root) or found
        return found or structured_text(last_answer(root))

    def _answers_of(self, root: Run) -> list[object]:
        """What may be the answer, in the output of the root."""
        attributes = attributes_of(root)
        values = attributes.get(semconv.INPUT_VALUE), attributes.get(semconv.OUTPUT_VALUE)
        if self._response_key is not None or not is_of_components(*values):
            return answers_in(values[1], self._response_key)
        found, reply = answers_of_components(*values), last_answer(root)
        text = "" if found else only_text(*values)
        # A word by itself, such as a status, is not what was answered, unless a model said it.
        is_answer = bool(text) and (not reply or " " in text.strip() or text in reply)
        return [text] if is_answer else found

    def names_answer(self, root: Run) -> bool:
        """Whether a key of the answer was given."""
        return self._response_key is not None

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query and the documents of a retriever span."""
        attributes = attributes_of(run)
        query = attributes.get(semconv.GEN_AI_RETRIEVAL_QUERY)
        # The arguments of a retriever may have its question under a name, or only its embedding.
        query = query or question_in(attributes.get(semconv.INPUT_VALUE))
        query = query or self.query(run.tree.root)
        return Retrieval(
            query, retrieved(attributes), attributes.get(semconv.GEN_AI_DATA_SOURCE_ID)
        )

    def parts(self, value: object) -> Sequence[object]:
        """Return nothing: only open runs are taken apart."""
        return ()

    def is_internal(self, name: str) -> bool:
        """Return False: a span does not tell who has set its metadata."""
        return False

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return what a reranker let through, or the documents that a tool has returned."""
        attributes = attributes_of(run)
        found = _found_by(attributes) if _may_retrieve(attributes) else []
        return Retrieval(question_in(attributes.get(semconv.INPUT_VALUE)), found) if found else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return what a tool has told the model, what a reranker let through, and neighbours.

        These are what a postprocessor of LlamaIndex, or a component of Haystack, put beside or
        around what was found.
        """
        attributes = attributes_of(run)
        # What a tool makes of documents that a retriever found is not found twice.
        if kind_of(attributes) == semconv.KIND_TOOL and not _retrieves_below(run):
            # What an agent reports to another one rests on what it has read itself.
            said = {answered(attributes_of(each)).strip() for each in _models_below(run)}
            return [each for each in told(attributes) if str(each.text).strip() not in said]
        if run.kind is RunKind.GENERATOR:
            refined = refined_in(attributes, _found_in(run)) if _refines(run) else []
            return [*refined, *told_to_model(attributes)]
        if holds_nodes(attributes):
            # A synthesizer within another one gets texts that this one has joined.
            is_inner = any(holds_nodes(attributes_of(each)) for each in _around(run))
            return () if is_inner else nodes_in(attributes, _found_in(run), _said_in(run))
        if holds_windows(attributes):
            return windows_in(attributes)
        return reranked(attributes) or _kept_in_state(run)

    def passages(self, run: Run) -> Sequence[str]:
        """Return what a builder of a prompt was given under a name such as ``context``."""
        attributes = attributes_of(run)
        if kind_of(attributes) != semconv.KIND_PROMPT:
            return ()
        return named_texts(attributes.get(semconv.INPUT_VALUE))

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return what the rerankers let through, with what none of them was given.

        None where there was no reranker.
        """
        left: list[list[Document]] = []
        has_reranked = False
        for run in sorted(root.tree.runs, key=lambda run: run.end or 0):
            attributes = attributes_of(run)
            kind = kind_of(attributes)
            if run.has_ancestor(RunKind.RETRIEVER):
                continue
            if kind == semconv.KIND_RETRIEVER:
                left.append(retrieved(attributes))
            elif kind == semconv.KIND_RERANKER and (found := reranked(attributes)):
                has_reranked = True
                left = [*_not_given(left, reranker_given(attributes)), found]
        return [document for found in left for document in found] if has_reranked else None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model span.

        A span around another one, as LlamaIndex's are, may have a part of these alone.
        """
        own = attributes_of(run)
        inner = [attributes_of(each) for each in _models_below(run)]
        every = [own, *inner]
        messages = [said for each in every if (said := messages_of(each))]
        return Generation(
            prompt=_whole_prompt(run),
            completion=next((text for each in every if (text := answered(each))), ""),
            model=_first(every, semconv.LLM_MODEL_NAME, semconv.GEN_AI_REQUEST_MODEL),
            provider=_first(every, semconv.GEN_AI_PROVIDER_NAME),
            input_tokens=_count(
                every, semconv.LLM_TOKENS_PROMPT, semconv.GEN_AI_USAGE_INPUT_TOKENS
            ),
            output_tokens=_count(
                every, semconv.LLM_TOKENS_COMPLETION, semconv.GEN_AI_USAGE_OUTPUT_TOKENS
            ),
            messages=messages[0] if messages else (),
            tool_results=next((found for each in every if (found := tool_results(each))), ()),
        )

    def interrupted(self, root: Run) -> bool:
        """Whether a graph waits for a person; a cancelled task is known by its error."""
        return is_interrupted(root, lambda: str(self.response(root)))

    @staticmethod
    def metadata(attributes: Mapping[str, object]) -> Mapping[str, object]:
        """Return the metadata of the application, by which a ground truth may be found.

        Session, user and tags are among them, under their own names.
        """
        found = parsed(attributes.get(semconv.METADATA))
        named = {str(key): value for key, value in found.items()} if is_mapping(found) else {}
        return named | {key: attributes[key] for key in ATTACHED if key in attributes}


def _asked_of_root(root: Run) -> str:
    """What the user said last in the conversation that the root was given."""
    attributes = attributes_of(root)
    if root.kind is RunKind.GENERATOR:
        return _asked(attributes)
    if said := last_turn_in(attributes.get(semconv.INPUT_VALUE)):
        return said
    # OpenInference's LangChain instrumentor writes the first message of a chain's, and no other.
    first = _asked(attributes)
    talks = (_user_turns(attributes_of(run)) for run in root.tree.of_kind(RunKind.GENERATOR))
    return next((turns[-1] for turns in talks if first and first in turns), first)


def _asked_before(root: Run) -> str:
    """The question in the state of a graph that goes on after an interrupt."""
    inputs = (attributes_of(run).get(semconv.INPUT_VALUE) for run in root.tree.runs[1:])
    states = [attributes_of(root).get(semconv.OUTPUT_VALUE), *inputs]
    kept = [state for state in states if is_mapping(parsed(state)) and not goes_on(state)]
    return next((str(said) for state in kept if (said := question_in(state))), "")


def _kept_in_state(run: Run) -> Sequence[Document]:
    """The documents that a graph was kept with, which goes on after an interrupt."""
    if run is run.tree.root or not goes_on(attributes_of(run.tree.root).get(semconv.INPUT_VALUE)):
        return ()
    return documents_given(attributes_of(run))


def _asked(attributes: Attributes) -> str:
    """What the user of a model or an agent said last; empty where no messages were recorded."""
    return next(iter(_user_turns(attributes)[-1:]), "")


def _user_turns(attributes: Attributes) -> list[str]:
    return [str(text) for role, text in messages_of(attributes) if role == USER]


def _asked_of_agent(root: Run) -> str:
    """What the user said to the first model, where that called a tool to find the answer."""
    for run in root.tree.of_kind(RunKind.GENERATOR):
        attributes = attributes_of(run)
        if said := _asked(attributes):
            said_back = answered(attributes)
            return "" if said_back and not calls_in_text(said_back) else said
    return ""


def _may_retrieve(attributes: Attributes) -> bool:
    kinds = semconv.KIND_RERANKER, semconv.KIND_TOOL
    return kind_of(attributes) in kinds or holds_documents(attributes)


def _found_by(attributes: Attributes) -> list[Document]:
    is_tool = kind_of(attributes) == semconv.KIND_TOOL
    return reranked(attributes) or (attached(attributes) if is_tool else retrieved(attributes))


def _found_in(run: Run) -> list[Document]:
    """Everything that retrievers have found below the root of a run."""
    every = map(attributes_of, run.tree.of_kind(RunKind.RETRIEVER))
    return [document for each in every for document in retrieved(each)]


def _said_in(run: Run) -> list[str]:
    """What all models below the root of a run have said."""
    every = map(attributes_of, run.tree.of_kind(RunKind.GENERATOR))
    return [said for each in every if (said := answered(each).strip())]


def _refines(run: Run) -> bool:
    """Whether a model call is one of LlamaIndex's that refines an answer, a node a call."""
    return any(str(each.name).startswith(REFINES) for each in _around(run))


def _around(run: Run) -> Iterator[Run]:
    """The runs around a run, from within."""
    parent = run.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _retrieves_below(run: Run) -> bool:
    return any(_is_below(each, run) for each in run.tree.of_kind(RunKind.RETRIEVER))


def _models_below(run: Run) -> list[Run]:
    return [each for each in run.tree.of_kind(RunKind.GENERATOR) if _is_below(each, run)]


def _is_below(run: Run, other: Run) -> bool:
    return any(each is other for each in _around(run))


def _not_given(found: Sequence[list[Document]], given: Sequence[Document]) -> list[list[Document]]:
    """What a reranker was not given: all of it was, where that is not recorded."""
    texts = {document.text for document in given if isinstance(document.text, str)}
    return [each for each in found if texts and not any(one.text in texts for one in each)]


def _whole_prompt(run: Run) -> str:
    """What a model read; empty where the span has lost attributes, and proves nothing."""
    for each in (run, *_models_below(run)):
        attributes = attributes_of(each)
        has_lost = isinstance(each.id, ReadableSpan) and each.id.dropped_attributes > 0
        if not has_lost and _is_recorded(attributes):
            return prompted(attributes)
    return "" if _models_below(run) or _has_lost(run) else prompted(attributes_of(run))


def _has_lost(run: Run) -> bool:
    return isinstance(run.id, ReadableSpan) and run.id.dropped_attributes > 0


def _is_recorded(attributes: Attributes) -> bool:
    """Whether the very prompt is there, and not only the arguments of a function."""
    return prompted(attributes) != str(attributes.get(semconv.INPUT_VALUE, ""))


def _first(every: Sequence[Attributes], *names: str) -> object:
    return next((each[name] for each in every for name in names if name in each), None)


def _count(every: Sequence[Attributes], *names: str) -> int | None:
    found = _first(every, *names)
    return found if isinstance(found, int) else None


INTERRUPT_KEY: Final = "__interrupt__"
"""Key that LangGraph adds to the output of a graph that waits for a person."""

THREAD_KEY: Final = "thread_id"
"""Key in the metadata of a graph that keeps its state, and so may go on with it later."""


class WaitsForPersonError(Exception):
    """A node of a graph has ended to wait for a person."""


def is_interrupted(root: Run, response: Callable[[], str]) -> bool:
    """Whether a graph waits for a person before it answers.

    A conversation that waits for its next question has answered this one.

    Args:
        root: A root.
        response: Returns what the user may see of it; only few records go so far.
    """
    output = parsed(attributes_of(root).get(semconv.OUTPUT_VALUE))
    if _is_waiting(root, output):
        return not _has_answered(root, output)
    return _has_stopped(root) and not response().strip()


def _is_waiting(root: Run, output: object) -> bool:
    if is_mapping(output) and INTERRUPT_KEY in output:
        return True
    # A root that resumes its graph itself goes on after that.
    waits = [run.end or 0 for run in _waiting(root)]
    return bool(waits) and all(run.start <= max(waits) for run in root.tree.runs)


def _waiting(root: Run) -> list[Run]:
    return [run for run in root.tree.runs if run.failed_with(WaitsForPersonError)]


def _has_answered(root: Run, output: object) -> bool:
    """Whether the conversation ends with what a model has said now, and no person is to check."""
    messages = output.get("messages") if is_mapping(output) else None
    last = messages[-1] if is_list(messages) and messages else None
    if not is_mapping(last) or _calls_tools(root):
        return False
    said = text_of_parts(inside_of(last).get("content")).strip()
    models = root.tree.of_kind(RunKind.GENERATOR)
    is_said_now = bool(said) and said in {answered(attributes_of(run)).strip() for run in models}
    return is_said_now and not any(is_review(run.name) for run in _waiting(root))


def _has_stopped(root: Run) -> bool:
    """Whether a graph with a memory has ended before a model answered: by ``interrupt_before``."""
    kept = parsed(attributes_of(root).get(semconv.METADATA))
    if root.error is not None or not is_mapping(kept) or THREAD_KEY not in kept:
        return False
    retrieves = bool(root.tree.of_kind(RunKind.RETRIEVER))
    return _calls_tools(root) or (retrieves and not root.tree.of_kind(RunKind.GENERATOR))


def _calls_tools(root: Run) -> bool:
    """Whether the last model has called a tool that nobody has run."""
    models = root.tree.of_kind(RunKind.GENERATOR)
    if not models or models[-1].has_ancestor(RunKind.RETRIEVER):
        return False
    last = models[-1]
    ended = last.end or last.start
    is_last = all(run.start <= ended or run.error is not None for run in root.tree.runs)
    return is_last and semconv.output_message(0, semconv.MESSAGE_TOOL_CALL) in attributes_of(last)
