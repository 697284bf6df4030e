"""Extraction of claims by a language model: calls, prompts, cache and replies."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, Literal

from pydantic import JsonValue

from claimspan.concurrency import SingleFlight, gather_or_cancel
from claimspan.errors import ReplyError
from claimspan.judges.llm.chat import ChatReply, Prompt, Settings
from claimspan.judges.llm.endpoint import Endpoint
from claimspan.judges.llm.prompts import EXTRACT, EXTRACT_REASONED, Ids, encode, informed
from claimspan.judges.llm.refusals import TooLongError
from claimspan.judges.llm.replies import (
    MAX_CLAIMS_PER_SENTENCE,
    MAX_NOTES_LENGTH,
    ClaimsReply,
    claims_schema,
    exact_claims_schema,
    read_reply,
)
from claimspan.judges.verdict_cache import VerdictCache, content_key
from claimspan.text.abstention import abstains
from claimspan.text.citations import is_footer
from claimspan.text.encodable import encodable
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Claim

__all__ = ["Extraction", "Extractor"]

Extraction = Literal["direct", "reasoned"]
"""How claims are extracted: directly, or after a chain of thought."""

_MAX_SENTENCES: Final = 40
"""Sentences in one call, so that the reply to a long text stays short enough to be complete."""


class Extractor:
    """Extracts the claims of each text once, however many ask for them at a time."""

    def __init__(
        self, endpoint: Endpoint, cache: VerdictCache, scope: str, settings: Settings
    ) -> None:
        # ``scope`` is what claims depend on beside text and question: model, prompts, address.
        self._endpoint = endpoint
        self._cache = cache
        self._scope = scope
        self._settings = settings
        prompt = EXTRACT_REASONED if settings.reasoned else EXTRACT
        self._system = informed(prompt, settings.instructions)
        self._flights = SingleFlight[list[Claim]]()

    async def claims(self, text: str, max_claims: int | None, question: str | None) -> list[Claim]:
        """The claims of a text, or the first ``max_claims``; none if it declines to answer.

        Raises:
            JudgeError: No reply came, or two replies in a row are unusable.
        """
        # Models make a claim of what a refusal says about its author, which no chunk entails.
        if abstains(text):
            return []
        text_of_language = encodable(text)
        sentences = [
            each.strip()
            for each in every_sentence(text_of_language, detect_language(text_of_language) or "en")
            if each.strip() and not is_footer(each)
        ]
        starts = range(0, len(sentences), _MAX_SENTENCES)
        batches = [sentences[start : start + _MAX_SENTENCES] for start in starts]
        limits = _limits_of(batches, max_claims)
        limited = str(max_claims) if any(limits) else None
        key = content_key(self._scope, "claims", question, text, limited)
        known = self._cache.claims(key)
        if known is not None:
            return known

        async def extract() -> list[Claim]:
            calls = [
                self._extract(some, question, limit)
                for some, limit in zip(batches, limits, strict=True)
            ]
            claims = [claim for part in await gather_or_cancel(calls) for claim in part]
            self._cache.add_claims(key, claims)
            return claims

        return await self._flights.run(key, extract)

    async def _extract(
        self, sentences: Sequence[str], question: str | None, at_most: int | None
    ) -> list[Claim]:
        """The claims of some sentences, asked for twice; in halves if the window is small."""
        try:
            try:
                return await self._ask(sentences, question, at_most, attempt=1)
            except ReplyError:
                return await self._ask(sentences, question, at_most, attempt=2)
        except TooLongError:
            if len(sentences) < 2:
                raise
        middle = len(sentences) // 2
        halves = [sentences[:middle], sentences[middle:]]
        some = None if at_most is None else ceil(at_most / 2)
        parts = [await self._extract(half, question, some) for half in halves]
        return [claim for part in parts for claim in part]

    async def _ask(
        self, sentences: Sequence[str], question: str | None, at_most: int | None, *, attempt: int
    ) -> list[Claim]:
        # A reply that could not be used must not come again by the same prompt.
        call = Ids(self._settings.seed, str(attempt), question or "", *sentences).call()
        numbered: dict[str, JsonValue] = {
            str(number): sentence for number, sentence in enumerate(sentences, start=1)
        }
        exact = None
        if self._settings.exact_schema:
            exact = exact_claims_schema(
                call,
                len(sentences),
                max_claims=_max_claims(sentences, at_most),
                max_claim_length=_max_claim_length(sentences),
                reasoned=self._settings.reasoned,
            )
        prompt = Prompt(
            system=self._system,
            user=encode(
                {"question": question, "at_most": at_most, "sentences": numbered, "call": call}
            ),
            schema_name="claims",
            schema=claims_schema(reasoned=self._settings.reasoned),
            exact_schema=exact,
            max_tokens=_max_tokens(sentences, at_most, self._settings),
        )

        def read(reply: ChatReply) -> list[Claim]:
            found = read_reply(reply, ClaimsReply, call).claims
            entries = [each for each in found if each.text.strip()]
            if any(not 1 <= each.sentence <= len(sentences) for each in entries):
                raise ReplyError("a claim names a sentence that the text does not have")
            return [
                Claim(text=each.text.strip(), sentence=sentences[each.sentence - 1])
                for each in entries
            ]

        return await self._endpoint.ask(prompt, read)


def _limits_of(batches: Sequence[Sequence[str]], max_claims: int | None) -> list[int | None]:
    """Shares a limit on claims out over the calls of a text, by their sentences.

    None if the text will hardly have as many claims: they are cached as those without a limit.
    """
    total = sum(map(len, batches))
    if max_claims is None or MAX_CLAIMS_PER_SENTENCE * total <= max_claims:
        return [None] * len(batches)
    return [ceil(max_claims * len(each) / total) for each in batches]


def _max_claim_length(sentences: Sequence[str]) -> int:
    """Limit on the characters of a claim: a claim has names where its sentence has pronouns."""
    return 40 + 3 * max(map(len, sentences)) // 2


def _max_claims(sentences: Sequence[str], at_most: int | None) -> int:
    usual = MAX_CLAIMS_PER_SENTENCE * len(sentences)
    return usual if at_most is None else min(usual, at_most)


def _max_tokens(sentences: Sequence[str], at_most: int | None, settings: Settings) -> int:
    """Limit on the completion tokens of the reply.

    Without an exact schema: the JSON, and one token for each byte of the text, which is about
    three times the text. With one: a token for each character that the schema allows, so that the
    reply ends by the schema and is never cut.
    """
    if settings.exact_schema:
        claims = _max_claims(sentences, at_most)
        notes = MAX_NOTES_LENGTH if settings.reasoned else 0
        return 100 + notes + claims * (30 + _max_claim_length(sentences))
    size = sum(token_upper_bound(sentence) for sentence in sentences)
    return 200 + size + 40 * len(sentences) + (400 + size if settings.reasoned else 0)
