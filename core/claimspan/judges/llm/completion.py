"""One chat completion: the prompt, the response, and the reply in it.

The openai package builds its models from a response without validating them, so that a field may
hold anything. Endpoints leave out fields that the protocol requires. ``Envelope`` is validated,
and requires nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from claimspan.cost.usage import Usage
from claimspan.errors import ReplyError
from claimspan.judges.llm.logprobs import Token
from claimspan.text.encodable import encodable_json
from claimspan.text.tokens import count_tokens

__all__ = [
    "ChatModel",
    "Completion",
    "Envelope",
    "Prompt",
    "read_completion",
    "read_envelope",
    "usage_of",
]


class Prompt(NamedTuple):
    """The messages of one call, and the form of the reply to them."""

    system: str
    user: str
    schema_name: str
    schema: Mapping[str, JsonValue]
    """JSON schema of the reply."""

    max_tokens: int
    """Limit on the completion tokens of the reply, without those of a model's reasoning."""

    logprobs: bool = False
    """Whether the reply comes with log probabilities."""

    @property
    def texts(self) -> tuple[str, str]:
        """The texts that the model reads, without the schema."""
        return self.system, self.user


class Completion(NamedTuple):
    """A complete reply of a model."""

    content: str
    tokens: tuple[Token, ...] = ()
    """Tokens of the reply; empty where the endpoint gives no log probabilities."""


class ChatModel(Protocol):
    """Answers prompts: an endpoint, or a stand-in that sends nothing."""

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to a prompt.

        Raises:
            ReplyError: A response came, without a complete reply.
            JudgeError: No response came.
        """
        ...


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Alternative(_Loose):
    token: str
    logprob: float | None = None


class _Token(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(_Loose):
    content: list[_Token] | None = None


class _Message(_Loose):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Loose):
    finish_reason: str | None = None
    message: _Message | None = None
    logprobs: JsonValue = None
    """Read by itself: a reply counts without them, and was paid for."""


class _Usage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Envelope(_Loose):
    """The response around a reply; every field may be missing."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None


_FINISHED: Final = frozenset({"stop", None, "eos", "end_turn"})


def read_envelope(body: bytes) -> Envelope:
    """Reads the body of a successful response.

    Raises:
        ReplyError: The body is HTML, not JSON, or not a chat completion.
    """
    try:
        return Envelope.model_validate_json(body)
    except ValidationError:
        pass
    try:
        return Envelope.model_validate_json(encodable_json(body))
    except ValidationError as error:
        if body.lstrip()[:1] == b"<":
            raise ReplyError("the endpoint answered with HTML: is base_url right?") from None
        is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
        what = "is not a chat completion" if is_json else "is not JSON"
        raise ReplyError(f"the endpoint's response {what}") from None


def read_completion(envelope: Envelope) -> Completion:
    """The reply in a response.

    Raises:
        ReplyError: The response holds no reply, a refusal, or a reply that was cut.
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


def _read_tokens(logprobs: JsonValue) -> list[Token]:
    try:
        read = _Logprobs.model_validate(logprobs or {})
    except ValidationError:
        return []
    return [_token(each) for each in read.content or []]


def _token(token: _Token) -> Token:
    """The token; without probabilities where one of them is not known."""
    given = {each.token: each.logprob for each in token.top_logprobs or []}
    known = {text: logprob for text, logprob in given.items() if logprob is not None}
    if token.logprob is None or len(known) < len(given):
        return Token(token.token, math.nan, {})
    return Token(token.token, token.logprob, known)


def usage_of(envelope: Envelope, prompt: Prompt) -> Usage:
    """Tokens as the endpoint has counted them, or an estimate where it has not."""
    counted = envelope.usage or _Usage()
    content = "".join(
        choice.message.content or "" for choice in envelope.choices or [] if choice.message
    )
    sent, got = counted.prompt_tokens, counted.completion_tokens
    return Usage(
        input_tokens=sum(map(count_tokens, prompt.texts)) if sent is None else max(0, sent),
        output_tokens=count_tokens(content) if got is None else max(0, got),
    )
