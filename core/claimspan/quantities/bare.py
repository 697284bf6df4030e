"""The contract of the value check: a claim that is a bare value, against a text, by a question."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from claimspan.quantities.amounts import BOUND_WORDS, HEDGE_WORDS, Amount
from claimspan.quantities.dates import ClockTime, Date
from claimspan.quantities.reading import Values, read_values
from claimspan.quantities.relations import (
    EXACT,
    LOSS,
    Asked,
    Item,
    Relation,
    amount_relation,
    asked_value,
    date_relation,
    is_counted,
    is_same_value,
    stated_scale,
    time_relation,
    year_date,
)
from claimspan.quantities.stated import StatedValues
from claimspan.text.words import FUNCTION_WORDS, stem, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = [
    "VALUES_VERSION",
    "check_value",
    "is_bare_value",
    "telling_values",
]

VALUES_VERSION: Final = "6"
"""Version of the value check's verdicts; part of the version of every judge that uses it."""

# Words that may accompany a bare value. A verb may not: "It was founded in 1999" is a claim about
# a founding.
_ACCOMPANYING: Final = (
    frozenset(
        "a and at between by from in nearly no nr number of per rank the to on am um ob od do med "
        "zwischen entre und et in le la im il the".split()
    )
    | BOUND_WORDS
    | HEDGE_WORDS
)
# "10^6" and "3:1" are one value in two numbers that nothing here reads.
_NOT_READ: Final = re.compile(r"[/:^]")
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
_NEAR_CHARACTERS: Final = 160
# About as far as a verb stands from its amount: "declined, mostly in the fourth quarter, by 2 %".
_LOSS_CHARACTERS: Final = 60
_LOSS_NOUN: Final = re.compile(r"\s(?:net |operating )?(?:loss|decline|decrease|drop|deficit)\b")
_COMMON_WORDS: Final = 2
# A text that has three digits in this order hardly has them by chance.
_TELLING_DIGITS: Final = 3
# What a text gives outweighs what it leaves open, and both what it has for something else.
_NEAREST: Final[tuple[Relation, ...]] = ("same", "open", "other")


def is_bare_value(claim: str | StatedValues) -> bool:
    """Tells whether a claim consists of values alone: ``$1,577 million``, ``-0.02``, ``(370)``."""
    return bool(_bare_values(StatedValues(claim) if isinstance(claim, str) else claim))


def check_value(claim: str, reference: str, question: str | None = None) -> Verdict | None:
    """Decides a claim that is a bare value, read as the answer to its question.

    Args:
        claim: The text of the claim.
        reference: The text to check it against.
        question: The question, whose scale ("in USD millions") and unit ("as a percentage") hold
            for numbers that are written without; None if unknown.

    Returns:
        Entailed if the text gives every value of the claim. Contradicted if it gives another
        value for what is asked. None if the claim is no bare value, or the text gives no value
        for it: then the check knows nothing, and a judge decides by other means.
    """
    claimed = _bare_values(StatedValues(claim))
    if not claimed:
        return None
    comparison = _Comparison(reference, asked_value(question))
    relations = [comparison.relation(each) for each in _items(claimed)]
    if all(relation == "same" for relation in relations):
        return _VALUE_FOUND
    if "open" in relations:
        return None
    others = list(comparison.others(claimed))
    is_other = others and _speaks_of(comparison.asked, reference, others)
    return _OTHER_VALUES if is_other else None


def telling_values(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Iterable[tuple[int, int]],
    question: str | None,
) -> dict[tuple[int, int], Verdict]:
    """Decides the cells that a judge which reads need not be asked for.

    A model reads better than this check whether ``5`` counts the right thing, or what happened in
    1999. It is worse at scales and roundings: those cells are decided here, and cost no call.

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
    values = _bare_values(StatedValues(claim))
    if values.dates or values.times:
        return False
    return bool(values) and all(
        (each.kind == "value" or (each.kind == "year" and asked.is_scaled))
        and (
            bool(each.unit or each.scale or asked.is_scaled)
            or len(each.value.normalize().as_tuple().digits) >= _TELLING_DIGITS
        )
        for each in values.amounts
    )


def _bare_values(claim: StatedValues) -> Values:
    """The values of a claim that has nothing else; empty for other claims."""
    if len(claim.text) > _MAX_CHARACTERS:
        return Values()
    values = claim.values
    found = values._replace(amounts=[a for a in values.amounts if a.kind != "label"])
    covered = 0
    rest: list[str] = []
    for each in sorted(_items(found), key=lambda each: each.start):
        rest.append(claim.text[covered : each.start])
        covered = max(covered, each.end)
    beside = " ".join((*rest, claim.text[covered:]))
    words = re.findall(r"\w+", beside)
    is_bare = all(word.casefold() in _ACCOMPANYING for word in words)
    return found if is_bare and not _NOT_READ.search(beside) else Values()


def _items(values: Values) -> list[Item]:
    return [*values.amounts, *values.dates, *values.times]


# The same references come with every claim of a record.
@lru_cache(maxsize=16)
def _values_of(reference: str) -> Values:
    return read_values(reference)


class _Comparison:
    """A text, and its values, by a question."""

    def __init__(self, reference: str, asked: Asked) -> None:
        self.asked = asked
        self._reference = reference
        self._scale = stated_scale(reference)
        self._given = _values_of(reference)
        years = [year_date(each) for each in self._given.amounts if each.kind == "year"]
        self._dates = [*self._given.dates, *years]

    def relation(self, claimed: Item) -> Relation:
        """How the text stands to one value: the nearest relation that any of its values has."""
        relations = set(self._relations(claimed))
        for nearest in _NEAREST:
            if nearest in relations:
                return nearest
        return "apart"

    def others(self, claimed: Values) -> Iterator[Item]:
        """Yields the values of the text that answer the question otherwise than the claim does."""
        # Where the question says "in USD millions", a year of the text is none of its answers.
        is_scaled = self.asked.is_scaled
        kinds = {"value"} if is_scaled else {each.kind for each in claimed.amounts}
        # A plain 5 is no other rank than "5th", and no other day than "March 5".
        if not kinds <= EXACT:
            kinds.add("value")
        has_unit = any(each.unit for each in claimed.amounts)
        for amount in self._given.amounts:
            if amount.kind in kinds and not (has_unit and is_counted(amount) and not is_scaled):
                yield amount
        dates = [*claimed.dates, *(year_date(a) for a in claimed.amounts if a.kind == "year")]
        if not is_scaled:
            yield from (
                given
                for given in self._dates
                if any(date_relation(each, given) == "other" for each in dates)
            )
        if claimed.times:
            yield from self._given.times

    def _relations(self, claimed: Item) -> Iterator[Relation]:
        if isinstance(claimed, Date):
            for date in self._dates:
                yield date_relation(claimed, date)
            return
        for time in self._given.times:
            yield time_relation(claimed, time)
        for amount in self._given.amounts:
            if isinstance(claimed, ClockTime):
                yield time_relation(claimed, amount)
            else:
                yield amount_relation(claimed, amount, self._is_same)
        if isinstance(claimed, Amount) and claimed.kind == "year" and not self.asked.is_scaled:
            for date in self._given.dates:
                yield date_relation(year_date(claimed), date)

    def _is_same(self, claimed: Amount, given: Amount) -> bool:
        before = self._reference[max(given.start - _LOSS_CHARACTERS, 0) : given.start]
        # "A $370 million loss": behind a value only its own noun counts, not the rest of the
        # sentence.
        noun = _LOSS_NOUN.match(self._reference, given.end)
        return is_same_value(
            claimed,
            given,
            self.asked,
            given_scale=self._scale,
            may_be_negative=claimed.value < 0 and bool(noun or LOSS.search(before)),
        )


def _speaks_of(asked: Asked, reference: str, given: Sequence[Item]) -> bool:
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
    for each in given:
        first = bisect_left(places, each.start - _NEAR_CHARACTERS)
        last = bisect_right(places, each.end + _NEAR_CHARACTERS)
        if len({word for _, word in named[first:last]}) >= _COMMON_WORDS:
            return True
    return False
