"""Checks of the settings of ``OpenAIJudge``, and what follows from model and address."""

from __future__ import annotations

import re
from typing import Final, get_args

from openai import AsyncOpenAI
from pydantic import JsonValue, SecretStr

from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.judges.llm.base_url import is_openai
from claimspan.judges.llm.extraction import Extraction

__all__ = [
    "check_client",
    "check_settings",
    "fixed_options",
    "is_reasoning_model",
    "length_option",
    "reasoning_tokens",
    "secret_key",
    "users_client",
]

_REASONING_MODEL: Final = re.compile(r"o\d|gpt-[5-9]")
_REASONING_TOKENS: Final = 25_000  # the reserve that OpenAI's guide to reasoning recommends


def is_reasoning_model(model: str) -> bool:
    """Whether a model reasons: it refuses a fixed temperature and log probabilities."""
    return bool(_REASONING_MODEL.match(model))


def check_settings(
    extraction: str, chunks_per_call: int | None, concurrency: int, call_seconds: float
) -> None:
    """Refuses what cannot work as given.

    Raises:
        ConfigError: A setting is out of its range.
    """
    if extraction not in get_args(Extraction):
        raise ConfigError(f"extraction is {extraction!r}: give 'direct' or 'reasoned'")
    if chunks_per_call is not None and chunks_per_call < 1:
        raise ConfigError(f"chunks_per_call is {chunks_per_call!r}: give 1 or more, or None")
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    if not call_seconds > 0:
        raise ConfigError(f"call_seconds is {call_seconds!r}: give more than 0")


def fixed_options(model: str) -> dict[str, JsonValue]:
    """Options of every request, unless the user gives others."""
    return {} if is_reasoning_model(model) else {"temperature": 0}


def length_option(url: str) -> str:
    """The field that limits the completion tokens at an address."""
    # OpenAI deprecates max_tokens and refuses it for reasoning models; other servers know no other.
    return "max_completion_tokens" if is_openai(url) else "max_tokens"


def reasoning_tokens(model: str) -> int:
    """Tokens that a model may use for its reasoning, beside those of the reply."""
    # The chat variants, such as gpt-5-chat, do not reason and refuse a limit as high as that.
    return _REASONING_TOKENS if is_reasoning_model(model) and "-chat" not in model else 0


def secret_key(key: str | SecretStr | None, url: str) -> SecretStr | None:
    """The key for an address.

    Raises:
        ConfigError: OpenAI is asked without one.
    """
    if not key and is_openai(url):
        raise ConfigError(
            "OpenAI needs a key: set OPENAI_API_KEY for the judge 'openai:MODEL' or for "
            "OpenAIJudge.from_environment, or give api_key"
        )
    return key if isinstance(key, SecretStr) or key is None else SecretStr(key)


def users_client(client: AsyncOpenAI, budget: Budget | None) -> AsyncOpenAI:
    """A client of the user's, without retries where a budget is to be kept."""
    # A budget reserves each request; the judge does not see the retries of the client.
    return client if budget is None else client.with_options(max_retries=0)


def check_client(client: object, **others: object) -> None:
    """Refuses what is no client, and settings that a client has itself.

    Raises:
        ConfigError: It is one of these.
    """
    if not isinstance(client, AsyncOpenAI):
        kind = type(client).__name__
        raise ConfigError(f"client is of type {kind!r}: give an openai.AsyncOpenAI")
    for name, value in others.items():
        if value is not None:
            raise ConfigError(f"client and {name} are both given: set {name} on the client")
