"""Extraction of the claims of a whole text: its calls, what is cached of it, and its limit."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan.concurrency import SingleFlight, gather_or_cancel
from claimspan.judges.llm.completion import ChatModel
from claimspan.judges.llm.extraction import batches_of, extract, limits_of, sentences_of
from claimspan.judges.llm.verdict_cache import VerdictCache, content_key
from claimspan.text.abstention import abstains
from claimspan.text.encodable import encodable
from claimspan.verdicts import Claim

__all__ = ["Extractor"]


class Extractor:
    """Extracts the claims of each text once, whoever asks for them and how many ask at a time."""

    def __init__(self, cache: VerdictCache, scope: str, reasoned: bool, exact_schema: bool) -> None:
        """Keep what all texts have in common.

        Args:
            cache: Holds the claims of texts that were read.
            scope: What claims depend on beside text and question: model, prompts, address.
            reasoned: Whether the model first writes a chain of thought.
            exact_schema: Whether the JSON schema holds the ids of the call.
        """
        self._cache = cache
        self._scope = scope
        self._reasoned = reasoned
        self._exact_schema = exact_schema
        self._flights = SingleFlight[list[Claim]]()

    def with_cache(self, cache: VerdictCache) -> Extractor:
        """The same with another cache."""
        return Extractor(cache, self._scope, self._reasoned, self._exact_schema)

    async def claims(
        self, model: ChatModel, text: str, max_claims: int | None, question: str | None
    ) -> list[Claim]:
        """The claims of a text; none, at no call, where it declines to answer.

        Args:
            model: The model to ask.
            text: A response or a ground truth.
            max_claims: Claims that are of use; None for all.
            question: The question that the text answers, where known.

        Raises:
            JudgeError: No reply came, or two replies in a row are unusable.
        """
        # Models make a claim of what a refusal says about its author, which no chunk entails.
        if abstains(text):
            return []
        batches = batches_of(sentences_of(encodable(text)))
        limits = limits_of(batches, max_claims)
        limited = str(max_claims) if any(limits) else None
        key = content_key(self._scope, "claims", question, text, limited)
        known = self._cache.claims(key)
        if known is not None:
            return known
        return await self._flights.run(
            key, lambda: self._extract(model, key, batches, limits, question)
        )

    async def _extract(
        self,
        model: ChatModel,
        key: str,
        batches: Sequence[Sequence[str]],
        limits: Sequence[int | None],
        question: str | None,
    ) -> list[Claim]:
        parts = await gather_or_cancel(
            [
                extract(
                    model,
                    sentences,
                    question=question,
                    reasoned=self._reasoned,
                    exact_schema=self._exact_schema,
                    at_most=limit,
                )
                for sentences, limit in zip(batches, limits, strict=True)
            ]
        )
        claims = [claim for part in parts for claim in part]
        self._cache.add_claims(key, claims)
        return claims
