"""Row F6 of the reliability matrix: a process that is killed at any moment loses no record.

``tests/benchmarks/sigkill.py`` is the long form.
"""

from __future__ import annotations

import random
from pathlib import Path

from spool_runs import Aftermath, Victim, kill_and_restart, read_aftermath

KILLS = 8
WHOLE = {"invoke_workflow", "retrieval", "chat", "claimspan.evaluate"}


def assert_whole(aftermath: Aftermath, acknowledged: set[tuple[str, str]]) -> None:
    assert aftermath.integrity == "ok"
    assert aftermath.left == {}
    for key in acknowledged:
        assert len(aftermath.scored(key)) == 1
        assert aftermath.names(key) == WHOLE
        assert len(aftermath.traces[key[0]]) == len(WHOLE)
        assert key[1] in aftermath.traces[key[0]]


def test_after_kills_at_random_moments_every_acknowledged_record_has_one_visible_score(
    tmp_path: Path,
) -> None:
    rng = random.Random(7)  # noqa: S311 - moments of kills, not secrets

    acknowledged = kill_and_restart(tmp_path, KILLS, judge_seconds=0.05, rng=rng)

    assert len(acknowledged) > KILLS
    assert_whole(read_aftermath(tmp_path), acknowledged)


def test_spans_that_are_made_again_are_those_that_were_lost(tmp_path: Path) -> None:
    killed = Victim(tmp_path, queries=1, judge_seconds=60.0)
    killed.wait_for("acknowledged")
    killed.kill()
    ((trace_id, span_id),) = killed.acknowledged
    survivor = Victim(tmp_path, seconds=3.0)
    survivor.wait_for("idle 1")
    survivor.end()

    spans = read_aftermath(tmp_path).traces[trace_id]
    root = spans[span_id]
    assert root.attributes["claimspan.evaluation.status"] == "evaluated"
    assert str(root.attributes["input.value"]).startswith("query ")
    below = [span for span in spans.values() if span is not root]
    assert {span.parent for span in below} == {root.key}
    assert all(root.start <= span.start <= span.end <= root.end for span in below)
