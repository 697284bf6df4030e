"""Evidence shown beside an answer is no part of it; an answer made of copies is one."""

from __future__ import annotations

from typing import Final

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import LexicalJudge
from claimspan.text.shown import without_shown

SAID: Final = "The deposit is 900 euros."
RENT: Final = (
    "Flats in Linden Street are let without furniture. The deposit is two rents and is paid before "
    "the keys are handed over. Dogs are welcome."
)
HEAT: Final = "Heating is billed by use. The meters are read every January. A bill comes in March."
PASSAGES: Final = (RENT, HEAT)
FACTS: Final = ("The deposit is two rents.", "The meters are read every January.")


@pytest.mark.parametrize(
    "below",
    [
        f"Sources:\n- {RENT}\n- {HEAT}",
        f"**Passages used**\n\n> {RENT}\n\n> {HEAT}",
        f"### What this rests on\n\n1. {RENT}\n2. {HEAT}",
        f"Belegstellen\n{RENT}",
        f"[1] {RENT}\n[2] {HEAT}",
        f"{RENT}\n\n{HEAT}",
        f"Taken from:\n{RENT[:70]}...",
        f"“{RENT[:70]}…” (lease.pdf, p. 2)",
        f"lease.pdf: {RENT}\nbills.pdf: {HEAT}",
        f"Title: Lease\nScore: 0.83\nText: {RENT}",
        f"**Source 1** (score: 0.83)\n{RENT}\n\n**Source 2** (score: 0.71)\n{HEAT}",
        f"<details><summary>Sources</summary>\n\n{RENT}\n\n</details>",
        f"资料来源：\n- {RENT}",
        f"> {RENT}\n\nI hope this helps! Let me know if you have any questions.",
        "Quellen:\n- Mietvertrag\n- Heizkosten",
        "[1] lease.pdf\n[2] bills.pdf, p. 3",
        "- [Lease](https://example.com/lease)\n- https://example.com/bills",
        "Read more: [Deposits](https://example.com/deposits)",
        "See the full lease here.",
        "Weitere Informationen finden Sie hier.",
        "This is general information and no legal advice.",
    ],
)
def test_passages_sources_and_pointers_below_an_answer_are_no_part_of_it(below: str) -> None:
    assert without_shown(f"{SAID}\n\n{below}", PASSAGES) == SAID


@pytest.mark.parametrize(
    "above", [f"Context:\n{RENT}", f"Sources:\n- {RENT}\n- {HEAT}", f"> {RENT}"]
)
def test_passages_above_an_answer_are_no_part_of_it(above: str) -> None:
    assert without_shown(f"{above}\n\n{SAID}", PASSAGES) == SAID


@pytest.mark.parametrize(
    "answer",
    [
        RENT,
        f"> {RENT}",
        f"[1] {RENT}",
        f"{RENT}\n\n{HEAT}",
        f"Sure, here you go!\n\n{RENT}",
        f"{RENT}\n\nPlease contact the caretaker.",
        f"Here is what I found:\n- {FACTS[0]}\n- {FACTS[1]}",
        f"Two rules apply.\n- {FACTS[0]}\n- {FACTS[1]}",
        f"Two rules apply.\n\n**Money**\n- {FACTS[0]}\n\n**Meters**\n- {FACTS[1]}",
        f"{SAID}\n{FACTS[1]}",
        "Are dogs welcome?\nYes.",
        "You need these documents:\n- Passport\n- Payslip",
        "Bring\n- a passport\n- a payslip",
    ],
)
def test_an_answer_that_is_a_quotation_or_a_list_of_copied_facts_stays(answer: str) -> None:
    assert without_shown(answer, PASSAGES) == answer


def test_chunks_of_one_sentence_are_shown_where_all_of_them_are_or_they_are_set_apart() -> None:
    chunks = ["The deposit is two rents.", "Dogs are welcome in all flats."]

    assert without_shown(f"{SAID}\n\nBased upon\n{chunks[0]}", chunks) != SAID
    assert without_shown(f"{SAID}\n\n[1] {chunks[0]}", chunks) == SAID
    assert without_shown(f"{SAID}\n\nFound:\n{chunks[0]}\n{chunks[1]}", chunks) == SAID


def test_a_changed_copy_of_a_passage_is_said() -> None:
    changed = RENT.replace("two rents", "nine rents")

    assert changed in without_shown(f"{SAID}\n\nIn detail:\n{changed}", PASSAGES)


def record(response: str, ground_truth: str | None = None) -> RagRecord:
    chunks = tuple(Chunk(id=str(i), text=text) for i, text in enumerate(PASSAGES))
    return RagRecord(
        query="How much is the deposit?",
        response=response,
        chunks=chunks,
        ground_truth=ground_truth,
    )


def test_a_wrong_answer_is_not_faithful_for_the_passages_below_it() -> None:
    judge = LexicalJudge()
    shown = record(f"The deposit is 20 guineas.\n\nSources:\n- {RENT}\n- {HEAT}")

    assert evaluate(shown, judge=judge).metrics["faithfulness"] == 0.0


def test_a_fact_that_only_the_passages_below_an_answer_have_is_not_recalled() -> None:
    truth = "The meters are read every January."
    alone = evaluate(record(SAID, truth), judge=LexicalJudge())
    shown = evaluate(record(f"{SAID}\n\n> {RENT}\n> {HEAT}", truth), judge=LexicalJudge())

    assert shown.metrics["recall"] == alone.metrics["recall"] == 0.0


def test_a_refusal_above_the_nearest_passages_abstains() -> None:
    found = evaluate(record(f"I could not find that.\n\nSources:\n- {HEAT}"), judge=LexicalJudge())

    assert found.abstained
    assert not found.response_claims


@pytest.mark.parametrize("heading", ["Evidence:", "Based on:", "Grundlage:", "根拠：", "근거:"])
def test_reasons_of_its_own_below_such_a_heading_are_part_of_an_answer(heading: str) -> None:
    reasons = f"{SAID}\n\n{heading}\n- The landlord keeps it on an account.\n- It bears interest."

    assert without_shown(reasons, PASSAGES) == reasons
    assert without_shown(f"{SAID}\n\n{heading}\n- {FACTS[0]}", PASSAGES) == SAID
