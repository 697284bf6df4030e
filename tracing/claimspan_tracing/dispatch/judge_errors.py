"""Errors of judges, and which of their messages may be shown."""

from __future__ import annotations

from claimspan.errors import JudgeError, JudgeUnavailableError

__all__ = ["ChildJudgeError", "ChildUnavailableError", "is_raised_by_us"]


class ChildJudgeError(JudgeError):
    """A judge has failed in the judging process."""

    def __init__(self, reason: str, *, is_ours: bool) -> None:
        """Set the reason.

        Args:
            reason: What the judge said.
            is_ours: Whether a judge of ours said it, whose messages quote no text of a record.
        """
        self.is_ours = is_ours
        super().__init__(reason)


class ChildUnavailableError(ChildJudgeError, JudgeUnavailableError):
    """The judge is away, says the judging process."""


def is_raised_by_us(error: BaseException) -> bool:
    """Whether a judge of ours has raised: what judges of others say may quote what they read."""
    if isinstance(error, ChildJudgeError):
        return error.is_ours
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    module = "" if step is None else str(step.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == "claimspan"
