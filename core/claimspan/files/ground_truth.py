"""Finds the ground truth of a query: in a file, in a mapping, or by asking the user's callable."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, GroundTruthError
from claimspan.files.chunks import items_of
from claimspan.files.ground_truth_similarity import Embed, SimilarQueries, normalise
from claimspan.files.jsonl import parse_json_lines, read_text, unreadable
from claimspan.files.names import NAMES, field_of, pick, scalar_text
from claimspan.files.raw_rows import RawRow, SkippedRow, csv_rows
from claimspan.text.encodable import EncodableText

__all__ = [
    "ID_KEYS",
    "QUERY_KEYS",
    "TEXT_KEYS",
    "Embed",
    "GroundTruth",
    "GroundTruthMatch",
    "Lookup",
    "RunBlocking",
    "first_of",
    "read_rows",
]

MatchedBy = Literal["id", "query", "normalised_query", "similarity", "callable"]

_ID_KEYS_OF_QUERIES: Final = ("ground_truth_id", "query_id", "question_id")
"""Fields of a file, and keys of a run's metadata, that can hold the id of a query only."""

ID_KEYS: Final = (*_ID_KEYS_OF_QUERIES, "id")
"""Fields of a file, and keys of a run's metadata, that hold an id; the first one present wins."""

QUERY_KEYS: Final = NAMES["query"]

TEXT_KEYS: Final = (*NAMES["ground_truth"], "answer")
"""Fields of a file that hold a ground truth; one of ground truths has no other answers."""

_WAITING_KEY: Final = TEXT_KEYS[0]
"""The field that is empty in a line which waits to be filled in."""

_WANTED: Final = "JSON-lines or CSV file of questions and ground truths"

_LOG: Final = logging.getLogger("claimspan")


class GroundTruthMatch(BaseModel):
    """A ground truth that was found, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: EncodableText
    matched_by: MatchedBy
    score: float | None = None
    """How well it matches: the similarity of the queries, 0 to 1, or on the scale of the look-up;
    None for an exact match."""


Lookup = Callable[
    [str, Mapping[str, object]],
    str | GroundTruthMatch | Awaitable[str | GroundTruthMatch | None] | None,
]
"""From a query and a run's metadata to its ground truth, or None; synchronous or asynchronous."""


RunBlocking = Callable[
    [Callable[[str, Mapping[str, object]], object], str, Mapping[str, object]], Awaitable[object]
]
"""Awaited with a synchronous callable and its two arguments; ``asyncio.to_thread`` is one."""


class _Entry(NamedTuple):
    text: str
    id: str | None
    query: str | None
    place: str


class GroundTruth:
    """Responses known to be right.

    A file or a mapping is searched by the id in the run's metadata (``ground_truth_id``,
    ``query_id`` or ``question_id``), then by the exact query, then by the normalised query (case,
    punctuation, white space and Unicode form do not count), then by a plain ``id``, and last, if
    it was asked for, by similarity. A callable is asked each time. If a query has several
    different ground truths, the first one is used, and a warning names the lines.

    A similar query matches if it asks the same: with the same numbers, names, negations and
    other words of content in the same order. Plurals, articles and forms of address do not count.
    A wrong ground truth would be worse than none.
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, str] | Lookup,
        *,
        similarity: float | None = None,
        embed: Embed | None = None,
    ) -> None:
        """Read a file, index a mapping, or keep a callable; warns of a file that holds none.

        Args:
            source: Path of a JSON-lines or CSV file with a ground truth (``ground_truth``,
                ``gt_answer``, ``reference`` or ``answer``) and a query (``query``, ``question``,
                ``input``) or an id in each record; a mapping from query or id to ground truth; or
                ``callable(query, metadata)``, which may be asynchronous, and which returns a text,
                a ``GroundTruthMatch`` or None.
            similarity: Similarity from which a query matches, above 0 up to 1, such as 0.9; needs
                the extra ``similarity``. None matches equal queries alone.
            embed: Makes embeddings of texts, which are then compared by their cosine; called on a
                thread. Numbers, names and negations have to agree all the same. Without it, the
                letters of two queries are compared.

        Raises:
            GroundTruthError: The file cannot be read; names the line. Or ``embed`` returned no
                vectors.
            ConfigError: The source is none of these, or the options do not go together.
            MissingExtraError: The extra ``similarity`` is not installed.
        """
        self._lookup: Lookup | None = None
        self._by_id: dict[str, str] = {}
        self._by_query: dict[str, str] = {}
        self._by_normalised: dict[str, str] = {}
        if isinstance(source, str | Path):
            found = list(_entries_of_file(Path(source)))
            if not found:  # no error: a file may still wait to be filled in
                _LOG.warning(
                    "claimspan: %r holds no ground truth: metrics that need one are not written",
                    str(source),
                )
            self._index(found)
        elif callable(source):
            self._lookup = source
        elif isinstance(source, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            self._index(list(_entries_of_mapping(source)))
        else:
            raise ConfigError(
                f"ground_truth is of type {type(source).__name__}:"
                " give a path, a mapping from query to "
                "ground truth, a callable(query, metadata), or a GroundTruth"
            )
        if similarity is None and embed is not None:
            raise ConfigError("embed is given without similarity: give a threshold as well")
        if similarity is not None and self._lookup is not None:
            raise ConfigError(
                "similarity cannot go with a callable: return a GroundTruthMatch with a score"
            )
        self._embeds = embed is not None
        self._similar = (
            None if similarity is None else SimilarQueries(list(self._by_query), similarity, embed)
        )

    @classmethod
    def of(cls, source: str | Path | Mapping[str, str] | Lookup | GroundTruth) -> GroundTruth:
        """The source itself if it is a ``GroundTruth``, else one made from it."""
        return source if isinstance(source, GroundTruth) else cls(source)

    def __len__(self) -> int:
        """Number of ground truths of a file or a mapping; 0 for a callable."""
        return max(len(self._by_id), len(self._by_query))

    def __bool__(self) -> bool:
        """True, also if ``len`` is 0: a callable may know any number of ground truths."""
        return True

    @property
    def is_lookup(self) -> bool:
        """Whether a callable is asked, so that the number of ground truths is not known."""
        return self._lookup is not None

    @property
    def is_blocking(self) -> bool:
        """Whether ``find`` calls a synchronous callable, which needs a thread to run on."""
        if self._lookup is None:
            return self._embeds
        return not _is_asynchronous(self._lookup)

    async def find(
        self,
        query: str,
        metadata: Mapping[str, object] | None = None,
        *,
        run_blocking: RunBlocking = asyncio.to_thread,  # pyright: ignore[reportArgumentType] - pyright does not solve its ParamSpec
    ) -> GroundTruthMatch | None:
        """Find the ground truth of a query.

        A file or a mapping is searched on the spot. An asynchronous callable is awaited on the
        running loop.

        Args:
            query: The user's question.
            metadata: The run's metadata, which may hold an id.
            run_blocking: Awaited as ``run_blocking(callable, query, metadata)`` for a synchronous
                callable, so that the caller decides which thread it blocks.

        Returns:
            The match, or None if there is none; a blank text is none.

        Raises:
            GroundTruthError: The callable returned a value of another type.
            Exception: Any exception that the callable raises.
        """
        if self._lookup is None and not self._embeds:
            return self.find_known(query, metadata)
        lookup, given = self._lookup or self.find_known, metadata or {}
        found: object = (
            lookup(query, given)
            if _is_asynchronous(lookup)
            else await run_blocking(lookup, query, given)
        )
        # A lambda around a coroutine function is synchronous, and returns a coroutine all the same.
        found = await found if inspect.isawaitable(found) else found
        if isinstance(found, str):
            found = GroundTruthMatch(text=found, matched_by="callable")
        if found is not None and not isinstance(found, GroundTruthMatch):
            raise GroundTruthError(
                f"the ground-truth callable returned a {type(found).__name__}: "
                "return a str, a GroundTruthMatch or None"
            )
        return found if found is not None and found.text.strip() else None

    def find_known(
        self, query: str, metadata: Mapping[str, object] | None = None
    ) -> GroundTruthMatch | None:
        """Find the ground truth of a query in a file or a mapping, from synchronous code.

        None if there is none, and always for a callable, which is not asked.
        """
        given = metadata or {}
        # Such an id comes first: it is the only match that the author of the file has decided on.
        if text := self._of_id(given, _ID_KEYS_OF_QUERIES):
            return GroundTruthMatch(text=text, matched_by="id")
        if text := self._by_query.get(query):
            return GroundTruthMatch(text=text, matched_by="query")
        if text := self._by_normalised.get(normalise(query)):
            return GroundTruthMatch(text=text, matched_by="normalised_query")
        # A plain "id" may be that of a user or of a message.
        if text := self._of_id(given, ID_KEYS):
            return GroundTruthMatch(text=text, matched_by="id")
        # Last, since it is the only one that may be wrong, and the only one that takes time.
        if self._similar is not None and (found := self._similar.find(query)):
            known, score = found
            text = self._by_query[known]
            return GroundTruthMatch(text=text, matched_by="similarity", score=score)
        return None

    def _of_id(self, metadata: Mapping[str, object], keys: Iterable[str]) -> str | None:
        ids = (str(metadata[key]) for key in keys if key in metadata)
        return next((text for id_ in ids if (text := self._by_id.get(id_))), None)

    def _index(self, entries: Sequence[_Entry]) -> None:
        filled = [entry for entry in entries if entry.text.strip()]
        _warn_of_conflicts(filled)
        for entry in filled:
            # The first of several ground truths for one query wins.
            if entry.id is not None:
                self._by_id.setdefault(entry.id, entry.text)
            if entry.query is not None:
                self._by_query.setdefault(entry.query, entry.text)
                self._by_normalised.setdefault(normalise(entry.query), entry.text)
        # A query of punctuation alone would otherwise match every other one.
        self._by_normalised.pop("", None)


def _is_asynchronous(lookup: Lookup) -> bool:
    return inspect.iscoroutinefunction(lookup) or inspect.iscoroutinefunction(
        getattr(lookup, "__call__", None)  # noqa: B004 - asks how it is called, not whether
    )


def _entries_of_mapping(mapping: Mapping[str, str]) -> Iterator[_Entry]:
    for number, (key, text) in enumerate(mapping.items(), 1):
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"ground_truth maps a query to a {type(text).__name__}: give a mapping to texts"
            )
        # A key may be a query or an id, so it is indexed as both.
        yield _Entry(text, key, key, f"entry {number}")


def _entries_of_file(path: Path) -> Iterator[_Entry]:
    for number, row in read_rows(path):
        place = f"{str(path)!r} line {number}"
        text, query, id_ = (first_of(row, keys, place) for keys in (TEXT_KEYS, QUERY_KEYS, ID_KEYS))
        # ``claimspan curate`` writes such a line, which is still to be filled in.
        if text is None and query is not None and _WAITING_KEY in row:
            continue
        if text is None or (query is None and id_ is None):
            raise GroundTruthError(
                f"{place} needs a ground truth ({', '.join(TEXT_KEYS)}) "
                f"and a query ({', '.join(QUERY_KEYS)}) or an id ({', '.join(ID_KEYS)})"
            )
        yield _Entry(text, id_, query, place)


def read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows of a JSON-lines file, or of one in ``.csv``, with their lines from 1.

    Raises:
        GroundTruthError: The file cannot be read, or a row is broken; names the line.
    """
    if path.suffix.lower() != ".csv":
        text = read_text(path, wanted=_WANTED, error=GroundTruthError)
        yield from parse_json_lines(text, path, error=GroundTruthError)
        return
    try:
        with path.open("rb") as file:
            # The empty cell of a ground truth that waits to be filled in has to be there.
            for row in csv_rows(file, keep_empty=True):
                if isinstance(row, SkippedRow):
                    raise GroundTruthError(f"{str(path)!r} line {row.place}: {row.reason}")
                if isinstance(row, RawRow):
                    yield row.place, cast("Mapping[str, object]", row.value)
    except OSError as cause:
        raise unreadable(path, cause, wanted=_WANTED, error=GroundTruthError) from None


def first_of(row: Mapping[str, object], keys: tuple[str, ...], place: str) -> str | None:
    """Return the first of the fields that is not empty, as a text: ids are often numbers.

    Raises:
        GroundTruthError: It is no text, number or boolean; names the place.
    """
    key = pick(row, keys)
    if key is None:
        return None
    # RAGAS has a list of ground truths, nearly always of one; an answer is no list.
    items = items_of(row[key]) if field_of(key) == _WAITING_KEY else None
    text = scalar_text(items[0] if items is not None and len(items) == 1 else row[key])
    if not isinstance(text, str):
        raise GroundTruthError(f"{place}: {key} is of type {type(row[key]).__name__}; write a text")
    return text


def _warn_of_conflicts(entries: Iterable[_Entry]) -> None:
    """Warn once of queries and ids whose ground truths differ in a word: one has to be wrong."""
    first: dict[tuple[str, str | None], tuple[str, str]] = {}
    conflicts: list[str] = []
    for entry in entries:
        said = (normalise(entry.text), entry.place)
        # A query of punctuation alone is found by its exact form only.
        keys = (
            ("id", entry.id),
            ("query", entry.query and (normalise(entry.query) or entry.query)),
        )
        known = [first.setdefault(key, said) for key in keys if key[1] is not None]
        # An entry may clash by its id and by its query: it is named once.
        if clashes := [where for text, where in known if text != said[0]]:
            conflicts.append(f"{entry.place} after {clashes[0]}")
    if conflicts:
        # The first few are enough to find the script that made them.
        more = f"; and {len(conflicts) - 5} more" if len(conflicts) > 5 else ""
        _LOG.warning(
            "%d ground truths differ from an earlier one for the same query or id, and are not "
            "used: %s%s. Remove the wrong one of each.",
            len(conflicts),
            "; ".join(conflicts[:5]),
            more,
        )
