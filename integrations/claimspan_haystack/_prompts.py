"""Where the prompt of an answer came from, and which documents and texts went into it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import islice
from typing import Final, TypeGuard

from claimspan_haystack._documents import AnyDocument, documents_in
from claimspan_haystack._generations import replies_below, runs_below
from claimspan_haystack._operations import PIPELINE_RUNS, QUERY_NAME, TOOL_RUN, operation_of
from claimspan_haystack._texts import holds_text, nested_parts
from claimspan_tracing.adapters import Run, RunKind, is_list, is_mapping

__all__ = ["passages_of", "read_documents", "windows_of"]

MAX_DEPTH: Final = 3
"""Levels of lists and mappings in which texts are looked for."""

MAX_ITEMS: Final = 100
"""Items of one list that are looked at: as many as chunks are kept of a record."""

_EVIDENCE: Final = re.compile(
    r"(?:^|_)(?:contexts?|documents?|docs?|passages?|chunks?|snippets?|search|results?|sources?"
    r"|knowledge|facts?|evidences?|windows?|references?|contents?|background|articles?|excerpts?"
    r"|paragraphs?|pages?|posts?|transcripts?|notes?|findings?|summaries|information)(?:_|$)"
)
"""Words in the names of inputs and outputs that hold evidence."""

_WINDOWS: Final = re.compile(r"(?:^|_)windows(?:_|$)")
"""A word in the names of inputs that hold documents with what stands around them."""


_PLACE: Final = re.compile(r"(?:^|_)(?:urls?|links?|uri|href|ids?)$")
"""Ends of the names of fields that only tell where a text is from."""


def read_documents(root: Run) -> list[AnyDocument] | None:
    """Return the documents of the last prompt, or of the last reader, before the answer.

    These are its input documents, or its output documents where a prompt builder drops some
    and returns the rest. Documents that an agent's tools found later were read as well.
    """
    # Prompts inside a retriever are for rewriting the query.
    runs = [run for run in runs_below(root) if not run.has_ancestor(RunKind.RETRIEVER)]
    answers = replies_below(root).answers
    # Nothing that began after the answer was read for it, such as what a grader is given.
    until = next((n + 1 for n, run in enumerate(runs) if answers and run is answers[-1]), len(runs))
    for index in reversed(range(until)):
        read = _made_into_text(runs[index])
        if read is not None:
            later = [run for run in runs[index + 1 : until] if _is_tool(run)]
            return read + [d for run in later for d in documents_in(run.outputs) or ()]
    return None


def passages_of(run: Run) -> list[str]:
    """Return the texts among the values of a run whose name says that they are evidence."""
    is_pipeline = operation_of(run).name in PIPELINE_RUNS
    found: dict[str, None] = {}
    for values in (run.inputs, run.outputs):
        for part in nested_parts(values):
            for name, value in part.items():
                # Under the name of a component stand its sockets, which have names of their own.
                is_component = is_pipeline and part is values and is_mapping(value)
                if not is_component and isinstance(name, str) and _EVIDENCE.search(name.lower()):
                    found.update(dict.fromkeys(_texts(value)))
    return list(found)


def windows_of(run: Run) -> list[str]:
    """Return the texts around documents that a run made or was given.

    ``SentenceWindowRetriever`` makes them. One takes the place of the document that it holds.
    """
    both = [*nested_parts(run.inputs), *nested_parts(run.outputs)]
    named = ((name, value) for part in both for name, value in part.items())
    lists = [value for name, value in named if _WINDOWS.search(str(name)) and is_list(value)]
    return [text for value in lists for text in value[:MAX_ITEMS] if isinstance(text, str)]


def _texts(value: object, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the texts in a value, without questions paired with them, and where they are from."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif is_mapping(value) and depth:
        for name, item in value.items():
            key = str(name).lower()
            if not (QUERY_NAME.search(key) or _PLACE.search(key)):
                yield from _texts(item, depth - 1)
    elif depth and (is_list(value) or _is_set(value)):
        for item in islice(value, MAX_ITEMS):
            yield from _texts(item, depth - 1)


def _is_set(value: object) -> TypeGuard[Set[object]]:
    """Whether the value is a set, in which some components keep texts apart."""
    return isinstance(value, set | frozenset)


def _made_into_text(run: Run) -> list[AnyDocument] | None:
    """Return the documents that a run made into a text; None where it did no such thing."""
    read = documents_in(run.inputs)
    if read is None or not holds_text(run.outputs):
        return None
    left = documents_in(run.outputs)
    return read if left is None else left


def _is_tool(run: Run) -> bool:
    """Whether a run is a retriever that an agent called; the model reads what it found."""
    return operation_of(run).name == TOOL_RUN and run.kind is RunKind.RETRIEVER
