"""A record and a judge for the tests of judges behind an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk, RagRecord
from claimspan.judges import OpenAIJudge

from judge_server import Exchange, reply_to

__all__ = ["RECORD", "make_judge", "verdict_rows", "with_reply"]

RECORD: Final = RagRecord(
    query="Where is the library, and when was it built?",
    response="The library stands beside the river. Workers finished building the library quickly.",
    chunks=(
        Chunk(id="a", text="The library stands beside the river since the city was founded."),
        Chunk(id="b", text="Workers finished building the library quickly, in eleven months."),
        Chunk(id="c", text="Bread is baked from flour, water and yeast."),
    ),
    ground_truth="The library overlooks the river. Nobody remembers the architect.",
)
"""Two claims on either side; the stub entails the first chunk's and the second chunk's."""


def make_judge(url: str, **options: JsonValue) -> OpenAIJudge:
    """A judge of the server, with a key that must never be seen anywhere."""
    defaults: dict[str, JsonValue] = {"base_url": url, "api_key": "sk-canary-4711"}
    return OpenAIJudge("stub", **(defaults | options))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - options are the caller's to know


def verdict_rows(content: JsonValue) -> list[dict[str, JsonValue]]:
    """The rows of a reply to a check."""
    assert isinstance(content, dict)
    rows = content["verdicts"]
    assert isinstance(rows, list)
    return [row for row in rows if isinstance(row, dict)]


async def with_reply(exchange: Exchange, change: Mapping[str, JsonValue]) -> None:
    """The right reply, with some of its completion's choice replaced."""
    await exchange.reply(reply_to(exchange.asked), **change)
