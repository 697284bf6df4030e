"""The retrieval-accuracy evaluation: its arithmetic, its gold, its protocol and its rankings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan.errors import ConfigError
from claimspan.judges import LexicalJudge
from claimspan.metrics import coverage_of_set
from claimspan.testing import ScriptedJudge
from claimspan_bench.context_coverage import (
    BASELINES,
    CoverageItem,
    JudgedItem,
    judge_items,
    score_combinations,
    summarize,
)
from claimspan_bench.context_coverage.judging import digest
from claimspan_bench.context_coverage.rankings import (
    ScoredCombination,
    all_combinations,
    chunk_combinations,
)

from coverage_items import chunk, make_item


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
