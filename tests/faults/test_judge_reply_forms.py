"""Replies that say what they should in another form: they are paid for, and so they count."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import RagRecord
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import CascadeJudge, Judge, LexicalJudge
from claimspan.judges.llm.replies import objects_in
from claimspan.testing import ScriptedJudge

from judge_server import Exchange, JudgeServer, completion, judge_server, reply_to
from judged import RECORD, make_judge, verdict_rows

Reply = dict[str, JsonValue]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


# --- words around the object ---


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


AROUND: Final[dict[str, Callable[[str], str]]] = {
    "thoughts": lambda text: f"<think>\nClaim 1 is plain.\n</think>\n\n{text}",
    "thoughts with a draft": lambda text: f"<think>{text}, or perhaps not</think>{text}",
    "a fence": fenced,
    "thoughts and a fence": lambda text: f"<think>Well.</think>\n{fenced(text)}",
    "a sentence before": lambda text: f"Here you are: {text}",
    "a sentence before a fence": lambda text: f"Here is the JSON:\n\n{fenced(text)}",
    "a sentence after": lambda text: f"{text}\n\nI hope that this helps.",
    "braces before": lambda text: f"The ids {{204, 611}} are labelled below.\n{text}",
    "an example before": lambda text: f'The form is {{"call": "...", "verdicts": []}}.\n{text}',
}


@pytest.mark.parametrize("around", AROUND.values(), ids=list(AROUND))
async def test_words_around_a_reply_cost_no_verdict(
    server: JudgeServer, around: Callable[[str], str]
) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))
    server.reset()

    async def behave(exchange: Exchange) -> None:
        await exchange.reply(around(reply_to(exchange.asked)))

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == good.metrics
    assert evaluation.undecided == {}
    assert server.calls == 3  # nothing is asked twice


@pytest.mark.parametrize(
    "text",
    [
        'It says "{"call": "1"}".',
        'It says \'{"call": "1"}\'.',
        '\N{LEFT DOUBLE QUOTATION MARK}{"call": "1"}\N{RIGHT DOUBLE QUOTATION MARK}',
        '> {"call": "1"}',
        '{"result": {"call": "1"}',
        '{"results": [{"call": "1"}, {"call": "1"}',
        '{"text": "{\\"call\\": \\"1\\"}"',
        '<think>{"call": "1"}',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:24],
)
def test_an_object_in_quotes_or_in_another_that_is_cut_is_not_taken(text: str) -> None:
    assert objects_in(text) == []


def test_an_object_in_a_string_of_a_reply_is_a_part_of_that_string() -> None:
    reply = json.dumps({"notes": 'It says {"call": "1"}, </think> and so on.'})

    assert [each.text for each in objects_in(reply)] == [reply]


async def test_a_copy_out_of_a_chunk_beside_the_reply_is_not_believed(server: JudgeServer) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))

    async def behave(exchange: Exchange) -> None:
        forged = json.loads(reply_to(exchange.asked)) | {"call": "123456789"}
        for row in verdict_rows(forged) if "claims" in exchange.asked else ():
            row["labels"] = [str(label)[:-1] + "C" for label in row["labels"] or ()]  # type: ignore[union-attr] # a list
        await exchange.reply(f"{json.dumps(forged)}\n{reply_to(exchange.asked)}")

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == good.metrics


# --- what stands in the object ---


def numeric(reply: Reply) -> Reply:
    for row in verdict_rows(reply) if "verdicts" in reply else ():
        row["claim"] = int(str(row["claim"]))
    return reply | {"call": int(str(reply["call"]))}


async def test_ids_as_numbers_are_the_ids(server: JudgeServer) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))

    async def behave(exchange: Exchange) -> None:
        await exchange.reply(json.dumps(numeric(json.loads(reply_to(exchange.asked)))))

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == good.metrics


def tokens_of(content: str, **first: JsonValue) -> list[JsonValue]:
    sure: Reply = {"logprob": math.log(0.9), "top_logprobs": []}
    return [{"token": each, **sure, **(first if each == "E" else {})} for each in content]


NULLS: Final[dict[str, Callable[[str], JsonValue]]] = {
    "all": lambda _: {"content": [None]},
    "a token": lambda text: {"content": [None, *tokens_of(text)]},
    "a probability": lambda text: {"content": tokens_of(text, logprob=None)},
    "the alternatives": lambda text: {"content": tokens_of(text, top_logprobs=None)},
    "an alternative": lambda text: {
        "content": tokens_of(text, top_logprobs=[{"token": "N", "logprob": None}])
    },
    "words": lambda _: "none",
}


@pytest.mark.parametrize("logprobs", NULLS.values(), ids=list(NULLS))
async def test_log_probabilities_that_are_missing_cost_no_label(
    server: JudgeServer, logprobs: Callable[[str], JsonValue]
) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))

    async def behave(exchange: Exchange) -> None:
        content = reply_to(exchange.asked)
        await exchange.reply(content, logprobs=logprobs(content))

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.undecided == {}
    assert {name: evaluation.metrics[name] for name in good.metrics} == good.metrics


@pytest.mark.parametrize("place", ["query", "response", "ground_truth", "chunks"])
async def test_half_a_surrogate_pair_fails_no_record(server: JudgeServer, place: str) -> None:
    half = "The library stands beside the river \ud83d today."
    chunk = RECORD.chunks[0].model_copy(update={"text": half})
    # A copy checks nothing: a text comes in as it is.
    record: RagRecord = RECORD.model_copy(
        update={place: (chunk, *RECORD.chunks[1:]) if place == "chunks" else half}
    )

    async def behave(exchange: Exchange) -> None:
        reply = reply_to(exchange.asked).replace("river", "river \\ud83d")
        await exchange.send_json(completion(reply))

    server.behave = behave
    for judge in (make_judge(server.url), LexicalJudge(sure_from=0.5)):
        evaluation = await aevaluate(record, judge=judge)

        assert "faithfulness" in evaluation.metrics
        assert evaluation.model_dump_json()


# --- claims beyond those that are kept ---


def verbose(server: JudgeServer, each: int) -> None:
    """Lets the server find several claims a sentence, and stop where it is told to."""

    async def behave(exchange: Exchange) -> None:
        reply = json.loads(reply_to(exchange.asked))
        if "sentences" in exchange.asked:
            claims = [
                {**claim, "text": f"{claim['text']} {i}"}
                for claim in reply["claims"]
                for i in range(each)
            ]
            limit: object = exchange.asked.get("at_most")
            reply["claims"] = claims[: limit if isinstance(limit, int) else None]
        await exchange.reply(json.dumps(reply))

    server.behave = behave


async def test_a_judge_is_asked_for_no_more_claims_than_are_kept(server: JudgeServer) -> None:
    verbose(server, 5)
    long = " ".join(f"Library number {i} stands here." for i in range(80))
    record = RECORD.model_copy(update={"response": long, "ground_truth": None})

    evaluation = await aevaluate(record, judge=make_judge(server.url, exact_schema=True))

    limits = [str(each.asked["at_most"]) for each in server.exchanges if "sentences" in each.asked]
    schemas = [json.dumps(each.schema) for each in server.exchanges if "sentences" in each.asked]
    assert limits == ["26", "26"]  # one more than the 50 that are kept, in two calls
    assert all('"maxItems": 26' in schema for schema in schemas)
    assert len(evaluation.response_claims) == 50
    assert evaluation.claims_dropped >= 1  # so that it shows that there are more


async def test_a_short_text_is_taken_apart_without_a_limit(server: JudgeServer) -> None:
    await aevaluate(RECORD, judge=make_judge(server.url))

    assert all("at_most" not in each.asked for each in server.exchanges)


async def test_a_limit_is_passed_on_by_a_cascade(server: JudgeServer) -> None:
    verbose(server, 5)
    cascade = CascadeJudge(LexicalJudge(), make_judge(server.url))

    evaluation = await aevaluate(RECORD, judge=cascade, max_claims=3)

    assert str(server.exchanges[0].asked["at_most"]) == "4"
    assert len(evaluation.response_claims) == 3


@pytest.mark.parametrize("strong", [ScriptedJudge(), LexicalJudge()], ids=["users", "lexical"])
async def test_judges_that_know_no_limit_work_as_before(strong: Judge) -> None:
    for judge in (strong, CascadeJudge(LexicalJudge(), strong)):
        evaluation = await aevaluate(RECORD, judge=judge, max_claims=1)

        assert len(evaluation.response_claims) == 1
        assert evaluation.claims_dropped >= 1


async def test_of_two_replies_in_one_the_last_counts(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        draft: Reply = {"call": str(exchange.asked["call"]), "claims": []}
        await exchange.reply(f"{json.dumps(draft)} Wait, again: {reply_to(exchange.asked)}")

    server.behave = behave

    assert len(await make_judge(server.url).extract_claims("It is so.")) == 1
    assert server.calls == 1
