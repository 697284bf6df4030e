"""Options of a judge as command lines and the environment have them: ``key=value``."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Final

from pydantic import JsonValue, SecretStr, ValidationError

from claimspan.cost.pricing import Price
from claimspan.errors import ConfigError
from claimspan.judges.protocol import Judge

__all__ = [
    "OPTIONS",
    "OPTIONS_VARIABLE",
    "environment_options",
    "judge_arguments",
    "parse_options",
]

OPTIONS_VARIABLE: Final = "CLAIMSPAN_JUDGE_OPTIONS"
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
        given = shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
    except ValueError:
        raise ConfigError(
            f"{OPTIONS_VARIABLE} has a quotation mark without its second: write it as in a shell, "
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


def judge_arguments(
    judge: Callable[..., Judge], options: Mapping[str, JsonValue]
) -> dict[str, object]:
    """The arguments of a judge that options of a command line stand for.

    Raises:
        ConfigError: One has a value of another type, belongs to another judge, or a price is
            missing.
    """
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
        given["price"] = _price(*(options.get(name) for name in _PRICES))
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
    """Refuses what is meant for the judge, and would be sent to the model as a field."""
    if name in known:
        raise ConfigError(f"the judge takes no {name!r} as an option: give it in Python")
    # At a distance at which no field of OpenAI's protocol is.
    meant = get_close_matches(name, (*OPTIONS, *_PRICES), n=1, cutoff=0.85)
    if meant:
        raise ConfigError(f"the judge has no option {name!r}: did you mean {meant[0]}?")


def _price(sent: JsonValue, got: JsonValue) -> Price:
    try:
        return Price.model_validate({"input": sent, "output": got})
    except ValidationError:
        raise ConfigError(
            "input_price and output_price are no prices: give both, as numbers of US dollars per "
            "million tokens"
        ) from None
