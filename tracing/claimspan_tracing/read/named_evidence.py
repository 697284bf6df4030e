"""Tells by its name whether a value is evidence that a pipeline passes on as a text."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["names_evidence"]

_NAME: Final = re.compile(
    r"context|docs?\b|document|passage|chunk|snippet|source|evidence|knowledge|facts?\b|search|"
    r"results?\b|retriev|reference|excerpt|article|information|background",
    re.IGNORECASE,
)


def names_evidence(name: object) -> bool:
    """Whether an input of this name has a text that the model is to answer from."""
    return _NAME.search(str(name)) is not None
