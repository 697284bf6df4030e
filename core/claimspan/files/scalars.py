"""Answers that a file writes as a number or a boolean, such as ``"answer": 42``."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator

__all__ = ["TextOrScalar", "is_absent", "scalar_text"]

_EXACT: Final = 1e15
"""Below it a float that is a whole number is written digit by digit."""


def is_absent(value: object) -> bool:
    """Whether a value stands for none: null, or what a data frame has in its place."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    # By name, since pandas is no dependency.
    return type(value).__name__ in ("NAType", "NaTType")


def scalar_text(value: object) -> object:
    """Return a number or a boolean as JSON writes it, and anything else as it is.

    A table with gaps stores 1577 as 1577.0, whose last digit would count as written on purpose.
    Lists and objects stay what they are, and are refused by whoever wants a text: their text would
    be judged letter by letter.
    """
    match value:
        case bool():  # before int, which it is in Python
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(value)
        case Decimal():
            return str(value)
        case _:
            return value


TextOrScalar = Annotated[str, BeforeValidator(scalar_text)]
"""A text, which a file may write as a number or a boolean."""
