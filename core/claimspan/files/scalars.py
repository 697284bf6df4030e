"""Answers that a file writes as a number or a boolean, such as ``"answer": 42``."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator

__all__ = ["TextOrScalar", "is_absent", "scalar_text"]


def is_absent(value: object) -> bool:
    """Whether a value stands for none: null, or the NaN that a data frame writes in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def scalar_text(value: object) -> object:
    """Return a number or a boolean as JSON writes it, and anything else as it is.

    Lists and objects stay what they are, and are refused by whoever wants a text: their text would
    be judged letter by letter.
    """
    match value:
        case bool():  # before int, which it is in Python
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case _:
            return value


TextOrScalar = Annotated[str, BeforeValidator(scalar_text)]
"""A text, which a file may write as a number or a boolean."""
