"""What ``claimspan serve`` takes as a proxy, beside a bare receiver under the same load.

    python tests/benchmarks/serve_load.py [--minutes N] [--rate N] [--json]

A client sends whole traces of about 20 kB at a rate, over connections that stay open: for a minute
at most to a bare receiver, which reads and answers, then to a proxy in front of that receiver,
which judges 1 % of them with the free judge. Client, proxy and receiver share the cores of the
machine; what else had to run on these is printed as the load beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from served import PROTOBUF, Served, asked, body_of, serving

CONNECTIONS: Final = 8
PATIENCE: Final = 120.0
MEMORY_SECONDS: Final = 30.0
WARM_UP: Final = 0.1
"""Share of a run that is not measured."""

RECEIVER: Final = """
import socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

taken = [0]

async def take(request):
    await request.body()
    taken[0] += 1
    return Response(media_type="application/x-protobuf")

async def count(request):
    return Response(str(taken[0]))

routes = [Route("/v1/traces", take, methods=["POST"]), Route("/count", count)]
app = Starlette(routes=routes)
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])
"""


class Figures(NamedTuple):
    """What one run has measured."""

    subject: str
    traces_a_second: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    failed: int
    load: float
    """Processes that wanted a core, on average over the last minute of the run."""


class Memory(NamedTuple):
    """What is resident of the two processes of the proxy, in MiB, a number each half minute."""

    receiver: list[int]
    judge: list[int]


@contextmanager
def receiver() -> Generator[str]:
    command = [sys.executable, "-c", RECEIVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def load(url: str, rate: float, seconds: float) -> tuple[list[float], int]:
    """Send traces; returns the seconds that each took, and how many were refused.

    A request counts from when it was due: a receiver that falls behind is not spared.
    """
    spans = asked(facts=165)
    context = spans[0].context
    assert context is not None
    template, old = body_of(spans), context.trace_id.to_bytes(16)
    took: list[float] = []
    failed = [0]
    began = time.monotonic()

    def send(first: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        number = first
        while (due := began + number / rate) < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            connection.request(
                "POST", "/v1/traces", template.replace(old, secrets.token_bytes(16)), PROTOBUF
            )
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failed[0] += 1
            elif due - began > WARM_UP * seconds:
                took.append(time.monotonic() - due)
            number += CONNECTIONS
        connection.close()

    threads = [threading.Thread(target=send, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took, failed[0]


def memory(served: Served, ended: threading.Event) -> Memory:
    """What the processes of a service have resident until a moment."""
    page = os.sysconf("SC_PAGE_SIZE")
    found = Memory([], [])
    pids = (served.process.pid, served.health()["judge"]["pid"])
    while not ended.wait(MEMORY_SECONDS):
        for pid, kept in zip(pids, found, strict=True):
            resident = Path(f"/proc/{pid}/statm").read_text().split()[1]
            kept.append(int(resident) * page // 2**20)
    return found


def figures(subject: str, took: list[float], failed: int, seconds: float) -> Figures:
    cuts = statistics.quantiles(took, n=100)
    rate = len(took) / (seconds * (1 - WARM_UP))
    p50, p99, longest = (1e3 * each for each in (cuts[49], cuts[98], max(took)))
    return Figures(subject, rate, p50, p99, longest, failed, os.getloadavg()[0])


def drained(served: Served) -> dict[str, dict[str, int]]:
    """What the proxy says of itself once no trace waits any more."""
    given_up = time.monotonic() + PATIENCE
    health = served.health()
    while health["waiting"]["traces"] and time.monotonic() < given_up:
        time.sleep(1)
        health = served.health()
    return health


def measured(
    rate: float, seconds: float
) -> tuple[list[Figures], Memory, dict[str, dict[str, int]], int]:
    """Run both; returns figures, memory, what the proxy says, and what the receiver has taken."""
    with tempfile.TemporaryDirectory() as folder, receiver() as behind:
        short = min(seconds, 60.0)
        bare = figures("bare receiver", *load(behind, rate, short), short)
        before = count_at(behind)
        with serving(Path(folder), "--forward", behind, "--sample", "0.01", quiet=5.0) as served:
            ended, found = threading.Event(), list[Memory]()
            watch = threading.Thread(target=lambda: found.append(memory(served, ended)))
            watch.start()
            proxied = figures("proxy that judges 1 %", *load(served.url, rate, seconds), seconds)
            health = drained(served)
            ended.set()
            watch.join()
        return [bare, proxied], found[0], health, count_at(behind) - before


def count_at(url: str) -> int:
    """Requests that the receiver has taken."""
    with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - loopback
        return int(answer.read())


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found, kept, health, taken = measured(given.rate, 60 * given.minutes)
    if given.json:
        said = {"figures": [each._asdict() for each in found], "memory": kept._asdict()}
        print(json.dumps(said | {"health": health, "taken": taken}))
        return
    for each in found:
        print(
            f"{each.subject}: {each.traces_a_second:.0f} traces a second, "
            f"p50 {each.p50_ms:.1f} ms, p99 {each.p99_ms:.1f} ms, max {each.max_ms:.0f} ms, "
            f"{each.failed} failed, load {each.load:.1f}"
        )
    print(f"memory in MiB each half minute: receiver {kept.receiver}, judge {kept.judge}")
    spans = sum(health["spans"].values())
    print(
        f"requests at the receiver {taken}, put down {health['requests']['taken']}, spans {spans}"
    )
    print(json.dumps(health))


if __name__ == "__main__":
    main()
