"""Makes a judge of a name, a model object, a client, or a judge.

One string names a model at any provider. The endpoints that speak OpenAI's protocol need nothing
beside the base install; every other provider is reached by LiteLLM, which is the library of that
kind that most people know, and has Bedrock's and Vertex's ways to sign a request.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from pydantic import JsonValue, SecretStr, ValidationError

from claimspan.cost.pricing import Price
from claimspan.errors import ClaimspanError, ConfigError, MissingExtraError
from claimspan.judges.protocol import Judge
from claimspan.loading import load_object

if TYPE_CHECKING:
    from claimspan.judges.llm.chat import ChatModel

__all__ = [
    "JUDGE_VARIABLE",
    "OPTIONS",
    "PROVIDERS",
    "JudgeLike",
    "default_judge",
    "default_name",
    "environment_options",
    "judge_of",
    "parse_options",
    "takes_options",
]


_OPTIONS_VARIABLE: Final = "CLAIMSPAN_JUDGE_OPTIONS"
"""Environment variable with options of that judge: ``"seed=1 call_seconds=120"``, with quotation
marks as in a shell."""

_TEXTS: Final = "an object of texts, as JSON"
OPTIONS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "base_url": ("a text", (str,)),
    "api_key": ("a text", (str,)),
    "headers": (_TEXTS, (dict,)),
    "query": (_TEXTS, (dict,)),
    "provider": ("a text", (str,)),
    "trust_env": ("true or false", (bool,)),
    "extraction": ("direct or reasoned", (str,)),
    "instructions": ("a text", (str,)),
    "chunks_per_call": ("a whole number or null", (int, type(None))),
    "logprobs": ("true or false", (bool,)),
    "top_logprobs": ("a whole number", (int,)),
    "exact_schema": ("true or false", (bool,)),
    "concurrency": ("a whole number", (int,)),
    "call_seconds": ("a number", (int, float)),
    "reasoning_tokens": ("a whole number", (int,)),
    "seed": ("a whole number", (int,)),
}
"""Arguments of judges that an option may set, each with what it takes, in words and as types; every
other option is a field of the requests."""

_PRICES: Final = ("input_price", "output_price")


def environment_options() -> dict[str, JsonValue]:
    """The options that ``CLAIMSPAN_JUDGE_OPTIONS`` has for the judge of ``CLAIMSPAN_JUDGE``.

    Raises:
        ConfigError: The variable cannot be read.
    """
    try:
        given = shlex.split(os.environ.get(_OPTIONS_VARIABLE, ""))
    except ValueError:
        raise ConfigError(
            f"{_OPTIONS_VARIABLE} has a quotation mark without its second: write it as in a shell, "
            'like "seed=1 call_seconds=120"'
        ) from None
    return parse_options(given)


def parse_options(given: Sequence[str]) -> dict[str, JsonValue]:
    """Reads ``key=value`` as command lines have them; a value is JSON, or else a text.

    Raises:
        ConfigError: One of them has no ``=``, or a key comes twice.
    """
    options: dict[str, JsonValue] = {}
    for each in given:
        key, is_given, value = (part.strip() for part in each.partition("="))
        # What is no name may be a key to an account, and is not repeated.
        shown = key if key.isidentifier() else "KEY"
        if not is_given or not key:
            raise ConfigError(f"an option of the judge has no value: write {shown}=VALUE")
        if key in options:
            raise ConfigError(f"the option {shown!r} of the judge is given twice: leave one out")
        try:
            options[key] = json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            options[key] = value
    return options


def _no_constant(name: str) -> float:
    """Refuses NaN and Infinity, which are no JSON, and which no endpoint could be sent."""
    raise ValueError(name)


def _judge_arguments(
    judge: Callable[..., Judge], options: Mapping[str, JsonValue]
) -> dict[str, object]:
    known = signature(judge).parameters
    given: dict[str, object] = {}
    fields: dict[str, JsonValue] = {}
    for name, value in options.items():
        if name in OPTIONS:
            if name not in known:
                raise ConfigError(
                    f"the option {name!r} is for a judge at an endpoint: leave it out"
                )
            given[name] = _checked(name, value)
        elif name not in _PRICES:
            _check_field(name, known)
            fields[name] = value
    if any(name in options for name in _PRICES):
        sent, got = (options.get(name) for name in _PRICES)
        try:
            given["price"] = Price.model_validate({"input": sent, "output": got})
        except ValidationError:
            raise ConfigError(
                "input_price and output_price are no prices: give both, as numbers of US dollars "
                "per million tokens"
            ) from None
    return {**given, **({"options": fields} if fields else {})}


def _checked(name: str, value: JsonValue) -> object:
    """The value of an argument; no error repeats it, since it may be a key."""
    words, wanted = OPTIONS[name]
    is_wanted = isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))
    if isinstance(value, dict):
        is_wanted = is_wanted and all(isinstance(each, str) for each in value.values())
    if not is_wanted:
        raise ConfigError(f"the option {name!r} of the judge takes {words}: correct its value")
    return SecretStr(value) if name == "api_key" and isinstance(value, str) else value


def _check_field(name: str, known: Mapping[str, object]) -> None:
    """Refuses an option that is meant for the judge, and would be sent to the model as a field."""
    if name in known:
        raise ConfigError(f"the judge takes no {name!r} as an option: give it in Python")
    # At a distance at which no field of OpenAI's protocol is.
    meant = get_close_matches(name, (*OPTIONS, *_PRICES), n=1, cutoff=0.85)
    if meant:
        raise ConfigError(f"the judge has no option {name!r}: did you mean {meant[0]}?")


JUDGE_VARIABLE: Final = "CLAIMSPAN_JUDGE"
"""Environment variable that selects the default judge."""

JudgeLike: TypeAlias = object
"""What ``judge_of`` makes a judge of. To a type checker it is any object, since core cannot name
the model classes of frameworks; another object is refused at set-up."""

NOWHERE: Final = "http://127.0.0.1:9/v1"
"""The address of a judge that is made for an estimate: nothing listens on the port of RFC 863."""

ADAPTERS: Final = "claimspan.chat_models"
"""Entry-point group of what makes a ``ChatModel`` of a framework's model object, by the top-level
package that its class, a base of it or its metaclass comes from: core knows no framework."""


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

_WEIGHTS: Final = "claimspan_local_weights"
"""The package of the bundled weights; a model of the user's takes their place."""

_OF_CONNECTION: Final = ("base_url", "api_key", "headers", "query", "trust_env")


def default_judge(
    choice: str | None = None,
    *,
    options: Mapping[str, JsonValue] | None = None,
    offline: bool = False,
) -> Judge:
    """Creates the judge that is used if none is given.

    ``choice`` comes first, then the environment variable ``CLAIMSPAN_JUDGE``. Without both it is
    ``LocalJudge`` if ``claimspan[local]`` is installed, and else ``LexicalJudge``. A key that the
    application has for itself is never used unless a choice names its provider.

    Args:
        choice: ``lexical``; ``local``, or ``local:MODEL`` for another model; ``PROVIDER:MODEL``
            such as ``openai:gpt-4o-mini``, which uses the key in the provider's usual variable; or
            ``FILE.py:NAME`` for a judge, a model object, or a function that makes one. Each may
            end in ``@FILE.json``, a calibration of ``claimspan calibrate``. None: as the
            environment says.
        options: Arguments of ``OpenAIJudge`` for a model, such as ``{"seed": 1}``, ``input_price``
            and ``output_price`` in US dollars per million tokens; others are fields of every
            request. If the environment chooses the judge, they stand beside those of
            ``CLAIMSPAN_JUDGE_OPTIONS``, and before them.
        offline: For an estimate: no key is needed, and the judge reaches no provider. A judge in a
            file is made as that file makes it.

    Returns:
        A new judge.

    Raises:
        ConfigError: The choice names no judge, the key for it is missing, an option cannot work, or
            the calibration was made for another judge.
        MissingExtraError: The packages of the judge are not installed.
        FileError: The calibration cannot be read.
    """
    origin = "the judge" if choice else JUDGE_VARIABLE
    given = {**({} if choice else environment_options()), **(options or {})}
    named = choice or os.environ.get(JUDGE_VARIABLE)
    if given and not named:
        raise ConfigError(
            "options of a judge are given, and no judge that takes any: name it, or set "
            f"{JUDGE_VARIABLE}"
        )
    wanted = (choice or default_name()).strip()
    name, calibration = _with_calibration(wanted)
    judge = _named(name, origin, given, offline)
    if not calibration:
        return judge
    from claimspan.judges.calibrated import CalibratedJudge

    return CalibratedJudge(judge, calibration)


def default_name() -> str:
    """The name of the judge that is used if none is given."""
    # Words refuse most of what an answer says in words of its own.
    return os.environ.get(JUDGE_VARIABLE) or ("lexical" if _lacking_for_local() else "local")


def _lacking_for_local() -> list[str]:
    """The packages that ``LocalJudge`` needs and that are not installed; none is imported."""
    return [name for name in ("onnxruntime", "tokenizers", _WEIGHTS) if find_spec(name) is None]


def takes_options(choice: str) -> bool:
    """Whether the judge of a name is a model, or comes from a file, so that it may take options.

    Args:
        choice: As ``default_judge`` takes it.
    """
    kind = _with_calibration(choice.strip())[0].partition(":")[0]
    return kind.lower() not in ("lexical", "local")


def _with_calibration(wanted: str) -> tuple[str, str]:
    name, _, calibration = wanted.rpartition("@")
    # Names of models have an @ as well; none of them ends as a file of JSON does.
    return (name, calibration) if name and calibration.endswith(".json") else (wanted, "")


def judge_of(given: JudgeLike) -> Judge:
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
    if made := _of_model(given):
        return made
    kind = type(given)
    if kind.__module__.partition(".")[0] == "openai":
        raise ConfigError(
            f"judge is an {kind.__name__}: give (client, 'MODEL'), with an AsyncOpenAI"
        )
    raise ConfigError(
        f"judge is of type {kind.__name__}: give an object with name, extract_claims and check; a "
        "chat model of LangChain, LlamaIndex or Haystack; (AsyncOpenAI(), 'MODEL'); or a name such "
        "as 'local' or 'openai:MODEL'"
    )


def _of_model(given: object, options: Mapping[str, JsonValue] | None = None) -> Judge | None:
    """The judge of a model object, or of a client and a name; None if it is neither."""
    if isinstance(given, type):
        return None
    if isinstance(given, tuple):
        match cast("tuple[object, ...]", given):
            case (client, str(name)):
                from claimspan.judges.llm.judge import OpenAIJudge

                arguments = _judge_arguments(OpenAIJudge, options or {})
                return OpenAIJudge(name, client=client, **arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it refuses what is no client
            case _:
                return None
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
    return ModelJudge(found, **_judge_arguments(ModelJudge, options or {}))  # type: ignore[arg-type]  # checked by name


def _chat_model(given: object) -> tuple[ChatModel | None, Exception | None]:
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


def _named(wanted: str, origin: str, options: Mapping[str, JsonValue], offline: bool) -> Judge:
    kind, _, model = wanted.partition(":")
    kind = kind.lower()
    # A path of Windows has a colon of its own.
    if wanted.rpartition(":")[0].endswith(".py"):
        return _loaded(wanted, options)
    if kind in ("lexical", "local"):
        if options:
            raise ConfigError(f"{wanted!r} takes no options: leave {', '.join(options)} out")
        if kind == "lexical" and not model:
            # Imported only when chosen, as its patterns take a fifth of a second to compile.
            from claimspan.judges.lexical.judge import LexicalJudge

            return LexicalJudge()
        if kind == "local":
            # Imported only when chosen: the runtime takes a second to load.
            from claimspan.judges.local.judge import LocalJudge

            # Looked for now, though it is imported with the first claim: at set-up a user reads it.
            for package in _lacking_for_local():
                if not (model and package == _WEIGHTS):
                    raise MissingExtraError(package, "local")
            return LocalJudge(model or None)
    if model and kind in (*PROVIDERS, "azure"):
        return _at_endpoint(kind, model, options, offline)
    if model and kind in _BY_LITELLM:
        from claimspan.judges.llm.judge import ModelJudge
        from claimspan.judges.llm.litellm_chat import LiteLLMChat

        chat = LiteLLMChat(_BY_LITELLM[kind] + model)
        return ModelJudge(chat, **_judge_arguments(ModelJudge, options))  # type: ignore[arg-type]  # checked by name
    known = ", ".join(f"'{each}:MODEL'" for each in (*PROVIDERS, "azure", "bedrock", "vertex"))
    raise ConfigError(
        f"{origin}={wanted!r} names no judge: use 'lexical', 'local', 'local:MODEL', {known}, "
        "'FILE.py:NAME', or 'litellm:PROVIDER/MODEL' for any other provider, with pip install "
        "'claimspan[litellm]'"
    )


def _loaded(spec: str, options: Mapping[str, JsonValue]) -> Judge:
    """The judge that a name in a file stands for: a judge, a model object, or their maker."""
    found = load_object(spec)
    if isinstance(found, type) or (callable(found) and not isinstance(found, Judge)):
        # A model object may be one that can be called; a class of models is called first.
        adapted = None if isinstance(found, type) else _of_model(found, options)
        if adapted is not None:
            return adapted
        try:
            found = cast("Callable[[], object]", found)()
        except ClaimspanError:
            raise
        except Exception as error:
            raise ConfigError(
                f"{spec!r} makes no judge ({type(error).__name__}: {error}): correct it; it is "
                "called without arguments"
            ) from error
    if not options:
        return judge_of(found)
    adapted = _of_model(found, options)
    if adapted is None:
        raise ConfigError(
            f"{spec!r} is a judge with options of its own: leave {', '.join(options)} out"
        )
    return adapted


def _at_endpoint(kind: str, model: str, options: Mapping[str, JsonValue], offline: bool) -> Judge:
    from claimspan.judges.llm.judge import OpenAIJudge

    given = _judge_arguments(OpenAIJudge, options)
    provider = PROVIDERS.get(kind)
    given.setdefault("provider", (provider.name or kind) if provider else "azure.ai.openai")
    if provider and not provider.keys:
        # On a machine of the user's, whatever the same model costs at a provider.
        given.setdefault("price", Price(input=0.0, output=0.0))
    if offline:  # it is never asked anything: nowhere, and without a key
        kept = {name: each for name, each in given.items() if name not in _OF_CONNECTION}
        given = {**kept, "base_url": NOWHERE}
    elif provider:
        _connect(provider, f"{kind}:{model}", given)
    else:
        _connect_to_azure(model, given)
    return OpenAIJudge(model, **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - checked by name


def _connect(provider: Provider, name: str, given: dict[str, object]) -> None:
    key = next((os.environ[each] for each in provider.keys if os.environ.get(each)), None)
    url = os.environ.get(provider.url_variable, "") if provider.url_variable else ""
    if provider.url_variable == "OLLAMA_HOST" and url:
        url = _ollama_url(url)
    given.setdefault("base_url", url or provider.url)
    given.setdefault("api_key", key)
    is_there = given["base_url"] == provider.url and provider.keys
    if is_there and not given["api_key"] and not given.get("headers"):
        raise ConfigError(f"{name!r} needs a key: set {' or '.join(provider.keys)}")


def _ollama_url(host: str) -> str:
    """The address of ``OLLAMA_HOST``, as Ollama takes it: without a scheme, its port is 11434."""
    host = host.strip().rstrip("/")
    if "://" not in host:
        has_port = ":" in host.rpartition("]")[2]
        host = f"http://{host}" if has_port else f"http://{host}:11434"
    url = host if host.endswith("/v1") else f"{host}/v1"
    # Where a server listens on every address, a client asks this machine.
    return url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]")


def _connect_to_azure(deployment: str, given: dict[str, object]) -> None:
    """Adds address and key of a deployment, by the variables that the openai package documents."""
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
