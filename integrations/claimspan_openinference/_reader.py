"""Reads the attributes of spans that another instrumentation made.

All runs are complete when they come, so every method finds inputs and outputs in the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._documents import documents_in, numbered, reranked, retrieved
from claimspan_openinference._kinds import (
    TEXTS,
    Attributes,
    attributes_of,
    holds_documents,
    holds_nodes,
    kind_of,
    runs_below,
)
from claimspan_openinference._messages import (
    CUT,
    TOOL,
    answered,
    arguments_in,
    completed,
    inside_of,
    messages_of,
    parsed,
    prompted,
    text_of_parts,
    tool_results,
)
from claimspan_openinference._questions import (
    answer_to,
    as_said,
    asked_of,
    question_in,
    returns_event,
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
    is_echo,
    is_list,
    is_mapping,
    names_evidence,
    waits_for_person,
)

__all__ = ["SpanReader"]

CUT_OFF: Final = (
    "the span of the workflow has but a part of its answer: claimspan_llama_index.instrument() "
    "sees all of it"
)
"""Why a workflow of LlamaIndex's has no answer."""

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
        return asked_of(root, self.query_key)

    def response(self, root: Run) -> object:
        """Return the answer in the root's output, or the last completion."""
        return answer_to(root, self.response_key, self.query_key)

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
        kind = kind_of(attributes)
        if kind == semconv.KIND_TOOL:
            found = reranked(attributes) or _attached(attributes)
        elif kind == semconv.KIND_RERANKER or holds_documents(attributes):
            found = reranked(attributes) or retrieved(attributes)
        else:
            return None
        return Retrieval(question_in(attributes.get(semconv.INPUT_VALUE)), found) if found else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return what a tool has told the model, what a reranker let through, and neighbours.

        These are what a postprocessor of LlamaIndex, or a component of Haystack, put beside or
        around what was found.
        """
        attributes = attributes_of(run)
        if _is_finding_tool(run):
            return _attached(attributes)
        if run.kind is RunKind.GENERATOR:
            # LlamaIndex refines an answer with one node a call.
            refines = any(str(each.name).startswith(REFINES) for each in run.around())
            results = (parsed(text) for role, text in messages_of(attributes) if role == TOOL)
            told = [document for found in results for document in documents_in(found)]
            return [*(_refined_in(run) if refines else ()), *told]
        if holds_nodes(attributes):
            # A synthesizer within another one gets texts that this one has joined.
            is_inner = any(holds_nodes(attributes_of(each)) for each in run.around())
            return () if is_inner else _nodes_in(run)
        if f'"{WINDOWS}"' in str(attributes.get(semconv.OUTPUT_VALUE, "")):
            return _windows_in(attributes)
        if found := reranked(attributes):
            return found
        given = attributes.get(semconv.INPUT_VALUE)
        # As LangChain writes them; told at once, since most are given none.
        is_told = isinstance(given, str) and '"page_content"' in given
        return documents_in(parsed(given)) if is_told else ()

    def passages(self, run: Run) -> Sequence[str]:
        """Return the text of a tool, or what a builder of a prompt was given as ``context``."""
        attributes = attributes_of(run)
        given = attributes.get(semconv.INPUT_VALUE)
        if _is_finding_tool(run):
            text = _told(attributes)
            # A tool that only says what it was given has found nothing.
            is_found = not (_attached(attributes) or is_echo(text, arguments_in(given)))
            return [text] if is_found else ()
        found = parsed(given) if kind_of(attributes) == semconv.KIND_PROMPT else None
        named = islice(found.items(), MAX_FIELDS) if is_mapping(found) else ()
        return [text for name, text in named if isinstance(text, str) and names_evidence(name)]

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return what the rerankers let through, with what none of them was given.

        None if there was no reranker.
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
                read = numbered(attributes, semconv.reranker_input)
                given = {each.text for each in read if isinstance(each.text, str)}
                # All that was found was given to it if that is not recorded.
                others = [e for e in left if given and not any(one.text in given for one in e)]
                left = [*others, found]
        return [document for found in left for document in found] if has_reranked else None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model span.

        A span around another one, as LlamaIndex's are, may have a part of these alone.
        """
        models = runs_below(run, RunKind.GENERATOR)
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

        A cancelled task is known by its error.
        """
        attributes = attributes_of(root)
        output = parsed(attributes.get(semconv.OUTPUT_VALUE))

        def is_said_last() -> bool:
            messages = output.get("messages") if is_mapping(output) else None
            last = messages[-1] if is_list(messages) and messages else None
            said = text_of_parts(inside_of(last).get("content")) if is_mapping(last) else ""
            models = root.tree.of_kind(RunKind.GENERATOR)
            answers = (answered(attributes_of(run)).strip() for run in models)
            return bool(said.strip()) and said.strip() in answers

        def calls_tools() -> bool:
            call = semconv.output_message(0, semconv.MESSAGE_TOOL_CALL)
            last = root.tree.last_model
            return last is not None and call in attributes_of(last)

        return waits_for_person(
            root,
            output,
            parsed(attributes.get(semconv.METADATA)),
            is_said_last=is_said_last,
            calls_tools=calls_tools,
            has_answer=lambda: bool(str(self.response(root)).strip()),
        )

    @staticmethod
    def metadata(attributes: Mapping[str, object]) -> Mapping[str, object]:
        """Return the metadata of the application, by which a ground truth may be found.

        Session, user and tags are among them, under their own names.
        """
        found = parsed(attributes.get(semconv.METADATA))
        named = {str(key): value for key, value in found.items()} if is_mapping(found) else {}
        return named | {key: attributes[key] for key in ATTACHED if key in attributes}


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


# --- what was given to a model, and found by no retriever -----------------------------------------

# Windows and neighbours of what was found, as postprocessors of LlamaIndex and
# ``SentenceWindowRetriever`` of Haystack put them in. Their spans show no documents: a node stands
# there by its text, and a document by its beginning.

MAX_FIELDS: Final = 100
"""Fields of an input that are looked at."""

REFINES: Final = "Refine."
"""How the name of the span begins in which LlamaIndex refines an answer."""

CONTEXTS: Final = ("context_str", "context_msg")
"""Variables of LlamaIndex's templates that hold the texts of nodes."""

WINDOWS: Final = "context_windows"
WINDOWED: Final = "context_documents"
"""Outputs of Haystack's ``SentenceWindowRetriever``."""

MAX_TEXTS: Final = 1_000
"""Texts of one span that are looked at."""

MIN_AROUND: Final = 20
"""Characters around a document from which on they are no label, such as "Source 1:"."""

SHOWN: Final = 100
"""Characters of a longer document that Haystack shows."""

_FIELD: Final = re.compile(r"([\w .-]+): ")

_SHOWN_DOCUMENT: Final = re.compile(
    r"Document\(id=(\S*), content: '(.*?)'"
    r"(?:, (?:blob|meta|score|embedding|sparse_embedding): .*)?\)",
    re.DOTALL,
)


def _nodes_in(run: Run) -> list[Document]:
    """Return the nodes that a synthesizer was given.

    A node with the text of a document that was found is that one, and a node with more around it
    has its id. One that ends with a label and what a model has said before is none: an engine made
    it of another question and its answer.
    """
    models = run.tree.of_kind(RunKind.GENERATOR)
    said = [answered(attributes_of(each)).rstrip() for each in models if each.start < run.start]
    ends = tuple([f": {each}" for each in said if each])
    nodes = _nodes(_listed(attributes_of(run), semconv.INPUT_VALUE, TEXTS), _found_in(run))
    return [each for each in nodes if each.id or not str(each.text).endswith(ends)]


def _refined_in(run: Run) -> list[Document]:
    """Return the node that a model was given to refine its answer by, in the same way."""
    variables = parsed(attributes_of(run).get(semconv.LLM_TEMPLATE_VARIABLES))
    named = [variables.get(name) for name in CONTEXTS] if is_mapping(variables) else []
    return _nodes([text for text in named if isinstance(text, str)], _found_in(run))


def _windows_in(attributes: Attributes) -> list[Document]:
    """Return the windows around documents, and the documents that they consist of."""
    windows = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWS)
    shown = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWED)
    matches = [each for text in shown if (each := _SHOWN_DOCUMENT.fullmatch(text))]
    # Three dots stand behind what was cut.
    is_cut = [len(each[2]) == SHOWN + len(CUT) and each[2].endswith(CUT) for each in matches]
    begun = [(e[1], e[2][:SHOWN] if cut else e[2]) for e, cut in zip(matches, is_cut, strict=True)]
    parts = (part for window in windows for part in _parts(window, begun))
    return [*parts, *map(Document, windows)]


def _listed(attributes: Attributes, name: str, key: str) -> list[str]:
    value = parsed(attributes.get(name))
    listed = value.get(key) if is_mapping(value) else None
    return [t for t in listed[:MAX_TEXTS] if isinstance(t, str)] if is_list(listed) else []


def _nodes(texts: Sequence[str], found: Sequence[Document]) -> list[Document]:
    fields = {key for each in found for key in each.metadata}
    return [_node(_without_fields(text, fields), found) for text in texts]


def _node(text: str, found: Sequence[Document]) -> Document:
    around: Document | None = None
    for each in found:
        own = str(each.text).strip()
        if own and own in text:
            if len(text) - len(own) < MIN_AROUND:
                return each
            # A window that a retriever keeps with its sentence is known to the reader of prompts.
            kept = (value for value in each.metadata.values() if isinstance(value, str))
            whole = next((value for value in kept if value.strip() == text), text)
            around = around or replace(each, text=whole)
    return around or Document(text)


def _without_fields(text: str, fields: set[str]) -> str:
    """A node's text without the lines before it that are the fields of its metadata."""
    head, blank, rest = text.partition("\n\n")
    names = [_FIELD.match(line) for line in head.split("\n")]
    is_head = all(name is not None and name[1] in fields for name in names)
    return rest.strip() if blank and is_head else text.strip()


def _parts(window: str, begun: Sequence[tuple[str, str]]) -> Iterator[Document]:
    """The documents that a window consists of, by where each begins in it."""
    places = {window.find(beginning): id_ for id_, beginning in begun if beginning}
    places.pop(-1, None)
    for start, end in pairwise([*sorted(places), len(window)]):
        yield Document(window[start:end], places[start])


def _found_in(run: Run) -> list[Document]:
    """Everything that retrievers have found below the root of a run."""
    every = map(attributes_of, run.tree.of_kind(RunKind.RETRIEVER))
    return [document for each in every for document in retrieved(each)]


def _is_finding_tool(run: Run) -> bool:
    """Whether a run is a tool, and has not made its text of what a retriever below it has found."""
    is_tool = kind_of(attributes_of(run)) == semconv.KIND_TOOL
    return is_tool and not runs_below(run, RunKind.RETRIEVER)


def _attached(attributes: Attributes) -> list[Document]:
    """The documents in what a tool has returned; nothing if that is a text."""
    found = parsed(attributes.get(semconv.OUTPUT_VALUE))
    # LangChain's tools return a message, which has the documents beside its text.
    inside = inside_of(found) if is_mapping(found) else found
    artifact = inside.get("artifact") if is_mapping(inside) else None
    return documents_in(artifact) or documents_in(inside)


def _told(attributes: Attributes) -> str:
    """What a tool has returned, as a text."""
    result = attributes.get(semconv.OUTPUT_VALUE)
    found = parsed(result)
    inside = inside_of(found) if is_mapping(found) else None
    # A message of LangChain's has the text as its content, and an output of LlamaIndex's in blocks.
    parts = inside.get("content", inside.get("blocks")) if is_mapping(inside) else found
    return text_of_parts(parts) or str(result or "")
