"""What the lexical judge keeps and reads once changes no verdict."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from claimspan.judges import LexicalJudge
from claimspan.judges.lexical.coverage import Corpus, Reference, Wording
from claimspan.judges.lexical.readings import KeptReferences
from claimspan.judges.protocol import AnswerText
from claimspan.text.words import tokenize
from claimspan.verdicts import Claim, VerdictMatrix

from realistic_answers import read_cases

CASES: Final = Path(__file__).resolve().parents[1] / "benchmarks" / "realistic" / "aside.jsonl"
WORDS: Final = "the a ship sank in 1912 1913 not never unsafe safe Ana Ben cost $5 of ten".split()


RECORDS: Final = [case.record for case in read_cases(CASES)[:60]]
CHUNKS: Final = [chunk.text for record in RECORDS for chunk in record.chunks]


def _all_against_all(judge: LexicalJudge) -> VerdictMatrix:
    claims = [Claim(text=record.response) for record in RECORDS]
    return asyncio.run(judge.check(claims, CHUNKS, question="What is said?"))


TEXTS: Final = st.lists(st.sampled_from([*WORDS, ".", "\n\n"]), max_size=400).map(" ".join)


@settings(max_examples=50)
@given(text=TEXTS, claim=st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_the_support_is_the_window_and_the_sentence_with_most_weight(text: str, claim: str) -> None:
    reference = Reference(text, "en")
    weights = Corpus([reference]).weights(tokenize(claim))
    total = _added(weights.values())
    tokens = reference.tokens
    starts = range(0, max(len(tokens) - 60, 1), 60)
    windows = [{token.stem for token in tokens[start : start + 120]} for start in starts]
    most = max(_weight(weights, window) for window in windows)
    support = reference.support(weights)
    assert support.coverage == (most / total if total and tokens else 0.0)
    in_window = _weight(weights, {token.stem for token in support.sentence})
    sentences = [words for _, words in reference.sentences if set(words) <= set(support.window)]
    assert in_window >= max((_weight(weights, each.stems) for each in sentences), default=0.0)


def _weight(weights: dict[str, float], stems: set[str] | frozenset[str]) -> float:
    return _added(weight for stem, weight in weights.items() if stem in stems)


def _added(weights: Iterable[float]) -> float:
    # One after the other: `sum` rounds otherwise from Python 3.12 on.
    return reduce(add, weights, 0.0)


# --- references that are kept ---


async def test_the_references_read_last_are_kept_within_a_bound_of_memory() -> None:
    texts = [f"Chunk {number}. {'It is long. ' * 80}" for number in range(30)]
    kept = KeptReferences(most_bytes=10 * 36 * len(texts[0]))
    first = await kept.read(texts[0], "en")
    for text in texts[1:9]:
        await kept.read(text, "en")
    assert await kept.read(texts[0], "en") is first
    for text in texts[9:]:
        await kept.read(text, "en")
    assert await kept.read(texts[0], "en") is not first


async def test_a_reference_larger_than_the_bound_drops_no_other() -> None:
    kept = KeptReferences(most_bytes=20_000)
    first = await kept.read("It is short.", "en")
    await kept.read("It is long. " * 1_000, "en")
    assert await kept.read("It is short.", "en") is first


async def test_an_answer_is_read_but_not_kept_since_answers_do_not_repeat() -> None:
    kept = KeptReferences()
    passage, answer = "Ana built the ship.", AnswerText("Ben built the ship.")
    first = await kept.read(passage, "en"), await kept.read(answer, "en")
    again = await kept.read(passage, "en"), await kept.read(answer, "en")
    assert again[0] is first[0]
    assert again[1] is not first[1]


async def test_the_same_text_in_another_language_is_read_again() -> None:
    kept = KeptReferences()
    english = await kept.read("Die Bank ist alt.", "en")
    assert await kept.read("Die Bank ist alt.", "de") is not english


def test_a_judge_in_another_process_starts_without_the_texts_of_this_one() -> None:
    judge = LexicalJudge()
    asyncio.run(judge.check([Claim(text="It is secret.")], ["The secret is out."]))
    assert b"secret" not in pickle.dumps(judge)


def test_a_judge_that_has_read_other_records_gives_the_same_verdicts() -> None:
    used = LexicalJudge()
    _all_against_all(used)
    assert _all_against_all(used) == _all_against_all(LexicalJudge())


def test_what_a_function_finds_in_words_is_found_once() -> None:
    calls: list[Wording] = []

    def find_nothing(words: Wording) -> None:
        calls.append(words)

    words = Wording(tokenize("Iron rusts."))
    words.read(find_nothing)
    words.read(find_nothing)
    assert calls == [words]


def test_a_forked_child_judges_while_a_thread_of_its_parent_reads_a_reference() -> None:
    judge = LexicalJudge()
    claims = [Claim(text="The ship sank in 1912.")]
    with judge._kept._lock:  # pyright: ignore[reportPrivateUsage] - what another thread holds
        child = os.fork()
        if not child:
            judging = threading.Thread(
                target=lambda: asyncio.run(judge.check(claims, ["The ship sank in 1912."])),
                daemon=True,
            )
            judging.start()
            judging.join(10)
            os._exit(judging.is_alive())
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
