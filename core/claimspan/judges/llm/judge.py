"""``ModelJudge`` and ``OpenAIJudge``: extract, check and grade with a language model."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Final, Self, get_args

from openai import AsyncOpenAI
from pydantic import JsonValue, SecretStr

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.errors import ConfigError
from claimspan.judges.criteria import Criterion
from claimspan.judges.llm import prompts
from claimspan.judges.llm.chat import ChatModel, Settings
from claimspan.judges.llm.checking import Checker, Context
from claimspan.judges.llm.dialect import LIMITS, REASONING_TOKENS, is_reasoning_model
from claimspan.judges.llm.endpoint import Endpoint
from claimspan.judges.llm.extraction import Extraction, Extractor
from claimspan.judges.llm.grading import Grader
from claimspan.judges.llm.openai_chat import OpenAIChat, trusts_environment
from claimspan.judges.llm.replies import claims_schema, grades_schema, verdicts_schema
from claimspan.judges.protocol import Cell, Grade, SparseJudge, matrix_of_cells
from claimspan.judges.verdict_cache import VerdictCache, content_key
from claimspan.quantities import VALUES_VERSION
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, VerdictMatrix

__all__ = ["ModelJudge", "OpenAIJudge"]

CHUNKS_PER_CALL: Final = 10
"""The chunks of most retrievers, which are read together in their call; ground truth and response
go with up to 8 of them, else into a second call; see ``tests/benchmarks/judge_cost.py``."""

TOP_LOGPROBS: Final = 10
"""Alternatives of a token: five labels, each in several spellings."""

MAX_INSTRUCTIONS: Final = 2_000
"""Characters of the user's instructions: they stand in every prompt."""


class ModelJudge(SparseJudge):
    """Extracts and checks claims with any chat model, and grades answers by criteria.

    A record takes one call for the claims of each text, one check for every ``chunks_per_call``
    texts with all claims, and one call for all criteria, if there are any. The check that has all
    chunks also reads them together; if they do not fit into one check, another call reads those
    that came near. Claims, verdicts and grades are cached by content. The verdicts of a reply are
    matched by ids that no text knows; a verdict or a grade that is missing, given twice or
    malformed is requested once more, and then left undecided. A claim that is a bare value, such as
    ``$1,577 million``, is decided by the value check if that can tell. A text that declines to
    answer makes no claim, and no call for claims.

    A record may make 100 calls and use 1,000,000 tokens, unless a budget says otherwise; the
    verdicts beyond are undecided. A call never takes longer than ``call_seconds``, retries
    included, but for the waits that the endpoint asks for. After five failures in a row no request
    is made for 30 s, nor after the endpoint has said that the account has nothing left.

    What a model refuses by name (a temperature, a seed, log probabilities, the JSON schema, the
    name of the limit on its reply) is left out from then on, with one line in the log. Texts that
    do not fit into its window are asked about in halves. A reply that was cut is asked for again
    with room for ``reasoning_tokens`` more.

    Args:
        model: The model, as a ``ChatModel``.
        options: Further fields in the body of every request; None leaves a field out that would be
            sent otherwise, as in ``{"temperature": None}``.
        extraction: ``"direct"``, or ``"reasoned"`` for claims after a chain of thought.
        instructions: What a reader of the texts has to know of their domain, at most 2,000
            characters: ``Prices are without VAT.`` It stands in every prompt, and cannot change the
            form of a reply.
        chunks_per_call: Texts in one check; 1 is the most careful, None as many as fit.
        logprobs: Request log probabilities for graded verdicts, if the endpoint gives them.
        top_logprobs: Alternatives of each token in them; at most 20 at OpenAI.
        exact_schema: Put the ids of each call into its JSON schema. Small models need it; OpenAI
            compiles each new schema, which takes seconds.
        concurrency: Requests at the same time in each event loop.
        call_seconds: Deadline of one call in seconds, with its retries and the waits between them,
            without the waits for a free slot, for the budget, and those that the endpoint asks for.
        reasoning_tokens: Completion tokens that the reasoning of a model may use in every call,
            beside those of the reply. They are allowed from the first call on if the name of the
            model tells that it reasons, else once a reply was cut.
        seed: Makes prompts and ids the same from run to run, and is sent along; None draws the ids
            at random. Texts can guess the ids of no seed that they do not know.
        price: Price of the model; None looks it up in ``claimspan.cost.pricing``.
        budget: Stops calls that could exceed it.
        cache: A cache to share, or one with a file; None caches in memory.

    Raises:
        ConfigError: An argument cannot work as given.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        options: Mapping[str, JsonValue] | None = None,
        extraction: Extraction = "direct",
        instructions: str = "",
        chunks_per_call: int | None = CHUNKS_PER_CALL,
        logprobs: bool = False,
        top_logprobs: int = TOP_LOGPROBS,
        exact_schema: bool = False,
        concurrency: int = 16,
        call_seconds: float = 60.0,
        reasoning_tokens: int = REASONING_TOKENS,
        seed: int | None = None,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        if extraction not in get_args(Extraction):
            raise ConfigError(f"extraction is {extraction!r}: give 'direct' or 'reasoned'")
        if not isinstance(model, ChatModel):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"model is of type {type(model).__name__}: give an object with model and complete"
            )
        self._settings = Settings(
            options=dict(options or {}),
            reasoned=extraction == "reasoned",
            instructions=_checked_instructions(instructions),
            chunks_per_call=chunks_per_call,
            logprobs=logprobs and not is_reasoning_model(model.model),
            top_logprobs=top_logprobs,
            exact_schema=exact_schema,
            concurrency=concurrency,
            call_seconds=call_seconds,
            reasoning_tokens=reasoning_tokens,
            seed=seed,
            price=price,
            budget=budget,
        )
        _check_settings(self._settings)
        self._digest = _digest(self._settings)
        self._ask(model, VerdictCache() if cache is None else cache)
        if budget is not None:
            self.check_budget(budget)

    def _ask(self, model: ChatModel, cache: VerdictCache) -> None:
        settings = self._settings
        endpoint = self._endpoint = Endpoint(model, settings)
        traits = endpoint.traits
        if settings.options and not traits.sends_parameters:
            raise ConfigError(
                f"the option {next(iter(settings.options))!r} is not for the judge of a model "
                "object: set it on the object, and leave it out here"
            )
        self.model: str = model.model
        self.version: str = f"{model.model}/{self._digest[:8]}"
        self.price: Price | None = endpoint.price
        scope = content_key(self.version, traits.url or traits.address)
        self._extractor = Extractor(endpoint, cache, scope, settings)
        self._checker = Checker(endpoint, cache, scope, settings)
        self._grader = Grader(endpoint, cache, scope, settings)

    @property
    def name(self) -> str:
        """Who serves the model: the name of the judge on the trace."""
        return self._endpoint.traits.provider

    @property
    def chat_model(self) -> Endpoint:
        """Where the judge sends its prompts: for prompts beside judging, under the same bounds."""
        return self._endpoint

    @property
    def learned(self) -> Sequence[str]:
        """The parts of requests that the model has refused; empty if none."""
        return self._endpoint.learned

    @property
    def reasons(self) -> bool:
        """Whether the model may use ``reasoning_tokens`` in every call, as far as is known."""
        dialect = self._endpoint.dialect
        return dialect.has_room and dialect.reasoning_tokens > 0

    def with_chat_model(self, chat_model: ChatModel) -> Self:
        """A copy of the judge that sends its prompts to ``chat_model``, with an empty cache."""
        other = copy(self)
        other._ask(chat_model, VerdictCache())
        return other

    def check_budget(self, budget: Budget) -> None:
        """Checks that a budget can bound each call; see ``BudgetedJudge``.

        Raises:
            ConfigError: The budget is in dollars and the price of the model is not known, or a call
                may cost anything.
        """
        self._endpoint.check_budget(budget)

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Extracts the claims of a text with one call for every 40 sentences; see ``Judge``.

        Raises:
            JudgeError: No reply came, or two replies in a row are unusable.
        """
        return await self._extractor.claims(text, None, question)

    async def extract_at_most(
        self, text: str, max_claims: int, *, question: str | None = None
    ) -> list[Claim]:
        """Extracts ``max_claims``, or a few more if the model does not count.

        Raises:
            JudgeError: As ``extract_claims``.
        """
        return await self._extractor.claims(text, max_claims, question)

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """Checks some cells of the matrix alone; see ``SparseJudge``.

        Raises:
            JudgeError: A call got no reply before it had decided any cell.
        """
        whole = await self.check_context(claims, references, cells, context=(), question=question)
        return whole.cut(range(len(claims)), range(len(references)))

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """Checks some cells, and claims against several references together; see ``ContextJudge``.

        Raises:
            JudgeError: As ``check_cells``.
        """
        found = await self._checker.decide(
            claims, references, cells, Context.of(context, references), question
        )
        return matrix_of_cells(found, len(claims), len(references) + 1)

    async def grade(self, criteria: Sequence[Criterion], record: RagRecord) -> list[Grade]:
        """Grades the response of a record with one call; see ``CriteriaJudge``.

        The ground truth is not sent, and the chunks only if a criterion has ``with_chunks``.

        Raises:
            JudgeError: No reply came before any grade was decided. Two replies in a row that
                cannot be used leave grades undecided.
        """
        return await self._grader.grades(criteria, record)


def _check_settings(settings: Settings) -> None:
    if not settings.call_seconds > 0:
        raise ConfigError(f"call_seconds is {settings.call_seconds!r}: give more than 0")
    for name, least in (("chunks_per_call", 1), ("concurrency", 1), ("reasoning_tokens", 0)):
        value: int | None = getattr(settings, name)
        if value is not None and value < least:
            raise ConfigError(f"{name} is {value!r}: give {least} or more")
    for name in settings.options.keys() & {"model", "messages", "stream"}:
        raise ConfigError(f"options[{name!r}] is for the judge to set: leave it out")
    for name in settings.options.keys() & {*LIMITS}:
        limit = settings.options[name]
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ConfigError(f"options[{name!r}] is {limit!r}: give a whole number, or None")


def _checked_instructions(given: object) -> str:
    if not isinstance(given, str):
        raise ConfigError(f"instructions is of type {type(given).__name__}: give a text")
    if len(given) > MAX_INSTRUCTIONS:
        raise ConfigError(
            f"instructions has {len(given):,} characters: give at most {MAX_INSTRUCTIONS:,}"
        )
    return given.strip()


def _digest(settings: Settings) -> str:
    """A digest of everything beside the model that can change a verdict or a grade."""
    given = settings
    asked = (given.reasoned, given.chunks_per_call, given.logprobs, given.exact_schema)
    told = (given.instructions,) if given.instructions else ()
    said = (prompts.CHECK, prompts.CHECK_TOGETHER, prompts.TOGETHER, prompts.EXTRACT)
    more = (prompts.EXTRACT_REASONED, prompts.GRADE)
    schemas = [claims_schema(reasoned=given.reasoned), verdicts_schema(), grades_schema()]
    all_asked = repr((*asked, given.top_logprobs, given.options, *told))
    return content_key(*said, *more, VALUES_VERSION, json.dumps(schemas), all_asked)


class OpenAIJudge(ModelJudge):
    """Judges with a model behind an OpenAI-compatible endpoint: OpenAI, Azure, vLLM, Ollama.

    It works as ``ModelJudge`` says, and takes its arguments. A reply larger than 5 MiB is not read.
    Redirects, proxies and the ``OPENAI_*`` variables of the environment are ignored, so that
    neither the prompts nor the key go elsewhere and the application's account does not pay;
    ``trust_env`` honours proxies. Certificates in ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are
    trusted.

    **A client of your own.** ``client`` takes an ``openai.AsyncOpenAI`` or ``AsyncAzureOpenAI``,
    for Azure AD, a gateway, a proxy or certificates of your own. It decides on address, key,
    headers, environment variables, redirects, proxies, the number of retries and the size of a
    reply, and stays open. The retries themselves, the deadline of a call, the circuit breaker, the
    budget and the error messages are the judge's. A client with HTTP/2 serves one event loop, any
    other serves all.

    Args:
        model: Name of the model at the endpoint; for Azure, of the deployment.
        api_key: Needed for OpenAI itself; local servers need none.
        base_url: Address under which ``/chat/completions`` is; None is OpenAI.
        headers: Headers of every request, such as Azure's ``api-key``.
        query: Query parameters of every request, such as Azure's ``api-version``.
        client: A client to use in place of the four above.
        trust_env: Send requests by the proxies of the environment; None does so if
            ``CLAIMSPAN_TRUST_ENV`` is set.
        provider: Who serves the model: the name of the judge on the trace.
        options: As all below, see ``ModelJudge``.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | SecretStr | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        client: AsyncOpenAI | None = None,
        trust_env: bool | None = None,
        provider: str = "openai",
        options: Mapping[str, JsonValue] | None = None,
        extraction: Extraction = "direct",
        instructions: str = "",
        chunks_per_call: int | None = CHUNKS_PER_CALL,
        logprobs: bool = True,
        top_logprobs: int = TOP_LOGPROBS,
        exact_schema: bool = False,
        concurrency: int = 16,
        call_seconds: float = 60.0,
        reasoning_tokens: int = REASONING_TOKENS,
        seed: int | None = None,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: VerdictCache | None = None,
    ) -> None:
        chat = OpenAIChat(
            model,
            provider=provider,
            # An empty key is none.
            api_key=(SecretStr(api_key) if api_key else None)
            if isinstance(api_key, str)
            else api_key,
            base_url=base_url,
            headers=headers,
            query=query,
            client=client,
            read_seconds=call_seconds,
            trust_env=trusts_environment() if trust_env is None else trust_env,
        )
        super().__init__(
            chat,
            options=options,
            extraction=extraction,
            instructions=instructions,
            chunks_per_call=chunks_per_call,
            logprobs=logprobs,
            top_logprobs=top_logprobs,
            exact_schema=exact_schema,
            concurrency=concurrency,
            call_seconds=call_seconds,
            reasoning_tokens=reasoning_tokens,
            seed=seed,
            price=price,
            budget=budget,
            cache=cache,
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
            base_url=os.environ.get("OPENAI_BASE_URL") or None,
            extraction=extraction,
        )
