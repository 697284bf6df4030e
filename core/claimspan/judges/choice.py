"""Judges by what a user holds: a name, a model object, a client, or a judge.

One string names a model at any provider. The endpoints that speak OpenAI's protocol need nothing
beside the base install; every other provider is reached by LiteLLM, which is the library of that
kind that most people know, and has Bedrock's and Vertex's ways to sign a request.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from inspect import signature
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pydantic import JsonValue, SecretStr

from claimspan.cost.pricing import Price
from claimspan.errors import ConfigError
from claimspan.judges.lexical.judge import LexicalJudge
from claimspan.judges.protocol import Judge
from claimspan.loading import load_object

if TYPE_CHECKING:
    from claimspan.judges.llm.chat import ChatModel

__all__ = [
    "JUDGE_VARIABLE",
    "OPTIONS_VARIABLE",
    "PROVIDERS",
    "default_judge",
    "judge_of",
    "parse_options",
]

JUDGE_VARIABLE: Final = "CLAIMSPAN_JUDGE"
"""Environment variable that selects the default judge; if it is not set, ``lexical`` is used."""

OPTIONS_VARIABLE: Final = "CLAIMSPAN_JUDGE_OPTIONS"
"""Environment variable with options of that judge: ``"seed=1 call_seconds=120"``."""

ADAPTERS: Final = "claimspan.chat_models"
"""Entry-point group of what makes a ``ChatModel`` of a framework's model object, by the
top-level package that its class, a base of it or its metaclass comes from: core knows no
framework."""


class Provider(NamedTuple):
    """An endpoint that speaks OpenAI's protocol."""

    url: str
    """The address under which ``/chat/completions`` is."""

    keys: Sequence[str] = ()
    """Environment variables with its key, the first one that is set; none if it needs no key."""

    url_variable: str = ""
    """Environment variable with another address."""

    name: str = ""
    """Its name on the trace, if another than in the string."""


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("https://api.openai.com/v1", ["OPENAI_API_KEY"], "OPENAI_BASE_URL"),
    "anthropic": Provider("https://api.anthropic.com/v1", ["ANTHROPIC_API_KEY"]),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    "ollama": Provider("http://127.0.0.1:11434/v1", (), "OLLAMA_HOST"),
    "mistral": Provider("https://api.mistral.ai/v1", ["MISTRAL_API_KEY"], name="mistral_ai"),
    "deepseek": Provider("https://api.deepseek.com/v1", ["DEEPSEEK_API_KEY"]),
    "openrouter": Provider("https://openrouter.ai/api/v1", ["OPENROUTER_API_KEY"]),
    "groq": Provider("https://api.groq.com/openai/v1", ["GROQ_API_KEY"]),
    "together": Provider("https://api.together.xyz/v1", ["TOGETHER_API_KEY"]),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ["FIREWORKS_API_KEY"]),
    "xai": Provider("https://api.x.ai/v1", ["XAI_API_KEY"], name="x_ai"),
}
"""Addresses and variables as the providers document them."""

_BY_LITELLM: Final[Mapping[str, str]] = {
    "bedrock": "bedrock/",
    "vertex": "vertex_ai/",
    "litellm": "",
}
"""Prefixes of strings that LiteLLM serves, with its own prefix of the model."""

_PRICES: Final = ("input_price", "output_price")


def default_judge(
    choice: str | None = None, *, options: Mapping[str, JsonValue] | None = None
) -> Judge:
    """Creates the judge that is used if none is given.

    ``choice`` comes first, then the environment variable ``CLAIMSPAN_JUDGE``, then
    ``LexicalJudge``. A key that the application has for itself is never used unless a choice names
    its provider.

    Args:
        choice: ``lexical``; ``local``, or ``local:MODEL`` for another model; ``PROVIDER:MODEL``
            such as ``openai:gpt-4o-mini``, which uses the key in the provider's usual variable; or
            ``FILE.py:NAME`` for a judge, a model object, or a function that makes one. Each may
            end in ``@FILE.json``, a calibration of ``claimspan calibrate``. None: as the
            environment says.
        options: Arguments of ``OpenAIJudge`` for a model, such as ``{"seed": 1}``, ``input_price``
            and ``output_price`` in US dollars per million tokens; others are fields of every
            request. None: ``CLAIMSPAN_JUDGE_OPTIONS``, if the environment chooses the judge.

    Returns:
        A new judge.

    Raises:
        ConfigError: The choice names no judge, the key for it is missing, an option cannot work, or
            the calibration was made for another judge.
        MissingExtraError: The packages of the judge are not installed.
        FileError: The calibration cannot be read.
    """
    origin = "the judge" if choice else JUDGE_VARIABLE
    if options is None:
        options = {} if choice else parse_options(shlex.split(os.environ.get(OPTIONS_VARIABLE, "")))
    wanted = (choice or os.environ.get(JUDGE_VARIABLE) or "lexical").strip()
    name, _, calibration = wanted.rpartition("@")
    # Names of models have an @ as well; none of them ends as a file of JSON does.
    if name and calibration.endswith(".json"):
        from claimspan.judges.calibrated import CalibratedJudge

        return CalibratedJudge(_named(name, origin, options), calibration)
    return _named(wanted, origin, options)


def judge_of(given: object) -> Judge:
    """Returns the judge that an argument stands for; None stands for ``default_judge()``.

    Args:
        given: A judge; a name; a ``ChatModel``; a chat model of LangChain, LlamaIndex or Haystack;
            or an ``openai.AsyncOpenAI`` or ``AsyncAzureOpenAI`` with the name of a model, as
            ``(client, "gpt-4o-mini")``.

    Raises:
        ConfigError: It is none of these, or the name of no judge.
        MissingExtraError: The packages of the judge that it names are not installed.
    """
    if given is None or isinstance(given, str):
        return default_judge(given)
    if isinstance(given, Judge):
        return given
    kind = type(given)
    if adapted := _adapted(given):
        return adapted
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):  # pyright: ignore[reportUnknownArgumentType] - looked at
        from claimspan.judges.llm.judge import OpenAIJudge

        return OpenAIJudge(given[1], client=given[0])  # pyright: ignore[reportUnknownArgumentType] - it refuses what is no client
    if kind.__module__.partition(".")[0] == "openai":
        raise ConfigError(
            f"judge is an {kind.__name__}: give (client, 'MODEL'), with an AsyncOpenAI"
        )
    raise ConfigError(
        f"judge is of type {kind.__name__}: give an object with name, extract_claims and check; a "
        "chat model of LangChain, LlamaIndex or Haystack; (AsyncOpenAI(), 'MODEL'); or a name such "
        "as 'local' or 'openai:MODEL'"
    )


def _adapted(given: object, options: Mapping[str, JsonValue] | None = None) -> Judge | None:
    """The judge of a model object; None if it is no model that anything here can ask."""
    model, failure = _chat_model(given)
    if model is None and failure is not None:
        raise ConfigError(
            f"judge is a {type(given).__name__}, and what asks it cannot be imported "
            f"({type(failure).__name__}): install a version of its framework that is supported"
        ) from failure
    if model is None and not hasattr(given, "complete"):
        return None
    from claimspan.judges.llm.chat import ChatModel
    from claimspan.judges.llm.judge import ModelJudge

    found = model if model is not None else given
    # LlamaIndex's models have a `complete` of their own, which is another.
    if not isinstance(found, ChatModel) or (model is None and not hasattr(given, "model")):
        return None
    return ModelJudge(found, **_arguments(ModelJudge, options or {}))  # type: ignore[arg-type]  # checked by name


def _chat_model(given: object) -> tuple[ChatModel | None, Exception | None]:
    """What asks a model object of a framework, and what has kept it from being made."""
    # A component of Haystack has nothing of Haystack but its metaclass.
    kinds = (*type(given).__mro__, *type(type(given)).__mro__)
    roots = {each.__module__.partition(".")[0] for each in kinds} - {"builtins", "abc"}
    failure: Exception | None = None
    for entry in entry_points(group=ADAPTERS) if roots else ():
        if entry.name not in roots:
            continue
        try:
            adapt = cast("Callable[[object], ChatModel | None]", entry.load())
        except Exception as error:  # noqa: BLE001 - packages raise anything where they are imported
            failure = error
            continue
        if (model := adapt(given)) is not None:
            return model, None
    return None, failure


def parse_options(given: Sequence[str]) -> dict[str, JsonValue]:
    """Reads ``key=value`` as command lines have them; a value is JSON, or else a text.

    Raises:
        ConfigError: One of them has no ``=``, or a key comes twice.
    """
    options: dict[str, JsonValue] = {}
    for each in given:
        key, is_given, value = each.partition("=")
        if not is_given or not key.strip():
            raise ConfigError(f"{each.partition('=')[0]!r} is no option of a judge: give key=value")
        if key in options:
            raise ConfigError(f"the option {key!r} of the judge is given twice")
        try:
            options[key.strip()] = json.loads(value)
        except ValueError:
            options[key.strip()] = value
    return options


def _named(wanted: str, origin: str, options: Mapping[str, JsonValue]) -> Judge:
    """Creates the judge of a name; ``origin`` says in an error where the name stands."""
    kind, _, model = wanted.partition(":")
    kind = kind.lower()
    # A path of Windows has a colon of its own.
    if wanted.rpartition(":")[0].endswith(".py"):
        return _loaded(wanted, options)
    if kind in ("lexical", "local"):
        if options:
            raise ConfigError(
                f"{origin}={wanted!r} takes no options: leave {', '.join(options)} out"
            )
        if kind == "lexical" and not model:
            return LexicalJudge()
        if kind == "local":
            return _local(model)
    if model and kind in PROVIDERS:
        return _at_provider(PROVIDERS[kind], kind, model, options)
    if model and kind == "azure":
        return _at_azure(model, options)
    if model and kind in _BY_LITELLM:
        from claimspan.judges.llm.judge import ModelJudge
        from claimspan.judges.llm.litellm_chat import LiteLLMChat

        chat = LiteLLMChat(_BY_LITELLM[kind] + model)
        return ModelJudge(chat, **_arguments(ModelJudge, options))  # type: ignore[arg-type]  # checked by name
    known = ", ".join(f"'{each}:MODEL'" for each in (*PROVIDERS, "azure", "bedrock", "vertex"))
    raise ConfigError(
        f"{origin}={wanted!r} names no judge: use 'lexical', 'local', 'local:MODEL', {known}, "
        "'FILE.py:NAME', or 'litellm:PROVIDER/MODEL' for any other provider, with pip install "
        "'claimspan[litellm]'"
    )


def _local(model: str) -> Judge:
    # Imported only when chosen: the runtime takes a second to load.
    from claimspan.judges.local.bundled import require_local_extra
    from claimspan.judges.local.judge import LocalJudge

    # Looked for now, though it is imported with the first claim: at set-up a user reads it.
    require_local_extra(own_model=bool(model))
    return LocalJudge(model or None)


def _loaded(spec: str, options: Mapping[str, JsonValue]) -> Judge:
    """The judge that a name in a file stands for: itself, a model object, or what makes one."""
    found = load_object(spec)
    if isinstance(found, type) or (callable(found) and not isinstance(found, Judge)):
        adapted = None if isinstance(found, type) else _adapted(found, options)
        if adapted is not None:
            return adapted
        found = found()
    if options:
        adapted = _adapted(found, options)
        if adapted is None:
            raise ConfigError(
                f"{spec!r} is a judge with options of its own: leave {', '.join(options)} out"
            )
        return adapted
    return judge_of(found)


def _at_provider(
    provider: Provider, kind: str, model: str, options: Mapping[str, JsonValue]
) -> Judge:
    from claimspan.judges.llm.judge import OpenAIJudge

    given = _arguments(OpenAIJudge, options)
    key = next((os.environ[each] for each in provider.keys if os.environ.get(each)), None)
    url = os.environ.get(provider.url_variable, "") if provider.url_variable else ""
    if provider.url_variable == "OLLAMA_HOST" and url:
        # As Ollama takes it: with or without a scheme, a port, or a path.
        url = url if "://" in url else f"http://{url}"
        url = url.rstrip("/") if url.rstrip("/").endswith("/v1") else f"{url.rstrip('/')}/v1"
        url = url.replace("//0.0.0.0", "//127.0.0.1")
    given.setdefault("base_url", url or provider.url)
    given.setdefault("api_key", key)
    given.setdefault("provider", provider.name or kind)
    is_there = given["base_url"] == provider.url and provider.keys
    if is_there and not given["api_key"] and not given.get("headers"):
        variables = " or ".join(provider.keys)
        raise ConfigError(f"'{kind}:{model}' needs a key: set {variables}")
    return OpenAIJudge(model, **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - checked by name


def _at_azure(deployment: str, options: Mapping[str, JsonValue]) -> Judge:
    """A deployment of Azure OpenAI, by the variables that the openai package documents."""
    from claimspan.judges.llm.judge import OpenAIJudge

    given = _arguments(OpenAIJudge, options)
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").rstrip("/")
    key = os.environ.get("AZURE_OPENAI_API_KEY")
    if not (endpoint or "base_url" in given) or not (
        key or given.get("headers") or given.get("api_key")
    ):
        raise ConfigError(
            f"'azure:{deployment}' needs AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY; for Azure "
            "AD give (AsyncAzureOpenAI(...), 'DEPLOYMENT') as the judge"
        )
    version = os.environ.get("OPENAI_API_VERSION")
    # Without a version it is the newer address, which needs none.
    path = f"openai/deployments/{deployment}" if version else "openai/v1"
    given.setdefault("base_url", f"{endpoint}/{path}")
    if version:
        given.setdefault("query", {"api-version": version})
    if key and "api_key" not in given:
        given.setdefault("headers", {"api-key": key})
    given.setdefault("provider", "azure.ai.openai")
    return OpenAIJudge(deployment, **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - checked by name


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "base_url": (str,),
    "api_key": (str,),
    "headers": (dict,),
    "query": (dict,),
    "provider": (str,),
    "trust_env": (bool,),
    "extraction": (str,),
    "chunks_per_call": (int, type(None)),
    "logprobs": (bool,),
    "top_logprobs": (int,),
    "exact_schema": (bool,),
    "concurrency": (int,),
    "call_seconds": (int, float),
    "reasoning_tokens": (int,),
    "seed": (int,),
}
"""Arguments of judges that an option may set; every other option is a field of the requests."""


def _arguments(judge: Callable[..., Judge], options: Mapping[str, JsonValue]) -> dict[str, object]:
    """The arguments of a judge that options of a command line stand for.

    Raises:
        ConfigError: One has a value of another type, belongs to another judge, or a price is
            missing.
    """
    known = signature(judge).parameters
    given: dict[str, object] = {}
    fields: dict[str, JsonValue] = {}
    for name, value in options.items():
        if name in _TYPES:
            wanted = _TYPES[name]
            if name not in known:
                raise ConfigError(
                    f"the option {name!r} is for a judge at an endpoint: leave it out"
                )
            if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
                names = " or ".join(
                    "null" if each is type(None) else each.__name__ for each in wanted
                )
                raise ConfigError(
                    f"the option {name!r} of the judge is no {names}: correct its value"
                )
            given[name] = (
                SecretStr(value) if name == "api_key" and isinstance(value, str) else value
            )
        elif name not in _PRICES:
            fields[name] = value
    prices = [options[name] for name in _PRICES if name in options]
    if prices:
        if len(prices) < len(_PRICES) or not all(
            isinstance(each, int | float) and each >= 0 for each in prices
        ):
            raise ConfigError(
                "give input_price and output_price together, in US dollars per million tokens"
            )
        given["price"] = Price(
            input=float(cast("float", prices[0])), output=float(cast("float", prices[1]))
        )
    return {**given, **({"options": fields} if fields else {})}
