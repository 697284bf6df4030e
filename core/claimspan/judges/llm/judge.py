"""A judge behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Final, Self, get_args

from pydantic import JsonValue, SecretStr

from claimspan.concurrency import Flights, together
from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price, price_of
from claimspan.errors import ConfigError
from claimspan.judges.llm import prompts
from claimspan.judges.llm.checking import Pack, Style, check_pack, packs_of
from claimspan.judges.llm.client import LENGTH_OPTIONS, Endpoint
from claimspan.judges.llm.completion import Completer
from claimspan.judges.llm.connections import Connections
from claimspan.judges.llm.endpoint_url import OPENAI_URL, check_base_url, is_openai
from claimspan.judges.llm.extraction import Extraction, batches_of, extract, sentences_of
from claimspan.judges.llm.replies import claims_schema, verdicts_schema
from claimspan.judges.llm.verdict_cache import VerdictCache, content_key, joint_key
from claimspan.judges.protocol import Cell
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["OpenAIJudge"]

CHUNKS_PER_CALL: Final = 6
"""Two calls for the 12 texts of a record with 10 chunks; see ``tests/benchmarks/judge_cost.py``."""

TOP_LOGPROBS: Final = 10
"""Three labels, each in some spellings."""

# They think in tokens of their own: a fixed temperature and log probabilities are refused.
_REASONING_MODEL: Final = re.compile(r"o\d|gpt-[5-9]")
_THINKING_TOKENS: Final = 25_000  # what OpenAI's guide to reasoning says to leave them at first
_EMPTY: Final = Verdict(label=Label.NEUTRAL, entailed=0.0, neutral=1.0, contradicted=0.0)


class OpenAIJudge:
    """Claims and verdicts from a language model: OpenAI, Azure, vLLM, Ollama, llama.cpp, ...

    A record takes one call for the claims of each text, and one for every ``chunks_per_call``
    texts, with all claims in it. What was decided once is not asked again: claims and verdicts
    are cached by content. Verdicts come back by ids that are random for each call; what is
    missing, doubled or malformed is asked for once more, and then left undecided.

    No call lasts longer than ``call_seconds`` once it has begun, retries included. After five
    failures in a row no request is made for 30 s. Redirects, proxies and every setting of the
    environment are ignored.

    What a model thinks counts towards the length of its reply: OpenAI's reasoning models (``o1``
    and later, ``gpt-5`` and later) are allowed 25,000 tokens more for it in every call. Where
    others think aloud as well, allow it by ``options={"max_tokens": ...}``.

    Args:
        model: As the endpoint calls it.
        api_key: Needed for OpenAI itself; local servers take none.
        base_url: Where ``/chat/completions`` is; None is OpenAI.
        headers: Sent with every request, such as Azure's ``api-key``.
        query: Appended to every request, such as Azure's ``api-version``.
        options: Added to the body of every request, such as ``{"seed": 1}``.
        extraction: ``"direct"``, or ``"reasoned"``: after a chain of thought.
        chunks_per_call: Texts in one check; 1 is the careful way, None as many as fit.
        graded: Ask for log probabilities, where the endpoint gives them.
        top_logprobs: Alternatives of each token that are asked for then; OpenAI gives 20 at most.
        exact_schema: Put the ids of each call into its schema. Small models need it; OpenAI
            compiles every new schema, which takes seconds.
        concurrency: Requests under way at once, in each event loop.
        call_seconds: Deadline of one call, retries and the waits between them included, but not
            the waits for a free slot or for the budget.
        price: Of the model; None takes it from ``claimspan.cost.pricing``.
        budget: Stops before it is passed; what ``options`` allow in tokens and replies counts.
        cache: Shared, or with a file; None keeps what this judge has found in memory.

    Raises:
        ConfigError: Something of this cannot work.
    """

    @property
    def name(self) -> str:
        """What stands on the trace."""
        return "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | SecretStr | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        options: Mapping[str, JsonValue] | None = None,
        extraction: Extraction = "direct",
        chunks_per_call: int | None = CHUNKS_PER_CALL,
        graded: bool = True,
        top_logprobs: int = TOP_LOGPROBS,
        exact_schema: bool = False,
        concurrency: int = 16,
        call_seconds: float = 60.0,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        url = check_base_url(base_url or OPENAI_URL)
        _check_numbers(chunks_per_call, concurrency, call_seconds)
        if extraction not in get_args(Extraction):
            raise ConfigError(f"extraction is {extraction!r}: give 'direct' or 'reasoned'")
        self.model: Final = model
        self.price: Final = price or price_of(model)
        self._check_budget(budget, options or {})
        self._reasoned = extraction == "reasoned"
        self._chunks_per_call = chunks_per_call
        self._options = {**_fixed_options(model), **(options or {})}
        self._top_logprobs = top_logprobs
        self._style = Style(graded and not _REASONING_MODEL.match(model), exact_schema)
        self._cache = VerdictCache() if cache is None else cache
        self._flights = Flights[list[Claim]]()
        self.version: Final = f"{model}/{self._digest()[:8]}"
        self._scope = content_key(self.version, url)
        self._completer: Completer = Endpoint(
            model=model,
            connections=Connections(
                base_url=url,
                api_key=_secret(api_key, url),
                headers=headers or {},
                query=query or {},
                concurrency=concurrency,
                read_seconds=call_seconds,
            ),
            options=self._options,
            top_logprobs=top_logprobs,
            length_option="max_completion_tokens" if is_openai(url) else "max_tokens",
            thinking_tokens=_thinking_tokens(model),
            call_seconds=call_seconds,
            price=self.price,
            budget=budget,
        )

    @classmethod
    def from_environment(cls, model: str) -> Self:
        """A judge with the key and address of ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.

        The one way in which these are read: a key of the application is not spent unasked.

        Raises:
            ConfigError: ``OPENAI_API_KEY`` is not set, and ``OPENAI_BASE_URL`` names no server.
        """
        return cls(
            model,
            api_key=os.environ.get("OPENAI_API_KEY"),
            base_url=os.environ.get("OPENAI_BASE_URL"),
        )

    def rehearsed_by(self, completer: Completer) -> Self:
        """The same judge with an empty cache, that asks ``completer`` and sends nothing."""
        other = copy(self)
        other._cache, other._flights = VerdictCache(), Flights[list[Claim]]()
        other._completer = completer
        return other

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The claims of a text, from one call for every 40 sentences.

        Raises:
            JudgeError: No reply came, or two that cannot be used; the message says why.
        """
        key = content_key(self._scope, "claims", question, text)
        known = self._cache.claims(key)
        if known is not None:
            return known
        return await self._flights.join(key, lambda: self._extract(key, text, question))

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """A verdict for every claim against every reference, in as few calls as allowed.

        Raises:
            JudgeError: No reply came to a call that had decided nothing yet; the message says why.
        """
        cells = {(i, j) for i in range(len(claims)) for j in range(len(references))}
        return await self.check_cells(claims, references, cells, question=question)

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """Verdicts on some cells of the matrix; see ``SparseJudge``.

        Raises:
            JudgeError: No reply came to a call that had decided nothing yet; the message says why.
        """
        keys = self._keys(claims, references, cells, question)
        known = self._cache.verdicts(list(set(keys.values())))
        known |= {keys[i, j]: _EMPTY for i, j in keys if not references[j].strip()}
        # Two cells of the same content are one to ask for.
        first = {key: cell for cell, key in keys.items() if key not in known}
        texts = [claim.text for claim in claims]
        packs = packs_of(
            texts, references, first.values(), references_per_call=self._chunks_per_call
        )
        found = await together([self._check(pack, keys, question) for pack in packs])
        for some in found:
            known |= some
        rows = [
            [known.get(keys.get((i, j), "")) for j in range(len(references))]
            for i in range(len(claims))
        ]
        return VerdictMatrix.of(rows, len(references))

    async def _check(
        self, pack: Pack, keys: Mapping[Cell, str], question: str | None
    ) -> dict[str, Verdict]:
        """Kept pack by pack: what was paid for stays when another pack fails."""
        found = await check_pack(self._completer, pack, question=question, style=self._style)
        verdicts = {keys[cell]: verdict for cell, verdict in found.items()}
        self._cache.add_verdicts(verdicts)
        return verdicts

    async def _extract(self, key: str, text: str, question: str | None) -> list[Claim]:
        parts = await together(
            [
                extract(
                    self._completer,
                    sentences,
                    question=question,
                    reasoned=self._reasoned,
                    exact=self._style.exact,
                )
                for sentences in batches_of(sentences_of(text))
            ]
        )
        claims = [claim for part in parts for claim in part]
        self._cache.add_claims(key, claims)
        return claims

    def _keys(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        question: str | None,
    ) -> dict[Cell, str]:
        """What each cell is about: model, prompt, question, claim and reference."""
        about = content_key(self._scope, "verdict", question)
        rows = [content_key(claim.text) for claim in claims]
        columns = [content_key(text) for text in references]
        return {(i, j): joint_key(about, rows[i], columns[j]) for i, j in sorted(cells)}

    def _check_budget(self, budget: Budget | None, options: Mapping[str, JsonValue]) -> None:
        if budget is None:
            return
        if budget.needs_price and self.price is None:
            raise ConfigError(f"the price of {self.model!r} is not known: give price=Price(...)")
        for name in (*LENGTH_OPTIONS, "n"):
            value = options.get(name, 1)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"options[{name!r}] is {value!r}: a budget needs a whole number")

    def _digest(self) -> str:
        """Changes with whatever may change a verdict."""
        schemas = json.dumps([claims_schema(reasoned=self._reasoned), verdicts_schema()])
        asked = (self._reasoned, self._chunks_per_call, self._style, self._top_logprobs)
        settings = repr((*asked, self._options))
        said = (prompts.CHECK, prompts.EXTRACT, prompts.EXTRACT_REASONED)
        return content_key(*said, schemas, settings)


def _check_numbers(chunks_per_call: int | None, concurrency: int, call_seconds: float) -> None:
    if chunks_per_call is not None and chunks_per_call < 1:
        raise ConfigError(f"chunks_per_call is {chunks_per_call!r}: give 1 or more, or None")
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    if not call_seconds > 0:
        raise ConfigError(f"call_seconds is {call_seconds!r}: give more than 0")


def _fixed_options(model: str) -> dict[str, JsonValue]:
    return {} if _REASONING_MODEL.match(model) else {"temperature": 0}


def _thinking_tokens(model: str) -> int:
    """None for the models of chats, which answer at once and are refused so long a reply."""
    return _THINKING_TOKENS if _REASONING_MODEL.match(model) and "-chat" not in model else 0


def _secret(key: str | SecretStr | None, url: str) -> SecretStr | None:
    if not key and is_openai(url):
        raise ConfigError("OpenAI needs a key: give api_key, or use OpenAIJudge.from_environment")
    return key if isinstance(key, SecretStr) or key is None else SecretStr(key)
