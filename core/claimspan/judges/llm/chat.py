"""The seam to a language model: messages and a schema go in; text, usage, a finish reason come out.

An adapter of any client is some ten lines:

    class OurModel:
        model = "our-model-7b"

        async def complete(self, request: ChatRequest) -> ChatReply:
            reply = await client.chat(request.messages, max_tokens=request.max_tokens)
            return ChatReply(reply.text, reply.finish_reason, reply.n_prompt, reply.n_completion)

Deadline, budget, circuit breaker, retries, cache, and what an endpoint refuses are the judge's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue, SecretStr

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price

__all__ = [
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Form",
    "Message",
    "Prompt",
    "Settings",
    "Token",
    "Traits",
    "traits_of",
]

Message = Mapping[Literal["role", "content"], str]
"""``{"role": "system" or "user", "content": text}``."""

Form = Literal["strict", "plain", "object", "words"]
"""How the form of a reply is asked for: by a strict JSON schema, by a schema that the endpoint may
take as a hint, as any JSON object, or in the words of the prompt alone."""

FORMS: Final[tuple[Form, ...]] = ("strict", "plain", "object", "words")
"""From the surest to the one that every model takes."""


class ChatRequest(NamedTuple):
    """One request to a model."""

    messages: Sequence[Message]
    """The system message and the user message; or the latter alone, if a model takes no other."""

    schema: Mapping[str, JsonValue] | None
    """JSON schema of the reply; None if the messages alone say its form."""

    max_tokens: int
    """Most completion tokens of the reply, a model's reasoning included."""

    parameters: Mapping[str, JsonValue]
    """Everything beside messages and model as fields of OpenAI's protocol: ``response_format``, the
    limit under the name that the endpoint takes, ``temperature``, ``seed``, ``logprobs``."""


class Token(NamedTuple):
    """A token of a reply with its log probabilities."""

    text: str
    """The token as it stands in the reply."""

    logprob: float
    """Log probability of the token."""

    top_logprobs: Mapping[str, float]
    """Log probabilities of the likeliest tokens at the same position, by token."""

    @property
    def alternatives(self) -> dict[str, float]:
        """The likeliest tokens, and the token itself, which endpoints do not always list."""
        return {self.text: self.logprob, **self.top_logprobs}


class ChatReply(NamedTuple):
    """The answer of a model."""

    text: str
    """The reply, with whatever the model has written around it."""

    finish_reason: str | None = None
    """Why it ended, in the words of the provider; None if the client does not say."""

    input_tokens: int | None = None
    """Prompt tokens as the provider has counted them; None has them estimated."""

    output_tokens: int | None = None
    """Completion tokens, reasoning included; None has them estimated."""

    tokens: Sequence[Token] = ()
    """Tokens of the reply with log probabilities; empty if there are none."""


@runtime_checkable
class ChatModel(Protocol):
    """Answers requests, each with one call of its client; an error of the client may come through.

    Beside ``model`` an implementation may have the attributes of ``Traits``.
    """

    @property
    def model(self) -> str:
        """The name of the model, as it appears on the trace, and as prices are looked up by it."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to a request."""
        ...


class Traits(NamedTuple):
    """The traits of a model at the start; each is an optional attribute of a ``ChatModel``."""

    provider: str = "llm"
    """Who serves the model, in OpenTelemetry's words: the name of the judge on the trace."""

    address: str = ""
    """Where it is, for the log and the cache; without a path, a user or a key."""

    url: str = ""
    """Where it is, for the cache, if the address alone does not tell one model from another."""

    secrets: Sequence[SecretStr] = ()
    """Keys that no error may repeat."""

    forms: tuple[Form, ...] = FORMS
    """The forms of a reply that it can be asked for, the best first."""

    limit_field: str | None = None
    """The field of the limit on completion tokens that its endpoint takes; None goes by the name of
    the model."""

    sends_parameters: bool = True
    """Whether it sends the parameters of a request; if not, the messages alone."""

    max_retries: int | None = None
    """Times that a request is sent again after a failure that may pass; None: the judge's rule."""

    max_output_tokens: int | None = 0
    """Most completion tokens, if the client decides; 0 if each request does, None if unknown."""

    price: Price | None = None
    """Its price; None looks it up by its name."""

    explain: Callable[[BaseException], str | None] | None = None
    """Says of an error of the client what happened and what to do; None if it cannot tell."""


def traits_of(model: ChatModel) -> Traits:
    """The traits that a model states, and the defaults of the others."""
    given = {name: getattr(model, name) for name in Traits._fields if hasattr(model, name)}
    return Traits(**given)


class Settings(NamedTuple):
    """What holds for every call of a judge; see the arguments of ``ModelJudge``."""

    options: Mapping[str, JsonValue]
    reasoned: bool
    instructions: str
    chunks_per_call: int | None
    logprobs: bool
    top_logprobs: int
    exact_schema: bool
    concurrency: int
    call_seconds: float
    reasoning_tokens: int
    seed: int | None
    price: Price | None
    budget: Budget | None


class Prompt(NamedTuple):
    """The messages of one call of the judge, and the form of the reply to them."""

    system: str
    user: str
    schema_name: str
    schema: Mapping[str, JsonValue]
    """JSON schema of the reply, of keywords that endpoints know."""

    max_tokens: int
    """Limit on the completion tokens of the reply, without those of a model's reasoning."""

    logprobs: bool = False
    """Whether the reply comes with log probabilities."""

    exact_schema: Mapping[str, JsonValue] | None = None
    """A schema with the ids of this call, to send unless the endpoint refuses a keyword of it."""

    @property
    def texts(self) -> tuple[str, str]:
        """The texts that the model reads, without the schema."""
        return self.system, self.user
