"""Extracts the claims of a text by rules: its clauses, and what its short answer says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from claimspan.text.abstention import abstains
from claimspan.text.answers import (
    as_statement,
    asks_for_truth,
    asks_yes_or_no,
    has_label,
    is_short_answer,
    polarity,
)
from claimspan.text.clauses import assertions, asserts_something
from claimspan.text.labels import label_of
from claimspan.text.markdown import Sentence, content_sentences
from claimspan.text.pronouns import resolve_pronouns
from claimspan.verdicts import Claim

__all__ = ["extract"]


def extract(text: str, question: str | None, language: str) -> list[Claim]:
    """Returns the clauses of a text that assert something, in order.

    A pronoun that opens an English sentence is replaced by its subject where that is safe. A short
    answer, as the whole text, as its first sentence, or behind a label (``Length: 725 km``),
    becomes the statement that it makes. A fenced block of code is a claim if nothing else in the
    text is: beside prose it shows what the prose says.

    Args:
        text: A response or a ground truth.
        question: The question that the text answers; None where unknown.
        language: Code of the language of the text.

    Returns:
        Claims, each with the sentence it came from; empty where the text asserts nothing.
    """
    # "I cannot say. Please see the manual." Without its first sentence, the second is a claim.
    if abstains(text):
        return []
    sentences = list(content_sentences(text, language))
    answer = sentences[0].standalone if len(sentences) == 1 else text
    statement = as_statement(question, answer)
    if statement != answer:
        return [Claim(text=statement, sentence=text.strip())]
    prose = [sentence for sentence in sentences if not sentence.is_code]
    # "Yes, it is legal." says what its first word says once more.
    claims = {claim.text.casefold(): claim for claim in _claims(prose, question, language)}
    return list(claims.values()) or [
        Claim(text=each.standalone, sentence=each.written) for each in sentences if each.is_code
    ]


def _claims(sentences: Sequence[Sentence], question: str | None, language: str) -> Iterator[Claim]:
    standalone = [sentence.standalone for sentence in sentences]
    resolved = list(resolve_pronouns(standalone) if language == "en" else standalone)
    # Questions of other languages are not turned, but for an answer of one word.
    if (
        standalone
        and (language == "en" or asks_for_truth(question))
        and (answered := _answered(question, standalone[0]))
    ):
        yield Claim(text=answered, sentence=sentences[0].written)
        if is_short_answer(standalone[0]):
            sentences, resolved = sentences[1:], resolved[1:]
    # Where one line names an attribute, those beside it do: "Length: 725 km", "Mouth: Danube".
    has_labels = any(has_label(question, sentence.written) for sentence in sentences)
    for sentence, readable in zip(sentences, resolved, strict=True):
        clauses = assertions(readable, language)
        if clauses and has_labels and label_of(readable):
            clauses = [as_statement(question, sentence.written)]
        for clause in clauses:
            yield Claim(text=clause, sentence=sentence.written)


def _answered(question: str | None, sentence: str) -> str | None:
    """Returns the statement that the first sentence of a text makes as an answer."""
    says = polarity(sentence)
    if says is not None:
        # "Of course! Heat the oven to 190 °C."
        if not (asks_yes_or_no(question) or asks_for_truth(question)):
            return None
        short = "Yes" if says else "No"
        statement = as_statement(question, short)
        return statement if statement != short else None
    if not (sentence.endswith(".") and is_short_answer(sentence) and asserts_something(sentence)):
        return None
    statement = as_statement(question, sentence)
    return statement if statement != sentence else None
