"""``OpenAIJudge``: extracts claims and checks them with a language model behind an endpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Final, Self

from openai import AsyncOpenAI
from pydantic import JsonValue, SecretStr

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price, price_of
from claimspan.cost.usage import add_undecided
from claimspan.errors import ConfigError, JudgeError
from claimspan.judges.llm import prompts
from claimspan.judges.llm.base_url import OPENAI_URL, check_base_url
from claimspan.judges.llm.batches import CheckBatch, Context, joint_batches, plan_batches
from claimspan.judges.llm.cells import cell_keys, free_verdicts, matrix_of, unknown_cells
from claimspan.judges.llm.chat_endpoint import LENGTH_OPTIONS, ChatEndpoint
from claimspan.judges.llm.checking import ReplyFormat, check_batch
from claimspan.judges.llm.client import guarded_client
from claimspan.judges.llm.completion import ChatModel
from claimspan.judges.llm.extraction import Extraction
from claimspan.judges.llm.extractor import Extractor
from claimspan.judges.llm.replies import claims_schema, verdicts_schema
from claimspan.judges.llm.sessions import Sessions
from claimspan.judges.llm.settings import (
    check_client,
    check_settings,
    fixed_options,
    is_reasoning_model,
    length_option,
    reasoning_tokens,
    secret_key,
    users_client,
)
from claimspan.judges.llm.verdict_cache import VerdictCache, content_key
from claimspan.judges.protocol import Cell
from claimspan.judges.values import VALUES_VERSION
from claimspan.verdicts import Claim, Verdict, VerdictMatrix

__all__ = ["OpenAIJudge"]

CHUNKS_PER_CALL: Final = 10
"""The chunks of most retrievers, which are read together in their call; ground truth and response
go with up to 8 of them, else into a second call; see ``tests/benchmarks/judge_cost.py``."""

TOP_LOGPROBS: Final = 10
"""Alternatives of a token: three labels, each in several spellings."""


class OpenAIJudge:
    """Extracts and checks claims with a language model: OpenAI, Azure, vLLM, Ollama, llama.cpp.

    A record takes one call for the claims of each text, and one check for every
    ``chunks_per_call`` texts with all claims. The check that has all chunks also reads them
    together; where they do not fit into one check, another call reads those that came near. Claims
    and verdicts are cached by content. The verdicts of a reply are matched by ids that are random
    in each call; a verdict that is missing, given twice or malformed is requested once more, and
    then left undecided. A claim that is a bare value, such as ``$1,577 million``, is decided by the
    value check where that can tell. A text that declines to answer makes no claim, and no call.

    A record may make 100 calls and use 1,000,000 tokens, unless a budget says otherwise; the
    verdicts beyond are undecided. A call never takes longer than ``call_seconds``, retries
    included. After five failures in a row no request is made for 30 s. A reply larger than 5 MiB is
    not read. Redirects, proxies and all settings of the environment are ignored, so that neither
    the prompts nor the key go elsewhere and the application's account does not pay.

    OpenAI's reasoning models (``o1`` and later, ``gpt-5`` and later) may use 25,000 tokens more in
    every call, since their reasoning counts towards the length of a reply. For other models that
    reason, raise the limit with ``options={"max_tokens": ...}``.

    **A client of your own.** ``client`` takes an ``openai.AsyncOpenAI`` or ``AsyncAzureOpenAI``,
    for Azure AD, a gateway, a proxy or certificates of your own. It decides on address, key,
    headers, environment variables, redirects, proxies, retries and the size of a reply, and stays
    open. The deadline of a call, the circuit breaker (which counts calls here), the budget and
    the error messages stay the judge's. With a budget the retries of the client are off, because
    the judge reserves each request. A client with HTTP/2 serves one event loop, any other serves
    all.

    Args:
        model: Name of the model at the endpoint; for Azure, of the deployment.
        api_key: Needed for OpenAI itself; local servers need none.
        base_url: Address under which ``/chat/completions`` is; None is OpenAI.
        headers: Headers of every request, such as Azure's ``api-key``.
        query: Query parameters of every request, such as Azure's ``api-version``.
        client: A client to use in place of the four above.
        options: Further fields in the body of every request, such as ``{"seed": 1}``.
        extraction: ``"direct"``, or ``"reasoned"`` for claims after a chain of thought.
        chunks_per_call: Texts in one check; 1 is the most careful, None as many as fit.
        logprobs: Request log probabilities for graded verdicts, where the endpoint gives them.
        top_logprobs: Alternatives of each token in them; at most 20 at OpenAI.
        exact_schema: Put the ids of each call into its JSON schema. Small models need it; OpenAI
            compiles each new schema, which takes seconds.
        concurrency: Requests at the same time in each event loop.
        call_seconds: Deadline of one call in seconds, with its retries and the waits between them,
            without the waits for a free slot or for the budget.
        price: Price of the model; None looks it up in ``claimspan.cost.pricing``.
        budget: Stops calls that could exceed it.
        cache: A cache to share, or one with a file; None caches in memory.

    Raises:
        ConfigError: An argument cannot work as given.
    """

    @property
    def name(self) -> str:
        """The name of the judge on the trace."""
        return "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | SecretStr | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        client: AsyncOpenAI | None = None,
        options: Mapping[str, JsonValue] | None = None,
        extraction: Extraction = "direct",
        chunks_per_call: int | None = CHUNKS_PER_CALL,
        logprobs: bool = True,
        top_logprobs: int = TOP_LOGPROBS,
        exact_schema: bool = False,
        concurrency: int = 16,
        call_seconds: float = 60.0,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        check_settings(extraction, chunks_per_call, concurrency, call_seconds)
        if client is None:
            url = check_base_url(base_url or OPENAI_URL)
            connect: Callable[[], AsyncOpenAI] = partial(
                guarded_client,
                base_url=url,
                api_key=secret_key(api_key, url),
                headers=headers or {},
                query=query or {},
                read_seconds=call_seconds,
            )
        else:
            check_client(client, base_url=base_url, api_key=api_key, headers=headers, query=query)
            url = str(client.base_url)
            connect = partial(users_client, client, budget)
        self.model: Final = model
        self.price: Final = price or price_of(model)
        self._options = {**fixed_options(model), **(options or {})}
        if budget is not None:
            self.check_budget(budget)
        self._reasoned = extraction == "reasoned"
        self._chunks_per_call = chunks_per_call
        self._top_logprobs = top_logprobs
        self._format = ReplyFormat(logprobs and not is_reasoning_model(model), exact_schema)
        self._cache = VerdictCache() if cache is None else cache
        self.version: Final = f"{model}/{self._digest()[:8]}"
        self._scope = content_key(self.version, url)
        self._extractor = Extractor(self._cache, self._scope, self._reasoned, exact_schema)
        self._chat_model: ChatModel = ChatEndpoint(
            model=model,
            sessions=Sessions(connect, concurrency),
            options=self._options,
            top_logprobs=top_logprobs,
            length_option=length_option(url),
            reasoning_tokens=reasoning_tokens(model),
            call_seconds=call_seconds,
            price=self.price,
            budget=budget,
        )

    @classmethod
    def from_environment(cls, model: str, *, extraction: Extraction = "direct") -> Self:
        """A judge with the key and the address of ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.

        Nothing else reads these variables: the judge never spends the key of the application
        unless it is told to.

        Args:
            model: Name of the model at the endpoint.
            extraction: As for the judge itself.

        Raises:
            ConfigError: ``OPENAI_API_KEY`` is not set, and ``OPENAI_BASE_URL`` names no server
                that needs none.
        """
        return cls(
            model,
            api_key=os.environ.get("OPENAI_API_KEY"),
            base_url=os.environ.get("OPENAI_BASE_URL"),
            extraction=extraction,
        )

    @property
    def chat_model(self) -> ChatModel:
        """Where the judge sends its prompts: for prompts beside judging, by the same endpoint."""
        return self._chat_model

    def with_chat_model(self, chat_model: ChatModel) -> Self:
        """A copy of the judge that sends its prompts to ``chat_model``, with an empty cache."""
        other = copy(self)
        other._cache = VerdictCache()
        other._extractor = self._extractor.with_cache(other._cache)
        other._chat_model = chat_model
        return other

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Extracts the claims of a text with one call for every 40 sentences.

        Args:
            text: A response or a ground truth.
            question: The question that it answers, where known.

        Returns:
            The claims in the order of the text.

        Raises:
            JudgeError: No reply came, or two replies in a row are unusable.
        """
        return await self._extractor.claims(self._chat_model, text, None, question)

    async def extract_at_most(
        self, text: str, max_claims: int, *, question: str | None = None
    ) -> list[Claim]:
        """Extracts claims as ``extract_claims`` does, and asks for no more than ``max_claims``.

        Args:
            text: A response or a ground truth.
            max_claims: Claims that are of use.
            question: The question that it answers, where known.

        Returns:
            The claims in the order of the text; a few more where the model does not count.

        Raises:
            JudgeError: No reply came, or two replies in a row are unusable.
        """
        return await self._extractor.claims(self._chat_model, text, max_claims, question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Checks every claim against every reference.

        Args:
            claims: Claims to check.
            references: Texts to check them against, each on its own.
            question: The question behind both, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``, None where the replies left a
            cell undecided.

        Raises:
            JudgeError: A call got no reply before it had decided any cell.
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
        """Checks some cells of the matrix alone; see ``SparseJudge``.

        Args:
            claims: Claims of the matrix.
            references: References of the matrix.
            cells: Cells to check, as (index of the claim, index of the reference).
            question: The question behind both, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``, None in all other cells and where
            the replies left a cell undecided.

        Raises:
            JudgeError: A call got no reply before it had decided any cell.
        """
        nothing = Context.of((), references)
        found = await self._decide(claims, references, cells, nothing, question)
        return matrix_of(found, len(claims), len(references))

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """Checks some cells, and some claims against several references together.

        Args:
            claims: Claims of the matrix.
            references: References of the matrix.
            cells: Cells to check; the column ``len(references)`` stands for the context.
            context: Indices of the references that are read together, in the order of their rank.
            question: The question behind both, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references) + 1)``, None in all other cells and
            where the replies left a cell undecided.

        Raises:
            JudgeError: A call got no reply before it had decided any cell.
        """
        together = Context.of(context, references)
        found = await self._decide(claims, references, cells, together, question)
        return matrix_of(found, len(claims), len(references) + 1)

    async def _decide(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        context: Context,
        question: str | None,
    ) -> dict[Cell, Verdict]:
        """Verdicts by cell, of those that could be decided."""
        keys = cell_keys(claims, references, cells, context, scope=(self._scope, question))
        known = self._cache.verdicts(list(set(keys.values())))
        known |= {
            keys[cell]: verdict
            for cell, verdict in free_verdicts(claims, references, keys, context, question).items()
        }
        texts = [claim.text for claim in claims]
        batches = plan_batches(
            texts,
            references,
            unknown_cells(keys, known),
            references_per_call=self._chunks_per_call,
            context=context,
        )
        known |= await self._check_all(batches, keys, question)
        found = {cell: known[key] for cell, key in keys.items() if key in known}
        unknown = unknown_cells(keys, known)
        left = joint_batches(texts, references, unknown, batches, context=context, verdicts=found)
        try:
            known |= await self._check_all(left, keys, question)
        except JudgeError as error:  # the verdicts on each reference alone are paid for
            add_undecided(str(error), sum(len(batch.cells) for batch in left))
        return {cell: known[key] for cell, key in keys.items() if key in known}

    async def _check_all(
        self, batches: Sequence[CheckBatch], keys: Mapping[Cell, str], question: str | None
    ) -> dict[str, Verdict]:
        found = await gather_or_cancel([self._check(each, keys, question) for each in batches])
        return {key: verdict for each in found for key, verdict in each.items()}

    async def _check(
        self, batch: CheckBatch, keys: Mapping[Cell, str], question: str | None
    ) -> dict[str, Verdict]:
        """Verdicts of one batch by key, cached at once: another batch that fails loses none."""
        found = await check_batch(
            self._chat_model, batch, question=question, reply_format=self._format
        )
        verdicts = {keys[cell]: verdict for cell, verdict in found.items()}
        self._cache.add_verdicts(verdicts)
        return verdicts

    def check_budget(self, budget: Budget) -> None:
        """Checks that each call has an upper bound by which a budget can reserve it.

        Raises:
            ConfigError: The budget is in dollars and the price of the model is not known, or an
                option lets a call cost anything.
        """
        if budget.needs_price and self.price is None:
            raise ConfigError(
                f"the price of {self.model!r} is not known, and the budget is in dollars: "
                "give price=Price(...)"
            )
        for name in (*LENGTH_OPTIONS, "n"):
            value = self._options.get(name, 1)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"options[{name!r}] is {value!r}: a budget needs a whole number")

    def _digest(self) -> str:
        """A digest of everything that can change a verdict."""
        schemas = json.dumps([claims_schema(reasoned=self._reasoned), verdicts_schema()])
        asked = (self._reasoned, self._chunks_per_call, self._format, self._top_logprobs)
        settings = repr((*asked, self._options))
        checks = (prompts.CHECK, prompts.CHECK_TOGETHER, prompts.TOGETHER)
        said = (*checks, prompts.EXTRACT, prompts.EXTRACT_REASONED, VALUES_VERSION)
        return content_key(*said, schemas, settings)
