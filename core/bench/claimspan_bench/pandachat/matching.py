"""Finds the document that a retrieved chunk comes from: by an id, else by the chunk's text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Final, Literal, NamedTuple

from claimspan.records import Chunk

__all__ = ["UNMATCHED", "ChunkMatcher", "MatchedBy", "SourceMatch", "letters_of"]

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
            letters = letters_of(text)
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
        if (named := self._first_known(_own_names(chunk))) is not None:
            return SourceMatch(named, "id")
        letters = letters_of(chunk.text)
        holders = [
            id_
            for id_, texts in self._letters.items()
            if letters and any(letters in text for text in texts)
        ]
        # Before the other metadata, which may name the chunk's neighbours.
        if len(holders) == 1:
            return SourceMatch(holders[0], "text")
        if (named := self._first_known(_other_names(chunk))) is not None:
            return SourceMatch(named, "id")
        if holders:
            return SourceMatch(UNMATCHED, "several")
        return self._by_overlap(letters)

    def _first_known(self, names: Iterable[str]) -> str | None:
        return next((id_ for name in names if (id_ := self._known(name))), None)

    def _known(self, name: str) -> str | None:
        """The document that a name stands for: an id, a path to a file of it, an id with a part."""
        if name in self._letters:
            return name
        # A loader of directories keeps the path of the file, and a splitter adds the number of the
        # chunk.
        path = PurePath(name)
        forms = (path.name, path.stem, _PART.split(name, maxsplit=1)[0])
        return next((form for form in forms if form in self._letters), None)

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


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, without case and accents, and nothing between.

    Args:
        text: With or without ``<p>`` marks, in any of Unicode's forms.
    """
    # Decomposed, a caron is a character of its own, which is no letter and falls away below.
    decomposed = unicodedata.normalize("NFKD", _MARK.sub(" ", text)).casefold()
    return "".join(character for character in decomposed if character.isalnum())


def _own_names(chunk: Chunk) -> Iterator[str]:
    """What names the document of a chunk, the likeliest first."""
    metadata: Mapping[str, object] = chunk.metadata
    given = (metadata.get(key) for key in _FIRST_KEYS)
    yield from (each for each in (chunk.id, *given) if isinstance(each, str))


def _other_names(chunk: Chunk) -> Iterator[str]:
    metadata: Mapping[str, object] = chunk.metadata
    for key, value in metadata.items():
        if key not in _FIRST_KEYS and isinstance(value, str):
            yield value


def _shingles(letters: str) -> Iterator[str]:
    if len(letters) < _SHINGLE:
        return
    # Half of each lies in the next: where a prefix ends, at most two of them are lost.
    for start in range(0, len(letters) - _SHINGLE + 1, _SHINGLE // 2):
        yield letters[start : start + _SHINGLE]
