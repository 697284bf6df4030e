"""Shapes an entry into what the template shows, so that the template has no logic of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from claimspan.records import Chunk
from claimspan.report.entries import ReportClaim, ReportEntry
from claimspan.report.glossary import GLOSSARY, GROUPS, Metric, describe
from claimspan.report.highlight import highlight
from claimspan.report.summary import BINS, MetricSummary
from claimspan.verdicts import Label

__all__ = [
    "UNDECIDED",
    "BarView",
    "ChunkView",
    "ClaimView",
    "RecordView",
    "ScoreView",
    "SegmentView",
    "TileView",
    "badness",
    "view_record",
    "view_score",
    "view_tile",
]

UNDECIDED: Final = "undecided"
"""The word for a label that is None."""

_TILE_HEIGHT: Final = 30

_WORST_FIRST: Final = (Label.CONTRADICTED, Label.NEUTRAL, UNDECIDED, Label.ENTAILED)


@dataclass(frozen=True, slots=True)
class ScoreView:
    """A score, or why there is none."""

    metric: Metric
    value: float | None
    reason: str

    @property
    def fill(self) -> float:
        """How full its bar is, between 0 and 1."""
        return round(min(max(self.value or 0.0, 0.0), 1.0), 3)

    @property
    def goodness(self) -> float:
        """1 at the good end of the scale, 0 at the other."""
        return round(1.0 - self.fill, 3) if self.metric.lower_is_better else self.fill


class BarView(NamedTuple):
    """One bar of a histogram; empty ones are left out."""

    place: int
    n: int
    height: float
    goodness: float | None
    """As of a score in the middle of the bar; None where neither end is better."""


class TileView(NamedTuple):
    """The summary of a metric and its histogram."""

    summary: MetricSummary
    bars: tuple[BarView, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim of the response (keys ``r0``, ``r1``...) or of the ground truth (``g0``...)."""

    key: str
    number: int
    claim: ReportClaim
    located: bool
    supports: tuple[str, ...]
    """Keys of the chunks that support it."""

    denies: tuple[str, ...]
    """Keys of the chunks that contradict it."""

    @property
    def label(self) -> str:
        """The label in one word."""
        return self.claim.label or UNDECIDED


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A stretch of text with the claims that were found in it."""

    text: str
    claims: tuple[ClaimView, ...]
    ending: tuple[ClaimView, ...]
    """Those of which this is the last segment."""

    @property
    def label(self) -> str:
        """The worst label of its claims."""
        labels = {claim.label for claim in self.claims}
        return next((label for label in _WORST_FIRST if label in labels), UNDECIDED)


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk (keys ``k0``, ``k1``...) and the claims that it speaks about."""

    key: str
    chunk: Chunk
    supports: tuple[ClaimView, ...]
    denies: tuple[ClaimView, ...]
    relevant: bool | None
    """It supports a claim of the ground truth; None without ground-truth claims."""


@dataclass(frozen=True, slots=True)
class RecordView:
    """Everything that the page says about one record."""

    key: str
    entry: ReportEntry
    claims: tuple[ClaimView, ...]
    truths: tuple[ClaimView, ...]
    answer: tuple[SegmentView, ...]
    ground_truth: tuple[SegmentView, ...]
    chunks: tuple[ChunkView, ...]
    groups: Mapping[str, Sequence[ScoreView]] = field(default_factory=dict[str, list[ScoreView]])

    @property
    def sortable(self) -> dict[str, float]:
        """The scores as the page's script sorts by them; nobody sees the fifth decimal."""
        return {name: round(value, 4) for name, value in self.entry.scores.items()}

    @property
    def labels(self) -> str:
        """The labels that occur in the response, for filtering."""
        return " ".join(sorted({claim.label for claim in self.claims}))


def badness(entry: ReportEntry) -> tuple[float, float]:
    """Sorts the worst record first: lowest faithfulness or f1, then lowest mean of both."""
    values = [entry.scores[name] for name in ("faithfulness", "f1") if name in entry.scores]
    return (min(values), sum(values) / len(values)) if values else (float("inf"), 0.0)


def view_tile(summary: MetricSummary) -> TileView:
    """Draw a summary: the fullest bar is as high as the tile allows."""
    peak, lower_is_better = max(summary.bins), summary.metric.lower_is_better
    bars: list[BarView] = []
    for place, n in enumerate(summary.bins):
        share = place / (BINS - 1)
        goodness = None if lower_is_better is None else 1 - share if lower_is_better else share
        if n:
            height = max(round(_TILE_HEIGHT * n / peak, 1), 1.0)
            bars.append(BarView(place, n, height, goodness and round(goodness, 2)))
    return TileView(summary, tuple(bars))


def view_score(entry: ReportEntry, name: str) -> ScoreView:
    """One score of an entry, with the reason where it has none."""
    reason = entry.undefined.get(name) or entry.reason or entry.status
    return ScoreView(describe(name), entry.scores.get(name), reason)


def view_record(index: int, entry: ReportEntry) -> RecordView:
    """Shape one entry; the index makes the anchors of the page unique."""
    # The first of two chunks with one id is the one that the claims mean.
    keys = {chunk.id: f"k{i}" for i, chunk in reversed(list(enumerate(entry.chunks)))}
    answer, claims = _view_text("r", entry.response, entry.response_claims, keys)
    truth, truths = _view_text("g", entry.ground_truth or "", entry.ground_truth_claims, keys)
    chunks = (_view_chunk(f"k{i}", chunk, claims, truths) for i, chunk in enumerate(entry.chunks))
    return RecordView(
        f"e{index}", entry, claims, truths, answer, truth, tuple(chunks), _grouped(entry)
    )


def _view_text(
    prefix: str, text: str, claims: Sequence[ReportClaim], keys: Mapping[str, str]
) -> tuple[tuple[SegmentView, ...], tuple[ClaimView, ...]]:
    segments = highlight(text, claims)
    last = {claim: place for place, segment in enumerate(segments) for claim in segment.claims}
    views = tuple(
        ClaimView(
            key=f"{prefix}{i}",
            number=i + 1,
            claim=claim,
            located=i in last,
            supports=_keys_of(claim.supported_by, keys),
            denies=_keys_of(claim.contradicted_by, keys),
        )
        for i, claim in enumerate(claims)
    )
    return tuple(
        SegmentView(
            segment.text,
            tuple(views[i] for i in segment.claims),
            tuple(views[i] for i in segment.claims if last[i] == place),
        )
        for place, segment in enumerate(segments)
    ), views


def _keys_of(ids: Iterable[str], keys: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(keys[chunk_id] for chunk_id in ids if chunk_id in keys)


def _view_chunk(
    key: str, chunk: Chunk, claims: Sequence[ClaimView], truths: Sequence[ClaimView]
) -> ChunkView:
    return ChunkView(
        key=key,
        chunk=chunk,
        supports=tuple(claim for claim in chain(claims, truths) if key in claim.supports),
        denies=tuple(claim for claim in chain(claims, truths) if key in claim.denies),
        relevant=any(key in truth.supports for truth in truths) if truths else None,
    )


def _grouped(entry: ReportEntry) -> dict[str, list[ScoreView]]:
    known = {**entry.scores, **entry.undefined}
    names = [n for n in GLOSSARY if n in known] + sorted(known.keys() - GLOSSARY.keys())
    scores = [view_score(entry, name) for name in names]
    groups = {group: [s for s in scores if s.metric.group == group] for group in GROUPS}
    return {group: members for group, members in groups.items() if members}
