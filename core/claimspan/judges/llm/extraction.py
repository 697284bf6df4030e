"""Claims out of a text by a model: the call, and what its reply says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from claimspan.errors import ReplyError
from claimspan.judges.llm.completion import Completer, Prompt
from claimspan.judges.llm.encoding import call_id, encode
from claimspan.judges.llm.prompts import EXTRACT, EXTRACT_REASONED
from claimspan.judges.llm.replies import (
    CLAIMS_A_SENTENCE,
    LONGEST_NOTES,
    ClaimsReply,
    claims_schema,
    exact_claims_schema,
    read_reply,
)
from claimspan.text.markdown import every_sentence
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Claim

__all__ = ["Extraction", "extract", "sentences_of"]

Extraction = Literal["direct", "reasoned"]
"""Claims at once, or after a chain of thought."""

_SENTENCES_A_CALL: Final = 40
"""A longer text is taken apart in several calls, so that no reply grows without end."""


def sentences_of(text: str) -> list[str]:
    """All of a text, sentence by sentence."""
    return [each.strip() for each in every_sentence(text, "en") if each.strip()]


def batches_of(sentences: Sequence[str]) -> list[Sequence[str]]:
    """The sentences of each call."""
    starts = range(0, len(sentences), _SENTENCES_A_CALL)
    return [sentences[start : start + _SENTENCES_A_CALL] for start in starts]


async def extract(
    completer: Completer,
    sentences: Sequence[str],
    *,
    question: str | None,
    reasoned: bool,
    exact: bool,
) -> list[Claim]:
    """The claims of some sentences, in order; a reply that cannot be used is asked for once more.

    Raises:
        ReplyError: The second reply cannot be used either.
        JudgeError: No reply came.
    """
    try:
        return await _extract_once(completer, sentences, question, reasoned, exact)
    except ReplyError:
        return await _extract_once(completer, sentences, question, reasoned, exact)


async def _extract_once(
    completer: Completer,
    sentences: Sequence[str],
    question: str | None,
    reasoned: bool,
    exact: bool,
) -> list[Claim]:
    call = call_id()
    numbered = {str(number): sentence for number, sentence in enumerate(sentences, start=1)}
    schema = claims_schema(reasoned=reasoned)
    if exact:
        longest = _longest_claim(sentences)
        schema = exact_claims_schema(call, len(sentences), longest_claim=longest, reasoned=reasoned)
    prompt = Prompt(
        system=EXTRACT_REASONED if reasoned else EXTRACT,
        user=encode({"question": question, "sentences": numbered, "call": call}),
        schema_name="claims",
        schema=schema,
        max_tokens=_token_upper_bound(sentences, reasoned=reasoned, exact=exact),
    )
    completion = await completer.complete(prompt)
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


def _longest_claim(sentences: Sequence[str]) -> int:
    """Characters of a claim at most: half as much again as the longest sentence, for names."""
    return 40 + 3 * max(map(len, sentences)) // 2


def _token_upper_bound(sentences: Sequence[str], *, reasoned: bool, exact: bool) -> int:
    """Room for the reply.

    Three times the text, a third of its bytes taken as its tokens, and the JSON. What an exact
    schema allows in characters is given in tokens, so that it is never the tokens that end first.
    """
    if exact:
        claims = CLAIMS_A_SENTENCE * len(sentences)
        notes = LONGEST_NOTES if reasoned else 0
        return 100 + notes + claims * (30 + _longest_claim(sentences))
    size = sum(token_upper_bound(sentence) for sentence in sentences)
    return 200 + size + 40 * len(sentences) + (400 + size if reasoned else 0)
