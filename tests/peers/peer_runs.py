"""Runs the suite of a peer without claimspan and with it, and compares the outcome of each test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from peer_locks import lock_file
from peer_sources import HERE, ROOT, Peer, source
from pydantic import BaseModel, ConfigDict, TypeAdapter

sys.path.insert(0, str(HERE.parent / "support"))
from environments import SOURCES, environment

EXPLAINED: Final = HERE / "explained.toml"
TEST_SECONDS: Final = 120
SUITE_SECONDS: Final = 3600.0
NICE: Final = 5
AGAIN: Final = 2

Progress = Callable[[str], None]


class Told(BaseModel):
    """What the plugin wrote of one run of a suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcomes: dict[str, str]
    """By the id of each test."""

    reasons: dict[str, str] = {}
    """Of each failure."""

    records: int = 0
    """Queries that were captured."""

    faults: int = 0
    """Errors of ours that the guard kept from the application."""

    pending: int = 0
    """Records that had no state two minutes after the suite had ended."""

    dropped: dict[str, int] = {}
    """By status: records that were not evaluated for want of time or room."""


class Difference(BaseModel):
    """A test that has another outcome with us."""

    model_config = ConfigDict(frozen=True)

    test: str
    bare: str
    attached: str
    why: str
    """How the test failed, where it did."""

    explained: str = ""
    """Why that is no change that a user sees; empty where nobody has said so."""


@dataclass
class Compared:
    """One suite, without us and with us."""

    peer: Peer
    bare: Told
    attached: Told
    differences: list[Difference] = field(default_factory=list["Difference"])
    unsteady: list[str] = field(default_factory=list[str])
    """Tests that differed, and have several outcomes without us, or differed only once."""

    @property
    def broken(self) -> bool:
        """Whether a user may see that we are there, or nothing shows that we were."""
        unexplained = any(not each.explained for each in self.differences)
        left = self.attached.faults > 0 or self.attached.pending > 0
        return unexplained or left or self.captured_nothing

    @property
    def captured_nothing(self) -> bool:
        """Whether the suite runs queries, and none was captured."""
        return self.peer.captures and not self.attached.records


def compare(peer: Peer, progress: Progress) -> Compared:
    """Run the suite of a peer without us and with us.

    A test that differs is run twice more both ways, with all the others that differ. It counts if
    it always had the same outcome without us, and at least twice another one with us.
    """
    progress(f"{peer.name} {peer.version}: environment")
    python = environment(f"peer-{peer.name}", lock_file(peer))
    folder = source(peer, ROOT / f".venv-peer-{peer.name}-source")
    suite = _Suite(peer, python, folder, progress)
    bare = [suite.run("without claimspan", peer.tests, attached=False)]
    attached = [suite.run("with claimspan", peer.tests, attached=True)]
    found = Compared(peer, bare[0], attached[0])
    suspects = _differing(bare[0], attached[0])
    # One that is not there at all cannot be run again.
    known = [each for each in suspects if each in bare[0].outcomes and each in attached[0].outcomes]
    for number in range(AGAIN if known else 0):
        bare.append(suite.run(f"{len(known)} again, without, {number + 1}", known, attached=False))
        attached.append(suite.run(f"{len(known)} again, with, {number + 1}", known, attached=True))
    reasons = _explanations(peer.name)
    for test in suspects:
        if test not in known or _is_steady(test, bare, attached):
            found.differences.append(_difference(test, bare[0], attached[0], reasons))
        else:
            found.unsteady.append(test)
    return found


def _is_steady(test: str, bare: Sequence[Told], attached: Sequence[Told]) -> bool:
    """Whether a test has one outcome without us, and at least twice another with us."""
    alone = {each.outcomes.get(test) for each in bare}
    return len(alone) == 1 and sum(each.outcomes.get(test) not in alone for each in attached) > 1


@dataclass
class _Suite:
    peer: Peer
    python: Path
    folder: Path
    progress: Progress

    def run(self, how: str, tests: Sequence[str], *, attached: bool) -> Told:
        self.progress(f"{self.peer.name} {self.peer.version}: {how}")
        with tempfile.TemporaryDirectory() as scratch:
            told, named = Path(scratch, "told.json"), Path(scratch, "tests.txt")
            named.write_text("\n".join(tests), encoding="utf-8")
            command = [*self._command(), f"@{named}"]
            done = subprocess.run(
                command,
                check=False,
                cwd=self.folder,
                env=self._environment(told, attached),
                capture_output=True,
                text=True,
                timeout=SUITE_SECONDS,
                preexec_fn=lambda: os.nice(NICE),
            )
            if not told.exists():
                raise SystemExit(f"{self.peer.name}: {(done.stdout + done.stderr)[-4000:]}")
            return Told.model_validate_json(told.read_text(encoding="utf-8"))

    def _command(self) -> list[str]:
        deselected = [f"--deselect={each}" for each in self.peer.deselect]
        command = [str(self.python), "-m", "pytest", "-q", "-p", "peer_plugin", "-o", "addopts="]
        bounds = [f"--timeout={TEST_SECONDS}", "-p", "no:cacheprovider", "--tb=short"]
        bounds.append("--continue-on-collection-errors")
        return [*command, *bounds, *self.peer.options, *deselected]

    def _environment(self, told: Path, attached: bool) -> dict[str, str]:
        # The frameworks' own switches are as in the tests of this project: nothing phones home.
        quiet = {"LANGSMITH_TRACING": "false", "HAYSTACK_TELEMETRY_ENABLED": "False"}
        paths = os.pathsep.join((str(HERE), SOURCES))
        mine = {"PYTHONPATH": paths, "PEERS_OUTCOMES": str(told), "OTEL_SDK_DISABLED": "false"}
        switch = {"PEERS_ATTACHED": "1"} if attached else {}
        return {**os.environ, **quiet, **mine, **switch, **self.peer.environment}


def _differing(bare: Told, attached: Told) -> list[str]:
    names = dict.fromkeys((*bare.outcomes, *attached.outcomes))
    return [each for each in names if bare.outcomes.get(each) != attached.outcomes.get(each)]


def _difference(test: str, bare: Told, attached: Told, reasons: Mapping[str, str]) -> Difference:
    fitting = (reason for pattern, reason in reasons.items() if _fits(test, pattern))
    return Difference(
        test=test,
        bare=bare.outcomes.get(test, "absent"),
        attached=attached.outcomes.get(test, "absent"),
        why=attached.reasons.get(test) or bare.reasons.get(test, ""),
        explained=next(fitting, ""),
    )


def _fits(test: str, pattern: str) -> bool:
    # Parameters stand in brackets, which are patterns of their own to ``fnmatch``.
    return test == pattern or fnmatchcase(test, pattern.replace("[", "[[]"))


def _explanations(name: str) -> dict[str, str]:
    """Return the reasons for a peer's differences, by test."""
    listed = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, dict[str, str]]).validate_python(listed).get(name, {})


def as_json(suites: Iterable[Compared]) -> str:
    """Return what was found as one text of JSON."""
    rows = [
        {
            "peer": each.peer.name,
            "version": each.peer.version,
            "part": each.peer.part,
            "tests": len(each.bare.outcomes),
            "records": each.attached.records,
            "faults": each.attached.faults,
            "pending": each.attached.pending,
            "dropped": each.attached.dropped,
            "differences": [one.model_dump() for one in each.differences],
            "unsteady": each.unsteady,
        }
        for each in suites
    ]
    return json.dumps(rows, indent=2)
