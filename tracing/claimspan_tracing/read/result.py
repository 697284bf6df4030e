"""Finds the state that the pipeline's own result leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from claimspan import Chunk
from claimspan.text.shown import without_shown
from claimspan_tracing.capture.runs import Run, RunKind, RunTree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, RetrieverRun
from claimspan_tracing.read.answering import Generated, gave
from claimspan_tracing.read.candidates import try_read

__all__ = ["NOTHING_ASKED", "Result", "asked_nothing", "result_of"]

MIN_REPEATED: Final = 40
"""Characters of a chunk from which on a response that has them repeats it, and not by chance."""


NOTHING_ASKED: Final = "no question was asked: the run only retrieved, built or checked"
"""Why a run is no record."""

REPEATED: Final = "the pipeline returned what it retrieved, and no answer"


class Result(NamedTuple):
    """How a pipeline ended."""

    status: Status | None
    """The state that the record ends in; None where it can be evaluated."""

    reason: str = ""
    """More about the state; empty where it says all."""


def asked_nothing(job: Job) -> bool:
    """Whether a run is no query: it only retrieved, built an index, or judged an answer."""
    return job.status is Status.NO_ANSWER and job.reason == NOTHING_ASKED


def result_of(
    tree: RunTree,
    generations: Sequence[Generated],
    chunks: Sequence[Chunk],
    response: str,
    guard: Guard,
    retrievers: Sequence[tuple[Run, RetrieverRun]],
) -> Result:
    """Return the state that the pipeline's result leads to.

    Args:
        tree: The runs of the query.
        generations: Those that may have given the answer.
        chunks: What was read.
        response: What the pipeline returned.
        guard: Counts the faults of the reader.
        retrievers: The retriever runs.
    """
    # First, as an index whose building fails or is cancelled is no query either.
    if not try_read(guard, tree.reader.is_query, tree.root, True):
        return Result(Status.NO_ANSWER, NOTHING_ASKED)
    ended = _unfinished(tree, generations, response, guard)
    if ended is not None:
        return ended
    if not chunks:
        return Result(Status.NO_CONTEXT, _lacking(retrievers))
    if not response.strip():
        return Result(Status.NO_ANSWER)
    names_answer = try_read(guard, tree.reader.names_answer, tree.root, True)
    if not names_answer and _is_repeated(chunks, generations, response):
        return Result(Status.NO_ANSWER, _why_repeated(chunks, generations))
    return Result(None)


def _unfinished(
    tree: RunTree, generations: Sequence[Generated], response: str, guard: Guard
) -> Result | None:
    """The state of a run that has not come to its end; None where it has."""
    root = tree.root
    # The order matters: a cancelled run has failed, too, and an abandoned one has no answer.
    interrupted = try_read(guard, tree.reader.interrupted, root, False)
    if interrupted or root.failed_with(asyncio.CancelledError):
        return Result(Status.INTERRUPTED)
    if root.end is None:
        return Result(Status.ABANDONED, "the run never ended")
    if _is_abandoned(tree, generations, response):
        return Result(Status.ABANDONED, "the stream was not read to its end")
    if root.error is None:
        return None
    # What is no ``Exception`` was raised to end the run, and not by a fault in it: by Ctrl-C, or by
    # a host such as Streamlit, which stops a script where its user has gone on.
    return Result(Status.APP_ERROR if issubclass(root.error, Exception) else Status.INTERRUPTED)


def _is_abandoned(tree: RunTree, generations: Sequence[Generated], response: str) -> bool:
    """Whether the reader of a stream left: its generator was closed, or still runs.

    A model that runs on in the background, for a title, is not the one that gives the answer.
    """
    root = tree.root
    if root.error is not None:
        return root.failed_with(GeneratorExit)
    is_running = any(run.end is None for run in tree.of_kind(RunKind.GENERATOR))
    return is_running and not any(gave(each, response) for each in generations)


def _lacking(retrievers: Sequence[tuple[Run, RetrieverRun]]) -> str:
    if not retrievers:
        return "no retriever ran"
    is_empty = not any(run.chunks for _, run in retrievers)
    return "the retriever returned no chunks" if is_empty else "no chunk reached the generator"


def _why_repeated(chunks: Sequence[Chunk], generations: Sequence[Generated]) -> str:
    was_told = any(chunk.text in each.prompt for chunk in chunks for each in generations)
    return REPEATED if was_told else NOTHING_ASKED


def _is_repeated(chunks: Sequence[Chunk], generations: Sequence[Generated], response: str) -> bool:
    """Whether the response is what was retrieved, in whatever form, and no model gave it."""
    if any(gave(each, response) for each in generations):
        return False
    # An answer that was edited after the model gave it, with its passages below it.
    if without_shown(response, [each.text for each in chunks]) != response:
        return False
    repeated = [each.text for each in chunks if each.text in response]
    return len(repeated) == len(chunks) or any(len(text) >= MIN_REPEATED for text in repeated)
