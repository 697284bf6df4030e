"""Reads the labels that people have given to claims: a CSV file, of the page or of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from claimspan.errors import FileError, LabelError
from claimspan.files.jsonl import unreadable
from claimspan.files.raw_rows import NoRow, SkippedRow, csv_rows
from claimspan.labelling.keys import claim_digest
from claimspan.meta_evaluation.labelled import HumanLabel
from claimspan.verdicts import Label

__all__ = ["COLUMNS", "ClaimLabel", "read_claim_labels"]

COLUMNS: Final = ("record", "claim_number", "claim_digest", "label", "share", "share_claims")
"""Columns of the file that the page writes."""

_WANTED: Final = "CSV file of labels (claimspan label)"
_RECORD: Final = ("record", "trace_id", "record_id")
_UNSURE: Final = frozenset({"", "u", "unsure", "skip"})
_LETTERS: Final[Mapping[str, HumanLabel]] = {"e": "E", "n": "N", "c": "C", "ne": "NE"}
_OF_LABEL: Final[Mapping[Label, HumanLabel]] = {
    Label.ENTAILED: "E",
    Label.NEUTRAL: "N",
    Label.CONTRADICTED: "C",
}


@dataclass(frozen=True, slots=True)
class ClaimLabel:
    """What a person says of one claim."""

    line: int
    """Where it stands in the file."""

    record: str
    """Trace id of the record, or its own id."""

    digest: str
    """Digest of the claim's text."""

    number: int | None
    """Place of the claim in the response, from 1; None where not given."""

    label: HumanLabel | None
    """None where the person was unsure."""

    share: str = ""
    """Why the claim was picked; empty where not given."""

    share_claims: int | None = None
    """Number of claims out of which its share was picked; None where not given."""


def read_claim_labels(path: str | Path) -> list[ClaimLabel]:
    """Read labels.

    Args:
        path: CSV with a header. Columns: ``record`` (or ``trace_id``, ``record_id``),
            ``claim_digest`` (or ``claim``, its text), ``label`` (E, N, C, NE for not entailed, or U
            for unsure), and those of the page that may be absent: ``claim_number``, ``share``,
            ``share_claims``.

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
    _refuse_conflicts(found, path)
    if not any(each.label for each in found):
        raise FileError(f"{str(path)!r} holds no label: give a {_WANTED}")
    return found


def _label(cells: Mapping[str, str], place: str, line: int) -> ClaimLabel:
    record = next((cells[name].strip() for name in _RECORD if cells.get(name, "").strip()), None)
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
    if spelling in _UNSURE:
        return None
    if spelling in _LETTERS:
        return _LETTERS[spelling]
    try:
        return _OF_LABEL[Label.parse(spelling)]
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


def _refuse_conflicts(labels: list[ClaimLabel], path: Path) -> None:
    """Refuse a claim with two labels: which one counts is for people to say.

    Raises:
        FileError: There is one.
    """
    first: dict[tuple[str, str, int | None], ClaimLabel] = {}
    for each in labels:
        known = first.setdefault((each.record, each.digest, each.number), each)
        if known.label != each.label:
            raise FileError(
                f"{str(path)!r} lines {known.line} and {each.line} label one claim differently: "
                "keep one of them"
            )
