"""Reads the labels that people have given to claims, and brings each to its claim and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from claimspan.errors import ConfigError, FileError, LabelError
from claimspan.files.jsonl import unreadable
from claimspan.files.raw_rows import NoRow, SkippedRow, csv_rows
from claimspan.judges.calibrated import is_calibrated
from claimspan.labelling.page import PickedClaim, claim_digest, record_key
from claimspan.meta_evaluation.agreement import LETTERS, HumanLabel
from claimspan.meta_evaluation.traffic import LabelledVerdict
from claimspan.report import ReportEntry
from claimspan.verdicts import Label

__all__ = ["ClaimLabel", "JoinedLabels", "join_labels", "read_claim_labels"]

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
