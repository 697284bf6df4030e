"""A chat model of any provider that LiteLLM knows: Bedrock, Vertex AI, Cohere, watsonx and more."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from claimspan.cost.pricing import Price
from claimspan.errors import MissingExtraError
from claimspan.judges.llm.chat import ChatReply, ChatRequest
from claimspan.judges.llm.openai_chat import read_completion

__all__ = ["LiteLLMChat"]

_Complete = Callable[..., Coroutine[object, None, object]]


class LiteLLMChat:
    """One model, under the name that LiteLLM has for it; implements ``ChatModel``."""

    max_retries = None
    max_output_tokens = 0

    def __init__(self, model: str) -> None:
        """Load LiteLLM; keys and regions come from the variables that it documents.

        Args:
            model: ``PROVIDER/MODEL``, such as ``bedrock/anthropic.claude-sonnet-4-20250514-v1:0``.

        Raises:
            MissingExtraError: LiteLLM is not installed.
        """
        if find_spec("litellm") is None:
            raise MissingExtraError("litellm", "litellm")
        # At its import it would ask GitHub for a newer table of prices.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        litellm = import_module("litellm")
        litellm.telemetry = False  # type: ignore[attr-defined]  # its own switch
        litellm.suppress_debug_info = True  # type: ignore[attr-defined]  # it prints to the terminal
        self.model: Final = model
        self.provider: Final = model.partition("/")[0]
        self._complete: Final = cast("_Complete", litellm.acompletion)
        self.price: Final = _price(
            cast("Mapping[str, Mapping[str, object]]", litellm.model_cost), model
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Sends one request; errors of LiteLLM come through."""
        response = await self._complete(
            model=self.model,
            messages=[dict(each) for each in request.messages],
            num_retries=0,
            max_retries=0,
            **request.parameters,
        )
        written = cast("Callable[[], str]", response.model_dump_json)  # type: ignore[attr-defined]  # a pydantic model
        return read_completion(written().encode())


def _price(table: Mapping[str, Mapping[str, object]], model: str) -> Price | None:
    known = table.get(model) or table.get(model.partition("/")[2]) or {}
    costs = [known.get(name) for name in ("input_cost_per_token", "output_cost_per_token")]
    if not all(isinstance(each, int | float) for each in costs):
        return None
    sent, got = (float(cast("float", each)) * 1e6 for each in costs)
    return Price(input=sent, output=got)
