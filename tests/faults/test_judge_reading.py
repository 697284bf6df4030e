"""Replies as servers and models send them: each is read, or refused for the reason that holds.

Row F18 of the reliability matrix.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan.errors import ReplyError
from claimspan.judges.llm.chat import ChatReply
from claimspan.judges.llm.endpoint import CutReplyError
from claimspan.judges.llm.openai_chat import read_completion
from claimspan.judges.llm.refusals import Refusal, read_refusal, refusal_in
from claimspan.judges.llm.replies import ClaimsReply, VerdictsReply, read_reply

from judge_server import completion

CALL: Final = "493817205"
REPLY: Final = json.dumps({"call": CALL, "claims": [{"sentence": 1, "text": "It is so."}]})
DRAFT: Final = json.dumps({"call": CALL, "claims": []})


def texts_in(content: str, finish_reason: str | None = "stop") -> list[str]:
    read = read_reply(ChatReply(content, finish_reason), ClaimsReply, CALL)
    return [claim.text for claim in read.claims]


# --- what stands around the object ---

READ: Final[dict[str, str]] = {
    "nothing": REPLY,
    "a fence": f"```json\n{REPLY}\n```",
    "a fence without a language": f"```\n{REPLY}\n```\n",
    "an answer tag": f"<answer>{REPLY}</answer>",
    "thoughts": f"<think>{DRAFT}</think>{REPLY}",
    "thoughts of another name": f"<thinking>{DRAFT}</thinking>\n{REPLY}",
    "reasoning": f"<reasoning>\n{DRAFT}\n</reasoning>\n\n```json\n{REPLY}\n```",
    "thoughts in capitals": f"<THINK>{DRAFT}</THINK>{REPLY}",
    "thoughts in brackets": f"[THINK]{DRAFT}[/THINK]{REPLY}",
    "thoughts in triangles": f"◁think▷{DRAFT}◁/think▷{REPLY}",
    "the closing tag alone": f"Perhaps {DRAFT}?\n</think>\n\n{REPLY}",
    "thoughts twice": f"<think>{DRAFT}</think> Well. <think>{DRAFT}</think>{REPLY}",
    "channels": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final"
        f"<|message|>{REPLY}<|return|>"
    ),
    "a channel with a constraint": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final "
        f"<|constrain|>json<|message|>{REPLY}"
    ),
    "an end token": f"{REPLY}<|im_end|>",
    "a draft": f"{DRAFT}\nWait, one is missing:\n{REPLY}",
    "a field more": REPLY[:-1] + ', "confidence": 0.9}',
    "numbers as texts": REPLY.replace('"sentence": 1', '"sentence": "1"'),
    "notes as a list": REPLY[:-1] + ', "notes": ["one", "two"]}',
}


@pytest.mark.parametrize("content", READ.values(), ids=list(READ))
def test_a_reply_is_read_whatever_stands_around_it(content: str) -> None:
    assert texts_in(content) == ["It is so."]


REFUSED: Final[dict[str, tuple[str, str]]] = {
    "thoughts that do not end": (f"<think>Perhaps {REPLY}", "not JSON"),
    "an analysis that does not end": (f"<|channel|>analysis<|message|>{REPLY}", "not JSON"),
    "a quotation": (f"The passage reads '{REPLY}'.", "not JSON"),
    "a quotation of Markdown": (f"It says:\n> {REPLY}", "not JSON"),
    "another call": (REPLY.replace(CALL, "123456789"), "does not repeat the id"),
    "no claims": (json.dumps({"call": CALL}), "does not fit the schema"),
    "nothing": (" \n", "is empty"),
    "a list": ("[]", "does not fit the schema"),
}


@pytest.mark.parametrize(("content", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_what_leaves_doubt_is_refused_with_its_reason(content: str, reason: str) -> None:
    with pytest.raises(ReplyError, match=reason):
        texts_in(content)


@pytest.mark.parametrize(
    "labels",
    [
        ["12:E", "57:N"],
        ["12: E", "57: N"],
        [" 12 : E ", "57=N"],
        ["12:entailed", "57:Neutral"],
        {"12": "E", "57": "N"},
        [{"12": "E"}, {"57": "N"}],
        [{"reference": "12", "label": "E"}, {"reference": 57, "label": "N"}],
    ],
    ids=str,
)
def test_labels_are_read_in_every_form(labels: JsonValue) -> None:
    rows: JsonValue = [{"claim": 204, "labels": labels}]
    read = read_reply(ChatReply(json.dumps({"call": CALL, "verdicts": rows})), VerdictsReply, CALL)

    (row,) = read.verdicts
    assert row.claim == "204"
    first, second = ("".join(each.split()).replace("=", ":") for each in row.labels)
    assert (first.lower()[:4], second.lower()[:4]) == ("12:e", "57:n")


# --- how it ended ---


@pytest.mark.parametrize(
    "ended", ["stop", "STOP", "COMPLETE", "end_turn", "eos", "eos_token", "stop_sequence", "", None]
)
def test_a_complete_reply_counts_however_servers_call_its_end(ended: str | None) -> None:
    assert texts_in(REPLY, ended) == ["It is so."]


CUT: Final[dict[str, str]] = {
    "in the object": REPLY[:-4],
    "in its thoughts": f"<think>Perhaps {DRAFT}",
    "after a draft": f"{DRAFT}\nWait, one is miss",
    "after a draft, in the object": f"{DRAFT}\n{REPLY[:-4]}",
    "before its first sign": "",
}


@pytest.mark.parametrize("ended", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
@pytest.mark.parametrize("content", CUT.values(), ids=list(CUT))
def test_a_reply_that_was_cut_is_no_reply(content: str, ended: str) -> None:
    with pytest.raises(CutReplyError, match="was cut"):
        texts_in(content, ended)


def test_a_reply_that_is_complete_at_its_allowed_length_counts() -> None:
    assert texts_in(f"```json\n{REPLY}\n```", "length") == ["It is so."]


@pytest.mark.parametrize("ended", ["content_filter", "SAFETY", "PROHIBITED_CONTENT", "refusal"])
def test_a_model_that_refused_is_said_to_have_refused(ended: str) -> None:
    with pytest.raises(ReplyError, match="the model refused"):
        texts_in("", ended)


# --- the response around it ---


def body_of(content: JsonValue) -> bytes:
    return json.dumps(completion(None, message={"role": "assistant", "content": content})).encode()


CONTENTS: Final[dict[str, JsonValue]] = {
    "a text": REPLY,
    "parts": [{"type": "text", "text": REPLY[:20]}, {"type": "text", "text": REPLY[20:]}],
    "parts of the newer protocol": [{"type": "output_text", "text": REPLY}],
    "parts with thoughts": [
        {"type": "thinking", "thinking": [{"type": "text", "text": DRAFT}]},
        {"type": "text", "text": REPLY},
    ],
    "texts": [REPLY[:20], REPLY[20:]],
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=list(CONTENTS))
def test_content_is_read_as_a_text_or_in_parts(content: JsonValue) -> None:
    assert read_completion(body_of(content)).text == REPLY


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ({"message": "Rate limit exceeded", "code": 429}, 429, "rate"),
        ({"message": "Overloaded", "code": "503"}, 503, "away"),
        ({"message": "Something broke"}, 500, "away"),
        ("Something broke", 500, "away"),
    ],
    ids=str,
)
def test_an_error_with_the_status_of_a_success_is_an_error(
    fault: JsonValue, status: int, kind: str
) -> None:
    for body in ({"error": fault}, {"choices": [{"error": fault, "message": {"content": ""}}]}):
        with pytest.raises(Exception, match="holds an error") as caught:
            read_completion(json.dumps(body).encode())

        refusal = read_refusal(caught.value)
        assert (refusal.status, refusal.kind) == (status, kind)


def test_an_error_beside_a_reply_costs_no_reply() -> None:
    body = {**completion(REPLY), "error": {"message": "late"}}

    assert read_completion(json.dumps(body).encode()).text == REPLY


# --- what errors say ---

TEXT: Final = '{"references":{"12":"Pharaoh\\nKnjižnica <b> 4711"},"call":"1"}'
KEY: Final = "abcd-efgh-ijkl"


@pytest.mark.parametrize(
    "echo",
    [
        "Pharaoh",
        "pharaoh's",
        "PHARAOH",
        "haraoh",
        "Pharao",
        "Knjižnica",
        "4711",
        "abcd-efgh-ijkl",
        "abcd",
        "nKnji",
        "efgh-i",
        "Bearer sk-other-key",
    ],
)
def test_no_word_of_a_text_or_a_key_comes_back_in_an_error(echo: str) -> None:
    for refusal in (
        refusal_in({"error": {"message": f"The value {echo} is invalid"}}, 400),
        refusal_in({"error": {"message": "Invalid", "param": echo, "code": echo}}, 400),
        refusal_in({"detail": [{"loc": ["body", echo], "msg": f"invalid {echo}"}]}, 422),
        Refusal(500, message=f"invalid: {echo}, {echo}!"),
    ):
        said = str(refusal.error(1, texts=[TEXT], secrets=[KEY]))

        assert not {word.strip(",!").casefold() for word in said.split()} & {
            word.casefold() for word in echo.split() if word != "Bearer"
        }
        assert "invalid" in said.casefold()


def test_an_error_says_what_the_server_says_and_what_to_do() -> None:
    body = {"error": {"message": "Unsupported value: 'temperature' is 0", "param": "temperature"}}

    said = str(refusal_in(body, 400).error(1, texts=[TEXT], secrets=[]))

    assert said.startswith("the endpoint answered with HTTP 400 (param temperature): Unsupported")
    assert "options=" in said


def test_a_page_of_html_and_the_words_of_a_client_are_not_repeated() -> None:
    class ClientError(Exception):
        status_code = 502

    for message in ("<html><body>Bad gateway", "Error code: 502 - {'x': 1}"):
        said = str(read_refusal(ClientError(message)).error(3, texts=[], secrets=[]))

        assert said == "the endpoint answered with HTTP 502; requests made: 3"


# --- texts that are made to be slow ---

UNITS: Final = (
    *("{", "}", "[", '"', "'", "`", " ", "\n", "\\", "<", "<a>", "<think", "<think>", "</think>"),
    *(
        "[THINK]",
        "<|channel|>",
        "<|channel|>final<|a",
        '{"a":',
        "{}",
        '{"a":1} ',
        "\n> {",
        ":",
        "1",
    ),
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("{}", "x"), (REPLY, " !"), ("12", "!")])
def test_a_megabyte_of_anything_is_read_in_linear_time(unit: str, before: str, after: str) -> None:
    content = before + unit * (2**20 // len(unit)) + after
    started = time.monotonic()

    for kind in (ClaimsReply, VerdictsReply):
        with suppress(ReplyError):
            read_reply(ChatReply(content, "length"), kind, CALL)
    refusal_in(content, 400).error(1, texts=[content], secrets=[KEY])

    assert time.monotonic() - started < 10  # a quadratic search would take hours
