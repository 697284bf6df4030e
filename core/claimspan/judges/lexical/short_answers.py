"""Reads short answers as statements, and yes and no as what they affirm or deny.

``Paris`` as a ground truth is a statement only with its question, and so is ``Yes``. Claims are
read in the same way, so that both sides of a comparison say what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Wording, word_weight
from claimspan.judges.protocol import AnswerText, Cell
from claimspan.quantities import check_value, is_bare_value
from claimspan.text.answers import (
    answer_value,
    as_statement,
    asks_for_truth,
    asks_yes_or_no,
    denied_statement,
    polarity,
)
from claimspan.text.questions import posed
from claimspan.text.words import FUNCTION_WORDS, Token, stem, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = [
    "IS_RELEVANT",
    "REPEATS_QUESTION",
    "Asking",
    "ShortAnswer",
    "affirmed",
    "answer_and_shown",
    "as_read",
    "claimed_polarity",
    "decided_by_words",
    "inverted",
    "is_content",
    "own_words",
    "readable_claim",
    "value_or_polarity",
    "written",
]

IS_RELEVANT: Final = 0.3
"""Share of the question's words from which on a text speaks of what is asked. Set by hand, as are
the others here: what they tell apart lies far from them."""

REPEATS_QUESTION: Final = 0.6
"""Share of the question's words from which on a sentence answers it."""

# A value of three digits is hardly in a claim by chance, whatever the claim speaks of.
_TELLING_DIGITS: Final = 3
# The first sentences of a long answer; it has to speak of what is asked there.
_OPENING_CHARACTERS: Final = 400
# Of a text of so few words one that the question has as well is enough: "Yes. It decreased."
_MAX_SHORT_WORDS: Final = 12
# Stems are compared by their beginning: "employees" and "employs" have different ones.
_BEGINNING: Final = 5
# Stems of the words that ask, and of the order to answer.
_ASKING: Final = frozenset(
    stem(word)
    for word in "how why whose many much long old tall far often please name list give tell".split()
)
_NO_CONTENT: Final = FUNCTION_WORDS | {"mr", "mrs", "ms", "dr", "prof", "herr", "frau"}
_NEGATORS: Final = frozenset({"not", "no", "never", "cannot"})

_SAME: Final = Verdict(label=Label.ENTAILED, entailed=0.95, neutral=0.03, contradicted=0.02)
_OPPOSITE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.04, neutral=0.06, contradicted=0.9)
_OTHER_VALUE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.1, neutral=0.3, contradicted=0.6)
_NOT_ABOUT_IT: Final = Verdict(label=Label.NEUTRAL, entailed=0.1, neutral=0.8, contradicted=0.1)


class Asking(NamedTuple):
    """A question, and the stems of its content words."""

    question: str | None
    """The question; None if it is unknown."""

    stems: Set[str]
    """Stems of its content words."""

    @classmethod
    def of(cls, question: str | None) -> Asking:
        """Reads a question.

        Args:
            question: The question; None if it is unknown.
        """
        if not question:
            return cls(question, frozenset())
        # "True or false" is no part of what is asked.
        asked = posed(question).clause if asks_for_truth(question) else question
        return cls(question, _content_stems(tokenize(asked)) - _ASKING)

    def relevance(self, words: Wording) -> float:
        """Returns the share of the question's words that a text has, 0 to 1."""
        wanted = {each[:_BEGINNING] for each in self.stems}
        said = {each[:_BEGINNING] for each in words.read(_content_stems)}
        return len(wanted & said) / max(len(wanted), 1)


class ShortAnswer(NamedTuple):
    """A reference that is to be read as the answer to its question."""

    text: str
    """The words of the answer; empty if it is a text of its own."""

    stems: Mapping[str, float]
    """Weight by stem of its content words that the question does not give."""

    polarity: bool | None
    """Whether it affirms or denies; None if it does neither."""

    is_text: bool = False
    """Whether it is a text of its own, which answers the question in statements."""


# --- reading ---


def as_read(reference: str, question: str | None) -> str:
    """Returns a reference as a judge reads it, as ``answer_and_shown`` does."""
    return answer_and_shown(reference, Asking.of(question))[1]


def answer_and_shown(reference: str, asking: Asking) -> tuple[ShortAnswer | None, str]:
    """Returns a reference as an answer to its question, and as a judge reads it.

    Returns:
        The answer, None for a passage; and the text: a short answer as the statement that it makes.
        A longer text that opens by ``Yes`` or ``No`` begins with what that affirms or denies, if
        it goes on about what is asked. An ``AnswerText`` stays one.
    """
    statement = as_statement(asking.question, reference)
    return _answer(reference, asking, statement), _shown(reference, asking, statement)


def _shown(reference: str, asking: Asking, statement: str) -> str:
    if statement == reference:
        opening = _opening_statement(reference, asking)
        statement = f"{opening} {reference}" if opening else reference
    return AnswerText(statement) if isinstance(reference, AnswerText) else statement


def _opening_statement(text: str, asking: Asking) -> str | None:
    """Returns what ``Yes`` or ``No`` at the start of a longer text says, given its question.

    Returns:
        The statement; None if the text opens otherwise, the question does not ask for yes or
        no, or the text is a passage that does not go on about what is asked.
    """
    says = polarity(text)
    if says is None or not asking.question:
        return None
    statement = as_statement(asking.question, "Yes" if says else "No")
    relevance = asking.relevance(Wording(tokenize(text[:_OPENING_CHARACTERS])))
    is_short = len(text[:_OPENING_CHARACTERS].split()) <= _MAX_SHORT_WORDS
    is_about_it = relevance > 0 if is_short else relevance >= IS_RELEVANT
    is_answer = isinstance(text, AnswerText) or is_about_it
    return statement if is_answer and statement not in ("Yes", "No") else None


def _answer(reference: str, asking: Asking, statement: str) -> ShortAnswer | None:
    says = polarity(reference)
    if statement != reference:
        value = answer_value(asking.question, reference)
        return ShortAnswer(value, _own_weights(value, asking), says)
    if says is None or not _opening_statement(reference, asking):
        says = _echoed_polarity(reference, asking)
    if isinstance(reference, AnswerText) and asking.question:
        return ShortAnswer("", _own_weights(reference, asking), says, is_text=True)
    return None if says is None else ShortAnswer("", {}, says)


def _own_weights(answer: str, asking: Asking) -> Mapping[str, float]:
    """Returns the weights of an answer's words that its question does not give; of all, if none."""
    stems = _content_weights(tokenize(answer))
    own = {stem: weight for stem, weight in stems.items() if stem not in asking.stems}
    return own or stems


def written(claim: Claim, question: str | None) -> str:
    """Returns the short answer that a claim was made of; the claim's text if it is none."""
    sentence = claim.sentence
    if not sentence or sentence == claim.text or as_statement(question, sentence) != claim.text:
        return claim.text
    return answer_value(question, sentence)


def own_words(claim: Claim, asking: Asking) -> list[Token]:
    """Returns the words of the short answer that a claim was made of, beside the question's.

    Returns:
        All of the answer's if the question has them too; none if the claim was no short
        answer.
    """
    short = written(claim, asking.question)
    if short == claim.text or polarity(short) is not None:
        return []
    content = [token for token in tokenize(short) if is_content(token)]
    return [token for token in content if token.stem not in asking.stems] or content


# --- yes, no, and values ---


def value_or_polarity(claim: Claim, short: ShortAnswer, asking: Asking) -> Verdict | None:
    """Judges pairs that words cannot tell: yes against no, and a claim against a bare value.

    Returns:
        A verdict; None if the words decide.
    """
    if short.polarity is not None:
        return _polar_verdict(claim, short, asking)
    if not short.text or not is_bare_value(short.text):
        return None
    found = check_value(short.text, claim.text, asking.question)
    relevance = asking.relevance(Wording(tokenize(claim.text)))
    if found and found.label is Label.ENTAILED:
        digits = sum(character.isdigit() for character in short.text)
        is_sure = relevance >= IS_RELEVANT or digits >= _TELLING_DIGITS
        return found if is_sure else _NOT_ABOUT_IT
    if found and found.label is Label.CONTRADICTED and relevance >= REPEATS_QUESTION:
        return _OTHER_VALUE
    return _NOT_ABOUT_IT


def _polar_verdict(claim: Claim, short: ShortAnswer, asking: Asking) -> Verdict | None:
    """Compares yes and no of a claim and an answer; None if their additions have to be compared."""
    says = whole = claimed_polarity(claim, asking)
    if whole is None and claim.sentence and asks_yes_or_no(asking.question):
        says = polarity(claim.sentence)  # "Yes, it rose by 13 %"
    if says is None:
        return None
    if says is not short.polarity:
        return _OPPOSITE
    adds = short.is_text or len(short.stems) > 1
    return None if whole is None and adds else _SAME


def claimed_polarity(claim: Claim, asking: Asking) -> bool | None:
    """Returns whether a claim affirms or denies its question as a whole.

    Returns:
        None if the claim does neither, or the question does not ask for yes or no.
    """
    if claim.sentence and (says := polarity(claim.sentence)) is not None:
        made_of = ("Yes" if says else "No", claim.sentence)
        if any(claim.text == as_statement(asking.question, each) for each in made_of):
            return says
    return _echoed_polarity(claim.text, asking)


def _echoed_polarity(text: str, asking: Asking) -> bool | None:
    """Returns whether a text repeats a yes-or-no question as a statement, as ``It is legal`` is."""
    if len(text) > _OPENING_CHARACTERS or not asks_yes_or_no(asking.question):
        return None
    words = {token.text.casefold().replace("’", "'"): token.stem for token in tokenize(text)}
    negated = {word for word in words if word in _NEGATORS or word.endswith("n't")}
    content = {words[word] for word in words.keys() - FUNCTION_WORDS - negated}
    return not negated if content and content <= asking.stems else None


def affirmed(claims: Sequence[Claim], question: str | None) -> tuple[list[Claim], Set[int]]:
    """Returns claims with what they deny in place of each that answers a question by ``False``.

    What contradicts a statement entails that it is false, in any language and by any judge.

    Returns:
        The claims to judge, and the places of those whose verdict has to be ``inverted``.
    """
    denied = {
        i: statement
        for i, claim in enumerate(claims)
        if claim.sentence
        and (statement := denied_statement(question, claim.text, claim.sentence)) is not None
    }
    judged = [
        Claim(text=denied[i], sentence=denied[i]) if i in denied else claim
        for i, claim in enumerate(claims)
    ]
    return judged, denied.keys()


def inverted(verdict: Verdict) -> Verdict:
    """Returns the verdict on a denial, from that on what it denies."""
    label = {Label.ENTAILED: Label.CONTRADICTED, Label.CONTRADICTED: Label.ENTAILED}
    return Verdict(
        label=label.get(verdict.label, verdict.label),
        entailed=verdict.contradicted,
        neutral=verdict.neutral,
        contradicted=verdict.entailed,
    )


# --- for judges that read ---


def readable_claim(claim: Claim, question: str | None) -> str:
    """Returns a claim as a judge that reads gets it: its text, or the bare value it was."""
    short = written(claim, question)
    return short if is_bare_value(short) else claim.text


def decided_by_words(
    claims: Sequence[Claim],
    references: Sequence[str],
    question: str | None,
    *,
    words: Mapping[Cell, Verdict],
    others: Mapping[Cell, Verdict],
) -> dict[Cell, Verdict]:
    """Takes the verdicts that words decide: all of some, and half of those on answers.

    Args:
        claims: The claims.
        references: The references as they were given.
        question: The question; None if unknown.
        words: Verdicts of ``LexicalJudge``.
        others: Verdicts of a judge that reads, on the same cells.

    Returns:
        A verdict for each cell: that of ``words`` if the reference is a bare value, or if
        both sides say yes or no. On an answer whose words support a claim more than reading it
        does, the mean of both.
    """
    asking = Asking.of(question)
    shorts = {j: answer_and_shown(references[j], asking)[0] for _, j in sorted(others)}
    decided: dict[Cell, Verdict] = {}
    for (i, j), other in others.items():
        short = shorts[j]
        if short and value_or_polarity(claims[i], short, asking):
            decided[i, j] = words[i, j]
        else:
            is_answer = isinstance(references[j], AnswerText)
            decided[i, j] = _mixed(words[i, j], other) if is_answer else other
    return decided


def _mixed(words: Verdict, other: Verdict) -> Verdict:
    """Returns the mean of two verdicts if words support the claim more, otherwise ``other``.

    A judge that reads takes what the question gives for an addition. On the tune half of
    FinanceBench the AUROC of ``alignment`` is .916 with the mean, and .899 without.
    """
    if (words.entailed or 0.0) <= (other.entailed or 0.0):
        return other
    entailed, neutral, contradicted = (
        ((getattr(words, label.value) or 0.0) + (getattr(other, label.value) or 0.0)) / 2
        for label in Label
    )
    by_label = dict(zip(Label, (entailed, neutral, contradicted), strict=True))
    return Verdict(
        label=max(by_label, key=by_label.__getitem__),
        entailed=by_label[Label.ENTAILED],
        neutral=by_label[Label.NEUTRAL],
        contradicted=by_label[Label.CONTRADICTED],
    )


# --- words ---


def _content_weights(tokens: Sequence[Token]) -> dict[str, float]:
    """Returns the weight by stem of the words that carry content."""
    return {token.stem: word_weight(token) for token in tokens if is_content(token)}


def is_content(token: Token) -> bool:
    """Tells whether a token is neither a function word nor a title of a person."""
    return token.folded not in _NO_CONTENT


def _content_stems(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset([token.stem for token in tokens if is_content(token)])
