"""A chat model of any provider that LiteLLM knows: Bedrock, Vertex AI, Cohere, watsonx and more.

LiteLLM is a module with global settings, which the application may use as well. The judge changes
two of them, and keeps its calls out of the application's callbacks on the others.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from types import MappingProxyType
from typing import Final, cast

from claimspan.cost.pricing import Price
from claimspan.errors import MissingExtraError
from claimspan.judges.llm.chat import ChatReply, ChatRequest
from claimspan.judges.llm.openai_chat import read_completion
from claimspan.judges.llm.refusals import behind

__all__ = ["LiteLLMChat"]

_Complete = Callable[..., Coroutine[object, None, object]]

_OFFLINE: Final = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS")
"""Without them LiteLLM asks GitHub for newer tables: at its import, and at the first call of a
model of Anthropic's."""

_APART: Final[Mapping[str, object]] = MappingProxyType(
    {
        # The judge counts and repeats the requests.
        "num_retries": 0,
        "max_retries": 0,
        # No callback of the application logs texts of records as its own calls, and no cache of its
        # own keeps them; a second try has to reach the model.
        "no-log": True,
        "cache": {"no-cache": True, "no-store": True},
    }
)
"""What keeps a call apart from the settings of the application."""


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
        litellm = cast("Mapping[str, object]", vars(_loaded()))
        self.model: Final = model
        self.provider: Final = model.partition("/")[0]
        self._complete: Final = cast("_Complete", litellm["acompletion"])
        self.price: Final = _price(
            cast("Mapping[str, Mapping[str, object]]", litellm["model_cost"]), model
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Sends one request; errors of the provider's client come through.

        Raises:
            ReplyError: The response holds no reply.
        """
        try:
            response = await self._complete(
                model=self.model,
                messages=[dict(each) for each in request.messages],
                **_APART,
                **request.parameters,
            )
        except Exception as error:  # noqa: BLE001 - raised again, or what is behind it
            # What the server has sent is in the error that LiteLLM has made one of its own of: its
            # own lose the headers, and with them the wait that a server asks for; and they give the
            # status 500 to each that it does not know, such as a connection that failed.
            *_, cause = takewhile(lambda each: isinstance(each, Exception), behind(error))
        else:
            written = cast("Callable[[], str]", response.model_dump_json)  # type: ignore[attr-defined]  # a pydantic model
            return read_completion(written().encode())
        # Outside of the handler: no context leads back to LiteLLM's error.
        raise cause

    def explain(self, error: BaseException) -> str | None:
        """Says what is missing on this machine; None if the provider has refused something."""
        if isinstance(error, ImportError):
            package = f" {error.name!r}" if error.name else ""
            return (
                f"LiteLLM needs the package{package} for {self.provider}: install what its page on "
                "this provider asks for"
            )
        kinds = {each.__name__ for each in type(error).__mro__}
        if kinds & _CREDENTIALS or _NO_KEY.search(str(error)):
            return (
                f"LiteLLM found no key and no credentials for {self.provider}: set the variables "
                "that its page on this provider names"
            )
        if "LLM Provider NOT provided" in str(error):
            return (
                f"LiteLLM knows no provider {self.provider!r}: give PROVIDER/MODEL with a provider "
                "of its list"
            )
        return None


_CREDENTIALS: Final = frozenset(
    {
        "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "NoRegionError",
        "GoogleAuthError",
    }
)  # fmt: skip
"""Classes of botocore and google-auth for credentials that are missing."""

_NO_KEY: Final = re.compile(r"missing [\w ]{0,40}(api key|credentials)", re.IGNORECASE)
"""LiteLLM and the openai package say so before they send anything."""


def _loaded() -> object:
    """LiteLLM, imported without what its import does to the process."""
    for name in _OFFLINE:
        os.environ.setdefault(name, "True")
    is_first = "litellm" not in sys.modules
    mode = os.environ.get("LITELLM_MODE")
    if is_first and mode is None:
        # Otherwise it reads the file .env of the working directory into the environment.
        os.environ["LITELLM_MODE"] = "PRODUCTION"
    try:
        litellm = import_module("litellm")
    finally:
        if is_first and mode is None:
            os.environ.pop("LITELLM_MODE", None)
    litellm.telemetry = False  # type: ignore[attr-defined]  # its own switch
    litellm.suppress_debug_info = True  # type: ignore[attr-defined]  # it prints to the terminal
    return litellm


def _price(table: Mapping[str, Mapping[str, object]], model: str) -> Price | None:
    known = table.get(model) or table.get(model.partition("/")[2]) or {}
    costs = [known.get(name) for name in ("input_cost_per_token", "output_cost_per_token")]
    if not all(isinstance(each, int | float) for each in costs):
        return None
    sent, got = (float(cast("float", each)) * 1e6 for each in costs)
    return Price(input=sent, output=got)
