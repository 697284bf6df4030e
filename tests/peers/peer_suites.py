"""Runs the test suites of frameworks and of other instrumentations with claimspan and without.

    python tests/peers/peer_suites.py [NAME ...] [--json FILE]
    python tests/peers/peer_suites.py --lock [NAME ...]

Each suite comes from the package's sdist, or from its tagged source, in the version that
``peers.toml`` pins, and runs twice: alone, and with claimspan attached to the whole process. A test
with another outcome fails the command, unless ``explained.toml`` says why no user sees that change.
``--lock`` resolves the environments anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from peer_locks import lock
from peer_runs import Compared, as_json, compare
from peer_sources import Peer, SourceUnavailableError, peers


def main() -> int:
    """Run what the command line names; all peers where it names none."""
    known = peers()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--json", type=Path, help="writes what was found to a file")
    parser.add_argument("--lock", action="store_true", help="resolves the environments anew")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    wanted = [known[name] for name in arguments.names or known]
    if arguments.lock:
        for peer in wanted:
            _say(f"{peer.name} {peer.version}: resolving")
            lock(peer)
        return 0
    return _run(wanted, arguments.json)


def _run(wanted: list[Peer], file: Path | None) -> int:
    found: list[Compared] = []
    left: list[str] = []
    for number, peer in enumerate(wanted, start=1):
        began = time.monotonic()
        try:
            found.append(compare(peer, partial(_say, f"[{number}/{len(wanted)}]")))
        except SourceUnavailableError as error:  # the others are run all the same
            left.append(f"{peer.name} {peer.version}: NOT RUN: {error}")
        _say(f"{peer.name}: {time.monotonic() - began:.0f} s")
        if file is not None:
            file.write_text(as_json(found), encoding="utf-8")
    for each in found:
        print(_shown(each))
    for line in left:
        print(line)
    return 1 if left or any(each.broken for each in found) else 0


def _shown(found: Compared) -> str:
    """Return the lines on one suite: the figures, and each difference."""
    counts = Counter(found.bare.outcomes.values())
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    explained = sum(bool(each.explained) for each in found.differences)
    lines = [
        f"{found.peer.name} {found.peer.version} ({found.peer.part or 'the whole suite'}): {told}; "
        f"{found.attached.records} records, {found.attached.faults} faults; "
        f"{len(found.differences)} differences, {explained} explained; "
        f"{len(found.unsteady)} unsteady"
    ]
    if found.captured_nothing:
        lines.append("  nothing was captured")
    if found.attached.pending:
        lines.append(f"  {found.attached.pending} records were left when the suite had ended")
    if found.attached.dropped:
        lines.append(f"  not evaluated: {found.attached.dropped}")
    for each in found.differences:
        lines.append(f"  {each.test}: {each.bare}, with us {each.attached}")
        lines.append(f"    {each.explained or 'NOT EXPLAINED: ' + each.why}")
    lines += [f"  unsteady: {each}" for each in found.unsteady]
    return "\n".join(lines)


def _say(*what: str) -> None:
    print(*what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
