"""What an evaluation with a language model takes: calls, tokens, caches and estimates."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan import Claim, Label, RagRecord, Usage, Verdict
from claimspan.cost.pricing import PRICES, Price, price_of
from claimspan.errors import ConfigError
from claimspan.evaluation.estimate import aestimate
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many
from claimspan.files.record_files import read_records
from claimspan.judges import OpenAIJudge
from claimspan.judges.llm.judge import CHUNKS_PER_CALL
from claimspan.judges.verdict_cache import VerdictCache
from claimspan.text.tokens import count_tokens, token_upper_bound

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import RECORD, make_judge

SAMPLES: Final = Path(__file__).resolve().parents[3] / "shared" / "bench" / "samples20.json"
PRICE: Final = Price(input=10.0, output=100.0)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture(scope="module")
def samples() -> list[RagRecord]:
    if not SAMPLES.is_file():
        pytest.skip("shared data is absent: the 20 samples of the peers' measurements")
    return read_records(SAMPLES)


# --- the bars: RAGChecker takes 43.8 calls and 24,661 prompt tokens on these samples ---
# Before chunks were read together, a record took 4 calls and 4,680 tokens: no more calls, and at
# most a tenth more tokens. The careful mode reads the chunks once more, in one call. Five grades in
# place of three take 30 tokens more in each check, and their schema some fewer.


@pytest.mark.parametrize(
    ("chunks_per_call", "known", "calls", "tokens"),
    [(CHUNKS_PER_CALL, False, 4, 5_180), (None, True, 3, 3_850), (1, False, 15, 15_750)],
    ids=["default", "all at once, ground truth known", "careful"],
)
async def test_all_eleven_metrics_stay_within_their_calls_and_tokens(
    server: JudgeServer,
    samples: list[RagRecord],
    chunks_per_call: int | None,
    known: bool,
    calls: int,
    tokens: int,
) -> None:
    judge = make_judge(server.url, chunks_per_call=chunks_per_call)
    if known:
        for record in samples:
            await judge.extract_claims(str(record.ground_truth), question=record.query)
    server.reset()

    evaluations = await aevaluate_many(samples, judge=judge, metrics="all", concurrency=20)

    assert [e.error for e in evaluations] == [None] * 20
    assert all(len(e.metrics) >= 11 for e in evaluations)
    assert server.calls / 20 <= calls
    assert server.prompt_tokens / 20 <= tokens


async def test_the_default_is_the_mode_that_is_measured(
    server: JudgeServer, samples: list[RagRecord]
) -> None:
    await aevaluate(samples[0], judge=make_judge(server.url))

    assert server.kinds == {"extract": 2, "check": 2}


async def test_an_evaluation_waits_for_two_calls_one_after_the_other(
    server: JudgeServer, samples: list[RagRecord]
) -> None:
    await aevaluate(samples[0], judge=make_judge(server.url))  # loads the client
    server.reset()
    server.latency = 0.5  # long enough for the second of two to arrive on a busy machine

    evaluation = await aevaluate(samples[1], judge=make_judge(server.url))

    assert server.most_active == 2
    assert evaluation.usage.calls == 4  # of which two and two at the same time


async def test_the_estimate_is_within_ten_per_cent_of_what_is_used(
    server: JudgeServer, samples: list[RagRecord]
) -> None:
    judge = OpenAIJudge("stub", base_url=server.url, price=PRICE)

    estimate = await aestimate(samples, judge)
    assert server.calls == 0
    used = [e.usage for e in await aevaluate_many(samples, judge=judge)]

    total = sum(used, Usage())
    assert estimate.records == 20
    assert estimate.calls == total.calls == server.calls
    assert estimate.input_tokens == pytest.approx(server.prompt_tokens, rel=0.1)
    assert estimate.output_tokens == pytest.approx(server.completion_tokens, rel=0.1)
    assert estimate.cost_usd == pytest.approx(total.cost_usd, rel=0.1)


async def test_metrics_that_a_record_cannot_have_cost_no_call(server: JudgeServer) -> None:
    record = RECORD.model_copy(update={"ground_truth": None})

    found = await aevaluate(record, judge=make_judge(server.url), metrics=["precision", "recall"])

    assert found.undefined == {"precision": "no ground truth", "recall": "no ground truth"}
    assert server.calls == 0


# --- estimates ---


async def test_claims_with_notes_make_a_higher_estimate(server: JudgeServer) -> None:
    judge = make_judge(server.url)

    coarse = await aestimate([RECORD], judge)
    aloud = await aestimate([RECORD], make_judge(server.url, extraction="reasoned"))

    assert aloud.output_tokens > coarse.output_tokens
    assert coarse.cost_usd is None  # nobody knows the price of "stub"


async def test_an_estimate_leaves_nothing_in_the_judges_cache(server: JudgeServer) -> None:
    judge = make_judge(server.url)

    await aestimate([RECORD], judge)
    evaluation = await aevaluate(RECORD, judge=judge)

    assert evaluation.usage.calls == 3
    assert evaluation.metrics["faithfulness"] == 1.0


# Counted by cl100k.
@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ('{"call":"493817205","verdicts":[{"claim":"204","labels":["12:E","57:N","33:N"]}]}', 28),
        ("The library stands beside the river since the city was founded in 1187.", 16),
    ],
)
def test_tokens_are_counted_nearly_as_a_tokenizer_does(text: str, counted: int) -> None:
    assert count_tokens(text) == pytest.approx(counted, rel=0.15)
    assert token_upper_bound(text) >= counted


def test_a_dated_model_costs_what_the_model_does() -> None:
    assert price_of("gpt-4o-mini-2024-07-18") == price_of("gpt-4o-mini") is not None
    assert price_of("gpt-4o-mini-audio") is None
    assert Price(input=2.0, output=8.0).of(1_000_000, 500_000) == 6.0


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("azure/gpt-5-mini", "gpt-5-mini"),
        ("GPT-4.1", "gpt-4.1"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("vertex_ai/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("mistral-small-latest", "mistral-small"),
        ("deepseek/deepseek-reasoner", "deepseek-reasoner"),
        ("o3-mini-2025-01-31", "o3-mini"),
    ],
)
def test_a_model_has_its_price_by_whatever_name_a_provider_gives_it(name: str, model: str) -> None:
    assert price_of(name) == PRICES[model]


@pytest.mark.parametrize(
    "name",
    [
        *("ft:gpt-4o-mini:x", "openai/ft:gpt-4o-mini-2024-07-18:acme::1", "gpt-5-chat-latest"),
        *("gemini-2.5-flash-image", "mistral-small-2402", "mistral-small:24b", "claude-sonnet-3-5"),
        *("ollama/mistral-small", "hosted_vllm/deepseek-chat", "o3-pro", "", "-latest", "/", "."),
    ],
)
def test_a_model_of_another_price_is_unknown(name: str) -> None:
    assert price_of(name) is None


def test_a_version_with_a_price_of_its_own_has_that() -> None:
    assert price_of("openai/gpt-4o-2024-05-13") == Price(input=5.0, output=15.0)


# --- caches ---


async def test_nothing_is_asked_twice(server: JudgeServer) -> None:
    judge = make_judge(server.url)

    first = await aevaluate(RECORD, judge=judge)
    second = await aevaluate(RECORD, judge=judge)

    assert first.metrics == second.metrics
    assert (first.usage.calls, second.usage.calls) == (3, 0)


async def test_a_known_ground_truth_is_not_taken_apart_again(server: JudgeServer) -> None:
    judge = make_judge(server.url)
    await aevaluate(RECORD, judge=judge)
    server.reset()

    await aevaluate(RECORD.model_copy(update={"response": "The river is wide."}), judge=judge)

    assert server.kinds == {"extract": 1, "check": 1}


async def test_one_ground_truth_of_many_records_is_taken_apart_once(server: JudgeServer) -> None:
    records = [
        RECORD.model_copy(update={"response": f"The river is {i} miles wide."}) for i in range(6)
    ]

    await aevaluate_many(records, judge=make_judge(server.url))

    assert server.kinds["extract"] == 7


async def test_a_file_keeps_claims_and_verdicts(server: JudgeServer, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    first_cache, second_cache = VerdictCache(path), VerdictCache(path)

    first = await aevaluate(RECORD, judge=make_judge(server.url, cache=first_cache))  # type: ignore[arg-type] # no JSON
    second = await aevaluate(RECORD, judge=make_judge(server.url, cache=second_cache))  # type: ignore[arg-type] # no JSON

    assert second.usage.calls == 0
    assert second.metrics == first.metrics
    assert second.response_claims == first.response_claims
    first_cache.close()
    second_cache.close()


async def test_another_model_prompt_or_address_has_a_cache_of_its_own(
    server: JudgeServer,
) -> None:
    cache = VerdictCache()
    text = "It is so."
    for judge in (
        OpenAIJudge("one", base_url=server.url, cache=cache),
        OpenAIJudge("two", base_url=server.url, cache=cache),
        OpenAIJudge("one", base_url=server.url, cache=cache, extraction="reasoned"),
        OpenAIJudge("one", base_url=server.url.replace("127.0.0.1", "localhost"), cache=cache),
    ):
        await judge.extract_claims(text)
        await judge.extract_claims(text)

    assert server.calls == 4


async def test_what_stays_undecided_is_asked_again_the_next_time(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        is_check = "claims" in exchange.asked
        await exchange.reply("Sorry." if is_check else reply_to(exchange.asked))

    server.behave = behave
    judge = make_judge(server.url)
    first = await aevaluate(RECORD, judge=judge)
    server.behave = server.answer
    second = await aevaluate(RECORD, judge=judge)

    assert first.metrics == {}
    assert second.metrics["faithfulness"] == 1.0


def test_a_full_memory_forgets_what_was_used_longest_ago() -> None:
    cache = VerdictCache(max_entries=2)
    verdict = Verdict(label=Label.ENTAILED)
    cache.add_verdicts({"a": verdict, "b": verdict})
    cache.verdicts(["a"])
    cache.add_verdicts({"c": verdict})

    assert set(cache.verdicts(["a", "b", "c"])) == {"a", "c"}


def test_a_value_that_does_not_read_counts_as_not_there(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    cache = VerdictCache(path)
    cache.add_verdicts({"a": Verdict(label=Label.NEUTRAL)})
    cache.add_claims("b", [Claim(text="It is so.")])
    cache.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE cache SET value = '{'")
    file.close()

    reopened = VerdictCache(path)

    assert reopened.verdicts(["a"]) == {}
    assert reopened.claims("b") is None
    reopened.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look at " * 50)

    with pytest.raises(ConfigError, match="as a verdict cache"):
        VerdictCache(path)


def test_a_file_that_fails_later_is_left_for_memory(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    cache = VerdictCache(path)
    with sqlite3.connect(path) as file:
        file.execute("DROP TABLE cache")
    file.close()

    with pytest.warns(RuntimeWarning, match="it goes on in memory"):
        cache.add_verdicts({"a": Verdict(label=Label.NEUTRAL)})

    assert set(cache.verdicts(["a"])) == {"a"}


# --- what is sent ---


async def test_the_prefix_of_every_call_is_the_same(server: JudgeServer) -> None:
    judge = make_judge(server.url)
    for i in range(2):
        await aevaluate(RECORD.model_copy(update={"query": f"Where? ({i})"}), judge=judge)

    stable = {
        ("sentences" in e.asked, e.messages[0], json.dumps(e.schema)) for e in server.exchanges
    }
    assert len(stable) == 2  # one of an extraction, one of a check


async def test_every_claim_has_the_sentence_that_it_came_from(server: JudgeServer) -> None:
    claims = await make_judge(server.url).extract_claims("Knjižnica je ob reki. Stoji od 1. maja.")

    assert [c.sentence for c in claims] == ["Knjižnica je ob reki.", "Stoji od 1. maja."]


async def test_a_chain_of_thought_is_asked_for_and_left_out_of_the_claims(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        reply = json.loads(reply_to(exchange.asked))
        await exchange.reply(json.dumps({"notes": "One fact.", **reply}))

    server.behave = behave
    claims = await make_judge(server.url, extraction="reasoned").extract_claims("It is so.")

    properties = server.exchanges[0].schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["call", "notes", "claims"]
    assert [c.text for c in claims] == ["It is so."]


async def test_a_long_text_is_taken_apart_in_several_calls(server: JudgeServer) -> None:
    text = " ".join(f"Number {i} is here." for i in range(100))

    claims = await make_judge(server.url).extract_claims(text)

    assert [c.text for c in claims] == [f"Number {i} is here." for i in range(100)]
    assert server.calls == 3


async def test_many_claims_are_checked_in_several_calls(server: JudgeServer) -> None:
    claims = [Claim(text=f"Number {i} is green.") for i in range(100)]
    references = [f"Number {j} is green." for j in range(12)]

    matrix = await make_judge(server.url).check(claims, references)

    assert matrix.shape == (100, 12)
    assert None not in list(matrix.verdicts())
    assert server.calls == 2


async def test_chunks_that_are_too_much_for_one_call_are_shared_out(server: JudgeServer) -> None:
    huge, large, small = "word " * 12_000, "words " * 4_000, "It is so."

    await make_judge(server.url).check([Claim(text="So?")], [huge, large, small, large + "."])

    packed = sorted(len(e.asked["references"]) for e in server.exchanges)
    assert packed == [1, 1, 2]  # 20,000 tokens alone, 8,000 alone, 8,000 with the small one


async def test_an_empty_chunk_is_neutral_and_costs_nothing(server: JudgeServer) -> None:
    matrix = await make_judge(server.url).check([Claim(text="It is so.")], ["", "  \n"])

    assert matrix.labels == [[Label.NEUTRAL, Label.NEUTRAL]]
    assert server.calls == 0


async def test_the_same_chunk_twice_is_asked_about_once(server: JudgeServer) -> None:
    matrix = await make_judge(server.url).check([Claim(text="The river is long.")], ["A", "A", "B"])

    assert len(server.exchanges[0].asked["references"]) == 2
    assert None not in list(matrix.verdicts())


async def test_an_exact_schema_names_every_id_of_its_call(server: JudgeServer) -> None:
    await aevaluate(RECORD, judge=make_judge(server.url, exact_schema=True))

    check = server.exchanges[-1]
    schema = json.dumps(check.schema)
    assert str(check.asked["call"]) in schema
    assert all(f'"const": "{claim}"' in schema for claim in check.asked["claims"])
    assert all(f"^{reference}:[EMPNC]$" in schema for reference in check.asked["references"])


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3", "o4-mini-2025-04-16"])
async def test_a_reasoning_model_has_room_to_think_before_it_answers(
    server: JudgeServer, model: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        allowed = exchange.request["max_completion_tokens"]
        assert isinstance(allowed, int)
        if allowed < 10_000:  # the model spends all of it on reasoning
            await exchange.reply("", finish_reason="length")
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=OpenAIJudge(model, base_url=server.url))

    assert evaluation.metrics["faithfulness"] == 1.0
    assert server.calls == 3


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("gpt-4o-mini", "max_tokens"),
        ("gpt-5-chat-latest", "max_completion_tokens"),
        ("llama3.2", "max_tokens"),
    ],
)
async def test_a_model_that_answers_at_once_is_allowed_its_answer_alone(
    server: JudgeServer, model: str, limit: str
) -> None:
    await aevaluate(RECORD, judge=OpenAIJudge(model, base_url=server.url))

    allowed = [exchange.request[limit] for exchange in server.exchanges]
    assert all(isinstance(each, int) and each < 1_000 for each in allowed)


@pytest.mark.parametrize(
    "options",
    [{"chunks_per_call": 0}, {"concurrency": 0}, {"call_seconds": 0}, {"extraction": "slow"}],
)
def test_an_option_that_cannot_work_is_refused(options: dict[str, int | str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        make_judge("http://127.0.0.1:9", **options)


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="OpenAI needs a key"):
        OpenAIJudge("gpt-4o-mini")
