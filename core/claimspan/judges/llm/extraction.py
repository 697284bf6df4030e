"""Extraction of claims by a language model: batches of sentences, prompts, and replies."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, Literal

from pydantic import JsonValue

from claimspan.errors import ReplyError
from claimspan.judges.llm.completion import ChatModel, Prompt
from claimspan.judges.llm.encoding import call_id, encode
from claimspan.judges.llm.prompts import EXTRACT, EXTRACT_REASONED
from claimspan.judges.llm.replies import (
    MAX_CLAIMS_PER_SENTENCE,
    MAX_NOTES_LENGTH,
    ClaimsReply,
    claims_schema,
    exact_claims_schema,
    read_reply,
)
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Claim

__all__ = ["Extraction", "batches_of", "extract", "limits_of", "sentences_of"]

Extraction = Literal["direct", "reasoned"]
"""How claims are extracted: directly, or after a chain of thought."""

_MAX_SENTENCES: Final = 40
"""Sentences in one call, so that the reply to a long text stays short enough to be complete."""


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, none left out."""
    return [
        each.strip() for each in every_sentence(text, detect_language(text) or "en") if each.strip()
    ]


def batches_of(sentences: Sequence[str]) -> list[Sequence[str]]:
    """Distributes sentences over calls, in their order."""
    starts = range(0, len(sentences), _MAX_SENTENCES)
    return [sentences[start : start + _MAX_SENTENCES] for start in starts]


def limits_of(batches: Sequence[Sequence[str]], max_claims: int | None) -> list[int | None]:
    """Shares a limit on claims out over the calls of a text, by their sentences.

    Returns:
        A limit for each call; None where the text will hardly have as many claims, so that its
        claims are the same, and are cached as such, with the limit and without it.
    """
    total = sum(map(len, batches))
    if max_claims is None or MAX_CLAIMS_PER_SENTENCE * total <= max_claims:
        return [None] * len(batches)
    return [ceil(max_claims * len(each) / total) for each in batches]


async def extract(
    model: ChatModel,
    sentences: Sequence[str],
    *,
    question: str | None,
    reasoned: bool,
    exact_schema: bool,
    at_most: int | None = None,
) -> list[Claim]:
    """Extracts the claims of some sentences; an unusable reply is requested once more.

    Args:
        model: The model to ask.
        sentences: The sentences of one call.
        question: The question that the text answers, where known.
        reasoned: Whether the model first writes a chain of thought.
        exact_schema: Whether the JSON schema holds the id and the sentence numbers of the call.
        at_most: Claims that are of use; None for all.

    Returns:
        The claims in the order of the text.

    Raises:
        ReplyError: The second reply is unusable as well.
        JudgeError: No reply came.
    """
    try:
        return await _extract_once(model, sentences, question, reasoned, exact_schema, at_most)
    except ReplyError:
        return await _extract_once(model, sentences, question, reasoned, exact_schema, at_most)


async def _extract_once(
    model: ChatModel,
    sentences: Sequence[str],
    question: str | None,
    reasoned: bool,
    exact_schema: bool,
    at_most: int | None,
) -> list[Claim]:
    call = call_id()
    numbered: dict[str, JsonValue] = {
        str(number): sentence for number, sentence in enumerate(sentences, start=1)
    }
    schema = claims_schema(reasoned=reasoned)
    if exact_schema:
        length = _max_claim_length(sentences)
        schema = exact_claims_schema(
            call,
            len(sentences),
            max_claims=_max_claims(sentences, at_most),
            max_claim_length=length,
            reasoned=reasoned,
        )
    prompt = Prompt(
        system=EXTRACT_REASONED if reasoned else EXTRACT,
        user=encode(
            {"question": question, "at_most": at_most, "sentences": numbered, "call": call}
        ),
        schema_name="claims",
        schema=schema,
        max_tokens=_max_tokens(sentences, at_most, reasoned=reasoned, exact_schema=exact_schema),
    )
    completion = await model.complete(prompt)
    reply = read_reply(completion.content, ClaimsReply, call)
    return [
        _claim(entry.text, entry.sentence, sentences)
        for entry in reply.claims
        if entry.text.strip()
    ]


def _claim(text: str, number: int, sentences: Sequence[str]) -> Claim:
    if not 1 <= number <= len(sentences):
        raise ReplyError("a claim names a sentence that the text does not have")
    return Claim(text=text.strip(), sentence=sentences[number - 1])


def _max_claim_length(sentences: Sequence[str]) -> int:
    """Limit on the characters of a claim: a claim has names where its sentence has pronouns."""
    return 40 + 3 * max(map(len, sentences)) // 2


def _max_claims(sentences: Sequence[str], at_most: int | None) -> int:
    """Limit on the claims of one call under an exact schema."""
    usual = MAX_CLAIMS_PER_SENTENCE * len(sentences)
    return usual if at_most is None else min(usual, at_most)


def _max_tokens(
    sentences: Sequence[str], at_most: int | None, *, reasoned: bool, exact_schema: bool
) -> int:
    """Limit on the completion tokens of the reply.

    Without an exact schema: the JSON, and one token for each byte of the text, which is about
    three times the text. With one: a token for each character that the schema allows, so that the
    reply ends by the schema and is never cut.
    """
    if exact_schema:
        claims = _max_claims(sentences, at_most)
        notes = MAX_NOTES_LENGTH if reasoned else 0
        return 100 + notes + claims * (30 + _max_claim_length(sentences))
    size = sum(token_upper_bound(sentence) for sentence in sentences)
    return 200 + size + 40 * len(sentences) + (400 + size if reasoned else 0)
