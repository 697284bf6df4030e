"""How providers with a protocol of their own answer a judge, for the server of ``judge_server``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from judge_server import Behaviour, Exchange, reply_to

__all__ = ["anthropic", "bedrock", "failing"]

Json = dict[str, JsonValue]


def failing(
    status: int, body: JsonValue, headers: Mapping[str, str] | None = None, *, times: int = 1000
) -> Behaviour:
    """Answers with an error, the first ``times`` requests."""

    async def behave(exchange: Exchange) -> None:
        if exchange.number > times:
            await exchange.reply(reply_to(exchange.asked))
        else:
            await exchange.send(json.dumps(body).encode(), status=status, headers=headers)

    return behave


async def anthropic(exchange: Exchange) -> None:
    """Answers as ``/v1/messages`` does: as text, or by the tool that the request forces."""
    reply = reply_to(_asked(exchange))
    tools = cast("list[Json]", exchange.request.get("tools") or [])
    content: Json = {"type": "text", "text": reply}
    if tools:
        content = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": tools[0]["name"],
            "input": json.loads(reply),
        }
    await exchange.send_json(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": exchange.request["model"],
            "content": [content],
            "stop_reason": "tool_use" if tools else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }
    )


async def bedrock(exchange: Exchange) -> None:
    """Answers as Bedrock's Converse does: as text, or by the tool that the request forces."""
    reply = reply_to(_asked(exchange))
    tools = cast("dict[str, list[dict[str, Json]]]", exchange.request.get("toolConfig") or {})
    content: Json = {"text": reply}
    if tools:
        content = {
            "toolUse": {
                "toolUseId": "tooluse_1",
                "name": tools["tools"][0]["toolSpec"]["name"],
                "input": json.loads(reply),
            }
        }
    await exchange.send_json(
        {
            "output": {"message": {"role": "assistant", "content": [content]}},
            "stopReason": "tool_use" if tools else "end_turn",
            "usage": {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110},
            "metrics": {"latencyMs": 1},
        }
    )


def _asked(exchange: Exchange) -> dict[str, dict[str, str]]:
    """The JSON object of the user message, whose content is a list of parts."""
    messages = cast("list[Json]", exchange.request["messages"])
    parts = cast("list[dict[str, str]] | str", messages[-1]["content"])
    text = parts if isinstance(parts, str) else "".join(part["text"] for part in parts)
    asked: dict[str, dict[str, str]] = json.loads(text)
    return asked
