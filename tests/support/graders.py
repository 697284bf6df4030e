"""A model that grades as a test says, and what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from claimspan.judges import ChatReply, ChatRequest, ModelJudge

from judge_server import reply_to

__all__ = ["Asked", "GradingModel", "Rows", "rows"]

Asked = Mapping[str, Mapping[str, str]]
"""The JSON object of a user message."""

Rows = list[dict[str, JsonValue]]
"""The entries of a reply to a grading."""


def rows(asked: Asked, *grades: str) -> Rows:
    """One entry for each criterion that was asked about, with these grades in turn."""
    return [
        {"criterion": each, "reason": f"Reason {each}.", "grade": grade}
        for each, grade in zip(asked["criteria"], grades, strict=False)
    ]


class GradingModel:
    """Replies to gradings in turn as it is told, the last way for good; judges claims as usual."""

    def __init__(self, *grading: Callable[[Asked], Rows | str]) -> None:
        self.model: Final = "stub"
        self.requests: list[ChatRequest] = []
        """Requests of gradings."""
        self._grading = [*grading]

    async def complete(self, request: ChatRequest) -> ChatReply:
        asked = json.loads(request.messages[-1]["content"])
        if "criteria" not in asked:
            return ChatReply(reply_to(asked))
        self.requests.append(request)
        made = self._grading[min(len(self.requests), len(self._grading)) - 1](asked)
        if isinstance(made, str):
            return ChatReply(made)
        return ChatReply(json.dumps({"call": asked["call"], "grades": made}))

    @property
    def asked(self) -> list[Mapping[str, JsonValue]]:
        """The user messages of the gradings."""
        return [json.loads(each.messages[-1]["content"]) for each in self.requests]

    @property
    def judge(self) -> ModelJudge:
        """A judge that asks it, with a cache of its own."""
        return ModelJudge(self)
