"""What words prove against a verdict of a judge that reads: one change in a copied sentence.

A small cross-encoder sees the same words and calls the claim entailed, though two names changed
places, "all" stands for "some", or a prefix denies the verb.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from claimspan.judges.lexical.cell_verdicts import VALUE_KINDS, any_conflict, unsupported_kinds
from claimspan.judges.lexical.conflicts import (
    NEAR_COPY_DETECTORS,
    ORDER_DETECTORS,
    find_conflicts,
)
from claimspan.judges.lexical.coverage import Corpus, Reference
from claimspan.judges.lexical.quantity_conflicts import ClaimedValues
from claimspan.judges.lexical.wording import Wording
from claimspan.judges.values import StatedValues, equal_values
from claimspan.text.words import tokenize
from claimspan.verdicts import Label, Verdict

__all__ = ["is_restated", "with_changes"]

# Kinds in which words are surer than a small model. Numbers and units are left to the value check,
# which knows equal ones; of "negation", "denial" and "entity" the model is the better judge.
_SURE_KINDS: Final = frozenset(
    {"agent", "degree", "generalisation", "opposite", "prefix", "missing name"}
    | ORDER_DETECTORS.keys()
    | NEAR_COPY_DETECTORS.keys()
) - {"replaced number", "replaced unit"}


def with_changes(
    verdict: Verdict, claim: str, reference: Reference, stated: StatedValues
) -> Verdict:
    """Returns a verdict by what one change in a copied sentence says against it.

    Args:
        verdict: A verdict with probabilities.
        claim: The text of the claim.
        reference: The reference; a passage, since an answer leaves out what its question says, so
            that its words are no copy of the claim's.
        stated: The values of the reference.

    Returns:
        The verdict itself where there is no such change; else one with less p(entailed), the rest
        of which goes to contradicted, or to neutral where the claim only says more.
    """
    if verdict.label is not Label.ENTAILED or verdict.entailed is None:
        return verdict
    tokens = Wording(tokenize(claim, reference.language))
    support = reference.support(Corpus([reference]).weights(tokens))
    conflicts = [each for each in find_conflicts(tokens, support) if each.kind in _SURE_KINDS]
    same: Set[str] = frozenset()
    if any(each.kind in VALUE_KINDS for each in conflicts):  # "Celsius" is no other name than "C"
        same = ClaimedValues(StatedValues(claim)).equal_stems(stated) - support.sentence.stems
    kinds = {
        each.kind
        for each in conflicts
        if not (each.kind in VALUE_KINDS and each.claim_stem in same)
    }
    if not kinds:
        return verdict
    entailed = verdict.entailed * (1 - any_conflict(kinds))
    denied = (verdict.entailed - entailed) if kinds - unsupported_kinds() else 0.0
    contradicted = (verdict.contradicted or 0.0) + denied
    neutral = 1 - entailed - contradicted
    by_label = {
        Label.ENTAILED: entailed,
        Label.NEUTRAL: neutral,
        Label.CONTRADICTED: contradicted,
    }
    return Verdict(
        label=max(by_label, key=by_label.__getitem__),
        entailed=entailed,
        neutral=neutral,
        contradicted=contradicted,
    )


def is_restated(claim: str, reference: str, stated: StatedValues) -> bool:
    """Tells whether a claim gives a value of the reference in another form: ``500 mg``, ``0.5 g``.

    Args:
        claim: The text of the claim.
        reference: The text of the reference.
        stated: Its values.
    """
    lowered = reference.casefold()
    places = equal_values(claim, stated)
    return any(claim[start:end].casefold() not in lowered for start, end in places)
