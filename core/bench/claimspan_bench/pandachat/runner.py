"""Makes a submission: asks a retriever every question of the dataset, and notes what it returns.

A run that was broken off goes on where it was. What is done is kept beside the submission until
every question has an answer: one with holes would be scored as if nothing had been found.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import ConfigError
from claimspan.files.private import write_private
from claimspan.progress import progress_bar
from claimspan.retrievers import Retrieve
from claimspan_bench.pandachat.dataset import Dataset, Question
from claimspan_bench.pandachat.matching import ChunkMatcher
from claimspan_bench.pandachat.partial import Answered, PartialRun
from claimspan_bench.pandachat.submissions import SCENARIO

__all__ = ["RunReport", "run_retriever"]


class RunReport(BaseModel):
    """What a run has done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    """Name of the system."""

    submission: str | None
    """The file; None where questions failed, and it was not written."""

    n: int
    """Number of questions."""

    resumed: int
    """Questions that an earlier run had done."""

    failed: Mapping[str, int]
    """Class of an error to the number of questions that the retriever raised it for."""

    time_per_question: float
    """Seconds that the retriever took, on average."""

    chunks_per_question: float
    """Chunks that it returned, on average."""

    matched: Mapping[str, int]
    """How the documents of the chunks were found, to the number of chunks."""


def run_retriever(
    retrieve: Retrieve,
    dataset: Dataset,
    path: Path,
    *,
    system: str,
    scenario: str = SCENARIO,
    progress: bool | None = None,
) -> RunReport:
    """Ask a retriever all questions, one after the other, and write a submission.

    The time per question is the mean wall-clock time of the retriever's calls. It includes the
    embedding of the query, and not the indexing, nor the search for a chunk's document.

    Args:
        retrieve: Takes a query and returns chunks; ``retriever_of`` makes one of a retriever.
        dataset: The questions.
        path: Where the submission goes; what is done so far stands beside it, as ``NAME.part``.
        system: Name of the system.
        scenario: The task.
        progress: Whether to show a progress bar; None does so on a terminal.

    Returns:
        What was done. Where the retriever raises for a question, the others are asked all the same,
        no submission is written, and the next run asks the failed ones again.

    Raises:
        ConfigError: A file cannot be written, belongs to another run, or the retriever returns
            something else than documents.
        FileError: The disk is full.
    """
    partial = PartialRun(path, system, dataset)
    resumed = len(partial.answered)
    try:
        failed = _ask_all(retrieve, dataset, partial, progress)
    finally:
        partial.close()
    if not failed:
        _write(path, system, scenario, dataset, partial.answered)
        partial.remove()
    report = _report(system, dataset, list(partial.answered.values()), failed)
    return report.model_copy(
        update={"resumed": resumed, "submission": None if failed else str(path)}
    )


def _ask_all(
    retrieve: Retrieve, dataset: Dataset, partial: PartialRun, progress: bool | None
) -> Counter[str]:
    """Ask what is not answered yet; return the errors that the retriever raised."""
    matcher = ChunkMatcher(
        (each.document, text) for each in dataset.questions for text in each.texts
    )
    failed: Counter[str] = Counter()
    with progress_bar("Asking", total=len(dataset.questions), show=progress) as advance:
        for question in dataset.questions:
            if question.query not in partial.answered:
                try:
                    answered = _ask(retrieve, question.query, matcher)
                # What is no retriever at all fails for every question, and says so once.
                except ConfigError:
                    raise
                except Exception as error:  # noqa: BLE001 - a retriever of the user's may raise anything
                    failed[type(error).__name__] += 1
                else:
                    # Outside of the try: a full disk is no failure of the retriever.
                    partial.add(answered)
            advance()
    return failed


def _ask(retrieve: Retrieve, query: str, matcher: ChunkMatcher) -> Answered:
    # Around the retriever alone: the authors' time has no search for documents in it.
    began = time.perf_counter()
    chunks = retrieve(query)
    seconds = time.perf_counter() - began
    found = [matcher.match(chunk) for chunk in chunks]
    return Answered(
        query=query,
        sources=tuple(match.document for match in found),
        matched_by=tuple(match.by for match in found),
        seconds=seconds,
    )


def _write(
    path: Path, system: str, scenario: str, dataset: Dataset, answered: Mapping[str, Answered]
) -> None:
    """Write the submission in the authors' form: a row of the dataset with its sources."""
    submission: dict[str, JsonValue] = {
        "eval_scenario": scenario,
        "system": system,
        "time_per_question": _mean([each.seconds for each in answered.values()]),
        # In the order of the dataset, whatever order a resumed run has asked in.
        "df": [_row(question, answered[question.query]) for question in dataset.questions],
    }
    write_private(path, json.dumps(submission, indent=2), what="the submission")


def _row(question: Question, answered: Answered) -> JsonValue:
    return {**question.row, "sources": list(answered.sources)}


def _report(
    system: str, dataset: Dataset, answered: Sequence[Answered], failed: Mapping[str, int]
) -> RunReport:
    return RunReport(
        system=system,
        submission=None,
        n=len(dataset.questions),
        resumed=0,
        failed=failed,
        time_per_question=_mean([each.seconds for each in answered]),
        chunks_per_question=_mean([len(each.sources) for each in answered]),
        matched=Counter(way for each in answered for way in each.matched_by),
    )


def _mean(values: Sequence[float]) -> float:
    # The exact sum, so that a resumed run has the same mean whatever the order.
    return math.fsum(values) / len(values) if values else 0.0
