"""Every error that claimspan raises on purpose.

    ClaimspanError
    ├── ConfigError          something given at set-up time cannot work; raised before any traffic
    │   └── MissingExtraError    an optional dependency is not installed
    ├── GroundTruthError     a ground-truth or records file cannot be read; names the line
    └── JudgeError           a judge could not give verdicts; the evaluation has no scores
        ├── ReplyError           a model answered with something else than it was asked for
        └── BudgetExceededError  the next call could pass the budget, and was not made

Messages say what happened and what to do about it. They never contain the text of a chunk,
a response or a key, so that they are safe to log.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BudgetExceededError",
    "ClaimspanError",
    "ConfigError",
    "GroundTruthError",
    "JudgeError",
    "MissingExtraError",
    "ReplyError",
]


class ClaimspanError(Exception):
    """The root of the tree: catch this to catch everything that claimspan raises."""


class ConfigError(ClaimspanError):
    """An argument or an environment variable cannot work as given."""


class MissingExtraError(ConfigError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        """Name the missing package and the exact command that installs it."""
        self.package: Final = package
        self.extra: Final = extra
        super().__init__(f"{package!r} is not installed: pip install 'claimspan[{extra}]'")


class GroundTruthError(ClaimspanError):
    """A file of ground truths or records cannot be read as one."""


class JudgeError(ClaimspanError):
    """A judge failed, or returned something that is not what was asked for."""


class ReplyError(JudgeError):
    """A model's reply is not what was asked for; the message names what is wrong with it."""


class BudgetExceededError(JudgeError):
    """The next call could cost more than the budget has left, and was not made."""
