"""What one record may cost by default: claims, calls and tokens. Row S7 of the matrix."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence

import pytest

from claimspan import Chunk, Claim, RagRecord
from claimspan.cost import Budget
from claimspan.cost.usage import Usage, add_usage, metered, within_record_limits
from claimspan.errors import BudgetExceededError, RecordLimitError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import LexicalJudge, OpenAIJudge
from claimspan.testing import ScriptedJudge

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import RECORD, make_judge


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def long_text(sentences: int) -> str:
    return " ".join(f"The library number {i} stands beside the river." for i in range(sentences))


def long_record(sentences: int) -> RagRecord:
    return RECORD.model_copy(update={"response": long_text(sentences)})


# --- claims ---


async def test_a_text_of_ten_thousand_sentences_is_cut_before_its_claims_are_extracted(
    server: JudgeServer,
) -> None:
    evaluation = await aevaluate(long_record(10_000), judge=make_judge(server.url))

    extractions = [each for each in server.exchanges if "sentences" in each.asked]
    assert len(evaluation.response_claims) == 50
    assert evaluation.claims_dropped == 9_950
    assert len(extractions) == 4  # three for the response, one for the ground truth
    assert server.calls < 20


async def test_what_any_judge_gets_is_the_beginning_of_the_text() -> None:
    judge = ScriptedJudge()
    text = "# A title\n\nOne is here.  Two is here.\n\n- Three is.\n- Four is.\nFive is here."

    evaluation = await aevaluate(
        RECORD.model_copy(update={"response": text}), judge=judge, max_claims=2
    )

    given = [each.text for each in judge.extractions if "title" in each.text]
    assert given == ["# A title\nOne is here.\nTwo is here.\n- Three is."]
    assert len(evaluation.response_claims) == 2
    assert evaluation.claims_dropped == 3  # two sentences, and a claim of those that were read


@pytest.mark.parametrize("judge", [LexicalJudge(), ScriptedJudge()], ids=["lexical", "scripted"])
async def test_an_ordinary_text_reaches_the_judge_as_it_is(
    judge: LexicalJudge | ScriptedJudge,
) -> None:
    evaluation = await aevaluate(long_record(50), judge=judge)

    assert len(evaluation.response_claims) == 50
    assert evaluation.claims_dropped == 0


# --- calls ---


async def test_a_response_that_declines_to_answer_costs_no_call(server: JudgeServer) -> None:
    refusal = RECORD.model_copy(
        update={"response": "I'm sorry, but I can't assist with that.", "ground_truth": None}
    )

    evaluation = await aevaluate(refusal, judge=make_judge(server.url))

    assert evaluation.abstained
    assert evaluation.response_claims == ()
    assert "faithfulness" not in evaluation.metrics
    assert server.calls == evaluation.usage.calls == 0


async def test_a_model_is_not_asked_about_passages_pointers_and_disclaimers_beside_an_answer(
    server: JudgeServer,
) -> None:
    shown = "\n".join(f"- {chunk.text}" for chunk in RECORD.chunks)
    record = RECORD.model_copy(
        update={"response": f"{RECORD.response} Please consult your doctor.\n\nSources:\n{shown}"}
    )

    await aevaluate(record, judge=make_judge(server.url))

    asked = [text for each in server.exchanges for text in each.asked.get("sentences", {}).values()]
    assert "Workers finished building the library quickly." in asked
    assert "Please consult your doctor." not in asked
    assert not any(chunk.text in text for chunk in RECORD.chunks for text in asked)


def chunks(count: int) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(id=str(i), text=f"The library stands beside the river. Number {i}.")
        for i in range(count)
    )


async def test_a_record_makes_a_hundred_calls_and_the_other_verdicts_are_undecided(
    server: JudgeServer,
) -> None:
    record = RECORD.model_copy(update={"chunks": chunks(200)})
    judge = OpenAIJudge("stub", base_url=server.url, chunks_per_call=1)

    evaluation = await aevaluate(record, judge=judge)

    assert server.calls == evaluation.usage.calls == 100
    # Four claims against each chunk, two claims against each text of the other side, and two
    # against all chunks together.
    (reason,) = evaluation.undecided
    assert reason == "call limit: a record may have 100 judge calls"
    assert evaluation.undecided[reason] == 4 * 200 + 4 + 2 - verdicts_of(server)
    assert "faithfulness" in evaluation.metrics  # from what was decided


def verdicts_of(server: JudgeServer) -> int:
    """Verdicts that the server gave on cells that count."""
    checks = [each.asked for each in server.exchanges if "claims" in each.asked]
    return sum(len(each["claims"]) * len(each["references"]) for each in checks)


async def test_retries_count_towards_the_calls_of_a_record(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By its module: the package has a function of the same name.
    monkeypatch.setattr(sys.modules[aevaluate.__module__], "MAX_CALLS", 4)

    async def behave(exchange: Exchange) -> None:
        if exchange.number % 2:
            await exchange.send(b"{}", status=500, headers={"retry-after-ms": "1"})
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    record = RECORD.model_copy(update={"ground_truth": None})

    evaluation = await aevaluate(record, judge=make_judge(server.url, chunks_per_call=1))

    assert server.calls == 4
    assert set(evaluation.undecided) == {"call limit: a record may have 4 judge calls"}


async def test_a_budget_of_the_users_takes_the_place_of_the_default_limit(
    server: JudgeServer,
) -> None:
    record = RECORD.model_copy(update={"chunks": chunks(110)})
    options = Budget(calls_per_record=500)
    around = await aevaluate(
        record,
        judge=OpenAIJudge("stub", base_url=server.url, chunks_per_call=1),
        budget=options,
    )
    own = await aevaluate(
        record,
        judge=OpenAIJudge("stub", base_url=server.url, chunks_per_call=1, budget=options),
    )

    # The chunks are too many for the one call that reads them together, and no limit stopped that.
    assert around.undecided == own.undecided
    assert not any("limit" in reason for reason in own.undecided)
    assert around.usage.calls == own.usage.calls > 110


async def test_a_judge_of_the_users_that_reports_its_calls_is_stopped_at_the_limit() -> None:
    class Talkative(ScriptedJudge):
        made = 0

        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            while True:
                self.made += 1
                add_usage(Usage(calls=1))

    judge = Talkative()
    with pytest.raises(RecordLimitError, match="call limit: a record may have 100 judge calls"):
        await aevaluate(RECORD.model_copy(update={"ground_truth": None}), judge=judge)

    assert judge.made == 101


async def test_without_an_evaluation_there_is_no_limit_of_a_record(server: JudgeServer) -> None:
    judge = make_judge(server.url)

    for i in range(101):
        await judge.extract_claims(f"It is {i}.")

    assert server.calls == 101


# --- tokens ---


async def test_a_record_stays_within_its_tokens(server: JudgeServer) -> None:
    big = tuple(
        Chunk(id=str(i), text=f"{i}. " + "The library stands beside the river. " * 3_000)
        for i in range(40)
    )

    async def behave(exchange: Exchange) -> None:
        exchange_tokens = len(exchange.text) // 4
        body = {
            "choices": [
                {"finish_reason": "stop", "message": {"content": reply_to(exchange.asked)}}
            ],
            "usage": {"prompt_tokens": exchange_tokens, "completion_tokens": 10},
        }
        await exchange.send_json(body)  # type: ignore[arg-type]  # JSON all the same

    server.behave = behave
    record = RECORD.model_copy(update={"chunks": big})
    evaluation = await aevaluate(record, judge=make_judge(server.url, concurrency=2))

    used = evaluation.usage.input_tokens + evaluation.usage.output_tokens
    assert 500_000 < used <= 1_000_000
    assert set(evaluation.undecided) == {
        "token limit: the next call could take the record past 1,000,000 tokens"
    }
    assert "faithfulness" in evaluation.metrics


async def test_a_text_that_no_call_could_hold_is_refused_before_it_is_sent(
    server: JudgeServer,
) -> None:
    record = RECORD.model_copy(update={"response": "word " * 1_000_000})

    with pytest.raises(BudgetExceededError, match="token limit"):
        await aevaluate(record, judge=make_judge(server.url))

    assert all(len(each.text) < 100_000 for each in server.exchanges)


async def test_a_request_waits_for_the_tokens_that_others_may_not_use() -> None:
    order: list[str] = []

    async def request(name: str, used: int) -> None:
        async with within_record_limits(60):
            order.append(f"{name} begins")
            await asyncio.sleep(0.01)
            add_usage(Usage(input_tokens=used))
            order.append(f"{name} ends")

    with metered(max_tokens=100) as meter:
        await asyncio.gather(request("first", 30), request("second", 20))
        with pytest.raises(RecordLimitError, match="past 100 tokens"):
            await request("third", 1)

    assert order == ["first begins", "first ends", "second begins", "second ends"]
    assert meter.tokens_under_way == 0


def references_of(judge: ScriptedJudge) -> Sequence[str]:
    return [text for each in judge.checks for text in each.references]


async def test_the_whole_response_is_still_what_the_ground_truth_is_checked_against() -> None:
    judge = ScriptedJudge()

    await aevaluate(long_record(300), judge=judge)

    assert long_text(300) in references_of(judge)
