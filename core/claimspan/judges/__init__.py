"""Judges: who decides whether a text says a claim."""

from __future__ import annotations

import os
from typing import Final

from claimspan.errors import ConfigError
from claimspan.judges.lexical import LexicalJudge
from claimspan.judges.local import LocalJudge
from claimspan.judges.protocol import Judge

__all__ = ["Judge", "LexicalJudge", "LocalJudge", "default_judge"]

JUDGE_VARIABLE: Final = "CLAIMSPAN_JUDGE"
"""Environment variable that names the default judge; ``lexical`` where it is not set."""


def default_judge() -> Judge:
    """The judge that is taken where none is given.

    ``CLAIMSPAN_JUDGE`` names it; without it, ``LexicalJudge``: no key is needed, and a key that
    the application has for itself is never spent.

    Raises:
        ConfigError: ``CLAIMSPAN_JUDGE`` names no judge.
    """
    name = os.environ.get(JUDGE_VARIABLE, "lexical").strip().lower()
    if name != "lexical":
        raise ConfigError(f"{JUDGE_VARIABLE}={name!r} names no judge: use 'lexical', or unset it")
    return LexicalJudge()
