"""What a monitor and its judging process say to each other, as JSON with its length before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from claimspan import Evaluation, RagRecord
from claimspan.cost.usage import Usage
from claimspan_tracing.dispatch.judge_spec import JudgeSpec

__all__ = [
    "LENGTH_BYTES",
    "Answer",
    "Ask",
    "Booked",
    "Cancel",
    "Checked",
    "Failed",
    "Judged",
    "Logged",
    "NotReady",
    "Ready",
    "Release",
    "Reserve",
    "SetUp",
    "Settled",
    "ToChild",
    "ToParent",
    "child_frame",
    "from_child",
    "length_of",
    "parent_frame",
    "to_child",
]

LENGTH_BYTES: Final = 4
"""Bytes before each message that tell its length; the highest one first."""

_STRICT: Final = ConfigDict(extra="forbid")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """First of all: what to judge with, and how much of a core to take."""

    __pydantic_config__ = _STRICT
    judges: tuple[JudgeSpec, ...]
    metrics: tuple[Mapping[str, JsonValue], ...]
    max_cpu_share: float
    log_level: int
    kind: Literal["set_up"] = "set_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Judge a record."""

    __pydantic_config__ = _STRICT
    number: int
    judge: int
    record: RagRecord
    has_budget: bool
    calls_per_record: int | None
    tokens_per_record: int | None
    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Nobody waits for the answer to a question any more."""

    __pydantic_config__ = _STRICT
    number: int
    kind: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the budget says: to a reservation, or to a question whether anything is left."""

    __pydantic_config__ = _STRICT
    key: str
    refusal: str
    is_of_record: bool
    kind: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Rest no more: the application is ending."""

    __pydantic_config__ = _STRICT
    kind: Literal["release"] = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The judges are made."""

    __pydantic_config__ = _STRICT
    kind: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReady:
    """A judge cannot be made here."""

    __pydantic_config__ = _STRICT
    reason: str
    kind: Literal["not_ready"] = "not_ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The evaluation of a record."""

    __pydantic_config__ = _STRICT
    number: int
    evaluation: Evaluation
    cpu_seconds: float
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A record has no evaluation."""

    __pydantic_config__ = _STRICT
    number: int
    why: Literal["budget", "unavailable", "judge", "cancelled"]
    reason: str
    is_ours: bool
    cpu_seconds: float
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """A call wants to reserve what it can cost at most."""

    __pydantic_config__ = _STRICT
    number: int
    key: str
    maximum: Usage
    kind: Literal["reserve"] = "reserve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a call has cost."""

    __pydantic_config__ = _STRICT
    number: int
    key: str
    spent: Usage
    kind: Literal["settled"] = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A judge that reserves nothing asks whether anything is left."""

    __pydantic_config__ = _STRICT
    number: int
    key: str
    kind: Literal["checked"] = "checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """What was spent without a reservation."""

    __pydantic_config__ = _STRICT
    number: int
    usage: Usage
    kind: Literal["booked"] = "booked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A line for the application's log."""

    __pydantic_config__ = _STRICT
    logger: str
    level: int
    text: str
    kind: Literal["logged"] = "logged"


ToChild = Annotated[SetUp | Ask | Cancel | Answer | Release, Field(discriminator="kind")]
"""What the monitor says."""

ToParent = Annotated[
    Ready | NotReady | Judged | Failed | Reserve | Settled | Checked | Booked | Logged,
    Field(discriminator="kind"),
]
"""What the judging process says."""


@cache
def _child_format() -> TypeAdapter[ToChild]:
    return TypeAdapter(ToChild)


@cache
def _parent_format() -> TypeAdapter[ToParent]:
    return TypeAdapter(ToParent)


def child_frame(message: ToChild) -> bytes:
    """Return the bytes of a message to the judging process."""
    return _framed(_child_format().dump_json(message))


def parent_frame(message: ToParent) -> bytes:
    """Return the bytes of a message to the monitor."""
    return _framed(_parent_format().dump_json(message))


def to_child(body: bytes) -> ToChild:
    """Return the message that ``child_frame`` wrote, without its length."""
    return _child_format().validate_json(body)


def from_child(body: bytes) -> ToParent:
    """Return the message that ``parent_frame`` wrote, without its length."""
    return _parent_format().validate_json(body)


def length_of(head: bytes) -> int:
    """Return the length of the message that comes after these bytes."""
    return int.from_bytes(head, "big")


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
