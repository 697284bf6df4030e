"""``LocalJudge`` where a text is too long, nobody waits any more, or the process forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.errors import JudgeError
from claimspan.judges.local.background import InferenceThread, Stop
from claimspan.judges.local.cross_encoder import CrossEncoder
from claimspan.judges.local.judge import CUT, LocalJudge
from claimspan.judges.local.models import bundled_files
from claimspan.judges.local.reading import Decided, Reads
from claimspan.judges.local.shared_reads import SharedReads, Work
from claimspan.verdicts import Claim

PASSAGE = (
    "The Danube rises in the Black Forest of Germany. It flows southeast for 2,850 km before it "
    "reaches the Black Sea. Ten countries share its course, more than any other river has."
)
LONG = " ".join(f"In the year {at} it was seen that {PASSAGE.lower()}" for at in range(14))


def test_a_claim_longer_than_the_model_reads_is_judged_and_that_is_said() -> None:
    record = RagRecord(
        query="What was seen?",
        chunks=(Chunk(id="a", text=LONG), Chunk(id="b", text=PASSAGE)),
        response="The Danube rises in Germany.",
    )

    class LongClaim(LocalJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            return [Claim(text=LONG), Claim(text="The Danube rises in Germany.")]

    evaluation = evaluate(record, judge=LongClaim())

    assert evaluation.error is None
    assert evaluation.notes[CUT] >= 1


def test_a_claim_and_a_chunk_that_fit_together_leave_no_note() -> None:
    record = RagRecord(
        query="?", chunks=(Chunk(id="a", text=PASSAGE),), response="The Danube rises in Germany."
    )

    assert evaluate(record, judge=LocalJudge()).notes == {}


def test_a_check_that_is_cancelled_frees_the_judge_for_the_next_record() -> None:
    judge = LocalJudge()
    claims = [
        Claim(text=f"The river number {at} is long and rises in Germany.") for at in range(60)
    ]
    chunks = [PASSAGE + f" That was chunk {at}." for at in range(60)]
    small = [Claim(text="The Danube rises in Germany.")]

    async def cancelled_then_small() -> float:
        await judge.check(small, [PASSAGE])
        big = asyncio.ensure_future(judge.check(claims, chunks))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(big, 4)
        began = time.monotonic()
        await judge.check(small, [PASSAGE])
        return time.monotonic() - began

    # The whole of it, 3,600 pairs, would take more than half a minute.
    assert asyncio.run(cancelled_then_small()) < 4


DECIDED = Decided({}, 0, 0)


def nothing_to_read() -> Work:
    def reads() -> Reads:
        yield from ()
        return DECIDED

    return Work(CrossEncoder(bundled_files()), reads())


def test_work_ends_between_two_batches_once_nobody_waits_for_it() -> None:
    shared, begun, ended = SharedReads(InferenceThread()), threading.Event(), threading.Event()

    def endless(stop: Stop) -> Work:
        begun.set()
        try:
            while True:
                stop()
                time.sleep(0.001)
        finally:
            ended.set()

    async def cancel_it() -> Decided:
        task = asyncio.ensure_future(shared.run(endless))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await shared.run(lambda _: nothing_to_read())

    assert asyncio.run(cancel_it()) == DECIDED
    assert ended.wait(20)


def test_work_that_is_cancelled_before_it_begins_is_never_done() -> None:
    shared, go_on, done = SharedReads(InferenceThread()), threading.Event(), list[str]()

    def work(name: str) -> Callable[[Stop], Work]:
        def begin(_: Stop) -> Work:
            go_on.wait(20)
            done.append(name)
            return nothing_to_read()

        return begin

    async def cancel_the_second() -> None:
        first = asyncio.ensure_future(shared.run(work("first")))
        second = asyncio.ensure_future(shared.run(work("second")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await first
        await shared.run(work("third"))

    asyncio.run(cancel_the_second())

    assert done == ["first", "third"]


def test_what_work_raises_comes_to_whoever_waits_for_it() -> None:
    def broken(_: Stop) -> Work:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(SharedReads(InferenceThread()).run(broken))


def test_a_thread_that_has_ended_stops_its_work_and_does_later_work_where_it_is_called() -> None:
    thread, begun, names = InferenceThread(), threading.Event(), list[str]()
    shared = SharedReads(thread)

    def endless(stop: Stop) -> Work:
        begun.set()
        while True:
            stop()
            time.sleep(0.001)

    def later(_: Stop) -> Work:
        names.append(threading.current_thread().name)
        return nothing_to_read()

    async def end_it() -> None:
        task = asyncio.ensure_future(shared.run(endless))
        await asyncio.to_thread(begun.wait, 20)
        await asyncio.to_thread(thread.end)
        with pytest.raises(JudgeError, match="stopped"):
            await task
        await shared.run(later)

    asyncio.run(end_it())

    assert names == [threading.main_thread().name]


def test_a_judge_that_is_let_go_takes_its_thread_along() -> None:
    thread = InferenceThread()
    asyncio.run(SharedReads(thread).run(lambda _: nothing_to_read()))
    worker = thread._thread  # pyright: ignore[reportPrivateUsage]
    assert worker is not None
    del thread

    worker.join(20)
    assert not worker.is_alive()


def _run(code: str, *, first: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import asyncio, os, sys, threading, time, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from claimspan.judges import LocalJudge\n"
        "from claimspan.verdicts import Claim\n"
        f"PASSAGE = {PASSAGE!r}\n"
        "judge = LocalJudge()\n"
        "def check(n=1):\n"
        "    claims = [Claim(text='The Danube rises in Germany.')]\n"
        "    labels = asyncio.run(judge.check(claims, [PASSAGE + f' {at}' for at in range(n)]))\n"
        "    return labels.labels[0][0] == 'entailed'\n"
    )
    return subprocess.run(
        [sys.executable, "-c", first + prelude + code],
        capture_output=True, text=True, check=False, timeout=240, env=os.environ | environment,
    )  # fmt: skip


def test_a_process_ends_after_the_batch_that_it_computes() -> None:
    code = (
        "check()\n"
        "claims = [Claim(text=f'River {at} is long.') for at in range(100)]\n"
        "many = [PASSAGE + str(at) for at in range(100)]\n"
        "work = lambda: asyncio.run(judge.check(claims, many))\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(4)\n"
        "print(time.time(), flush=True)\n"
    )
    ended = _run(code)

    assert time.time() - float(ended.stdout) < 30, ended.stderr  # the whole work takes minutes
    assert ended.returncode == 0, ended.stderr


def test_a_process_ends_in_order_while_a_daemon_thread_still_prepares_its_batch() -> None:
    code = (
        "check()\n"
        "from claimspan.judges import LexicalJudge\n"
        "by_words, begun = LexicalJudge.check_cells, threading.Event()\n"
        "async def slow(self, *given, **named):\n"
        "    verdicts = await by_words(self, *given, **named)\n"
        "    begun.set()\n"
        "    time.sleep(1)\n"
        "    return verdicts\n"
        "LexicalJudge.check_cells = slow\n"
        "claims = [Claim(text=f'River {at} is long.') for at in range(20)]\n"
        "many = [PASSAGE + str(at) for at in range(20)]\n"
        "work = lambda: asyncio.run(judge.check(claims, many))\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "begun.wait(60)\n"
    )
    # Exit hooks run in reverse: this one comes last, and the thread goes on meanwhile.
    ended = _run(code, first="import atexit, time\natexit.register(time.sleep, 2)\n")

    assert ended.returncode == 0, ended.stderr
    assert "InferenceStoppedError" in ended.stderr


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORK = """
def in_child(end):
    pid = os.fork()
    if pid == 0:
        end(0 if check(3) else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"
"""


@needs_fork
@pytest.mark.parametrize("parallelism", ["", "true"])
def test_a_fork_with_a_warm_judge_leaves_one_that_works_on_either_side(parallelism: str) -> None:
    code = FORK + "print(check(5), in_child(os._exit), in_child(sys.exit), check(5))"
    environment = {"TOKENIZERS_PARALLELISM": parallelism} if parallelism else {}
    ended = _run(code, **environment)

    assert ended.stdout.split() == ["True", "0", "0", "True"], ended.stderr


@needs_fork
def test_a_fork_while_the_judge_loads_or_computes_leaves_one_that_works() -> None:
    code = (
        FORK + "judge = LocalJudge(known_bytes=0)\n"
        "def busy():\n"
        "    while True:\n"
        "        check(40)\n"
        "threading.Thread(target=busy, daemon=True).start()\n"
        "print(*[in_child(os._exit) for _ in range(8)], flush=True)\n"
        "os._exit(0)\n"
    )
    ended = _run(code)

    assert ended.stdout.split() == ["0"] * 8, ended.stderr


@needs_fork
def test_a_fork_while_a_thread_reads_a_passage_leaves_a_child_that_can_read_it() -> None:
    code = (
        "from claimspan.judges.local.reading import Passage\n"
        "lock = getattr(vars(Passage)['windows'], 'lock', threading.RLock())\n"
        "held = threading.Event()\n"
        "def hold():\n"
        "    with lock:\n"
        "        held.set()\n"
        "        time.sleep(300)\n"
        "threading.Thread(target=hold, daemon=True).start()\n"
        "held.wait(60)\n" + FORK.replace("check(3)", "Passage(PASSAGE, 'en').windows") + ""
        "print(in_child(os._exit), flush=True)\n"
        "os._exit(0)\n"
    )
    ended = _run(code)

    assert ended.stdout.split() == ["0"], ended.stderr


@needs_fork
def test_children_of_multiprocessing_judge_with_what_their_parent_has_loaded() -> None:
    code = (
        "import multiprocessing\n"
        "def work(number):\n"
        "    sys.exit(0 if check(3) else 1)\n"
        "check()\n"
        "context = multiprocessing.get_context('fork')\n"
        "children = [context.Process(target=work, args=(at,)) for at in range(3)]\n"
        "for child in children: child.start()\n"
        "for child in children: child.join(60)\n"
        "print(*[child.exitcode for child in children], check())\n"
    )
    ended = _run(code)

    assert ended.stdout.split() == ["0", "0", "0", "True"], ended.stderr
