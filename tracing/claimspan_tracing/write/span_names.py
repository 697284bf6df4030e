"""Names of spans: the operation, and what it works with where that is known.

After OpenTelemetry's conventions for generative AI: ``invoke_workflow bot``, ``retrieval docs``,
``chat gpt-4o-mini``. They say what was called and never what was asked, so that there are few of
them.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from claimspan_tracing import semconv
from claimspan_tracing.job import GeneratorRun, Job, RetrieverRun

__all__ = ["name_of_root", "name_of_run"]

MAX_SUBJECT_CHARACTERS: Final = 64
"""Longer names fill the column of a list of traces; the attribute has the whole of it."""

MAX_READ: Final = 4 * MAX_SUBJECT_CHARACTERS
"""Characters looked at: most scripts keep none of theirs."""


def name_of_root(job: Job) -> str:
    """Return the name of a query's root span, once its route is known."""
    return _name(semconv.SPAN_ROOT, job.route)


def name_of_run(run: RetrieverRun | GeneratorRun) -> str:
    """Return the name of the span of a retriever or generator run."""
    if isinstance(run, RetrieverRun):
        return _name(semconv.SPAN_RETRIEVER, run.source)
    return _name(semconv.SPAN_GENERATOR, run.model)


@lru_cache(maxsize=256)  # a pipeline has few names, and each span asks for one
def _name(operation: str, subject: str) -> str:
    return f"{operation} {_ascii(subject)}".rstrip()


def _ascii(subject: str) -> str:
    """The subject in printable ASCII and on one line; letters lose their accents."""
    # An exporter loses a whole batch by one name that it cannot encode.
    decomposed = unicodedata.normalize("NFKD", subject[:MAX_READ])
    kept = " ".join(decomposed.encode("ascii", "ignore").decode().split())
    printable = "".join(character for character in kept if character.isprintable())
    return printable[:MAX_SUBJECT_CHARACTERS].strip()
