"""The forms of a reply: JSON schemas that request it, and readers that take it as it comes.

Models put thoughts, tags, a code fence or a sentence around a reply, and slip in small things. What
leaves no doubt is read, since it is paid for; what leaves doubt stays undecided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final, NamedTuple, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from claimspan.errors import ReplyError
from claimspan.judges.llm.chat import ChatReply
from claimspan.judges.llm.endpoint import CutReplyError
from claimspan.text.encodable import encodable_json

__all__ = [
    "MAX_CLAIMS_PER_SENTENCE",
    "MAX_EXACT_REASON_LENGTH",
    "MAX_NOTES_LENGTH",
    "ClaimsReply",
    "GradesReply",
    "Reply",
    "VerdictsReply",
    "claims_schema",
    "exact_claims_schema",
    "exact_grades_schema",
    "exact_verdicts_schema",
    "grades_schema",
    "objects_in",
    "read_reply",
    "verdicts_schema",
]

Schema = dict[str, JsonValue]

_STRING: Final[Schema] = {"type": "string"}
_INTEGER: Final[Schema] = {"type": "integer"}
_LABEL: Final = "[EMPNC]"
MAX_CLAIMS_PER_SENTENCE: Final = 4
"""Limit on the claims of a text under an exact schema, as a mean of its sentences."""

MAX_NOTES_LENGTH: Final = 300
"""Limit on the characters of a chain of thought under an exact schema."""

MAX_EXACT_REASON_LENGTH: Final = 250
"""Limit on the characters of the reason of a grade under an exact schema."""


def _as_text(value: object) -> object:
    """An id that the model gives as a number, as the text that it was given."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_written(value: object) -> object:
    """A grade that the model gives as a number, a truth or nothing, as a text."""
    return value if isinstance(value, str) else str(value)


def _as_number(value: object) -> object:
    """A number that the model gives as a text, as the keys of the prompt are."""
    return int(value) if isinstance(value, str) and re.fullmatch(r" *\d{1,6} *", value) else value


def _as_labels(value: object) -> object:
    """Labels as texts ``"id:label"``, whatever models make of them."""
    if isinstance(value, dict):
        return [f"{at}:{label}" for at, label in cast("dict[str, object]", value).items()]
    return [*map(_label_of, cast("list[object]", value))] if isinstance(value, list) else ()


def _label_of(label: object) -> object:
    value = label
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if len(given) == 1:
        ((at, letter),) = given.items()
        return f"{at}:{letter}"
    others = [each for key, each in given.items() if key != "label"]
    is_pair = "label" in given and len(others) == 1
    return f"{others[0]}:{given['label']}" if is_pair else label


_Id = Annotated[str, BeforeValidator(_as_text)]
_Written = Annotated[str, BeforeValidator(_as_written)]
_Labels = Annotated[list[str], BeforeValidator(_as_labels)]
_Number = Annotated[int, BeforeValidator(_as_number)]


class _Form(BaseModel):
    # A field more says nothing against the others.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Reply(_Form):
    """What every reply holds."""

    call: _Id


class ClaimEntry(_Form):
    """One claim in the reply to an extraction."""

    sentence: _Number
    text: str


class ClaimsReply(Reply):
    """The reply to an extraction."""

    notes: JsonValue = ""
    claims: list[ClaimEntry]


class VerdictRow(_Form):
    """The labels of one claim in the reply to a check."""

    claim: _Id
    labels: _Labels = Field(default_factory=list[str])


class VerdictsReply(Reply):
    """The reply to a check."""

    verdicts: list[VerdictRow]


class GradeRow(_Form):
    """The grade of one criterion in the reply to a grading."""

    criterion: _Id
    reason: JsonValue = ""
    grade: _Written = ""


class GradesReply(Reply):
    """The reply to a grading."""

    grades: list[GradeRow]


R = TypeVar("R", bound=Reply)


def read_reply(reply: ChatReply, kind: type[R], call: str) -> R:
    """Reads the last JSON object that repeats the id of the call.

    A text of the prompt cannot forge one: it does not know the id. A draft in the thoughts of a
    model is none, nor is one after which a reply was cut.

    Raises:
        CutReplyError: The reply ended at its allowed length, before it was complete.
        ReplyError: It holds no such object.
    """
    objects = objects_in(reply.text)
    is_cut = (reply.finish_reason or "").lower() in _CUT
    if is_cut and objects and not objects[-1].is_last:
        raise CutReplyError("the reply was cut at its allowed length")
    found = [_validated(each.text, kind) for each in objects]
    fitting = [each for each in found if each is not None]
    ours = [each for each in fitting if each.call == call]
    if ours:
        return ours[-1]
    if is_cut:
        raise CutReplyError("the reply was cut at its allowed length")
    raise ReplyError(_fault(reply, has_objects=bool(objects), fits=bool(fitting)))


_CUT: Final = frozenset(
    "length max_tokens model_length max_output_tokens max_completion_tokens max_length token_limit"
    " model_context_window_exceeded finish_reason_max_tokens".split()
)
"""Finish reasons of servers for a reply that was cut; the others say nothing beyond the reply."""

_REFUSED: Final = re.compile(
    r"content_?filter|safety|refusal|blocklist|prohibited|recitation", re.I
)
_USUAL: Final = frozenset("stop eos end_turn eos_token stop_sequence complete".split())
_NAME: Final = re.compile(r"[\w-]{1,40}")


def _fault(reply: ChatReply, *, has_objects: bool, fits: bool) -> str:
    ended = reply.finish_reason or ""
    if _REFUSED.search(ended):
        return "the model refused"
    if fits:
        return "the reply does not repeat the id of the call"
    is_told = ended.lower() not in _USUAL and _NAME.fullmatch(ended)
    named = f" (it ended by {ended!r})" if is_told else ""
    if not reply.text.strip():
        return f"the reply is empty{named}"
    if has_objects or _is_json(reply.text):
        return f"the reply does not fit the schema{named}"
    return f"the reply is not JSON{named}"


def _is_json(content: str) -> bool:
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _validated(text: str, kind: type[R]) -> R | None:
    for written in (text, encodable_json(text)):  # as it is, nearly always
        with suppress(ValidationError):
            return kind.model_validate_json(written)
    return None


# --- the object in what stands around it ---------------------------------------------------------


class _Found(NamedTuple):
    text: str
    is_last: bool
    """Whether nothing follows but a closing fence or tag."""


_THOUGHT: Final = (
    r"(?:think|thinking|thoughts?|reason|reasoning|reflect|reflection|analysis|scratch_?pad|plan|draft"
    r"|monologue|deliberation)\w{0,12}"
)
_OPENS: Final = re.compile(
    rf"[<\[◁]\|?(?:begin_of_|[a-z]{{1,20}}:)?{_THOUGHT}\b[^<>\[\]◁▷]{{0,40}}[>\]▷]", re.IGNORECASE
)
_CLOSES: Final = re.compile(
    rf"[<\[◁]\|?(?:/|end_of_)(?:[a-z]{{1,20}}:)?{_THOUGHT}\|?[>\]▷]|<\|channel\|>final(?:<\|[a-z_]+\|>|[^<]){{0,10}}<\|message\|>",
    re.IGNORECASE,
)
_CHANNEL: Final = re.compile(r"<\|channel\|>(?:analysis|commentary)", re.IGNORECASE)
_CLOSING: Final = re.compile(r"(?:[`\s]|</?[\w|:-]{1,40}>)*+")
_DECODER: Final = json.JSONDecoder()

# A quoted object belongs to a text, as one in a string of an object that is cut.
_QUOTES: Final = frozenset("\"'\\\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb")

_MAX_BRACES: Final = 50
"""Braces that are tried: each try reads to the end of the reply if an object is cut."""


def objects_in(content: str) -> list[_Found]:
    """Returns the JSON objects of a reply that stand in no other object and in no quotes.

    Args:
        content: The reply of a model. What stands in its thoughts does not count.
    """
    text = content.strip()
    if _end_of_object(text, 0) == len(text):
        return [_Found(text, is_last=True)]
    text = _without_thoughts(text)
    return [
        _Found(text[start:end], bool(_CLOSING.fullmatch(text, end))) for start, end in _spans(text)
    ]


def _without_thoughts(text: str) -> str:
    """What stands after the last thought; nothing if the model never came to its reply."""
    # Of a text with the closing tag alone the opening one stands in the prompt.
    closed = [match.end() for match in _CLOSES.finditer(text)]
    rest = text[closed[-1] :] if closed else text
    opened = _OPENS.search(rest) or (None if closed else _CHANNEL.search(rest))
    return rest[: opened.start()] if opened else rest


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = text.find("{")
    for _ in range(_MAX_BRACES):
        if start < 0:
            return
        end = _end_of_object(text, start)
        if end is not None and not _is_inside(text, start):
            yield start, end
        start = text.find("{", start + 1 if end is None else end)


def _end_of_object(text: str, start: int) -> int | None:
    if not text.startswith("{", start):
        return None
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):  # a line of brackets alone nests too deep to be parsed
        return None


def _is_inside(text: str, start: int) -> bool:
    """Whether an object is quoted, or the value of a field or of a list that could not be read."""
    before = text[max(0, start - 200) : start].rstrip()
    if before.endswith((":", ",", "[")):
        before = before[:-1].rstrip()
        return before.endswith(('"', "}", "]", "[", ":", ","))
    # A quotation of Markdown begins its line with the sign that ends a tag.
    return before[-1:] in _QUOTES or bool(re.search(r"(?:^|\n) {0,3}>$", before))


# --- the schemas that request it -----------------------------------------------------------------


def claims_schema(*, reasoned: bool) -> Schema:
    """The schema of an extraction, the same for every call, so that OpenAI compiles it once."""
    notes: Schema = {"notes": _STRING} if reasoned else {}
    entry = _object({"sentence": _INTEGER, "text": _STRING})
    return _object({"call": _STRING, **notes, "claims": {"type": "array", "items": entry}})


def verdicts_schema() -> Schema:
    """The schema of a check, the same for every call, so that OpenAI compiles it once."""
    # Without a pattern, which Azure lists as unsupported: the words of the prompt say the form.
    row = _object({"claim": _STRING, "labels": {"type": "array", "items": _STRING}})
    return _object({"call": _STRING, "verdicts": {"type": "array", "items": row}})


def grades_schema() -> Schema:
    """The schema of a grading, the same for every call, so that OpenAI compiles it once."""
    row = _object({"criterion": _STRING, "reason": _STRING, "grade": _STRING})
    return _object({"call": _STRING, "grades": {"type": "array", "items": row}})


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


def exact_grades_schema(call: str, grades: Mapping[str, Sequence[str]]) -> Schema:
    """The schema of one grading, with the grades that each of its criteria takes."""
    reason: Schema = {"type": "string", "maxLength": MAX_EXACT_REASON_LENGTH}
    rows = _tuple(
        [
            _object({"criterion": {"const": each}, "reason": reason, "grade": {"enum": [*some]}})
            for each, some in grades.items()
        ]
    )
    return _object({"call": {"const": call}, "grades": rows})


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
