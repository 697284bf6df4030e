"""Reads short answers as statements, and judges claims against them.

``Paris`` as a ground truth is a statement only with its question. The words that the question gives
count as given there: a claim that answers the same question in its own words is not refused for
them, and one that repeats them with another answer is not supported by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Reference, Support, word_weight
from claimspan.judges.references import AnswerText
from claimspan.judges.values import check_value, is_bare_value
from claimspan.text.answers import as_statement, asks_yes_or_no, polarity
from claimspan.text.inflections import base_form
from claimspan.text.words import FUNCTION_WORDS, Token, stem, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = [
    "Asking",
    "Fit",
    "ShortAnswer",
    "as_read",
    "fit",
    "opening_statement",
    "short_answer",
    "value_or_polarity",
    "written",
]

# All set by hand; the shares of words are far from each other in what they tell apart.
_HAS_ANSWER: Final = 0.6
_LACKS_ANSWER: Final = 0.34
_IS_RELEVANT: Final = 0.3
_REPEATS_QUESTION: Final = 0.6
# A claim with as few words beside the answer is nothing but the answer.
_MAX_OTHER_WORDS: Final = 2
# A value of three digits is hardly in a claim by chance, whatever the claim speaks of.
_TELLING_DIGITS: Final = 3
GIVEN_WEIGHT = 0.2
HAS_TEXT = 0.6
LIGHT_TEXT = 0.3
# A longer sentence says more than the answer to a question.
_MAX_ANSWER_WORDS: Final = 20
_SYNONYM_WEIGHT: Final = 0.15
# The first sentences of a long answer; it has to speak of what is asked there.
_OPENING_CHARACTERS: Final = 400
# Of a text of so few words one that the question has as well is enough: "Yes. It decreased."
_MAX_SHORT_WORDS: Final = 12

# Stems of the words that ask, and of the order to answer.
_ASKING: Final = frozenset(
    stem(word)
    for word in "how why whose many much long old tall far often please name list give tell".split()
)
_NEGATORS: Final = frozenset({"not", "no", "never", "cannot"})

_SAME: Final = Verdict(label=Label.ENTAILED, entailed=0.95, neutral=0.03, contradicted=0.02)
_OPPOSITE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.04, neutral=0.06, contradicted=0.9)
_OTHER_VALUE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.1, neutral=0.3, contradicted=0.6)
_NOT_ABOUT_IT: Final = Verdict(label=Label.NEUTRAL, entailed=0.1, neutral=0.8, contradicted=0.1)


class Asking(NamedTuple):
    """A question, and the stems of its content words."""

    question: str | None
    stems: Set[str]

    @classmethod
    def of(cls, question: str | None) -> Asking:
        """Reads a question; None where it is unknown."""
        stems = _base_stems(tokenize(question)) - _ASKING if question else frozenset[str]()
        return cls(question, stems)


class ShortAnswer(NamedTuple):
    """A reference that is a few words, to be read as the answer to its question."""

    text: str
    """The words of the answer."""

    stems: Mapping[str, float]
    """Weight by stem of its content words that the question does not give."""

    polarity: bool | None
    """Whether it affirms or denies; None where it names something."""

    is_text: bool = False
    """Whether it is a text of its own, which answers the question in statements."""


class Fit(NamedTuple):
    """How a claim fits a short answer."""

    weights: Mapping[str, float]
    """Weights of the claim's words, with less for other words of what is asked."""

    factor: float
    """Factor on the support that the words give."""

    is_other: bool
    """Whether the claim answers the question otherwise."""


def as_read(reference: str, question: str | None) -> str:
    """Returns a reference as a judge reads it: a short answer as the statement that it makes.

    A longer text that opens by ``Yes`` or ``No`` begins with what that affirms or denies, where it
    goes on about what is asked.

    Args:
        reference: A text that claims are checked against.
        question: The question; None where unknown.
    """
    statement = as_statement(question, reference)
    if statement != reference:
        return statement
    opening = opening_statement(reference, Asking.of(question))
    return f"{opening} {reference}" if opening else reference


def opening_statement(text: str, asking: Asking) -> str | None:
    """Returns what ``Yes`` or ``No`` at the start of a longer text says, given its question.

    Args:
        text: A response or another text.
        asking: The question.

    Returns:
        The statement; None where the text opens otherwise, the question does not ask for yes or
        no, or the text does not go on about what is asked.
    """
    says = polarity(text)
    if says is None or not asking.question:
        return None
    statement = as_statement(asking.question, "Yes" if says else "No")
    shared = asking.stems & {token.stem for token in tokenize(text[:_OPENING_CHARACTERS])}
    is_short = len(text.split()) <= _MAX_SHORT_WORDS
    is_about_it = len(shared) >= (1 if is_short else _IS_RELEVANT * max(len(asking.stems), 1))
    return statement if is_about_it and statement not in ("Yes", "No") else None


def written(claim: Claim, question: str | None) -> str:
    """Returns the short answer that a claim was made of; the claim's text where it is none.

    Args:
        claim: A claim.
        question: The question that the claim was extracted with.
    """
    sentence = claim.sentence
    if not sentence or sentence == claim.text or as_statement(question, sentence) != claim.text:
        return claim.text
    return sentence


def short_answer(reference: str, asking: Asking) -> ShortAnswer | None:
    """Returns a reference as an answer to its question; None where it is a passage.

    Args:
        reference: A text that claims are checked against.
        asking: The question.
    """
    says = polarity(reference)
    if as_statement(asking.question, reference) == reference:
        if says is None or not opening_statement(reference, asking):
            says = _echoed_polarity(reference, asking)
        if isinstance(reference, AnswerText):
            own = _content(tokenize(as_read(reference, asking.question)))
            own = {stem: weight for stem, weight in own.items() if stem not in asking.stems}
            return ShortAnswer("", own, says, is_text=True)
        return None if says is None else ShortAnswer("", {}, says)
    stems = _content(tokenize(reference))
    own = {stem: weight for stem, weight in stems.items() if stem not in asking.stems}
    return ShortAnswer(reference, own or stems, says)


def value_or_polarity(claim: Claim, short: ShortAnswer, asking: Asking) -> Verdict | None:
    """Judges what words do not tell: yes against no, and a claim against a bare value.

    Args:
        claim: The claim.
        short: The answer that it is checked against.
        asking: The question of both.

    Returns:
        A verdict; None where the words decide.
    """
    if short.polarity is not None:
        says = _claimed_polarity(claim, asking)
        return None if says is None else _SAME if says is short.polarity else _OPPOSITE
    if not is_bare_value(short.text):
        return None
    found = check_value(short.text, claim.text, asking.question)
    relevance = _relevance(tokenize(claim.text), asking)
    if found and found.label is Label.ENTAILED:
        digits = sum(character.isdigit() for character in short.text)
        is_sure = relevance >= _IS_RELEVANT or digits >= _TELLING_DIGITS
        return found if is_sure else _NOT_ABOUT_IT
    if found and found.label is Label.CONTRADICTED and relevance >= _REPEATS_QUESTION:
        return _OTHER_VALUE
    return _NOT_ABOUT_IT


def fit(
    claim: Sequence[Token],
    weights: Mapping[str, float],
    short: ShortAnswer,
    asking: Asking,
    reference: Reference,
) -> Fit:
    """Says how a claim's words fit an answer in words.

    Args:
        claim: The tokens of the claim.
        weights: Weight of each of its stems.
        short: The answer.
        asking: The question of both.
        reference: The answer, read.
    """
    if short.is_text:
        return _fit_of_text(claim, weights, short, asking, reference)
    if not short.stems or short.polarity is not None:
        return Fit(weights, 1.0, is_other=False)
    stems = {token.stem for token in claim}
    others = _content(claim).keys() - short.stems.keys() - asking.stems
    has = _share(short.stems, stems)
    # A part of the answer, such as the family name, is no other answer.
    has = 1.0 if has and not others else has
    is_about_it = _relevance(claim, asking) >= _IS_RELEVANT or len(others) <= _MAX_OTHER_WORDS
    if has >= _HAS_ANSWER:
        return Fit(_lightened(claim, weights, others) if is_about_it else weights, 1.0, False)
    repeats = _relevance(claim, asking) >= _REPEATS_QUESTION
    is_choice = short.stems.keys() <= asking.stems
    return Fit(weights, has, is_other=has < _LACKS_ANSWER and repeats and bool(others or is_choice))


def _fit_of_text(
    claim: Sequence[Token],
    weights: Mapping[str, float],
    short: ShortAnswer,
    asking: Asking,
    reference: Reference,
) -> Fit:
    """Says how a claim's words fit an answer that is a text of its own."""
    lacking = asking.stems - reference.stems
    if not asking.stems.issuperset(weights):
        weights = {s: w * GIVEN_WEIGHT if s in lacking else w for s, w in weights.items()}
    has = _share(short.stems, {token.stem for token in claim})
    if short.stems and has >= HAS_TEXT and _relevance(claim, asking) >= _IS_RELEVANT:
        others = _content(claim).keys() - short.stems.keys() - asking.stems
        weights = _lightened(claim, weights, others, LIGHT_TEXT)
    return Fit(weights, 1.0, is_other=False)


def own_words(claim: Claim, asking: Asking) -> list[Token]:
    """Returns the words of the short answer that a claim was made of, beside the question's.

    Args:
        claim: The claim.
        asking: The question that it was extracted with.

    Returns:
        All of the answer's where the question has them too; none where the claim was no short
        answer.
    """
    short = written(claim, asking.question)
    if short == claim.text or polarity(short) is not None:
        return []
    content = [t for t in tokenize(short) if t.text.casefold() not in FUNCTION_WORDS]
    return [t for t in content if t.stem not in asking.stems] or content


def fit_of_short_claim(
    own: Sequence[Token], weights: Mapping[str, float], support: Support, asking: Asking
) -> Fit:
    """Says how a claim that was a short answer fits a text: its answer counts, not the question.

    Args:
        own: The words of ``own_words``.
        weights: Weight of each stem of the claim.
        support: The part of the text that supports the claim best.
        asking: The question.
    """
    wanted = {token.stem: word_weight(token) for token in own}
    has = _share(wanted, {token.stem for token in support.window})
    others = [
        token
        for token in support.sentence[1:]
        if _is_content(token) and token.stem not in asking.stems and token.stem not in wanted
    ]
    if has >= _HAS_ANSWER:
        # "It is Paris": what the question gives need not be said again.
        is_bare = len(support.reference.tokens) <= _MAX_SHORT_WORDS and len(others) <= 1
        return Fit(
            {s: w if s in wanted else w * _SYNONYM_WEIGHT for s, w in weights.items()}
            if is_bare
            else weights,
            1.0,
            is_other=False,
        )
    is_name = any(token.text[:1].isupper() for token in own)
    fills = any(token.text[:1].isupper() or not is_name for token in others)
    is_answer = len(support.sentence) <= _MAX_ANSWER_WORDS and (
        _relevance(support.sentence, asking) >= _REPEATS_QUESTION
    )
    return Fit(weights, has, is_other=has < _LACKS_ANSWER and fills and is_answer)


def _lightened(
    claim: Sequence[Token],
    weights: Mapping[str, float],
    others: Set[str],
    light_weight: float = _SYNONYM_WEIGHT,
) -> dict[str, float]:
    """Returns weights in which other words for what is asked, and grammar, hardly count."""
    light = {stem for stem in others if not stem[:1].isdigit()}
    light |= {token.stem for token in claim if not _is_content(token)}
    return {s: w * light_weight if s in light else w for s, w in weights.items()}


def _claimed_polarity(claim: Claim, asking: Asking) -> bool | None:
    """Returns whether a claim affirms or denies the question as a whole."""
    if claim.sentence and (says := polarity(claim.sentence)) is not None:
        made_of = (as_statement(asking.question, each) for each in
                   ("Yes" if says else "No", claim.sentence))  # fmt: skip
        if claim.text in made_of:
            return says
    return _echoed_polarity(claim.text, asking)


def _echoed_polarity(text: str, asking: Asking) -> bool | None:
    """Returns whether a text repeats a yes-or-no question as a statement, as ``It is legal`` is."""
    if not asks_yes_or_no(asking.question) or len(text) > _OPENING_CHARACTERS:
        return None
    words = {token.text.casefold().replace("’", "'"): token.stem for token in tokenize(text)}
    negated = {word for word in words if word in _NEGATORS or word.endswith("n't")}
    content = {words[word] for word in words.keys() - FUNCTION_WORDS - negated}
    if not content or not content <= asking.stems:
        return None
    return not negated


def _relevance(claim: Sequence[Token], asking: Asking) -> float:
    """Returns the share of the question's words that the claim has, 0 to 1."""
    shared = asking.stems & _base_stems(claim)
    return len(shared) / max(len(asking.stems), 1)


def _base_stems(tokens: Sequence[Token]) -> frozenset[str]:
    """Returns the stems of the content words, irregular verbs by their base form."""
    return frozenset(_base_stem(token) for token in tokens if _is_content(token))


def _base_stem(token: Token) -> str:
    word = token.text.casefold()
    base = base_form(word)
    return token.stem if base == word else stem(base)


def _share(wanted: Mapping[str, float], stems: Set[str]) -> float:
    found = sum(weight for stem, weight in wanted.items() if stem in stems)
    return found / (sum(wanted.values()) or 1.0)


def _content(tokens: Sequence[Token]) -> dict[str, float]:
    """Returns the weight by stem of the words that are no function words."""
    return {token.stem: word_weight(token) for token in tokens if _is_content(token)}


def _is_content(token: Token) -> bool:
    return token.text.casefold() not in FUNCTION_WORDS
