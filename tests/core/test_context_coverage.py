"""The retrieval-accuracy evaluation: its arithmetic, its protocol, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from claimspan import Chunk, Claim, Label, Usage, Verdict, VerdictMatrix
from claimspan.benchmarks.context_coverage import (
    BASELINES,
    CoverageItem,
    JudgedFile,
    JudgedItem,
    ajudge_items,
    judge_items,
    read_items,
    score_combinations,
    summarize,
)
from claimspan.benchmarks.context_coverage.combinations import all_combinations, chunk_combinations
from claimspan.benchmarks.context_coverage.judged import digest
from claimspan.benchmarks.context_coverage.rankings import ScoredCombination
from claimspan.cost.usage import add_usage
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.judges import LexicalJudge
from claimspan.metrics import coverage_of_set
from claimspan.testing import ScriptedJudge

FACTS = ("alpha", "beta", "gamma", "delta")


def chunk(name: str, text: str, score: float | None = None) -> Chunk:
    return Chunk(id=name, text=text, score=score)


def make_item(**changes: object) -> CoverageItem:
    """Four golden chunks with a fact each, and three noisy ones; the scores rank g1 g2 n1 n2 n3."""
    golden = [chunk(f"g{n}", f"{fact} stands here", 1.0 / n) for n, fact in enumerate(FACTS, 1)]
    noisy = [chunk(f"n{n}", f"noise {n}", 0.4 - n / 10) for n in (1, 2, 3)]
    given: dict[str, object] = {
        "id": "one",
        "question": "What stands where?",
        "text": ". ".join(FACTS),
        "golden": golden,
        "noisy": noisy,
    }
    return CoverageItem.model_validate(given | changes)


def graded(p: float) -> Verdict:
    label = Label.ENTAILED if p >= 0.5 else Label.NEUTRAL
    return Verdict(label=label, entailed=p, neutral=1 - p, contradicted=0.0)


def judged_as(item: CoverageItem, rows: Sequence[Sequence[Verdict | None]]) -> JudgedItem:
    facts = tuple(Claim(text=f"fact {n}") for n in range(len(rows)))
    return JudgedItem(
        index=0,
        id=item.id,
        digest=digest(item),
        judge="scripted 1",
        facts=facts,
        verdicts=VerdictMatrix.of(rows),
    )


def by_chunks(scored: Sequence[ScoredCombination], *names: str) -> ScoredCombination:
    (found,) = [each for each in scored if each.chunks == names]
    return found


# --- the published arithmetic ---


def test_seven_chunks_have_120_combinations_of_two_and_more() -> None:
    found = chunk_combinations(7)

    assert len(found) == len(set(found)) == all_combinations(7) == 2**7 - 1 - 7 == 120
    assert {len(members) for members in found} == {2, 3, 4, 5, 6, 7}


def test_the_published_example_of_eleven_of_fourteen_facts_is_07857() -> None:
    # Nine facts by one chunk, five by the other, three by both: eleven of fourteen by either.
    first, second = set(range(9)), {6, 7, 8, 9, 10}
    entailed, neutral = Verdict(label=Label.ENTAILED), Verdict(label=Label.NEUTRAL)
    matrix = VerdictMatrix.of(
        [[entailed if i in held else neutral for held in (first, second)] for i in range(14)]
    )

    assert round(coverage_of_set(matrix, [0, 1]) or 0, 4) == 0.7857
    assert round(coverage_of_set(matrix, [0, 1], scoring="discrete") or 0, 4) == 0.7857


def test_a_combination_is_scored_by_the_product_rule_and_by_labels() -> None:
    matrix = VerdictMatrix.of([[graded(0.6), graded(0.5)], [graded(0.2), graded(0.4)]])

    assert coverage_of_set(matrix, [0, 1]) == pytest.approx((0.8 + 0.52) / 2)
    assert coverage_of_set(matrix, [0, 1], scoring="discrete") == 0.5
    with pytest.raises(ConfigError, match="give 'continuous' or 'discrete'"):
        coverage_of_set(matrix, [0, 1], scoring="strict")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - what is refused


def test_every_combination_of_an_item_has_all_scores() -> None:
    item = make_item()

    scored = list(score_combinations(item, judge_items([item], ScriptedJudge())[0]))

    assert len(scored) == 120
    pair = by_chunks(scored, "g1", "n1")
    assert pair.n_golden == 1
    assert pair.gold == 0.25
    assert pair.scores == {
        "continuous": 0.25,
        "continuous_max": 0.25,
        "discrete": 0.25,
        "hit_rate": 1.0,
        "mean_similarity": pytest.approx((1.0 + 0.3) / 2),
        "golden_recall": 0.25,
        "lexical_overlap": 0.25,
    }
    noise = by_chunks(scored, "n1", "n2", "n3")
    assert (noise.gold, noise.scores["hit_rate"], noise.scores["discrete"]) == (0.0, 0.0, 0.0)
    everything = by_chunks(scored, *(each.id for each in item.chunks))
    assert everything.gold == everything.scores["discrete"] == 1.0


def test_an_item_with_thirteen_chunks_gets_a_sample_and_says_so() -> None:
    noisy = [chunk(f"n{n}", f"noise {n}") for n in range(9)]
    item = make_item(noisy=noisy)

    result = summarize([item], judge_items([item], ScriptedJudge()))

    assert result.items[0].is_sampled
    assert result.items[0].n_combinations == 2**12 - 1 - 12
    drawn = chunk_combinations(13, seed="one")
    assert len(set(drawn)) == 2**12 - 1 - 12
    assert drawn == chunk_combinations(13, seed="one")
    assert drawn != chunk_combinations(13, seed="two")


# --- gold ---


def test_a_fact_is_held_by_the_chunk_that_its_sentence_stands_in() -> None:
    item = make_item(
        text="One stands. Two stands.",
        golden=[chunk("a", "One\n stands. And more."), chunk("b", "Two stands.")],
    )
    facts = (Claim(text="1", sentence="One stands."), Claim(text="2", sentence="Two stands."))
    neutral = Verdict(label=Label.NEUTRAL)
    judged = judged_as(item, [[neutral] * 5] * 2).model_copy(update={"facts": facts})

    scored = list(score_combinations(item, judged))

    assert by_chunks(scored, "a", "n1").gold == 0.5
    assert by_chunks(scored, "a", "b").gold == 1.0
    assert summarize([item], [judged]).items[0].gold_source == "sentences"


def test_gold_that_people_gave_counts_before_anything_else() -> None:
    item = make_item(gold=[["g1"], ["g1", "g2"], []])

    result = summarize([item], judge_items([item], ScriptedJudge()))
    scored = list(score_combinations(item, judge_items([item], ScriptedJudge())[0]))

    assert result.items[0].gold_source == "given"
    assert by_chunks(scored, "g1", "n1").gold == pytest.approx(2 / 3)
    assert by_chunks(scored, "g2", "n1").gold == pytest.approx(1 / 3)
    assert by_chunks(scored, "g3", "n1").gold == 0.0


def test_the_judges_own_verdicts_are_gold_only_on_golden_chunks_and_are_named() -> None:
    item = make_item(noisy=[chunk("n1", "alpha too")])

    judged = judge_items([item], ScriptedJudge())
    scored = list(score_combinations(item, judged[0]))

    assert summarize([item], judged).items[0].gold_source == "verdicts"
    assert by_chunks(scored, "g2", "n1").gold == 0.25
    assert by_chunks(scored, "g2", "n1").scores["discrete"] == 0.5


def test_an_undecided_verdict_leaves_its_combinations_without_a_score() -> None:
    item = make_item(golden=[chunk("a", "A."), chunk("b", "B.")], noisy=[chunk("c", "C.")])
    row = [graded(0.9), graded(0.1), None]
    judged = judged_as(item, [row])

    scored = list(score_combinations(item, judged))
    result = summarize([item], [judged])

    assert by_chunks(scored, "a", "b").scores["continuous"] == 0.9 + 0.1 - 0.9 * 0.1
    assert by_chunks(scored, "a", "b").scores["continuous_max"] == 0.9
    assert by_chunks(scored, "a", "c").scores["continuous"] is None
    assert result.ranking["continuous"].tau is None
    assert result.ranking["continuous"].undefined == 1
    assert result.items[0].chunk_scores == {"a": 0.9, "b": pytest.approx(0.1), "c": None}


# --- the positive/negative protocol ---


def test_the_first_two_of_five_are_compared_with_the_last_two() -> None:
    items = [
        make_item(id="good", retrieved=["g1", "g2", "n1", "n2", "n3"]),
        make_item(id="bad", retrieved=["n1", "n2", "g3", "g1", "g2"]),
        make_item(id="even", retrieved=["n1", "n2", "g3", "n3", "g4"]),
        make_item(id="tie", retrieved=["g1", "n1", "g3", "n2", "g2"]),
        make_item(id="longer", retrieved=["g1", "g2", "g3", "n1", "n2", "g4", "n3"]),
        make_item(id="short", retrieved=["g1", "g2", "n1", "n2"]),
    ]

    found = summarize(items, judge_items(items, ScriptedJudge())).pairs["discrete"]

    assert (found.above, found.equal, found.below, found.left_out) == (2, 1, 2, 1)
    assert found.share is not None
    assert (found.share.value, found.share.n) == (0.4, 5)
    assert found.share.low == pytest.approx(0.1176, abs=1e-4)  # Wilson: 2 of 5
    assert found.share.high == pytest.approx(0.7693, abs=1e-4)


def test_without_a_ranking_the_chunks_are_ranked_by_their_scores() -> None:
    # g1 1.0, g2 0.5, g3 0.33, n1 0.3, g4 0.25, n2 0.2, n3 0.1: n1 and g4 are the last two of five.
    item = make_item()

    found = summarize([item], judge_items([item], ScriptedJudge())).pairs

    assert (found["continuous"].above, found["discrete"].above) == (1, 1)
    unscored = make_item(golden=["alpha", "beta", "gamma", "delta"], noisy=["x", "y", "z"])
    left_out = summarize([unscored], judge_items([unscored], ScriptedJudge())).pairs["discrete"]
    assert (left_out.left_out, left_out.share) == (1, None)


# --- ranking quality ---


def test_a_metric_that_ranks_as_the_gold_does_has_tau_1_and_its_reverse_minus_1() -> None:
    item = make_item(gold=[[f"g{n}"] for n in (1, 2, 3, 4)])

    result = summarize(
        [item],
        judge_items([item], ScriptedJudge()),
        metrics={
            "reverse": lambda item, chunks: -BASELINES["golden_recall"](item, chunks),  # type: ignore[operator] # pyright: ignore[reportOptionalOperand] - never None
            "constant": lambda item, chunks: 1.0,
            "silent": lambda item, chunks: None,
        },
    )

    taus = {name: each.tau.value if each.tau else None for name, each in result.ranking.items()}
    assert taus["discrete"] == taus["continuous"] == taus["golden_recall"] == pytest.approx(1.0)
    assert taus["reverse"] == pytest.approx(-1.0)
    assert 0 < (taus["hit_rate"] or 0) < 1
    assert (taus["constant"], taus["silent"]) == (None, None)
    assert result.ranking["silent"].undefined == 1
    versus = result.ranking["reverse"].versus_continuous
    assert versus is not None
    assert versus.difference.value == pytest.approx(-2.0)


def test_items_of_one_question_are_resampled_together() -> None:
    items = [
        make_item(id=str(n), question="same?", golden=["alpha", "beta"], noisy=["x", f"y {n}"])
        for n in range(6)
    ]
    judged = judge_items(items, ScriptedJudge())

    tau = summarize(items, judged).ranking["hit_rate"].tau

    assert tau is not None
    assert tau.low == pytest.approx(tau.high)  # one group: there is nothing to resample


def test_a_metric_that_returns_no_number_or_takes_our_name_is_refused() -> None:
    item = make_item()
    judged = judge_items([item], ScriptedJudge())

    with pytest.raises(ConfigError, match="'odd' returned something else"):
        summarize([item], judged, metrics={"odd": lambda item, chunks: float("nan")})
    with pytest.raises(ConfigError, match="as ours is"):
        summarize([item], judged, metrics={"discrete": lambda item, chunks: 1.0})


# --- judging ---


class CountingJudge(ScriptedJudge):
    """Reports a call for each request, as a judge behind an endpoint does."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        add_usage(Usage(calls=1))
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_usage(Usage(calls=1))
        return await super().check(claims, references, question=question)


@pytest.mark.parametrize(("batched", "calls"), [(True, 2), (False, 4 * 7 + 1)])
def test_without_batches_the_calls_are_facts_times_chunks_and_one(
    batched: bool, calls: int
) -> None:
    item = make_item()
    judge = CountingJudge()

    judged = judge_items([item], judge, batched=batched)
    result = summarize([item], judged)

    assert (result.calls, result.calls_unbatched) == (calls, 29)
    assert judged[0].verdicts == judge_items([item], ScriptedJudge())[0].verdicts


async def test_a_running_loop_may_use_both_forms() -> None:
    items = [make_item()]

    assert [each.facts for each in await ajudge_items(items, ScriptedJudge())] == [
        each.facts for each in judge_items(items, ScriptedJudge())
    ]


def test_facts_of_the_file_are_not_extracted_and_too_many_are_counted() -> None:
    item = make_item(facts=["alpha", {"text": "beta", "sentence": "beta."}, "gamma"])
    judge = CountingJudge()

    (judged,) = judge_items([item], judge, max_facts=2)

    assert judge.extractions == []
    assert [fact.text for fact in judged.facts or ()] == ["alpha", "beta"]
    assert judged.facts_dropped == 1
    assert summarize([item], [judged]).calls_unbatched == 2 * 7


class FailingJudge(ScriptedJudge):
    """Fails on one text."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        if text == "fails":
            raise JudgeError("the endpoint is down")
        return await super().extract_claims(text, question=question)


def test_an_item_that_fails_stops_no_other_and_is_named() -> None:
    items = [make_item(), make_item(id="two", text="fails"), make_item(id="three", text="!!!")]

    result = summarize(items, judge_items(items, FailingJudge()))

    assert [each.id for each in result.items] == ["one"]
    assert result.failed == {
        "two": "the endpoint is down",
        "three": "the text has no facts: give the item facts, or another text",
    }


async def test_a_judge_that_hangs_is_stopped() -> None:
    (judged,) = await ajudge_items(
        [make_item()], ScriptedJudge(delay_seconds=60), deadline_seconds=0.05
    )

    assert judged.error == "no verdicts within 0.05 s"


def test_numbers_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_facts is 0"):
        judge_items([make_item()], ScriptedJudge(), max_facts=0)
    with pytest.raises(ConfigError, match="in one order"):
        summarize([make_item()], [])


# --- going on with a run ---


def test_a_run_goes_on_and_extracts_no_fact_twice(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    items = [make_item(), make_item(id="two")]

    class Broken(ScriptedJudge):
        async def check(self, *_: object, **__: object) -> VerdictMatrix:
            raise JudgeError("gone")

    judge_into(path, items, Broken())
    path.write_text(path.read_text() + '{"torn": ', encoding="utf-8")
    assert sorted(rows_of(path, items)) == [0, 1]

    judge = ScriptedJudge()
    judged = judge_into(path, items, judge)

    assert judge.extractions == []
    assert len(judge.checks) == 2
    assert [each.error for each in judged] == [None, None]
    assert [each.verdicts for each in rows_of(path, items).values()] == [
        each.verdicts for each in judged
    ]
    judge_into(path, items, judge)
    assert len(judge.checks) == 2  # all was there


@pytest.mark.parametrize(("max_facts", "extractions"), [(2, 0), (3, 1), (1, 1)])
async def test_facts_that_another_limit_has_cut_are_extracted_again(
    max_facts: int, extractions: int
) -> None:
    items = [make_item()]
    judge = ScriptedJudge()
    (first,) = await ajudge_items(items, ScriptedJudge(), max_facts=2)

    (second,) = await ajudge_items(items, judge, max_facts=max_facts, known={0: first})

    assert len(judge.extractions) == extractions
    assert (len(second.facts or ()), second.facts_dropped) == (max_facts, 4 - max_facts)


def judge_into(path: Path, items: Sequence[CoverageItem], judge: ScriptedJudge) -> list[JudgedItem]:
    with JudgedFile(path, items, "scripted 1") as file:
        return asyncio.run(ajudge_items(items, judge, known=file.known, keep=file.add))


def rows_of(path: Path, items: Sequence[CoverageItem]) -> dict[int, JudgedItem]:
    with JudgedFile(path, items, "scripted 1") as file:
        return file.known


def test_results_of_other_items_or_of_another_judge_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    items = [make_item()]
    judge_into(path, items, ScriptedJudge())

    with pytest.raises(ConfigError, match="another judge"):
        JudgedFile(path, items, "lexical 2")
    with pytest.raises(ConfigError, match="the data set has changed"):
        JudgedFile(path, [make_item(question="Another?")], "scripted 1")
    path.write_text("something else\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1 is no result"):
        JudgedFile(path, items, "scripted 1")


# --- the file of items ---


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


ROW = {"question": "q", "text": "t", "golden": ["a", {"text": "b", "score": 0.5}], "noisy": ["c"]}


def test_chunks_and_facts_may_be_written_as_bare_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "d.jsonl", ROW, {**ROW, "id": 7, "facts": ["f"]})

    first, second = read_items(file)

    assert (first.id, second.id) == ("1", "7")
    assert [each.text for each in first.chunks] == ["a", "b", "c"]
    assert first.chunks[0].id == Chunk.content_id("a")
    assert first.chunks[1].score == 0.5
    assert second.facts == (Claim(text="f"),)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "golden": []}, "golden cannot be used"),
        ({**ROW, "noise": ["x"]}, "noise cannot be used"),
        ({**ROW, "golden": ["c"]}, "two chunks have one id"),
        ({**ROW, "golden": ["a"], "noisy": []}, "one chunk makes no combination"),
        ({**ROW, "gold": [["unknown"]]}, "names an id that no chunk has"),
        ({**ROW, "retrieved": [Chunk.content_id("a")] * 2}, "names a chunk twice"),
        ({"question": "q"}, "text cannot be used"),
        ("text", "is not a JSON object"),
    ],
)
def test_a_line_that_is_no_item_is_named(tmp_path: Path, row: object, message: str) -> None:
    file = write(tmp_path / "d.jsonl", ROW, row)

    with pytest.raises(FileError, match=message) as caught:
        read_items(file)

    assert "line 2" in str(caught.value)


def test_an_empty_file_and_an_id_that_comes_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="contains no items"):
        read_items(write(tmp_path / "empty.jsonl"))
    with pytest.raises(FileError, match="line 2 has the id of another line"):
        read_items(write(tmp_path / "twice.jsonl", {**ROW, "id": "x"}, {**ROW, "id": "x"}))


def test_a_real_judge_tells_golden_from_noisy_chunks() -> None:
    item = make_item(
        text="The lighthouse was built in 1872. Its lamp burns oil. The keeper lives below it.",
        golden=[
            "The lighthouse was built in 1872 by the harbour board.",
            "Its lamp burns oil, and the keeper lives below it.",
        ],
        noisy=["The museum opens at nine.", "Bread is baked in the morning."],
    )

    result = summarize([item], judge_items([item], LexicalJudge()))

    assert result.score_mode == "graded"
    assert result.golden_score is not None
    assert result.noisy_score is not None
    assert result.golden_score.value > result.noisy_score.value + 0.2
