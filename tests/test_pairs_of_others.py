"""Sets that people labelled become training pairs, without what something is measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from train_local_judge.people import edited_summaries, revised_facts

OLD: Final = "The band has sold 13 million albums , as the label says ."
NEW: Final = "The band has sold 14 million albums , as the label says ."
BESIDE: Final = "Its singer was born in a village near Cork in 1979 ."
CLAIM: Final = "The band sold over 13.5 million albums ."


def revisions(folder: Path) -> Path:
    rows = [
        {"case_id": "1", "label": "REFUTES", "claim": CLAIM, "evidence": OLD},
        {"case_id": "2", "label": "SUPPORTS", "claim": CLAIM, "evidence": NEW},
        {"case_id": "3", "label": "NOT ENOUGH INFO", "claim": "It is loud .", "evidence": BESIDE},
    ]
    path = folder / "revisions.jsonl"
    path.write_text("\n".join(json.dumps({**row, "page": "Band"}) for row in 20 * rows))
    return path


def test_a_fact_is_never_shown_beside_another_revision_of_it(tmp_path: Path) -> None:
    pairs = list(revised_facts(revisions(tmp_path)))
    refuted = [premise for premise, _, label in pairs if label == "C"]
    supported = [premise for premise, _, label in pairs if label == "E"]

    assert {len(pairs), len(refuted), len(supported)} == {60, 20}
    assert all("13 million" in each and "14 million" not in each for each in refuted)
    assert all("14 million" in each and "13 million" not in each for each in supported)
    # Some stand alone, and some among other sentences of their page.
    assert {"Cork" in each for each in refuted} == {True, False}


def test_what_something_is_measured_on_is_left_out_in_any_case_of_letters(tmp_path: Path) -> None:
    withheld = {"the band sold over 13.5 million albums."}

    assert {claim for _, claim, _ in revised_facts(revisions(tmp_path), withheld)} == {
        "It is loud."
    }


def test_of_a_false_summary_only_the_edited_sentences_are_false(tmp_path: Path) -> None:
    original = "The office moved to Leeds. It has forty desks."
    edited = original.replace("forty", "fifty")
    rows = [
        {"doc": original, "summary": text, "original_summary": original, "label": label}
        for text, label in ((original, 1), (edited, 0))
    ]
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(rows))

    assert [(claim, label) for _, claim, label in edited_summaries(path)] == [
        ("The office moved to Leeds.", "E"),
        ("It has forty desks.", "E"),
        ("It has fifty desks.", "NE"),
    ]
