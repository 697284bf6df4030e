"""Finds the last turn of the user in a conversation, in whatever form it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan_openinference._messages import ROLES, inside_of, parsed, text_of_parts
from claimspan_openinference._shown import shown_role, shown_text
from claimspan_tracing.adapters import is_list, is_mapping

__all__ = ["USER", "is_conversation", "last_turn", "last_turn_in"]

USER: Final = "user"

_ROLES: Final = frozenset({*ROLES, *ROLES.values(), USER})
"""Words by which a pair of two texts is known as a message."""


def last_turn_in(value: object) -> str:
    """Return what the user said last in an input that is a conversation, or has one.

    Empty where it is none, or where no user speaks in it.
    """
    found = parsed(value)
    return last_turn(found.get("messages") if is_mapping(found) else found)


def last_turn(messages: object) -> str:
    """Return what the user said last in a list of messages; empty where no user speaks in it."""
    return next((text for role, text in reversed(_said(messages)) if role == USER and text), "")


def is_conversation(messages: object) -> bool:
    """Whether a value is a list of messages that tell who has said them."""
    return bool(_said(messages))


def _said(messages: object) -> list[tuple[str, str]]:
    """Role and text of each message that has both."""
    items: Sequence[object] = messages if is_list(messages) else ()
    if len(items) == 1 and is_list(items[0]) and not _role(items[0]):
        items = items[0]  # one conversation of a batch
    roles = ((_role(item), item) for item in items)
    return [(role, _text(item)) for role, item in roles if role]


def _role(message: object) -> str:
    if isinstance(message, str):
        return shown_role(message)
    if is_list(message):
        is_pair = len(message) == 2 and all(isinstance(part, str) for part in message)
        return _known(message[0]) if is_pair else ""
    if not is_mapping(message):
        return ""
    inner = inside_of(message)
    named = [_known(each.get(name)) for each in (inner, message) for name in ("role", "type")]
    return next((role for role in named if role), "")


def _known(role: object) -> str:
    name = str(role).lower()
    return ROLES.get(name, name) if name in _ROLES else ""


def _text(message: object) -> str:
    if isinstance(message, str):
        return shown_text(message)
    if is_list(message):
        return str(message[1])
    return text_of_parts(inside_of(message).get("content")) if is_mapping(message) else ""
