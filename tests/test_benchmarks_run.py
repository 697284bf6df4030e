"""The benchmarks run at their smallest sizes, and the page of results says what they found.

They run with what is installed beside the tests: no peer that has an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
BENCHMARKS: Final = ROOT / "tests" / "benchmarks"

WATCHDOG_SECONDS: Final = 120.0

OFF: Final = "claimspan, evaluation off"


def printed_by(*arguments: str) -> str:
    """What a Python process prints that finds the modules of the benchmarks."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS)},
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def results_of(script: str, *arguments: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(printed_by(str(BENCHMARKS / script), *arguments, "--json"))
    return results


def rows_of(results: dict[str, Any]) -> list[dict[str, str]]:
    (table,) = results["tables"]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


# --- overhead.py ---


@pytest.mark.parametrize("framework", ["llama-index", "haystack"])
def test_a_query_is_measured_bare_and_with_us(framework: str) -> None:
    tiny = ("--here", "--modes", "sync", "--rounds", "1", "--queries", "2", "--subjects", OFF)

    results = results_of("overhead.py", "--framework", framework, *tiny)

    bare, ours = rows_of(results)
    assert (bare["subject"], bare["spans"], bare["OTLP kB"]) == ("bare", "0.0", "0.0")
    assert float(bare["request CPU, ms"]) > 0.0
    assert (ours["subject"], ours["spans"]) == (OFF, "3.0")
    # Ten chunks of 800 characters are on the wire once at least.
    assert float(ours["OTLP kB"]) > 8.0
    assert results["notes"] == []


def test_we_are_held_against_a_peer_and_a_subject_that_is_not_installed_is_noted() -> None:
    words, peer = "claimspan, 100 % by words", "OpenInference"
    tiny = ("--here", "--modes", "async", "--rounds", "1", "--queries", "8")

    results = results_of("overhead.py", *tiny, "--subjects", f"{OFF};{words};{peer};Langfuse")

    rows = {row["subject"]: row for row in rows_of(results)}
    assert (rows[words]["evaluated"], rows[OFF]["evaluated"]) == ("100%", "0%")
    assert rows[peer]["of the fastest peer"] == rows[peer]["of the leanest peer"] == "1.00"
    *_, wire = results["bars"]
    ours, its = float(rows[OFF]["OTLP kB"]), float(rows[peer]["OTLP kB"])
    assert wire["measured"].startswith(f"{ours} kB, {peer} {its} kB: ")
    assert wire["is_kept"] is (4 * ours <= its)
    assert results["notes"] == [
        "Not measured: Langfuse (ModuleNotFoundError: No module named 'langfuse')."
    ]


def test_the_growth_of_memory_is_held_against_its_bar() -> None:
    one_percent = "claimspan, 1 %"

    results = results_of("overhead.py", "--here", "--memory", "4", "--subjects", one_percent)

    assert [row["subject"] for row in rows_of(results)] == ["bare", one_percent]
    (bar,) = results["bars"]
    peak = float(rows_of(results)[1]["peak, MiB"])
    assert bar["is_kept"] is (peak < 10.0)


@pytest.mark.parametrize(("name", "is_background"), [("exporter-1", True), ("caller_0", False)])
def test_time_of_a_background_thread_is_told_from_that_of_requests(
    name: str, is_background: bool
) -> None:
    code = f"""
import threading, time
from overhead_worker import background_seconds
spent, measured = threading.Event(), threading.Event()
def spend():
    while time.thread_time() < 0.3:
        pass
    spent.set()
    measured.wait()
before = background_seconds()
threading.Thread(target=spend, name={name!r}).start()
spent.wait()
print(background_seconds() - before)
measured.set()
"""
    assert (float(printed_by("-c", code)) >= 0.3) is is_background


def test_time_of_child_processes_counts_while_they_run_and_after() -> None:
    code = """
import subprocess, sys
from overhead_worker import children_seconds
spend = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(); input()"
before = children_seconds()
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
with subprocess.Popen([sys.executable, "-c", spend], **pipes) as child:
    child.stdout.readline()
    print(children_seconds() - before)
    child.communicate(b"\\n")
print(children_seconds() - before)
"""
    running, ended = printed_by("-c", code).split()

    assert float(running) >= 0.3
    # The kernel sums up ended processes in ticks of up to 10 ms.
    assert float(ended) >= 0.29


# --- the other scripts ---


def bridge(folder: Path) -> str:
    """A file with one record."""
    samples = folder / "samples.jsonl"
    record = {
        "query": "Where is the bridge?",
        "response": "The bridge stands in Maribor. It was built in 1913.",
        "ground_truth": "The bridge stands in Maribor.",
        "chunks": [{"id": "a", "text": "The old bridge in Maribor was built in 1913."}],
    }
    samples.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return str(samples)


def test_calls_and_tokens_of_a_judge_are_held_against_their_bars(tmp_path: Path) -> None:
    results = results_of("judge_cost.py", "--samples", bridge(tmp_path), "--latency", "0.01")

    rows = {row["tool"]: row for row in rows_of(results)}
    # Claims of the answer, claims of the ground truth, and one check of all.
    assert rows["claimspan, default"]["calls"] == "3.0"
    assert [bar["is_kept"] for bar in results["bars"]] == [True, True]


def test_what_is_chosen_decides_what_a_record_costs(tmp_path: Path) -> None:
    results = results_of("chosen_metrics.py", "--samples", bridge(tmp_path))

    calls = [[row[1] for row in table["rows"]] for table in results["tables"]]
    # Claims of the answer, claims of the ground truth, a check of all; and all criteria together.
    assert calls == [
        ["3.0", "3.0", "2.0", "3.0", "4.0", "4.0", "1.0"],
        ["2.0", "2.0", "2.0", "0.0", "3.0", "3.0", "1.0"],
    ]


def test_imports_are_measured() -> None:
    results = results_of("import_cost.py", "--rounds", "2")

    assert len(rows_of(results)) == 4


def test_what_a_query_runs_through_is_counted() -> None:
    results = results_of("layers.py", "--frameworks", "langchain")

    (row,) = rows_of(results)
    assert 0 < int(row["modules"]) <= int(row["functions"]) <= int(row["calls"])
    assert int(row["threads"]) >= 2
    assert {bar["promise"].split()[-1] for bar in results["bars"]} == {"calls", "modules", "stops"}


# --- the page ---


def test_the_page_is_what_the_benchmarks_found() -> None:
    code = """
from published import kept_runs, page_of
from publish import NAMES
print(page_of(list(kept_runs(NAMES))), end="")
"""
    page = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")

    assert printed_by("-c", code) == page


def test_the_page_says_which_benchmark_failed_and_why() -> None:
    code = """
import json, sys
from pathlib import Path
from publish import Benchmark, run
from published import page_of, this_machine
machine = this_machine(Path(sys.executable))
script = "judge_cost.py"
absent, failing = Benchmark("growth", "absent.py"), Benchmark(
    "judge-cost", script, samples="--samples"
)
command = failing.command(quick=True, samples=Path("absent.json"))
print(page_of([run(absent, [], machine), run(failing, command, machine)]))
"""
    page = printed_by("-c", code)

    assert "## growth\n\nNot measured: there is no absent.py." in page
    assert "## judge-cost\n\nNot measured: judge_cost.py ended with 2: " in page
    assert str(ROOT) not in page
