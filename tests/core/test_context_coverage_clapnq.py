"""Our judges rank combinations of chunks of CLAPnq better than what needs no judge.

Nothing was tuned on these texts. The floors are well below what was measured when they were set,
since a judge may change a little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import pytest

from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan_bench.context_coverage import (
    CoverageItem,
    CoverageResult,
    build_items,
    judge_items,
    summarize,
)

from clapnq_documents import answered_items, passages

JUDGES: Final[Mapping[str, Callable[[], Judge]]] = {"lexical": LexicalJudge, "local": LocalJudge}


@lru_cache(maxsize=4)
def measured(judge: str, n: int) -> CoverageResult:
    return result_of(build_items(passages(n)).items, JUDGES[judge]())


def result_of(items: list[CoverageItem], judge: Judge) -> CoverageResult:
    return summarize(items, judge_items(items, judge))


def tau(result: CoverageResult, name: str) -> float:
    found = result.ranking[name].tau
    assert found is not None
    return found.value


@pytest.mark.parametrize(("judge", "n"), [("lexical", 60), ("local", 15)])
def test_both_scores_rank_combinations_better_than_hits_and_similarity(judge: str, n: int) -> None:
    result = measured(judge, n)

    assert result.failed == {}
    assert {each.gold_source for each in result.items} == {"sentences"}
    for ours in ("continuous", "discrete"):
        assert tau(result, ours) > 0.7
        assert tau(result, ours) > tau(result, "hit_rate") + 0.2
        assert tau(result, ours) > tau(result, "mean_similarity") + 0.2


@pytest.mark.parametrize(("judge", "n"), [("lexical", 60), ("local", 15)])
def test_golden_chunks_score_above_noisy_ones(judge: str, n: int) -> None:
    result = measured(judge, n)

    assert result.golden_score is not None
    assert result.noisy_score is not None
    assert result.golden_score.low > result.noisy_score.high


def test_the_first_two_retrieved_chunks_mostly_score_above_the_last_two() -> None:
    pairs = measured("lexical", 60).pairs["continuous"]

    assert pairs.left_out == 0
    assert pairs.share is not None
    assert pairs.share.low > 0.5


def test_answers_of_people_are_ranked_by_what_they_were_written_from() -> None:
    items = answered_items(60)

    result = result_of(items, LexicalJudge())

    assert len(items) > 50
    assert {each.gold_source for each in result.items} == {"given"}
    assert tau(result, "discrete") > 0.75
    assert tau(result, "continuous") > tau(result, "hit_rate") + 0.2
