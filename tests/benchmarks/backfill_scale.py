"""What ``claimspan backfill`` takes for many traces, also if it is killed on the way.

    python tests/benchmarks/backfill_scale.py [--traces N] [--source files|langfuse] [--kills N]

Traces of about 20 kB come from a folder of OTLP JSON lines, or from a server on loopback that gives
them in the pages of Langfuse's API and keeps the scores. The command is ended by SIGKILL some times
and called again, until it has gone through. Printed are time, memory each second, and how many
records have how many scores. The server makes each trace anew, so that it holds none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from pydantic import JsonValue

from contract_server import Request, contract_server
from contracts import LangfuseApi
from processes import environment
from stored_traces import StoredLangfuse, group, spans_of

START: Final = 1_760_000_000 * 10**9
SECOND: Final = 10**9
FILLER: Final = "The Drava rises in South Tyrol and is 725 kilometres long. " * 110
"""Makes a trace of 20 kB of the short ones of the tests."""

JUDGE: Final = "from claimspan.testing import ScriptedJudge\njudge = ScriptedJudge()\n"
"""Costs next to nothing: what is measured is all else."""

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def trace(number: int) -> list[dict[str, Any]]:
    """The spans of one trace, with long texts beside those that are read."""
    spans = spans_of(number, START + number * SECOND)
    for span in spans:
        span["attributes"] = [
            *span["attributes"],
            {"key": "filler", "value": {"stringValue": FILLER}},
        ]
    return spans


class Made(StoredLangfuse):
    """Traces that are made as they are asked for."""

    def __init__(self, n_traces: int) -> None:
        super().__init__([])
        self.n_traces = n_traces

    def __call__(self, request: Request) -> JsonValue:
        if request.method == "GET" and request.path == "/api/public/traces":
            return self._listed(int(request.query["page"]), int(request.query["limit"]))
        if request.method == "GET" and request.path.startswith("/api/public/traces/"):
            id_ = request.path.rpartition("/")[2]
            return StoredLangfuse([trace(int(id_, 16) - 1)])(request)
        return super().__call__(request)

    def _listed(self, page: int, limit: int) -> JsonValue:
        numbers = range((page - 1) * limit, min(page * limit, self.n_traces))
        pages = -(-self.n_traces // limit)
        return {
            "data": [{"id": f"{number + 1:032x}"} for number in numbers],
            "meta": {"page": page, "limit": limit, "totalPages": pages},
        }


@contextmanager
def source(kind: str, n_traces: int, folder: Path) -> Generator[tuple[list[str], Made | None]]:
    """Make the traces; yields the arguments of the command, and the server if there is one."""
    if kind == "langfuse":
        made = Made(n_traces)
        with contract_server(made) as server:
            yield ["langfuse", "--url", server.url], made
            # Such as half a request of a process that was killed as it sent.
            print("requests that break the contract:", server.breaches)
            server.breaches.clear()
        return
    traces = folder / "traces"
    traces.mkdir()
    for first in range(0, n_traces, 1_000):
        with (traces / f"{first:06}.jsonl").open("w") as file:
            for number in range(first, min(first + 1_000, n_traces)):
                file.write(json.dumps({"resourceSpans": [group(trace(number))]}) + "\n")
    yield [str(traces), "-o", "out.jsonl"], None


def run(arguments: list[str], folder: Path, killed_after: float | None) -> tuple[bool, list[int]]:
    """Run the command; returns whether it went through, and its memory each second, in MiB."""
    command = [sys.executable, "-m", "claimspan", "backfill", *arguments]
    (folder / "scripted.py").write_text(JUDGE)
    command += ["--judge", "scripted.py:judge", "--json", "--no-progress"]
    keys = {
        "LANGFUSE_PUBLIC_KEY": LangfuseApi.PUBLIC_KEY,
        "LANGFUSE_SECRET_KEY": LangfuseApi.SECRET_KEY,
    }
    memory: list[int] = []
    with subprocess.Popen(
        command, cwd=folder, env=environment(**keys), stdout=subprocess.PIPE
    ) as process:
        timer = threading.Timer(killed_after or 0.0, process.kill)
        if killed_after is not None:
            timer.start()
        while process.poll() is None:
            statm = Path(f"/proc/{process.pid}/statm").read_text().split()
            memory.append(int(statm[1]) * PAGE_BYTES // 2**20 if len(statm) > 1 else 0)
            time.sleep(1)
        timer.cancel()
        print((process.stdout.read() if process.stdout else b"").decode().strip())
    return process.returncode == 0, memory


def scores_in(folder: Path, made: Made | None) -> Counter[int]:
    """How many records have how many scores."""
    if made is not None:
        by_trace = Counter(s.traceId for s in made.scores.values() if s.name == "faithfulness")
        return Counter(by_trace.values())
    found = Counter[str]()
    with (folder / "out.jsonl").open() as file:
        for line in file:
            found[json.loads(line)["record"]["metadata"]["trace_id"]] += 1
    return Counter(found.values())


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--source", choices=["files", "langfuse"], default="files")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--kill-after", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with source(given.source, given.traces, folder) as (arguments, made):
            began = time.monotonic()
            for kill in range(given.kills + 1):
                after = given.kill_after if kill < given.kills else None
                is_over, memory = run(arguments, folder, after)
                step = max(1, len(memory) // 12)
                print(f"run {kill + 1}: {len(memory)} s, MiB {memory[::step]}, most {max(memory)}")
                if is_over:
                    break
            print(f"{time.monotonic() - began:.0f} s in all")
            print("scores of a record to records:", dict(scores_in(folder, made)))


if __name__ == "__main__":
    main()
