"""One chat completion: what is sent, what comes back, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from claimspan.cost.usage import Usage
from claimspan.errors import ReplyError
from claimspan.judges.llm.logprobs import ReadToken
from claimspan.text.tokens import count_tokens

__all__ = [
    "Completer",
    "Completion",
    "Envelope",
    "Prompt",
    "read_completion",
    "read_envelope",
    "usage_of",
]


class Prompt(NamedTuple):
    """What one call asks."""

    system: str
    user: str
    schema_name: str
    schema: Mapping[str, JsonValue]
    """JSON schema of the reply."""

    max_tokens: int
    """Completion tokens that the reply may take, without those that a model thinks in."""

    graded: bool = False
    """Whether log probabilities are wanted."""

    @property
    def texts(self) -> tuple[str, str]:
        """All that the model reads, but for the schema."""
        return self.system, self.user


class Completion(NamedTuple):
    """A complete reply."""

    content: str
    tokens: tuple[ReadToken, ...] = ()
    """Empty where the endpoint gives no log probabilities."""


class Completer(Protocol):
    """Who answers prompts: an endpoint, or a rehearsal of one."""

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to a prompt.

        Raises:
            ReplyError: It came, and is not a complete reply.
            JudgeError: None came.
        """
        ...


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Alternative(_Loose):
    token: str
    logprob: float


class _Token(_Alternative):
    top_logprobs: list[_Alternative] = []


class _Logprobs(_Loose):
    content: list[_Token] | None = None


class _Message(_Loose):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Loose):
    finish_reason: str | None = None
    message: _Message | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Envelope(_Loose):
    """What the protocol puts around a reply; everything may be missing."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None


_FINISHED: Final = frozenset({"stop", None, "eos", "end_turn"})


def read_envelope(body: bytes) -> Envelope:
    """Read the body of a successful response.

    Raises:
        ReplyError: It is HTML, no JSON, or JSON of another kind.
    """
    try:
        return Envelope.model_validate_json(body)
    except ValidationError as error:
        if body.lstrip()[:1] == b"<":
            raise ReplyError("the endpoint answered with HTML: is base_url right?") from None
        is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
        what = "is not a chat completion" if is_json else "is not JSON"
        raise ReplyError(f"the endpoint's response {what}") from None


def read_completion(envelope: Envelope) -> Completion:
    """The reply of a model out of its envelope.

    Raises:
        ReplyError: There is none, it is a refusal, or it was cut.
    """
    choice = envelope.choices[0] if envelope.choices else None
    if choice is None or choice.message is None:
        raise ReplyError("the response holds no reply")
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ReplyError("the model refused")
    if choice.finish_reason == "length":
        raise ReplyError("the reply was cut at its allowed length")
    if choice.finish_reason not in _FINISHED:
        raise ReplyError("the reply ended for an unknown reason")
    if not choice.message.content:
        raise ReplyError("the reply is empty")
    return Completion(choice.message.content, tuple(_read_tokens(choice.logprobs)))


def _read_tokens(logprobs: _Logprobs | None) -> list[ReadToken]:
    tokens = (logprobs.content if logprobs else None) or []
    return [
        ReadToken(
            token.token, token.logprob, {each.token: each.logprob for each in token.top_logprobs}
        )
        for token in tokens
    ]


def usage_of(envelope: Envelope, prompt: Prompt) -> Usage:
    """Tokens as the endpoint has counted them, and by our own estimate where it has not."""
    counted = envelope.usage or _Usage()
    content = "".join(
        choice.message.content or "" for choice in envelope.choices or [] if choice.message
    )
    sent, got = counted.prompt_tokens, counted.completion_tokens
    return Usage(
        input_tokens=sum(map(count_tokens, prompt.texts)) if sent is None else max(0, sent),
        output_tokens=count_tokens(content) if got is None else max(0, got),
    )
