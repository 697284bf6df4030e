"""What ``LocalJudge`` promises to its callers, with the bundled weights."""

from __future__ import annotations

import asyncio
import logging
import math
import subprocess
import sys
import threading

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.errors import ConfigError
from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import OTHER_LANGUAGE, LocalJudge
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix
from claimspan_local_weights import FOLDER

JUDGE = LocalJudge()
DECIDED = LocalJudge(sure_from=0.5)
"""Leaves nothing undecided."""

PASSAGE = (
    "The Danube rises in the Black Forest of Germany. It flows southeast for 2,850 km before it "
    "reaches the Black Sea. Ten countries share its course, more than any other river has."
)


def _check(claims: list[str], references: list[str], judge: LocalJudge = JUDGE) -> VerdictMatrix:
    return asyncio.run(judge.check([Claim(text=claim) for claim in claims], references))


def _verdict(claim: str, reference: str, judge: LocalJudge = JUDGE) -> Verdict:
    verdict = _check([claim], [reference], judge)[0][0]
    assert verdict is not None
    return verdict


def test_it_is_a_judge_with_a_stable_name() -> None:
    assert isinstance(JUDGE, Judge)
    assert JUDGE.name == "local"
    assert JUDGE.version


def test_its_claims_are_those_of_the_lexical_judge() -> None:
    text = "Ada was born in 1950 and moved to Paris in 1970. Is that all?"

    assert asyncio.run(JUDGE.extract_claims(text)) == asyncio.run(
        LexicalJudge().extract_claims(text)
    )


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        (
            "The application must be submitted within 30 days of the notification.",
            "The appli-\ncation must be submitted within 30 days of the noti-\nfication.",
        ),
        (
            "Employees may carry over five days of unused vacation.",
            "Employees may carry over up to five days of unused vaca-\ntion into the next year.",
        ),
        (
            "It is a state-of-the-art system with low-cost sensors.",
            "It is a state-of-the-\nart system with low-\ncost sensors.",
        ),
    ],
)
def test_words_that_the_lines_of_a_page_break_are_read_as_the_claim_has_them(
    claim: str, page: str
) -> None:
    assert _verdict(claim, page).label is Label.ENTAILED


@pytest.mark.parametrize(
    "claim",
    [
        "The Danube rises in Germany.",
        "The river flows for 2,850 km.",
        "The Danube flows into the Black Sea.",
    ],
)
def test_what_a_chunk_says_is_entailed(claim: str) -> None:
    assert _verdict(claim, PASSAGE).label == Label.ENTAILED


@pytest.mark.parametrize(
    "claim",
    [
        "The river flows for 1,200 km.",
        "The Danube rises in Spain.",
        "The Danube is not in Germany.",
    ],
)
def test_what_a_chunk_denies_is_not_entailed(claim: str) -> None:
    assert _verdict(claim, PASSAGE, DECIDED).label != Label.ENTAILED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The river flows for 1,200 km.", PASSAGE),
        (
            "FlexiSave pays 4.2% interest per year on balances up to €50,000.",
            "The FlexiSave account pays 2.4% interest per year on balances up to €50,000.",
        ),
    ],
)
def test_a_number_that_a_chunk_gives_otherwise_is_never_entailed_and_at_most_unsure(
    claim: str, reference: str
) -> None:
    left_open = _check([claim], [reference])[0][0]

    assert _verdict(claim, reference, DECIDED).label != Label.ENTAILED
    assert left_open is None or left_open.label != Label.ENTAILED


def test_a_value_in_another_form_is_read_as_the_chunk_has_it() -> None:
    chunk = "A guided tour in English starts at 3 pm. Take 500 mg of salt for each litre."

    assert _verdict("The tour in English starts at 15:00.", chunk).label is Label.ENTAILED
    assert _verdict("Take 0.5 g of salt for each litre.", chunk).label is Label.ENTAILED
    assert _verdict("The tour in English starts at 16:00.", chunk, DECIDED).label != Label.ENTAILED


def test_another_matter_is_neutral() -> None:
    verdict = _verdict("Bananas are rich in potassium.", PASSAGE)

    assert verdict.label == Label.NEUTRAL


def test_the_shape_is_that_of_claims_and_references() -> None:
    assert _check(["The Danube is long."], [PASSAGE, "", "Nothing of it."]).shape == (1, 3)
    assert _check([], [PASSAGE]).shape == (0, 1)
    assert _check(["The Danube is long."], []).shape == (1, 0)


def test_half_of_a_surrogate_pair_is_read_as_an_unknown_character() -> None:
    assert _verdict("The Danube rises in Germany.", f"\ud83d {PASSAGE}").label is Label.ENTAILED


def test_an_empty_reference_entails_nothing() -> None:
    matrix = _check(["The Danube rises in Germany."], ["", "   \n"])

    assert Label.ENTAILED not in matrix.labels[0]


def test_probabilities_sum_to_one_and_the_label_is_the_largest() -> None:
    for verdict in _check(["The Danube rises in Germany.", "It is blue."], [PASSAGE]).verdicts():
        assert verdict is not None
        shares = {
            Label.ENTAILED: verdict.entailed or 0.0,
            Label.NEUTRAL: verdict.neutral or 0.0,
            Label.CONTRADICTED: verdict.contradicted or 0.0,
        }
        assert math.isclose(sum(shares.values()), 1.0)
        assert verdict.label == max(shares, key=shares.__getitem__)


def test_a_verdict_does_not_depend_on_what_else_is_asked() -> None:
    alone = _verdict("The Danube rises in Germany.", PASSAGE)
    asked = ["It has 3 banks.", "The Danube rises in Germany.", "The Danube rises in Germany."]
    among = _check(asked, [PASSAGE])

    assert among[1] == among[2]
    verdict = among[1][0]
    assert verdict is not None
    assert verdict.entailed == pytest.approx(alone.entailed, abs=0.05)


def test_evidence_at_the_end_of_a_long_reference_is_found() -> None:
    filler = "The town holds a market every second week, and visitors come from the villages. " * 40

    assert _verdict("The Danube rises in Germany.", filler + PASSAGE).label == Label.ENTAILED


def test_what_it_is_not_sure_of_can_be_left_open() -> None:
    claims = ["The Danube rises in Germany.", "Ten countries like the river more than any other."]
    every, sure = (_check(claims, [PASSAGE], LocalJudge(sure_from=share)) for share in (0.5, 0.999))

    assert None not in list(every.verdicts())
    assert list(sure.verdicts()) == [None, None]


def test_other_languages_are_judged_by_their_words_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    claim = "Donava izvira v Nemčiji."
    passage = (
        "Donava izvira v Schwarzwaldu v Nemčiji in teče proti jugovzhodu, preden po 2850 km doseže "
        "Črno morje. Njen tok si deli deset držav, kar je več kot pri katerikoli drugi reki."
    )
    judge = LocalJudge()
    with caplog.at_level(logging.WARNING, logger="claimspan"):
        first, second = _check([claim], [passage], judge), _check([claim], [passage], judge)

    words = asyncio.run(LexicalJudge().check([Claim(text=claim)], [passage]))
    assert first == second == words
    assert [record.message for record in caplog.records if "English" in record.message] == [
        "the local judge knows English only: texts in other languages are judged by their "
        "words, numbers and names alone"
    ]


def test_a_chunk_in_another_language_leaves_the_english_ones_to_the_model() -> None:
    claims = ["The Danube rises in Germany.", "Die Donau entspringt in Deutschland."]
    german = "Die Donau entspringt im Schwarzwald in Deutschland und durchquert zehn Länder."

    both = _check(claims, [PASSAGE, german])
    words = asyncio.run(
        LexicalJudge().check([Claim(text=each) for each in claims], [PASSAGE, german])
    )

    assert both.rows[0][0] == _check(claims[:1], [PASSAGE]).rows[0][0] != words.rows[0][0]
    assert (both.rows[0][1], *both.rows[1]) == (words.rows[0][1], *words.rows[1])


@pytest.mark.parametrize(
    ("chunk", "response", "notes"),
    [
        ("Der Fluss ist lang.", "Der Fluss ist lang.", {OTHER_LANGUAGE: 1}),
        ("De hoofdstad is Amsterdam.", "Amsterdam is de hoofdstad.", {OTHER_LANGUAGE: 1}),
        ("| Name | EUR |\n|---|---|\n| Widget | 12 |", "The widget costs 12 EUR.", {}),
        ("```\nfor x in xs:\n    print(x)\n```", "It prints each element.", {}),
        ("Marie Curie", "Marie Curie discovered radium.", {}),
    ],
)
def test_short_texts_tables_and_code_get_the_note_where_they_are_not_english(
    chunk: str, response: str, notes: dict[str, int]
) -> None:
    record = RagRecord(query="?", chunks=(Chunk(id="a", text=chunk),), response=response)
    assert evaluate(record, judge=LocalJudge()).notes == notes


@pytest.mark.parametrize(
    ("chunk", "response", "notes"),
    [
        (
            "Donava izvira v Schwarzwaldu v Nemčiji in teče proti jugovzhodu, preden po 2850 km "
            "doseže Črno morje. Njen tok si deli deset držav, kar je več kot pri drugih rekah.",
            "Donava izvira v Nemčiji.",
            {OTHER_LANGUAGE: 1},
        ),
        (PASSAGE, "The Danube rises in Germany.", {}),
    ],
)
def test_an_evaluation_says_where_it_rests_on_words_alone(
    chunk: str, response: str, notes: dict[str, int]
) -> None:
    record = RagRecord(query="?", chunks=(Chunk(id="a", text=chunk),), response=response)
    assert evaluate(record, judge=LocalJudge()).notes == notes


def test_the_event_loop_stays_free_while_it_reads() -> None:
    async def turns_while_checking() -> int:
        done = asyncio.ensure_future(
            JUDGE.check([Claim(text="It is long.")], [f"{PASSAGE} Copy {at}." for at in range(8)])
        )
        turns = 0
        while not done.done():
            turns += 1
            await asyncio.sleep(0)
        await done
        return turns

    assert asyncio.run(turns_while_checking()) > 20


def test_threads_may_share_a_judge() -> None:
    judge, found = LocalJudge(), list[VerdictMatrix]()
    threads = [
        threading.Thread(
            target=lambda: found.append(_check(["The Danube is long."], [PASSAGE], judge))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert all(each == found[0] for each in found)


def test_it_still_answers_while_the_interpreter_ends() -> None:
    script = (
        "import asyncio, atexit\n"
        "from claimspan.judges.local import LocalJudge\n"
        "from claimspan.verdicts import Claim\n"
        "judge = LocalJudge()\n"
        "def last():\n"
        "    claims = [Claim(text='The Danube is long.')]\n"
        "    print(asyncio.run(judge.check(claims, ['The Danube is a long river.'])).shape)\n"
        "atexit.register(last)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )

    assert ended.stdout.strip() == "(1, 1)"


def test_importing_the_judge_loads_no_runtime() -> None:
    script = (
        "import sys, claimspan.judges.local\n"
        "print([name for name in ('onnxruntime', 'tokenizers', 'numpy') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == "[]"


def test_the_weights_are_small_and_come_with_a_card() -> None:
    assert (FOLDER / "local.onnx").stat().st_size <= 40_000_000
    assert "licence" in (FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8").lower()


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="threads"):
        LocalJudge(threads=0)
    with pytest.raises(ConfigError, match="sure_from"):
        LocalJudge(sure_from=1.5)
