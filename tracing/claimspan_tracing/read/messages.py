"""Messages of a prompt: the last ones and the system message, within few bytes.

The prompt is kept as one text as well, so that what is kept of its messages comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from claimspan_tracing.job import (
    MAX_MESSAGE_BYTES,
    MAX_MESSAGES,
    MAX_MESSAGES_BYTES,
    Message,
)
from claimspan_tracing.text import byte_length

__all__ = ["read_messages"]

SYSTEM: Final = "system"
ROLES: Final = frozenset({SYSTEM, "user", "assistant", "tool"})

Said = Sequence[tuple[object, object]]
"""Role and text of each message, before cleaning."""


def read_messages(said: Said, text_of: Callable[[object], str]) -> tuple[Message, ...]:
    """Return the messages that are kept, in their order.

    Args:
        said: All messages of a prompt.
        text_of: Cleans a text and bounds it. A redactor needs more of a text than is kept of it,
            and cuts it itself.
    """
    room = MAX_MESSAGES_BYTES
    kept: dict[int, Message] = {}
    for index in _by_importance(said):
        role, text = said[index]
        message = Message(role=_role(role), text=text_of(text))
        room -= min(byte_length(message.text), MAX_MESSAGE_BYTES)
        if room < 0 or len(kept) == MAX_MESSAGES:
            break
        kept[index] = message
    return tuple(kept[index] for index in sorted(kept))


def _by_importance(said: Said) -> list[int]:
    """Indices of messages: the last one, a system message at the beginning, then backwards."""
    backwards = list(range(len(said)))[::-1]
    first = [0] if len(said) > 1 and said[0][0] == SYSTEM else []
    return [*backwards[:1], *first, *(index for index in backwards[1:] if index not in first)]


def _role(role: object) -> str:
    return role if isinstance(role, str) and role in ROLES else ""
