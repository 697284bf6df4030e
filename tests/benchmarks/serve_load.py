"""What ``claimspan serve`` takes as a proxy, beside a bare receiver under the same load.

    python tests/benchmarks/serve_load.py [--seconds N] [--rate N] [--json]

A client sends whole traces of about 20 kB at a rate, over connections that stay open: first to a
bare receiver, which reads and answers, then to a proxy in front of that receiver, which judges 1 %
of them with the free judge. Client, proxy and receiver share the cores of the machine.
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
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from served import PROTOBUF, Served, asked, body_of, serving

CONNECTIONS: Final = 8
WARM_UP: Final = 0.1
"""Share of a run that is not measured."""

RECEIVER: Final = """
import socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def take(request):
    await request.body()
    return Response(media_type="application/x-protobuf")

app = Starlette(routes=[Route("/v1/traces", take, methods=["POST"])])
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
    failed: int
    peak_mib: float
    """Memory of the proxy that is resident; 0 for the bare receiver."""


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


def peak_mib(served: Served, ended: threading.Event) -> float:
    """The most memory that a service has resident until a moment."""
    page, peak = os.sysconf("SC_PAGE_SIZE"), 0
    file = Path(f"/proc/{served.process.pid}/statm")
    while not ended.wait(0.5):
        peak = max(peak, int(file.read_text().split()[1]))
    return peak * page / 2**20


def figures(subject: str, took: list[float], failed: int, seconds: float, peak: float) -> Figures:
    cuts = statistics.quantiles(took, n=100)
    rate = len(took) / (seconds * (1 - WARM_UP))
    return Figures(subject, rate, 1e3 * cuts[49], 1e3 * cuts[98], failed, peak)


def measured(rate: float, seconds: float) -> tuple[list[Figures], dict[str, dict[str, int]]]:
    """Run both, and return their figures and what the proxy says of itself."""
    with tempfile.TemporaryDirectory() as folder, receiver() as behind:
        bare = figures("bare receiver", *load(behind, rate, seconds), seconds, 0.0)
        with serving(Path(folder), "--forward", behind, "--sample", "0.01", quiet=5.0) as served:
            ended, found = threading.Event(), list[float]()
            watch = threading.Thread(target=lambda: found.append(peak_mib(served, ended)))
            watch.start()
            took, failed = load(served.url, rate, seconds)
            time.sleep(7)  # the last traces become whole
            ended.set()
            watch.join()
            health = served.health()
        return [bare, figures("proxy that judges 1 %", took, failed, seconds, *found)], health


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found, health = measured(given.rate, given.seconds)
    if given.json:
        print(json.dumps({"figures": [each._asdict() for each in found], "health": health}))
        return
    for each in found:
        print(
            f"{each.subject}: {each.traces_a_second:.0f} traces a second, "
            f"p50 {each.p50_ms:.1f} ms, p99 {each.p99_ms:.1f} ms, {each.failed} failed, "
            f"peak {each.peak_mib:.0f} MiB"
        )
    print(json.dumps(health))


if __name__ == "__main__":
    main()
