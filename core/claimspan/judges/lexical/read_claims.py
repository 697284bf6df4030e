"""A claim, read once for all references of a record."""

from __future__ import annotations

from functools import cached_property

from claimspan.judges.lexical.quantity_conflicts import ClaimedValues
from claimspan.judges.lexical.short_answers import Asking, claimed_polarity, own_words, written
from claimspan.judges.lexical.wording import Wording
from claimspan.judges.values import StatedValues, is_bare_value, says_value_alone
from claimspan.text.words import tokenize
from claimspan.verdicts import Claim

__all__ = ["ReadClaim"]


class ReadClaim:
    """A claim, and what is read from it by its question alone."""

    def __init__(self, claim: Claim, asking: Asking) -> None:
        """Keeps the claim; each part is read when first asked for.

        Args:
            claim: The claim.
            asking: The question that it answers.
        """
        self.claim = claim
        """The claim."""
        self._asking = asking
        self._stated = StatedValues(claim.text)
        self._words: dict[str, Wording] = {}

    def words(self, language: str) -> Wording:
        """Returns its words by the rules of a language: that of the reference."""
        if language not in self._words:
            self._words[language] = Wording(tokenize(self.claim.text, language))
        return self._words[language]

    @cached_property
    def bare_value(self) -> str | None:
        """The value that is all it says; None where it says more."""
        value = written(self.claim, self._asking.question)
        is_whole = value == self.claim.text
        is_bare = says_value_alone(self._stated) if is_whole else is_bare_value(value)
        return value if is_bare else None

    @cached_property
    def own(self) -> Wording:
        """The words of the short answer that it was made of, beside those of the question."""
        return Wording(own_words(self.claim, self._asking))

    @cached_property
    def says(self) -> bool | None:
        """Whether it affirms or denies the question as a whole; None where it does neither."""
        return claimed_polarity(self.claim, self._asking)

    @cached_property
    def values(self) -> ClaimedValues:
        """Its numbers, dates and units."""
        return ClaimedValues(self._stated)
