"""The generator of changed and paraphrased sentences makes what it says, with the right labels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Final

import pytest

from perturbed_cases import KINDS, Case, make_cases
from perturbed_changes import CHANGES, Material
from perturbed_lexicon import Lexicon, read_wordnet
from perturbed_paraphrases import PARAPHRASES, join
from perturbed_texts import half_of, passages_of_text, read_passages

BENCHMARK: Final = Path(__file__).parents[1] / "benchmarks" / "perturbations.py"
TEXT: Final = (
    "The harbour of Belmara is not open in winter. The old bridge was designed by Ana Kolman in "
    "1893, and it is 240 metres long. Ana Kolman portrayed the mayor in a painting of March 1901. "
    "Most ships arrive before noon because the wind is weak in the morning. The western pier is "
    "longer than the eastern pier. The town exports fish, salt, and timber. The museum was built "
    "by the council in Belmara and is open to all visitors. "
)
"""Written for this test."""

LEXICON: Final = Lexicon(
    synonyms={"timber": ("wood",)},
    opposites={"weak": ("strong",), "open": ("closed",)},
    participles={"designed": "design", "portrayed": "portray", "acquired": "acquire"},
    common=frozenset("the harbour mayor ship museum town bridge most".split()),
)


def _material(passage: str = TEXT) -> Material:
    return Material(LEXICON, passage, ["Dorvin", "Petra Novak"])


def _cases() -> list[Case]:
    return list(make_cases(list(passages_of_text(TEXT, "own", "own/one")), LEXICON))


@pytest.mark.parametrize(
    ("kind", "sentence", "changed"),
    [
        ("month", "It opened in March 1901.", "It opened in ", ),
        ("negation", "The harbour is not open.", "The harbour is open."),
        ("negation", "The harbour is open in May.", "The harbour is not open in May."),
        ("opposite", "The wind is weak today.", "The wind is strong today."),
        ("roles", "Microsoft acquired GitHub in 2018.", "GitHub acquired Microsoft in 2018."),
        ("comparison", "The pier is longer than the mole.", "The mole is longer than the pier."),
        ("comparison", "It has more than ten piers.", "It has less than ten piers."),
        ("quantifier", "Most ships arrive before noon.", "All ships arrive before noon."),
        ("quantifier", "Ships often arrive late.", "Ships always arrive late."),
        ("cause", "The ships wait because the wind is weak.",
         "The wind is weak because the ships wait."),
        ("cause", "The storm caused a flood in town.", "A flood in town caused the storm."),
        ("unit", "It is 240 km long.", "It is 240 mi long."),
    ],
)  # fmt: skip
def test_a_rule_makes_the_change_that_it_is_named_for(
    kind: str, sentence: str, changed: str
) -> None:
    made = CHANGES[kind](sentence, _material(), Random(1))

    assert made is not None
    assert made.startswith(changed)
    assert made != sentence


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("number", "The ships are in harbour 12 hours."),
        ("year", "The bridge was built in 1893."),
        ("name", "The harbour of Belmara is deep."),
        ("name within", "The harbour of Belmara is deep."),
    ],
)
def test_a_replaced_value_differs_in_one_place(kind: str, sentence: str) -> None:
    made = CHANGES[kind](sentence, _material(TEXT + sentence), Random(1))

    assert made is not None
    before, after = sentence.split(), made.split()
    assert before[:2] == after[:2]
    assert before[-1] == after[-1] or kind == "year"
    assert made != sentence


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("negation", "If the port is open, ships arrive."),
        ("roles", "Anna met Boris in Rome."),
        ("cause", "It failed just because the wind was weak here."),
        ("quantifier", "It is at most ten years old."),
        ("year", "It has 1893 people."),
    ],
)
def test_a_rule_leaves_alone_what_it_would_not_make_false(kind: str, sentence: str) -> None:
    assert CHANGES[kind](sentence, _material(), Random(1)) is None


@pytest.mark.parametrize(
    ("kind", "sentence", "paraphrase"),
    [
        ("contraction", "The port is not open.", "The port isn't open."),
        ("passive", "The bridge was designed by Ana Kolman in 1893.",
         "Ana Kolman designed the bridge in 1893."),
        ("passive", "Ana Kolman designed the bridge.", "The bridge was designed by Ana Kolman."),
        ("synonym", "The town sells timber.", "The town sells wood."),
        ("reordered list", "The goods are fish, salt, and timber.",
         "The goods are timber, salt, and fish."),
        ("split", "The museum is small, modern and bright, and it is open to all visitors.",
         "It is open to all visitors."),
    ],
)  # fmt: skip
def test_a_paraphrase_says_the_same(kind: str, sentence: str, paraphrase: str) -> None:
    assert PARAPHRASES[kind](sentence, _material(), Random(1)) == paraphrase


def test_two_sentences_are_joined_to_one() -> None:
    joined = join("The port is small.", "The bridge is old.", _material())

    assert joined == "The port is small, and the bridge is old."


def test_labels_follow_from_the_kind_and_a_copy_is_never_counted_as_changed() -> None:
    cases = _cases()

    assert {case.kind for case in cases} >= {*CHANGES} - {"number", "name", "name within", "unit"}
    for case in cases:
        assert case.is_entailed == (case.kind not in CHANGES)
        assert (case.claim in case.passage.text) == (case.kind == "verbatim")
        assert case.half == half_of(case.passage.document)


def test_the_same_texts_give_the_same_cases() -> None:
    assert _cases() == _cases()


def test_no_document_weighs_more_than_three_cases_of_a_kind() -> None:
    passages = [p for _ in range(4) for p in passages_of_text(TEXT, "own", "own/one")]
    kinds = [case.kind for case in make_cases(passages, LEXICON)]

    assert max(kinds.count(kind) for kind in KINDS) <= 3


def test_one_half_of_the_documents_is_left_for_the_test() -> None:
    passages = [
        p for n in range(20) for p in passages_of_text(TEXT.replace("240", str(n)), "own", f"{n}")
    ]
    tune = {case.passage.document for case in make_cases(passages, LEXICON, half="tune")}
    test = {case.passage.document for case in make_cases(passages, LEXICON, half="test")}

    assert tune
    assert test
    assert not tune & test


def test_passages_are_read_from_pages_texts_and_clapnq(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<nav><p>Menu</p></nav><p>One is <b>two</b>.</p><pre>x</pre>")
    (tmp_path / "b.txt").write_text("Three is four.")
    row = {"passages": [{"title": "T", "text": "Five , or `` six '' ."}]}
    (tmp_path / "c.jsonl").write_text(json.dumps(row))

    texts = [passage.text for passage in read_passages(tmp_path)]

    assert [text.strip() for text in texts] == ["One is two.", "Three is four.", 'Five, or "six".']


def test_wordnets_format_is_read(tmp_path: Path) -> None:
    for name in ("noun", "adj", "adv"):
        (tmp_path / f"index.{name}").write_text("")
        (tmp_path / f"data.{name}").write_text("")
    (tmp_path / "index.verb").write_text(
        "gain v 1 1 ! 1 1 00000001\nattain v 1 0 1 1 00000001\nlose v 1 1 ! 1 1 00000002\n"
    )
    (tmp_path / "data.verb").write_text(
        "  1 licence\n00000001 38 v 02 gain 0 attain 0 001 ! 00000002 v 0101 | gloss\n"
        "00000002 38 v 01 lose 0 001 ! 00000001 v 0101 | gloss\n"
    )
    (tmp_path / "verb.exc").write_text("")
    (tmp_path / "cntlist.rev").write_text(
        "gain%2:38:00:: 1 9\nattain%2:38:00:: 1 9\nlose%2:38:00:: 1 9\n"
    )

    lexicon = read_wordnet(tmp_path)

    assert lexicon.synonyms["gained"] == ("attained",)
    assert lexicon.opposites["gains"] == ("loses",)
    assert lexicon.participles["attained"] == "attain"
    assert {"gain", "lose"} <= lexicon.common


def test_the_benchmark_prints_a_figure_for_each_kind(tmp_path: Path) -> None:
    texts, wordnet = tmp_path / "texts", tmp_path / "wordnet"
    texts.mkdir()
    (texts / "one.txt").write_text(TEXT)
    wordnet.mkdir()
    for name in ("noun", "verb", "adj", "adv"):
        (wordnet / f"index.{name}").write_text("")
        (wordnet / f"data.{name}").write_text("")
    (wordnet / "cntlist.rev").write_text("")
    (wordnet / "verb.exc").write_text("")
    command = [sys.executable, str(BENCHMARK), str(texts), "--wordnet", str(wordnet)]

    printed = subprocess.run(
        [*command, "--half", "all", "--json"], capture_output=True, text=True, check=True
    ).stdout

    figures = {figure["kind"]: figure for figure in json.loads(printed)}
    assert figures.keys() == set(KINDS)
    assert figures["verbatim"]["share"] == 0
    assert figures["verbatim"]["n"] > 0
    assert 0 <= figures["negation"]["low"] <= figures["negation"]["high"] <= 1
