"""The work grows with the text and no faster, and the event loop gets its turns meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage
from claimspan.judges import LexicalJudge
from claimspan.judges.lexical.coverage import Reference
from claimspan.quantities import read_values
from claimspan.statistics import mean_estimates
from claimspan.text.citations import is_footer
from claimspan.text.languages import detect_language
from claimspan.text.refusals import declined
from claimspan.text.sentences import split_prose
from claimspan.text.shown import without_shown
from claimspan.text.words import tokenize
from claimspan.verdicts import Claim

TEXTS: Final = {
    "Chinese": "北京是中国的首都，它有很多历史。人口很多！",
    "Japanese": "東京は日本の首都です。大きいです。",
    "Hindi": "दिल्ली भारत की राजधानी है। यह बड़ा है। ",
    "Thai": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย ",
    "list": "1. a ",
    "abbreviations": "so e.g. a ",
    "dots": "a.",
    "one word": "a",
    "ordinals": "Am 3. Mai und am 4. Juni ",
    "English": "The Danube rises in Germany. It flows through ten countries, e.g. Austria. ",
}
LENGTH: Final = 10_000
# Four times the text: linear work gives 4, quadratic work 16. Best of several runs, since others
# use the machine as well; the memory's caches are not linear either.
TIMES: Final = 4
MOST: Final = 8.0


def _seconds(
    work: Callable[[str], object], text: str, clock: Callable[[], float] = time.thread_time
) -> float:
    return min(_timed(work, text, clock) for _ in range(5))


def _timed(work: Callable[[str], object], text: str, clock: Callable[[], float]) -> float:
    gc.collect()
    gc.disable()  # it runs when it likes
    start = clock()
    work(text)
    spent = clock() - start
    gc.enable()
    return spent


def _split(text: str) -> list[str]:
    return split_prose(text, "en")


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(
    "work",
    [_split, tokenize, Reference],
    ids=["split_prose", "tokenize", "Reference"],
)
def test_the_work_grows_with_the_text_and_no_faster(
    kind: str, work: Callable[[str], object]
) -> None:
    text = (TEXTS[kind] * LENGTH)[:LENGTH]
    once, more = _seconds(work, text), _seconds(work, text * TIMES)
    # Below a few milliseconds the clock says nothing, and nothing is slow.
    assert more < 0.04 or more < MOST * once


def _slovenian(text: str) -> object:
    return tokenize(text, "sl")


def _without_shown(text: str) -> object:
    return without_shown(f"So it is.\n{text}", [text])


@pytest.mark.parametrize(
    "part",
    [
        "a\n",
        "- a b c d.\n",
        "(",
        ": ",
        "[a](",
        "a…",
        "nicht ",
        "ne ni no non, ",
        "ません",
        " \t",
        "prices ",
    ],
)
@pytest.mark.parametrize(
    "work", [_without_shown, declined, is_footer], ids=["without_shown", "declined", "is_footer"]
)
def test_what_stands_beside_an_answer_is_looked_for_in_linear_time(
    work: Callable[[str], object], part: str
) -> None:
    text = (part * LENGTH)[:LENGTH]
    once, more = _seconds(work, text), _seconds(work, text * TIMES)
    assert more < 0.04 or more < MOST * once


@pytest.mark.parametrize(
    ("work", "part", "length"),
    [(_slovenian, "a", 1_000), (read_values, "3/5/2021 and 1/3 and ", 20_000)],
    ids=["Slovenian word", "dates and shares"],
)
def test_one_long_word_and_many_values_are_read_in_linear_time(
    work: Callable[[str], object], part: str, length: int
) -> None:
    text = (part * length)[:length]
    once, more = _seconds(work, text), _seconds(work, text * TIMES)
    assert more < 0.04 or more < MOST * once


def test_the_language_of_a_long_text_takes_no_longer_than_that_of_a_page() -> None:
    page = TEXTS["English"] * 100
    assert _seconds(detect_language, page * 100) < 20 * _seconds(detect_language, page) + 0.05


@pytest.mark.parametrize("kind", ["English", "Chinese", "Hindi"])
def test_the_event_loop_gets_its_turns_while_long_references_are_read(kind: str) -> None:
    references = [(TEXTS[kind] * 100_000)[:100_000]] * 3

    async def turns() -> int:
        checked = LexicalJudge().check([Claim(text="The Danube rises in Germany.")], references)
        done = asyncio.ensure_future(checked)
        count = 0
        while not done.done():
            count += 1
            await asyncio.sleep(0)
        await done
        return count

    assert asyncio.run(turns()) > 30


def test_a_call_costs_the_same_however_many_are_open_on_its_budget() -> None:
    async def open_at_once(n: int) -> None:
        budget, opened, end = Budget(per_day=1e6), asyncio.Semaphore(0), asyncio.Event()

        async def call() -> None:
            async with budget.reserve(Usage(calls=1, input_tokens=1000, cost_usd=0.001)):
                opened.release()
                await end.wait()

        calls = [asyncio.ensure_future(call()) for _ in range(n)]
        for _ in range(n):
            await opened.acquire()
        end.set()
        await asyncio.gather(*calls)

    def seconds(n: int) -> float:
        return _seconds(lambda _: asyncio.run(open_at_once(n)), "")

    assert seconds(200 * TIMES) < MOST * seconds(200)


def test_intervals_of_many_means_take_no_more_cpu_a_record_than_those_of_few() -> None:
    def seconds(n: int) -> float:
        columns = [[(row * 7 + column) % 11 / 10 for row in range(n)] for column in range(11)]
        # Of all threads: a library may compute on threads of its own.
        return _seconds(lambda _: mean_estimates(columns), "", time.process_time)

    assert seconds(300 * TIMES) < MOST * seconds(300)


@pytest.mark.parametrize("code", [0xD800, 0xDFFF])
def test_half_of_a_surrogate_pair_fails_no_record(code: int) -> None:
    half = chr(code)
    text = f"The Danube{half} rises in Germany. {half}It flows{half} through ten countries."
    assert "".join(split_prose(text, "en")).replace(" ", "") == text.replace(" ", "")
    chunk = Chunk.model_construct(id="a", text=text, score=None, metadata={})
    record = RagRecord(query=f"?{half}", chunks=(chunk,), response=text)
    assert evaluate(record, judge=LexicalJudge()).metrics["faithfulness"] == 1.0
