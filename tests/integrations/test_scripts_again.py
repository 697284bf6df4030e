"""Hosts that run the application's own code again: Streamlit at every click, notebooks at will.

What a script or a cell makes and attaches at its top is made and attached each time.
"""

from __future__ import annotations

import logging
import runpy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.callbacks import CallbackManager

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan.judges.lexical import LexicalJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import shared

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from li_driver import LlamaIndexDriver
from pipelines import Driver, Recipe
from processes import run_python, statuses_in
from support import MonitorFactory, Spans, attributes

QUERY = "the question"

Instrument = Callable[..., Callable[[], object]]

FRAMEWORKS: dict[str, tuple[Instrument, Callable[[], Driver]]] = {
    "langchain": (claimspan_langchain.instrument, LangChainDriver),
    "llama-index": (claimspan_llama_index.instrument, LlamaIndexDriver),
    "haystack": (claimspan_haystack.instrument, HaystackDriver),
}

frameworks = pytest.mark.parametrize("framework", FRAMEWORKS)

RUNS_ITS_SCRIPT_ON_THREADS = """
import gc, runpy
import claimspan_langchain  # what runs scripts has loaded their framework with the first of them
from thread_counts import thread_counts, wait_until_gone
before = thread_counts()
for number in range(20):
    given = {"number": number}
    run = threading.Thread(target=runpy.run_path, args=("app.py", given, "__main__"))
    run.start()
    run.join()
deadline = time.monotonic() + 20
while thread_counts() - before and time.monotonic() < deadline:
    gc.collect()
    time.sleep(0.05)
print(dict(thread_counts() - before))
says_bye()
"""

MAKES_ITS_MONITOR = """
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from lc_pipelines import rag_chain
handler = ClaimspanCallbackHandler(Monitor(sample=1.0, spool="spool.db"))
rag_chain().invoke(f"question {number}", {"callbacks": [handler]})
"""

CHECKS_ITS_MONITOR = """
from claimspan_tracing import Monitor
assert Monitor(sample=1.0).check().ok
"""


@pytest.mark.parametrize(
    ("script", "written"),
    [(MAKES_ITS_MONITOR, {"evaluated": 20}), (CHECKS_ITS_MONITOR, {})],
    ids=["makes", "checks"],
)
def test_a_script_that_makes_a_monitor_each_time_it_runs_leaves_no_thread_and_loses_no_record(
    tmp_path: Path, script: str, written: dict[str, int]
) -> None:
    (tmp_path / "app.py").write_text(script)

    ended = run_python(RUNS_ITS_SCRIPT_ON_THREADS, tmp_path)

    assert ended.code == 0
    assert ended.words == ["{}"]
    assert statuses_in(tmp_path) == written


class ScriptRunsAgain(BaseException):
    """As ``st.rerun()`` raises."""


@pytest.mark.parametrize("left", [SystemExit, ScriptRunsAgain])
def test_what_a_block_has_answered_is_judged_where_it_is_left_on_purpose(
    make_monitor: MonitorFactory, spans: Spans, left: type[BaseException]
) -> None:
    monitor = make_monitor()

    def script(answer: str | None) -> None:
        with monitor.record(QUERY) as record:
            record.retrieved(["It is 725 km long."])
            record.answered(answer)
            raise left

    for answer in ("It is 725 km long.", None):
        with pytest.raises(left):
            script(answer)
    assert monitor.flush()

    states = [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]
    assert sorted(map(str, states)) == ["evaluated", "interrupted"]


@pytest.fixture
def undoings() -> Iterator[list[Callable[[], object]]]:
    """What ``instrument`` has returned; called at the end."""
    undoings: list[Callable[[], object]] = []
    yield undoings
    for undo in undoings:
        undo()


def handlers_of_a_run() -> int:
    """How many handlers of ours LangChain calls at each step of a chain."""
    handlers = CallbackManager.configure().handlers
    return sum(isinstance(each, ClaimspanCallbackHandler) for each in handlers)


def test_a_chain_pays_for_one_handler_however_often_its_monitor_was_attached(
    make_monitor: MonitorFactory, undoings: list[Callable[[], object]]
) -> None:
    monitor = make_monitor()

    undoings += [claimspan_langchain.instrument(monitor) for _ in range(50)]

    assert handlers_of_a_run() == 1
    undoings[7]()
    assert handlers_of_a_run() == 0


def test_what_undid_an_attachment_leaves_a_later_one_of_the_same_monitor(
    make_monitor: MonitorFactory, undoings: list[Callable[[], object]]
) -> None:
    monitor = make_monitor()
    earlier = claimspan_langchain.instrument(monitor)
    earlier()
    undoings.append(claimspan_langchain.instrument(monitor))

    earlier()

    assert handlers_of_a_run() == 1


def found(_: object) -> str:
    return "found"


@pytest.mark.parametrize("framework", ["langchain", "haystack"])
def test_keys_that_are_given_again_count_from_then_on(
    framework: str,
    make_monitor: MonitorFactory,
    spans: Spans,
    undoings: list[Callable[[], object]],
) -> None:
    instrument, make_driver = FRAMEWORKS[framework]
    monitor, pipeline = make_monitor(), make_driver().build(Recipe())
    undoings.append(instrument(monitor, query_key="wrong"))
    undoings.append(instrument(monitor, query_key=found))
    undoings.append(instrument(monitor))  # says nothing new about it

    pipeline.run(QUERY)
    assert monitor.flush()

    assert attributes(spans.root)["input.value"] == "found"


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has warned of nothing yet."""
    monkeypatch.setattr(shared, "_several_were_told", threading.Event())


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = (each for each in caplog.records if each.name == "claimspan")
    return [each.getMessage() for each in ours if each.levelno >= logging.WARNING]


class _Judge(LexicalJudge):
    """A judge that is told apart from others of its class by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        return self._name


@pytest.mark.usefixtures("untold")
@frameworks
def test_a_cell_that_attaches_a_new_monitor_each_time_it_runs_records_a_query_once(
    framework: str,
    make_monitor: MonitorFactory,
    spans: Spans,
    undoings: list[Callable[[], object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    instrument, make_driver = FRAMEWORKS[framework]
    # The judge is another object each time.
    monitors = [make_monitor(judge=_Judge("mine"), metrics=["faithfulness"]) for _ in range(3)]
    undoings += map(instrument, monitors)

    make_driver().build(Recipe()).run(QUERY)
    assert monitors[-1].flush()

    assert len(spans.roots) == 1
    assert monitors[-1].stats.evaluated == 1  # the one that the cell goes on with
    assert warnings_in(caplog) == []


@frameworks
def test_monitors_of_two_judges_from_one_line_both_record(
    framework: str,
    make_monitor: MonitorFactory,
    undoings: list[Callable[[], object]],
) -> None:
    instrument, make_driver = FRAMEWORKS[framework]
    monitors = [make_monitor(judge=_Judge(name)) for name in ("mine", "theirs")]
    undoings += map(instrument, monitors)

    make_driver().build(Recipe()).run(QUERY)

    assert all(each.flush() for each in monitors)
    assert [each.stats.evaluated for each in monitors] == [1, 1]


def test_wrappers_that_each_attach_a_monitor_of_the_same_options_record_a_query_once(
    tmp_path: Path, make_monitor: MonitorFactory, spans: Spans, undoings: list[Callable[[], object]]
) -> None:
    for name in ("one", "two", "three"):
        wrapper = tmp_path / f"{name}.py"
        wrapper.write_text("def make(make_monitor):\n    return make_monitor(sample=1.0)\n")
        monitor = runpy.run_path(str(wrapper))["make"](make_monitor)
        undoings.append(claimspan_haystack.instrument(monitor))

    HaystackDriver().build(Recipe()).run(QUERY)
    assert monitor.flush()

    assert len(spans.roots) == 1


@pytest.mark.usefixtures("untold")
@frameworks
def test_monitors_that_differ_are_said_once_since_each_records_every_query(
    framework: str,
    make_monitor: MonitorFactory,
    undoings: list[Callable[[], object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    instrument, _ = FRAMEWORKS[framework]

    undoings += [instrument(make_monitor(hold_seconds=20.0 + seconds)) for seconds in range(3)]

    (warning,) = warnings_in(caplog)
    assert "2 monitors are attached" in warning


@pytest.mark.usefixtures("untold")
@frameworks
def test_a_monitor_in_the_place_of_another_is_nothing_to_warn_of(
    framework: str,
    make_monitor: MonitorFactory,
    undoings: list[Callable[[], object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    instrument, _ = FRAMEWORKS[framework]

    for monitor in (make_monitor(), make_monitor()):
        undo = instrument(monitor)
        undoings.append(instrument(monitor))
        undo()

    assert warnings_in(caplog) == []
