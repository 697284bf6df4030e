"""What all chunks together say of a claim: in the call that has them, or in one more."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import Chunk, Claim, Evaluation, Label, RagRecord, VerdictMatrix
from claimspan.evaluation.estimate import aestimate
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import CascadeJudge, LexicalJudge, OpenAIJudge
from claimspan.judges.llm.prompts import CHECK, CHECK_TOGETHER, TOGETHER
from claimspan.judges.protocol import ContextJudge
from claimspan.metrics.truths import NO_CONTEXT_VERDICTS

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import make_judge, verdict_rows
from scripted import ScriptedJudge

SPREAD: Final = RagRecord(
    query="Who built the library, and when?",
    response="Architect Jernej Novak finished building the library during autumn.",
    chunks=(
        Chunk(id="a", text="The architect of the library is Jernej Novak."),
        Chunk(id="b", text="The workers finished building during autumn."),
        Chunk(id="c", text="Bread is baked from flour, water and yeast."),
    ),
)
"""One claim; the stub finds enough of its words in no chunk alone, but in all of them together."""


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def checks(server: JudgeServer) -> list[Exchange]:
    return [each for each in server.exchanges if "claims" in each.asked]


def with_chunks(count: int, *, words: int = 4) -> RagRecord:
    """The record, whose two chunks of interest are the first and the last of many."""
    fillers = [
        Chunk(id=str(i), text=f"Number {i} is a loaf of bread. " + "yeast " * words)
        for i in range(count - 2)
    ]
    first, last, _ = SPREAD.chunks
    return SPREAD.model_copy(update={"chunks": (first, *fillers, last)})


def joint_label(evaluation: Evaluation) -> Label | None:
    assert evaluation.response_vs_context is not None
    return evaluation.response_vs_context.labels[0][0]


# --- in the same call ---


async def test_support_that_is_spread_over_chunks_counts_for_groundedness(
    server: JudgeServer,
) -> None:
    evaluation = await aevaluate(SPREAD, judge=make_judge(server.url))

    assert evaluation.metrics["faithfulness"] == 0.0
    assert evaluation.metrics["groundedness"] == 1.0
    assert len(checks(server)) == 1  # the call that checks each chunk
    assert checks(server)[0].messages[0] == CHECK_TOGETHER


async def test_chunks_go_in_with_their_ranks_and_the_ground_truth_without_one(
    server: JudgeServer,
) -> None:
    record = SPREAD.model_copy(update={"ground_truth": "Nobody remembers the architect."})
    await aevaluate(record, judge=make_judge(server.url))

    (check,) = checks(server)
    given: list[object] = list(check.asked["references"].values())
    assert given[:3] == [[rank, chunk.text] for rank, chunk in enumerate(SPREAD.chunks, start=1)]
    assert given[3:] == [record.ground_truth, record.response]
    assert str(check.asked["together"]) not in check.asked["references"]


async def test_nine_chunks_leave_the_ground_truth_to_a_call_without_a_joint_label(
    server: JudgeServer,
) -> None:
    record = with_chunks(10).model_copy(update={"ground_truth": "Nobody remembers it."})
    evaluation = await aevaluate(record, judge=make_judge(server.url))

    sizes = {each.messages[0]: len(each.asked["references"]) for each in checks(server)}
    assert sizes == {CHECK_TOGETHER: 10, CHECK: 2}
    assert evaluation.metrics["groundedness"] == 1.0


async def test_one_chunk_is_the_whole_context_and_asked_about_once(server: JudgeServer) -> None:
    record = SPREAD.model_copy(update={"chunks": SPREAD.chunks[:1]})
    evaluation = await aevaluate(record, judge=make_judge(server.url))

    assert evaluation.metrics["groundedness"] == evaluation.metrics["faithfulness"]
    assert "together" not in checks(server)[0].asked


async def test_blank_and_repeated_chunks_are_not_read_together(server: JudgeServer) -> None:
    text = "Workers finished building the library during autumn, says architect Jernej Novak."
    chunks = (Chunk(id="a", text=text), Chunk(id="b", text=" "), Chunk(id="c", text=text))
    evaluation = await aevaluate(
        SPREAD.model_copy(update={"chunks": chunks}), judge=make_judge(server.url)
    )

    assert evaluation.metrics["groundedness"] == 1.0
    assert "together" not in checks(server)[0].asked
    assert len(checks(server)) == 1


async def test_an_exact_schema_has_the_joint_label_last(server: JudgeServer) -> None:
    await aevaluate(SPREAD, judge=make_judge(server.url, exact_schema=True))

    (check,) = checks(server)
    ids = [*check.asked["references"], str(check.asked["together"])]
    written = json.dumps(check.schema)
    places = [written.index(f"^{each}:[EMPNC]$") for each in ids]
    assert places == sorted(places)


async def test_a_joint_label_has_probabilities_where_the_endpoint_gives_them(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        content = reply_to(exchange.asked)
        label, sure, other = "E", math.log(0.8), math.log(0.1)
        tokens: list[JsonValue] = []
        for part in content.replace(':E"', ':\0E\0"').replace(':N"', ':\0N\0"').split("\0"):
            rare = dict.fromkeys("MP", math.log(1e-6))
            likely = {part: sure, **{each: other for each in "ENC" if each != part}, **rare}
            top: list[JsonValue] = [{"token": t, "logprob": p} for t, p in likely.items()]
            is_label = part in (label, "N")
            tokens.append({"token": part, "logprob": sure, "top_logprobs": top if is_label else []})
        await exchange.reply(content, logprobs={"content": tokens})

    server.behave = behave
    evaluation = await aevaluate(SPREAD, judge=make_judge(server.url))

    assert evaluation.score_mode == "graded"
    assert evaluation.response_vs_context is not None
    verdict = evaluation.response_vs_context[0][0]
    assert verdict is not None
    assert verdict.entailed == pytest.approx(0.8, abs=1e-4)


# --- in a call of its own ---


async def test_chunks_beyond_one_call_are_read_together_in_one_more(server: JudgeServer) -> None:
    record = with_chunks(25)
    evaluation = await aevaluate(record, judge=make_judge(server.url))

    *single, joint = checks(server)
    assert [each.messages[0] for each in single] == [CHECK] * 3
    assert joint.messages[0] == TOGETHER
    ((passages),) = joint.asked["references"].values()
    assert isinstance(passages, list)
    ranks = [rank for rank, _ in passages]
    assert len(ranks) == 10
    assert {1, 25} <= {*ranks}  # the ones that came near, with the ranks of all 25
    assert ranks == sorted(ranks)
    assert evaluation.metrics["groundedness"] == 1.0


async def test_chunks_that_are_too_long_for_one_call_are_read_together_as_far_as_they_fit(
    server: JudgeServer,
) -> None:
    record = with_chunks(6, words=5_000)
    evaluation = await aevaluate(record, judge=make_judge(server.url))

    joint = checks(server)[-1]
    assert joint.messages[0] == TOGETHER
    assert len(joint.text) < 60_000  # two of the four long ones would be 60 kB
    assert evaluation.metrics["groundedness"] == 1.0


async def test_what_chunks_that_were_read_in_part_do_not_entail_together_is_undecided(
    server: JudgeServer,
) -> None:
    record = with_chunks(25).model_copy(update={"response": "Nobody painted the harbour."})
    judge = make_judge(server.url)

    for _ in range(2):  # the second time out of the judge's memory
        evaluation = await aevaluate(record, judge=judge)

        assert evaluation.metrics["faithfulness"] == 0.0  # each chunk was read
        assert joint_label(evaluation) is None
        assert "groundedness" not in evaluation.metrics
        assert list(evaluation.undecided.values()) == [1]


async def test_a_joint_call_that_fails_leaves_the_verdicts_that_are_paid_for(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.messages[0] == TOGETHER:
            await exchange.send(b"{}", status=404)
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    evaluation = await aevaluate(SPREAD, judge=make_judge(server.url, chunks_per_call=1))

    assert evaluation.error is None
    assert evaluation.metrics["faithfulness"] == 0.0
    assert evaluation.undefined["groundedness"] == "every verdict is undecided"
    assert evaluation.undecided == {
        "the endpoint answered with HTTP 404: check base_url and the model's name": 1
    }


async def test_a_joint_label_that_is_missing_is_asked_for_once_more_and_alone(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        reply = json.loads(reply_to(exchange.asked))
        for row in verdict_rows(reply) if "together" in exchange.asked else ():
            labels = row["labels"]
            assert isinstance(labels, list)
            labels.pop()
        await exchange.reply(json.dumps(reply))

    server.behave = behave
    evaluation = await aevaluate(SPREAD, judge=make_judge(server.url))

    assert [each.messages[0] for each in checks(server)] == [CHECK_TOGETHER, TOGETHER]
    assert joint_label(evaluation) is Label.ENTAILED
    assert evaluation.undecided == {}


# --- caches and estimates ---


async def test_a_joint_verdict_hangs_on_all_chunks_and_their_order(server: JudgeServer) -> None:
    judge = make_judge(server.url)
    await aevaluate(SPREAD, judge=judge)
    again = await aevaluate(SPREAD, judge=judge)
    server.reset()

    turned = SPREAD.model_copy(update={"chunks": SPREAD.chunks[::-1]})
    await aevaluate(turned, judge=judge)
    fewer = await aevaluate(turned.model_copy(update={"chunks": turned.chunks[:2]}), judge=judge)

    assert again.usage.calls == 0
    # The verdicts on each chunk are known: only the joint ones are asked for.
    assert [each.messages[0] for each in checks(server)] == [TOGETHER, TOGETHER]
    assert fewer.metrics["groundedness"] == 0.0


async def test_the_rank_of_a_chunk_counts_where_a_claim_names_it(server: JudgeServer) -> None:
    claims = [Claim(text="Passage 2 says that it rains."), Claim(text="It rains.")]
    cells = [(i, j) for i in range(2) for j in range(2)]
    judge = make_judge(server.url)
    for texts in (["It rains.", "It is dry."], ["It is dry.", "It rains."]):
        await judge.check_context(claims, texts, cells, context=(0, 1))

    asked = [list(each.asked["claims"].values()) for each in checks(server)]
    assert asked == [[each.text for each in claims], [claims[0].text]]


@pytest.mark.parametrize("count", [5, 10, 25])
async def test_an_estimate_knows_the_joint_labels_and_their_calls(
    server: JudgeServer, count: int
) -> None:
    record, judge = with_chunks(count), OpenAIJudge("stub", base_url=server.url)

    estimate = await aestimate([record], judge)
    await aevaluate(record, judge=judge)

    assert estimate.calls == server.calls
    assert estimate.input_tokens == pytest.approx(server.prompt_tokens, rel=0.1)
    assert estimate.output_tokens == pytest.approx(server.completion_tokens, rel=0.1)


# --- cascades ---


async def test_a_cascade_asks_the_strong_judge_for_joint_verdicts(server: JudgeServer) -> None:
    cascade = CascadeJudge(LexicalJudge(), make_judge(server.url))
    evaluation = await aevaluate(SPREAD, judge=cascade)

    assert isinstance(cascade, ContextJudge)
    assert evaluation.metrics["groundedness"] == 1.0


async def test_a_cascade_asks_for_no_joint_verdict_on_a_claim_that_a_chunk_surely_entails(
    server: JudgeServer,
) -> None:
    copied = SPREAD.chunks[0].text
    cascade = CascadeJudge(LexicalJudge(), make_judge(server.url))
    evaluation = await aevaluate(SPREAD.model_copy(update={"response": copied}), judge=cascade)

    assert joint_label(evaluation) is Label.ENTAILED
    assert all("together" not in each.asked for each in checks(server))


async def test_a_cascade_of_judges_that_read_no_context_has_no_groundedness() -> None:
    cascade = CascadeJudge(LexicalJudge(), ScriptedJudge())
    evaluation = await aevaluate(SPREAD, judge=cascade)

    assert not isinstance(cascade, ContextJudge)
    assert evaluation.undefined["groundedness"] == NO_CONTEXT_VERDICTS


# --- results ---


async def test_joint_verdicts_survive_a_file(server: JudgeServer) -> None:
    evaluation = await aevaluate(SPREAD, judge=make_judge(server.url))

    read = Evaluation.model_validate_json(evaluation.model_dump_json())

    assert read == evaluation
    assert read.response_vs_context is not None
    assert read.response_vs_context.shape == (1, 1)


async def test_a_matrix_has_one_column_more_for_the_context(server: JudgeServer) -> None:
    claim = Claim(text=SPREAD.response)
    texts = [chunk.text for chunk in SPREAD.chunks]

    matrix = await make_judge(server.url).check_context([claim], texts, [(0, 3)], context=(0, 1, 2))

    assert isinstance(matrix, VerdictMatrix)
    assert matrix.labels == [[None, None, None, Label.ENTAILED]]
