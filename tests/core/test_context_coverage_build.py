"""Data sets that are made out of documents: golden chunks, noisy chunks and questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan.errors import ConfigError, FileError
from claimspan.judges import LexicalJudge
from claimspan_bench.context_coverage import (
    CoverageItem,
    Document,
    build_items,
    judge_items,
    read_documents,
    read_items,
    summarize,
)
from claimspan_bench.context_coverage.builder import Nearness, Noise

HARBOUR = """\
The harbour of Altmund was dug in 1840 by order of the council. It took three hundred workers four \
years. Ships had to wait outside of the bar before that. The first steamer came in the spring of \
1844. A lighthouse was built on the mole in 1872. Its lamp burned oil until 1920. The keeper lived \
in the room below. Today the mole is a place for walks."""
BAKERY = """\
A sour dough needs flour, water and time. The flour should be of rye. The dough rests for a night \
in a warm place. In the morning half of it is taken for bread. The other half is fed with flour \
again. A dough that smells of apples is right. One that smells of vinegar has stood too long."""
SHIPYARD = """\
The shipyard of Altmund stood beside the harbour. It built wooden ships until 1890. The harbour \
brought the timber from the north. A steamer was its last ship. The workers went to the railway."""

DOCUMENTS = [
    Document(id="harbour", text=HARBOUR, title="When was the harbour of Altmund dug?"),
    Document(id="bakery", text=BAKERY, title="How is sour dough made?"),
    Document(id="shipyard", text=SHIPYARD, question="What did the shipyard build?", title="Yard"),
]


def by_id(items: list[CoverageItem]) -> dict[str, CoverageItem]:
    return {item.id: item for item in items}


def test_golden_chunks_are_whole_sentences_of_the_document_and_make_up_its_text() -> None:
    for item, document in zip(build_items(DOCUMENTS).items, DOCUMENTS, strict=True):
        assert len(item.golden) == 4
        assert all(chunk.text.endswith(".") for chunk in item.golden)
        assert " ".join(chunk.text for chunk in item.golden) == document.text
        assert item.text.split() == document.text.split()


def test_chunks_are_of_about_the_same_length_and_not_longer_than_allowed() -> None:
    long = Document(id="long", text=" ".join([HARBOUR] * 10), title="Harbour")

    built = build_items([long, DOCUMENTS[1]], chunk_words=40, items_per_document=100)

    lengths = [len(c.text.split()) for item in built.items[:-1] for c in item.golden]
    assert sum(lengths) == len(long.text.split())
    assert max(lengths) <= 40
    assert min(lengths) > 20
    assert [item.id for item in built.items][:2] == ["long", "long#2"]
    assert all(2 <= len(item.golden) <= 4 for item in built.items)
    assert len({chunk.id for item in built.items for chunk in item.golden}) == len(
        [chunk for item in built.items for chunk in item.golden]
    )


def test_noisy_chunks_are_of_other_documents_and_hard_ones_are_near() -> None:
    harbour = by_id(build_items(DOCUMENTS).items)["harbour"]

    assert len(harbour.noisy) == 3
    assert not {chunk.text for chunk in harbour.noisy} & {chunk.text for chunk in harbour.golden}
    assert harbour.noisy[0].id.startswith("shipyard:")  # of Altmund, its harbour and a steamer
    assert "harbour" in harbour.noisy[0].text


def test_random_noise_follows_from_the_seed() -> None:
    def noise(seed: int) -> list[list[str]]:
        items = build_items(DOCUMENTS, noise="random", seed=seed).items
        return [[chunk.id for chunk in item.noisy] for item in items]

    assert noise(1) == noise(1)
    assert len({str(noise(seed)) for seed in range(5)}) > 1
    drawn = {name.partition(":")[0] for seed in range(5) for name in noise(seed)[0]}
    assert drawn == {"bakery", "shipyard"}


def test_a_copy_of_a_document_is_no_noise() -> None:
    copy = Document(id="copy", text=HARBOUR.replace(" ", "\n "), title="A copy")

    items = by_id(build_items([*DOCUMENTS, copy], noisy=20).items)

    assert not [c for c in items["harbour"].noisy if c.id.startswith("copy")]
    assert not [c for c in items["copy"].noisy if c.id.startswith("harbour")]


def test_the_question_is_the_users_or_else_the_title_or_the_first_sentence() -> None:
    untitled = Document(id="untitled", text=BAKERY)

    items = by_id(build_items([*DOCUMENTS, untitled]).items)

    assert items["shipyard"].question == "What did the shipyard build?"
    assert items["harbour"].question == "When was the harbour of Altmund dug?"
    assert items["untitled"].question == "A sour dough needs flour, water and time."


def test_scores_of_chunks_are_nearness_to_the_question() -> None:
    shipyard = by_id(build_items(DOCUMENTS).items)["shipyard"]

    scores = {chunk.id: chunk.score or 0.0 for chunk in shipyard.chunks}
    assert max(scores, key=lambda name: scores[name]).startswith("shipyard:")
    assert scores["shipyard:1"] > 0.0


def test_a_document_of_one_sentence_is_left_out_and_named() -> None:
    short = Document(id="short", text="One sentence alone.", title="Short")

    built = build_items([*DOCUMENTS, short])

    assert built.left_out == ("short",)
    assert "short" not in by_id(built.items)
    with pytest.raises(ConfigError, match="no document has two sentences"):
        build_items([short], noisy=0)


def test_settings_that_cannot_work_are_refused() -> None:
    wrong: Noise = "soft"  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType] - what is refused
    with pytest.raises(ConfigError, match="no other document"):
        build_items(DOCUMENTS[:1])
    with pytest.raises(ConfigError, match="golden is 1"):
        build_items(DOCUMENTS, golden=1)
    with pytest.raises(ConfigError, match="noisy is -1"):
        build_items(DOCUMENTS, noisy=-1)
    with pytest.raises(ConfigError, match="chunk_words is 0"):
        build_items(DOCUMENTS, chunk_words=0)
    with pytest.raises(ConfigError, match="items_per_document is 0"):
        build_items(DOCUMENTS, items_per_document=0)
    with pytest.raises(ConfigError, match="noise is 'soft'"):
        build_items(DOCUMENTS, noise=wrong)


def test_the_chunk_that_holds_a_fact_is_known_without_a_judge() -> None:
    items = build_items(DOCUMENTS).items

    result = summarize(items, judge_items(items, LexicalJudge()))

    assert {each.gold_source for each in result.items} == {"sentences"}
    assert result.n_combinations == 360
    for name in ("continuous", "discrete", "golden_recall"):
        tau = result.ranking[name].tau
        assert tau is not None
        assert tau.value > 0.5, name


def test_texts_without_a_word_have_no_nearness() -> None:
    assert Nearness(["!!!", "?"]).scores("a") == [0.0, 0.0]
    assert Nearness(["one two", "three"]).scores("four and") == [0.0, 0.0]
    assert Nearness(["one two", "three"]).scores("three")[1] > 0.0


def test_documents_are_read_from_files_lines_and_directories(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "the_old-harbour.txt").write_text(HARBOUR, encoding="utf-8-sig")
    (tmp_path / "bakery.md").write_text(f"# Sour dough #\r\n\r\n{BAKERY}", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89")
    rows = [{"text": SHIPYARD, "question": "What?"}, {"id": 7, "text": "A. B.", "other": 1}]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    found = {each.id: each for each in read_documents([tmp_path])}

    assert set(found) == {"bakery.md", "deep/the_old-harbour.txt", "more.jsonl:1", "7"}
    assert found["bakery.md"].title == "Sour dough"
    assert found["bakery.md"].text.strip() == BAKERY
    assert found["deep/the_old-harbour.txt"].title == "the old harbour"
    assert found["deep/the_old-harbour.txt"].text == HARBOUR
    assert found["more.jsonl:1"].question == "What?"


def test_documents_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    lines = tmp_path / "d.jsonl"
    lines.write_text('{"text": "A. B."}\n{"title": "no text"}\n', encoding="utf-8")
    with pytest.raises(FileError, match="line 2: text cannot be used"):
        read_documents([lines])
    lines.write_text('{"id": "x", "text": "A."}\n{"id": "x", "text": "B."}\n', encoding="utf-8")
    with pytest.raises(FileError, match="the id of another one"):
        read_documents([lines])
    with pytest.raises(FileError, match="cannot read"):
        read_documents([tmp_path / "absent.txt"])
    (tmp_path / "none").mkdir()
    with pytest.raises(FileError, match="there are no documents"):
        read_documents([tmp_path / "none"])


def test_a_built_file_can_be_edited_and_read_again(tmp_path: Path) -> None:
    items = build_items(DOCUMENTS).items
    path = tmp_path / "d.jsonl"
    rows = [json.loads(item.model_dump_json(exclude_defaults=True)) for item in items]
    rows[0]["noisy"].append("A further chunk that a person has written.")
    rows[0]["facts"] = ["The harbour was dug in 1840."]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    first, *others = read_items(path)

    assert others == items[1:]
    assert len(first.noisy) == 4
    assert [fact.text for fact in first.facts or ()] == ["The harbour was dug in 1840."]
