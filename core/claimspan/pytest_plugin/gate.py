"""The fixture ``claimspan_gate``: evaluates records, and fails the test if a rule does not hold.

The rules and the table are those of ``claimspan gate``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TypedDict, Unpack, cast

import pytest
from pydantic import JsonValue

from claimspan.comparison.gate import Gate, GateResult, check_gate
from claimspan.comparison.systems import System, read_system, system_of_rows
from claimspan.comparison.tables import gate_as_text, gate_line
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate_many, evaluate_many
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds, names_given
from claimspan.files.jsonl import read_text
from claimspan.files.private import write_private
from claimspan.files.record_files import read_records
from claimspan.judges import Judge, default_judge, judge_of
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow, holds_results
from claimspan.text.visible import visible

__all__ = ["GateOptions", "PytestGate"]


class GateOptions(TypedDict, total=False):
    """What a gate may be called with; the marker takes the same as defaults.

    The rules, from ``min`` to ``max_failed``, are those of ``comparison.gate.Gate``.
    """

    judge: str | Judge
    """Judge of the records, or its name as in ``CLAIMSPAN_JUDGE``; not for a file of results."""

    judge_options: Mapping[str, JsonValue]
    """Options of a judge that is named, such as ``{"seed": 1}``."""

    metrics: MetricsLike
    """What is measured of records, as ``evaluate_many`` takes it, and what may not get worse than
    the baseline's."""

    thresholds: Thresholds
    """Metric to its worst value that is good, for the label of a record and its score ``low``."""

    baseline: str | Path
    """File of results to compare with: no metric may get worse."""

    results: str | Path
    """File to write the results to; one in pytest's cache by default."""

    min: Mapping[str, float]
    max: Mapping[str, float]
    primary: str
    confident: bool
    tolerance: float
    min_records: int
    max_failed: float


_Subject = Sequence[RagRecord] | str | Path


class PytestGate:
    """Checks records or results against rules; relative paths start at pytest's root folder."""

    def __init__(self, request: pytest.FixtureRequest, name: str) -> None:
        self._request = request
        self._name = name  # of the marker, and of the property
        self._root = request.config.rootpath
        self._calls = 0

    def __call__(self, subject: _Subject, **options: Unpack[GateOptions]) -> GateResult:
        """Check the rules, and fail the test if one does not hold.

        Args:
            subject: Records, a file of records, or a file of results.
            **options: As in ``GateOptions``; the marker gives the others.

        Raises:
            AssertionError: A rule does not hold; has the table of ``claimspan gate``.
            ConfigError: The options do not fit, or the baseline is not there.
            FileError: A file cannot be read.
        """
        __tracebackhide__ = True  # a failed test shows the line of the user, not ours
        chosen, records = self._chosen(options), self._records(subject)
        done: Sequence[Evaluation] = ()
        if records:
            judge, metrics = _measured_by(chosen)
            done = evaluate_many(records, judge=judge, metrics=metrics, progress=False)
        return self._check(subject, records, done, chosen)

    async def acheck(self, subject: _Subject, **options: Unpack[GateOptions]) -> GateResult:
        """Do the same in an asynchronous test, without blocking its event loop."""
        __tracebackhide__ = True
        chosen, records = self._chosen(options), self._records(subject)
        done: Sequence[Evaluation] = ()
        if records:
            judge, metrics = _measured_by(chosen)
            done = await aevaluate_many(records, judge=judge, metrics=metrics, progress=False)
        return self._check(subject, records, done, chosen)

    def _chosen(self, options: GateOptions) -> GateOptions:
        """The options of the call, before those of the nearest markers."""
        chosen = GateOptions()
        # pytest gives the nearest marker first; the last update wins, and has to be the nearest.
        for marker in reversed(list(self._request.node.iter_markers(self._name))):
            unknown = sorted(marker.kwargs.keys() - GateOptions.__annotations__.keys())
            if marker.args or unknown:
                raise ConfigError(
                    f"the marker {self._name} takes options by name, as the fixture does"
                    + (f", and none is called {', '.join(unknown)}" if unknown else "")
                )
            chosen.update(cast("GateOptions", marker.kwargs))
        chosen.update(options)
        return chosen

    def _records(self, subject: _Subject) -> Sequence[RagRecord]:
        """The records to evaluate; none if the subject is a file of results."""
        if isinstance(subject, str | Path):
            path = self._root / subject
            if holds_results(path):
                return ()
            subject = read_records(path)
        if not subject:
            raise ConfigError("there are no records: a gate that checks nothing would always pass")
        return subject

    def _check(
        self,
        subject: _Subject,
        records: Sequence[RagRecord],
        done: Sequence[Evaluation],
        chosen: GateOptions,
    ) -> GateResult:
        __tracebackhide__ = True
        if records:
            rows = list(map(ResultRow.of, count(), records, done))
            self._calls += 1
            # Written before the check: the results of a gate that failed are those to look into.
            path = self._root / chosen["results"] if "results" in chosen else self._place()
            text = "".join(f"{row.model_dump_json()}\n" for row in rows)
            write_private(path, text, what="the results")
            system = system_of_rows(path.stem, rows)
        else:
            path = self._root / str(subject)
            system = read_system(path)
        updates = bool(self._request.config.getoption("--claimspan-update-baseline"))
        baseline = self._root / chosen["baseline"] if "baseline" in chosen else None
        # An update is for when the old baseline is absent, or no longer right: it decides nothing.
        before: System | None = None
        if baseline is not None and not updates:
            if not baseline.exists():
                raise ConfigError(
                    f"there is no baseline {str(baseline)!r}: make it of new results with "
                    "pytest --claimspan-update-baseline"
                )
            before = read_system(baseline)
        rules = {name: value for name, value in chosen.items() if name in Gate.model_fields}
        metrics = chosen.get("metrics")
        # Without a baseline they only say what is measured.
        rules["metrics"] = None if metrics is None or baseline is None else names_given(metrics)
        result = check_gate(
            system, Gate.of(rules), baseline=before, may_be_empty=updates and baseline is not None
        )
        said = f"{gate_line(result)}; results: {path}"
        if updates and baseline is not None and result.passed:
            if path.resolve() != baseline.resolve():
                text = read_text(path, wanted="file of results")
                write_private(baseline, text, what="the baseline")
            said += f"; they are the baseline {baseline} now"
        self._request.node.user_properties.append((self._name, visible(said)))
        if not result.passed:
            raise AssertionError(visible(f"\n{gate_as_text(result)}\nresults: {path}"))
        return result

    def _place(self) -> Path:
        """A file for the results of this call, the same in every run."""
        given = self._request.config.getoption("--claimspan-results")
        if given is not None:
            folder = self._root / str(given)
            folder.mkdir(parents=True, exist_ok=True)
        # ``-p no:cacheprovider`` leaves no cache to write to.
        elif self._request.config.pluginmanager.has_plugin("cacheprovider"):
            folder = self._request.config.cache.mkdir("claimspan")
        else:
            folder = self._request.getfixturevalue("tmp_path")
        node_id = self._request.node.nodeid
        readable = re.sub(r"[^\w.-]+", "_", node_id.rpartition("/")[2], flags=re.ASCII)[:100]
        # Two tests may have one name in two files, or parameters that differ in odd characters.
        digest = hashlib.sha256(node_id.encode()).hexdigest()[:8]
        call = f"-{self._calls}" if self._calls > 1 else ""
        return folder / f"{readable}-{digest}{call}.jsonl"


def _measured_by(chosen: GateOptions) -> tuple[Judge, Selection]:
    selection = Selection.of(chosen.get("metrics"), chosen.get("thresholds"))
    judge, options = chosen.get("judge"), chosen.get("judge_options")
    if judge is None or isinstance(judge, str):
        return default_judge(judge, options=options), selection
    if options:
        raise ConfigError("judge_options is for a judge that is named: give this one its options")
    return judge_of(judge), selection
