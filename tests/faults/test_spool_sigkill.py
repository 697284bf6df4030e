"""Row F6 of the reliability matrix: a process that is killed at any moment loses no record.

``tests/benchmarks/sigkill.py`` is the long form.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from spool_runs import WHOLE, Aftermath, Victim, kill_and_restart, read_aftermath

KILLS = 8


def assert_whole(aftermath: Aftermath, acknowledged: set[tuple[str, str]]) -> None:
    assert aftermath.integrity == "ok"
    assert aftermath.left == {}
    for key in acknowledged:
        (scored,) = aftermath.scored(key)
        is_late = scored.name == "claimspan.evaluate"
        whole = WHOLE["by hand"] | ({"claimspan.annotations"} if is_late else set[str]())
        assert aftermath.names(key) == whole
        assert len(aftermath.traces[key[0]]) == len(whole)
        assert key[1] in aftermath.traces[key[0]]


def test_after_kills_at_random_moments_every_acknowledged_record_has_one_visible_score(
    tmp_path: Path,
) -> None:
    rng = random.Random(7)

    acknowledged = kill_and_restart(tmp_path, KILLS, judge_seconds=0.05, rng=rng)

    assert len(acknowledged) > KILLS
    assert_whole(read_aftermath(tmp_path), acknowledged)


def test_after_kills_around_the_end_of_the_hold_scores_are_on_a_carrier_or_the_root(
    tmp_path: Path,
) -> None:
    rng = random.Random(11)

    # The hold is over while the judge still works, so roots are ended without scores.
    acknowledged = kill_and_restart(tmp_path, 5, judge_seconds=0.15, hold_seconds=0.25, rng=rng)

    aftermath = read_aftermath(tmp_path)
    assert_whole(aftermath, acknowledged)
    assert aftermath.conflicting == []
    by_name = {aftermath.scored(key)[0].name for key in acknowledged}
    assert "claimspan.evaluate" in by_name


def test_spans_that_are_made_again_are_those_that_were_lost(tmp_path: Path) -> None:
    killed = Victim(tmp_path, queries=1, judge_seconds=60.0, pipeline="langchain")
    killed.wait_for("acknowledged")
    killed.kill()
    ((trace_id, span_id),) = killed.acknowledged
    survivor = Victim(tmp_path, seconds=3.0)
    survivor.wait_for("idle 1")
    survivor.end()

    aftermath = read_aftermath(tmp_path)
    assert aftermath.names((trace_id, span_id)) == WHOLE["langchain"]
    spans = aftermath.traces[trace_id]
    root = spans[span_id]
    assert root.attributes["claimspan.evaluation.status"] == "evaluated"
    assert str(root.attributes["input.value"]).startswith("query ")
    below = [span for span in spans.values() if span is not root]
    assert {span.parent for span in below} == {root.key}
    assert all(root.start <= span.start <= span.end <= root.end for span in below)


def test_two_processes_share_one_spool_and_the_rows_of_a_third_that_was_killed(
    tmp_path: Path,
) -> None:
    killed = Victim(tmp_path, queries=30, judge_seconds=60.0)
    sharing = [Victim(tmp_path, seconds=6.0, queries=30, judge_seconds=0.02) for _ in range(2)]
    for victim in (killed, *sharing):
        victim.wait_for("acknowledged")
    deadline = time.monotonic() + 30
    while len(killed.acknowledged) < 30 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    recovered = [int(victim.wait_for("idle").split()[1]) for victim in sharing]
    assert [victim.end() for victim in sharing] == [0, 0]

    assert sum(recovered) == len(killed.acknowledged) == 30
    everything = killed.acknowledged.union(*(victim.acknowledged for victim in sharing))
    assert_whole(read_aftermath(tmp_path), everything)


FORK = """
import os, sys, warnings
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
from claimspan_tracing import Monitor, configure
from exit_judges import ask
from support import ScriptedJudge
folder = sys.argv[1]
provider = configure(file=folder + "/traces.jsonl")
monitor = Monitor(
    ScriptedJudge(delay=0.2), sample=1.0, spool=folder + "/spool.db", tracer_provider=provider
)
ask(monitor, "of the parent")
while not monitor.stats.spooled:
    pass
child = os.fork()
if child == 0:
    ask(monitor, "of the child")
    clean = monitor.flush(20) and monitor.shutdown()
    stats = monitor.stats
    os._exit(0 if clean and stats.produced == stats.spooled == 1 else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), monitor.flush(20), monitor.stats.evaluated)
"""


def test_a_forked_child_has_its_own_rows_and_leaves_its_parents_alone(tmp_path: Path) -> None:
    support = str(Path(__file__).parents[1] / "support")
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path), support],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.split() == ["0", "True", "1"], done.stderr
    aftermath = read_aftermath(tmp_path)
    assert (aftermath.integrity, aftermath.left) == ("ok", {})
    assert len(aftermath.traces) == 2
