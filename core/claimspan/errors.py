"""Every error that claimspan raises on purpose.

Messages name the fault and its remedy. They never contain the text of a chunk, a response or a key,
so that they are safe to log.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BudgetExceededError",
    "ClaimspanError",
    "ConfigError",
    "DeliveryError",
    "FileError",
    "GroundTruthError",
    "JudgeError",
    "JudgeUnavailableError",
    "LabelError",
    "MissingExtraError",
    "NoRecordsError",
    "PayloadError",
    "RecordLimitError",
    "ReplyError",
]


class ClaimspanError(Exception):
    """The root of the tree: catch this to catch everything that claimspan raises."""


class ConfigError(ClaimspanError):
    """An argument, an option or an environment variable cannot work as given."""


class LabelError(ConfigError, ValueError):
    """A label has no known spelling, or label matrices of one record do not fit together.

    Also a ``ValueError``, which is what a parser raises in Python.
    """


class MissingExtraError(ConfigError, ModuleNotFoundError):
    """A feature needs a package that is not installed; an import error to those who catch one."""

    def __init__(self, package: str, extra: str) -> None:
        self.package: Final = package
        self.extra: Final = extra
        super().__init__(f"{package!r} is not installed: pip install 'claimspan[{extra}]'")


class NoRecordsError(ConfigError):
    """A trace file was read to its end, and holds no record that claimspan has evaluated."""


class DeliveryError(ClaimspanError):
    """A backend did not take scores; the message names its status and the remedy."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        """Set the whole message, and whether the same scores would be refused again."""
        self.final: Final = final
        super().__init__(reason)


class FileError(ClaimspanError):
    """A file of records or of labelled claims cannot be read; the message names the line."""


class GroundTruthError(FileError):
    """A file of ground truths cannot be read, or a look-up returned a value of another type."""


class PayloadError(FileError):
    """A JSON text was not parsed, or cannot be; the message does not quote it."""

    def __init__(self, reason: str) -> None:
        """Set the reason, which completes "it is": ``"not JSON"``, ``"nested too deeply"``."""
        self.reason: Final = reason
        super().__init__(f"a JSON text is {reason}: write one JSON value of bounded size")


class JudgeError(ClaimspanError):
    """A judge failed, or returned an invalid result."""


class JudgeUnavailableError(JudgeError):
    """The judge is away for every record: it is refused, silent, overloaded or broken.

    The same record may be judged later, and other records would fail now as well. An endpoint
    that refuses one request (HTTP 400, 401, 404) is not away.
    """


class ReplyError(JudgeError):
    """A model's reply is invalid; the message names the fault."""


class BudgetExceededError(JudgeError):
    """The next call could cost more than the budget has left, and was not made."""


class RecordLimitError(BudgetExceededError):
    """One record has used up the calls or the tokens that any record may have by default."""
