"""The work grows with the text and no faster, and other threads get their turns meanwhile."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage
from claimspan.judges import LexicalJudge
from claimspan.statistics import mean_estimates
from claimspan.text.languages import detect_language
from claimspan.text.sentences import split_prose
from claimspan.verdicts import Claim

from growing_texts import PATTERNS
from linear_time import lets_others_run

# The tracer of the lines would take its share of each time, and twice the time altogether.
pytestmark = pytest.mark.no_cover

# --- time -----------------------------------------------------------------------------------------

MOST: Final = 2.2
"""How much longer twice the work may take: 2 is linear, 4 is quadratic."""

STEPS: Final = ((1_000, 1, 2.1), (1_000, 3, 2.1), (4_000, 2, 2.1), (16_000, 2, MOST))
"""Each pattern is read with so many characters and with four times as many, as often, and looked at
more closely if it grows more than that. Most leave at the first step."""

FEW_SECONDS: Final = 0.008
"""Below that a clock says nothing, and nothing is slow."""

Work = Callable[[str], object]


def _judged(
    query: str = "How long is the Danube?",
    answer: str = "The Danube is 2,850 km long and rises in Germany.",
    chunk: str = "The Danube is 2,850 km long. It rises in Germany, and flows through ten states.",
    ground_truth: str = "The Danube is 2,850 km long.",
) -> object:
    chunks = (Chunk(id="a", text=chunk),)
    record = RagRecord(query=query, chunks=chunks, response=answer, ground_truth=ground_truth)
    return evaluate(record, judge=LexicalJudge())


FIELDS: Final[dict[str, Work]] = {
    "answer": lambda text: _judged(answer=text),
    "chunk": lambda text: _judged(chunk=text),
    "ground truth": lambda text: _judged(ground_truth=text),
    "query": lambda text: _judged(query=text),
}


def _seconds(
    work: Callable[[], object],
    runs: int = 5,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """The least CPU time of some runs, since others use the machine as well."""
    spent: list[float] = []
    for _ in range(runs):
        gc.disable()  # it runs when it likes
        start = clock()
        work()
        spent.append(clock() - start)
        gc.enable()
    return min(spent)


def _grows(work: Work, pattern: str, size: int, runs: int, most: float, *, least: float) -> bool:
    """Whether twice the text takes longer by more than a factor, however often it is read.

    Args:
        work: What is done with the text.
        pattern: What the text repeats.
        size: Characters of it; beside it stands a text that is four times as long.
        runs: How often both are read, one after the other, so that both are slowed by what else the
            machine does; no more if the longer one took little enough.
        most: The factor.
        least: Seconds that a text of no length takes.
    """
    short, long = ((pattern * length)[:length] for length in (size, 4 * size))
    for _ in range(runs):
        less = _seconds(partial(work, short), 1) - least
        more = _seconds(partial(work, long), 1) - least
        if more <= FEW_SECONDS or math.sqrt(more / max(less, more / 99)) <= most:
            return False
    return True


def _slow(work: Work, patterns: Iterable[str], steps: int = len(STEPS)) -> list[str]:
    """The patterns that take more than in proportion to their length, by the first of the steps."""
    work("a")  # what is made once
    least = 0.9 * _seconds(partial(work, "a"))
    return [
        pattern
        for pattern in patterns
        if all(_grows(work, pattern, *step, least=least) for step in STEPS[:steps])
    ]


# A ground truth is read as an answer is, and as a chunk is: some of the patterns tell that it is.
@pytest.mark.parametrize(
    ("field", "patterns"),
    [
        ("answer", PATTERNS),
        ("chunk", PATTERNS),
        ("query", PATTERNS),
        ("ground truth", PATTERNS[::4]),
    ],
    ids=["answer", "chunk", "query", "ground truth"],
)
def test_twice_the_text_takes_about_twice_the_time_whatever_it_repeats(
    field: str, patterns: Sequence[str]
) -> None:
    assert _slow(FIELDS[field], patterns) == []
    assert len(patterns) > 100


HEADS: Final = ("(see ", "[1] [", "Sources", "Source: ", "https://a", "Answer: ", "```", "Yes", "$")
"""Beginnings behind which a pattern, and an end that fits nothing, may be read again and again."""


@pytest.mark.parametrize("head", HEADS)
def test_what_stands_before_a_run_of_one_sign_makes_it_take_no_longer(head: str) -> None:
    assert _slow(lambda text: _judged(answer=f"{head}{text}x"), (*" -*\n1", "a ", "\u00a0")) == []


def test_an_answer_that_is_an_open_fence_without_code_claims_nothing() -> None:
    assert asyncio.run(LexicalJudge().extract_claims("```\n\n\n")) == []


def test_work_that_grows_with_the_square_is_found() -> None:
    def looks_back(text: str) -> object:
        return [text.count("ab", 0, place) for place in range(len(text))]

    def looks_near(text: str) -> object:
        return [text.count("ab", place, place + 200) for place in range(len(text) // 2)]

    assert _slow(looks_back, ["a"], steps=3) == ["a"]
    assert _slow(looks_near, ["a"], steps=3) == []


# --- turns of other threads -----------------------------------------------------------------------

HOSTILE: Final = (
    "“!", '!"', "![", "'", "؟", "«a ", "a", " ", "\n", "|", "`a` ", "1990s ", "北京", "1'234 ",
    "\\(",
)  # fmt: skip
"""Patterns that libraries in native code, and regular expressions, read slowly."""


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_step_of_a_judge_keeps_other_threads_waiting(pattern: str) -> None:
    text = (pattern * 64_000)[:64_000]

    assert lets_others_run(lambda: _judged(answer=text[:-1], chunk=text))


LANGUAGES: Final = {
    "English": "The Danube rises in Germany. It flows through ten countries, e.g. Austria. ",
    "Chinese": "北京是中国的首都，它有很多历史。人口很多！",
    "Hindi": "दिल्ली भारत की राजधानी है। यह बड़ा है। ",
}


def test_the_language_of_a_long_text_takes_no_longer_than_that_of_a_page() -> None:
    page = LANGUAGES["English"] * 100
    one, many = (_seconds(partial(detect_language, page * n)) for n in (1, 100))
    assert many < 20 * one + 0.05


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_event_loop_gets_its_turns_while_long_references_are_read(
    language: str,
) -> None:
    references = [(LANGUAGES[language] * 100_000)[:100_000]] * 3

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
        return _seconds(lambda: asyncio.run(open_at_once(n)))

    # Twice as much as linear work: the memory's caches are not linear either.
    assert seconds(800) < 8 * seconds(200)


def test_intervals_of_many_means_take_no_more_cpu_a_record_than_those_of_few() -> None:
    def seconds(n: int) -> float:
        columns = [[(row * 7 + column) % 11 / 10 for row in range(n)] for column in range(11)]
        # Of all threads: a library may compute on threads of its own.
        return _seconds(lambda: mean_estimates(columns), clock=time.process_time)

    assert seconds(1_200) < 8 * seconds(300)


@pytest.mark.parametrize("code", [0xD800, 0xDFFF])
def test_half_of_a_surrogate_pair_fails_no_record(code: int) -> None:
    half = chr(code)
    text = f"The Danube{half} rises in Germany. {half}It flows{half} through ten countries."
    assert "".join(split_prose(text, "en")).replace(" ", "") == text.replace(" ", "")
    chunk = Chunk.model_construct(id="a", text=text, score=None, metadata={})
    record = RagRecord(query=f"?{half}", chunks=(chunk,), response=text)
    assert evaluate(record, judge=LexicalJudge()).metrics["faithfulness"] == 1.0
