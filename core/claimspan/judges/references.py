"""What a reference is to a question: a passage, or an answer to it."""

from __future__ import annotations

__all__ = ["AnswerText"]


class AnswerText(str):
    """A reference that answers the question: a ground truth or a response, not a passage.

    An evaluation marks these two texts by this type. A judge may read them by the question: an
    answer need not repeat what the question says, and may decline to answer. To every other judge
    they are texts like any.
    """

    __slots__ = ()
