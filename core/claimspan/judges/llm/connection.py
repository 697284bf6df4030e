"""Where a judge's requests go: to an address that claimspan opens, or through a user's client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from openai import AsyncOpenAI
from pydantic import SecretStr

from claimspan.errors import ConfigError
from claimspan.judges.llm.base_url import OPENAI_URL, check_base_url, is_openai
from claimspan.judges.llm.client import guarded_client
from claimspan.judges.llm.sessions import GivenClient, SessionPerLoop, SessionSource

__all__ = ["ClientOrFactory", "Connection", "own_connection", "users_connection"]

ClientOrFactory = AsyncOpenAI | Callable[[], AsyncOpenAI]
"""A client for one event loop, or a function that makes one for each."""


class Connection(NamedTuple):
    """An address, and the clients that reach it."""

    url: str
    sessions: SessionSource


def own_connection(
    *,
    base_url: str | None,
    api_key: str | SecretStr | None,
    headers: Mapping[str, str] | None,
    query: Mapping[str, str] | None,
    concurrency: int,
    read_seconds: float,
) -> Connection:
    """A connection with clients of the judge's own.

    Raises:
        ConfigError: The address cannot be one of a model, or OpenAI's lacks a key.
    """
    url = check_base_url(base_url or OPENAI_URL)
    connect = partial(
        guarded_client,
        base_url=url,
        api_key=_secret(api_key, url),
        headers=headers or {},
        query=query or {},
        read_seconds=read_seconds,
    )
    return Connection(url, SessionPerLoop(connect, concurrency))


def users_connection(
    client: ClientOrFactory, *, concurrency: int, retries: bool, unused: Mapping[str, object]
) -> Connection:
    """A connection with the user's client, or with the clients that the user's function makes.

    Args:
        client: The client or the function.
        concurrency: Requests at the same time in each event loop.
        retries: Whether the client keeps its own retries.
        unused: Arguments by name that the client decides on; all have to be None.

    Raises:
        ConfigError: One of them is not None, or ``client`` is neither client nor function.
    """
    surplus = [name for name, value in unused.items() if value is not None]
    if surplus:
        raise ConfigError(f"client and {surplus[0]} are both given: set {surplus[0]} on the client")
    if isinstance(client, AsyncOpenAI):
        limited = client if retries else client.with_options(max_retries=0)
        return Connection(_url(client), GivenClient(limited, concurrency))
    if not callable(client):
        raise ConfigError(
            f"client is of type {type(client).__name__!r}: give an openai.AsyncOpenAI, "
            "or a function that makes one"
        )

    def connect() -> AsyncOpenAI:
        return client() if retries else client().with_options(max_retries=0)

    return Connection(_url(client()), SessionPerLoop(connect, concurrency))


def _url(client: AsyncOpenAI) -> str:
    return str(client.base_url).rstrip("/")


def _secret(key: str | SecretStr | None, url: str) -> SecretStr | None:
    if not key and is_openai(url):
        raise ConfigError("OpenAI needs a key: give api_key, or use OpenAIJudge.from_environment")
    return key if isinstance(key, SecretStr) or key is None else SecretStr(key)
