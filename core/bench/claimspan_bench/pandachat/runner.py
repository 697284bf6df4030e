"""Makes a submission: asks a retriever every question of the dataset, and notes what it returns.

A run that was broken off goes on where it was. What is done is kept beside the submission until
every question has an answer: one with holes would be scored as if nothing had been found. The
document that a chunk comes from is found by an id, else by the chunk's text.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from claimspan.errors import ConfigError
from claimspan.files.private import write_private
from claimspan.progress import progress_bar
from claimspan.records import Chunk
from claimspan_bench.pandachat.submissions import SCENARIO, Dataset
from claimspan_bench.resumed import KeptLines
from claimspan_bench.retrievers import Retrieve

__all__ = ["UNMATCHED", "ChunkMatcher", "MatchedBy", "RunReport", "SourceMatch", "run_retriever"]

UNMATCHED: Final = "unmatched"
"""Stands in a submission for a chunk of no known document: without it, those behind it would move
up among the sources that count."""

MatchedBy = Literal["id", "text", "overlap", "nothing", "several"]
"""How a chunk was matched: it was not where its text is in no document, or in several."""

_MARK: Final = re.compile(r"</?p>", re.IGNORECASE)
"""Paragraphs in the texts of the corpus; splitters make them line ends, or nothing."""

# The separators that stores and splitters put between a document's id and a chunk's number.
_PART: Final = re.compile(r"[#:/|@]")

_FIRST_KEYS: Final = (
    *("document", "document_id", "doc_id", "ref_doc_id", "source_id", "source"),
    "id",
)
"""Metadata that names a chunk's document, looked at before any other: a chunk may also name its
neighbours."""

_SHINGLE: Final = 24
"""Letters in a row, about four words, that two texts hardly share by chance."""

_SHARE: Final = 0.5
"""Share of a chunk's shingles in one document that makes it this document's: a title or a summary
that was put before a chunk is shorter than the chunk."""


class RunReport(BaseModel):
    """What a run has done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str

    submission: str | None
    """The file; None where questions failed, and it was not written."""

    n: int

    resumed: int
    """Questions that an earlier run had done."""

    failed: Mapping[str, int]
    """Class of an error to the number of questions that the retriever raised it for."""

    time_per_question: float
    """Seconds that the retriever took, on average."""

    chunks_per_question: float

    matched: Mapping[str, int]
    """How the documents of the chunks were found, to the number of chunks."""


class _Answered(BaseModel):
    """One line of what is done: what a retriever returned for one question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    """Tells one run from another."""

    query: str

    sources: tuple[str, ...]
    """The documents of the chunks, in the retriever's order."""

    matched_by: tuple[MatchedBy, ...]
    seconds: float = Field(ge=0)


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
        What was done. If the retriever raises for a question, the others are asked all the same, no
        submission is written, and the next run asks the failed ones again.

    Raises:
        ConfigError: A file cannot be written, belongs to another run, or the retriever returns
            something else than documents.
        FileError: The disk is full.
    """
    # Not the texts: who mends a typing error in a document does not ask all questions again.
    asked = [(question.query, question.document) for question in dataset.questions]
    run = hashlib.sha256(json.dumps([system, asked]).encode()).hexdigest()[:16]
    foreign = "is not of this run: remove it to begin anew, or give another path with -o"

    def of_this_run(line: _Answered) -> _Answered:
        if line.run != run:
            raise ValueError(foreign)
        return line

    kept = KeptLines(
        path.with_suffix(".part"),  # not `.json.part`, which the authors' script would take
        _Answered,
        key=lambda line: line.query,
        accept=of_this_run,
        foreign=foreign,
        what="what is done so far",
    )
    answered = dict(kept.known)
    resumed = len(answered)
    matcher = ChunkMatcher(
        (each.document, text) for each in dataset.questions for text in each.texts
    )
    failed: Counter[str] = Counter()
    with kept, progress_bar("Asking", total=len(dataset.questions), show=progress) as advance:
        for question in dataset.questions:
            if question.query not in answered:
                try:
                    line = _asked(retrieve, question.query, matcher, run)
                # What is no retriever at all fails for every question, and says so once.
                except ConfigError:
                    raise
                except Exception as error:  # noqa: BLE001 - a retriever of the user's may raise anything
                    failed[type(error).__name__] += 1
                else:
                    # Outside of the try: a full disk is no failure of the retriever.
                    kept.add(line)
                    answered[question.query] = line
            advance()
    mean_seconds = _mean([each.seconds for each in answered.values()])
    if not failed:
        # In the authors' form: a row of the dataset with its sources, in the order of the dataset.
        rows: list[JsonValue] = [
            {**each.row, "sources": list(answered[each.query].sources)}
            for each in dataset.questions
        ]
        submission = {
            "eval_scenario": scenario,
            "system": system,
            "time_per_question": mean_seconds,
            "df": rows,
        }
        write_private(path, json.dumps(submission, indent=2), what="the submission")
        kept.path.unlink(missing_ok=True)
    return RunReport(
        system=system,
        submission=None if failed else str(path),
        n=len(dataset.questions),
        resumed=resumed,
        failed=failed,
        time_per_question=mean_seconds,
        chunks_per_question=_mean([len(each.sources) for each in answered.values()]),
        matched=Counter(way for each in answered.values() for way in each.matched_by),
    )


def _asked(retrieve: Retrieve, query: str, matcher: ChunkMatcher, run: str) -> _Answered:
    # Around the retriever alone: the authors' time has no search for documents in it.
    began = time.perf_counter()
    chunks = retrieve(query)
    seconds = time.perf_counter() - began
    found = [matcher.match(chunk) for chunk in chunks]
    return _Answered(
        run=run,
        query=query,
        sources=tuple(match.document for match in found),
        matched_by=tuple(match.by for match in found),
        seconds=seconds,
    )


def _mean(values: Sequence[float]) -> float:
    # The exact sum, so that a resumed run has the same mean whatever the order.
    return math.fsum(values) / len(values) if values else 0.0


class SourceMatch(NamedTuple):
    """The document of a chunk, and how it was found."""

    document: str
    by: MatchedBy


class ChunkMatcher:
    """Knows the documents of a dataset, and finds out which of them a chunk comes from."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        """Note the documents.

        Args:
            texts: Pairs of a document's id and a text of it; a document may have several.
        """
        self._letters: dict[str, list[str]] = {}
        for document, text in texts:
            letters = _letters_of(text)
            known = self._letters.setdefault(document, [])
            # With and without the question a text is often the same one; it is searched once.
            if letters and letters not in known:
                known.append(letters)

    def match(self, chunk: Chunk) -> SourceMatch:
        """Find the document of a chunk.

        Its id and the metadata that are named as a document's id count first, then its text, then
        any other metadata. Of a text letters and digits alone count, without case, accents and
        paragraph marks, so that neither splitting, nor Unicode's form, nor a lost caron breaks the
        match. Where the text is not contained in any document as a whole, the document that has
        most of it is taken.

        Returns:
            The document, or ``UNMATCHED`` where there is none, or several that fit equally well.
        """
        metadata: Mapping[str, object] = chunk.metadata
        own = (chunk.id, *(metadata.get(key) for key in _FIRST_KEYS))
        if (named := self._first_known(own)) is not None:
            return SourceMatch(named, "id")
        letters = _letters_of(chunk.text)
        holders = [
            id_
            for id_, texts in self._letters.items()
            if letters and any(letters in text for text in texts)
        ]
        # Before the other metadata, which may name the chunk's neighbours.
        if len(holders) == 1:
            return SourceMatch(holders[0], "text")
        others = (value for key, value in metadata.items() if key not in _FIRST_KEYS)
        if (named := self._first_known(others)) is not None:
            return SourceMatch(named, "id")
        if holders:
            return SourceMatch(UNMATCHED, "several")
        return self._by_overlap(letters)

    def _first_known(self, names: Iterable[object]) -> str | None:
        """The document of the first name of one: an id, a path to its file, an id with a part."""
        for name in names:
            if isinstance(name, str):
                # A loader of directories keeps the path of the file, and a splitter adds the number
                # of the chunk.
                path = PurePath(name)
                forms = (name, path.name, path.stem, _PART.split(name, maxsplit=1)[0])
                for form in forms:
                    if form in self._letters:
                        return form
        return None

    def _by_overlap(self, letters: str) -> SourceMatch:
        # Of a text that is too short for one nothing is said: it could be of any document.
        shingles = set(_shingles(letters))
        shares = {
            id_: max((sum(each in text for each in shingles) for text in texts), default=0)
            for id_, texts in self._letters.items()
        }
        most = max(shares.values(), default=0)
        # No guess between two that fit equally well: a wrong document might be the right one by
        # chance.
        best = [id_ for id_, share in shares.items() if share == most]
        if not most or most < _SHARE * len(shingles):
            return SourceMatch(UNMATCHED, "nothing")
        return (
            SourceMatch(best[0], "overlap") if len(best) == 1 else SourceMatch(UNMATCHED, "several")
        )


def _letters_of(text: str) -> str:
    """The letters and digits of a text, without case and accents, and nothing between."""
    # Decomposed, a caron is a character of its own, which is no letter and falls away below.
    decomposed = unicodedata.normalize("NFKD", _MARK.sub(" ", text)).casefold()
    return "".join(character for character in decomposed if character.isalnum())


def _shingles(letters: str) -> Iterator[str]:
    if len(letters) < _SHINGLE:
        return
    # Half of each lies in the next: where a prefix ends, at most two of them are lost.
    for start in range(0, len(letters) - _SHINGLE + 1, _SHINGLE // 2):
        yield letters[start : start + _SHINGLE]
