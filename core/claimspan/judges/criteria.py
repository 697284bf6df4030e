"""Criteria: properties of answers in words, which a language model judges."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Final

from claimspan.errors import ConfigError
from claimspan.text.percentages import percent_hint

__all__ = [
    "ANSWER_RELEVANCE",
    "MAX_CRITERIA",
    "SHIPPED",
    "Criterion",
    "check_name",
    "check_threshold",
]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

MAX_STATEMENT: Final = 2_000
"""Characters of a criterion: it stands in the prompt of each record."""

MAX_CRITERIA: Final = 20
"""Criteria that one call judges with care."""


def check_name(what: str, name: object) -> None:
    """Refuse what cannot be the name of a score.

    Raises:
        ConfigError: It is no short name of small letters.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{what} got the name {name!r}: give small letters, digits and underscores, such as "
            "'polite'"
        )


def check_threshold(name: str, value: object) -> float:
    """Return the threshold of a metric.

    Raises:
        ConfigError: It is no number between 0 and 1.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(
            f"the threshold of {name} is {value!r}: give a value between 0.0 and 1.0"
            f"{percent_hint(value)}"
        )
    return float(value)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A property that answers should have, in words; a language model judges it.

    All criteria of a record are judged in one call, each with a reason.
    """

    name: str
    """Name of the score: small letters, digits and underscores."""

    statement: str
    """True of a good answer: ``The answer is polite and does not blame the user.``"""

    _: KW_ONLY

    with_chunks: bool = False
    """Whether it is about the chunks as well: they are then a part of the call."""

    scale: int | None = None
    """Number of grades, 2 to 10, of which the lowest makes a score of 0 and the highest of 1; None
    asks for yes or no."""

    threshold: float | None = None
    """The worst score that is good; None is 0.75, or 0.25 if lower is better."""

    lower_is_better: bool = False
    """Whether the statement describes a fault: ``The answer blames the user.``"""

    def __post_init__(self) -> None:
        """Refuse a field that cannot be used, by a ``ConfigError``."""
        check_name("Criterion", self.name)
        if not isinstance(self.statement, str) or not self.statement.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"criterion {self.name!r} has no statement: say what holds of a good answer"
            )
        if len(self.statement) > MAX_STATEMENT:
            raise ConfigError(
                f"the statement of criterion {self.name!r} has {len(self.statement):,} characters: "
                f"give at most {MAX_STATEMENT:,}"
            )
        scale = self.scale
        if scale is not None and (type(scale) is not int or not 2 <= scale <= 10):
            raise ConfigError(
                f"the scale of criterion {self.name!r} is {scale!r}: give 2 to 10 grades, or None "
                "for yes or no"
            )
        if self.threshold is None:
            object.__setattr__(self, "threshold", 0.25 if self.lower_is_better else 0.75)
        check_threshold(self.name, self.threshold)


ANSWER_RELEVANCE: Final = Criterion(
    "answer_relevance",
    "The answer gives what the question asks for: each part of the question is answered, and no "
    "more is said than helps to answer it. Whether it is true does not matter here.",
    scale=5,
)
"""How well an answer fits its question; ``metrics=["answer_relevance"]`` chooses it by its name."""

SHIPPED: Final = {ANSWER_RELEVANCE.name: ANSWER_RELEVANCE}
"""The criteria that are chosen by their names."""
