"""Reads the attributes of spans that another instrumentation made.

All runs are complete when they come, so every method finds inputs and outputs in the attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    RunKind,
    is_list,
    is_mapping,
    value_at,
)

__all__ = ["SpanReader"]

QUERY_KEYS: Final = ("question", "query", "input", "query_str", "user_input", "messages")
RESPONSE_KEYS: Final = ("answer", "result", "response", "output", "output_text", "text", "messages")

ATTACHED: Final = (semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS)
"""Attributes of a root that stand beside its metadata."""

Attributes = Mapping[object, object]


class SpanReader:
    """Finds query, response, chunks and model in OpenInference's and OpenTelemetry's attributes."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self.keys: Final = (query_key, response_key)
        """Where question and answer are, as the application says."""
        self._query_key, self._response_key = self.keys

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever that is called by itself."""
        return root.kind is not RunKind.RETRIEVER

    def query(self, root: Run) -> object:
        """Return the question in the root's input, which is a text or JSON."""
        return _text_of(_attributes(root).get(semconv.INPUT_VALUE), self._query_key, QUERY_KEYS)

    def response(self, root: Run) -> object:
        """Return the answer in the root's output, or the last completion."""
        value = _attributes(root).get(semconv.OUTPUT_VALUE)
        found = _text_of(value, self._response_key, RESPONSE_KEYS)
        generators = root.tree.of_kind(RunKind.GENERATOR)
        return found or (_completion(_attributes(generators[-1])) if generators else "")

    def names_answer(self, root: Run) -> bool:
        """Whether a key of the answer was given."""
        return self._response_key is not None

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query and the documents of a retriever span."""
        attributes = _attributes(run)
        query = attributes.get(semconv.GEN_AI_RETRIEVAL_QUERY, attributes.get(semconv.INPUT_VALUE))
        documents = _flattened(attributes, semconv.document) or _listed(attributes)
        return Retrieval(query, documents, attributes.get(semconv.GEN_AI_DATA_SOURCE_ID))

    def parts(self, value: object) -> Sequence[object]:
        """Return nothing: only open runs are taken apart."""
        return ()

    def is_internal(self, name: str) -> bool:
        """Return False: a span does not tell who has set its metadata."""
        return False

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return None: only retriever spans have documents."""
        return None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return nothing: only retriever spans have documents."""
        return ()

    def passages(self, run: Run) -> Sequence[str]:
        """Return nothing: only retriever spans have documents."""
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the documents of the last reranker; None where there was none."""
        reranked = [
            _flattened(_attributes(run), semconv.reranked)
            for run in root.tree.runs
            if _attributes(run).get(semconv.OPENINFERENCE_SPAN_KIND) == semconv.KIND_RERANKER
        ]
        return reranked[-1] if reranked else None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion and model of a model span."""
        attributes = _attributes(run)
        return Generation(
            prompt=attributes.get(semconv.INPUT_VALUE),
            completion=_completion(attributes),
            model=attributes.get(semconv.LLM_MODEL_NAME),
            provider=attributes.get(semconv.GEN_AI_PROVIDER_NAME),
        )

    def interrupted(self, root: Run) -> bool:
        """Return False: a span does not tell."""
        return False

    @staticmethod
    def metadata(attributes: Mapping[str, object]) -> Mapping[str, object]:
        """Return the metadata of the application, by which a ground truth may be found.

        Session, user and tags are among them, under their own names.
        """
        found = _parsed(attributes.get(semconv.METADATA))
        named = {str(key): value for key, value in found.items()} if is_mapping(found) else {}
        return named | {key: attributes[key] for key in ATTACHED if key in attributes}


def _attributes(run: Run) -> Attributes:
    return run.outputs if is_mapping(run.outputs) else {}


def _parsed(value: object) -> object:
    """Return the parsed JSON, or the value itself where it is none."""
    # Most inputs are plain text, and parsing those as JSON would fail at some cost.
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        parsed: object = json.loads(value)
    except ValueError:
        return value
    return parsed


def _text_of(value: object, key: Key | None, keys: Sequence[str]) -> object:
    parsed = _parsed(value)
    if key is not None:
        return value_at(parsed, key)
    if is_mapping(parsed):
        return next((text for name in keys if (text := _text(parsed.get(name)))), "")
    return _text(parsed)


def _text(value: object) -> str:
    """Return a text, the content of a message, or that of the last message of a list."""
    if isinstance(value, str):
        return value
    if is_mapping(value):
        # LangChain serialises a message as ``{"kwargs": {"content": ...}}``, older releases under
        # ``data``.
        nested = value.get("kwargs", value.get("data", value))
        return _text(nested.get("content")) if is_mapping(nested) else ""
    return _text(value[-1]) if is_list(value) and value else ""


def _completion(attributes: Attributes) -> object:
    return attributes.get(
        semconv.output_message(0, semconv.MESSAGE_CONTENT), attributes.get(semconv.OUTPUT_VALUE, "")
    )


def _flattened(attributes: Attributes, name: Callable[[int, str], str]) -> list[Document]:
    """Return documents in OpenInference's form: one attribute for each field of each document."""
    documents: list[Document] = []
    # The attributes do not say how many documents there are; the first gap ends the list.
    while (text := attributes.get(name(len(documents), "content"))) is not None:
        index = len(documents)
        documents.append(
            _document(
                text,
                attributes.get(name(index, "id")),
                attributes.get(name(index, "score")),
                _parsed(attributes.get(name(index, "metadata"))),
            )
        )
    return documents


def _listed(attributes: Attributes) -> list[Document]:
    """Return documents in OpenTelemetry's form: one attribute with a JSON array.

    A document without ``content`` is left out: recording content is opt-in, and a claim cannot be
    checked against an id.
    """
    listed = _parsed(attributes.get(semconv.GEN_AI_RETRIEVAL_DOCUMENTS))
    items = [item for item in listed if is_mapping(item)] if is_list(listed) else []
    return [
        _document(item["content"], item.get("id"), item.get("score"), item.get("metadata"))
        for item in items
        if "content" in item
    ]


def _document(text: object, id_: object, score: object, metadata: object) -> Document:
    named = {str(k): v for k, v in metadata.items()} if is_mapping(metadata) else {}
    # OpenInference's LangChain instrumentor writes no score, but keeps the metadata.
    number = score if isinstance(score, int | float) else named.get("score")
    return Document(text, id_, number if isinstance(number, int | float) else None, named)
