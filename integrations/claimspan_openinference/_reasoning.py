"""Reads what agents of the ReAct pattern say: thoughts, calls, and answers, in one text."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["calls_in_text", "final_answer"]

_CALL: Final = re.compile(r"^[ \t]*Action:[ \t]*\S.*\n[ \t]*Action Input:", re.MULTILINE)

_ANSWER: Final = re.compile(r"\s*Thought:.*?\n[ \t]*(?:Final )?Answer:\s*(.+)", re.DOTALL)


def calls_in_text(said: str) -> bool:
    """Whether a model has called a tool in its text, as an agent without tool calls does."""
    return _CALL.search(said) is not None


def final_answer(said: str) -> str:
    """Return the answer after a thought; empty for a call, and any other text as it is."""
    if calls_in_text(said):
        return ""
    found = _ANSWER.match(said)
    return found.group(1).strip() if found else said
