"""The benchmark on a real server: llama.cpp with a model of 135 million parameters.

The model is too small to be right. Facts come with either prompt, probabilities from the log
probabilities of label tokens, and every call is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claimspan import Claim
from claimspan.judges.llm.extraction import Extraction
from claimspan_bench.context_coverage import CoverageItem, Document, judge_items, summarize
from claimspan_bench.context_coverage.builder import awrite_questions

from small_model import served_model, small_judge


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_model() as at:
        yield at


ITEM = CoverageItem.model_validate(
    {
        "id": "lighthouse",
        "question": "When was the lighthouse built?",
        "text": "The lighthouse was built in 1872.",
        "golden": ["The lighthouse was built in 1872.", "In 1872 the tower was ready."],
        "noisy": ["Bread is baked in the morning."],
    }
)


@pytest.mark.parametrize("extraction", ["direct", "reasoned"], ids=["io", "cot"])
def test_facts_come_with_either_prompt_and_the_calls_are_counted(
    url: str, extraction: Extraction
) -> None:
    (judged,) = judge_items([ITEM], small_judge(url, extraction), max_facts=2)

    assert judged.error is None
    assert 1 <= len(judged.facts or ()) <= 2
    assert {fact.sentence for fact in judged.facts or ()} == {ITEM.text}
    assert judged.usage.calls == 2
    result = summarize([ITEM], [judged])
    assert result.n_combinations == 4
    # The first golden chunk contains the sentence of every fact, the second one does not.
    assert result.items[0].gold_source == "sentences"


def test_each_pair_in_a_call_of_its_own_gives_probabilities(url: str) -> None:
    # Two facts that differ: a verdict that is in the cache already takes no call.
    facts = (Claim(text="The lighthouse was built in 1872."), Claim(text="Bread is baked."))
    item = ITEM.model_copy(update={"facts": facts})

    (judged,) = judge_items([item], small_judge(url), batched=False)

    result = summarize([item], [judged])
    assert judged.error is None
    assert judged.verdicts is not None
    assert result.calls == result.calls_unbatched == 2 * 3
    # A pair whose label tokens are not among the alternatives has its label alone, and says so.
    assert result.score_mode in ("graded", "mixed")
    for cell in judged.verdicts.verdicts():
        assert cell is not None
        if cell.entailed is not None:
            total = cell.entailed + (cell.neutral or 0) + (cell.contradicted or 0)
            assert total == pytest.approx(1.0)


async def test_a_question_is_written_for_a_document(url: str) -> None:
    documents = [
        Document(id="a", text="The lighthouse was built in 1872. Its lamp burned oil."),
        Document(id="b", text="Bread is baked in the morning.", question="When is bread baked?"),
    ]

    first, second = await awrite_questions(documents, small_judge(url).chat_model)

    assert first.question
    assert first.text == documents[0].text
    assert second == documents[1]
