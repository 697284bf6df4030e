"""Reads the attributes of spans that another instrumentation made.

All runs are complete when they come, so every method finds inputs and outputs in the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._documents import (
    attached,
    documents_given,
    holds_windows,
    named_texts,
    nodes_in,
    refined_in,
    repeats_call,
    reranked,
    reranker_given,
    retrieved,
    told,
    told_to_model,
    windows_in,
)
from claimspan_openinference._groups import THREAD_KEY
from claimspan_openinference._kinds import (
    Attributes,
    holds_documents,
    holds_nodes,
    kind_of,
    starts_agent,
)
from claimspan_openinference._messages import (
    answered,
    completed,
    inside_of,
    last_asked,
    last_turn_in,
    messages_of,
    parsed,
    prompted,
    text_of_parts,
    tool_results,
    user_turns,
)
from claimspan_openinference._questions import (
    NOTE_OF_STRUCTURE,
    answers_in,
    answers_of_components,
    as_said,
    attributes_of,
    calls_in_text,
    event_answer,
    filled_fields,
    goes_on,
    is_of_components,
    last_answer,
    only_text,
    question_in,
    returns_event,
    said_last,
    started_with,
    structured_answer,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    Generation,
    ModelCall,
    Reader,
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

CUT_OFF: Final = (
    "the span of the workflow has but a part of its answer: claimspan_llama_index.instrument() "
    "sees all of it"
)
"""Why a workflow of LlamaIndex's has no answer."""

NOTHING: Final = "null"
"""Output of a function that returned nothing: what a model said in it was not the answer."""

_NO_TEXT: Final = re.compile(r"|null|None|\d{1,12}")
"""What a span has where a function returned nothing, or a number."""

ATTACHED: Final = (semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS)
"""Attributes of a root that stand beside its metadata."""


class SpanReader(Reader):
    """Finds query, response, chunks and model in OpenInference's and OpenTelemetry's attributes."""

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever that is called by itself, and for what asks no model.

        An index that is built is no query. A search that has found nothing is one all the same.
        """
        if root.kind is RunKind.RETRIEVER or self.response_key is not None:
            return root.kind is not RunKind.RETRIEVER
        if root.error is not None:
            return True
        runs = root.tree.runs
        found = [retrieved(attributes_of(run)) for run in runs if run.kind is RunKind.RETRIEVER]
        is_empty = bool(found) and not any(found)
        if any(run.kind is RunKind.GENERATOR for run in runs) or is_empty or self.interrupted(root):
            return True
        text = str(self.response(root)).strip()
        return not (_NO_TEXT.fullmatch(text) or acknowledges(text))

    def query(self, root: Run) -> object:
        """Return the question in the root's input, or the last message of its user."""
        attributes = attributes_of(root)
        if self.query_key is None and (said := _asked_of_root(root)):
            return said
        if self.query_key is None and goes_on(attributes.get(semconv.INPUT_VALUE)):
            return _asked_before(root)
        given = started_with(root) or attributes.get(semconv.INPUT_VALUE)
        found = question_in(given, self.query_key)
        return found if self.query_key is not None else found or _asked_of_agent(root)

    def response(self, root: Run) -> object:
        """Return the answer in the root's output, or the last completion."""
        attributes = attributes_of(root)
        if root.kind is RunKind.GENERATOR and self.response_key is None:
            return structured_text(answered(attributes) or last_answer(root))
        if self.response_key is None and returns_event(root):
            return event_answer(root)
        output = attributes.get(semconv.OUTPUT_VALUE)
        # A graph whose state has the question alone has answered nothing yet.
        is_none = output == NOTHING or output == attributes.get(semconv.INPUT_VALUE)
        if is_none and output is not None and self.response_key is None:
            return ""
        given = self._answers_of(root)
        found = said_last(root, given) if len(given) > 1 else next(iter(given), "")
        # The messages of a graph may hold the question alone, and its answer another field.
        if self.response_key is None and str(found).strip() == str(self.query(root)).strip():
            found = ""
        if str(found).startswith(NOTE_OF_STRUCTURE):
            found = structured_answer(root) or found
        return found or filled_fields(root) or structured_text(last_answer(root))

    def _answers_of(self, root: Run) -> list[object]:
        """What may be the answer, in the output of the root."""
        attributes = attributes_of(root)
        given, output = attributes.get(semconv.INPUT_VALUE), attributes.get(semconv.OUTPUT_VALUE)
        if self.response_key is not None or not is_of_components(given, output):
            return answers_in(output, self.response_key)
        if found := answers_of_components(given, output):
            return found
        text, reply = only_text(given, output), last_answer(root)
        # A word by itself, such as a status, is not what was answered, unless a model said it.
        return [text] if text and (not reply or " " in text.strip() or text in reply) else []

    def untold(self, root: Run) -> str:
        """Say what helps: a key, unless the span of a workflow has but a part of its answer."""
        is_cut = self.response_key is None and returns_event(root)
        return CUT_OFF if is_cut else super().untold(root)

    def values(self, root: Run) -> tuple[object, object]:
        """Return input and output of the root, parsed if they are JSON, with messages as texts."""
        attributes = attributes_of(root)
        given, returned = (attributes.get(n) for n in (semconv.INPUT_VALUE, semconv.OUTPUT_VALUE))
        return parsed(given), as_said(parsed(returned))

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query and the documents of a retriever span."""
        attributes = attributes_of(run)
        # The arguments of a retriever may have its question under a name, or only its embedding.
        query = question_in(attributes.get(semconv.INPUT_VALUE))
        query = query or self.query(run.tree.root)
        return Retrieval(
            query, retrieved(attributes), attributes.get(semconv.GEN_AI_DATA_SOURCE_ID)
        )

    def parts(self, value: object) -> Sequence[object]:
        """Return nothing: only open runs are taken apart."""
        return ()

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return what a reranker let through, or the documents that a tool has returned."""
        attributes = attributes_of(run)
        kind, found = kind_of(attributes), list[Document]()
        if kind == semconv.KIND_TOOL:
            found = reranked(attributes) or attached(attributes)
        elif kind == semconv.KIND_RERANKER or holds_documents(attributes):
            found = reranked(attributes) or retrieved(attributes)
        return Retrieval(question_in(attributes.get(semconv.INPUT_VALUE)), found) if found else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return what a tool has told the model, what a reranker let through, and neighbours.

        These are what a postprocessor of LlamaIndex, or a component of Haystack, put beside or
        around what was found.
        """
        attributes = attributes_of(run)
        # A tool that makes a text of what a retriever below it has found has found nothing itself.
        if kind_of(attributes) == semconv.KIND_TOOL and not _below(run, RunKind.RETRIEVER):
            return attached(attributes)
        if run.kind is RunKind.GENERATOR:
            # LlamaIndex refines an answer with one node a call.
            refines = any(str(each.name).startswith(REFINES) for each in run.around())
            refined = refined_in(attributes, _found_in(run)) if refines else []
            return [*refined, *told_to_model(attributes)]
        if holds_nodes(attributes):
            # A synthesizer within another one gets texts that this one has joined.
            is_inner = any(holds_nodes(attributes_of(each)) for each in run.around())
            return () if is_inner else nodes_in(attributes, _found_in(run))
        if holds_windows(attributes):
            return windows_in(attributes)
        if found := reranked(attributes):
            return found
        return documents_given(attributes)

    def passages(self, run: Run) -> Sequence[str]:
        """Return the text of a tool, or what a builder of a prompt was given as ``context``."""
        attributes = attributes_of(run)
        kind = kind_of(attributes)
        if kind == semconv.KIND_TOOL and not _below(run, RunKind.RETRIEVER):
            is_found = not (attached(attributes) or repeats_call(attributes))
            return [told(attributes)] if is_found else ()
        if kind != semconv.KIND_PROMPT:
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
                given = {
                    each.text for each in reranker_given(attributes) if isinstance(each.text, str)
                }
                # All that was found was given to it, where that is not recorded.
                others = [e for e in left if given and not any(one.text in given for one in e)]
                left = [*others, found]
        return [document for found in left for document in found] if has_reranked else None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model span.

        A span around another one, as LlamaIndex's are, may have a part of these alone.
        """
        models = _below(run, RunKind.GENERATOR)
        every = [*map(attributes_of, (run, *models))]
        messages = [said for each in every if (said := messages_of(each))]
        return Generation(
            prompt=_whole_prompt(run, models),
            completion=next((text for each in every if (text := completed(each))), ""),
            model=_first(every, semconv.LLM_MODEL_NAME, semconv.GEN_AI_REQUEST_MODEL),
            provider=_first(every, semconv.GEN_AI_PROVIDER_NAME, semconv.LLM_PROVIDER),
            call=ModelCall(
                response_id=str(_first(every, semconv.GEN_AI_RESPONSE_ID) or ""),
                input_tokens=_count(
                    every, semconv.LLM_TOKENS_PROMPT, semconv.GEN_AI_USAGE_INPUT_TOKENS
                ),
                output_tokens=_count(
                    every, semconv.LLM_TOKENS_COMPLETION, semconv.GEN_AI_USAGE_OUTPUT_TOKENS
                ),
            ),
            messages=messages[0] if messages else (),
            tool_results=next((found for each in every if (found := tool_results(each))), ()),
        )

    def interrupted(self, root: Run) -> bool:
        """Whether a graph waits for a person before it answers.

        A cancelled task is known by its error. A conversation that waits for its next question has
        answered this one.
        """
        output = parsed(attributes_of(root).get(semconv.OUTPUT_VALUE))
        waits = [run for run in root.tree.runs if run.failed_with(WaitsForPersonError)]
        # A root that resumes its graph itself goes on after they have ended.
        last = max((run.end or 0 for run in waits), default=-1)
        is_waiting = all(run.start <= last for run in root.tree.runs)
        if is_waiting or (is_mapping(output) and INTERRUPT_KEY in output):
            return not _has_answered(root, output, waits)
        return _has_stopped(root) and not str(self.response(root)).strip()

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
        return last_asked(attributes)
    if said := last_turn_in(attributes.get(semconv.INPUT_VALUE)):
        return said
    # OpenInference's LangChain instrumentor writes the first message of a chain's, and no other.
    first = last_asked(attributes)
    talks = (user_turns(attributes_of(run)) for run in root.tree.of_kind(RunKind.GENERATOR))
    return next((turns[-1] for turns in talks if first and first in turns), first)


def _asked_before(root: Run) -> str:
    """The question in the state of a graph that goes on after an interrupt."""
    inputs = (attributes_of(run).get(semconv.INPUT_VALUE) for run in root.tree.runs[1:])
    states = [attributes_of(root).get(semconv.OUTPUT_VALUE), *inputs]
    kept = [state for state in states if is_mapping(parsed(state)) and not goes_on(state)]
    return next((str(said) for state in kept if (said := question_in(state))), "")


def _asked_of_agent(root: Run) -> str:
    """What the user said to the first model, if an agent asked it, or it called a tool."""
    is_agent = starts_agent(attributes_of(root))
    for run in root.tree.of_kind(RunKind.GENERATOR):
        attributes = attributes_of(run)
        if said := last_asked(attributes):
            said_back = answered(attributes)
            is_answer = said_back and not calls_in_text(said_back)
            return "" if is_answer and not is_agent else said
    return ""


def _found_in(run: Run) -> list[Document]:
    """Everything that retrievers have found below the root of a run."""
    every = map(attributes_of, run.tree.of_kind(RunKind.RETRIEVER))
    return [document for each in every for document in retrieved(each)]


def _below(run: Run, kind: RunKind) -> list[Run]:
    """The runs of a kind that are part of a run."""
    return [each for each in run.tree.of_kind(kind) if each is not run and each.is_part_of(run)]


def _whole_prompt(run: Run, models: Sequence[Run]) -> str:
    """What a model read; empty where the span has lost attributes, and proves nothing."""
    for each in (run, *models):
        attributes = attributes_of(each)
        prompt = prompted(attributes)
        # The very prompt, and not only the arguments of a function.
        is_recorded = prompt != str(attributes.get(semconv.INPUT_VALUE, ""))
        if is_recorded and not _has_lost(each):
            return prompt
    return "" if models or _has_lost(run) else prompted(attributes_of(run))


def _has_lost(run: Run) -> bool:
    return isinstance(run.id, ReadableSpan) and run.id.dropped_attributes > 0


def _first(every: Sequence[Attributes], *names: str) -> object:
    return next((each[name] for each in every for name in names if name in each), None)


def _count(every: Sequence[Attributes], *names: str) -> int | None:
    found = _first(every, *names)
    return found if isinstance(found, int) else None


INTERRUPT_KEY: Final = "__interrupt__"
"""Key that LangGraph adds to the output of a graph that waits for a person."""


class WaitsForPersonError(Exception):
    """A node of a graph has ended to wait for a person."""


def _has_answered(root: Run, output: object, waits: Sequence[Run]) -> bool:
    """Whether the conversation ends with what a model has said now, and no person is to check."""
    messages = output.get("messages") if is_mapping(output) else None
    last = messages[-1] if is_list(messages) and messages else None
    if not is_mapping(last) or _calls_tools(root):
        return False
    said = text_of_parts(inside_of(last).get("content")).strip()
    models = root.tree.of_kind(RunKind.GENERATOR)
    is_said_now = bool(said) and said in {answered(attributes_of(run)).strip() for run in models}
    return is_said_now and not any(is_review(run.name) for run in waits)


def _has_stopped(root: Run) -> bool:
    """Whether a graph with a memory has ended before a model answered: by ``interrupt_before``."""
    kept = parsed(attributes_of(root).get(semconv.METADATA))
    if root.error is not None or not is_mapping(kept) or THREAD_KEY not in kept:
        return False
    retrieves = bool(root.tree.of_kind(RunKind.RETRIEVER))
    return _calls_tools(root) or (retrieves and not root.tree.of_kind(RunKind.GENERATOR))


def _calls_tools(root: Run) -> bool:
    """Whether the last model has called a tool that was not run."""
    last = root.tree.last_model
    call = semconv.output_message(0, semconv.MESSAGE_TOOL_CALL)
    return last is not None and call in attributes_of(last)
