"""What frameworks and providers say of a call of a model, by whatever names they have for it.

A provider has a name in each framework and another one in each convention, and the number of tokens
has six. The tables here are the only place that knows them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from claimspan.text.shapes import is_list, is_mapping

__all__ = [
    "NOT_KNOWN",
    "PROVIDERS",
    "ModelCall",
    "Provider",
    "first_number",
    "named_text",
    "package_of",
    "provider_of",
    "read_call",
    "value_of",
]

# --- providers ------------------------------------------------------------------------------------


class Provider(NamedTuple):
    """Who serves a model, as the conventions name it."""

    name: str
    """OpenTelemetry's ``gen_ai.provider.name``."""

    openinference: str
    """OpenInference's ``llm.provider``."""

    system: str = ""
    """OpenInference's ``llm.system``: whose API it is; empty if it has no name for that."""


PROVIDERS: Final = (
    (Provider("anthropic", "anthropic", "anthropic"), "anthropicvertex"),
    (Provider("aws.bedrock", "aws"), "bedrock bedrockconverse amazonbedrock chatbedrock aws"),
    (Provider("azure.ai.inference", "azure"), "azureai azureinference azureaiinference"),
    (Provider("azure.ai.openai", "azure", "openai"), "azure azureopenai azureresponses"),
    (Provider("cohere", "cohere", "cohere"), ""),
    (Provider("deepseek", "deepseek"), ""),
    (Provider("gcp.gemini", "google"), "gemini googleai googleaigemini googlegenerativeai"),
    (Provider("gcp.gen_ai", "google"), "google googlegenai"),
    (
        Provider("gcp.vertex_ai", "google", "vertexai"),
        "vertex vertexai vertexaigemini googlevertex googlevertexai",
    ),
    (Provider("groq", "groq"), ""),
    (Provider("ibm.watsonx.ai", "ibm"), "ibm watsonx"),
    (Provider("mistral_ai", "mistralai", "mistralai"), "mistral"),
    (Provider("moonshot_ai", "moonshot"), "moonshot"),
    (Provider("openai", "openai", "openai"), "openairesponses"),
    (Provider("perplexity", "perplexity"), ""),
    (Provider("x_ai", "xai"), ""),
)
"""The providers that OpenTelemetry's registry names, and how frameworks spell them: without case
and signs, as names, parts of modules or beginnings of classes."""

_BY_SPELLING: Final = {
    spelling: provider
    for provider, others in PROVIDERS
    for spelling in (re.sub(r"\W|_", "", provider.name), *others.split())
}


def provider_of(said: str) -> Provider:
    """Return a provider by the name that a framework has for it.

    One that the conventions do not name keeps what the framework says.
    """
    found = _BY_SPELLING.get(re.sub(r"\W|_", "", said[:_LONGEST]).lower())
    return found or Provider(said, said)


_LONGEST: Final = 64
"""Characters of a provider's name that are looked at."""


def package_of(kind: type, modules: re.Pattern[str]) -> str:
    """Return the part of a module that names a model's provider; empty if the class is in no such.

    Args:
        kind: The class of a model, or one of an application's that inherits from it.
        modules: Matches the beginnings of the modules, with the provider as its first group.
    """
    found = (modules.match(each.__module__) for each in kind.__mro__)
    return next((each[1] for each in found if each is not None), "")


# --- calls ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The facts about one call of a model, beside its prompt and its answer.

    The fields are those of a ``GeneratorRun``; empty and None stand for an unknown one.
    """

    response_id: str = ""
    response_model: str = ""
    finish_reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


NOT_KNOWN: Final = ModelCall()
"""A call of which nothing is known."""

# Names that the clients of providers share, the most frequent first; and those of a ``ModelCall``,
# which may be read again.
_IDS: Final = ("response_id", "id")
_MODELS: Final = ("response_model", "model_name", "model", "model_version")
_ENDS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason")
_USAGES: Final = ("usage", "usage_metadata", "token_usage")
_INPUT: Final = (
    *("input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count", "prompt_eval_count"),
)
_OUTPUT: Final = (
    *("output_tokens", "completion_tokens", "outputTokens", "candidates_token_count", "eval_count"),
)
_LIMITS: Final = (
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
    *("max_tokens_to_sample", "num_predict", "maxTokens"),
)


def read_call(request: Sequence[object], response: Sequence[object]) -> ModelCall:
    """Return the facts about one call.

    Args:
        request: Objects and mappings that may have its parameters, the most reliable first.
        response: As well, what came back.
    """
    counted = [*_values(_USAGES, response), *response]
    firsts = [each[0] for each in _values(["choices"], response) if is_list(each) and each]
    # OpenAI's responses say so in place of a finish reason, and only of a reply that is cut.
    cut = _values(["incomplete_details"], response)
    return ModelCall(
        named_text(_IDS, response),
        named_text(_MODELS, response),
        named_text(_ENDS, [*response, *firsts]) or named_text(["reason"], cut),
        first_number(_INPUT, counted),
        first_number(_OUTPUT, counted),
        _parameter("temperature", request),
        _parameter("top_p", request),
        first_number(_LIMITS, request),
    )


def named_text(names: Sequence[str], sources: Iterable[object]) -> str:
    """The first text that has one of these names in objects and mappings; empty if none has."""
    # An enum of a provider's, such as Google's finish reasons, goes by its name.
    for each in _values(names, sources):
        text = each if isinstance(each, str) else value_of(each, "name")
        if text and isinstance(text, str):
            return str(text)
    return ""


def first_number(names: Sequence[str], sources: Iterable[object]) -> int | None:
    """The first number above 0: some clients give 0 for tokens that were not counted."""
    found = _values(names, sources)
    return next((e for e in found if type(e) is int and 0 < e < _TOO_MANY), None)


_TOO_MANY: Final = 2**63
"""The first integer that is no attribute of a span."""


def _parameter(name: str, sources: Iterable[object]) -> float | None:
    found = _values([name], sources)
    numbers = (float(e) for e in found if type(e) is float or (type(e) is int and e < _TOO_MANY))
    return next((each for each in numbers if math.isfinite(each)), None)


def _values(names: Sequence[str], sources: Iterable[object]) -> list[object]:
    """The values that sources have for some names, each with that of its first name first."""
    # Not a generator: each of its steps is a call, and a reply is asked often.
    found: list[object] = []
    for source in sources:
        if is_mapping(source):  # asked once: most have none of the names
            for name in names:
                if name in source:
                    found.append(source[name])
        elif source is not None:
            values = (value_of(source, name) for name in names)
            found += (each for each in values if each is not None)
    return found


def value_of(source: object, name: str, default: object = None) -> object:
    """The value of a key or an attribute; the default also if reading it fails."""
    if is_mapping(source):
        mapping: Mapping[object, object] = source
        return mapping.get(name, default)
    with suppress(Exception):  # a property of the application's may raise anything
        return getattr(source, name, default)
    return default
