"""The forms of a reply: pydantic models that read it, and JSON schemas that request it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError

from claimspan.errors import ReplyError
from claimspan.judges.llm.reply_objects import is_json, objects_in
from claimspan.text.encodable import encodable_json

__all__ = [
    "MAX_CLAIMS_PER_SENTENCE",
    "MAX_NOTES_LENGTH",
    "ClaimsReply",
    "VerdictsReply",
    "claims_schema",
    "exact_claims_schema",
    "exact_verdicts_schema",
    "read_reply",
    "verdicts_schema",
]

Schema = dict[str, JsonValue]

_STRING: Final[Schema] = {"type": "string"}
_INTEGER: Final[Schema] = {"type": "integer"}
_LABEL: Final = "[ENC]"
MAX_CLAIMS_PER_SENTENCE: Final = 4
"""Limit on the claims of a text under an exact schema, as a mean of its sentences."""

MAX_NOTES_LENGTH: Final = 300
"""Limit on the characters of a chain of thought under an exact schema."""


def _as_text(value: object) -> object:
    """An id that the model gives as a number, as the text that it was given."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Id = Annotated[str, BeforeValidator(_as_text)]


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    call: _Id


class ClaimEntry(BaseModel):
    """One claim in the reply to an extraction."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sentence: int
    text: str


class ClaimsReply(_Reply):
    """The reply to an extraction."""

    notes: str = ""
    claims: list[ClaimEntry]


class VerdictRow(BaseModel):
    """The labels of one claim in the reply to a check."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    claim: _Id
    labels: list[str]


class VerdictsReply(_Reply):
    """The reply to a check."""

    verdicts: list[VerdictRow]


R = TypeVar("R", bound=_Reply)


def read_reply(content: str, kind: type[R], call: str) -> R:
    """Reads a reply: one JSON object that repeats the id of the call.

    Models put their thoughts, a code fence or a sentence around it. The verdicts are paid for then,
    and count all the same. A text of the prompt cannot forge them: it does not know the id.

    Args:
        content: The text of the reply.
        kind: The model to read it with.
        call: The id of the call.

    Raises:
        ReplyError: The reply is not JSON, does not fit the model, or does not repeat the id of
            the call, as a reply that is copied out of a reference does not.
    """
    found = [_validated(text, kind) for text in objects_in(content)]
    if not found and not is_json(content):
        raise ReplyError("the reply is not JSON")
    fitting = [each for each in found if each is not None]
    if not fitting:
        raise ReplyError("the reply does not fit the schema")
    ours = [each for each in fitting if each.call == call]
    if not ours:
        raise ReplyError("the reply does not repeat the id of the call")
    if len(ours) > 1:
        raise ReplyError("the reply answers twice")
    return ours[0]


def _validated(text: str, kind: type[R]) -> R | None:
    for written in (text, encodable_json(text)):  # as it is, nearly always
        with suppress(ValidationError):
            return kind.model_validate_json(written)
    return None


def claims_schema(*, reasoned: bool) -> Schema:
    """The schema of an extraction, the same for every call, so that OpenAI compiles it once."""
    notes: Schema = {"notes": _STRING} if reasoned else {}
    entry = _object({"sentence": _INTEGER, "text": _STRING})
    return _object({"call": _STRING, **notes, "claims": {"type": "array", "items": entry}})


def verdicts_schema() -> Schema:
    """The schema of a check, the same for every call, so that OpenAI compiles it once."""
    label: Schema = {"type": "string", "pattern": f"^[0-9]+:{_LABEL}$"}
    row = _object({"claim": _STRING, "labels": {"type": "array", "items": label}})
    return _object({"call": _STRING, "verdicts": {"type": "array", "items": row}})


def exact_claims_schema(
    call: str, sentences: int, *, max_claims: int, max_claim_length: int, reasoned: bool
) -> Schema:
    """The schema of one extraction, with its id, its sentence numbers and limits on lengths.

    Without limits a small model writes until its tokens are used up.
    """
    notes: Schema = {"notes": {"type": "string", "maxLength": MAX_NOTES_LENGTH}} if reasoned else {}
    numbers: list[JsonValue] = list(range(1, sentences + 1))
    text: Schema = {"type": "string", "minLength": 1, "maxLength": max_claim_length}
    entry = _object({"sentence": {"enum": numbers}, "text": text})
    claims: Schema = {"type": "array", "items": entry, "maxItems": max_claims}
    return _object({"call": {"const": call}, **notes, "claims": claims})


def exact_verdicts_schema(call: str, claims: Sequence[str], references: Sequence[str]) -> Schema:
    """The schema of one check, with every id of the call in its place."""
    labels = _tuple([{"type": "string", "pattern": f"^{each}:{_LABEL}$"} for each in references])
    rows = _tuple([_object({"claim": {"const": each}, "labels": labels}) for each in claims])
    return _object({"call": {"const": call}, "verdicts": rows})


def _object(properties: Schema) -> Schema:
    required: list[JsonValue] = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _tuple(items: Sequence[Schema]) -> Schema:
    prefix: list[JsonValue] = list(items)
    return {"type": "array", "prefixItems": prefix, "minItems": len(items), "maxItems": len(items)}
