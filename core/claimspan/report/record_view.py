"""Converts an entry into what the template shows of it: claims in their texts, chunks, sentences.

All decisions are made here, so that they are typed and tested; the template only prints.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final

from claimspan.evaluation.judgement import Assessment
from claimspan.records import Chunk
from claimspan.report.entries import ReportClaim, ReportEntry, TraceLinks
from claimspan.text.closest import SearchedSentences
from claimspan.verdicts import Claim, Label

__all__ = [
    "CONFLICTING",
    "UNDECIDED",
    "ChunkView",
    "ClaimView",
    "Passage",
    "RecordView",
    "SegmentView",
    "response_label",
    "view_record",
]

UNDECIDED: Final = "undecided"

CONFLICTING: Final = "conflicting"
"""The word for a claim of the response that one chunk entails and another contradicts."""

_OF_RESPONSE: Final = "r"
"""How the keys of the response's claims begin; those of the ground truth begin with another letter.
"""

_Span = tuple[int, int]

_WORST_FIRST: Final = (Label.CONTRADICTED, CONFLICTING, Label.NEUTRAL, UNDECIDED, Label.ENTAILED)


def response_label(claim: ReportClaim) -> str:
    """The label of a claim of the response against the chunks, in one word."""
    if claim.supported_by and claim.contradicted_by:
        return CONFLICTING
    return claim.label or UNDECIDED


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim of the response (keys ``r0``, ``r1``...) or of the ground truth (``g0``...)."""

    key: str
    number: int
    claim: ReportClaim
    located: bool
    supported_by: tuple[str, ...]
    contradicted_by: tuple[str, ...]

    @property
    def label(self) -> str:
        """The label in one word."""
        if self.key.startswith(_OF_RESPONSE):
            return response_label(self.claim)
        return self.claim.label or UNDECIDED


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A part of a text with the claims that cover it."""

    text: str
    claims: tuple[ClaimView, ...]
    ending: tuple[ClaimView, ...]
    """The claims whose last segment this is; their numbers are printed after it."""

    @property
    def label(self) -> str:
        """The worst label among the claims; it gives the segment its colour."""
        labels = {claim.label for claim in self.claims}
        return next((label for label in _WORST_FIRST if label in labels), UNDECIDED)


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk (keys ``k0``, ``k1``...) with the claims that it supports or contradicts."""

    key: str
    chunk: Chunk
    supports: tuple[ClaimView, ...]
    contradicts: tuple[ClaimView, ...]
    relevant: bool | None
    """Whether it supports a claim of the ground truth; None if that is not known."""

    passages: tuple[Passage, ...]
    """Its text, split at the sentences that are closest to these claims."""


@dataclass(frozen=True, slots=True)
class RecordView:
    """Everything that the page shows about one record."""

    key: str
    entry: ReportEntry
    response_claims: tuple[ClaimView, ...]
    ground_truth_claims: tuple[ClaimView, ...]
    response: tuple[SegmentView, ...]
    ground_truth: tuple[SegmentView, ...]
    chunks: tuple[ChunkView, ...]
    scores: Mapping[str, Assessment]
    retrieval_known: bool
    """Whether a fact without a chunk was not retrieved, rather than undecided or cut off."""

    trace_url: str | None = None

    @property
    def undefined(self) -> Mapping[str, Sequence[str]]:
        """Reason to the metrics that have no value for it."""
        found: dict[str, list[str]] = {}
        for name, reason in self.entry.undefined.items():
            found.setdefault(reason, []).append(name)
        return found


def view_record(key: str, entry: ReportEntry, links: TraceLinks | None = None) -> RecordView:
    """Convert one entry; the key makes the anchors of the record unique on the page."""
    # Two chunks may have the same id. Claims refer to the first one, so it is entered last.
    keys = {chunk.id: f"k{i}" for i, chunk in reversed(list(enumerate(entry.chunks)))}
    response, claims = _view_text("r", entry.response, entry.response_claims, keys)
    known = _retrieval_is_known(entry)
    all_decided = known and entry.claims_undecided == 0
    truth, truth_claims = _view_text("g", entry.ground_truth or "", entry.ground_truth_claims, keys)
    return RecordView(
        key=key,
        entry=entry,
        scores={each.name: each for each in entry.assessments},
        retrieval_known=known,
        response_claims=claims,
        ground_truth_claims=truth_claims,
        response=response,
        ground_truth=truth,
        chunks=tuple(
            _view_chunk(f"k{i}", chunk, claims, truth_claims, known=all_decided)
            for i, chunk in enumerate(entry.chunks)
        ),
        trace_url=links.url(entry) if links else None,
    )


def _view_text(
    prefix: str, text: str, claims: Sequence[ReportClaim], keys: Mapping[str, str]
) -> tuple[tuple[SegmentView, ...], tuple[ClaimView, ...]]:
    """Split a text into segments, and view its claims; claim keys are the prefix and a number."""
    spans = dict(enumerate(_locate(_Searched(text[:MAX_SEARCHED]), claims[:MAX_LOCATED])))
    views = tuple(
        ClaimView(
            key=f"{prefix}{i}",
            number=i + 1,
            claim=claim,
            located=spans.get(i) is not None,
            supported_by=_keys_of(claim.supported_by, keys),
            contradicted_by=_keys_of(claim.contradicted_by, keys),
        )
        for i, claim in enumerate(claims)
    )
    located = [(views[i], span) for i, span in spans.items() if span is not None]
    return tuple(_segments(text, located)), views


def _segments(text: str, located: Sequence[tuple[ClaimView, _Span]]) -> Iterator[SegmentView]:
    # The end of the whole text, not of the part that is searched: what follows is shown unmarked.
    cuts = sorted({0, len(text), *(cut for _, span in located for cut in span)})
    for start, end in pairwise(cuts):
        covering = [each for each in located if each[1][0] <= start and end <= each[1][1]]
        # A claim that others overlap has several segments, and its number stands after the last.
        yield SegmentView(
            text[start:end],
            tuple(view for view, _ in covering),
            tuple(view for view, span in covering if span[1] == end),
        )


def _keys_of(ids: Iterable[str], keys: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(keys[chunk_id] for chunk_id in ids if chunk_id in keys)


def _view_chunk(
    key: str,
    chunk: Chunk,
    claims: Sequence[ClaimView],
    truth_claims: Sequence[ClaimView],
    *,
    known: bool,
) -> ChunkView:
    supports = tuple(c for c in chain(claims, truth_claims) if key in c.supported_by)
    contradicts = tuple(c for c in chain(claims, truth_claims) if key in c.contradicted_by)
    return ChunkView(
        key=key,
        chunk=chunk,
        supports=supports,
        contradicts=contradicts,
        # A chunk that supports no fact is irrelevant only if no verdict of it is open.
        relevant=any(key in c.supported_by for c in truth_claims) or (False if known else None),
        passages=tuple(_passages(chunk.text, supports, contradicts)),
    )


def _retrieval_is_known(entry: ReportEntry) -> bool:
    """Whether a fact without a chunk was not retrieved, rather than undecided or cut off.

    The chunks of a claim do not tell this apart. The score does: it is the share of the decided
    facts, so it is the share of all of them only if all are decided and no chunk is lost.
    """
    share, facts = entry.scores.get("claim_recall"), entry.ground_truth_claims
    if share is None or not facts or entry.claims_left_out:
        return False
    retrieved = sum(bool(fact.supported_by) for fact in facts)
    if not math.isclose(share, retrieved / len(facts), abs_tol=1e-6):
        return False
    # A share of 0 looks the same however many facts are undecided.
    return retrieved > 0 or entry.claims_undecided == 0


# --- claims in the text that they are of --------------------------------------------------------
#
# A claim is located by its own words inside its sentence, else by its whole sentence, else by its
# own words anywhere. White space, case and the final full stop are ignored. The time that it takes
# grows with the length of the text, whatever stands in it.

MAX_LOCATED: Final = 200
"""Claims of one text that are located; an evaluation has at most 50."""

MAX_SEARCHED: Final = 200_000
"""Characters of a text in which claims are located. Both bounds keep a page of any file fast."""

_WORD: Final = re.compile(r"\S+")


class _Searched:
    """A text whose words are searched for with one space between them, in lower case.

    ``str.find`` is linear in the text. A pattern with a repetition between all words is not.
    """

    def __init__(self, text: str) -> None:
        words = [(found.start(), _lower(found[0])) for found in _WORD.finditer(text)]
        self._text = text
        self._words = " ".join(word for _, word in words)
        # The place in the text of each character of ``_words``.
        self._places: list[int] = []
        for start, word in words:
            self._places.extend(range(start, start + len(word) + 1))
        # Each word has a place for the space after it, and the last word has no space.
        del self._places[len(self._words) :]

    def find(self, words: str, start: int, end: int | None = None) -> _Span | None:
        """The first occurrence of words between two places of the text, with its full stop."""
        wanted = _lower(" ".join(words.rstrip().rstrip(".。").split()))
        if not wanted:
            return None
        first = bisect_left(self._places, start)
        last = len(self._places) if end is None else bisect_left(self._places, end)
        found = self._words.find(wanted, first, last)
        if found < 0:
            return None
        after = self._places[found + len(wanted) - 1] + 1
        has_stop = self._text[after : after + 1] in (".", "。") and (end is None or after < end)
        return self._places[found], after + has_stop


def _lower(word: str) -> str:
    """Lower case, character by character, so that places stay; a few become two characters."""
    if word.isascii():
        return word.lower()
    return "".join(low if len(low := char.lower()) == 1 else char for char in word)


def _locate(text: _Searched, claims: Sequence[Claim]) -> Iterator[_Span | None]:
    ends: dict[Claim, int] = {}
    cursor = 0
    for claim in claims:
        # A repeated claim belongs to the next occurrence. A different claim may share the
        # sentence of the claim before it, so its search starts where that claim starts.
        words = Claim(text=claim.text, sentence=claim.sentence)
        span = _find(text, words, ends.get(words, cursor))
        if span is not None:
            cursor, ends[words] = span
        yield span


def _find(text: _Searched, claim: Claim, start: int) -> _Span | None:
    sentence = _search(text, claim.sentence or "", start)
    if sentence is None:
        return _search(text, claim.text, start)
    return text.find(claim.text, *sentence) or sentence


def _search(text: _Searched, words: str, start: int) -> _Span | None:
    """Look behind a place first, and in the whole text if nothing is found there."""
    return text.find(words, start) or text.find(words, 0)


# --- sentences of a chunk that are closest to the claims that it supports or contradicts ---------

# A verdict says which chunk decided, and not which sentence. The sentence with the most words of
# the claim is the best guess without a judge, and the page calls it the closest one. A chunk that
# contradicts a claim often has another number for it: its words count first there.

MAX_KEPT: Final = 20_000
"""Characters of a chunk whose words are kept; 2,000 long ones would take gigabytes."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a chunk with the claims that it is closest to. All parts joined are the chunk."""

    text: str
    keys: tuple[str, ...] = ()
    label: Label | None = None
    """``contradicted`` if it contradicts one of them; None for a part without claims."""


def _passages(
    text: str, supports: Sequence[ClaimView], contradicts: Sequence[ClaimView]
) -> Iterator[Passage]:
    sought = [*((view, False) for view in supports), *((view, True) for view in contradicts)]
    places: list[tuple[str, bool, _Span]] = []
    if sought:
        sentences = _kept(text) if len(text) <= MAX_KEPT else SearchedSentences(text)
        for view, denies in sought:
            if place := sentences.closest(view.claim.text, denied=denies):
                places.append((view.key, denies, place))
    # Sentences do not overlap, so that between two cuts there is one sentence, or none at all.
    cuts = sorted({0, len(text), *(end for *_, place in places for end in place)})
    for start, end in pairwise(cuts):
        found = {key: denies for key, denies, place in places if place == (start, end)}
        # One sentence may support a claim and contradict another: the worse news has the colour.
        worst = Label.CONTRADICTED if any(found.values()) else Label.ENTAILED
        yield Passage(text[start:end], tuple(found), worst if found else None)


# Questions of one topic retrieve the same chunks, which are split once. The bound keeps the words
# of about 2,000 chunks, some ten megabytes.
_kept: Final = lru_cache(maxsize=2_000)(SearchedSentences)
