"""The contract of the value check: a claim that is a bare value, against a text, by a question."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Final

from claimspan.judges.protocol import Cell
from claimspan.judges.values.asked import LOSS, Asked, asked_value, stated_scale
from claimspan.judges.values.comparison import EXACT, is_same_value
from claimspan.text.amounts import Amount, amounts
from claimspan.text.words import FUNCTION_WORDS, stem, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = ["VALUES_VERSION", "check_value", "is_bare_value", "telling_values"]

VALUES_VERSION: Final = "2"
"""Version of the value check's verdicts; part of the version of every judge that uses it."""

# Words that may accompany a bare value. A verb may not: "It was founded in 1999" is a claim about
# a founding. Nor may "over" or "under": 7 does not contradict "under 10".
_ACCOMPANYING: Final = frozenset(
    "a about and approximately around at by from in nearly no nr number of per rank roughly the "
    "to".split()
)
# "2/3", "10^6", "3 in 4" and "12:30" are one value in two numbers, and "> 5" is a bound: neither is
# read yet, and reading them as plain values would contradict what is right.
_NOT_READ: Final = re.compile(r"\d\s*[/:^]\s*\d|\d (?:in|to) \d|[<>≤≥]")
# A bare value is short; a longer claim is not even scanned.
_MAX_CHARACTERS: Final = 80

# Frequencies among the answers with a bare right answer to the questions of FinanceBench that
# `claimspan bench human-agreement` does not report, refusals apart, with two imagined cases added
# to either side: people call 84 of 86 answers right that have the value, and 4 of 45 that have
# other values only.
_VALUE_FOUND: Final = Verdict(label=Label.ENTAILED, entailed=0.95, neutral=0.03, contradicted=0.02)
_OTHER_VALUES: Final = Verdict(
    label=Label.CONTRADICTED, entailed=0.12, neutral=0.18, contradicted=0.7
)
_WORD: Final = re.compile(r"[^\W\d_]+")
# A page with as many numbers hardly fails to give the value by contradicting it.
_SHORT_WORDS: Final = 60
# Two thousand take 80 ms, in which an event loop stands still.
_MAX_AMOUNTS: Final = 2_000
_NEAR_CHARACTERS: Final = 160
# About as far as a verb stands from its amount: "declined, mostly in the fourth quarter, by 2 %".
_LOSS_CHARACTERS: Final = 60
_LOSS_NOUN: Final = re.compile(r"\s(?:net |operating )?(?:loss|decline|decrease|drop|deficit)\b")
_COMMON_WORDS: Final = 2
# A text that has three digits in this order hardly has them by chance.
_TELLING_DIGITS: Final = 3


def is_bare_value(claim: str) -> bool:
    """Tells whether a claim consists of values alone: ``$1,577 million``, ``-0.02``, ``(370)``.

    Args:
        claim: The text of the claim.
    """
    return bool(_bare_values(claim))


def check_value(claim: str, reference: str, question: str | None = None) -> Verdict | None:
    """Decides a claim that is a bare value, read as the answer to its question.

    Args:
        claim: The text of the claim.
        reference: The text to check it against.
        question: The question, whose scale ("in USD millions") and unit ("as a percentage") hold
            for numbers that are written without; None where unknown.

    Returns:
        Entailed where the text gives every value of the claim. Contradicted where it gives another
        value for what is asked. None where the claim is no bare value, or the text gives no value
        for it: then the check knows nothing, and a judge decides by other means.
    """
    claimed = _bare_values(claim)
    if not claimed:
        return None
    asked, scale = asked_value(question), stated_scale(reference)
    given = list(islice(amounts(reference), _MAX_AMOUNTS))
    if all(any(_gives(each, g, asked, reference, scale) for g in given) for each in claimed):
        return _VALUE_FOUND
    # Where the question says "in USD millions", a year of the text is none of its answers.
    kinds = {"value"} if asked.is_scaled else {each.kind for each in claimed}
    # A plain 5 is no other rank than "5th", and no other day than "March 5".
    if not kinds <= EXACT:
        kinds.add("value")
    others = [each for each in given if each.kind in kinds]
    return _OTHER_VALUES if others and _speaks_of(asked, reference, others) else None


def telling_values(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Iterable[Cell],
    question: str | None,
) -> dict[Cell, Verdict]:
    """Decides the cells that a judge which reads need not be asked for.

    A model reads better than this check whether ``5`` counts the right thing, or what happened in
    1999. It is worse at scales and roundings: those cells are decided here, and cost no call.

    Args:
        claims: The claims of the matrix.
        references: The references of the matrix.
        cells: Which claim against which reference.
        question: The question, where known.

    Returns:
        A verdict for each cell of a telling value: one with three digits, or with a scale, a
        currency or a unit, its own or the question's.
    """
    asked = asked_value(question)
    telling = {i for i, claim in enumerate(claims) if _is_telling(claim.text, asked)}
    found = (
        ((i, j), check_value(claims[i].text, references[j], question))
        for i, j in cells
        if i in telling
    )
    return {cell: verdict for cell, verdict in found if verdict is not None}


def _is_telling(claim: str, asked: Asked) -> bool:
    values = _bare_values(claim)
    return bool(values) and all(
        (each.kind == "value" or (each.kind == "year" and asked.is_scaled))
        and (
            bool(each.unit or each.scale or asked.is_scaled)
            or len(each.value.normalize().as_tuple().digits) >= _TELLING_DIGITS
        )
        for each in values
    )


def _bare_values(claim: str) -> list[Amount]:
    """The values of a claim that has nothing else; empty for other claims."""
    if len(claim) > _MAX_CHARACTERS or _NOT_READ.search(claim):
        return []
    found = [each for each in amounts(claim) if each.kind != "label"]
    covered = 0
    rest: list[str] = []
    for each in found:
        rest.append(claim[covered : each.start])
        covered = each.end
    words = re.findall(r"\w+", " ".join((*rest, claim[covered:])))
    return found if all(word.casefold() in _ACCOMPANYING for word in words) else []


def _gives(
    claimed: Amount, given: Amount, asked: Asked, reference: str, scale: Decimal | None
) -> bool:
    before = reference[max(given.start - _LOSS_CHARACTERS, 0) : given.start]
    # "A $370 million loss": behind a value only its own noun counts, not the rest of the sentence.
    noun = _LOSS_NOUN.match(reference, given.end)
    return is_same_value(
        claimed,
        given,
        asked,
        given_scale=scale,
        may_be_negative=claimed.value < 0 and bool(noun or LOSS.search(before)),
    )


def _speaks_of(asked: Asked, reference: str, given: Sequence[Amount]) -> bool:
    """Tells whether any of the amounts may be the text's own answer to the question."""
    if not asked.is_known or len(reference.split()) <= _SHORT_WORDS:
        return True
    wanted = {
        token.stem
        for token in tokenize(asked.text)
        if token.text.casefold() not in FUNCTION_WORDS and not token.stem[:1].isdigit()
    }
    named = [(m.start(), word) for m in _WORD.finditer(reference) if (word := stem(m[0])) in wanted]
    places = [place for place, _ in named]
    return any(
        len({word for _, word in named[_first_near(places, each) : _last_near(places, each)]})
        >= _COMMON_WORDS
        for each in given
    )


def _first_near(places: Sequence[int], amount: Amount) -> int:
    return bisect_left(places, amount.start - _NEAR_CHARACTERS)


def _last_near(places: Sequence[int], amount: Amount) -> int:
    return bisect_right(places, amount.end + _NEAR_CHARACTERS)
