"""What a reply may look like: models to read it with, and JSON schemas to ask for it with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from claimspan.errors import ReplyError

__all__ = [
    "CLAIMS_A_SENTENCE",
    "LONGEST_NOTES",
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
_FENCE: Final = "```"
_LABEL: Final = "[ENC]"
CLAIMS_A_SENTENCE: Final = 4
"""At most, on average, where the schema is exact."""

LONGEST_NOTES: Final = 300
"""Characters of a chain of thought where the schema is exact."""


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    call: str


class ClaimEntry(BaseModel):
    """One claim of an extraction."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sentence: int
    text: str


class ClaimsReply(_Reply):
    """Reply to an extraction."""

    notes: str = ""
    claims: list[ClaimEntry]


class VerdictRow(BaseModel):
    """The labels of one claim."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    claim: str
    labels: list[str]


class VerdictsReply(_Reply):
    """Reply to a check."""

    verdicts: list[VerdictRow]


R = TypeVar("R", bound=_Reply)


def read_reply(content: str, kind: type[R], call: str) -> R:
    """Read a reply that has to be one JSON object, alone or in one code fence.

    Raises:
        ReplyError: It is not JSON, does not fit the schema, or does not repeat the id of the
            call: then it was made up elsewhere, such as in the evidence.
    """
    try:
        reply = kind.model_validate_json(_without_fence(content))
    except ValidationError as error:
        is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
        reason = "the reply does not fit the schema" if is_json else "the reply is not JSON"
        raise ReplyError(reason) from None
    if reply.call != call:
        raise ReplyError("the reply does not repeat the id of the call")
    return reply


def _without_fence(content: str) -> str:
    text = content.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and "\n" in text:
        return text.partition("\n")[2].removesuffix(_FENCE)
    return text


def claims_schema(*, reasoned: bool) -> Schema:
    """What an extraction has to look like, the same for every call."""
    notes: Schema = {"notes": _STRING} if reasoned else {}
    entry = _object({"sentence": _INTEGER, "text": _STRING})
    return _object({"call": _STRING, **notes, "claims": {"type": "array", "items": entry}})


def verdicts_schema() -> Schema:
    """What a check has to look like, the same for every call."""
    label: Schema = {"type": "string", "pattern": f"^[0-9]+:{_LABEL}$"}
    row = _object({"claim": _STRING, "labels": {"type": "array", "items": label}})
    return _object({"call": _STRING, "verdicts": {"type": "array", "items": row}})


def exact_claims_schema(call: str, sentences: int, *, longest_claim: int, reasoned: bool) -> Schema:
    """The same with the id, the sentences and the lengths of one call.

    Without an end to everything a small model goes on until its tokens are used up.
    """
    notes: Schema = {"notes": {"type": "string", "maxLength": LONGEST_NOTES}} if reasoned else {}
    numbers: list[JsonValue] = list(range(1, sentences + 1))
    text: Schema = {"type": "string", "minLength": 1, "maxLength": longest_claim}
    entry = _object({"sentence": {"enum": numbers}, "text": text})
    claims: Schema = {"type": "array", "items": entry, "maxItems": CLAIMS_A_SENTENCE * sentences}
    return _object({"call": {"const": call}, **notes, "claims": claims})


def exact_verdicts_schema(call: str, claims: Sequence[str], references: Sequence[str]) -> Schema:
    """The same with every id of one call in its place."""
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
