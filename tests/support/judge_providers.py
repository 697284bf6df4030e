"""Endpoints as their providers document them: what they refuse, in which words, how they reply.

The tables are the files in ``providers``, one cell a line: ``refusals`` are requests that can be
made in another way, ``windows`` texts that must be taken apart, ``busy`` and ``slow_down`` answers
that pass, ``quota`` and ``hopeless`` answers that do not; ``replies`` count, and no reply of
``drafts`` and ``useless`` does. The words are those of the providers' documentation and of public
bug reports; no provider was asked. ``<<limit>>`` and the like stand for what ``_said`` and
``_written`` put in their place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, cast

from pydantic import JsonValue, TypeAdapter

from claimspan import Chunk, RagRecord
from claimspan.text.tokens import count_tokens

from judge_server import Exchange, JudgeServer, completion, reply_to

__all__ = [
    "BUSY",
    "DRAFTS",
    "HOPELESS",
    "KEY",
    "LONG",
    "PRIVATE",
    "QUOTA",
    "RECORD",
    "REFUSALS",
    "REPLIES",
    "SLOW_DOWN",
    "USELESS",
    "WINDOWS",
    "Answer",
    "Refusal",
    "Reply",
    "Request",
    "answer_with",
    "asked",
    "calls",
    "draft_of",
    "is_check",
    "limit_of",
    "reply_as",
    "right_reply",
    "send",
    "so_long_as",
]

Request = dict[str, JsonValue]
Row = TypeVar("Row")

KEY: Final = "sk-canary-quux-4711"

RECORD: Final = RagRecord(
    query="Where does the Quibblewick tower stand?",
    response="The Quibblewick tower stands beside the Zanderfluss. Vampires whitewashed cellars.",
    chunks=(
        Chunk(id="a", text="The Quibblewick tower stands beside the Zanderfluss since 1412."),
        Chunk(id="b", text="Masons finished building Quibblewick in eleven months."),
    ),
    ground_truth="The Quibblewick tower stands beside the Zanderfluss. Goblins varnished doors.",
)
"""One of two claims of the answer is in a chunk, one of two of the truth in the answer."""

PRIVATE: Final = (
    *"Quibblewick Zanderfluss Vampires whitewashed Goblins varnished Masons".split(),
    KEY,
    KEY.removeprefix("sk-"),
)
"""Words of the record, and the key: no message may hold one."""

LONG: Final = RECORD.model_copy(
    update={
        "chunks": tuple(
            Chunk(id=str(n), text=" ".join(f"Valley {n} has orchard {k}." for k in range(150)))
            for n in range(7)
        )
        + RECORD.chunks
    }
)
"""The same record behind chunks of some thousand tokens."""


# --- what a request is -------------------------------------------------------------------------


def asked(request: Request) -> dict[str, dict[str, str]]:
    """The material of a prompt, also if it stands behind the words of the system message."""
    text = str(cast("list[Request]", request["messages"])[-1]["content"])
    for begin in (n for n, sign in enumerate(text) if sign == "{"):
        try:
            found = cast("Request", json.JSONDecoder().raw_decode(text, begin)[0])
        except ValueError:
            continue
        if isinstance(found.get("call"), str):  # a schema in the prompt has an object there
            return cast("dict[str, dict[str, str]]", found)
    raise AssertionError("the prompt holds no material")


def is_check(request: Request) -> bool:
    return "references" in asked(request)


def right_reply(request: Request) -> str:
    return reply_to(asked(request))


def draft_of(request: Request) -> str:
    """A reply with the right id that says the opposite of the right one."""
    reply = json.loads(right_reply(request))
    if not is_check(request):
        return json.dumps({**reply, "claims": [{"sentence": 1, "text": "Dragons baked bread."}]})
    for row in reply["verdicts"]:
        row["labels"] = [
            label[:-1] + ("N" if label.endswith("E") else "E") for label in row["labels"]
        ]
    return json.dumps(reply)


def calls(server: JudgeServer) -> dict[str, int]:
    """How many requests each call took, by its id."""
    ids = [str(asked(each.request)["call"]) for each in server.exchanges]
    return {each: ids.count(each) for each in ids}


def limit_of(request: Request) -> int:
    """The limit on the reply, by either of its names; 0 for none."""
    return _number(request.get("max_tokens") or request.get("max_completion_tokens"))


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _tokens(request: Request) -> int:
    return count_tokens(json.dumps(request["messages"], ensure_ascii=False))


def _form(request: Request) -> str:
    form = request.get("response_format")
    return str(form["type"]) if isinstance(form, dict) else ""


def _has_system(request: Request) -> bool:
    return any(each["role"] == "system" for each in cast("list[Request]", request["messages"]))


_MEASURES: Final[Mapping[str, Callable[[Request], int]]] = {
    "limit": limit_of,
    "prompt": _tokens,
    "prompt + limit": lambda request: _tokens(request) + limit_of(request),
    "top_logprobs": lambda request: _number(request.get("top_logprobs")),
}
_CONDITIONS: Final[Mapping[str, Callable[[Request], bool]]] = {
    "system": _has_system,
    "json_schema": lambda request: _form(request) == "json_schema",
    "json_object": lambda request: _form(request) == "json_object",
    "json_object without json": lambda request: (
        _form(request) == "json_object" and "json" not in json.dumps(request["messages"]).lower()
    ),
    "logprobs": lambda request: bool(request.get("logprobs") or request.get("top_logprobs")),
}


def _holds(when: str, request: Request) -> bool:
    """Whether a condition of the table holds: one by name, a bound, a keyword, or a field."""
    if when in _CONDITIONS:
        return _CONDITIONS[when](request)
    if bound := re.fullmatch(r"(.+) ([<>]) (\d+)", when):
        value, limit = _MEASURES[bound[1]](request), int(bound[3])
        return value > limit if bound[2] == ">" else 0 < value < limit
    if when.startswith("keyword "):
        return f'"{when.removeprefix("keyword ")}"' in json.dumps(request.get("response_format"))
    return request.get(when) is not None


# --- the tables --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """An endpoint that refuses a request so long as something is in it.

    Attributes:
        provider: Who is said to refuse so.
        refused: What it refuses, for the name of the test.
        when: Whether it refuses a request, as ``_holds`` reads it.
        status: HTTP status of the refusal.
        body: Body of the refusal.
        model: Name of the model.
        keeps: Fields that the last request must have still, since nothing was said of them.
        options: Arguments of the judge.
    """

    provider: str
    refused: str
    when: str
    status: int
    body: JsonValue
    model: str = "judge-prod"
    keeps: tuple[str, ...] = ("temperature", "response_format")
    options: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def __str__(self) -> str:
        return f"{self.provider}: {self.refused}"


@dataclass(frozen=True)
class Answer:
    """An answer that has nothing to do with what is in a request.

    Attributes:
        provider: Who is said to answer so.
        status: HTTP status.
        body: Body of the answer.
        headers: Its headers.
        cause: Why, for the name of the test.
        says: A pattern of the message of the error, or the name of one of ``CAUSES``.
    """

    provider: str
    status: int
    body: JsonValue
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cause: str = ""
    says: str = ""

    def __str__(self) -> str:
        return f"{self.provider}: {self.cause or self.status}"


@dataclass(frozen=True)
class Reply:
    """How a model wraps what it says.

    Attributes:
        provider: Who is said to reply so.
        form: What is unusual, for the name of the test.
        content: Content of the message.
        choice: Fields of the choice, in place of a content.
        response: The whole response, in place of a choice.
    """

    provider: str
    form: str
    content: JsonValue = None
    choice: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    response: JsonValue = None

    def __str__(self) -> str:
        return f"{self.provider}: {self.form}"


def _table(kind: type[Row], name: str) -> tuple[Row, ...]:
    path = Path(__file__).parent / "providers" / f"{name}.jsonl"
    rows = path.read_text(encoding="utf-8").split("\n")
    return tuple(TypeAdapter(kind).validate_json(row) for row in rows if row)


REFUSALS: Final = _table(Refusal, "refusals")
WINDOWS: Final = _table(Refusal, "windows")
BUSY: Final = _table(Answer, "busy")
SLOW_DOWN: Final = _table(Answer, "slow_down")
QUOTA: Final = _table(Answer, "quota")
HOPELESS: Final = _table(Answer, "hopeless")
REPLIES: Final = _table(Reply, "replies")
DRAFTS: Final = _table(Reply, "drafts")
USELESS: Final = _table(Reply, "useless")


# --- the server --------------------------------------------------------------------------------


def _said(request: Request) -> dict[str, str]:
    """What a refusal may quote of a request."""
    return {
        "limit": str(limit_of(request)),
        "sent": str(_tokens(request)),
        "total": str(_tokens(request) + limit_of(request)),
        "prompt": json.dumps(request["messages"], ensure_ascii=False),
        "material": json.dumps(asked(request), ensure_ascii=False),
        "right": right_reply(request),
        "key": KEY,
        "key end": KEY[-4:],
    }


def _written(request: Request) -> dict[str, str]:
    """What a model may write: the right reply, a wrong one, and what is left of the right one."""
    right = right_reply(request)
    call = str(asked(request)["call"])
    rest = {name: value for name, value in json.loads(right).items() if name != "call"}
    return {
        "right": right,
        "draft": draft_of(request),
        "completion": json.dumps(completion(right)),
        "first half": right[:20],
        "second half": right[20:],
        "cut": right[:-3],
        "id": call,
        "no id": json.dumps(rest),
        "other id": json.dumps({"call": "100000001", **rest}),
        "null id": json.dumps({"call": None, **rest}),
        "short id": json.dumps({"call": call[:-1], **rest}),
    }


def _filled(value: JsonValue, words: Mapping[str, str]) -> JsonValue:
    if isinstance(value, str):
        return re.sub(r"<<(.+?)>>", lambda found: words.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [_filled(each, words) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, words) for name, each in value.items()}
    return value


async def send(
    exchange: Exchange, status: int, body: JsonValue, headers: Mapping[str, str] | None = None
) -> None:
    """Sends JSON as JSON, a text that is a page or a sentence as it is, ``<<bytes>>`` as bytes."""
    kind, raw = "application/json", json.dumps(body).encode()
    if isinstance(body, str):
        kind, raw = "text/html" if body.startswith("<") else "text/plain", body.encode()
    elif isinstance(body, dict) and "<<bytes>>" in body:
        raw = str(body["<<bytes>>"]).encode("latin1")
    await exchange.send(raw, status=status, headers={"Content-Type": kind, **(headers or {})})


async def answer_with(exchange: Exchange, answer: Answer | Refusal) -> None:
    """Sends an answer of the table, with what it quotes of the request."""
    headers = answer.headers if isinstance(answer, Answer) else {}
    await send(exchange, answer.status, _filled(answer.body, _said(exchange.request)), headers)


async def reply_as(exchange: Exchange, reply: Reply) -> None:
    """Sends a reply of the table."""
    response = reply.response
    if response is None:
        response = completion(cast("str | None", reply.content), **reply.choice)
    await send(exchange, 200, _filled(response, _written(exchange.request)))


def so_long_as(server: JudgeServer, *refusals: Refusal) -> list[Request]:
    """Lets the server refuse so long as a request has what it refuses.

    Returns:
        The requests that it refuses, as they come.
    """
    refused: list[Request] = []

    async def behave(exchange: Exchange) -> None:
        for refusal in refusals:
            if _holds(refusal.when, exchange.request):
                refused.append(exchange.request)
                await answer_with(exchange, refusal)
                return
        await exchange.reply(right_reply(exchange.request))

    server.behave = behave
    return refused
