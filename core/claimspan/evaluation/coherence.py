"""Makes the verdicts of one record agree if logic forces it.

A judge decides cell by cell, so its verdicts may not all be true: that a chunk entails a fact and
also a claim which that fact denies. Of verdicts that cannot hold together the weakest gives way, by
its confidence. That is done to a judge's own verdicts only, never to labels that others recorded.
"""

from __future__ import annotations

from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

__all__ = ["coherent"]

_Rows = list[list[Verdict | None]]


def coherent(matrices: VerdictMatrices) -> tuple[VerdictMatrices, int]:
    """Return verdicts that can hold together, and how many were changed for it.

    Two rules are forced:

    * A chunk that entails what the ground truth says entails no claim that the ground truth
      contradicts. What it says is the facts that the response contradicts, or all of them.
    * Chunks read together do not entail what one of them contradicts and none entails.

    Args:
        matrices: The verdicts of a record, as its judge gave them.
    """
    rows = {
        name: [list(row) for row in matrix.rows] for name, matrix in matrices if matrix is not None
    }
    changed = _by_truth(rows) + _together(rows)
    if not changed:
        return matrices, 0
    return VerdictMatrices(
        **{
            name: VerdictMatrix.of(found, matrix.n_references)
            for name, found in rows.items()
            if (matrix := getattr(matrices, name)) is not None
        }
    ), changed


def _by_truth(rows: dict[str, _Rows]) -> int:
    claims, facts = rows.get("response_vs_chunks"), rows.get("ground_truth_vs_chunks")
    by_truth, answered = rows.get("response_vs_ground_truth"), rows.get("ground_truth_vs_response")
    if not (claims and facts and by_truth):
        return 0
    at_stake = [i for i, row in enumerate(answered or ()) if _is(row[0], Label.CONTRADICTED)]
    changed = 0
    for row, by in zip(claims, by_truth, strict=True):
        if not _is(by[0], Label.CONTRADICTED):
            continue
        for chunk, cell in enumerate(row):
            column = [facts[i][chunk] for i in at_stake or range(len(facts))]
            if not _is(cell, Label.ENTAILED) or not all(_is(c, Label.ENTAILED) for c in column):
                continue
            changed += 1
            weakest = min((cell, by[0], *column), key=_strength)
            if weakest is cell:
                row[chunk] = _as(cell, Label.CONTRADICTED)
            elif weakest is by[0]:
                by[0] = _as(by[0], Label.NEUTRAL)
                break
            else:
                place = (at_stake or range(len(facts)))[column.index(weakest)]
                facts[place][chunk] = _as(weakest, Label.NEUTRAL)
    return changed


def _together(rows: dict[str, _Rows]) -> int:
    claims, context = rows.get("response_vs_chunks"), rows.get("response_vs_context")
    changed = 0
    for row, together in zip(claims or (), context or (), strict=bool(claims and context)):
        deny = [i for i, cell in enumerate(row) if _is(cell, Label.CONTRADICTED)]
        if not deny or not _is(together[0], Label.ENTAILED):
            continue
        if any(_is(cell, Label.ENTAILED) for cell in row):
            continue
        changed += 1
        strongest = max((row[i] for i in deny), key=_strength)
        if _strength(together[0]) <= _strength(strongest):
            together[0] = _as(together[0], Label.CONTRADICTED)
            continue
        for i in deny:
            row[i] = _as(row[i], Label.NEUTRAL)
    return changed


def _is(verdict: Verdict | None, label: Label) -> bool:
    return verdict is not None and verdict.label is label


def _strength(verdict: Verdict | None) -> float:
    # A label without a probability is all that its judge says: it is taken for sure.
    confidence = None if verdict is None else verdict.confidence
    return 1.0 if confidence is None else confidence


def _as(verdict: Verdict | None, label: Label) -> Verdict:
    """The verdict with another label, to which the probability of the one that cannot be goes."""
    if verdict is None or verdict.confidence is None:
        return Verdict(label=label)
    shares = {each: getattr(verdict, each.value) for each in Label}
    # Three rounded shares may have a sum of a little more than 1.
    shares[label] = min(1.0, shares[label] + shares[verdict.label])
    shares[verdict.label] = 0.0
    return Verdict(label=label, **{each.value: share for each, share in shares.items()})
