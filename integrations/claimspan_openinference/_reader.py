"""Reads the attributes of spans that another instrumentation made.

All runs are complete when they come, so every method finds inputs and outputs in the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._documents import (
    found_by,
    given_to,
    passages_of,
    reranked_in,
    retrieved,
)
from claimspan_openinference._kinds import Attributes, attributes_of, runs_below
from claimspan_openinference._messages import (
    answered,
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
    is_list,
    is_mapping,
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
        found = found_by(run)
        asked = attributes_of(run).get(semconv.INPUT_VALUE)
        return Retrieval(question_in(asked), found) if found else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return what a tool has told the model, what a reranker let through, and neighbours."""
        return given_to(run)

    def passages(self, run: Run) -> Sequence[str]:
        """Return the text of a tool, or what a builder of a prompt was given as ``context``."""
        return passages_of(run)

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return what the rerankers let through; None if there was no reranker."""
        return reranked_in(root)

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
