"""Finds the ground truth of a query: in a file, in a mapping, or by asking the user's callable."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, GroundTruthError
from claimspan.files.ground_truth_conflicts import warn_of_conflicts
from claimspan.files.ground_truth_files import (
    ID_KEYS,
    ID_KEYS_OF_QUERIES,
    GroundTruthEntry,
    read_ground_truths,
)
from claimspan.files.ground_truth_similarity import Embed, SimilarQueries, similar_queries
from claimspan.files.ground_truth_wording import normalise
from claimspan.text.encodable import EncodableText

__all__ = ["ID_KEYS", "Embed", "GroundTruth", "GroundTruthMatch", "Lookup", "RunBlocking"]

MatchedBy = Literal["id", "query", "normalised_query", "similarity", "callable"]
"""What a ground truth was found by."""


_LOG: Final = logging.getLogger("claimspan")


class GroundTruthMatch(BaseModel):
    """A ground truth that was found, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: EncodableText
    """The response known to be right."""

    matched_by: MatchedBy
    """What it was found by."""

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


class GroundTruth:
    """Responses known to be right.

    A file or a mapping is searched by the id in the run's metadata (``ground_truth_id``,
    ``query_id`` or ``question_id``), then by the exact query, then by the normalised query (case,
    punctuation, white space and Unicode form do not count), then by a plain ``id``, and last, where
    it was asked for, by similarity. A callable is asked each time. Where a query has several
    different ground truths, the first one is used, and a warning names the lines.

    A similar query matches where it asks the same: with the same numbers, names, negations and
    other words of content in the same order. Plurals, articles, forms of address and slips of the
    pen do not count. A wrong ground truth would be worse than none.
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
            found = read_ground_truths(Path(source))
            if not found:  # no error: a file may still wait to be filled in
                _LOG.warning(
                    "claimspan: %r holds no ground truth: metrics that need one are not written",
                    str(source),
                )
            self._index(found)
        elif callable(source):
            self._lookup = source
        elif isinstance(source, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            self._index(list(_entries(source)))
        else:
            raise ConfigError(
                f"ground_truth is of type {type(source).__name__}:"
                " give a path, a mapping from query to "
                "ground truth, a callable(query, metadata), or a GroundTruth"
            )
        self._embeds = embed is not None
        self._similar = self._similar_queries(similarity, embed)

    @classmethod
    def of(cls, source: str | Path | Mapping[str, str] | Lookup | GroundTruth) -> GroundTruth:
        """The source itself if it is a ``GroundTruth``, else one made from it.

        Raises:
            GroundTruthError: The file cannot be read; names the line.
            ConfigError: The source is of another type.
        """
        return source if isinstance(source, GroundTruth) else cls(source)

    def __len__(self) -> int:
        """Number of ground truths of a file or a mapping; 0 for a callable."""
        return max(len(self._by_id), len(self._by_query))

    def __bool__(self) -> bool:
        """True, also where ``len`` is 0: a callable may know any number of ground truths."""
        return True

    @property
    def is_lookup(self) -> bool:
        """Whether a callable is asked, so that nobody knows how many ground truths there are."""
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
        running loop. A synchronous one is handed to ``run_blocking``, so that the caller decides
        which thread it blocks.

        Args:
            query: The user's question.
            metadata: The run's metadata, which may hold an id.
            run_blocking: Awaited as ``run_blocking(callable, query, metadata)`` for a synchronous
                callable; by default a thread of the loop's executor.

        Returns:
            The match, or None where there is none; a blank text is none.

        Raises:
            GroundTruthError: The callable returned a value of another type.
            Exception: Any exception that the callable raises.
        """
        if self._lookup is None and not self._embeds:
            return self.find_known(query, metadata)
        if self._lookup is None:
            return _match(await _ask(self.find_known, query, metadata or {}, run_blocking))
        return _match(await _ask(self._lookup, query, metadata or {}, run_blocking))

    def find_known(
        self, query: str, metadata: Mapping[str, object] | None = None
    ) -> GroundTruthMatch | None:
        """Find the ground truth of a query in a file or a mapping, from synchronous code.

        Args:
            query: The user's question.
            metadata: The run's metadata, which may hold an id.

        Returns:
            The match, or None where there is none; always None for a callable, which is not asked.
        """
        given = metadata or {}
        # Such an id comes first: it is the only match that the author of the file has decided on.
        if text := self._of_id(given, ID_KEYS_OF_QUERIES):
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

    def _similar_queries(
        self, similarity: float | None, embed: Embed | None
    ) -> SimilarQueries | None:
        if similarity is None:
            if embed is not None:
                raise ConfigError("embed is given without similarity: give a threshold as well")
            return None
        if self._lookup is not None:
            raise ConfigError(
                "similarity cannot go with a callable: return a GroundTruthMatch with a score"
            )
        # Each question once, in the order of the file: the first one wins.
        return similar_queries(list(self._by_query), similarity, embed)

    def _index(self, entries: Sequence[GroundTruthEntry]) -> None:
        warn_of_conflicts(entries)
        for entry in entries:
            if not entry.text.strip():
                continue
            # The first of several ground truths for one query wins, as in the order of the file.
            if entry.id is not None:
                self._by_id.setdefault(entry.id, entry.text)
            if entry.query is not None:
                self._by_query.setdefault(entry.query, entry.text)
                self._by_normalised.setdefault(normalise(entry.query), entry.text)
        # A query of punctuation alone would otherwise match every other one.
        self._by_normalised.pop("", None)


def _entries(mapping: Mapping[str, str]) -> Iterator[GroundTruthEntry]:
    for key, text in mapping.items():
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"ground_truth maps a query to a {type(text).__name__}: give a mapping to texts"
            )
        # A key may be a query or an id, so it is indexed as both.
        yield GroundTruthEntry(text, id=key, query=key)


async def _ask(
    lookup: Lookup, query: str, metadata: Mapping[str, object], run_blocking: RunBlocking
) -> object:
    if _is_asynchronous(lookup):
        result: object = lookup(query, metadata)
    else:
        result = await run_blocking(lookup, query, metadata)
    # A lambda around a coroutine function is synchronous, and returns a coroutine all the same.
    return await result if inspect.isawaitable(result) else result


def _is_asynchronous(lookup: Lookup) -> bool:
    return inspect.iscoroutinefunction(lookup) or inspect.iscoroutinefunction(
        getattr(lookup, "__call__", None)  # noqa: B004 - asks how it is called, not whether
    )


def _match(found: object) -> GroundTruthMatch | None:
    match found:
        case None:
            return None
        case GroundTruthMatch():
            return found if found.text.strip() else None
        case str():
            return GroundTruthMatch(text=found, matched_by="callable") if found.strip() else None
        case _:
            raise GroundTruthError(
                f"the ground-truth callable returned a {type(found).__name__}: "
                "return a str, a GroundTruthMatch or None"
            )
