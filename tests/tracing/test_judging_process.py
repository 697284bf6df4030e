"""``Monitor(worker="process")``: the judge works in a process of its own, with the same results."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig

from claimspan import Chunk, Claim, Evaluation, RagRecord, VerdictMatrix
from claimspan.cost import Usage
from claimspan.cost.budget import Budget, current_budget
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.selection import Selection
from claimspan.judges import LexicalJudge, default_judge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Monitor
from claimspan_tracing.dispatch import process as judging
from claimspan_tracing.dispatch.process import JudgeProcess, spec_of
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor
from portable_judges import COST, Obeys, Reserves, Spends, asked, is_alive, pid_in

from exit_judges import Slow
from judge_server import judge_server
from lc_pipelines import rag_chain
from scripted import ScriptedJudge as NotPortable

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="reads the state of processes from /proc"
)

SECONDS = 60.0
"""No test waits for longer; a busy machine takes seconds to start a process."""


def ask(monitor: Monitor, *questions: str) -> None:
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    for question in questions:
        rag_chain().invoke(question, config)


def judged(monitor: InMemoryMonitor, *questions: str) -> list[CapturedRecord]:
    ask(monitor, *questions)
    return monitor.records(SECONDS)


def test_the_evaluation_is_that_of_a_thread() -> None:
    found: list[CapturedRecord] = []
    for worker in ("thread", "process"):
        with InMemoryMonitor(judge=LexicalJudge(), worker=worker) as monitor:
            found += judged(monitor, "How old is the bridge?")
    here, there = (each.outcome.evaluation for each in found)

    assert here is not None
    assert there is not None
    unmetered = {"usage": Usage()}
    assert here.model_copy(update=unmetered) == there.model_copy(update=unmetered)
    assert there.metrics["faithfulness"] == 1.0


def test_the_judge_works_in_another_process_of_lower_priority(tmp_path: Path) -> None:
    with InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process") as monitor:
        judged(monitor, "one")
        pid = pid_in(tmp_path)
        assert pid != os.getpid()
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)

    assert not is_alive(pid)


def test_a_folder_of_the_application_that_hides_the_standard_library_stops_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "select", "typing"):
        (tmp_path / f"{name}.py").write_text("raise ImportError\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process") as monitor:
        (record,) = judged(monitor, "one")

    assert record.outcome.status == "evaluated"


def test_a_record_whose_process_is_killed_is_judged_once_more(tmp_path: Path) -> None:
    with InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process") as monitor:
        ask(monitor, "waits")
        first = pid_in(tmp_path)
        os.kill(first, 9)
        assert monitor.flush(SECONDS)

        assert monitor.stats.evaluated == 1
        assert pid_in(tmp_path) != first


def test_a_record_that_kills_the_process_fails_with_the_reason_and_no_other_does(
    tmp_path: Path,
) -> None:
    with InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process") as monitor:
        ask(monitor, "one", "it dies", "two", "three")
        monitor.flush(SECONDS)
        states = {each.record.query: each.outcome for each in monitor.records()}

    assert monitor.stats.evaluated == 3
    assert states["it dies"].status == "judge_error"
    assert "exit code 3" in states["it dies"].reason


def test_a_shutdown_waits_no_longer_for_a_judge_that_hangs(tmp_path: Path) -> None:
    monitor = InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process")
    ask(monitor, "it hangs", "it blocks")
    pid = pid_in(tmp_path)
    began = time.monotonic()
    monitor.shutdown(1.0)

    assert time.monotonic() - began < 10
    assert not is_alive(pid)
    assert monitor.stats.dropped == {"shutdown": 2}


def test_a_monitor_that_nobody_refers_to_leaves_no_process_behind(tmp_path: Path) -> None:
    monitor = InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process")
    judged(monitor, "one")
    pid = pid_in(tmp_path)
    del monitor
    deadline = time.monotonic() + SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert not is_alive(pid)


def test_what_the_judge_logs_comes_into_the_log_and_what_it_prints_does_not_come_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        InMemoryMonitor(judge=Obeys(str(tmp_path)), worker="process") as monitor,
    ):
        judged(monitor, "it says something")

    assert ("a.judge", logging.WARNING, "logged by the judge") in caplog.record_tuples
    assert "printed by the judge" not in capfd.readouterr().out


# --- what a record does to the others ---


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeProcess]:
    """A process whose judge obeys; a cancellation and the start of the next are not waited for."""
    monkeypatch.setattr(judging, "HEED_SECONDS", 0.2)
    monkeypatch.setattr(judging, "FIRST_PAUSE", 0.0)
    process = JudgeProcess([spec_of(Obeys(str(tmp_path)))], [Selection()], max_cpu_share=1.0)
    yield process
    process.close(SECONDS)


async def _evaluated(process: JudgeProcess, question: str) -> Evaluation:
    chunk = Chunk(id="1", text="The bridge is old. It is long.")
    record = RagRecord(query=question, response="The bridge is old.", chunks=(chunk,))
    return await process.judging(0, None)(record)


async def test_a_process_that_does_not_heed_a_cancellation_is_ended_and_others_are_judged(
    process: JudgeProcess, tmp_path: Path
) -> None:
    blocking = asyncio.create_task(_evaluated(process, "it blocks"))
    first = await asyncio.to_thread(pid_in, tmp_path)
    blocking.cancel()

    assert (await _evaluated(process, "one")).metrics["faithfulness"] == 1.0
    assert not is_alive(first)


async def test_a_record_outlasts_any_number_of_processes_that_are_ended_for_others(
    process: JudgeProcess, tmp_path: Path
) -> None:
    held = asyncio.create_task(_evaluated(process, "it is held"))
    for times in range(1, 5):
        await asked(tmp_path, "it is held", times)
        if times < 4:
            blocking = asyncio.create_task(_evaluated(process, "it blocks"))
            await asked(tmp_path, "it blocks", times)
            blocking.cancel()
    (tmp_path / "go").touch()

    assert (await held).metrics["faithfulness"] == 1.0


async def test_a_record_beside_which_two_processes_have_died_is_judged_by_itself(
    process: JudgeProcess, tmp_path: Path
) -> None:
    held = asyncio.create_task(_evaluated(process, "it is held"))
    dying: list[asyncio.Task[Evaluation]] = []
    for times in (1, 2):
        await asked(tmp_path, "it is held", times)
        dying.append(asyncio.create_task(_evaluated(process, f"it dies, {times}")))
    await asked(tmp_path, "it is held", 3)
    beside = asyncio.create_task(_evaluated(process, "one"))
    await asyncio.wait([beside], timeout=0.2)
    assert not beside.done()
    (tmp_path / "go").touch()

    assert (await held).metrics["faithfulness"] == 1.0
    assert (await beside).metrics["faithfulness"] == 1.0
    for each in await asyncio.gather(*dying, return_exceptions=True):
        assert isinstance(each, JudgeError)
        assert "while this record was judged" in str(each)


async def test_a_process_that_cannot_be_started_fails_a_record_and_not_the_next(
    process: JudgeProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(tmp_path / "missing"))
        with pytest.raises(JudgeError, match=r"it cannot be started \(FileNotFoundError\)"):
            await _evaluated(process, "one")

    assert (await _evaluated(process, "two")).metrics["faithfulness"] == 1.0


async def test_a_record_of_many_times_the_room_of_a_socket_is_judged(process: JudgeProcess) -> None:
    long = f"one {'word ' * 500_000}"

    assert (await _evaluated(process, long)).metrics["faithfulness"] == 1.0


# --- usage and budget ---


@pytest.mark.parametrize("judge", [Spends, Reserves])
def test_what_the_judge_has_used_is_counted_and_booked_here(
    judge: type[Obeys], tmp_path: Path
) -> None:
    budget = Budget(per_day=1.0)
    with InMemoryMonitor(judge=judge(str(tmp_path)), worker="process", budget=budget) as monitor:
        (record,) = judged(monitor, "one")
    evaluation = record.outcome.evaluation

    assert evaluation is not None
    assert evaluation.usage.model_copy(update={"seconds": 0.0}) == COST
    assert budget.spent_today == COST


def test_no_call_is_made_that_the_budget_has_no_room_for(tmp_path: Path) -> None:
    budget = Budget(calls_per_day=2)
    with InMemoryMonitor(judge=Reserves(str(tmp_path)), worker="process", budget=budget) as monitor:
        ask(monitor, *(f"question {n}" for n in range(6)))
        monitor.flush(SECONDS)

    assert monitor.stats.evaluated == 2
    assert monitor.stats.skipped == {"over_budget": 4}
    assert budget.spent_today.calls == 2


def test_a_call_under_way_when_the_process_dies_is_booked_at_its_upper_bound(
    tmp_path: Path,
) -> None:
    budget = Budget(per_day=1.0)
    with InMemoryMonitor(
        judge=KilledWhileItPays(str(tmp_path)), worker="process", budget=budget
    ) as monitor:
        ask(monitor, "one")
        monitor.flush(SECONDS)

    assert monitor.stats.dropped == {"judge_error": 1}
    assert budget.spent_today.calls == 2  # it was tried twice


async def test_a_judge_with_an_event_loop_of_its_own_may_reserve(tmp_path: Path) -> None:
    budget = Budget(per_day=1.0)
    with InMemoryMonitor(
        judge=ReservesElsewhere(str(tmp_path)), worker="process", budget=budget
    ) as monitor:
        judged(monitor, "one")

    assert monitor.stats.evaluated == 1
    assert budget.spent_today == COST


class ReservesElsewhere(Reserves):
    """Makes each call on a thread with a loop of its own."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        call = super().check(claims, references, question=question)
        return await asyncio.to_thread(asyncio.run, call)


def test_a_budget_in_tokens_asks_for_a_bound_of_each_call_there_as_here(tmp_path: Path) -> None:
    found: list[str] = []
    for budget in (Budget(tokens_per_day=1_000), Budget(calls_per_day=1_000)):
        with InMemoryMonitor(
            judge=TellsWhatIsCounted(str(tmp_path)), worker="process", budget=budget
        ) as monitor:
            (record,) = judged(monitor, "one")
        found.append(record.outcome.reason)

    assert found == ["counts tokens: True", "counts tokens: False"]


class TellsWhatIsCounted(Obeys):
    """Fails with what its budget counts."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        budget = current_budget()
        raise JudgeError(f"counts tokens: {budget is not None and budget.counts_tokens}")


class KilledWhileItPays(Obeys):
    """Dies after it has reserved a call."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        budget = current_budget()
        assert budget is not None
        async with budget.reserve(COST):
            os._exit(9)


# --- a first judge ---


class ByFirstScores:
    """Evaluates what its first judge has no score for."""

    def __init__(self, first_judge: Obeys) -> None:
        self.first_judge = first_judge

    def decide(self, facts: Facts) -> Decision:
        if facts.first_scores is None:
            return Decision(sampled=True, rate=1.0, reason="first", undecided=True)
        sampled = "faithfulness" not in facts.first_scores
        return Decision(sampled=sampled, rate=1.0, reason="scores")


def test_the_first_judge_of_a_sampler_works_there_as_well(tmp_path: Path) -> None:
    sampler = ByFirstScores(Obeys(str(tmp_path)))
    with InMemoryMonitor(judge=LexicalJudge(), sample=sampler, worker="process") as monitor:
        ask(monitor, "one")
        monitor.flush(SECONDS)

        assert pid_in(tmp_path) != os.getpid()
    assert monitor.stats.skipped == {"not_sampled": 1}


# --- judges by name ---


def test_the_judge_of_the_environment_has_its_options_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with judge_server() as server:
        monkeypatch.setenv("CLAIMSPAN_JUDGE", "openai:m")
        monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", f"base_url={server.url} seed=7")
        with InMemoryMonitor(judge=None, worker="process") as monitor:
            # As it was when the monitor was made, whenever the process starts.
            monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", "seed=8")
            (record,) = judged(monitor, "one")

        assert record.outcome.status == "evaluated"
        assert server.sent("seed") == {7}


def test_without_a_name_the_process_has_the_judge_that_a_thread_would_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE")

    assert spec_of(None).make().name == default_judge().name == "local"


def test_a_judge_of_a_file_is_made_there(tmp_path: Path) -> None:
    with judge_server() as server:
        (tmp_path / "own_judges.py").write_text(
            "from claimspan.judges import OpenAIJudge\n"
            f"def ours(): return OpenAIJudge('ours-7b', base_url={server.url!r})\n"
        )
        judge = f"{tmp_path}/own_judges.py:ours"
        with InMemoryMonitor(judge=judge, worker="process") as monitor:
            (record,) = judged(monitor, "one")

        assert record.outcome.status == "evaluated"
        assert server.sent("model") == {"ours-7b"}


# --- set-up ---


class Here(Obeys):
    """A judge with arguments that are no JSON."""

    def arguments(self) -> dict[str, object]:  # type: ignore[override]  # - the mistake
        return {"folder": Path(self._folder)}


def test_a_judge_that_its_process_cannot_make_is_refused_at_set_up(tmp_path: Path) -> None:
    class Local(Obeys):
        """Cannot be imported."""

    with pytest.raises(ConfigError, match=r"cannot make a ScriptedJudge.*arguments\(\)"):
        Monitor(NotPortable(), worker="process")
    with pytest.raises(ConfigError, match=r"cannot import .*Local"):
        Monitor(Local(str(tmp_path)), worker="process")
    with pytest.raises(ConfigError, match="something else than JSON"):
        Monitor(Here(str(tmp_path)), worker="process")
    with pytest.raises(ConfigError, match="cannot make a Slow"):
        Monitor("lexical", sample=ByFirstScores(Slow()), worker="process")  # type: ignore[arg-type]  # - no portable judge


def test_the_environment_may_ask_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAIMSPAN_WORKER", "process")
    with pytest.raises(ConfigError, match="worker='process' cannot make"):
        Monitor(NotPortable())
    Monitor(NotPortable(), worker="thread")
    monkeypatch.setenv("CLAIMSPAN_WORKER", "fibre")
    with pytest.raises(ConfigError, match="worker is 'fibre': give 'thread' or 'process'"):
        Monitor()


def test_a_judge_that_cannot_be_made_after_all_says_so_on_each_record(tmp_path: Path) -> None:
    monitor = InMemoryMonitor(judge=Vanishes(str(tmp_path)), worker="process")
    ask(monitor, "one")
    monitor.flush(SECONDS)
    (record,) = monitor.records()
    monitor.shutdown()

    assert record.status == "judge_error"
    assert "the judging process: " in record.outcome.reason


class Vanishes(Obeys):
    """Can be made in this process alone."""

    def __init__(self, folder: str) -> None:
        if "PYTEST_CURRENT_TEST" not in os.environ or not (Path(folder) / "made").exists():
            (Path(folder) / "made").touch()
            super().__init__(folder)
            return
        logging.getLogger("a.judge").warning("it has a licence to read")
        raise ConfigError("its licence is for one process")
