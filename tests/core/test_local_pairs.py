"""Which pairs the model of ``LocalJudge`` computes: each once, those of all records together."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pydoc_data.topics import topics

import pytest

from claimspan.errors import ConfigError, JudgeError
from claimspan.judges.local.background import InferenceThread, Stop, never
from claimspan.judges.local.cross_encoder import (
    CrossEncoder,
    KnownLogits,
    PairCounts,
    PairLogits,
    TextPair,
)
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.local.models import bundled_files
from claimspan.judges.local.reading import Decided, Reads
from claimspan.judges.local.shared_reads import SharedReads, Work
from claimspan.verdicts import Claim, VerdictMatrix

PASSAGE = (
    "The Danube rises in the Black Forest of Germany. It flows southeast for 2,850 km before it "
    "reaches the Black Sea. Ten countries share its course, more than any other river has."
)
CLAIM = "Many countries have a part of the river."
PAIRS = [(f"River {at} is long.", PASSAGE) for at in range(3)]


class CountingEncoder(CrossEncoder):
    """Notes how many pairs come at a time."""

    def __init__(self) -> None:
        super().__init__(bundled_files())
        self.sizes = list[int]()

    def read(self, pairs: Sequence[TextPair], stop: Stop = never) -> list[PairLogits]:
        self.sizes.append(len(pairs))
        return super().read(pairs, stop)


@cache
def _encoder() -> CountingEncoder:
    return CountingEncoder()


def _check(judge: LocalJudge, *claims: str) -> VerdictMatrix:
    return asyncio.run(judge.check([Claim(text=claim) for claim in claims], [PASSAGE]))


def test_the_logits_of_a_pair_are_the_same_alone_and_beside_any_others() -> None:
    chance = random.Random(7)
    words = " ".join(topics[name] for name in sorted(topics)[:6]).split()
    pairs = [
        (" ".join(words[at : at + 7]), " ".join(words[at : at + chance.choice((20, 21, 60))]))
        for at in range(0, 240, 10)
    ]
    encoder = CrossEncoder(bundled_files(), known_bytes=0)

    alone = [encoder.logits([pair])[0] for pair in pairs]

    assert encoder.logits(pairs) == alone
    assert encoder.logits(pairs[::-1]) == alone[::-1]


def test_a_pair_that_comes_again_is_not_computed_again_and_has_the_same_verdict() -> None:
    judge = LocalJudge()

    first, again = _check(judge, CLAIM), _check(judge, "Rivers may freeze.", CLAIM)

    assert again[1] == first[0]
    assert judge.pairs == PairCounts(asked=3, read=3, run=2)


def test_a_judge_may_keep_nothing() -> None:
    judge = LocalJudge(known_bytes=0)

    assert _check(judge, CLAIM) == _check(judge, CLAIM)
    assert judge.pairs == PairCounts(asked=2, read=2, run=2)
    with pytest.raises(ConfigError, match="known_bytes"):
        LocalJudge(known_bytes=-1)


def test_a_claim_that_the_passage_says_word_for_word_is_asked_and_not_read() -> None:
    judge = LocalJudge()
    _check(judge, "It flows southeast for 2,850 km before it reaches the Black Sea.")

    assert judge.pairs == PairCounts(asked=1, read=0, run=0)


def test_a_long_passage_that_shares_no_word_with_a_claim_is_read_all_the_same() -> None:
    # More than 60 words: it may still say the claim in words of its own.
    passage = " ".join([PASSAGE] * 3)
    judge = LocalJudge()
    claim = Claim(text="Numerous nations border this waterway.")

    asyncio.run(judge.check([claim], [passage]))

    assert judge.pairs == PairCounts(asked=1, read=1, run=1)


def test_logits_are_known_exactly_until_their_memory_is_used_up() -> None:
    known = KnownLogits(max_bytes=600)
    logits = [0.1, -2.5, 7.25, 1e-3]
    for pair in PAIRS:
        known.put(pair, PairLogits(logits, cut=True))
        assert known.get(PAIRS[0]) or pair == PAIRS[2]

    assert len(known) == 2
    assert [known.get(pair) is None for pair in PAIRS] == [False, True, False]
    found = known.get(PAIRS[2])
    assert found is not None
    assert found.cut
    assert found.logits == pytest.approx(logits, rel=1e-6)


def test_two_pairs_with_the_same_letters_are_not_taken_for_one() -> None:
    known = KnownLogits()
    known.put(("ab", "c"), PairLogits([1.0], cut=False))

    assert known.get(("a", "bc")) is None


def _reads(pairs: Sequence[TextPair]) -> Reads:
    found = yield pairs
    return Decided({}, len(found), sum(each.cut for each in found))


def test_records_that_are_judged_at_once_share_their_batches() -> None:
    shared, second_waits = SharedReads(InferenceThread()), threading.Event()
    encoder = _encoder()
    encoder.sizes.clear()

    def first(_: Stop) -> Work:
        second_waits.wait(60)
        return Work(encoder, _reads(PAIRS[:2]))

    async def both() -> tuple[Decided, Decided]:
        one = asyncio.ensure_future(shared.run(first))
        other = asyncio.ensure_future(shared.run(lambda _: Work(encoder, _reads(PAIRS))))
        await asyncio.sleep(0)
        second_waits.set()
        return await asyncio.gather(one, other)

    assert [each.n_read for each in asyncio.run(both())] == [2, 3]
    assert encoder.sizes == [5]


class _PanicError(BaseException):
    """As a panic of native code is, which is no ``Exception``."""


class _Panics(str):
    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise _PanicError


def test_a_panic_of_native_code_fails_its_own_record_and_no_other() -> None:
    shared = SharedReads(InferenceThread())

    async def both() -> Decided:
        broken = shared.run(lambda _: Work(_encoder(), _reads([(_Panics("a"), PASSAGE)])))
        with pytest.raises(JudgeError, match="_PanicError"):
            await asyncio.wait_for(broken, 60)
        return await shared.run(lambda _: Work(_encoder(), _reads(PAIRS)))

    assert asyncio.run(both()).n_read == 3


def test_a_record_that_fills_its_batches_is_read_to_its_end_before_the_next_one() -> None:
    shared, has_begun, all_wait = (
        SharedReads(InferenceThread()),
        threading.Event(),
        threading.Event(),
    )
    read = list[str]()

    def begin(name: str) -> Callable[[Stop], Work]:
        def reads() -> Reads:
            for _ in range(3):
                yield PAIRS * 4
                read.append(name)
            return Decided({}, 36, 0)

        def work(_: Stop) -> Work:
            has_begun.set()
            all_wait.wait(60)
            return Work(_encoder(), reads())

        return work

    async def all_at_once() -> None:
        waiting = [asyncio.ensure_future(shared.run(begin(name))) for name in ("one", "two")]
        await asyncio.to_thread(has_begun.wait, 60)
        waiting.append(asyncio.ensure_future(shared.run(begin("begun before"), goes_on=True)))
        await asyncio.sleep(0)
        all_wait.set()
        await asyncio.gather(*waiting)

    asyncio.run(all_at_once())

    assert read == ["one"] * 3 + ["begun before"] * 3 + ["two"] * 3


def test_a_record_that_nobody_waits_for_any_more_is_left_out_from_the_next_turn_on() -> None:
    shared, second_waits = SharedReads(InferenceThread()), threading.Event()
    is_cancelled, read = threading.Event(), list[str]()

    def reads(name: str, first_turn_over: Callable[[], object]) -> Reads:
        yield PAIRS[:1]
        read.append(name)
        first_turn_over()
        yield PAIRS[1:2]
        read.append(name)
        yield PAIRS[2:]
        read.append(name)
        return Decided({}, 3, 0)

    async def cancel_the_second() -> Decided:
        loop = asyncio.get_running_loop()

        def first(_: Stop) -> Work:
            second_waits.wait(60)
            return Work(_encoder(), reads("one", lambda: None))

        def cancel() -> None:
            loop.call_soon_threadsafe(other.cancel)
            is_cancelled.wait(60)

        one = asyncio.ensure_future(shared.run(first))
        other = asyncio.ensure_future(
            shared.run(lambda _: Work(_encoder(), reads("other", cancel)))
        )
        await asyncio.sleep(0)
        second_waits.set()
        with pytest.raises(asyncio.CancelledError):
            await other
        is_cancelled.set()
        return await one

    assert asyncio.run(cancel_the_second()).n_read == 3
    assert read == ["one", "other", "one", "one"]


def test_a_record_that_fails_takes_no_other_along() -> None:
    shared, second_waits = SharedReads(InferenceThread()), threading.Event()
    broken: TextPair = ("a claim", 7)  # type: ignore[assignment] # pyright: ignore[reportAssignmentType] - the fault

    def first(_: Stop) -> Work:
        second_waits.wait(60)
        return Work(_encoder(), _reads([broken]))

    async def both() -> tuple[Decided | BaseException, Decided | BaseException]:
        one = asyncio.ensure_future(shared.run(first))
        other = asyncio.ensure_future(shared.run(lambda _: Work(_encoder(), _reads(PAIRS))))
        await asyncio.sleep(0)
        second_waits.set()
        return await asyncio.gather(one, other, return_exceptions=True)

    failed, read = asyncio.run(both())
    assert isinstance(failed, Exception)
    assert isinstance(read, Decided)
    assert read.n_read == 3
