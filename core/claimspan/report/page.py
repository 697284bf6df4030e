"""Renders entries as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import resources
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from claimspan.comparison.compare import Comparison
from claimspan.errors import MissingExtraError
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import GOOD, LOW, NEUTRAL, UNKNOWN, Assessment
from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, METRICS
from claimspan.progress import progress_bar
from claimspan.records import Chunk
from claimspan.report.entries import ReportClaim, ReportEntry, ReportSystem, TraceLinks
from claimspan.report.figures import (
    Metric,
    MetricSummary,
    SliceKey,
    compared_metrics,
    describe,
    slice_keys,
    slice_value,
    slices_of,
    summarise,
)
from claimspan.text.closest import SearchedSentences
from claimspan.text.visible import one_line, visible
from claimspan.verdicts import Claim, Label

if TYPE_CHECKING:
    import jinja2

__all__ = [
    "CONFLICTING",
    "LABELS",
    "PAGE_SIZE",
    "UNDECIDED",
    "ChunkView",
    "ClaimView",
    "Passage",
    "Question",
    "RecordView",
    "SegmentView",
    "html_environment",
    "index_of",
    "questions_of",
    "render_comparison",
    "render_report",
    "response_label",
    "row_metrics",
    "side_by_side",
    "view_record",
    "worst_first",
]

# --- one record: everything that is shown of it is decided here, and the template only prints ----

UNDECIDED: Final = "undecided"

CONFLICTING: Final = "conflicting"
"""The word for a claim of the response that one chunk entails and another contradicts."""

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
    label: str
    located: bool
    supported_by: tuple[str, ...]
    contradicted_by: tuple[str, ...]


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
            label=response_label(claim) if prefix == "r" else claim.label or UNDECIDED,
            located=spans.get(i) is not None,
            supported_by=tuple(keys[each] for each in claim.supported_by if each in keys),
            contradicted_by=tuple(keys[each] for each in claim.contradicted_by if each in keys),
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
    """Look behind a place first, and in the whole text if nothing is found there."""
    for begin in (start, 0):
        if sentence := text.find(claim.sentence or "", begin):
            return text.find(claim.text, *sentence) or sentence
    return text.find(claim.text, start) or text.find(claim.text, 0)


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


# --- the page -----------------------------------------------------------------------------------

_FIRST_COLUMNS: Final = ("faithfulness", "f1")
"""What says most of an answer: of its use of the chunks, and of the whole. The user's own metrics
come next."""

_MORE_COLUMNS: Final = ("claim_recall", "contradicted_by_chunks")
"""The next ones after these; then the others in their order."""

_ROW_LIMIT: Final = 4

_FIRST_LINE: Final = 240
"""Characters of an answer that its row shows, if it has room for them."""

_CLAIM_LABELS: Final = (Label.ENTAILED, CONFLICTING, Label.NEUTRAL, Label.CONTRADICTED, UNDECIDED)

_BLAMED: Final = {
    Part.RETRIEVER: "Retriever",
    Part.GENERATOR: "Generator",
    Part.BOTH: "Retriever and generator",
}

_WORDS: Final = {
    **{part: words.lower() for part, words in _BLAMED.items()},
    Part.UNKNOWN: "not known",
}


def render_report(
    entries: Sequence[ReportEntry],
    *,
    title: str = "RAG evaluation",
    links: TraceLinks | None = None,
    progress: bool | None = False,
) -> str:
    """Render one self-contained page. It makes no request and opens offline.

    All content of a record is escaped: markup in a chunk is shown as text and never runs, and
    characters that would reorder the page or command a terminal are shown by their code.

    Args:
        entries: The records, in any order; the page shows those that are low first.
        title: The heading of the page.
        links: Links each record to its trace; None shows the id alone.
        progress: Show a progress bar; None shows it on a terminal.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    return _render([ReportSystem("", tuple(entries))], None, title, links, progress)


def render_comparison(
    systems: Sequence[ReportSystem],
    comparison: Comparison,
    *,
    title: str = "RAG systems compared",
    links: TraceLinks | None = None,
    progress: bool | None = False,
) -> str:
    """Render one page on several systems, with their answers to each question side by side.

    The systems are in the order of the comparison; the rest is as in ``render_report``.
    """
    return _render(systems, comparison, title, links, progress)


def _main_metric(summaries: Sequence[MetricSummary]) -> Metric:
    """The metric that stands for an answer as a whole: f1, else faithfulness."""
    found = {summary.metric.name for summary in summaries}
    return describe(next((n for n in ("f1", *DEFAULT_METRICS) if n in found), "faithfulness"))


def row_metrics(summaries: Sequence[MetricSummary]) -> list[Metric]:
    """The metrics that have a column in the list of records and in tables of slices."""
    found = {summary.metric.name: summary.metric for summary in summaries}
    own = [name for name in found if name not in CATALOGUE]
    names = dict.fromkeys((*_FIRST_COLUMNS, *own, *_MORE_COLUMNS, *found))
    return [found[name] for name in names if name in found][:_ROW_LIMIT]


def _render(
    systems: Sequence[ReportSystem],
    comparison: Comparison | None,
    title: str,
    links: TraceLinks | None,
    progress: bool | None,
) -> str:
    environment = html_environment("report")
    entries = [entry for system in systems for entry in system.entries]
    summaries = summarise(entries)
    metrics = [summary.metric for summary in summaries]
    main, columns = _main_metric(summaries), row_metrics(summaries)
    questions = questions_of(systems)
    # Macros see nothing of the page's own values.
    names = {"explained": CATALOGUE, "part_names": _BLAMED}
    macros = environment.get_template("record.html.j2", globals=names).module
    row: Callable[..., str] = getattr(macros, "versus" if comparison else "single")

    def rows(advance: Callable[[], None]) -> Iterator[str]:
        """The HTML of each row, made when it is asked for: all of them would take gigabytes."""
        for place, question in enumerate(questions):
            key = f"e{place}"
            if comparison:
                pairs = zip(systems, question.entries, strict=True)
                answers = [
                    (system.name, view_record(f"{key}s{number}", entry, links) if entry else None)
                    for number, (system, entry) in enumerate(pairs)
                ]
                yield row(key, question.query, answers, main)
            else:
                yield row(key, view_record(key, question.answered[0], links), columns)
            advance()

    with progress_bar("rendering", total=len(questions), show=progress) as advance:
        items = rows(advance)
        # In this order: the items are one iterator, and the blocks hold what is left of it.
        first_page, blocks = list(islice(items, PAGE_SIZE)), list(_compressed(items))
    # What is measured by default and the user's own stand before the others.
    tiles: dict[bool, list[MetricSummary]] = {True: [], False: []}
    for summary in summaries:
        name = summary.metric.name
        tiles[name in DEFAULT_METRICS or name not in CATALOGUE].append(summary)
    keys, wanted = slice_keys(entries, len(systems)), [metric.name for metric in columns]
    slices = [
        (key, [(system.name, slices_of(system.entries, key, wanted)) for system in systems])
        for key in keys
    ]
    claims = Counter(response_label(c) for e in entries for c in e.response_claims)
    judged = Counter(entry.judgement.label for entry in entries)
    blamed = dict(zip(_WORDS, _counted(entries)[1], strict=True))
    started = [entry.started for entry in entries if entry.started]
    defined = {name for entry in entries for name in (*entry.scores, *entry.undefined)}
    return environment.get_template("report.html.j2").render(
        title=title,
        first_page=first_page,
        blocks=blocks,
        n_rows=len(questions),
        n_records=len(entries),
        systems=[system.name for system in systems],
        metrics=metrics,
        main=main,
        columns=[] if comparison else columns,
        main_tiles=tiles[True],
        other_tiles=tiles[False],
        # Ours that a record has or lacks: the reason of an undefined one links there as well.
        glossary=[describe(name) for name in CATALOGUE if name in defined],
        slices=slices,
        slice_columns=columns,
        has_intervals=any(
            mean.low is not None
            for _, tables in slices
            for _, table in tables
            for each in table
            for mean in each.scores.values()
        ),
        index=index_of(questions, metrics, keys),
        statuses=Counter(entry.status for entry in entries).most_common(),
        judges=sorted({entry.judge for entry in entries if entry.judge}),
        judge_calls=sum(entry.judge_calls for entry in entries),
        # Records whose price is not known are left out: their number of calls is shown all the
        # same. Not fsum, which raises where a damaged file has costs beyond any float.
        cost=_cost(sum(entry.cost_usd for entry in entries if entry.cost_usd is not None)),
        first=min(started, default=None),
        last=max(started, default=None),
        labels=[(label, claims[label]) for label in _CLAIM_LABELS if claims[label]],
        n_claims=claims.total(),
        verdicts=[(label, judged[label]) for label in LABELS if judged[label]],
        parts=[(part, _WORDS[part], n) for part, n in blamed.items() if n],
        n_unsure=sum(bool(entry.judgement.doubts) for entry in entries),
        part_words=_WORDS,
        part_rows=[(system.name, *_counted(system.entries)) for system in systems],
        compared=compared_metrics(comparison) if comparison else [],
        notes=comparison.notes if comparison else (),
    )


def html_environment(room: str) -> jinja2.Environment:
    """Return what renders the templates of a room of claimspan.

    Everything is escaped, and characters of records are shown by their code if they would reorder
    what stands by them. ``file`` reads a file of a room, ``csp_hash`` is what a Content-Security-
    Policy admits a script by: markup in a chunk could not run even if it were not escaped.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", "cli") from None

    def printed(value: object) -> object:
        # Markup is ours: macros print their own values through here, script and style are files.
        # It is a subclass of str, as labels are, which are plain words: neither needs a look.
        return visible(value) if type(value) is str else value

    def plain(value: JsonValue) -> str:
        """A value of metadata: a text as it is, any other one as the JSON that it was."""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def file(path: str) -> str:
        return resources.files("claimspan").joinpath(path).read_text("utf-8")

    def csp_hash(script: str) -> str:
        return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("claimspan", room),
        # Jinja's default is off for templates whose name ends in .j2.
        autoescape=True,
        finalize=printed,
        undefined=jinja2.StrictUndefined,  # a misspelt name would print nothing
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    environment.filters["first_line"] = partial(one_line, limit=_FIRST_LINE)
    environment.filters["file"] = file
    environment.filters["csp_hash"] = csp_hash
    return environment


def _compressed(items: Iterator[str]) -> Iterator[str]:
    """Return blocks of HTML, each of 50 records: a JSON list, compressed by gzip, in base 64.

    They become elements when the reader pages to them, so that ten thousand records open as fast as
    fifty. Base 64 has no character that means anything in HTML.
    """
    # One block is in memory at a time: the HTML of 10,000 records is half a gigabyte.
    while block := list(islice(items, PAGE_SIZE)):
        # Without the time that gzip writes, equal records give equal pages. Level 9 takes twice the
        # time for one hundredth of the size.
        packed = gzip.compress(json.dumps(block).encode(), 6, mtime=0)
        yield base64.b64encode(packed).decode()


def _cost(dollars: float) -> str:
    """A cost as the page prints it; empty for judges that cost nothing, as local ones do."""
    if dollars <= 0:
        return ""
    # Four decimals: a single call of a small model costs some hundredths of a cent.
    if dollars < 1:
        return f"${dollars:.4f}" if dollars >= 0.0001 else "less than $0.0001"
    return f"${dollars:,.2f}"


def _counted(entries: Sequence[ReportEntry]) -> tuple[int, list[int]]:
    """Number of low records, and of those of each part in the order of ``_WORDS``."""
    counts = Counter(entry.judgement.part for entry in entries if entry.judgement.label == LOW)
    return counts.total(), [counts[part] for part in _WORDS]


# Some 11,000 elements with records of four chunks, which a phone still scrolls without a stop.
PAGE_SIZE: Final = 50
"""Records that a page shows at once, and records in a block."""

LABELS: Final = (LOW, UNKNOWN, GOOD)


@dataclass(frozen=True, slots=True)
class Question:
    """One question with the record of each system."""

    entries: tuple[ReportEntry | None, ...]
    """One a system, in their order; None if the system was not asked. At least one is there."""

    @property
    def answered(self) -> list[ReportEntry]:
        """The records that are there."""
        return [entry for entry in self.entries if entry]

    @property
    def query(self) -> str:
        """The question."""
        return self.answered[0].query


def questions_of(systems: Sequence[ReportSystem]) -> list[Question]:
    """The questions of one system, the worst first, or of several, those that differ most first."""
    if len(systems) == 1:
        return worst_first(systems[0].entries)
    # One metric for all systems, found over all of them: one may lack ground truths.
    entries = [entry for system in systems for entry in system.entries]
    return side_by_side(systems, _main_metric(summarise(entries)).name)


def worst_first(entries: Sequence[ReportEntry]) -> list[Question]:
    """Return the questions of one system, in the order of their judgements.

    Low records come first, then unknown and good ones. Of low records those come first whose low
    score tells most; then those whose scores are worst.
    """
    return [Question((entry,)) for entry in sorted(entries, key=_badness)]


def side_by_side(systems: Sequence[ReportSystem], metric: str) -> list[Question]:
    """Pair the records of several systems by their ids, or by their queries.

    Questions whose scores differ most come first; last those that one system alone can be scored
    in.
    """
    tables = [dict(_keyed(system.entries)) for system in systems]
    keys = dict.fromkeys(key for table in tables for key in table)
    questions = [Question(tuple(table.get(key) for table in tables)) for key in keys]

    def sameness(question: Question) -> float:
        values = [entry.scores[metric] for entry in question.answered if metric in entry.scores]
        # More than any difference, 0 included: with one score there is nothing to compare.
        return min(values) - max(values) if len(values) > 1 else 1.0

    # The sort is stable: questions that differ equally stay in the order of the first system.
    return sorted(questions, key=sameness)


def index_of(
    questions: Sequence[Question], metrics: Sequence[Metric], keys: Sequence[SliceKey]
) -> dict[str, object]:
    """What the script sorts and filters by: JSON with a list a column, half as long as with names.

    Of several systems the worst score counts, the slowest answer and the least sure label.
    """
    rows = [question.answered for question in questions]
    return {
        "size": PAGE_SIZE,
        "metrics": [visible(metric.name) for metric in metrics],
        "scores": [[_rounded(_worst(row, metric)) for metric in metrics] for row in rows],
        # As the page shows them: the script compares these with what the reader chooses.
        "statuses": [_listed(visible(entry.status) for entry in row) for row in rows],
        "judged": [_listed(entry.judgement.label for entry in row) for row in rows],
        "labels": [
            _listed(response_label(c) for e in row for c in e.response_claims) for row in rows
        ],
        "parts": [
            _listed(e.judgement.part for e in row if e.judgement.label == LOW) for row in rows
        ],
        "started": [
            min((e.started.timestamp() for e in row if e.started), default=None) for row in rows
        ],
        # Milliseconds: traces have nanoseconds, which would be most of the index.
        "seconds": [round(max(entry.seconds for entry in row), 3) for row in rows],
        "values": [[_place(row, key) for key in keys] for row in rows],
        "confidences": [
            _rounded(min((c for e in row if (c := e.least_confidence) is not None), default=None))
            for row in rows
        ],
    }


def _badness(entry: ReportEntry) -> tuple[int, int, float]:
    """A sort key that is the lowest for the record that a reader should look at first."""
    label, low, scores = entry.judgement.label, entry.judgement.low[:1], entry.assessments
    # The score that makes it low; else all that could have. The mean of all would hide that score.
    telling = low or [each for each in scores if each.label != NEUTRAL] or scores
    places = [METRICS.index(each.name) for each in low if each.name in METRICS]
    values = [
        1 - each.value if describe(each.name, entry.lower_is_better).lower_is_better else each.value
        for each in telling
    ]
    mean = sum(values) / len(values) if values else math.inf
    return LABELS.index(label), next(iter(places), len(METRICS)), mean


def _keyed(entries: Sequence[ReportEntry]) -> Iterator[tuple[tuple[str, int], ReportEntry]]:
    """The entries by key and occurrence: a question may be asked more than once."""
    seen = Counter[str]()
    for entry in entries:
        seen[entry.key] += 1
        yield (entry.key, seen[entry.key]), entry


def _worst(entries: Sequence[ReportEntry], metric: Metric) -> float | None:
    values = [entry.scores[metric.name] for entry in entries if metric.name in entry.scores]
    return (max if metric.lower_is_better else min)(values, default=None)


def _place(entries: Sequence[ReportEntry], key: SliceKey) -> int | None:
    # Metadata belongs to the question, but one system may lack it: its traces did not record any.
    values = (slice_value(entry.metadata.get(key.name)) for entry in entries)
    return next((key.values.index(value) for value in values if value in key.values), None)


def _listed(values: Iterable[str]) -> list[str]:
    # A set would give another page for the same records each time.
    return list(dict.fromkeys(values))


def _rounded(value: float | None) -> float | None:
    # The page shows two decimals; two more keep the order of scores that look alike.
    return None if value is None else round(value, 4)
