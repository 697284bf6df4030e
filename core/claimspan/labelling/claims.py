"""Picks claims that are worth labelling, renders the page for people, and reads their labels.

Doubtful claims say most about where a threshold lies. Taken alone they would say that the judge is
worse than it is, so the others are drawn by chance, and each label is weighted by how many claims
it stands for. A label finds its claim by the key of its record and by a digest of its text: a file
of labels then holds no text of users, and can be kept beside code.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, cast

from claimspan.errors import ConfigError, FileError, LabelError
from claimspan.files.jsonl import unreadable
from claimspan.files.raw_rows import NoRow, SkippedRow, csv_rows
from claimspan.judges.calibrated import is_calibrated
from claimspan.meta_evaluation.agreement import LETTERS, HumanLabel
from claimspan.meta_evaluation.traffic import LabelledVerdict
from claimspan.report import ReportClaim, ReportEntry
from claimspan.report.page import html_environment
from claimspan.text.closest import SearchedSentences
from claimspan.text.percentages import percent_hint
from claimspan.text.visible import visible
from claimspan.verdicts import Label

__all__ = [
    "COLUMNS",
    "DOUBTFUL_SHARE",
    "MOST_CLAIMS",
    "ClaimLabel",
    "JoinedLabels",
    "PickedClaim",
    "Share",
    "claim_digest",
    "join_labels",
    "pick_claims",
    "read_claim_labels",
    "record_key",
    "render_label_page",
]

COLUMNS: Final = ("record", "claim_number", "claim_digest", "label", "share", "share_claims")


def record_key(entry: ReportEntry) -> str:
    """The trace id of a record, else its own id, else a digest of question and response."""
    return entry.trace_id or entry.record_id or claim_digest(f"{entry.query}\n{entry.response}")


def claim_digest(text: str) -> str:
    """The digest of a claim's text."""
    # 64 bits: among a million claims two alike are not to be expected.
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


MOST_CLAIMS: Final = 200
"""About an hour and a half of one person, and intervals of some six points to either side."""

DOUBTFUL_SHARE: Final = 0.5

Share = Literal["doubtful", "random"]


@dataclass(frozen=True, slots=True)
class PickedClaim:
    """A claim of a response that people are to label."""

    entry: ReportEntry
    number: int
    """Its place in the response, from 1."""

    claim: ReportClaim
    share: Share = "random"
    """Whether it was picked for its doubt or by chance."""

    share_claims: int = 0
    """Number of claims of the file out of which its share was picked."""

    @property
    def record(self) -> str:
        """The key of its record."""
        return record_key(self.entry)

    @property
    def digest(self) -> str:
        """The digest of its text."""
        return claim_digest(self.claim.text)


def pick_claims(
    entries: Sequence[ReportEntry],
    n: int = MOST_CLAIMS,
    *,
    doubtful: float = DOUBTFUL_SHARE,
    seed: int = 0,
) -> list[PickedClaim]:
    """Pick claims of responses that have a verdict by chunks, the same ones every time.

    A share of them, ``doubtful`` from 0 to 1, are those that the judge is least sure of. The claims
    of one record are together, in an order that does not tell why each was picked.

    Raises:
        ConfigError: ``doubtful`` is not between 0 and 1, or there is no claim to label.
    """
    if not 0 <= doubtful <= 1:
        hint = percent_hint(doubtful)
        raise ConfigError(f"doubtful is {doubtful!r}: give a share between 0 and 1{hint}")
    candidates = list(_candidates(entries))
    if not candidates:
        raise ConfigError(
            "no response has a claim with a verdict and a chunk: there is nothing to label; "
            "evaluate records with retrieved chunks first, with their content captured"
        )
    # By a digest, not a random generator: the order does not depend on that of the file.
    drawn = sorted(candidates, key=lambda each: _draw(seed, each.record, each.digest))
    unsure = [each for each in drawn if each.claim.confidence is not None]
    unsure.sort(key=lambda each: each.claim.confidence or 0.0)
    # All of them are labelled anyway if there are few.
    n_doubtful = round(n * doubtful) if len(candidates) > n else 0
    first = unsure[:n_doubtful]
    taken = {id(each) for each in first}
    rest = [each for each in drawn if id(each) not in taken]
    picked = [
        *(replace(each, share="doubtful", share_claims=len(first)) for each in first),
        *(replace(e, share="random", share_claims=len(rest)) for e in rest[: n - len(first)]),
    ]
    return sorted(picked, key=lambda each: (_draw(seed, each.record, ""), each.number))


def _candidates(entries: Sequence[ReportEntry]) -> Iterator[PickedClaim]:
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        # Without captured content the chunks are there, and say nothing.
        if not any(chunk.text.strip() for chunk in entry.chunks):
            continue
        for number, claim in enumerate(entry.response_claims, start=1):
            picked = PickedClaim(entry, number, claim)
            # One that an answer says twice is labelled once.
            if claim.label is not None and (picked.record, picked.digest) not in seen:
                seen.add((picked.record, picked.digest))
                yield picked


def _draw(seed: int, record: str, digest: str) -> bytes:
    return hashlib.sha256(f"{seed}|{record}|{digest}".encode("utf-8", "replace")).digest()


def render_label_page(picked: Sequence[PickedClaim], *, title: str = "Label claims") -> str:
    """Render one self-contained page. It makes no request and opens from a file.

    The page does not show what the judge said, which would lead people. Texts are data that the
    script puts into the page as text: markup in a chunk is shown and never runs.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    return (
        html_environment("labelling")
        .get_template("label.html.j2")
        .render(title=title, n=len(picked), data=_data(picked))
    )


def _data(picked: Sequence[PickedClaim]) -> dict[str, object]:
    records = {each.record: each.entry for each in picked}
    places = {record: place for place, record in enumerate(records)}
    searched = {
        record: [SearchedSentences(visible(chunk.text)) for chunk in entry.chunks]
        for record, entry in records.items()
    }

    keys = "\n".join(f"{each.record}|{each.number}|{each.digest}" for each in picked)
    return {
        # Under this name the browser keeps the labels: another choice of claims has another one.
        "id": claim_digest(keys),
        "columns": COLUMNS,
        "records": [
            {
                "question": visible(entry.query),
                "response": visible(entry.response),
                "chunks": [visible(chunk.text) for chunk in entry.chunks],
                "left_out": entry.chunks_left_out,
            }
            for entry in records.values()
        ],
        "claims": [
            {
                # Of the columns of the file, all but the label.
                "cells": [each.record, each.number, each.digest, each.share, each.share_claims],
                "place": places[each.record],
                "text": visible(each.claim.text),
                "sentence": visible(each.claim.sentence or ""),
                # Of each chunk the beginning and the end of its closest sentence, in code points.
                "closest": [one.closest(each.claim.text) for one in searched[each.record]],
            }
            for each in picked
        ],
    }


# --- the labels that people have given --------------------------------------------------------

_WANTED: Final = "CSV file of labels (claimspan label)"
_SPELLINGS: Final[Mapping[str, HumanLabel]] = {
    letter.lower(): letter for letter in (*LETTERS.values(), "NE")
}


@dataclass(frozen=True, slots=True)
class ClaimLabel:
    """A person's label for one claim."""

    line: int
    record: str
    """Trace id of the record, or its own id."""

    digest: str
    number: int | None
    """Place of the claim in the response, from 1; None if not given."""

    label: HumanLabel | None
    share: str = ""
    share_claims: int | None = None
    """Number of claims out of which its share was picked; None if not given."""


def read_claim_labels(path: str | Path) -> list[ClaimLabel]:
    """Read labels from a CSV file with a header.

    Columns: ``record`` (or ``trace_id``, ``record_id``), ``claim_digest`` (or ``claim``, its text),
    ``label`` (E, N, C, NE for not entailed, or U for unsure), and those of the page that may be
    absent: ``claim_number``, ``share``, ``share_claims``.

    Raises:
        FileError: The file cannot be read, lacks a column, holds no label, or has a row that is
            none; names the line.
    """
    path = Path(path)
    found: list[ClaimLabel] = []
    try:
        with path.open("rb") as file:
            for row in csv_rows(file, keep_empty=True):
                if isinstance(row, SkippedRow):
                    raise FileError(f"{str(path)!r} line {row.place}: {row.reason}")
                if not isinstance(row, NoRow):
                    cells = cast("Mapping[str, str]", row.value)
                    found.append(_label(cells, f"{str(path)!r} line {row.place}", row.place))
    except OSError as error:
        raise unreadable(path, error, wanted=_WANTED) from None
    first: dict[tuple[str, str, int | None], ClaimLabel] = {}
    for each in found:
        known = first.setdefault((each.record, each.digest, each.number), each)
        if known.label != each.label:  # which one counts is for people to say
            raise FileError(
                f"{str(path)!r} lines {known.line} and {each.line} label one claim differently: "
                "keep one of them"
            )
    if not any(each.label for each in found):
        raise FileError(f"{str(path)!r} holds no label: give a {_WANTED}")
    return found


def _label(cells: Mapping[str, str], place: str, line: int) -> ClaimLabel:
    names = ("record", "trace_id", "record_id")
    record = next((each for name in names if (each := cells.get(name, "").strip())), None)
    text = cells.get("claim", "")
    digest = cells.get("claim_digest", "").strip() or (claim_digest(text) if text else "")
    if record is None or not digest or "label" not in cells:
        raise FileError(
            f"{place} needs record (or trace_id, record_id), claim_digest (or claim, its text), "
            "and label: name these columns in the first line, and fill them in"
        )
    return ClaimLabel(
        line=line,
        record=record,
        digest=digest,
        number=_number(cells, "claim_number", place),
        label=_human(cells["label"], place),
        share=cells.get("share", "").strip(),
        share_claims=_number(cells, "share_claims", place),
    )


def _human(cell: str, place: str) -> HumanLabel | None:
    spelling = cell.strip().lower()
    if spelling in ("", "u", "unsure", "skip"):
        return None
    if spelling in _SPELLINGS:
        return _SPELLINGS[spelling]
    try:
        return LETTERS[Label.parse(spelling)]
    except LabelError:
        # Without the cell: where columns are mixed up it is a text of a user.
        raise FileError(
            f"{place} has an unknown label: use E, N, C, NE (not entailed), or U (unsure)"
        ) from None


def _number(cells: Mapping[str, str], column: str, place: str) -> int | None:
    cell = cells.get(column, "").strip()
    if not cell:
        return None
    if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell)):
        raise FileError(f"{place} has a {column} that is no number from 1 on")
    return int(cell)


# --- with their claims -------------------------------------------------------------------------

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class JoinedLabels:
    """The labels with the verdicts of the judge."""

    verdicts: Sequence[LabelledVerdict]
    """One for each claim that people labelled and the judge decided, at least one."""

    judge: str
    unsure: int
    """Claims that people saw and did not label."""

    undecided: int
    """Labelled claims that the judge left undecided."""


def join_labels(entries: Sequence[ReportEntry], labels: Sequence[ClaimLabel]) -> JoinedLabels:
    """Find the claim of each label.

    Raises:
        ConfigError: A label's claim is not among the records, they were judged by several judges or
            by a calibrated one, or the judge decided none of the claims.
    """
    known = _index(entries)
    lost = [each.line for each in labels if (each.record, each.digest) not in known]
    if lost:
        lines = ", ".join(map(str, lost[:_NAMED])) + (", ..." if len(lost) > _NAMED else "")
        raise ConfigError(
            f"{len(lost)} of {len(labels)} labels are of claims that are not in the traces (lines "
            f"{lines} of the labels): give the file that was labelled; evaluating it anew may "
            "have made other claims"
        )
    labelled: dict[tuple[str, str, int], tuple[ClaimLabel, PickedClaim]] = {}
    for each in labels:
        if each.label is not None:
            claims = known[each.record, each.digest]
            claim = next((one for one in claims if one.number == each.number), claims[0])
            labelled.setdefault((each.record, each.digest, claim.number), (each, claim))
    pairs = list(labelled.values())
    judge = _only_judge([found.entry for _, found in pairs])
    decided = [(each, found) for each, found in pairs if found.claim.label is not None]
    if not decided:
        raise ConfigError("the judge decided none of the labelled claims: there is nothing to say")
    return JoinedLabels(
        verdicts=_verdicts(decided),
        judge=judge,
        unsure=sum(each.label is None for each in labels),
        undecided=len(pairs) - len(decided),
    )


def _index(entries: Sequence[ReportEntry]) -> Mapping[tuple[str, str], list[PickedClaim]]:
    """Key of the record and digest of the claim to the claims with them, by either id."""
    found: dict[tuple[str, str], list[PickedClaim]] = {}
    for entry in entries:
        # A label of a person's own making may name the record by either of its ids.
        keys = {record_key(entry), entry.trace_id, entry.record_id or ""} - {""}
        for number, claim in enumerate(entry.response_claims, start=1):
            for key in keys:
                place = found.setdefault((key, claim_digest(claim.text)), [])
                place.append(PickedClaim(entry, number, claim))
    return found


def _only_judge(entries: Sequence[ReportEntry]) -> str:
    """The one judge of the records, which is not calibrated; else a ``ConfigError``."""
    judges = sorted({entry.judge for entry in entries if entry.judge})
    if len(judges) != 1:
        raise ConfigError(
            f"the labelled records name {', '.join(judges) or 'no judge'}: a calibration is of "
            "one judge; give records of one"
        )
    if is_calibrated(judges[0]):
        raise ConfigError(
            f"the records were judged by {judges[0]}: evaluate them with the judge itself, since "
            "one calibration on top of another would count its labels twice"
        )
    return judges[0]


def _verdicts(decided: Sequence[tuple[ClaimLabel, PickedClaim]]) -> list[LabelledVerdict]:
    in_share = Counter(label.share for label, _ in decided)
    verdicts: list[LabelledVerdict] = []
    for label, found in decided:
        judged = found.claim.label
        if label.label is None or judged is None:
            continue
        # People may stop early: those that they labelled stand for their whole share.
        share_claims = label.share_claims or in_share[label.share]
        verdicts.append(
            LabelledVerdict(
                record=found.record,
                human=label.label,
                judge=judged,
                entailed=found.claim.entailed,
                weight=share_claims / in_share[label.share],
            )
        )
    return verdicts
