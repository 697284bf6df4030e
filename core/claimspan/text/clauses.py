"""Splits an English sentence into clauses, and keeps those that assert something.

A clause that asserts one thing is the unit that a lexical judge takes for a claim. A sentence is
cut only if both sides stay true on their own; in doubt it stays whole.
"""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.citations import is_footer
from claimspan.text.openers import is_courtesy, without_attribution
from claimspan.text.refusals import (
    declined,
    is_apology,
    is_filler,
    is_statement,
    normalise,
    starts_with_abstention,
)

__all__ = ["assertions", "asserts_something", "split_clauses"]

_AUXILIARY: Final = (
    r"is|are|was|were|has|had|have|will|would|can|could|may|might|must|should|does|did"
)
_FINITE: Final = (
    rf"{_AUXILIARY}|became|becomes|began|bought|brought|built|came|chose|contains|died|fought|"
    "gave|got|grew|includes|kept|knew|made|paid|ran|rose|sang|sent|sold|spent|spoke|taught|told|"
    "took|went|won|wrote"
)
_FINITE_VERB: Final = re.compile(rf"\b(?:{_FINITE})\b")
_PAST_VERB: Final = re.compile(r"\b(?!hundred\b|sacred\b)[a-z]{2,}[^\We]ed\b")
_STARTS_WITH_AUXILIARY: Final = re.compile(rf"(?:{_AUXILIARY})\b")
_STARTS_WITH_VERB: Final = re.compile(rf"(?:{_FINITE}|[a-z]{{2,}}[^\We]ed)\b")
_OWN_SUBJECT: Final = re.compile(
    rf"(?:(?:he|she|it|they|we|this|these|that|those)|(?:the\s+|its\s+|[A-Z])[^,;]{{1,40}}?)"
    rf"\s+(?:{_FINITE})\b"
)
_PASSIVE: Final = re.compile(r"\b(?:is|are|was|were|been|being)\s+(?!born\b)\w+(?:ed|en|t)\b")
_CONJUNCTION: Final = re.compile(r"(?<!\s)\s*+;\s+|(?:,|(?<!\s))\s++(?:and|but)\s+")
# A clause that depends on another one must not be cut off at its "and": reported speech,
# conditions, alternatives, quotations.
_DEPENDENT: Final = re.compile(
    r"\b(?:if|when|while|although|though|because|since|unless|until|whether|that|which|who|whom|"
    r"whose|where|either|neither|both|between)\b|[\"“”«»]",
    re.IGNORECASE,
)
_NEGATION: Final = re.compile(r"\b(?:not|never|no)\b|n['’]t\b", re.IGNORECASE)
_NO_SUBJECT: Final = re.compile(
    r"(?:in|on|at|by|after|before|during|for|from|to|with|as|however|then|there|also)\b|"
    r".*(?:,|\b(?:a|an|the|of|and|or|to|in)$)",
    re.IGNORECASE,
)
_MIN_CLAUSE_WORDS: Final = 3
_MAX_SUBJECT_WORDS: Final = 6
# Longer ones are lists or dumps, not sentences, and the search below takes quadratic time.
_MAX_SENTENCE_LENGTH: Final = 600


def assertions(sentence: str, language: str = "en") -> list[str]:
    """Returns the clauses of a sentence that assert something; a question has none."""
    if not is_statement(sentence) or is_footer(sentence):
        return []
    beside = declined(normalise(sentence))
    if beside is not None:  # "Je ne sais pas quand, mais cela coûte 3 %."
        return [beside] if asserts_something(beside) else []
    asserted = without_attribution(sentence)
    clauses = split_clauses(asserted) if language == "en" else [asserted]
    return [clause for clause in clauses if asserts_something(clause)]


def asserts_something(text: str) -> bool:
    """Tells whether a sentence says anything that could be true or false.

    Questions, introductions that end in a colon, filler and abstentions ("I don't know", "The
    context does not say") do not.
    """
    sentence = normalise(text)
    if not is_statement(sentence) or starts_with_abstention(sentence) or is_apology(sentence):
        return False
    return not (is_filler(sentence) or is_footer(sentence) or is_courtesy(sentence))


def split_clauses(sentence: str) -> list[str]:
    """Splits an English sentence into clauses that can be read on their own.

    ``X was born in 1950 and moved to Y`` gives ``X was born in 1950`` and ``X moved to Y``. A
    clause that would lose its subject, a condition or a negation is not cut off.

    Returns:
        The clauses in order; the sentence alone if it cannot be cut.
    """
    if len(sentence) > _MAX_SENTENCE_LENGTH:
        return [sentence]
    clauses: list[str] = []
    rest = sentence
    while cut := _first_cut(rest):
        left, rest = cut
        clauses.append(left)
    return [*clauses, rest]


def _first_cut(sentence: str) -> tuple[str, str] | None:
    """Returns the first clause and the rest of a sentence; None if it cannot be cut."""
    for conjunction in _CONJUNCTION.finditer(sentence):
        left, right = sentence[: conjunction.start()], sentence[conjunction.end() :]
        if min(len(left.split()), len(right.split())) < _MIN_CLAUSE_WORDS:
            continue
        independent = _independent(left, right, conjunction.group().strip())
        if independent:
            return left, independent
    return None


def _independent(left: str, right: str, conjunction: str) -> str | None:
    """Returns ``right`` as a sentence of its own, with a subject; None if it needs ``left``."""
    # "The context does not give the price, but delivery takes 3 days." Nothing is said in
    # "The context does not give the price and the time of delivery."
    if starts_with_abstention(left) and (conjunction != "and" or _OWN_SUBJECT.match(right)):
        return right
    verb = _FINITE_VERB.search(left) or _PAST_VERB.search(left)
    if not verb:
        return None
    if conjunction == ";":
        return right if _FINITE_VERB.search(right) else None
    if _DEPENDENT.search(left):
        return None
    if _OWN_SUBJECT.match(right):
        return right
    subject = left[: verb.start()].strip()
    return f"{subject} {right}" if _shares_subject(subject, left, right) else None


def _shares_subject(subject: str, left: str, right: str) -> bool:
    """Tells whether the subject of ``left`` is that of ``right`` as well."""
    if not 0 < len(subject.split()) <= _MAX_SUBJECT_WORDS or _NO_SUBJECT.match(subject):
        return False
    if _NEGATION.search(left):  # it may extend over the "and"
        return False
    if _STARTS_WITH_AUXILIARY.match(right):
        return True
    # "was tried and acquitted" shares its auxiliary as well.
    return bool(_STARTS_WITH_VERB.match(right)) and not _PASSIVE.search(left)
