"""Unusable replies of a model: they give no score, but a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import Evaluation, Label, Verdict
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many

from judge_server import Exchange, JudgeServer, completion, judge_server, reply_to
from judged import RECORD, make_judge, verdict_rows

ALL_CELLS: Final = 18
"""Verdicts of RECORD: two claims against three chunks, twice, two against the other text, and two
against the chunks together."""

LONGEST_REPLY: Final = 260
"""More characters than the reply to the check of RECORD has."""

Change = Callable[[dict[str, JsonValue]], object]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def undecided(evaluation: Evaluation) -> int:
    matrices = (
        evaluation.response_vs_chunks,
        evaluation.response_vs_ground_truth,
        evaluation.ground_truth_vs_response,
        evaluation.ground_truth_vs_chunks,
        evaluation.response_vs_context,
    )
    return sum(cell is None for matrix in matrices if matrix for cell in matrix.verdicts())


def change_checks(server: JudgeServer, change: Change, *, times: int = 10**6) -> None:
    """Applies ``change`` to the replies to the next checks; all other replies are right."""

    async def behave(exchange: Exchange) -> None:
        nonlocal times
        reply = json.loads(reply_to(exchange.asked))
        if "claims" in exchange.asked and times > 0:
            times -= 1
            reply = change(reply) or reply
        await exchange.reply(reply if isinstance(reply, str) else json.dumps(reply))

    server.behave = behave


def drop_row(reply: dict[str, JsonValue]) -> None:
    verdict_rows(reply).pop()
    rows = reply["verdicts"]
    assert isinstance(rows, list)
    rows.pop()


def drop_label(reply: dict[str, JsonValue]) -> None:
    labels = verdict_rows(reply)[0]["labels"]
    assert isinstance(labels, list)
    labels.pop(0)


def double_row(reply: dict[str, JsonValue]) -> None:
    rows = reply["verdicts"]
    assert isinstance(rows, list)
    rows.append(rows[0])


def double_label(reply: dict[str, JsonValue]) -> None:
    labels = verdict_rows(reply)[0]["labels"]
    assert isinstance(labels, list)
    labels.append(str(labels[0])[:-1] + "C")


def rename_row(reply: dict[str, JsonValue]) -> None:
    verdict_rows(reply)[0]["claim"] = "7"


def rename_label(reply: dict[str, JsonValue]) -> None:
    labels = verdict_rows(reply)[0]["labels"]
    assert isinstance(labels, list)
    labels[0] = "7:E"


def unknown_label(reply: dict[str, JsonValue]) -> None:
    labels = verdict_rows(reply)[0]["labels"]
    assert isinstance(labels, list)
    labels[0] = str(labels[0])[:-1] + "X"


IDS: Final[dict[str, Change]] = {
    "a claim is missing": drop_row,
    "a reference is missing": drop_label,
    "a claim is there twice": double_row,
    "a reference is there twice, with two labels": double_label,
    "a claim has an unknown id": rename_row,
    "a reference has an unknown id": rename_label,
    "a label is none": unknown_label,
}


@pytest.mark.parametrize("change", IDS.values(), ids=list(IDS))
async def test_ids_that_do_not_match_are_asked_for_again_and_those_alone(
    server: JudgeServer, change: Change
) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))
    server.reset()
    change_checks(server, change, times=1)

    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    asked = [each.asked for each in server.exchanges if "claims" in each.asked]
    assert evaluation.metrics == good.metrics
    assert undecided(evaluation) == 0
    assert len(asked) == 2
    assert len(asked[1]["claims"]) == 1  # of four


@pytest.mark.parametrize("change", IDS.values(), ids=list(IDS))
async def test_ids_that_never_match_stay_undecided_and_are_counted(
    server: JudgeServer, change: Change
) -> None:
    change_checks(server, change)

    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    missing = undecided(evaluation)
    assert 0 < missing < ALL_CELLS
    assert sum(evaluation.undecided.values()) == missing
    assert evaluation.undecided_claims > 0
    assert server.kinds == {}  # only the changed behaviour has answered


async def test_verdicts_that_came_stay_where_asking_for_the_rest_fails(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        reply = json.loads(reply_to(exchange.asked))
        if "claims" not in exchange.asked:
            await exchange.reply(json.dumps(reply))
        elif len(exchange.asked["claims"]) > 1:
            drop_row(reply)
            await exchange.reply(json.dumps(reply))
        else:
            await exchange.send(b"{}", status=404)

    server.behave = behave
    judge = make_judge(server.url)
    first = await aevaluate(RECORD, judge=judge)
    server.behave = server.answer
    second = await aevaluate(RECORD, judge=judge)

    missing = undecided(first)
    assert 0 < missing < ALL_CELLS
    assert first.undecided == {
        "the endpoint answered with HTTP 404: check base_url and the model's name": missing
    }
    assert undecided(second) == 0
    assert len(server.exchanges[-1].asked["claims"]) == 1  # the others are known


async def test_a_surplus_verdict_moves_nothing(server: JudgeServer) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))

    def add(reply: dict[str, JsonValue]) -> None:
        rows = reply["verdicts"]
        assert isinstance(rows, list)
        rows.append({"claim": "7", "labels": ["8:C"]})

    change_checks(server, add)
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == good.metrics


MALFORMED: Final[dict[str, tuple[Change, str]]] = {
    "prose": (lambda _: "I am sorry, but I cannot help.", "the reply is not JSON"),
    "JSON in quotes": (
        lambda reply: f'The passage says "{json.dumps(reply)}".',
        "the reply is not JSON",
    ),
    "thoughts without an end": (
        lambda reply: f"<think>Perhaps {json.dumps(reply)}, or not",
        "the reply is not JSON",
    ),
    "JSON within JSON that is cut": (
        lambda reply: json.dumps({"result": reply})[:-1],
        "the reply is not JSON",
    ),
    "another schema": (lambda _: '{"verdicts": {}}', "the reply does not fit the schema"),
    "a list": (lambda _: "[]", "the reply does not fit the schema"),
    "another call": (
        lambda reply: json.dumps(reply | {"call": "123456789"}),
        "the reply does not repeat the id of the call",
    ),
    "a list in place of text": (
        lambda reply: json.dumps(reply | {"call": [123456789]}),
        "the reply does not fit the schema",
    ),
}


@pytest.mark.parametrize(("change", "reason"), MALFORMED.values(), ids=list(MALFORMED))
async def test_a_malformed_check_leaves_everything_undecided_with_its_reason(
    server: JudgeServer, change: Change, reason: str
) -> None:
    change_checks(server, change)

    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == {}
    assert evaluation.undecided == {reason: ALL_CELLS}


@pytest.mark.parametrize(("change", "reason"), MALFORMED.values(), ids=list(MALFORMED))
async def test_a_malformed_check_is_asked_for_once_more(
    server: JudgeServer, change: Change, reason: str
) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))
    change_checks(server, change, times=1)

    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.metrics == good.metrics
    assert evaluation.undecided == {}


async def test_a_reply_in_a_code_fence_is_read(server: JudgeServer) -> None:
    change_checks(server, lambda reply: f"```json\n{json.dumps(reply)}\n```")

    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert undecided(evaluation) == 0


ENVELOPES: Final[dict[str, tuple[bytes, str]]] = {
    "HTML with status 200": (b"<!doctype html><html>", "answered with HTML"),
    "no JSON": (b"{", "response is not JSON"),
    "an empty body": (b"", "response is not JSON"),
    "a list": (b"[1]", "is not a chat completion"),
    "an empty object": (b"{}", "holds no reply"),
    "no choices": (b'{"choices": null}', "holds no reply"),
    "choices without any": (b'{"choices": []}', "holds no reply"),
    "a choice without a message": (b'{"choices": [{}]}', "holds no reply"),
    "no content": (json.dumps(completion(None)).encode(), "reply is empty"),
    "a cut reply": (json.dumps(completion("{", finish_reason="length")).encode(), "was cut"),
    "a filtered reply": (
        json.dumps(completion("", finish_reason="content_filter")).encode(),
        "refused",
    ),
    "a refusal": (
        json.dumps(
            completion(None, message={"role": "assistant", "content": None, "refusal": "No."})
        ).encode(),
        "refused",
    ),
    "an end of another kind": (
        json.dumps(completion("{}", finish_reason="tool_calls")).encode(),
        "it ended by 'tool_calls'",
    ),
}


@pytest.mark.parametrize(("body", "reason"), ENVELOPES.values(), ids=list(ENVELOPES))
async def test_a_response_without_a_reply_is_an_error_with_its_reason(
    server: JudgeServer, body: bytes, reason: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(body)

    server.behave = behave
    (evaluation,) = await aevaluate_many([RECORD], judge=make_judge(server.url))

    assert evaluation.metrics == {}
    assert reason in str(evaluation.error)


async def test_a_reply_cut_at_any_byte_is_never_taken_for_an_answer(server: JudgeServer) -> None:
    good = await aevaluate(RECORD, judge=make_judge(server.url))
    judge = make_judge(server.url)  # caches the claims, and no undecided cell
    ends: Iterator[int] = iter(())

    async def behave(exchange: Exchange) -> None:
        reply = reply_to(exchange.asked)
        # Ids change from call to call, but not their length: every position is cut once.
        await exchange.reply(reply[: next(ends)] if "claims" in exchange.asked else reply)

    server.behave = behave
    for end in range(LONGEST_REPLY):
        ends = iter((end, end))
        evaluation = await aevaluate(RECORD, judge=judge)
        whole = evaluation.metrics == good.metrics and undecided(evaluation) == 0
        assert whole or undecided(evaluation) == ALL_CELLS


async def test_a_claim_of_an_unknown_sentence_is_asked_for_again_and_then_refused(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        entry = {"sentence": 99, "text": "It is so."}
        await exchange.reply(json.dumps({"call": exchange.asked["call"], "claims": [entry]}))

    server.behave = behave
    (evaluation,) = await aevaluate_many([RECORD], judge=make_judge(server.url))

    assert "names a sentence that the text does not have" in str(evaluation.error)
    assert {len(e.asked["sentences"]) for e in server.exchanges} == {2}
    assert 2 <= len(server.exchanges) <= 4  # two texts, each at most twice


async def test_five_per_cent_of_malformed_replies_move_no_score(server: JudgeServer) -> None:
    records = [
        RECORD.model_copy(update={"query": f"{RECORD.query} ({number})"}) for number in range(20)
    ]
    good = await aevaluate_many(records, judge=make_judge(server.url))
    server.reset()
    server.malformed_every = 20

    evaluations = await aevaluate_many(records, judge=make_judge(server.url))

    assert server.malformed == server.calls // 20 > 0
    assert server.calls == 60 + server.malformed  # each was requested once more
    assert [e.metrics for e in evaluations] == [e.metrics for e in good]
    assert all(cell.label in Label for e in evaluations for cell in cells(e))


def cells(evaluation: Evaluation) -> list[Verdict]:
    matrix = evaluation.response_vs_chunks
    assert matrix is not None
    return [cell for cell in matrix.verdicts() if cell is not None]


async def test_a_record_without_a_single_verdict_has_failed_and_says_why(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        reply = {"call": exchange.asked["call"]}
        is_check = "claims" in exchange.asked
        await exchange.reply(json.dumps(reply) if is_check else reply_to(exchange.asked))

    server.behave = behave
    for undefined in ("omit", "zero"):
        (found,) = await aevaluate_many(
            [RECORD],
            judge=make_judge(server.url),
            undefined=undefined,
        )

        assert found.error == "the judge decided no verdict: the reply does not fit the schema"
        assert found.metrics == {}
        assert found.response_claims != ()


async def test_a_record_with_nothing_to_compare_with_has_not_failed(server: JudgeServer) -> None:
    record = RECORD.model_copy(update={"chunks": (), "ground_truth": None})

    (found,) = await aevaluate_many([record], judge=make_judge(server.url))

    assert found.error is None
