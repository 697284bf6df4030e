"""Judges: who decides whether a text says a claim."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from claimspan.errors import ConfigError
from claimspan.judges.lexical.judge import LexicalJudge
from claimspan.judges.protocol import Judge, SparseJudge

if TYPE_CHECKING:
    from claimspan.judges.cascade import CascadeJudge
    from claimspan.judges.llm.judge import OpenAIJudge
    from claimspan.judges.local.judge import LocalJudge

__all__ = [
    "CascadeJudge",
    "Judge",
    "LexicalJudge",
    "LocalJudge",
    "OpenAIJudge",
    "SparseJudge",
    "default_judge",
]

JUDGE_VARIABLE: Final = "CLAIMSPAN_JUDGE"
"""Environment variable that names the default judge; ``lexical`` where it is not set."""

_HOMES: Final = {"CascadeJudge": "cascade", "LocalJudge": "local", "OpenAIJudge": "llm"}
"""Loaded when first used: the client of the last takes half a second."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def default_judge(choice: str | None = None) -> Judge:
    """The judge that is taken where none is given.

    An explicit choice comes first, ``CLAIMSPAN_JUDGE`` next, and ``LexicalJudge`` else: no key is
    needed, and a key that the application has for itself is never spent unasked.

    Args:
        choice: ``lexical``; ``local``, or ``local:MODEL`` for another model; or ``openai:MODEL``,
            which opts in to ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.

    Raises:
        ConfigError: The choice names no judge, or its key is missing.
    """
    origin = "the judge" if choice else JUDGE_VARIABLE
    wanted = (choice or os.environ.get(JUDGE_VARIABLE) or "lexical").strip()
    kind, _, model = wanted.partition(":")
    if kind.lower() == "lexical" and not model:
        return LexicalJudge()
    if kind.lower() == "local":
        from claimspan.judges.local.judge import LocalJudge

        return LocalJudge(model or None)
    if kind.lower() == "openai" and model:
        from claimspan.judges.llm.judge import OpenAIJudge

        return OpenAIJudge.from_environment(model)
    raise ConfigError(
        f"{origin}={wanted!r} names no judge: use 'lexical', 'local' or 'openai:MODEL'"
    )
