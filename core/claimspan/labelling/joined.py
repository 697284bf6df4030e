"""Brings each label to the claim that it is of, with its verdict and its weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from claimspan.errors import ConfigError
from claimspan.judges.calibrated import is_calibrated
from claimspan.labelling.claim_labels import ClaimLabel
from claimspan.labelling.keys import claim_digest, record_key
from claimspan.meta_evaluation.traffic import LabelledVerdict
from claimspan.report import ReportClaim, ReportEntry

__all__ = ["JoinedLabels", "join_labels"]

_NAMED: Final = 5
"""Lines that a message names."""


@dataclass(frozen=True, slots=True)
class JoinedLabels:
    """The labels with the verdicts of the judge."""

    verdicts: Sequence[LabelledVerdict]
    """One for each claim that people labelled and the judge decided, at least one."""

    judge: str
    """Name of the judge."""

    unsure: int
    """Claims that people saw and did not label."""

    undecided: int
    """Labelled claims that the judge left undecided."""


class _Found(NamedTuple):
    number: int
    entry: ReportEntry
    claim: ReportClaim


def join_labels(entries: Sequence[ReportEntry], labels: Sequence[ClaimLabel]) -> JoinedLabels:
    """Find the claim of each label.

    Args:
        entries: The records that the labelled claims are from.
        labels: What people say.

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
    labelled: dict[tuple[str, str, int], ClaimLabel] = {}
    for each in labels:
        if each.label is not None:
            number = _claim(known, each).number
            labelled.setdefault((each.record, each.digest, number), each)
    pairs = [(each, _claim(known, each)) for each in labelled.values()]
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


def _index(entries: Sequence[ReportEntry]) -> Mapping[tuple[str, str], list[_Found]]:
    """Key of the record and digest of the claim to the claims with them, by either id."""
    found: dict[tuple[str, str], list[_Found]] = {}
    for entry in entries:
        # A label of a person's own making may name the record by either of its ids.
        keys = {record_key(entry), entry.trace_id, entry.record_id or ""} - {""}
        for number, claim in enumerate(entry.response_claims, start=1):
            for key in keys:
                place = found.setdefault((key, claim_digest(claim.text)), [])
                place.append(_Found(number, entry, claim))
    return found


def _claim(known: Mapping[tuple[str, str], list[_Found]], label: ClaimLabel) -> _Found:
    found = known[label.record, label.digest]
    return next((each for each in found if each.number == label.number), found[0])


def _only_judge(entries: Sequence[ReportEntry]) -> str:
    """The judge of the records.

    Raises:
        ConfigError: There are several, or it is a calibrated one.
    """
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


def _verdicts(decided: Sequence[tuple[ClaimLabel, _Found]]) -> list[LabelledVerdict]:
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
                record=record_key(found.entry),
                human=label.label,
                judge=judged,
                entailed=found.claim.entailed,
                weight=share_claims / in_share[label.share],
            )
        )
    return verdicts
