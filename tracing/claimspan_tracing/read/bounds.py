"""Bounds of one record beyond those of a single text: runs with a span, and bytes of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from claimspan import Chunk
from claimspan_tracing.capture.runs import Run
from claimspan_tracing.job import MAX_CHUNKS, GeneratorRun, RetrieverRun
from claimspan_tracing.text import byte_length

__all__ = ["MAX_RUNS", "bounded_chunks", "bounded_runs", "first_chunks"]

MAX_RUNS: Final = 200
"""Retriever and generator runs of one query that get a span; the others are counted."""

MAX_CHUNKS_BYTES: Final = 1024 * 1024
"""Bytes of chunk text kept of one record, about 250,000 tokens: more than a judge can read."""

_Part = tuple[Run, RetrieverRun | GeneratorRun]


def bounded_runs(parts: Sequence[_Part]) -> list[_Part]:
    """Return at most ``MAX_RUNS`` runs: the first ones and the last ones that started.

    The last generator gives the answer, and the first retrievers most of what it is drawn from.
    """
    ordered = sorted(parts, key=lambda part: part[0].start)
    if len(ordered) <= MAX_RUNS:
        return ordered
    half = MAX_RUNS // 2
    return ordered[:half] + ordered[-half:]


def bounded_chunks(parts: Sequence[_Part]) -> list[_Part]:
    """Return retriever runs with ``MAX_CHUNKS_BYTES`` of chunks in all, the first ones first.

    A text that several retrievers returned is counted each time, as each has a copy of it.
    """
    room = MAX_CHUNKS_BYTES
    found = [read.chunks for _, read in parts if isinstance(read, RetrieverRun)]
    if _are_few([chunk for chunks in found for chunk in chunks], room):
        return [*parts]
    bounded: list[_Part] = []
    for run, read in parts:
        if isinstance(read, RetrieverRun):
            chunks = first_chunks(read.chunks, room)
            room -= sum(map(_size, chunks))
            if len(chunks) < len(read.chunks):
                read = replace(read, chunks=chunks, id_sources=read.id_sources[: len(chunks)])
        bounded.append((run, read))
    return bounded


def first_chunks(chunks: Iterable[Chunk], room: int = MAX_CHUNKS_BYTES) -> tuple[Chunk, ...]:
    """Return the first chunks, whole ones, that fit: ``MAX_CHUNKS`` and ``room`` bytes of text."""
    found = tuple(islice(chunks, MAX_CHUNKS))
    if _are_few(found, room):
        return found
    kept: list[Chunk] = []
    for chunk in found:
        room -= _size(chunk)
        if room < 0:
            break
        kept.append(chunk)
    return tuple(kept)


def _are_few(chunks: Iterable[Chunk], room: int) -> bool:
    """Whether chunks fit whatever their characters are; none takes more than four bytes."""
    return 4 * sum([len(chunk.text) for chunk in chunks]) <= room


def _size(chunk: Chunk) -> int:
    return byte_length(chunk.text)
